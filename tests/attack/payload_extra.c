/* SPDX-License-Identifier: MIT */
/* X: attacks beyond the numbered list. */
#include "payload.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>

/* stdin is a file that the caller may write and we may only read */
static int x1_stdin_reopen(int argc, char **argv)
{
        static const char *const paths[] = { "/proc/self/fd/0", "/dev/stdin", "/dev/fd/0",
                                             "/proc/thread-self/fd/0" };
        struct tally tally = { 0 };
        struct stat info;

        (void)argc;
        (void)argv;
        if (fstat(0, &info) < 0)
                return untried("stdin %s", errno_name(errno));
        if (!S_ISREG(info.st_mode))
                return held("stdin is no file (mode %o)", info.st_mode);
        for (size_t i = 0; i < COUNT(paths); i++) {
                if (opens(paths[i], O_WRONLY))
                        put_broken(&tally, "%s opens for writing", paths[i]);
                else
                        put_held(&tally, "%s %s", paths[i], errno_name(errno));
        }
        expect_failure(&tally, "fchmod", fchmod(0, info.st_mode & 07777));
        expect_failure(&tally, "ftruncate", ftruncate(0, info.st_size));
        expect_failure(&tally, "fsetxattr", fsetxattr(0, "user.callbox-attack", "x", 1, 0));
        return verdict(&tally);
}

/* stdin is a directory of the host; the argument is a way from there to a secret */
static int x2_stdin_directory(int argc, char **argv)
{
        struct tally tally = { 0 };
        char text[64] = "";
        int fd;

        if (argc < 1)
                return untried("no path given");
        fd = openat(0, argv[0], O_RDONLY | O_CLOEXEC);
        expect_failure(&tally, "openat of stdin", fd);
        if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
                put_broken(&tally, "it reads %.15s", text);
        expect_failure(&tally, "fchdir to stdin", fchdir(0));
        return verdict(&tally);
}

/* stdout is a file of the caller with older content */
static int x3_stdout_file(int argc, char **argv)
{
        struct stat info;
        char text[256] = "";
        int fd;

        (void)argc;
        (void)argv;
        if (fstat(1, &info) < 0)
                return EXIT_UNTRIED;
        if (!S_ISREG(info.st_mode))
                return EXIT_HELD;
        fd = open("/proc/self/fd/1", O_RDWR | O_CLOEXEC);
        if (fd >= 0 && pread(fd, text, sizeof(text) - 1, 0) > 0)
                return EXIT_BROKEN;
        return ftruncate(1, 0) == 0 ? EXIT_BROKEN : EXIT_HELD;
}

/* stdin is a datagram socket of the host's network; the argument is a port that listens there */
static int x4_stdin_socket(int argc, char **argv)
{
        struct tally tally = { 0 };
        struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

        to.sin_port = htons((uint16_t)argument(argc, argv, 0, 9));
        expect_failure(&tally, "sendto on stdin",
                       sendto(0, "escaped", 7, 0, (struct sockaddr *)&to, sizeof(to)));
        expect_failure(&tally, "connect of stdin", connect(0, (struct sockaddr *)&to, sizeof(to)));
        return verdict(&tally);
}

/* Limits, priority and processors of our init; what is set is what was there. */
static int x5_limit_init(int argc, char **argv)
{
        static const int resources[] = { RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_CPU, RLIMIT_NPROC };
        struct tally tally = { 0 };
        struct sched_param parameter = { 0 };
        pid_t init = getppid();
        cpu_set_t cpus;

        (void)argc;
        (void)argv;
        for (size_t i = 0; i < COUNT(resources); i++) {
                struct rlimit limit = { 0 };

                if (prlimit(init, (__rlimit_resource_t)resources[i], NULL, &limit) < 0) {
                        put_held(&tally, "prlimit %s", errno_name(errno));
                        continue;
                }
                expect_failure(&tally, "prlimit of init",
                               prlimit(init, (__rlimit_resource_t)resources[i], &limit, NULL));
        }
        expect_failure(&tally, "setpriority of init", setpriority(PRIO_PROCESS, (id_t)init, 0));
        expect_failure(&tally, "sched_setscheduler of init",
                       sched_setscheduler(init, SCHED_OTHER, &parameter));
        if (sched_getaffinity(init, sizeof(cpus), &cpus) == 0)
                expect_failure(&tally, "sched_setaffinity of init",
                               sched_setaffinity(init, sizeof(cpus), &cpus));
        expect_failure(&tally, "ioprio_set of init", syscall(SYS_ioprio_set, 1, init, 2 << 13 | 4));
        return verdict(&tally);
}

/* Put our init last in the queue and keep every processor busy, so that the end comes late. */
static int x6_starve_init(int argc, char **argv)
{
        struct sched_param parameter = { 0 };
        double until = now() + (double)argument(argc, argv, 0, 4000) / 1000;
        pid_t init = getppid();

        if (init == 1) {
                sched_setscheduler(init, SCHED_IDLE, &parameter);
                setpriority(PRIO_PROCESS, (id_t)init, 19);
        }
        for (int i = 0; i < 60; i++)
                if (fork() == 0)
                        while (now() < until)
                                ;
        while (now() < until)
                ;
        return broken("ran to the end");
}

static int x7_init_memory(int argc, char **argv)
{
        static const char *const files[] = { "mem",  "maps",  "environ",   "fd",          "exe",
                                             "root", "cwd",   "syscall",   "auxv",        "pagemap",
                                             "io",   "smaps", "map_files", "personality", "stack" };
        struct tally tally = { 0 };
        struct iovec here = { .iov_base = &tally, .iov_len = 1 };
        struct iovec there = { .iov_base = (void *)(uintptr_t)0x400000, .iov_len = 1 };

        (void)argc;
        (void)argv;
        for (size_t i = 0; i < COUNT(files); i++) {
                char path[64], byte;
                int fd;

                snprintf(path, sizeof(path), "/proc/%d/%s", getppid(), files[i]);
                fd = open(path, O_RDONLY | O_CLOEXEC);
                if (fd >= 0 && (read(fd, &byte, 1) > 0 || errno == EISDIR))
                        put_broken(&tally, "%s opens", path);
                else
                        put_held(&tally, "%s %s", files[i], errno_name(errno));
                if (fd >= 0)
                        close(fd);
                if (opens(path, O_WRONLY))
                        put_broken(&tally, "%s opens for writing", path);
        }
        expect_failure(&tally, "process_vm_readv",
                       process_vm_readv(getppid(), &here, 1, &there, 1, 0));
        expect_failure(&tally, "process_vm_writev",
                       process_vm_writev(getppid(), &here, 1, &there, 1, 0));
        return verdict(&tally);
}

/* directory of ours, way up from it: the suite moves the directory out of the workspace */
static int x10_moved_out(int argc, char **argv)
{
        struct tally tally = { 0 };
        char text[64] = "";
        int fd;

        if (argc < 2 || (fd = open(argv[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
                return untried("%s", errno_name(errno));
        if (fchdir(fd) < 0 || write(STDOUT_FILENO, "READY\n", 6) != 6)
                return EXIT_UNTRIED;
        nap(0.8);
        for (int road = 0; road < 2; road++) {
                int found = openat(road ? fd : AT_FDCWD, argv[1], O_RDONLY | O_CLOEXEC);

                if (found >= 0 && read(found, text, sizeof(text) - 1) > 0 &&
                    strstr(text, "callbox-secret"))
                        put_broken(&tally, "the secret was read by ..");
                else
                        put_held(&tally, "%s", errno_name(errno));
                if (found >= 0)
                        close(found);
        }
        return verdict(&tally);
}

/* a path; the suite swaps the workspace for a link to a secret place while we wait */
static int x11_swapped(int argc, char **argv)
{
        const char *text;

        if (argc < 1 || write(STDOUT_FILENO, "READY\n", 6) != 6)
                return EXIT_UNTRIED;
        nap(0.8);
        for (int i = 0; i < argc; i++) {
                text = slurp(argv[i]);
                if (text && strstr(text, "callbox-secret"))
                        return broken("%s shows the secret", argv[i]);
        }
        return held("the workspace is what it was");
}

/* everything but content of a file that was granted for reading */
static int x12_read_only_metadata(int argc, char **argv)
{
        struct tally tally = { 0 };
        struct stat info;
        char link[64], other[4096];
        int fd;

        if (argc < 1 || stat(argv[0], &info) < 0)
                return untried("%s", errno_name(errno));
        if (opens(argv[0], O_WRONLY))
                put_broken(&tally, "opens for writing");
        if (opens(argv[0], O_RDWR | O_APPEND))
                put_broken(&tally, "opens for appending");
        fd = open(argv[0], O_PATH | O_CLOEXEC);
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        if (opens(link, O_RDWR))
                put_broken(&tally, "reopens for writing through O_PATH");
        expect_failure(&tally, "chmod", chmod(argv[0], info.st_mode & 07777));
        expect_failure(&tally, "chmod through O_PATH", chmod(link, info.st_mode & 07777));
        expect_failure(&tally, "chown", chown(argv[0], (uid_t)-1, getgid()));
        expect_failure(&tally, "utimensat", utimensat(AT_FDCWD, argv[0], NULL, 0));
        expect_failure(&tally, "setxattr", setxattr(argv[0], "user.callbox-attack", "x", 1, 0));
        expect_failure(&tally, "truncate", truncate(argv[0], info.st_size));
        snprintf(other, sizeof(other), "%s.moved", argv[0]);
        if (rename(argv[0], other) == 0) {
                put_broken(&tally, "rename");
                rename(other, argv[0]);
        }
        expect_failure(&tally, "link", linkat(AT_FDCWD, argv[0], AT_FDCWD, other, 0));
        expect_failure(&tally, "symlink", symlink("x", other));
        expect_failure(&tally, "mkdir", mkdir(other, 0700));
        return verdict(&tally);
}

/* A program that runs as its owner, left in the workspace: the host's owner, then. */
static int x13_set_id(int argc, char **argv)
{
        struct tally tally = { 0 };
        static const mode_t bits[] = { S_ISUID, S_ISGID };
        struct stat info;

        (void)argc;
        (void)argv;
        for (size_t i = 0; i < COUNT(bits); i++) {
                mode_t mode = bits[i] | 0755;
                struct {
                        uint64_t flags, mode, resolve;
                } how = { O_WRONLY | O_CREAT | O_EXCL, mode, 0 };
                char name[9][16], link[32];
                int fd;

                for (int n = 0; n < 9; n++)
                        snprintf(name[n], sizeof(name[n]), "set-%zu-%d", i, n);
                for (int n = 0; n < 4; n++)
                        if (!opens(name[n], O_WRONLY | O_CREAT))
                                return untried("no file can be made: %s", errno_name(errno));
                chmod(name[0], mode);
                fd = open(name[1], O_RDONLY | O_CLOEXEC);
                fchmod(fd, mode);
                close(fd);
                syscall(SYS_fchmodat, AT_FDCWD, name[2], mode);
                syscall(452 /* fchmodat2 */, AT_FDCWD, name[3], mode, 0);
                close(open(name[4], O_WRONLY | O_CREAT | O_CLOEXEC, mode));
                syscall(SYS_creat, name[5], mode);
                mknod(name[6], S_IFREG | mode, 0);
                syscall(SYS_openat2, AT_FDCWD, name[7], &how, sizeof(how));
                fd = open(".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
                snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
                (void)!linkat(AT_FDCWD, link, AT_FDCWD, name[8], AT_SYMLINK_FOLLOW);
                close(fd);
                for (int n = 0; n < 9; n++)
                        if (stat(name[n], &info) == 0 && info.st_mode & bits[i])
                                put_broken(&tally, "%s has mode %o", name[n], info.st_mode & 07777);
                        else
                                put_held(&tally, "%s", name[n]);
        }
        return verdict(&tally);
}

static int x14_nonblock(int argc, char **argv)
{
        (void)argc;
        (void)argv;
        signal(SIGIO, SIG_IGN);
        for (int fd = 0; fd < 3; fd++) {
                fcntl(fd, F_SETFL, O_NONBLOCK | O_APPEND | O_ASYNC);
                fcntl(fd, F_SETOWN, getpid());
        }
        return held("flags were set on 0, 1 and 2");
}

/* Signals that do nothing by default, to whoever shares a group with us. */
static int x15_group_signal(int argc, char **argv)
{
        struct tally tally = { 0 };

        (void)argc;
        (void)argv;
        signal(SIGWINCH, SIG_IGN);
        kill(0, SIGWINCH);
        killpg(getpgrp(), SIGWINCH);
        kill(-1, SIGWINCH);
        kill(getsid(0), SIGWINCH);
        put_held(&tally, "signals were sent");
        return verdict(&tally);
}

static void *end_late(void *data)
{
        (void)data;
        nap(0.3);
        _exit(9);
}

static int x16_leader_exit(int argc, char **argv)
{
        pthread_t thread;

        (void)argc;
        (void)argv;
        if (pthread_create(&thread, NULL, end_late, NULL) != 0)
                return untried("no thread");
        syscall(SYS_exit, 0); /* this thread alone */
        return EXIT_UNTRIED;
}

static void *exec_exit(void *data)
{
        (void)data;
        execl("/proc/self/exe", "payload", "exit", self_token, "9", (char *)NULL);
        _exit(EXIT_UNTRIED);
}

static int x17_thread_exec(int argc, char **argv)
{
        pthread_t thread;

        (void)argc;
        (void)argv;
        if (pthread_create(&thread, NULL, exec_exit, NULL) != 0)
                return untried("no thread");
        pthread_join(thread, NULL);
        return EXIT_UNTRIED;
}

static int x18_many_denials(int argc, char **argv)
{
        long bound = argument(argc, argv, 0, 20000);

        for (long i = 0; i < bound; i++)
                syscall(1000 + i, 0, 0, 0, 0, 0, 0);
        return held("%ld unknown calls were made", bound);
}

/* Open paths for the report of --explain: as given, or many that differ. */
static int x19_explain(int argc, char **argv)
{
        for (int i = 0; i < argc; i++)
                if (argv[i][0] == '/')
                        opens(argv[i], O_RDONLY);
        for (long i = 0; argc > 0 && i < strtol(argv[0], NULL, 10); i++) {
                char path[300];

                snprintf(path, sizeof(path), "/usr/share/callbox-%ld/%0200ld", i, i);
                opens(path, O_RDONLY);
                if (argc > 1) { /* a directory of the host that the box has not */
                        snprintf(path, sizeof(path), "%s/%ld", argv[1], i);
                        opens(path, O_RDONLY);
                }
        }
        return held("paths were tried");
}

/* our file, where the report will go, becomes a link to a file of others */
static int x20_report_link(int argc, char **argv)
{
        if (argc < 2)
                return untried("two paths are needed");
        unlink(argv[0]);
        if (symlink(argv[1], argv[0]) < 0)
                return held("symlink %s", errno_name(errno));
        return broken("the link is laid");
}

/* old name, new name, the secret by its new name: a rename around a hidden place */
static int x21_rename_hidden(int argc, char **argv)
{
        struct tally tally = { 0 };
        const char *text;

        if (argc < 3)
                return untried("three paths are needed");
        if (rename(argv[0], argv[1]) < 0)
                put_held(&tally, "rename %s", errno_name(errno));
        text = slurp(argv[2]);
        if (text && strstr(text, "callbox-secret"))
                put_broken(&tally, "%s shows the secret", argv[2]);
        else
                put_held(&tally, "%s %s", argv[2], text ? "shows nothing" : errno_name(errno));
        return verdict(&tally);
}

static int x22_kill_all(int argc, char **argv)
{
        (void)argc;
        (void)argv;
        if (fork() == 0) {
                kill(-1, SIGKILL); /* all but itself and init */
                _exit(0);
        }
        nap(5);
        return untried("nothing was killed");
}

/* Does a file that the host runs open for writing? callbox itself, by way of our init. */
static int x23_own_binary(int argc, char **argv)
{
        struct tally tally = { 0 };

        for (int i = 0; i < argc; i++)
                if (opens(argv[i], O_WRONLY))
                        put_broken(&tally, "%s opens for writing", argv[i]);
                else if (errno == ETXTBSY)
                        put_broken(&tally, "%s would open once it is idle", argv[i]);
                else
                        put_held(&tally, "%s %s", argv[i], errno_name(errno));
        return verdict(&tally);
}

/* Does a file of /proc about a process that is not ours open, by a call that init makes for us? */
static void try_deputy(struct tally *tally, int pid)
{
        static const char *const files[] = { "environ", "mem",     "maps", "auxv", "exe",    "fd/0",
                                             "fd/1",    "fd/2",    "fd/3", "fd/4", "fd/5",   "fd/6",
                                             "fd/7",    "syscall", "root", "cwd",  "pagemap" };

        for (int r = 0; r < 3; r++)
                for (size_t i = 0; i < COUNT(files); i++) {
                        char path[128], byte;
                        ssize_t n = -1;
                        int fd;

                        if (r == 2)
                                snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, pid,
                                         files[i]);
                        else
                                snprintf(path, sizeof(path), r ? "//proc/%d/./%s" : "/proc/%d/%s",
                                         pid, files[i]);
                        fd = open(path, O_RDONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0600);
                        if (fd >= 0)
                                n = read(fd, &byte, 1);
                        /* Of one that is dead there is nothing to be read. */
                        if (fd >= 0 && (n > 0 || (n == 0 && strncmp(files[i], "fd/", 3) == 0) ||
                                        (n < 0 && errno != EACCES && errno != EPERM)))
                                put_broken(tally, "%s opens", path);
                        else
                                put_held(tally, "%s", errno_name(errno));
                        if (fd >= 0)
                                close(fd);
                }
}

/* In a workspace init makes names on our behalf: let it open things about itself for us. */
static int x28_deputy(int argc, char **argv)
{
        static const char *const selves[] = {
                "/proc/self/environ", "//proc/self/environ",       "/proc//self/environ",
                "/proc/./self/mem",   "/proc/thread-self/environ", "//proc/thread-self/maps",
                "/dev/fd/3",          "/dev/../proc/self/environ", "/proc/self/task/../environ",
        };
        struct tally tally = { 0 };
        pid_t ours[4], own = getpid();
        double until;

        (void)argc;
        (void)argv;
        /* processes of init's own that wait on our behalf, in the opening of a fifo */
        for (size_t i = 0; i < COUNT(ours); i++) {
                char path[32];

                snprintf(path, sizeof(path), "fifo-%zu", i);
                mkfifo(path, 0600);
                ours[i] = fork();
                if (ours[i] == 0) {
                        int opened;

                        alarm(3);
                        opened = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
                        _exit(opened < 0 ? 1 : 0);
                }
        }
        nap(0.2);
        /* those around us first: where the host's are to be seen as well there may be thousands */
        until = now() + 3;
        for (int pid = own + 40; pid > 0; pid = pid > 2 && now() > until ? 2 : pid - 1) {
                bool mine = pid == own || is_holder(pid);

                for (size_t i = 0; i < COUNT(ours); i++)
                        mine |= pid == ours[i];
                if (!mine && (kill(pid, 0) == 0 || errno == EPERM))
                        try_deputy(&tally, pid);
        }
        /* what says "self" is us, not init: no secret of the caller's environment is there */
        for (size_t i = 0; i < COUNT(selves); i++) {
                char text[8192] = "";
                int fd = open(selves[i], O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
                ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

                if (n > 0 && memmem(text, (size_t)n, "ATTACK_SECRET", 13))
                        put_broken(&tally, "%s shows the caller's environment", selves[i]);
                if (fd >= 0)
                        close(fd);
        }
        for (size_t i = 0; i < COUNT(ours); i++)
                kill(ours[i], SIGKILL);
        return verdict(&tally);
}

const struct attack attacks_extra[] = {
        { "X1-stdin-reopen", x1_stdin_reopen },
        { "X2-stdin-directory", x2_stdin_directory },
        { "X3-stdout-file", x3_stdout_file },
        { "X4-stdin-socket", x4_stdin_socket },
        { "X5-limit-init", x5_limit_init },
        { "X6-starve-init", x6_starve_init },
        { "X7-init-memory", x7_init_memory },
        { "X10-moved-out", x10_moved_out },
        { "X11-swapped", x11_swapped },
        { "X12-read-only-metadata", x12_read_only_metadata },
        { "X13-set-id", x13_set_id },
        { "X14-nonblock", x14_nonblock },
        { "X15-group-signal", x15_group_signal },
        { "X16-leader-exit", x16_leader_exit },
        { "X17-thread-exec", x17_thread_exec },
        { "X18-many-denials", x18_many_denials },
        { "X19-explain", x19_explain },
        { "X20-report-link", x20_report_link },
        { "X21-rename-hidden", x21_rename_hidden },
        { "X22-kill-all", x22_kill_all },
        { "X23-own-binary", x23_own_binary },
        { "X28-deputy", x28_deputy },
        { NULL, NULL },
};
