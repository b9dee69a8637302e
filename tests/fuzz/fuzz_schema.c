/* SPDX-License-Identifier: MIT */
/*
 * A schema, a line end, and a value. Whatever they are, there is an answer, always the same one,
 * and every refusal has a text that can be put in a report.
 */
#include <string.h>

#include "schema/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void json_freep(json_t **json)
{
        json_decref(*json);
}
#define _cleanup_json_ _cleanup_(json_freep)

static void must(bool holds)
{
        if (!holds)
                abort();
}

static void must_be_showable(const char *text)
{
        _cleanup_json_ json_t *value = text ? json_string(text) : NULL;

        must(value);
        for (; *text; text++)
                must((unsigned char)*text >= 0x20 && *text != 0x7f);
}

static void check_mistakes(int r, const struct schema_mistakes *mistakes)
{
        must(r == 0 || r == 1 || r == -E2BIG || r == -ENOMEM);
        must(mistakes->n <= SCHEMA_MISTAKES_MAX && (mistakes->n > 0) == (r == 1 || r == -E2BIG));
        must(mistakes->exhausted == (r == -E2BIG));
        for (size_t i = 0; i < mistakes->n; i++) {
                must_be_showable(mistakes->items[i].path);
                must_be_showable(mistakes->items[i].keyword);
                must_be_showable(mistakes->items[i].text);
                must(mistakes->items[i].text[0] != '\0');
                must(strlen(mistakes->items[i].path) < SCHEMA_PATH_MAX);
        }
}

/* Valid or not does not depend on whether somebody wants to know why. */
static void check_value(const struct schema *schema, json_t *value)
{
        struct schema_mistakes mistakes;
        int first, second, added;

        first = schema_check(schema, value, NULL);
        second = schema_check(schema, value, &mistakes);
        check_mistakes(second, &mistakes);
        must(first == second || (first == 1 && second == -E2BIG));
        schema_mistakes_free(&mistakes);

        added = schema_apply_defaults(schema, value);
        must(added >= 0 || added == -E2BIG || added == -ENOMEM);
        if (added >= 0)
                must(schema_apply_defaults(schema, value) == 0);
        second = schema_check(schema, value, &mistakes);
        check_mistakes(second, &mistakes);
        schema_mistakes_free(&mistakes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES;
        const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
        _cleanup_json_ json_t *document = NULL, *value = NULL;
        _cleanup_schema_ struct schema *schema = NULL;
        cbx_error error = CBX_ERROR_INIT;
        int r;

        if (!end)
                return 0;
        document = json_loadb((const char *)data, (size_t)(end - data), flags, NULL);
        value = json_loadb((const char *)end, size - (size_t)(end - data), flags, NULL);
        if (!document)
                return 0;
        r = schema_compile(document, &schema, &error);
        if (r < 0) {
                must(r == -EINVAL && error.code == r && error.text[0] != '\0' && !schema);
                must_be_showable(error.where);
                must_be_showable(error.text);
                must_be_showable(error.hint);
                return 0;
        }
        if (value)
                check_value(schema, value);
        return 0;
}
