/* SPDX-License-Identifier: MIT */
/* Fence: what a policy hides is covered by something empty that nobody may read. */
#include <fcntl.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "box/child.h"
#include "box/own.h"

/* The place in the stage of what hides step number `index`. */
static const char *hide_name(size_t index, char room[32])
{
        text_copy(room, 32, STAGE "/hide-");
        text_number(room + strlen(room), index);
        return room;
}

/* Cover a path with something empty. What a deeper rule shows again gets its mount point inside,
 * so each hidden directory has one of its own; box_seal_hidden closes them in the end. */
int box_hide(struct child *child, size_t index)
{
        const struct plan_step *step = &child->plan->steps[index];
        _cleanup_fd_ int tree = -1;
        struct place place, made;
        struct stat st;
        char name[32];
        int r;

        r = root_make(child, hide_name(index, name), step->directory, &made);
        if (r < 0)
                return r;
        tree = (int)syscall(SYS_open_tree, made.parent, made.name,
                            OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (tree < 0)
                return step_failed(child, "hide", step->target, errno);
        root_forget_parent(child); /* its path was on this stack */
        r = root_find(child, step->target, &place);
        if (r < 0)
                return r;
        if (fstatat(place.parent, place.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : step_failed(child, "hide", step->target, errno);
        return root_attach(child, tree, &place);
}

/* Does a later step show something below step number `index`? */
static bool shows_below(const struct child *child, size_t index)
{
        const char *target = child->plan->steps[index].target;
        size_t n = strlen(target);

        for (size_t i = index + 1; i < child->plan->n_steps; i++)
                if (strncmp(child->plan->steps[i].target, target, n) == 0 &&
                    child->plan->steps[i].target[n] == '/')
                        return true;
        return false;
}

/* Once every deeper rule has its place, what hides becomes unreadable and read-only. */
int box_seal_hidden(struct child *child)
{
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
        char name[32];

        for (size_t i = 0; i < child->plan->n_steps; i++) {
                const struct plan_step *step = &child->plan->steps[i];
                _cleanup_fd_ int fd = -1;

                if (step->kind != PLAN_HIDE)
                        continue;
                if (own_fchmodat(child->root, hide_name(i, name),
                                 shows_below(child, i) ? 0111 : 0) < 0) {
                        if (errno == ENOENT)
                                continue; /* it was not shown in the first place */
                        return step_failed(child, "seal what hides", step->target, errno);
                }
                fd = root_open(child->root, step->target, O_PATH);
                if (fd < 0 ||
                    syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
                        return step_failed(child, "seal what hides", step->target, errno);
        }
        return 0;
}
