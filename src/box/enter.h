/* SPDX-License-Identifier: MIT */
/* The child's side of box_prepare. */
#ifndef BOX_ENTER_H
#define BOX_ENTER_H

#include "box/child.h"

_Noreturn void box_enter(struct child *child);
_Noreturn void box_keep(struct child *child);       /* keep.c: without namespaces, above init ... */
_Noreturn void box_enter_cage(struct child *child); /* cage.c: ... and init */

#endif
