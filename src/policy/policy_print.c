/* SPDX-License-Identifier: MIT */
/* A policy as JSON, with every default spelled out; read again, it is the same policy. */
#include <stdio.h>
#include <string.h>

#include "policy/policy_parts.h"

/* Every json_* function below takes NULL for a value that could not be made, and fails. */

static int put(json_t *object, const char *key, json_t *value)
{
        return json_object_set_new(object, key, value);
}

static json_t *list_to_json(char *const *list)
{
        _cleanup_json_ json_t *json = json_array();

        for (size_t i = 0; list[i]; i++)
                if (json_array_append_new(json, json_string(list[i])) < 0)
                        return NULL;
        return TAKE_PTR(json);
}

/* ---- Files ---- */

static json_t *path_to_json(const struct policy_path *path)
{
        if (path->access == POLICY_TMPFS)
                return json_pack("{s:s, s:o}", "path", path->box, "size",
                                 policy_size_to_json(path->size));
        if (path->box)
                return json_pack("{s:s, s:s}", "host", path->host, "box", path->box);
        return json_string(path->host);
}

static json_t *paths_to_json(const cbx_policy *policy, enum policy_access access)
{
        _cleanup_json_ json_t *json = json_array();

        for (size_t i = 0; i < policy->n_paths; i++) {
                const struct policy_path *path = &policy->paths[i];

                if (path->access != access || path->workspace)
                        continue;
                if (json_array_append_new(json, path_to_json(path)) < 0)
                        return NULL;
        }
        return TAKE_PTR(json);
}

static const struct policy_path *find_workspace(const cbx_policy *policy)
{
        for (size_t i = 0; i < policy->n_paths; i++)
                if (policy->paths[i].workspace)
                        return &policy->paths[i];
        return NULL;
}

static json_t *files_to_json(const cbx_policy *policy)
{
        const struct policy_path *workspace = find_workspace(policy);
        _cleanup_json_ json_t *json = json_object();

        if (put(json, "read", paths_to_json(policy, POLICY_READ)) < 0 ||
            put(json, "write", paths_to_json(policy, POLICY_WRITE)) < 0 ||
            (workspace && put(json, "workspace", path_to_json(workspace)) < 0) ||
            put(json, "hide", paths_to_json(policy, POLICY_HIDE)) < 0 ||
            put(json, "tmpfs", paths_to_json(policy, POLICY_TMPFS)) < 0 ||
            put(json, "protect", list_to_json(policy->protect)) < 0 ||
            put(json, "hold", list_to_json(policy->hold)) < 0)
                return NULL;
        return TAKE_PTR(json);
}

/* ---- The other sections ---- */

static json_t *environment_to_json(const cbx_policy *policy)
{
        _cleanup_json_ json_t *pass = json_array(), *set = json_object();

        for (size_t i = 0; i < policy->n_variables; i++) {
                const struct policy_variable *variable = &policy->variables[i];
                int r;

                if (variable->value)
                        r = put(set, variable->name, json_string(variable->value));
                else
                        r = json_array_append_new(pass, json_string(variable->name));
                if (r < 0)
                        return NULL;
        }
        return json_pack("{s:O, s:O}", "pass", pass, "set", set);
}

static json_t *syscalls_to_json(const cbx_policy *policy)
{
        return json_pack("{s:o, s:o, s:s}", "allow", list_to_json(policy->syscalls_allow), "deny",
                         list_to_json(policy->syscalls_deny), "on_denied",
                         json_word(&policy_refusal_words, policy->refusal));
}

static json_t *require_to_json(const cbx_policy *policy)
{
        _cleanup_json_ json_t *json = json_array();

        for (unsigned i = 0; i < GUARANTEE_MAX_; i++)
                if (policy->require & (1U << i) &&
                    json_array_append_new(json, json_string(guarantee_str(i))) < 0)
                        return NULL;
        return TAKE_PTR(json);
}

json_t *policy_to_json(const cbx_policy *policy)
{
        _cleanup_json_ json_t *json = json_object();

        if (put(json, "version", json_integer(POLICY_VERSION)) < 0 ||
            put(json, "box", json_string(json_word(&policy_box_words, policy->box))) < 0 ||
            put(json, "system", json_boolean(policy->system)) < 0 ||
            put(json, "files", files_to_json(policy)) < 0 ||
            put(json, "network", json_string(policy_network_str(policy->network))) < 0 ||
            put(json, "environment", environment_to_json(policy)) < 0 ||
            put(json, "limits", policy_limits_to_json(&policy->limits)) < 0 ||
            put(json, "syscalls", syscalls_to_json(policy)) < 0 ||
            put(json, "require", require_to_json(policy)) < 0 ||
            put(json, "best_effort", json_boolean(policy->best_effort)) < 0)
                return NULL;
        return TAKE_PTR(json);
}

/* ---- Text ---- */

static bool survives(double value, int digits)
{
        char text[64];

        (void)snprintf(text, sizeof(text), "%.*g", digits, value);
        return strtod(text, NULL) == value;
}

/* The fewest digits with which the seconds are read back as they were; 17 are always enough, and
 * would show 0.1 as 0.10000000000000001. */
static size_t digits_needed(const struct policy_limits *limits)
{
        int digits = 15;

        while (digits < 17 && !(survives(limits->wall, digits) && survives(limits->cpu, digits)))
                digits++;
        return (size_t)digits;
}

static char *print(const json_t *json, const cbx_policy *policy)
{
        return json_dumps(json,
                          JSON_INDENT(2) | JSON_REAL_PRECISION(digits_needed(&policy->limits)));
}

int cbx_policy_print(const cbx_policy *policy, char **ret_text, cbx_error *error)
{
        _cleanup_json_ json_t *json = policy_to_json(policy);
        char *text = NULL;

        if (json)
                text = print(json, policy);
        if (!text)
                return error_oom(error);
        *ret_text = text;
        return 0;
}

/* 0 stands for memory that ran out; no text is known to hash to it. */
uint64_t cbx_policy_hash(const cbx_policy *policy)
{
        _cleanup_free_ char *text = NULL;

        (void)cbx_policy_print(policy, &text, NULL);
        if (!text)
                return 0;
        return hash_bytes(HASH_INIT, text, strlen(text));
}

uint64_t policy_hash_without(const cbx_policy *policy, bool (*is_left_out)(const char *box))
{
        _cleanup_json_ json_t *json = policy_to_json(policy);
        json_t *read = json_object_get(json_object_get(json, "files"), "read");
        _cleanup_free_ char *text = NULL;

        for (size_t i = json_array_size(read); i-- > 0;) {
                const char *place =
                        json_string_value(json_object_get(json_array_get(read, i), "box"));

                if (place && is_left_out(place))
                        json_array_remove(read, i);
        }
        text = json ? print(json, policy) : NULL;
        return text ? hash_bytes(HASH_INIT, text, strlen(text)) : 0;
}
