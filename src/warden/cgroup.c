/* SPDX-License-Identifier: MIT */
#include "warden/cgroup.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "warden/cgroup_files.h"

#define CPU_PERIOD 100000 /* us; the kernel's own default */
#define TRIES_MAX 8       /* names that another warden has taken, or has swept away */

int cgroup_write(int directory, const char *name, const char *text)
{
        _cleanup_fd_ int fd = openat(directory, name, O_WRONLY | O_CLOEXEC);

        return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

int cgroup_write_number(int directory, const char *name, uint64_t value)
{
        char text[32];

        snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
        return cgroup_write(directory, name, text);
}

enum cgroup_means cgroup_means(const struct cgroup *cgroup)
{
        if (cgroup->fd < 0)
                return CGROUP_NONE;
        return cgroup->parent->v1    ? CGROUP_MEMORY
               : cgroup->parent->cpu ? CGROUP_SHARED
                                     : CGROUP_COUNTED;
}

/* ---- Limits ---- */

/* Just below the limit the kernel begins to take back what it only keeps for later, and slows down
 * whoever asks for more. The nearer the two are, the less it does so: at a sixty-fourth, a call
 * that is about to be killed is held up by a tenth of a second. */
static int limit_memory(int group, uint64_t limit)
{
        int r = cgroup_write_number(group, "memory.max", limit);

        if (r == 0)
                r = cgroup_write(group, "memory.oom.group", "1");
        if (r == 0)
                r = cgroup_write_number(group, "memory.high", limit - limit / 64);
        /* Absent on kernels without swap accounting, where there is none to forbid. */
        if (r == 0)
                (void)cgroup_write(group, "memory.swap.max", "0");
        return r;
}

/* With swap counted in, where that is counted. */
static int limit_memory_v1(int group, uint64_t limit)
{
        int r = cgroup_write_number(group, "memory.limit_in_bytes", limit);

        (void)cgroup_write_number(group, "memory.memsw.limit_in_bytes", limit);
        (void)cgroup_write(group, "memory.swappiness", "0");
        return r;
}

static int limit_cpus(int group, double cpus)
{
        char text[64];

        /* The kernel grants a millisecond at least. */
        snprintf(text, sizeof(text), "%.0f %d", MAX(cpus * CPU_PERIOD, 1000), CPU_PERIOD);
        return cgroup_write(group, "cpu.max", text);
}

static int set_limits(const struct cgroup *cgroup, const struct policy_limits *limits)
{
        uint64_t processes = limits->processes;
        int r = 0;

        if (cgroup->parent->v1)
                return limits->memory ? limit_memory_v1(cgroup->fd, limits->memory) : 0;
        if (limits->memory)
                r = limit_memory(cgroup->fd, limits->memory);
        /* Init counts and says so; this is for what is quicker than it. */
        if (r == 0 && processes)
                r = cgroup_write_number(cgroup->fd, "pids.max", processes + processes / 8 + 8);
        if (r == 0 && limits->cpus > 0 && cgroup->parent->cpu)
                r = limit_cpus(cgroup->fd, limits->cpus);
        return r;
}

static int apply(const struct cgroup *cgroup, const struct policy_limits *limits, cbx_error *error)
{
        int r = cgroup->fd < 0 ? 0 : set_limits(cgroup, limits);

        if (r < 0)
                return error_set(error, r, "cgroup", "cannot set the limits of a control group: %s",
                                 strerror(-r));
        return 0;
}

/* ---- A group ---- */

/* A name of our own and a lock on it; another may sweep it away between the two. */
static int make(struct cgroup *cgroup, struct cgroup_parent *parent)
{
        static unsigned serial;
        struct stat st;
        int fd;

        snprintf(cgroup->name, sizeof(cgroup->name), CGROUP_NAME, parent->owner, serial++);
        if (mkdirat(parent->fd, cgroup->name, 0755) < 0)
                return -errno;
        fd = openat(parent->fd, cgroup->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (flock(fd, LOCK_EX | LOCK_NB) < 0 ||
            fstatat(parent->fd, cgroup->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
                base_close(fd);
                return -EEXIST;
        }
        cgroup->fd = fd;
        cgroup->parent = parent;
        parent->live++;
        return 0;
}

int cgroup_open(struct cgroup *cgroup, struct cgroup_parent *parent,
                const struct policy_limits *limits, cbx_error *error)
{
        int r = -EEXIST;

        *cgroup = (struct cgroup)CGROUP_INIT;
        if (parent->fd < 0)
                return 0;
        if (parent->litter)
                cgroup_parent_sweep(parent);
        for (int i = 0; i < TRIES_MAX && (r == -EEXIST || r == -ENOENT); i++)
                r = make(cgroup, parent);
        if (r < 0) /* the host has a bound on groups: the report says that there was none */
                return 0;
        r = apply(cgroup, limits, error);
        if (r < 0)
                cgroup_close(cgroup);
        return r;
}

int cgroup_adopt(const struct cgroup *cgroup, int pidfd)
{
        _cleanup_free_ char *text = NULL;
        char path[64];
        const char *pid;
        size_t length;
        int r;

        if (cgroup->fd < 0)
                return 0;
        snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
        r = file_read(AT_FDCWD, path, 4 * KIB, &text, &length);
        if (r < 0)
                return r;
        pid = strstr(text, "\nPid:\t");
        if (!pid || atoi(pid + 6) <= 0)
                return -ESRCH;
        return cgroup_write_number(cgroup->fd, "cgroup.procs", strtoull(pid + 6, NULL, 10));
}

/* ---- Usage ---- */

/* The number after "key " in a file of such lines. */
static uint64_t find_key(const char *text, const char *key)
{
        size_t n = strlen(key);

        for (const char *line = text; line && *line; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (strncmp(line, key, n) == 0 && line[n] == ' ')
                        return strtoull(line + n, NULL, 10);
        }
        return 0;
}

static uint64_t read_number(int group, const char *name)
{
        _cleanup_free_ char *text = NULL;
        size_t length;

        return file_read(group, name, 64, &text, &length) == 0 ? strtoull(text, NULL, 10) : 0;
}

static void read_cpu(int group, uint64_t ret[2])
{
        _cleanup_free_ char *text = NULL;
        size_t length;

        ret[0] = ret[1] = 0;
        if (file_read(group, "cpu.stat", 16 * KIB, &text, &length) < 0)
                return;
        ret[0] = find_key(text, "user_usec") * 1000;
        ret[1] = find_key(text, "system_usec") * 1000;
}

/* The kernel notes each kill for want of memory, but "oom" only where the limit is this group's
 * own; without it the whole host had no more, or a group above this one. Version 1 has no such
 * note, but who was killed for this limit had reached it. */
static void read_events(int group, bool v1, struct cgroup_usage *usage)
{
        _cleanup_free_ char *text = NULL;
        uint64_t limit = v1 ? read_number(group, "memory.limit_in_bytes") : 0;
        size_t length;
        bool killed, own;

        if (file_read(group, v1 ? "memory.oom_control" : "memory.events", 16 * KIB, &text,
                      &length) < 0)
                return;
        killed = find_key(text, "oom_kill") > 0;
        own = v1 ? usage->memory_peak >= limit - limit / 64 : find_key(text, "oom") > 0;
        usage->out_of_memory = killed && own;
        usage->host_out_of_memory = killed && !own;
        /* Before Linux 5.19 the peak is not noted; but then it was this. */
        if (usage->out_of_memory && usage->memory_peak == 0)
                usage->memory_peak = read_number(group, "memory.max");
}

void cgroup_read(const struct cgroup *cgroup, struct cgroup_usage *ret)
{
        uint64_t cpu[2];

        *ret = (struct cgroup_usage){ 0 };
        if (cgroup->fd < 0)
                return;
        ret->memory_peak = read_number(cgroup->fd, cgroup->parent->v1 ? "memory.max_usage_in_bytes"
                                                                      : "memory.peak");
        ret->processes_peak = read_number(cgroup->fd, "pids.peak");
        read_cpu(cgroup->fd, cpu);
        ret->cpu_user = cpu[0] - MIN(cpu[0], cgroup->cpu_before[0]);
        ret->cpu_system = cpu[1] - MIN(cpu[1], cgroup->cpu_before[1]);
        read_events(cgroup->fd, cgroup->parent->v1, ret);
}

int cgroup_begin(struct cgroup *cgroup, const struct policy_limits *limits, cbx_error *error)
{
        if (cgroup->fd >= 0)
                read_cpu(cgroup->fd, cgroup->cpu_before);
        return apply(cgroup, limits, error);
}

void cgroup_close(struct cgroup *cgroup)
{
        if (cgroup->fd < 0)
                return;
        (void)cgroup_write(cgroup->fd, "cgroup.kill", "1");
        base_close(cgroup->fd);
        cgroup->parent->live--;
        if (unlinkat(cgroup->parent->fd, cgroup->name, AT_REMOVEDIR) < 0 && errno == EBUSY)
                cgroup->parent->litter = true;
        *cgroup = (struct cgroup)CGROUP_INIT;
}
