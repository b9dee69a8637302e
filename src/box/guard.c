/* SPDX-License-Identifier: MIT */
/* The guard: which watched call is which, and the making of names. */
#include "box/guard.h"
#include "box/own.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "box/init.h"
#include "policy/syscalls.h"

#define PRIVILEGED_BITS (S_ISUID | S_ISGID) /* the filter refuses them elsewhere */
#define HELPERS_MAX 256

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

/* ---- Who acts for init where a call may block ---- */

static struct helper {
        pid_t pid;
        __u64 call;
} helpers[HELPERS_MAX];
static unsigned n_helpers;

void guard_reaped(pid_t pid)
{
        for (unsigned i = 0; i < n_helpers; i++)
                if (helpers[i].pid == pid) {
                        helpers[i] = helpers[--n_helpers];
                        return;
                }
}

bool guard_is_helper(pid_t pid)
{
        for (unsigned i = 0; i < n_helpers; i++)
                if (helpers[i].pid == pid)
                        return true;
        return false;
}

/* Nobody waits any more for what some of them do: who asked for it was killed. They are reaped
 * before their numbers can be another's. */
static void end_helpers(struct child *child)
{
        for (unsigned i = 0; i < n_helpers; i++)
                if (ioctl(child->notifier, SECCOMP_IOCTL_NOTIF_ID_VALID, &helpers[i].call) < 0 &&
                    errno == ENOENT)
                        kill(helpers[i].pid, SIGKILL);
}

void guard_close(struct child *child)
{
        for (unsigned i = 0; i < n_helpers; i++)
                kill(helpers[i].pid, SIGKILL);
        child->notifier = base_close(child->notifier);
}

bool guard_delegate(struct child *child, const struct seccomp_notif *call)
{
        pid_t pid;

        end_helpers(child);
        pid = n_helpers == HELPERS_MAX ? -1
                                       : (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        if (pid < 0)
                guard_answer(child, call, -EAGAIN);
        if (pid > 0)
                helpers[n_helpers++] = (struct helper){ pid, call->id };
        return pid == 0;
}

_Noreturn void guard_leave(void)
{
        syscall(SYS_exit_group, 0);
        __builtin_unreachable();
}

/* ---- Making and moving names ---- */

static void serve_make(struct child *child, const struct seccomp_notif *call, int dirfd,
                       uint64_t address, mode_t mode, dev_t device)
{
        _cleanup_(guard_path_close) struct guard_path path;
        int r = guard_resolve(child, call, dirfd, address, &path);

        if (!guard_is_alive(child, call))
                return;
        guard_take_umask(child, call);
        if (r == 0 && !S_ISDIR(mode) && (mode & PRIVILEGED_BITS))
                r = -EPERM;
        if (r == 0)
                r = guard_check_new(child, &path);
        if (r == 0 && S_ISDIR(mode))
                r = own_mkdirat(path.parent, path.name, mode & 07777) < 0 ? -errno : 0;
        else if (r == 0 && path.slash)
                r = -ENOENT;
        else if (r == 0)
                r = own_mknodat(path.parent, path.name, mode, device) < 0 ? -errno : 0;
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
                r = own_symlinkat(text, path.parent, path.given) < 0 ? -errno : 0;
        guard_answer(child, call, r);
}

/* Go on where a link leads. */
int guard_follow(struct child *child, const struct seccomp_notif *call, struct guard_path *path)
{
        char target[PATH_MAX];
        ssize_t n = readlinkat(path->parent, path->name, target, sizeof(target) - 1);

        if (n <= 0)
                return -errno;
        target[n] = '\0';
        return guard_resolve_from(child, call, TAKE_FD(path->parent), target, path);
}

bool guard_is_link(const struct guard_path *path)
{
        struct stat st;

        return fstatat(path->parent, path->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
               S_ISLNK(st.st_mode);
}

enum move { MOVE_LINK, MOVE_RENAME };

/* A second name for what is there already would let it be changed, or read: what is linked is held
 * and looked at, whatever the name that led to it. */
static int link_to(struct child *child, const struct guard_path *from, const struct guard_path *to,
                   int flags)
{
        char link[40], text[PATH_MAX];
        _cleanup_fd_ int held = -1;
        struct statx st;
        int r;

        if (flags & ~AT_SYMLINK_FOLLOW)
                return -EINVAL;
        held = openat(from->parent, from->given,
                      O_PATH | O_CLOEXEC | (flags & AT_SYMLINK_FOLLOW ? 0 : O_NOFOLLOW));
        if (held < 0)
                return -errno;
        r = guard_look(held, "", &st);
        if (r == 0)
                r = guard_text_of(held, text, sizeof(text));
        if (r < 0)
                return r;
        if (guard_keeping_of(child, text, &st) >= PLAN_KEPT) {
                (void)guard_refuse(child, held, text);
                return -EXDEV; /* as across mounts: then programs copy */
        }
        guard_own_link(held, link);
        return own_linkat(AT_FDCWD, link, to->parent, to->given, AT_SYMLINK_FOLLOW) < 0 ? -errno
                                                                                        : 0;
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
        struct statx st;
        int r;

        to.parent = -1;
        r = guard_resolve(child, call, dirfds[0], addresses[0], &from);
        if (r == 0)
                r = guard_resolve(child, call, dirfds[1], addresses[1], &to);
        if (!guard_is_alive(child, call))
                return;
        if (r == 0)
                r = guard_check_target(child, &to);
        if (r == 0 && move == MOVE_RENAME)
                r = guard_check_old(child, &from, true);
        if (r == 0 && move == MOVE_RENAME && (flags & RENAME_EXCHANGE))
                r = guard_check_target(child, &from);
        if (r == 0 && move == MOVE_RENAME && plan_forbids_name(child->plan, from.text) &&
            box_fence(FENCE_PROTECT) && guard_look(from.parent, from.name, &st) == 0)
                r = guard_refuse(child, from.parent, from.text);
        if (r == 0 && move == MOVE_RENAME &&
            (brings_names(child, &from, &to) ||
             ((flags & RENAME_EXCHANGE) && brings_names(child, &to, &from))))
                r = -EXDEV;
        if (r == 0 && move == MOVE_RENAME)
                r = own_renameat2(from.parent, from.given, to.parent, to.given, flags) < 0 ? -errno
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
                guard_open(child, call, here, a[0], (int)a[1], (mode_t)a[2]);
                return true;
        case SYS_openat:
                guard_open(child, call, (int)a[0], a[1], (int)a[2], (mode_t)a[3]);
                return true;
        case SYS_creat:
                guard_open(child, call, here, a[0], O_WRONLY | O_TRUNC | O_CREAT, (mode_t)a[1]);
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

/* Is it one that the guard makes for the program? The filter sends no others but those that it
 * refuses, and with --explain those that go on. */
static bool is_served(const struct plan *plan, const struct seccomp_notif *call)
{
        int flags = (int)call->data.args[call->data.nr == SYS_open ? 1 : 2];

        if (!is_opening(call) || plan->caged)
                return plan->guarded || plan->caged;
        if ((flags & O_PATH) || (!plan->hides && !plan->guarded))
                return false;
        if ((flags & O_TMPFILE) == O_TMPFILE &&
            (call->data.args[call->data.nr == SYS_open ? 2 : 3] & PRIVILEGED_BITS))
                return false;
        return plan->hides || (flags & (O_ACCMODE | O_TRUNC | O_CREAT)) ||
               (flags & O_TMPFILE) == O_TMPFILE;
}

/* A module may make itself namespaces while it is loaded, in which paths lead elsewhere. */
static bool has_own_mounts(const struct child *child, const struct seccomp_notif *call)
{
        struct stat own, theirs;
        char path[40];

        text_copy(text_number(path, call->pid), 16, "/ns/mnt");
        return fstatat(child->proc, "self/ns/mnt", &own, 0) < 0 ||
               fstatat(child->proc, path, &theirs, 0) < 0 || own.st_ino != theirs.st_ino ||
               own.st_dev != theirs.st_dev;
}

bool guard_serve(struct child *child, const struct seccomp_notif *call)
{
        const struct plan *plan = child->plan;

        if (call->data.arch != AUDIT_ARCH_X86_64 || (child->zygote && has_own_mounts(child, call)))
                return false;
        if (call->data.nr == SYS_umask && (plan->guarded || plan->caged)) {
                guard_umask_set();
                guard_continue(child, call);
                return true;
        }
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
        return is_served(plan, call) && (guard_change(child, call) || serve_naming(child, call));
}
