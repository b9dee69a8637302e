/* SPDX-License-Identifier: MIT */
/* The main process: the last fences, the wait for the word to go, exec. */
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>

#include "box/child.h"
#include "box/own.h"

#define SIGNALS 64

/* Signals as a program expects to find them, but all blocked until it is there. */
static void reset_signals(void)
{
        for (int n = 1; n <= SIGNALS; n++)
                signal_default(n);
}

static void set_mask(uint64_t mask)
{
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
}

/* They came in ascending order above the standard ones, so none is overwritten before its turn.
 * What a main that still waits for its call needs to do so closes with exec. */
static int take_descriptors(struct child *child, const int *fds, int n, bool waiting)
{
        int needed[] = { waiting ? child->start : -1, waiting ? child->terminal[0] : -1,
                         waiting ? child->terminal[1] : -1 };
        int r = 0;

        for (int i = 0; i < n; i++)
                if (syscall(SYS_dup3, fds[i], i, 0) < 0)
                        return step_failed(child, "take the standard descriptors", NULL, errno);
        if (box_fence(FENCE_DESCRIPTORS))
                r = descriptor_keep((unsigned)n, needed, ARRAY_SIZE(needed));
        return r < 0 ? step_failed(child, "close inherited descriptors", NULL, -r) : 0;
}

/* A terminal of the box's own: the warden gets the master, the program the other end. */
int box_make_terminal(struct child *child)
{
        int unlock = 0;

        child->terminal[0] = own_openat(AT_FDCWD, "/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC, 0);
        if (child->terminal[0] < 0 || ioctl(child->terminal[0], TIOCSPTLCK, &unlock) < 0)
                return step_failed(child, "make a terminal", NULL, errno);
        child->terminal[1] = ioctl(child->terminal[0], TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (child->terminal[1] < 0)
                return step_failed(child, "open the terminal", NULL, errno);
        return 0;
}

static int take_terminal(struct child *child, int *fds)
{
        struct winsize size = { .ws_row = child->page->spec.rows,
                                .ws_col = child->page->spec.columns };
        int r = child->terminal[0] < 0 ? box_make_terminal(child) : 0;
        int master = child->terminal[0], slave = child->terminal[1];

        if (r < 0)
                return r;
        if (size.ws_row && size.ws_col)
                ioctl(master, TIOCSWINSZ, &size);
        if (descriptor_send(child->start, 'd', &master, 1) < 0)
                return step_failed(child, "hand out the terminal", NULL, errno);
        if (ioctl(slave, TIOCSCTTY, 0) < 0)
                return step_failed(child, "take the terminal", NULL, errno);
        for (int i = 0; i < 3; i++)
                fds[i] = slave;
        return 0;
}

/* Text, as far as its first line tells: what the kernel does not execute may also be a program for
 * another machine. */
static bool is_text(const struct child *child, const char *path)
{
        _cleanup_fd_ int fd = -1;
        char start[256];
        ssize_t n;

        /* Where init opens files for the program it has to read the path here. Nobody else is in
         * the box yet. */
        if (child->plan->hides && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
                return false;
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, start, sizeof(start));
        for (ssize_t i = 0; i < n && start[i] != '\n'; i++)
                if (start[i] == '\0' || start[i] == '\177')
                        return false;
        return n >= 0;
}

/* A script without a #! line is the shell's, as it is for execvp(3), and so for env(1). */
static int execute_file(struct child *child, const char *path)
{
        char **argv = child->page->spec.argv, *const *environment = child->page->spec.environment;
        char *name = argv[0];

        syscall(SYS_execve, path, argv, environment);
        if (errno != ENOEXEC)
                return errno;
        if (!is_text(child, path))
                return ENOEXEC;
        argv[-1] = (char *)"/bin/sh"; /* there is room for it (box.c) */
        argv[0] = (char *)path;
        syscall(SYS_execve, argv[-1], argv - 1, environment);
        argv[0] = name;
        return ENOEXEC;
}

/* Execute the program, looking for it along the box's own PATH when its name has no slash. */
static int execute(struct child *child)
{
        char *const *argv = child->page->spec.argv, *const *environment =
                                                            child->page->spec.environment;
        static char candidate[4096]; /* on the stack it would be a page that is not there yet */
        const char *path = NULL;
        int error = ENOENT, r;

        atomic_store(&child->page->started, time_now());
        if (strchr(argv[0], '/'))
                return execute_file(child, argv[0]);
        for (char *const *v = environment; *v; v++)
                if (strncmp(*v, "PATH=", 5) == 0)
                        path = *v + 5;
        while (path && *path) {
                size_t n = strcspn(path, ":"), length = strlen(argv[0]);

                if (n > 0 && path[0] == '/' && n + length + 2 <= sizeof(candidate)) {
                        memcpy(candidate, path, n);
                        candidate[n] = '/';
                        memcpy(candidate + n + 1, argv[0], length + 1);
                        r = execute_file(child, candidate);
                        if (r != ENOENT && r != ENOTDIR && r != EACCES)
                                return r;
                        /* One that is there; of what is closed to the box, nobody can tell. */
                        if (r == EACCES && syscall(SYS_access, candidate, F_OK) == 0)
                                error = EACCES;
                }
                path += n + (path[n] == ':');
        }
        return error;
}

/* Wait until init has built the root and left the host's behind; this process's root has changed
 * with it. See that it has, and leave the directory in which the caller was. */
static int enter_root(struct child *child)
{
        _cleanup_fd_ int ruleset = -1;
        struct stat st;
        char byte;
        int r;

        if (descriptor_receive(child->pair[1], &ruleset, 1, &byte) <= 0)
                return step_failed(child, "wait for the root", NULL, EPIPE);
        r = box_restrict_files(child, ruleset);
        if (r < 0)
                return r;
        if (chdir("/") < 0 || stat("/", &st) < 0)
                return step_failed(child, "enter the new root", NULL, errno);
        if (box_fence(FENCE_ROOT) && !child->plan->caged && st.st_dev != child->page->root_device)
                return step_failed(child, "see the host's root gone", NULL, EXDEV);
        return 0;
}

/* The fences that hold for main alone. Those that need no root are put up while init builds it;
 * what is left to do under the filter is what every program may do. */
static int enter(struct child *child)
{
        int r = 0;

        if (!child->plan->caged) { /* there init has done all that before it forked main */
                r = box_enter_network(child);
                if (r == 0)
                        r = box_await_word(child, &child->page->ids_written);
                if (r == 0)
                        r = box_become_identity(child);
        }
        if (r < 0)
                return r;
        if (box_fence(FENCE_SESSION) && setsid() < 0)
                return step_failed(child, "start a session", NULL, errno);
        if (!child->plan->caged)
                r = box_fence(FENCE_PRIVILEGES) ? box_drop_privileges(child, false)
                                                : box_keep_privileges(child);
        box_hurry(child);
        if (r == 0 && child->forked)
                r = box_start_holder(child);
        if (r == 0 && box_fence(FENCE_SYSCALLS) && !child->plan->unboxed)
                r = box_load_filter(child);
        /* Afterwards: the filter's notifier travels to init, and the kernel bounds what is in
         * flight for all boxes of a user by the sender's limit on descriptors. */
        if (r == 0 && box_fence(FENCE_RLIMITS))
                r = box_set_limits(child, child->plan->rlimits, child->plan->n_rlimits);
        return r == 0 ? enter_root(child) : r;
}

/* Take up the call: its descriptors, its limits, its directory. */
static int take_call(struct child *child)
{
        int fds[BOX_DESCRIPTORS] = { -1, -1, -1, -1 }, r;
        bool at_home = false;
        char byte;

        for (;;) {
                r = descriptor_receive(child->start, fds, BOX_DESCRIPTORS, &byte);
                if (r < 0)
                        return step_failed(child, "take the call", NULL, -r);
                if (r == 0) /* there will be none */
                        return -EPIPE;
                r = 0;
                if (byte != BOX_OFFER)
                        break;
                r = take_descriptors(child, fds, BOX_DESCRIPTORS - 1, true);
                if (r < 0)
                        return r;
                at_home = !child->plan->caged && syscall(SYS_chdir, PLAN_HOME) == 0;
        }
        if (child->page->spec.tty)
                r = take_terminal(child, fds);
        /* Those that were sent and did not come, as the kernel drops what there is no room for, are
         * missed here: what it has instead is not the call's. */
        if (r == 0 && byte != BOX_GO_OFFERED)
                r = take_descriptors(child, fds,
                                     BOX_DESCRIPTORS - (child->page->spec.result ? 0 : 1), false);
        if (r == 0 && box_fence(FENCE_RLIMITS))
                r = box_set_limits(child, child->page->spec.rlimits, child->page->spec.n_rlimits);
        if (r == 0 && box_fence(FENCE_RLIMITS))
                r = box_limit_processes(child);
        /* Afterwards: /proc/self/fd must not lead to a directory of ours. */
        if (r == 0 && !(at_home && strcmp(child->page->spec.directory, PLAN_HOME) == 0) &&
            syscall(SYS_chdir, child->page->spec.directory) < 0)
                r = step_failed(child, "enter the start directory", child->page->spec.directory,
                                errno);
        return r;
}

/* All that comes before the program; returns only when it may go on. */
static void enter_main(struct child *child)
{
        int r = 0;

        child->pair[0] = base_close(child->pair[0]);
        child->warden = base_close(child->warden); /* init watches it for both */
        child->ids = -1;
        if (box_fence(FENCE_DESCRIPTORS))
                r = descriptor_keep(3,
                                    (int[]){ child->pair[1], child->start, child->host_proc,
                                             child->terminal[0], child->terminal[1] },
                                    5);
        if (r < 0)
                r = step_failed(child, "close descriptors", NULL, -r);
        if (!child->forked)
                reset_signals();
        if (r == 0)
                r = box_await_place(child, &child->page->main_placed);
        if (r == 0)
                r = enter(child);
        if (r == 0) {
                child->pair[1] = base_close(child->pair[1]);
                r = take_call(child);
        }
        if (r < 0)
                syscall(SYS_exit_group, 1);
}

_Noreturn void box_main(struct child *child)
{
        int r;

        enter_main(child);
        set_mask(0);
        r = execute(child);
        child->page->exec_failed = true;
        step_failed(child, "execute", child->page->spec.argv[0], r);
        syscall(SYS_exit_group, 1);
        __builtin_unreachable();
}

/* The program goes on where it was forked. What it shares with init and the warden, it must not. */
void box_resume(struct child *child)
{
        struct box_page *page = child->page;

        enter_main(child);
        /* After exec this would be so by itself. */
        if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
                syscall(SYS_exit_group, 1);
        atomic_store(&page->started, time_now());
        if (munmap(page, sizeof(*page)) < 0)
                syscall(SYS_exit_group, 1);
        child->page = NULL;
        signal_default(SIGCHLD);
        set_mask(child->mask);
}
