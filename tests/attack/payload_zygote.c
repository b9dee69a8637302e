/* SPDX-License-Identifier: MIT */
/*
 * Attacks that a forked process makes on who holds its memory (box/holder.c): it is rewritten to do
 * something, and woken in every way there is. Harmless where it succeeds: it counts, or touches
 * some memory, and ends with the box.
 */
#include "payload_zygote.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL
#define TOUCHED (64UL << 20)

extern char __data_start, _end; /* of what this program can write to, by the linker */

static volatile uint64_t counted;
static volatile char *touched;

static _Noreturn void count(void)
{
        for (;;)
                counted++;
}

static _Noreturn void touch(void)
{
        for (unsigned long at = 0; at < TOUCHED; at += PAGE)
                touched[at] = 1;
        count();
}

static void nap(long milliseconds)
{
        struct timespec time = { .tv_nsec = milliseconds * 1000 * 1000 };

        (void)nanosleep(&time, NULL);
}

/* The last process of this box that is not this one. */
static pid_t find_holder(void)
{
        DIR *all = opendir("/proc");
        pid_t found = -1;

        for (struct dirent *entry; all && (entry = readdir(all));) {
                pid_t pid = atoi(entry->d_name);

                if (pid > found && pid > 1 && pid != getpid())
                        found = pid;
        }
        if (all)
                closedir(all);
        return found;
}

/* It waits in syscall(3): have it go on elsewhere from there. */
static int rewrite(void (*where)(void))
{
        unsigned char jump[] = { 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0 };
        unsigned char *code = memmem((void *)syscall, 64, "\x0f\x05", 2);
        uint64_t address = (uint64_t)where;

        if (!code)
                return -1;
        memcpy(jump + 2, &address, sizeof(address));
        if (mprotect((void *)((uintptr_t)code & ~(PAGE - 1)), 2 * PAGE, 7) < 0)
                return -1;
        memcpy(code + 2, jump, sizeof(jump));
        return 0;
}

static long futex_wake(void *at)
{
        long result;

        __asm__ volatile("syscall"
                         : "=a"(result)
                         : "a"(SYS_futex), "D"(at), "S"(FUTEX_WAKE), "d"(10)
                         : "rcx", "r11", "memory");
        return result;
}

static void wake(pid_t holder)
{
        static const int signals[] = { SIGSTOP, SIGCONT, SIGSTOP, SIGCONT, SIGURG, SIGUSR1 };
        int pair[2];

        for (uintptr_t at = (uintptr_t)&__data_start; at + 4 <= (uintptr_t)&_end; at += 4)
                (void)futex_wake((void *)at);
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0) {
                (void)fcntl(pair[0], F_SETOWN, holder);
                (void)fcntl(pair[0], F_SETFL, O_ASYNC);
                (void)!write(pair[1], "", 1);
        }
        for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
                (void)kill(holder, signals[i]);
                nap(5);
        }
}

static int tell(int broken, const char *what)
{
        printf("%s %s\n", broken ? "BROKEN" : "HELD", what);
        return broken ? 42 : 0;
}

static int run_holder(pid_t holder, void (*where)(void))
{
        if (rewrite(where) < 0) {
                puts("UNTRIED its code was not found");
                return 3;
        }
        wake(holder);
        nap(300);
        return tell(counted > 0, "who holds the memory of this process ran its code");
}

/* Where it stands is not where the zygote stood, which all calls have in common. */
static int look_at_directory(pid_t holder)
{
        struct stat root, there;
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/cwd", holder);
        if (stat("/", &root) < 0)
                return 3;
        if (stat(path, &there) < 0)
                return tell(0, "its directory is closed");
        return tell(there.st_dev != root.st_dev || there.st_ino != root.st_ino,
                    "its directory is that of the zygote");
}

int zygote_attack(const char *name)
{
        pid_t holder = find_holder();

        if (holder < 0) {
                puts("UNTRIED nobody holds the memory of this process");
                return 3;
        }
        touched = mmap(NULL, TOUCHED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (strcmp(name, "holder-cpu") == 0)
                return run_holder(holder, count);
        if (strcmp(name, "holder-memory") == 0 && touched != MAP_FAILED)
                return run_holder(holder, touch);
        if (strcmp(name, "holder-directory") == 0)
                return look_at_directory(holder);
        puts("UNTRIED there is no such attack");
        return 3;
}
