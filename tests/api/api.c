/* SPDX-License-Identifier: MIT */
/* The runner of the API tests, and what they share. */
#include "api.h"

#include <poll.h>
#include <unistd.h>

#define PATIENCE 60000 /* milliseconds until a test is taken to hang */

static const char *current = "";

_Noreturn void fail(const char *file, int line, const char *what)
{
        printf("not ok - %s: %s:%d: %s\n", current, file, line, what);
        fflush(stdout);
        _exit(1);
}

void check_equal(const char *file, int line, const char *what, long long got, long long wanted)
{
        char text[512];

        snprintf(text, sizeof(text), "%s is %lld, not %lld", what, got, wanted);
        if (got != wanted)
                fail(file, line, text);
}

void check_text(const char *file, int line, const char *what, const char *got, const char *wanted)
{
        char text[1024];

        snprintf(text, sizeof(text), "%s is \"%s\", not \"%s\"", what, got ? got : "(NULL)",
                 wanted);
        if (!got || strcmp(got, wanted) != 0)
                fail(file, line, text);
}

void check_has(const char *file, int line, const char *what, const char *text, const char *part)
{
        char said[1024];

        snprintf(said, sizeof(said), "%s is \"%s\", without \"%s\"", what, text ? text : "(NULL)",
                 part);
        if (!text || !strstr(text, part))
                fail(file, line, said);
}

cbx_policy *api_policy(const char *text)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_policy *policy = NULL;

        if (cbx_policy_parse(text, strlen(text), &policy, &error) < 0)
                fail(__FILE__, __LINE__, error.text);
        return policy;
}

void *api_allocate(size_t size)
{
        void *memory = malloc(size);

        if (!memory)
                fail(__FILE__, __LINE__, "out of memory");
        return memory;
}

void api_run(struct api *api)
{
        cbx_report_free(&api->report);
        if (cbx_run(api->warden, api->policy, &api->spec, &api->report, &api->error) < 0)
                fail(__FILE__, __LINE__, api->error.text);
}

void api_shell(struct api *api, const char *text)
{
        api->spec = (cbx_spec)CBX_SPEC_INIT;
        api->spec.shell = text;
        api_run(api);
}

cbx_call *api_start(struct api *api)
{
        cbx_call *call = NULL;

        if (cbx_start(api->warden, api->policy, &api->spec, &call, &api->error) < 0)
                fail(__FILE__, __LINE__, api->error.text);
        return call;
}

void api_next(struct api *api, cbx_call *call, cbx_event *event)
{
        struct pollfd fd = { .fd = cbx_call_fd(call), .events = POLLIN };

        *event = (cbx_event)CBX_EVENT_INIT;
        for (;;) {
                EQUAL(cbx_step(call, event, &api->error), 0);
                if (event->kind != CBX_EVENT_NONE)
                        return;
                EQUAL(poll(&fd, 1, PATIENCE), 1);
        }
}

void api_refused(struct api *api, int returned, int code, const char *where)
{
        EQUAL(returned, code);
        EQUAL(api->error.code, code);
        CHECK(api->error.text[0]);
        SAME_TEXT(api->error.where, where);
        api->error = (cbx_error)CBX_ERROR_INIT;
}

static void run_test(const struct api_test *test)
{
        struct api api = { .error = CBX_ERROR_INIT,
                           .report = CBX_REPORT_INIT,
                           .spec = CBX_SPEC_INIT };

        current = test->name;
        if (cbx_warden_open(NULL, &api.warden, &api.error) < 0)
                fail(__FILE__, __LINE__, api.error.text);
        api.policy = api_policy("{}");
        test->run(&api);
        cbx_report_free(&api.report);
        CHECK(!cbx_policy_unref(api.policy));
        CHECK(!cbx_warden_close(api.warden));
        printf("ok - %s\n", current);
        fflush(stdout);
}

static int is_wanted(const char *name, int argc, char **argv)
{
        for (int i = 1; i < argc; i++)
                if (strcmp(argv[i], name) == 0)
                        return 1;
        return argc < 2;
}

int main(int argc, char **argv)
{
        const struct api_test *const tables[] = { structs_tests, calls_tests, reports_tests,
                                                  modes_tests, NULL };
        int list = argc == 2 && strcmp(argv[1], "--list") == 0, n = 0;

        for (size_t i = 0; tables[i]; i++)
                for (const struct api_test *test = tables[i]; test->name; test++)
                        if (list)
                                puts(test->name);
                        else if (is_wanted(test->name, argc, argv)) {
                                run_test(test);
                                n++;
                        }
        return list || n > 0 ? 0 : 2;
}
