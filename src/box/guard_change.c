/* SPDX-License-Identifier: MIT */
/*
 * Changes to files that no open descriptor stands for: modes, owners, times, sizes, attributes, and
 * the removal of names. In a box without namespaces nothing but the file's owner would be asked for
 * most of them, and that is the box's own user; in any other a mount that keeps a file goes with
 * the file's name. So init makes them: on what it has looked up once, where the program may write,
 * and nowhere else.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

#include "box/guard.h"
#include "box/init.h"
#include "box/own.h"

#define PRIVILEGED_BITS (S_ISUID | S_ISGID)
#define LINKS_MAX 40

enum change { CHANGE_MODE, CHANGE_OWNER, CHANGE_TIMES, CHANGE_SIZE, CHANGE_ATTRIBUTE };

struct request {
        enum change change;
        mode_t mode;
        uid_t uid;
        gid_t gid;
        struct timespec times[2];
        bool now; /* both times are the present */
        off_t size;
        struct attribute *attribute;
};

#define ATTRIBUTE_MAX (64 * KIB) /* the kernel's own limit */

struct attribute {
        char name[256];
        char value[ATTRIBUTE_MAX];
        size_t length;
        int flags;
        bool remove;
};

/* ---- Where it is ---- */

static bool shown(const struct plan *plan, const char *text, bool writable)
{
        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].kind == PLAN_TREE && (plan->steps[i].writable || !writable) &&
                    lies_in(text, plan->steps[i].target))
                        return true;
        return false;
}

bool guard_may_change(const struct child *child, const char *text)
{
        if (lies_in(text, child->page->scratch))
                return true;
        return plan_keeps(child->plan, text) < PLAN_KEPT && shown(child->plan, text, true);
}

bool guard_may_read(const struct child *child, const char *text)
{
        return lies_in(text, "/proc") || lies_in(text, "/dev") || shown(child->plan, text, false);
}

/* ---- Making the change ---- */

static int apply(int fd, const struct request *request)
{
        char link[40];
        int r = 0;

        guard_own_link(fd, link);
        switch (request->change) {
        case CHANGE_MODE:
                r = own_fchmodat(AT_FDCWD, link, request->mode & 07777);
                break;
        case CHANGE_OWNER:
                r = own_fchownat(fd, "", request->uid, request->gid, AT_EMPTY_PATH);
                break;
        case CHANGE_TIMES: /* by the link, but for a symbolic link itself */
                r = own_utimensat(AT_FDCWD, link, request->now ? NULL : request->times, 0);
                if (r < 0 && errno == ELOOP)
                        r = own_utimensat(fd, "", request->now ? NULL : request->times,
                                          AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
                break;
        case CHANGE_SIZE:
                r = own_truncate(link, request->size);
                break;
        case CHANGE_ATTRIBUTE:
                r = request->attribute->remove
                            ? own_removexattr(link, request->attribute->name)
                            : own_setxattr(link, request->attribute->name,
                                           request->attribute->value, request->attribute->length,
                                           request->attribute->flags);
                break;
        }
        return r < 0 ? -errno : 0;
}

/* The kernel asks init for its own limit. */
static int check_size(const struct seccomp_notif *call, off_t size)
{
        struct rlimit limit;

        if (syscall(SYS_prlimit64, call->pid, RLIMIT_FSIZE, NULL, &limit) < 0)
                return -EPERM;
        return size >= 0 && (rlim_t)size > limit.rlim_cur ? -EFBIG : 0;
}

/* What is to be changed. */
struct target {
        int fd;     /* allows nothing */
        int parent; /* of the directory that it was found in; -1: it was open */
        char text[PATH_MAX];
        struct statx st;
};

static void target_close(struct target *target)
{
        target->fd = base_close(target->fd);
        target->parent = base_close(target->parent);
}

/* Does the plan let it be changed? */
static int check(struct child *child, const struct target *target)
{
        const char *text = target->text;
        enum plan_keeping found;

        if (child->plan->caged && !guard_may_change(child, text)) {
                notify_trace(child->page, BOX_TRACE_WRITE, text, EROFS);
                return -EROFS;
        }
        found = target->parent < 0 ? guard_keeping_of(child, text, &target->st)
                                   : plan_greater(guard_keeping(child, target->parent, text),
                                                  guard_keeping_node(child, &target->st));
        if (found >= PLAN_KEPT)
                return guard_refuse(child, target->fd, text);
        return guard_is_writable(child, target->fd, text) ? 0 : -EROFS;
}

static int change(struct child *child, const struct seccomp_notif *call,
                  const struct target *target, const struct request *request)
{
        int r = check(child, target);

        if (r == 0 && request->change == CHANGE_SIZE)
                r = check_size(call, request->size);
        if (r == 0 && request->change == CHANGE_MODE && (request->mode & PRIVILEGED_BITS) &&
            !child->plan->sets_ids)
                r = -EPERM;
        if (r == 0 && !guard_is_alive(child, call))
                r = -ESRCH;
        return r < 0 ? r : apply(target->fd, request);
}

/* One of the caller's descriptors; or its current directory, which a call with a path may mean. */
static int take_open(struct child *child, const struct seccomp_notif *call, int number,
                     struct target *ret)
{
        int r;

        ret->parent = -1;
        ret->fd = guard_base(child, call, number);
        if (ret->fd < 0)
                return ret->fd;
        r = guard_look(ret->fd, "", &ret->st);
        return r < 0 ? r : guard_text_of(ret->fd, ret->text, sizeof(ret->text));
}

static bool is_dots(const char *name)
{
        return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* What a path leads to, looked up once; with the last link or without. */
static int take_path(struct child *child, const struct seccomp_notif *call, int dirfd,
                     uint64_t address, bool follow, struct target *ret)
{
        _cleanup_(guard_path_close) struct guard_path path;
        int r = guard_resolve(child, call, dirfd, address, &path);

        ret->fd = ret->parent = -1;
        ret->st = (struct statx){ 0 };
        for (int links = 0; r == 0; links++) {
                ret->fd = openat(path.parent, path.name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
                r = ret->fd < 0 ? -errno : guard_look(ret->fd, "", &ret->st);
                if (r < 0 || !follow || !S_ISLNK(ret->st.stx_mode))
                        break;
                ret->fd = base_close(ret->fd);
                r = links == LINKS_MAX ? -ELOOP : guard_follow(child, call, &path);
        }
        if (r < 0)
                return r;
        if (is_dots(path.name))
                return guard_text_of(ret->fd, ret->text, sizeof(ret->text));
        ret->parent = TAKE_FD(path.parent);
        text_copy(ret->text, sizeof(ret->text), path.text);
        return 0;
}

static void serve_path(struct child *child, const struct seccomp_notif *call, int dirfd,
                       uint64_t address, int flags, const struct request *request)
{
        _cleanup_(target_close) struct target target;
        char first = '\0';
        int r;

        /* An empty path, where that is allowed, stands for the descriptor itself. */
        if ((flags & AT_EMPTY_PATH) &&
            (!address || (guard_read(call, address, &first, 1) == 0 && !first)))
                r = take_open(child, call, dirfd, &target);
        else
                r = take_path(child, call, dirfd, address, !(flags & AT_SYMLINK_NOFOLLOW), &target);
        guard_answer(child, call, r < 0 ? r : change(child, call, &target, request));
}

static void serve_descriptor(struct child *child, const struct seccomp_notif *call, int number,
                             const struct request *request)
{
        _cleanup_(target_close) struct target target;
        int r = -EBADF;

        target.fd = target.parent = -1;
        if (number >= 0)
                r = take_open(child, call, number, &target);
        guard_answer(child, call, r < 0 ? r : change(child, call, &target, request));
}

/* ---- Times, in the forms in which they come ---- */

static int read_timespecs(const struct seccomp_notif *call, uint64_t address, struct request *to)
{
        to->now = address == 0;
        return to->now ? 0 : guard_read(call, address, to->times, sizeof(to->times));
}

static int read_timevals(const struct seccomp_notif *call, uint64_t address, struct request *to)
{
        struct timeval times[2];
        int r;

        to->now = address == 0;
        r = to->now ? 0 : guard_read(call, address, times, sizeof(times));
        for (int i = 0; r == 0 && !to->now && i < 2; i++) {
                if (times[i].tv_usec < 0 || times[i].tv_usec >= 1000000)
                        return -EINVAL;
                to->times[i] = (struct timespec){ times[i].tv_sec, (long)times[i].tv_usec * 1000 };
        }
        return r;
}

static int read_seconds(const struct seccomp_notif *call, uint64_t address, struct request *to)
{
        struct utimbuf times = { 0 };
        int r;

        to->now = address == 0;
        r = to->now ? 0 : guard_read(call, address, &times, sizeof(times));
        if (r == 0 && !to->now) {
                to->times[0] = (struct timespec){ .tv_sec = times.actime };
                to->times[1] = (struct timespec){ .tv_sec = times.modtime };
        }
        return r;
}

static void serve_times(struct child *child, const struct seccomp_notif *call)
{
        struct request request = { .change = CHANGE_TIMES };
        const __u64 *a = call->data.args;
        int r;

        switch (call->data.nr) {
        case SYS_utime:
        case SYS_utimes:
                r = call->data.nr == SYS_utime ? read_seconds(call, a[1], &request)
                                               : read_timevals(call, a[1], &request);
                if (r == 0)
                        serve_path(child, call, AT_FDCWD, a[0], 0, &request);
                break;
        case SYS_futimesat:
                r = read_timevals(call, a[2], &request);
                if (r == 0)
                        serve_path(child, call, (int)a[0], a[1], a[1] ? 0 : AT_EMPTY_PATH,
                                   &request);
                break;
        default:
                r = read_timespecs(call, a[2], &request);
                if (r == 0)
                        serve_path(child, call, (int)a[0], a[1],
                                   (int)a[3] | (a[1] ? 0 : AT_EMPTY_PATH), &request);
        }
        if (r < 0)
                guard_answer(child, call, r);
}

/* ---- Attributes ---- */

static int read_attribute(const struct seccomp_notif *call, struct attribute *ret)
{
        const __u64 *a = call->data.args;
        int r = guard_read_text(call, a[1], ret->name, sizeof(ret->name));

        if (r < 0)
                return r == -ENAMETOOLONG ? -ERANGE : r;
        ret->remove = call->data.nr == SYS_removexattr || call->data.nr == SYS_lremovexattr ||
                      call->data.nr == SYS_fremovexattr;
        if (ret->remove)
                return 0;
        ret->length = a[3];
        ret->flags = (int)a[4];
        if (ret->length > sizeof(ret->value))
                return -E2BIG;
        return ret->length > 0 ? guard_read(call, a[2], ret->value, ret->length) : 0;
}

static void serve_attribute(struct child *child, const struct seccomp_notif *call)
{
        static struct attribute attribute; /* large for a stack */
        struct request request = { .change = CHANGE_ATTRIBUTE, .attribute = &attribute };
        bool link = call->data.nr == SYS_lsetxattr || call->data.nr == SYS_lremovexattr;
        /* Programs that copy files do without where there are none. */
        int r = child->plan->caged ? -EOPNOTSUPP : read_attribute(call, &attribute);

        if (r < 0)
                guard_answer(child, call, r);
        else if (call->data.nr == SYS_fsetxattr || call->data.nr == SYS_fremovexattr)
                serve_descriptor(child, call, (int)call->data.args[0], &request);
        else
                serve_path(child, call, AT_FDCWD, call->data.args[0],
                           link ? AT_SYMLINK_NOFOLLOW : 0, &request);
}

/* ---- Removing ---- */

static void serve_remove(struct child *child, const struct seccomp_notif *call, int dirfd,
                         uint64_t address, int flags)
{
        _cleanup_(guard_path_close) struct guard_path path;
        int r = guard_resolve(child, call, dirfd, address, &path);

        if (!guard_is_alive(child, call))
                return;
        if (r == 0)
                r = guard_check_old(child, &path, flags & AT_REMOVEDIR);
        if (r == 0)
                r = own_unlinkat(path.parent, path.given, flags) < 0 ? -errno : 0;
        if (r == -EACCES && child->plan->explain && path.parent >= 0 &&
            !guard_may_change(child, path.text)) /* Landlock keeps it */
                notify_trace(child->page, BOX_TRACE_REMOVE, path.text, EACCES);
        guard_answer(child, call, r);
}

/* ---- Which call it is ---- */

static bool serve_owner(struct child *child, const struct seccomp_notif *call)
{
        const __u64 *a = call->data.args;
        bool at = call->data.nr == SYS_fchownat;
        struct request request = { .change = CHANGE_OWNER,
                                   .uid = (uid_t)a[1 + at],
                                   .gid = (gid_t)a[2 + at] };

        switch (call->data.nr) {
        case SYS_fchown:
                serve_descriptor(child, call, (int)a[0], &request);
                return true;
        case SYS_chown:
        case SYS_lchown:
                serve_path(child, call, AT_FDCWD, a[0],
                           call->data.nr == SYS_lchown ? AT_SYMLINK_NOFOLLOW : 0, &request);
                return true;
        case SYS_fchownat:
                serve_path(child, call, (int)a[0], a[1], (int)a[4], &request);
                return true;
        default:
                return false;
        }
}

bool guard_change(struct child *child, const struct seccomp_notif *call)
{
        const __u64 *a = call->data.args;
        struct request mode = { .change = CHANGE_MODE, .mode = (mode_t)a[1] };
        struct request mode_at = { .change = CHANGE_MODE, .mode = (mode_t)a[2] };
        struct request size = { .change = CHANGE_SIZE, .size = (off_t)a[1] };

        switch (call->data.nr) {
        case SYS_chmod:
                serve_path(child, call, AT_FDCWD, a[0], 0, &mode);
                return true;
        case SYS_fchmod:
                serve_descriptor(child, call, (int)a[0], &mode);
                return true;
        case SYS_fchmodat:
        case 452: /* fchmodat2, newer than the headers */
                serve_path(child, call, (int)a[0], a[1],
                           call->data.nr == SYS_fchmodat ? 0 : (int)a[3], &mode_at);
                return true;
        case SYS_truncate:
                serve_path(child, call, AT_FDCWD, a[0], 0, &size);
                return true;
        case SYS_utime:
        case SYS_utimes:
        case SYS_futimesat:
        case SYS_utimensat:
                serve_times(child, call);
                return true;
        case SYS_unlink:
        case SYS_rmdir:
                serve_remove(child, call, AT_FDCWD, a[0],
                             call->data.nr == SYS_rmdir ? AT_REMOVEDIR : 0);
                return true;
        case SYS_unlinkat:
                serve_remove(child, call, (int)a[0], a[1], (int)a[2]);
                return true;
        case SYS_setxattr:
        case SYS_lsetxattr:
        case SYS_fsetxattr:
        case SYS_removexattr:
        case SYS_lremovexattr:
        case SYS_fremovexattr:
                serve_attribute(child, call);
                return true;
        default:
                return serve_owner(child, call);
        }
}
