/* SPDX-License-Identifier: MIT */
/*
 * The directory that a box without namespaces has in place of a /tmp of its own:
 *
 *   /tmp/callbox-UID/NAME     UID is the caller's outside of its user namespace, or UID-1 and so
 *                             on where somebody else has taken that; NAME nobody can guess
 *
 * The directory above them goes with the last of them, and is made again by whoever needs it.
 *
 * The box's keeper makes it, holds a lock on it as long as it lives, and removes it. One whose lock
 * is free was left by a keeper that was killed; whoever comes next removes it. Between making a
 * directory and locking it the one above is locked, so that nobody takes it for left.
 */
#ifndef BOX_SCRATCH_H
#define BOX_SCRATCH_H

#include "box/child.h"

/* Remove what was left. */
void scratch_sweep(void);

/* Choose the place of a box's directory. */
int scratch_name(char *ret, size_t room);

/* Make it, for the box's user. Async-signal-safe, as what follows. */
int scratch_make(struct child *child);

/* Remove it with all that is in it. */
void scratch_remove(struct child *child);

#endif
