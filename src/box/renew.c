/* SPDX-License-Identifier: MIT */
/*
 * What a box sees that begins with a copy of another root, a mould's or its zygote's: that root,
 * which cannot be changed from here, with everything that could be written to without leaving the
 * box mounted anew over it: /proc, terminals, shared memory, and each tmpfs of the plan with what
 * the plan shows below it.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "box/child.h"

static bool is_mount(const struct plan_step *step)
{
        return step->kind == PLAN_TREE || step->kind == PLAN_TMPFS || step->kind == PLAN_HIDE;
}

/* The mount that step number `index` is made in: the last one before it that its target lies in, or
 * NULL for the root itself. */
static const struct plan_step *mount_of(const struct plan *plan, size_t index, bool hidden)
{
        for (size_t i = index; i-- > 0;) {
                const struct plan_step *step = &plan->steps[i];

                if (is_mount(step) && (hidden || step->kind != PLAN_HIDE) &&
                    lies_in(plan->steps[index].target, step->target))
                        return step;
        }
        return NULL;
}

/* Has it to be made again? Not what comes along with a copied tree; and what is hidden in a tmpfs
 * is not there. */
static bool is_renewed(const struct plan *plan, size_t index)
{
        const struct plan_step *mount;

        if (plan->steps[index].kind == PLAN_TMPFS || plan->steps[index].kind == PLAN_HIDE)
                return plan->steps[index].kind == PLAN_TMPFS;
        mount = mount_of(plan, index, false);
        return mount && mount->kind == PLAN_TMPFS;
}

static int renew(struct child *child)
{
        const struct plan *plan = child->plan;
        int r = 0;

        /* What lies in a file system that is about to be covered is copied before. */
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

int box_enter_copy(struct child *child)
{
        int r;

        child->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (child->root < 0)
                return step_failed(child, "open the root", NULL, errno);
        r = renew(child);
        if (r == 0)
                r = box_refill_dev(child);
        if (r == 0)
                r = box_mount_proc(child);
        root_forget_parent(child);
        child->root = base_close(child->root);
        return r;
}

bool box_mould_is_whole(const struct plan *plan)
{
        for (size_t i = 0; i < plan->n_steps; i++) {
                const struct plan_step *step = &plan->steps[i], *mount = mount_of(plan, i, true);
                struct stat st;
                bool there;

                if (!mount || mount->kind != PLAN_TREE ||
                    (!is_mount(step) && step->kind != PLAN_FILE))
                        continue;
                if (i + 1 < plan->n_steps && is_mount(step + 1) &&
                    strcmp(step->target, step[1].target) == 0)
                        continue; /* covered by the next one, which is looked at */
                there = lstat(step->target, &st) == 0;
                if (!there &&
                    (step->kind == PLAN_TREE || step->kind == PLAN_TMPFS || errno != ENOENT))
                        return false;
                if (there && step->kind == PLAN_FILE && !S_ISREG(st.st_mode))
                        continue; /* it was not covered */
                if (step->kind == PLAN_TREE &&
                    (st.st_dev != step->device || st.st_ino != step->inode))
                        return false;
                if (step->kind != PLAN_TREE && there && !root_is_own(st.st_dev))
                        return false;
        }
        return true;
}
