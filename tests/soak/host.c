/* SPDX-License-Identifier: MIT */
#include "host.h"

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TREE_MAX 4096
#define BOX_DESCRIPTORS 8 /* that a waiting box costs its warden */

static ssize_t read_text(const char *path, char *room, size_t size)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        size_t at = 0;
        ssize_t n = -1;

        if (fd < 0)
                return -1;
        while (at < size - 1 && (n = read(fd, room + at, size - 1 - at)) > 0)
                at += (size_t)n;
        close(fd);
        room[at] = '\0';
        return n < 0 ? -1 : (ssize_t)at;
}

static void pause_ms(long milliseconds)
{
        struct timespec time = { .tv_nsec = milliseconds * 1000000 };

        nanosleep(&time, NULL);
}

/* ---- Processes ---- */

static bool read_process(const char *pid, struct host_process *ret)
{
        char path[300], text[1024], *name, *end;

        snprintf(path, sizeof(path), "/proc/%s/stat", pid);
        if (read_text(path, text, sizeof(text)) <= 0)
                return false;
        name = strchr(text, '(');
        end = strrchr(text, ')');
        if (!name || !end || end[1] != ' ')
                return false;
        *ret = (struct host_process){ .pid = (pid_t)strtol(text, NULL, 10),
                                      .state = end[2],
                                      .parent = (pid_t)strtol(end + 3, NULL, 10) };
        *end = '\0';
        snprintf(ret->name, sizeof(ret->name), "%s", name + 1);
        return true;
}

static enum host_role role_below(const struct host_process *parent,
                                 const struct host_process *process)
{
        switch (parent->role) {
        case HOST_WARDEN: /* the nursery, named or not yet; or an init that lost its maker or its
                           * mould, which has that one's name */
                return strcmp(process->name, "callbox-maker") == 0 ||
                                       strcmp(process->name, "callbox-mould") == 0
                               ? HOST_INIT
                               : HOST_NURSERY;
        case HOST_NURSERY:
                return HOST_MAKER;
        case HOST_MAKER: /* it makes boxes itself, named as it is, before it has a mould */
                return strcmp(process->name, "callbox-mould") == 0 ? HOST_MOULD : HOST_INIT;
        case HOST_MOULD:
                return HOST_INIT;
        default:
                return HOST_INSIDE;
        }
}

size_t host_tree(pid_t root, struct host_process *found, size_t room)
{
        static struct host_process all[65536];
        size_t n_all = 0, n = 0;
        DIR *proc = opendir("/proc");
        struct dirent *entry;

        while (proc && (entry = readdir(proc)))
                if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' &&
                    n_all < sizeof(all) / sizeof(all[0]) &&
                    read_process(entry->d_name, &all[n_all]))
                        n_all++;
        if (proc)
                closedir(proc);
        for (size_t i = 0; i < n_all && n < room; i++)
                if (all[i].pid == root) {
                        found[n] = all[i];
                        found[n++].role = HOST_WARDEN;
                }
        for (size_t parent = 0; parent < n; parent++)
                for (size_t i = 0; i < n_all && n < room; i++)
                        if (all[i].parent == found[parent].pid) {
                                found[n] = all[i];
                                found[n].role = role_below(&found[parent], &all[i]);
                                n++;
                        }
        return n;
}

int host_reap(double seconds, bool print)
{
        struct host_process left[64];
        size_t n;
        pid_t pid;

        for (double waited = 0; waited < seconds; waited += 0.002) {
                while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
                        ;
                if (pid < 0)
                        return 0;
                pause_ms(2);
        }
        n = host_tree(getpid(), left, sizeof(left) / sizeof(left[0]));
        for (size_t i = 1; print && i < n; i++)
                printf("left: %d %s, state %c, child of %d\n", left[i].pid, left[i].name,
                       left[i].state, left[i].parent);
        return (int)n - 1;
}

/* ---- Use ---- */

static long memory_of(pid_t pid, const char *label)
{
        char path[64], text[4096];
        const char *at;

        snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
        if (read_text(path, text, sizeof(text)) <= 0)
                return 0;
        at = strstr(text, label);
        return at ? strtol(at + strlen(label), NULL, 10) : 0;
}

int host_entries(const char *path)
{
        DIR *directory = opendir(path);
        int n = 0;

        while (directory && readdir(directory))
                n++;
        if (directory)
                closedir(directory);
        return n;
}

static int descriptors_of(pid_t pid)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/fd", pid);
        return host_entries(path);
}

int host_mounts(void)
{
        FILE *file = fopen("/proc/self/mountinfo", "re");
        int n = 0, c;

        while (file && (c = fgetc(file)) != EOF)
                n += c == '\n';
        if (file)
                fclose(file);
        return n;
}

/* Whoever lives has a lock on his, and an empty one goes when groups are looked for next. */
static bool is_left(const char *path)
{
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), list = -1;
        bool left = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
        char byte;

        if (left)
                list = openat(fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
        left = list >= 0 && read(list, &byte, 1) == 1;
        if (list >= 0)
                close(list);
        if (fd >= 0)
                close(fd);
        return left;
}

/* Directories of a name that callbox gives, and that nobody holds, however deep. */
static int count_cgroups(const char *path, int depth)
{
        DIR *directory = depth > 0 ? opendir(path) : NULL;
        struct dirent *entry;
        int n = 0;

        while (directory && (entry = readdir(directory))) {
                char below[1024];

                if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
                        continue;
                snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
                n += strncmp(entry->d_name, "callbox-", 8) == 0 && is_left(below);
                n += count_cgroups(below, depth - 1);
        }
        if (directory)
                closedir(directory);
        return n;
}

int host_cgroups(void)
{
        return count_cgroups("/sys/fs/cgroup", 8);
}

static void look(pid_t warden, struct host_use *use)
{
        static struct host_process tree[TREE_MAX];
        size_t n = host_tree(warden, tree, TREE_MAX);

        *use = (struct host_use){ 0 };
        for (size_t i = 0; i < n; i++) {
                use->zombies += tree[i].state == 'Z';
                use->boxes += tree[i].role == HOST_INIT;
                if (tree[i].role == HOST_WARDEN)
                        use->warden_kib = memory_of(tree[i].pid, "\nPrivate_Dirty:");
                if (tree[i].role == HOST_NURSERY || tree[i].role == HOST_MAKER ||
                    tree[i].role == HOST_MOULD)
                        use->others_kib += memory_of(tree[i].pid, "\nPss_Anon:");
                if (tree[i].role == HOST_WARDEN || tree[i].role == HOST_NURSERY)
                        use->descriptors += descriptors_of(tree[i].pid);
        }
        use->descriptors -= BOX_DESCRIPTORS * use->boxes;
        use->client_kib = (long)(mallinfo2().uordblks / 1024);
        use->own = descriptors_of(getpid());
        use->mounts = host_mounts();
        use->cgroups = host_cgroups();
}

bool host_measure(pid_t warden, struct host_use *ret)
{
        struct host_use before, now;

        look(warden, &before);
        for (int round = 0; round < 100; round++) {
                pause_ms(100);
                look(warden, &now);
                /* Twice the same: nothing is being made or cleared up. */
                if (now.boxes == before.boxes && now.descriptors == before.descriptors &&
                    now.zombies == 0) {
                        *ret = now;
                        return now.warden_kib > 0;
                }
                before = now;
        }
        *ret = now;
        return false;
}
