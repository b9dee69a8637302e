/* SPDX-License-Identifier: MIT */
/* From a message to a method: which era it is of, and what every request and result must have. */
#include <string.h>

#include "serve/serve_parts.h"

const char *const serve_versions[] = { SERVE_MODERN_VERSION, SERVE_LEGACY_VERSION, "2025-06-18",
                                       "2025-03-26",         "2024-11-05",         NULL };

bool serve_version_is_known(const char *version)
{
        for (const char *const *known = serve_versions; *known; known++)
                if (strcmp(version, *known) == 0)
                        return true;
        return false;
}

bool serve_version_is_modern(const char *version)
{
        return strcmp(version, SERVE_MODERN_VERSION) == 0;
}

/* ---- Methods ---- */

enum { LEGACY = 1 << 0, MODERN = 1 << 1, UNGREETED = 1 << 2 /* before initialize as well */ };

static const struct method {
        const char *name;
        unsigned eras;
        serve_method *run;
} methods[] = {
        { "initialize", LEGACY | UNGREETED, serve_initialize },
        { "ping", LEGACY | UNGREETED, serve_ping },
        { "logging/setLevel", LEGACY, serve_set_level },
        { "server/discover", MODERN, serve_discover },
        { "subscriptions/listen", MODERN, serve_listen },
        { "tasks/cancel", MODERN, serve_task_cancel },
        { "tasks/get", MODERN, serve_task_get },
        { "tasks/update", MODERN, serve_task_update },
        { "tools/call", LEGACY | MODERN, serve_call },
        { "tools/list", LEGACY | MODERN, serve_list },
};

static const struct method *find_method(const char *name, unsigned era)
{
        for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
                if (strcmp(methods[i].name, name) == 0 && (methods[i].eras & era))
                        return &methods[i];
        return NULL;
}

/* ---- What a request must have ---- */

static int refuse_version(const char *asked, struct rpc_failure *failure)
{
        json_t *supported = json_array();

        for (const char *const *version = serve_versions; supported && *version; version++)
                if (json_array_append_new(supported, json_string(*version)) < 0)
                        return -ENOMEM;
        rpc_fail(failure, RPC_UNSUPPORTED_VERSION, "protocol version %.64s is not spoken here",
                 asked);
        failure->data = json_pack("{s:o, s:s}", "supported", supported, "requested", asked);
        return failure->data ? -EINVAL : -ENOMEM;
}

static int refuse_meta(struct rpc_failure *failure, const char *key)
{
        rpc_fail(failure, RPC_INVALID_PARAMS,
                 "params._meta lacks " META "%s (or, in the older era, initialize comes first)",
                 key);
        failure->status = 400;
        return -EINVAL;
}

/* Which era, and whether the request has what that asks for. */
static int check_modern(struct serve_request *request, struct rpc_failure *failure)
{
        const struct rpc_message *message = &request->message;
        json_t *capabilities = json_object_get(message->meta, META "clientCapabilities");

        if (!message->version)
                return refuse_meta(failure, "protocolVersion");
        if (!serve_version_is_modern(message->version))
                return refuse_version(message->version, failure);
        if (!json_is_object(capabilities))
                return refuse_meta(failure, "clientCapabilities");
        request->capabilities = capabilities;
        return 0;
}

static int choose(struct serve_request *request, const struct method **ret_method,
                  struct rpc_failure *failure)
{
        const struct rpc_message *message = &request->message;
        bool greeted = request->peer->version[0];
        const struct method *method = find_method(message->method, LEGACY);
        int r = 0;

        request->modern =
                message->version || (!greeted && (!method || !(method->eras & UNGREETED)));
        if (request->modern) {
                r = check_modern(request, failure);
                method = find_method(message->method, MODERN);
        } else {
                request->capabilities = request->peer->capabilities;
        }
        if (r == 0 && !method) {
                r = rpc_fail(failure, RPC_METHOD_NOT_FOUND, "there is no method %.128s",
                             message->method);
                failure->status = request->modern ? 404 : 200;
        }
        *ret_method = method;
        return r;
}

/* ---- What a result must have ---- */

int result_complete(bool modern, json_t *result)
{
        json_t *meta = json_object_get(result, "_meta"), *server;

        if (!modern)
                return 0;
        if (!json_object_get(result, "resultType") &&
            json_object_set_new(result, "resultType", json_string("complete")) < 0)
                return -ENOMEM;
        server = json_pack("{s:s, s:s}", "name", "callbox", "version", cbx_version());
        if (meta)
                return json_object_set_new(meta, META "serverInfo", server) < 0 ? -ENOMEM : 0;
        meta = json_pack("{s:o}", META "serverInfo", server);
        return json_object_set_new(result, "_meta", meta) < 0 ? -ENOMEM : 0;
}

/* ---- Notifications ---- */

static struct serve_request *find_request(struct serve_peer *peer, const json_t *id)
{
        struct serve_request *request;

        TAILQ_FOREACH(request, &peer->requests, link)
        {
                if (json_equal(request->message.id, id))
                        return request;
        }
        return NULL;
}

/* The client has lost interest in a request: nothing more is sent for it. */
static void cancel(struct serve_peer *peer, const struct rpc_message *message)
{
        const json_t *id = json_object_get(message->params, "requestId");
        struct serve_request *request = id ? find_request(peer, id) : NULL;
        struct serve_reply *reply;

        if (!request)
                return;
        reply = TAKE_PTR(request->reply);
        serve_request_cancel(request);
        if (reply)
                reply->finish(reply, 0, NULL, 0);
}

static void take_notice(struct serve_peer *peer, struct rpc_message *message,
                        struct serve_reply *reply)
{
        if (message->kind == RPC_RESPONSE)
                answer_response(peer, message);
        else if (strcmp(message->method, "notifications/cancelled") == 0)
                cancel(peer, message);
        rpc_message_clear(message);
        reply->finish(reply, 202, NULL, 0);
}

/* ---- All of it ---- */

/* Ids tell requests apart; a client that has too many waits for some of them first. */
static int check_place(struct serve_request *request, struct rpc_failure *failure)
{
        const struct serve_peer *peer = request->peer;

        if (peer->n_requests > peer->serve->options.requests)
                return rpc_fail(failure, RPC_INTERNAL_ERROR,
                                "too many requests at once: wait for some of the %u",
                                peer->serve->options.requests);
        if (find_request(request->peer, request->message.id) != request)
                return rpc_fail(failure, RPC_INVALID_REQUEST, "this id is in use");
        return 0;
}

/* A method may have answered by itself; then there is no request any more. */
static struct serve_request *find_live(struct serve_peer *peer, const struct serve_request *request)
{
        struct serve_request *live;

        TAILQ_FOREACH(live, &peer->requests, link)
        {
                if (live == request)
                        return live;
        }
        return NULL;
}

static struct serve_request *start(struct serve_request *request)
{
        _cleanup_failure_ struct rpc_failure failure = { 0 };
        struct serve_peer *peer = request->peer;
        const struct method *method;
        json_t *result = NULL;
        int r = check_place(request, &failure);

        if (r == 0)
                r = choose(request, &method, &failure);
        if (r == -EINVAL && strcmp(request->message.method, "tools/call") == 0)
                serve_request_record(request, failure.text);
        if (r == 0)
                r = method->run(request, &result, &failure);
        if (r > 0)
                return find_live(peer, request);
        if (r == -EINVAL)
                request_fail(request, &failure);
        else
                request_finish(request, result);
        return NULL;
}

struct serve_request *serve_receive(struct serve_peer *peer, struct rpc_message *message,
                                    struct serve_reply *reply)
{
        struct serve_request *request;

        if (message->kind != RPC_REQUEST) {
                take_notice(peer, message, reply);
                return NULL;
        }
        request = request_new(peer, message, reply);
        if (request)
                return start(request);
        rpc_message_clear(message);
        reply->finish(reply, 500, NULL, 0);
        return NULL;
}

char *serve_refuse(const struct rpc_message *message, const struct rpc_failure *failure)
{
        return rpc_write_failure(message->id, failure);
}
