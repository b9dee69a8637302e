/* SPDX-License-Identifier: MIT */
/*
 * --explain: note which paths are looked for and are not there, or are there read-only. Nothing is
 * decided here: the call goes on, and the box's own root gives the answer.
 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include "box/guard.h"
#include "box/init.h"

/* Where each call has its path, and whether it wants to change something. */
static const struct looking {
        int number;
        int directory; /* argument with the directory's descriptor, -1: none */
        int path;      /* argument with the path */
        bool writes;
} calls[] = {
        { SYS_open, -1, 0, false },      { SYS_openat, 0, 1, false },
        { SYS_stat, -1, 0, false },      { SYS_lstat, -1, 0, false },
        { SYS_newfstatat, 0, 1, false }, { SYS_statx, 0, 1, false },
        { SYS_access, -1, 0, false },    { SYS_faccessat, 0, 1, false },
        { SYS_faccessat2, 0, 1, false }, { SYS_readlink, -1, 0, false },
        { SYS_readlinkat, 0, 1, false }, { SYS_chdir, -1, 0, false },
        { SYS_execve, -1, 0, false },    { SYS_execveat, 0, 1, false },
        { SYS_truncate, -1, 0, true },   { SYS_unlink, -1, 0, true },
        { SYS_unlinkat, 0, 1, true },    { SYS_mkdir, -1, 0, true },
        { SYS_mkdirat, 0, 1, true },     { SYS_rename, -1, 1, true },
        { SYS_renameat, 2, 3, true },    { SYS_renameat2, 2, 3, true },
};

static bool wants_to_write(const struct looking *looking, const struct seccomp_notif *call)
{
        int flags = (int)call->data.args[looking->path + 1];

        if (looking->number != SYS_open && looking->number != SYS_openat)
                return looking->writes;
        return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC));
}

/* The path as text, whether or not anything of it exists. */
static bool text_of(struct child *child, const struct seccomp_notif *call, int base,
                    const char *path, char *room, size_t size)
{
        struct guard_path found;

        if (path[0] == '/') {
                text_copy(room, size, path);
                return true;
        }
        if (guard_resolve_from(child, call, base, path, &found) < 0)
                return false;
        text_copy(room, size, found.text);
        guard_path_close(&found);
        return true;
}

/* Something new, in a directory that is read-only, or is not there. */
static void note_new(struct child *child, const struct seccomp_notif *call, int base,
                     const char *path)
{
        struct guard_path place;
        struct statvfs fs;

        if (guard_resolve_from(child, call, base, path, &place) < 0)
                notify_trace(child->page, BOX_TRACE_WRITE, path, ENOENT);
        else if (fstatvfs(place.parent, &fs) == 0 && (fs.f_flag & ST_RDONLY))
                notify_trace(child->page, BOX_TRACE_WRITE, place.text, EROFS);
        else if (child->plan->caged && !guard_may_change(child, place.text))
                notify_trace(child->page, BOX_TRACE_WRITE, place.text, EACCES);
        guard_path_close(&place);
}

/* Without namespaces it is there, but closed. */
static void note_closed(struct child *child, int fd, bool writes)
{
        char text[PATH_MAX];

        if (guard_text_of(fd, text, sizeof(text)) < 0 || guard_may_change(child, text))
                return;
        if (writes)
                notify_trace(child->page, BOX_TRACE_WRITE, text, EACCES);
        else if (!guard_may_read(child, text))
                notify_trace(child->page, BOX_TRACE_FILE, text, EACCES);
}

static void note(struct child *child, const struct seccomp_notif *call,
                 const struct looking *looking)
{
        struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS };
        int dirfd = looking->directory < 0 ? AT_FDCWD : (int)call->data.args[looking->directory];
        bool writes = wants_to_write(looking, call);
        char path[PATH_MAX], text[PATH_MAX];
        _cleanup_fd_ int base = -1, fd = -1;
        struct statvfs fs;

        if (guard_read_text(call, call->data.args[looking->path], path, sizeof(path)) < 0 ||
            !*path || strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/dev/", 5) == 0)
                return;
        base = path[0] == '/' ? -1 : guard_base(child, call, dirfd);
        if (path[0] != '/' && base < 0)
                return;
        fd = (int)syscall(SYS_openat2, base, path, &how, sizeof(how));
        if (fd < 0 && errno == ENOENT && strncmp(path, "/usr/", 5) == 0) {
                /* The system has links into parts of /etc that programs do without. */
                how.flags |= O_NOFOLLOW;
                fd = (int)syscall(SYS_openat2, base, path, &how, sizeof(how));
        }
        if (fd < 0 && errno == ENOENT && text_of(child, call, base, path, text, sizeof(text))) {
                if (writes)
                        note_new(child, call, base, path);
                else
                        notify_trace(child->page, BOX_TRACE_FILE, text, ENOENT);
                return;
        }
        if (fd >= 0 && child->plan->caged) {
                note_closed(child, fd, writes);
                return;
        }
        if (writes && fd >= 0 && fstatvfs(fd, &fs) == 0 && (fs.f_flag & ST_RDONLY) &&
            text_of(child, call, base, path, text, sizeof(text)))
                notify_trace(child->page, BOX_TRACE_WRITE, text, EROFS);
}

/* Is it the guard's to open? Without mounts that keep it, whatever is opened to be changed. */
static bool makes_name(const struct child *child, const struct looking *looking,
                       const struct seccomp_notif *call)
{
        return (call->data.args[looking->path + 1] & O_CREAT) ||
               (child->plan->caged && wants_to_write(looking, call));
}

/* What the filter would refuse, did it not leave all that open to be looked at (syscalls_cage.c). */
static bool is_refused(const struct child *child, const struct looking *looking,
                       const struct seccomp_notif *call)
{
        int flags = (int)call->data.args[looking->path + 1];

        if (!child->plan->caged || (looking->number != SYS_open && looking->number != SYS_openat))
                return false;
        if ((flags & O_ACCMODE) == O_RDONLY && (flags & O_TRUNC))
                return true;
        return (flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) &&
               (call->data.args[looking->path + 2] & (S_ISUID | S_ISGID));
}

bool guard_explain(struct child *child, const struct seccomp_notif *call)
{
        for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
                bool naming;

                if (calls[i].number != call->data.nr)
                        continue;
                if (atomic_load(&child->page->started) != 0)
                        note(child, call, &calls[i]);
                /* In a guarded box the calls that make names are the guard's to make. */
                naming = calls[i].writes && call->data.nr != SYS_truncate &&
                         call->data.nr != SYS_unlink && call->data.nr != SYS_unlinkat;
                naming |= (call->data.nr == SYS_open || call->data.nr == SYS_openat) &&
                          makes_name(child, &calls[i], call);
                if (naming && child->plan->n_guards > 0)
                        return false;
                if (is_refused(child, &calls[i], call))
                        return false;
                guard_continue(child, call);
                return true;
        }
        return false;
}
