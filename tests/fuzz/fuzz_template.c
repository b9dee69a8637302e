/* SPDX-License-Identifier: MIT */
/*
 * Whatever the values, a template gives as many arguments as it says, each in its place, and none
 * of them an option that the manifest did not write. The input is a byte that chooses the schema, a
 * line with the template, and the arguments.
 */
#include <string.h>

#include "tool/tool.h"

#define ARGUMENT_BYTES (128 * KIB)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every type in every role: required or with a default, by type, by its values, by nothing. */
#define SCHEMA(required, properties)                                                               \
        "{\"type\": \"object\", \"required\": [" required "], \"properties\": {" properties "}}"

static const char *const schemas[] = {
        SCHEMA("\"a\", \"b\", \"list\"",
               "\"a\": {\"type\": \"string\"}, \"b\": {\"type\": [\"string\", \"number\"]},"
               "\"list\": {\"type\": \"array\"}, \"c\": {\"type\": \"boolean\"}"),
        SCHEMA("", "\"a\": {\"type\": \"string\", \"default\": \"-\"},"
                   "\"b\": {\"type\": \"integer\", \"default\": -1},"
                   "\"list\": {\"type\": [\"array\", \"null\"], \"default\": [1]},"
                   "\"c\": {\"enum\": [\"-c\", 1, null]}"),
        SCHEMA("\"a\", \"b\", \"c\"", "\"a\": {}, \"b\": {\"const\": \"-b\"}, \"c\": true,"
                                      "\"list\": {\"type\": \"object\"}"),
};

static void must(bool holds)
{
        if (!holds)
                abort();
}

/* ---- What a template says, in another way than src/tool/template.c reads it ---- */

struct seen {
        const json_t *arguments;
        char **argv; /* what is left of it */
};

static void see(struct seen *seen, bool dash, const json_t *whole)
{
        const char *text = *seen->argv++;
        _cleanup_json_ json_t *json = text ? json_string(text) : NULL;

        must(json && strlen(text) < ARGUMENT_BYTES);
        must(dash || text[0] != '-');
        must(!json_is_string(whole) || strcmp(text, json_string_value(whole)) == 0);
}

static void see_parts(struct seen *seen, const char *text, bool dash)
{
        size_t length = strlen(text);
        _cleanup_free_ char *name = length > 2 ? strndup(text + 1, length - 2) : NULL;
        bool whole = name && text[0] == '{' && text[length - 1] == '}' && !strpbrk(name, "{}");

        /* A dash at the front is the manifest's where its own text begins with one. */
        see(seen, dash || text[0] == '-', whole ? json_object_get(seen->arguments, name) : NULL);
}

static void see_list(struct seen *seen, const json_t *list);

static void see_object(struct seen *seen, const json_t *object)
{
        bool dash = json_is_true(json_object_get(object, "dash"));
        const char *text = json_string_value(json_object_get(object, "value"));
        json_t *each = json_object_get(object, "each"), *when = json_object_get(object, "when");
        json_t *value = json_object_get(seen->arguments, json_string_value(each ? each : when));

        if (text) {
                see_parts(seen, text, dash);
        } else if (each) {
                for (size_t i = 0; i < json_array_size(value); i++)
                        see(seen, dash, json_array_get(value, i));
        } else if (!when) {
                see(seen, dash, NULL); /* json, file */
        } else if (value && !json_is_null(value) && !json_is_false(value)) {
                see_list(seen, json_object_get(object, "then"));
        }
}

static void see_list(struct seen *seen, const json_t *list)
{
        for (size_t i = 0; i < json_array_size(list); i++) {
                const json_t *item = json_array_get(list, i);

                if (json_is_string(item))
                        see_parts(seen, json_string_value(item), false);
                else
                        see_object(seen, item);
        }
}

/* ---- The target ---- */

static void try_arguments(const struct template *template, const json_t *list,
                          const json_t *arguments)
{
        _cleanup_list_ char **argv = list_new();
        _cleanup_mistakes_ struct tool_mistakes mistakes = TOOL_MISTAKES_INIT;
        struct seen seen = { .arguments = arguments };
        int r;

        must(argv != NULL);
        r = template_expand(template, arguments, &mistakes, &argv);
        must(r == (mistakes.n > 0 ? -EINVAL : 0));
        for (size_t i = 0; i < mistakes.n; i++)
                must(strchr("/", mistakes.items[i].where[0]) && mistakes.items[i].text[0]);
        if (r < 0)
                return;
        seen.argv = argv;
        see_list(&seen, list);
        must(!*seen.argv);
}

static void try_template(const char *schema, json_t *list, json_t *arguments)
{
        _cleanup_mistakes_ struct tool_mistakes mistakes = TOOL_MISTAKES_INIT;
        _cleanup_json_ json_t *properties = json_loads(schema, 0, NULL);
        struct template_context context = {
                .schema = properties, .defaults = true, .directory = TOOLS, .mistakes = &mistakes
        };
        struct template *template = NULL;
        int r;

        must(properties != NULL);
        r = template_read(list, NULL, &context, &template);
        must((r == 0 && template && mistakes.n == 0) ||
             (r == -EINVAL && !template && mistakes.n > 0));
        if (r == 0)
                try_arguments(template, list, arguments);
        template_free(template);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const char *text = (const char *)data + 1, *line;
        _cleanup_json_ json_t *list = NULL, *arguments = NULL;

        if (size < 2 || !(line = memchr(text, '\n', size - 1)))
                return 0;
        if (json_parse(text, (size_t)(line - text), "it", MIB, 0, NULL, &list) < 0 ||
            json_parse(line + 1, size - 2 - (size_t)(line - text), "it", MIB, JSON_PARSE_NUL, NULL,
                       &arguments) < 0)
                return 0;
        try_template(schemas[data[0] % ARRAY_SIZE(schemas)], list, arguments);
        return 0;
}
