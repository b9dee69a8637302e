/* SPDX-License-Identifier: MIT */
/*
 * Small things that the kernel keeps for a tree in large numbers: mapped areas, which take memory
 * though nothing of them was ever touched, what sets of epoll(7) watch, filters of the program's
 * own, of which each thread may have others, and locks on files. To count them takes
 * longer than a look should, so that is done now and then, and not beyond what the limit allows.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "box/init.h"

#define AREA_COST 256 /* bytes, with its part of the tree in which it is found */
#define AREAS_FREE 4096
#define WATCH_COST 192
#define LINE_COST                                                                                  \
        256 /* of what a set of them is told to be, in each file that was opened for it            \
             */
#define FILTER_COST (128 * KIB) /* as long as it may be, as it came and as it is run */
#define FILTERS_BOX 2           /* of a box, in each thread */
#define FILTERS_FREE 32
#define LOCK_COST 256
#define LOCKS_MAX 32768
#define PAUSE (50 * NSEC_PER_MSEC)
#define SHARE 8 /* of the time goes into counting at most: one part of so many */

/* How many lines of a file begin with this, as far as `most`. */
static uint64_t count_lines(int directory, const char *name, const char *with, uint64_t most)
{
        static char room[65536];
        _cleanup_fd_ int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
        size_t length = strlen(with), matched = 0;
        uint64_t n = 0;
        ssize_t got;

        while (fd >= 0 && n < most && (got = read(fd, room, sizeof(room))) > 0)
                for (ssize_t i = 0; i < got; i++) {
                        if (room[i] == '\n') {
                                n += matched == length;
                                matched = 0;
                        } else if (matched < length) {
                                matched = room[i] == with[matched] ? matched + 1 : length + 1;
                        }
                }
        return n;
}

struct watches {
        uint64_t n, largest; /* in all sets, and in one of them */
        uint64_t texts;      /* open files of a kind that tells of a set */
};

static void count_watches(struct watches *watches, int process, uint64_t most)
{
        static const char set[] = "anon_inode:[eventpoll]";
        char room[2048], link[64], path[40];
        _cleanup_fd_ int directory = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        uint64_t found;
        long n;

        while (directory >= 0 && watches->n < most &&
               (n = syscall(SYS_getdents64, directory, room, sizeof(room))) > 0)
                for (long at = 0; at < n;) {
                        struct entry *entry = (struct entry *)(room + at);
                        ssize_t length = readlinkat(directory, entry->name, link, sizeof(link) - 1);

                        at += entry->length;
                        link[MAX(length, 0)] = '\0';
                        watches->texts += link[0] == '/' && strstr(link, "/fdinfo/");
                        if (length != sizeof(set) - 1 || memcmp(link, set, (size_t)length) != 0)
                                continue;
                        text_copy(path, sizeof(path), "fdinfo/");
                        text_copy(path + 7, sizeof(path) - 7, entry->name);
                        found = count_lines(process, path, "tfd:", most);
                        watches->n += found;
                        watches->largest = MAX(watches->largest, found);
                }
}

/* "Seccomp_filters:\t3" of a thread, those of the box left out. */
static uint64_t filters_of(int tasks, const char *thread)
{
        static const char label[] = "\nSeccomp_filters:\t";
        char room[4096], path[32];
        _cleanup_fd_ int fd = -1;
        const char *at;
        uint64_t n = 0;
        ssize_t got;

        text_copy(path, sizeof(path), thread);
        text_copy(path + strlen(path), sizeof(path) - strlen(path), "/status");
        fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
        got = fd < 0 ? -1 : read(fd, room, sizeof(room) - 1);
        room[MAX(got, 0)] = '\0';
        at = strstr(room, label);
        for (at = at ? at + strlen(label) : ""; *at >= '0' && *at <= '9'; at++)
                n = n * 10 + (uint64_t)(*at - '0');
        return n > FILTERS_BOX ? n - FILTERS_BOX : 0;
}

static uint64_t count_filters(int process, uint64_t most)
{
        char room[2048];
        _cleanup_fd_ int tasks = openat(process, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        uint64_t found = 0;
        long n;

        while (tasks >= 0 && found < most &&
               (n = syscall(SYS_getdents64, tasks, room, sizeof(room))) > 0)
                for (long at = 0; at < n;) {
                        struct entry *entry = (struct entry *)(room + at);

                        at += entry->length;
                        if (entry->name[0] >= '0' && entry->name[0] <= '9')
                                found += filters_of(tasks, entry->name);
                }
        return found;
}

/* To tell of them takes the kernel as long as the square of their number, so there is an end: who
 * has more has too many. Without a pid namespace it tells of the locks of all. */
static uint64_t held_by_locks(struct child *child, uint64_t limit)
{
        uint64_t n = child->plan->caged ? 0 : count_lines(child->proc, "locks", "", LOCKS_MAX);

        return n >= LOCKS_MAX ? limit + 1 : n * LOCK_COST;
}

static uint64_t count(struct child *child, uint64_t limit)
{
        static pid_t pids[WATCH_PROCESSES_MAX];
        size_t n = watch_list(child, pids, WATCH_PROCESSES_MAX);
        struct watches watches = { 0 };
        uint64_t areas = 0, filters = 0, sum = held_by_locks(child, limit);
        char name[24];

        for (size_t i = 0; i < n && sum <= limit; i++) {
                _cleanup_fd_ int process = -1;

                text_number(name, (uint64_t)pids[i]);
                process = openat(child->proc, name, O_PATH | O_CLOEXEC);
                if (process < 0)
                        continue;
                areas += count_lines(process, "maps", "", limit / AREA_COST + AREAS_FREE);
                count_watches(&watches, process, limit / WATCH_COST);
                filters += count_filters(process, limit / FILTER_COST + FILTERS_FREE);
                if (filters > FILTERS_FREE) {
                        sum += (filters - FILTERS_FREE) * FILTER_COST;
                        filters = FILTERS_FREE;
                }
                if (areas > AREAS_FREE) {
                        sum += (areas - AREAS_FREE) * AREA_COST;
                        areas = AREAS_FREE;
                }
        }
        return sum + watches.n * WATCH_COST + watches.texts * watches.largest * LINE_COST;
}

uint64_t objects_held(struct child *child, uint64_t limit)
{
        static uint64_t next, held;
        uint64_t now = time_now(), used = watch_clock();

        if (limit == 0)
                return 0;
        child->stale |= now < next || next == 0;
        if (now < next)
                return held;
        held = next == 0 ? 0 : count(child, limit); /* what has just begun has none */
        next = MAX(watch_pause(now, watch_clock() - used, SHARE), now + PAUSE);
        return held;
}
