/* SPDX-License-Identifier: MIT */
/*
 * The agent of these tools.
 *
 *   functions call [OPTION...] <LINES   each line is NAME ARGUMENTS: all are started at once, then
 *                                       a line of JSON is printed for each: its report, result,
 *                                       mistakes and events
 *   functions list [QUERY]              the tools, as JSON
 *   functions check                     what else the API promises; prints what does not hold
 *
 * Options: events, policy=JSON, wall=SECONDS, capture=BYTES, result=BYTES, id=ID, calls=N, kill=MS
 */
#include "functions.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_MAX 256

struct agent {
        cbx_warden *warden;
        cbx_toolbox *toolbox;
        cbx_spec spec;
        cbx_error error;
        int kill; /* milliseconds after the start; -1: not */
};

struct running {
        cbx_call *call;
        json_t *events;
        int ended;
};

/* ---- Printing ---- */

static json_t *text_or_null(const char *text)
{
        return text ? json_string(text) : json_null();
}

static json_t *result_to_json(const cbx_report *report)
{
        const cbx_result *result = cbx_report_result(report);

        if (!result)
                return json_null();
        return json_pack("{s:s, s:b, s:o, s:o, s:o, s:b, s:o, s:I, s:I}", "tool", result->tool,
                         "ok", result->ok, "output", text_or_null(result->output), "text",
                         text_or_null(result->text), "error", text_or_null(result->error), "denied",
                         result->denied, "reason", text_or_null(result->reason), "duration",
                         (json_int_t)result->duration, "started_at",
                         (json_int_t)result->started_at);
}

static json_t *mistakes_to_json(const cbx_report *report)
{
        const cbx_mistake *const *mistake = cbx_report_mistakes(report);
        json_t *list = json_array();

        for (; mistake && *mistake; mistake++)
                json_array_append_new(list, json_pack("[s, s, s]", (*mistake)->path,
                                                      (*mistake)->keyword, (*mistake)->text));
        return list;
}

static int print_report(struct agent *agent, struct running *running)
{
        cbx_report report = CBX_REPORT_INIT;
        char *text = NULL;
        json_t *line;
        int r = cbx_wait(running->call, &report, &agent->error);

        if (r == 0)
                r = cbx_report_print(&report, &text, &agent->error);
        if (r == 0) {
                line = json_pack("{s:o, s:o, s:o, s:O, s:I, s:I}", "report",
                                 json_loads(text, JSON_ALLOW_NUL, NULL), "result",
                                 result_to_json(&report), "mistakes", mistakes_to_json(&report),
                                 "events", running->events, "setup", (json_int_t)report.setup_time,
                                 "kept", (json_int_t)report.result.length);
                json_dumpf(line, stdout, JSON_COMPACT);
                putchar('\n');
                json_decref(line);
        }
        free(text);
        cbx_report_free(&report);
        return r;
}

/* ---- Calling ---- */

static void note(json_t *events, const cbx_event *event)
{
        json_t *text = json_stringn(event->data ? event->data : "", event->length);

        if (!text)
                text = json_string("?");
        if (event->kind == CBX_EVENT_PROGRESS)
                json_array_append_new(events, json_pack("[s, f, f, o]", "progress", event->done,
                                                        event->total, text));
        else if (event->kind == CBX_EVENT_LOG)
                json_array_append_new(events, json_pack("[s, s, o]", "log", event->level, text));
        else
                json_array_append_new(events, json_pack("[i, o]", event->kind, text));
}

static int take_events(struct agent *agent, struct running *running)
{
        cbx_event event = CBX_EVENT_INIT;
        int r;

        do {
                r = cbx_step(running->call, &event, &agent->error);
                if (r == 0 && event.kind == CBX_EVENT_ENDED)
                        running->ended = 1;
                else if (r == 0 && event.kind != CBX_EVENT_NONE)
                        note(running->events, &event);
        } while (r == 0 && event.kind != CBX_EVENT_NONE && !running->ended);
        return r;
}

static int watch(struct agent *agent, struct running *running, size_t n)
{
        struct pollfd fds[CALLS_MAX];
        size_t left = n;
        int r = 0;

        while (r == 0 && left > 0) {
                nfds_t k = 0;

                left = 0;
                for (size_t i = 0; r == 0 && i < n; i++) {
                        if (!running[i].ended)
                                r = take_events(agent, &running[i]);
                        if (!running[i].ended) {
                                fds[k++] = (struct pollfd){ .fd = cbx_call_fd(running[i].call),
                                                            .events = POLLIN };
                                left++;
                        }
                }
                if (r == 0 && left > 0)
                        (void)poll(fds, k, 60000);
        }
        return r;
}

static int call_all(struct agent *agent)
{
        static struct running running[CALLS_MAX];
        char *line = NULL;
        size_t room = 0, n = 0;
        int r = 0;

        while (r == 0 && n < CALLS_MAX && getline(&line, &room, stdin) > 0) {
                char *arguments = strchr(line, ' ');

                line[strcspn(line, "\n")] = '\0';
                if (arguments)
                        *arguments++ = '\0';
                running[n].events = json_array();
                r = cbx_toolbox_start(agent->toolbox, line, arguments, &agent->spec,
                                      &running[n].call, &agent->error);
                n += r == 0;
        }
        free(line);
        if (r == 0 && agent->kill >= 0) {
                (void)poll(NULL, 0, agent->kill);
                for (size_t i = 0; i < n; i++)
                        cbx_kill(running[i].call);
        }
        if (r == 0)
                r = watch(agent, running, n);
        for (size_t i = 0; i < n; i++) {
                if (r == 0)
                        r = print_report(agent, &running[i]);
                cbx_call_free(running[i].call);
                json_decref(running[i].events);
        }
        return r;
}

/* ---- What else the API promises ---- */

static int wrong;

/* Of a call that must not be started. */
static int refused(struct agent *agent, const char *name, const char *arguments,
                   const cbx_spec *spec, const char *where, cbx_error *error)
{
        cbx_call *call = NULL;
        int r = cbx_toolbox_start(agent->toolbox, name, arguments, spec, &call, error);
        int right = r == -EINVAL && !call && strcmp(error->where, where) == 0;

        cbx_call_free(call);
        return right;
}

static void expect(int holds, const char *what, const cbx_error *error)
{
        if (!holds) {
                printf("wrong: %s (%d, %s: %s)\n", what, error->code, error->where, error->text);
                wrong++;
        }
}

static void check_structs(struct agent *agent)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_tool tool = good_tools[0];
        cbx_toolbox_options options = CBX_TOOLBOX_OPTIONS_INIT;
        cbx_toolbox *other = NULL;
        struct {
                cbx_tool known;
                int unknown;
        } newer = { .known = good_tools[0] };

        expect(cbx_toolbox_open(NULL, NULL, &other, &error) == -EINVAL && !other, "no warden",
               &error);
        options.size = 3;
        expect(cbx_toolbox_open(agent->warden, &options, &other, &error) == -EINVAL && !other,
               "options without a size", &error);
        tool.run = NULL;
        expect(cbx_toolbox_add_function(agent->toolbox, &tool, &error) == -EINVAL &&
                       strcmp(error.where, "run") == 0,
               "no function", &error);
        tool = good_tools[0];
        tool.name = NULL;
        expect(cbx_toolbox_add_function(agent->toolbox, &tool, &error) == -EINVAL &&
                       strcmp(error.where, "name") == 0,
               "no name", &error);
        tool.name = "a b";
        expect(cbx_toolbox_add_function(agent->toolbox, &tool, &error) == -EINVAL &&
                       strcmp(error.where, "name") == 0,
               "a name with a space", &error);
        tool.name = "fine";
        tool.description = "\xff";
        expect(cbx_toolbox_add_function(agent->toolbox, &tool, &error) == -EINVAL &&
                       strcmp(error.where, "description") == 0,
               "a description that is no UTF-8", &error);
        tool.description = NULL;
        tool.input_schema = "{\"type\": \"object\", \"minProperties\": -1}";
        expect(cbx_toolbox_add_function(agent->toolbox, &tool, &error) == -EINVAL &&
                       strcmp(error.where, "inputSchema.minProperties") == 0,
               "a broken schema", &error);
        tool.input_schema = "{";
        expect(cbx_toolbox_add_function(agent->toolbox, &tool, &error) == -EINVAL &&
                       strstr(error.text, "input_schema"),
               "a schema that is no JSON", &error);
        newer.known.size = sizeof(newer);
        newer.known.name = "newer";
        expect(cbx_toolbox_add_function(agent->toolbox, &newer.known, &error) == 0,
               "a newer header that asks for nothing new", &error);
        newer.unknown = 1;
        expect(cbx_toolbox_add_function(agent->toolbox, &newer.known, &error) == -E2BIG,
               "a newer header that does", &error);
        expect(cbx_toolbox_remove(agent->toolbox, "newer", &error) == 0, "remove", &error);
        expect(cbx_toolbox_remove(agent->toolbox, "newer", &error) == -ENOENT &&
                       strcmp(error.text, "unknown tool: newer") == 0,
               "remove again", &error);
        /* Without an error to fill everything works the same. */
        expect(cbx_toolbox_add_function(agent->toolbox, &tool, NULL) == -EINVAL &&
                       cbx_toolbox_remove(agent->toolbox, "newer", NULL) == -ENOENT &&
                       cbx_toolbox_add(agent->toolbox, "[", 1, NULL) == -EINVAL &&
                       cbx_toolbox_load(agent->toolbox, "/nonexistent", NULL) == -ENOENT,
               "no error to fill", &error);
}

static void check_specs(struct agent *agent)
{
        static const char *const environment[] = { "A=b", NULL };
        static const char *const argv[] = { "true", NULL };
        cbx_error error = CBX_ERROR_INIT;
        cbx_spec specs[7];

        for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
                specs[i] = (cbx_spec)CBX_SPEC_INIT;
        specs[0].argv = argv;
        specs[1].shell = "true";
        specs[2].environment = environment;
        specs[3].cwd = "/";
        specs[4].input = "x";
        specs[5].warm = 1;
        specs[6].input_mode = CBX_FROM_FD;
        for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
                expect(refused(agent, "echo", NULL, &specs[i], "spec", &error),
                       "a spec that says what is the tool's affair", &error);
        specs[0] = (cbx_spec)CBX_SPEC_INIT;
        specs[0].result_mode = 7;
        for (int i = 0; i < 2; i++)
                expect(refused(agent, i ? "missing" : "echo", NULL, &specs[0], "result_mode",
                               &error),
                       "a mode of the result that there is not", &error);
        specs[0] = (cbx_spec)CBX_SPEC_INIT;
        specs[0].wall_limit = 1000;
        expect(refused(agent, "echo", NULL, &specs[0], "wall", &error),
               "a limit looser than the policy's", &error);
        for (int i = 0; i < 6; i++) {
                specs[0] = (cbx_spec)CBX_SPEC_INIT;
                specs[0].id = i % 2 ? "" : "\xff";
                expect(refused(agent, i / 2 == 1 ? "missing" : "echo", i / 2 == 2 ? "[]" : "{}",
                               &specs[0], "id", &error),
                       "an id that is none", &error);
        }
}

/* A refused call has ended at once and is like any other. */
static void check_refused(struct agent *agent)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_report report = CBX_REPORT_INIT;
        cbx_event event = CBX_EVENT_INIT;
        cbx_call *call = NULL;
        struct pollfd fd;
        int r = cbx_toolbox_call(agent->toolbox, "nobody", NULL, &call, &error);

        expect(r == 0 && call, "an unknown tool is a call", &error);
        if (!call)
                return;
        fd = (struct pollfd){ .fd = cbx_call_fd(call), .events = POLLIN };
        expect(poll(&fd, 1, 0) == 1, "its descriptor is readable at once", &error);
        expect(cbx_kill(call) == 0 && cbx_signal(call, 15) == 0, "it can be killed", &error);
        expect(cbx_step(call, &event, &error) == 0 && event.kind == CBX_EVENT_ENDED, "it has ended",
               &error);
        expect(cbx_wait(call, &report, &error) == 0 && report.reason == CBX_SETUP && report.error &&
                       report.setup_time == 0 && report.run_time == 0 && report.started_at > 0 &&
                       !report.id,
               "it has a report", &error);
        expect(cbx_report_result(&report) &&
                       strcmp(cbx_report_result(&report)->error, "unknown tool: nobody") == 0 &&
                       strcmp(cbx_report_result(&report)->tool, "nobody") == 0 &&
                       cbx_report_mistakes(&report) && !cbx_report_mistakes(&report)[0],
               "and a result", &error);
        cbx_report_free(&report);
        expect(cbx_wait(call, &report, &error) == -EALREADY, "once", &error);
        cbx_call_free(call);
        /* One that is no tool's has none. */
        agent->spec = (cbx_spec)CBX_SPEC_INIT;
        agent->spec.shell = "true";
        {
                cbx_policy *policy = NULL;

                r = cbx_policy_parse("{}", 2, &policy, &error);
                if (r == 0)
                        r = cbx_run(agent->warden, policy, &agent->spec, &report, &error);
                expect(r == 0 && !cbx_report_result(&report) && cbx_report_mistakes(&report) &&
                               !cbx_report_mistakes(&report)[0],
                       "no result of a call that is no tool's", &error);
                cbx_report_free(&report);
                cbx_policy_unref(policy);
        }
}

/* A call outlives its tool, and its toolbox. */
static void check_lifetime(struct agent *agent)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_report report = CBX_REPORT_INIT;
        cbx_call *calls[3] = { NULL };
        int r = 0;

        for (int i = 0; r == 0 && i < 3; i++)
                r = cbx_toolbox_call(agent->toolbox, "echo", "{\"n\": 1}", &calls[i], &error);
        if (r == 0)
                r = cbx_toolbox_remove(agent->toolbox, "echo", &error);
        agent->toolbox = cbx_toolbox_close(agent->toolbox);
        expect(r == 0 && !agent->toolbox, "three calls", &error);
        expect(!cbx_call_free(calls[0]), "one is dropped", &error);
        for (int i = 1; i < 3; i++) {
                expect(calls[i] && cbx_wait(calls[i], &report, &error) == 0 &&
                               cbx_report_result(&report)->ok &&
                               strcmp(cbx_report_result(&report)->output, "{\"n\":1}") == 0,
                       "a call ends well after its toolbox was closed", &error);
                cbx_report_free(&report);
                cbx_call_free(calls[i]);
        }
        expect(!cbx_toolbox_close(NULL), "closing nothing", &error);
}

/* ---- The program ---- */

static int add_all(cbx_toolbox *toolbox, const cbx_tool *tools, cbx_error *error)
{
        int r = 0;

        for (; r == 0 && tools->name; tools++)
                r = cbx_toolbox_add_function(toolbox, tools, error);
        return r;
}

static int open_agent(struct agent *agent, const char *policy_text, unsigned calls)
{
        cbx_toolbox_options options = CBX_TOOLBOX_OPTIONS_INIT;
        int r = cbx_warden_open(NULL, &agent->warden, &agent->error);

        options.calls = calls;
        if (r == 0)
                r = cbx_policy_parse(policy_text, strlen(policy_text), &options.policy,
                                     &agent->error);
        if (r == 0)
                r = cbx_toolbox_open(agent->warden, &options, &agent->toolbox, &agent->error);
        cbx_policy_unref(options.policy);
        if (r == 0)
                r = add_all(agent->toolbox, good_tools, &agent->error);
        if (r == 0)
                r = add_all(agent->toolbox, bad_tools, &agent->error);
        return r;
}

static const char *option(int argc, char **argv, const char *name, const char *otherwise)
{
        for (int i = 2; i < argc; i++)
                if (strncmp(argv[i], name, strlen(name)) == 0)
                        return argv[i] + strlen(name);
        return otherwise;
}

static void read_options(struct agent *agent, int argc, char **argv)
{
        agent->spec.id = option(argc, argv, "id=", NULL);
        agent->spec.wall_limit = atof(option(argc, argv, "wall=", "0"));
        agent->spec.capture_limit = strtoull(option(argc, argv, "capture=", "0"), NULL, 10);
        agent->spec.result_limit = strtoull(option(argc, argv, "result=", "0"), NULL, 10);
        agent->kill = atoi(option(argc, argv, "kill=", "-1"));
        if (option(argc, argv, "events", NULL))
                agent->spec.result_mode = CBX_RESULT_EVENTS;
        if (option(argc, argv, "output", NULL))
                agent->spec.output_mode = CBX_EVENTS;
}

int main(int argc, char **argv)
{
        struct agent agent = { .spec = CBX_SPEC_INIT, .error = CBX_ERROR_INIT };
        const char *verb = argc > 1 ? argv[1] : "";
        char *list = NULL;
        int r;

        cbx_serve_functions(argc, argv); /* in a box this does not return */
        read_options(&agent, argc, argv);
        r = open_agent(&agent, option(argc, argv, "policy=", "{}"),
                       (unsigned)atoi(option(argc, argv, "calls=", "0")));
        if (r == 0 && strcmp(verb, "call") == 0) {
                r = call_all(&agent);
        } else if (r == 0 && strcmp(verb, "list") == 0) {
                r = cbx_toolbox_list(agent.toolbox, argc > 2 ? argv[2] : NULL, &list, &agent.error);
                if (r == 0)
                        puts(list);
                free(list);
        } else if (r == 0) {
                check_structs(&agent);
                check_specs(&agent);
                check_refused(&agent);
                check_lifetime(&agent);
                printf("%d wrong\n", wrong);
        }
        if (r < 0)
                fprintf(stderr, "functions: %s: %s\n", agent.error.where, agent.error.text);
        cbx_toolbox_close(agent.toolbox);
        cbx_warden_close(agent.warden);
        return r < 0 || wrong;
}
