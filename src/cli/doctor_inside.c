/* SPDX-License-Identifier: MIT */
/*
 * Inside a probe's box: try what must be refused and tell how it went. The exit code says whether
 * the fence held, one line on stdout says what got through. Where the warden is to end the call,
 * the probe takes a little more than its limit, waits half a second, and gives up.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>

#include "cli/doctor.h"

#define LIFE 2           /* seconds that a stray process may live where nobody ends it */
#define MEMORY_MIB 128   /* twice the probe's limit */
#define PROCESSES 32     /* four times */
#define SPIN_SECONDS 0.5 /* ten times */

/* What the box shows of the directory where things are planted. */
static char shown[PATH_MAX], made[PATH_MAX];

static int broken(const char *what)
{
        puts(what);
        return PROBE_BROKEN;
}

static int failed(const char *what)
{
        printf("the probe itself failed: %s: %s\n", what, strerror(errno));
        return PROBE_FAILED;
}

/* Time for the warden to end a call that is over its limit. */
static void wait_for_the_end(void)
{
        struct timespec half = { .tv_nsec = 500 * (long)NSEC_PER_MSEC };

        while (nanosleep(&half, &half) < 0 && errno == EINTR)
                ;
}

/* A process that tries to outlive its call: orphaned, in a session of its own, deaf to requests,
 * holding the call's output and a lock by which the outside sees that it is still there. */
static _Noreturn void linger(int ready)
{
        int fd;

        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        signal(SIGINT, SIG_IGN);
        alarm(LIFE);
        fd = open(shown, O_RDONLY | O_CLOEXEC);
        if (setsid() < 0 || fd < 0 || flock(fd, LOCK_EX) < 0 || write(ready, "r", 1) != 1)
                _exit(1);
        for (;;)
                pause();
}

static int inside_tree_kill(char **args)
{
        int ready[2];
        pid_t child;
        char byte;

        (void)args;
        if (pipe2(ready, O_CLOEXEC) < 0)
                return failed("pipe");
        child = fork();
        if (child < 0)
                return failed("fork");
        if (child == 0) {
                child = fork();
                if (child == 0)
                        linger(ready[1]);
                _exit(child < 0 ? 1 : 0);
        }
        close(ready[1]);
        return read(ready[0], &byte, 1) == 1 ? PROBE_HELD : failed("a process in the background");
}

/* args: a path of the host that is not shown */
static int inside_files(char **args)
{
        _cleanup_fd_ int planted = open(args[0], O_RDONLY | O_CLOEXEC);
        _cleanup_fd_ int readable = open(shown, O_RDONLY | O_CLOEXEC);
        _cleanup_fd_ int writable = open(shown, O_WRONLY | O_CLOEXEC);

        if (planted >= 0)
                return broken("a file of the host that is not shown could be opened");
        if (readable < 0)
                return failed("a shown file could not be read");
        if (writable >= 0)
                return broken("a file that is shown for reading could be opened for writing");
        return PROBE_HELD;
}

/* args: a TCP port on the host's loopback or 0, a name of an abstract socket */
static int inside_network(char **args)
{
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                       .sin_port = htons((uint16_t)strtoul(args[0], NULL, 10)) };
        struct sockaddr_un local = { .sun_family = AF_UNIX };
        socklen_t length =
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(args[1]));
        _cleanup_fd_ int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        _cleanup_fd_ int stream = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(local.sun_path + 1, sizeof(local.sun_path) - 1, "%s", args[1]);
        if (address.sin_port && tcp >= 0 &&
            connect(tcp, (struct sockaddr *)&address, sizeof(address)) == 0)
                return broken("a port of the host's loopback could be connected to");
        if (stream >= 0 && connect(stream, (struct sockaddr *)&local, length) == 0)
                return broken("an abstract socket of the host could be connected to");
        return PROBE_HELD;
}

static int inside_syscalls(char **args)
{
        (void)args;
        if (syscall(SYS_unshare, 0x10000000 /* a user namespace */) == 0 || errno != EPERM)
                return broken("unshare was not refused");
        if (syscall(SYS_mount, "none", "/nonexistent", "tmpfs", 0, NULL) == 0 || errno != EPERM)
                return broken("mount was not refused");
        if (syscall(SYS_bpf, -1, NULL, 0) == 0 || errno != EPERM)
                return broken("bpf was not refused");
        if (syscall(SYS_ptrace, 0 /* be traced */, 0, NULL, NULL) == 0 || errno != EPERM)
                return broken("ptrace was not refused");
        return PROBE_HELD;
}

/* Which id of the host is the box? And has it a user namespace with that one alone? */
static long host_id(bool *ret_alone)
{
        _cleanup_free_ char *map = NULL;
        unsigned long inside, outside, count, id = geteuid();
        size_t length;

        if (file_read(AT_FDCWD, "/proc/self/uid_map", 4 * KIB, &map, &length) < 0)
                return -1;
        for (const char *line = map; line && *line; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (sscanf(line, "%lu %lu %lu", &inside, &outside, &count) == 3 && id >= inside &&
                    id - inside < count) {
                        *ret_alone = count == 1;
                        return (long)(outside + id - inside);
                }
        }
        return -1;
}

/* args: the host id that the box must not be, or -1 */
static int inside_privileges(char **args)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct caps[2] = { 0 };
        bool alone = false;
        long id = host_id(&alone);

        if (syscall(SYS_capget, &header, caps) < 0)
                return failed("capget");
        for (size_t i = 0; i < ARRAY_SIZE(caps); i++)
                if (caps[i].effective | caps[i].permitted | caps[i].inheritable)
                        return broken("the program has capabilities");
        /* Without a namespace of its own a user's box keeps a bounding set, which is of no use to
         * one who cannot gain anything by exec. */
        for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
                if ((alone && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1) ||
                    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) == 1)
                        return broken("the program could get capabilities");
        if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
                return broken("a set-user-id program could get privileges");
        if (id < 0)
                return failed("/proc/self/uid_map");
        if (id == strtol(args[0], NULL, 10))
                return broken("the box is run by root's own id");
        return PROBE_HELD;
}

/* args: the name of a variable that the caller has */
static int inside_environment(char **args)
{
        if (!getenv("PATH"))
                return failed("PATH");
        return getenv(args[0]) ? broken("a variable of the caller's was passed on") : PROBE_HELD;
}

static int inside_memory(char **args)
{
        (void)args;
        for (unsigned i = 0; i < MEMORY_MIB; i++) {
                void *piece =
                        mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

                if (piece == MAP_FAILED)
                        return failed("mmap");
                memset(piece, 1, MIB);
        }
        wait_for_the_end();
        return broken("128 MiB could be used under a limit of 64 MiB");
}

static int inside_pids(char **args)
{
        unsigned started = 0;

        (void)args;
        for (unsigned i = 0; i < PROCESSES; i++) {
                pid_t child = fork();

                if (child == 0) {
                        alarm(LIFE);
                        for (;;)
                                pause();
                }
                started += child > 0;
        }
        wait_for_the_end();
        printf("%u processes ran under a limit of 8 and the call was not ended\n", started);
        return PROBE_BROKEN;
}

static int inside_cpu(char **args)
{
        struct timespec used;

        (void)args;
        do
                clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
        while ((double)used.tv_sec + (double)used.tv_nsec / 1e9 < SPIN_SECONDS);
        return broken("0.5 s of processor time could be used under a limit of 0.05 s");
}

/* Init is of the same user but outside of main's Landlock domain, so from ABI 6 on nothing but
 * Landlock stands between them. args: the ABI */
static int inside_landlock(char **args)
{
        if (strtol(args[0], NULL, 10) >= 6 && (kill(1, 0) == 0 || errno != EPERM))
                return broken("a process outside of the Landlock domain could be signalled");
        return PROBE_HELD;
}

static int inside_nothing(char **args)
{
        (void)args;
        return PROBE_HELD;
}

static int inside_trees(char **args)
{
        _cleanup_fd_ int fd = open(made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        (void)args;
        return fd < 0 ? failed("a file could not be made in a writable directory") : PROBE_HELD;
}

static const struct {
        const char *name;
        int args;
        int (*run)(char **args);
} insides[] = {
        { "tree-kill", 0, inside_tree_kill },
        { "files", 1, inside_files },
        { "network", 2, inside_network },
        { "syscalls", 0, inside_syscalls },
        { "privileges", 1, inside_privileges },
        { "environment", 1, inside_environment },
        { "memory", 0, inside_memory },
        { "pids", 0, inside_pids },
        { "cpu", 0, inside_cpu },
        { "landlock", 1, inside_landlock },
        { "cgroup", 0, inside_nothing },
        { "trees", 0, inside_trees },
};

int doctor_inside(int argc, char **argv)
{
        if (argc < 2)
                return -1;
        snprintf(shown, sizeof(shown), "%s/shown", argv[1]);
        snprintf(made, sizeof(made), "%s/tree/made", argv[1]);
        for (size_t i = 0; i < ARRAY_SIZE(insides); i++)
                if (strcmp(argv[0], insides[i].name) == 0 && argc - 2 == insides[i].args &&
                    access(shown, F_OK) == 0) {
                        int code = insides[i].run(argv + 2);

                        return fflush(stdout) == 0 ? code : PROBE_FAILED;
                }
        return -1;
}
