/* SPDX-License-Identifier: MIT */
/* A: lifetime and kill. Most of these are judged from outside: who survives, and when we end. */
#include "payload.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#define LIFE 25 /* seconds after which a survivor gives up by itself */

/* A child of a child in a session of its own, whose parent is gone. */
static void orphan(void)
{
        pid_t pid = fork();

        if (pid == 0) {
                setsid();
                if (fork() == 0)
                        linger(LIFE);
                _exit(0);
        }
        waitpid(pid, NULL, 0);
}

static int a1_double_fork(int argc, char **argv)
{
        (void)argc;
        (void)argv;
        orphan();
        return held("left an orphan in a session of its own");
}

static int a2_deaf(int argc, char **argv)
{
        double until = now() + (double)argument(argc, argv, 0, 3000) / 1000;

        ignore_signals();
        if (fork() == 0)
                while (now() < until)
                        ;
        while (now() < until)
                ;
        return broken("ran for %ld ms", argument(argc, argv, 0, 3000));
}

/* A helper outside our group that wakes us again, so that an unfenced run ends too. */
static void wake_later(pid_t group, double seconds)
{
        if (fork() == 0) {
                setsid();
                nap(seconds);
                kill(-group, SIGCONT);
                _exit(0);
        }
        nap(0.05);
}

static int a3_stopped(int argc, char **argv)
{
        (void)argc;
        (void)argv;
        setpgid(0, 0);
        wake_later(getpgrp(), 3);
        for (int i = 0; i < 3; i++)
                if (fork() == 0) {
                        raise(SIGSTOP);
                        _exit(0);
                }
        nap(0.05);
        kill(0, SIGSTOP);
        return broken("was stopped and came back after 3 s");
}

/* Everybody forks as long as there is time and the count of living is below the bound. */
static void bomb(atomic_int *alive, atomic_int *peak, atomic_int *refused, double until, int bound)
{
        while (now() < until) {
                int count = atomic_fetch_add(alive, 1) + 1;
                pid_t pid = count <= bound ? fork() : -2;

                if (pid < 0) {
                        atomic_fetch_sub(alive, 1);
                        if (pid == -1)
                                atomic_fetch_add(refused, 1);
                        nap(0.002);
                } else if (pid > 0 && count > atomic_load(peak)) {
                        atomic_store(peak, count);
                }
        }
}

static int a4_fork_bomb(int argc, char **argv)
{
        long limit = argument(argc, argv, 0, 32);
        pid_t main_pid = getpid();
        atomic_int *shared =
                mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        if (shared == MAP_FAILED)
                return untried("mmap %s", errno_name(errno));
        atomic_store(&shared[0], 1);
        bomb(&shared[0], &shared[1], &shared[2], now() + 1.5, 300);
        if (getpid() != main_pid)
                _exit(0);
        while (wait(NULL) > 0 || errno == EINTR)
                ;
        if (atomic_load(&shared[1]) > limit)
                return broken("%d processes at a time", atomic_load(&shared[1]));
        if (atomic_load(&shared[2]) == 0)
                return untried("the limit was never met: %d processes", atomic_load(&shared[1]));
        return held("%d processes, then fork refused %d times", atomic_load(&shared[1]),
                    atomic_load(&shared[2]));
}

static int a5_fork_chain(int argc, char **argv)
{
        double until = now() + 4;

        (void)argc;
        (void)argv;
        for (int i = 0; i < 16; i++) {
                if (fork() != 0)
                        continue;
                ignore_signals();
                while (now() < until) {
                        if (fork() > 0)
                                _exit(0);
                        nap(0.0002);
                }
                _exit(0);
        }
        nap(4);
        return broken("ran to the end of 4 s");
}

static int hold(int fd)
{
        if (write(fd, "complete\n", 9) != 9)
                return untried("write %s", errno_name(errno));
        if (fork() == 0) {
                for (int other = 0; other < 3; other++)
                        if (other != fd)
                                close(other);
                setsid();
                linger(LIFE);
        }
        return 0;
}

static int a6_hold_stdout(int argc, char **argv)
{
        (void)argc;
        (void)argv;
        return hold(STDOUT_FILENO);
}

static int a7_hold_stderr(int argc, char **argv)
{
        (void)argc;
        (void)argv;
        return hold(STDERR_FILENO);
}

static int a9_wait_for_kill(int argc, char **argv)
{
        (void)argc;
        (void)argv;
        for (int i = 0; i < 4; i++)
                if (fork() == 0) {
                        if (i % 2)
                                setsid();
                        linger(LIFE);
                }
        orphan();
        if (write(STDOUT_FILENO, "READY\n", 6) != 6)
                return EXIT_UNTRIED;
        linger(LIFE);
}

/* Signals and ptrace against our init; whoever reads HELD knows that it still works. */
static int a12_attack_init(int argc, char **argv)
{
        struct tally tally = { 0 };
        pid_t init = getppid();
        long fd;
        int status;

        (void)argc;
        (void)argv;
        expect_fence(&tally, "ptrace attach", ptrace(PTRACE_ATTACH, init, NULL, NULL));
        expect_fence(&tally, "ptrace seize", ptrace(PTRACE_SEIZE, init, NULL, NULL));
        for (int number = 1; number < 65; number++)
                if (number != SIGKILL && number != SIGSTOP)
                        kill(init, number);
        kill(init, SIGSTOP);
        syscall(SYS_tgkill, init, init, SIGSTOP);
        fd = syscall(SYS_pidfd_open, init, 0);
        if (fd >= 0)
                syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
        for (int i = 0; i < 3; i++) {
                siginfo_t info = { .si_signo = SIGCHLD, .si_code = SI_QUEUE };

                info.si_pid = getpid();
                syscall(SYS_rt_sigqueueinfo, init, SIGCHLD, &info);
        }
        kill(init, SIGKILL);
        nap(0.3);
        if (getppid() != init)
                return broken("the init was killed");
        /* Does it still reap and answer? */
        if (fork() == 0) {
                if (fork() == 0)
                        _exit(0);
                _exit(0);
        }
        wait(&status);
        put_held(&tally, "the init outlived every signal");
        return verdict(&tally);
}

/* Both share memory and suspend their parent until they exit or exec. */
static char stack[2][65536] __attribute__((aligned(16)));

static int stopped_child(void *data)
{
        (void)data;
        raise(SIGSTOP);
        _exit(0);
}

static int sleeping_child(void *data)
{
        (void)data;
        ignore_signals();
        nap(3);
        _exit(0);
}

static int nested_child(void *data)
{
        clone(data, stack[1] + sizeof(stack[1]), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
        _exit(0);
}

static int a14_vfork_stopped(int argc, char **argv)
{
        (void)argc;
        (void)argv;
        setpgid(0, 0);
        wake_later(getpgrp(), 3);
        if (clone(nested_child, stack[0] + sizeof(stack[0]), CLONE_VM | CLONE_VFORK | SIGCHLD,
                  stopped_child) < 0)
                return untried("clone %s", errno_name(errno));
        return broken("an uninterruptible wait for a stopped child outlived the deadline");
}

static int a15_vfork_no_exec(int argc, char **argv)
{
        (void)argc;
        (void)argv;
        if (clone(nested_child, stack[0] + sizeof(stack[0]), CLONE_VM | CLONE_VFORK | SIGCHLD,
                  sleeping_child) < 0)
                return untried("clone %s", errno_name(errno));
        return broken("a frozen parent of vfork outlived the deadline");
}

/* Exec oneself with heavy arguments for 3 s: the deadline falls into an exec. */
static int a16_exec_loop(int argc, char **argv)
{
        static char bulk[100000];
        char since[32];
        double start = now();
        char *args[24] = { (char *)(uintptr_t)self_path, (char *)(uintptr_t) "A16-exec-loop",
                           (char *)(uintptr_t)self_token, since };

        if (argc > 0)
                start = strtod(argv[0], NULL);
        if (now() - start > 3)
                return broken("ran for 3 s");
        snprintf(since, sizeof(since), "%.6f", start);
        memset(bulk, 'x', sizeof(bulk) - 1);
        for (size_t i = 4; i < COUNT(args) - 5; i++)
                args[i] = bulk;
        execv("/proc/self/exe", args);
        return untried("exec %s", errno_name(errno));
}

static int a19_subreaper(int argc, char **argv)
{
        (void)argc;
        (void)argv;
        if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
                return untried("prctl %s", errno_name(errno));
        if (fork() == 0) {
                prctl(PR_SET_CHILD_SUBREAPER, 1);
                orphan();
                orphan();
                linger(LIFE);
        }
        nap(0.1);
        return held("left a subreaper and its orphans");
}

const struct attack attacks_life[] = {
        { "A1-double-fork", a1_double_fork },
        { "A2-deaf", a2_deaf },
        { "A3-stopped", a3_stopped },
        { "A4-fork-bomb", a4_fork_bomb },
        { "A5-fork-chain", a5_fork_chain },
        { "A6-hold-stdout", a6_hold_stdout },
        { "A7-hold-stderr", a7_hold_stderr },
        { "A9-wait-for-kill", a9_wait_for_kill },
        { "A12-attack-init", a12_attack_init },
        { "A14-vfork-stopped", a14_vfork_stopped },
        { "A15-vfork-no-exec", a15_vfork_no_exec },
        { "A16-exec-loop", a16_exec_loop },
        { "A19-subreaper", a19_subreaper },
        { NULL, NULL },
};
