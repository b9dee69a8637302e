/* SPDX-License-Identifier: MIT */
/* What only a box without namespaces has to withstand: the host's own files and processes, within
 * reach of the program's own user id. Each is tried in other boxes as well. */
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <utime.h>

#include "payload.h"

#ifndef F_SETSIG
#define F_SETSIG 10
#endif

/* A file of the caller's own that is shown read-only: change it without opening it. The same mode,
 * owner and times again, so that it does no harm. */
static int e74_attributes(int argc, char **argv)
{
        struct tally tally = { 0 };
        struct timespec times[2];
        struct timeval values[2] = { 0 };
        struct utimbuf both = { 0 };
        const char *path = argc > 0 ? argv[0] : "";
        struct stat st;
        char link[64];
        int fd = open(path, O_RDONLY | O_CLOEXEC), bare = open(path, O_PATH | O_CLOEXEC);

        if (fd < 0 || bare < 0 || fstat(fd, &st) < 0)
                return untried("%s %s", path, errno_name(errno));
        times[0] = st.st_atim;
        times[1] = st.st_mtim;
        values[0].tv_sec = both.actime = st.st_atim.tv_sec;
        values[1].tv_sec = both.modtime = st.st_mtim.tv_sec;
        snprintf(link, sizeof(link), "/proc/self/fd/%d", bare);
        expect_failure(&tally, "chmod", chmod(path, st.st_mode & 0777));
        expect_failure(&tally, "chmod by link", chmod(link, st.st_mode & 0777));
        expect_failure(&tally, "fchmod", fchmod(fd, st.st_mode & 0777));
        expect_failure(&tally, "fchmodat2",
                       syscall(452, bare, "", st.st_mode & 0777, AT_EMPTY_PATH));
        expect_failure(&tally, "chown", chown(path, st.st_uid, st.st_gid));
        expect_failure(&tally, "lchown", lchown(path, st.st_uid, st.st_gid));
        expect_failure(&tally, "fchown", fchown(fd, st.st_uid, st.st_gid));
        expect_failure(&tally, "fchownat", fchownat(bare, "", st.st_uid, st.st_gid, AT_EMPTY_PATH));
        expect_failure(&tally, "utimensat", utimensat(AT_FDCWD, path, times, 0));
        expect_failure(&tally, "futimens", futimens(fd, times));
        expect_failure(&tally, "utimes", utimes(path, values));
        expect_failure(&tally, "utime", syscall(SYS_utime, path, &both));
        expect_failure(&tally, "futimesat", syscall(SYS_futimesat, AT_FDCWD, path, values));
        expect_failure(&tally, "setxattr", setxattr(path, "user.attack", "x", 1, 0));
        expect_failure(&tally, "fsetxattr", fsetxattr(fd, "user.attack", "x", 1, 0));
        return verdict(&tally);
}

/* The same file: change what is in it, by calls that some versions of Landlock do not see. */
static int e75_contents(int argc, char **argv)
{
        struct tally tally = { 0 };
        const char *path = argc > 0 ? argv[0] : "", *other = argc > 1 ? argv[1] : "";
        char link[64];
        struct stat st;
        int flags = 0, fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0 || fstat(fd, &st) < 0)
                return untried("%s %s", path, errno_name(errno));
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        expect_failure(&tally, "truncate", truncate(path, st.st_size));
        expect_failure(&tally, "truncate by link", truncate(link, st.st_size));
        expect_failure(&tally, "ftruncate", ftruncate(fd, st.st_size));
        if (*other) { /* an empty file, for what would make it empty */
                int emptied = open(other, O_RDONLY | O_TRUNC | O_CLOEXEC);
                int held = open(other, O_PATH | O_CLOEXEC);
                char again[64];

                expect_failure(&tally, "open to truncate", emptied);
                /* 3: neither to read nor to write, which Landlock lets pass */
                emptied = open(other, 3 | O_TRUNC | O_CLOEXEC);
                expect_failure(&tally, "open for nothing, to truncate", emptied);
                snprintf(again, sizeof(again), "/proc/self/fd/%d", held);
                emptied = open(again, O_RDONLY | O_TRUNC | O_CLOEXEC);
                expect_failure(&tally, "open again to truncate", emptied);
                emptied = open(again, 3 | O_TRUNC | O_CLOEXEC);
                expect_failure(&tally, "open again for nothing, to truncate", emptied);
        }
        expect_failure(&tally, "open again", open(link, O_RDWR | O_CLOEXEC));
        if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0)
                expect_failure(&tally, "flags", ioctl(fd, FS_IOC_SETFLAGS, &flags));
        expect_failure(&tally, "lease", fcntl(fd, F_SETLEASE, F_RDLCK));
        expect_failure(&tally, "unlink", unlink(other));
        return verdict(&tally);
}

/* What a process of the host's is: the argument. */
static void try_to_look(struct tally *tally, int pid)
{
        static const char *const files[] = { "environ", "mem",  "maps", "auxv",    "fd/0",
                                             "exe",     "root", "cwd",  "pagemap", "smaps_rollup" };

        for (size_t i = 0; i < COUNT(files); i++) {
                char path[64], byte;
                int fd;

                snprintf(path, sizeof(path), "/proc/%d/%s", pid, files[i]);
                fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
                if (fd >= 0 && (strcmp(files[i], "mem") == 0 || read(fd, &byte, 1) >= 0))
                        put_broken(tally, "%s opens", path);
                else
                        put_held(tally, "%s %s", files[i], errno_name(errno));
                if (fd >= 0)
                        close(fd);
        }
}

static int x40_outsider(int argc, char **argv)
{
        struct tally tally = { 0 };
        int pid = (int)argument(argc, argv, 0, 0);
        struct sched_param none = { 0 };
        struct rlimit limit = { 0 };
        siginfo_t info = { .si_signo = 0, .si_code = SI_QUEUE };
        int own[2] = { 0, 0 }, pidfd;
        cpu_set_t all;

        if (pid <= 1 || pipe(own) < 0)
                return untried("no process");
        sched_getaffinity(0, sizeof(all), &all);
        pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        expect_failure(&tally, "kill", kill(pid, 0));
        expect_failure(&tally, "tkill", syscall(SYS_tkill, pid, 0));
        expect_failure(&tally, "tgkill", syscall(SYS_tgkill, pid, pid, 0));
        expect_failure(&tally, "sigqueue", syscall(SYS_rt_sigqueueinfo, pid, 0, &info));
        expect_failure(&tally, "tgsigqueue", syscall(SYS_rt_tgsigqueueinfo, pid, pid, 0, &info));
        if (getpgid(pid) > 1)
                expect_failure(&tally, "kill group", kill(-getpgid(pid), 0));
        if (pidfd >= 0)
                expect_failure(&tally, "pidfd", syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0));
        expect_failure(&tally, "setpriority",
                       setpriority(PRIO_PROCESS, (id_t)pid, getpriority(PRIO_PROCESS, (id_t)pid)));
        expect_failure(&tally, "setpriority of the user",
                       setpriority(PRIO_USER, 0, getpriority(PRIO_USER, 0)));
        expect_failure(&tally, "sched_setscheduler", sched_setscheduler(pid, SCHED_OTHER, &none));
        expect_failure(&tally, "sched_setaffinity", sched_setaffinity(pid, sizeof(all), &all));
        expect_failure(&tally, "ioprio_set", syscall(SYS_ioprio_set, 1, pid, 0));
        if (prlimit(pid, RLIMIT_CORE, NULL, &limit) == 0)
                expect_failure(&tally, "prlimit", prlimit(pid, RLIMIT_CORE, &limit, NULL));
        expect_failure(&tally, "F_SETOWN", fcntl(own[0], F_SETOWN, pid));
        expect_failure(&tally, "FIOSETOWN", ioctl(own[0], 0x8901 /* FIOSETOWN */, &pid));
        try_to_look(&tally, pid);
        return verdict(&tally);
}

/* Places that are not shown: what goes on there. */
static int x41_watching(int argc, char **argv)
{
        struct tally tally = { 0 };
        int fd = inotify_init1(IN_CLOEXEC);

        if (fd < 0)
                return held("inotify %s", errno_name(errno));
        for (int i = 0; i < argc; i++)
                expect_failure(&tally, argv[i], inotify_add_watch(fd, argv[i], IN_ALL_EVENTS));
        return verdict(&tally);
}

/* What ordinary programs do to each other and to their own files goes on. */
static int x42_ordinary(int argc, char **argv)
{
        struct tally tally = { 0 };
        struct stat st;
        pid_t child;
        int status = 0, fd;

        (void)argc;
        (void)argv;
        child = fork();
        if (child == 0) {
                setpgid(0, 0);
                linger(5);
        }
        setpgid(child, child);
        if (kill(child, 0) < 0 || kill(-child, SIGCONT) < 0 || kill(child, SIGKILL) < 0 ||
            waitpid(child, &status, 0) != child || !WIFSIGNALED(status))
                put_broken(&tally, "no signal reaches a child: %s", errno_name(errno));
        if (kill(getpid(), 0) < 0 || raise(SIGCONT) != 0)
                put_broken(&tally, "no signal reaches itself: %s", errno_name(errno));
        fd = open(scratch("x42"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || fchmod(fd, 0640) < 0 || chmod(scratch("x42"), 0700) < 0 ||
            fstat(fd, &st) < 0 || (st.st_mode & 0777) != 0700)
                put_broken(&tally, "its own file has no mode: %s", errno_name(errno));
        if (futimens(fd, NULL) < 0 || truncate(scratch("x42"), 5) < 0 || fstat(fd, &st) < 0 ||
            st.st_size != 5)
                put_broken(&tally, "its own file cannot be changed: %s", errno_name(errno));
        if (rename(scratch("x42"), "/proc/self/cwd/x42") == 0)
                unlink("x42");
        if (unlink(scratch("x42")) < 0 && errno != ENOENT)
                put_broken(&tally, "its own file stays: %s", errno_name(errno));
        if (chmod(scratch("x42"), 04755) == 0)
                put_broken(&tally, "a set-user-id bit");
        put_held(&tally, "all of it works");
        return verdict(&tally);
}

/* A tree that does not want to end, in one of several ways; then main exits, or waits. */
static int x43_clinging(int argc, char **argv)
{
        const char *way = argc > 0 ? argv[0] : "";
        double until = now() + 5;

        if (strcmp(way, "setsid") == 0) {
                for (int i = 0; i < 4; i++)
                        if (fork() == 0) {
                                setsid();
                                linger(5);
                        }
        } else if (strcmp(way, "double-fork") == 0) {
                for (int i = 0; i < 4; i++)
                        if (fork() == 0) {
                                setsid();
                                if (fork() == 0)
                                        linger(5);
                                _exit(0);
                        }
        } else if (strcmp(way, "stopped") == 0) {
                for (int i = 0; i < 4; i++)
                        if (fork() == 0) {
                                setpgid(0, 0);
                                if (fork() == 0)
                                        kill(0, SIGSTOP);
                                linger(5);
                        }
        } else if (strcmp(way, "storm") == 0) {
                for (int i = 0; i < 8; i++)
                        if (fork() == 0) {
                                while (now() < until) {
                                        setsid();
                                        if (fork() > 0)
                                                _exit(0);
                                }
                                _exit(0);
                        }
        } else if (strcmp(way, "reaper") == 0) {
                if (fork() == 0) {
                        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
                        for (int i = 0; i < 4; i++)
                                if (fork() == 0) {
                                        if (fork() == 0)
                                                linger(5);
                                        _exit(0);
                                }
                        linger(5);
                }
        } else {
                return untried("no such way: %s", way);
        }
        nap(0.005);
        return held("main is done");
}

/* Every flag that a file may be opened with, on every kind of file: init lives on. */
static int x44_flags(int argc, char **argv)
{
        const char *const places[] = { "/usr/bin/env", "/dev/null", ".", "/proc/self/fd/0",
                                       "/proc/self/status" };
        struct tally tally = { 0 };
        int fd;

        (void)argc;
        (void)argv;
        for (size_t place = 0; place < COUNT(places); place++)
                for (unsigned i = 0; i < 31 * 4; i++) {
                        int flags = (int)(1U << i / 4) | (i & 1 ? O_RDWR : O_RDONLY) |
                                    (i & 2 ? O_TMPFILE : 0);

                        fd = open(places[place], flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
                        if (fd < 0 && errno == ENOSYS)
                                return broken("%s, flags %#x: init is gone", places[place],
                                              (unsigned)flags);
                        if (fd >= 0)
                                close(fd);
                }
        fd = open(scratch("x44"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || unlink(scratch("x44")) < 0)
                put_broken(&tally, "no file can be made any more: %s", errno_name(errno));
        put_held(&tally, "all of them tried");
        return verdict(&tally);
}

const struct attack attacks_cage[] = {
        { "E74-attributes", e74_attributes }, { "E75-contents", e75_contents },
        { "X40-outsider", x40_outsider },     { "X41-watching", x41_watching },
        { "X42-ordinary", x42_ordinary },     { "X43-clinging", x43_clinging },
        { "X44-flags", x44_flags },           { NULL, NULL },
};
