/* SPDX-License-Identifier: MIT */
#include "serve/builtin.h"

#include <stdio.h>
#include <string.h>

#include "tool/toolbox.h"

/* Written by the build: run_command_text, run_python_manifest, run_python_text. */
#include "run_command_manifest.h"
#include "run_python.h"
#include "run_python_manifest.h"

#define COMMAND "run_command"
#define PYTHON "run_python"
#define RESULT_MAX (512 * KIB) /* 64 Ki characters, each of which may be six in JSON */

/* A manifest of the same name in a folder is another tool: it comes from a file. */
bool builtin_shows_output(const struct tool *tool)
{
        return !tool->file && (strcmp(tool->name, COMMAND) == 0 || strcmp(tool->name, PYTHON) == 0);
}

void builtin_tighten(const struct tool *tool, const json_t *arguments, cbx_spec *spec)
{
        const json_t *timeout = json_object_get(arguments, "timeout");

        /* What the code of a model may write as its result is no more than run_python.py would. */
        if (builtin_shows_output(tool) && tool->kind == TOOL_FUNCTION)
                spec->result_limit = MIN((uint64_t)RESULT_MAX, tool->policy->limits.result);
        if (builtin_shows_output(tool) && json_is_number(timeout) &&
            json_number_value(timeout) > 0 &&
            json_number_value(timeout) < tool->policy->limits.wall)
                spec->wall_limit = json_number_value(timeout);
}

/* ---- What a caller reads ---- */

static int add_stream(const cbx_output *output, struct buffer *to)
{
        size_t head = output->omitted > 0 ? output->head : output->length;
        bool replaced = false;
        int r = output_decode(output->data, head, to, &replaced);

        if (r == 0 && output->omitted > 0)
                r = buffer_printf(to, "\n[... %llu bytes left out ...]\n",
                                  (unsigned long long)output->omitted);
        if (r == 0 && output->omitted > 0)
                r = output_decode(output->data + head, output->length - head, to, &replaced);
        return r;
}

/* On a line of its own. */
static int begin_part(struct buffer *to, const char *name)
{
        bool line = to->length > 0 && to->data[to->length - 1] != '\n';

        return buffer_printf(to, "%s%s", line ? "\n" : "", name);
}

int builtin_text(const cbx_report *report, const cbx_result *result, struct buffer *to)
{
        _cleanup_json_ json_t *value =
                result->output ? json_loads(result->output, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL)
                               : NULL;
        const char *shown = json_string_value(json_object_get(value, "result"));
        int r = buffer_printf(to, "%s", ""); /* it may stay empty */

        if (r == 0)
                r = add_stream(&report->output, to);
        if (r == 0 && shown)
                r = begin_part(to, shown);
        if (r == 0 && report->errors.length > 0) {
                r = begin_part(to, "[stderr]\n");
                if (r == 0)
                        r = add_stream(&report->errors, to);
        }
        return r;
}

/* ---- What a model is told ---- */

/* Where a call starts, what it may do and for how long: what the manifest does not know. */
static json_t *describe(const cbx_policy *policy, bool unboxed, const char *what)
{
        static const char *const networks[] = {
                [POLICY_NETWORK_NONE] = "there is no network",
                [POLICY_NETWORK_LOOPBACK] = "there is no network but a loopback of its own",
                [POLICY_NETWORK_HOST] = "the network can be used",
        };
        const char *workspace = NULL;

        for (size_t i = 0; i < policy->n_paths; i++)
                if (policy->paths[i].workspace)
                        workspace = policy->paths[i].host;
        if (unboxed)
                return json_sprintf(
                        "%s It runs without a sandbox, with all rights of the user who started "
                        "this server: what it changes on this computer stays changed. It is ended "
                        "after %g seconds, and processes that it leaves behind are ended with "
                        "it.%s",
                        what, policy->limits.wall, workspace ? " It starts in the workspace." : "");
        return json_sprintf(
                "%s It runs in a sandbox of its own: the system is read-only, %s, it is ended "
                "after %g seconds, and processes that it leaves behind are ended with it. %s",
                what, networks[policy->network], policy->limits.wall,
                workspace ? "It starts in the workspace, whose files it may change; what it writes "
                            "elsewhere is gone afterwards."
                          : "There is no workspace: what it writes is gone afterwards.");
}

/* Fit a manifest to the policy that it will run under. */
static int fit(json_t *manifest, const cbx_policy *policy, bool unboxed)
{
        const char *what = json_string_value(json_object_get(manifest, "description"));
        json_t *properties =
                json_object_get(json_object_get(manifest, "inputSchema"), "properties");
        json_t *timeout = json_object_get(properties, "timeout");
        json_t *hints = json_object_get(manifest, "annotations");

        if (json_object_set_new(manifest, "description", describe(policy, unboxed, what)) < 0 ||
            json_object_set_new(timeout, "maximum", json_real(policy->limits.wall)) < 0 ||
            json_object_set_new(hints, "openWorldHint",
                                json_boolean(unboxed || policy->network == POLICY_NETWORK_HOST)) <
                    0)
                return -ENOMEM;
        return 0;
}

/* A tool of the same name in a folder goes before ours. */
bool builtin_is_taken(cbx_toolbox *toolbox, const char *name)
{
        _cleanup_free_ char *tool = NULL;

        return name && cbx_toolbox_get(toolbox, name, &tool, NULL) == 0;
}

static bool is_unboxed(const cbx_toolbox *toolbox, const char *name)
{
        return routing_decide(&toolbox->routing, name, TOOL_ROUTE_OPEN).to == CBX_TO_HOST;
}

static int add(cbx_toolbox *toolbox, const cbx_policy *policy, const char *written,
               const char *program, cbx_error *error)
{
        _cleanup_json_ json_t *manifest = json_loads(written, 0, NULL);
        _cleanup_free_ char *text = NULL;
        json_t *server = json_object_get(json_object_get(manifest, "run"), "server");
        const char *name = json_string_value(json_object_get(manifest, "name"));

        if (builtin_is_taken(toolbox, name))
                return 0;
        if (!manifest || fit(manifest, policy, is_unboxed(toolbox, name)) < 0 ||
            (program && json_array_append_new(server, json_string(program)) < 0))
                return error_oom(error);
        text = json_write(manifest, 0);
        return text ? cbx_toolbox_add(toolbox, text, strlen(text), error) : error_oom(error);
}

int builtin_add(cbx_toolbox *toolbox, const cbx_policy *policy, bool files, cbx_error *error)
{
        int r = add(toolbox, policy, run_command_text, NULL, error);

        if (r == 0 && access("/usr/bin/python3", X_OK) == 0)
                r = add(toolbox, policy, run_python_manifest, run_python_text, error);
        return r < 0 || !files ? r : builtin_add_files(toolbox, error);
}
