/* SPDX-License-Identifier: MIT */
/*
 * Output that is too long for an answer, whole: in files of a directory that boxes see read-only,
 * so that a model can read it in parts. The directory is made when the server starts and goes with
 * it; nobody else of the host can enter it. The latest outputs are kept, each up to a size.
 */
#ifndef SERVE_KEEP_H
#define SERVE_KEEP_H

#include "base/base.h"

#define KEEP_SHOWN "/run/callbox/output" /* where boxes see it */

struct keep;

int keep_open(struct keep **ret_keep, cbx_error *error);
struct keep *keep_close(struct keep *keep);
/* On the host. */
const char *keep_directory(const struct keep *keep);

/* One stream of one call. Nothing is written until there is more than `room` bytes of it. */
struct keep_stream {
        struct keep *keep; /* NULL: it is not kept */
        char name[64];     /* of its file */
        size_t room;
        struct buffer first;
        int fd; /* -1: there is none yet, or no more */
        uint64_t written;
        bool begun, cut;
};

void keep_begin(struct keep *keep, struct keep_stream *stream, const char *id, const char *which,
                size_t room);
void keep_add(struct keep_stream *stream, const char *data, size_t length);
/* What there is shall be in the file, however short it is. False: there is none. */
bool keep_whole(struct keep_stream *stream);
void keep_end(struct keep_stream *stream);

#endif
