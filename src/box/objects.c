/* SPDX-License-Identifier: MIT */
/*
 * Small things that the kernel keeps for a tree in large numbers: mapped areas, which take memory
 * though nothing of them was ever touched, and what sets of epoll(7) watch. To count them takes
 * longer than a look should, so that is done now and then, and not beyond what the limit allows.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "box/init.h"

#define AREA_COST 256 /* bytes, with its part of the tree in which it is found */
#define AREAS_FREE 4096
#define WATCH_COST 192
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

static uint64_t count_watches(int process, uint64_t most)
{
        static const char set[] = "anon_inode:[eventpoll]";
        char room[2048], link[64], path[40];
        _cleanup_fd_ int directory = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        uint64_t found = 0;
        long n;

        while (directory >= 0 && found < most &&
               (n = syscall(SYS_getdents64, directory, room, sizeof(room))) > 0)
                for (long at = 0; at < n;) {
                        struct entry *entry = (struct entry *)(room + at);
                        ssize_t length = readlinkat(directory, entry->name, link, sizeof(link) - 1);

                        at += entry->length;
                        if (length != sizeof(set) - 1 || memcmp(link, set, (size_t)length) != 0)
                                continue;
                        text_copy(path, sizeof(path), "fdinfo/");
                        text_copy(path + 7, sizeof(path) - 7, entry->name);
                        found += count_lines(process, path, "tfd:", most);
                }
        return found;
}

static uint64_t count(struct child *child, uint64_t limit)
{
        static pid_t pids[WATCH_PROCESSES_MAX];
        size_t n = watch_list(child, pids, WATCH_PROCESSES_MAX);
        uint64_t areas = 0, sum = 0;
        char name[24];

        for (size_t i = 0; i < n && sum <= limit; i++) {
                _cleanup_fd_ int process = -1;

                text_number(name, (uint64_t)pids[i]);
                process = openat(child->proc, name, O_PATH | O_CLOEXEC);
                if (process < 0)
                        continue;
                areas += count_lines(process, "maps", "", limit / AREA_COST + AREAS_FREE);
                sum += count_watches(process, limit / WATCH_COST) * WATCH_COST;
                if (areas > AREAS_FREE) {
                        sum += (areas - AREAS_FREE) * AREA_COST;
                        areas = AREAS_FREE;
                }
        }
        return sum;
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
