/* SPDX-License-Identifier: MIT */
/*
 * Memory that a tree shares within itself and that no process's page tables have to show: memory
 * files, which may be mapped nowhere or be on their way between two sockets, and shared anonymous
 * mappings, whose pages stay when they are unmapped in part or given up by madvise(2). The calls
 * that make them are rare and come to init.
 *
 * A memory file is made by init, which keeps a descriptor of its own: what it holds is exact. A
 * shared mapping is made by the program and counts with its whole length; it is seen by its inode
 * in /proc/PID/maps for as long as anyone has a part of it.
 */
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "box/guard.h"
#include "box/init.h"
#include "box/own.h"

#define FILES_MAX 1024
#define PIECES_MAX 512
#define PIECES_ROOM (2 * PIECES_MAX) /* with those that are noted twice */
#define FOUND_MAX 1024
#define NAME_ROOM 250    /* the longest name of a memory file */
#define SMALL (64 * KIB) /* not worth keeping */
#define TRIES_MAX 3
#define TRY_PAUSE 15000 /* ns, and longer each time */
#define SETTLE_MAX (2 * NSEC_PER_MSEC)
#define SCANS_MAX 4      /* of a tree in which processes come and go */
#define SCAN_SHARE 32    /* of the time goes into scans at most: one part of so many */
#define ZERO "/dev/zero" /* what the kernel calls a shared anonymous mapping */

static struct file {
        int fd;
        dev_t device;
        ino_t inode;
} files[FILES_MAX];
static unsigned n_files;

static struct piece {
        uint64_t length;
        uint64_t inode; /* 0: not seen yet */
        pid_t thread;   /* who asked for it, and has not been heard of since; or 0 */
        bool loose;     /* an inode whose length, or a length whose inode, is one of several */
} pieces[PIECES_ROOM];
static unsigned n_pieces;

/* ---- Memory files ---- */

/* May somebody have a descriptor by which a file can only be looked at (O_PATH)? The calls that
 * give one come to init, but which file they are for cannot be told: what they name may change
 * until they go on. */
static bool looked_at;

static bool looks_at_any(const struct seccomp_notif *call)
{
        const __u64 *a = call->data.args;

        switch (call->data.nr) {
        case SYS_open:
                return (a[1] & (O_PATH | O_NOFOLLOW | O_DIRECTORY)) == O_PATH;
        case SYS_openat:
                return (a[2] & (O_PATH | O_NOFOLLOW | O_DIRECTORY)) == O_PATH;
        case SYS_openat2:
                return true;
        default:
                return false;
        }
}

/* Does nobody else have it open or mapped, on its way between two sockets included? Only then the
 * kernel grants a lease for writing. A descriptor by which it can only be looked at is not among
 * that: where there may be one, the file is emptied first, and kept and counted where a seal
 * forbids that. */
static bool is_left(const struct child *child, int fd)
{
        char link[40];
        _cleanup_fd_ int writer = -1;
        struct stat st;

        if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
                return false;
        (void)fcntl(fd, F_SETLEASE, F_UNLCK);
        if (!looked_at && !*child->plan->policy->syscalls_allow) /* other calls may give one too */
                return true;
        guard_own_link(fd, link);
        writer = own_openat(AT_FDCWD, link, O_RDWR | O_CLOEXEC, 0);
        if (writer >= 0)
                (void)!ftruncate(writer, 0);
        return fstat(fd, &st) == 0 && (uint64_t)st.st_blocks * 512 <= SMALL;
}

static void forget_files(const struct child *child)
{
        unsigned kept = 0;

        for (unsigned i = 0; i < n_files; i++)
                if (is_left(child, files[i].fd))
                        base_close(files[i].fd);
                else
                        files[kept++] = files[i];
        n_files = kept;
}

/* Hand the caller its descriptor. It is open for writing, and what is cannot be executed: init has
 * let go of its own before the caller goes on. */
static int hand_over(struct child *child, const struct seccomp_notif *call, int fd, bool on_exec)
{
        struct seccomp_notif_addfd add = { .id = call->id,
                                           .srcfd = (uint32_t)fd,
                                           .newfd_flags = on_exec ? O_CLOEXEC : 0 };
        struct seccomp_notif_resp answer = { .id = call->id };

        answer.val = ioctl(child->notifier, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
        if (answer.val < 0)
                return -errno;
        base_close(fd);
        (void)ioctl(child->notifier, SECCOMP_IOCTL_NOTIF_SEND, &answer);
        return 0;
}

static int make_file(struct child *child, const struct seccomp_notif *call)
{
        unsigned flags = (unsigned)call->data.args[1];
        char name[NAME_ROOM], link[40];
        _cleanup_fd_ int made = -1, fd = -1, kept = -1;
        struct stat st;
        int r = guard_read_text(call, call->data.args[0], name, sizeof(name));

        if (r == -EPERM) /* the host lets nobody read the memory of others: any name will do */
                text_copy(name, sizeof(name), "memory");
        else if (r < 0)
                return r == -ENAMETOOLONG ? -EINVAL : r;
        if (flags & MFD_HUGETLB) /* of a store that the host has set aside for others */
                return -ENOMEM;
        if (n_files == FILES_MAX)
                forget_files(child);
        if (n_files == FILES_MAX)
                return -ENFILE;
        made = (int)syscall(SYS_memfd_create, name, flags | MFD_CLOEXEC);
        if (made < 0)
                return -errno;
        /* The kernel does not know the first descriptor as one that writes; a second one it does,
         * which is_left needs. */
        guard_own_link(made, link);
        fd = own_openat(AT_FDCWD, link, O_RDWR | O_CLOEXEC, 0);
        kept = open(link, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || kept < 0 || fstat(kept, &st) < 0)
                return -errno;
        r = hand_over(child, call, fd, flags & MFD_CLOEXEC);
        if (r < 0)
                return r;
        fd = -1;
        files[n_files++] = (struct file){ TAKE_FD(kept), st.st_dev, st.st_ino };
        return 0;
}

/* ---- Shared mappings ---- */

struct found {
        struct {
                uint64_t inode, end;
        } items[FOUND_MAX];
        unsigned n;
        bool whole; /* nothing was missed */
};

static void add_found(struct found *found, uint64_t inode, uint64_t end)
{
        for (unsigned i = 0; i < found->n; i++)
                if (found->items[i].inode == inode) {
                        found->items[i].end = MAX(found->items[i].end, end);
                        return;
                }
        if (found->n == FOUND_MAX) {
                found->whole = false;
                return;
        }
        found->items[found->n].inode = inode;
        found->items[found->n++].end = end;
}

static uint64_t read_number(char **at, unsigned base)
{
        uint64_t value = 0;

        for (;; (*at)++) {
                char c = **at;
                unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                                 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                                        : 16;

                if (digit >= base)
                        return value;
                value = value * base + digit;
        }
}

/* Shared mappings and memory files are of one file system, which nobody else has: what is mapped of
 * the device of that name, or of another file, is none. */
static uint64_t own_device(void)
{
        static uint64_t device;
        _cleanup_fd_ int fd = -1;
        struct stat st;

        if (device > 0)
                return device;
        fd = (int)syscall(SYS_memfd_create, "device", MFD_CLOEXEC);
        if (fd >= 0 && fstat(fd, &st) == 0)
                device = (uint64_t)major(st.st_dev) << 32 | minor(st.st_dev);
        return device;
}

/* "7f0000000000-7f0000001000 rw-s 00000000 00:01 1027    /dev/zero (deleted)" */
static void read_line(struct found *found, char *line)
{
        char *at = line;
        uint64_t start = read_number(&at, 16), end, offset, device, inode;

        at += *at == '-';
        end = read_number(&at, 16);
        if (strlen(at) < 6 || at[4] != 's')
                return;
        at += 6;
        offset = read_number(&at, 16);
        at += *at == ' ';
        device = read_number(&at, 16) << 32;
        at += *at == ':';
        device |= read_number(&at, 16);
        at += *at == ' ';
        inode = read_number(&at, 10);
        at += strspn(at, " ");
        if (device == own_device() && strncmp(at, ZERO, strlen(ZERO)) == 0)
                add_found(found, inode, offset + (end - start));
}

static void read_maps(struct child *child, struct found *found, pid_t pid)
{
        static char room[16384];
        char path[32];
        size_t used = 0;
        ssize_t n = 0;
        int fd;

        text_copy(text_number(path, (uint64_t)pid), 8, "/maps");
        fd = openat(child->proc, path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 && errno != ENOENT && errno != ESRCH)
                found->whole = false;
        while (fd >= 0 && (n = read(fd, room + used, sizeof(room) - 1 - used)) > 0) {
                char *line = room, *end;

                room[used + (size_t)n] = '\0';
                for (; (end = strchr(line, '\n')); line = end + 1) {
                        *end = '\0';
                        read_line(found, line);
                }
                used = strlen(line);
                if (used == sizeof(room) - 1) /* no line is that long */
                        used = 0;
                memmove(room, line, used);
        }
        if (n < 0 && errno != ESRCH)
                found->whole = false;
        base_close(fd);
}

/* All shared mappings of the tree. A process that was started meanwhile could have one of a process
 * that had ended when it was to be looked at. */
static void scan(struct child *child, struct found *found)
{
        static pid_t pids[WATCH_PROCESSES_MAX];

        for (int i = 0; i < SCANS_MAX; i++) {
                uint64_t last = still_last_pid(child);
                size_t n = watch_list(child, pids, WATCH_PROCESSES_MAX);

                found->n = 0;
                found->whole = last != 0 && n < WATCH_PROCESSES_MAX;
                for (size_t j = 0; j < n; j++)
                        read_maps(child, found, pids[j]);
                if (found->whole && still_last_pid(child) == last)
                        return;
        }
        found->whole = false;
}

/* Whoever asked for a mapping may not have come to making it yet. */
static bool is_under_way(struct child *child, const struct piece *piece)
{
        char text[64] = "", path[32];
        _cleanup_fd_ int fd = -1;

        if (piece->thread == 0)
                return false;
        text_copy(text_number(path, (uint64_t)piece->thread), 12, "/syscall");
        fd = openat(child->proc, path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return errno != ENOENT && errno != ESRCH;
        if (read(fd, text, sizeof(text) - 1) < 0)
                return errno != ESRCH;
        return strncmp(text, "9 ", 2) == 0 || strncmp(text, "running", 7) == 0;
}

static struct piece *find_piece(uint64_t inode)
{
        for (unsigned i = 0; i < n_pieces; i++)
                if (pieces[i].inode == inode)
                        return &pieces[i];
        return NULL;
}

static unsigned count_asked(void)
{
        unsigned n = 0;

        for (unsigned i = 0; i < n_pieces; i++)
                n += pieces[i].inode == 0 && !pieces[i].loose;
        return n;
}

/* A mapping that is seen for the first time is the one that was asked for and not seen yet; it may
 * have been cut since. If it could be any of several, it is loose, and their lengths count for it.
 * Returns whether there was room to note it. */
static bool name_piece(uint64_t inode, uint64_t end)
{
        unsigned asked = count_asked();

        if (find_piece(inode))
                return true;
        for (unsigned i = 0; asked == 1 && i < n_pieces; i++)
                if (pieces[i].inode == 0 && !pieces[i].loose) {
                        pieces[i] = (struct piece){ .length = MAX(end, pieces[i].length),
                                                    .inode = inode };
                        return true;
                }
        if (n_pieces == PIECES_ROOM)
                return false;
        pieces[n_pieces++] =
                (struct piece){ .length = asked > 0 ? 0 : end, .inode = inode, .loose = asked > 0 };
        return true;
}

static bool name_pieces(const struct found *found)
{
        bool all = true;

        for (unsigned i = 0; i < found->n; i++)
                all &= name_piece(found->items[i].inode, found->items[i].end);
        return all;
}

static void drop_piece(unsigned i)
{
        memmove(&pieces[i], &pieces[i + 1], (--n_pieces - i) * sizeof(pieces[0]));
}

/* Of the loose lengths no more can be mapped than there are loose inodes: the longest. */
static void drop_lengths(void)
{
        unsigned inodes = 0, lengths = 0, shortest;

        for (unsigned i = 0; i < n_pieces; i++) {
                inodes += pieces[i].loose && pieces[i].inode != 0;
                lengths += pieces[i].loose && pieces[i].inode == 0;
        }
        for (; lengths > inodes; lengths--) {
                shortest = n_pieces;
                for (unsigned i = 0; i < n_pieces; i++)
                        if (pieces[i].loose && pieces[i].inode == 0 &&
                            (shortest == n_pieces || pieces[i].length < pieces[shortest].length))
                                shortest = i;
                drop_piece(shortest);
        }
}

static bool is_found(const struct found *found, uint64_t inode)
{
        for (unsigned i = 0; i < found->n; i++)
                if (found->items[i].inode == inode)
                        return true;
        return false;
}

/* A piece is gone when nobody maps its inode. What was asked for is gone or loose when whoever
 * asked had left the call before all mappings were looked at: each which could be it has been
 * noted. */
static void forget_pieces(struct child *child)
{
        static struct found found;

        for (unsigned i = 0; i < n_pieces; i++)
                if (pieces[i].inode == 0 && !is_under_way(child, &pieces[i]))
                        pieces[i].thread = 0;
        scan(child, &found);
        if (!name_pieces(&found) || !found.whole)
                return;
        for (unsigned i = n_pieces; i-- > 0;)
                if (pieces[i].inode == 0)
                        pieces[i].loose = pieces[i].thread == 0;
                else if (!is_found(&found, pieces[i].inode))
                        drop_piece(i);
        drop_lengths();
}

static uint64_t pieces_sum(void)
{
        uint64_t sum = 0;

        for (unsigned i = 0; i < n_pieces; i++)
                sum += pieces[i].length;
        return sum;
}

/* One mapping at a time: only then it is known which is which. A thread that does not come to its
 * own does not hold up the others for long; what they map meanwhile is loose. */
static void settle(struct child *child)
{
        uint64_t end = time_now() + SETTLE_MAX;

        for (unsigned i = 1; count_asked() > 0; i++) {
                struct timespec pause = { .tv_nsec = i * TRY_PAUSE };

                forget_pieces(child);
                if (count_asked() == 0 || time_now() >= end)
                        return;
                (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
        }
}

static int note_mapping(struct child *child, const struct seccomp_notif *call)
{
        uint64_t length = (call->data.args[1] + 4095) & ~4095ULL, limit = child->page->spec.memory;
        static bool begun;

        if (!begun) /* what was inherited is none of those that will be asked for */
                forget_pieces(child);
        begun = true;
        settle(child);
        if (n_pieces >= PIECES_MAX || length > limit || pieces_sum() + length > limit)
                forget_pieces(child);
        if (n_pieces >= PIECES_MAX || length > limit || pieces_sum() + length > limit)
                return -ENOMEM;
        pieces[n_pieces++] = (struct piece){ .length = length, .thread = (pid_t)call->pid };
        return 0;
}

/* The mapping is there a moment later, when whoever asked has had this processor, and is found
 * before it can have been cut: what is known by its inode is known to be gone when that is. */
static void await_mapping(struct child *child, const struct seccomp_notif *call)
{
        static struct found found;

        watch_set_slack(1);
        for (unsigned i = 1; i <= TRIES_MAX && count_asked() > 0; i++) {
                struct timespec pause = { .tv_nsec = i * TRY_PAUSE };

                (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
                found.n = 0;
                read_maps(child, &found, (pid_t)call->pid);
                (void)name_pieces(&found);
        }
}

/* ---- For the rest of init ---- */

bool shared_serve(struct child *child, const struct seccomp_notif *call)
{
        int r;

        for (unsigned i = 0; i < n_pieces; i++)
                if (pieces[i].thread == (pid_t)call->pid)
                        pieces[i].thread = 0;
        if (call->data.arch != AUDIT_ARCH_X86_64)
                return false;
        if (looks_at_any(call)) {
                looked_at |= atomic_load(&child->page->started) != 0;
                if (!child->plan->explain)
                        guard_continue(child, call);
                return !child->plan->explain;
        }
        if (call->data.nr != SYS_memfd_create && call->data.nr != SYS_mmap)
                return false;
        if (call->data.nr == SYS_mmap && (call->data.args[3] & MAP_HUGETLB)) {
                guard_answer(child, call, -ENOMEM);
                return true;
        }
        /* Until the program is there, its limit is not known. */
        if (child->page->spec.memory == 0 || atomic_load(&child->page->started) == 0 ||
            !box_fence(FENCE_WATCH)) {
                guard_continue(child, call);
                return true;
        }
        if (call->data.nr == SYS_memfd_create) {
                r = make_file(child, call);
                if (r < 0)
                        guard_answer(child, call, r);
                return true;
        }
        r = note_mapping(child, call);
        if (r < 0) {
                notify_trace(child->page, BOX_TRACE_MEMORY, "shared memory", -r);
                guard_answer(child, call, r);
        } else {
                guard_continue(child, call); /* all that was looked at is in registers */
                await_mapping(child, call);
        }
        return true;
}

bool shared_has(dev_t device, ino_t inode)
{
        for (unsigned i = 0; i < n_files; i++)
                if (files[i].inode == inode && files[i].device == device)
                        return true;
        return false;
}

uint64_t shared_held(void)
{
        uint64_t sum = pieces_sum();
        struct stat st;

        for (unsigned i = 0; i < n_files; i++)
                if (fstat(files[i].fd, &st) == 0)
                        sum += (uint64_t)st.st_blocks * 512;
        return sum;
}

bool shared_forget(struct child *child, bool now)
{
        static uint64_t next;
        uint64_t used = watch_clock();

        if (n_files + n_pieces == 0 || (!now && time_now() < next))
                return false;
        forget_files(child);
        if (n_pieces > 0)
                forget_pieces(child);
        next = watch_pause(time_now(), watch_clock() - used, SCAN_SHARE);
        return true;
}
