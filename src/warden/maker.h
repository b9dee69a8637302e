/* SPDX-License-Identifier: MIT */
/*
 * Who makes the boxes of a warden:
 *
 *   warden ──┬─ nursery ──┬─ maker of policy A ── mould ── inits
 *            │            └─ maker of policy B ── mould ── inits
 *            └ holds the boxes: pidfd, sockets, page
 *
 * A maker is forked from the nursery, which was forked from the warden before it had heard
 * anything. So a box's init, which is a copy of its maker or its mould (mould.h), holds one policy
 * and nothing of any call; cloning it costs the same however many boxes the warden watches; and the
 * warden itself never waits for a file system or for a clone.
 *
 * Nursery and makers end when their socket does: with the warden, or when it drops a policy. A box
 * ends with the warden, not with its maker.
 */
#ifndef WARDEN_MAKER_H
#define WARDEN_MAKER_H

#include "box/box.h"
#include "warden/cgroup.h"
#include "warden/wire.h"

/* Fork the nursery. Its death shows as the end of the socket. Called once, before anything else
 * is known; `warden` is a pidfd of the caller. Where the warden is killed, the nursery removes what
 * it leaves below `cgroup`. */
int nursery_open(int warden, const struct cgroup_parent *cgroup, int *ret_socket);

/* Ask for a maker, which will serve `socket`, and compile this policy first. */
int nursery_ask(int nursery, const struct wire_policy *policy, int socket);

/*
 * What a maker says:
 *   WIRE_PLAN, first of all, and again when the host has changed: what the warden has to know of
 *     the plan, or the error that it met with; then it is gone
 *   WIRE_BOX, for each WIRE_MAKE (which may carry a control group, and says whether the box is
 *     for a zygote): the box's descriptors, or an error
 */
enum { MAKER_PIDFD, MAKER_CONTROL, MAKER_START, MAKER_PAGE };

/* A plan as the warden knows it: without the steps, which only the maker takes. Boxes and calls
 * hold references to the one they were made from. */
struct maker_plan {
        struct plan plan;
        unsigned refs;
        char *body;        /* what the plan points into */
        const char *forks; /* what a zygote has to know (fork_plan.h) */
        size_t forks_length;
};

int maker_unpack_plan(struct wire_message *message, cbx_policy *policy, cbx_error *error,
                      struct maker_plan **ret);
struct maker_plan *maker_plan_ref(struct maker_plan *plan);
struct maker_plan *maker_plan_unref(struct maker_plan *plan);

/* Take a box out of a message. */
int maker_unpack_box(struct wire_message *message, const struct plan *plan, struct box *box,
                     cbx_error *error);

#endif
