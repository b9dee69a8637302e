/* SPDX-License-Identifier: MIT */
/* Fence: limits that the kernel keeps by itself. What a tree may use as a whole is watch.c's. */
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "box/child.h"

/* Lower one limit; one that is lower already stays. */
static int lower(struct child *child, int resource, rlim_t value)
{
        struct rlimit limit;

        if (syscall(SYS_prlimit64, 0, resource, NULL, &limit) < 0)
                return step_failed(child, "read a limit", NULL, errno);
        limit.rlim_max = MIN(limit.rlim_max, value);
        limit.rlim_cur = MIN(limit.rlim_cur, limit.rlim_max);
        if (syscall(SYS_prlimit64, 0, resource, &limit, NULL) < 0)
                return step_failed(child, "set a limit", NULL, errno);
        return 0;
}

/* Most of these the kernel counts in user namespaces, and what all below one of them may use is
 * what its maker could: a zygote's own limit would be one for all its calls together. */
static bool counts_in_boxes(int resource)
{
        return resource == RLIMIT_NPROC || resource == RLIMIT_SIGPENDING ||
               resource == RLIMIT_MSGQUEUE || resource == RLIMIT_MEMLOCK || resource == RLIMIT_CPU;
}

#define OTHERS 256 /* that the user may start while the box is there */

/* How many processes and threads there are on the host, from /proc/loadavg: "0.1 0.2 0.3 1/456
 * 789". Those of one user cannot be more, and a look at each would take too long. */
static rlim_t tasks_of_host(void)
{
        _cleanup_fd_ int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
        char text[128];
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        const char *at;
        rlim_t value = 0;

        text[MAX(n, 0)] = '\0';
        at = strchr(text, '/');
        for (at = at ? at + 1 : ""; *at >= '0' && *at <= '9'; at++)
                value = value * 10 + (rlim_t)(*at - '0');
        return value ? value : 4096;
}

int box_set_limits(struct child *child, const struct plan_rlimit *limits, size_t n)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < n; i++) {
                int resource = limits[i].resource;
                rlim_t value = limits[i].value;

                /* What counts for each box that is forked from a zygote is not for it to keep. */
                if (child->zygote && counts_in_boxes(resource))
                        continue;
                /* By this limit the kernel also bounds what all boxes of a user have in flight: the
                 * most that a call can must not keep boxes of other zygotes from being forked. */
                if (child->zygote && resource == RLIMIT_NOFILE)
                        value = 2 * value + 1024;
                if (child->plan->caged && resource == RLIMIT_NPROC)
                        continue; /* what there is counts when the program starts, see below */
                r = lower(child, resource, value);
        }
        return r;
}

static rlim_t processes_of(const struct plan_rlimit *limits, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (limits[i].resource == RLIMIT_NPROC)
                        return limits[i].value;
        return RLIM_INFINITY;
}

int box_limit_processes(struct child *child)
{
        rlim_t of_plan = processes_of(child->plan->rlimits, child->plan->n_rlimits);
        rlim_t of_call = processes_of(child->page->spec.rlimits, child->page->spec.n_rlimits);
        rlim_t value = MIN(of_plan, of_call);

        if (!child->plan->caged || value == RLIM_INFINITY)
                return 0;
        return lower(child, RLIMIT_NPROC, value + tasks_of_host() + OTHERS);
}
