/* SPDX-License-Identifier: MIT */
/*
 * Make one system call of a command fail, in any process that the command makes. By ptrace: the
 * call is not made, and its caller is told an error.
 *
 *     inject --log FILE [--process K --call N --error ERRNO] COMMAND...
 *         fail the N-th call of the K-th process; without them, none. The log says how many calls
 *         each process made ("calls K N"), which one failed ("failed K N NAME"), and what was left
 *         when the command was over ("left PID NAME"). Ends as the command does. Processes are
 *         traced until they execute a program, with --again yes any but the command's own.
 *
 *     inject --log FILE --attach PID --name CALL --error ERRNO [--every N]
 *         fail every (or every N-th) call of that name in a warden, its nursery, its makers and
 * what they make, until SIGTERM. Prints a line when it has begun, and logs each failure.
 *
 * An error is given as a number. Of close(2) only the answer is changed: the kernel closes a
 * descriptor whatever it says.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../soak/host.h"

#define TRACED_MAX 4096
#define LEFT_SECONDS 15
#define OPTIONS                                                                                    \
        (PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |  \
         PTRACE_O_TRACEEXEC)

struct traced {
        pid_t pid;
        int number;    /* in the order of their making */
        long calls;    /* so far */
        bool begun;    /* seen at its first stop */
        bool failing;  /* the call it is in */
        bool executed; /* process 0: its own program */
};

struct injector {
        FILE *log;
        int process;
        long call;
        int name, error;
        long every, met; /* of the calls of that name */
        struct traced traced[TRACED_MAX];
        int n_traced, n_made;
        pid_t command;
        bool again; /* who executes the command's program is traced on */
        struct stat program;
        int status;
        bool ended; /* the command is */
};

/* ---- Registers ---- */

/* What the caller is told; and, before the call, that it is not to be made. */
static void set_call(pid_t pid, bool skip, int error)
{
        struct user_regs_struct registers;
        struct iovec data = { &registers, sizeof(registers) };

        if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &data) < 0)
                return;
#if defined(__x86_64__)
        if (skip)
                registers.orig_rax = (unsigned long long)-1;
        else
                registers.rax = (unsigned long long)-error;
#elif defined(__aarch64__)
        if (skip) {
                int none = -1;
                struct iovec number = { &none, sizeof(none) };

                ptrace(PTRACE_SETREGSET, pid, NT_ARM_SYSTEM_CALL, &number);
                return;
        }
        registers.regs[0] = (unsigned long long)-error;
#else
#error "which register holds a system call's number?"
#endif
        ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &data);
}

/* ---- Processes ---- */

static struct traced *find(struct injector *injector, pid_t pid)
{
        for (int i = 0; i < injector->n_traced; i++)
                if (injector->traced[i].pid == pid)
                        return &injector->traced[i];
        return NULL;
}

/* A new process shows itself and is announced by its parent, in either order. */
static struct traced *take(struct injector *injector, pid_t pid)
{
        struct traced *traced = find(injector, pid);

        if (traced || injector->n_traced == TRACED_MAX)
                return traced;
        traced = &injector->traced[injector->n_traced++];
        *traced = (struct traced){ .pid = pid, .number = injector->n_made++ };
        return traced;
}

static void forget(struct injector *injector, struct traced *traced)
{
        if (injector->process < 0 && injector->name < 0)
                fprintf(injector->log, "calls %d %ld\n", traced->number, traced->calls);
        *traced = injector->traced[--injector->n_traced];
}

static bool is_to_fail(struct injector *injector, const struct traced *traced, int number)
{
        /* These cannot fail, and their callers could not go on. */
        if (number == SYS_exit || number == SYS_exit_group || number == SYS_rt_sigreturn)
                return false;
        if (injector->name >= 0)
                return number == injector->name && ++injector->met % injector->every == 0;
        return traced->number == injector->process && traced->calls == injector->call;
}

static void pass_call(struct injector *injector, struct traced *traced)
{
        struct __ptrace_syscall_info info;
        char *name;

        if (ptrace(PTRACE_GET_SYSCALL_INFO, traced->pid, sizeof(info), &info) <= 0)
                return;
        if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
                if (traced->failing)
                        set_call(traced->pid, false, injector->error);
                traced->failing = false;
                return;
        }
        if (info.op != PTRACE_SYSCALL_INFO_ENTRY)
                return;
        if (traced->number == 0 && !traced->executed && injector->command > 0)
                return; /* on the way to the command */
        traced->calls++;
        if (!is_to_fail(injector, traced, (int)info.entry.nr))
                return;
        traced->failing = true;
        if (info.entry.nr != SYS_close)
                set_call(traced->pid, true, injector->error);
        name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)info.entry.nr);
        fprintf(injector->log, "failed %d %ld %s\n", traced->number, traced->calls,
                name ? name : "?");
        fflush(injector->log);
        free(name);
}

/* Has it executed the program of the command, as one that starts a warden does? */
static bool is_again(const struct injector *injector, pid_t pid)
{
        char path[64];
        struct stat program;

        snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
        return injector->again && stat(path, &program) == 0 &&
               program.st_dev == injector->program.st_dev &&
               program.st_ino == injector->program.st_ino;
}

/* ---- Stops ---- */

static void stopped(struct injector *injector, pid_t pid, int status)
{
        struct traced *traced = take(injector, pid);
        int signal = WSTOPSIG(status), event = status >> 16, pass_on = 0;
        unsigned long made;

        if (!traced)
                return;
        if (signal == (SIGTRAP | 0x80)) {
                pass_call(injector, traced);
        } else if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
                   event == PTRACE_EVENT_CLONE) {
                if (ptrace(PTRACE_GETEVENTMSG, pid, NULL, &made) == 0)
                        (void)take(injector, (pid_t)made);
        } else if (event == PTRACE_EVENT_EXEC) {
                if ((pid != injector->command || traced->executed) && !is_again(injector, pid)) {
                        forget(injector, traced);
                        ptrace(PTRACE_DETACH, pid, NULL, NULL);
                        return;
                }
                traced->executed = true;
        } else if (event == 0 && (traced->begun || signal != SIGSTOP)) {
                pass_on = signal;
        }
        traced->begun = true;
        ptrace(PTRACE_SYSCALL, pid, NULL, pass_on);
}

static void gone(struct injector *injector, pid_t pid, int status)
{
        struct traced *traced = find(injector, pid);

        if (traced)
                forget(injector, traced);
        if (pid == injector->command) {
                injector->ended = true;
                injector->status =
                        WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        }
}

/* Until there is nobody left; once the command is over, for a while. */
static void watch(struct injector *injector)
{
        long waited = 0;

        while (waited < LEFT_SECONDS * 1000L) {
                int status;
                pid_t pid = waitpid(-1, &status, __WALL | (injector->ended ? WNOHANG : 0));

                if (pid < 0 && errno != EINTR)
                        return;
                if (pid == 0) {
                        waited++;
                        usleep(1000);
                } else if (pid > 0 && WIFSTOPPED(status)) {
                        stopped(injector, pid, status);
                } else if (pid > 0) {
                        gone(injector, pid, status);
                }
        }
}

/* ---- A command ---- */

static void log_left(struct injector *injector)
{
        struct host_process left[64];
        size_t n = host_tree(getpid(), left, sizeof(left) / sizeof(left[0]));

        for (size_t i = 1; i < n; i++)
                fprintf(injector->log, "left %d %s\n", left[i].pid, left[i].name);
}

static int run(struct injector *injector, char **argv)
{
        int status;

        if (stat(argv[0], &injector->program) < 0)
                return 2;
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        injector->command = fork();
        if (injector->command == 0) {
                ptrace(PTRACE_TRACEME, 0, NULL, NULL);
                raise(SIGSTOP);
                execv(argv[0], argv);
                _exit(127);
        }
        if (injector->command < 0 || waitpid(injector->command, &status, 0) < 0 ||
            ptrace(PTRACE_SETOPTIONS, injector->command, NULL, OPTIONS | PTRACE_O_EXITKILL) < 0)
                return 2;
        take(injector, injector->command)->begun = true;
        ptrace(PTRACE_SYSCALL, injector->command, NULL, 0);
        watch(injector);
        log_left(injector);
        fclose(injector->log);
        return injector->ended ? injector->status : 2;
}

/* ---- A warden ---- */

static int attach(struct injector *injector, pid_t warden)
{
        static struct host_process tree[TRACED_MAX];
        size_t n = host_tree(warden, tree, TRACED_MAX);

        for (size_t i = 0; i < n; i++) {
                if (tree[i].role != HOST_WARDEN && tree[i].role != HOST_NURSERY &&
                    tree[i].role != HOST_MAKER && tree[i].role != HOST_MOULD)
                        continue;
                if (ptrace(PTRACE_SEIZE, tree[i].pid, NULL, OPTIONS) < 0 ||
                    ptrace(PTRACE_INTERRUPT, tree[i].pid, NULL, NULL) < 0)
                        return 2;
                (void)take(injector, tree[i].pid);
        }
        puts("attached");
        fflush(stdout);
        watch(injector); /* SIGTERM ends this process, and the kernel lets them go */
        return 0;
}

int main(int argc, char **argv)
{
        static struct injector injector = { .process = -1, .name = -1, .every = 1 };
        pid_t warden = 0;
        int i;

        for (i = 1; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
                const char *option = argv[i] + 2, *value = argv[i + 1];

                if (strcmp(option, "log") == 0)
                        injector.log = fopen(value, "ae");
                else if (strcmp(option, "process") == 0)
                        injector.process = (int)strtol(value, NULL, 10);
                else if (strcmp(option, "call") == 0)
                        injector.call = strtol(value, NULL, 10);
                else if (strcmp(option, "error") == 0)
                        injector.error = (int)strtol(value, NULL, 10);
                else if (strcmp(option, "every") == 0)
                        injector.every = strtol(value, NULL, 10);
                else if (strcmp(option, "name") == 0)
                        injector.name = seccomp_syscall_resolve_name(value);
                else if (strcmp(option, "again") == 0)
                        injector.again = strcmp(value, "yes") == 0;
                else if (strcmp(option, "attach") == 0)
                        warden = (pid_t)strtol(value, NULL, 10);
        }
        if (!injector.log || (i >= argc && !warden)) {
                fputs("inject: needs --log FILE, and a command or --attach PID\n", stderr);
                return 2;
        }
        return warden ? attach(&injector, warden) : run(&injector, argv + i);
}
