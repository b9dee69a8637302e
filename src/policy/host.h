/* SPDX-License-Identifier: MIT */
/* What this host lets callbox do: the namespaces of a box, and what stands in for them. */
#ifndef POLICY_HOST_H
#define POLICY_HOST_H

#include "base/base.h"

/* 0, or the errno with which they are refused. Tried once per process, which takes a process of its
 * own; what is forked from it remembers. */
int host_refuses_namespaces(void);

/* The same of the call that makes them, which costs nothing to ask: what containers refuse. */
int host_refuses_clone3(void);

/* Why that is, as far as the errno tells, and what to do about it. */
int host_explain_refusal(int code, cbx_error *error);

/* May a process read the memory of another that is below it, as init has to where it makes calls
 * for the program? Else the value of the setting that forbids it, which is 2 or 3. */
int host_forbids_reading(void);

/* Refuse what init could not do then, with the setting that forbids it. */
int host_explain_reading(int scope, const char *where, const char *what, cbx_error *error);

/* Does it let one process take a descriptor of another that it may look into? The default profile
 * of container engines does not. */
bool host_lets_take(void);

/* Is this process the host's root, whatever the id is called here? A user namespace can give that
 * one any name. */
bool host_is_root(void);

/* Is a user id mapped in the user namespace that callbox itself runs in, and to which outside? */
bool host_maps_id(unsigned long id, unsigned long *ret_outside);

#endif
