/* SPDX-License-Identifier: MIT */
/* C functions as tools: where they are, and how the process in the box is asked for one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tool/function.h"

static void assert_request(const struct function *function, const char *arguments,
                           const char *expected)
{
        _cleanup_buffer_ struct buffer request = BUFFER_INIT;

        assert_int_equal(function_request(function, arguments, strlen(arguments), &request), 0);
        assert_int_equal(request.length, strlen(expected));
        assert_string_equal(request.data, expected);
}

static void a_request_is_a_line_and_the_arguments(void **state)
{
        (void)state;
        assert_request(&(struct function){ .symbol = (char *)"add" }, "{\"a\":1}",
                       "name add\n{\"a\":1}");
        assert_request(&(struct function){ .argv = (char *[]){ (char *)"serve", NULL },
                                           .line = (char *)"module:f" },
                       "{}", "module:f\n{}");
        assert_request(&(struct function){ .offset = 0x1f00, .device = 0x801, .inode = 12 }, "{}",
                       "offset 1f00 801 c \n{}");
        assert_request(&(struct function){ .offset = UINT64_MAX, .object = (char *)"/x/a b.so" },
                       "{}", "offset ffffffffffffffff 0 0 /x/a b.so\n{}");
}

/* Arguments are JSON: a line break in them is no second line of the request. */
static void arguments_are_kept_byte_for_byte(void **state)
{
        static const char arguments[] = "{\n\"name add\":\t1}\n";
        struct function function = { .symbol = (char *)"f" };
        _cleanup_buffer_ struct buffer request = BUFFER_INIT;
        const char *line;

        (void)state;
        assert_int_equal(function_request(&function, arguments, sizeof(arguments), &request), 0);
        line = memchr(request.data, '\n', request.length);
        assert_int_equal(request.length - (size_t)(line + 1 - request.data), sizeof(arguments));
        assert_memory_equal(line + 1, arguments, sizeof(arguments));
}

static int some_function(const char *arguments, size_t length, cbx_reply *reply)
{
        (void)arguments;
        (void)reply;
        return (int)length;
}

static void a_program_that_does_not_serve_has_no_functions(void **state)
{
        struct function function = { 0 };
        cbx_error error = CBX_ERROR_INIT;

        (void)state;
        function_served = false;
        assert_int_equal(function_find(some_function, &function, &error), -EINVAL);
        assert_non_null(strstr(error.hint, "cbx_serve_functions"));
}

static void a_function_of_the_program_is_an_offset_in_it(void **state)
{
        struct function function = { 0 };
        cbx_error error = CBX_ERROR_INIT;

        (void)state;
        function_served = true;
        assert_int_equal(function_find(some_function, &function, &error), 0);
        assert_null(function.object);
        assert_null(function.symbol);
        assert_true(function.offset > 0 && function.offset < (uintptr_t)some_function);
        assert_int_equal(function_check(&function, &error), 0);
        function.inode++;
        assert_int_equal(function_check(&function, &error), -ESTALE);
        assert_non_null(strstr(error.text, "was replaced"));
        assert_true(list_length(function.files) > 1); /* the program and the C library */
        function_free(&function);
}

static void a_function_of_a_library_is_an_offset_in_it(void **state)
{
        struct function function = { 0 };
        cbx_error error = CBX_ERROR_INIT;
        cbx_function *run = (cbx_function *)(void (*)(void))strtol;

        (void)state;
        function_served = true;
        assert_int_equal(function_find(run, &function, &error), 0);
        assert_true(!function.object || function.object[0] == '/');
        function_free(&function);
}

static void what_is_no_function_is_refused(void **state)
{
        struct function function = { 0 };
        cbx_error error = CBX_ERROR_INIT;

        (void)state;
        function_served = true;
        assert_int_equal(function_find((cbx_function *)16, &function, &error), -EINVAL);
        assert_non_null(strstr(error.text, "in no file"));
}

static void only_a_shared_object_is_loaded(void **state)
{
        static const char *const others[] = { "/etc/passwd", "/dev/null", "/", "/nonexistent" };
        struct function function = { 0 };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
                cbx_error error = CBX_ERROR_INIT;

                assert_int_equal(function_of_object(others[i], "f", "/bin/true", &function, &error),
                                 -EINVAL);
                assert_non_null(strstr(error.text, "no shared object"));
        }
        assert_int_equal(function_of_object("/bin/true", "f", "/nonexistent", &function, NULL),
                         -ENOENT);
        assert_int_equal(function_of_object("/bin/true", "f", "/bin/true", &function, NULL), 0);
        assert_string_equal(function.symbol, "f");
        function_free(&function);
}

static void libraries_outside_the_system_are_found_by_a_variable(void **state)
{
        char *files[] = { (char *)"/usr/lib/a.so",
                          (char *)"/opt/x/prog",
                          (char *)"/opt/x/b.so",
                          (char *)"/srv/c:d/c.so",
                          (char *)"/e.so",
                          (char *)"/srv/f/g.so",
                          NULL };
        struct function function = { .program = (char *)"/opt/x/prog", .files = files };
        _cleanup_free_ char *variable = NULL;

        (void)state;
        assert_int_equal(function_environment(&function, &variable), 0);
        assert_string_equal(variable, "LD_LIBRARY_PATH=/opt/x:/srv/f");
        free(variable);
        variable = NULL;
        files[1] = NULL;
        assert_int_equal(function_environment(&function, &variable), 0);
        assert_null(variable);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_request_is_a_line_and_the_arguments),
                cmocka_unit_test(arguments_are_kept_byte_for_byte),
                cmocka_unit_test(a_program_that_does_not_serve_has_no_functions),
                cmocka_unit_test(a_function_of_the_program_is_an_offset_in_it),
                cmocka_unit_test(a_function_of_a_library_is_an_offset_in_it),
                cmocka_unit_test(what_is_no_function_is_refused),
                cmocka_unit_test(only_a_shared_object_is_loaded),
                cmocka_unit_test(libraries_outside_the_system_are_found_by_a_variable),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
