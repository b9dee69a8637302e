/* SPDX-License-Identifier: MIT */
/*
 * A unit of systemd's for a warden. Where systemd keeps the control groups, it hands out subtrees
 * to those who ask: a transient scope with Delegate=yes, into which it moves the process. Asked for
 * by D-Bus on the manager's own socket, which needs neither a bus nor a library. Gone with the last
 * process in it, and with it every group below.
 */
#ifndef WARDEN_SCOPE_H
#define WARDEN_SCOPE_H

/* Get one for this process, from the manager of the system or of the user. Waits for it a second at
 * most. Without systemd, -EOPNOTSUPP. */
int scope_enter(void);

#endif
