/* SPDX-License-Identifier: MIT */
/* Lines of a stream that comes in pieces, each of bounded length. */
#ifndef SERVE_LINES_H
#define SERVE_LINES_H

#include "base/base.h"

struct lines {
        struct buffer data;
        size_t at;     /* in it: where the next line begins */
        size_t sought; /* in it: where there is no end of a line before */
        size_t limit;  /* bytes of a line */
        bool skipping; /* the line is too long: its rest is dropped */
};

void lines_free(struct lines *lines);

/* A piece of the stream. */
int lines_add(struct lines *lines, const char *data, size_t length);

/* The next line, without its end; good until the next lines_add. Returns 1, 0 when there is none
 * yet, or -EMSGSIZE once for each that is too long. Blank lines are left out. At the end of the
 * stream a line need not have an end. */
int lines_next(struct lines *lines, bool ended, const char **ret_line, size_t *ret_length);

#endif
