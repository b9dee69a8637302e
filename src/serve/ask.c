/* SPDX-License-Identifier: MIT */
/*
 * Questions to the client: whether a call may be made, or what a tool wants to know. How they are
 * asked depends on the era: in 2026-07-28 they are the answer to the request, and the client calls
 * again; before, they are requests of ours while the call waits; a task has them in its state.
 *
 * Nothing is asked that the client did not say it can do. Where that is all, the call fails.
 */
#include <stdio.h>
#include <string.h>

#include "serve/serve_parts.h"

#define WAIT_SECONDS 600 /* legacy: for an answer */
#define SHOWN_MAX 4000   /* bytes of arguments in a question */

/* ---- Who can be asked ---- */

static const struct {
        const char *method, *capability;
        unsigned need;
} askable[] = {
        { "elicitation/create", "elicitation", TOOL_NEEDS_ELICITATION },
        { "sampling/createMessage", "sampling", TOOL_NEEDS_SAMPLING },
        { "roots/list", "roots", TOOL_NEEDS_ROOTS },
};

static const char *capability_of(const char *method)
{
        for (size_t i = 0; i < ARRAY_SIZE(askable); i++)
                if (strcmp(askable[i].method, method) == 0)
                        return askable[i].capability;
        return "";
}

bool ask_can(const json_t *capabilities, const char *method)
{
        const char *name = capability_of(method);
        const json_t *capability = json_object_get(capabilities, name);

        if (!json_is_object(capability))
                return false;
        /* An elicitation capability that names no mode means forms. */
        return strcmp(name, "elicitation") != 0 || json_object_size(capability) == 0 ||
               json_object_get(capability, "form");
}

void questions_clear(struct questions *questions)
{
        json_decref(questions->requests);
        json_decref(questions->ids);
        json_decref(questions->answers);
        json_decref(questions->keys);
        json_decref(questions->state);
        if (questions->timeout)
                event_free(questions->timeout);
        *questions = (struct questions){ 0 };
}

/* It cannot be asked: fail, and say what is missing. */
static void refuse(struct serve_call *call, const json_t *missing, const char *what)
{
        _cleanup_failure_ struct rpc_failure failure = { 0 };

        if (!call->modern || call->task) {
                serve_call_refuse(
                        call, "refused",
                        "%s was not %s: it has to ask for something that this client cannot "
                        "do.",
                        call->tool->name, what);
                return;
        }
        rpc_fail(&failure, RPC_MISSING_CAPABILITY,
                 "%s was not %s: the client did not say that it can do what has to be asked for",
                 call->tool->name, what);
        failure.data = json_pack("{s:O}", "requiredCapabilities", missing);
        serve_call_record(call, NULL, "refused", failure.text);
        serve_call_fail(call, &failure);
}

static void out_of_memory(struct serve_call *call)
{
        struct rpc_failure failure = { 0 };

        rpc_fail(&failure, RPC_INTERNAL_ERROR, "out of memory");
        serve_call_record(call, NULL, "error", failure.text);
        serve_call_fail(call, &failure);
}

int ask_check_needs(struct serve_call *call)
{
        _cleanup_json_ json_t *missing = json_object();

        if (!missing)
                return -ENOMEM;
        for (size_t i = 0; i < ARRAY_SIZE(askable); i++)
                if ((call->tool->needs & askable[i].need) &&
                    !ask_can(call->capabilities, askable[i].method) &&
                    json_object_set_new(missing, askable[i].capability, json_object()) < 0)
                        return -ENOMEM;
        if (json_object_size(missing) == 0)
                return 0;
        refuse(call, missing, "called");
        return 1;
}

/* ---- Asking ---- */

static void on_timeout(evutil_socket_t fd, short what, void *context)
{
        (void)fd, (void)what;
        serve_call_refuse(context, "declined", "Nobody answered in time; nothing more was run.");
}

/* The older era: requests of ours, on the way to the answer. */
static int ask_by_requests(struct serve_call *call)
{
        struct questions *asked = &call->asked;
        struct timeval wait = { .tv_sec = WAIT_SECONDS };
        const char *key;
        json_t *request;

        asked->ids = json_object();
        asked->timeout = evtimer_new(call->serve->base, on_timeout, call);
        if (!asked->ids || !asked->timeout || evtimer_add(asked->timeout, &wait) < 0)
                return -ENOMEM;
        json_object_foreach(asked->requests, key, request)
        {
                json_t *params = json_object_get(request, "params");
                json_t *id =
                        json_sprintf("callbox-%llu", (unsigned long long)++call->serve->serial);

                if (!id || json_object_set_new(asked->ids, key, id) < 0)
                        return -ENOMEM;
                if (!request_send(call->request,
                                  rpc_write_request(
                                          id, json_string_value(json_object_get(request, "method")),
                                          params ? json_incref(params) : json_object())))
                        return -EPIPE;
        }
        return 0;
}

/* The newer one: the answer is what is asked, and the client calls again. */
static int ask_by_result(struct serve_call *call, json_t **ret_result)
{
        struct questions *asked = &call->asked;
        _cleanup_free_ char *sealed = NULL;
        json_t *result;
        int r = 0;

        if (asked->approval || asked->state || call->approved)
                r = seal_write(call, asked->state, asked->approval, &sealed);
        if (r < 0)
                return r;
        result = json_pack("{s:s, s:O, s:s*}", "resultType", "input_required", "inputRequests",
                           asked->requests, "requestState", sealed);
        *ret_result = result;
        return result ? 0 : -ENOMEM;
}

/* A task: its state has them, by keys that it never uses again. */
static int ask_by_task(struct serve_call *call)
{
        struct questions *asked = &call->asked;
        _cleanup_json_ json_t *requests = json_object();
        const char *key;
        json_t *request;

        call->round++;
        asked->keys = json_object();
        if (!requests || !asked->keys)
                return -ENOMEM;
        json_object_foreach(asked->requests, key, request)
        {
                _cleanup_json_ json_t *given = json_sprintf("%u.%s", call->round, key);

                if (!given || json_object_set(requests, json_string_value(given), request) < 0 ||
                    json_object_set_new(asked->keys, json_string_value(given), json_string(key)) <
                            0)
                        return -ENOMEM;
        }
        json_decref(asked->requests);
        asked->requests = TAKE_PTR(requests);
        task_changed(call->task);
        return 0;
}

/* Takes the requests. */
static void ask(struct serve_call *call, json_t *requests, const json_t *state, bool approval)
{
        struct questions *asked = &call->asked;
        json_t *result = NULL;
        int r;

        questions_clear(asked);
        asked->requests = requests;
        asked->answers = json_object();
        asked->state = json_incref((json_t *)state);
        asked->approval = approval;
        if (!asked->answers)
                r = -ENOMEM;
        else if (call->task)
                r = ask_by_task(call);
        else if (call->modern)
                r = ask_by_result(call, &result);
        else
                r = ask_by_requests(call);
        if (r == -EPIPE)
                serve_call_refuse(call, "refused",
                                  "%s asks for something, and the client does not read.",
                                  call->tool->name);
        else if (r < 0)
                out_of_memory(call);
        else if (result)
                serve_call_finish(call, result);
}

/* ---- Approval ---- */

/* All that is decided on, in words. What the model wrote is JSON in ASCII: no line of it can look
 * like one of ours, whatever a client takes for a line, and nothing of it is unseen. */
static char *approval_text(const struct serve_call *call, const char *arguments)
{
        _cleanup_buffer_ struct buffer text = BUFFER_INIT;
        _cleanup_free_ char *policy =
                call->tool->ask.written ? json_write(call->tool->ask.written, 0) : NULL;
        int r;

        if (call->tool->ask.written && !policy)
                return NULL;
        r = buffer_printf(&text, "%s\n\nTool: %s\nArguments: %s", call->tool->ask.message,
                          call->tool->name, arguments);
        if (r == 0 && policy)
                r = buffer_printf(&text, "\nIf you allow it, it runs under this policy: %s",
                                  policy);
        return r == 0 ? TAKE_PTR(text.data) : NULL;
}

void ask_approval(struct serve_call *call)
{
        _cleanup_json_ json_t *missing = json_pack("{s:{}}", "elicitation");
        _cleanup_free_ char *text = NULL, *arguments = NULL;
        json_t *requests;

        if (!ask_can(call->capabilities, "elicitation/create")) {
                refuse(call, missing, "approved");
                return;
        }
        arguments = json_dumps(call->arguments, JSON_COMPACT | JSON_ENSURE_ASCII);
        if (arguments && strlen(arguments) > SHOWN_MAX) { /* nobody allows what he has not seen */
                serve_call_refuse(call, "refused",
                                  "%s was not called: it has to be allowed first, and its "
                                  "arguments are too long to be shown to whoever decides (%zu "
                                  "bytes; %d are the most).",
                                  call->tool->name, strlen(arguments), SHOWN_MAX);
                return;
        }
        text = arguments ? approval_text(call, arguments) : NULL;
        requests =
                json_pack("{s:{s:s, s:{s:s, s:{s:s, s:{s:{s:s, s:s, s:s, s:b}}, s:[s]}}}}",
                          "approval", "method", "elicitation/create", "params", "message",
                          text ? text : "", "requestedSchema", "type", "object", "properties",
                          "allow", "type", "boolean", "title", "Allow this call", "description",
                          "Once, with exactly these arguments.", "default", 0, "required", "allow");
        if (!text || !requests) {
                json_decref(requests);
                out_of_memory(call);
                return;
        }
        serve_call_record(call, NULL, "asked", NULL);
        ask(call, requests, NULL, true);
}

/* ---- What a tool wants to know ---- */

void ask_for_tool(struct serve_call *call, const json_t *given)
{
        _cleanup_json_ json_t *requests = json_object(), *missing = json_object();
        json_t *request;
        const char *key;
        int r = requests && missing ? 0 : -ENOMEM;

        json_object_foreach(json_object_get(given, "inputRequests"), key, request)
        {
                const char *method = json_string_value(json_object_get(request, "method"));

                if (r == 0 && ask_can(call->capabilities, method))
                        r = json_object_set(requests, key, request);
                else if (r == 0)
                        r = json_object_set_new(missing, capability_of(method), json_object());
        }
        if (r < 0)
                out_of_memory(call);
        else if (json_object_size(requests) == 0)
                refuse(call, missing, "finished");
        else
                ask(call, TAKE_PTR(requests), json_object_get(given, "requestState"), false);
}
