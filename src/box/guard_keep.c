/* SPDX-License-Identifier: MIT */
/*
 * What is kept and what is hidden, asked of a place that has been resolved: by its text in the box,
 * and by who its directories are, up to the tree's own. A mount on a name is the first fence; this
 * is the one that holds when the host has replaced the name, or has moved a directory above it.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include "box/guard.h"
#include "box/init.h"

#define DEPTH_MAX 2048 /* of directories: deeper than any path that can be said */
#define STRIDE 4       /* gone up at once: each ".." takes as long as the way is deep */

int guard_look(int fd, const char *name, struct statx *ret)
{
        int r = statx(fd, name,
                      AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
                      STATX_BASIC_STATS | STATX_BTIME, ret);

        return r < 0 ? -errno : 0;
}

static enum plan_keeping fenced(enum plan_keeping found)
{
        if (found == PLAN_HIDDEN && !box_fence(FENCE_HIDE))
                found = PLAN_KEPT;
        return found == PLAN_HIDDEN || box_fence(FENCE_PROTECT) ? found : PLAN_FREE;
}

/* Can somebody have moved directories here, so that the text alone does not tell? */
static const struct plan_step *tree_of(const struct plan *plan, const char *text)
{
        const struct plan_step *step = plan->n_marks > 0 ? plan_step_for(plan, text) : NULL;

        return step && step->kind == PLAN_TREE && !step->system ? step : NULL;
}

bool guard_needs_way(const struct child *child, const char *text)
{
        return tree_of(child->plan, text) != NULL;
}

/* A directory above one that is open. */
struct ladder {
        int at;
        int own; /* the same, where it is ours to close */
        char up[3 * STRIDE + 1];
};

static int go_up(struct ladder *ladder)
{
        size_t n = strlen(ladder->up);
        int next;

        text_copy(ladder->up + n, 4, n == 0 ? ".." : "/..");
        if (n + 4 <= sizeof(ladder->up) - 3)
                return 0;
        next = openat(ladder->at, ladder->up, O_PATH | O_DIRECTORY | O_CLOEXEC);
        base_close(ladder->own);
        ladder->at = ladder->own = next;
        ladder->up[0] = '\0';
        return next < 0 ? -errno : 0;
}

/* Go up from the directory of a place to the tree that shows it. Where the way cannot be seen
 * nothing is let through: the program could have closed it. */
static enum plan_keeping look_up(const struct plan *plan, const char *top, int directory,
                                 const char *text)
{
        struct ladder ladder = { .at = directory, .own = -1 };
        const char *end = text + strlen(text);
        enum plan_keeping found = PLAN_FREE;
        char name[NAME_MAX + 1];
        size_t base = strlen(top);

        for (unsigned depth = 0; end > text + base && *top; depth++) {
                const char *slash = memrchr(text, '/', (size_t)(end - text));
                struct plan_node node;
                struct plan_kept kept;
                struct statx st;

                if (depth == DEPTH_MAX || !slash || guard_look(ladder.at, ladder.up, &st) < 0) {
                        found = PLAN_HIDDEN;
                        break;
                }
                text_copy(name, MIN(sizeof(name), (size_t)(end - slash)), slash + 1);
                node = plan_node_of(&st);
                kept = plan_keeps_entry(plan, &node, name);
                if (depth == 0 || kept.name >= PLAN_KEPT)
                        found = plan_greater(found, kept.name);
                if (kept.itself >= PLAN_KEPT)
                        found = plan_greater(found, kept.itself);
                end = slash;
                if (go_up(&ladder) < 0) {
                        found = PLAN_HIDDEN;
                        break;
                }
        }
        base_close(ladder.own);
        return found;
}

static bool is_same(const struct statx *a, const struct statx *b)
{
        return a->stx_ino == b->stx_ino && a->stx_dev_major == b->stx_dev_major &&
               a->stx_dev_minor == b->stx_dev_minor;
}

/* Is it of a tree's file system, though its text is in none of them? */
static bool is_of_tree(const struct plan *plan, const struct statx *st)
{
        dev_t device = makedev(st->stx_dev_major, st->stx_dev_minor);

        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].kind == PLAN_TREE && !plan->steps[i].system &&
                    plan->steps[i].device == device)
                        return true;
        return false;
}

/* Of a directory that the host has moved out of a tree the kernel tells no place that would be
 * right: then it is not there. */
bool guard_is_misplaced(const struct child *child, const char *text, const struct statx *st)
{
        const struct plan *plan = child->plan;
        struct statx now;

        if (plan->caged || plan->n_marks == 0 || text[0] != '/' || tree_of(plan, text) ||
            !is_of_tree(plan, st))
                return false;
        return guard_look(AT_FDCWD, text, &now) < 0 || !is_same(&now, st);
}

static bool is_directory_misplaced(const struct child *child, int directory, const char *text)
{
        const char *slash = strrchr(text, '/');
        char parent[PATH_MAX];
        struct statx st;

        if (directory < 0 || child->plan->n_marks == 0 || !slash)
                return false;
        text_copy(parent, MIN(sizeof(parent), (size_t)(slash - text) + 1), text);
        return guard_look(directory, "", &st) < 0 ||
               guard_is_misplaced(child, *parent ? parent : "/", &st);
}

enum plan_keeping guard_keeping(const struct child *child, int directory, const char *text)
{
        const struct plan *plan = child->plan;
        const struct plan_step *tree = tree_of(plan, text);
        enum plan_keeping found = plan_keeps(plan, text);

        if (tree && found < PLAN_HIDDEN)
                found = plan_greater(found, look_up(plan, tree->target, directory, text));
        else if (found < PLAN_HIDDEN && is_directory_misplaced(child, directory, text))
                found = PLAN_HIDDEN;
        return fenced(found);
}

enum plan_keeping guard_keeping_node(const struct child *child, const struct statx *st)
{
        struct plan_node node = plan_node_of(st);

        return fenced(plan_keeps_node(child->plan, &node, NULL));
}

/* Of what has no name any more, by the name that it had: the host may have it open still. */
static enum plan_keeping keeping_of_deleted(const struct child *child, const char *text)
{
        static const char mark[] = " (deleted)";
        size_t n = strlen(text), length = strlen(mark);
        char before[PATH_MAX];

        text_copy(before, sizeof(before), text);
        if (n > length && strcmp(text + n - length, mark) == 0)
                before[n - length] = '\0';
        return fenced(plan_keeps(child->plan, before));
}

/* Its directory is looked up by the text, and has to hold it still. */
enum plan_keeping guard_keeping_of(const struct child *child, const char *text,
                                   const struct statx *st)
{
        enum plan_keeping found = guard_keeping_node(child, st);
        char parent[PATH_MAX];
        const char *slash = strrchr(text, '/');
        struct statx now;
        _cleanup_fd_ int directory = -1;

        found = plan_greater(found, st->stx_nlink == 0 ? keeping_of_deleted(child, text)
                                                       : fenced(plan_keeps(child->plan, text)));
        if (st->stx_nlink > 0 && guard_is_misplaced(child, text, st))
                return fenced(PLAN_HIDDEN);
        if (text[0] != '/' || !guard_needs_way(child, text) || st->stx_nlink == 0)
                return found;
        text_copy(parent, MIN(sizeof(parent), (size_t)(slash - text) + 1), text);
        directory = open(*parent ? parent : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (directory < 0 || guard_look(directory, slash + 1, &now) < 0 || !is_same(&now, st))
                return fenced(PLAN_HIDDEN);
        return plan_greater(found, guard_keeping(child, directory, text));
}

static bool is_read_only(int fd)
{
        struct statvfs fs;

        return fd >= 0 && fstatvfs(fd, &fs) == 0 && (fs.f_flag & ST_RDONLY);
}

/* As the kernel would have said, where a mount keeps it. */
int guard_refuse(struct child *child, int fd, const char *text)
{
        if (is_read_only(fd))
                return -EROFS;
        notify_trace(child->page, BOX_TRACE_PROTECTED, text, EPERM);
        return -EPERM;
}

int guard_refuse_hidden(struct child *child, const char *text)
{
        if (child->plan->explain)
                notify_trace(child->page, BOX_TRACE_FILE, text, EACCES);
        return -EACCES;
}

/* Landlock holds the program to what is writable; this holds init, who acts for it. Where a mount
 * does so the kernel is left to say it. */
bool guard_is_writable(const struct child *child, int fd, const char *text)
{
        const struct plan_step *step;

        if (child->plan->caged || child->plan->landlock_abi == 0 || !box_fence(FENCE_LANDLOCK))
                return true;
        step = plan_step_for(child->plan, text);
        return !step || step->kind != PLAN_TREE || step->writable || is_read_only(fd);
}

/* Nothing is ever made at a protected name, not even what the kernel would refuse: it might have
 * gone away between a look and the call. */
static int check_new(struct child *child, const struct guard_path *path, enum plan_keeping found)
{
        struct statx st;
        bool forbidden =
                (plan_forbids_name(child->plan, path->text) || guard_means_head(child, path)) &&
                box_fence(FENCE_PROTECT);

        if (found == PLAN_HIDDEN)
                return guard_refuse_hidden(child, path->text);
        if (found == PLAN_FREE && !forbidden)
                return guard_is_writable(child, path->parent, path->text) ? 0 : -EROFS;
        return guard_look(path->parent, path->name, &st) == 0
                       ? -EEXIST
                       : guard_refuse(child, path->parent, path->text);
}

/* The same for what is moved away, removed, or has to give way. A directory above something that is
 * kept is known by itself as well. */
static int check_old(struct child *child, const struct guard_path *path, enum plan_keeping found,
                     bool directory)
{
        struct statx st = { 0 };
        int r = found != PLAN_FREE || directory ? guard_look(path->parent, path->name, &st) : 0;

        if (r < 0)
                return found == PLAN_FREE ? 0 : r;
        if (S_ISDIR(st.stx_mode))
                found = plan_greater(found, guard_keeping_node(child, &st));
        if (found == PLAN_HIDDEN)
                return guard_refuse_hidden(child, path->text);
        if (found != PLAN_FREE)
                return guard_refuse(child, path->parent, path->text);
        return guard_is_writable(child, path->parent, path->text) ? 0 : -EROFS;
}

int guard_check_new(struct child *child, const struct guard_path *path)
{
        return check_new(child, path, guard_keeping(child, path->parent, path->text));
}

int guard_check_old(struct child *child, const struct guard_path *path, bool directory)
{
        return check_old(child, path, guard_keeping(child, path->parent, path->text), directory);
}

/* Where a name is taken the kernel says so; where it may not be made, we do. */
int guard_check_target(struct child *child, const struct guard_path *path)
{
        enum plan_keeping found = guard_keeping(child, path->parent, path->text);
        int r = check_old(child, path, found, true);

        if (r < 0 && r != -ENOENT)
                return r;
        r = check_new(child, path, found);
        return r == -EEXIST ? guard_refuse(child, path->parent, path->text) : r;
}
