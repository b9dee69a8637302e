/* SPDX-License-Identifier: MIT */
/*
 * The files that a policy names. Each host path is resolved here, once: to a descriptor and to the
 * canonical path under which it appears in the box. A deeper rule wins over the one above it.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "policy/inputs.h"
#include "policy/plan.h"
#include "policy/syscalls.h"

static int no_such_path(const struct policy_path *rule, int r, cbx_error *error)
{
        if (r == -ENOENT || r == -ENOTDIR) {
                error_set(error, -ENOENT, rule->where, "%s does not exist", rule->host);
                error_hint(error, "create it first, or take the rule away");
        } else if (r == -EACCES) {
                error_set(error, r, rule->where, "%s cannot be reached: %s", rule->host,
                          strerror(-r));
                error_hint(error, "the caller has no permission on a directory above it");
        } else {
                error_set(error, r, rule->where, "%s cannot be opened: %s", rule->host,
                          strerror(-r));
        }
        return r;
}

/* Places that a box makes for itself and that no rule may replace. */
static const char *const own_places[] = { "/proc", "/dev", "/sys" };

static int check_place(const struct policy_path *rule, const struct plan_step *step,
                       cbx_error *error)
{
        if (strcmp(step->source, "/") == 0 || strcmp(step->target, "/") == 0) {
                error_set(error, -EINVAL, rule->where, "the whole of / cannot be shown");
                error_hint(error, "name the directories that the program needs");
                return -EINVAL;
        }
        for (size_t i = 0; i < ARRAY_SIZE(own_places); i++)
                if (plan_below(step->target, own_places[i]) ||
                    plan_below(step->source, own_places[i]))
                        return error_set(error, -EINVAL, rule->where,
                                         "%s cannot be shown: a box has a %s of its own",
                                         rule->host, own_places[i]);
        return 0;
}

/* A rule that names a symbolic link shows what it leads to, and the link beside it. */
static int add_link(struct plan *plan, const struct policy_path *rule, const char *source)
{
        size_t n = strlen(rule->host);

        if (rule->box || rule->host[0] != '/' || strstr(rule->host, "/..") || n >= PATH_MAX ||
            rule->host[n - 1] == '/' || strcmp(rule->host, source) == 0)
                return 0;
        return plan_add_step(plan, PLAN_LINK, rule->host, source) ? 0 : -ENOMEM;
}

/* Run by root, a tree that others may read is shown as others see it: what only its owner may read
 * stays closed. One that is the owner's alone is shown as the owner sees it, or it would be of no
 * use; so is one that the box may write. */
static bool open_to_others(const struct plan_step *step)
{
        mode_t wanted = step->directory ? S_IROTH | S_IXOTH : S_IROTH;
        struct stat st;

        return fstat(step->fd, &st) == 0 && (st.st_mode & wanted) == wanted;
}

/* What others see of root's repository belongs to someone else, and git refuses to look at it
 * unless told that this is meant. */
static int trust_repository(struct plan *plan)
{
        const struct plan_step *tree = &plan->steps[plan->n_steps - 1];
        struct plan_step *file;

        if (!plan->privileged || tree->map || !tree->directory || plan->caged ||
            !plan->policy->system || faccessat(tree->fd, ".git", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
                return 0;
        for (size_t i = 0; i < plan->n_steps; i++)
                if (strcmp(plan->steps[i].target, "/etc/gitconfig") == 0)
                        return 0;
        file = plan_add_step(plan, PLAN_FILE, "/etc/gitconfig", "[safe]\n\tdirectory = *\n");
        if (!file)
                return -ENOMEM;
        file->system = true;
        return 0;
}

static int add_shown(struct plan *plan, const struct policy_path *rule, cbx_error *error)
{
        struct plan_step *step;
        size_t added = plan->n_steps;
        int r;

        r = plan_add_rule(plan, rule, rule->box, rule->access == POLICY_WRITE, error);
        if (r == -ESTALE)
                return r;
        if (r < 0)
                return no_such_path(rule, r, error);
        step = &plan->steps[added];
        step->map = plan->privileged && (step->writable || !open_to_others(step));
        plan->guards_sockets = true;
        r = check_place(rule, step, error);
        if (r < 0)
                return r;
        if (rule->workspace && !step->directory)
                return error_set(error, -ENOTDIR, rule->where, "the workspace %s is no directory",
                                 rule->host);
        if (plan_add_fact(plan, NULL, step->source, step) < 0 || trust_repository(plan) < 0 ||
            add_link(plan, rule, plan->steps[added].source) < 0)
                return error_oom(error);
        return 0;
}

/* What cannot be hidden. A link may lead to the box's own: then there is nothing to hide. */
static int check_hidden(int dirfd, const struct policy_path *rule, const char *source,
                        cbx_error *error)
{
        struct stat st;

        if (strcmp(source, "/") == 0) {
                error_set(error, -EINVAL, rule->where, "the whole of / cannot be hidden");
                error_hint(error, "a box shows nothing but the system and what is named; "
                                  "--no-system takes the system away as well");
                return -EINVAL;
        }
        if (fstatat(dirfd, rule->host, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
                return 0;
        for (size_t i = 0; i < ARRAY_SIZE(own_places); i++)
                if (plan_below(source, own_places[i]))
                        return error_set(error, -EINVAL, rule->where,
                                         "%s cannot be hidden: a box has a %s of its own",
                                         rule->host, own_places[i]);
        return 0;
}

/* Hide a path wherever a tree of this plan shows it. What the system has below it goes: only a rule
 * shows it again. */
static int add_hidden(struct plan *plan, int dirfd, const struct policy_path *rule,
                      cbx_error *error)
{
        char target[PATH_MAX];
        struct plan_step resolved, *step;
        size_t n_shown;
        int r;

        r = plan_add_rule(plan, rule, NULL, false, error);
        if (r == -ESTALE)
                return r;
        if (r < 0)
                return no_such_path(rule, r, error);
        resolved = plan->steps[--plan->n_steps];
        base_close(resolved.fd);
        r = check_hidden(dirfd, rule, resolved.source, error);
        if (r == 0 && plan_add_fact(plan, NULL, resolved.source, &resolved) < 0)
                r = error_oom(error);
        plan_drop_hidden(plan, resolved.source);
        n_shown = plan->n_steps;
        for (size_t i = 0; r == 0 && i < n_shown; i++) {
                const char *rest;

                if (plan->steps[i].kind != PLAN_TREE)
                        continue;
                rest = plan_below(resolved.source, plan->steps[i].source);
                if (!rest)
                        continue;
                snprintf(target, sizeof(target), "%s%s", plan->steps[i].target, rest);
                step = plan_add_step(plan, PLAN_HIDE, target, NULL);
                if (!step) {
                        r = error_oom(error);
                } else {
                        step->directory = resolved.directory;
                        step->where = rule->where;
                }
        }
        free(resolved.source);
        free(resolved.target);
        return r;
}

/* Guard a name wherever the box can write to the workspace: another rule may show it, or a tree
 * around it, at a second place. */
static int guard_name(struct plan *plan, char *const *places, const char *name, bool absent)
{
        int r = 0;

        for (; r == 0 && *places; places++) {
                r = plan_add_guard(plan, *places, name);
                if (r == 0)
                        plan->guards[plan->n_guards - 1].absent = absent;
        }
        return r;
}

/* Where a box can write to the workspace. */
static char **find_workspace(struct plan *plan, const char *workspace)
{
        char **places = list_new(), target[2 * PATH_MAX];
        int r = places ? 0 : -ENOMEM;

        for (size_t i = 0; r == 0 && i < plan->n_steps; i++) {
                const struct plan_step *step = &plan->steps[i];
                _cleanup_list_ char **shown = NULL;

                if (step->kind != PLAN_TREE || !step->writable)
                        continue;
                shown = plan_shown(plan, i, workspace);
                r = shown ? 0 : -ENOMEM;
                for (char **place = shown; r == 0 && *place; place++) {
                        snprintf(target, sizeof(target), "%s%s", step->target,
                                 plan_below(*place, step->source));
                        r = list_add(&places, target);
                }
        }
        if (r < 0) {
                list_free(places);
                return NULL;
        }
        return places;
}

/* ---- Which protected names are there ---- */

#define TOP_MAX (16 * KIB)
#define TOP_BITS 4096

/* The topmost directory of a workspace. There are many protected names and most of them are
 * nowhere: a list of what is there tells so for all of them at once, where it is short. */
struct top {
        int fd;
        bool listed;              /* what no entry is like is not there */
        bool like[TOP_BITS];      /* by a hash of the entry, whatever the case */
        char first[NAME_MAX + 1]; /* the last part that was asked for */
        bool absent;              /* ... and whether that is not there */
};

static bool *top_like(struct top *top, const char *name)
{
        unsigned hash = 5381;

        for (; *name; name++)
                hash = hash * 33 + (unsigned char)tolower((unsigned char)*name);
        return &top->like[hash % TOP_BITS];
}

static bool is_ascii(const char *text)
{
        while (*text && (unsigned char)*text < 0x80)
                text++;
        return !*text;
}

/* A file system of another machine may show what it does not list, and one that takes no notice of
 * the case may read what is not ASCII as a letter: then each name is asked for. */
static void top_list(struct top *top)
{
        _Alignas(struct dirent64) char room[TOP_MAX];
        _cleanup_fd_ int fd = openat(top->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : getdents64(fd, room, sizeof(room));
        const struct dirent64 *entry;

        top->listed = n > 0;
        for (ssize_t at = 0; at < n; at += entry->d_reclen) {
                entry = (const struct dirent64 *)(room + at);
                *top_like(top, entry->d_name) = true;
                top->listed = top->listed && is_ascii(entry->d_name);
        }
        top->listed = top->listed && getdents64(fd, room, sizeof(room)) == 0;
}

/* Is there not even the first part of this name? */
static bool is_absent(struct top *top, const char *name)
{
        size_t n = MIN(strcspn(name, "/"), (size_t)NAME_MAX);
        struct stat st;

        if (strncmp(top->first, name, n) == 0 && !top->first[n])
                return top->absent;
        memcpy(top->first, name, n);
        top->first[n] = '\0';
        top->absent =
                (top->listed && !*top_like(top, top->first)) ||
                (fstatat(top->fd, top->first, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT);
        return top->absent;
}

static int protect_name(struct plan *plan, const char *workspace, char *const *places,
                        const char *name, bool absent, const char *where)
{
        int r = guard_name(plan, places, name, absent);

        if (r < 0 || policy_anywhere(name))
                return r;
        return absent ? plan_note_absent(plan, workspace, name)
                      : plan_hold_name(plan, workspace, name, where);
}

static int add_protection(struct plan *plan, size_t index, cbx_error *error)
{
        _cleanup_free_ char *workspace = strdup(plan->steps[index].source);
        _cleanup_list_ char **places = workspace ? find_workspace(plan, workspace) : NULL;
        const char *where = plan->steps[index].where;
        struct top top = { .fd = plan->steps[index].fd };

        if (!places)
                return error_oom(error);
        if (!plan->remote)
                top_list(&top);
        for (char **name = plan->policy->protect; name && *name; name++) {
                int r = protect_name(plan, workspace, places, *name, is_absent(&top, *name), where);

                if (r < 0)
                        return error_set(error, r, "files.protect", "cannot protect %s in %s: %s",
                                         *name, workspace, strerror(-r));
        }
        return 0;
}

static int add_held(struct plan *plan, cbx_error *error)
{
        char path[2 * PATH_MAX];
        int r = 0;

        for (char **held = plan->policy->hold; r == 0 && *held; held++) {
                snprintf(path, sizeof(path), "%s%s%s", **held == '/' ? "" : plan->directory,
                         **held == '/' ? "" : "/", *held);
                r = plan_hold(plan, path, "files.hold", error);
        }
        return r;
}

int plan_add_files(struct plan *plan, const struct plan_options *options, cbx_error *error)
{
        const cbx_policy *policy = plan->policy;
        _cleanup_fd_ int directory = -1;
        _cleanup_free_ char *start = NULL;
        size_t workspace = 0; /* its step; the first one never is */
        struct plan_step *step;
        int dirfd = AT_FDCWD, r = 0;

        if (options->directory) {
                directory = open(options->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
                if (directory < 0)
                        return error_set(error, -errno, "", "cannot open %s: %s",
                                         options->directory, strerror(errno));
                dirfd = directory;
        }
        /* The host's abstract sockets are part of its network. */
        plan->guards_sockets = policy->network == POLICY_NETWORK_HOST;
        step = plan_add_step(plan, PLAN_TMPFS, "/tmp", NULL);
        if (!step)
                return error_oom(error);
        step->size = policy->limits.tmp_size;
        for (size_t i = 0; r == 0 && i < policy->n_paths; i++) {
                const struct policy_path *rule = &policy->paths[i];

                if (rule->access == POLICY_HIDE)
                        continue;
                if (rule->access != POLICY_TMPFS) {
                        if (rule->workspace)
                                workspace = plan->n_steps;
                        r = add_shown(plan, rule, error);
                        continue;
                }
                step = plan_add_step(plan, PLAN_TMPFS, rule->box, NULL);
                if (!step)
                        return error_oom(error);
                step->size = rule->size;
                step->where = rule->where;
        }
        if (r == 0 && workspace > 0) {
                start = strdup(plan->steps[workspace].target);
                r = start ? add_protection(plan, workspace, error) : error_oom(error);
        }
        if (r == 0)
                r = add_held(plan, error);
        if (r == 0 && plan_give_way(plan) < 0)
                r = error_oom(error);
        for (size_t i = 0; r == 0 && i < policy->n_paths; i++)
                if (policy->paths[i].access == POLICY_HIDE)
                        r = add_hidden(plan, dirfd, &policy->paths[i], error);
        if (r == 0)
                r = plan_order_steps(plan, dirfd, start, error);
        if (r < 0)
                return r;
        plan->mounts = inputs_mounts_free(plan->mounts);
        return plan_keep(plan) < 0 ? error_oom(error) : 0;
}
