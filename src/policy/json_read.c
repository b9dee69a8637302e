/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "policy/json_read.h"

/* ---- Places ---- */

static bool is_plain_key(const char *key, size_t length)
{
        static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                    "0123456789_-";

        for (size_t i = 0; i < length; i++)
                if (key[i] == '\0' || !strchr(plain, key[i]))
                        return false;
        return length > 0;
}

void json_path_add_key(char path[JSON_PATH_MAX], const char *key, size_t length)
{
        size_t used = strlen(path);
        const char *format = "[\"%.*s\"]";

        if (is_plain_key(key, length))
                format = used > 0 ? ".%.*s" : "%.*s";
        (void)snprintf(path + used, JSON_PATH_MAX - used, format, (int)MIN(length, JSON_PATH_MAX),
                       key);
}

void json_path_add_index(char path[JSON_PATH_MAX], size_t index)
{
        size_t used = strlen(path);

        (void)snprintf(path + used, JSON_PATH_MAX - used, "[%zu]", index);
}

void json_place_str(const struct json_place *at, char path[JSON_PATH_MAX])
{
        if (!at) {
                path[0] = '\0';
                return;
        }
        json_place_str(at->parent, path);
        if (at->key)
                json_path_add_key(path, at->key, strlen(at->key));
        else
                json_path_add_index(path, at->index);
}

void json_set_refusal(const struct json_place *at, cbx_error *error, const char *format, ...)
{
        char path[JSON_PATH_MAX], text[sizeof(error->text)];
        va_list args;

        va_start(args, format);
        (void)vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        json_place_str(at, path);
        (void)error_set(error, -EINVAL, path, "%s", text);
}

const char *json_type_str(const json_t *value)
{
        switch (json_typeof(value)) {
        case JSON_OBJECT:
                return "an object";
        case JSON_ARRAY:
                return "an array";
        case JSON_STRING:
                return "a string";
        case JSON_INTEGER:
                return "a number";
        case JSON_REAL:
                return "a decimal number";
        case JSON_TRUE:
                return "true";
        case JSON_FALSE:
                return "false";
        default:
                return "null";
        }
}

/* ---- Values ---- */

int json_read_string(json_t *value, const struct json_place *at, cbx_error *error,
                     const char **ret_text)
{
        if (!json_is_string(value))
                return json_refuse_type(at, error, "a string", value);
        if (strlen(json_string_value(value)) != json_string_length(value))
                return json_refuse(at, error, "may not hold a NUL");
        *ret_text = json_string_value(value);
        return 0;
}

int json_read_bool(json_t *value, const struct json_place *at, cbx_error *error, bool *ret_bool)
{
        if (!json_is_boolean(value))
                return json_refuse_type(at, error, "true or false", value);
        *ret_bool = json_is_true(value);
        return 0;
}

/* "none, loopback, host"; cut if there is no room. */
static void list_words(struct json_words words, char *text, size_t size)
{
        size_t used = 0;

        text[0] = '\0';
        for (size_t i = 0; i < words.count && used < size; i++)
                used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "",
                                         json_word(&words, i));
}

int json_read_choice(json_t *value, const struct json_place *at, struct json_words choices,
                     cbx_error *error, size_t *ret_index)
{
        char known[256];
        const char *text, *near;
        int r;

        r = json_read_string(value, at, error, &text);
        if (r < 0)
                return r;
        for (size_t i = 0; i < choices.count; i++)
                if (strcmp(json_word(&choices, i), text) == 0) {
                        *ret_index = i;
                        return 0;
                }
        near = json_nearest(text, choices);
        if (near)
                r = json_refuse(at, error, "\"%.64s\" is not known; did you mean \"%s\"?", text,
                                near);
        else
                r = json_refuse(at, error, "\"%.64s\" is not known", text);
        list_words(choices, known, sizeof(known));
        error_hint(error, "known are: %s", known);
        return r;
}

/* ---- Objects and arrays ---- */

int json_check_keys(json_t *object, const struct json_place *at, struct json_words keys,
                    cbx_error *error)
{
        const char *key;
        json_t *value;

        json_object_foreach(object, key, value)
        {
                size_t i = 0;

                while (i < keys.count && strcmp(json_word(&keys, i), key) != 0)
                        i++;
                if (i == keys.count) {
                        char known[256];
                        int r = json_refuse_key(at, key, keys, error);

                        list_words(keys, known, sizeof(known));
                        if (!json_asks_for_no_box(key))
                                error_hint(error, "known here are: %s", known);
                        else
                                error_hint(error, "%s", JSON_WHO_MAY);
                        return r;
                }
        }
        return 0;
}

int json_read_fields(json_t *value, const struct json_place *at, const struct json_field *fields,
                     size_t n_fields, cbx_error *error, void *to)
{
        struct json_words keys = { fields, n_fields, sizeof(fields[0]) };
        int r;

        if (!json_is_object(value))
                return json_refuse_type(at, error, "an object", value);
        r = json_check_keys(value, at, keys, error);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n_fields; i++) {
                struct json_place place = { .parent = at, .key = fields[i].key };
                json_t *field = json_object_get(value, fields[i].key);

                if (!field)
                        continue;
                r = fields[i].read(field, &place, error, to);
                if (r < 0)
                        return r;
        }
        return 0;
}

int json_read_array(json_t *value, const struct json_place *at, json_reader *read, cbx_error *error,
                    void *to)
{
        size_t i;
        json_t *item;

        if (!json_is_array(value))
                return json_refuse_type(at, error, "an array", value);
        json_array_foreach(value, i, item)
        {
                struct json_place place = { .parent = at, .index = i };
                int r = read(item, &place, error, to);

                if (r < 0)
                        return r;
        }
        return 0;
}
