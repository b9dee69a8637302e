/* SPDX-License-Identifier: MIT */
/* Manifests: a tool written as JSON, callbox-manifest(5). Every mistake is found, not the first. */
#include <stdio.h>
#include <string.h>

#include "tool/python.h"

#define MANIFEST_MAX MIB
#define CALLS_MAX 100000

static const char *const keys[] = {
        "name",   "title", "description", "inputSchema", "outputSchema",  "annotations",
        "icons",  "_meta", "$schema",     "run",         "applyDefaults", "calls",
        "policy", "ask",   "returns",     "task",        "needs",         "route",
};

static void read_flags(json_t *manifest, struct tool *tool, struct tool_mistakes *mistakes)
{
        struct json_place defaults = { .key = "applyDefaults" }, calls = { .key = "calls" };
        json_t *value = json_object_get(manifest, "applyDefaults");
        cbx_error error = CBX_ERROR_INIT;

        if (value && json_read_bool(value, &defaults, &error, &tool->defaults) < 0)
                tool_mistake_add(mistakes, &error);
        value = json_object_get(manifest, "calls");
        if (value && (!json_is_integer(value) || json_integer_value(value) < 1 ||
                      json_integer_value(value) > CALLS_MAX)) {
                json_set_refusal(&calls, &error, "must be a whole number from 1 to %d", CALLS_MAX);
                tool_mistake_add(mistakes, &error);
        } else if (value) {
                tool->calls = (unsigned)json_integer_value(value);
        }
}

/* Who adds a manifest is not who decides what may run without a box: it can ask for a box whatever
 * the mode, or not to be called at all. */
static void read_route(json_t *manifest, struct tool *tool, struct tool_mistakes *mistakes)
{
        static const char *const words[] = { [TOOL_ROUTE_OPEN] = "",
                                             [TOOL_ROUTE_BOXED] = "boxed",
                                             [TOOL_ROUTE_REFUSED] = "refused" };
        static const char *const wider[] = { "elevated", "host", "off", "warn", "none", "strict" };
        struct json_place place = { .key = "route" };
        json_t *value = json_object_get(manifest, "route");
        const char *text = value ? json_string_value(value) : "";
        cbx_error error = CBX_ERROR_INIT;
        size_t index = 0;

        for (size_t i = 0; text && i < ARRAY_SIZE(wider); i++)
                if (strcmp(wider[i], text) == 0) {
                        json_set_refusal(&place, &error, "a manifest cannot say \"%s\"", text);
                        error_hint(&error, "%s", JSON_WHO_MAY);
                        tool_mistake_add(mistakes, &error);
                        return;
                }
        if (value && json_read_choice(value, &place,
                                      (struct json_words){ words + 1, ARRAY_SIZE(words) - 1,
                                                           sizeof(char *) },
                                      &error, &index) < 0)
                tool_mistake_add(mistakes, &error);
        else if (value)
                tool->route = (enum tool_route)(index + 1);
}

/* ---- The policy ---- */

int manifest_read_policy(json_t *part, cbx_error *error, void *to)
{
        cbx_policy *policy = NULL;
        int r = policy_from_json(part, error, &policy);

        if (r == 0 && to)
                *(cbx_policy **)to = policy;
        else
                cbx_policy_unref(policy);
        return r;
}

/* A file of the folder of policies; its mistakes are named by file and place. */
static int read_named_policy(const char *name, const struct tool_origin *origin, struct tool *tool,
                             cbx_error *error, cbx_policy **ret_policy)
{
        _cleanup_free_ char *text = NULL, *real = NULL;
        char path[4096];
        cbx_error inner = CBX_ERROR_INIT;
        size_t length;
        int r;

        if (name[0] == '\0' || name[0] == '.' || strchr(name, '/') || strlen(name) > 128)
                return error_set(error, -EINVAL, "policy", "\"%.64s\" is no name of a policy",
                                 name);
        if (!origin->policies) {
                error_set(error, -EINVAL, "policy",
                          "there is no folder in which \"%.64s\" could "
                          "be found",
                          name);
                error_hint(error, "write the policy itself in place of its name, or name a folder "
                                  "of policies");
                return -EINVAL;
        }
        r = snprintf(path, sizeof(path), "%s/%s.json", origin->policies, name);
        r = r >= (int)sizeof(path) ? -ENAMETOOLONG
                                   : tool_read_input(path, MANIFEST_MAX, &text, &length, &real);
        if (r == 0)
                r = tool_add_input(tool, real);
        if (r < 0) {
                error_set(error, r == -ENOMEM ? r : -EINVAL, "policy", "cannot read %.200s: %s",
                          path, strerror(-r));
                return r == -ENOMEM ? r : -EINVAL;
        }
        r = cbx_policy_parse(text, length, ret_policy, &inner);
        if (r < 0) {
                error_set(error, r, "policy", "%.150s: %s%s%s", path, inner.where,
                          inner.where[0] ? ": " : "", inner.text);
                error_hint(error, "%s", inner.hint);
        }
        return r;
}

static int find_policy(json_t *manifest, const struct tool_origin *origin, struct tool *tool,
                       struct tool_mistakes *mistakes, cbx_policy **ret_policy)
{
        json_t *value = json_object_get(manifest, "policy");
        cbx_error error = CBX_ERROR_INIT;
        int r = 0;

        if (!value) {
                *ret_policy = cbx_policy_ref(origin->policy);
        } else if (json_is_object(value)) {
                r = tool_mistakes_find(value, "policy", manifest_read_policy, ret_policy, mistakes);
        } else if (json_is_string(value)) {
                tool->policy_name = strdup(json_string_value(value));
                if (!tool->policy_name)
                        return -ENOMEM;
                r = read_named_policy(tool->policy_name, origin, tool, &error, ret_policy);
                if (r < 0)
                        tool_mistake_add(mistakes, &error);
        } else {
                error_set(&error, -EINVAL, "policy", "must be an object or a name, not %s",
                          json_type_str(value));
                tool_mistake_add(mistakes, &error);
        }
        return r;
}

/* ---- A Python function ---- */

/* What is known of it, or a box says. */
static int describe_function(const struct tool *tool, const cbx_policy *policy,
                             const struct tool_origin *origin, cbx_error *error,
                             json_t **ret_described)
{
        _cleanup_json_ json_t *answer = NULL;
        int r;

        if (origin->described) {
                *ret_described = json_incref((json_t *)origin->described);
                return 0;
        }
        r = python_describe(tool, policy, origin, error, &answer);
        if (r == 0)
                *ret_described = json_incref(json_array_get(json_object_get(answer, "tools"), 0));
        return r;
}

/* The manifest with what it leaves out. Where that cannot be had, with so much that its own
 * mistakes can be looked for. */
static int complete(json_t **manifest, const struct tool_origin *origin, struct tool *tool,
                    const cbx_policy *policy, struct tool_mistakes *mistakes)
{
        _cleanup_json_ json_t *described = NULL;
        cbx_error error = CBX_ERROR_INIT;
        json_t *completed = NULL;
        int r = policy && mistakes->n == 0
                        ? describe_function(tool, policy, origin, &error, &described)
                        : 0;

        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                if (!error.where[0])
                        snprintf(error.where, sizeof(error.where), "run.python");
                tool_mistake_add(mistakes, &error);
        }
        if (!described)
                described = json_pack("{s:{s:s}}", "inputSchema", "type", "object");
        r = described ? python_complete(*manifest, described, mistakes, &completed) : -ENOMEM;
        if (r == 0) {
                json_decref(*manifest);
                *manifest = completed;
        }
        return r;
}

/* ---- All of it ---- */

static int read_run(json_t *run, const struct tool_origin *origin, struct tool *tool,
                    struct tool_mistakes *mistakes)
{
        cbx_error error = CBX_ERROR_INIT;

        if (!run) {
                error_set(&error, -EINVAL, "run", "is missing");
                error_hint(&error, "say what is run: \"run\": {\"command\": [\"wc\", \"-w\", "
                                   "\"{path}\"]}");
                tool_mistake_add(mistakes, &error);
                return 0;
        }
        return manifest_read_run(run, origin, tool, mistakes) == -ENOMEM ? -ENOMEM : 0;
}

static int read_all(json_t *written, const struct tool_origin *origin, struct tool *tool,
                    struct tool_mistakes *mistakes)
{
        _cleanup_json_ json_t *manifest = json_incref(written);
        _cleanup_policy_ cbx_policy *policy = NULL;
        cbx_error error = CBX_ERROR_INIT;
        json_t *run = json_object_get(written, "run");
        bool python = json_object_get(run, "python");
        int r = 0;

        (void)tool_mistakes_keys(manifest, NULL, JSON_WORDS(keys), mistakes);
        read_flags(manifest, tool, mistakes);
        read_route(manifest, tool, mistakes);
        if (python && (read_run(run, origin, tool, mistakes) < 0 ||
                       find_policy(manifest, origin, tool, mistakes, &policy) == -ENOMEM ||
                       complete(&manifest, origin, tool, policy, mistakes) < 0))
                return -ENOMEM;
        if (tool_describe(tool, manifest, mistakes) == -ENOMEM)
                return -ENOMEM;
        if (!python && (read_run(run, origin, tool, mistakes) < 0 ||
                        find_policy(manifest, origin, tool, mistakes, &policy) == -ENOMEM))
                return -ENOMEM;
        if (manifest_read_ask(manifest, tool, mistakes) == -ENOMEM)
                return -ENOMEM;
        r = mistakes->n == 0 ? tool_set_policy(tool, policy, origin, &error) : 0;
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                tool_mistake_add(mistakes, &error);
        return mistakes->failed ? -ENOMEM : mistakes->n > 0 ? -EINVAL : 0;
}

int manifest_read(const char *text, size_t length, const struct tool_origin *origin,
                  struct tool_mistakes *mistakes, struct tool **ret_tool)
{
        _cleanup_json_ json_t *manifest = NULL;
        _cleanup_tool_ struct tool *tool = tool_new();
        cbx_error error = CBX_ERROR_INIT;
        int r;

        if (!tool)
                return -ENOMEM;
        r = json_parse(text, length, "the manifest", MANIFEST_MAX, 0, &error, &manifest);
        if (r == 0 && !json_is_object(manifest))
                r = error_set(&error, -EINVAL, "", "a manifest is a JSON object: { ... }");
        if (r < 0) {
                tool_mistake_add(mistakes, &error);
                return r == -ENOMEM || mistakes->failed ? -ENOMEM : -EINVAL;
        }
        sha256(text, length, tool->digest);
        r = read_all(manifest, origin, tool, mistakes);
        if (r == 0)
                *ret_tool = TAKE_PTR(tool);
        return r;
}
