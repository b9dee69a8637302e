/* SPDX-License-Identifier: MIT */
/*
 * Fence: /proc. The box's own pids and nothing of the host's: the whole of it read-only, so that
 * no setting, limit or score can be written, and the files that tell about the kernel's memory,
 * keys or devices covered.
 */
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "box/child.h"
#include "box/own.h"

/* What anyone may read on a host although it is about the whole of it. The rest of /proc that is
 * about the host cannot be changed, the whole being read-only. */
static const char *const masked_files[] = {
        "cmdline", "interrupts", "kallsyms", "keys", "latency_stats", "sched_debug",
};

static const char *const masked_directories[] = { "acpi", "asound", "scsi" };

/* What only the host's root may read: of matter where the box's host id is root's, in a container
 * that has no other to give. */
static const char *const masked_from_root[] = {
        "kcore",      "kmsg",       "timer_list",  "vmallocinfo",   "slabinfo",  "iomem",
        "kpagecount", "kpageflags", "kpagecgroup", "sysrq-trigger", "key-users",
};

/* Limits that a box's user namespace has for itself. The first one is a second fence: without
 * user namespaces there is no way back to capabilities. A box that others are forked from needs
 * one for each of them, and what they may have of the rest. */
static const struct {
        const char *path, *value;
} namespace_limits[] = {
        { "sys/user/max_user_namespaces", "0" },
        { "sys/user/max_inotify_instances", "8" },
        { "sys/user/max_inotify_watches", "512" },
};

static int set_namespace_limits(struct child *child)
{
        for (size_t i = 0; !child->zygote && i < ARRAY_SIZE(namespace_limits); i++) {
                _cleanup_fd_ int fd =
                        own_openat(child->proc, namespace_limits[i].path, O_WRONLY | O_CLOEXEC, 0);

                if (fd < 0 && errno == ENOENT)
                        continue; /* a kernel built without this limit */
                if (fd < 0 || fd_write_all(fd, namespace_limits[i].value,
                                           strlen(namespace_limits[i].value)) < 0)
                        return step_failed(child, "limit the namespace", namespace_limits[i].path,
                                           errno);
        }
        return 0;
}

/* Cover one name of /proc with a copy of the mount of something empty. */
static int mask(struct child *child, const char *name, const struct place *empty)
{
        _cleanup_fd_ int tree = -1;
        struct stat st;

        /* Looked for first: a copy of a mount that finds no place is slow to take away again. */
        if (fstatat(child->proc, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : step_failed(child, "mask /proc", name, errno);
        tree = (int)syscall(SYS_open_tree, empty->parent, empty->name,
                            OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (tree < 0)
                return step_failed(child, "mask /proc", name, errno);
        if (syscall(SYS_move_mount, tree, "", child->proc, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return step_failed(child, "mask /proc", name, errno);
        return 0;
}

static int mask_all(struct child *child, const struct place *file, const struct place *directory)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(masked_files); i++)
                r = mask(child, masked_files[i], file);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(masked_directories); i++)
                r = mask(child, masked_directories[i], directory);
        if (child->plan->host_root)
                for (size_t i = 0; r == 0 && i < ARRAY_SIZE(masked_from_root); i++)
                        r = mask(child, masked_from_root[i], file);
        return r;
}

/* Something empty of each kind is made in /dev/shm, copied over what is masked, and taken away. */
static int mask_proc(struct child *child)
{
        struct place file = { -1, "", false }, directory = { -1, "", false };
        int r;

        r = root_find(child, "/dev/shm/.file", &file);
        if (r == 0)
                r = root_find(child, "/dev/shm/.directory", &directory);
        if (r < 0)
                return r;
        if (own_mknodat(file.parent, file.name, S_IFREG, 0) < 0 ||
            own_mkdirat(directory.parent, directory.name, 0) < 0)
                return step_failed(child, "mask /proc", NULL, errno);
        r = mask_all(child, &file, &directory);
        if (r < 0)
                return r;
        if (own_unlinkat(file.parent, file.name, 0) < 0 ||
            own_unlinkat(directory.parent, directory.name, AT_REMOVEDIR) < 0)
                return step_failed(child, "mask /proc", NULL, errno);
        return 0;
}

int box_new_proc(struct child *child)
{
        _cleanup_fd_ int fs = -1;
        int proc;

        if (!box_fence(FENCE_PID)) { /* without pids of its own a box can have the host's only */
                proc = (int)syscall(SYS_open_tree, child->host_proc, "",
                                    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
                                            AT_EMPTY_PATH);
                return proc < 0 ? step_failed(child, "copy the mounts of", "/proc", errno) : proc;
        }
        fs = (int)syscall(SYS_fsopen, "proc", FSOPEN_CLOEXEC);
        /* A process that is closed to others belongs to the host's root in /proc. Where that is the
         * box's own id as well, init would be open to its program: so it is not shown. A kernel
         * before 5.8 does not know the option. */
        if (fs >= 0 && child->plan->host_root)
                (void)syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "hidepid", "ptraceable", 0);
        if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return step_failed(child, "make a /proc", NULL, errno);
        proc = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
                            MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
        return proc < 0 ? step_failed(child, "mount a /proc", NULL, errno) : proc;
}

int box_mount_proc(struct child *child)
{
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
        struct place place = { AT_FDCWD, "/proc", false };
        int r = 0;

        if (child->proc < 0)
                child->proc = box_new_proc(child);
        if (child->proc < 0)
                return child->proc;
        if (box_fence(FENCE_ROOT))
                r = root_make(child, "/proc", true, &place);
        if (r == 0)
                r = root_attach(child, child->proc, &place);
        if (r == 0)
                r = set_namespace_limits(child);
        if (r == 0 && box_fence(FENCE_MASKS) && box_fence(FENCE_ROOT))
                r = mask_proc(child);
        if (r < 0)
                return r;
        if (box_fence(FENCE_READONLY) &&
            syscall(SYS_mount_setattr, child->proc, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr,
                    sizeof(attr)) < 0)
                return step_failed(child, "make /proc read-only", NULL, errno);
        return 0;
}

/*
 * The kernel gives a user namespace a /proc only where it sees a whole one already, and the box's
 * own is neither whole nor writable. So another is left for the boxes that begin with a copy of
 * this root, with nothing mounted over any part of it, but in a directory that is covered: no path
 * leads there.
 */
static int leave_proc(struct child *child, const char *path, const char *covered)
{
        _cleanup_fd_ int proc = box_new_proc(child), cover = -1;
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
        struct place place;
        int r;

        if (proc < 0)
                return proc;
        r = root_make(child, path, true, &place);
        if (r == 0)
                r = root_attach(child, proc, &place);
        if (r == 0)
                r = root_find(child, covered, &place);
        if (r < 0)
                return r;
        cover = root_new_tmpfs(child, 4096, "0");
        if (cover < 0)
                return cover;
        if (syscall(SYS_mount_setattr, cover, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
                return step_failed(child, "cover /proc", NULL, errno);
        return root_attach(child, cover, &place);
}

int box_leave_proc(struct child *child)
{
        return leave_proc(child, "/run/.forks/proc", "/run/.forks");
}

/* That of a mould is of a pid namespace in which nobody lives any more. */
int box_leave_dead_proc(struct child *child)
{
        struct clone_args args = { .flags = CLONE_NEWPID }; /* without a signal: not reaped */
        pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args)), r;
        int status = 0;

        if (pid < 0)
                return step_failed(child, "make a pid namespace", NULL, errno);
        if (pid == 0) {
                r = leave_proc(child, "/proc/whole", "/proc");
                syscall(SYS_exit_group, r < 0);
        }
        do
                r = (pid_t)syscall(SYS_wait4, pid, &status, __WALL, NULL);
        while (r < 0 && errno == EINTR);
        if (r == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0)
                return 0;
        step_failed(child, "make a /proc", NULL, ECHILD); /* unless it has said more itself */
        return -child->page->failure.error;
}
