/* SPDX-License-Identifier: MIT */
/*
 * Files that callbox writes on the host on its own account: reports, audit logs. A box may have
 * left a link, a pipe or a second name where one is to be, so no link is followed, nothing is
 * waited for, and what has another name is not written to.
 */
#ifndef POLICY_OUTPUTS_H
#define POLICY_OUTPUTS_H

#include "base/base.h"

/* Open a file for writing, O_TRUNC or O_APPEND in `flags`; it is made where it is not there. A
 * device, /dev/stdout, /dev/fd/N or /proc/self/fd/N is the caller's and opened as it is.
 * `where` names the option in refusals. Returns a descriptor or a negative errno. */
int outputs_open(const char *path, int flags, mode_t mode, const char *where, cbx_error *error);

/* Is it spelled as one of those? */
bool outputs_is_stream(const char *path);

#endif
