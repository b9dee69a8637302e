/* SPDX-License-Identifier: MIT */
/*
 * Is the tree as it was when it was looked at last? To take memory, to start a process or to use
 * the processor, a process that was there has to run, and then its clock goes on. So where no clock
 * has moved and no process or thread was started, there is nothing new to see; and asking costs a
 * fraction of a look. Most boxes that live long sleep.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "box/init.h"

/* Of the whole process, as clock_getcpuclockid(3) makes it. */
bool still_clock(pid_t pid, uint64_t *ret)
{
        struct timespec clock;

        if (syscall(SYS_clock_gettime, (clockid_t)(~(unsigned)pid << 3 | 2), &clock) < 0)
                return false;
        *ret = (uint64_t)clock.tv_sec * NSEC_PER_SEC + (uint64_t)clock.tv_nsec;
        return true;
}

/* The last pid that was given out in the box's own namespace: the last word of /proc/loadavg. */
uint64_t still_last_pid(const struct child *child)
{
        static int fd = -1; /* init's own: it is asked for many times */
        char text[128] = "", *at = text;
        uint64_t value = 0;

        if (fd < 0)
                fd = openat(child->proc, "loadavg", O_RDONLY | O_CLOEXEC);
        if (fd < 0 || pread(fd, text, sizeof(text) - 1, 0) <= 0)
                return 0;
        for (char *space = text; (space = strchr(space, ' ')); at = ++space)
                ;
        for (; *at >= '0' && *at <= '9'; at++)
                value = value * 10 + (uint64_t)(*at - '0');
        return value;
}

void still_begin(struct still *still, const struct child *child)
{
        *still = (struct still){ .last_pid = still_last_pid(child) };
}

void still_add(struct still *still, pid_t pid)
{
        if (still->n == STILL_MAX || !still_clock(pid, &still->clocks[still->n])) {
                still->last_pid = 0; /* too many to ask, or gone already */
                return;
        }
        still->pids[still->n++] = pid;
}

bool still_holds(const struct still *still, const struct child *child)
{
        if (still->n == 0 || still->last_pid == 0)
                return false;
        for (unsigned i = 0; i < still->n; i++) {
                uint64_t now;

                if (!still_clock(still->pids[i], &now) || now != still->clocks[i])
                        return false;
        }
        return still_last_pid(child) == still->last_pid;
}
