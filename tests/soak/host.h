/* SPDX-License-Identifier: MIT */
/* What a warden holds, and what it may leave behind: processes, memory, descriptors, mounts and
 * control groups, read from /proc. */
#ifndef SOAK_HOST_H
#define SOAK_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What a process is to a warden. */
enum host_role {
        HOST_NONE,
        HOST_WARDEN,
        HOST_NURSERY,
        HOST_MAKER,
        HOST_MOULD,
        HOST_INIT,
        HOST_INSIDE
};

struct host_process {
        pid_t pid, parent;
        char state, name[32];
        enum host_role role;
};

/* The processes below (and with) this one. Returns how many, at most `room`. */
size_t host_tree(pid_t root, struct host_process *found, size_t room);

struct host_use {
        long warden_kib; /* of its own memory */
        long others_kib; /* of nursery, makers and moulds, shared pages by share */
        long client_kib; /* that this process has allocated */
        int descriptors; /* of warden and nursery, without those of boxes that wait */
        int own;         /* descriptors of this process */
        int boxes;       /* that wait */
        int zombies;     /* below the warden */
        int mounts;      /* of this mount namespace */
        int cgroups;     /* of callbox's, anywhere, that nobody holds */
};

int host_entries(const char *path); /* . and .. included */
int host_mounts(void);
int host_cgroups(void);

/* When nothing is under way: waits, some seconds at most, until it is so. */
bool host_measure(pid_t warden, struct host_use *ret);

/* This process inherits what its children leave behind: wait, as long as given, until it has none.
 * Returns how many there still are. */
int host_reap(double seconds, bool print);

#endif
