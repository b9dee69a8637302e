/* SPDX-License-Identifier: MIT */
/*
 * What a tree uses, where no control group counts it: init looks at the processes of its own /proc
 * every few milliseconds, oftener when a limit is near and seldom while nothing happens. The
 * kernel's per-process limits (limits.c) bound what can happen between two looks.
 *
 * Memory is what a tree costs the host: anonymous pages, each counted once however many processes
 * share it, pages held in memory files, seen or not, and what the kernel itself needs for the tree:
 * page tables, buffers of sockets and pipes, descriptors, filters, locks.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>

#include "box/guard.h"
#include "box/init.h"
#include "box/tree.h"

#define LOOK_LONG (10 * NSEC_PER_MSEC)  /* a look that takes longer looks at numbers again */
#define LOOK_STILL (50 * NSEC_PER_MSEC) /* at a tree in which nothing happens, at least */
#define LOOK_ASLEEP NSEC_PER_SEC        /* and at most */
#define LOOK_NEAR (2 * NSEC_PER_MSEC)
#define LOOK_GROWING (3 * NSEC_PER_MSEC) /* whether there may be more processes */
#define LOOK_GROWING_STILL (10 * NSEC_PER_MSEC)
#define HANDED_OUT (2 * MIB)      /* of memory, in a millisecond: more than most processors can */
#define SLACK_PART 8              /* of the time to the next look at a tree that is still */
#define TICK (NSEC_PER_SEC / 100) /* of /proc's processor times */
#define FILES_MAX 256
#define FORKED_ONLY 0x40 /* PF_FORKNOEXEC */
/* What the kernel needs for one of these, at most; the first few pipes of a tree are its streams.
 */
#define DESCRIPTOR_COST (2 * KIB)
#define PIPE_COST (64 * KIB)
#define PIPES_FREE 16
#define INODE_COST KIB
#define NOTICES_COST (5 * MIB) /* of inotify(7), with as many events as may wait */
#define NOTICES_FREE 4
#define TEXT_COST (64 * KIB) /* of an open file of /proc, which keeps what it has told last */
#define TEXTS_FREE 16
#define DETAILS_COST (4 * MIB) /* of one that tells of a descriptor, with all locks on its file */
#define DETAILS_FREE 4
/* A message with nothing in it, a queue, segment or set with nothing in it, what a process may have
 * to undo in a set. */
#define MESSAGE_COST 128
#define QUEUE_COST KIB
#define UNDO_COST 128
/* Of a process that init may not look into: a descriptor, which may be a full pipe, and a page,
 * which may be an area. */
#define HIDDEN_COST (64 * KIB)
#define HIDDEN_AREA_COST 256
#define AREAS_MOST 65530 /* that the kernel lets a process have, unless it is told otherwise */

struct tree {
        uint64_t resident;  /* everything mapped, shared pages counted anew in each process */
        uint64_t anonymous; /* exact, once refined */
        uint64_t shared;    /* mapped memory files, exact, once refined */
        uint64_t tasks;
        uint64_t cpu;
        uint64_t held;   /* memory files that are open and not init's own */
        uint64_t tables; /* page tables */
        uint64_t kernel; /* those, descriptors, filters */
        struct inodes pipes, sockets;
        unsigned notices, texts, details;
        dev_t devices[FILES_MAX];
        ino_t inodes[FILES_MAX];
        unsigned n_files;
        struct still still;
};

ssize_t watch_read(int directory, const char *path, char *room, size_t size)
{
        _cleanup_fd_ int fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, room, size - 1);

        room[n > 0 ? n : 0] = '\0';
        return n;
}

static uint64_t number(const char **text)
{
        uint64_t value = 0;

        while (**text == ' ' || **text == '\t')
                (*text)++;
        for (; **text >= '0' && **text <= '9'; (*text)++)
                value = value * 10 + (uint64_t)(**text - '0');
        return value;
}

/* The number of kilobytes after "label:" at the start of a line, in bytes. */
static uint64_t field(const char *text, const char *label)
{
        size_t n = strlen(label);

        for (; text; text = strchr(text, '\n')) {
                text += *text == '\n';
                if (strncmp(text, label, n) == 0) {
                        text += n;
                        return number(&text) * KIB;
                }
                if (!*text)
                        break;
        }
        return 0;
}

/* /proc/PID/stat after the name, which may hold anything: fields are counted from the last ')'.
 * Returns whether the process is dead but for other threads of it. */
static bool add_stat(struct tree *tree, const char *text)
{
        const char *at = strrchr(text, ')');
        uint64_t threads = 0;
        bool zombie;

        if (!at)
                return false;
        zombie = at[1] && at[2] == 'Z';
        at++;
        for (unsigned i = 3; i <= 24; i++) {
                uint64_t value;

                while (*at == ' ')
                        at++;
                if (i >= 14 && i <= 17) {
                        value = number(&at);
                        tree->cpu += value * TICK;
                } else if (i == 20) {
                        threads = number(&at);
                        tree->tasks += zombie && threads <= 1 ? 0 : threads;
                } else if (i == 24) {
                        tree->resident += number(&at) * 4096;
                }
                while (*at && *at != ' ')
                        at++;
        }
        return zombie && threads > 1;
}

/* A memory file costs memory whether anyone maps it or not. */
static void add_file(struct tree *tree, const struct stat *st)
{
        bool seen = shared_has(st->st_dev, st->st_ino);

        for (unsigned i = 0; i < tree->n_files; i++)
                seen |= tree->devices[i] == st->st_dev && tree->inodes[i] == st->st_ino;
        if (seen)
                return;
        if (tree->n_files < FILES_MAX) {
                tree->devices[tree->n_files] = st->st_dev;
                tree->inodes[tree->n_files++] = st->st_ino;
        }
        tree->held += (uint64_t)st->st_blocks * 512;
}

bool inodes_add(struct inodes *inodes, uint64_t inode)
{
        for (unsigned i = 0; i < MIN(inodes->n, INODES_MAX); i++)
                if (inodes->all[i] == inode)
                        return false;
        if (inodes->n < INODES_MAX)
                inodes->all[inodes->n] = inode;
        inodes->n++;
        return true;
}

bool inodes_add_link(struct inodes *inodes, const char *link)
{
        const char *at = strchr(link, '[') + 1;

        return inodes_add(inodes, number(&at));
}

/* An open file of /proc. What it has told it keeps, though there may be less to tell by now. */
static uint64_t cost_of_text(struct tree *tree, const char *link)
{
        if (strstr(link, "/fdinfo/"))
                return ++tree->details > DETAILS_FREE ? DETAILS_COST : TEXT_COST;
        return ++tree->texts > TEXTS_FREE ? TEXT_COST : 0;
}

uint64_t watch_descriptors(int process)
{
        char room[4096];
        struct stat st;

        if (fstatat(process, "fd", &st, 0) == 0 && st.st_size > 0)
                return (uint64_t)st.st_size;
        return watch_read(process, "status", room, sizeof(room)) > 0 ? field(room, "FDSize:") / KIB
                                                                     : 0;
}

/* The kernel lets init look into no process whose program can be executed and not read, or that has
 * asked for it: what is told to everyone is how many descriptors and how many pages it has. */
static void add_hidden(struct tree *tree, int process)
{
        char room[4096];

        if (watch_read(process, "status", room, sizeof(room)) <= 0)
                return;
        tree->kernel += watch_descriptors(process) * HIDDEN_COST +
                        MIN(field(room, "VmSize:") / 4096, AREAS_MOST) * HIDDEN_AREA_COST;
}

/* What a process holds open; one of init's own helpers is as closed as init is. */
static void add_held(struct tree *tree, int process, bool own)
{
        char room[2048], link[64];
        _cleanup_fd_ int directory = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct stat st;
        long n;

        if (directory < 0 && errno == EACCES && !own)
                add_hidden(tree, process);
        while (directory >= 0 && (n = syscall(SYS_getdents64, directory, room, sizeof(room))) > 0)
                for (long at = 0; at < n;) {
                        struct entry *entry = (struct entry *)(room + at);
                        ssize_t length;

                        at += entry->length;
                        length = readlinkat(directory, entry->name, link, sizeof(link) - 1);
                        if (length < 0)
                                continue;
                        link[length] = '\0';
                        tree->kernel += DESCRIPTOR_COST;
                        if (pipes_add(&tree->pipes, directory, entry->name, link))
                                tree->kernel += tree->pipes.n > PIPES_FREE ? PIPE_COST : 0;
                        else if (strncmp(link, "socket:[", 8) == 0)
                                (void)inodes_add_link(&tree->sockets, link);
                        else if (strcmp(link, "anon_inode:inotify") == 0)
                                tree->kernel += ++tree->notices > NOTICES_FREE ? NOTICES_COST : 0;
                        else if (strncmp(link, "/proc/", 6) == 0)
                                tree->kernel += cost_of_text(tree, link);
                        else if (strncmp(link, "/memfd:", 7) == 0 &&
                                 fstatat(directory, entry->name, &st, 0) == 0)
                                add_file(tree, &st);
                }
}

/* What only its status tells. */
static void add_status(struct tree *tree, int process)
{
        char room[4096];

        if (watch_read(process, "status", room, sizeof(room)) <= 0)
                return;
        tree->tables += field(room, "VmPTE:");
        tree->kernel += field(room, "VmPTE:");
}

/* Shared pages once: each process's share of them, as the kernel adds it up. */
static void add_exact(struct tree *tree, int process)
{
        char room[4096];

        if (watch_read(process, "smaps_rollup", room, sizeof(room)) > 0) {
                tree->anonymous += field(room, "Pss_Anon:") + field(room, "SwapPss:");
                tree->shared += field(room, "Pss_Shmem:");
        } else if (watch_read(process, "status", room, sizeof(room)) > 0) {
                tree->anonymous += field(room, "RssAnon:") + field(room, "VmSwap:");
                tree->shared += field(room, "RssShmem:");
        }
}

enum depth { QUICK, EXACT };

/* A process whose first thread has exited has its memory in the others only: look at a living one.
 * Its processor time was counted already. */
static int open_living_thread(int process)
{
        _cleanup_fd_ int tasks = openat(process, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char room[1024], text[512];
        long n;

        while (tasks >= 0 && (n = syscall(SYS_getdents64, tasks, room, sizeof(room))) > 0)
                for (long at = 0; at < n;) {
                        struct entry *entry = (struct entry *)(room + at);
                        _cleanup_fd_ int thread = -1;
                        const char *state;

                        at += entry->length;
                        if (entry->name[0] < '0' || entry->name[0] > '9')
                                continue;
                        thread = openat(tasks, entry->name, O_PATH | O_CLOEXEC);
                        if (thread < 0 || watch_read(thread, "stat", text, sizeof(text)) <= 0)
                                continue;
                        state = strrchr(text, ')');
                        if (state && state[1] && state[2] != 'Z' && state[2] != 'X')
                                return TAKE_FD(thread);
                }
        return -1;
}

/* Until main has become the program, it is as closed as init: its flags tell that it has not. */
static bool has_executed(const char *stat)
{
        const char *at = strrchr(stat, ')');
        unsigned have = 2;

        for (; at && *at && have < 9; at++)
                have += *at == ' ';
        return !at || !(number(&at) & FORKED_ONLY);
}

static void look_at_process(struct child *child, struct tree *tree, int process, pid_t pid,
                            enum depth depth)
{
        _cleanup_fd_ int thread = -1;
        struct tree ignored = { 0 };
        char text[1024];
        bool headless, own;

        if (watch_read(process, "stat", text, sizeof(text)) <= 0)
                return;
        if (depth == QUICK && child->page->spec.cpu > 0)
                books_add(text);
        own = guard_is_helper(pid) || (pid == child->main && !child->forked && !has_executed(text));
        headless = add_stat(depth == QUICK ? tree : &ignored, text);
        if (headless) {
                thread = open_living_thread(process);
                if (thread < 0)
                        return;
                process = thread;
                if (depth == QUICK && watch_read(thread, "stat", text, sizeof(text)) > 0) {
                        add_stat(&ignored, text);
                        tree->resident += ignored.resident;
                }
        }
        if (depth == EXACT) {
                add_exact(tree, process);
        } else {
                add_held(tree, process, own);
                add_status(tree, process);
        }
}

static void look_at_entry(struct child *child, struct tree *tree, const char *name,
                          enum depth depth)
{
        _cleanup_fd_ int process = -1;
        const char *at = name;
        pid_t pid = (pid_t)number(&at);

        if (holder_is(child, pid))
                return;
        process = openat(child->proc, name, O_PATH | O_CLOEXEC);
        if (depth == QUICK)
                still_add(&tree->still, pid);
        if (process >= 0)
                look_at_process(child, tree, process, pid, depth);
}

/* Without a pid namespace /proc shows the host's processes: those that descend from init count. */
size_t watch_list(struct child *child, pid_t *pids, size_t max)
{
        char room[4096];
        _cleanup_fd_ int all = -1;
        size_t found = 0;
        long n;

        if (child->plan->caged) {
                init_reap(child); /* a storm leaves more dead than there is time to look at */
                return tree_list(child->proc, getpid(), pids, max);
        }
        all = openat(child->proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        while (all >= 0 && (n = syscall(SYS_getdents64, all, room, sizeof(room))) > 0)
                for (long at = 0; at < n;) {
                        struct entry *entry = (struct entry *)(room + at);
                        const char *digits = entry->name;
                        pid_t pid = (pid_t)number(&digits);

                        at += entry->length;
                        if (pid > 1 && found < max)
                                pids[found++] = pid;
                }
        return found;
}

/* What the descriptors of all cost, without a look at any of them: since Linux 6.2 the size of the
 * directory is their number. */
static uint64_t cost_of_descriptors(struct child *child, const pid_t *pids, size_t n)
{
        uint64_t sum = 0;
        struct stat st;
        char path[32];

        for (size_t i = 0; i < n; i++) {
                text_copy(text_number(path, (uint64_t)pids[i]), 4, "/fd");
                sum += fstatat(child->proc, path, &st, 0) == 0 ? (uint64_t)st.st_size : 0;
        }
        return sum * DESCRIPTOR_COST;
}

/* Where a tree of very many processes is busy, init has little of the processors, and a look at all
 * of them takes long: what would end it is seen to before that, and again on the way. */
static void look_at_processes(struct child *child, struct tree *tree, enum depth depth)
{
        uint64_t limit = child->page->spec.memory, cost, next = 0;
        static pid_t pids[TREE_MAX];
        size_t n = watch_list(child, pids, TREE_MAX);
        char name[24];

        for (size_t i = 0; i < n; i++) {
                if (limit && depth == QUICK && time_now() >= next) {
                        cost = cost_of_descriptors(child, pids, n);
                        if (cost > limit) {
                                tree->kernel = MAX(tree->kernel, cost);
                                return;
                        }
                        next = time_now() + LOOK_LONG;
                }
                text_number(name, (uint64_t)pids[i]);
                look_at_entry(child, tree, name, depth);
        }
}

uint64_t watch_sum(struct child *child, const char *path, unsigned wanted)
{
        _cleanup_fd_ int fd = openat(child->proc, path, O_RDONLY | O_CLOEXEC);
        unsigned column = 0;
        uint64_t sum = 0, value = 0;
        bool head = true, inside = false;
        char room[4096];
        ssize_t n;

        while (fd >= 0 && (n = read(fd, room, sizeof(room))) > 0)
                for (ssize_t i = 0; i < n; i++) {
                        char c = room[i];

                        if (c != ' ' && c != '\n') {
                                column += !inside;
                                value = inside ? value : 0;
                                value = c >= '0' && c <= '9' ? value * 10 + (uint64_t)(c - '0')
                                                             : value;
                                inside = true;
                                continue;
                        }
                        if (inside && !head && column == wanted)
                                sum += value;
                        inside = false;
                        if (c == '\n') {
                                sum += !head && wanted == 0;
                                column = 0;
                                head = false;
                        }
                }
        return sum;
}

/* System V objects: resident segments, queued messages, which cost something though nothing is in
 * them, semaphores at what one costs the kernel, with what each process may have to undo; and each
 * segment, queue and set itself. */
static uint64_t held_by_system_v(struct child *child, uint64_t tasks)
{
        uint64_t segments = watch_sum(child, "sysvipc/shm", 0);
        uint64_t queues = watch_sum(child, "sysvipc/msg", 0);
        uint64_t sets = watch_sum(child, "sysvipc/sem", 0);
        uint64_t sum = (segments + queues) * QUEUE_COST + sets * (QUEUE_COST + UNDO_COST * tasks);

        if (segments > 0)
                sum += watch_sum(child, "sysvipc/shm", 15);
        if (queues > 0)
                sum += watch_sum(child, "sysvipc/msg", 4) +
                       watch_sum(child, "sysvipc/msg", 5) * MESSAGE_COST;
        if (sets > 0)
                sum += watch_sum(child, "sysvipc/sem", 4) * (128 + 2 * tasks);
        return sum;
}

static uint64_t held_by_tmpfs(const char *path)
{
        struct statfs fs;

        if (statfs(path, &fs) < 0)
                return 0;
        return (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize +
               (uint64_t)(fs.f_files - fs.f_ffree) * INODE_COST;
}

static uint64_t held_by_files(struct child *child, uint64_t tasks)
{
        uint64_t sum;

        if (!box_fence(FENCE_ROOT) || child->plan->caged) /* all of that is the host's */
                return 0;
        sum = held_by_tmpfs("/dev/shm") + held_by_system_v(child, tasks);
        for (size_t i = 0; i < child->plan->n_steps; i++)
                if (child->plan->steps[i].kind == PLAN_TMPFS)
                        sum += held_by_tmpfs(child->plan->steps[i].target);
        return sum;
}

/* What the tree costs: quick and high when that is far from the limit, exact near it. */
static uint64_t memory_of(struct child *child, struct tree *tree, uint64_t limit)
{
        uint64_t kernel = tree->kernel;
        uint64_t files = tree->held + held_by_files(child, tree->tasks), shared = shared_held();

        if (limit && kernel > limit)
                return kernel;
        kernel += buffers_held(child, &tree->sockets) + objects_held(child, limit);
        if (limit && shared_forget(child, false))
                shared = shared_held();
        if (!limit || tree->resident + files + shared + kernel < limit / 2)
                return tree->resident + files + shared + kernel;
        /* An exact look goes through all page tables: not where they are what there is to see. */
        if (tree->tables > limit / 8)
                return tree->resident + files + shared + kernel;
        look_at_processes(child, tree, EXACT);
        if (tree->anonymous + MAX(tree->shared, files + shared) + kernel > limit &&
            shared_forget(child, true))
                shared = shared_held();
        return tree->anonymous + MAX(tree->shared, files + shared) + kernel;
}

uint64_t watch_clock(void)
{
        struct timespec clock;

        (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &clock);
        return (uint64_t)clock.tv_sec * NSEC_PER_SEC + (uint64_t)clock.tv_nsec;
}

static uint64_t ended_cpu(void)
{
        struct rusage usage;

        getrusage(RUSAGE_CHILDREN, &usage);
        return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NSEC_PER_SEC +
               (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

unsigned watch_processors(void)
{
        static unsigned n;
        unsigned long set[16] = { 0 };

        if (n > 0)
                return n;
        if (syscall(SYS_sched_getaffinity, 0, sizeof(set), set) < 0)
                return n = sizeof(set) * 8;
        for (size_t i = 0; i < ARRAY_SIZE(set); i++)
                n += (unsigned)__builtin_popcountl(set[i]);
        return n = MAX(n, 1U);
}

/* How long a tree that is still may be left alone: until it could have reached a limit from where
 * it is, were every processor to work for it from now on. */
static uint64_t patience(const struct box_page *page, uint64_t memory, uint64_t cpu)
{
        uint64_t limit = page->spec.memory, longest = LOOK_ASLEEP / NSEC_PER_MSEC;
        unsigned n = watch_processors();

        if (limit)
                longest = MIN(longest, (limit - MIN(memory, limit)) / (HANDED_OUT * n));
        if (page->spec.cpu > 0) {
                double left = page->spec.cpu * (double)NSEC_PER_SEC - (double)cpu;

                longest = MIN(longest, (uint64_t)MAX(left, 0.0) / NSEC_PER_MSEC / n);
        }
        return MAX(longest * NSEC_PER_MSEC, LOOK_STILL);
}

void watch_set_slack(uint64_t slack)
{
        static uint64_t set;

        if (slack != set)
                (void)prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0); /* 0: as it was */
        set = slack;
}

/* Without a user namespace no limit of the kernel's stops a tree that grows. So between two looks
 * see whether it could have: whoever starts a process on the host makes this number larger. */
static bool may_have_grown(const struct child *child, uint64_t pid_then)
{
        uint64_t pid = still_last_pid(child);

        return pid == 0 || pid < pid_then || pid - pid_then >= child->page->spec.processes / 4;
}

static enum box_verdict look(struct child *child, uint64_t now, uint64_t *ret_next)
{
        struct box_page *page = child->page;
        uint64_t limit = page->spec.memory, memory, interval;
        static struct still still; /* since the last look */
        static uint64_t asleep;
        struct tree tree = { 0 };
        bool near;

        child->still = still_holds(&still, child);
        if (child->still) {
                uint64_t pause = books_suspect(now) ? LOOK_NEAR : asleep;

                books_rest(now);
                watch_set_slack(pause / SLACK_PART);
                *ret_next = now + pause - pause / SLACK_PART;
                return BOX_OK;
        }
        if (page->spec.cpu > 0)
                sample_take(child, now);
        holder_look(child);
        still_begin(&tree.still, child);
        look_at_processes(child, &tree, QUICK);
        tree.cpu += ended_cpu();
        if (page->spec.cpu > 0) {
                tree.cpu += books_lost(child, tree.cpu, tree.tasks, now);
                tree.cpu = MAX(tree.cpu, sample_proven());
        }
        child->stale = false;
        memory = memory_of(child, &tree, limit);
        if (child->stale)
                tree.still.last_pid = 0; /* a tree that sleeps from now on is looked at again */
        page->memory_peak = MAX(page->memory_peak, memory);
        page->processes_peak = MAX(page->processes_peak, tree.tasks);
        page->cpu = MAX(page->cpu, tree.cpu);
        near = (limit && memory > limit / 2) ||
               (page->spec.processes && tree.tasks > page->spec.processes / 2) ||
               books_suspect(now);
        watch_set_slack(0);
        interval = near ? LOOK_NEAR : LOOK_USUAL;
        *ret_next = page->spec.cpu > 0 ? sample_plan(now, interval) : now + interval;
        asleep = patience(page, memory, tree.cpu);
        still = tree.still;

        if ((limit && memory > limit) || pipes_starve_user(child, &tree.pipes, &tree.sockets))
                return BOX_MEMORY;
        if (page->spec.cpu > 0 && (double)tree.cpu > page->spec.cpu * (double)NSEC_PER_SEC)
                return BOX_CPU;
        if (page->spec.processes && tree.tasks > page->spec.processes)
                return BOX_PIDS;
        return BOX_OK;
}

enum box_verdict watch_tree(struct child *child, uint64_t now, uint64_t *ret_next)
{
        bool grows = child->plan->caged && child->page->spec.processes;
        static uint64_t next, pid_then;
        enum box_verdict verdict = BOX_OK;

        if (!grows)
                return look(child, now, ret_next);
        if (now >= next || may_have_grown(child, pid_then)) {
                pid_then = still_last_pid(child);
                verdict = look(child, now, &next);
        }
        *ret_next = MIN(next, now + (child->still ? LOOK_GROWING_STILL : LOOK_GROWING));
        return verdict;
}
