/* SPDX-License-Identifier: MIT */
/*
 * What stays as it is, and what stays hidden. Mounts keep it so long as nobody touches their names;
 * but a host that renames or removes a name on which a box has mounted something takes the mount
 * away with it. So a plan also says which places are kept by their text in the box, and who the
 * directories were that held them: a directory that the host moves takes its names along.
 *
 * Nothing here makes a system call once the plan is made: whoever applies changes later may ask the
 * same questions.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "policy/plan.h"

/* How far a directory that is kept or hidden is searched for files that have other names as well:
 * entries of one plan, and depth. */
#define SEARCH_MAX 4096
#define SEARCH_DEPTH 8

/* ---- By text ---- */

bool plan_is_guarded(const struct plan_guard *guard, const char *path)
{
        return plan_means(guard->path, guard->name, path);
}

/* Where a path is, as seen from the place of a guard. */
struct seen {
        bool below;
        bool above;                  /* or it is the place, or above it */
        struct plan_letters letters; /* below it: of what follows */
};

static struct seen seen_from(const struct plan_guard *guard, const char *path, size_t n)
{
        struct seen seen = { 0 };

        if (strncasecmp(guard->path, path, MIN(guard->place, n)) != 0)
                return seen;
        if (n <= guard->place)
                seen.above = strchr("/", guard->path[n]) != NULL;
        else if (path[guard->place] == '/')
                seen = (struct seen){ .below = true,
                                      .letters = plan_letters_of(path + guard->place + 1) };
        return seen;
}

/* What one guard says of a path, where the step that shows the path is known: a deeper rule wins.
 */
static enum plan_keeping keeps(const struct plan_guard *guard, const struct plan_step *step,
                               const char *path)
{
        size_t length, n = strlen(path);
        bool deeper;

        if (plan_is_draft(guard->path, path))
                return guard->hides ? PLAN_HIDDEN : PLAN_KEPT;
        if (!plan_is_guarded(guard, path))
                return PLAN_FREE;
        length = strlen(guard->path);
        deeper = step && strlen(step->target) > length && step->kind != PLAN_HIDE;
        if (n < length)
                return PLAN_ABOVE;
        if (deeper && n > strlen(step->target) && (step->writable || step->kind == PLAN_TMPFS))
                return PLAN_FREE;
        return guard->hides && !deeper ? PLAN_HIDDEN : PLAN_KEPT;
}

enum plan_keeping plan_keeps(const struct plan *plan, const char *path)
{
        const struct plan_step *step = plan_step_for(plan, path);
        enum plan_keeping found = PLAN_FREE;
        struct seen seen = { 0 };
        size_t n = strlen(path);

        for (size_t i = 0; i < plan->n_guards; i++) {
                const struct plan_guard *guard = &plan->guards[i];

                if (!guard->again)
                        seen = seen_from(guard, path, n);
                if (guard->anywhere)
                        continue;
                if (guard->letters.first == 0 ||
                    (seen.below && plan_may_mean(guard->letters, seen.letters)))
                        found = plan_greater(found, keeps(guard, step, path));
                else if (seen.above)
                        found = plan_greater(found, PLAN_ABOVE);
        }
        return found;
}

bool plan_forbids_name(const struct plan *plan, const char *path)
{
        for (size_t i = 0; i < plan->n_guards; i++)
                if (plan->guards[i].anywhere && plan_is_guarded(&plan->guards[i], path))
                        return true;
        return false;
}

/* ---- By identity ---- */

struct plan_node plan_node_of(const struct statx *st)
{
        struct plan_node node = { .device = makedev(st->stx_dev_major, st->stx_dev_minor),
                                  .inode = st->stx_ino };

        if (st->stx_mask & STATX_BTIME)
                node.born = (uint64_t)st->stx_btime.tv_sec * NSEC_PER_SEC + st->stx_btime.tv_nsec;
        return node;
}

static bool is_same(const struct plan_node *a, const struct plan_node *b)
{
        return a->inode == b->inode && a->device == b->device &&
               (a->born == b->born || !a->born || !b->born);
}

static bool means(const struct plan_mark *mark, const char *name)
{
        return strcasecmp(mark->name, name) == 0 ||
               (mark->keeping >= PLAN_KEPT && plan_is_draft(mark->name, name));
}

struct plan_kept plan_keeps_entry(const struct plan *plan, const struct plan_node *node,
                                  const char *name)
{
        struct plan_letters letters = plan_letters_of(name ? name : "");
        struct plan_kept found = { PLAN_FREE, PLAN_FREE };

        for (size_t i = 0; i < plan->n_marks; i++) {
                const struct plan_mark *mark = &plan->marks[i];

                if (!is_same(&mark->node, node))
                        continue;
                if (!mark->name)
                        found.itself = plan_greater(found.itself, mark->keeping);
                else if (name && mark->keeping > found.name &&
                         plan_may_mean(mark->letters, letters) && means(mark, name))
                        found.name = mark->keeping;
        }
        return found;
}

enum plan_keeping plan_keeps_node(const struct plan *plan, const struct plan_node *node,
                                  const char *name)
{
        struct plan_kept found = plan_keeps_entry(plan, node, name);

        return name ? found.name : found.itself;
}

struct plan_mark plan_mark_of(struct plan_node node, char *name, enum plan_keeping keeping)
{
        return (struct plan_mark){ .node = node,
                                   .name = name,
                                   .keeping = keeping,
                                   .letters = plan_letters_of(name ? name : "") };
}

static int append_mark(struct plan *plan, struct plan_node node, const char *name,
                       enum plan_keeping keeping)
{
        struct plan_mark *marks = plan_grow(plan->marks, plan->n_marks, sizeof(*marks));

        if (!marks)
                return -ENOMEM;
        plan->marks = marks;
        marks[plan->n_marks] = plan_mark_of(node, name ? strdup(name) : NULL, keeping);
        if (name && !marks[plan->n_marks].name)
                return -ENOMEM;
        plan->n_marks++;
        return 0;
}

static int add_mark(struct plan *plan, struct plan_node node, const char *name,
                    enum plan_keeping keeping)
{
        return plan_keeps_node(plan, &node, name) >= keeping
                       ? 0
                       : append_mark(plan, node, name, keeping);
}

static int look(int fd, const char *name, struct statx *ret)
{
        int r = statx(fd, name, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
                      STATX_BASIC_STATS | STATX_BTIME, ret);

        return r < 0 ? -errno : 0;
}

/* ---- Files with other names ---- */

/* Below a directory: a file with several names could be changed or read by another one. */
static int mark_linked(struct plan *plan, int directory, enum plan_keeping keeping, unsigned depth,
                       unsigned *left)
{
        int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
        DIR *all = copy < 0 ? NULL : fdopendir(copy);
        struct dirent *entry;
        struct statx st;

        if (!all) { /* what the caller may not list */
                base_close(copy);
                return 0;
        }
        while (r == 0 && *left > 0 && (entry = readdir(all))) {
                if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                        continue;
                (*left)--;
                if (look(directory, entry->d_name, &st) < 0)
                        continue;
                if (S_ISREG(st.stx_mode) && st.stx_nlink > 1)
                        r = add_mark(plan, plan_node_of(&st), NULL, keeping);
                if (S_ISDIR(st.stx_mode) && depth < SEARCH_DEPTH) {
                        _cleanup_fd_ int inner =
                                openat(directory, entry->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

                        if (inner >= 0)
                                r = mark_linked(plan, inner, keeping, depth + 1, left);
                }
        }
        closedir(all);
        return r;
}

/* ---- Marks of a guard ---- */

/* The tree of the host that a place lies in. */
static const struct plan_step *tree_around(const struct plan *plan, const char *path)
{
        const struct plan_step *found = NULL;

        for (size_t i = 0; i < plan->n_steps; i++) {
                const struct plan_step *step = &plan->steps[i];
                const char *rest = plan_below(path, step->target);

                if (step->kind == PLAN_TREE && step->directory && rest && *rest)
                        found = step;
        }
        return found;
}

/* The same of a guard. What lies around a name of one part is what lies around its place:
 * `around`, where a guard before this one has asked for it. */
static const struct plan_step *tree_of(const struct plan *plan, const struct plan_guard *guard,
                                       const struct plan_step **around)
{
        if (!guard->again)
                *around = NULL;
        if (!*guard->name || strchr(guard->name, '/'))
                return tree_around(plan, guard->path);
        if (!*around)
                *around = tree_around(plan, guard->path);
        return *around;
}

static bool is_writable(const struct plan *plan, const char *path)
{
        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].kind == PLAN_TREE && plan->steps[i].writable &&
                    plan_below(path, plan->steps[i].target))
                        return true;
        return false;
}

/* What is at the end of the way. */
static int mark_end(struct plan *plan, int fd, const struct statx *st, enum plan_keeping keeping,
                    unsigned *left)
{
        int r = add_mark(plan, plan_node_of(st), NULL, keeping);

        return r == 0 && S_ISDIR(st->stx_mode) ? mark_linked(plan, fd, keeping, 0, left) : r;
}

/* Note each directory on the way from a tree down to a place, with the name that was in it. */
static int mark_way(struct plan *plan, const struct plan_step *tree, const char *rest,
                    enum plan_keeping keeping, unsigned *left)
{
        _cleanup_fd_ int own = -1;
        char name[NAME_MAX + 1];
        struct statx st;
        int at = tree->fd, r = look(at, "", &st);

        while (r == 0 && *(rest += strspn(rest, "/"))) {
                size_t n = strcspn(rest, "/");
                bool last = !rest[n];
                _cleanup_fd_ int next = -1;

                if (n > NAME_MAX)
                        return 0;
                memcpy(name, rest, n);
                name[n] = '\0';
                rest += n;
                r = add_mark(plan, plan_node_of(&st), name, last ? keeping : PLAN_ABOVE);
                next = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
                if (r < 0 || next < 0 || look(next, "", &st) < 0)
                        return r; /* there is nothing yet */
                if (last)
                        return mark_end(plan, next, &st, keeping, left);
                r = add_mark(plan, plan_node_of(&st), NULL, PLAN_ABOVE);
                base_close(own);
                at = own = TAKE_FD(next);
        }
        return r;
}

/* Is its name one that begins in the topmost directory of the tree? */
static bool is_in_top(const struct plan_guard *guard, const struct plan_step *tree)
{
        const char *rest = tree ? plan_below(guard->path, tree->target) : NULL;

        return rest && *rest && strcmp(rest + 1, guard->name) == 0;
}

/* There is nothing yet: the directory is the tree's own. Most protected names are marked here, and
 * those of one directory follow upon one another: no others are asked whether it is marked. */
static int mark_absent(struct plan *plan, const struct plan_step *tree, const char *name)
{
        const struct plan_mark *last = plan->n_marks ? &plan->marks[plan->n_marks - 1] : NULL;
        struct plan_node node = { tree->device, tree->inode, tree->born };
        enum plan_keeping keeping;
        size_t n = strcspn(name, "/");
        char first[NAME_MAX + 1];

        if (n > NAME_MAX)
                return 0;
        memcpy(first, name, n);
        first[n] = '\0';
        keeping = name[n] ? PLAN_ABOVE : PLAN_KEPT;
        if (last && last->name && last->keeping >= keeping && is_same(&last->node, &node) &&
            strcmp(last->name, first) == 0)
                return 0;
        return append_mark(plan, node, first, keeping);
}

static int mark_guard(struct plan *plan, size_t index, const struct plan_step **around,
                      unsigned *left)
{
        const struct plan_guard *guard = &plan->guards[index];
        enum plan_keeping keeping = guard->hides ? PLAN_HIDDEN : PLAN_KEPT;
        const struct plan_step *tree = tree_of(plan, guard, around);
        struct statx st;

        if (guard->anywhere)
                return 0;
        if (guard->absent && is_in_top(guard, tree))
                return mark_absent(plan, tree, guard->name);
        if (tree)
                return mark_way(plan, tree, plan_below(guard->path, tree->target), keeping, left);
        for (size_t i = 0; i < plan->n_steps; i++) /* a tree that is hidden as a whole */
                if (plan->steps[i].kind == PLAN_TREE &&
                    strcmp(plan->steps[i].target, guard->path) == 0 &&
                    look(plan->steps[i].fd, "", &st) == 0)
                        return mark_end(plan, plan->steps[i].fd, &st, keeping, left);
        return 0;
}

/* ---- All guards of a plan ---- */

void plan_set_guard(struct plan *plan, size_t index, char *path, const char *name)
{
        struct plan_guard *guard = &plan->guards[index];

        *guard = (struct plan_guard){ .path = path, .name = name };
        guard->place = strlen(path) - strlen(name) - (*name ? 1 : 0);
        guard->anywhere = policy_anywhere(name) != NULL;
        guard->letters = plan_letters_of(name);
        guard->again = index > 0 && guard[-1].place == guard->place &&
                       memcmp(guard[-1].path, path, guard->place) == 0;
}

int plan_add_guard(struct plan *plan, const char *place, const char *name)
{
        struct plan_guard *guards = plan_grow(plan->guards, plan->n_guards, sizeof(*guards));
        size_t length = strlen(place);
        char *path;

        if (!guards)
                return -ENOMEM;
        plan->guards = guards;
        path = malloc(length + 1 + strlen(name) + 1);
        if (!path)
                return -ENOMEM;
        memcpy(path, place, length);
        if (*name)
                path[length++] = '/';
        memcpy(path + length, name, strlen(name) + 1);
        plan_set_guard(plan, plan->n_guards++, path, name);
        return 0;
}

/* A read-only place in a writable tree, and what is hidden in a tree of the host. */
static int guard_step(struct plan *plan, const struct plan_step *step)
{
        bool hides = step->kind == PLAN_HIDE;
        int r;

        if (hides ? !plan_shows(plan, step->target)
                  : step->kind != PLAN_TREE || step->writable || !is_writable(plan, step->target))
                return 0;
        r = plan_add_guard(plan, step->target, "");
        if (r == 0)
                plan->guards[plan->n_guards - 1].hides = hides;
        return r;
}

int plan_keep(struct plan *plan)
{
        const struct plan_step *around = NULL;
        unsigned left = SEARCH_MAX;
        int r = 0;

        for (size_t i = 0; r == 0 && i < plan->n_steps; i++)
                r = guard_step(plan, &plan->steps[i]);
        for (size_t i = 0; r == 0 && i < plan->n_guards; i++) {
                plan->guarded = plan->guarded || is_writable(plan, plan->guards[i].path);
                plan->hides |= plan->guards[i].hides && !plan->caged; /* else Landlock hides it */
                r = mark_guard(plan, i, &around, &left);
        }
        return r;
}
