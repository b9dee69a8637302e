/* SPDX-License-Identifier: MIT */
/* Does this host let callbox make the namespaces of a box? */
#ifndef POLICY_HOST_H
#define POLICY_HOST_H

#include "base/base.h"

/* 0, or the errno with which they are refused. Tried once per process; what is forked from it
 * remembers. */
int host_refuses_namespaces(void);

/* Why that is, as far as the errno tells, and what to do about it. */
int host_explain_refusal(int code, cbx_error *error);

#endif
