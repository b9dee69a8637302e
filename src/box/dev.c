/* SPDX-License-Identifier: MIT */
/* Fence: /dev. Five harmless devices, private terminals, private shared memory. */
#include <fcntl.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "box/child.h"
#include "box/own.h"

/* The last one only where there may be a terminal to stand for. */
static const char *const devices[] = {
        "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty",
};

#define TERMINALS "64" /* all boxes together have what the host leaves them, some 3000 */

static size_t n_devices(const struct child *child)
{
        return ARRAY_SIZE(devices) - (child->plan->tty ? 0 : 1);
}

_Static_assert(ARRAY_SIZE(devices) <= BOX_DEVICES_MAX, "a place for each device");

static const struct {
        const char *name, *target;
} links[] = {
        { "dev/fd", "/proc/self/fd" },       { "dev/stdin", "/proc/self/fd/0" },
        { "dev/stdout", "/proc/self/fd/1" }, { "dev/stderr", "/proc/self/fd/2" },
        { "dev/ptmx", "pts/ptmx" },
};

static int mount_terminals(struct child *child)
{
        _cleanup_fd_ int fs = -1, tree = -1;
        struct place place;
        int r;

        fs = (int)syscall(SYS_fsopen, "devpts", FSOPEN_CLOEXEC);
        if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_SET_FLAG, "newinstance", NULL, 0) < 0 ||
            syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "ptmxmode", "0666", 0) < 0 ||
            syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "mode", "0620", 0) < 0 ||
            syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "max", TERMINALS, 0) < 0 ||
            syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return step_failed(child, "make private terminals", NULL, errno);
        tree = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
                            MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
        if (tree < 0)
                return step_failed(child, "mount private terminals", NULL, errno);
        r = root_make(child, "/dev/pts", true, &place);
        return r < 0 ? r : root_attach(child, tree, &place);
}

/* Devices of the host that everyone may open. Read-only, which is no matter to what is written to a
 * device: but the node itself, whose owner the box may be, keeps its mode, owner, times and
 * attributes. */
int box_copy_devices(struct child *child)
{
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
                                               MOUNT_ATTR_NOEXEC };

        for (size_t i = 0; i < n_devices(child); i++) {
                child->devices[i] =
                        (int)syscall(SYS_open_tree, AT_FDCWD, devices[i],
                                     OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
                if (child->devices[i] < 0)
                        return step_failed(child, "copy the mount of", devices[i], errno);
                if (box_fence(FENCE_READONLY) && syscall(SYS_mount_setattr, child->devices[i], "",
                                                         AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
                        return step_failed(child, "make read-only", devices[i], errno);
        }
        return 0;
}

static int attach_device(struct child *child, size_t index)
{
        _cleanup_fd_ int tree = child->devices[index];
        struct place place;
        int r = root_make(child, devices[index], false, &place);

        return r < 0 ? r : root_attach(child, tree, &place);
}

/* Shared memory is a part of the box's own root, which is as large, that stays writable when the
 * rest does not; where the root is a copy of another, a file system of its own. */
static int mount_shared_memory(struct child *child)
{
        _cleanup_fd_ int tree = -1;
        struct place place;
        int r;

        if (child->cast || child->forked)
                return root_mount_tmpfs(child, "/dev/shm", child->plan->policy->limits.tmp_size);
        r = root_make(child, "/dev/shm", true, &place);
        if (r < 0)
                return r;
        if (own_fchmodat(place.parent, place.name, 01777) < 0)
                return step_failed(child, "open shared memory to all", NULL, errno);
        tree = (int)syscall(SYS_open_tree, place.parent, place.name,
                            OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (tree < 0)
                return step_failed(child, "mount shared memory", NULL, errno);
        return root_attach(child, tree, &place);
}

int box_refill_dev(struct child *child)
{
        int r = mount_terminals(child);

        return r < 0 ? r : mount_shared_memory(child);
}

/* What all boxes of a plan have in common; in a root that they share with places for terminals and
 * shared memory, which each of them has for itself. */
int box_fill_dev(struct child *child)
{
        struct place place;
        int r = 0;

        for (size_t i = 0; r == 0 && i < n_devices(child); i++)
                r = attach_device(child, i);
        if (r == 0 && child->shared)
                r = root_make(child, "/dev/pts", true, &place);
        if (r == 0 && child->shared)
                r = root_make(child, "/dev/shm", true, &place);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(links); i++)
                if (own_symlinkat(links[i].target, child->root, links[i].name) < 0)
                        r = step_failed(child, "make a link", links[i].name, errno);
        return r;
}
