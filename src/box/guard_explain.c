/* SPDX-License-Identifier: MIT */
/*
 * --explain: note which paths are looked for and are not there, or are there read-only, and which
 * places are full. Nothing is decided here: the call goes on, and the box's own root gives the
 * answer.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include "box/guard.h"
#include "box/init.h"
#include "box/own.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#define LINKS_MAX 40
#define NONE (-1)

/* What a call wants of its path. */
enum want {
        SEES,    /* it must be there */
        CHANGES, /* ... and be writable */
        REMOVES, /* ... in a directory that is writable */
        WRITES,  /* it is made where it is not there */
        MAKES,   /* it must not be there, and is made */
        MOVES,   /* it is made, or takes the place of what is there */
};

/* In a guarded box the calls that make names are the guard's to make. */
static bool makes_name(enum want want)
{
        return want == WRITES || want == MAKES || want == MOVES;
}

/* Where each call has what counts, as numbers of arguments. */
static const struct looking {
        int number;
        int directory; /* a descriptor, of the directory where there is a path; NONE: none */
        int path;      /* NONE: the descriptor is what is meant */
        enum want want;
        bool link; /* a link at the end of the path is itself what is meant */
        int flags; /* AT_SYMLINK_NOFOLLOW may be among these */
        int mode;  /* of a file: no set-id bits are ever set (syscalls_mode) */
} calls[] = {
        { SYS_open, NONE, 0, SEES, false, NONE, NONE },
        { SYS_openat, 0, 1, SEES, false, NONE, NONE },
        { SYS_stat, NONE, 0, SEES, false, NONE, NONE },
        { SYS_lstat, NONE, 0, SEES, true, NONE, NONE },
        { SYS_newfstatat, 0, 1, SEES, false, 3, NONE },
        { SYS_statx, 0, 1, SEES, false, 2, NONE },
        { SYS_access, NONE, 0, SEES, false, NONE, NONE },
        { SYS_faccessat, 0, 1, SEES, false, NONE, NONE },
        { SYS_faccessat2, 0, 1, SEES, false, 3, NONE },
        { SYS_readlink, NONE, 0, SEES, true, NONE, NONE },
        { SYS_readlinkat, 0, 1, SEES, true, NONE, NONE },
        { SYS_chdir, NONE, 0, SEES, false, NONE, NONE },
        { SYS_execve, NONE, 0, SEES, false, NONE, NONE },
        { SYS_execveat, 0, 1, SEES, false, 4, NONE },
        { SYS_truncate, NONE, 0, CHANGES, false, NONE, NONE },
        { SYS_unlink, NONE, 0, REMOVES, true, NONE, NONE },
        { SYS_unlinkat, 0, 1, REMOVES, true, NONE, NONE },
        { SYS_rmdir, NONE, 0, REMOVES, true, NONE, NONE },
        { SYS_chmod, NONE, 0, CHANGES, false, NONE, 1 },
        { SYS_fchmod, 0, NONE, CHANGES, false, NONE, 1 },
        { SYS_fchmodat, 0, 1, CHANGES, false, NONE, 2 },
        { SYS_fchmodat2, 0, 1, CHANGES, false, 3, 2 },
        { SYS_chown, NONE, 0, CHANGES, false, NONE, NONE },
        { SYS_lchown, NONE, 0, CHANGES, true, NONE, NONE },
        { SYS_fchown, 0, NONE, CHANGES, false, NONE, NONE },
        { SYS_fchownat, 0, 1, CHANGES, false, 4, NONE },
        { SYS_utime, NONE, 0, CHANGES, false, NONE, NONE },
        { SYS_utimes, NONE, 0, CHANGES, false, NONE, NONE },
        { SYS_futimesat, 0, 1, CHANGES, false, NONE, NONE },
        { SYS_utimensat, 0, 1, CHANGES, false, 3, NONE },
        { SYS_setxattr, NONE, 0, CHANGES, false, NONE, NONE },
        { SYS_lsetxattr, NONE, 0, CHANGES, true, NONE, NONE },
        { SYS_removexattr, NONE, 0, CHANGES, false, NONE, NONE },
        { SYS_lremovexattr, NONE, 0, CHANGES, true, NONE, NONE },
        { SYS_creat, NONE, 0, WRITES, false, NONE, 1 },
        { SYS_mkdir, NONE, 0, MAKES, true, NONE, NONE },
        { SYS_mkdirat, 0, 1, MAKES, true, NONE, NONE },
        { SYS_mknod, NONE, 0, MAKES, true, NONE, 1 },
        { SYS_mknodat, 0, 1, MAKES, true, NONE, 2 },
        { SYS_symlink, NONE, 1, MAKES, true, NONE, NONE },
        { SYS_symlinkat, 1, 2, MAKES, true, NONE, NONE },
        { SYS_link, NONE, 1, MAKES, true, NONE, NONE },
        { SYS_linkat, 2, 3, MAKES, true, NONE, NONE },
        { SYS_rename, NONE, 1, MOVES, true, NONE, NONE },
        { SYS_renameat, 2, 3, MOVES, true, NONE, NONE },
        { SYS_renameat2, 2, 3, MOVES, true, NONE, NONE },
};

/* ---- Following a path ---- */

/* Where something open is, as the box sees it. Init's own corner of /proc is nobody's, nor is that
 * of a process that acts for it. */
static int place_of(int fd, char *room, size_t size)
{
        char own[40] = "/proc/";
        size_t n_own = (size_t)(text_number(own + 6, (uint64_t)getpid()) - own);
        int r = guard_text_of(fd, room, size);

        if (r < 0)
                return r;
        if ((strncmp(room, "/proc/1", 7) == 0 && strchr("/", room[7])) ||
            (strncmp(room, own, n_own) == 0 && strchr("/", room[n_own])))
                return -EACCES;
        return 0;
}

/* Where a path leads to. */
struct found {
        int fd;              /* -1: there is nothing */
        int parent;          /* its directory; -1: that is not there either, or was not looked at */
        bool lacked;         /* the host may have it */
        bool closed;         /* it is the last directory on the way, whose mode lets nobody pass */
        char text[PATH_MAX]; /* as the box sees it, links resolved */
};

static void found_close(struct found *found)
{
        found->fd = base_close(found->fd);
        found->parent = base_close(found->parent);
}

/* What is missing in a tree of the host's is missing on the host as well. Only what the box has of
 * its own, which is all of this kind, may lack something that the host has. */
static bool may_lack(int directory)
{
        struct statfs fs;

        return fstatfs(directory, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

/* A step of the path is not there: what it would have been called. Behind it, `..` means nothing.
 */
static bool end_missing(struct found *found, int at, const char *name, const char *rest)
{
        size_t n;

        found->lacked = may_lack(at);
        if (place_of(at, found->text, sizeof(found->text)) < 0)
                return false;
        n = strlen(found->text);
        if (n + strlen(name) + strlen(rest) + 3 > sizeof(found->text))
                return false;
        if (n > 1)
                found->text[n++] = '/';
        text_copy(found->text + n, sizeof(found->text) - n, name);
        n += strlen(name);
        if (*rest) {
                found->text[n++] = '/';
                text_copy(found->text + n, sizeof(found->text) - n, strstr(rest, "..") ? "" : rest);
                for (n = strlen(found->text); n > 1 && found->text[n - 1] == '/'; n--)
                        found->text[n - 1] = '\0';
        } else {
                found->parent = fcntl(at, F_DUPFD_CLOEXEC, 3);
        }
        return true;
}

/* Put where a link leads before the rest of a path. */
static bool put_before(int link, char *path, const char *rest)
{
        char whole[PATH_MAX];
        ssize_t n = readlinkat(link, "", whole, sizeof(whole) - 1);
        size_t length = strlen(rest);

        if (n <= 0 || (size_t)n + length + 2 > sizeof(whole))
                return false;
        whole[n] = '/';
        memcpy(whole + n + 1, rest, length + 1);
        memcpy(path, whole, (size_t)n + length + 2);
        return true;
}

static int open_start(int base, const char *path)
{
        return openat(path[0] == '/' ? AT_FDCWD : base, path[0] == '/' ? "/" : ".",
                      O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Follow a path step by step, as the kernel does: a link in it may lead out of what is shown. False
 * where it cannot be told. */
static bool look_up(int base, const char *path, bool link, struct found *found)
{
        char left[PATH_MAX], name[NAME_MAX + 1], *rest = left;
        _cleanup_fd_ int at = open_start(base, path);
        int links = 0;

        text_copy(left, sizeof(left), path);
        while (at >= 0 && *(rest += strspn(rest, "/"))) {
                size_t n = strcspn(rest, "/");
                _cleanup_fd_ int next = -1;
                struct stat st;

                if (n > NAME_MAX)
                        return false;
                text_copy(name, n + 1, rest);
                rest += n + strspn(rest + n, "/");
                next = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
                if (next < 0 && errno == EACCES) {
                        found->closed = true;
                        break;
                }
                if (next < 0)
                        return errno == ENOENT && end_missing(found, at, name, rest);
                if (fstat(next, &st) < 0)
                        return false;
                if (S_ISLNK(st.st_mode) && (*rest || !link)) {
                        if (++links > LINKS_MAX || !put_before(next, left, rest))
                                return false;
                        rest = left;
                        if (left[0] != '/')
                                continue;
                        base_close(next);
                        next = open_start(-1, "/");
                }
                base_close(at);
                at = TAKE_FD(next);
        }
        if (at < 0 || place_of(at, found->text, sizeof(found->text)) < 0)
                return false;
        found->fd = TAKE_FD(at);
        return true;
}

/* ---- Noting ---- */

static bool is_read_only(int fd)
{
        struct statvfs fs;

        return fstatvfs(fd, &fs) == 0 && (fs.f_flag & ST_RDONLY);
}

/* Does its mode keep the box's user, who init is as well, from something? */
static bool is_closed(int fd, int mode)
{
        return mode != 0 && syscall(SYS_faccessat2, fd, "", mode, AT_EMPTY_PATH) < 0 &&
               errno == EACCES;
}

/* ... and would it not keep the caller? Run by a user, the box is that user, and what he may not do
 * is not the box's to tell; run by root, it may less than its caller. What hides is closed to
 * everyone, and is the box's own; what nobody may execute is no program. */
static bool is_closed_by_mode(const struct child *child, int fd, int mode)
{
        struct stat st;

        return child->plan->privileged && is_closed(fd, mode) && fstat(fd, &st) == 0 &&
               st.st_dev != child->page->root_device && (mode != X_OK || (st.st_mode & 0111));
}

/* The place that the policy hides, where this is it or lies in it. */
static const char *hidden_place(const struct child *child, const char *text)
{
        const struct plan_step *step = plan_step_for(child->plan, text);

        return step && step->kind == PLAN_HIDE ? step->target : NULL;
}

/* Landlock lets names be listed in a directory with all that is in it, or not at all. */
static bool hides_below(const struct plan *plan, const char *text)
{
        for (size_t i = 0; i < plan->n_steps; i++) {
                const struct plan_step *step = &plan->steps[i];

                if (step->kind == PLAN_HIDE && step->directory && lies_in(step->target, text))
                        return true;
        }
        return false;
}

/* What is closed because something is hidden, or NULL. Without namespaces nothing covers it, and
 * directories can be passed. */
static const char *closed_by_hiding(const struct child *child, const struct found *found, int mode)
{
        const char *place = hidden_place(child, found->text);
        struct stat st;

        if (mode == 0 || fstat(found->fd, &st) < 0)
                return NULL;
        if (!child->plan->caged)
                return is_closed(found->fd, mode) ? place : NULL;
        if (S_ISDIR(st.st_mode) && mode == X_OK)
                return NULL;
        if (!place && S_ISDIR(st.st_mode) && guard_may_read(child, found->text) &&
            hides_below(child->plan, found->text))
                return found->text;
        return place;
}

/* Without namespaces it is there, but closed. */
static void note_closed(struct child *child, const struct found *found, enum want want)
{
        if (guard_may_change(child, found->text))
                return;
        if (want != SEES)
                notify_trace(child->page,
                             want == REMOVES || want == MOVES ? BOX_TRACE_REMOVE : BOX_TRACE_WRITE,
                             found->text, EACCES);
        else if (!guard_may_read(child, found->text))
                notify_trace(child->page, BOX_TRACE_FILE, found->text, EACCES);
}

/* Something that is there. */
static void note_there(struct child *child, const struct found *found, enum want want)
{
        if (child->plan->caged && want != MAKES) {
                note_closed(child, found, want);
                return;
        }
        if (want == SEES || want == MAKES || !is_read_only(found->fd))
                return;
        notify_trace(child->page,
                     want == REMOVES || want == MOVES ? BOX_TRACE_REMOVE : BOX_TRACE_WRITE,
                     found->text, EROFS);
}

/* Something that is not. */
static void note_missing(struct child *child, const struct found *found, enum want want)
{
        bool makes = makes_name(want);

        if (makes && found->parent >= 0) {
                if (is_read_only(found->parent))
                        notify_trace(child->page, BOX_TRACE_WRITE, found->text, EROFS);
                else if (child->plan->caged && !guard_may_change(child, found->text))
                        notify_trace(child->page, BOX_TRACE_WRITE, found->text, EACCES);
                return;
        }
        if (found->lacked)
                notify_trace(child->page,
                             makes                ? BOX_TRACE_WRITE
                             : want == REMOVES    ? BOX_TRACE_REMOVE
                             : want == CHANGES    ? BOX_TRACE_CHANGE
                             : found->parent >= 0 ? BOX_TRACE_FILE
                                                  : BOX_TRACE_LOST,
                             found->text, ENOENT);
}

static void note_found(struct child *child, const struct found *found, enum want want, int mode)
{
        const char *hidden;

        if (strncmp(found->text, "/proc/", 6) == 0 || strncmp(found->text, "/dev/", 5) == 0)
                return;
        if (found->closed)
                mode = X_OK;
        hidden = found->fd >= 0 ? closed_by_hiding(child, found, mode) : NULL;
        if (hidden)
                notify_trace(child->page, BOX_TRACE_FILE, hidden, EACCES);
        else if (found->fd >= 0 && is_closed_by_mode(child, found->fd, mode) &&
                 (!child->plan->caged || guard_may_read(child, found->text)))
                notify_trace(child->page, BOX_TRACE_MODE, found->text, EACCES);
        else if (found->closed)
                return;
        else if (found->fd >= 0)
                note_there(child, found, want);
        else
                note_missing(child, found, want);
}

/* The system has links into parts of /etc that programs do without. */
static bool is_link_of_system(int base, const char *path)
{
        struct open_how how = { .flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
                                .resolve = RESOLVE_NO_MAGICLINKS };
        _cleanup_fd_ int fd = strncmp(path, "/usr/", 5) == 0 ? own_openat2(base, path, &how) : -1;

        return fd >= 0;
}

/* Does it look for something that is not there or is closed, or want to change something? Most do
 * neither. */
static bool is_worth_it(int base, const char *path, enum want want, bool link, int mode)
{
        struct open_how how = { .flags = O_PATH | O_CLOEXEC | (link ? O_NOFOLLOW : 0),
                                .resolve = RESOLVE_NO_MAGICLINKS };
        _cleanup_fd_ int fd = own_openat2(base, path, &how);

        if (fd >= 0)
                return want != SEES || is_closed(fd, mode);
        return errno == EACCES ||
               (errno == ENOENT && !(want == SEES && is_link_of_system(base, path)));
}

/* What the mode of a file must allow. */
static int mode_for(const struct seccomp_notif *call, const struct looking *looking, enum want want)
{
        if (want != SEES)
                return 0;
        switch (call->data.nr) {
        case SYS_open:
        case SYS_openat:
                return call->data.args[looking->path + 1] & O_PATH ? 0 : R_OK;
        case SYS_chdir:
        case SYS_execve:
        case SYS_execveat:
                return X_OK;
        default:
                return 0;
        }
}

static void note(struct child *child, const struct seccomp_notif *call,
                 const struct looking *looking, enum want want, bool link)
{
        int mode = mode_for(call, looking, want);
        int dirfd = looking->directory < 0 ? AT_FDCWD : (int)call->data.args[looking->directory];
        bool named = looking->path >= 0 && call->data.args[looking->path] != 0;
        _cleanup_(found_close) struct found found = { .fd = -1, .parent = -1 };
        _cleanup_fd_ int base = -1;
        char path[PATH_MAX] = ".";

        if (named &&
            (guard_read_text(call, call->data.args[looking->path], path, sizeof(path)) < 0 ||
             !*path || strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/dev/", 5) == 0))
                return;
        base = path[0] == '/' ? -1 : guard_base(child, call, dirfd);
        if (path[0] != '/' && base < 0)
                return;
        if (!named) { /* the descriptor itself: a file, or a directory */
                found.fd = TAKE_FD(base);
                if (place_of(found.fd, found.text, sizeof(found.text)) == 0)
                        note_found(child, &found, want, 0);
        } else if ((child->plan->caged || is_worth_it(base, path, want, link, mode)) &&
                   look_up(base, path, link, &found)) {
                note_found(child, &found, want, mode);
        }
}

void guard_note_socket(struct child *child, int base, const char *path)
{
        _cleanup_(found_close) struct found found = { .fd = -1, .parent = -1 };
        const char *hidden;

        if (strncmp(path, "/proc/", 6) == 0 || !look_up(base, path, false, &found))
                return;
        hidden = found.closed ? hidden_place(child, found.text) : NULL;
        if (hidden)
                notify_trace(child->page, BOX_TRACE_CONNECT, hidden, EACCES);
        else if (found.lacked)
                notify_trace(child->page, BOX_TRACE_CONNECT, found.text, ENOENT);
}

void guard_note_full(struct child *child)
{
        const struct plan *plan = child->plan;

        for (size_t i = 0; i <= plan->n_steps; i++) {
                const char *path = i < plan->n_steps ? plan->steps[i].target : "/dev/shm";
                struct statvfs fs;

                if ((i == plan->n_steps || plan->steps[i].kind == PLAN_TMPFS) &&
                    statvfs(path, &fs) == 0 &&
                    ((fs.f_blocks && !fs.f_bavail) || (fs.f_files && !fs.f_ffree)))
                        notify_trace(child->page, BOX_TRACE_FULL, path, ENOSPC);
        }
}

/* ---- Which call it is ---- */

static bool is_opening(const struct seccomp_notif *call)
{
        return call->data.nr == SYS_open || call->data.nr == SYS_openat;
}

/* The mode of a file that the call may make or change is in a register: nothing can be put in its
 * place when the call goes on. */
static bool sets_privileges(const struct seccomp_notif *call, const struct looking *looking,
                            enum want want)
{
        int mode = looking->mode;

        if (is_opening(call) &&
            (want == WRITES || (call->data.args[looking->path + 1] & O_TMPFILE & ~O_DIRECTORY)))
                mode = looking->path + 2;
        return mode >= 0 && (call->data.args[mode] & (S_ISUID | S_ISGID));
}

static enum want want_of(const struct seccomp_notif *call, const struct looking *looking)
{
        int flags = (int)call->data.args[looking->path + 1];

        if (!is_opening(call))
                return looking->want;
        if (flags & O_CREAT)
                return WRITES;
        return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) ? CHANGES : SEES;
}

/* A file that is opened for reading and truncated with it goes by Landlock before ABI 3
 * (syscalls_cage.c). */
static bool truncates_unseen(const struct seccomp_notif *call, const struct looking *looking)
{
        int flags = is_opening(call) ? (int)call->data.args[looking->path + 1] : 0;

        return (flags & O_ACCMODE) == O_RDONLY && (flags & O_TRUNC);
}

static bool means_link(const struct seccomp_notif *call, const struct looking *looking)
{
        int flags = is_opening(call) ? (int)call->data.args[looking->path + 1] : 0;

        if ((flags & O_NOFOLLOW) || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
                return true;
        return looking->link ||
               (looking->flags >= 0 && (call->data.args[looking->flags] & AT_SYMLINK_NOFOLLOW));
}

/* Will the guard make the call itself? */
static bool is_guards(const struct plan *plan, const struct seccomp_notif *call,
                      const struct looking *looking, enum want want)
{
        if (is_opening(call) && (call->data.args[looking->path + 1] & O_PATH))
                return false;
        if (is_opening(call) && want == SEES)
                return plan->hides;
        return plan->guarded && want != SEES;
}

bool guard_explain(struct child *child, const struct seccomp_notif *call)
{
        for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
                const struct looking *looking = &calls[i];
                enum want want;

                if (looking->number != call->data.nr)
                        continue;
                want = want_of(call, looking);
                if (atomic_load(&child->page->started) != 0) {
                        note(child, call, looking, want, means_link(call, looking));
                        if (want == REMOVES || want == CHANGES) /* there may be room afterwards */
                                guard_note_full(child);
                }
                /* What the filter would refuse is refused here. */
                if (is_guards(child->plan, call, looking, want) ||
                    (child->plan->caged && truncates_unseen(call, looking)) ||
                    sets_privileges(call, looking, want))
                        return false;
                guard_continue(child, call);
                return true;
        }
        return false;
}
