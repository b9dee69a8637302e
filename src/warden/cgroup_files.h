/* SPDX-License-Identifier: MIT */
/* The files of control groups: between cgroup.c and cgroup_parent.c. */
#ifndef WARDEN_CGROUP_FILES_H
#define WARDEN_CGROUP_FILES_H

#include "base/base.h"

int cgroup_write(int directory, const char *name, const char *text);
int cgroup_write_number(int directory, const char *name, uint64_t value);

/* The names of groups: this, the owner's pid, a number. */
#define CGROUP_NAME "callbox-box-%d-%u"

#endif
