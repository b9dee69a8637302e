/* SPDX-License-Identifier: MIT */
/* A tool: what is the same for every kind. */
#include "tool/tool.h"

#include <stdio.h>
#include <string.h>

#include "policy/inputs.h"
#include "policy/pins.h"

#define NAME_MAX_LENGTH 128

/* ---- Lifetime ---- */

struct tool *tool_new(void)
{
        struct tool *tool = calloc(1, sizeof(*tool));

        if (tool) {
                tool->refs = 1;
                tool->n_success = 1; /* exit code 0 */
        }
        return tool;
}

struct tool *tool_ref(struct tool *tool)
{
        __atomic_add_fetch(&tool->refs, 1, __ATOMIC_RELAXED);
        return tool;
}

struct tool *tool_unref(struct tool *tool)
{
        if (!tool || __atomic_sub_fetch(&tool->refs, 1, __ATOMIC_ACQ_REL) > 0)
                return NULL;
        json_decref(tool->document);
        template_free(tool->template);
        free(tool->shell);
        function_free(&tool->function);
        schema_free(tool->input);
        schema_free(tool->result);
        cbx_policy_unref(tool->policy);
        free(tool->ask.message);
        free(tool->ask.when);
        json_decref(tool->ask.written);
        cbx_policy_unref(tool->ask.policy);
        free(tool->file);
        free(tool->policy_name);
        list_free(tool->inputs);
        list_free(tool->found);
        free(tool);
        return NULL;
}

/* ---- What it says of itself ---- */

struct member {
        const char *key;
        int (*check)(json_t *value, const struct json_place *at, cbx_error *error);
};

static int check_name(json_t *value, const struct json_place *at, cbx_error *error)
{
        static const char known[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                    "0123456789_.-";
        const char *name;
        int r = json_read_string(value, at, error, &name);

        if (r == 0 && (name[0] == '\0' || strlen(name) > NAME_MAX_LENGTH ||
                       name[strspn(name, known)] != '\0')) {
                r = json_refuse(at, error, "\"%.64s\" is no name of a tool", name);
                error_hint(error, "a name has 1 to %d letters, digits, _, - and .",
                           NAME_MAX_LENGTH);
        }
        return r;
}

static int check_text(json_t *value, const struct json_place *at, cbx_error *error)
{
        const char *text;

        return json_read_string(value, at, error, &text);
}

static int check_object(json_t *value, const struct json_place *at, cbx_error *error)
{
        return json_is_object(value) ? 0 : json_refuse_type(at, error, "an object", value);
}

static int check_array(json_t *value, const struct json_place *at, cbx_error *error)
{
        return json_is_array(value) ? 0 : json_refuse_type(at, error, "an array", value);
}

static int check_input(json_t *value, const struct json_place *at, cbx_error *error)
{
        const char *type = json_string_value(json_object_get(value, "type"));
        struct json_place place = { .parent = at, .key = "type" };
        int r = check_object(value, at, error);

        if (r == 0 && (!type || strcmp(type, "object") != 0)) {
                r = json_refuse(&place, error, "must be \"object\": arguments have names");
                error_hint(error, "write \"inputSchema\": {\"type\": \"object\", \"properties\": "
                                  "{...}}");
        }
        return r;
}

static int check_schema(json_t *value, const struct json_place *at, cbx_error *error)
{
        return json_is_boolean(value) || json_is_object(value)
                       ? 0
                       : json_refuse_type(at, error, "an object, true or false", value);
}

/* Of annotations, without the place that they are at. */
static int read_annotations(json_t *value, cbx_error *error, void *to)
{
        static const char *const hints[] = { "readOnlyHint", "destructiveHint", "idempotentHint",
                                             "openWorldHint", "title" };
        int r = json_check_keys(value, NULL, JSON_WORDS(hints), error);

        (void)to;
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(hints); i++) {
                struct json_place place = { .key = hints[i] };
                json_t *hint = json_object_get(value, hints[i]);
                bool truth;

                if (hint && strcmp(hints[i], "title") == 0)
                        r = check_text(hint, &place, error);
                else if (hint)
                        r = json_read_bool(hint, &place, error, &truth);
        }
        return r;
}

static const struct member members[] = {
        { "name", check_name },           { "title", check_text },
        { "description", check_text },    { "inputSchema", check_input },
        { "outputSchema", check_schema }, { "annotations", check_object },
        { "icons", check_array },         { "_meta", check_object },
};

/* "/properties/a~1b/3" as a path: properties["a/b"][3]. */
static void pointer_to_path(char where[JSON_PATH_MAX])
{
        char path[JSON_PATH_MAX] = "", key[JSON_PATH_MAX];
        const char *s = where;

        while (*s == '/') {
                size_t length = 0;

                for (s++; *s && *s != '/'; s++) {
                        char c = *s;

                        if (c == '~' && (s[1] == '0' || s[1] == '1'))
                                c = *++s == '0' ? '~' : '/';
                        key[length++] = c;
                }
                key[length] = '\0';
                if (length > 0 && strspn(key, "0123456789") == length)
                        json_path_add_index(path, strtoul(key, NULL, 10));
                else
                        json_path_add_key(path, key, length);
        }
        memcpy(where, path, sizeof(path));
}

static int read_schema(json_t *part, cbx_error *error, void *to)
{
        struct schema *schema = NULL;
        int r = schema_compile(part, &schema, error);

        if (r < 0)
                pointer_to_path(error->where);
        if (r == 0 && to)
                *(struct schema **)to = schema;
        else
                schema_free(schema);
        return r;
}

/* An input schema that is of another type may have more mistakes, and its properties are what the
 * placeholders of the manifest mean all the same: look at it as if it were one of an object. */
static int keep_input(struct tool *tool, json_t *schema)
{
        json_t *copy = json_copy(schema);

        if (!copy || json_object_set_new(copy, "type", json_string("object")) < 0) {
                json_decref(copy);
                return -ENOMEM;
        }
        return json_object_set_new(tool->document, "inputSchema", copy) < 0 ? -ENOMEM : 0;
}

int tool_describe(struct tool *tool, json_t *document, struct tool_mistakes *mistakes)
{
        cbx_error error = CBX_ERROR_INIT;
        size_t before = mistakes->n;
        json_t *part;
        int r = 0;

        tool->document = json_object();
        if (!tool->document)
                return -ENOMEM;
        for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
                struct json_place place = { .key = members[i].key };
                json_t *value = json_object_get(document, members[i].key);

                if (value && members[i].check(value, &place, &error) < 0)
                        tool_mistake_add(mistakes, &error);
                else if (value && json_object_set(tool->document, members[i].key, value) < 0)
                        return -ENOMEM;
        }
        for (const char *const *key = (const char *const[]){ "name", "inputSchema", NULL }; *key;
             key++)
                if (!json_object_get(document, *key)) {
                        error_set(&error, -EINVAL, *key, "is missing");
                        if (strcmp(*key, "inputSchema") == 0)
                                error_hint(&error, "a tool without arguments has "
                                                   "\"inputSchema\": {\"type\": \"object\"}");
                        tool_mistake_add(mistakes, &error);
                }
        tool->name = json_string_value(json_object_get(tool->document, "name"));
        part = json_object_get(document, "inputSchema");
        if (json_is_object(part) && !json_object_get(tool->document, "inputSchema") &&
            keep_input(tool, part) < 0)
                return -ENOMEM;
        part = json_object_get(tool->document, "inputSchema");
        if (part)
                r = tool_mistakes_find(part, "inputSchema", read_schema, &tool->input, mistakes);
        part = json_object_get(tool->document, "outputSchema");
        if (part && r != -ENOMEM)
                r = tool_mistakes_find(part, "outputSchema", read_schema, &tool->result, mistakes);
        part = json_object_get(tool->document, "annotations");
        if (part && r != -ENOMEM)
                r = tool_mistakes_find(part, "annotations", read_annotations, NULL, mistakes);
        if (r == -ENOMEM || mistakes->failed)
                return -ENOMEM;
        return mistakes->n > before ? -EINVAL : 0;
}

/* ---- Its policy ---- */

/* Show a file at its own place, unless the box shows it anyway. */
static int show_file(json_t *read, const cbx_policy *policy, const char *path)
{
        json_t *rule;
        size_t i;

        if (policy->system && function_is_of_system(path))
                return 0;
        for (i = 0; i < policy->n_paths; i++)
                if (policy->paths[i].access == POLICY_READ && !policy->paths[i].box &&
                    policy->paths[i].host && strcmp(policy->paths[i].host, path) == 0)
                        return 0;
        json_array_foreach(read, i, rule)
        {
                const char *host = json_string_value(json_object_get(rule, "host"));

                if (host && strcmp(host, path) == 0) /* named twice by the tool itself */
                        return 0;
        }
        rule = json_pack("{s:s, s:s}", "host", path, "box", path);
        return json_array_append_new(read, rule) < 0 ? -ENOMEM : 0;
}

/* Its own files stay as they are in its own boxes, and so does what tells callbox what to do. */
static int hold_inputs(const struct tool *tool, const struct tool_origin *origin,
                       cbx_policy **policy, cbx_error *error)
{
        const char *const *files = tool->template ? template_files(tool->template) : NULL;
        _cleanup_list_ char **words = NULL, **found = NULL;
        int r = 0;

        if (inputs_writes(*policy))
                r = tool_list_words(tool, *policy, &words, &found) < 0
                            ? error_oom(error)
                            : inputs_hold_ways(policy, words, error);
        if (r == 0 && found)
                r = inputs_hold_ways(policy, found, error);
        for (; r == 0 && files && *files; files++)
                r = inputs_hold(policy, "the file", *files, "policy", error);
        for (char **file = tool->function.files; r == 0 && file && *file; file++)
                r = inputs_hold(policy, "the file", *file, "policy", error);
        for (char *const *path = origin->hold; r == 0 && path && *path; path++)
                r = inputs_hold(policy, "the file", *path, "policy", error);
        for (char *const *path = origin->hide; r == 0 && path && *path; path++)
                r = inputs_hide(policy, "the file", *path, "policy", error);
        return r;
}

static int note_inputs(struct tool *tool)
{
        const char *const *files = tool->template ? template_files(tool->template) : NULL;
        _cleanup_list_ char **words = NULL, **found = NULL;
        int r = 0;

        for (; r == 0 && files && *files; files++)
                r = tool_add_input(tool, *files);
        for (char **file = tool->function.files; r == 0 && file && *file; file++)
                r = tool_add_input(tool, *file);
        if (r == 0)
                r = tool_list_words(tool, tool->policy, &words, &found);
        if (r == 0)
                r = tool_add_ways(&tool->inputs, words);
        return r < 0 ? r : tool_add_ways(&tool->found, found);
}

int tool_fit_policy(const struct tool *tool, const cbx_policy *policy,
                    const struct tool_origin *origin, cbx_error *error, cbx_policy **ret_policy)
{
        _cleanup_json_ json_t *json = policy_to_json(policy);
        json_t *read = json_object_get(json_object_get(json, "files"), "read");
        const char *const *files = tool->template ? template_files(tool->template) : NULL;
        _cleanup_policy_ cbx_policy *fitted = NULL;
        int r = read ? 0 : -ENOMEM;

        for (; r == 0 && files && *files; files++)
                r = show_file(read, policy, *files);
        for (char **file = tool->function.files; r == 0 && file && *file; file++)
                r = show_file(read, policy, *file);
        for (char **tree = tool->function.trees; r == 0 && tree && *tree; tree++)
                r = show_file(read, policy, *tree);
        /* What is read as JSON must be there in one piece. */
        if (r == 0 && tool->output != TOOL_TEXT && policy->limits.capture < policy->limits.result &&
            json_object_set_new(json_object_get(json, "limits"), "capture",
                                json_integer((json_int_t)policy->limits.result)) < 0)
                r = -ENOMEM;
        if (r < 0)
                return error_oom(error);
        r = policy_from_json(json, error, &fitted);
        if (r == 0 && (policy_pin_copy((cbx_policy *)policy, fitted) < 0 ||
                       policy_pin_here(fitted) < 0)) /* before any of its calls could change it */
                r = error_oom(error);
        if (r == 0)
                r = hold_inputs(tool, origin, &fitted, error);
        if (r == 0)
                *ret_policy = TAKE_PTR(fitted);
        return r;
}

int tool_set_policy(struct tool *tool, const cbx_policy *policy, const struct tool_origin *origin,
                    cbx_error *error)
{
        cbx_policy *widened = NULL;
        int r = tool_fit_policy(tool, policy, origin, error, &tool->policy);

        tool->base = policy == origin->policy ? policy : NULL;
        if (r == 0 && tool->ask.policy)
                r = tool_fit_policy(tool, tool->ask.policy, origin, error, &widened);
        if (r == 0 && note_inputs(tool) < 0)
                r = error_oom(error);
        if (widened) {
                cbx_policy_unref(tool->ask.policy);
                tool->ask.policy = widened;
        }
        return r;
}
