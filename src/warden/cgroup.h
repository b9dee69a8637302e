/* SPDX-License-Identifier: MIT */
/*
 * A control group for one call, where callbox has a cgroup v2 subtree of its own with the memory
 * and pids controllers: then the kernel counts a tree's memory exactly. Elsewhere there is none,
 * and init's looks at the tree (box/watch.c) and the kernel's per-process limits take its place.
 */
#ifndef WARDEN_CGROUP_H
#define WARDEN_CGROUP_H

#include "policy/policy.h"

/* The group below which calls get theirs. */
struct cgroup_parent {
        int fd; /* -1: there is none */
};

#define CGROUP_PARENT_INIT                                                                         \
        {                                                                                          \
                .fd = -1                                                                           \
        }

struct cgroup {
        int parent; /* -1: none; not owned */
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

/* Find, and leave, the place where this process may make groups. There may be none. */
void cgroup_parent_open(struct cgroup_parent *parent);
void cgroup_parent_close(struct cgroup_parent *parent);

/* Make a group with these limits. Without a place for it the group stays empty: fd is -1. */
int cgroup_open(struct cgroup *cgroup, const struct cgroup_parent *parent,
                const struct policy_limits *limits, cbx_error *error);

/* Move a process into it, one that has no children yet. Nothing where there is none. */
int cgroup_adopt(const struct cgroup *cgroup, int pidfd);

/* Set limits anew, for a call that may use less than the group was made for. */
int cgroup_set_limits(const struct cgroup *cgroup, const struct policy_limits *limits,
                      cbx_error *error);
void cgroup_read(const struct cgroup *cgroup, struct cgroup_usage *ret);

/* Kill what is in it and remove it. */
void cgroup_close(struct cgroup *cgroup);

#endif
