/* SPDX-License-Identifier: MIT */
/* Who is told that the tools have changed: in the older era everybody, in the newer who listens. */
#include <string.h>

#include "serve/serve_parts.h"

#define SUBSCRIPTION META "subscriptionId"
#define CHANGED "notifications/tools/list_changed"

static json_t *subscription_meta(const struct serve_request *request)
{
        return json_pack("{s:{s:O}}", "_meta", SUBSCRIPTION, request->message.id);
}

/* First comes what is agreed on; the answer only when the server ends. */
int serve_listen(struct serve_request *request, json_t **ret_result, struct rpc_failure *failure)
{
        const json_t *wanted = json_object_get(request->message.params, "notifications");
        json_t *params;

        (void)ret_result;
        if (!json_is_object(wanted))
                return rpc_fail(failure, RPC_INVALID_PARAMS, "notifications must be an object");
        request->listens = json_is_true(json_object_get(wanted, "toolsListChanged"));
        params = subscription_meta(request);
        if (!params ||
            json_object_set_new(params, "notifications",
                                request->listens ? json_pack("{s:b}", "toolsListChanged", 1)
                                                 : json_object()) < 0) {
                json_decref(params);
                return -ENOMEM;
        }
        request->subscribed = true;
        request_send(request,
                     rpc_write_notification("notifications/subscriptions/acknowledged", params));
        return 1;
}

static void tell_peer(struct serve_peer *peer)
{
        struct serve_request *request;
        _cleanup_free_ char *text = NULL;

        if (peer->version[0] && peer->ops->send) {
                text = rpc_write_notification(CHANGED, NULL);
                if (text)
                        peer->ops->send(peer->context, text, strlen(text));
        }
        TAILQ_FOREACH(request, &peer->requests, link)
        {
                json_t *params = request->listens ? subscription_meta(request) : NULL;

                if (params)
                        request_send(request, rpc_write_notification(CHANGED, params));
        }
}

void listen_tell(struct serve *serve)
{
        struct serve_peer *peer;

        TAILQ_FOREACH(peer, &serve->peers, link) tell_peer(peer);
}

json_t *listen_end(const struct serve_request *request)
{
        return subscription_meta(request);
}
