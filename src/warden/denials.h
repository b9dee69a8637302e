/* SPDX-License-Identifier: MIT */
/* What was refused in a box, as the report lists it. */
#ifndef WARDEN_DENIALS_H
#define WARDEN_DENIALS_H

#include <jansson.h>

#include "box/page.h"
#include "policy/plan.h"

/* An array of objects: kind, what, errno, count, and what would allow it: as an option of the
 * command (allow) and as a line of a policy (policy), both empty where nothing does. Several of one
 * directory or host that would be allowed together are one. What the host does not have is left out
 * where the plan says that it may be looked for. NULL when memory ran out. */
json_t *denials_of(const struct plan *plan, const struct box_page *page);

#endif
