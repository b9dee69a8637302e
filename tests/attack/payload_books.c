/* SPDX-License-Identifier: MIT */
/* Processor time of children that nobody waits for, which the kernel adds to nobody's: B28,
 * continued. */
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "payload.h"

#define LIVE 3        /* children at once */
#define BURN 0.002    /* seconds each */
#define PATIENCE 10.0 /* seconds in which all is to be used */
#define MASK_PAGES 400

static struct books {
        long ended, used; /* children, and microseconds */
} * books;

static double used_here(void)
{
        struct timespec at;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
        return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static _Noreturn void burn(void)
{
        double used;

        while ((used = used_here()) < BURN)
                ;
        __sync_fetch_and_add(&books->used, (long)(used * 1e6));
        __sync_fetch_and_add(&books->ended, 1);
        _exit(0);
}

static void set_action(void (*handler)(int), int flags)
{
        struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

        sigaction(SIGCHLD, &action, NULL);
}

static void hear(int signal)
{
        (void)signal;
}

/* A child that is waited for, with more page faults than those have that are not. */
static void mask(void)
{
        pid_t pid = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);

        if (pid == 0) {
                volatile char *pages = mmap(NULL, MASK_PAGES * 4096L, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

                for (long i = 0; pages != MAP_FAILED && i < MASK_PAGES; i++)
                        pages[i * 4096] = 1;
                _exit(0);
        }
        waitpid(pid, NULL, __WALL);
}

static int spend(long wanted, void (*each_time)(void))
{
        double end = now() + PATIENCE;
        long started = 0;

        while (now() < end && books->used < wanted * 1000) {
                pid_t pid = started - books->ended < LIVE ? fork() : -1;

                if (pid == 0)
                        burn();
                started += pid > 0;
                if (pid < 0)
                        usleep(300);
                if (each_time)
                        each_time();
        }
        if (books->used >= wanted * 1000)
                return broken("%ld ms used by %ld children", books->used / 1000, books->ended);
        return held("%ld ms used", books->used / 1000);
}

static int take_ignored(long wanted)
{
        set_action(SIG_IGN, 0);
        return spend(wanted, NULL);
}

static int take_flagged(long wanted)
{
        set_action(SIG_DFL, SA_NOCLDWAIT);
        return spend(wanted, NULL);
}

static int take_handled(long wanted)
{
        set_action(hear, SA_NOCLDWAIT);
        return spend(wanted, NULL);
}

/* It ignores the signal for no longer than a child takes to end. */
static void toggle(void)
{
        set_action(SIG_DFL, 0);
        set_action(SIG_IGN, 0);
        if (books->ended % 2)
                usleep(100);
}

static int take_toggled(long wanted)
{
        return spend(wanted, toggle);
}

/* What was ignored before an exec is after it. */
static int take_inherited(long wanted)
{
        char number[24];

        snprintf(number, sizeof(number), "%ld", wanted);
        set_action(SIG_IGN, 0);
        execl(self_path, self_path, "B28-unwaited", self_token, "as-it-is", number, NULL);
        return untried("exec");
}

static int take_as_it_is(long wanted)
{
        return spend(wanted, NULL);
}

/* Grandchildren come to a process that ignores them. */
static int take_adopted(long wanted)
{
        double end = now() + PATIENCE;
        long started = 0;

        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        set_action(hear, SA_NOCLDWAIT);
        while (now() < end && books->used < wanted * 1000) {
                pid_t pid = started - books->ended < LIVE ? fork() : -1;

                if (pid == 0) {
                        if (fork() == 0)
                                burn();
                        _exit(0);
                }
                started += pid > 0;
                if (pid < 0)
                        usleep(300);
        }
        return books->used >= wanted * 1000 ? broken("%ld ms used", books->used / 1000)
                                            : held("%ld ms used", books->used / 1000);
}

/* Among children that are waited for. */
static int take_masked(long wanted)
{
        set_action(hear, SA_NOCLDWAIT);
        return spend(wanted, mask);
}

static int b28_unwaited(int argc, char **argv)
{
        static const struct {
                const char *name;
                int (*take)(long wanted);
        } ways[] = {
                { "ignored", take_ignored },     { "flagged", take_flagged },
                { "handled", take_handled },     { "toggled", take_toggled },
                { "inherited", take_inherited }, { "as-it-is", take_as_it_is },
                { "adopted", take_adopted },     { "masked", take_masked },
        };

        books = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (books == MAP_FAILED)
                return untried("no shared memory");
        for (size_t i = 0; argc > 0 && i < COUNT(ways); i++)
                if (strcmp(argv[0], ways[i].name) == 0)
                        return ways[i].take(argument(argc, argv, 1, 3000));
        return untried("no such way");
}

const struct attack attacks_books[] = {
        { "B28-unwaited", b28_unwaited },
        { NULL, NULL },
};
