/* SPDX-License-Identifier: MIT */
/* A client's call: its request, its box, its report. */
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "warden/server.h"

#define SETUP_LIMIT (10 * NSEC_PER_SEC) /* to get a box */

static void hear(struct watch *watch, uint32_t events);

static void leave(struct job *job)
{
        if (!job->told || !job->gone)
                return;
        server_job_gone(job);
}

/* ---- Lines ---- */

static void close_line(struct client *client, struct watch *line)
{
        loop_unwatch(&client->server->loop, line);
        line->fd = base_close(line->fd);
}

/* A line that no job has says only one thing: that the client closed it. */
static void line_ended(struct watch *line, uint32_t events)
{
        (void)events;
        close_line(line->owner, line);
}

static void release_line(struct client *client, struct watch *line)
{
        line->ready = line_ended;
        line->owner = client;
}

void job_init_lines(struct client *client)
{
        for (size_t i = 0; i < WIRE_LINES; i++) {
                client->lines[i].fd = -1;
                release_line(client, &client->lines[i]);
        }
}

void job_close_lines(struct client *client)
{
        for (size_t i = 0; i < WIRE_LINES; i++)
                if (client->lines[i].owner == client)
                        close_line(client, &client->lines[i]);
}

/* The socket of a call: a line that is there, or the one that came along. */
static int take_socket(struct client *client, struct job *job, struct wire_message *message)
{
        struct watch *line = job->line.number ? &client->lines[job->line.number - 1] : NULL;

        if (line && line->owner != client)
                return -EPROTO;
        if (line && job->line.again && line->fd < 0)
                return -EPIPE; /* its other end sees that */
        if (!job->line.again && message->fds[WIRE_FD_CALL] < 0)
                return message->lost ? -EMFILE : -EPROTO;
        job->socket = line ? line : &job->own;
        if (!job->line.again) {
                close_line(client, job->socket);
                job->socket->fd = TAKE_FD(message->fds[WIRE_FD_CALL]);
        }
        job->socket->ready = hear;
        job->socket->owner = job;
        return 0;
}

/* ---- The end ---- */

/* Nothing more is said to the client about this call. */
static void part(struct job *job, bool keep)
{
        struct client *client = job->client;
        struct watch *socket = job->socket;

        if (socket == &job->own || client->closed || !keep ||
            loop_watch(&client->server->loop, socket, EPOLLIN) < 0)
                close_line(client, socket);
        if (socket != &job->own)
                release_line(client, socket);
        job->socket = &job->own;
        job->told = true;
}

/* There are no means to send the report, a large one needs a file: say at least that. */
static int tell_less(struct job *job, int code)
{
        struct report less = REPORT_INIT;

        less.reason = REASON_INTERNAL;
        less.id = job->report.id;
        less.started_at = job->report.started_at;
        error_set(&less.error, code, "report", "the report of the call could not be sent: %s",
                  strerror(-code));
        return wire_send_report(job->socket->fd, &less, MSG_DONTWAIT);
}

/* Send the report as soon as the client can take it. */
static void tell(struct job *job)
{
        int fd = job->socket->fd;
        int r = fd < 0 ? 0 : wire_send_report(fd, &job->report, MSG_DONTWAIT);

        if (r < 0 && r != -EAGAIN && r != -EPIPE && r != -ECONNRESET)
                r = tell_less(job, r);
        if (r == -EAGAIN &&
            loop_watch(&job->client->server->loop, job->socket, EPOLLIN | EPOLLOUT) == 0)
                return;
        /* A client that is gone does not want it. One whose report cannot be sent for another
         * reason sees its socket end, and says so itself. */
        part(job, r == 0);
        leave(job);
}

void job_hang_up(struct job *job)
{
        if (job->socket->fd >= 0)
                part(job, false);
        leave(job);
}

static void finish(struct job *job)
{
        if (job->finished)
                return;
        job->finished = true;
        server_job_over(job);
        tell(job);
}

/* There was no call: say why not. */
static void end_early(struct job *job, enum reason reason, const cbx_error *error)
{
        job->report.reason = reason;
        if (error)
                job->report.error = *error;
        if (job->asked.id && !job->report.id)
                job->report.id = strdup(job->asked.id);
        if (job->report.started_at.tv_sec == 0)
                clock_gettime(CLOCK_REALTIME, &job->report.started_at);
        job->gone = true;
        finish(job);
}

static void fail(struct job *job, const cbx_error *error)
{
        end_early(job, REASON_SETUP, error);
}

static void call_over(struct call *call)
{
        struct job *job = call->owner;

        finish(job);
        pool_refill(job->pool);
}

static void call_gone(struct call *call)
{
        struct job *job = call->owner;

        job->gone = true;
        leave(job);
}

/* ---- The box ---- */

static void start(struct job *job, struct prepared *box)
{
        struct call *call = &job->call;
        int r;

        if (cgroup_begin(&box->cgroup, &job->spec.limits, &job->report.error) < 0 ||
            guarantees_check_limits(job->plan->plan.policy, &job->spec.limits,
                                    cgroup_means(&box->cgroup), &job->report.error) < 0) {
                box_kill(&box->box);
                fail(job, NULL);
                return;
        }
        job->started = true;
        r = call_start(call, &job->client->server->loop, &job->plan->plan, &job->spec, box,
                       &job->report);
        call->over = call_over;
        call->gone = call_gone;
        call->owner = job;
        if (r < 0) { /* the box has been killed */
                fail(job, NULL);
        } else if (call->done) { /* it could not be watched, and was killed as well */
                job->gone = true;
                finish(job);
        }
}

/* A maker may hang in a file system that does not answer. */
static void out_of_patience(struct timer *timer, uint64_t now)
{
        struct job *job = timer->owner;
        cbx_error error = CBX_ERROR_INIT;

        (void)now;
        pool_abandon(job->pool, &job->taker);
        error_set(&error, -ETIMEDOUT, "init", "the box was not ready in time");
        error_hint(&error, "does a path of the policy lie on a file system that hangs?");
        fail(job, &error);
}

/* What a call would have, for one who only asks. */
static void describe(struct job *job, const struct prepared *box)
{
        const struct plan *plan = &job->plan->plan;
        struct report *report = &job->report;

        report->reason = REASON_EXITED;
        report->policy = cbx_policy_ref((cbx_policy *)plan->policy);
        report->limits = plan->policy->limits;
        report->caged = plan->caged;
        report->unboxed = plan->unboxed;
        report->landlock_abi = plan->landlock_abi;
        report->cgroup = cgroup_means(&box->cgroup);
        report->obstacle = cgroup_look();
        guarantees_warn_unboxed(report);
        for (size_t i = 0; i < plan->n_warnings; i++)
                report_warn(report, "%s", plan->warnings[i]);
        guarantees_warn(report);
}

static void taken(struct pool_taker *taker, struct prepared *box, struct maker_plan *plan)
{
        struct job *job = (struct job *)((char *)taker - offsetof(struct job, taker));

        loop_remove_timer(&job->client->server->loop, &job->patience);
        job->plan = plan;
        if (job->probing) {
                describe(job, box);
                pool_give_back(job->pool, box, plan);
                pool_refill(job->pool);
                end_early(job, REASON_EXITED, NULL);
        } else {
                start(job, box);
        }
}

static void refused(struct pool_taker *taker, const cbx_error *error)
{
        struct job *job = (struct job *)((char *)taker - offsetof(struct job, taker));

        loop_remove_timer(&job->client->server->loop, &job->patience);
        fail(job, error);
}

void job_begin(struct job *job)
{
        struct loop *loop = &job->client->server->loop;

        job->taker.taken = taken;
        job->taker.refused = refused;
        job->patience = (struct timer){ .expired = out_of_patience, .owner = job };
        pool_take(job->pool, &job->taker);
        if (job->taker.waiting && loop_add_timer(loop, &job->patience) == 0)
                loop_set_timer(loop, &job->patience, time_now() + SETUP_LIMIT);
}

void job_end(struct job *job, const cbx_error *error)
{
        enum reason reason = error ? REASON_INTERNAL : REASON_CANCELLED;

        if (job->finished)
                return;
        if (job->started) {
                if (error && !job->call.forced)
                        job->report.error = *error;
                call_force_end(&job->call, reason);
                return;
        }
        if (job->taker.waiting) {
                pool_abandon(job->pool, &job->taker);
                loop_remove_timer(&job->client->server->loop, &job->patience);
        }
        end_early(job, reason, error);
}

/* ---- What the client says about its call ---- */

static void hear(struct watch *watch, uint32_t events)
{
        struct job *job = watch->owner;
        struct wire_room *room = &job->client->server->room;
        _cleanup_message_ struct wire_message message = WIRE_MESSAGE_INIT;
        int r;

        if (job->finished && (events & EPOLLOUT)) {
                tell(job);
                return;
        }
        r = wire_receive(watch->fd, room, 0, MSG_DONTWAIT, &message);
        if (r == -EAGAIN)
                return;
        if (r > 0 && message.type == WIRE_KILL) {
                job_end(job, NULL);
        } else if (r > 0 && message.type == WIRE_SIGNAL) {
                struct unpack unpack = UNPACK_INIT(message.body, message.length);
                int signal = (int)unpack_number_below(&unpack, 65);

                if (unpack_is_whole(&unpack) && signal > 0 && job->started && !job->finished)
                        call_signal(&job->call, signal);
        } else { /* it has gone, or talks nonsense: nobody wants to know any more */
                part(job, false);
                job_end(job, NULL);
                leave(job);
        }
}

/* ---- The request ---- */

/* The spec as the engine wants it. */
static int read_spec(struct job *job, cbx_error *error)
{
        const struct wire_spec *asked = &job->asked;
        struct call_spec *spec = &job->spec;
        int r;

        *spec = (struct call_spec){ .id = asked->id,
                                    .argv = asked->argv,
                                    .environment = asked->environment,
                                    .directory = asked->directory,
                                    .stdin_fd = asked->input_from_fd ? job->fds[0] : -1,
                                    .limits = job->pool->policy->limits,
                                    .sanitize = asked->sanitize };
        if (!asked->input_from_fd && asked->input_length > 0) {
                spec->stdin_data = asked->input;
                spec->stdin_length = asked->input_length;
        }
        r = policy_limits_tighten(&asked->limits, &spec->limits, error);
        for (int i = 0; r == 0 && i < 2; i++) {
                uint64_t mode = asked->output_mode[i];
                struct call_output *output = &spec->output[i];

                output->capture = mode == CBX_CAPTURE || mode == CBX_EVENTS;
                output->message = mode == CBX_EVENTS;
                spec->captured |= output->capture;
                output->forward = mode == CBX_TO_FD    ? job->fds[1 + i]
                                  : mode == CBX_EVENTS ? job->socket->fd
                                                       : -1;
                if (mode == CBX_TO_FD && output->forward < 0)
                        r = error_set(error, -EBADF, i ? "errors_fd" : "output_fd",
                                      "no descriptor came with the call");
        }
        spec->result = asked->result_mode != CBX_NO_RESULT;
        spec->output[STREAM_RESULT] = (struct call_output){
                .capture = spec->result,
                .message = asked->result_mode == CBX_RESULT_EVENTS,
                .forward = asked->result_mode == CBX_RESULT_EVENTS ? job->socket->fd : -1,
        };
        if (r == 0 && asked->input_from_fd && job->fds[0] < 0)
                r = error_set(error, -EBADF, "input_fd", "no descriptor came with the call");
        return r;
}

static const struct client_policy *find_policy(const struct client *client, uint64_t id)
{
        const struct client_policy *policy;

        TAILQ_FOREACH(policy, &client->policies, link)
        {
                if (policy->id == id)
                        return policy;
        }
        return NULL;
}

/* The descriptors come in the order of wire.h; those that are not asked for are left out. */
static void take_descriptors(struct job *job, struct wire_message *message)
{
        bool wanted[3] = { job->asked.input_from_fd, job->asked.output_mode[0] == CBX_TO_FD,
                           job->asked.output_mode[1] == CBX_TO_FD };
        size_t next = WIRE_FD_INPUT;

        for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
                job->fds[i] = wanted[i] ? TAKE_FD(message->fds[next++]) : -1;
}

static int read_request(struct job *job, struct wire_message *message)
{
        struct unpack unpack;
        int r;

        if (message->own) {
                job->body = TAKE_PTR(message->own);
        } else {
                job->body = malloc(MAX(message->length, 1));
                if (!job->body)
                        return -ENOMEM;
                memcpy(job->body, message->body, message->length);
        }
        unpack = (struct unpack)UNPACK_INIT(job->body, message->length);
        if (job->probing) {
                job->policy = unpack_number(&unpack);
                return unpack_is_whole(&unpack) ? 0 : -EPROTO;
        }
        (void)wire_unpack_line(&unpack, &job->line);
        r = wire_unpack_spec(&unpack, &job->policy, &job->asked);
        if (r == 0 && job->line.number && !wire_fits_line(&job->asked, message->length))
                r = -EPROTO;
        return r;
}

/* Why a call cannot be taken; 0 when it can. */
static int check_request(struct job *job, struct wire_message *message, cbx_error *error)
{
        const struct client *client = job->client;
        const struct client_policy *policy;
        int r;

        take_descriptors(job, message);
        if (message->lost)
                return error_set(error, -EMFILE, "", "the warden has no descriptors left");
        policy = find_policy(client, job->policy);
        if (!policy)
                return error_set(error, -EPROTO, "", "the warden does not know the policy");
        if (!policy->pool) {
                *error = policy->error;
                return error->code;
        }
        job->pool = pool_ref(policy->pool);
        r = job->probing ? 0 : read_spec(job, error);
        job->taker.fresh = !job->probing && !program_suits(&job->pool->wanted.program,
                                                           job->pool->policy, &job->spec);
        if (r == 0 && queue_bind(job) < 0)
                r = error_oom(error);
        if (r == 0 && client->n_running + client->n_queued >
                              client->server->options.calls + client->server->options.queue) {
                r = error_set(error, -EAGAIN, "", "%u calls run and %u wait: the queue is full",
                              client->n_running, client->n_queued - 1);
                error_hint(error, "start fewer calls at once, or open the warden with a longer "
                                  "queue");
        }
        return r;
}

int job_open(struct client *client, struct wire_message *message)
{
        struct unpack unpack = UNPACK_INIT(message->body, message->length);
        struct server *server = client->server;
        struct job *job = calloc(1, sizeof(*job));
        struct wire_line line = { 0 };
        cbx_error error = CBX_ERROR_INIT;
        int unread, r = 0;

        if (message->type == WIRE_START)
                r = wire_unpack_line(&unpack, &line);
        if (!job || r < 0) {
                /* The other end of the call's socket sees that nobody took it. */
                if (r == 0 && line.again && client->lines[line.number - 1].owner == client)
                        close_line(client, &client->lines[line.number - 1]);
                free(job);
                return r;
        }
        *job = (struct job){ .client = client,
                             .line = line,
                             .fds = { -1, -1, -1 },
                             .own = { .fd = -1 },
                             .socket = &job->own,
                             .probing = message->type == WIRE_PREPARE,
                             .report = REPORT_INIT };
        unread = read_request(job, message);
        r = take_socket(client, job, message);
        if (r < 0) {
                job_free(job);
                return r == -EPROTO ? r : 0; /* whose socket was lost sees its end */
        }
        queue_add(job);
        r = loop_watch(&server->loop, job->socket, EPOLLIN);
        if (r < 0)
                error_set(&error, r, "", "cannot watch for events: %s", strerror(-r));
        else if (unread < 0)
                r = error_set(&error, unread, "", "the warden cannot read the call: %s",
                              strerror(-unread));
        else
                r = check_request(job, message, &error);
        if (r < 0)
                fail(job, &error);
        return 0;
}

void job_free(struct job *job)
{
        if (job->started)
                call_free(&job->call);
        loop_remove_timer(&job->client->server->loop, &job->patience);
        loop_unwatch(&job->client->server->loop, &job->own);
        base_close(job->own.fd);
        for (size_t i = 0; i < ARRAY_SIZE(job->fds); i++)
                base_close(job->fds[i]);
        report_free(&job->report);
        free(job->asked.argv);
        free(job->asked.environment);
        free(job->body);
        queue_unbind(job);
        maker_plan_unref(job->plan);
        pool_unref(job->pool);
        free(job);
}
