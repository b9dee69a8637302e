/* SPDX-License-Identifier: MIT */
/* A box that waits for its call, with the control group it lives in. */
#ifndef WARDEN_PREPARED_H
#define WARDEN_PREPARED_H

#include "box/box.h"
#include "warden/cgroup.h"

struct prepared {
        struct box box;
        struct cgroup cgroup;
};

#define PREPARED_INIT                                                                              \
        {                                                                                          \
                .box = BOX_INIT, .cgroup = CGROUP_INIT                                             \
        }

/* The box is dead or killed. */
static inline void prepared_free(struct prepared *prepared)
{
        box_free(&prepared->box);
        cgroup_close(&prepared->cgroup);
}

#endif
