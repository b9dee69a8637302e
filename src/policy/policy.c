/* SPDX-License-Identifier: MIT */
/*
 * A policy from JSON. The sections are read by a table, each by the file that knows it; then the
 * lists are brought into one order, so that policies that mean the same print, and hash, the same.
 */
#include <stdio.h>
#include <string.h>

#include "policy/pins.h"
#include "policy/policy_parts.h"

#ifndef CALLBOX_VERSION
#error "CALLBOX_VERSION is set by the build"
#endif

#define GUARANTEES_DEFAULT                                                                         \
        (((1U << GUARANTEE_MAX_) - 1) & ~(1U << GUARANTEE_LANDLOCK) & ~(1U << GUARANTEE_CGROUP))

const char *cbx_version(void)
{
        return CALLBOX_VERSION;
}

/* ---- Life ---- */

static void policy_free(cbx_policy *policy)
{
        for (size_t i = 0; i < policy->n_paths; i++)
                policy_path_clear(&policy->paths[i]);
        for (size_t i = 0; i < policy->n_variables; i++)
                policy_variable_clear(&policy->variables[i]);
        free(policy->paths);
        free(policy->variables);
        list_free(policy->protect);
        list_free(policy->hold);
        list_free(policy->syscalls_allow);
        list_free(policy->syscalls_deny);
        policy_pins_clear(&policy->pins);
        pthread_mutex_destroy(&policy->lock);
        free(policy);
}

cbx_policy *cbx_policy_ref(cbx_policy *policy)
{
        (void)__atomic_fetch_add(&policy->refs, 1, __ATOMIC_RELAXED);
        return policy;
}

cbx_policy *cbx_policy_unref(cbx_policy *policy)
{
        if (policy && __atomic_sub_fetch(&policy->refs, 1, __ATOMIC_ACQ_REL) == 0)
                policy_free(policy);
        return NULL;
}

/* What an empty object means, but for what policy_finish fills in. */
static int policy_new(cbx_policy **ret_policy)
{
        _cleanup_policy_ cbx_policy *policy = calloc(1, sizeof(*policy));

        if (!policy)
                return -ENOMEM;
        policy->refs = 1;
        pthread_mutex_init(&policy->lock, NULL);
        policy->system = true;
        policy_limits_default(&policy->limits);
        policy->protect = list_copy(policy_protect_default);
        policy->hold = list_new();
        policy->syscalls_allow = list_new();
        policy->syscalls_deny = list_new();
        if (!policy->protect || !policy->hold || !policy->syscalls_allow || !policy->syscalls_deny)
                return -ENOMEM;
        *ret_policy = TAKE_PTR(policy);
        return 0;
}

/* ---- Sections that are one value or one list ---- */

static int read_version(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        (void)to;
        if (!json_is_integer(value))
                return json_refuse_type(at, error, "a whole number", value);
        if (json_integer_value(value) != POLICY_VERSION)
                return json_refuse(at, error, "must be %d, the only version there is",
                                   POLICY_VERSION);
        return 0;
}

static int read_system(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        return json_read_bool(value, at, error, &((cbx_policy *)to)->system);
}

static int read_best_effort(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        return json_read_bool(value, at, error, &((cbx_policy *)to)->best_effort);
}

static int read_box(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        static const char *const none[] = { "off", "none", "host", "warn", "elevated", "false" };
        size_t index;
        int r;

        for (size_t i = 0; i < ARRAY_SIZE(none); i++)
                if (json_is_false(value) ||
                    (json_is_string(value) && strcmp(json_string_value(value), none[i]) == 0)) {
                        r = json_refuse(at, error, "a policy cannot say that there is no box");
                        error_hint(error, "%s", JSON_WHO_MAY);
                        return r;
                }
        r = json_read_choice(value, at, policy_box_words, error, &index);
        if (r < 0)
                return r;
        ((cbx_policy *)to)->box = (enum policy_box)index;
        return 0;
}

static int read_network(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        size_t index;
        int r;

        r = json_read_choice(value, at, policy_network_words, error, &index);
        if (r < 0)
                return r;
        ((cbx_policy *)to)->network = (enum policy_network)index;
        return 0;
}

static int read_guarantee(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        size_t index;
        int r;

        r = json_read_choice(value, at, policy_guarantee_words, error, &index);
        if (r < 0)
                return r;
        ((cbx_policy *)to)->require |= 1U << index;
        return 0;
}

static int read_require(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        return json_read_array(value, at, read_guarantee, error, to);
}

/* ---- System calls. Whether a name exists is known to the plan, which has the tables. ---- */

static int read_syscall(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
        char ***list = to;
        const char *name;
        int r;

        r = json_read_string(value, at, error, &name);
        if (r < 0)
                return r;
        if (name[0] == '\0' || strlen(name) > 63 || name[strspn(name, letters)] != '\0')
                return json_refuse(at, error, "\"%.64s\" is not the name of a system call", name);
        if (list_length(*list) == POLICY_SYSCALLS_MAX)
                return json_refuse(at, error, "a list has at most %d system calls",
                                   POLICY_SYSCALLS_MAX);
        return list_add(list, name) < 0 ? error_oom(error) : 0;
}

static int read_allow(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        return json_read_array(value, at, read_syscall, error, &((cbx_policy *)to)->syscalls_allow);
}

static int read_deny(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        return json_read_array(value, at, read_syscall, error, &((cbx_policy *)to)->syscalls_deny);
}

static int read_on_denied(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        size_t index;
        int r;

        r = json_read_choice(value, at, policy_refusal_words, error, &index);
        if (r < 0)
                return r;
        ((cbx_policy *)to)->refusal = (enum policy_refusal)index;
        return 0;
}

static int read_syscalls(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        static const struct json_field fields[] = { { "allow", read_allow },
                                                    { "deny", read_deny },
                                                    { "on_denied", read_on_denied } };

        return json_read_fields(value, at, fields, ARRAY_SIZE(fields), error, to);
}

/* A name in both lists; asked before they are sorted, so that it can be pointed at. */
static int check_syscalls(const cbx_policy *policy, cbx_error *error)
{
        char where[64];

        for (size_t i = 0; policy->syscalls_deny[i]; i++)
                for (char **allow = policy->syscalls_allow; *allow; allow++) {
                        if (strcmp(*allow, policy->syscalls_deny[i]) != 0)
                                continue;
                        (void)snprintf(where, sizeof(where), "syscalls.deny[%zu]", i);
                        return error_set(error, -EINVAL, where,
                                         "\"%s\" is in syscalls.allow as well", *allow);
                }
        return 0;
}

/* ---- The whole ---- */

static int policy_finish(cbx_policy *policy, cbx_error *error)
{
        int r;

        /* Without best_effort the list can only ask for more: leaving a guarantee out of it is not
         * a way to lose that guarantee unnoticed. */
        if (!policy->best_effort)
                policy->require |= GUARANTEES_DEFAULT;
        r = check_syscalls(policy, error);
        if (r < 0)
                return r;
        list_sort(policy->protect);
        list_sort(policy->hold);
        list_sort(policy->syscalls_allow);
        list_sort(policy->syscalls_deny);
        r = policy_finish_variables(policy, error);
        if (r < 0)
                return r;
        return policy_finish_paths(policy, error);
}

int policy_from_json(json_t *json, cbx_error *error, cbx_policy **ret_policy)
{
        static const struct json_field fields[] = {
                { "version", read_version },      { "box", read_box },
                { "system", read_system },        { "files", policy_read_files },
                { "network", read_network },      { "environment", policy_read_environment },
                { "limits", policy_read_limits }, { "syscalls", read_syscalls },
                { "require", read_require },      { "best_effort", read_best_effort },
        };
        _cleanup_policy_ cbx_policy *policy = NULL;
        int r;

        if (!json_is_object(json))
                return error_set(error, -EINVAL, NULL, "a policy is a JSON object: { ... }");
        r = policy_new(&policy);
        if (r < 0)
                return error_oom(error);
        r = json_read_fields(json, NULL, fields, ARRAY_SIZE(fields), error, policy);
        if (r < 0)
                return r;
        r = policy_finish(policy, error);
        if (r < 0)
                return r;
        *ret_policy = TAKE_PTR(policy);
        return 0;
}

/* Defaults and line breaks make a text longer: one that only just fits may print as one that does
 * not. All lists together add far less than half of what is allowed. */
static int check_printed_length(const cbx_policy *policy, size_t length, cbx_error *error)
{
        _cleanup_free_ char *text = NULL;
        int r;

        if (length <= POLICY_TEXT_MAX / 2)
                return 0;
        r = cbx_policy_print(policy, &text, error);
        if (r < 0)
                return r;
        if (strlen(text) > POLICY_TEXT_MAX)
                return error_set(error, -EFBIG, NULL,
                                 "the policy, printed with its defaults, is longer than %llu bytes",
                                 POLICY_TEXT_MAX);
        return 0;
}

int policy_from_text(const char *text, size_t length, cbx_error *error, cbx_policy **ret_policy)
{
        _cleanup_policy_ cbx_policy *policy = NULL;
        _cleanup_json_ json_t *json = NULL;
        int r;

        r = policy_json_parse(text, length, "the policy", error, &json);
        if (r < 0)
                return r;
        r = policy_from_json(json, error, &policy);
        if (r < 0)
                return r;
        r = check_printed_length(policy, length, error);
        if (r < 0)
                return r;
        *ret_policy = TAKE_PTR(policy);
        return 0;
}

/* What its paths mean is what they lead to now: before there is a box that could change it. */
int cbx_policy_parse(const char *text, size_t length, cbx_policy **ret_policy, cbx_error *error)
{
        _cleanup_policy_ cbx_policy *policy = NULL;
        int r = policy_from_text(text, length, error, &policy);

        if (r == 0 && policy_pin_here(policy) < 0)
                r = error_oom(error);
        if (r == 0)
                *ret_policy = TAKE_PTR(policy);
        return r;
}

/* Put a value where a path of keys leads; objects on the way are made. */
static int set_at(json_t *json, const char *path, json_t *value, cbx_error *error)
{
        const char *dot;

        while ((dot = strchr(path, '.'))) {
                _cleanup_free_ char *key = strndup(path, (size_t)(dot - path));
                json_t *next;

                if (!key)
                        return error_oom(error);
                next = json_object_get(json, key);
                if (!json_is_object(next)) {
                        next = json_object();
                        if (json_object_set_new(json, key, next) < 0)
                                return error_oom(error);
                }
                json = next;
                path = dot + 1;
        }
        return json_object_set(json, path, value) < 0 ? error_oom(error) : 0;
}

int cbx_policy_set(cbx_policy **policy, const char *path, const char *text, cbx_error *error)
{
        _cleanup_json_ json_t *json = *policy ? policy_to_json(*policy) : json_object();
        _cleanup_json_ json_t *value = NULL;
        cbx_policy *changed = NULL;
        int r;

        if (!json)
                return error_oom(error);
        r = policy_json_parse(text, strlen(text), path, error, &value);
        if (r == 0)
                r = set_at(json, path, value, error);
        if (r == 0)
                r = policy_from_json(json, error, &changed);
        if (r == 0 && *policy && policy_pin_copy(*policy, changed) < 0)
                r = error_oom(error);
        if (r == 0 && policy_pin_here(changed) < 0)
                r = error_oom(error);
        if (r < 0) {
                cbx_policy_unref(changed);
                return r;
        }
        cbx_policy_unref(*policy);
        *policy = changed;
        return 0;
}
