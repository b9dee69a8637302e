/* SPDX-License-Identifier: MIT */
/*
 * Fence: /proc. The box's own pids and nothing of the host's: the whole of it read-only, so that
 * no setting, limit or score can be written, and the files that tell about the kernel's memory,
 * keys or devices covered.
 */
#include <fcntl.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "box/child.h"

static const char *const masked_files[] = {
        "kcore",       "kallsyms",  "kmsg",       "keys",     "key-users",     "timer_list",
        "sched_debug", "modules",   "vmallocinfo", "slabinfo", "sysrq-trigger", "interrupts",
        "kpagecount",  "kpageflags", "kpagecgroup", "config.gz", "cmdline",     "latency_stats",
};

static const char *const masked_directories[] = {
        "acpi", "asound", "bus", "driver", "fs", "irq", "scsi", "tty",
};

/* Limits that a box's user namespace has for itself. The first one is a second fence: without
 * user namespaces there is no way back to capabilities. */
static const struct {
        const char *path, *value;
} namespace_limits[] = {
        { "sys/user/max_user_namespaces", "0" },
        { "sys/user/max_inotify_instances", "64" },
        { "sys/user/max_inotify_watches", "8192" },
};

static int set_namespace_limits(struct child *child)
{
        for (size_t i = 0; i < ARRAY_SIZE(namespace_limits); i++) {
                _cleanup_fd_ int fd = openat(child->proc, namespace_limits[i].path,
                                             O_WRONLY | O_CLOEXEC);

                if (fd < 0 && errno == ENOENT)
                        continue; /* a kernel built without this limit */
                if (fd < 0 || fd_write_all(fd, namespace_limits[i].value,
                                           strlen(namespace_limits[i].value)) < 0)
                        return step_failed(child, "limit the namespace", namespace_limits[i].path,
                                           errno);
        }
        return 0;
}

static int mask(struct child *child, const char *name, bool directory)
{
        _cleanup_fd_ int tree = -1, target = -1;

        target = openat(child->proc, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (target < 0)
                return errno == ENOENT ? 0 : step_failed(child, "mask /proc", name, errno);
        /* The stage holds one empty thing of each kind; it lies below what is now /proc. */
        tree = (int)syscall(SYS_open_tree, child->root, directory ? "run/.empty" : "run/.none",
                            OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (tree < 0)
                return step_failed(child, "mask /proc", name, errno);
        return root_attach(child, tree, target, name);
}

int box_mask_proc(struct child *child)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(masked_files); i++)
                r = mask(child, masked_files[i], false);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(masked_directories); i++)
                r = mask(child, masked_directories[i], true);
        return r;
}

int box_mount_proc(struct child *child)
{
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
        _cleanup_fd_ int fs = -1, target = -1, none = -1, empty = -1;
        int r;

        fs = (int)syscall(SYS_fsopen, "proc", FSOPEN_CLOEXEC);
        if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return step_failed(child, "make a /proc", NULL, errno);
        child->proc = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
                                   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
        if (child->proc < 0)
                return step_failed(child, "mount a /proc", NULL, errno);
        none = root_open_target(child, "run/.none", false);
        empty = root_open_target(child, "run/.empty", true);
        target = root_open_target(child, "proc", true);
        if (none < 0 || empty < 0 || target < 0)
                return -EIO;
        if (fchmodat(child->root, "run/.none", 0, 0) < 0 ||
            fchmodat(child->root, "run/.empty", 0, 0) < 0)
                return step_failed(child, "mask /proc", NULL, errno);
        r = root_attach(child, child->proc, target, "/proc");
        if (r == 0)
                r = set_namespace_limits(child);
        if (r == 0 && box_fence(FENCE_MASKS))
                r = box_mask_proc(child);
        if (r < 0)
                return r;
        if (unlinkat(child->root, "run/.none", 0) < 0 ||
            unlinkat(child->root, "run/.empty", AT_REMOVEDIR) < 0)
                return step_failed(child, "clear the stage", NULL, errno);
        if (box_fence(FENCE_READONLY) && syscall(SYS_mount_setattr, child->proc, "",
                                                 AT_EMPTY_PATH | AT_RECURSIVE, &attr,
                                                 sizeof(attr)) < 0)
                return step_failed(child, "make /proc read-only", NULL, errno);
        return 0;
}
