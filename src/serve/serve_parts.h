/* SPDX-License-Identifier: MIT */
/*
 * The inside of the server.
 *
 *   serve.c      the server, changes of the toolbox
 *   peer.c       peers and requests, and their ways to an end
 *   dispatch.c   from a message to a method; what every request and result must have
 *   hello.c      initialize, server/discover, ping
 *   list.c       tools/list
 */
#ifndef SERVE_SERVE_PARTS_H
#define SERVE_SERVE_PARTS_H

#include <event2/event.h>
#include <sys/queue.h>

#include "serve/serve.h"
#include "tool/toolbox.h"

#define META "io.modelcontextprotocol/"

struct serve {
        struct event_base *base;
        cbx_toolbox *toolbox;
        struct serve_options options;
        char *instructions;
        struct event *changes;
        TAILQ_HEAD(, serve_peer) peers;
        size_t n_peers, n_requests, n_calls, n_tasks;
};

struct serve_peer {
        struct serve *serve;
        const struct serve_peer_ops *ops;
        void *context;
        char version[16];     /* legacy: what initialize agreed on; else empty */
        json_t *capabilities; /* of the client, legacy */
        char *client;         /* its name; NULL: not told */
        TAILQ_HEAD(, serve_request) requests;
        size_t n_requests;
        TAILQ_ENTRY(serve_peer) link;
};

struct serve_request {
        struct serve_peer *peer;
        struct serve_reply *reply; /* NULL: there is nobody to answer to any more */
        struct rpc_message message;
        bool modern;
        json_t *capabilities; /* of the client; never NULL; borrowed */
        TAILQ_ENTRY(serve_request) link;
};

/* ---- peer.c ---- */

/* Answer, and forget the request. request_finish takes the result. */
void request_finish(struct serve_request *request, json_t *result);
void request_fail(struct serve_request *request, const struct rpc_failure *failure);
struct serve_request *request_new(struct serve_peer *peer, struct rpc_message *message,
                                  struct serve_reply *reply);
void request_free(struct serve_request *request);

/* ---- dispatch.c ---- */

/* Add to a result what every one has in this era. */
int result_complete(struct serve_request *request, json_t *result);

/* A method: 0 with a result, 1 where the answer comes later, or -EINVAL with a failure; -ENOMEM. */
typedef int serve_method(struct serve_request *request, json_t **ret_result,
                         struct rpc_failure *failure);

serve_method serve_initialize, serve_discover, serve_ping, serve_list;

#endif
