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

#include "box/guard.h"
#include "box/init.h"

#define AREA_COST 256 /* bytes, with its part of the tree in which it is found */
#define AREAS_FREE 4096
#define ANCESTOR_COST 64 /* of an area, for each process that it was inherited from */
#define ANCESTORS_MOST 256
#define WATCH_COST 192
#define WATCHES_SHARE 16 /* of those that the kernel lets a user have: one part of so many */
#define LINE_COST                                                                                  \
        256 /* of what a set of them is told to be, in each file that was opened for it            \
             */
#define FILTER_COST (128 * KIB) /* as long as it may be, as it came and as it is run */
#define FILTERS_BOX 2           /* of a box, in each thread */
#define FILTERS_FREE 32
#define LOCK_COST 256
#define FLIGHT_COST (256 * KIB) /* of a descriptor on its way, which may be a text of /proc */
#define FLIGHT_FREE 64
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
        uint64_t flight;     /* descriptors on their way */
};

/* Of a process that is closed to init, each descriptor may be a set that has all others. */
static void count_watches(struct watches *watches, int process, bool own, uint64_t most)
{
        static const char set[] = "anon_inode:[eventpoll]";
        char room[2048], link[64], path[40];
        _cleanup_fd_ int directory = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        uint64_t found;
        long n;

        if (directory < 0 && errno == EACCES)
                watches->n += own ? 0 : watch_descriptors(process) * watch_descriptors(process);
        while (directory >= 0 && watches->n < most &&
               (n = syscall(SYS_getdents64, directory, room, sizeof(room))) > 0)
                for (long at = 0; at < n;) {
                        struct entry *entry = (struct entry *)(room + at);
                        ssize_t length = readlinkat(directory, entry->name, link, sizeof(link) - 1);

                        at += entry->length;
                        link[MAX(length, 0)] = '\0';
                        watches->texts += link[0] == '/' && strstr(link, "/fdinfo/");
                        if (strncmp(link, "socket:[", 8) == 0)
                                watches->flight += pipes_in_flight(process, entry->name);
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

/* What the kernel lets a user have is for his other programs as well: a box has a share of it. */
static uint64_t watches_allowed(struct child *child)
{
        static uint64_t allowed;
        char text[32] = "";
        uint64_t most = 0;

        if (allowed > 0)
                return allowed;
        if (watch_read(child->proc, "sys/fs/epoll/max_user_watches", text, sizeof(text)) > 0)
                for (const char *at = text; *at >= '0' && *at <= '9'; at++)
                        most = most * 10 + (uint64_t)(*at - '0');
        return allowed = most > 0 ? MAX(most / WATCHES_SHARE, 1U) : UINT64_MAX;
}

/* ---- Areas and who they were inherited from ---- */

static struct process {
        pid_t pid, parent;
        uint64_t stack; /* where it began: the same for all that were forked without an exec */
        uint64_t areas;
        const struct process *above; /* its parent, if that is one of them */
} processes[WATCH_PROCESSES_MAX];

static void read_process(struct process *process, int directory, pid_t pid)
{
        char text[1024];
        const char *at;
        unsigned field = 2;

        *process = (struct process){ .pid = pid };
        if (watch_read(directory, "stat", text, sizeof(text)) <= 0 || !(at = strrchr(text, ')')))
                return;
        for (at++; *at && field < 28; at++) {
                field += *at == ' ';
                if (*at != ' ' && field == 4)
                        process->parent = process->parent * 10 + (*at - '0');
        }
        for (; *at >= '0' && *at <= '9'; at++)
                process->stack = process->stack * 10 + (uint64_t)(*at - '0');
}

static void find_parents(size_t n)
{
        for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < n && !processes[i].above; j++)
                        if (processes[j].pid == processes[i].parent)
                                processes[i].above = &processes[j];
}

/* From how many processes has it inherited its areas? Each of them is remembered with each area.
 * Where some have ended that is not known: as many as there are of its kind, at most. */
static uint64_t ancestors(const struct child *child, const struct process *process, size_t n)
{
        const struct process *first = process;
        uint64_t found = 0, alike = 0;

        for (; found < ANCESTORS_MOST && first->above && first->above->stack == first->stack;
             first = first->above)
                found++;
        if (first->above || first->pid == child->main)
                return found;
        for (size_t i = 0; i < n; i++)
                alike += processes[i].stack == process->stack;
        return MAX(found, alike - 1);
}

static uint64_t held_by_areas(const struct child *child, size_t n)
{
        uint64_t sum = 0, free = AREAS_FREE;

        find_parents(n);
        for (size_t i = 0; i < n; i++) {
                uint64_t areas = processes[i].areas, freed = MIN(areas, free);

                free -= freed;
                sum += (areas - freed) * AREA_COST;
                if (areas > freed)
                        sum += areas * ANCESTOR_COST * ancestors(child, &processes[i], n);
        }
        return sum;
}

static uint64_t count(struct child *child, uint64_t limit)
{
        static pid_t pids[WATCH_PROCESSES_MAX];
        size_t n = watch_list(child, pids, WATCH_PROCESSES_MAX), seen = 0;
        struct watches watches = { 0 };
        uint64_t allowed = watches_allowed(child), areas = 0, filters = 0;
        uint64_t sum = held_by_locks(child, limit);
        uint64_t most_areas = limit / AREA_COST + AREAS_FREE;
        char name[24];

        for (size_t i = 0; i < n && sum <= limit && areas < most_areas; i++) {
                _cleanup_fd_ int process = -1;

                text_number(name, (uint64_t)pids[i]);
                process = openat(child->proc, name, O_PATH | O_CLOEXEC);
                if (process < 0)
                        continue;
                read_process(&processes[seen], process, pids[i]);
                processes[seen].areas = count_lines(process, "maps", "", most_areas);
                areas += processes[seen++].areas;
                count_watches(&watches, process, guard_is_helper(pids[i]),
                              MIN(limit / WATCH_COST, allowed) + 1);
                filters += count_filters(process, limit / FILTER_COST + FILTERS_FREE);
                if (filters > FILTERS_FREE) {
                        sum += (filters - FILTERS_FREE) * FILTER_COST;
                        filters = FILTERS_FREE;
                }
        }
        if (watches.n > allowed)
                return limit + 1;
        if (areas > AREAS_FREE)
                sum += held_by_areas(child, seen);
        if (watches.flight > FLIGHT_FREE)
                sum += (watches.flight - FLIGHT_FREE) * FLIGHT_COST;
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
