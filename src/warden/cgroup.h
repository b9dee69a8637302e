/* SPDX-License-Identifier: MIT */
/*
 * A control group for each box, where callbox has a cgroup v2 subtree of its own with the memory
 * and pids controllers: then the kernel counts a tree's memory exactly. Elsewhere there is none,
 * and init's looks at the tree (box/watch.c) and the kernel's per-process limits take its place.
 *
 * The place. A group may hand controllers to groups below it only while no process is in it (the
 * root is exempt). So a warden that is alone in its group steps down into a leaf of it, and the
 * groups of boxes lie beside the leaf; where the group above is its own to divide, they lie there
 * and nobody moves. Other people's processes are never moved, and where systemd keeps the tree, a
 * unit is divided only if systemd has marked it as handed over (Delegate=yes); a warden that has no
 * such unit asks for one (scope.h).
 *
 * Version 1, for a root without systemd: there the memory controller alone is used, below the group
 * that callbox is in, and boxes enter their groups themselves. The kernel then kills one process
 * after the other, not all at once.
 *
 * Whose a group is. The warden holds a lock on each of its groups. One that nobody holds is litter:
 * of a warden that was killed, or of a box that was not quite dead when its group was to be
 * removed. The next who makes a group there takes it away; after a warden's death its nursery does.
 */
#ifndef WARDEN_CGROUP_H
#define WARDEN_CGROUP_H

#include "policy/policy.h"

/* What a box has. */
enum cgroup_means {
        CGROUP_NONE,
        CGROUP_MEMORY,  /* memory alone, by version 1 */
        CGROUP_COUNTED, /* memory and processes */
        CGROUP_SHARED,  /* ... and its share of the processors */
        CGROUP_MEANS_MAX_,
};

/* Why there is no place for groups. */
enum cgroup_obstacle {
        CGROUP_FINE,
        CGROUP_NOT_MOUNTED,
        CGROUP_V1,
        CGROUP_READ_ONLY,
        CGROUP_FOREIGN,       /* the group belongs to somebody else */
        CGROUP_NOT_DELEGATED, /* ... to systemd, which has not handed it over */
        CGROUP_POOR,          /* it has not got the controllers */
        CGROUP_CROWDED,       /* others are in it */
        CGROUP_OBSTACLE_MAX_,
};

/* Look for one, without changing anything. */
enum cgroup_obstacle cgroup_look(void);

/* Is there one of version 1, which is not used unless it is wanted? */
bool cgroup_is_v1(void);

/* What it is and what to do about it; NULL where there is nothing. */
const char *cgroup_obstacle_str(enum cgroup_obstacle obstacle);
const char *cgroup_obstacle_fix(enum cgroup_obstacle obstacle);

/* The group below which boxes get theirs. */
struct cgroup_parent {
        int fd;       /* -1: there is none */
        bool v1;      /* it is of version 1, with the memory controller alone */
        bool cpu;     /* the cpu controller is there as well */
        bool stepped; /* this process lives in a leaf of it */
        bool litter;  /* a group could not be removed yet */
        pid_t owner;
        unsigned live; /* groups that the owner has */
};

#define CGROUP_PARENT_INIT                                                                         \
        {                                                                                          \
                .fd = -1                                                                           \
        }

/* Find, and leave, the place where this process may make groups. There may be none; of version 1
 * one is looked for where that is wanted, as to make a group, enter and remove it takes a tenth of
 * a call: where boxes are made ahead, or where the policy requires it. Whoever leaves the place has
 * no children any more. */
void cgroup_parent_open(struct cgroup_parent *parent, bool v1_wanted);
void cgroup_parent_close(struct cgroup_parent *parent);

/* Kill and remove what nobody holds. */
void cgroup_parent_sweep(struct cgroup_parent *parent);

struct cgroup {
        struct cgroup_parent *parent; /* NULL: none; not owned */
        int fd;
        uint64_t cpu_before[2]; /* used before the call: user, system */
        char name[64];
};

#define CGROUP_INIT                                                                                \
        {                                                                                          \
                .fd = -1                                                                           \
        }

enum cgroup_means cgroup_means(const struct cgroup *cgroup);

struct cgroup_usage {
        uint64_t memory_peak, cpu_user, cpu_system; /* bytes, nanoseconds; 0: unknown */
        uint64_t processes_peak;                    /* 0: unknown */
        bool out_of_memory;                         /* it reached its own limit and was killed */
        bool host_out_of_memory;                    /* it was killed for what others use */
};

/* Make a group with these limits. Without a place for it the group stays empty: fd is -1. */
int cgroup_open(struct cgroup *cgroup, struct cgroup_parent *parent,
                const struct policy_limits *limits, cbx_error *error);

/* Move a process into it, one that has no children yet. Nothing where there is none. */
int cgroup_adopt(const struct cgroup *cgroup, int pidfd);

/* A call begins, which may use less than the group was made for: from here on it is its own. */
int cgroup_begin(struct cgroup *cgroup, const struct policy_limits *limits, cbx_error *error);
void cgroup_read(const struct cgroup *cgroup, struct cgroup_usage *ret);

/* Kill what is in it and remove it, now or later. */
void cgroup_close(struct cgroup *cgroup);

#endif
