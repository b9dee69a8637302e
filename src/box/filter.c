/* SPDX-License-Identifier: MIT */
/* Fence: system calls. The last one: after it main can do only what the program may do. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <time.h>

#include "box/child.h"

#define TRIES 2000

/* Assert, don't hope: the kernel would call this EINVAL. */
static int check(struct child *child)
{
        if (syscall(SYS_clone3, NULL, 0) == 0 || errno != ENOSYS)
                return step_failed(child, "see a forbidden call refused", "clone3", EPERM);
        return 0;
}

/* Load a filter, and let init have its notifier. */
static int load_notifying(struct child *child, struct sock_fprog *program)
{
        unsigned flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
        struct timespec a_while = { .tv_nsec = 1000 * 1000 };
        _cleanup_fd_ int notifier = -1;
        int r;

        for (unsigned i = 0; notifier < 0 && i < TRIES; i++) {
                notifier = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, program);
                /* With it, a signal does not take a call away from init once it looks at it (5.19).
                 */
                if (notifier < 0 && errno == EINVAL)
                        flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
                else if (notifier < 0 && errno == EBUSY) /* init of the zygote still has one */
                        (void)nanosleep(&a_while, NULL);
                else
                        break;
        }
        if (notifier < 0)
                return step_failed(child, "load the system call filter", NULL, errno);
        r = descriptor_send(child->pair[1], 'd', &notifier, 1);
        return r < 0 ? step_failed(child, "hand the notifier to init", NULL, -r) : 0;
}

static int load_zygote_filter(struct child *child)
{
        struct sock_fprog program = { child->plan->zygote_filter_length,
                                      (struct sock_filter *)child->plan->zygote_filter };
        struct sock_fprog loading = { child->plan->loading_filter_length,
                                      child->plan->loading_filter };
        int r = loading.filter && box_fence(FENCE_LOADING) ? load_notifying(child, &loading) : 0;

        if (r < 0)
                return r;
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
                return step_failed(child, "load the system call filter", NULL, errno);
        return check(child);
}

int box_load_filter(struct child *child)
{
        struct sock_fprog program = { child->plan->filter_length,
                                      (struct sock_filter *)child->plan->filter };
        int r;

        if (child->zygote)
                return load_zygote_filter(child);
        r = load_notifying(child, &program);
        return r < 0 ? r : check(child);
}
