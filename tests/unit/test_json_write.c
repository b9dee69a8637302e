/* SPDX-License-Identifier: MIT */
/* JSON as it is written: what is read again is the same, in whatever locale. */
#include <float.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "policy/json_read.h"
#include "policy/policy.h"

static json_t *parse(const char *text)
{
        cbx_error error = CBX_ERROR_INIT;
        json_t *json = NULL;

        if (json_parse(text, strlen(text), "it", SIZE_MAX, JSON_PARSE_NUL, &error, &json) < 0)
                fail_msg("%s: %s", text, error.text);
        return json;
}

static void assert_written(const char *from, const char *to)
{
        _cleanup_json_ json_t *json = parse(from);
        _cleanup_free_ char *text = json_write(json, 0);

        assert_non_null(text);
        assert_string_equal(text, to);
}

static void assert_same_number(double number)
{
        _cleanup_json_ json_t *json = NULL;
        char room[NUMBER_ROOM];

        json_write_number(number, room);
        json = parse(room);
        assert_true(json_is_real(json)); /* it was no integer before, and is none now */
        assert_true(json_real_value(json) == number);
}

static void a_number_has_the_digits_it_needs(void **state)
{
        (void)state;
        assert_written("0.1", "0.1");
        assert_written("1.0", "1.0");
        assert_written("-0.0", "-0.0");
        assert_written("1e2", "100.0");
        assert_written("0.30000000000000004", "0.30000000000000004");
        assert_written("1e300", "1e+300");
        assert_written("9007199254740993", "9007199254740993");
        assert_written("-9223372036854775808", "-9223372036854775808");
}

static void a_number_reads_back_as_the_same(void **state)
{
        static const double numbers[] = { 0,        -0.0,   0.1,          1.0 / 3, 1e15,
                                          1e16,     1e17,   DBL_MIN,      DBL_MAX, DBL_EPSILON,
                                          -DBL_MAX, 5e-324, 123456789.125 };
        uint64_t bits = 88172645463325252ULL;

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
                assert_same_number(numbers[i]);
        for (int i = 0; i < 20000; i++) {
                double number;

                bits ^= bits << 13;
                bits ^= bits >> 7;
                bits ^= bits << 17;
                memcpy(&number, &bits, sizeof(number));
                if (number - number == 0) /* neither infinite nor none */
                        assert_same_number(number);
        }
}

/* With a comma where a locale that has one is installed; the point of C otherwise. */
static void a_comma_of_the_locale_is_written_as_a_point(void **state)
{
        static const char *const commas[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "C" };
        char room[NUMBER_ROOM];
        size_t i = 0;

        (void)state;
        while (!setlocale(LC_NUMERIC, commas[i]))
                i++;
        json_write_number(-1234.5, room);
        setlocale(LC_NUMERIC, "C");
        assert_string_equal(room, "-1234.5");
}

static void a_string_has_the_escapes_it_needs(void **state)
{
        (void)state;
        assert_written("\"a\\u0000b\"", "\"a\\u0000b\"");
        assert_written("\"\\u001f\\n\\t\\r\\\\\\\"\\/\"", "\"\\u001f\\n\\t\\r\\\\\\\"/\"");
        assert_written("\"\\u00e9\\ud83d\\ude00\"", "\"\u00e9\U0001f600\"");
        assert_written("{\"a\\nb\": [], \"\": {}}", "{\"a\\nb\":[],\"\":{}}");
}

static void what_is_indented_is_the_same_value(void **state)
{
        _cleanup_json_ json_t *json = parse("{\"a\": [1, [], {\"b\": [true, null]}], \"c\": {}}"),
                              *again = NULL;
        _cleanup_free_ char *text = json_write(json, 2);

        (void)state;
        assert_non_null(text);
        assert_non_null(strstr(text, "{\n  \"a\": [\n    1,\n    [],\n"));
        again = parse(text);
        assert_true(json_equal(json, again));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_number_has_the_digits_it_needs),
                cmocka_unit_test(a_number_reads_back_as_the_same),
                cmocka_unit_test(a_comma_of_the_locale_is_written_as_a_point),
                cmocka_unit_test(a_string_has_the_escapes_it_needs),
                cmocka_unit_test(what_is_indented_is_the_same_value),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
