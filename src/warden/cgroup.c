/* SPDX-License-Identifier: MIT */
#include "warden/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#define ROOT "/sys/fs/cgroup"
#define LEAF "callbox-warden" /* where the warden itself lives below a delegated group */

static int write_text(int directory, const char *name, const char *text)
{
        _cleanup_fd_ int fd = openat(directory, name, O_WRONLY | O_CLOEXEC);

        return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

static int write_number(int directory, const char *name, uint64_t value)
{
        char text[32];

        snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
        return write_text(directory, name, text);
}

/* Does a space-separated list hold a word? */
static bool has_word(const char *list, const char *word)
{
        size_t n = strlen(word);

        for (const char *at = list; (at = strstr(at, word)); at += n)
                if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\n' || !at[n]))
                        return true;
        return false;
}

static bool has_controllers(int directory, const char *name)
{
        _cleanup_free_ char *text = NULL;
        size_t length;

        return file_read(directory, name, 4 * KIB, &text, &length) == 0 &&
               has_word(text, "memory") && has_word(text, "pids");
}

/* The cgroup that this process is in, as a path below ROOT. */
static int own_path(char *room, size_t size)
{
        _cleanup_free_ char *text = NULL;
        size_t length;
        char *line, *end;

        if (file_read(AT_FDCWD, "/proc/self/cgroup", 64 * KIB, &text, &length) < 0)
                return -ENOENT;
        for (line = text; line && strncmp(line, "0::/", 4) != 0;) {
                line = strchr(line, '\n');
                line = line ? line + 1 : NULL;
        }
        if (!line)
                return -ENOENT;
        line += 3;
        end = strchr(line, '\n');
        if (end)
                *end = '\0';
        /* A warden that already moved into its leaf works in the group above it. */
        end = strrchr(line, '/');
        if (end && strcmp(end + 1, LEAF) == 0)
                *end = '\0';
        return snprintf(room, size, "%s%s", ROOT, line) < (int)size ? 0 : -ENAMETOOLONG;
}

/* Leave the leaf again and take it away. */
static void step_up(int group)
{
        (void)write_text(group, "cgroup.subtree_control", "-memory -pids");
        (void)write_text(group, "cgroup.procs", "0");
        (void)unlinkat(group, LEAF, AT_REMOVEDIR);
}

/* Controllers can be handed to children only by a group without processes (or by the root), so
 * the warden steps down into a leaf. Where others live beside it, that does not help. */
static int enable_controllers(int group)
{
        int r;

        if (has_controllers(group, "cgroup.subtree_control"))
                return 0;
        r = write_text(group, "cgroup.subtree_control", "+memory +pids");
        if (r != -EBUSY)
                return r;
        if (mkdirat(group, LEAF, 0755) < 0 && errno != EEXIST)
                return -errno;
        r = write_text(group, LEAF "/cgroup.procs", "0");
        if (r == 0)
                r = write_text(group, "cgroup.subtree_control", "+memory +pids");
        if (r < 0)
                step_up(group);
        return r;
}

/* The group below which calls get theirs, or -1. */
static int open_parent(void)
{
        char path[PATH_MAX];
        _cleanup_fd_ int group = -1;
        struct statfs fs;

        if (statfs(ROOT, &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC ||
            own_path(path, sizeof(path)) < 0 || access(path, W_OK) < 0)
                return -1;
        group = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (group < 0 || !has_controllers(group, "cgroup.controllers") ||
            enable_controllers(group) < 0)
                return -1;
        return TAKE_FD(group);
}

/* Groups of a warden that was killed are nobody's: its boxes ended with it. */
static void sweep(int parent)
{
        int fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *directory = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *entry;
        unsigned number;
        pid_t pid;

        if (!directory)
                base_close(fd);
        while (directory && (entry = readdir(directory)))
                if (sscanf(entry->d_name, "callbox-%d-%u", &pid, &number) == 2 &&
                    kill(pid, 0) < 0 && errno == ESRCH)
                        (void)unlinkat(parent, entry->d_name, AT_REMOVEDIR);
        if (directory)
                closedir(directory);
}

void cgroup_parent_open(struct cgroup_parent *parent)
{
        parent->fd = open_parent();
        if (parent->fd >= 0)
                sweep(parent->fd);
}

void cgroup_parent_close(struct cgroup_parent *parent)
{
        if (parent->fd >= 0 && faccessat(parent->fd, LEAF, F_OK, 0) == 0)
                step_up(parent->fd);
        parent->fd = base_close(parent->fd);
}

const char *cgroup_available(void)
{
        _cleanup_(cgroup_parent_close) struct cgroup_parent parent = CGROUP_PARENT_INIT;

        cgroup_parent_open(&parent);
        return parent.fd >= 0 ? "cgroup v2, own subtree" : NULL;
}

static int set_limits(int group, const struct policy_limits *limits)
{
        int r = 0;

        if (limits->memory) {
                r = write_number(group, "memory.max", limits->memory);
                if (r == 0)
                        r = write_text(group, "memory.oom.group", "1");
                /* Absent on kernels without swap accounting, where there is none to forbid. */
                if (r == 0)
                        (void)write_text(group, "memory.swap.max", "0");
        }
        if (r == 0 && limits->processes)
                r = write_number(group, "pids.max", limits->processes + limits->processes / 8 + 8);
        return r;
}

int cgroup_set_limits(const struct cgroup *cgroup, const struct policy_limits *limits,
                      cbx_error *error)
{
        int r = cgroup->fd < 0 ? 0 : set_limits(cgroup->fd, limits);

        if (r < 0)
                return error_set(error, r, "cgroup", "cannot set the limits of a control group: %s",
                                 strerror(-r));
        return 0;
}

int cgroup_open(struct cgroup *cgroup, const struct cgroup_parent *parent,
                const struct policy_limits *limits, cbx_error *error)
{
        static unsigned serial;
        int r;

        *cgroup = (struct cgroup)CGROUP_INIT;
        if (parent->fd < 0)
                return 0;
        snprintf(cgroup->name, sizeof(cgroup->name), "callbox-%d-%u", getpid(), serial++);
        if (mkdirat(parent->fd, cgroup->name, 0755) < 0)
                return 0;
        cgroup->parent = parent->fd;
        cgroup->fd = openat(parent->fd, cgroup->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (cgroup->fd < 0)
                r = error_set(error, -errno, "cgroup", "cannot open a control group: %s",
                              strerror(errno));
        else
                r = cgroup_set_limits(cgroup, limits, error);
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
        return write_number(cgroup->fd, "cgroup.procs", strtoull(pid + 6, NULL, 10));
}

/* The number after "key " in a file of such lines. */
static uint64_t read_key(int group, const char *name, const char *key)
{
        _cleanup_free_ char *text = NULL;
        size_t length, n = strlen(key);

        if (file_read(group, name, 16 * KIB, &text, &length) < 0)
                return 0;
        for (char *line = text; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (strncmp(line, key, n) == 0 && line[n] == ' ')
                        return strtoull(line + n, NULL, 10);
                if (!*line)
                        break;
        }
        return 0;
}

void cgroup_read(const struct cgroup *cgroup, struct cgroup_usage *ret)
{
        _cleanup_free_ char *peak = NULL;
        size_t length;

        *ret = (struct cgroup_usage){ 0 };
        if (cgroup->fd < 0)
                return;
        if (file_read(cgroup->fd, "memory.peak", 64, &peak, &length) == 0)
                ret->memory_peak = strtoull(peak, NULL, 10);
        ret->cpu_user = read_key(cgroup->fd, "cpu.stat", "user_usec") * 1000;
        ret->cpu_system = read_key(cgroup->fd, "cpu.stat", "system_usec") * 1000;
        ret->out_of_memory = read_key(cgroup->fd, "memory.events", "oom_kill") > 0;
}

void cgroup_close(struct cgroup *cgroup)
{
        if (cgroup->fd >= 0)
                (void)write_text(cgroup->fd, "cgroup.kill", "1");
        cgroup->fd = base_close(cgroup->fd);
        if (cgroup->parent >= 0)
                (void)unlinkat(cgroup->parent, cgroup->name, AT_REMOVEDIR);
        cgroup->parent = -1;
}
