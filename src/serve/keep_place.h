/* SPDX-License-Identifier: MIT */
/*
 * A directory of the host that goes with the server, however that ends.
 *
 * A server that is killed cannot remove anything. So a process of its own does, which does nothing
 * else: it waits for the end of a pipe whose other end only the server has. Where both are killed
 * at once the directory stays until the next server of the same user starts: whoever lives holds a
 * lock on his directory, so one that can be locked is nobody's.
 */
#ifndef SERVE_KEEP_PLACE_H
#define SERVE_KEEP_PLACE_H

#include "base/base.h"

#define KEEP_SECRET 17 /* 64 bits as text */

struct keep_place {
        char *outer; /* which only we can enter, or list where it is secret ... */
        char *inner; /* ... and in it what boxes enter, who are somebody else, and do not list */
        int fd;      /* of the inner one */
        int lock;    /* the outer one, locked */
        int alive;   /* the end of the pipe that only we have */
        pid_t keeper;
};

/* `secret`: whoever has been told the path may enter: boxes that no mount leads there. */
int keep_place_make(const char *parent, bool secret, struct keep_place *ret_place);
void keep_place_remove(struct keep_place *place);

/* A part of a name that nobody can guess. */
int keep_place_secret(char ret[KEEP_SECRET]);

/* Remove what servers of this user have left there. */
void keep_place_sweep(const char *parent);

#endif
