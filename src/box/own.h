/* SPDX-License-Identifier: MIT */
/*
 * Calls that init makes itself. Where a box is forked it has the filter of its zygote, which while
 * that loaded had all such calls looked at (policy/syscalls_loading.c). A word in a register that
 * none of them uses tells init's own: it is chosen for each zygote, and nobody in one knows it
 * before it has loaded.
 */
#ifndef BOX_OWN_H
#define BOX_OWN_H

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern uint64_t own_mark; /* 0: there is no such filter */

static inline long own_call(long number, long a, long b, long c, long d, long e)
{
        return syscall(number, a, b, c, d, e, own_mark);
}

static inline int own_openat(int at, const char *path, int flags, mode_t mode)
{
        return (int)own_call(SYS_openat, at, (long)path, flags, (long)mode, 0);
}

static inline int own_openat2(int at, const char *path, const struct open_how *how)
{
        return (int)own_call(SYS_openat2, at, (long)path, (long)how, sizeof(*how), 0);
}

static inline int own_mkdirat(int at, const char *path, mode_t mode)
{
        return (int)own_call(SYS_mkdirat, at, (long)path, (long)mode, 0, 0);
}

static inline int own_mknodat(int at, const char *path, mode_t mode, dev_t device)
{
        return (int)own_call(SYS_mknodat, at, (long)path, (long)mode, (long)device, 0);
}

static inline int own_symlinkat(const char *text, int at, const char *path)
{
        return (int)own_call(SYS_symlinkat, (long)text, at, (long)path, 0, 0);
}

static inline int own_linkat(int from, const char *old, int to, const char *new, int flags)
{
        return (int)own_call(SYS_linkat, from, (long)old, to, (long)new, flags);
}

static inline int own_renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
        return (int)own_call(SYS_renameat2, from, (long)old, to, (long)new, (long)flags);
}

static inline int own_unlinkat(int at, const char *path, int flags)
{
        return (int)own_call(SYS_unlinkat, at, (long)path, flags, 0, 0);
}

static inline int own_fchmodat(int at, const char *path, mode_t mode)
{
        return (int)own_call(SYS_fchmodat, at, (long)path, (long)mode, 0, 0);
}

static inline int own_fchownat(int at, const char *path, uid_t uid, gid_t gid, int flags)
{
        return (int)own_call(SYS_fchownat, at, (long)path, (long)uid, (long)gid, flags);
}

static inline int own_utimensat(int at, const char *path, const struct timespec *times, int flags)
{
        return (int)own_call(SYS_utimensat, at, (long)path, (long)times, flags, 0);
}

static inline int own_truncate(const char *path, off_t size)
{
        return (int)own_call(SYS_truncate, (long)path, size, 0, 0, 0);
}

static inline int own_setxattr(const char *path, const char *name, const void *value, size_t size,
                               int flags)
{
        return (int)own_call(SYS_setxattr, (long)path, (long)name, (long)value, (long)size, flags);
}

static inline int own_removexattr(const char *path, const char *name)
{
        return (int)own_call(SYS_removexattr, (long)path, (long)name, 0, 0, 0);
}

static inline int own_connect(int fd, const struct sockaddr *address, socklen_t length)
{
        return (int)own_call(SYS_connect, fd, (long)address, (long)length, 0, 0);
}

static inline int own_bind(int fd, const struct sockaddr *address, socklen_t length)
{
        return (int)own_call(SYS_bind, fd, (long)address, (long)length, 0, 0);
}

#endif
