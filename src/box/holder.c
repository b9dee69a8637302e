/* SPDX-License-Identifier: MIT */
/*
 * A process that does nothing but have main's memory too. A program with a large memory takes a
 * long time to end, and only then does init learn that it has; while somebody else has that memory,
 * its end is a matter of microseconds, and what it used is given back when the call has been
 * answered and the box ends.
 *
 * What runs in main can write to the holder's stack and code. So the holder must never run again:
 * before the program goes on, init stops it as a tracer does, which no signal of anybody's ends but
 * a deadly one. Should it run all the same, it has no descriptor, stands in the root, and may make
 * no system call but to wait. Where nobody may be stopped that way, main does without.
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/kcmp.h>
#include <linux/ptrace.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "box/init.h"

enum { ABSENT, HOLDING, FAILED };

/* The zygote's own filter is there as well: it lets no calls of another architecture pass. */
static const struct sock_filter waits_only[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, FUTEX_WAKE, 1, 0), /* FUTEX_WAIT is less */
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

static int hold(void *argument)
{
        struct sock_fprog program = { ARRAY_SIZE(waits_only), (struct sock_filter *)waits_only };
        _Atomic uint32_t *word = argument;

        if (syscall(SYS_close_range, 0, ~0U, 0) < 0 ||
            syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0) {
                atomic_store(word, FAILED);
                syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
                syscall(SYS_exit_group, 0);
        }
        atomic_store(word, HOLDING);
        syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
        while (atomic_load(word) == HOLDING)
                syscall(SYS_futex, word, FUTEX_WAIT, HOLDING, NULL, NULL, 0);
        return 0; /* to be killed */
}

/* It is init's child: nobody but init reaps it, and until then its number is nobody else's. Where
 * there is no process to be had, main does without. */
int box_start_holder(struct child *child)
{
        static _Alignas(16) char stack[4096];
        static _Atomic uint32_t word;
        pid_t pid;
        int r;

        /* Of a program that was forked this would be so later, and init has to reach the holder. */
        if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
                return step_failed(child, "be open to init", NULL, errno);
        pid = clone(hold, stack + sizeof(stack), CLONE_VM | CLONE_PARENT | SIGCHLD, &word);
        r = pid < 0 ? 0 : box_await_word(child, &word);
        if (r == 0 && atomic_load(&word) == HOLDING)
                child->page->holder = pid;
        return r;
}

static bool stop(pid_t pid)
{
        int status;

        return syscall(SYS_ptrace, PTRACE_SEIZE, pid, 0UL, PTRACE_O_EXITKILL) == 0 &&
               syscall(SYS_ptrace, PTRACE_INTERRUPT, pid, 0UL, 0UL) == 0 &&
               syscall(SYS_wait4, pid, &status, __WALL, NULL) == pid && WIFSTOPPED(status);
}

void holder_stop(struct child *child)
{
        pid_t pid = child->page->holder;

        if (pid <= 0)
                return;
        child->holder = pid;
        if (box_fence(FENCE_HOLDER) && !stop(pid)) {
                kill(pid, SIGKILL);
                child->holder = -pid;
        }
}

bool holder_is_alone(const struct child *child)
{
        _cleanup_fd_ int fd = -1;
        char found[64], expected[64];
        ssize_t n;

        if (child->holder <= 0)
                return false;
        /* In this list nobody is missing: only init takes anyone from it, and who comes to it later
         * has had a parent in it. */
        fd = openat(child->proc, "1/task/1/children", O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, found, sizeof(found));
        text_copy(text_number(expected, (uint64_t)child->holder), 2, " ");
        return n > 0 && (size_t)n == strlen(expected) && memcmp(found, expected, (size_t)n) == 0;
}

void holder_look(struct child *child)
{
        /* Main is about to end, or has executed something else: what it had is not needed. */
        if (child->holder > 0 &&
            syscall(SYS_kcmp, child->holder, child->main, KCMP_VM, 0UL, 0UL) != 0) {
                kill(child->holder, SIGKILL);
                child->holder = -child->holder;
        }
}

bool holder_is(const struct child *child, pid_t pid)
{
        return pid == child->holder || pid == -child->holder;
}

void holder_reaped(struct child *child, pid_t pid)
{
        if (holder_is(child, pid))
                child->holder = 0;
}
