/* SPDX-License-Identifier: MIT */
/*
 * The "files" section. Paths on the host are tidied as text only as far as that cannot change what
 * they name: ".." is left alone, because the name before it may be a symbolic link. Following
 * links, and whatever else needs the host, is the plan's.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "policy/policy_parts.h"

void policy_path_clear(struct policy_path *path)
{
        free(path->host);
        free(path->box);
        free(path->where);
        *path = (struct policy_path){ 0 };
}

/* ---- Paths as text ---- */

/* The next component of a path: its start, and its length, which is 0 at the end. */
static const char *next_component(const char *path, size_t *ret_length)
{
        path += strspn(path, "/");
        *ret_length = strcspn(path, "/");
        return path;
}

static bool is_dots(const char *component, size_t length, size_t dots)
{
        return length == dots && strncmp(component, "..", dots) == 0;
}

/* Whether a path has a component of one or two dots. */
static bool has_dots(const char *path, size_t dots)
{
        size_t length;

        for (path = next_component(path, &length); length > 0;
             path = next_component(path + length, &length))
                if (is_dots(path, length, dots))
                        return true;
        return false;
}

/* "/a//b/./c/" → "/a/b/c", "./x" → "x", "/../x" → "/x", "a/../b" as it is. */
static char *tidy_path(const char *path)
{
        bool absolute = path[0] == '/';
        char *tidy = malloc(strlen(path) + 2), *to = tidy;
        size_t length;

        if (!tidy)
                return NULL;
        for (path = next_component(path, &length); length > 0;
             path = next_component(path + length, &length)) {
                if (is_dots(path, length, 1))
                        continue;
                if (absolute && to == tidy && is_dots(path, length, 2))
                        continue; /* the root is its own parent */
                if (absolute || to > tidy)
                        *to++ = '/';
                memcpy(to, path, length);
                to += length;
        }
        if (to == tidy)
                *to++ = absolute ? '/' : '.';
        *to = '\0';
        return tidy;
}

static bool is_at_or_below(const char *path, const char *directory)
{
        size_t length = strlen(directory);

        return strncmp(path, directory, length) == 0 &&
               (path[length] == '\0' || path[length] == '/');
}

const char *policy_box_path_refusal(const char *path)
{
        static const char *const own[] = { "/proc", "/dev", "/sys" };
        size_t length;

        if (path[0] != '/')
                return "is not absolute; a place in the box begins with \"/\"";
        if (has_dots(path, 1) || has_dots(path, 2))
                return "has \".\" or \"..\" in it; a place in the box is spelled out";
        path = next_component(path, &length);
        if (length == 0)
                return "is the root of the box, which is always its own";
        for (size_t i = 0; i < ARRAY_SIZE(own); i++)
                if (is_at_or_below(path - 1, own[i]))
                        return "is at or below /proc, /dev or /sys, which are always the box's own";
        return NULL;
}

/* ---- One rule ---- */

static int read_path_text(json_t *value, const struct json_place *at, cbx_error *error,
                          const char **ret_text)
{
        const char *text;
        int r;

        r = json_read_string(value, at, error, &text);
        if (r < 0)
                return r;
        if (text[0] == '\0')
                return json_refuse(at, error, "a path may not be empty");
        if (strlen(text) >= PATH_MAX)
                return json_refuse(at, error, "is longer than %d bytes", PATH_MAX - 1);
        *ret_text = text;
        return 0;
}

static int read_host(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        struct policy_path *path = to;
        const char *text;
        int r;

        r = read_path_text(value, at, error, &text);
        if (r < 0)
                return r;
        path->host = tidy_path(text);
        if (!path->host)
                return error_oom(error);
        if (path->access != POLICY_HIDE && is_at_or_below(path->host, "/proc"))
                return json_refuse(at, error, "the host's /proc leads to every process there");
        return 0;
}

static int read_box(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        struct policy_path *path = to;
        const char *text, *refusal;
        int r;

        r = read_path_text(value, at, error, &text);
        if (r < 0)
                return r;
        refusal = policy_box_path_refusal(text);
        if (refusal)
                return json_refuse(at, error, "\"%.128s\" %s", text, refusal);
        path->box = tidy_path(text);
        return path->box ? 0 : error_oom(error);
}

static int read_tmpfs_size(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        return policy_read_size(value, at, error, &((struct policy_path *)to)->size);
}

/* A host path that is its own place in the box, as far as the text tells. */
static int check_same_place(const struct policy_path *path, const struct json_place *at,
                            cbx_error *error)
{
        const char *refusal;
        int r;

        if (path->host[0] != '/' || has_dots(path->host, 2))
                return 0;
        refusal = policy_box_path_refusal(path->host);
        if (!refusal)
                return 0;
        r = json_refuse(at, error, "\"%.128s\" %s", path->host, refusal);
        if (path->access != POLICY_HIDE)
                error_hint(error, "name the directories that the program needs");
        return r;
}

static int read_shown(json_t *value, const struct json_place *at, cbx_error *error,
                      struct policy_path *path)
{
        static const struct json_field fields[] = { { "host", read_host }, { "box", read_box } };
        int r;

        if (json_is_object(value))
                r = json_read_fields(value, at, fields, ARRAY_SIZE(fields), error, path);
        else
                r = read_host(value, at, error, path);
        if (r < 0)
                return r;
        if (!path->host)
                return json_refuse(at, error, "needs a \"host\": the path on the host");
        if (path->box && strcmp(path->box, path->host) == 0) {
                free(path->box);
                path->box = NULL;
        }
        return path->box ? 0 : check_same_place(path, at, error);
}

static int read_tmpfs(json_t *value, const struct json_place *at, cbx_error *error,
                      struct policy_path *path)
{
        static const struct json_field fields[] = { { "path", read_box },
                                                    { "size", read_tmpfs_size } };
        int r;

        if (!json_is_object(value))
                return read_box(value, at, error, path);
        r = json_read_fields(value, at, fields, ARRAY_SIZE(fields), error, path);
        if (r < 0)
                return r;
        return path->box ? 0 : json_refuse(at, error, "needs a \"path\": the place in the box");
}

static int read_hide(json_t *value, const struct json_place *at, cbx_error *error,
                     struct policy_path *path)
{
        int r;

        r = read_host(value, at, error, path);
        return r < 0 ? r : check_same_place(path, at, error);
}

static int read_rule(json_t *value, const struct json_place *at, cbx_error *error,
                     struct policy_path *path)
{
        switch (path->access) {
        case POLICY_HIDE:
                return read_hide(value, at, error, path);
        case POLICY_TMPFS:
                return read_tmpfs(value, at, error, path);
        default:
                return read_shown(value, at, error, path);
        }
}

/* ---- The section ---- */

/* One more rule, to be filled in. */
static struct policy_path *add_path(cbx_policy *policy)
{
        struct policy_path *paths;

        paths = reallocarray(policy->paths, policy->n_paths + 1, sizeof(*paths));
        if (!paths)
                return NULL;
        policy->paths = paths;
        paths[policy->n_paths] = (struct policy_path){ 0 };
        return &paths[policy->n_paths++];
}

static int read_one(json_t *value, const struct json_place *at, enum policy_access access,
                    bool workspace, cbx_error *error, cbx_policy *policy)
{
        struct policy_path *path;
        char where[JSON_PATH_MAX];

        if (policy->n_paths == POLICY_PATHS_MAX)
                return json_refuse(at, error, "a policy has at most %d paths", POLICY_PATHS_MAX);
        json_place_str(at, where);
        path = add_path(policy);
        if (!path)
                return error_oom(error);
        path->access = access;
        path->workspace = workspace;
        path->where = strdup(where);
        return path->where ? read_rule(value, at, error, path) : error_oom(error);
}

#define LIST_READER(name, access)                                                                  \
        static int read_##name##_rule(json_t *value, const struct json_place *at,                  \
                                      cbx_error *error, void *policy)                              \
        {                                                                                          \
                return read_one(value, at, access, false, error, policy);                          \
        }                                                                                          \
        static int read_##name##_list(json_t *value, const struct json_place *at,                  \
                                      cbx_error *error, void *policy)                              \
        {                                                                                          \
                return json_read_array(value, at, read_##name##_rule, error, policy);              \
        }

LIST_READER(read, POLICY_READ)
LIST_READER(write, POLICY_WRITE)
LIST_READER(hide, POLICY_HIDE)
LIST_READER(tmpfs, POLICY_TMPFS)

static int read_workspace(json_t *value, const struct json_place *at, cbx_error *error,
                          void *policy)
{
        return read_one(value, at, POLICY_WRITE, true, error, policy);
}

static int read_protect_name(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        cbx_policy *policy = to;
        size_t n = list_length(policy->protect);
        const char *name;
        int r;

        r = read_path_text(value, at, error, &name);
        if (r < 0)
                return r;
        if (name[0] == '/')
                return json_refuse(at, error,
                                   "\"%.128s\" is absolute; it is looked for in the workspace",
                                   name);
        if (has_dots(name, 2))
                return json_refuse(at, error,
                                   "\"%.128s\" has \"..\" in it; it must stay in the workspace",
                                   name);
        if (policy_anywhere(name) && strchr(policy_anywhere(name), '/'))
                return json_refuse(at, error,
                                   "\"%.128s\" is not one name; only one can be protected at every "
                                   "depth",
                                   name);
        if (n == POLICY_PROTECT_MAX)
                return json_refuse(at, error, "a policy protects at most %d names",
                                   POLICY_PROTECT_MAX);
        if (list_take(&policy->protect, tidy_path(name)) < 0)
                return error_oom(error);
        if (strcmp(policy->protect[n], ".") == 0)
                return json_refuse(at, error, "\"%.128s\" is the workspace itself", name);
        return 0;
}

/* A list that is given takes the place of the default one, even when it is empty. */
static int read_protect(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        cbx_policy *policy = to;

        list_free(policy->protect);
        policy->protect = list_new();
        if (!policy->protect)
                return error_oom(error);
        return json_read_array(value, at, read_protect_name, error, policy);
}

static int read_held(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        cbx_policy *policy = to;
        const char *path;
        int r;

        r = read_path_text(value, at, error, &path);
        if (r < 0)
                return r;
        if (list_length(policy->hold) == POLICY_HOLD_MAX)
                return json_refuse(at, error, "a policy holds at most %d paths", POLICY_HOLD_MAX);
        return list_take(&policy->hold, tidy_path(path)) < 0 ? error_oom(error) : 0;
}

static int read_hold(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        return json_read_array(value, at, read_held, error, to);
}

int policy_read_files(json_t *value, const struct json_place *at, cbx_error *error, void *policy)
{
        static const struct json_field fields[] = {
                { "read", read_read_list },      { "write", read_write_list },
                { "workspace", read_workspace }, { "hide", read_hide_list },
                { "tmpfs", read_tmpfs_list },    { "protect", read_protect },
                { "hold", read_hold },
        };

        return json_read_fields(value, at, fields, ARRAY_SIZE(fields), error, policy);
}

/* ---- All rules together ---- */

/* Where a rule holds. A relative host path cannot be taken for a place in the box: those begin
 * with "/". */
static const char *place_of(const struct policy_path *path)
{
        return path->box ? path->box : path->host;
}

/* By place, so that a directory comes before what is in it. */
static int compare_paths(const void *a, const void *b)
{
        const struct policy_path *x = a, *y = b;
        int order = strcmp(place_of(x), place_of(y));

        return order != 0 ? order : (int)x->access - (int)y->access;
}

static bool same_rule(const struct policy_path *a, const struct policy_path *b)
{
        if (a->access != b->access || a->workspace != b->workspace || a->size != b->size)
                return false;
        return a->host == b->host || (a->host && b->host && strcmp(a->host, b->host) == 0);
}

int policy_finish_paths(cbx_policy *policy, cbx_error *error)
{
        size_t kept = 0;

        for (size_t i = 0; i < policy->n_paths; i++)
                if (policy->paths[i].access == POLICY_TMPFS && policy->paths[i].size == 0)
                        policy->paths[i].size = policy->limits.tmp_size;
        if (policy->n_paths > 0)
                qsort(policy->paths, policy->n_paths, sizeof(policy->paths[0]), compare_paths);

        for (size_t i = 1; i < policy->n_paths; i++) {
                const struct policy_path *a = &policy->paths[i - 1], *b = &policy->paths[i];
                int r;

                if (strcmp(place_of(a), place_of(b)) != 0 || same_rule(a, b))
                        continue;
                r = error_set(error, -EINVAL, b->where, "%s and %s both speak for \"%.128s\"",
                              a->where, b->where, place_of(b));
                error_hint(error, "keep one of the two rules");
                return r;
        }
        for (size_t i = 0; i < policy->n_paths; i++)
                if (kept > 0 &&
                    strcmp(place_of(&policy->paths[kept - 1]), place_of(&policy->paths[i])) == 0)
                        policy_path_clear(&policy->paths[i]);
                else
                        policy->paths[kept++] = policy->paths[i];
        policy->n_paths = kept;
        return 0;
}
