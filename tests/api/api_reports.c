/* SPDX-License-Identifier: MIT */
/* What a report tells beside its fields: denials, guarantees, warnings, JSON. */
#include "api.h"

#include <errno.h>
#include <time.h>

static void denials(struct api *api)
{
        const cbx_denial *const *list;
        int file = 0, syscall = 0;

        /* Something on the host that the box does not show, and a call that it refuses. */
        api->spec.shell = "cat /etc/machine-id /etc/shadow; unshare -n true; true";
        api->spec.explain = 1;
        api_run(api);
        list = cbx_report_denials(&api->report);
        for (; list && *list; list++) {
                CHECK((*list)->kind[0] && (*list)->what[0] && (*list)->error[0] == 'E');
                CHECK((*list)->count > 0 && (*list)->allow);
                file |= strcmp((*list)->what, "/etc/shadow") == 0 &&
                        strcmp((*list)->kind, "file") == 0;
                syscall |= strncmp((*list)->what, "unshare", 7) == 0 &&
                           strcmp((*list)->kind, "syscall") == 0;
        }
        CHECK(file);
        CHECK(syscall);
        CHECK(cbx_report_denials(&api->report) == cbx_report_denials(&api->report));
        api_shell(api, "true");
        CHECK(!cbx_report_denials(&api->report)[0]);
}

static void guarantees(struct api *api)
{
        const cbx_guarantee *const *list;
        int files = 0, n = 0;

        api_shell(api, "true");
        list = cbx_report_guarantees(&api->report);
        for (; list && *list; list++, n++) {
                CHECK((*list)->name[0] && (*list)->by[0]);
                files |= strcmp((*list)->name, "files") == 0 && (*list)->enforced == 1;
        }
        CHECK(files && n >= 9);
        CHECK(cbx_report_guarantees(&api->report) == cbx_report_guarantees(&api->report));
}

static void warnings(struct api *api)
{
        api_shell(api, "true");
        CHECK(cbx_report_warnings(&api->report) && !cbx_report_warnings(&api->report)[0]);
        cbx_policy_unref(api->policy);
        /* A variable that makes programs load code passes by name, with a warning. */
        api->policy = api_policy("{\"environment\": {\"set\": {\"PYTHONPATH\": \"/tmp\"}}}");
        api_shell(api, "true");
        CHECK(cbx_report_warnings(&api->report)[0]);
        HAS(cbx_report_warnings(&api->report)[0], "PYTHONPATH");
}

static void empty(struct api *api)
{
        char *text = NULL;

        CHECK(!cbx_report_denials(&api->report)[0]);
        CHECK(!cbx_report_guarantees(&api->report)[0]);
        CHECK(!cbx_report_warnings(&api->report)[0]);
        EQUAL(cbx_report_exit_code(&api->report), 125);
        EQUAL(cbx_report_print(&api->report, &text, NULL), -EINVAL);
        api_refused(api, cbx_report_print(&api->report, &text, &api->error), -EINVAL, "report");
        CHECK(!text);
}

static void usage(struct api *api)
{
        uint64_t now = (uint64_t)time(NULL), then = api->report.started_at;

        EQUAL(then, 0);
        api_shell(api, "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done");
        then = api->report.started_at / 1000000000;
        CHECK(then + 60 >= now && then <= now + 60);
        CHECK(api->report.run_time > 0 && api->report.setup_time > 0);
        CHECK(api->report.cpu_user + api->report.cpu_system > 0);
        CHECK(api->report.memory_peak > 100000 && api->report.processes_peak >= 1);
}

/* Printed between two lines, for a reader who checks them against the schema. */
static void print(struct api *api)
{
        static const char *const missing[] = { "/nonexistent/tool", NULL };
        static const char *const shells[] = { "echo hello; echo world >&2; exit 3", "kill -SEGV $$",
                                              "printf '\\377\\000'", "yes | head -c 300000",
                                              "sleep 20" };
        char *text = NULL;

        for (size_t i = 0; i <= sizeof(shells) / sizeof(*shells); i++) {
                api->spec = (cbx_spec)CBX_SPEC_INIT;
                api->spec.id = "printed";
                api->spec.wall_limit = 2;
                if (i < sizeof(shells) / sizeof(*shells))
                        api->spec.shell = shells[i];
                else
                        api->spec.argv = missing;
                api_run(api);
                EQUAL(cbx_report_print(&api->report, &text, &api->error), 0);
                printf("report %s %d\n%s\n", cbx_reason_name(api->report.reason), api->report.code,
                       text);
                free(text);
                text = NULL;
        }
}

const struct api_test reports_tests[] = {
        { "denials", denials },
        { "guarantees", guarantees },
        { "warnings", warnings },
        { "a report with nothing in it", empty },
        { "times and usage", usage },
        { "reports as JSON", print },
        { NULL, NULL },
};
