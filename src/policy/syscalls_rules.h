/* SPDX-License-Identifier: MIT */
/* Between the files that build a filter: syscalls_build.c, syscalls_cage.c,
 * syscalls_requests.c. */
#ifndef POLICY_SYSCALLS_RULES_H
#define POLICY_SYSCALLS_RULES_H

#include "policy/syscalls.h"

/* The kernel reads most arguments as 32 bits wide; a comparison of all 64 would be passed by a
 * caller that sets the upper half, so compare exact values (upper half zero) or under this mask. */
#define RULES_LOW32 0xffffffffULL

struct rules {
        scmp_filter_ctx context;
        unsigned variant;
        char *const *allow, *const *deny;
        cbx_error *error;
};

/* Does the policy open this call, so that it has no conditions? */
bool rules_opened(const struct rules *rules, const char *name);

/* Add one rule unless the policy denies the call or opens it. Names that
 * this libseccomp does not know are left to the default action. */
int rules_add(struct rules *rules, uint32_t action, const char *name, unsigned n,
              const struct scmp_arg_cmp *compare);

/* Does init want to see this call before it happens? */
bool rules_watched(const struct rules *rules, const char *name);

/* The commands of fcntl and requests of ioctl that there are, and the sockets of a network
 * (syscalls_requests.c). */
int rules_add_requests(struct rules *rules);
int rules_add_network_sockets(struct rules *rules);
/* Calls that take memory which init has to count. */
int rules_add_memory(struct rules *rules);
/* What any box may do with conditions in which init makes calls for the program. */
int rules_add_served(struct rules *rules);

/* What a box without namespaces may do with conditions, and how it opens files. */
int rules_add_caged(struct rules *rules);
int rules_add_caged_opening(struct rules *rules);

#endif
