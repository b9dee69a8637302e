/* SPDX-License-Identifier: MIT */
/* Answers to what was asked, from wherever they come: with a request, to a task, or as a response.
 */
#include <string.h>

#include "serve/serve_parts.h"

#define ROUNDS_MAX 32 /* legacy: a tool that asks for ever */

/* ---- Approval ---- */

enum verdict { APPROVED, DECLINED, NO_VERDICT };

/* Yes is an accepted form in which "allow" is true, and nothing else is. */
static enum verdict verdict_of(const json_t *answer)
{
        const char *action = json_string_value(json_object_get(answer, "action"));

        if (!action)
                return NO_VERDICT;
        if (strcmp(action, "accept") == 0 &&
            json_is_true(json_object_get(json_object_get(answer, "content"), "allow")))
                return APPROVED;
        return DECLINED;
}

static void decline(struct serve_call *call)
{
        serve_call_refuse(
                call, "declined",
                "The user did not allow this call of %s; nothing was run. Do not try it again "
                "unless the user asks for it.",
                call->tool->name);
}

/* ---- With a request ---- */

static int check_responses(const json_t *responses, struct rpc_failure *failure)
{
        json_t *response;
        const char *key;

        if (!json_is_object(responses))
                return rpc_fail(failure, RPC_INVALID_PARAMS,
                                "inputResponses must be an object, not %s",
                                json_type_str(responses));
        json_object_foreach((json_t *)responses, key, response)
        {
                if (!json_is_object(response))
                        return rpc_fail(failure, RPC_INVALID_PARAMS,
                                        "inputResponses: \"%.64s\" must be an object, not %s", key,
                                        json_type_str(response));
        }
        return 0;
}

int answer_read(struct serve_call *call, struct rpc_failure *failure)
{
        const json_t *params = call->request->message.params;
        json_t *responses = json_object_get(params, "inputResponses");
        const json_t *state = json_object_get(params, "requestState");
        struct seal seal = { 0 };
        int r = 0;

        if (!call->modern)
                return 0;
        if (responses)
                r = check_responses(responses, failure);
        if (r == 0 && state && !json_is_string(state))
                r = rpc_fail(failure, RPC_INVALID_PARAMS, "requestState must be a string");
        if (r == 0 && state)
                r = seal_open(call, json_string_value(state), &seal, failure);
        if (r < 0)
                return r;
        call->approved = seal.approved;
        call->state = seal.state;
        if (!seal.approval) {
                if (call->tool->returns_content)
                        call->answers = json_incref(responses);
                return 0;
        }
        switch (verdict_of(json_object_get(responses, "approval"))) {
        case APPROVED:
                call->approved = true;
                return 0;
        case DECLINED:
                decline(call);
                return 1;
        default:
                return 0; /* it is asked again */
        }
}

/* ---- All is answered ---- */

void answer_go_on(struct serve_call *call)
{
        _cleanup_failure_ struct rpc_failure failure = { 0 };
        struct questions *asked = &call->asked;
        int r;

        if (asked->approval) {
                if (verdict_of(json_object_get(asked->answers, "approval")) != APPROVED) {
                        decline(call);
                        return;
                }
                call->approved = true;
        } else {
                json_decref(call->answers);
                json_decref(call->state);
                call->answers = TAKE_PTR(asked->answers);
                call->state = TAKE_PTR(asked->state);
        }
        questions_clear(asked);
        if (!call->task && ++call->round > ROUNDS_MAX) {
                serve_call_refuse(call, "error", "%s asked too often.", call->tool->name);
                return;
        }
        r = serve_call_start(call, &failure);
        if (r == -ENOMEM)
                rpc_fail(&failure, RPC_INTERNAL_ERROR, "out of memory");
        if (r < 0) {
                serve_call_record(call, NULL, "error", failure.text);
                serve_call_fail(call, &failure);
        }
}

/* ---- To a task ---- */

void answer_task(struct serve_call *call, const json_t *responses)
{
        struct questions *asked = &call->asked;
        json_t *response;
        const char *key;

        if (!asked->requests)
                return;
        json_object_foreach((json_t *)responses, key, response)
        {
                const char *own = json_string_value(json_object_get(asked->keys, key));

                if (!own || !json_object_get(asked->requests, key) || !json_is_object(response) ||
                    json_object_set(asked->answers, own, response) < 0)
                        continue; /* not outstanding, or no answer: it is ignored */
                json_object_del(asked->requests, key);
        }
        if (json_object_size(asked->requests) > 0) {
                task_changed(call->task);
                return;
        }
        answer_go_on(call);
}

/* ---- As a response ---- */

static struct serve_call *find_question(struct serve_peer *peer, const json_t *id,
                                        const char **ret_key)
{
        struct serve_request *request;

        TAILQ_FOREACH(request, &peer->requests, link)
        {
                json_t *ids = request->call ? request->call->asked.ids : NULL, *asked;
                const char *key;

                json_object_foreach(ids, key, asked)
                {
                        if (json_equal(asked, id)) {
                                *ret_key = key;
                                return request->call;
                        }
                }
        }
        return NULL;
}

void answer_response(struct serve_peer *peer, const struct rpc_message *message)
{
        const char *key = NULL;
        struct serve_call *call = find_question(peer, message->id, &key);
        json_t *result = json_object_get(message->json, "result");
        const char *text = json_string_value(
                json_object_get(json_object_get(message->json, "error"), "message"));

        if (!call)
                return;
        if (!json_is_object(result)) {
                serve_call_refuse(call, "declined",
                                  "%s had to ask, and the client answered: %.400s",
                                  call->tool->name, text ? text : "(nothing)");
                return;
        }
        if (json_object_set(call->asked.answers, key, result) == 0)
                json_object_del(call->asked.ids, key);
        if (json_object_size(call->asked.ids) == 0)
                answer_go_on(call);
}
