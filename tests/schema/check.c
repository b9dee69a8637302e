/* SPDX-License-Identifier: MIT */
/*
 * The validator for test_schema.py: reads a JSON array of cases from stdin, one line of JSON for
 * each to stdout.
 *
 *   {"documents": {URI: JSON, ...}, "schema": JSON, "instances": [JSON, ...], "defaults": bool}
 *
 * A line is {"error": {where, text, hint}} where the schema is refused, else {"results": [...]},
 * each with the code that schema_check returned and the mistakes; where defaults are asked for,
 * also how many were added and the value after that. {"build": ...} stands for a value that is too
 * large to send: see build_value().
 */
#include <stdio.h>
#include <string.h>

#include "schema/schema.h"

static void die(const char *what)
{
        fprintf(stderr, "check: %s\n", what);
        exit(2);
}

static json_t *must(json_t *json)
{
        if (!json)
                die("out of memory");
        return json;
}

/* ---- Values that are too large to send ---- */

static json_t *get_value(const json_t *value);

/* A string, so many times. */
static json_t *build_string(const json_t *of, json_int_t n)
{
        struct buffer text = BUFFER_INIT;
        json_t *value;

        for (json_int_t i = 0; i < n; i++)
                if (buffer_add(&text, json_string_value(of), json_string_length(of)) < 0)
                        die("out of memory");
        value = must(json_stringn(text.data ? text.data : "", text.length));
        buffer_free(&text);
        return value;
}

/* A value inside of so many arrays, or objects that have it as "a". */
static json_t *build_deep(json_t *of, json_int_t n, bool objects)
{
        json_t *value = json_incref(of);

        for (json_int_t i = 0; i < n; i++)
                value = must(objects ? json_pack("{s:o}", "a", value) : json_pack("[o]", value));
        return value;
}

/* An array or an object with so many times a value; the numbers from 0 where there is none. */
static json_t *build_many(json_t *value, json_t *of, json_int_t n)
{
        for (json_int_t i = 0; i < n; i++) {
                json_t *next = of ? json_incref(of) : must(json_integer(i));
                char key[32];

                (void)snprintf(key, sizeof(key), "k%lld", (long long)i);
                if (json_is_object(value) ? json_object_set_new(value, key, next)
                                          : json_array_append_new(value, next))
                        die("out of memory");
        }
        return value;
}

static json_t *build_wrapped(const json_t *how)
{
        json_t *key = get_value(json_object_get(how, "key")), *value;

        value = must(json_pack("{s:o}", json_string_value(key),
                               get_value(json_object_get(how, "value"))));
        json_decref(key);
        return value;
}

static json_t *build_value(const json_t *how, const char *kind)
{
        json_t *of = json_object_get(how, "of");
        json_int_t n = json_integer_value(json_object_get(how, "n"));

        if (strcmp(kind, "string") == 0)
                return build_string(of, n);
        if (strcmp(kind, "deep") == 0 || strcmp(kind, "deep-object") == 0)
                return build_deep(of, n, kind[4] != '\0');
        if (strcmp(kind, "wrap") == 0)
                return build_wrapped(how);
        return build_many(must(strcmp(kind, "keys") == 0 ? json_object() : json_array()), of, n);
}

static json_t *get_value(const json_t *value)
{
        const char *kind = json_string_value(json_object_get(value, "build"));

        return kind ? build_value(value, kind) : json_incref((json_t *)value);
}

/* ---- Cases ---- */

static json_t *describe(int code, const struct schema_mistakes *mistakes)
{
        json_t *list = must(json_array());

        for (size_t i = 0; i < mistakes->n; i++)
                json_array_append_new(list, must(json_pack("{s:s, s:s, s:s}", "path",
                                                           mistakes->items[i].path, "keyword",
                                                           mistakes->items[i].keyword, "text",
                                                           mistakes->items[i].text)));
        return must(json_pack("{s:i, s:o, s:b, s:b}", "code", code, "mistakes", list, "cut",
                              mistakes->cut, "exhausted", mistakes->exhausted));
}

static json_t *check(const struct schema *schema, const json_t *given, bool defaults)
{
        struct schema_mistakes mistakes;
        json_t *instance = get_value(given), *result;
        int added = 0, code;

        if (defaults)
                added = schema_apply_defaults(schema, instance);
        code = schema_check(schema, instance, &mistakes);
        result = describe(code, &mistakes);
        if (defaults) {
                json_object_set_new(result, "added", json_integer(added));
                json_object_set(result, "instance", instance);
        }
        schema_mistakes_free(&mistakes);
        json_decref(instance);
        return result;
}

static json_t *run(const json_t *test, const struct schema_documents *known)
{
        _cleanup_schema_ struct schema *schema = NULL;
        json_t *document = get_value(json_object_get(test, "schema")), *list,
               *instances = json_object_get(test, "instances");
        const bool defaults = json_is_true(json_object_get(test, "defaults"));
        cbx_error error = CBX_ERROR_INIT;
        int r;

        r = schema_compile_with(document, known, &schema, &error);
        json_decref(document); /* the schema has a copy */
        if (r < 0)
                return must(json_pack("{s:{s:i, s:s, s:s, s:s}}", "error", "code", r, "where",
                                      error.where, "text", error.text, "hint", error.hint));
        list = must(json_array());
        for (size_t i = 0; i < json_array_size(instances); i++)
                json_array_append_new(list, check(schema, json_array_get(instances, i), defaults));
        return must(json_pack("{s:o}", "results", list));
}

static json_t *run_with_documents(const json_t *test)
{
        json_t *documents = json_object_get(test, "documents"), *json;
        struct schema_document *items = calloc(json_object_size(documents) + 1, sizeof(*items));
        struct schema_documents known = { .items = items };
        const char *uri;

        if (!items)
                die("out of memory");
        json_object_foreach(documents, uri, json) items[known.n++] =
                (struct schema_document){ uri, json };
        json = run(test, &known);
        free(items);
        return json;
}

int main(void)
{
        json_error_t error;
        json_t *tests = json_loadf(stdin, JSON_ALLOW_NUL, &error), *test;
        size_t i;

        if (!json_is_array(tests))
                die(tests ? "stdin is no array" : error.text);
        json_array_foreach(tests, i, test)
        {
                json_t *result = run_with_documents(test);

                if (json_dumpf(result, stdout, JSON_COMPACT) < 0 || putchar('\n') == EOF)
                        die("cannot write");
                json_decref(result);
        }
        json_decref(tests);
        return 0;
}
