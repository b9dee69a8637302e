/* SPDX-License-Identifier: MIT */
/*
 * The tree of a box that has no pid namespace: all that descends from a process which is a
 * subreaper. Whoever loses its parent there becomes that process's child, so the tree is empty when
 * it has no children left, and not before. Async-signal-safe, all of it.
 */
#ifndef BOX_TREE_H
#define BOX_TREE_H

#include "box/child.h"

#define TREE_MAX 32768

/* The processes below `root`, without it. `proc` is /proc. Returns how many there are; one that
 * comes or goes meanwhile may be missed. */
size_t tree_list(int proc, pid_t root, pid_t *pids, size_t max);

/* Does this process, or the one of this thread, descend from `root`? */
bool tree_contains(int proc, pid_t pid, pid_t root);

/* Kill the groups in which a process's newest children are. */
void tree_kill_groups(int proc, pid_t parent);

/* Kill everything below this process until it has no children, and reap them. `ended` is told of
 * each; NULL: nobody wants to know. */
void tree_end(struct child *child, void (*ended)(struct child *child, pid_t pid, int status));

#endif
