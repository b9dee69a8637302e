/* SPDX-License-Identifier: MIT */
/*
 * Checking arguments against a schema: the same 10 MB of them as many small values, as some larger
 * ones, and as one. Time per byte should not grow with the value.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/schema.h"

#include "bench.h"

#define TOTAL_BYTES 10000000

/* What a tool that edits files may ask for. */
static const char schema_text[] =
        "{\"type\": \"object\","
        " \"properties\": {"
        "  \"path\": {\"type\": \"string\", \"minLength\": 1},"
        "  \"edits\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/edit\"}}},"
        " \"required\": [\"path\", \"edits\"],"
        " \"additionalProperties\": false,"
        " \"$defs\": {\"edit\": {"
        "  \"type\": \"object\","
        "  \"properties\": {"
        "   \"line\": {\"type\": \"integer\", \"minimum\": 1},"
        "   \"mode\": {\"enum\": [\"insert\", \"replace\", \"delete\"]},"
        "   \"mark\": {\"type\": \"string\", \"pattern\": \"^[a-z]+-[0-9]+$\"},"
        "   \"text\": {\"anyOf\": [{\"type\": \"null\"}, {\"type\": \"string\"}]}},"
        "  \"required\": [\"line\", \"mode\"],"
        "  \"additionalProperties\": false}}}";

struct arguments {
        struct schema *schema;
        json_t *value;
        char *text;
        size_t bytes, times;
};

static json_t *make_edit(size_t i)
{
        static const char *const modes[] = { "insert", "replace", "delete" };
        char mark[32];

        snprintf(mark, sizeof(mark), "edit-%zu", i);
        return json_pack("{s:I, s:s, s:s, s:s}", "line", (json_int_t)i + 1, "mode", modes[i % 3],
                         "mark", mark, "text", "        return error_set(error, -EINVAL);\n");
}

/* Edits until the text has the size that is wanted. */
static void make_arguments(struct arguments *arguments, struct schema *schema, size_t bytes)
{
        json_t *edits = json_array();
        size_t length = 0;

        for (size_t i = 0; length < bytes; i++) {
                json_t *edit = make_edit(i);

                length += json_dumpb(edit, NULL, 0, JSON_COMPACT) + 1;
                if (json_array_append_new(edits, edit) < 0)
                        die("make arguments");
        }
        arguments->schema = schema;
        arguments->value = json_pack("{s:s, s:o}", "path", "src/main.c", "edits", edits);
        arguments->text = json_dumps(arguments->value, JSON_COMPACT);
        if (!arguments->text)
                die("make arguments");
        arguments->bytes = strlen(arguments->text);
        arguments->times = TOTAL_BYTES / bytes;
}

static void free_arguments(struct arguments *arguments)
{
        json_decref(arguments->value);
        free(arguments->text);
}

/* In milliseconds for exactly so many bytes, whatever the last edit added to them. */
static double per_total(const struct arguments *arguments, double ms)
{
        return ms * TOTAL_BYTES / (double)(arguments->bytes * arguments->times);
}

static double run_parse(struct contestant *self)
{
        const struct arguments *arguments = self->with;
        double before = now_ms();

        for (size_t i = 0; i < arguments->times; i++) {
                json_t *value = json_loadb(arguments->text, arguments->bytes, 0, NULL);

                if (!value)
                        die("parse");
                json_decref(value);
        }
        return per_total(arguments, now_ms() - before);
}

static double run_check(struct contestant *self)
{
        const struct arguments *arguments = self->with;
        double before = now_ms();

        for (size_t i = 0; i < arguments->times; i++)
                if (schema_check(arguments->schema, arguments->value, NULL) != 0) {
                        errno = EINVAL;
                        die("check");
                }
        return per_total(arguments, now_ms() - before);
}

void race_schema(void)
{
        static const size_t sizes[] = { 1000, 100000, TOTAL_BYTES };
        struct arguments arguments[ARRAY_SIZE(sizes)];
        json_t *document = json_loads(schema_text, 0, NULL);
        cbx_error error = CBX_ERROR_INIT;
        struct schema *schema = NULL;
        struct race race = { .name = "schema",
                             .what = "10 MB of arguments against a schema",
                             .rounds = options.work_rounds };
        struct contestant *medium, *large;

        if (!document || schema_compile(document, &schema, &error) < 0)
                die_callbox("compile a schema", &error);
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
                make_arguments(&arguments[i], schema, sizes[i]);
        race_enter(&race, "only parsed, 100 KB each", run_parse, &arguments[1]);
        race_enter(&race, "1 KB each", run_check, &arguments[0]);
        medium = race_enter(&race, "100 KB each", run_check, &arguments[1]);
        large = race_enter(&race, "10 MB at once", run_check, &arguments[2]);
        race_at_most(&race, "time per byte at 10 MB, of that at 100 KB", large, 2, medium);
        race_run(&race);
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
                free_arguments(&arguments[i]);
        schema_free(schema);
        json_decref(document);
}
