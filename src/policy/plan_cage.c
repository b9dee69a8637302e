/* SPDX-License-Identifier: MIT */
/*
 * A box without namespaces shows the host's own files, as far as Landlock lets it: what the steps
 * of a plan would mount becomes a list of places that may be opened. Landlock can only add, so what
 * a policy takes away again inside of a tree is either left out entry by entry, or kept by init, or
 * refused here.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "policy/host.h"
#include "policy/plan.h"

#define RULES_MAX 16384 /* that hiding may take */

/* What every box has beside its files. */
static const char *const devices[] = {
        "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
};

static const char *below(const char *path, const char *tree)
{
        size_t n = strlen(tree);

        return strncmp(path, tree, n) == 0 && path[n] == '/' ? path + n : NULL;
}

bool plan_shows(const struct plan *plan, const char *path)
{
        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].kind == PLAN_TREE && (strcmp(plan->steps[i].target, path) == 0 ||
                                                         below(path, plan->steps[i].target)))
                        return true;
        return false;
}

/* Refuse what only namespaces can do, with the way to get them. */
static int needs_namespaces(const struct plan *plan, cbx_error *error)
{
        cbx_error why = CBX_ERROR_INIT;
        int refused = host_refuses_namespaces();

        if (plan->policy->box == POLICY_BOX_LANDLOCK && refused == 0) {
                error_hint(error, "let the box be made of namespaces: take --box landlock (or "
                                  "\"box\" in the policy) away");
        } else {
                host_explain_refusal(refused, &why);
                error_hint(error, "%s", why.hint);
        }
        return error->code;
}

/* ---- Rules ---- */

static int add_rule(struct plan *plan, struct plan_rule rule)
{
        struct plan_rule *rules;

        if ((plan->n_rules & (plan->n_rules - 1)) == 0) {
                rules = reallocarray(plan->rules, plan->n_rules ? plan->n_rules * 2 : 1,
                                     sizeof(*rules));
                if (!rules) {
                        if (rule.own)
                                base_close(rule.fd);
                        return -ENOMEM;
                }
                plan->rules = rules;
        }
        plan->rules[plan->n_rules++] = rule;
        return 0;
}

/* Something of the host's that every box has; one that is not there is left out. */
static int add_common(struct plan *plan, const char *path, enum plan_access access)
{
        int fd = open(path, O_PATH | O_CLOEXEC);
        struct stat st;

        if (fd < 0)
                return 0;
        if (fstat(fd, &st) < 0) {
                int r = -errno;

                base_close(fd);
                return r;
        }
        return add_rule(plan, (struct plan_rule){ .fd = fd,
                                                  .own = true,
                                                  .directory = S_ISDIR(st.st_mode),
                                                  .access = access });
}

/* ---- Hiding ---- */

/* 0: nothing at or below this path is hidden; 1: something below it is; 2: it is itself. */
static int is_hidden(const struct plan *plan, const char *path)
{
        int found = 0;

        for (size_t i = 0; i < plan->n_steps; i++) {
                const struct plan_step *step = &plan->steps[i];

                if (step->kind != PLAN_HIDE)
                        continue;
                if (strcmp(step->target, path) == 0)
                        return 2;
                found |= below(step->target, path) != NULL;
        }
        return found;
}

/* May the names in this directory be listed? That right holds for all below it as well, so not
 * where a directory is to be hidden there. */
static bool may_list(const struct plan *plan, const char *path)
{
        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].kind == PLAN_HIDE && plan->steps[i].directory &&
                    below(plan->steps[i].target, path))
                        return false;
        return true;
}

/* Show a directory in which something is hidden: everything else in it, by itself. */
static int add_around(struct plan *plan, int directory, const char *path, unsigned depth)
{
        int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
        struct dirent *entry;
        DIR *all;

        if (copy < 0)
                return -errno;
        if (depth == 64)
                r = -ELOOP;
        all = fdopendir(copy);
        if (!all) {
                base_close(copy);
                return -ENOMEM;
        }
        if (r == 0 && may_list(plan, path))
                r = add_rule(plan, (struct plan_rule){ .fd = fcntl(directory, F_DUPFD_CLOEXEC, 3),
                                                       .own = true,
                                                       .directory = true,
                                                       .access = PLAN_LISTS });
        while (r == 0 && (entry = readdir(all))) {
                char inner[PATH_MAX];
                _cleanup_fd_ int fd = -1;
                struct stat st;
                int hidden;

                if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                        continue;
                if (snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name) >=
                    (int)sizeof(inner))
                        continue; /* nor could a program name it */
                hidden = is_hidden(plan, inner);
                if (hidden == 2)
                        continue;
                fd = openat(directory, entry->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
                if (fd < 0 || fstat(fd, &st) < 0 || S_ISLNK(st.st_mode))
                        continue; /* where a link leads is decided there */
                if (hidden == 1)
                        r = add_around(plan, fd, inner, depth + 1);
                else if (plan->n_rules == RULES_MAX)
                        r = -E2BIG;
                else
                        r = add_rule(plan, (struct plan_rule){ .fd = TAKE_FD(fd),
                                                               .own = true,
                                                               .directory = S_ISDIR(st.st_mode),
                                                               .access = PLAN_READS });
        }
        closedir(all);
        return r;
}

/* ---- Steps ---- */

static int add_tree(struct plan *plan, size_t index, cbx_error *error)
{
        const struct plan_step *step = &plan->steps[index];
        int hidden = is_hidden(plan, step->target), r;

        if (strcmp(step->source, step->target) != 0) {
                error_set(error, -EOPNOTSUPP, step->where,
                          "%s cannot be shown as %s without namespaces", step->source,
                          step->target);
                return needs_namespaces(plan, error);
        }
        if (hidden && step->writable) {
                error_set(error, -EOPNOTSUPP, step->where,
                          "nothing in %s can be hidden without namespaces, as it is writable",
                          step->source);
                return needs_namespaces(plan, error);
        }
        if (hidden == 2)
                return 0;
        if (hidden == 1)
                r = add_around(plan, step->fd, step->target, 0);
        else
                r = add_rule(plan, (struct plan_rule){ .fd = step->fd,
                                                       .directory = step->directory,
                                                       .access = step->writable ? PLAN_WRITES
                                                                                : PLAN_READS });
        return r < 0 ? error_set(error, r, step->where, "cannot hide what is in %s: %s",
                                 step->source, strerror(-r))
                     : 0;
}

static int add_steps(struct plan *plan, cbx_error *error)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < plan->n_steps; i++) {
                const struct plan_step *step = &plan->steps[i];

                switch (step->kind) {
                case PLAN_TREE:
                        r = add_tree(plan, i, error);
                        if (r < 0)
                                return r;
                        break;
                case PLAN_TMPFS:
                        if (!step->where) /* each box has a directory instead (box/scratch.c) */
                                break;
                        error_set(error, -EOPNOTSUPP, step->where,
                                  "no file system can be put at %s without namespaces",
                                  step->target);
                        return needs_namespaces(plan, error);
                case PLAN_DIRECTORY:
                case PLAN_FILE:
                case PLAN_LINK:
                case PLAN_HIDE:
                        break;
                }
        }
        /* What is mapped of /dev/zero, open for writing, would be memory that nobody counts. */
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(devices); i++)
                r = add_common(plan, devices[i],
                               strcmp(devices[i], "/dev/zero") == 0 ? PLAN_READS : PLAN_USES);
        if (r == 0 && plan->tty)
                r = add_common(plan, "/dev/tty", PLAN_USES);
        if (r == 0) /* Landlock closes what in it belongs to processes outside of the box */
                r = add_common(plan, "/proc", PLAN_READS);
        return r < 0 ? error_set(error, r, "files", "cannot look at what every box has: %s",
                                 strerror(-r))
                     : 0;
}

/* ---- Ids ---- */

/* Without mounts there are no ids to be mapped. Run by root, the box is the owner of what it may
 * write, or of what nobody else may read; nobody's id where there is no such thing. */
static int choose_owner(struct plan *plan, cbx_error *error)
{
        const struct plan_step *first = NULL;

        for (size_t i = 0; i < plan->n_steps; i++) {
                const struct plan_step *step = &plan->steps[i];

                if (step->kind != PLAN_TREE || !step->map)
                        continue;
                if (!first) {
                        first = step;
                        plan->host_uid = step->uid;
                        plan->host_gid = step->gid;
                } else if (step->uid != first->uid && !below(step->target, first->target)) {
                        error_set(error, -EOPNOTSUPP, step->where,
                                  "%s and %s have different owners, and a box without namespaces "
                                  "is one user",
                                  first->source, step->source);
                        return needs_namespaces(plan, error);
                }
        }
        return 0;
}

/* Its /tmp is a directory of the host's, of whatever size. Who named both the size and such a box
 * is refused; where the host has chosen the box, it is told. The default is in every policy that
 * has been written out, and says nothing. */
static int check_tmp_size(struct plan *plan, cbx_error *error)
{
        if (plan->policy->limits.tmp_size == POLICY_TMP_SIZE)
                return 0;
        if (plan->policy->box == POLICY_BOX_LANDLOCK) {
                error_set(error, -EOPNOTSUPP, "limits.tmp_size",
                          "/tmp can have no limit on its size without namespaces");
                return needs_namespaces(plan, error);
        }
        return plan_warn(plan, "the limit on the size of /tmp (tmp_size) is not kept: the box is "
                               "made without namespaces");
}

int plan_cage(struct plan *plan, cbx_error *error)
{
        int r;

        if (plan->policy->network == POLICY_NETWORK_LOOPBACK) {
                error_set(error, -EOPNOTSUPP, "network",
                          "the guarantee \"network\" cannot be kept: a loopback of the box's own "
                          "needs a net namespace");
                return needs_namespaces(plan, error);
        }
        r = check_tmp_size(plan, error);
        if (r < 0)
                return r;
        plan->unnamed = plan->policy->network == POLICY_NETWORK_HOST && !host_lets_take();
        r = add_steps(plan, error);
        if (r == 0 && plan->privileged)
                r = choose_owner(plan, error);
        if (r == 0 && plan->landlock_abi == 1)
                r = plan_warn(plan, "this kernel's Landlock does not let files be moved or linked "
                                    "from one directory to another (ABI 1)");
        return r;
}
