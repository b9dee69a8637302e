/* SPDX-License-Identifier: MIT */
/* Peers and their requests: how they come and go. */
#include <string.h>

#include "serve/serve_parts.h"

/* ---- Requests ---- */

struct serve_request *request_new(struct serve_peer *peer, struct rpc_message *message,
                                  struct serve_reply *reply)
{
        struct serve_request *request = calloc(1, sizeof(*request));

        if (!request)
                return NULL;
        request->peer = peer;
        request->reply = reply;
        request->message = *message;
        *message = (struct rpc_message){ 0 };
        TAILQ_INSERT_TAIL(&peer->requests, request, link);
        peer->n_requests++;
        peer->serve->n_requests++;
        return request;
}

static void request_free(struct serve_request *request)
{
        struct serve_peer *peer = request->peer;

        if (request->call)
                serve_call_cancel(request->call);
        TAILQ_REMOVE(&peer->requests, request, link);
        peer->n_requests--;
        peer->serve->n_requests--;
        rpc_message_clear(&request->message);
        free(request);
}

static void answer(struct serve_request *request, int status, char *text)
{
        /* Memory ran out: the least that lets the client go on. */
        static const char last_words[] =
                "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32603,\"message\":\"out of memory\"}}";
        struct serve_reply *reply = TAKE_PTR(request->reply);

        request_free(request);
        if (reply && text)
                reply->finish(reply, status, text, strlen(text));
        else if (reply)
                reply->finish(reply, 500, last_words, strlen(last_words));
        free(text);
}

void request_finish(struct serve_request *request, json_t *result)
{
        if (result && result_complete(request->modern, result) < 0) {
                json_decref(result);
                result = NULL;
        }
        answer(request, 200, rpc_write_result(request->message.id, result));
}

void request_fail(struct serve_request *request, const struct rpc_failure *failure)
{
        answer(request, failure->status ? failure->status : 200,
               rpc_write_failure(request->message.id, failure));
}

bool request_send(struct serve_request *request, char *text)
{
        bool sent =
                text && request->reply && request->reply->send(request->reply, text, strlen(text));

        free(text);
        return sent;
}

void serve_request_redirect(struct serve_request *request, struct serve_reply *reply)
{
        request->reply = reply;
}

void serve_request_detach(struct serve_request *request)
{
        request->reply = NULL;
}

void serve_request_cancel(struct serve_request *request)
{
        request->reply = NULL;
        request_free(request);
}

/* ---- Peers ---- */

struct serve_peer *serve_peer_new(struct serve *serve, const struct serve_peer_ops *ops,
                                  void *context)
{
        struct serve_peer *peer = calloc(1, sizeof(*peer));

        if (!peer)
                return NULL;
        peer->serve = serve;
        peer->ops = ops;
        peer->context = context;
        peer->level = LEVEL_INFO;
        TAILQ_INIT(&peer->requests);
        TAILQ_INSERT_TAIL(&serve->peers, peer, link);
        serve->n_peers++;
        return peer;
}

struct serve_peer *serve_peer_free(struct serve_peer *peer)
{
        struct serve_request *request;

        if (!peer)
                return NULL;
        while ((request = TAILQ_FIRST(&peer->requests)))
                serve_request_cancel(request);
        TAILQ_REMOVE(&peer->serve->peers, peer, link);
        peer->serve->n_peers--;
        json_decref(peer->capabilities);
        free(peer->client);
        free(peer);
        return NULL;
}

const char *serve_peer_version(const struct serve_peer *peer)
{
        return peer->version[0] ? peer->version : NULL;
}
