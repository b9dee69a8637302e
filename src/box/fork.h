/* SPDX-License-Identifier: MIT */
/*
 * Boxes that are forked from a program which has got everything ready: a zygote.
 *
 *   warden ── init ── zygote            a box of its own, for the same policy
 *                       ├─ init ── call a box in that box: its own users, pids, mounts, ipc,
 * network └─ init ── call
 *
 * The zygote holds no capability. It may make user namespaces, which no other program in a box may;
 * in one of them it forks an init, which builds the view of its box (fork_view.c) and forks main;
 * main puts up the same fences as any other, all of them, and goes on where the zygote was.
 *
 * Init here is a copy of the zygote, not of a maker. It is worth as much as what the zygote has
 * loaded: whoever can change that can change what a call is said to have done, and reach other
 * calls of the same zygote, but nothing outside of the zygote's box. So the warden takes the page
 * of such a box for what a stranger says.
 */
#ifndef BOX_FORK_H
#define BOX_FORK_H

#include "box/box.h"

/* In the zygote. Returns 0 there, with a pidfd of init; BOX_FORKED in main, for which the call has
 * begun; or a negative errno. Everything is the zygote's to close, and main has nothing open but
 * its descriptors 0 to 3. The process must have one thread. `trees` is room for a number per step
 * of the plan. */
#define BOX_FORKED 1
int box_fork(const struct plan *plan, const struct box_ends *ends, int *trees, int *ret_pidfd);

#endif
