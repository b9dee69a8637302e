/* SPDX-License-Identifier: MIT */
/*
 * What the calls of the soak and of the fault tests run: one static program with a sub-command for
 * each way in which a call can go.
 *
 *     exit CODE OUT ERR SEED   OUT bytes to stdout, ERR bytes to stderr, exit with CODE
 *     echo                     stdin to stdout
 *     sleep                    for ever
 *     nap MILLISECONDS         and exit with 0
 *     flood                    stdout for ever
 *     crash                    by a null pointer
 *     abort
 *     hog                      memory for ever
 *     spin                     processor time for ever
 *     fork                     processes for ever
 *     leave CODE               a process of its own session that keeps the pipes open, exit CODE
 *     fences SECRET            tell which fence is missing; SECRET is a file that must not be seen
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "stream.h"

/* ---- Output and input ---- */

static void put(int fd, const char *data, size_t length)
{
        while (length > 0) {
                ssize_t n = write(fd, data, length);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        _exit(99);
                data += n;
                length -= (size_t)n;
        }
}

static void put_stream(int fd, size_t length, unsigned seed)
{
        char piece[4096];
        size_t at = 0;

        while (at < length) {
                size_t n = length - at < sizeof(piece) ? length - at : sizeof(piece);

                for (size_t i = 0; i < n; i++)
                        piece[i] = stream_byte(seed, at + i);
                put(fd, piece, n);
                at += n;
        }
}

static int do_exit(char **argv)
{
        unsigned seed = (unsigned)strtoul(argv[3], NULL, 10);

        put_stream(1, strtoul(argv[1], NULL, 10), seed);
        put_stream(2, strtoul(argv[2], NULL, 10), seed + 1);
        return (int)strtoul(argv[0], NULL, 10);
}

static int do_echo(char **argv)
{
        char piece[4096];
        ssize_t n;

        (void)argv;
        while ((n = read(0, piece, sizeof(piece))) != 0)
                if (n > 0)
                        put(1, piece, (size_t)n);
                else if (errno != EINTR)
                        return 98;
        return 0;
}

static int do_flood(char **argv)
{
        (void)argv;
        put_stream(1, SIZE_MAX, 0);
        return 0;
}

/* ---- Time ---- */

static int do_sleep(char **argv)
{
        (void)argv;
        while (true)
                pause();
        return 0;
}

static int do_nap(char **argv)
{
        long milliseconds = strtol(argv[0], NULL, 10);
        struct timespec left = { milliseconds / 1000, milliseconds % 1000 * 1000000 };

        while (nanosleep(&left, &left) < 0 && errno == EINTR)
                ;
        return 0;
}

static int do_spin(char **argv)
{
        (void)argv;
        for (volatile unsigned long n = 1; n; n++)
                ;
        return 0;
}

/* ---- What ends badly ---- */

static int do_crash(char **argv)
{
        (void)argv;
        (void)signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
        return 97;
}

static int do_abort(char **argv)
{
        (void)argv;
        abort();
}

static int do_hog(char **argv)
{
        size_t piece = 4U << 20;

        (void)argv;
        while (true) {
                char *memory = mmap(NULL, piece, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

                if (memory == MAP_FAILED)
                        pause(); /* the limit is another one: wait to be judged by it */
                else
                        memset(memory, 'x', piece);
        }
        return 0;
}

static int do_fork(char **argv)
{
        (void)argv;
        while (true)
                if (fork() == 0 || errno == EAGAIN)
                        pause();
        return 0;
}

static int do_leave(char **argv)
{
        static const char text[] = "left\n";

        if (fork() == 0) {
                (void)setsid();
                (void)signal(SIGHUP, SIG_IGN);
                for (;;)
                        pause();
        }
        put(1, text, sizeof(text) - 1);
        return (int)strtoul(argv[0], NULL, 10);
}

/* ---- The fences, as a program sees them ---- */

static char *status_line(const char *text, const char *label)
{
        char *at = strstr(text, label);

        return at ? at + strlen(label) : NULL;
}

/* The number behind a label of /proc/self/status. */
static bool status_is(const char *text, const char *label, int base, unsigned long wanted)
{
        const char *at = status_line(text, label);

        return at && strtoul(at, NULL, base) == wanted;
}

static bool sees_only_loopback(void)
{
        char text[4096], *line, *rest = text;
        int fd = open("/proc/self/net/dev", O_RDONLY);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

        close(fd);
        if (n < 0)
                return true; /* not even that */
        text[n] = '\0';
        while ((line = strsep(&rest, "\n")))
                if (strchr(line, ':') && !strstr(line, " lo:"))
                        return false;
        return true;
}

static void need(bool held, const char *fence)
{
        if (!held)
                printf("missing: %s\n", fence);
}

static int do_fences(char **argv)
{
        char text[8192];
        struct rlimit core;
        int fd = open("/proc/self/status", O_RDONLY);
        ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

        text[n > 0 ? n : 0] = '\0';
        close(fd);
        puts("the program ran");
        need(n > 0, "/proc of its own");
        need(getpid() < 10 && getppid() < 2, "pid namespace");
        need(getsid(0) == getpid(), "session");
        need(status_is(text, "Seccomp:", 10, 2), "seccomp");
        need(status_is(text, "NoNewPrivs:", 10, 1), "no_new_privs");
        need(status_is(text, "CapEff:", 16, 0) && status_is(text, "CapPrm:", 16, 0) &&
                     status_is(text, "CapInh:", 16, 0) && status_is(text, "CapBnd:", 16, 0) &&
                     status_is(text, "CapAmb:", 16, 0),
             "capabilities");
        need(getuid() != 0 && getuid() == geteuid() && getgid() != 0 && getgid() == getegid(),
             "identity");
        need(access(argv[0], F_OK) < 0 && errno == ENOENT, "files");
        need(access("/sys/kernel", F_OK) < 0, "root");
        need(sees_only_loopback(), "network");
        need(getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max == 0, "rlimits");
        for (fd = 3; fd < 1024; fd++)
                need(fcntl(fd, F_GETFD) < 0, "descriptors");
        return fflush(stdout) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
        static const struct {
                const char *name;
                int arguments;
                int (*run)(char **argv);
        } commands[] = {
                { "exit", 4, do_exit },   { "echo", 0, do_echo },   { "sleep", 0, do_sleep },
                { "nap", 1, do_nap },     { "flood", 0, do_flood }, { "crash", 0, do_crash },
                { "abort", 0, do_abort }, { "hog", 0, do_hog },     { "spin", 0, do_spin },
                { "fork", 0, do_fork },   { "leave", 1, do_leave }, { "fences", 1, do_fences },
        };

        for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++)
                if (strcmp(argv[1], commands[i].name) == 0 && argc == 2 + commands[i].arguments)
                        return commands[i].run(argv + 2);
        fputs("worker: no such work\n", stderr);
        return 96;
}
