/* SPDX-License-Identifier: MIT */
/* As much of a plan as it takes to fork a box: packed by the maker that has compiled it, read by
 * the zygote. It holds nothing of the host but what the box may see. */
#ifndef WARDEN_FORK_PLAN_H
#define WARDEN_FORK_PLAN_H

#include "policy/plan.h"
#include "warden/pack.h"

struct fork_plan {
        struct plan plan;
        struct cbx_policy policy; /* as far as a box looks at it */
        int *trees;               /* room for one per step */
};

void fork_plan_pack(struct pack *pack, const struct plan *plan);

/* `ret` points into the message, and keeps what it allocates. */
int fork_plan_unpack(struct unpack *unpack, struct fork_plan *ret);

#endif
