/* SPDX-License-Identifier: MIT */
#include "box/guard.h"
bool guard_serve(struct child *child, const struct seccomp_notif *call)
{
        (void)child;
        (void)call;
        return false;
}
