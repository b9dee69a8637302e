/* SPDX-License-Identifier: MIT */
/* C and D: inherited descriptors, the current directory, and the caller's terminal. */
#include "payload.h"

#include <dirent.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <termios.h>

static void name_of(int fd, char *name, size_t size)
{
        char link[32];
        ssize_t n;

        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, name, size - 1);
        name[n < 0 ? 0 : n] = '\0';
}

static void count_inherited(struct tally *tally)
{
        int found = 0;

        for (int fd = 3; fd < 20000; fd++) {
                char name[256];

                if (fcntl(fd, F_GETFD) < 0)
                        continue;
                name_of(fd, name, sizeof(name));
                put_broken(tally, "%d is open (%s)", fd, name);
                found++;
        }
        if (!found)
                put_held(tally, "nothing is open above 2");
}

static int c37_inherited(int argc, char **argv)
{
        struct tally tally = { 0 };

        (void)argc;
        (void)argv;
        count_inherited(&tally);
        return verdict(&tally);
}

/* 0, 1 and 2 are a pipe, /dev/null or a terminal, or closed; never one of callbox's own. */
static void judge_standard(struct tally *tally)
{
        for (int fd = 0; fd < 3; fd++) {
                struct stat info;
                char name[256];

                if (fstat(fd, &info) < 0) {
                        put_held(tally, "%d is closed", fd);
                        continue;
                }
                name_of(fd, name, sizeof(name));
                if (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode))
                        put_held(tally, "%d is %s", fd, name);
                else
                        put_broken(tally, "%d is %s (mode %o)", fd, name, info.st_mode);
        }
}

static int c41_standard(int argc, char **argv)
{
        struct tally tally = { 0 };

        (void)argc;
        (void)argv;
        judge_standard(&tally);
        return verdict(&tally);
}

static int c42_internal(int argc, char **argv)
{
        struct tally tally = { 0 };
        DIR *dir = opendir("/proc/self/fd");
        struct dirent *entry;

        (void)argc;
        (void)argv;
        if (!dir)
                return untried("/proc/self/fd %s", errno_name(errno));
        while ((entry = readdir(dir))) {
                int fd = atoi(entry->d_name);

                if (fd > 2 && fd != dirfd(dir))
                        put_broken(&tally, "descriptor %d", fd);
        }
        closedir(dir);
        count_inherited(&tally);
        judge_standard(&tally);
        return verdict(&tally);
}

static int c40_cwd(int argc, char **argv)
{
        char path[4096] = "";

        if (syscall(SYS_getcwd, path, sizeof(path)) < 0)
                return broken("getcwd %s", errno_name(errno));
        if (path[0] != '/')
                return broken("the current directory is %s", path);
        if (argc > 0 && strcmp(path, argv[0]) != 0)
                return broken("the current directory is %s, not %s", path, argv[0]);
        return held("the current directory is %s", path);
}

static int c44_pidfd_getfd(int argc, char **argv)
{
        struct tally tally = { 0 };
        pid_t child = fork();
        long fd;

        (void)argc;
        (void)argv;
        if (child == 0)
                linger(2);
        fd = syscall(SYS_pidfd_open, getppid(), 0);
        for (int other = 0; other < 12; other++)
                expect_fence(&tally, "from the init", syscall(SYS_pidfd_getfd, fd, other, 0));
        fd = syscall(SYS_pidfd_open, child, 0);
        expect_fence(&tally, "from a child", syscall(SYS_pidfd_getfd, fd, 0, 0));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        return verdict(&tally);
}

/* ---- The terminal ---- */

/* Every way to a descriptor of the caller's terminal; negative where there is none. */
static int terminal(int which)
{
        static const char *const paths[] = {
                "/dev/tty",        "/dev/console",    "/dev/tty0",
                "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"
        };

        if (which < 3)
                return isatty(which) ? dup(which) : -1;
        if (which - 3 < (int)COUNT(paths)) {
                int fd = open(paths[which - 3], O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

                if (fd >= 0 && isatty(fd))
                        return fd;
                if (fd >= 0)
                        close(fd);
        }
        return -1;
}
#define TERMINALS 9

/* ioctl as the kernel sees it: the request as 64 bits, of which it looks at 32. */
static long raw_ioctl(int fd, unsigned long request, void *data)
{
        return syscall(SYS_ioctl, fd, request, data);
}

static int d47_push(int argc, char **argv)
{
        static const unsigned long high[] = { 0, 1UL << 32, 0xffffffffUL << 32, 1UL << 63 };
        struct tally tally = { 0 };
        char letter = 'x';

        (void)argc;
        (void)argv;
        signal(SIGTTOU, SIG_IGN);
        signal(SIGTTIN, SIG_IGN);
        for (size_t h = 0; h < COUNT(high); h++) {
                for (int which = 0; which < TERMINALS; which++) {
                        int fd = terminal(which);

                        if (fd < 0) {
                                put_held(&tally, "no terminal");
                                continue;
                        }
                        expect_failure(&tally, "TIOCSTI",
                                       raw_ioctl(fd, TIOCSTI | high[h], &letter));
                        close(fd);
                }
        }
        return verdict(&tally);
}

static int d48_paste(int argc, char **argv)
{
        static const unsigned long high[] = { 0, 1UL << 32 };
        struct tally tally = { 0 };
        char order[2] = { 3, 0 }; /* paste the selection */

        (void)argc;
        (void)argv;
        for (size_t h = 0; h < COUNT(high); h++) {
                for (int which = 0; which < TERMINALS; which++) {
                        int fd = terminal(which);

                        if (fd < 0) {
                                put_held(&tally, "no terminal");
                                continue;
                        }
                        expect_failure(&tally, "TIOCLINUX",
                                       raw_ioctl(fd, TIOCLINUX | high[h], order));
                        close(fd);
                }
        }
        return verdict(&tally);
}

static int d51_steal(int argc, char **argv)
{
        struct tally tally = { 0 };

        (void)argc;
        (void)argv;
        signal(SIGTTOU, SIG_IGN);
        signal(SIGTTIN, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        if (opens("/dev/tty", O_RDWR))
                put_broken(&tally, "/dev/tty opens");
        else
                put_held(&tally, "/dev/tty %s", errno_name(errno));
        for (int which = 0; which < TERMINALS; which++) {
                int fd = terminal(which);

                if (fd < 0)
                        continue;
                expect_failure(&tally, "tcsetpgrp", tcsetpgrp(fd, getpgrp()));
                expect_failure(&tally, "TIOCSCTTY", ioctl(fd, TIOCSCTTY, 1));
                close(fd);
        }
        return verdict(&tally);
}

/* With a private pty: which terminals are there beside our own? */
static int d52_others(int argc, char **argv)
{
        struct tally tally = { 0 };
        char own[256];
        DIR *dir = opendir("/dev/pts");
        struct dirent *entry;
        struct stat mine = { 0 };
        int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC), number = -1;

        (void)argc;
        (void)argv;
        if (!dir)
                return caged() ? held("/dev/pts %s", errno_name(errno))
                               : untried("/dev/pts %s", errno_name(errno));
        name_of(0, own, sizeof(own));
        fstat(0, &mine);
        if (master >= 0)
                ioctl(master, TIOCGPTN, &number);
        while ((entry = readdir(dir))) {
                char path[300];
                struct stat info;

                if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
                        continue;
                if (atoi(entry->d_name) == number)
                        continue;
                snprintf(path, sizeof(path), "/dev/pts/%s", entry->d_name);
                if (stat(path, &info) == 0 && info.st_rdev == mine.st_rdev && isatty(0))
                        continue;
                put_broken(&tally, "%s is visible%s", path,
                           opens(path, O_RDWR) ? " and opens" : "");
        }
        closedir(dir);
        put_held(&tally, "own terminal %s, a new one %d", own, number);
        return verdict(&tally);
}

/* The termios of our terminal are changed for good; the caller's are to be as before. */
static int d52_raw(int argc, char **argv)
{
        struct termios attributes;

        (void)argc;
        (void)argv;
        if (tcgetattr(0, &attributes) < 0)
                return untried("tcgetattr %s", errno_name(errno));
        cfmakeraw(&attributes);
        tcsetattr(0, TCSANOW, &attributes);
        if (write(STDOUT_FILENO, "READY\n", 6) != 6)
                return EXIT_UNTRIED;
        linger(10);
}

static int d50_escapes(int argc, char **argv)
{
        static const char text[] =
                "\033]0;title\007\033]52;c;eA==\007\033[6nplain\033[2J\302\2331m\n";

        (void)argc;
        (void)argv;
        return write(STDOUT_FILENO, text, sizeof(text) - 1) == sizeof(text) - 1 ? 0 : EXIT_UNTRIED;
}

const struct attack attacks_handles[] = {
        { "C37-inherited", c37_inherited },
        { "C40-cwd", c40_cwd },
        { "C41-standard", c41_standard },
        { "C42-internal", c42_internal },
        { "C44-pidfd-getfd", c44_pidfd_getfd },
        { "D47-push", d47_push },
        { "D48-paste", d48_paste },
        { "D50-escapes", d50_escapes },
        { "D51-steal", d51_steal },
        { "D52-others", d52_others },
        { "D52-raw", d52_raw },
        { NULL, NULL },
};
