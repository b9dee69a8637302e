/* SPDX-License-Identifier: MIT */
/*
 * What is told of calls, for metrics and audit: once for each that has ended, was refused or asks.
 *
 * A call that was cancelled is killed at once, but what it used and what it was refused is known
 * only when the warden says that its box is gone. So it leaves: nobody waits for it any more, it
 * has neither request nor task, and it is told of when its report comes, or after a bound without.
 */
#include <poll.h>
#include <string.h>

#include "serve/serve_parts.h"

#define LEAVE_SECONDS 2 /* for a report that does not come */
#define CLOSE_MS 50     /* for all of them, where the server ends */
#define STEPS_MAX 64    /* events of one call, before others have their turn */

/* ---- Telling ---- */

static void tell(const struct serve *serve, const struct serve_ended *ended)
{
        const struct serve_hooks *hooks = &serve->options.hooks;

        if (hooks->ended)
                hooks->ended(hooks->context, ended);
}

/* The policy that it runs under, or would. */
static const cbx_policy *policy_of(const struct serve_call *call)
{
        if (call->call)
                return call->call->policy;
        return call->approved && call->tool->ask.policy ? call->tool->ask.policy
                                                        : call->tool->policy;
}

void serve_call_record(const struct serve_call *call, const cbx_report *report, const char *outcome,
                       const char *why)
{
        tell(call->serve, &(struct serve_ended){
                                  .id = call->id,
                                  .tool = call->tool->name,
                                  .policy = policy_of(call),
                                  .report = report,
                                  .outcome = outcome,
                                  .why = why,
                                  .transport = call->transport,
                                  .client = call->client ? call->client : "",
                                  .seconds = (double)(time_now() - call->began) / NSEC_PER_SEC,
                          });
}

const char *request_client(const struct serve_request *request)
{
        const char *name = json_string_value(
                json_object_get(json_object_get(request->message.meta, META "clientInfo"), "name"));

        name = name ? name : request->peer->client;
        return name ? name : "";
}

void serve_request_record(const struct serve_request *request, const char *why)
{
        struct serve *serve = request->peer->serve;
        const json_t *name = json_object_get(request->message.params, "name");
        _cleanup_tool_ struct tool *tool = serve_find_tool(serve, name);
        char id[SERVE_ID_SIZE];

        serve_next_id(serve, id);
        tell(serve, &(struct serve_ended){
                            .id = id,
                            .tool = tool ? tool->name : json_string_value(name),
                            .policy = tool ? tool->policy : NULL,
                            .outcome = "refused",
                            .why = why,
                            .transport = request->peer->ops->transport,
                            .client = request_client(request),
                    });
}

/* ---- Leaving ---- */

static void leave(struct serve_call *call, const cbx_report *report)
{
        serve_call_record(call, report, "cancelled", NULL);
        TAILQ_REMOVE(&call->serve->leaving, call, link);
        serve_call_free(call);
}

/* Hear what there is; true: it has ended, and was told of. */
static bool hear(struct serve_call *call)
{
        cbx_event event = CBX_EVENT_INIT;
        cbx_report report = CBX_REPORT_INIT;
        int r = 0;

        for (int steps = 0; r == 0 && event.kind != CBX_EVENT_ENDED; steps++) {
                if (steps == STEPS_MAX) { /* what is there already makes nothing readable */
                        event_active(call->ready, EV_READ, 0);
                        return false;
                }
                r = cbx_step(call->call, &event, NULL);
                if (r == 0 && event.kind == CBX_EVENT_NONE)
                        return false;
        }
        if (r == 0)
                r = cbx_wait(call->call, &report, NULL);
        leave(call, r == 0 ? &report : NULL);
        cbx_report_free(&report);
        return true;
}

static void look(evutil_socket_t fd, short what, void *context)
{
        (void)fd;
        if (what & EV_TIMEOUT)
                leave(context, NULL);
        else
                (void)hear(context);
}

void serve_call_leave(struct serve_call *call)
{
        struct timeval bound = { .tv_sec = LEAVE_SECONDS };

        TAILQ_INSERT_TAIL(&call->serve->leaving, call, link);
        (void)cbx_kill(call->call);
        call->ready = event_new(call->serve->base, cbx_call_fd(call->call), EV_READ | EV_PERSIST,
                                look, call);
        if (call->ready && event_add(call->ready, &bound) == 0)
                event_active(call->ready, EV_READ, 0);
        else
                leave(call, NULL);
}

/* Wait for any of them, no longer than until then. */
static void wait_for(struct serve *serve, uint64_t until)
{
        uint64_t now = time_now();
        struct serve_call *call;
        struct pollfd *fds;
        nfds_t n = 0;

        TAILQ_FOREACH(call, &serve->leaving, link)
        n++;
        fds = calloc(n, sizeof(*fds));
        if (!fds)
                return;
        n = 0;
        TAILQ_FOREACH(call, &serve->leaving, link)
        fds[n++] = (struct pollfd){ .fd = cbx_call_fd(call->call), .events = POLLIN };
        (void)poll(fds, n, (int)((until - MIN(now, until)) / NSEC_PER_MSEC));
        free(fds);
}

void serve_leaving_end(struct serve *serve)
{
        uint64_t until = time_now() + CLOSE_MS * NSEC_PER_MSEC;
        struct serve_call *call, *next;

        while (!TAILQ_EMPTY(&serve->leaving) && time_now() < until) {
                wait_for(serve, until);
                for (call = TAILQ_FIRST(&serve->leaving); call; call = next) {
                        next = TAILQ_NEXT(call, link);
                        (void)hear(call);
                }
        }
        while ((call = TAILQ_FIRST(&serve->leaving)))
                leave(call, NULL);
}
