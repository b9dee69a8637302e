/* SPDX-License-Identifier: MIT */
/* Holds that would do nothing, and whoever wrote them would not know. */
#include <string.h>

#include "cli/options.h"
#include "policy/pins.h"
#include "policy/plan.h"

/* A file may have such a name, so one that is there is meant. */
static int check_pattern(const char *held, const char *path, cbx_error *error)
{
        if (!strpbrk(held, "*?") || access(path, F_OK) == 0)
                return 0;
        error_set(error, -EINVAL, "files.hold",
                  "\"%.200s\" is a pattern, and a hold names one path", held);
        error_hint(error,
                   "hold the directory, with all that is in it, or each file by its name; of "
                   "names in the workspace, --protect '**/NAME' keeps one at every depth");
        return -EINVAL;
}

/* What lies in a writable tree is held there; what is above one ends where that begins. */
static int check_place(const cbx_policy *policy, const char *directory, const char *path,
                       cbx_error *error)
{
        const struct policy_path *below = NULL;

        for (size_t i = 0; i < policy->n_paths; i++) {
                const struct policy_path *rule = &policy->paths[i];
                _cleanup_free_ char *tree = NULL;

                if (rule->access != POLICY_WRITE)
                        continue;
                tree = policy_canonical(directory, rule->host);
                if (!tree)
                        return error_oom(error);
                if (plan_below(path, tree))
                        return 0;
                if (strcmp(path, "/") == 0 || plan_below(tree, path))
                        below = rule;
        }
        if (!below)
                return 0;
        error_set(error, -EINVAL, "files.hold",
                  "%.200s would be held with all that is in it, but %.200s is in it and may be "
                  "written (%s)",
                  path, below->host, below->where);
        error_hint(error, "hold what lies in %.100s, or show that with --read", below->host);
        return -EINVAL;
}

int options_check_holds(const cbx_policy *policy, cbx_error *error)
{
        _cleanup_free_ char *directory = getcwd(NULL, 0);
        int r = 0;

        for (char **held = policy->hold; r == 0 && directory && held && *held; held++) {
                _cleanup_free_ char *path = policy_canonical(directory, *held);

                if (!path)
                        return error_oom(error);
                r = check_pattern(*held, path, error);
                if (r == 0)
                        r = check_place(policy, directory, path, error);
        }
        return r;
}
