/* SPDX-License-Identifier: MIT */
/* Fence: system calls. The last one: after it main can do only what the program may do. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include "box/child.h"

/* Assert, don't hope: the kernel would call this EINVAL. */
static int check(struct child *child)
{
        if (syscall(SYS_clone3, NULL, 0) == 0 || errno != ENOSYS)
                return step_failed(child, "see a forbidden call refused", "clone3", EPERM);
        return 0;
}

static int load_zygote_filter(struct child *child)
{
        struct sock_fprog program = { child->plan->zygote_filter_length,
                                      (struct sock_filter *)child->plan->zygote_filter };

        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
                return step_failed(child, "load the system call filter", NULL, errno);
        return check(child);
}

int box_load_filter(struct child *child)
{
        struct sock_fprog program = { child->plan->filter_length,
                                      (struct sock_filter *)child->plan->filter };
        unsigned flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
        _cleanup_fd_ int notifier = -1;
        int r;

        if (child->zygote)
                return load_zygote_filter(child);
        /* With it, a signal does not take a call away from init once it looks at it (5.19). */
        notifier = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                flags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program);
        if (notifier < 0 && errno == EINVAL)
                notifier = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
        if (notifier < 0)
                return step_failed(child, "load the system call filter", NULL, errno);
        r = descriptor_send(child->pair[1], 'd', &notifier, 1);
        if (r < 0)
                return step_failed(child, "hand the notifier to init", NULL, -r);
        return check(child);
}
