/* SPDX-License-Identifier: MIT */
/*
 * Output that is too long for an answer, whole: in files of a directory that boxes see read-only,
 * so that a model can read it in parts. The directory is made when the server starts and goes with
 * it; nobody else of the host can enter it, and no box can list it. The latest outputs are kept,
 * each up to a size.
 */
#ifndef SERVE_KEEP_H
#define SERVE_KEEP_H

#include <string.h>

#include "base/base.h"

#define KEEP_SHOWN "/run/callbox/output" /* where boxes see it that have mounts of their own */
#define KEEP_OUTER "callbox-mcp-"
#define KEEP_INNER "output"
#define KEEP_NAME 96 /* bytes of a name */

struct keep;

/* `caged`: boxes have no mounts; `unboxed`: some tools run without a box. Then all see it where it
 * is on the host. */
int keep_open(bool caged, bool unboxed, struct keep **ret_keep, cbx_error *error);
struct keep *keep_close(struct keep *keep);
/* On the host; and for boxes. */
const char *keep_directory(const struct keep *keep);
const char *keep_shown(const struct keep *keep);

/* Is that where boxes see some server's, or below it? */
static inline bool keep_is_shown(const char *path)
{
        const char *outer = strstr(path, "/" KEEP_OUTER),
                   *inner = outer ? strchr(outer + 1, '/') : NULL;
        size_t n = strlen(KEEP_SHOWN);

        if (strncmp(path, KEEP_SHOWN, n) == 0 && (path[n] == '/' || path[n] == '\0'))
                return true;
        return inner && strncmp(inner + 1, KEEP_INNER, strlen(KEEP_INNER)) == 0;
}

/* One stream of one call. Nothing is written until there is more than `room` bytes of it. */
struct keep_stream {
        struct keep *keep;    /* NULL: it is not kept */
        char name[KEEP_NAME]; /* of its file */
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
