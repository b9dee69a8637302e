/* SPDX-License-Identifier: MIT */
#include "box/fork.h"

#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "box/child.h"
#include "box/own.h"
#include "policy/syscalls.h"

uint64_t own_mark;

/* Not by clone3, whose flags a filter cannot see. */
static pid_t clone_init(const struct plan *plan, int *ret_pidfd)
{
        unsigned long flags = SYSCALLS_FORK_FLAGS | CLONE_PIDFD | SIGCHLD;

        if (plan->policy->network != POLICY_NETWORK_HOST)
                flags |= CLONE_NEWNET;
        return (pid_t)syscall(SYS_clone, flags, NULL, ret_pidfd, NULL, 0UL);
}

static int leave(void *unused)
{
        (void)unused;
        syscall(SYS_exit_group, 0);
        __builtin_unreachable();
}

/* Libraries tell by its pid whether a process has been forked. Main would have that of its zygote,
 * which is the second of its box as well, or a little later where something else has started it:
 * let others have those. */
static int pass_over(struct child *child, pid_t zygote)
{
        _Alignas(16) char stack[1024]; /* as after vfork: nothing is copied, and this one waits */
        pid_t pid;
        int status;

        do {
                pid = clone(leave, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
                if (pid < 0 || syscall(SYS_wait4, pid, &status, 0, NULL) < 0)
                        return step_failed(child, "pass over a process id", NULL, errno);
        } while (pid + 1 == zygote);
        return 0;
}

/* Main is forked by the C library: it is to use it again. */
static int fork_main(struct child *child)
{
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, child->pair) < 0)
                return step_failed(child, "connect init and main", NULL, errno);
        child->main = fork();
        if (child->main < 0)
                return step_failed(child, "start the main process", NULL, errno);
        if (child->main == 0)
                return BOX_FORKED;
        child->pair[1] = base_close(child->pair[1]);
        box_place(child, child->main, &child->page->main_placed);
        return 0;
}

/* In the new namespaces. Init stays; main returns. */
static void enter(struct child *child, pid_t zygote)
{
        const char failed = BOX_FAILED;
        int r;

        own_mark = child->page->mark;
        signal_default(SIGCHLD);
        r = box_await_place(child, &child->page->init_placed);
        /* The zygote's directory may be one that boxes have in common, below what each has of its
         * own. */
        if (r == 0 && box_fence(FENCE_HOLDER) && chdir("/") < 0)
                r = step_failed(child, "leave the zygote's directory", NULL, errno);
        if (r == 0)
                r = box_enter_view(child);
        if (r == 0)
                r = pass_over(child, zygote);
        if (r == 0) {
                box_signal_word(&child->page->ids_written);
                r = fork_main(child);
        }
        if (r == BOX_FORKED) {
                box_resume(child);
                return;
        }
        if (r == 0)
                box_init(child);
        (void)!write(child->control, &failed, 1);
        syscall(SYS_exit_group, 1);
}

int box_fork(const struct plan *plan, const struct box_ends *ends, int *trees, int *ret_pidfd)
{
        struct child child = { .plan = plan,
                               .page = ends->page,
                               .control = ends->control,
                               .start = ends->start,
                               .ids = ends->control, /* which ends when it is not wanted */
                               .ids_end = -1,
                               .warden = -1, /* it takes the zygote's box along */
                               .trees = trees,
                               .root = -1,
                               .parent = { .fd = -1 },
                               .host_proc = -1,
                               .proc = -1,
                               .notifier = -1,
                               .keeper = -1,
                               .terminal = { -1, -1 },
                               .pair = { -1, -1 },
                               .main = -1,
                               .forked = true };
        pid_t pid, zygote = (pid_t)syscall(SYS_getpid);
        uint64_t all = ~0ULL;
        int r;

        for (size_t i = 0; i < plan->n_steps; i++)
                trees[i] = -1;
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &child.mask, sizeof(all));
        pid = clone_init(plan, ret_pidfd);
        if (pid == 0) {
                enter(&child, zygote);
                return BOX_FORKED;
        }
        r = pid < 0 ? -errno : 0;
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &child.mask, NULL, sizeof(all));
        return r;
}
