/* SPDX-License-Identifier: MIT */
/* A call of a tool: what is asked of the warden, and what is made of its answer. */
#include <stdio.h>
#include <string.h>

#include "tool/toolbox.h"

#define ARGUMENTS_VARIABLE "CALLBOX_ARGUMENTS="
#define ANSWERS_VARIABLE "CALLBOX_ANSWERS="
#define VARIABLE_MAX (128 * KIB - sizeof(ARGUMENTS_VARIABLE)) /* the kernel's bound on a string */

/* ---- While it runs ---- */

/* What the toolbox keeps with a call. */
struct tool_call {
        struct client_tool client; /* first: the call knows it as this */
        struct tool *tool;
        enum message_form form;
        bool live;   /* messages are told as they come */
        bool output; /* so is stdout */
        bool raw;    /* the result is not read */
        bool told;   /* the report says where it went: */
        struct route route;
        uint64_t skip;       /* bytes to come that are no event's */
        struct buffer heard; /* the part of the stream that is no message yet */
        size_t at;           /* in it: what has been told */
        size_t sought;       /* in it: where there is no end of a line before */
        struct buffer text;  /* of the last event */
};

static void stop_listening(struct tool_call *call)
{
        call->live = false; /* the outcome says what is wrong with it */
        buffer_free(&call->heard);
        call->at = call->sought = 0;
}

/* Progress and log lines are events; what else there is belongs to the outcome. */
static bool tell(struct tool_call *call, const struct message *message, cbx_event *event)
{
        bool replaced = false;

        if (message->kind != MESSAGE_PROGRESS && message->kind != MESSAGE_LOG)
                return false;
        call->text.length = 0;
        if (output_decode(message->text, message->length, &call->text, &replaced) < 0)
                return false;
        event->kind = message->kind == MESSAGE_LOG ? CBX_EVENT_LOG : CBX_EVENT_PROGRESS;
        event->data = call->text.data;
        event->length = call->text.length;
        event->done = message->done;
        event->total = message->total;
        event->level = message->level;
        return true;
}

/* Is there a whole message? A line that comes byte by byte is not searched anew for each. */
static bool may_be_whole(struct tool_call *call)
{
        const char *data = call->heard.data, *newline;

        if (call->form == MESSAGE_FRAMES)
                return call->at < call->heard.length;
        while (call->at < call->heard.length && data[call->at] && strchr(" \t\r\n", data[call->at]))
                call->at++;
        call->sought = MAX(call->sought, call->at);
        if (call->sought == call->heard.length)
                return false;
        newline = memchr(data + call->sought, '\n', call->heard.length - call->sought);
        call->sought = newline ? (size_t)(newline - data) : call->heard.length;
        return newline;
}

/* The rest of a frame that tells nothing now, a result above all, is not kept: it is in the report.
 */
static void skip_frame(struct tool_call *call)
{
        size_t kept = call->heard.length - call->at;
        struct message_frame frame;

        if (call->form != MESSAGE_FRAMES || kept < sizeof(frame))
                return;
        memcpy(&frame, call->heard.data + call->at, sizeof(frame));
        if (frame.kind == MESSAGE_PROGRESS || frame.kind == MESSAGE_LOG)
                return;
        call->skip = sizeof(frame) + (uint64_t)frame.length - kept;
        call->at = call->heard.length;
}

static bool next(struct client_tool *client, cbx_event *event)
{
        struct tool_call *call = (struct tool_call *)client;
        bool told = false;

        while (call->live && !told && may_be_whole(call)) {
                struct message message = { 0 };
                size_t taken = 0;
                int r = message_take(call->form, call->heard.data + call->at,
                                     call->heard.length - call->at, false, &taken, &message, NULL);

                if (r < 0)
                        stop_listening(call);
                else if (r == 0)
                        skip_frame(call);
                if (r <= 0)
                        break;
                call->at += taken;
                told = tell(call, &message, event);
                message_clear(&message);
        }
        if (call->at == call->heard.length) {
                call->heard.length = 0;
                call->at = call->sought = 0;
        }
        return told;
}

static bool heard(struct client_tool *client, cbx_event *event)
{
        struct tool_call *call = (struct tool_call *)client;
        int stream = call->form == MESSAGE_FRAMES ? CBX_EVENT_RESULT : CBX_EVENT_OUTPUT;
        /* Where messages come on stdout it may be listened to though nobody wants to see it. */
        bool shown =
                event->kind == CBX_EVENT_OUTPUT ? call->output : event->kind != CBX_EVENT_RESULT;
        size_t skipped = (size_t)MIN(call->skip, event->length);

        if (event->kind != stream || !call->live)
                return shown;
        call->skip -= skipped;
        if (skipped == event->length)
                return shown;
        if (call->at > 0) {
                memmove(call->heard.data, call->heard.data + call->at,
                        call->heard.length - call->at);
                call->heard.length -= call->at;
                call->sought -= MIN(call->sought, call->at);
                call->at = 0;
        }
        if (call->heard.length + event->length > call->tool->policy->limits.result ||
            buffer_add(&call->heard, event->data + skipped, event->length - skipped) < 0)
                stop_listening(call);
        return shown;
}

static void ended(struct client_tool *client, struct report *report)
{
        struct tool_call *call = (struct tool_call *)client;

        json_decref(report->tool);
        report->tool = outcome_judge(call->tool, report, call->raw);
        if (report->tool && call->told && toolbox_set_route(report->tool, &call->route) < 0) {
                json_decref(report->tool);
                report->tool = NULL;
        }
        if (!report->tool) {
                report->reason = REASON_INTERNAL;
                error_oom(&report->error);
        }
}

static void tool_call_free(struct client_tool *client)
{
        struct tool_call *call = (struct tool_call *)client;

        tool_unref(call->tool);
        buffer_free(&call->heard);
        buffer_free(&call->text);
        free(call);
}

/* Takes a reference of its own. */
static int attach(cbx_call *call, struct tool *tool, const cbx_spec *spec, const struct route *told,
                  bool live, bool output)
{
        struct tool_call *kept = calloc(1, sizeof(*kept));

        if (!kept)
                return -ENOMEM;
        *kept = (struct tool_call){
                .client = { .heard = heard, .next = next, .ended = ended, .free = tool_call_free },
                .tool = tool_ref(tool),
                .form = tool->kind == TOOL_FUNCTION ? MESSAGE_FRAMES : MESSAGE_LINES,
                .live = live && (tool->kind == TOOL_FUNCTION || tool->output == TOOL_LINES),
                .output = output,
                .raw = spec->raw,
                .told = told,
                .route = told ? *told : (struct route){ 0 },
        };
        call->tool = &kept->client;
        return 0;
}

/* ---- A call that is refused ---- */

/* It has a report like any other, but there was no box. */
static int refuse(cbx_policy *policy, const char *name, const char *id, json_t *refusal,
                  cbx_call **ret_call, cbx_error *error)
{
        const char *reason = json_string_value(json_object_get(refusal, "reason"));
        _cleanup_fd_ int theirs = -1;
        cbx_call *call = NULL;
        int r = client_check_id(id, error);

        if (r == 0)
                r = client_open_call(policy, id, &call, &theirs, error);
        if (!call)
                return r;
        call->report.tool = outcome_refused(name, refusal);
        call->report.id = id ? strdup(id) : NULL;
        clock_gettime(CLOCK_REALTIME, &call->report.started_at);
        if (!call->report.tool || (id && !call->report.id)) {
                cbx_call_free(call);
                return error_oom(error);
        }
        error_set(&call->report.error, reason ? -EPERM : -EINVAL, "tool", "%s",
                  reason ? reason : json_string_value(json_object_get(refusal, "error")));
        call->ended = true; /* the end of the socket makes it readable */
        *ret_call = call;
        return 0;
}

static int refuse_unknown(cbx_toolbox *toolbox, const char *name, const char *id,
                          cbx_call **ret_call, cbx_error *error)
{
        cbx_error unknown = CBX_ERROR_INIT;
        _cleanup_json_ json_t *refusal = NULL;
        char shown[128];

        error_set(&unknown, -ENOENT, "", "unknown tool: %s", name); /* and makes it showable */
        snprintf(shown, sizeof(shown), "%.*s", (int)sizeof(shown) - 1,
                 unknown.text + strlen("unknown tool: "));
        text_make_showable(shown);
        refusal = json_pack("{s:s}", "error", unknown.text);
        return refusal ? refuse(toolbox->policy, shown, id, refusal, ret_call, error)
                       : error_oom(error);
}

/* ---- A call that is made ---- */

/* What a call is made of, until it is sent. */
struct request {
        json_t *arguments;
        char *text; /* of the arguments; as it was given where they do not hold all of it */
        char **argv, **environment;
        struct buffer input;
};

static void request_clear(struct request *request)
{
        json_decref(request->arguments);
        free(request->text);
        list_free(request->argv);
        list_free(request->environment);
        buffer_free(&request->input);
}

static int build_served(const struct function *function, struct request *request)
{
        int r = 0;

        for (char **word = function->argv; r == 0 && *word; word++)
                r = list_add(&request->argv, *word);
        return r < 0 ? r
                     : function_request(function, request->text, strlen(request->text),
                                        &request->input);
}

static int build_function(const struct tool *tool, struct request *request,
                          struct tool_mistakes *mistakes)
{
        const struct function *function = &tool->function;
        cbx_error error = CBX_ERROR_INIT;
        char *variable = NULL;
        int r = function_check(function, &error);

        if (r < 0)
                tool_mistake_add(mistakes, &error);
        else
                r = list_add(&request->argv, function->program);
        if (r == 0)
                r = list_add(&request->argv, FUNCTION_MARK);
        if (r == 0 && function->symbol)
                r = list_add(&request->argv, function->object);
        if (r == 0)
                r = function_environment(function, &variable);
        if (r == 0 && variable)
                r = list_take(&request->environment, variable);
        if (r == 0)
                r = function_request(function, request->text, strlen(request->text),
                                     &request->input);
        return r;
}

static int build_variable(struct request *request, const char *name, const char *text,
                          const char *what, struct tool_mistakes *mistakes)
{
        cbx_error error = CBX_ERROR_INIT;
        char *variable = NULL;

        if (strlen(text) > VARIABLE_MAX) {
                error_set(&error, -EINVAL, "", "%s too long for the environment, %zu bytes", what,
                          strlen(text));
                tool_mistake_add(mistakes, &error);
                return -EINVAL;
        }
        if (asprintf(&variable, "%s%s", name, text) < 0)
                return -ENOMEM;
        return list_take(&request->environment, variable);
}

static int build_command(const struct tool *tool, struct request *request,
                         struct tool_mistakes *mistakes)
{
        const char *const shell[] = { "/bin/sh", "-c", tool->shell, tool->name };
        bool variable = tool->arguments == TOOL_ARGUMENTS_ENVIRONMENT ||
                        tool->arguments == TOOL_ARGUMENTS_BOTH;
        bool input =
                tool->arguments == TOOL_ARGUMENTS_STDIN || tool->arguments == TOOL_ARGUMENTS_BOTH;
        int r = 0;

        for (size_t i = 0; r == 0 && tool->shell && i < ARRAY_SIZE(shell); i++)
                r = list_add(&request->argv, shell[i]);
        if (r == 0 && tool->template)
                r = template_expand(tool->template, request->arguments, mistakes, &request->argv);
        if (r == 0 && variable)
                r = build_variable(request, ARGUMENTS_VARIABLE, request->text, "they are",
                                   mistakes);
        if (r == 0 && input)
                r = buffer_printf(&request->input, "%s\n", request->text);
        return r;
}

/* -EINVAL: the arguments cannot be given to the tool; -ESTALE: its program is not there any more.
 * The mistakes say why. */
static int build(const struct tool *tool, const char *answers, struct request *request,
                 struct tool_mistakes *mistakes)
{
        int r;

        if (!request->text)
                request->text = json_write(request->arguments, 0);
        request->argv = list_new();
        request->environment = list_new();
        if (!request->text || !request->argv || !request->environment)
                return -ENOMEM;
        if (tool->function.argv)
                r = build_served(&tool->function, request);
        else if (tool->kind == TOOL_FUNCTION)
                r = build_function(tool, request, mistakes);
        else
                r = build_command(tool, request, mistakes);
        if (r == 0 && answers)
                r = build_variable(request, ANSWERS_VARIABLE, answers, "the answers are", mistakes);
        return r;
}

/* What the caller's spec may say of the call of a tool. */
static int read_spec(const struct tool *tool, const cbx_spec *given, cbx_spec *spec,
                     cbx_error *error)
{
        bool captured;
        int r;

        if (!given)
                return 0;
        r = client_read_struct("cbx_spec", given, CLIENT_SPEC_LEAST, spec, sizeof(*spec), error);
        if (r < 0)
                return r;
        spec->size = sizeof(*spec);
        if (spec->argv || spec->shell || spec->environment || spec->cwd || spec->input ||
            spec->input_mode || spec->warm)
                return error_set(error, -EINVAL, "spec",
                                 "argv, shell, environment, cwd, input and warm are the tool's own "
                                 "affair");
        captured = spec->output_mode == CBX_CAPTURE || spec->output_mode == CBX_EVENTS;
        if (tool && tool->kind != TOOL_FUNCTION && !captured)
                return error_set(error, -EINVAL, "output_mode",
                                 "the output of %s is its result and must be captured", tool->name);
        return client_check_modes(spec, error);
}

/* It fails closed: whoever cannot ask does not call. */
static json_t *refuse_unapproved(const struct tool *tool)
{
        return json_pack("{s:o}", "error",
                         json_sprintf("%s has to be approved before it is called: %s", tool->name,
                                      tool->ask.message));
}

/* The application, or the manifest, says no. */
static json_t *refuse_route(const struct route *route)
{
        json_t *refusal = json_pack("{s:b, s:s}", "denied", 1, "reason", route->reason);

        if (refusal && toolbox_set_route(refusal, route) < 0) {
                json_decref(refusal);
                return NULL;
        }
        return refusal;
}

static int start(cbx_toolbox *toolbox, struct tool *tool, const struct route *route,
                 struct request *request, cbx_spec *spec, cbx_call **ret_call, cbx_error *error)
{
        const cbx_backend *backend = routing_find(&toolbox->routing, route->backend);
        bool live = spec->result_mode == CBX_RESULT_EVENTS;
        bool output = spec->output_mode == CBX_EVENTS;
        cbx_policy *policy = spec->approved && tool->ask.policy ? tool->ask.policy : tool->policy;
        struct wire_bound bounds[WIRE_BOUNDS] = { { toolbox->key, toolbox->calls },
                                                  { tool->key, tool->calls } };
        cbx_order order = { .tool = tool->name,
                            .arguments = request->text,
                            .argv = (const char *const *)request->argv,
                            .environment = (const char *const *)request->environment,
                            .input = request->input.data,
                            .input_length = request->input.length,
                            .policy = policy };
        cbx_call *call;
        int r;

        spec->argv = (const char *const *)request->argv;
        spec->environment = (const char *const *)request->environment;
        spec->input = request->input.data;
        spec->input_length = request->input.length;
        if (tool->kind == TOOL_FUNCTION) {
                /* No box is kept ready for what was answered once, nor where there is none. */
                if (!spec->answers && route->to == CBX_TO_BOX)
                        spec->warm =
                                tool->function.forks ? CBX_WARM_FORKED_LATER : CBX_WARM_STARTED;
                spec->result_mode = live ? CBX_RESULT_EVENTS : CBX_RESULT;
        } else {
                spec->result_mode = CBX_NO_RESULT;
                if (live && tool->output == TOOL_LINES)
                        spec->output_mode = CBX_EVENTS;
        }
        spec->approved = 0;
        spec->answers = NULL;
        toolbox_log_route(toolbox, tool, route);
        r = backend ? toolbox_start_elsewhere(backend, tool, &order, spec, &call, error)
                    : client_start(toolbox->warden, policy, spec, bounds, route->unboxed, &call,
                                   error);
        if (r < 0)
                return r;
        if (attach(call, tool, spec, toolbox_tells_route(toolbox, tool) ? route : NULL, live,
                   output) < 0) {
                cbx_call_free(call);
                return error_oom(error);
        }
        *ret_call = call;
        return 0;
}

static struct tool *find(cbx_toolbox *toolbox, const char *name)
{
        struct tool *tool;

        pthread_mutex_lock(&toolbox->lock);
        tool = toolbox_find(toolbox, name);
        if (tool)
                tool_ref(tool);
        pthread_mutex_unlock(&toolbox->lock);
        return tool;
}

/* The arguments are text, or where that is NULL a value. */
static int start_named(cbx_toolbox *toolbox, const char *name, const char *text, json_t *value,
                       const cbx_spec *given, cbx_call **ret_call, cbx_error *error)
{
        _cleanup_(request_clear) struct request request = { .input = BUFFER_INIT };
        _cleanup_tool_ struct tool *tool = NULL;
        _cleanup_json_ json_t *refusal = NULL;
        _cleanup_mistakes_ struct tool_mistakes wrong = TOOL_MISTAKES_INIT;
        cbx_error stale = CBX_ERROR_INIT;
        cbx_spec spec = CBX_SPEC_INIT;
        struct route route;
        bool wide = false;
        int r;

        if (!toolbox || !name)
                return error_set(error, -EINVAL, !toolbox ? "toolbox" : "name", "is NULL");
        tool = find(toolbox, name);
        r = read_spec(tool, given, &spec, error);
        if (r < 0)
                return r;
        if (!tool)
                return refuse_unknown(toolbox, name, spec.id, ret_call, error);
        route = toolbox_route(toolbox, tool);
        if (route.to == CBX_TO_NOBODY) {
                refusal = refuse_route(&route);
                return refusal ? refuse(tool->policy, tool->name, spec.id, refusal, ret_call, error)
                               : error_oom(error);
        }
        r = text ? arguments_read(tool, text, strlen(text), &request.arguments, &wide, &refusal)
                 : arguments_check(tool, value, &request.arguments, &refusal);
        if (r == 0 && !tool_asks(tool, request.arguments))
                spec.approved = 0; /* there was nothing to approve, so nothing is widened */
        else if (r == 0 && !spec.approved)
                r = (refusal = refuse_unapproved(tool)) ? 0 : -ENOMEM;
        if (r == 0 && !refusal && wide && !(request.text = strdup(text)))
                r = -ENOMEM;
        if (r == 0 && !refusal) {
                r = build(tool, spec.answers, &request, &wrong);
                if (r == -EINVAL)
                        refusal = tool_refusal_of_all(TOOL_BAD_ARGUMENTS, &wrong);
                else if (r == -ESTALE && tool_mistakes_error(&wrong, &stale) == -EINVAL)
                        refusal = json_pack("{s:s}", "error", stale.text);
        }
        if (refusal)
                return refuse(tool->policy, tool->name, spec.id, refusal, ret_call, error);
        return r < 0 ? error_oom(error)
                     : start(toolbox, tool, &route, &request, &spec, ret_call, error);
}

int cbx_toolbox_start(cbx_toolbox *toolbox, const char *name, const char *arguments,
                      const cbx_spec *given, cbx_call **ret_call, cbx_error *error)
{
        return start_named(toolbox, name, arguments ? arguments : "{}", NULL, given, ret_call,
                           error);
}

int toolbox_start(cbx_toolbox *toolbox, const char *name, json_t *arguments, const cbx_spec *given,
                  cbx_call **ret_call, cbx_error *error)
{
        return start_named(toolbox, name, NULL, arguments, given, ret_call, error);
}

int cbx_toolbox_call(cbx_toolbox *toolbox, const char *name, const char *arguments,
                     cbx_call **ret_call, cbx_error *error)
{
        return cbx_toolbox_start(toolbox, name, arguments, NULL, ret_call, error);
}
