/* SPDX-License-Identifier: MIT */
/*
 * The fences by name. The attack suite shows that each of its cases succeeds when the fence
 * against it is left out, so a test build (BOX_UNFENCED, never installed) can leave them out; in
 * the real one box_fence() is the constant true and costs nothing.
 */
#ifndef BOX_FENCES_H
#define BOX_FENCES_H

#include <stdbool.h>

enum fence {
        FENCE_ROOT,
        FENCE_READONLY,
        FENCE_MASKS,
        FENCE_PID,
        FENCE_NET,
        FENCE_IPC,
        FENCE_UTS,
        FENCE_PRIVILEGES,
        FENCE_SYSCALLS,
        FENCE_LANDLOCK,
        FENCE_RLIMITS,
        FENCE_WATCH,
        FENCE_DESCRIPTORS,
        FENCE_ENVIRONMENT,
        FENCE_SESSION,
        FENCE_PROTECT,
        FENCE_TREE_KILL,
        FENCE_DEADLINE,
        FENCE_CGROUP,
        FENCE_MOULD,
        FENCE_HOLDER,
        FENCE_HIDE,
        FENCE_LOADING,
        FENCE_MAX_,
};

#ifdef BOX_UNFENCED
extern unsigned box_fences_out; /* bits of the fences that are left out */
int box_fence_leave_out(const char *names);
static inline bool box_fence(enum fence fence)
{
        return !(box_fences_out & 1U << fence);
}
#else
static inline bool box_fence(enum fence fence)
{
        (void)fence;
        return true;
}
#endif

#endif
