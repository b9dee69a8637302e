/* SPDX-License-Identifier: MIT */
#include "policy/inputs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "policy/mounts.h"
#include "policy/outputs.h"
#include "policy/pins.h"
#include "policy/plan.h"

static bool here(char path[PATH_MAX])
{
        return getcwd(path, PATH_MAX) != NULL;
}

/* ---- May a box write it? ---- */

/* Does a tree show what is at `path` at this place of its own, or around it? */
static bool is_shown(const struct inputs_mounts *mounts, const char *tree, const char *path,
                     const char *place)
{
        _cleanup_list_ char **shown = mounts_shown(mounts, tree, path);

        for (char **at = shown; at && *at; at++)
                if (plan_below(place, *at))
                        return true;
        return false;
}

/* Is this path of a tree held there, as a plan would? */
static bool is_held_at(const cbx_policy *policy, const struct inputs_mounts *mounts,
                       const char *directory, const char *tree, const char *place)
{
        for (char **held = policy->hold; *held; held++) {
                _cleanup_list_ char **links = NULL;
                _cleanup_free_ char *path = NULL;

                if (policy_follow(directory, *held, &path, &links) < 0)
                        continue;
                if (is_shown(mounts, tree, path, place))
                        return true;
                for (char **link = links; link && *link; link++) /* a plan holds these as well */
                        if (is_shown(mounts, tree, *link, place))
                                return true;
        }
        return false;
}

/* ... at each place where the tree shows it? A rule for a tree below what is held is deeper, and
 * ends the hold there. */
static bool is_held(const cbx_policy *policy, const struct inputs_mounts *mounts,
                    const char *directory, const char *tree, const char *canonical)
{
        _cleanup_list_ char **shown = mounts_shown(mounts, tree, canonical);

        for (char **place = shown; place && *place; place++)
                if (!is_held_at(policy, mounts, directory, tree, *place))
                        return false;
        return shown && *shown;
}

bool inputs_writes(const cbx_policy *policy)
{
        for (size_t i = 0; i < policy->n_paths; i++)
                if (policy->paths[i].access == POLICY_WRITE)
                        return true;
        return false;
}

const struct policy_path *inputs_writer(const cbx_policy *policy,
                                        const struct inputs_mounts *mounts, const char *canonical)
{
        char directory[PATH_MAX];

        if (!inputs_writes(policy) || !here(directory) ||
            policy_pin((cbx_policy *)policy, directory) < 0)
                return NULL;
        for (size_t i = 0; i < policy->n_paths; i++) {
                const struct policy_path *rule = &policy->paths[i];
                _cleanup_free_ char *tree = NULL;

                if (rule->access != POLICY_WRITE)
                        continue;
                tree = policy_pin_path(policy, directory, rule);
                if (tree && mounts_reach(mounts, tree, canonical) &&
                    !is_held(policy, mounts, directory, tree, canonical))
                        return rule;
        }
        return NULL;
}

/* ---- Refusing ---- */

static int refuse_input(const struct inputs_item *item, const char *canonical,
                        const struct policy_path *rule, const char *where, cbx_error *error)
{
        error_set(error, -EPERM, where, "%s %.160s lies where %s may write (%s): %s", item->what,
                  canonical, item->whose, rule->where, item->harm);
        error_hint(error,
                   "keep it where no box may write, or have it held: --hold %.100s, or in the "
                   "policy \"files\": {\"hold\": [\"%.100s\"]}",
                   canonical, canonical);
        return -EPERM;
}

static int refuse_link(const struct inputs_item *item, const char *link,
                       const struct policy_path *rule, const char *where, cbx_error *error)
{
        error_set(error, -EPERM, where,
                  "%s %.120s leads through the link %.120s, which %s may change (%s): %s",
                  item->what, item->path, link, item->whose, rule->where, item->harm);
        error_hint(
                error,
                "a program in a box may have made the link, so look at it first; if it is meant, "
                "name the real path, which readlink -f tells");
        return -EPERM;
}

int inputs_refuse(const cbx_policy *policy, const struct inputs_mounts *mounts,
                  const struct inputs_item *item, const char *where, cbx_error *error)
{
        const struct policy_path *rule;
        _cleanup_free_ char *canonical = NULL;
        _cleanup_list_ char **links = NULL;
        char directory[PATH_MAX];
        int r;

        if (!inputs_writes(policy) || !here(directory))
                return 0;
        r = policy_follow(directory, item->path, &canonical, &links);
        if (r == -ENOMEM)
                return error_oom(error);
        if (r < 0)
                return 0; /* whoever opens it will say why it cannot */
        for (char **link = links; link && *link; link++) {
                rule = inputs_writer(policy, mounts, *link);
                if (rule)
                        return refuse_link(item, *link, rule, where, error);
        }
        rule = inputs_writer(policy, mounts, canonical);
        return rule ? refuse_input(item, canonical, rule, where, error) : 0;
}

static bool has_links(cbx_policy *policy)
{
        bool found = false;

        pthread_mutex_lock(&policy->lock);
        for (size_t i = 0; !found && i < policy->pins.n; i++)
                found = policy->pins.items[i].links != NULL;
        pthread_mutex_unlock(&policy->lock);
        return found;
}

int inputs_refuse_places(const cbx_policy *policy, const struct inputs_mounts *mounts,
                         const struct inputs_item *item, char *const *places, const char *where,
                         cbx_error *error)
{
        char directory[PATH_MAX] = "";

        for (size_t i = 0; i < policy->n_paths; i++) {
                const struct policy_path *rule = &policy->paths[i];
                _cleanup_free_ char *tree = NULL;

                if (rule->access != POLICY_WRITE)
                        continue;
                if (!directory[0] && (rule->host[0] != '/' || *policy->hold) && !here(directory))
                        return error_set(error, -ENOENT, where, "the current directory is gone");
                tree = policy_pin_path(policy, directory, rule);
                if (!tree)
                        tree = policy_canonical(directory[0] ? directory : "/", rule->host);
                if (!tree)
                        return error_oom(error);
                for (char *const *place = places; *place; place++)
                        if (mounts_reach(mounts, tree, *place) &&
                            !is_held(policy, mounts, directory, tree, *place))
                                return refuse_input(item, *place, rule, where, error);
        }
        return 0;
}

bool inputs_is_stream(const char *path)
{
        struct stat st;

        return outputs_is_stream(path) && (stat(path, &st) < 0 || st.st_nlink == 0 ||
                                           (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)));
}

int inputs_open(const cbx_policy *policy, const char *path, int flags, const char *what,
                const char *where, cbx_error *error)
{
        struct inputs_item item = { .what = what,
                                    .path = path,
                                    .whose = "boxes of this policy",
                                    .harm = "a program there would choose which file is read" };
        const struct policy_path *rule = NULL;
        struct inputs_mounts *mounts = NULL;
        _cleanup_free_ char *canonical = NULL;
        _cleanup_list_ char **links = NULL;
        char directory[PATH_MAX];
        int fd;

        if (!inputs_writes(policy) || inputs_is_stream(path) || !here(directory) ||
            policy_follow(directory, path, &canonical, &links) < 0) {
                fd = open(path, flags);
                return fd < 0 ? -errno : fd;
        }
        if (links)
                (void)inputs_mounts_read(&mounts);
        for (char **link = links; link && *link && !rule; link++) {
                rule = inputs_writer(policy, mounts, *link);
                if (rule)
                        refuse_link(&item, *link, rule, where, error);
        }
        inputs_mounts_free(mounts);
        return rule ? -EPERM : policy_open_direct(canonical, flags);
}

int inputs_refuse_links(const cbx_policy *policy, const cbx_policy *writer, const char *whose,
                        const struct inputs_mounts *mounts, cbx_error *error)
{
        char directory[PATH_MAX];
        int r = 0;

        if (!inputs_writes(writer) || !has_links((cbx_policy *)policy) || !here(directory) ||
            policy_pin((cbx_policy *)policy, directory) < 0)
                return 0;
        for (size_t i = 0; r == 0 && i < policy->n_paths; i++) {
                const struct policy_path *own = &policy->paths[i], *rule = NULL;
                struct inputs_item item = { .what = "the path",
                                            .path = own->host,
                                            .whose = whose,
                                            .harm = "a program there would choose what the path "
                                                    "means" };
                _cleanup_list_ char **links = policy_pin_links(policy, directory, own);

                for (char **link = links; link && *link && !rule; link++) {
                        rule = inputs_writer(writer, mounts, *link);
                        if (rule)
                                r = refuse_link(&item, *link, rule, own->where, error);
                }
        }
        return r;
}

int inputs_refuse_own_links(cbx_policy *policy, cbx_error *error)
{
        struct inputs_mounts *mounts = NULL;
        bool checked, linked = false;
        int r = 0;

        pthread_mutex_lock(&policy->lock);
        checked = policy->pins.checked;
        for (size_t i = 0; !checked && i < policy->pins.n; i++)
                linked |= policy->pins.items[i].links != NULL;
        policy->pins.checked |= !linked;
        pthread_mutex_unlock(&policy->lock);
        if (checked || !linked)
                return 0;
        (void)inputs_mounts_read(&mounts);
        r = inputs_refuse_links(policy, policy, "boxes of this policy", mounts, error);
        inputs_mounts_free(mounts);
        pthread_mutex_lock(&policy->lock);
        policy->pins.checked = r == 0;
        pthread_mutex_unlock(&policy->lock);
        return r;
}

/* ---- Holding ---- */

/* Put one more text into a list of "files". */
static int add_to(cbx_policy **policy, const char *list, const char *path, cbx_error *error)
{
        _cleanup_json_ json_t *json = policy_to_json(*policy);
        json_t *paths = json_object_get(json_object_get(json, "files"), list);
        cbx_policy *changed = NULL;
        int r;

        if (!paths || json_array_append_new(paths, json_string(path)) < 0)
                return error_oom(error);
        r = policy_from_json(json, error, &changed);
        if (r == 0 && policy_pin_copy(*policy, changed) < 0) {
                cbx_policy_unref(changed);
                r = error_oom(error);
        }
        if (r < 0)
                return r;
        cbx_policy_unref(*policy);
        *policy = changed;
        return 0;
}

int inputs_hold(cbx_policy **policy, const char *what, const char *path, const char *where,
                cbx_error *error)
{
        struct inputs_item item = { .what = what,
                                    .path = path,
                                    .whose = "boxes of this policy",
                                    .harm = "a program there would tell callbox what to do" };
        struct inputs_mounts *mounts = NULL;
        _cleanup_free_ char *canonical = NULL;
        char directory[PATH_MAX];
        int r = 0;

        if (!inputs_writes(*policy) || inputs_is_stream(path) || !here(directory))
                return 0;
        (void)inputs_mounts_read(&mounts);
        canonical = policy_canonical(directory, path);
        if (!canonical)
                r = error_oom(error);
        else if (inputs_writer(*policy, mounts, canonical))
                r = add_to(policy, "hold", canonical, error);
        if (r == 0) /* what is left are links on the way */
                r = inputs_refuse(*policy, mounts, &item, where, error);
        inputs_mounts_free(mounts);
        return r;
}

/* May a box of this policy write it, or change a link on the way to it? */
static bool may_lead(const cbx_policy *policy, const struct inputs_mounts *mounts, const char *path)
{
        _cleanup_free_ char *canonical = NULL;
        _cleanup_list_ char **links = NULL;
        char directory[PATH_MAX];

        if (!here(directory) || policy_follow(directory, path, &canonical, &links) < 0)
                return false;
        for (char **link = links; link && *link; link++)
                if (inputs_writer(policy, mounts, *link))
                        return true;
        return inputs_writer(policy, mounts, canonical) != NULL;
}

int inputs_hold_ways(cbx_policy **policy, char *const *paths, cbx_error *error)
{
        struct inputs_mounts *mounts = NULL;
        int r = 0;

        if (!*paths || !inputs_writes(*policy))
                return 0;
        (void)inputs_mounts_read(&mounts);
        for (; r == 0 && *paths; paths++)
                if (may_lead(*policy, mounts, *paths))
                        r = add_to(policy, "hold", *paths, error);
        inputs_mounts_free(mounts);
        return r;
}

int inputs_hide(cbx_policy **policy, const char *what, const char *path, const char *where,
                cbx_error *error)
{
        _cleanup_free_ char *canonical = NULL;
        char directory[PATH_MAX];
        int r = inputs_hold(policy, what, path, where, error);

        if (r < 0 || inputs_is_stream(path) || access(path, F_OK) < 0 || !here(directory))
                return r;
        canonical = policy_canonical(directory, path);
        return canonical ? add_to(policy, "hide", canonical, error) : error_oom(error);
}
