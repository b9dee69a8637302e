/* SPDX-License-Identifier: MIT */
/*
 * Processor time that is in nobody's books. When a process ends, the kernel adds its time to that
 * of who waits for it; but a child of a process that ignores SIGCHLD, or has set SA_NOCLDWAIT, is
 * waited for by nobody, and its time is lost. So init sees to it whether there is such a process:
 * one that ignores the signal says so in its `stat`; of one that has set the flag, a child is gone
 * and the page faults that it was seen with are not among those of the children that were waited
 * for. (These are whole numbers, which times in /proc are not.)
 *
 * While there is one, what may be lost is what counts: between two looks, which are close to each
 * other then, as much as the processes that have ended meanwhile can have used of the processors,
 * less what is in the books.
 */
#include <signal.h>
#include <string.h>

#include "box/init.h"

#define KNOWN_MAX 256 /* processes that are seen to, of those that ignore nothing */
#define CAUGHT_FOR NSEC_PER_SEC
#define CREDIT_MOST (100 * NSEC_PER_MSEC) /* the books are kept in hundredths of a second */

struct known {
        pid_t pid, parent;
        uint64_t faults, faults_waited;
        uint64_t clock;
};

static struct page {
        struct known all[KNOWN_MAX];
        unsigned n;
} pages[2], *last = &pages[0], *now_seen = &pages[1];
static bool ignored,
        ignores_now;          /* is there one who says so: when it was looked at last, and now */
static uint64_t caught_until; /* one who does not was caught not long ago */

/* "7 (name) S 1 ...": a field, counted from 1; the first that is asked for is the third. */
static uint64_t stat_field(const char **at, unsigned *have, unsigned wanted)
{
        uint64_t value = 0;

        for (; *have < wanted && **at; (*at)++)
                *have += **at == ' ';
        for (; **at >= '0' && **at <= '9'; (*at)++)
                value = value * 10 + (uint64_t)(**at - '0');
        return value;
}

static bool read_known(struct known *known, const char *stat, bool *ret_ignores)
{
        const char *at = strrchr(stat, ')');
        unsigned have = 2;

        if (!at)
                return false;
        known->pid = 0;
        for (const char *digit = stat; *digit >= '0' && *digit <= '9'; digit++)
                known->pid = known->pid * 10 + (*digit - '0');
        at++;
        known->parent = (pid_t)stat_field(&at, &have, 4);
        known->faults = stat_field(&at, &have, 10);
        known->faults_waited = stat_field(&at, &have, 11);
        *ret_ignores = stat_field(&at, &have, 33) >> (SIGCHLD - 1) & 1;
        return true;
}

void books_add(const char *stat)
{
        struct known known;
        bool ignores;

        if (!read_known(&known, stat, &ignores))
                return;
        ignores_now |= ignores;
        if (!still_clock(known.pid, &known.clock))
                known.clock = 0;
        if (now_seen->n < KNOWN_MAX)
                now_seen->all[now_seen->n++] = known;
}

static const struct known *find(const struct page *page, pid_t pid)
{
        for (unsigned i = 0; i < page->n; i++)
                if (page->all[i].pid == pid)
                        return &page->all[i];
        return NULL;
}

/* Faults of the children of a process that were there and are not. */
static uint64_t faults_gone(pid_t parent)
{
        uint64_t sum = 0;

        for (unsigned i = 0; i < last->n; i++)
                if (last->all[i].parent == parent && !find(now_seen, last->all[i].pid))
                        sum += last->all[i].faults + last->all[i].faults_waited;
        return sum;
}

/* Has a child of this process gone without having been waited for? It is asked anew: the child may
 * have ended after its parent was looked at. Who was found to be gone was in the books by then. */
static bool has_lost(struct child *child, const struct known *before)
{
        uint64_t gone = faults_gone(before->pid);
        struct known again;
        char stat[1024], path[32];
        bool ignores;

        if (gone == 0)
                return false;
        text_copy(text_number(path, (uint64_t)before->pid), 8, "/stat");
        return watch_read(child->proc, path, stat, sizeof(stat)) > 0 &&
               read_known(&again, stat, &ignores) && again.pid == before->pid &&
               again.faults_waited < before->faults_waited + gone;
}

static void compare(struct child *child, uint64_t now)
{
        /* Beyond what is known, who is missing may only have found no room. */
        for (unsigned i = 0; now_seen->n < KNOWN_MAX && i < last->n; i++)
                if (find(now_seen, last->all[i].pid) && has_lost(child, &last->all[i])) {
                        caught_until = now + CAUGHT_FOR;
                        break;
                }
}

/* Can somebody have been started and have ended? Then one of those who are there has run. Without a
 * pid namespace the numbers that were given out are no sign of it: they are the host's. */
static bool has_moved(void)
{
        if (now_seen->n != last->n || now_seen->n == KNOWN_MAX)
                return true;
        for (unsigned i = 0; i < now_seen->n; i++)
                if (now_seen->all[i].pid != last->all[i].pid || now_seen->all[i].clock == 0 ||
                    now_seen->all[i].clock != last->all[i].clock)
                        return true;
        return false;
}

static uint64_t then, pid_then, tasks_then, booked_then;

void books_rest(uint64_t now)
{
        then = now;
}

bool books_suspect(uint64_t now)
{
        return ignored || now < caught_until;
}

uint64_t books_lost(struct child *child, uint64_t booked, uint64_t tasks, uint64_t now)
{
        static uint64_t lost, credit;
        uint64_t pid = still_last_pid(child), processors = watch_processors(), ended, most,
                 in_books;
        struct page *swap = last;

        compare(child, now);
        ignored |= ignores_now; /* one who has come meanwhile, or gone */
        /* Where numbers begin again, or are the host's, that is as many as there can be. */
        ended = pid < pid_then
                        ? processors
                        : tasks_then + (pid - pid_then) - MIN(tasks, tasks_then + (pid - pid_then));
        if (then > 0 && books_suspect(now) && has_moved()) {
                most = (now - then) * MIN(ended, processors) + booked_then;
                in_books = booked + credit;
                lost += most - MIN(most, in_books);
                credit = MIN(in_books - MIN(most, in_books), CREDIT_MOST);
        }
        then = now;
        pid_then = pid;
        tasks_then = tasks;
        booked_then = booked;
        last = now_seen;
        now_seen = swap;
        now_seen->n = 0;
        ignored = ignores_now;
        ignores_now = false;
        return lost;
}
