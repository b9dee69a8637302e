/* SPDX-License-Identifier: MIT */
#include "box/tree.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#define DEPTH_MAX 100000
#define PAUSE (2 * NSEC_PER_MSEC)
#define REAPED_MAX 4096
#define ROUNDS 16
#define NEWEST 128
#define DEEP_AFTER (700 * NSEC_PER_MSEC) /* until then the dead may be in the way */

static pid_t number(const char *text)
{
        pid_t value = 0;

        for (; *text >= '0' && *text <= '9'; text++)
                value = value * 10 + (*text - '0');
        return value;
}

/* The parent of a process, 0 where it cannot be told: the second field after the name, which may
 * hold anything. */
static pid_t parent_of(int proc, pid_t pid)
{
        char path[32], text[512];
        _cleanup_fd_ int fd = -1;
        const char *at;
        ssize_t n;

        text_copy(text_number(path, (uint64_t)pid), 8, "/stat");
        fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (n <= 0)
                return 0;
        text[n] = '\0';
        at = strrchr(text, ')');
        return at && strlen(at) > 4 ? number(at + 4) : 0;
}

bool tree_contains(int proc, pid_t pid, pid_t root)
{
        for (unsigned i = 0; pid > 1 && i < DEPTH_MAX; i++) {
                pid = parent_of(proc, pid);
                if (pid == root)
                        return true;
        }
        return false;
}

/* ---- Listing ---- */

struct list {
        int proc;
        pid_t *pids;
        size_t n, max;
};

/* Children of one thread: /proc/PID/task/TID/children. False: this kernel has no such file. */
static bool list_children_of_thread(struct list *list, int tasks, const char *thread)
{
        char path[40], text[4096];
        _cleanup_fd_ int fd = -1;
        pid_t pid = 0;
        ssize_t n;

        text_copy(path, 24, thread);
        text_copy(path + strlen(path), 12, "/children");
        fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return errno != ENOENT;
        while ((n = read(fd, text, sizeof(text))) > 0)
                for (ssize_t i = 0; i < n; i++) {
                        if (text[i] >= '0' && text[i] <= '9') {
                                pid = pid * 10 + (text[i] - '0');
                                continue;
                        }
                        if (pid > 0 && list->n < list->max)
                                list->pids[list->n++] = pid;
                        pid = 0;
                }
        return true;
}

static bool list_children(struct list *list, pid_t parent)
{
        char path[32], room[1024];
        _cleanup_fd_ int tasks = -1;
        bool known = true;
        long n;

        text_copy(text_number(path, (uint64_t)parent), 8, "/task");
        tasks = openat(list->proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        while (tasks >= 0 && (n = syscall(SYS_getdents64, tasks, room, sizeof(room))) > 0)
                for (long at = 0; at < n;) {
                        struct entry *entry = (struct entry *)(room + at);

                        at += entry->length;
                        if (entry->name[0] != '.')
                                known &= list_children_of_thread(list, tasks, entry->name);
                }
        return known;
}

/* The slow way: ask every process of the host for its ancestors. */
static void list_by_parents(struct list *list, pid_t root)
{
        _cleanup_fd_ int all = openat(list->proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char room[4096];
        long n;

        list->n = 0;
        while (all >= 0 && (n = syscall(SYS_getdents64, all, room, sizeof(room))) > 0)
                for (long at = 0; at < n;) {
                        struct entry *entry = (struct entry *)(room + at);
                        pid_t pid = number(entry->name);

                        at += entry->length;
                        if (pid > 1 && list->n < list->max && tree_contains(list->proc, pid, root))
                                list->pids[list->n++] = pid;
                }
}

size_t tree_list(int proc, pid_t root, pid_t *pids, size_t max)
{
        struct list list = { .proc = proc, .pids = pids, .max = max };
        bool known = list_children(&list, root);

        for (size_t i = 0; known && i < list.n; i++)
                (void)list_children(&list, list.pids[i]);
        if (!known)
                list_by_parents(&list, root);
        return list.n;
}

/* ---- The end ---- */

/* Kill one that was listed, unless its number is somebody else's by now: what a pidfd stands for
 * does not change, and only then is asked whose it is. */
static void kill_listed(int proc, pid_t pid, pid_t root)
{
        _cleanup_fd_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

        if (pidfd >= 0 && tree_contains(proc, pid, root))
                (void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

/* Kill a child that is not reaped yet, and the group in which it is: all of that at once, a fork
 * that is under way included. In another session than this process's there is nobody but the box's.
 */
static void kill_group_of(pid_t pid, pid_t *last)
{
        pid_t group = getpgid(pid);

        (void)kill(pid, SIGKILL);
        if (group <= 1 || group == *last || getsid(pid) == getsid(0))
                return;
        (void)kill(-group, SIGKILL);
        *last = group;
}

/* Children of this process: their numbers are theirs until they are reaped here. A storm in which
 * each forks once and exits consists of nothing else. Where the kernel reaps them, a group may be
 * somebody else's by now, and it is a matter of being faster: so after all were met once, only the
 * newest are, who come last. */
static bool kill_children(struct list *list, pid_t root, bool pinned)
{
        bool known = true;

        for (int i = 0; known && i < ROUNDS; i++) {
                pid_t last = 0;

                list->n = 0;
                known = list_children(list, root);
                for (size_t j = list->n, least = i > 0 && j > NEWEST ? j - NEWEST : 0; j-- > least;)
                        if (pinned)
                                kill_group_of(list->pids[j], &last);
                        else
                                (void)kill(list->pids[j], SIGKILL);
        }
        return known;
}

void tree_kill_groups(int proc, pid_t parent)
{
        static pid_t pids[TREE_MAX];
        struct list list = { .proc = proc, .pids = pids, .max = TREE_MAX };
        pid_t last = 0;

        (void)list_children(&list, parent);
        for (size_t i = list.n, least = i > NEWEST ? i - NEWEST : 0; i-- > least;)
                if (parent_of(proc, list.pids[i]) == parent) /* not reaped: the group is its own */
                        kill_group_of(list.pids[i], &last);
}

/* One pass. From ABI 6 on Landlock lets this process signal nobody but those below it, and the
 * kernel reaches all of them at once: a fork that is under way is given up. Without that, children
 * are killed, and those that they have made come up to this process when they are gone, for the
 * next pass. A tree that grows downwards as fast is met by killing all that is found in it; each
 * before its children are looked for, so that it makes no more. */
static void kill_all(struct child *child, bool deep, bool pinned)
{
        static pid_t pids[TREE_MAX];
        struct list list = { .proc = child->proc, .pids = pids, .max = TREE_MAX };
        pid_t root = getpid();
        size_t children;
        bool known;

        if (child->scoped) {
                (void)kill(-1, SIGKILL);
                return;
        }
        known = kill_children(&list, root, pinned);
        if (!known)
                list_by_parents(&list, root);
        children = known ? list.n : 0;
        for (size_t i = 0; i < list.n && (deep || !known); i++) {
                if (i >= children)
                        kill_listed(child->proc, list.pids[i], root);
                /* Of an init that is being killed all come up, but for the dead: there may be
                 * thousands of them. */
                if (known && list.pids[i] != child->init)
                        (void)list_children(&list, list.pids[i]);
        }
}

/* Reap who is dead, but not for ever: a tree that is not all killed may bring up more of them than
 * one process can reap. False: there is nobody left. */
static bool reap_some(struct child *child, void (*ended)(struct child *, pid_t, int))
{
        int status;
        pid_t pid = 1;

        for (int i = 0; pid > 0 && i < REAPED_MAX; i++) {
                pid = (pid_t)syscall(SYS_wait4, -1, &status, __WALL | WNOHANG, NULL);
                if (pid > 0 && ended)
                        ended(child, pid, status);
        }
        return pid >= 0 || errno != ECHILD;
}

static void ignore_children(void)
{
        struct {
                void (*handler)(int);
                unsigned long flags;
                void *restorer;
                uint64_t mask;
        } ignore = { .handler = SIG_IGN };

        syscall(SYS_rt_sigaction, SIGCHLD, &ignore, NULL, sizeof(ignore.mask));
}

void tree_end(struct child *child, void (*ended)(struct child *child, pid_t pid, int status))
{
        const uint64_t mask = 1ULL << (SIGCHLD - 1);
        const struct timespec pause = { .tv_nsec = ended ? PAUSE : PAUSE / 4 };

        const uint64_t deep_after = time_now() + DEEP_AFTER;

        /* Who is told of nobody lets the kernel reap: of the dead there may be thousands, and each
         * wait goes through all of them. */
        if (!ended)
                ignore_children();
        for (;;) {
                if (!child->alone)
                        kill_all(child, time_now() > deep_after, ended != NULL);
                if (!reap_some(child, ended))
                        return;
                (void)syscall(SYS_rt_sigtimedwait, &mask, NULL, &pause, sizeof(mask));
        }
}
