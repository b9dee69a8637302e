/* SPDX-License-Identifier: MIT */
/*
 * The system calls of a box. Allowed ones run at full speed; every other one goes to the box's
 * init, which counts it and answers with an errno (box/notify.c): EPERM for what is known to be
 * dangerous, EAFNOSUPPORT for socket families, ENOSYS for what nobody here has heard of.
 */
#ifndef POLICY_SYSCALLS_H
#define POLICY_SYSCALLS_H

#include <linux/filter.h>
#include <seccomp.h>

#include "policy/policy.h"

enum syscalls_variant {
        SYSCALLS_GUARDED = 1 << 0, /* calls that make, change or take away files go to init */
        SYSCALLS_SOCKETS = 1 << 1, /* connecting goes to init */
        SYSCALLS_EXPLAIN = 1 << 2, /* ... and so do calls that look up paths */
        SYSCALLS_LENT = 1 << 3,    /* making sockets that are not local goes to init */
        SYSCALLS_ZYGOTE = 1 << 4,  /* boxes are forked from it; alone */
        SYSCALLS_CAGED = 1 << 5,   /* nothing of the host is kept by mounts or namespaces; with the
                                    * first two */
        SYSCALLS_ONLINE = 1 << 6,  /* ... but sockets of its network may be made */
        SYSCALLS_SIGNALS = 1 << 7, /* ... and signals go to init, as Landlock does not keep them */
        SYSCALLS_UNNAMED =
                1 << 8,           /* ... and local sockets come in pairs: no connecting, for init */
        SYSCALLS_HIDING = 1 << 9, /* opening goes to init, whatever for */
};

/* The namespaces of a box that is forked from a zygote; and of its network, where it has one. */
#define SYSCALLS_FORK_FLAGS (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC)

/* The filter for a policy. The default policy's were compiled when callbox was built and cost
 * nothing; others are compiled here. `ret_own` is set when the caller has to free the bytes. */
int syscalls_compile(const cbx_policy *policy, unsigned variant, cbx_error *error,
                     const struct sock_filter **ret_filter, unsigned short *ret_length,
                     struct sock_filter **ret_own);

/* Fill a libseccomp context: used by the above and by the build-time generator. What none of its
 * rules speaks of is answered by `syscalls_default`. */
int syscalls_build(scmp_filter_ctx context, unsigned variant, char *const *allow, char *const *deny,
                   cbx_error *error);
uint32_t syscalls_default(unsigned variant);

/* Make a filter that libseccomp has compiled shorter, or leave it as it is (syscalls_compact.c). */
void syscalls_compact(struct sock_filter *filter, unsigned short *length);

/* What it does to name a call in syscalls.allow (syscalls_named.c). The note is the end of a
 * sentence: what is given up by it, or why it is not done; "" where it is allowed anyway. */
enum syscalls_effect {
        SYSCALLS_ALREADY, /* nothing: it is allowed */
        SYSCALLS_OPENED,  /* it is allowed, but for arguments that other things rest on */
        SYSCALLS_KEPT,    /* nothing: it is allowed on conditions, which other things rest on */
        SYSCALLS_NEVER,   /* the policy is refused */
};
enum syscalls_effect syscalls_effect(unsigned variant, const char *name, const char **ret_note);

/* What a refused call is answered with (syscalls_errno.c). Async-signal-safe. */
int syscalls_errno(uint32_t arch, int number, const uint64_t *arguments);

/* Are these the arguments of `socket` for one that a program's network has? Async-signal-safe. */
bool syscalls_is_network_socket(const uint64_t *arguments);

/* The name of a call, "i386:socketcall" for a foreign one, "#500" for an unknown one. Returns
 * whether libseccomp knows it: a policy can name no other. */
bool syscalls_name(uint32_t arch, int number, char *ret, size_t room);

/* The filter of a zygote while it loads, beside its own: calls that make, change or take away
 * files, with SYSCALLS_GUARDED, and that connect, with SYSCALLS_SOCKETS, go to init, unless they
 * are marked (syscalls_loading.c). To be freed. */
int syscalls_compile_loading(unsigned variant, uint64_t mark, struct sock_filter **ret,
                             unsigned short *ret_n);

#endif
