/* SPDX-License-Identifier: MIT */
/*
 * The mould of a plan: a process below its maker, in a mount namespace that holds a box's root and
 * nothing of the host's (box/box.h). The boxes are cloned there. The maker stays on the host, where
 * it can see whether the plan still holds.
 *
 *   warden ──make──▶ maker ──make──▶ mould        one at a time
 *      ▲                                │
 *      └──────────────box───────────────┘
 */
#ifndef WARDEN_MOULD_H
#define WARDEN_MOULD_H

#include "policy/plan.h"
#include "warden/wire.h"

/* Fork a mould and wait until it stands. It sends its boxes to `answers`, and they end with
 * `warden`, a pidfd; it goes itself when its socket is closed. */
int mould_open(const struct plan *plan, int answers, int warden, int *ret_mould, cbx_error *error);

/* Let it serve a WIRE_MAKE. -ESTALE when the mould is not what it was and nothing has been sent;
 * another error when it is gone. */
int mould_make(int mould, const struct wire_message *order);

#endif
