/* SPDX-License-Identifier: MIT */
/* The guard: which watched call is which, and the making of names. */
#include "box/guard.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "box/init.h"
#include "policy/syscalls.h"

#define LINKS_MAX 40
#define PRIVILEGED_BITS (S_ISUID | S_ISGID) /* the filter refuses them elsewhere */
#define RETRIES_MAX 8

void guard_answer(struct child *child, const struct seccomp_notif *call, int r)
{
        struct seccomp_notif_resp answer = { .id = call->id, .error = r < 0 ? r : 0 };

        (void)ioctl(child->notifier, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

void guard_continue(struct child *child, const struct seccomp_notif *call)
{
        struct seccomp_notif_resp answer = { .id = call->id,
                                             .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

        (void)ioctl(child->notifier, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

bool guard_delegate(struct child *child, const struct seccomp_notif *call)
{
        pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

        if (pid < 0)
                guard_answer(child, call, -EAGAIN);
        return pid == 0;
}

_Noreturn void guard_leave(void)
{
        syscall(SYS_exit_group, 0);
        __builtin_unreachable();
}

/* ---- Protected names ---- */

static bool protected(const struct child *child, const struct guard_path *path)
{
        for (size_t i = 0; i < child->plan->n_guards; i++)
                if (plan_is_guarded(&child->plan->guards[i], path->text) &&
                    box_fence(FENCE_PROTECT))
                        return true;
        return guard_means_head(child, path) && box_fence(FENCE_PROTECT);
}

bool guard_is_kept(const struct child *child, const char *text)
{
        for (size_t i = 0; i < child->plan->n_guards; i++) {
                const struct plan_guard *kept = &child->plan->guards[i];

                if (!plan_guards_anywhere(kept) && strlen(text) >= strlen(kept->path) &&
                    plan_is_guarded(kept, text) && box_fence(FENCE_PROTECT))
                        return true;
        }
        return false;
}

static int refuse(struct child *child, const struct guard_path *path)
{
        notify_trace(child->page, BOX_TRACE_PROTECTED, path->text, EPERM);
        return -EPERM;
}

static bool exists(const struct guard_path *path)
{
        struct stat st;

        return fstatat(path->parent, path->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Nothing is ever made at a protected name, not even what the kernel would refuse: it might have
 * gone away between a look and the call. */
int guard_check_new(struct child *child, const struct guard_path *path)
{
        if (!protected(child, path))
                return 0;
        return exists(path) ? -EEXIST : refuse(child, path);
}

/* ---- Opening with O_CREAT ---- */

static int inject(struct child *child, const struct seccomp_notif *call, int fd, int flags)
{
        struct seccomp_notif_addfd add = { .id = call->id,
                                           .srcfd = (uint32_t)fd,
                                           .newfd_flags = (uint32_t)(flags & O_CLOEXEC) };
        struct seccomp_notif_resp answer = { .id = call->id };
        bool writes = (flags & O_ACCMODE) != O_RDONLY;

        /* What is open for writing cannot be run: let go of it before the program goes on. */
        if (!writes)
                add.flags = SECCOMP_ADDFD_FLAG_SEND;
        answer.val = ioctl(child->notifier, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
        if (answer.val < 0)
                return -errno;
        base_close(fd);
        if (writes)
                (void)ioctl(child->notifier, SECCOMP_IOCTL_NOTIF_SEND, &answer);
        return 0;
}

/* The terminal of the calling process, where it says /dev/tty. */
static int open_terminal_of(struct child *child, const struct seccomp_notif *call, int flags)
{
        char room[512], path[32] = "/dev/pts/", *at;
        uint64_t device = 0;
        _cleanup_fd_ int stat = -1;
        ssize_t n;
        int fd;

        at = text_number(room, call->pid);
        text_copy(at, 8, "/stat");
        stat = openat(child->proc, room, O_RDONLY | O_CLOEXEC);
        n = stat < 0 ? -1 : read(stat, room, sizeof(room) - 1);
        if (n <= 0)
                return -ENXIO;
        room[n] = '\0';
        at = strrchr(room, ')'); /* field 2; the terminal is field 7 */
        for (unsigned field = 2; at && field < 7; field++)
                at = strchr(at + 1, ' ');
        for (at = at ? at + 1 : room; *at >= '0' && *at <= '9'; at++)
                device = device * 10 + (uint64_t)(*at - '0');
        if (device == 0)
                return -ENXIO;
        text_number(path + strlen(path), device & 0xff);
        fd = open(path, flags | O_CLOEXEC | O_NOCTTY, 0);
        return fd < 0 ? -errno : fd;
}

/* Something that is neither file nor directory may block when it is opened. */
static void open_special(struct child *child, const struct seccomp_notif *call,
                         const struct guard_path *path, int flags, const struct stat *st)
{
        int fd, r;

        if (!guard_delegate(child, call))
                return;
        if (S_ISCHR(st->st_mode) && st->st_rdev == makedev(5, 0))
                fd = open_terminal_of(child, call, flags);
        else
                fd = openat(path->parent, path->name, flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0);
        r = fd < 0 ? (fd == -1 ? -errno : fd) : inject(child, call, fd, flags);
        if (r < 0)
                guard_answer(child, call, r);
        guard_leave();
}

static bool opens_to_change(int flags)
{
        return !(flags & O_PATH) && ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC));
}

/* Landlock before ABI 3 does not see what is cut off in opening. */
static bool cuts_what_is_kept(const struct child *child, int flags, const char *text)
{
        return child->plan->caged && (flags & O_TRUNC) && !(flags & O_PATH) &&
               !guard_may_change(child, text);
}

/* A file without a name, in the directory that is given. */
static bool makes_nameless(const struct child *child, int flags)
{
        return child->plan->caged && (flags & (O_TMPFILE | O_CREAT)) == O_TMPFILE;
}

/* Open what is there. -EAGAIN: it changed under our hands; 1: somebody else answers. Wherever flags
 * are the program's a mode goes with them: without one libc ends who asks for a nameless file. */
static int open_existing(struct child *child, const struct seccomp_notif *call,
                         const struct guard_path *path, bool create, int flags, mode_t mode,
                         const struct stat *st)
{
        bool waits = !(flags & O_NONBLOCK);
        struct stat now;
        int fd;

        if (S_ISDIR(st->st_mode) && makes_nameless(child, flags) && !create) {
                fd = openat(path->parent, path->name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
                return fd < 0 ? -errno : fd + 2;
        }
        if (S_ISDIR(st->st_mode) && (create || opens_to_change(flags)))
                return -EISDIR;
        if (path->slash && !S_ISDIR(st->st_mode))
                return -ENOTDIR;
        if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode)) {
                open_special(child, call, path, flags, st);
                return 1;
        }
        fd = openat(path->parent, path->name,
                    flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
        if (fd < 0)
                return errno == ELOOP || errno == ENOENT ? -EAGAIN : -errno;
        if (fstat(fd, &now) < 0 || (now.st_mode & S_IFMT) != (st->st_mode & S_IFMT)) {
                base_close(fd);
                return -EAGAIN;
        }
        if (waits)
                (void)fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
        return fd + 2; /* 0 and 1 mean other things */
}

/* One attempt; see open_existing for what it returns. */
static int try_open(struct child *child, const struct seccomp_notif *call, struct guard_path *path,
                    bool create, int flags, mode_t mode)
{
        struct stat st;
        int fd;

        if (fstatat(path->parent, path->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
                if ((flags & O_EXCL) && !makes_nameless(child, flags))
                        return -EEXIST;
                /* No mount keeps it as it is. */
                if (child->plan->caged && opens_to_change(flags) &&
                    guard_is_kept(child, path->text))
                        return refuse(child, path);
                if (S_ISREG(st.st_mode) && cuts_what_is_kept(child, flags, path->text))
                        return -EACCES;
                return open_existing(child, call, path, create, flags, mode, &st);
        }
        if (errno != ENOENT)
                return -errno;
        if (!create)
                return -ENOENT;
        if (path->slash)
                return -EISDIR;
        if (flags & O_PATH)
                return -ENOENT;
        if (protected(child, path))
                return refuse(child, path);
        fd = openat(path->parent, path->name,
                    flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, mode);
        if (fd < 0)
                return errno == EEXIST ? -EAGAIN : -errno;
        return fd + 2;
}

/* Go on where a link leads. */
int guard_follow(struct child *child, const struct seccomp_notif *call, struct guard_path *path)
{
        char target[PATH_MAX];
        int parent = path->parent, r;
        ssize_t n = readlinkat(parent, path->name, target, sizeof(target) - 1);

        if (n <= 0)
                return -errno;
        target[n] = '\0';
        r = guard_resolve_from(child, call, parent, target, path);
        base_close(parent);
        return r;
}

bool guard_is_link(const struct guard_path *path)
{
        struct stat st;

        return fstatat(path->parent, path->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
               S_ISLNK(st.st_mode);
}

/* A descriptor of the caller's own, named through /proc: opened through the link, which is what
 * the program would do; nothing is created there. */
static bool is_own_descriptor(const struct guard_path *path)
{
        return strncmp(path->text, "/proc/", 6) == 0 && strstr(path->text, "/fd/");
}

/* Open it again. What it leads to is held and looked at first, where no mount keeps it: it may have
 * been opened for reading. */
static int reopen(struct child *child, const struct guard_path *path, int flags)
{
        char link[40], text[PATH_MAX];
        _cleanup_fd_ int held = -1;
        struct stat st;
        int fd;

        if (!child->plan->caged || !opens_to_change(flags)) {
                fd = openat(path->parent, path->name, flags, 0);
                return fd < 0 ? -errno : fd;
        }
        held = openat(path->parent, path->name, O_PATH | O_CLOEXEC);
        if (held < 0)
                return -errno;
        if (guard_text_of(held, text, sizeof(text)) < 0 || guard_is_kept(child, text))
                return -EPERM;
        if (fstat(held, &st) < 0 || (S_ISREG(st.st_mode) && cuts_what_is_kept(child, flags, text)))
                return -EACCES;
        guard_own_link(held, link);
        fd = open(link, flags, 0);
        return fd < 0 ? -errno : fd;
}

static void serve_open(struct child *child, const struct seccomp_notif *call, int dirfd,
                       uint64_t address, int flags, mode_t mode)
{
        _cleanup_(guard_path_close) struct guard_path path;
        int r = guard_resolve(child, call, dirfd, address, &path), fd;
        bool create = flags & O_CREAT, nameless = makes_nameless(child, flags);

        umask((mode_t)guard_status(child, call, "Umask:", 8));
        if (r == 0 && path.slash && create)
                r = -EISDIR;
        if (r == 0 && nameless && strcmp(path.text, "/tmp") == 0) { /* libc knows no other place */
                guard_path_close(&path);
                r = guard_resolve_from(child, call, -1, child->page->scratch, &path);
        }
        for (int links = 0; r == 0 && guard_is_link(&path) && !is_own_descriptor(&path); links++) {
                if ((flags & O_EXCL) && !nameless)
                        r = -EEXIST;
                else if (links == LINKS_MAX || (flags & O_NOFOLLOW))
                        r = -ELOOP;
                else
                        r = guard_follow(child, call, &path);
        }
        if (!guard_is_alive(child, call))
                return;
        flags &= ~O_CREAT;
        if (r == 0 && (create || nameless) && (mode & PRIVILEGED_BITS))
                r = -EPERM;
        if (r == 0 && is_own_descriptor(&path)) {
                if (!guard_delegate(child, call))
                        return;
                fd = reopen(child, &path, (flags & ~O_EXCL) | O_CLOEXEC | O_NOCTTY);
                r = fd < 0 ? fd : inject(child, call, fd, flags);
                if (r < 0)
                        guard_answer(child, call, r);
                guard_leave();
        }
        for (int i = 0; r == 0 || r == -EAGAIN; i++) {
                r = i < RETRIES_MAX ? try_open(child, call, &path, create, flags, mode) : -ELOOP;
                if (r != -EAGAIN)
                        break;
        }
        if (r >= 2) {
                fd = r - 2;
                r = inject(child, call, fd, flags);
                if (r >= 0)
                        return;
                base_close(fd);
        }
        if (r < 0)
                guard_answer(child, call, r);
}

/* ---- Making and moving names ---- */

static void serve_make(struct child *child, const struct seccomp_notif *call, int dirfd,
                       uint64_t address, mode_t mode, dev_t device)
{
        _cleanup_(guard_path_close) struct guard_path path;
        int r = guard_resolve(child, call, dirfd, address, &path);

        if (!guard_is_alive(child, call))
                return;
        umask((mode_t)guard_status(child, call, "Umask:", 8));
        if (r == 0 && !S_ISDIR(mode) && (mode & PRIVILEGED_BITS))
                r = -EPERM;
        if (r == 0)
                r = guard_check_new(child, &path);
        if (r == 0 && S_ISDIR(mode))
                r = mkdirat(path.parent, path.name, mode & 07777) < 0 ? -errno : 0;
        else if (r == 0 && path.slash)
                r = -ENOENT;
        else if (r == 0)
                r = mknodat(path.parent, path.name, mode, device) < 0 ? -errno : 0;
        guard_answer(child, call, r);
}

static void serve_symlink(struct child *child, const struct seccomp_notif *call, uint64_t target,
                          int dirfd, uint64_t address)
{
        _cleanup_(guard_path_close) struct guard_path path;
        char text[PATH_MAX];
        int r = guard_read_text(call, target, text, sizeof(text));

        path.parent = -1;
        if (r == 0)
                r = guard_resolve(child, call, dirfd, address, &path);
        if (!guard_is_alive(child, call))
                return;
        if (r == 0)
                r = guard_check_new(child, &path);
        if (r == 0)
                r = symlinkat(text, path.parent, path.given) < 0 ? -errno : 0;
        guard_answer(child, call, r);
}

enum move { MOVE_LINK, MOVE_RENAME };

/* A second name for what is there already. Where no mount keeps a file as it is, one outside would
 * let it be changed: what is linked is held and looked at, whatever the name that led to it. */
static int link_to(struct child *child, const struct guard_path *from, const struct guard_path *to,
                   int flags)
{
        char link[40];
        struct guard_path kept;
        _cleanup_fd_ int held = -1;
        int r;

        if (!child->plan->caged)
                return linkat(from->parent, from->given, to->parent, to->given, flags) < 0 ? -errno
                                                                                           : 0;
        if (flags & ~AT_SYMLINK_FOLLOW)
                return -EINVAL;
        held = openat(from->parent, from->given,
                      O_PATH | O_CLOEXEC | (flags & AT_SYMLINK_FOLLOW ? 0 : O_NOFOLLOW));
        if (held < 0)
                return -errno;
        r = guard_text_of(held, kept.text, sizeof(kept.text));
        if (r < 0)
                return r;
        if (guard_is_kept(child, kept.text)) {
                (void)refuse(child, &kept);
                return -EXDEV; /* as across mounts: then programs copy */
        }
        guard_own_link(held, link);
        return linkat(AT_FDCWD, link, to->parent, to->given, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* Which part of the host it is, where no mounts tell. */
static const void *tree_of(const struct child *child, const char *text)
{
        return lies_in(text, child->page->scratch) ? (const void *)child->page->scratch
                                                   : plan_step_for(child->plan, text);
}

/* A directory brings along what is in it, whose names nobody looks at. It may come from where other
 * names are free, or be a part of a repository that can be made one itself. So it is as if it came
 * from another file system: programs copy. */
static bool brings_names(const struct child *child, const struct guard_path *from,
                         const struct guard_path *to)
{
        struct stat st;

        if (fstatat(from->parent, from->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISDIR(st.st_mode) || !box_fence(FENCE_PROTECT))
                return false;
        return plan_parts_repository(child->plan, from->text) ||
               (child->plan->caged && tree_of(child, from->text) != tree_of(child, to->text));
}

static void serve_move(struct child *child, const struct seccomp_notif *call, enum move move,
                       const int dirfds[2], const uint64_t addresses[2], unsigned flags)
{
        _cleanup_(guard_path_close) struct guard_path from, to;
        int r;

        to.parent = -1;
        r = guard_resolve(child, call, dirfds[0], addresses[0], &from);
        if (r == 0)
                r = guard_resolve(child, call, dirfds[1], addresses[1], &to);
        if (!guard_is_alive(child, call))
                return;
        if (r == 0 && protected(child, &to))
                r = refuse(child, &to);
        if (r == 0 && move == MOVE_RENAME && protected(child, &from))
                r = exists(&from) ? refuse(child, &from) : -ENOENT;
        if (r == 0 && move == MOVE_RENAME &&
            (brings_names(child, &from, &to) ||
             ((flags & RENAME_EXCHANGE) && brings_names(child, &to, &from))))
                r = -EXDEV;
        if (r == 0 && move == MOVE_RENAME)
                r = syscall(SYS_renameat2, from.parent, from.given, to.parent, to.given, flags) < 0
                            ? -errno
                            : 0;
        else if (r == 0)
                r = link_to(child, &from, &to, (int)flags & ~AT_EMPTY_PATH);
        guard_answer(child, call, r);
}

/* ---- Which call it is ---- */

static bool serve_naming(struct child *child, const struct seccomp_notif *call)
{
        const __u64 *a = call->data.args;
        const int here = AT_FDCWD;

        switch (call->data.nr) {
        case SYS_bind:
                guard_bind(child, call);
                return true;
        case SYS_open:
                serve_open(child, call, here, a[0], (int)a[1], (mode_t)a[2]);
                return true;
        case SYS_openat:
                serve_open(child, call, (int)a[0], a[1], (int)a[2], (mode_t)a[3]);
                return true;
        case SYS_creat:
                serve_open(child, call, here, a[0], O_WRONLY | O_TRUNC | O_CREAT, (mode_t)a[1]);
                return true;
        case SYS_mkdir:
                serve_make(child, call, here, a[0], S_IFDIR | ((mode_t)a[1] & 07777), 0);
                return true;
        case SYS_mkdirat:
                serve_make(child, call, (int)a[0], a[1], S_IFDIR | ((mode_t)a[2] & 07777), 0);
                return true;
        case SYS_mknod:
        case SYS_mknodat: {
                bool at = call->data.nr == SYS_mknodat;
                mode_t mode = (mode_t)a[1 + at];

                if (S_ISDIR(mode))
                        guard_answer(child, call, -EPERM);
                else
                        serve_make(child, call, at ? (int)a[0] : here, a[at], mode,
                                   (dev_t)a[2 + at]);
                return true;
        }
        case SYS_symlink:
                serve_symlink(child, call, a[0], here, a[1]);
                return true;
        case SYS_symlinkat:
                serve_symlink(child, call, a[0], (int)a[1], a[2]);
                return true;
        case SYS_link:
        case SYS_rename:
                serve_move(child, call, call->data.nr == SYS_link ? MOVE_LINK : MOVE_RENAME,
                           (int[]){ here, here }, (uint64_t[]){ a[0], a[1] }, 0);
                return true;
        case SYS_linkat:
        case SYS_renameat:
        case SYS_renameat2:
                serve_move(child, call, call->data.nr == SYS_linkat ? MOVE_LINK : MOVE_RENAME,
                           (int[]){ (int)a[0], (int)a[2] }, (uint64_t[]){ a[1], a[3] },
                           call->data.nr == SYS_renameat ? 0 : (unsigned)a[4]);
                return true;
        default:
                return false;
        }
}

static bool is_opening(const struct seccomp_notif *call)
{
        return call->data.nr == SYS_open || call->data.nr == SYS_openat;
}

/* A socket that may leave something in the net namespace (lend.h). The call is allowed and all that
 * is looked at is in registers, so it may be told to continue. */
static bool makes_network_socket(const struct seccomp_notif *call)
{
        return call->data.nr == SYS_socket &&
               syscalls_is_network_socket((const uint64_t *)call->data.args);
}

bool guard_serve(struct child *child, const struct seccomp_notif *call)
{
        const struct plan *plan = child->plan;
        int flags = (int)call->data.args[call->data.nr == SYS_open ? 1 : 2];

        if (call->data.arch != AUDIT_ARCH_X86_64)
                return false;
        if (plan->lends && makes_network_socket(call)) {
                note_network_used(child);
                guard_continue(child, call);
                return true;
        }
        if (call->data.nr == SYS_connect && (plan->guards_sockets || plan->explain)) {
                guard_connect(child, call);
                return true;
        }
        if (call->data.nr == SYS_bind && (plan->caged || plan->explain)) {
                guard_bind(child, call);
                return true;
        }
        if (plan->caged && (guard_change(child, call) || guard_signal(child, call)))
                return true;
        if (call->data.nr == SYS_sendto && plan->explain) {
                guard_note_send(child, call);
                guard_continue(child, call);
                return true;
        }
        if (plan->explain && guard_explain(child, call))
                return true;
        if (!plan->caged && (plan->n_guards == 0 || (is_opening(call) && !(flags & O_CREAT))))
                return false;
        return serve_naming(child, call);
}
