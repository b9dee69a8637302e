/* SPDX-License-Identifier: MIT */
/*
 * A control group for one call, where callbox has a cgroup v2 subtree of its own with the memory
 * and pids controllers: then the kernel counts a tree's memory exactly. Elsewhere there is none,
 * and init's looks at the tree (box/watch.c) and the kernel's per-process limits take its place.
 */
#ifndef WARDEN_CGROUP_H
#define WARDEN_CGROUP_H

#include "policy/policy.h"

struct cgroup {
        int parent; /* -1: none */
        int fd;
        char name[64];
};

#define CGROUP_INIT                                                                                \
        {                                                                                          \
                .parent = -1, .fd = -1                                                             \
        }

struct cgroup_usage {
        uint64_t memory_peak, cpu_user, cpu_system; /* bytes, nanoseconds; 0: unknown */
        bool out_of_memory;
};

/* Can calls have groups of their own here? Names the place, or returns NULL. */
const char *cgroup_available(void);

/* Make a group with these limits. Without a place for it the group stays empty: fd is -1. */
int cgroup_open(struct cgroup *cgroup, const struct policy_limits *limits, cbx_error *error);
void cgroup_read(const struct cgroup *cgroup, struct cgroup_usage *ret);

/* Kill what is in it and remove it. */
void cgroup_close(struct cgroup *cgroup);

#endif
