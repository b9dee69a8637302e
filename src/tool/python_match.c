/* SPDX-License-Identifier: MIT */
/* A manifest and the function that it names: what the manifest leaves out the function says, and
 * what it says the function must be able to take. */
#include <stdio.h>
#include <string.h>

#include "tool/python.h"

static const char *const taken[] = { "title", "description", "inputSchema", "outputSchema",
                                     "annotations" };

static void note(struct tool_mistakes *mistakes, const char *name, const char *key,
                 const char *text, const char *hint)
{
        struct json_place schema = { .key = "inputSchema" },
                          properties = { .parent = &schema, .key = key },
                          place = { .parent = &properties, .key = name };
        cbx_error error = CBX_ERROR_INIT;

        json_set_refusal(&place, &error, "%s", text);
        error_hint(&error, "%s", hint);
        tool_mistake_add(mistakes, &error);
}

/* Every name of an object, for a hint. */
static void list_names(const json_t *object, char *text, size_t size)
{
        size_t length = 0;
        const char *key;
        json_t *value;

        text[0] = '\0';
        json_object_foreach((json_t *)object, key, value)
        {
                int n = snprintf(text + length, size - length, "%s%.64s", length > 0 ? ", " : "",
                                 key);

                if (n < 0 || length + (size_t)n >= size)
                        return;
                length += (size_t)n;
        }
}

/* Do two types have a value in common? Only what is written as one word, or as a list of words, is
 * looked at: more is for the function to refuse. */
static bool may_be(const json_t *types, const char *type)
{
        size_t i;
        json_t *item;

        if (json_is_string(types)) {
                const char *word = json_string_value(types);

                return strcmp(word, type) == 0 ||
                       (strcmp(word, "integer") == 0 && strcmp(type, "number") == 0) ||
                       (strcmp(word, "number") == 0 && strcmp(type, "integer") == 0);
        }
        json_array_foreach(types, i, item)
        {
                if (may_be(item, type))
                        return true;
        }
        return false;
}

static bool agree(const json_t *written, const json_t *own)
{
        const json_t *given = json_object_get(written, "type"),
                     *wanted = json_object_get(own, "type");
        size_t i;
        json_t *item;

        if (!given || !wanted)
                return true;
        if (json_is_string(wanted))
                return may_be(given, json_string_value(wanted));
        json_array_foreach(wanted, i, item)
        {
                if (json_is_string(item) && may_be(given, json_string_value(item)))
                        return true;
        }
        return false;
}

static bool is_in(const json_t *list, const char *name)
{
        size_t i;
        json_t *item;

        json_array_foreach(list, i, item)
        {
                const char *text = json_string_value(item);

                if (text && strcmp(text, name) == 0)
                        return true;
        }
        return false;
}

static void check_property(const char *name, const json_t *written, const json_t *own,
                           const char *known, bool open, struct tool_mistakes *mistakes)
{
        char text[200], hint[300];

        if (!own && !open) {
                snprintf(hint, sizeof(hint), "%s%s",
                         *known ? "its parameters are: " : "it has none", known);
                note(mistakes, name, "properties", "is no parameter of the function", hint);
        } else if (own && !agree(written, own)) {
                const char *type = json_string_value(json_object_get(own, "type"));

                snprintf(text, sizeof(text), "the function takes %s%s here",
                         type ? "the type " : "another type", type ? type : "");
                note(mistakes, name, "properties", text,
                     "change the schema or the type hint of the parameter");
        }
}

static void check_schema(const json_t *written, const json_t *own, bool defaults,
                         struct tool_mistakes *mistakes)
{
        const json_t *given = json_object_get(written, "properties"),
                     *known = json_object_get(own, "properties");
        bool open = !json_is_false(json_object_get(own, "additionalProperties"));
        char names[200];
        const char *key;
        json_t *value;
        size_t i;

        list_names(known, names, sizeof(names));
        json_object_foreach((json_t *)given, key, value)
        {
                check_property(key, value, json_object_get(known, key), names, open, mistakes);
        }
        json_array_foreach(json_object_get(own, "required"), i, value)
        {
                const char *name = json_string_value(value);
                bool filled = name && defaults &&
                              json_object_get(json_object_get(given, name), "default");

                if (name && !filled && !is_in(json_object_get(written, "required"), name))
                        note(mistakes, name, "properties",
                             "the function has no default for it, and the schema does not require "
                             "it",
                             "add it to \"required\"");
        }
}

int python_complete(const json_t *manifest, const json_t *described, struct tool_mistakes *mistakes,
                    json_t **ret_manifest)
{
        const json_t *written = json_object_get(manifest, "inputSchema");
        const char *returns = json_string_value(json_object_get(manifest, "returns"));
        _cleanup_json_ json_t *copy = json_copy((json_t *)manifest);

        if (!copy)
                return -ENOMEM;
        if (json_is_object(written))
                check_schema(written, json_object_get(described, "inputSchema"),
                             json_is_true(json_object_get(manifest, "applyDefaults")), mistakes);
        for (size_t i = 0; i < ARRAY_SIZE(taken); i++) {
                json_t *value = json_object_get(described, taken[i]);

                /* Content blocks are no data that a type hint could promise. */
                if (strcmp(taken[i], "outputSchema") == 0 && returns &&
                    strcmp(returns, "content") == 0)
                        continue;
                if (value && !json_object_get(copy, taken[i]) &&
                    json_object_set(copy, taken[i], value) < 0)
                        return -ENOMEM;
        }
        if (mistakes->failed)
                return -ENOMEM;
        *ret_manifest = TAKE_PTR(copy);
        return 0;
}
