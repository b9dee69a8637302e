/* SPDX-License-Identifier: MIT */
/* callbox tool check of a Python file: which tools it has, which functions are none and why, or
 * what keeps it from being loaded. */
#include <stdio.h>
#include <string.h>

#include "cli/tool.h"
#include "policy/json_read.h"

static void add_mistake(json_t *report, const char *place, const char *tool, const char *text,
                        const char *hint)
{
        json_array_append_new(report,
                              json_pack("{s:s, s:s?, s:[{s:s, s:s, s:s}]}", "file", place, "tool",
                                        tool, "mistakes", "where", "", "text", text, "hint", hint));
}

static int print_good(const struct tool_command *command, cbx_toolbox *toolbox, const char *place,
                      json_t *report, cbx_error *error)
{
        _cleanup_free_ char *text = NULL;
        _cleanup_json_ json_t *list = NULL;
        json_t *tool;
        size_t i;

        if (cbx_toolbox_list(toolbox, NULL, &text, error) < 0 ||
            !(list = json_loads(text, 0, NULL)))
                return error_oom(error);
        json_array_foreach(list, i, tool)
        {
                const char *name = json_string_value(json_object_get(tool, "name"));

                if (!command->json)
                        printf("%s: good: %s\n", place, name);
                json_array_append_new(report, json_pack("{s:s, s:s, s:[]}", "file", place, "tool",
                                                        name, "mistakes"));
        }
        return 0;
}

/* What is left out is a mistake where somebody has said that it is a tool. Returns whether that is
 * so of one. */
static bool print_left(const struct tool_command *command, cbx_toolbox *toolbox, const char *place,
                       json_t *report)
{
        cbx_tool_event event = CBX_TOOL_EVENT_INIT;
        bool missed = false;

        while (cbx_toolbox_step(toolbox, &event, NULL) == 0 && event.kind != CBX_TOOL_NONE) {
                if (event.kind != CBX_TOOL_BROKEN)
                        continue;
                if (!command->json)
                        printf("%s: %s\n", place, event.text);
                if (event.tool[0])
                        add_mistake(report, place, event.tool, event.text, "");
                missed = missed || event.tool[0];
        }
        return missed;
}

static int open_toolbox(struct tool_command *command, const char *place, cbx_warden **warden,
                        cbx_toolbox **toolbox, cbx_error *error)
{
        cbx_warden_options how = CBX_WARDEN_OPTIONS_INIT;
        cbx_toolbox_options options = CBX_TOOLBOX_OPTIONS_INIT;
        _cleanup_policy_ cbx_policy *policy = NULL;
        int r;

        options_guard(&command->options, "the file of Python tools", place, "", false);
        r = options_policy(&command->options, error, &policy);
        if (r < 0) {
                options_blame(&command->options, error);
                return r;
        }
        how.program = "/proc/self/exe";
        how.prepared = CBX_NONE;
        options.policy = policy;
        options.server = tool_command_server();
        python_options_set(&command->python, &options);
        r = cli_open_warden(&how, warden, error);
        if (r == 0)
                r = cbx_toolbox_open(*warden, &options, toolbox, error);
        return r < 0 ? r : cli_guard_tools(&command->options, *toolbox, error);
}

int tool_check_python(struct tool_command *command, const char *place)
{
        _cleanup_json_ json_t *report = json_array();
        cbx_error error = CBX_ERROR_INIT;
        cbx_toolbox *toolbox = NULL;
        cbx_warden *warden = NULL;
        int code = 0, r = open_toolbox(command, place, &warden, &toolbox, &error);

        if (r < 0) {
                cli_print_error(&error);
                code = EXIT_CALLBOX;
        } else if (cbx_toolbox_load_python(toolbox, place, &error) < 0) {
                add_mistake(report, place, NULL, error.text, error.hint);
                if (!command->json) {
                        printf("%s: %s\n", place, error.text);
                        if (error.hint[0])
                                printf("    to fix it: %s\n", error.hint);
                }
                code = 1;
        } else if (print_good(command, toolbox, place, report, &error) < 0) {
                code = cli_fail("out of memory");
        } else {
                code = print_left(command, toolbox, place, report) ? 1 : 0;
                routes_tell_unused(&command->routes, toolbox);
        }
        if (code != EXIT_CALLBOX && command->json && cli_print_json(report, STDOUT_FILENO) != 0)
                code = EXIT_CALLBOX;
        cbx_toolbox_close(toolbox);
        cbx_warden_close(warden);
        return code;
}
