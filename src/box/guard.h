/* SPDX-License-Identifier: MIT */
/* Calls that init looks at, or makes, on behalf of the box: guard.c. */
#ifndef BOX_GUARD_H
#define BOX_GUARD_H

#include <linux/seccomp.h>

#include "box/child.h"

/* Deal with a watched call. False: it is not one, and the caller refuses it. */
bool guard_serve(struct child *child, const struct seccomp_notif *call);

#endif
