/* SPDX-License-Identifier: MIT */
/*
 * Memory that runs out while a manifest, arguments or a result is read: each allocation in turn
 * fails, alone and with all that follow. What comes of it is what would have come otherwise, or a
 * word that memory ran out; never something else, and nothing is left behind.
 *
 * The linker puts the functions below in the place of those of the C library (tests/meson.build).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tool/tool.h"

#define ALLOCATIONS_MAX 100000 /* of one try; more are a mistake in this test */

/* ---- Allocations that fail ---- */

static struct {
        bool counts;
        bool forever; /* after the first that failed, all fail */
        long left;    /* that succeed */
        unsigned failed;
        long live; /* that were made and not freed */
} memory;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_reallocarray(void *old, size_t n, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t length);
int __real_vasprintf(char **ret, const char *format, va_list args);
int __real___vasprintf_chk(char **ret, int flag, const char *format, va_list args);
void __real_free(void *p);
json_t *__real_json_loadb(const char *text, size_t length, size_t flags, json_error_t *error);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_reallocarray(void *old, size_t n, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t length);
int __wrap_vasprintf(char **ret, const char *format, va_list args);
int __wrap___vasprintf_chk(char **ret, int flag, const char *format, va_list args);
void __wrap_free(void *p);
json_t *__wrap_json_loadb(const char *text, size_t length, size_t flags, json_error_t *error);

static bool fails(void)
{
        if (!memory.counts || memory.left-- > 0)
                return false;
        if (memory.failed > 0 && !memory.forever)
                return false;
        memory.failed++;
        errno = ENOMEM;
        return true;
}

static void *made(void *p)
{
        memory.live += p != NULL;
        return p;
}

void *__wrap_malloc(size_t size)
{
        return fails() ? NULL : made(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
        return fails() ? NULL : made(__real_calloc(n, size));
}

void *__wrap_realloc(void *old, size_t size)
{
        void *p = fails() ? NULL : __real_realloc(old, size);

        memory.live += p && !old;
        return p;
}

void *__wrap_reallocarray(void *old, size_t n, size_t size)
{
        void *p = fails() ? NULL : __real_reallocarray(old, n, size);

        memory.live += p && !old;
        return p;
}

char *__wrap_strdup(const char *text)
{
        return fails() ? NULL : made(__real_strdup(text));
}

char *__wrap_strndup(const char *text, size_t length)
{
        return fails() ? NULL : made(__real_strndup(text, length));
}

int __wrap_vasprintf(char **ret, const char *format, va_list args)
{
        int n = fails() ? -1 : __real_vasprintf(ret, format, args);

        memory.live += n >= 0;
        return n;
}

/* What the header makes of it where it is fortified. */
int __wrap___vasprintf_chk(char **ret, int flag, const char *format, va_list args)
{
        int n = fails() ? -1 : __real___vasprintf_chk(ret, flag, format, args);

        memory.live += n >= 0;
        return n;
}

void __wrap_free(void *p)
{
        memory.live -= p != NULL;
        __real_free(p);
}

/* Where jansson has no memory for a string, it calls the text wrong; so it has some. */
json_t *__wrap_json_loadb(const char *text, size_t length, size_t flags, json_error_t *error)
{
        bool counts = memory.counts;
        json_t *json;

        memory.counts = false;
        json = __real_json_loadb(text, length, flags, error);
        memory.counts = counts;
        return json;
}

/* Try it with every allocation as the first that fails, until none does. */
static void starve(void (*attempt)(void *with), void *with)
{
        for (int forever = 0; forever < 2; forever++)
                for (long n = 0;; n++) {
                        long before = memory.live;

                        memory.forever = forever;
                        memory.failed = 0;
                        memory.left = n;
                        attempt(with);
                        memory.counts = false;
                        if (memory.live != before)
                                fail_msg("allocation %ld fails: %ld are left behind", n,
                                         memory.live - before);
                        if (memory.failed == 0)
                                break;
                        assert_true(n < ALLOCATIONS_MAX);
                }
}

/* ---- Manifests ---- */

struct manifest {
        const char *text;
        bool good;
};

static const char good[] =
        "{\"name\": \"t\", \"title\": \"T\", \"inputSchema\": {\"type\": \"object\", "
        "\"properties\":"
        " {\"a\": {\"type\": \"string\", \"pattern\": \"^x\", \"default\": \"x\"}, \"list\":"
        " {\"type\": \"array\"}}}, \"outputSchema\": {\"$ref\": \"#/$defs/n\", \"$defs\": {\"n\":"
        " {\"type\": \"object\", \"additionalProperties\": {\"type\": \"number\"}}}},"
        " \"applyDefaults\": true, \"annotations\": {\"readOnlyHint\": true}, \"run\": "
        "{\"command\":"
        " [\"echo\", \"--a={a}\", {\"file\": \"/etc/passwd\"}, {\"when\": \"list\", \"then\":"
        " [{\"each\": \"list\"}, {\"json\": \"list\"}]}], \"output\": \"json\"},"
        " \"policy\": {\"files\": {\"read\": [\"/srv\"]}}}";

static const char object[] =
        "{\"name\": \"o\", \"inputSchema\": {\"type\": \"object\"}, \"run\": {\"object\":"
        " \"/proc/self/exe\", \"function\": \"f\"}}";

static const char broken[] =
        "{\"nmae\": 1, \"inputSchema\": {\"type\": \"object\", \"properties\": {\"a\": {\"type\":"
        " \"x\"}, \"b\": {\"minimum\": \"x\"}}}, \"run\": {\"shell\": 1, \"parameters\": [\"{aa}\","
        " {\"each\": \"a\"}, {\"x\": 1}, {\"when\": \"c\", \"then\": []}]}, \"policy\":"
        " {\"files\": {\"raed\": []}, \"limits\": {\"wall\": -1}}}";

static cbx_policy *empty_policy;

static int read_manifest(const char *text, struct tool_mistakes *mistakes, struct tool **ret_tool)
{
        struct tool_origin origin = { .directory = "/",
                                      .server = "/bin/true",
                                      .policy = empty_policy };

        return manifest_read(text, strlen(text), &origin, mistakes, ret_tool);
}

static void try_manifest(void *with)
{
        _cleanup_mistakes_ struct tool_mistakes mistakes = TOOL_MISTAKES_INIT;
        _cleanup_tool_ struct tool *tool = NULL;
        const struct manifest *manifest = with;
        int r;

        memory.counts = true;
        r = read_manifest(manifest->text, &mistakes, &tool);
        memory.counts = false;
        if (r == -ENOMEM) {
                assert_true(memory.failed > 0);
                assert_null(tool);
        } else if (manifest->good) {
                if (r < 0)
                        fail_msg("-EINVAL: %s", mistakes.n > 0 ? mistakes.items[0].text : "");
                assert_non_null(tool->input);
                assert_non_null(tool->policy);
                assert_true(!tool->result == !json_object_get(tool->document, "outputSchema"));
        } else {
                assert_int_equal(r, -EINVAL);
                assert_true(mistakes.n > 0);
        }
        /* Whatever is listed can be read. */
        for (size_t i = 0; i < mistakes.n; i++)
                assert_true(mistakes.items[i].where && mistakes.items[i].text[0] &&
                            mistakes.items[i].hint);
}

static void a_manifest_without_memory_is_no_tool(void **state)
{
        (void)state;
        starve(try_manifest, &(struct manifest){ good, true });
        starve(try_manifest, &(struct manifest){ object, true });
}

static void a_broken_manifest_without_memory_stays_broken(void **state)
{
        (void)state;
        starve(try_manifest, &(struct manifest){ broken, false });
        starve(try_manifest, &(struct manifest){ "{\"name\": ]", false });
}

/* ---- Arguments ---- */

struct given {
        struct tool *tool;
        const char *text;
        int expected;
};

static void try_arguments(void *with)
{
        _cleanup_json_ json_t *arguments = NULL, *refusal = NULL;
        const struct given *given = with;
        bool wide = false;
        int r;

        memory.counts = true;
        r = arguments_read(given->tool, given->text, strlen(given->text), &arguments, &wide,
                           &refusal);
        memory.counts = false;
        if (r == -ENOMEM) {
                assert_true(memory.failed > 0);
                assert_true(!arguments && !refusal);
                return;
        }
        assert_int_equal(r, given->expected);
        if (r == 0) /* with its default */
                assert_string_equal(json_string_value(json_object_get(arguments, "a")), "x");
        else
                assert_non_null(json_object_get(refusal, "error"));
}

static void try_template(void *with)
{
        const struct given *given = with;
        _cleanup_json_ json_t *arguments = json_loads(given->text, 0, NULL);
        _cleanup_list_ char **argv = list_new();
        _cleanup_mistakes_ struct tool_mistakes mistakes = TOOL_MISTAKES_INIT;
        int r;

        memory.counts = true;
        r = template_expand(given->tool->template, arguments, &mistakes, &argv);
        memory.counts = false;
        assert_true(r == given->expected || (r == -ENOMEM && memory.failed > 0));
        assert_true(r != 0 || list_length(argv) == 6);
}

static void arguments_without_memory_are_not_refused(void **state)
{
        _cleanup_mistakes_ struct tool_mistakes mistakes = TOOL_MISTAKES_INIT;
        _cleanup_tool_ struct tool *tool = NULL;

        (void)state;
        assert_int_equal(read_manifest(good, &mistakes, &tool), 0);
        starve(try_arguments, &(struct given){ tool, "{\"list\": [1, \"b\"]}", 0 });
        starve(try_arguments, &(struct given){ tool, "{\"a\": 1, \"list\": {}}", -EINVAL });
        starve(try_arguments, &(struct given){ tool, "{\"a\": \"x\"", -EINVAL });
        starve(try_template, &(struct given){ tool, "{\"a\": \"x\", \"list\": [1, \"b\"]}", 0 });
        starve(try_template, &(struct given){ tool, "{\"a\": \"x\", \"list\": [[]]}", -EINVAL });
}

/* ---- Results ---- */

struct ended {
        struct tool *tool;
        struct report *report;
        json_t *expected;
};

static void try_outcome(void *with)
{
        const struct ended *ended = with;
        _cleanup_json_ json_t *outcome = NULL;

        memory.counts = true;
        outcome = outcome_judge(ended->tool, ended->report, false);
        memory.counts = false;
        if (outcome)
                assert_true(json_equal(outcome, ended->expected));
        else
                assert_true(memory.failed > 0);
}

static void starve_outcome(struct tool *tool, int code, const char *output)
{
        struct report report = { .reason = REASON_EXITED, .code = code };
        struct ended ended = { tool, &report, NULL };

        for (size_t i = 0; i < STREAMS; i++) {
                output_init(&report.output[i], 1000);
                assert_int_equal(output_add(&report.output[i], output, strlen(output)), 0);
        }
        ended.expected = outcome_judge(tool, &report, false);
        assert_non_null(ended.expected);
        starve(try_outcome, &ended);
        json_decref(ended.expected);
        report_free(&report);
}

static void a_result_without_memory_is_no_other_result(void **state)
{
        _cleanup_mistakes_ struct tool_mistakes mistakes = TOOL_MISTAKES_INIT;
        _cleanup_tool_ struct tool *tool = NULL;

        (void)state;
        assert_int_equal(read_manifest(good, &mistakes, &tool), 0);
        starve_outcome(tool, 0, "{\"a\": 1, \"b\": 2.5}");
        starve_outcome(tool, 0, "{\"a\": 1, \"b\": \"2.5\"}");
        starve_outcome(tool, 0, "{\"a\": ");
        starve_outcome(tool, 1, "went wrong \xff");
        tool->output = TOOL_TEXT;
        starve_outcome(tool, 0, "text \xff");
        tool->output = TOOL_LINES;
        starve_outcome(tool, 0, "{\"log\": \"l\"}\n{\"text\": \"t\"}\n{\"result\": {\"a\": 1}}");
        starve_outcome(tool, 0, "{\"error\": \"e\"}\n{\"error\": \"f\"}\n");
        starve_outcome(tool, 0, "{\"what\": 1}\n");
        tool->kind = TOOL_FUNCTION;
        starve_outcome(tool, 0, "no frame");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_manifest_without_memory_is_no_tool),
                cmocka_unit_test(a_broken_manifest_without_memory_stays_broken),
                cmocka_unit_test(arguments_without_memory_are_not_refused),
                cmocka_unit_test(a_result_without_memory_is_no_other_result),
        };
        int failed;

        json_set_alloc_funcs(malloc, free); /* these, which can fail */
        if (cbx_policy_parse("{}", 2, &empty_policy, NULL) < 0)
                return 1;
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        cbx_policy_unref(empty_policy);
        return failed;
}
