/* SPDX-License-Identifier: MIT */
/* callbox tool list and call: a toolbox of one directory. */
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "cli/tool.h"
#include "policy/json_read.h"
#include "tool/toolbox.h"

#define ARGUMENTS_MAX (16 * MIB)

enum { EXIT_FAILED = 1, EXIT_REFUSED = 2, EXIT_DENIED = 3 };

struct box_of_tools {
        cbx_warden *warden;
        cbx_toolbox *toolbox;
        struct policy_limits limits; /* of the call; 0: the tool's own */
};

static int fail(const struct tool_command *command, cbx_error *error)
{
        cbx_error limit = *error;

        /* The library names the limit of a call by itself, options as a policy does. */
        snprintf(limit.where, sizeof(limit.where), "limits.%.64s", error->where);
        options_blame(&command->options, &limit);
        if (strncmp(limit.where, "--", 2) == 0)
                *error = limit;
        else if (strcmp(error->where, "directory") == 0)
                snprintf(error->where, sizeof(error->where), "--tools");
        else
                options_blame(&command->options, error);
        cli_print_error(error);
        return EXIT_CALLBOX;
}

/* Limits are the call's, but for the size of /tmp, which only a policy has; the rest is the policy
 * of tools that have none. */
static int split_options(struct tool_command *command, struct policy_limits *limits,
                         cbx_policy **ret_policy, cbx_error *error)
{
        json_t *given = json_object_get(command->options.policy, "limits");
        const char *key;
        json_t *value;
        int r = 0;

        if (given) {
                struct policy_limits room = { 0 };

                r = policy_limits_from_json(given, "limits", false, error, &room);
                json_object_foreach(given, key, value)
                {
                        if (json_is_null(value) && r == 0)
                                r = error_set(error, -EINVAL, key,
                                              "a call can only tighten the limits of its tool");
                }
                *limits = room;
                value = json_incref(json_object_get(given, "tmp_size"));
                json_object_clear(given);
                if (value && json_object_set_new(given, "tmp_size", value) < 0)
                        return error_oom(error);
        }
        return r < 0 ? r : options_policy(&command->options, error, ret_policy);
}

static void close_tools(struct box_of_tools *tools)
{
        cbx_toolbox_close(tools->toolbox);
        cbx_warden_close(tools->warden);
}

/* Mistakes in manifests do not keep the other tools from use. `functions`: nor do functions of
 * Python that are no tools, but whoever only calls one does not want to hear of them. */
static void print_broken(cbx_toolbox *toolbox, const char *directory, bool functions)
{
        cbx_tool_event event = CBX_TOOL_EVENT_INIT;

        while (cbx_toolbox_step(toolbox, &event, NULL) == 0 && event.kind != CBX_TOOL_NONE)
                if (event.kind == CBX_TOOL_BROKEN)
                        python_print_broken(directory, event.file, event.text, functions);
}

/* The folder is read once, for one call: where that could write it, it is held. */
static int hold_folders(const struct tool_command *command, cbx_toolbox *toolbox, cbx_error *error)
{
        char policies[PATH_MAX];
        int r = command->tools ? toolbox_hold(toolbox, command->tools, false) : 0;

        if (r == 0 && command->tools && !command->policies &&
            snprintf(policies, sizeof(policies), "%s/policies", command->tools) <
                    (int)sizeof(policies))
                r = toolbox_hold(toolbox, policies, false);
        if (r == 0 && command->policies)
                r = toolbox_hold(toolbox, command->policies, false);
        return r < 0 ? error_oom(error) : 0;
}

static int open_tools(struct tool_command *command, struct box_of_tools *tools, cbx_error *error)
{
        cbx_warden_options warden = CBX_WARDEN_OPTIONS_INIT;
        cbx_toolbox_options options = CBX_TOOLBOX_OPTIONS_INIT;
        _cleanup_policy_ cbx_policy *policy = NULL;
        int r;

        if (!command->tools && command->python.n_sources == 0) {
                error_set(error, -EINVAL, "--tools", "is missing: the folder of manifests");
                error_hint(error, "name one, or a Python file: --python-tools tools.py");
                return -EINVAL;
        }
        options_guard(&command->options, "the folder of manifests", command->tools, "--tools",
                      false);
        options_guard(&command->options, "the folder of policies", command->policies, "--policies",
                      false);
        python_options_guard(&command->python, &command->options);
        r = split_options(command, &tools->limits, &policy, error);
        if (r < 0)
                return r;
        warden.program = "/proc/self/exe";
        warden.socket = command->warden;
        warden.prepared = CBX_NONE; /* for one call */
        options.policy = policy;
        options.policies = command->policies;
        options.server = tool_command_server();
        routes_apply(&command->routes, &options);
        python_options_set(&command->python, &options);
        r = cli_open_warden(&warden, &tools->warden, error);
        if (r == 0)
                r = cbx_toolbox_open(tools->warden, &options, &tools->toolbox, error);
        if (r == 0)
                r = cli_guard_tools(&command->options, tools->toolbox, error);
        if (r == 0)
                r = hold_folders(command, tools->toolbox, error);
        if (r == 0 && command->tools)
                r = cbx_toolbox_load(tools->toolbox, command->tools, error);
        if (r == 0)
                r = python_options_load(&command->python, tools->toolbox, error);
        if (r == 0)
                routes_tell_unused(&command->routes, tools->toolbox);
        return r;
}

/* ---- list ---- */

/* Where it would run, unless that is a box. */
static const char *route_of(cbx_toolbox *toolbox, const char *name)
{
        cbx_decision decision = CBX_DECISION_INIT;

        if (cbx_toolbox_decide(toolbox, name, &decision, NULL) < 0)
                return "";
        return decision.route == CBX_TO_HOST     ? "NO BOX: "
               : decision.route == CBX_TO_NOBODY ? "refused: "
                                                 : "";
}

static void print_tools(cbx_toolbox *toolbox, const json_t *list)
{
        int width = 0;

        for (size_t i = 0; i < json_array_size(list); i++) {
                const json_t *tool = json_array_get(list, i);
                int length = (int)json_string_length(json_object_get(tool, "name"));

                width = MAX(width, MIN(length, 30));
        }
        for (size_t i = 0; i < json_array_size(list); i++) {
                const json_t *tool = json_array_get(list, i);
                const char *text = json_string_value(json_object_get(tool, "description"));
                char line[200];

                snprintf(line, sizeof(line), "%.*s", (int)(text ? strcspn(text, "\n") : 0),
                         text ? text : "");
                text_make_showable(line);
                printf("%-*s  %s%s\n", width, json_string_value(json_object_get(tool, "name")),
                       route_of(toolbox, json_string_value(json_object_get(tool, "name"))), line);
        }
}

int tool_command_list(struct tool_command *command)
{
        struct box_of_tools tools = { 0 };
        cbx_error error = CBX_ERROR_INIT;
        _cleanup_json_ json_t *list = NULL;
        _cleanup_free_ char *text = NULL;
        int code = 0;

        if (open_tools(command, &tools, &error) < 0 ||
            cbx_toolbox_list(tools.toolbox, command->words[0], &text, &error) < 0)
                code = fail(command, &error);
        else if (!(list = json_loads(text, 0, NULL)))
                code = cli_fail("out of memory");
        else if (command->json)
                code = cli_print_json(list, STDOUT_FILENO);
        else
                print_tools(tools.toolbox, list);
        if (list)
                print_broken(tools.toolbox, command->tools, true);
        close_tools(&tools);
        return code;
}

/* ---- call ---- */

/* The argument itself, or what comes on stdin; to be freed. */
static int read_arguments(const char *given, char **ret_text, cbx_error *error)
{
        _cleanup_free_ char *text = NULL;
        size_t length;
        int r;

        if (!given || strcmp(given, "-") != 0) {
                *ret_text = strdup(given ? given : "{}");
                return *ret_text ? 0 : error_oom(error);
        }
        /* The descriptor, not /dev/stdin: that opens it anew, which a socket does not allow. */
        r = fd_read(STDIN_FILENO, ARGUMENTS_MAX, &text, &length);
        if (r < 0)
                return error_set(error, r, "", "cannot read the arguments from stdin: %s",
                                 strerror(-r));
        if (strlen(text) != length)
                return error_set(error, -EINVAL, "", "the arguments on stdin hold a NUL");
        *ret_text = TAKE_PTR(text);
        return 0;
}

static void tighten(const struct policy_limits *limits, cbx_spec *spec)
{
        spec->wall_limit = limits->wall;
        spec->cpu_limit = limits->cpu;
        spec->cpus_limit = limits->cpus;
        spec->memory_limit = limits->memory;
        spec->process_limit = limits->processes;
        spec->file_size_limit = limits->file_size;
        spec->open_files_limit = limits->open_files;
        spec->output_limit = limits->output;
        spec->capture_limit = limits->capture;
}

static void show_event(const cbx_event *event)
{
        char text[512];

        snprintf(text, sizeof(text), "%.*s", (int)MIN(event->length, sizeof(text) - 1),
                 event->data ? event->data : "");
        text_make_showable(text);
        if (event->kind == CBX_EVENT_LOG)
                fprintf(stderr, "%s: %s\n", event->level, text);
        else if (event->total > 0)
                fprintf(stderr, "%g of %g%s%s\n", event->done, event->total, *text ? ": " : "",
                        text);
        else
                fprintf(stderr, "%g%s%s\n", event->done, *text ? ": " : "", text);
}

static int await(cbx_call *call, bool show, cbx_report *report, cbx_error *error)
{
        cbx_event event = CBX_EVENT_INIT;
        int r = 0;

        while (r == 0 && event.kind != CBX_EVENT_ENDED) {
                r = cbx_step(call, &event, error);
                if (event.kind == CBX_EVENT_NONE)
                        (void)poll(&(struct pollfd){ cbx_call_fd(call), POLLIN, 0 }, 1, -1);
                else if (show && (event.kind == CBX_EVENT_LOG || event.kind == CBX_EVENT_PROGRESS))
                        show_event(&event);
        }
        return r < 0 ? r : cbx_wait(call, report, error);
}

static int exit_code(const cbx_report *report, const cbx_result *result)
{
        if (result->ok)
                return 0;
        if (result->denied)
                return EXIT_DENIED;
        if (report->reason == CBX_INTERNAL)
                return EXIT_CALLBOX;
        return report->reason == CBX_SETUP ? EXIT_REFUSED : EXIT_FAILED;
}

/* It may quote what the tool wrote, and a terminal obeys control characters. */
static void print_failure(const cbx_result *result)
{
        const char *why = result->denied ? result->reason : result->error;
        _cleanup_free_ char *text = why ? strdup(why) : NULL;
        char *rest = text, *line;

        fprintf(stderr, "callbox: %s: ", result->tool);
        while ((line = strsep(&rest, "\n"))) {
                text_make_showable(line);
                fprintf(stderr, "%s\n", line);
        }
}

/* That there was no box is told first, whatever came of it. */
static void print_unboxed(const cbx_report *report, const cbx_result *result)
{
        const char *const *warnings = cbx_report_warnings(report);

        if (result->route && strcmp(result->route, "host") == 0 && warnings[0])
                fprintf(stderr, "callbox: warning: %s\n", warnings[0]);
}

static int print_result(const cbx_report *report, bool as_json)
{
        const cbx_result *result = cbx_report_result(report);
        _cleanup_free_ char *text = NULL;
        _cleanup_json_ json_t *json = NULL;

        if (!result)
                return cli_fail("%s", report->error ? report->error->text : "out of memory");
        print_unboxed(report, result);
        if (as_json) {
                if (cbx_report_print(report, &text, NULL) < 0 ||
                    !(json = json_loads(text, JSON_ALLOW_NUL, NULL)))
                        return cli_fail("out of memory");
                return cli_print_json(json, STDOUT_FILENO) == 0 ? exit_code(report, result)
                                                                : EXIT_CALLBOX;
        }
        if (result->ok) {
                size_t length = strlen(result->text);
                bool newline = length > 0 && result->text[length - 1] != '\n';

                if (fd_write_all(STDOUT_FILENO, result->text, length) < 0 ||
                    (newline && fd_write_all(STDOUT_FILENO, "\n", 1) < 0))
                        return cli_fail("cannot write the output: %s", strerror(errno));
        } else {
                print_failure(result);
        }
        return exit_code(report, result);
}

static int call(struct tool_command *command, struct box_of_tools *tools, cbx_error *error)
{
        _cleanup_free_ char *arguments = NULL;
        cbx_report report = CBX_REPORT_INIT;
        cbx_spec spec = CBX_SPEC_INIT;
        cbx_call *started = NULL;
        int code = EXIT_CALLBOX, r;

        spec.id = command->id;
        spec.explain = command->explain;
        spec.approved = command->approve;
        spec.result_mode = CBX_RESULT_EVENTS;
        tighten(&tools->limits, &spec);
        print_broken(tools->toolbox, command->tools, false);
        r = read_arguments(command->words[1], &arguments, error);
        if (r == 0)
                r = cbx_toolbox_start(tools->toolbox, command->words[0], arguments, &spec, &started,
                                      error);
        if (r == 0)
                r = await(started, !command->quiet && !command->json, &report, error);
        if (r == 0)
                code = print_result(&report, command->json);
        cbx_report_free(&report);
        cbx_call_free(started);
        return r < 0 ? fail(command, error) : code;
}

int tool_command_call(struct tool_command *command)
{
        struct box_of_tools tools = { 0 };
        cbx_error error = CBX_ERROR_INIT;
        int code;

        if (command->n_words == 0)
                return cli_fail("tool call needs the name of a tool (see callbox tool --help)");
        code = open_tools(command, &tools, &error) < 0 ? fail(command, &error)
                                                       : call(command, &tools, &error);
        close_tools(&tools);
        return code;
}
