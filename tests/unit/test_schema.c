/* SPDX-License-Identifier: MIT */
/* The parts of the validator that cases in JSON do not reach: names, numbers, patterns, threads. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "schema/schema_parts.h"

static json_t *json(const char *text)
{
        json_error_t mistake;
        json_t *value = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, &mistake);

        if (!value)
                fail_msg("%s: %s", text, mistake.text);
        return value;
}

static struct schema *compile(const char *text)
{
        _cleanup_value_ json_t *document = json(text);
        cbx_error error = CBX_ERROR_INIT;
        struct schema *schema = NULL;

        if (schema_compile(document, &schema, &error) < 0)
                fail_msg("%s: refused: %s: %s", text, error.where, error.text);
        return schema;
}

static int check_text(const struct schema *schema, const char *text)
{
        _cleanup_value_ json_t *instance = json(text);

        return schema_check(schema, instance, NULL);
}

/* ---- Names ---- */

/* The examples of RFC 3986, 5.4, as far as they are for us, and what it does not have. */
static void relative_names_are_joined_as_the_rfc_says(void **state)
{
        static const struct {
                const char *base, *reference, *joined;
        } rows[] = {
                { "http://a/b/c/d;p?q", "g:h", "g:h" },
                { "http://a/b/c/d;p?q", "g", "http://a/b/c/g" },
                { "http://a/b/c/d;p?q", "./g", "http://a/b/c/g" },
                { "http://a/b/c/d;p?q", "g/", "http://a/b/c/g/" },
                { "http://a/b/c/d;p?q", "/g", "http://a/g" },
                { "http://a/b/c/d;p?q", "//g", "http://g" },
                { "http://a/b/c/d;p?q", "?y", "http://a/b/c/d;p?y" },
                { "http://a/b/c/d;p?q", "g?y", "http://a/b/c/g?y" },
                { "http://a/b/c/d;p?q", "#s", "http://a/b/c/d;p?q#s" },
                { "http://a/b/c/d;p?q", "g?y#s", "http://a/b/c/g?y#s" },
                { "http://a/b/c/d;p?q", "", "http://a/b/c/d;p?q" },
                { "http://a/b/c/d;p?q", ".", "http://a/b/c/" },
                { "http://a/b/c/d;p?q", "./", "http://a/b/c/" },
                { "http://a/b/c/d;p?q", "..", "http://a/b/" },
                { "http://a/b/c/d;p?q", "../g", "http://a/b/g" },
                { "http://a/b/c/d;p?q", "../..", "http://a/" },
                { "http://a/b/c/d;p?q", "../../g", "http://a/g" },
                { "http://a/b/c/d;p?q", "../../../g", "http://a/g" },
                { "http://a/b/c/d;p?q", "/./g", "http://a/g" },
                { "http://a/b/c/d;p?q", "/../g", "http://a/g" },
                { "http://a/b/c/d;p?q", "g.", "http://a/b/c/g." },
                { "http://a/b/c/d;p?q", "..g", "http://a/b/c/..g" },
                { "http://a/b/c/d;p?q", "./g/.", "http://a/b/c/g/" },
                { "http://a/b/c/d;p?q", "g/./h", "http://a/b/c/g/h" },
                { "http://a/b/c/d;p?q", "g/../h", "http://a/b/c/h" },
                { "http://a", "g", "http://a/g" },
                { "urn:a:b", "#x", "urn:a:b#x" },
                { "urn:a:b", "urn:c", "urn:c" },
                { "", "a.json#/b", "a.json#/b" },
                { "", "#", "#" },
                { "file:///a/b", "c", "file:///a/c" },
                { "", "", "" },
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_free_ char *joined = uri_join(rows[i].base, rows[i].reference);

                assert_string_equal(joined, rows[i].joined);
        }
}

static void escapes_of_names_are_undone(void **state)
{
        char good[] = "a%20b%C3%A4%25", half[] = "a%2", none[] = "%gg", nul[] = "a%00b";

        (void)state;
        assert_true(uri_decode(good));
        assert_string_equal(good, "a bä%");
        assert_false(uri_decode(half));
        assert_false(uri_decode(none));
        assert_false(uri_decode(nul));
}

/* ---- Numbers ---- */

static void numbers_are_compared_exactly(void **state)
{
        static const struct {
                const char *a, *b;
                int result;
        } rows[] = {
                { "1", "1.0", 0 },
                { "-1", "-1.5", 1 },
                { "9223372036854775807", "9223372036854775808.0", -1 },
                { "-9223372036854775808", "-9223372036854775808.0", 0 },
                { "-9223372036854775808", "-1e19", 1 },
                { "9007199254740993", "9007199254740992.0", 1 },
                { "0", "-0.0", 0 },
                { "1", "1e-300", 1 },
                { "0", "5e-324", -1 },
                { "1e308", "1e307", 1 },
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_value_ json_t *a = json(rows[i].a), *b = json(rows[i].b);

                assert_int_equal(number_compare(a, b), rows[i].result);
                assert_int_equal(number_compare(b, a), -rows[i].result);
        }
}

static void numbers_are_printed_as_they_were_written(void **state)
{
        static const char *const texts[] = { "0.1",    "12.5",  "1e+300",  "0.0001",
                                             "5e-324", "-3.25", "1.1e-05", "0.30000000000000004" };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                _cleanup_value_ json_t *number = json(texts[i]);
                char text[NUMBER_ROOM];

                number_print(number, text);
                assert_string_equal(text, texts[i]);
        }
}

/* ---- Patterns ---- */

static void patterns_are_respelled(void **state)
{
        static const struct {
                const char *from, *to;
        } rows[] = {
                { "", "" },
                { "^a$", "^a$" },
                { "\\v\\cJ", "\\x{b}\\x{a}" },
                { "\\p{Letter}", "\\p{L}" },
                { "\\P{gc=Lu}", "\\P{Lu}" },
                { "\\p{Script=Latin}", "\\p{Script=Latin}" },
                { "\\1", "\\g{1}" },
                { "[[:alpha:]]", "[\\x{5b}:alpha:]]" },
                { "[a-c]", "[a-c]" },
                { "[a-]", "[a\\x{2d}]" },
                { "[\\d-x]", "[\\d\\x{2d}x]" },
                { "[ä-ö]", "[ä-ö]" },
                { "a{1,2}?", "a{1,2}?" },
                { "a{x", "a\\{x" },
                { "(?<n>a)", "(?<n>a)" },
                { "\\Q", NULL },
                { "(?>a)", NULL },
                { "\\u12", NULL },
                { "\\u{110000}", NULL },
                { "\\c1", NULL },
                { "\\p", NULL },
                { "\\p{L", NULL },
                { "\\p{^L}", NULL },
                { "\\k", NULL },
                { "\\01", NULL },
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_buffer_ struct buffer to = BUFFER_INIT;
                const char *why = NULL;
                int r = regex_translate(rows[i].from, strlen(rows[i].from), &to, &why);

                assert_int_equal(r, rows[i].to ? 0 : -EINVAL);
                if (rows[i].to)
                        assert_string_equal(to.data, rows[i].to);
                else
                        assert_non_null(why);
        }
}

/* ---- The whole ---- */

static void a_refusal_needs_no_error_and_touches_nothing(void **state)
{
        _cleanup_value_ json_t *document = json("{\"minLength\": \"x\"}");
        struct schema *schema = (struct schema *)state;

        assert_int_equal(schema_compile(document, &schema, NULL), -EINVAL);
        assert_ptr_equal(schema, state);
}

static void a_check_needs_no_list(void **state)
{
        _cleanup_schema_ struct schema *schema = compile("{\"type\": \"string\"}");

        (void)state;
        assert_int_equal(check_text(schema, "\"a\""), 0);
        assert_int_equal(check_text(schema, "1"), 1);
        assert_null(schema_free(NULL));
}

static void a_schema_outlives_its_document(void **state)
{
        _cleanup_value_ json_t *document = json("{\"properties\": {\"a\": {\"enum\": [1]}}}");
        _cleanup_schema_ struct schema *schema = NULL;

        (void)state;
        assert_int_equal(schema_compile(document, &schema, NULL), 0);
        json_object_clear(document);
        assert_int_equal(check_text(schema, "{\"a\": 1}"), 0);
        assert_int_equal(check_text(schema, "{\"a\": 2}"), 1);
}

/* jansson lets a program build strings that are not UTF-8. */
static void a_string_that_is_not_utf8_is_not_taken_for_valid(void **state)
{
        _cleanup_schema_ struct schema *schema = compile("{\"pattern\": \"a\"}");
        _cleanup_value_ json_t *instance = json_stringn_nocheck("a\xff", 2);
        struct schema_mistakes mistakes;

        (void)state;
        assert_int_equal(schema_check(schema, instance, &mistakes), -EINVAL);
        assert_int_equal(mistakes.n, 0);
}

static void *check_many(void *data)
{
        static const char *const good[] = { "{\"a\": [\"x1\"]}", "{\"a\": []}" }, *const bad[] = {
                "{\"a\": [\"x\"]}", "{\"b\": 1}"
        };

        for (int i = 0; i < 500; i++)
                if (check_text(data, good[i % 2]) != 0 || check_text(data, bad[i % 2]) != 1)
                        return data;
        return NULL;
}

static void threads_share_a_schema(void **state)
{
        _cleanup_schema_ struct schema *schema =
                compile("{\"properties\": {\"a\": {\"items\": {\"pattern\": \"^x[0-9]+$\"}}}, "
                        "\"unevaluatedProperties\": false}");
        pthread_t threads[4];

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
                assert_int_equal(pthread_create(&threads[i], NULL, check_many, schema), 0);
        for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
                void *failed = NULL;

                assert_int_equal(pthread_join(threads[i], &failed), 0);
                assert_null(failed);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(relative_names_are_joined_as_the_rfc_says),
                cmocka_unit_test(escapes_of_names_are_undone),
                cmocka_unit_test(numbers_are_compared_exactly),
                cmocka_unit_test(numbers_are_printed_as_they_were_written),
                cmocka_unit_test(patterns_are_respelled),
                cmocka_unit_test(a_refusal_needs_no_error_and_touches_nothing),
                cmocka_unit_test(a_check_needs_no_list),
                cmocka_unit_test(a_schema_outlives_its_document),
                cmocka_unit_test(a_string_that_is_not_utf8_is_not_taken_for_valid),
                cmocka_unit_test(threads_share_a_schema),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
