/* SPDX-License-Identifier: MIT */
/* Where paths lie in their file systems; for inputs.c. */
#ifndef POLICY_MOUNTS_H
#define POLICY_MOUNTS_H

#include <limits.h>

#include "policy/inputs.h"

struct mounts_item {
        const char *device, *root, *point; /* "98:0", the part of it that is mounted, and where */
};

struct inputs_mounts {
        char *text;
        struct mounts_item *items;
        size_t n;
};

struct mounts_place {
        const char *device;
        char path[PATH_MAX]; /* from the root of the file system */
};

/* What follows `tree` in a path that is at or below it, whatever the case; or NULL. */
const char *mounts_below(const char *path, const char *tree);

bool mounts_place(const struct inputs_mounts *mounts, const char *path, struct mounts_place *ret);

/* The paths at or below `tree` that lead to what is at `path`, or to a part of it: one by its text,
 * and one for each mount that shows the same place there. NULL: out of memory. `mounts` may be
 * NULL: then paths alone tell. */
char **mounts_shown(const struct inputs_mounts *mounts, const char *tree, const char *path);

/* Is what is at `path` at or below `tree`, by these paths or by another way to it? */
bool mounts_reach(const struct inputs_mounts *mounts, const char *tree, const char *path);

#endif
