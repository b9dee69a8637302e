/* SPDX-License-Identifier: MIT */
/* The server: what all peers share. */
#include "serve/serve_parts.h"

#include <string.h>
#include <sys/random.h>

#define PAGE 100
#define REQUESTS 1024

/* Directories are looked at and changes are told as the toolbox is stepped. */
static void look_at_changes(evutil_socket_t fd, short what, void *context)
{
        struct serve *serve = context;
        const struct serve_hooks *hooks = &serve->options.hooks;
        cbx_tool_event event = CBX_TOOL_EVENT_INIT;
        bool changed = false;

        (void)fd, (void)what;
        while (cbx_toolbox_step(serve->toolbox, &event, NULL) == 0 && event.kind != CBX_TOOL_NONE) {
                if (event.kind != CBX_TOOL_BROKEN)
                        changed = true;
                else if (hooks->broken)
                        hooks->broken(hooks->context, event.file, event.text);
        }
        if (changed)
                listen_tell(serve);
}

int serve_open(struct event_base *base, cbx_toolbox *toolbox, const struct serve_options *options,
               struct serve **ret_serve, cbx_error *error)
{
        struct serve *serve = calloc(1, sizeof(*serve));

        if (!serve)
                return error_oom(error);
        TAILQ_INIT(&serve->peers);
        TAILQ_INIT(&serve->tasks);
        TAILQ_INIT(&serve->leaving);
        serve->base = base;
        serve->toolbox = toolbox;
        if (options)
                serve->options = *options;
        serve->options.page = serve->options.page ? serve->options.page : PAGE;
        serve->options.requests = serve->options.requests ? serve->options.requests : REQUESTS;
        if (serve->options.instructions)
                serve->instructions = strdup(serve->options.instructions);
        serve->changes = event_new(base, cbx_toolbox_fd(toolbox), EV_READ | EV_PERSIST,
                                   look_at_changes, serve);
        if (!serve->changes || event_add(serve->changes, NULL) < 0 ||
            getrandom(serve->secret, sizeof(serve->secret), 0) != sizeof(serve->secret) ||
            (serve->options.instructions && !serve->instructions)) {
                serve_close(serve);
                return error_oom(error);
        }
        look_at_changes(-1, 0, serve); /* what is there already is no change */
        *ret_serve = serve;
        return 0;
}

static void stop_request(struct serve_request *request)
{
        struct rpc_failure failure = { 0 };

        rpc_fail(&failure, RPC_INTERNAL_ERROR, "the server is stopping");
        failure.status = 503;
        if (request->subscribed)
                request_finish(request, listen_end(request));
        else
                request_fail(request, &failure);
}

void serve_stop(struct serve *serve)
{
        struct serve_peer *peer;

        while (!TAILQ_EMPTY(&serve->tasks))
                task_free(TAILQ_FIRST(&serve->tasks));
        TAILQ_FOREACH(peer, &serve->peers, link)
        {
                while (!TAILQ_EMPTY(&peer->requests))
                        stop_request(TAILQ_FIRST(&peer->requests));
        }
}

struct serve *serve_close(struct serve *serve)
{
        if (!serve)
                return NULL;
        while (!TAILQ_EMPTY(&serve->tasks))
                task_free(TAILQ_FIRST(&serve->tasks));
        while (!TAILQ_EMPTY(&serve->peers))
                serve_peer_free(TAILQ_FIRST(&serve->peers));
        serve_leaving_end(serve);
        if (serve->changes)
                event_free(serve->changes);
        free(serve->instructions);
        explicit_bzero(serve->secret, sizeof(serve->secret));
        free(serve);
        return NULL;
}

void serve_count(const struct serve *serve, struct serve_numbers *ret)
{
        *ret = (struct serve_numbers){ .peers = serve->n_peers,
                                       .requests = serve->n_requests,
                                       .calls = serve->n_calls,
                                       .tasks = serve->n_tasks };
}

cbx_toolbox *serve_toolbox(const struct serve *serve)
{
        return serve->toolbox;
}
