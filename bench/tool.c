/* SPDX-License-Identifier: MIT */
/*
 * Calls of tools, beside what they are made of: posix_spawn, and a call in a box that was ready. A
 * tool has its arguments checked and its result judged besides; the process that runs a function
 * was started before it was asked for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static int nothing(const char *arguments, size_t length, cbx_reply *reply)
{
        (void)arguments;
        (void)length;
        return cbx_reply_result(reply, "1", 1);
}

struct kit {
        cbx_warden *warden;
        cbx_policy *policy;
        cbx_toolbox *toolbox;
};

static double run_spawn(struct contestant *self)
{
        (void)self;
        return spawn_true();
}

static double run_box(struct contestant *self)
{
        const struct kit *kit = self->with;

        return box_true(kit->warden, kit->policy);
}

static double call(const struct kit *kit, const char *name)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_report report = CBX_REPORT_INIT;
        cbx_call *call = NULL;
        const cbx_result *result;
        double before = now_ms(), after;

        if (cbx_toolbox_call(kit->toolbox, name, "{}", &call, &error) < 0 ||
            cbx_wait(call, &report, &error) < 0)
                die_callbox(name, &error);
        cbx_call_free(call);
        after = now_ms();
        result = cbx_report_result(&report);
        if (!result || !result->ok) {
                fprintf(stderr, "bench: %s went wrong: %s\n", name,
                        result && result->error ? result->error : report.text);
                exit(2);
        }
        cbx_report_free(&report);
        return after - before;
}

static double run_command(struct contestant *self)
{
        return call(self->with, "true");
}

static double run_function(struct contestant *self)
{
        return call(self->with, "nothing");
}

static void open_kit(struct kit *kit)
{
        static const char manifest[] =
                "{\"name\": \"true\", \"inputSchema\": {\"type\": \"object\"},"
                " \"run\": {\"command\": [\"/bin/true\"]}}";
        const cbx_tool function = { .name = "nothing",
                                    .input_schema = "{\"type\": \"object\"}",
                                    .run = nothing };
        cbx_toolbox_options opening = CBX_TOOLBOX_OPTIONS_INIT;
        cbx_error error = CBX_ERROR_INIT;

        kit->warden = open_warden(0);
        kit->policy = parse_policy("{}");
        opening.policy = kit->policy;
        if (cbx_toolbox_open(kit->warden, &opening, &kit->toolbox, &error) < 0 ||
            cbx_toolbox_add(kit->toolbox, manifest, strlen(manifest), &error) < 0 ||
            cbx_toolbox_add_function(kit->toolbox, &function, &error) < 0)
                die_callbox("open a toolbox", &error);
}

void race_tool(void)
{
        struct kit kit = { 0 };
        struct race race = { .name = "tool",
                             .what = "a tool that does nothing, request to result",
                             .rounds = options.rounds,
                             .pause_us = PAUSE_US };
        const struct contestant *box, *command, *function;

        open_kit(&kit);
        race_enter(&race, "posix_spawn", run_spawn, NULL);
        box = race_enter(&race, "a box that was ready", run_box, &kit);
        command = race_enter(&race, "a command as a tool", run_command, &kit);
        function = race_enter(&race, "a C function as a tool", run_function, &kit);
        race_at_most(&race, "a call of a C function, against a box that was ready", function, 1,
                     box);
        race_run(&race);
        printf("  against a box that was ready: a command as a tool %.2f x, a C function %.2f x\n",
               command->p50 / box->p50, function->p50 / box->p50);
        cbx_toolbox_close(kit.toolbox);
        cbx_warden_close(kit.warden);
        cbx_policy_unref(kit.policy);
}
