/* SPDX-License-Identifier: MIT */
/*
 * All steps of a plan together: what a rule says wins over what callbox adds by itself; parents
 * come before children; what is to be mounted in a tree of the host's has its place there already.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "policy/plan.h"

/* ---- What gives way ---- */

static void step_clear(struct plan_step *step)
{
        free(step->target);
        free(step->text);
        free(step->source);
        base_close(step->fd);
}

static void drop_step(struct plan *plan, size_t index)
{
        step_clear(&plan->steps[index]);
        plan->n_steps--;
        memmove(&plan->steps[index], &plan->steps[index + 1],
                (plan->n_steps - index) * sizeof(*plan->steps));
}

static bool is_inside(const char *path, const char *tree)
{
        const char *rest = plan_below(path, tree);

        return rest && *rest;
}

/* The files and directories of the box's own stay: there is nothing of the host's in them. What is
 * hidden itself is covered (PLAN_HIDE), so that its name stays visible. */
void plan_drop_hidden(struct plan *plan, const char *path)
{
        for (size_t i = plan->n_steps; i-- > 0;) {
                const struct plan_step *step = &plan->steps[i];

                if (step->system && ((step->kind == PLAN_TREE && is_inside(step->source, path)) ||
                                     ((step->kind == PLAN_TREE || step->kind == PLAN_LINK) &&
                                      is_inside(step->target, path))))
                        drop_step(plan, i);
        }
}

/* Is this in a tree that a rule shows? */
static const struct plan_step *rule_around(const struct plan *plan, const struct plan_step *step)
{
        for (size_t i = 0; i < plan->n_steps; i++) {
                const struct plan_step *tree = &plan->steps[i];

                if (tree->kind == PLAN_TREE && !tree->system &&
                    is_inside(step->target, tree->target))
                        return tree;
        }
        return NULL;
}

/* Does a rule put something below this place? */
static bool rule_below(const struct plan *plan, const struct plan_step *place)
{
        for (size_t i = 0; i < plan->n_steps; i++) {
                const struct plan_step *step = &plan->steps[i];

                if (step->where && step->kind >= PLAN_TREE &&
                    is_inside(step->target, place->target))
                        return true;
        }
        return false;
}

/* Such a tree has it already, or has no place for it. A link in it may lead elsewhere
 * (/etc/resolv.conf): then what it leads to is shown there. And what a rule shows in /var/tmp is
 * not shown in the box's /tmp. */
int plan_give_way(struct plan *plan)
{
        for (size_t i = plan->n_steps; i-- > 0;) {
                struct plan_step *step = &plan->steps[i];
                const struct plan_step *rule =
                        step->system && step->kind == PLAN_TREE ? rule_around(plan, step) : NULL;

                if (step->system && step->kind == PLAN_LINK && strcmp(step->text, PLAN_HOME) == 0 &&
                    rule_below(plan, step))
                        drop_step(plan, i);
                if (!rule)
                        continue;
                if (strcmp(rule->source, rule->target) != 0 ||
                    plan_below(step->source, rule->source)) {
                        drop_step(plan, i);
                        continue;
                }
                free(step->target);
                step->target = strdup(step->source);
                if (!step->target)
                        return -ENOMEM;
        }
        return 0;
}

/* ---- Order ---- */

/* Parents before children; at one place what every box has comes first. */
static int compare_steps(const void *a, const void *b)
{
        const struct plan_step *x = a, *y = b;
        int r = strcmp(x->target, y->target);

        if (r != 0)
                return r;
        if ((x->where == NULL) != (y->where == NULL))
                return x->where == NULL ? -1 : 1;
        return (int)x->kind - (int)y->kind;
}

/* Where a rule puts something in the place of what every box has, leave the latter out. */
static void drop_replaced(struct plan *plan)
{
        size_t kept = 0;

        for (size_t i = 0; i < plan->n_steps; i++) {
                struct plan_step *step = &plan->steps[i], *next = step + 1;

                if (i + 1 < plan->n_steps && !step->where && next->kind != PLAN_HIDE &&
                    strcmp(step->target, next->target) == 0)
                        step_clear(step);
                else
                        plan->steps[kept++] = *step;
        }
        plan->n_steps = kept;
}

/* ---- Mount points ---- */

/* Is there something in a tree of the host's to mount a step over? Nothing is created there. */
static int check_mount_point(const struct plan_step *step, const struct plan_step *tree,
                             const char *rest, cbx_error *error)
{
        struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
                                .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH };
        _cleanup_fd_ int fd = (int)syscall(SYS_openat2, tree->fd, rest + 1, &how, sizeof(how));
        struct stat st = { 0 };
        int r = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;

        if (r == -ENOENT || r == -ENOTDIR) {
                error_set(error, r, step->where,
                          "there is no place for %s: the box shows %s of the host, which has no "
                          "such name",
                          step->target, tree->source);
                error_hint(error, "nothing is created on the host: create it there, or choose "
                                  "another place for it in the box");
        } else if (r == -ELOOP || S_ISLNK(st.st_mode)) {
                r = error_set(error, -ELOOP, step->where,
                              "there is no place for %s: a part of the path is a symbolic link in "
                              "the box",
                              step->target);
                error_hint(error, "name the place it leads to");
        } else if (r == 0 && S_ISDIR(st.st_mode) != step->directory) {
                r = error_set(error, step->directory ? -ENOTDIR : -EISDIR, step->where,
                              "%s is a %s in the box, and cannot be covered by a %s", step->target,
                              step->directory ? "file" : "directory",
                              step->directory ? "directory" : "file");
                error_hint(error, "choose another place for it in the box");
        } else {
                r = 0; /* where this caller may not look, the box will see */
        }
        return r;
}

/* A place behind a link of the box's own, such as /lib: the kernel is not asked to follow it. */
static const struct plan_step *link_above(const struct plan *plan, size_t index)
{
        for (size_t i = index; i-- > 0;) {
                const struct plan_step *step = &plan->steps[i];

                if (!is_inside(plan->steps[index].target, step->target))
                        continue;
                if (step->kind >= PLAN_TREE)
                        return NULL;
                if (step->kind == PLAN_LINK)
                        return step;
        }
        return NULL;
}

/* The last mount before it that its target lies in; NULL: the root. */
static const struct plan_step *mount_of(const struct plan *plan, size_t index)
{
        for (size_t i = index; i-- > 0;)
                if (plan->steps[i].kind >= PLAN_TREE &&
                    plan_below(plan->steps[index].target, plan->steps[i].target))
                        return &plan->steps[i];
        return NULL;
}

/* Something that is mounted on a name of the host's goes with that name: note what it is now. */
static int add_mount_points(struct plan *plan, cbx_error *error)
{
        for (size_t i = 0; i < plan->n_steps; i++) {
                const struct plan_step *step = &plan->steps[i], *within = mount_of(plan, i), *link;
                char path[PATH_MAX];
                const char *rest;
                int r = 0;

                if (step->kind != PLAN_TREE && step->kind != PLAN_TMPFS && step->kind != PLAN_FILE)
                        continue;
                link = step->where && !plan->caged ? link_above(plan, i) : NULL;
                if (link) {
                        error_set(error, -ELOOP, step->where,
                                  "there is no place for %s: %s is a symbolic link in the box",
                                  step->target, link->target);
                        error_hint(error, "name the place it leads to");
                        return -ELOOP;
                }
                if (!within || within->kind != PLAN_TREE)
                        continue;
                rest = plan_below(step->target, within->target);
                if (step->where && *rest && !plan->caged)
                        r = check_mount_point(step, within, rest, error);
                if (r < 0)
                        return r;
                snprintf(path, sizeof(path), "%s%s", within->source, rest);
                if (plan_note(plan, path) < 0)
                        return error_oom(error);
        }
        return 0;
}

/* ---- The start directory ---- */

/* Does the box have the host's directory of this path? At its own place, where that counts. */
static bool is_there(const struct plan *plan, const char *path, bool own)
{
        bool there = false;

        for (size_t i = 0; i < plan->n_steps; i++) {
                const struct plan_step *step = &plan->steps[i];
                const char *rest = plan_below(path, step->target);

                if (step->kind < PLAN_TREE || !rest || (step->kind == PLAN_TMPFS && !*rest))
                        continue;
                there = step->kind == PLAN_TREE && step->directory &&
                        (!own || strcmp(step->source, step->target) == 0);
        }
        return there;
}

/* The caller's directory where the box shows it, else the workspace, else the box's home. */
static int set_start_directory(struct plan *plan, int dirfd, const char *workspace)
{
        char link[64], path[PATH_MAX];
        const char *start = plan->caged ? "" : PLAN_HOME;
        ssize_t n;

        if (workspace && is_there(plan, workspace, false))
                start = workspace;
        if (dirfd == AT_FDCWD)
                n = getcwd(path, sizeof(path)) ? (ssize_t)strlen(path) : -1;
        else {
                snprintf(link, sizeof(link), "/proc/self/fd/%d", dirfd);
                n = readlink(link, path, sizeof(path) - 1);
        }
        if (n > 0 && path[0] == '/') {
                path[n] = '\0';
                if (is_there(plan, path, true))
                        start = path;
        }
        plan->start_directory = strdup(start);
        return plan->start_directory ? 0 : -ENOMEM;
}

int plan_order_steps(struct plan *plan, int dirfd, const char *workspace, cbx_error *error)
{
        int r;

        qsort(plan->steps, plan->n_steps, sizeof(*plan->steps), compare_steps);
        drop_replaced(plan);
        r = add_mount_points(plan, error);
        if (r == 0 && set_start_directory(plan, dirfd, workspace) < 0)
                r = error_oom(error);
        return r;
}
