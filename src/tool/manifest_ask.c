/* SPDX-License-Identifier: MIT */
/* What a manifest says beyond running: whether somebody is asked first, what its result is, and
 * whether a call may become a task. */
#include <string.h>

#include "tool/tool.h"

static int mistake(struct tool_mistakes *mistakes, cbx_error *error)
{
        tool_mistake_add(mistakes, error);
        return mistakes->failed ? -ENOMEM : 0;
}

static int read_returns(json_t *value, struct tool *tool, struct tool_mistakes *mistakes)
{
        static const char *const words[] = { "data", "content" };
        struct json_place place = { .key = "returns" };
        cbx_error error = CBX_ERROR_INIT;
        size_t which = 0;

        if (value && json_read_choice(value, &place, JSON_WORDS(words), &error, &which) < 0)
                return mistake(mistakes, &error);
        tool->returns_content = which == 1;
        return 0;
}

/* ---- What its caller must be able to do ---- */

static int read_need(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        static const struct {
                const char *word;
                unsigned need;
        } needs[] = { { "elicitation", TOOL_NEEDS_ELICITATION },
                      { "sampling", TOOL_NEEDS_SAMPLING },
                      { "roots", TOOL_NEEDS_ROOTS } };
        size_t which = 0;
        int r = json_read_choice(value, at, JSON_WORDS(needs), error, &which);

        if (r == 0)
                *(unsigned *)to |= needs[which].need;
        return r;
}

static int read_needs(json_t *value, struct tool *tool, struct tool_mistakes *mistakes)
{
        struct json_place place = { .key = "needs" };
        cbx_error error = CBX_ERROR_INIT;

        if (value && json_read_array(value, &place, read_need, &error, &tool->needs) < 0)
                return mistake(mistakes, &error);
        return 0;
}

/* ---- Tasks ---- */

static int read_required(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        bool required = false;
        int r = json_read_bool(value, at, error, &required);

        if (r == 0)
                ((struct tool *)to)->task = required ? TOOL_TASK_REQUIRED : TOOL_TASK_OPTIONAL;
        return r;
}

static int read_input_first(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        return json_read_bool(value, at, error, &((struct tool *)to)->input_first);
}

static int read_task(json_t *value, struct tool *tool, struct tool_mistakes *mistakes)
{
        static const struct json_field fields[] = { { "required", read_required },
                                                    { "inputFirst", read_input_first } };
        struct json_place place = { .key = "task" };
        cbx_error error = CBX_ERROR_INIT;

        if (!value)
                return 0;
        tool->task = TOOL_TASK_OPTIONAL;
        if (json_read_fields(value, &place, fields, ARRAY_SIZE(fields), &error, tool) < 0)
                return mistake(mistakes, &error);
        return 0;
}

/* ---- Asking ---- */

static int read_message(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        struct tool *tool = to;
        const char *text;
        int r = json_read_string(value, at, error, &text);

        if (r < 0)
                return r;
        if (!*text)
                return json_refuse(at, error, "must not be empty");
        tool->ask.message = strdup(text);
        return tool->ask.message ? 0 : error_oom(error);
}

static int read_when(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        struct tool *tool = to;
        const json_t *properties =
                json_object_get(json_object_get(tool->document, "inputSchema"), "properties");
        const char *name;
        int r = json_read_string(value, at, error, &name);

        if (r < 0)
                return r;
        if (!json_object_get(properties, name)) {
                r = json_refuse(at, error, "there is no argument \"%.64s\"", name);
                error_hint(error, "name a property of inputSchema");
                return r;
        }
        tool->ask.when = strdup(name);
        return tool->ask.when ? 0 : error_oom(error);
}

/* Its own mistakes are found with those of any policy: see manifest_read_ask. */
static int read_widened(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        if (!json_is_object(value))
                return json_refuse_type(at, error, "an object", value);
        ((struct tool *)to)->ask.written = json_incref(value);
        return 0;
}

static int read_ask(json_t *value, struct tool *tool, struct tool_mistakes *mistakes)
{
        static const struct json_field fields[] = { { "message", read_message },
                                                    { "when", read_when },
                                                    { "policy", read_widened } };
        struct json_place place = { .key = "ask" };
        cbx_error error = CBX_ERROR_INIT;

        if (!value)
                return 0;
        tool->ask.asks = true;
        if (json_read_fields(value, &place, fields, ARRAY_SIZE(fields), &error, tool) < 0)
                return mistake(mistakes, &error);
        if (!tool->ask.message) {
                error_set(&error, -EINVAL, "ask.message", "is missing");
                error_hint(&error, "say what is asked for: whoever decides reads it");
                return mistake(mistakes, &error);
        }
        if (!tool->ask.written)
                return 0;
        return tool_mistakes_find(tool->ask.written, "ask.policy", manifest_read_policy,
                                  &tool->ask.policy, mistakes) == -ENOMEM
                       ? -ENOMEM
                       : 0;
}

int manifest_read_ask(json_t *manifest, struct tool *tool, struct tool_mistakes *mistakes)
{
        int r = read_returns(json_object_get(manifest, "returns"), tool, mistakes);

        if (r == 0)
                r = read_needs(json_object_get(manifest, "needs"), tool, mistakes);
        if (r == 0)
                r = read_task(json_object_get(manifest, "task"), tool, mistakes);
        return r < 0 ? r : read_ask(json_object_get(manifest, "ask"), tool, mistakes);
}

bool tool_asks(const struct tool *tool, const json_t *arguments)
{
        const json_t *value;

        if (!tool->ask.asks || !tool->ask.when)
                return tool->ask.asks;
        value = json_object_get(arguments, tool->ask.when);
        return value && !json_is_null(value) && !json_is_false(value);
}
