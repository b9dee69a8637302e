/* SPDX-License-Identifier: MIT */
/*
 * Paths of the host that stay as they are in whichever writable tree they lie: what is there is
 * mounted read-only, and the guard keeps the name and all names above it. A link on the way is kept
 * as well as what it leads to: whoever follows it on the host must find what was there.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "policy/mounts.h"
#include "policy/plan.h"

#define LINKS_MAX 40

/* A path on its way to what it leads to. */
struct way {
        char at[PATH_MAX]; /* without links */
        char left[PATH_MAX];
        unsigned links;
};

char **plan_shown(struct plan *plan, size_t index, const char *path)
{
        if (!plan->mounts && !plan->mounts_read) {
                plan->mounts_read = true;
                (void)inputs_mounts_read(&plan->mounts);
        }
        return mounts_shown(plan->mounts, plan->steps[index].source, path);
}

static bool is_kept(const struct plan *plan, const char *target)
{
        for (size_t i = 0; i < plan->n_guards; i++)
                if (strcmp(plan->guards[i].path, target) == 0)
                        return true;
        return false;
}

static bool is_read_only(const struct plan *plan, const char *target)
{
        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].kind == PLAN_TREE && !plan->steps[i].writable &&
                    strcmp(plan->steps[i].target, target) == 0)
                        return true;
        return false;
}

/* Mount what is there read-only. A tree that is writable as a whole is the guard's alone to keep.
 */
static int mount_read_only(struct plan *plan, const char *path, const char *target,
                           const char *where)
{
        int r;

        if (is_read_only(plan, target))
                return 0;
        r = plan_add_tree(plan, AT_FDCWD, path, target, false, where);
        if (r == 0)
                plan->steps[plan->n_steps - 1].map = plan->privileged;
        return r == -ENOENT || r == -ENOTDIR ? 0 : r;
}

/* Keep it in one writable tree, at each place where that shows it. */
static int keep_in(struct plan *plan, size_t index, const char *path, bool link, const char *where)
{
        _cleanup_list_ char **shown = plan_shown(plan, index, path);
        char target[2 * PATH_MAX];
        int r = shown ? 0 : -ENOMEM;

        for (char **place = shown; r == 0 && *place; place++) {
                const char *rest = plan_below(*place, plan->steps[index].source);

                if (snprintf(target, sizeof(target), "%s%s", plan->steps[index].target, rest) >=
                    PATH_MAX)
                        continue; /* nor could a program name it */
                if (!is_kept(plan, target))
                        r = plan_add_guard(plan, target, "");
                if (r == 0 && !link && *rest)
                        r = mount_read_only(plan, *place, target, where);
        }
        return r;
}

/* Keep one place of the host wherever the box may write to it. */
static int keep_place(struct plan *plan, const char *path, bool link, const char *where)
{
        size_t n_shown = plan->n_steps;
        int r = 0;

        for (size_t i = 0; r == 0 && i < n_shown; i++)
                if (plan->steps[i].kind == PLAN_TREE && plan->steps[i].writable)
                        r = keep_in(plan, i, path, link, where);
        return r;
}

/* Go one step. Returns 1 for a link, whose place is `place`; -ENOTDIR: there is a file on the way.
 */
static int go_on(struct way *way, char place[PATH_MAX])
{
        char *rest = way->left + strspn(way->left, "/"), link[PATH_MAX], joined[2 * PATH_MAX];
        size_t n = strcspn(rest, "/");
        ssize_t length;

        if (n == 1 && rest[0] == '.') {
                memmove(way->left, rest + n, strlen(rest + n) + 1);
                return 0;
        }
        if (n == 2 && rest[0] == '.' && rest[1] == '.') {
                char *last = strrchr(way->at, '/');

                if (last)
                        *last = '\0';
                memmove(way->left, rest + n, strlen(rest + n) + 1);
                return 0;
        }
        if (snprintf(joined, sizeof(joined), "%s/%.*s", way->at, (int)n, rest) >= PATH_MAX)
                return -ENAMETOOLONG;
        memcpy(place, joined, strlen(joined) + 1);
        length = readlink(place, link, sizeof(link) - 1);
        if (length < 0 && errno == ENOTDIR)
                return -ENOTDIR;
        if (length < 0 && errno == ENOENT && !strstr(rest, "..")) { /* there is nothing yet */
                if (snprintf(joined, sizeof(joined), "%s/%s", way->at, rest) >= PATH_MAX)
                        return -ENAMETOOLONG;
                memcpy(way->at, joined, strlen(joined) + 1);
                way->left[0] = '\0';
                return 0;
        }
        if (length <= 0) {
                memcpy(way->at, place, strlen(place) + 1);
                memmove(way->left, rest + n, strlen(rest + n) + 1);
                return 0;
        }
        link[length] = '\0';
        if (snprintf(joined, sizeof(joined), "%s%s", link, rest + n) >= PATH_MAX)
                return -ENAMETOOLONG;
        memcpy(way->left, joined, strlen(joined) + 1);
        if (link[0] == '/')
                way->at[0] = '\0';
        return ++way->links > LINKS_MAX ? -ELOOP : 1;
}

int plan_hold_name(struct plan *plan, const char *directory, const char *name, const char *where)
{
        struct way way;
        char place[PATH_MAX], path[2 * PATH_MAX];
        int r;

        if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= PATH_MAX)
                return -ENAMETOOLONG;
        r = plan_note(plan, path);
        if (r == 0 && plan->facts[plan->n_facts - 1].inode == 0)
                plan->facts[plan->n_facts - 1].guarded = true; /* should it come to be */
        memcpy(way.at, directory, strlen(directory) + 1);
        memcpy(way.left, name, strlen(name) + 1);
        way.links = 0;
        while (r >= 0 && way.left[strspn(way.left, "/")]) {
                r = go_on(&way, place);
                if (r == 1)
                        r = keep_place(plan, place, true, where);
        }
        if (r == -ELOOP) /* it leads nowhere, and each of the links is kept */
                return 0;
        return r < 0 && r != -ENOTDIR ? r : keep_place(plan, way.at, false, where);
}

int plan_hold(struct plan *plan, const char *path, const char *where, cbx_error *error)
{
        int r = plan_hold_name(plan, "", path, where);

        return r < 0 ? error_set(error, r, where, "cannot hold %s: %s", path, strerror(-r)) : 0;
}
