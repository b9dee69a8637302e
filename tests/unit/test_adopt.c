/* SPDX-License-Identifier: MIT */
/* What a forked box says in its page (box/adopt.c): believed where it is possible, or not at all.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "box/box.h"
#include "warden/denials.h"

static struct box_page *new_page(void)
{
        struct box_page *page = calloc(1, sizeof(*page));

        assert_non_null(page);
        page->started = time_now();
        page->ended = time_now();
        page->n_denials = 1;
        page->denials[0].error = EPERM;
        page->n_traces = 1;
        page->traces[0] = (struct box_trace){ .error = ENOENT, .count = 1, .text = "/etc/shadow" };
        return page;
}

/* Is it believed? Either way it is a copy, with nothing in it that is not within bounds. */
static bool is_believed(struct box_page *page)
{
        struct box box = { .page = page };
        bool sense = false;
        struct box_page *copy = box_copy_page(&box, &sense);

        assert_non_null(copy);
        if (!sense)
                assert_true(copy->n_denials == 0 && copy->n_traces == 0 && copy->status == 0 &&
                            copy->ended == 0 && copy->failure.step[0] == '\0');
        free(copy);
        return sense;
}

static void test_what_is_possible(void **state)
{
        struct box_page *page = new_page();

        (void)state;
        assert_true(is_believed(page));
        for (int code = 0; code < 256; code++) {
                page->status = code << 8;
                assert_true(is_believed(page));
        }
        page->status = SIGKILL;
        assert_true(is_believed(page));
        page->status = SIGSEGV | 0x80; /* and a core */
        assert_true(is_believed(page));
        strcpy(page->failure.step, "mount");
        page->failure.error = ENOENT;
        page->verdict = BOX_DENIED;
        assert_true(is_believed(page));
        free(page);
}

/* Each is what no init of ours writes. */
#define LIES(lie)                                                                                  \
        lie(status, 0x7f) lie(status, 92) lie(status, -1) lie(status, 1 << 16) lie(                \
                verdict, 77) lie(verdict, -1) lie(landlock_abi, -1) lie(landlock_abi, 1 << 20)     \
                lie(exec_failed, true) lie(started, UINT64_MAX) lie(ended, UINT64_MAX) lie(        \
                        cpu, UINT64_MAX) lie(memory_peak,                                          \
                                             UINT64_MAX) lie(processes_peak,                       \
                                                             UINT64_MAX) lie(n_denials, 65)        \
                        lie(n_denials, UINT32_MAX) lie(denials_lost, UINT64_MAX) lie(              \
                                traces_lost, UINT64_MAX) lie(denials[0].error,                     \
                                                             -1) lie(denials[0].error, 1 << 20)    \
                                lie(denials[0].count, UINT64_MAX) lie(traces[0].error, -1) lie(    \
                                        traces[0].kind,                                            \
                                        99) lie(traces[0].kind,                                    \
                                                -1) lie(traces[0].count,                           \
                                                        UINT64_MAX) lie(traces[0].text[0], 0)      \
                                        lie(usage.ru_maxrss, -1) lie(usage.ru_maxrss, INT64_MAX)   \
                                                lie(usage.ru_utime.tv_sec,                         \
                                                    -1) lie(usage.ru_utime.tv_sec, INT64_MAX)      \
                                                        lie(usage.ru_stime.tv_usec, -1) lie(       \
                                                                usage.ru_stime.tv_usec, 1000000)   \
                                                                lie(failure.error, -1)             \
                                                                        lie(failure.step[0], 'x')

static void test_what_is_not(void **state)
{
        (void)state;
#define TELL(field, value)                                                                         \
        {                                                                                          \
                struct box_page *page = new_page();                                                \
                page->field = (value);                                                             \
                if (is_believed(page))                                                             \
                        fail_msg("believed: " #field " = " #value);                                \
                free(page);                                                                        \
        }
        LIES(TELL)
}

static void test_texts_without_an_end(void **state)
{
        struct box_page *page = new_page();

        (void)state;
        memset(page->traces[0].text, 'x', sizeof(page->traces[0].text));
        assert_false(is_believed(page));
        page->traces[0].text[1] = '\0';
        assert_true(is_believed(page));
        page->failure.error = EPERM;
        memset(page->failure.step, 'x', sizeof(page->failure.step));
        assert_false(is_believed(page));
        page->failure.step[1] = '\0';
        memset(page->failure.detail, 'x', sizeof(page->failure.detail));
        assert_false(is_believed(page));
        free(page);
}

/* Paths of a stranger's choice are told as they are: a look at them may take for ever. */
static void test_paths_are_not_looked_for(void **state)
{
        cbx_policy policy = { 0 };
        struct plan plan = { .policy = &policy };
        struct box_page *page = new_page();
        json_t *found;

        (void)state;
        page->n_denials = 0;
        strcpy(page->traces[0].text, "/callbox-is-not-there/file");
        plan.looks = true; /* as for who runs the command himself */
        found = denials_of(&plan, page);
        assert_int_equal(json_array_size(found), 0);
        json_decref(found);
        plan.looks = false;
        found = denials_of(&plan, page);
        assert_int_equal(json_array_size(found), 1);
        json_decref(found);
        free(page);
}

/* A name that no guard of ours would tell, above all that is protected. */
static void test_a_protected_name_is_one_of_the_plan(void **state)
{
        static char deep[4096];
        cbx_policy policy = { 0 };
        struct plan_guard guard = { .path = deep, .name = "hooks" };
        struct plan plan = { .policy = &policy, .guards = &guard, .n_guards = 1 };
        struct box_page *page = new_page();
        json_t *found;

        (void)state;
        memset(deep, 'x', sizeof(deep) - 1);
        deep[0] = deep[2] = '/';
        deep[1] = 'a';
        memcpy(deep + sizeof(deep) - 7, "/hooks", 7);
        page->n_denials = 0;
        page->traces[0].kind = BOX_TRACE_PROTECTED;
        strcpy(page->traces[0].text, "/a");
        found = denials_of(&plan, page);
        assert_string_equal(json_string_value(json_object_get(json_array_get(found, 0), "allow")),
                            "--unprotect hooks");
        json_decref(found);
        free(page);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_is_possible),
                cmocka_unit_test(test_what_is_not),
                cmocka_unit_test(test_texts_without_an_end),
                cmocka_unit_test(test_paths_are_not_looked_for),
                cmocka_unit_test(test_a_protected_name_is_one_of_the_plan),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
