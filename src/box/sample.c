/* SPDX-License-Identifier: MIT */
/*
 * Processor time by chance: at moments that nobody can foresee, how many processors work for the
 * tree? That needs no books (books.c), so whoever hides what he uses among what he has waited for
 * is found out all the same. It is an estimate; what counts of it is what it proves, which is less
 * than what the books of an honest tree have.
 */
#include <string.h>
#include <sys/syscall.h>

#include "box/init.h"

#define SURE 4 /* standard deviations */

static uint64_t due, weight;  /* when, and how much time one processor then stands for */
static uint64_t sum, squares; /* of what was found, in microseconds */

/* Half of the looks are at a moment by chance before they would have been, and a sample. A tree
 * that works all the time is then met by one in `interval` * 3 / 2. */
uint64_t sample_plan(uint64_t now, uint64_t interval)
{
        uint64_t chance = 0;

        weight = interval * 3 / 2;
        due = 0;
        if (syscall(SYS_getrandom, &chance, sizeof(chance), 0) != sizeof(chance))
                return now + interval;
        chance %= 2 * interval;
        if (chance < interval)
                due = now + chance;
        return now + MIN(chance, interval);
}

/* How many processors has this process, as its clock goes on between two looks at it? */
static unsigned works(pid_t pid, uint64_t clock_then, uint64_t then)
{
        uint64_t clock, passed;

        if (!still_clock(pid, &clock))
                return 1; /* it has just ended */
        passed = MAX(time_now() - then, 1U);
        return (unsigned)((clock - clock_then + passed / 2) / passed);
}

static bool is_runnable(struct child *child, pid_t pid)
{
        char path[32], text[512];
        const char *state;

        text_copy(text_number(path, (uint64_t)pid), 8, "/stat");
        if (watch_read(child->proc, path, text, sizeof(text)) <= 0)
                return false;
        state = strrchr(text, ')');
        return state && state[1] && state[2] == 'R';
}

/* Init itself has one of the processors: where the tree has all others, and somebody waits for one,
 * he would have had that. */
static bool is_in_the_way(struct child *child, const pid_t *pids, size_t n, unsigned working)
{
        unsigned runnable = 0;

        if (working == 0 || working + 1 != watch_processors())
                return false;
        for (size_t i = 0; i < n && runnable <= working; i++)
                runnable += is_runnable(child, pids[i]);
        return runnable > working;
}

void sample_take(struct child *child, uint64_t now)
{
        static pid_t pids[WATCH_PROCESSES_MAX];
        static uint64_t clocks[WATCH_PROCESSES_MAX], times[WATCH_PROCESSES_MAX];
        uint64_t found;
        size_t n;
        unsigned working = 0;

        if (due == 0 || now < due)
                return;
        due = 0;
        n = watch_list(child, pids, WATCH_PROCESSES_MAX);
        for (size_t i = 0; i < n; i++) {
                times[i] = time_now();
                if (!still_clock(pids[i], &clocks[i]))
                        clocks[i] = 0;
        }
        for (size_t i = 0; i < n; i++)
                if (clocks[i] > 0 && !holder_is(child, pids[i]))
                        working += works(pids[i], clocks[i], times[i]);
        working = MIN(working, watch_processors());
        working += is_in_the_way(child, pids, n, working);
        found = weight * working / 1000;
        sum += found;
        squares += found * found;
}

static uint64_t root_of(uint64_t square)
{
        uint64_t root = 0;

        for (uint64_t bit = 1ULL << 31; bit > 0; bit >>= 1)
                if ((root + bit) * (root + bit) <= square)
                        root += bit;
        return root;
}

uint64_t sample_proven(void)
{
        uint64_t doubt = SURE * root_of(squares);

        return (sum - MIN(sum, doubt)) * 1000;
}
