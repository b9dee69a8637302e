/* SPDX-License-Identifier: MIT */
/*
 * Signals, where no pid namespace and no scope of Landlock (before ABI 6) keeps them inside. What a
 * process sends to itself may go on: it is there as long as the call is. All else init sends, to
 * processes that it has found below itself and holds by a pidfd, so that a number which is given to
 * somebody else meanwhile does no harm.
 */
#include <signal.h>
#include <sys/syscall.h>

#include "box/guard.h"
#include "box/tree.h"

/* Send a signal to the process of a number, if it is one of the box's. */
static int send_to(struct child *child, pid_t pid, int signal)
{
        _cleanup_fd_ int pidfd = pid > 1 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

        if (pid <= 1)
                return -EPERM;
        if (pidfd < 0)
                return errno == EINVAL ? -EPERM : -errno; /* a thread's, which may be anyone's */
        if (!tree_contains(child->proc, pid, getpid()))
                return -EPERM;
        return syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) < 0 ? -errno : 0;
}

/* Send one to many: to a group (0: the caller's own), or with -1 to everyone but the caller. */
static int send_to_many(struct child *child, pid_t caller, pid_t group, int signal)
{
        static pid_t pids[TREE_MAX];
        size_t n = tree_list(child->proc, getpid(), pids, TREE_MAX);
        int r = -ESRCH;

        if (group == 0)
                group = getpgid(caller);
        for (size_t i = 0; i < n; i++) {
                if (group == -1 ? pids[i] == caller : getpgid(pids[i]) != group)
                        continue;
                if (send_to(child, pids[i], signal) == 0)
                        r = 0;
        }
        return r;
}

static int send_by_descriptor(struct child *child, const struct seccomp_notif *call, int signal)
{
        pid_t pid = (pid_t)guard_fdinfo(child, call, (int)call->data.args[0], "Pid:", 10);
        _cleanup_fd_ int fd = pid <= 0 ? -EBADF : (int)syscall(SYS_pidfd_open, pid, 0);

        if (fd < 0)
                return pid <= 0 ? fd : -errno;
        if (pid == 1 || !tree_contains(child->proc, pid, getpid()))
                return -EPERM;
        return syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) < 0 ? -errno : 0;
}

/* A thread of the box; of the caller's own process it goes on by itself. */
static int send_to_thread(struct child *child, pid_t thread, int signal)
{
        pid_t process = guard_process_of(child, thread);

        if (process <= 1 || !tree_contains(child->proc, process, getpid()))
                return -EPERM;
        return syscall(SYS_tgkill, process, thread, signal) < 0 ? -errno : 0;
}

bool guard_signal(struct child *child, const struct seccomp_notif *call)
{
        const __u64 *a = call->data.args;
        pid_t caller = guard_process_of(child, (pid_t)call->pid), to = (pid_t)a[0];
        int r;

        switch (call->data.nr) {
        case SYS_kill:
        case SYS_rt_sigqueueinfo:
        case SYS_tgkill:
        case SYS_rt_tgsigqueueinfo:
                if (to == caller) { /* in registers, and there as long as the call is */
                        guard_continue(child, call);
                        return true;
                }
                if (call->data.nr == SYS_kill)
                        r = to == -1 || to == 0 ? send_to_many(child, caller, to, (int)a[1])
                            : to < 0            ? send_to_many(child, caller, -to, (int)a[1])
                                                : send_to(child, to, (int)a[1]);
                else if (call->data.nr == SYS_tgkill)
                        r = guard_process_of(child, (pid_t)a[1]) != to
                                    ? -ESRCH
                                    : send_to_thread(child, (pid_t)a[1], (int)a[2]);
                else
                        r = -EPERM; /* with data, to another process: nobody but init could send it
                                     */
                break;
        case SYS_tkill:
                if (to == (pid_t)call->pid) {
                        guard_continue(child, call);
                        return true;
                }
                r = send_to_thread(child, to, (int)a[1]);
                break;
        case SYS_pidfd_send_signal:
                r = a[2] ? -EPERM : send_by_descriptor(child, call, (int)a[1]);
                break;
        default:
                return false;
        }
        guard_answer(child, call, r);
        return true;
}
