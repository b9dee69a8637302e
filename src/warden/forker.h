/* SPDX-License-Identifier: MIT */
/*
 * In the zygote: what the warden asks of it (zygote.h), on the socket that CALLBOX_FORK_FD names.
 * It needs nothing of callbox but this, and is linked into what runs in boxes.
 */
#ifndef WARDEN_FORKER_H
#define WARDEN_FORKER_H

#include "warden/fork_plan.h"
#include "warden/wire.h"

struct forker {
        int socket;
        char *body; /* what the plan points into */
        struct fork_plan plan;
        struct wire_room room;
        bool hurried; /* the box that was forked last is waited for */
};

/* Get what boxes are made from, and say that there may be some from now on. -EBUSY: the process has
 * memory that its calls would share. */
int forker_open(int socket, struct forker *ret);

/* Wait for someone who wants a box, and fork it. Returns 0 when that is done, BOX_FORKED in the
 * box, or a negative errno when there is nothing to wait for any more: -EPIPE. */
int forker_serve(struct forker *forker);

/* This zygote is out of date. It has to stay as long as the warden lets it: the boxes that were
 * forked from it end when it does. */
int forker_retire(struct forker *forker);

#endif
