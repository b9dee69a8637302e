/* SPDX-License-Identifier: MIT */
/* Reading and resolving the paths of another process of the box. */
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "box/guard.h"
#include "box/init.h"
#include "box/own.h"

#ifndef PIDFD_THREAD /* newer than the headers */
#define PIDFD_THREAD O_EXCL
#endif

int guard_read(const struct seccomp_notif *call, uint64_t address, void *room, size_t size)
{
        struct iovec to = { room, size }, from = { (void *)(uintptr_t)address, size };
        ssize_t n = process_vm_readv((pid_t)call->pid, &to, 1, &from, 1, 0);

        if (n < 0 && errno == EPERM) /* by a setting of the host's */
                return -EPERM;
        return n == (ssize_t)size ? 0 : -EFAULT;
}

/* Text ends at its NUL, which may be the last byte before a hole: never read across a page. */
int guard_read_text(const struct seccomp_notif *call, uint64_t address, char *room, size_t size)
{
        size_t used = 0;

        while (used < size) {
                size_t n = MIN(size - used, 4096 - (address + used) % 4096);
                int r = guard_read(call, address + used, room + used, n);

                if (r < 0)
                        return r;
                if (memchr(room + used, '\0', n))
                        return 0;
                used += n;
        }
        return -ENAMETOOLONG;
}

bool guard_is_alive(struct child *child, const struct seccomp_notif *call)
{
        return ioctl(child->notifier, SECCOMP_IOCTL_NOTIF_ID_VALID, &call->id) == 0;
}

/* Open something below the process's directory in the box's /proc. */
static int open_of_process(struct child *child, const struct seccomp_notif *call, const char *name,
                           int number, int flags)
{
        char path[64], *end = text_number(path, call->pid);

        *end++ = '/';
        text_copy(end, sizeof(path) - (size_t)(end - path), name);
        if (number >= 0)
                text_number(end + strlen(end), (uint64_t)number);
        return openat(child->proc, path, flags | O_CLOEXEC);
}

/* A number from the line of a file that begins with a label; 0 where there is none. */
static uint64_t number_in(int fd, const char *label, unsigned base)
{
        char room[1024];
        ssize_t n = fd < 0 ? -1 : read(fd, room, sizeof(room) - 1);
        uint64_t value = 0;
        char *at;

        if (n <= 0)
                return 0;
        room[n] = '\0';
        /* At the start of a line: the name, which is the program's to choose, stands in the first.
         */
        for (at = room; strncmp(at, label, strlen(label)) != 0; at++) {
                at = strchr(at, '\n');
                if (!at)
                        return 0;
        }
        for (at += strlen(label); *at == ' ' || *at == '\t'; at++)
                ;
        for (; *at >= '0' && *at <= '9'; at++)
                value = value * base + (uint64_t)(*at - '0');
        return value;
}

uint64_t guard_status(struct child *child, const struct seccomp_notif *call, const char *label,
                      unsigned base)
{
        _cleanup_fd_ int fd = open_of_process(child, call, "status", -1, O_RDONLY);

        return number_in(fd, label, base);
}

/* ---- The umask ---- */

/* All that runs in a box has the umask that main began with, until somebody sets one: then each is
 * asked for its own. Where nobody tells init of that, always. */
static enum { UMASK_UNKNOWN, UMASK_COMMON, UMASK_OWN } umasks;

void guard_umask_set(void)
{
        umasks = UMASK_OWN;
}

void guard_take_umask(struct child *child, const struct seccomp_notif *call)
{
        bool told = child->plan->guarded || child->plan->caged;
        mode_t mask;

        if (umasks == UMASK_COMMON)
                return;
        mask = (mode_t)guard_status(child, call, "Umask:", 8);
        umask(mask);
        /* 0 may also mean that it could not be read. */
        if (umasks == UMASK_UNKNOWN && told && mask != 0 && guard_is_alive(child, call))
                umasks = UMASK_COMMON;
}

pid_t guard_process_of(struct child *child, pid_t thread)
{
        char path[32];
        _cleanup_fd_ int fd = -1;

        if (thread <= 0)
                return 0;
        text_copy(text_number(path, (uint64_t)thread), 12, "/status");
        fd = openat(child->proc, path, O_RDONLY | O_CLOEXEC);
        return (pid_t)number_in(fd, "Tgid:", 10);
}

uint64_t guard_fdinfo(struct child *child, const struct seccomp_notif *call, int number,
                      const char *label, unsigned base)
{
        _cleanup_fd_ int fd =
                number < 0 ? -1 : open_of_process(child, call, "fdinfo/", number, O_RDONLY);

        return number_in(fd, label, base);
}

void guard_own_link(int fd, char *room)
{
        text_copy(room, 24, "/proc/self/fd/");
        text_number(room + strlen(room), (uint64_t)fd);
}

/* Our own descriptors in /proc, kept open: to go there takes longer than what is asked. Who acts
 * for init has others. */
static int own_descriptors(void)
{
        static pid_t whose;
        static int fd = -1;

        if (whose != getpid() || fd < 0) {
                whose = getpid();
                fd = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
        }
        return fd;
}

int guard_open_own(int fd, int flags, mode_t mode)
{
        char name[24];

        text_number(name, (uint64_t)fd);
        return own_openat(own_descriptors(), name, flags, mode);
}

int guard_text_of(int fd, char *room, size_t size)
{
        char name[24];
        ssize_t n;

        text_number(name, (uint64_t)fd);
        n = readlinkat(own_descriptors(), name, room, size - 1);
        if (n <= 0)
                return n < 0 ? -errno : -ENOENT;
        room[n] = '\0';
        return 0;
}

int guard_take_descriptor(struct child *child, const struct seccomp_notif *call, int number)
{
        pid_t process = guard_process_of(child, (pid_t)call->pid);
        _cleanup_fd_ int pidfd = (int)syscall(SYS_pidfd_open, process, 0);
        int fd;

        if (pidfd < 0 || process <= 1 || process == getpid())
                return -EBADF;
        fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
        return fd < 0 ? -errno : fd;
}

int guard_base(struct child *child, const struct seccomp_notif *call, int dirfd)
{
        int fd = dirfd == AT_FDCWD ? open_of_process(child, call, "cwd", -1, O_PATH)
                                   : open_of_process(child, call, "fd/", dirfd, O_PATH);

        if (fd < 0)
                return dirfd == AT_FDCWD ? -errno : -EBADF;
        return fd;
}

/* A directory of the caller's as it has it open. Its pidfd is kept from call to call, as most come
 * from whoever made the last; a pidfd stands for one thread, whoever gets its number later. A file
 * would be open for writing for as long as we have it: this is for what paths start from. */
static int take_directory(const struct seccomp_notif *call, int number)
{
        static struct {
                __u32 thread;
                int fd;
        } caller = { 0, -1 };
        int fd = -1;

        for (int i = 0; i < 2 && fd < 0 && call->pid > 1; i++) {
                if (caller.thread != call->pid || caller.fd < 0) {
                        base_close(caller.fd);
                        caller.thread = call->pid;
                        caller.fd = (int)syscall(SYS_pidfd_open, call->pid, PIDFD_THREAD);
                        if (caller.fd < 0) /* older kernels: where it is a process */
                                caller.fd = (int)syscall(SYS_pidfd_open, call->pid, 0);
                }
                fd = caller.fd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, caller.fd, number, 0);
                if (fd < 0)
                        caller.fd = base_close(caller.fd);
        }
        return fd;
}

int guard_start(struct child *child, const struct seccomp_notif *call, int dirfd)
{
        _cleanup_fd_ int fd = dirfd == AT_FDCWD ? -1 : take_directory(call, dirfd);
        struct stat st;

        if (fd < 0)
                fd = guard_base(child, call, dirfd);
        if (fd < 0 || dirfd == AT_FDCWD)
                return TAKE_FD(fd);
        return fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode) ? -ENOTDIR : TAKE_FD(fd);
}

/* Shared memory, where the host's is not the box's: files of its own directory. Libc knows of no
 * other place, and makes no directories in it. */
static void mean_the_box(struct child *child, char *path, size_t size)
{
        static const char said[] = "/dev/shm/", meant[] = "/.shm";
        char rest[PATH_MAX] = "", *at;

        if (!child->plan->caged || strncmp(path, said, strlen(said)) != 0)
                return;
        text_copy(rest, sizeof(rest), path + strlen(said) - 1);
        text_copy(path, size, child->page->scratch);
        at = path + strlen(path);
        text_copy(at, size - (size_t)(at - path), meant);
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return; /* then there is nothing to be found */
        at += strlen(at);
        text_copy(at, size - (size_t)(at - path), rest);
}

/* Ways to say "my own" that would mean init here, and what they stand for. */
static const struct {
        const char *said, *meant;
} own_places[] = {
        { "/proc/self", "" },
        { "/proc/thread-self", "" },
        { "/dev/fd", "/fd" },
};

/* Rewrite such a path to the caller's own place in /proc. Returns whether it was one. */
static bool mean_the_caller(struct child *child, const struct seccomp_notif *call, char *path,
                            size_t size)
{
        char rest[PATH_MAX] = "", *end;
        size_t i = 0, n;

        while (path[0] == '/' && path[1] == '/')
                path++, size--;
        while (i < ARRAY_SIZE(own_places) && !lies_in(path, own_places[i].said))
                i++;
        if (i == ARRAY_SIZE(own_places))
                return false;
        n = strlen(own_places[i].meant);
        memcpy(rest, own_places[i].meant, n);
        text_copy(rest + n, sizeof(rest) - n, path + strlen(own_places[i].said));
        text_copy(path, size, "/proc/");
        end = text_number(path + 6, guard_status(child, call, "Tgid:", 10));
        text_copy(end, size - (size_t)(end - path), rest);
        return true;
}

/* The same, said from within /proc or by a link in it. */
static void mean_proc(int base, char *path, size_t size)
{
        char whole[PATH_MAX] = "";

        if ((strncmp(path, "self", 4) != 0 && strncmp(path, "thread-self", 11) != 0) ||
            guard_text_of(base, whole, sizeof(whole)) < 0 || strcmp(whole, "/proc") != 0)
                return;
        text_copy(whole + 5, 2, "/");
        text_copy(whole + 6, sizeof(whole) - 6, path);
        text_copy(path, size, whole);
}

/* What of a process that is closed to the program everyone may see. The kernel looks at these when
 * they are read, or not at all. */
static bool is_open_to_all(const char *rest)
{
        static const char *const files[] = {
                "",      "/stat",   "/status", "/statm",     "/comm",
                "/task", "/cgroup", "/mounts", "/mountinfo", "/cmdline"
        };

        if (strncmp(rest, "/task/", 6) == 0)
                rest += 6 + strspn(rest + 6, "0123456789");
        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                if (strcmp(rest, files[i]) == 0)
                        return true;
        return lies_in(rest, "/net");
}

/* Init may look into itself, as may a process that acts for it, and into who has main's memory. */
bool guard_lets_see(const struct child *child, const char *text)
{
        const char *at = text + 6;
        pid_t pid = 0;

        if (strncmp(text, "/proc/", 6) != 0)
                return true;
        for (; *at >= '0' && *at <= '9' && pid < 100000000; at++)
                pid = pid * 10 + (*at - '0');
        if (pid == 0 || !strchr("/", *at) ||
            (pid != 1 && pid != getpid() && pid != getppid() && !holder_is(child, pid)))
                return true;
        return is_open_to_all(at);
}

int guard_resolve_from(struct child *child, const struct seccomp_notif *call, int start,
                       const char *path, struct guard_path *ret)
{
        _cleanup_fd_ int base = start;
        struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                                .resolve = RESOLVE_NO_MAGICLINKS };
        char room[PATH_MAX] = "", *slash;
        size_t n;
        int r;

        ret->parent = -1;
        ret->text[0] = '\0';
        text_copy(room, sizeof(room), path);
        if (!*room)
                return -ENOENT;
        mean_the_box(child, room, sizeof(room));
        if (base >= 0 && room[0] != '/')
                mean_proc(base, room, sizeof(room));
        /* What the caller's own links in /proc lead to is the caller's; nobody else's are followed.
         */
        if (mean_the_caller(child, call, room, sizeof(room)))
                how.resolve = 0;
        n = strlen(room);
        ret->slash = n > 1 && room[n - 1] == '/';
        while (n > 1 && room[n - 1] == '/')
                room[--n] = '\0';
        slash = strrchr(room, '/');
        if (strlen(slash ? slash + 1 : room) > NAME_MAX)
                return -ENAMETOOLONG;
        text_copy(ret->name, sizeof(ret->name), slash ? slash + 1 : room);
        if (!*ret->name) /* the root itself */
                text_copy(ret->name, sizeof(ret->name), ".");
        text_copy(ret->given, sizeof(ret->given), ret->name);
        if (ret->slash)
                text_copy(ret->given + strlen(ret->given), 2, "/");
        if (slash)
                slash[slash == room ? 1 : 0] = '\0';
        ret->parent = slash ? own_openat2(base, room, &how) : TAKE_FD(base);
        if (ret->parent < 0)
                return -errno;
        r = guard_text_of(ret->parent, ret->text, sizeof(ret->text));
        n = r < 0 ? 0 : strlen(ret->text);
        if (r == 0 && n + strlen(ret->name) + 2 > sizeof(ret->text))
                r = -ENAMETOOLONG;
        if (r < 0) {
                ret->parent = base_close(ret->parent);
                return r;
        }
        if (n > 1)
                ret->text[n++] = '/';
        text_copy(ret->text + n, sizeof(ret->text) - n, ret->name);
        if (!guard_lets_see(child, ret->text)) {
                ret->parent = base_close(ret->parent);
                return -EACCES;
        }
        return 0;
}

int guard_resolve(struct child *child, const struct seccomp_notif *call, int dirfd,
                  uint64_t address, struct guard_path *ret)
{
        char path[PATH_MAX];
        int base = -1, r;

        ret->parent = -1;
        ret->text[0] = '\0';
        r = guard_read_text(call, address, path, sizeof(path));
        if (r < 0)
                return r;
        if (path[0] != '/') {
                base = guard_start(child, call, dirfd);
                if (base < 0)
                        return base;
        }
        return guard_resolve_from(child, call, base, path, ret);
}

void guard_path_close(struct guard_path *path)
{
        path->parent = base_close(path->parent);
}
