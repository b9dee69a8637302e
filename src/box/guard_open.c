/* SPDX-License-Identifier: MIT */
/*
 * Opening. Init looks a path up once and holds what it leads to by a descriptor that allows
 * nothing; looks at where that is and who it is; and opens that very thing for the program.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "box/guard.h"
#include "box/init.h"
#include "box/own.h"

#define LINKS_MAX 40
#define RETRIES_MAX 8
#define PRIVILEGED_BITS (S_ISUID | S_ISGID) /* the filter refuses them elsewhere */
#define DONE 1                              /* somebody has answered, or will */

/* What is asked for. */
struct opening {
        int flags; /* without O_CREAT */
        bool create;
        mode_t mode;
};

static bool changes(const struct opening *opening)
{
        return (opening->flags & O_ACCMODE) != O_RDONLY || (opening->flags & O_TRUNC);
}

/* A file without a name, in the directory that is given. */
static bool is_nameless(const struct opening *opening)
{
        return !opening->create && (opening->flags & O_TMPFILE) == O_TMPFILE;
}

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
        return DONE;
}

/* Hand over what was opened, or tell why it was not. */
static int hand_over(struct child *child, const struct seccomp_notif *call, int fd, int flags)
{
        int r = fd < 0 ? fd : inject(child, call, fd, flags);

        if (r < 0 && fd >= 0)
                base_close(fd);
        return r;
}

/* ---- What may block ---- */

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
        fd = own_openat(AT_FDCWD, path, flags | O_CLOEXEC | O_NOCTTY, 0);
        return fd < 0 ? -errno : fd;
}

/* Open what is held once more, as it was asked for. Flags are the program's, so a mode goes with
 * them: without one libc ends who asks for a nameless file. */
static int open_held(int held, int flags, mode_t mode)
{
        int fd =
                guard_open_own(held, (flags & ~(O_NOFOLLOW | O_EXCL)) | O_CLOEXEC | O_NOCTTY, mode);

        return fd < 0 ? -errno : fd;
}

/* Something that is neither file nor directory may block when it is opened. */
static int open_special(struct child *child, const struct seccomp_notif *call, int held, int flags,
                        const struct statx *st)
{
        bool terminal = S_ISCHR(st->stx_mode) && st->stx_rdev_major == 5 && st->stx_rdev_minor == 0;
        int r;

        if (!guard_delegate(child, call))
                return DONE;
        r = hand_over(child, call,
                      terminal ? open_terminal_of(child, call, flags) : open_held(held, flags, 0),
                      flags);
        if (r < 0)
                guard_answer(child, call, r);
        guard_leave();
}

/* /dev/null and its kin never do. */
static bool is_memory(const struct statx *st)
{
        return S_ISCHR(st->stx_mode) && st->stx_rdev_major == 1;
}

/* Of other processes' files in /proc init may open what the program may not. */
static int open_in_proc(int held, int flags)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct sets[2], none[2];
        int fd = -EACCES;

        if (syscall(SYS_capget, &header, sets) < 0)
                return -EACCES;
        memcpy(none, sets, sizeof(none));
        none[0].effective = none[1].effective = 0;
        if (syscall(SYS_capset, &header, none) == 0)
                fd = open_held(held, flags, 0);
        (void)syscall(SYS_capset, &header, sets);
        return fd;
}

/* ---- What is there ---- */

/* Landlock before ABI 3 does not see what is cut off in opening. */
static bool cuts_what_is_kept(const struct child *child, const struct opening *opening,
                              const char *text)
{
        return child->plan->caged && (opening->flags & O_TRUNC) && !guard_may_change(child, text);
}

/* Of this a shared mapping would be memory that nobody counts: as Landlock, which does not hold
 * init, answers the program (landlock.c). */
static bool makes_memory(const struct opening *opening, const struct statx *st)
{
        return S_ISCHR(st->stx_mode) && st->stx_rdev_major == 1 && st->stx_rdev_minor == 5 &&
               (opening->flags & O_ACCMODE) != O_RDONLY;
}

/* May it be opened like this? */
static int check(struct child *child, const struct opening *opening, int held, const char *text,
                 const struct statx *st, enum plan_keeping keeping)
{
        if (S_ISLNK(st->stx_mode))
                return -ELOOP;
        if (keeping == PLAN_HIDDEN)
                return guard_refuse_hidden(child, text);
        if (!changes(opening))
                return 0;
        if (makes_memory(opening, st))
                return -EACCES;
        if (S_ISDIR(st->stx_mode) && !is_nameless(opening))
                return -EISDIR;
        if (keeping == PLAN_KEPT)
                return guard_refuse(child, held, text);
        if (S_ISREG(st->stx_mode) && cuts_what_is_kept(child, opening, text))
                return -EACCES;
        return guard_is_writable(child, held, text) ? 0 : -EROFS;
}

static int open_file(struct child *child, const struct seccomp_notif *call,
                     const struct opening *opening, int held, const char *text,
                     const struct statx *st)
{
        bool proc = strncmp(text, "/proc/", 6) == 0;
        int fd;

        if (!S_ISREG(st->stx_mode) && !S_ISDIR(st->stx_mode) && !is_memory(st))
                return open_special(child, call, held, opening->flags, st);
        if (changes(opening) && !guard_is_alive(child, call))
                return DONE;
        fd = proc ? open_in_proc(held, opening->flags)
                  : open_held(held, opening->flags | O_NONBLOCK, opening->mode);
        if (fd == -EWOULDBLOCK && !(opening->flags & O_NONBLOCK)) /* somebody has a lease on it */
                return open_special(child, call, held, opening->flags, st);
        if (fd >= 0 && !(opening->flags & O_NONBLOCK))
                (void)fcntl(fd, F_SETFL, opening->flags & ~O_NONBLOCK);
        return hand_over(child, call, fd, opening->flags);
}

/* Something that is held, wherever it came from. */
static int open_known(struct child *child, const struct seccomp_notif *call,
                      const struct opening *opening, int held)
{
        char text[PATH_MAX];
        struct statx st;
        int r = guard_look(held, "", &st);

        if (r == 0)
                r = guard_text_of(held, text, sizeof(text));
        if (r == 0 && !guard_lets_see(child, text))
                r = -EACCES;
        if (r == 0)
                r = check(child, opening, held, text, &st, guard_keeping_of(child, text, &st));
        return r < 0 ? r : open_file(child, call, opening, held, text, &st);
}

/* A path that leads to the system's own files or the box's, where nobody moves directories: most
 * that begin at the root do. -EAGAIN: the way there has to be looked at. */
static int try_at_once(struct child *child, const struct seccomp_notif *call,
                       const struct opening *opening, const char *path)
{
        struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS };
        char text[PATH_MAX];
        _cleanup_fd_ int held = -1;
        struct statx st;
        int r;

        if (opening->create || child->plan->caged || strncmp(path, "/proc", 5) == 0 ||
            strncmp(path, "/dev/", 5) == 0 || path[0] != '/' || guard_needs_way(child, path))
                return -EAGAIN;
        if (opening->flags & O_NOFOLLOW)
                how.flags |= O_NOFOLLOW;
        held = own_openat2(-1, path, &how);
        if (held < 0)
                return errno == ELOOP || errno == EXDEV ? -EAGAIN : -errno;
        r = guard_text_of(held, text, sizeof(text));
        if (r < 0 || guard_needs_way(child, text) || strncmp(text, "/proc/", 6) == 0)
                return r < 0 ? r : -EAGAIN;
        r = guard_look(held, "", &st);
        if (r == 0 && guard_is_misplaced(child, text, &st))
                return -EAGAIN;
        if (r == 0)
                r = check(child, opening, held, text, &st,
                          plan_greater(guard_keeping(child, -1, text),
                                       guard_keeping_node(child, &st)));
        return r < 0 ? r : open_file(child, call, opening, held, text, &st);
}

/* ---- A name in a directory ---- */

static int make_file(struct child *child, const struct seccomp_notif *call,
                     const struct guard_path *path, const struct opening *opening)
{
        int fd, r;

        if (!opening->create)
                return -ENOENT;
        if (path->slash)
                return -EISDIR;
        r = guard_check_new(child, path);
        if (r < 0)
                return r == -EEXIST ? -EAGAIN : r;
        guard_take_umask(child, call);
        if (!guard_is_alive(child, call))
                return DONE;
        fd = own_openat(path->parent, path->name,
                        opening->flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY,
                        opening->mode);
        if (fd < 0)
                return errno == EEXIST ? -EAGAIN : -errno;
        return fd + 2; /* 0 and 1 mean other things */
}

/* One attempt. -EAGAIN: it changed under our hands. */
static int try_name(struct child *child, const struct seccomp_notif *call,
                    const struct guard_path *path, const struct opening *opening)
{
        _cleanup_fd_ int held = openat(path->parent, path->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        struct statx st;
        int r;

        if (held < 0 && errno != ENOENT)
                return -errno;
        if (held < 0) {
                r = make_file(child, call, path, opening);
                return r < 2 ? r : hand_over(child, call, r - 2, opening->flags);
        }
        if (opening->create && (opening->flags & O_EXCL))
                return -EEXIST;
        if (strcmp(path->name, ".") == 0 || strcmp(path->name, "..") == 0)
                return opening->create ? -EISDIR : open_known(child, call, opening, held);
        r = guard_look(held, "", &st);
        if (r < 0)
                return r;
        if (S_ISLNK(st.stx_mode))
                return opening->flags & O_NOFOLLOW ? -ELOOP : -EAGAIN;
        if (S_ISDIR(st.stx_mode) && opening->create)
                return -EISDIR;
        if (!S_ISDIR(st.stx_mode) && (path->slash || (opening->flags & O_DIRECTORY)))
                return -ENOTDIR;
        r = check(child, opening, held, path->text, &st,
                  plan_greater(guard_keeping(child, path->parent, path->text),
                               guard_keeping_node(child, &st)));
        return r < 0 ? r : open_file(child, call, opening, held, path->text, &st);
}

/* A descriptor of the caller's own, or something else that a process has, named through /proc:
 * opened through the link, which is what the program would do; nothing is created there. */
static bool is_own_descriptor(const struct guard_path *path)
{
        return strncmp(path->text, "/proc/", 6) == 0 && strchr(path->text + 6, '/') &&
               guard_is_link(path);
}

static int open_link(struct child *child, const struct seccomp_notif *call,
                     const struct guard_path *path, const struct opening *opening)
{
        _cleanup_fd_ int held = -1;

        if (opening->flags & O_NOFOLLOW)
                return -ELOOP;
        held = openat(path->parent, path->name, O_PATH | O_CLOEXEC);
        return held < 0 ? -errno : open_known(child, call, opening, held);
}

static int follow_links(struct child *child, const struct seccomp_notif *call,
                        const struct opening *opening, struct guard_path *path)
{
        int r = 0;

        for (int links = 0; r == 0 && guard_is_link(path) && !is_own_descriptor(path); links++) {
                if (opening->create && (opening->flags & O_EXCL))
                        r = -EEXIST;
                else if (links == LINKS_MAX || (opening->flags & O_NOFOLLOW))
                        r = -ELOOP;
                else
                        r = guard_follow(child, call, path);
        }
        return r;
}

static int open_name(struct child *child, const struct seccomp_notif *call,
                     const struct opening *opening, int base, const char *said)
{
        _cleanup_(guard_path_close) struct guard_path path;
        int r = guard_resolve_from(child, call, base, said, &path);

        if (is_nameless(opening))
                guard_take_umask(child, call);
        if (r == 0 && path.slash && opening->create)
                return -EISDIR;
        if (r == 0 && child->plan->caged && is_nameless(opening) &&
            strcmp(path.text, "/tmp") == 0) { /* libc knows no other place */
                guard_path_close(&path);
                r = guard_resolve_from(child, call, -1, child->page->scratch, &path);
        }
        if (r == 0 && (opening->create || is_nameless(opening)) &&
            (opening->mode & PRIVILEGED_BITS))
                r = -EPERM;
        for (int i = 0; r == 0; i++) {
                if (i > 0) /* most are none */
                        r = follow_links(child, call, opening, &path);
                if (r == 0 && !guard_is_alive(child, call))
                        return DONE;
                if (r == 0)
                        r = is_own_descriptor(&path) ? open_link(child, call, &path, opening)
                                                     : try_name(child, call, &path, opening);
                if (r == -EAGAIN)
                        r = i < RETRIES_MAX ? 0 : -ELOOP;
        }
        return r;
}

void guard_open(struct child *child, const struct seccomp_notif *call, int dirfd, uint64_t address,
                int flags, mode_t mode)
{
        const struct opening opening = { .flags = flags & ~O_CREAT,
                                         .create = flags & O_CREAT,
                                         .mode = mode };
        char path[PATH_MAX];
        _cleanup_fd_ int base = -1;
        int r = guard_read_text(call, address, path, sizeof(path));

        if (r == 0 && path[0] != '/') {
                base = guard_start(child, call, dirfd);
                r = MIN(base, 0);
        }
        if (r == 0 && !*path)
                r = -ENOENT;
        if (r == 0)
                r = try_at_once(child, call, &opening, path);
        if (r == -EAGAIN)
                r = open_name(child, call, &opening, TAKE_FD(base), path);
        if (r < 0)
                guard_answer(child, call, r);
}
