/* SPDX-License-Identifier: MIT */
/* The argv of a command: which templates are read, and what becomes of values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tool/tool.h"

static const char schema[] =
        "{\"type\": \"object\", \"required\": [\"s\", \"n\", \"list\", \"any\"], \"properties\": {"
        " \"s\": {\"type\": \"string\"}, \"n\": {\"type\": \"number\"}, \"list\":"
        " {\"type\": \"array\"}, \"any\": {}, \"flag\": {\"type\": \"boolean\"}, \"maybe\":"
        " {\"type\": [\"string\", \"null\"]}, \"filled\": {\"enum\": [1, \"x\"], \"default\": 1}}}";

static int read_template(const char *text, bool defaults, struct tool_mistakes *mistakes,
                         struct template **ret_template)
{
        _cleanup_json_ json_t *list = json_loads(text, JSON_DECODE_ANY, NULL),
                              *properties = json_loads(schema, 0, NULL);
        struct json_place place = { .key = "command" };
        struct template_context context = { .schema = properties,
                                            .defaults = defaults,
                                            .directory = "/etc",
                                            .mistakes = mistakes };

        assert_non_null(list);
        return template_read(list, &place, &context, ret_template);
}

static void read_good(const char *text, struct template **ret)
{
        _cleanup_mistakes_ struct tool_mistakes mistakes = TOOL_MISTAKES_INIT;

        if (read_template(text, true, &mistakes, ret) < 0)
                fail_msg("%s: %s: %s", text, mistakes.items[0].where, mistakes.items[0].text);
        assert_int_equal(mistakes.n, 0);
}

/* The first mistake is the error. */
static int expand_template(const struct template *template, const json_t *arguments,
                           cbx_error *error, char ***argv)
{
        _cleanup_mistakes_ struct tool_mistakes mistakes = TOOL_MISTAKES_INIT;
        int r = template_expand(template, arguments, &mistakes, argv);

        assert_int_equal(r<0, mistakes.n> 0);
        return r < 0 ? tool_mistakes_error(&mistakes, error) : r;
}

/* The arguments, each with a line break behind it, or the place and the text of the refusal. */
static void assert_expands(const char *template_text, const char *arguments_text,
                           const char *expected)
{
        struct template *template = NULL;
        _cleanup_json_ json_t *arguments = json_loads(arguments_text, JSON_ALLOW_NUL, NULL);
        _cleanup_buffer_ struct buffer joined = BUFFER_INIT;
        _cleanup_list_ char **argv = list_new();
        cbx_error error = CBX_ERROR_INIT;
        int r;

        read_good(template_text, &template);
        r = expand_template(template, arguments, &error, &argv);
        for (char **argument = argv; r == 0 && *argument; argument++)
                assert_int_equal(buffer_printf(&joined, "%s\n", *argument), 0);
        if (r < 0)
                assert_int_equal(buffer_printf(&joined, "%s: %s", error.where, error.text), 0);
        template_free(template);
        if (r < 0)
                assert_non_null(strstr(joined.data, expected));
        else
                assert_string_equal(joined.length > 0 ? joined.data : "", expected);
}

/* ---- Values ---- */

static void each_value_is_one_argument(void **state)
{
        (void)state;
        assert_expands("[\"x\", \"{s}\", \"{{{s}}}\", \"--n={n}\", \"\"]",
                       "{\"s\": \"a b; $(c) '\\n\", \"n\": 0.1}",
                       "x\na b; $(c) '\n\n{a b; $(c) '\n}\n--n=0.1\n\n");
        assert_expands("[\"{s}\", \"{n}\"]", "{\"s\": \"\", \"n\": 12}", "\n12\n");
        assert_expands("[{\"each\": \"list\"}]", "{\"list\": [\"a b\", 1, true, \"\"]}",
                       "a b\n1\ntrue\n\n");
        assert_expands("[{\"each\": \"list\"}]", "{\"list\": []}", "");
        assert_expands("[{\"json\": \"any\"}]", "{\"any\": {\"a\": [1, null, \"\\u0000\"]}}",
                       "{\"a\":[1,null,\"\\u0000\"]}\n");
        assert_expands("[{\"file\": \"passwd\"}]", "{}", "/etc/passwd\n");
}

static void no_value_is_an_option_of_its_own(void **state)
{
        static const char dash[] = "may not begin with a dash";

        (void)state;
        assert_expands("[\"{s}\"]", "{\"s\": \"-rf\"}", "/s: may not begin with a dash");
        assert_expands("[\"{n}\"]", "{\"n\": -1}", dash);
        assert_expands("[\"{s}{n}\"]", "{\"s\": \"\", \"n\": -1}", dash);
        assert_expands("[\"{s}x\"]", "{\"s\": \"-\"}", dash);
        assert_expands("[\"{s}-{n}\"]", "{\"s\": \"\", \"n\": 1}", dash);
        assert_expands("[{\"each\": \"list\"}]", "{\"list\": [\"a\", \"-b\"]}", "/list/1: may not");
        assert_expands("[{\"json\": \"any\"}]", "{\"any\": -1}", dash);
        /* What the manifest writes, or allows, may. */
        assert_expands("[\"-{s}\", \"x{n}\"]", "{\"s\": \"-a\", \"n\": -1}", "--a\nx-1\n");
        assert_expands(
                "[{\"value\": \"{s}\", \"dash\": true}, {\"each\": \"list\", \"dash\": true},"
                " {\"json\": \"any\", \"dash\": true}]",
                "{\"s\": \"-a\", \"list\": [\"-b\"], \"any\": -1}", "-a\n-b\n-1\n");
}

static void what_cannot_be_an_argument_is_refused(void **state)
{
        (void)state;
        assert_expands("[\"{s}\"]", "{\"s\": \"a\\u0000b\"}", "/s: cannot be an argument");
        assert_expands("[\"{s}\"]", "{}", "/s: cannot be an argument");
        assert_expands("[\"{s}\"]", "{\"s\": [\"a\"]}", "/s: cannot be an argument");
        assert_expands("[{\"each\": \"list\"}]", "{\"list\": [[]]}", "/list/0: cannot be");
        assert_expands("[{\"each\": \"list\"}]", "{\"list\": \"a\"}", "/list: must be an array");
        assert_expands("[{\"json\": \"any\"}]", "{}", "/any: is missing");
}

static void when_decides_by_what_is_there(void **state)
{
        static const char flag[] = "[\"x\", {\"when\": \"flag\", \"then\": [\"-f\"]}]";
        static const char nested[] =
                "[{\"when\": \"maybe\", \"then\": [\"{maybe}\", {\"when\": \"flag\", \"then\":"
                " [\"{maybe}+{flag}\"]}]}]";

        (void)state;
        assert_expands(flag, "{\"flag\": true}", "x\n-f\n");
        assert_expands(flag, "{\"flag\": false}", "x\n");
        assert_expands(flag, "{\"flag\": null}", "x\n");
        assert_expands(flag, "{}", "x\n");
        assert_expands(nested, "{\"flag\": true}", "");
        assert_expands(nested, "{\"maybe\": \"m\"}", "m\n");
        assert_expands(nested, "{\"maybe\": \"m\", \"flag\": true}", "m\nm+true\n");
}

/* ---- Bounds ---- */

static json_t *long_text(size_t length)
{
        _cleanup_free_ char *text = malloc(length + 1);

        assert_non_null(text);
        memset(text, 'x', length);
        text[length] = '\0';
        return json_string(text);
}

static int expand(const char *text, const char *name, json_t *value, cbx_error *error)
{
        struct template *template = NULL;
        _cleanup_json_ json_t *arguments = json_pack("{s:o}", name, value);
        _cleanup_list_ char **argv = list_new();
        int r;

        read_good(text, &template);
        r = expand_template(template, arguments, error, &argv);
        template_free(template);
        return r;
}

static void a_command_line_has_the_bounds_of_the_kernel(void **state)
{
        _cleanup_buffer_ struct buffer often = BUFFER_INIT;
        json_t *list = json_array();
        cbx_error error = CBX_ERROR_INIT;

        (void)state;
        assert_int_equal(expand("[\"{s}\"]", "s", long_text(131071), &error), 0);
        assert_int_equal(expand("[\"{s}\"]", "s", long_text(131072), &error), -EINVAL);
        assert_int_equal(expand("[\"x{s}\"]", "s", long_text(131071), &error), -EINVAL);
        assert_non_null(strstr(error.text, "too long"));
        for (int i = 0; i < 10; i++)
                json_array_append_new(list, long_text(131071));
        assert_int_equal(expand("[{\"each\": \"list\"}]", "list", list, &error), -EINVAL);
        list = json_array();
        for (int i = 0; i < 10000; i++)
                json_array_append_new(list, json_string(""));
        assert_int_equal(expand("[{\"each\": \"list\"}]", "list", list, &error), -EINVAL);
        /* A thousand times 4 MiB would be 4 GiB before it is too long. */
        assert_int_equal(buffer_printf(&often, "[\"x"), 0);
        for (int i = 0; i < 1000; i++)
                assert_int_equal(buffer_printf(&often, "{s}"), 0);
        assert_int_equal(buffer_printf(&often, "\"]"), 0);
        assert_int_equal(expand(often.data, "s", long_text(4 * MIB), &error), -EINVAL);
}

static void a_template_has_bounds(void **state)
{
        static const struct {
                const char *begin, *piece, *end;
        } forms[] = {
                { "[\"x\"", ", \"y\"", "]" },
                { "[\"x", "{s}", "\"]" },
                { "[\"x\"", ", {\"when\": \"flag\", \"then\": [\"y\", \"y\"]}", "]" },
                { "[\"x", "{t}", "\"]" },
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
                _cleanup_mistakes_ struct tool_mistakes mistakes = TOOL_MISTAKES_INIT;
                _cleanup_buffer_ struct buffer text = BUFFER_INIT;
                struct template *template = NULL;

                assert_int_equal(buffer_printf(&text, "%s", forms[i].begin), 0);
                for (int k = 0; k < 1025; k++)
                        assert_int_equal(buffer_printf(&text, "%s", forms[i].piece), 0);
                assert_int_equal(buffer_printf(&text, "%s", forms[i].end), 0);
                assert_int_equal(read_template(text.data, true, &mistakes, &template), -EINVAL);
                assert_true(mistakes.n > 0 && mistakes.n <= TOOL_MISTAKES_MAX);
                assert_null(template);
        }
}

/* ---- Mistakes ---- */

static void every_mistake_is_told_with_its_place(void **state)
{
        static const struct {
                const char *text, *where, *what;
        } wrong[] = {
                { "{}", "command", "must be an array" },
                { "[1]", "command[0]", "must be a string or an object" },
                { "[\"{x}\"]", "command[0]", "{x} is no property" },
                { "[\"a\", \"{\"]", "command[1]", "no end or no name" },
                { "[\"{}\"]", "command[0]", "no end or no name" },
                { "[\"}\"]", "command[0]", "a brace ends nothing" },
                { "[\"{list}\"]", "command[0]", "must have a type of string" },
                { "[\"{any}\"]", "command[0]", "must have a type of string" },
                { "[\"{flag}\"]", "command[0]", "may be missing" },
                { "[\"{maybe}\"]", "command[0]", "may be missing" },
                { "[\"{filled}\"]", "command[0]", "may be missing" },
                { "[{\"each\": \"s\"}]", "command[0].each", "must have a type of array" },
                { "[{\"json\": \"x\"}]", "command[0].json", "is no property" },
                { "[{\"json\": \"any\", \"dash\": 1}]", "command[0].dash",
                  "must be true or false" },
                { "[{\"file\": \"nonexistent\"}]", "command[0].file", "there is no file" },
                { "[{\"file\": \"/etc\"}]", "command[0].file", "there is no file" },
                { "[{\"x\": 1}]", "command[0]", "is no argument" },
                { "[{\"value\": \"a\", \"then\": []}]", "command[0].then", "" },
                { "[{\"when\": \"x\", \"then\": []}]", "command[0].when", "is no property" },
                { "[{\"when\": \"flag\"}]", "command[0].then", "must be an array" },
                { "[{\"when\": \"flag\", \"then\": [7]}]", "command[0].then[0]",
                  "must be a string" },
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                _cleanup_mistakes_ struct tool_mistakes mistakes = TOOL_MISTAKES_INIT;
                struct template *template = NULL;

                assert_int_equal(read_template(wrong[i].text, false, &mistakes, &template),
                                 -EINVAL);
                assert_null(template);
                if (mistakes.n != 1 || strcmp(mistakes.items[0].where, wrong[i].where) != 0 ||
                    !strstr(mistakes.items[0].text, wrong[i].what))
                        fail_msg("%s: %zu mistakes, %s: %s", wrong[i].text, mistakes.n,
                                 mistakes.items[0].where, mistakes.items[0].text);
        }
}

static void all_mistakes_are_found_at_once(void **state)
{
        _cleanup_mistakes_ struct tool_mistakes mistakes = TOOL_MISTAKES_INIT;
        struct template *template = NULL;

        (void)state;
        assert_int_equal(read_template("[\"{x}{y}\", 1, {\"when\": \"z\", \"then\": [\"}\"]}]",
                                       true, &mistakes, &template),
                         -EINVAL);
        assert_int_equal(mistakes.n, 5);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_value_is_one_argument),
                cmocka_unit_test(no_value_is_an_option_of_its_own),
                cmocka_unit_test(what_cannot_be_an_argument_is_refused),
                cmocka_unit_test(when_decides_by_what_is_there),
                cmocka_unit_test(a_command_line_has_the_bounds_of_the_kernel),
                cmocka_unit_test(a_template_has_bounds),
                cmocka_unit_test(every_mistake_is_told_with_its_place),
                cmocka_unit_test(all_mistakes_are_found_at_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
