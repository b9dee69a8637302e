/* SPDX-License-Identifier: MIT */
/*
 * tools/call. A call has rounds: each is a run of the tool in a box of its own, which ends with an
 * answer or with questions; between rounds it waits for answers, or is forgotten where the client
 * carries its state.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "serve/builtin.h"
#include "serve/serve_parts.h"

#define STEPS_MAX 64 /* events of one call, before others have their turn */

/* ---- Life ---- */

void serve_next_id(struct serve *serve, char id[SERVE_ID_SIZE])
{
        snprintf(id, SERVE_ID_SIZE, "mcp-%llu", (unsigned long long)++serve->serial);
}

static struct serve_call *call_new(struct serve_request *request, struct tool *tool)
{
        struct serve_call *call = calloc(1, sizeof(*call));
        json_t *arguments = json_object_get(request->message.params, "arguments");
        const struct serve_peer *peer = request->peer;

        if (!call)
                return NULL;
        call->serve = peer->serve;
        call->request = request;
        call->tool = tool_ref(tool);
        call->arguments = arguments ? json_incref(arguments) : json_object();
        call->capabilities = json_incref(request->capabilities);
        call->modern = request->modern;
        call->began = time_now();
        for (size_t i = 0; i < ARRAY_SIZE(call->kept); i++)
                call->kept[i].fd = -1;
        call->transport = peer->ops->transport;
        call->client = strdup(request_client(request));
        serve_next_id(call->serve, call->id);
        request->call = call;
        call->serve->n_calls++;
        return call;
}

/* What it says is not heard any more. */
static void stop_looking(struct serve_call *call)
{
        progress_end(call);
        for (size_t i = 0; i < ARRAY_SIZE(call->kept); i++)
                keep_end(&call->kept[i]);
        if (call->ready)
                event_free(call->ready);
        call->ready = NULL;
}

/* Ends the box, if there is one: the whole tree. */
static void stop(struct serve_call *call)
{
        stop_looking(call);
        call->call = cbx_call_free(call->call);
}

void serve_call_free(struct serve_call *call)
{
        stop(call);
        if (call->request)
                call->request->call = NULL;
        questions_clear(&call->asked);
        tool_unref(call->tool);
        json_decref(call->arguments);
        json_decref(call->capabilities);
        json_decref(call->answers);
        json_decref(call->state);
        free(call->client);
        call->serve->n_calls--;
        free(call);
}

/* ---- Ends ---- */

void serve_call_finish(struct serve_call *call, json_t *result)
{
        struct serve_request *request = call->request;
        struct serve_task *task = call->task;

        serve_call_free(call);
        if (task)
                task_finish(task, result);
        else
                request_finish(request, result);
}

void serve_call_fail(struct serve_call *call, const struct rpc_failure *failure)
{
        struct serve_request *request = call->request;
        struct serve_task *task = call->task;

        serve_call_free(call);
        if (task)
                task_fail(task, failure);
        else
                request_fail(request, failure);
}

void serve_call_cancel(struct serve_call *call)
{
        if (call->request)
                call->request->call = NULL;
        call->request = NULL;
        stop_looking(call);
        questions_clear(&call->asked);
        if (call->call && call->serve->options.hooks.ended) {
                serve_call_leave(call);
                return;
        }
        serve_call_record(call, NULL, "cancelled", NULL);
        serve_call_free(call);
}

void serve_call_refuse(struct serve_call *call, const char *outcome, const char *format, ...)
{
        char text[1024];
        va_list args;

        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        text_make_showable(text);
        serve_call_record(call, NULL, outcome, text);
        serve_call_finish(call, content_error(text));
}

/* ---- The end of a round ---- */

/* A tool that gives results of MCP. */
static void end_with_content(struct serve_call *call, const cbx_report *report,
                             const cbx_result *result)
{
        _cleanup_json_ json_t *given = json_loads(result->output ? result->output : "null",
                                                  JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        _cleanup_failure_ struct rpc_failure failure = { 0 };
        bool failed;

        switch (content_read(given, &failure)) {
        case CONTENT_BLOCKS:
                failed = json_is_true(json_object_get(given, "isError"));
                serve_call_record(call, report, failed ? "error" : "ok", NULL);
                if ((failed && content_explain(call, report, given) < 0) ||
                    content_add_route(given, result) < 0)
                        serve_call_finish(call, NULL);
                else
                        serve_call_finish(call, TAKE_PTR(given));
                return;
        case CONTENT_QUESTIONS:
                serve_call_record(call, report, "asked", NULL);
                stop(call);
                ask_for_tool(call, given);
                return;
        case CONTENT_ERROR:
                serve_call_record(call, report, "error", NULL);
                serve_call_fail(call, &failure);
                return;
        case CONTENT_WRONG:
                serve_call_record(call, report, "error", NULL);
                serve_call_finish(call, content_wrong(call, report, failure.text));
                return;
        }
}

static void end_internally(struct serve_call *call, const cbx_report *report)
{
        struct rpc_failure failure = { 0 };

        rpc_fail(&failure, RPC_INTERNAL_ERROR, "%s: %s", call->tool->name,
                 report->error && report->error->text[0] ? report->error->text : report->text);
        serve_call_record(call, report, "error", NULL);
        serve_call_fail(call, &failure);
}

static void end(struct serve_call *call, const cbx_report *report)
{
        const cbx_result *result = cbx_report_result(report);
        const char *outcome = "error";

        progress_flush(call);
        if (!result || report->reason == CBX_INTERNAL) {
                end_internally(call, report);
                return;
        }
        if (result->ok && call->tool->returns_content) {
                end_with_content(call, report, result);
                return;
        }
        if (result->ok)
                outcome = "ok";
        else if (report->reason == CBX_SETUP)
                outcome = "refused";
        else if (result->denied)
                outcome = "denied";
        serve_call_record(call, report, outcome, NULL);
        serve_call_finish(call, content_of(call, report, result));
}

static void look(evutil_socket_t fd, short what, void *context)
{
        struct serve_call *call = context;
        cbx_error error = CBX_ERROR_INIT;
        cbx_report report = CBX_REPORT_INIT;
        cbx_event event = CBX_EVENT_INIT;
        struct rpc_failure failure = { 0 };
        int r = 0;

        (void)fd, (void)what;
        for (int steps = 0; r == 0 && event.kind != CBX_EVENT_ENDED; steps++) {
                if (steps == STEPS_MAX) { /* what is there already makes nothing readable */
                        event_active(call->ready, EV_READ, 0);
                        return;
                }
                r = cbx_step(call->call, &event, &error);
                if (r == 0 && event.kind == CBX_EVENT_NONE)
                        return;
                if (event.kind == CBX_EVENT_OUTPUT || event.kind == CBX_EVENT_ERRORS)
                        keep_add(&call->kept[event.kind == CBX_EVENT_ERRORS], event.data,
                                 event.length);
                if (r == 0)
                        progress_tell(call, &event);
        }
        if (r == 0)
                r = cbx_wait(call->call, &report, &error);
        if (r < 0) {
                rpc_fail(&failure, RPC_INTERNAL_ERROR, "%s", error.text);
                serve_call_record(call, NULL, "error", failure.text);
                serve_call_fail(call, &failure);
        } else {
                end(call, &report);
        }
        cbx_report_free(&report);
}

/* ---- The beginning ---- */

/* What the tool finds in CALLBOX_ANSWERS; NULL: it asked for nothing. */
static int write_answers(const struct serve_call *call, char **ret_text)
{
        _cleanup_json_ json_t *given = NULL;

        if (!call->answers && !call->state)
                return 0;
        given = json_pack("{s:O, s:O*}", "inputResponses",
                          call->answers ? call->answers : json_null(), "requestState", call->state);
        *ret_text = given ? json_write(given, 0) : NULL;
        return *ret_text ? 0 : -ENOMEM;
}

static int watch(struct serve_call *call)
{
        call->ready = event_new(call->serve->base, cbx_call_fd(call->call), EV_READ | EV_PERSIST,
                                look, call);
        return call->ready && event_add(call->ready, NULL) == 0 ? 0 : -ENOMEM;
}

/* Text that a model may want to read whole; not what is read as JSON. */
static void keep_output(struct serve_call *call, cbx_spec *spec)
{
        struct keep *keep = call->serve->options.keep;
        size_t room = (size_t)call->tool->policy->limits.capture;
        bool text = call->tool->output == TOOL_TEXT;

        keep_begin(text ? keep : NULL, &call->kept[0], call->id, "stdout", room);
        keep_begin(keep, &call->kept[1], call->id, "stderr", room);
        if (call->progress.token || (keep && text))
                spec->output_mode = CBX_EVENTS;
        if (call->progress.token || keep)
                spec->errors_mode = CBX_EVENTS;
}

int serve_call_start(struct serve_call *call, struct rpc_failure *failure)
{
        const struct serve_hooks *hooks = &call->serve->options.hooks;
        _cleanup_free_ char *answers = NULL;
        cbx_error error = CBX_ERROR_INIT;
        cbx_spec spec = CBX_SPEC_INIT;
        int r = write_answers(call, &answers);

        if (r == 0)
                r = progress_begin(call);
        if (r < 0)
                return r;
        spec.id = call->id;
        spec.explain = 1;
        spec.approved = call->approved;
        spec.answers = answers;
        builtin_tighten(call->tool, call->arguments, &spec);
        keep_output(call, &spec);
        if (call->progress.token || call->task || call->progress.level != LEVEL_NONE)
                spec.result_mode = CBX_RESULT_EVENTS;
        r = toolbox_start(call->serve->toolbox, call->tool->name, call->arguments, &spec,
                          &call->call, &error);
        if (r < 0)
                return rpc_fail(failure, RPC_INTERNAL_ERROR, "%s: %s", call->tool->name,
                                error.text);
        if (hooks->started)
                hooks->started(hooks->context, call->tool->name);
        return watch(call);
}

/* Does it break the schema? Then nobody need be asked: it is refused as it is started. */
static bool may_be_asked(const struct serve_call *call)
{
        _cleanup_json_ json_t *arguments = NULL, *refusal = NULL;

        return call->tool->ask.asks &&
               arguments_check(call->tool, call->arguments, &arguments, &refusal) == 0 &&
               tool_asks(call->tool, arguments);
}

static int go(struct serve_call *call, struct rpc_failure *failure)
{
        bool wanted = task_is_wanted(call);
        int r = ask_check_needs(call);

        if (r == 0)
                r = answer_read(call, failure);
        if (r != 0)
                return r;
        if (!call->approved && may_be_asked(call)) {
                ask_approval(call);
                return 1;
        }
        /* With questions first, a task begins when they are answered. */
        if (wanted && (!call->tool->input_first || call->answers)) {
                r = task_begin(call);
                if (r < 0)
                        return r;
        }
        r = serve_call_start(call, failure);
        if (r == 0 || !call->task)
                return r < 0 ? r : 1;
        serve_call_record(call, NULL, "error", failure->text);
        serve_call_fail(call, failure); /* the request has been answered: the task has failed */
        return 1;
}

struct tool *serve_find_tool(struct serve *serve, const json_t *named)
{
        const char *name = json_string_value(named);
        struct tool *tool;

        if (!name || strlen(name) != json_string_length(named))
                return NULL;
        pthread_mutex_lock(&serve->toolbox->lock);
        tool = toolbox_find(serve->toolbox, name);
        if (tool)
                tool_ref(tool);
        pthread_mutex_unlock(&serve->toolbox->lock);
        return tool;
}

static int refuse_tasks(struct rpc_failure *failure)
{
        rpc_fail(failure, RPC_MISSING_CAPABILITY,
                 "this tool runs as a task only, and the client did not say that it knows tasks");
        failure->data =
                json_pack("{s:{s:{s:{}}}}", "requiredCapabilities", "extensions", TASKS_EXTENSION);
        return failure->data ? -EINVAL : -ENOMEM;
}

static int check_params(const json_t *params, const struct tool *tool, struct rpc_failure *failure)
{
        const json_t *arguments = json_object_get(params, "arguments");
        const char *name = json_string_value(json_object_get(params, "name"));

        if (!name)
                return rpc_fail(failure, RPC_INVALID_PARAMS, "name must be a string");
        if (arguments && !json_is_object(arguments))
                return rpc_fail(failure, RPC_INVALID_PARAMS, "arguments must be an object, not %s",
                                json_type_str(arguments));
        if (!tool)
                return rpc_fail(failure, RPC_INVALID_PARAMS, "Unknown tool: %.128s", name);
        return 0;
}

int serve_call(struct serve_request *request, json_t **ret_result, struct rpc_failure *failure)
{
        const json_t *params = request->message.params;
        _cleanup_tool_ struct tool *tool =
                serve_find_tool(request->peer->serve, json_object_get(params, "name"));
        struct serve_call *call;
        int r = check_params(params, tool, failure);

        (void)ret_result;
        if (r < 0) {
                serve_request_record(request, failure->text);
                return r;
        }
        call = call_new(request, tool);
        if (!call || !call->arguments || !call->client)
                r = -ENOMEM;
        else if (call->modern && tool->task == TOOL_TASK_REQUIRED && !task_is_wanted(call))
                r = refuse_tasks(failure);
        else
                r = go(call, failure);
        if (r < 0 && call) {
                serve_call_record(call, NULL, "refused",
                                  r == -EINVAL ? failure->text : "out of memory");
                serve_call_free(call);
        }
        return r;
}
