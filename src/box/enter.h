/* SPDX-License-Identifier: MIT */
/* The child's side of box_prepare. */
#ifndef BOX_ENTER_H
#define BOX_ENTER_H

#include "box/child.h"

_Noreturn void box_enter(struct child *child);

#endif
