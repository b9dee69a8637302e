/* SPDX-License-Identifier: MIT */
/* A box that waits for its call, with the control group it lives in and its streams. */
#ifndef WARDEN_PREPARED_H
#define WARDEN_PREPARED_H

#include "box/box.h"
#include "warden/cgroup.h"
#include "warden/output.h"
#include "warden/program.h"
#include "warden/zygote.h"

struct prepared {
        struct box box;
        struct cgroup cgroup;
        /* What most calls need, made when there is time: pipes for its output, nothing as input. */
        int output[STREAMS][2]; /* read end, write end */
        int nothing;
        bool offered;               /* main has them as well, for a call that needs no others */
        bool running;               /* its program has been started and waits for its input ... */
        int input[2];               /* ... on this pipe: the box's end, ours */
        struct program_files files; /* what it was started from */
        struct zygote *zygote;      /* it was forked from; NULL: it was made by itself */
};

#define PREPARED_INIT                                                                              \
        {                                                                                          \
                .box = BOX_INIT, .cgroup = CGROUP_INIT,                                            \
                .output = { { -1, -1 }, { -1, -1 }, { -1, -1 } }, .nothing = -1, .input = {        \
                        -1,                                                                        \
                        -1                                                                         \
                }                                                                                  \
        }

/* The box's user may open its own standard descriptors again, by /dev/stdout and the like. For
 * pipes of ours alone: what has a name on the host stays whose it is. */
void prepared_give(const struct plan *plan, int fd);

/* Open the streams, unless that has been done; the result's only where there is one. */
int prepared_open_streams(struct prepared *prepared, const struct plan *plan, bool result);

/* Hand the streams to main ahead of its call. */
void prepared_offer(struct prepared *prepared);

/* Start a program before there is a call for it. On failure the box is of no use any more. */
int prepared_start(struct prepared *prepared, const struct plan *plan, const struct box_spec *spec,
                   cbx_error *error);

/* The box is dead or killed. */
void prepared_free(struct prepared *prepared);

#endif
