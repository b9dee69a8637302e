/* SPDX-License-Identifier: MIT */
/* Id maps; runs in the warden. */
#ifndef BOX_MAPPING_H
#define BOX_MAPPING_H

#include <sys/types.h>

#include "base/base.h"

/* Give the user namespace of `pid` its single-id maps. `proc` is a /proc that shows it; -1: the
 * one at its place. */
int mapping_write(int proc, pid_t pid, bool deny_groups, uid_t inside_uid, uid_t uid,
                  gid_t inside_gid, gid_t gid);

/* A descriptor of a user namespace that maps an owner to the box. */
int mapping_open(uid_t owner_uid, gid_t owner_gid, uid_t box_uid, gid_t box_gid);

/* Apply it to a detached tree of mounts. */
int mapping_apply(int tree, int mapping);

#endif
