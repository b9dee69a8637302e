/* SPDX-License-Identifier: MIT */
/*
 * Fence: files. A tmpfs becomes the root; what the plan names is mounted into it by descriptor;
 * then the host's tree is detached. What is not named does not exist.
 *
 * Nothing is ever created on the host: a mount point that is missing is made only in a file
 * system that this box mounted itself.
 *
 * A mould does all this once for many boxes. Each of them begins with a copy of its mounts, which
 * the kernel lets the box cover but not take away; and covers what must be its own (renew.c). In
 * the mould these places are empty and read-only.
 */
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "box/child.h"
#include "box/own.h"

#define BLOCK 4096 /* of a tmpfs */

int root_open(int root, const char *path, uint64_t flags)
{
        struct open_how how = {
                .flags = flags | O_CLOEXEC,
                .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS,
        };

        return own_openat2(root, path, &how);
}

/* Everything that a box or its mould mounts itself is a tmpfs, marked by being listed here. */
#define OWN_MAX 128
static dev_t own_devices[OWN_MAX];
static unsigned n_own_devices;

bool root_is_own(dev_t device)
{
        for (unsigned i = 0; i < n_own_devices; i++)
                if (own_devices[i] == device)
                        return true;
        return false;
}

static bool is_own(int fd)
{
        struct stat st;

        return fstat(fd, &st) == 0 && root_is_own(st.st_dev);
}

static const char *number(char room[24], uint64_t value)
{
        text_number(room, value);
        return room;
}

int root_new_tmpfs(struct child *child, uint64_t size, const char *mode)
{
        char digits[24];
        struct stat st;
        int mount;
        _cleanup_fd_ int fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);

        if (fs < 0)
                return step_failed(child, "make a tmpfs", NULL, errno);
        if (syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "size", number(digits, size), 0) < 0 ||
            syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "nr_inodes",
                    number(digits, MAX(size / BLOCK, 1024)), 0) < 0 ||
            syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "mode", mode, 0) < 0 ||
            syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return step_failed(child, "configure a tmpfs", NULL, errno);
        mount = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
                             MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
        if (mount < 0)
                return step_failed(child, "mount a tmpfs", NULL, errno);
        if (n_own_devices == OWN_MAX || fstat(mount, &st) < 0)
                return step_failed(child, "mount so many file systems", NULL, ENOSPC);
        own_devices[n_own_devices++] = st.st_dev;
        return mount;
}

/* Make a directory, or an empty file to mount over, in a directory of our own. */
static int make_name(struct child *child, int parent, const char *name, bool directory,
                     const char *path)
{
        int r = directory ? own_mkdirat(parent, name, 0755)
                          : own_mknodat(parent, name, S_IFREG | 0444, 0);

        if (r < 0 && errno != EEXIST)
                return step_failed(child, "make a mount point", path, errno);
        return 0;
}

/* Go down from the new root along the first `length` bytes of `path`, making what is missing. */
static int open_parent(struct child *child, const char *path, size_t length)
{
        int parent = child->root;
        const char *end = path + length;
        char name[256];

        while (parent >= 0 && path < end) {
                size_t n;
                int next;

                while (path < end && *path == '/')
                        path++;
                n = strcspn(path, "/");
                if (path == end)
                        break;
                if (n >= sizeof(name))
                        return step_failed(child, "open a directory on the way", path,
                                           ENAMETOOLONG);
                memcpy(name, path, n);
                name[n] = '\0';
                next = root_open(parent, name, O_PATH | O_DIRECTORY);
                if (next < 0 && errno == ENOENT && is_own(parent) &&
                    make_name(child, parent, name, true, path) == 0)
                        next = root_open(parent, name, O_PATH | O_DIRECTORY);
                if (next < 0)
                        next = step_failed(child,
                                           errno == ENOENT ? "make a mount point"
                                                           : "open a directory on the way",
                                           path, errno == ENOENT ? EROFS : errno);
                if (parent != child->root)
                        base_close(parent);
                parent = next;
                path += n;
        }
        return parent;
}

void root_forget_parent(struct child *child)
{
        if (child->parent.fd != child->root)
                base_close(child->parent.fd);
        child->parent.fd = -1;
}

/* Steps come sorted, so that most share the parent of the one before. */
static int find_parent(struct child *child, const char *path, size_t length)
{
        struct parent *last = &child->parent;

        if (last->fd >= 0 && last->length == length && strncmp(last->path, path, length) == 0)
                return 0;
        root_forget_parent(child);
        last->fd = open_parent(child, path, length);
        if (last->fd < 0)
                return last->fd;
        last->path = path;
        last->length = length;
        last->own = is_own(last->fd);
        return 0;
}

int root_find(struct child *child, const char *path, struct place *ret)
{
        const char *slash = strrchr(path, '/');
        size_t length = slash ? (size_t)(slash - path) : 0;
        int r = find_parent(child, path, length);

        if (r < 0)
                return r;
        *ret = (struct place){ child->parent.fd, slash ? slash + 1 : path, child->parent.own };
        return 0;
}

int root_make(struct child *child, const char *path, bool directory, struct place *ret)
{
        struct stat st;
        int r = root_find(child, path, ret);

        if (r < 0)
                return r;
        if (ret->own)
                return make_name(child, ret->parent, ret->name, directory, path);
        if (fstatat(ret->parent, ret->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return step_failed(child, "make a mount point", path,
                                   errno == ENOENT ? EROFS : errno);
        if (S_ISLNK(st.st_mode))
                return step_failed(child, "open a mount point", path, ELOOP);
        return 0;
}

int root_attach(struct child *child, int tree, const struct place *place)
{
        /* One name below a descriptor, its own link not followed: there is nothing to resolve. */
        if (syscall(SYS_move_mount, tree, "", place->parent, place->name, MOVE_MOUNT_F_EMPTY_PATH) <
            0)
                return step_failed(child, "mount", place->name, errno);
        return 0;
}

/* A detached copy of mounts, made inside the new mount namespace. */
int root_copy_tree(struct child *child, int at, const char *path)
{
        int tree = (int)syscall(SYS_open_tree, at, path,
                                OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH);

        return tree < 0 ? step_failed(child, "copy the mounts of", path, errno) : tree;
}

/* A part of the host's tree. */
static int open_host_tree(struct child *child, const struct plan_step *step)
{
        _cleanup_fd_ int tree = (int)syscall(SYS_open_tree, AT_FDCWD, step->source,
                                             OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
                                                     AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT);
        struct stat st;

        if (tree < 0 || fstat(tree, &st) < 0)
                return step_failed(child, "open", step->source, errno);
        /* The plan resolved this path once; anything else in its place is refused. */
        if (st.st_dev != step->device || st.st_ino != step->inode)
                return step_failed(child, "open what the plan resolved", step->source, ESTALE);
        return TAKE_FD(tree);
}

static int add_tree(struct child *child, size_t index)
{
        const struct plan_step *step = &child->plan->steps[index];
        struct mount_attr attr = {
                .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                .propagation = MS_PRIVATE,
        };
        _cleanup_fd_ int tree = -1;
        struct place place;
        int r;

        tree = TAKE_FD(child->trees[index]);
        if (!step->writable && box_fence(FENCE_READONLY))
                attr.attr_set |= MOUNT_ATTR_RDONLY;
        /* What is copied from a mould or a zygote's box is restricted already, each part of it in
         * its own way. */
        if (!child->forked && !child->cast &&
            syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr,
                    sizeof(attr)) < 0)
                return step_failed(child, "restrict the mounts of", step->source, errno);
        r = root_make(child, step->target, step->directory, &place);
        return r < 0 ? r : root_attach(child, tree, &place);
}

int root_mount_tmpfs(struct child *child, const char *path, uint64_t size)
{
        _cleanup_fd_ int tree = -1;
        struct place place;
        int r = root_make(child, path, true, &place);

        if (r < 0)
                return r;
        tree = root_new_tmpfs(child, size, "01777");
        return tree < 0 ? tree : root_attach(child, tree, &place);
}

static int add_link(struct child *child, const struct plan_step *step)
{
        struct place place;
        int r = root_find(child, step->target, &place);

        if (r < 0)
                return r;
        /* A link that a shown tree has already, or has no place for, is as good as ours. */
        if (place.own && own_symlinkat(step->text, place.parent, place.name) < 0 && errno != EEXIST)
                return step_failed(child, "make a link", step->target, errno);
        return 0;
}

/* Whoever owns a file that nobody else has open may take a lease on it, even where it cannot be
 * written, and let others wait who open it. So a file that several boxes will see is kept open: as
 * a mapping, which their inits inherit. */
static int keep_open(struct child *child, const struct place *place, const char *path)
{
        _cleanup_fd_ int fd = openat(place->parent, place->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

        if (fd < 0 || syscall(SYS_mmap, NULL, 1UL, PROT_NONE, MAP_PRIVATE, fd, 0UL) == -1)
                return step_failed(child, "keep a file open", path, errno);
        return 0;
}

/* Make a file of the box's own, in a directory of its own. */
static int write_file(struct child *child, const struct place *place, const struct plan_step *step)
{
        _cleanup_fd_ int fd =
                own_openat(place->parent, place->name,
                           O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0444);

        if (fd < 0 || fd_write_all(fd, step->text, strlen(step->text)) < 0)
                return step_failed(child, "make a file", step->target, errno);
        return child->shared ? keep_open(child, place, step->target) : 0;
}

/* In a tree that a rule shows (--read /etc) it covers the host's file of that name. Where there is
 * none, there will be none: nothing is created on the host. */
static int cover_file(struct child *child, size_t index, const struct place *covered)
{
        const struct plan_step *step = &child->plan->steps[index];
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
        char name[32] = STAGE "/file-";
        _cleanup_fd_ int tree = -1;
        struct place place;
        struct stat st;
        int r;

        if (fstatat(covered->parent, covered->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : step_failed(child, "cover", step->target, errno);
        if (!S_ISREG(st.st_mode))
                return 0;
        text_number(name + strlen(name), index);
        r = root_find(child, name, &place);
        if (r == 0)
                r = write_file(child, &place, step);
        if (r < 0)
                return r;
        tree = (int)syscall(SYS_open_tree, place.parent, place.name,
                            OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (tree < 0 ||
            syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
                return step_failed(child, "cover", step->target, errno);
        root_forget_parent(child); /* its path was on this stack */
        r = root_find(child, step->target, &place);
        return r < 0 ? r : root_attach(child, tree, &place);
}

static int add_file(struct child *child, size_t index)
{
        const struct plan_step *step = &child->plan->steps[index];
        struct place place;
        int r = root_find(child, step->target, &place);

        if (r < 0)
                return r;
        return place.own ? write_file(child, &place, step) : cover_file(child, index, &place);
}

int root_add_step(struct child *child, size_t index)
{
        const struct plan_step *step = &child->plan->steps[index];
        struct place place;

        switch (step->kind) {
        case PLAN_DIRECTORY:
                return root_make(child, step->target, true, &place);
        case PLAN_LINK:
                return add_link(child, step);
        case PLAN_FILE:
                return add_file(child, index);
        case PLAN_TREE:
                return add_tree(child, index);
        case PLAN_TMPFS:
                return root_mount_tmpfs(child, step->target, step->size);
        case PLAN_HIDE:
                return box_hide(child, index);
        }
        return 0;
}

/* Let go of the host's tree for good. */
static int leave_host(struct child *child)
{
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };

        if (fchdir(child->root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
                return step_failed(child, "make the new root the root", NULL, errno);
        if (umount2(".", MNT_DETACH) < 0)
                return step_failed(child, "detach the host's root", NULL, errno);
        if (chdir("/") < 0)
                return step_failed(child, "enter the new root", NULL, errno);
        if (syscall(SYS_mount_setattr, child->root, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
                return step_failed(child, "make the root read-only", NULL, errno);
        return 0;
}

/* Cut the ties to the host's mounts and copy those that will be shown. Done while the warden
 * writes the id maps: it needs none. */
int box_copy_mounts(struct child *child)
{
        struct mount_attr private = { .propagation = MS_PRIVATE };
        int r = 0;

        if (child->cast)
                return 0;
        if (syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &private, sizeof(private)) < 0)
                return step_failed(child, "make the mounts private", NULL, errno);
        for (size_t i = 0; r == 0 && i < child->plan->n_steps; i++) {
                const struct plan_step *step = &child->plan->steps[i];

                if (step->kind != PLAN_TREE || child->trees[i] >= 0)
                        continue;
                child->trees[i] = open_host_tree(child, step);
                r = MIN(child->trees[i], 0);
        }
        return r == 0 ? box_copy_devices(child) : r;
}

/* A box's own root holds its shared memory (dev.c), and the plan's files. */
static uint64_t root_size(const struct child *child)
{
        uint64_t size = child->plan->policy->limits.tmp_size;

        if (child->shared)
                return 4 * MIB;
        for (size_t i = 0; i < child->plan->n_steps; i++)
                if (child->plan->steps[i].kind == PLAN_FILE)
                        size += (strlen(child->plan->steps[i].text) / BLOCK + 1) * BLOCK;
        return size;
}

/* Build what all boxes of the plan have in common. */
static int build(struct child *child)
{
        int r = 0;

        child->root = root_new_tmpfs(child, root_size(child), "0755");
        if (child->root < 0)
                return child->root;
        if (syscall(SYS_move_mount, child->root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return step_failed(child, "attach the new root", NULL, errno);
        for (size_t i = 0; r == 0 && i < child->plan->n_steps; i++)
                r = root_add_step(child, i);
        if (r == 0)
                r = box_fill_dev(child);
        return r == 0 ? box_seal_hidden(child) : r;
}

/* What the mould has in the place of each box's own holds mount points and nothing else. */
static int seal_mould(struct child *child)
{
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };

        for (size_t i = 0; i < child->plan->n_steps; i++) {
                const struct plan_step *step = &child->plan->steps[i];
                _cleanup_fd_ int fd = -1;

                if (step->kind != PLAN_TMPFS || !box_fence(FENCE_MOULD))
                        continue;
                fd = root_open(child->root, step->target, O_PATH);
                if (fd < 0)
                        return step_failed(child, "seal the mould", step->target, errno);
                /* Where a tree of the host covers the whole of it, nobody gets there. */
                if (is_own(fd) &&
                    syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
                        return step_failed(child, "seal the mould", step->target, errno);
        }
        return 0;
}

int box_build_mould(struct child *child)
{
        int r = box_copy_mounts(child);

        if (r == 0)
                r = build(child);
        if (r == 0)
                r = seal_mould(child);
        if (r == 0)
                r = box_leave_dead_proc(child);
        root_forget_parent(child);
        if (r == 0)
                r = leave_host(child);
        child->root = base_close(child->root);
        return r;
}

int box_enter_root(struct child *child)
{
        int r;

        if (!box_fence(FENCE_ROOT))
                return box_mount_proc(child);
        if (child->cast) {
                child->page->root_device = own_devices[0]; /* that of the mould's */
                return box_enter_copy(child);
        }
        r = build(child);
        if (r == 0)
                r = box_refill_dev(child);
        if (r == 0)
                r = box_mount_proc(child);
        if (r == 0 && child->zygote)
                r = box_leave_proc(child);
        root_forget_parent(child);
        if (r == 0)
                r = leave_host(child);
        child->root = base_close(child->root);
        child->page->root_device = own_devices[0];
        return r;
}
