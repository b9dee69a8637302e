/* SPDX-License-Identifier: MIT */
/* The names of the fences, for the test build that can leave them out. */
#include "box/fences.h"

#ifdef BOX_UNFENCED
#include <errno.h>
#include <string.h>

unsigned box_fences_out;

static const char *const fence_names[FENCE_MAX_] = {
        [FENCE_ROOT] = "root",
        [FENCE_READONLY] = "readonly",
        [FENCE_MASKS] = "masks",
        [FENCE_PID] = "pid",
        [FENCE_NET] = "net",
        [FENCE_IPC] = "ipc",
        [FENCE_UTS] = "uts",
        [FENCE_PRIVILEGES] = "privileges",
        [FENCE_SYSCALLS] = "syscalls",
        [FENCE_LANDLOCK] = "landlock",
        [FENCE_RLIMITS] = "rlimits",
        [FENCE_WATCH] = "watch",
        [FENCE_DESCRIPTORS] = "descriptors",
        [FENCE_ENVIRONMENT] = "environment",
        [FENCE_SESSION] = "session",
        [FENCE_PROTECT] = "protect",
        [FENCE_TREE_KILL] = "tree-kill",
        [FENCE_DEADLINE] = "deadline",
        [FENCE_CGROUP] = "cgroup",
        [FENCE_MOULD] = "mould",
        [FENCE_HOLDER] = "holder",
        [FENCE_HIDE] = "hide",
        [FENCE_LOADING] = "loading",
};

int box_fence_leave_out(const char *names)
{
        while (*names) {
                size_t n = strcspn(names, ",");
                int found = -1;

                for (int i = 0; i < FENCE_MAX_; i++)
                        if (strlen(fence_names[i]) == n && strncmp(fence_names[i], names, n) == 0)
                                found = i;
                if (found < 0)
                        return -EINVAL;
                box_fences_out |= 1U << found;
                names += n + (names[n] == ',');
        }
        return 0;
}
#else
typedef int fences_are_all_kept; /* an empty file is no C */
#endif
