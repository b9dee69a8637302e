/* SPDX-License-Identifier: MIT */
/*
 * What a forked box sees: the root of its zygote's box, which cannot be changed from here, with
 * everything that could be written to without leaving the box mounted anew over it: /proc,
 * terminals, shared memory, and each tmpfs of the plan with what the plan shows below it.
 */
#include <fcntl.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "box/child.h"

static bool lies_below(const char *path, const char *directory)
{
        size_t n = strlen(directory);

        return strncmp(path, directory, n) == 0 && path[n] == '/';
}

/* Is a tmpfs the last of the file systems in which this step lies? Else it is a tree, or the root.
 */
static bool lies_in_tmpfs(const struct plan *plan, size_t index)
{
        const struct plan_step *last = NULL;

        for (size_t i = 0; i < index; i++) {
                const struct plan_step *step = &plan->steps[i];

                if ((step->kind == PLAN_TMPFS || step->kind == PLAN_TREE) &&
                    lies_below(plan->steps[index].target, step->target) &&
                    (!last || strlen(step->target) >= strlen(last->target)))
                        last = step;
        }
        return last && last->kind == PLAN_TMPFS;
}

/* Has it to be made again? Not what comes along with a copied tree, and what is hidden in a tmpfs
 * is not there. */
static bool is_renewed(const struct plan *plan, size_t index)
{
        if (plan->steps[index].kind == PLAN_TMPFS)
                return true;
        return plan->steps[index].kind != PLAN_HIDE && lies_in_tmpfs(plan, index);
}

static int write_id(struct child *child, const char *file, const char *text)
{
        _cleanup_fd_ int fd = openat(child->proc, file, O_WRONLY | O_CLOEXEC);

        if (fd < 0 || fd_write_all(fd, text, strlen(text)) < 0)
                return step_failed(child, "write the box's id maps", file, errno);
        return 0;
}

/* The one id that the zygote's box knows is this box's as well. */
static int map_ids(struct child *child)
{
        char map[80], *end;
        int r;

        end = text_number(map, PLAN_BOX_ID);
        *end++ = ' ';
        end = text_number(end, PLAN_BOX_ID);
        text_copy(end, (size_t)(map + sizeof(map) - end), " 1");
        r = write_id(child, "self/setgroups", "deny");
        if (r == 0)
                r = write_id(child, "self/uid_map", map);
        if (r == 0)
                r = write_id(child, "self/gid_map", map);
        return r < 0 ? r : box_become_identity(child);
}

static int renew(struct child *child)
{
        const struct plan *plan = child->plan;
        int r = 0;

        for (size_t i = 0; r == 0 && i < plan->n_steps; i++) {
                if (plan->steps[i].kind != PLAN_TREE || !is_renewed(plan, i))
                        continue;
                child->trees[i] = root_copy_tree(child, AT_FDCWD, plan->steps[i].target);
                r = MIN(child->trees[i], 0);
        }
        for (size_t i = 0; r == 0 && i < plan->n_steps; i++)
                if (is_renewed(plan, i))
                        r = root_add_step(child, i);
        return r;
}

int box_enter_view(struct child *child)
{
        struct stat st;
        int r;

        child->proc = box_new_proc(child);
        if (child->proc < 0)
                return child->proc;
        r = map_ids(child);
        if (r < 0)
                return r;
        child->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (child->root < 0 || stat("/", &st) < 0)
                return step_failed(child, "open the root", NULL, errno);
        child->page->root_device = st.st_dev;
        r = renew(child);
        if (r == 0)
                r = box_refill_dev(child);
        if (r == 0)
                r = box_mount_proc(child);
        child->parent.fd = base_close(child->parent.fd);
        child->root = base_close(child->root);
        return r;
}
