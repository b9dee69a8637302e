/* SPDX-License-Identifier: MIT */
/* Calls: started, watched, ended. */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "client/client.h"

#define INPUT_INLINE (16 * KIB) /* more than this goes in a memory file */

/* ---- Opening and closing ---- */

cbx_call *cbx_call_free(cbx_call *call)
{
        if (!call)
                return NULL;
        /* If it still runs, the warden ends it; also where a child of this process has the socket.
         */
        if (call->socket >= 0 && !call->ended)
                (void)shutdown(call->socket, SHUT_RDWR);
        base_close(call->socket);
        if (call->tool)
                call->tool->free(call->tool);
        wire_message_free(&call->message);
        report_free(&call->report);
        cbx_policy_unref(call->policy);
        free(call->id);
        free(call);
        return NULL;
}

static int new_call(cbx_policy *policy, const char *id, cbx_call **ret_call, cbx_error *error)
{
        cbx_call *call = malloc(sizeof(*call));

        if (!call)
                return error_oom(error);
        memset(call, 0, offsetof(cbx_call, room)); /* the room is large, and filled when needed */
        call->report = (struct report)REPORT_INIT;
        call->message = (struct wire_message)WIRE_MESSAGE_INIT;
        call->socket = -1;
        call->policy = cbx_policy_ref(policy);
        call->id = id ? strdup(id) : NULL;
        if (id && !call->id) {
                cbx_call_free(call);
                return error_oom(error);
        }
        *ret_call = call;
        return 0;
}

int client_open_call(cbx_policy *policy, const char *id, cbx_call **ret_call, int *ret_socket,
                     cbx_error *error)
{
        cbx_call *call = NULL;
        int pair[2], r = new_call(policy, id, &call, error);

        if (!call)
                return r;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
                r = -errno;
                cbx_call_free(call);
                return error_set(error, r, "", "cannot make a socket: %s", strerror(-r));
        }
        call->socket = pair[0];
        *ret_call = call;
        *ret_socket = pair[1];
        return 0;
}

/* ---- Starting ---- */

static int input_file(const void *data, size_t length)
{
        _cleanup_fd_ int fd = memfd_create("callbox-input", MFD_CLOEXEC);
        int r = fd < 0 ? -errno : fd_write_memory(fd, data, length);

        if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
                r = -errno;
        return r < 0 ? r : TAKE_FD(fd);
}

/* What the boxes of such a call are prepared for. */
static struct client_how how_of(const cbx_spec *spec, const struct wire_spec *asked)
{
        struct client_how how = { .explain = spec->explain };

        if (spec->warm)
                how.program = (struct wire_program){ .argv = asked->argv,
                                                     .environment = asked->environment,
                                                     .directory = asked->directory,
                                                     .result = asked->result_mode != CBX_NO_RESULT,
                                                     .forks = spec->warm >= CBX_WARM_FORKED,
                                                     .later = spec->warm == CBX_WARM_FORKED_LATER };
        return how;
}

static int start(cbx_warden *warden, cbx_policy *policy, const cbx_spec *spec,
                 const struct wire_bound bounds[WIRE_BOUNDS], enum plan_unboxed unboxed,
                 bool on_line, cbx_call **ret_call, cbx_error *error)
{
        struct client_request request = { .type = WIRE_START, .fds = { -1 }, .n_fds = 1 };
        _cleanup_fd_ int theirs = -1, input = -1;
        struct wire_spec asked;
        int r;
        cbx_spec known = CBX_SPEC_INIT;
        char *shell[4];
        cbx_call *call = NULL;

        if (!warden || !policy || !spec)
                return error_set(error, -EINVAL,
                                 !warden   ? "warden"
                                 : !policy ? "policy"
                                           : "spec",
                                 "is NULL");
        r = client_read_spec(spec, policy, &known, shell, &asked, error);
        if (r < 0)
                return r;
        if (bounds)
                memcpy(asked.bounds, bounds, sizeof(asked.bounds));
        if (asked.input_from_fd) {
                request.fds[request.n_fds++] = known.input_fd;
        } else if (asked.input_length > INPUT_INLINE) {
                input = input_file(asked.input, asked.input_length);
                if (input < 0)
                        return error_set(error, input, "input", "cannot hand over the input: %s",
                                         strerror(-input));
                asked.input_from_fd = true;
                asked.input_length = 0;
                request.fds[request.n_fds++] = input;
        }
        if (known.output_mode == CBX_TO_FD)
                request.fds[request.n_fds++] = known.output_fd;
        if (known.errors_mode == CBX_TO_FD)
                request.fds[request.n_fds++] = known.errors_fd;
        if (on_line)
                r = new_call(policy, known.id, &call, error);
        else
                r = client_open_call(policy, known.id, &call, &theirs, error);
        if (!call)
                return r;
        request.fds[WIRE_FD_CALL] = theirs;
        request.line_for = on_line ? call : NULL;
        request.how = how_of(&known, &asked);
        request.how.unboxed = unboxed;
        request.spec = &asked;
        r = client_send_request(warden, policy, &request, error);
        if (r < 0) {
                client_leave_line(warden, call);
                cbx_call_free(call);
                return r;
        }
        *ret_call = call;
        return 0;
}

int client_start(cbx_warden *warden, cbx_policy *policy, const cbx_spec *spec,
                 const struct wire_bound bounds[WIRE_BOUNDS], enum plan_unboxed unboxed,
                 cbx_call **ret_call, cbx_error *error)
{
        return start(warden, policy, spec, bounds, unboxed, false, ret_call, error);
}

int cbx_start(cbx_warden *warden, cbx_policy *policy, const cbx_spec *spec, cbx_call **ret_call,
              cbx_error *error)
{
        return start(warden, policy, spec, NULL, PLAN_BOXED, false, ret_call, error);
}

static int hear(cbx_call *call, bool wait);

/* Wait for the answer, which is a report that no call belongs to. */
static int await_prepared(cbx_call *call, struct report *ret_report, cbx_error *error)
{
        const cbx_error *found = &call->report.error;

        while (!call->ended)
                (void)hear(call, true);
        if (found->code < 0) {
                error_set(error, found->code, found->where, "%s", found->text);
                if (found->hint[0])
                        error_hint(error, "%s", found->hint);
                return found->code;
        }
        if (ret_report) {
                *ret_report = call->report;
                call->report = (struct report)REPORT_INIT;
        }
        return 0;
}

static int prepare(cbx_warden *warden, cbx_policy *policy, const struct client_how *how,
                   struct report *ret_report, cbx_error *error)
{
        struct client_request request = { .type = WIRE_PREPARE, .how = *how, .n_fds = 1 };
        _cleanup_fd_ int theirs = -1;
        cbx_call *call = NULL;
        int r = client_open_call(policy, NULL, &call, &theirs, error);

        if (!call)
                return r;
        request.fds[WIRE_FD_CALL] = theirs;
        r = client_send_request(warden, policy, &request, error);
        theirs = base_close(theirs);
        if (r == 0)
                r = await_prepared(call, ret_report, error);
        cbx_call_free(call);
        return r;
}

int client_prepare(cbx_warden *warden, cbx_policy *policy, const cbx_spec *spec, cbx_error *error)
{
        cbx_spec known = CBX_SPEC_INIT;
        struct wire_spec asked = { 0 };
        struct client_how how;
        char *shell[4];
        int r = 0;

        if (!warden || !policy)
                return error_set(error, -EINVAL, !warden ? "warden" : "policy", "is NULL");
        if (spec)
                r = client_read_spec(spec, policy, &known, shell, &asked, error);
        how = how_of(&known, &asked);
        return r < 0 ? r : prepare(warden, policy, &how, NULL, error);
}

/* Of a policy that asks for more than this host keeps, all the rest can still be told. */
static int ask_without(cbx_warden *warden, cbx_policy *policy, const struct client_how *how,
                       struct report *ret_report, cbx_error *error)
{
        _cleanup_policy_ cbx_policy *rest = cbx_policy_ref(policy);
        int r = cbx_policy_set(&rest, "best_effort", "true", error);

        if (r == 0)
                r = cbx_policy_set(&rest, "require", "[]", error);
        if (r == 0)
                r = prepare(warden, rest, how, ret_report, error);
        if (r == 0 && ret_report->policy) {
                cbx_policy_unref(ret_report->policy);
                ret_report->policy = cbx_policy_ref(policy);
        }
        return r;
}

int client_ask(cbx_warden *warden, cbx_policy *policy, enum plan_unboxed unboxed,
               struct report *ret_report, cbx_error *error)
{
        struct client_how how = { .unboxed = unboxed };
        cbx_error refused = CBX_ERROR_INIT;
        int r = prepare(warden, policy, &how, ret_report, &refused);

        if (r == -EOPNOTSUPP &&
            (strcmp(refused.where, "require") == 0 || strcmp(refused.where, "limits.cpus") == 0))
                return ask_without(warden, policy, &how, ret_report, error);
        if (r < 0) {
                error_set(error, r, refused.where, "%s", refused.text);
                if (refused.hint[0])
                        error_hint(error, "%s", refused.hint);
        }
        return r;
}

int cbx_prepare(cbx_warden *warden, cbx_policy *policy, cbx_error *error)
{
        return client_prepare(warden, policy, NULL, error);
}

/* ---- Events ---- */

int cbx_call_fd(const cbx_call *call)
{
        return call->socket;
}

/* The socket ended without a report. What became of the call is not known, but nothing of it is
 * left: boxes end with their warden. */
static void report_loss(cbx_call *call, int code)
{
        struct report *report = &call->report;

        report_free(report);
        call->lost = true;
        report->reason = REASON_INTERNAL;
        report->id = call->id ? strdup(call->id) : NULL;
        clock_gettime(CLOCK_REALTIME, &report->started_at);
        error_set(&report->error, code, "warden", "the warden ended while the call was under way");
        error_hint(&report->error, "it was killed, or had no descriptors left to take the call; "
                                   "whether the program ran is not known; the next call starts a "
                                   "new warden where there is none");
}

/* There is a report, which cannot be made sense of, or not here. */
static void report_unreadable(cbx_call *call, int code)
{
        report_loss(call, code);
        error_set(&call->report.error, code, "report", "the report of the call cannot be read: %s",
                  code == -EPROTO ? "it makes no sense" : strerror(-code));
        if (code == -EMFILE)
                error_hint(&call->report.error, "this process has no descriptors left: close some, "
                                                "or raise its limit (ulimit -n)");
        else if (code == -EPROTO)
                error_hint(&call->report.error, "the warden may be of another version");
}

/* The event that a message is, if it is one. */
static int event_of(enum wire_type type)
{
        switch (type) {
        case WIRE_OUTPUT:
                return CBX_EVENT_OUTPUT;
        case WIRE_ERRORS:
                return CBX_EVENT_ERRORS;
        case WIRE_RESULT:
                return CBX_EVENT_RESULT;
        default:
                return CBX_EVENT_NONE;
        }
}

/* Take one message. Returns 1 for one, 0 for none yet. */
static int hear(cbx_call *call, bool wait)
{
        int r;

        wire_message_free(&call->message);
        r = wire_receive(call->socket, &call->room, WIRE_REPORT_MAX, wait ? 0 : MSG_DONTWAIT,
                         &call->message);
        if (r == -EAGAIN) {
                /* An event loop may have made the socket one that does not block. */
                if (wait)
                        (void)poll(&(struct pollfd){ .fd = call->socket, .events = POLLIN }, 1, -1);
                return 0;
        }
        if (r > 0 && event_of(call->message.type) != CBX_EVENT_NONE)
                return 1;
        if (r > 0 && call->message.type == WIRE_REPORT) {
                call->report.policy = cbx_policy_ref(call->policy);
                r = wire_unpack_report(&call->message, &call->report);
                /* A warden that could not even read the call does not know it. */
                if (r == 0 && !call->report.id && call->id)
                        call->report.id = strdup(call->id);
                if (r < 0)
                        report_unreadable(call, r);
        } else {
                report_loss(call, r < 0 ? r : -EPIPE);
        }
        call->ended = true;
        return 1;
}

static double bytes_of(const struct report *report)
{
        double bytes = 0;

        for (int i = 0; i < STREAMS; i++)
                bytes += (double)output_kept(&report->output[i]);
        return bytes;
}

static void take_event(cbx_call *call, cbx_event *found)
{
        struct client_tool *tool = call->tool;

        while (!tool || !tool->next(tool, found)) {
                *found = (cbx_event)CBX_EVENT_INIT;
                if (call->ended || (hear(call, false) && call->ended)) {
                        /* What the tool said last is told before its end. */
                        if (!tool || !tool->next(tool, found)) {
                                found->kind = CBX_EVENT_ENDED;
                                found->total = bytes_of(&call->report);
                        }
                        return;
                }
                if (!call->message.body)
                        return;
                found->kind = event_of(call->message.type);
                found->data = call->message.body;
                found->length = call->message.length;
                if (!tool || tool->heard(tool, found))
                        return;
        }
}

int cbx_step(cbx_call *call, cbx_event *event, cbx_error *error)
{
        cbx_event found = CBX_EVENT_INIT;

        if (!event || event->size < CLIENT_EVENT_LEAST || event->size > CLIENT_STRUCT_MAX)
                return error_set(error, -EINVAL, "event",
                                 "cbx_event is not initialised with CBX_EVENT_INIT");
        take_event(call, &found);
        found.size = event->size;
        memset(event, 0, event->size);
        memcpy(event, &found, MIN(found.size, sizeof(found)));
        return 0;
}

static int check_report(const cbx_report *report, cbx_error *error)
{
        if (!report || report->size < CLIENT_REPORT_LEAST || report->size > CLIENT_STRUCT_MAX)
                return error_set(error, -EINVAL, "report",
                                 "cbx_report is not initialised with CBX_REPORT_INIT");
        return 0;
}

int cbx_wait(cbx_call *call, cbx_report *report, cbx_error *error)
{
        struct report ended;
        int r = check_report(report, error);

        if (r < 0)
                return r;
        if (call->taken)
                return error_set(error, -EALREADY, "", "the report of this call has been taken");
        while (!call->ended)
                (void)hear(call, true);
        /* Not as it comes: to read a large result takes a while, and cbx_step never waits. */
        if (call->tool)
                call->tool->ended(call->tool, &call->report);
        ended = call->report;
        call->report = (struct report)REPORT_INIT;
        call->taken = true;
        return client_fill_report(&ended, report, error);
}

int cbx_run(cbx_warden *warden, cbx_policy *policy, const cbx_spec *spec, cbx_report *report,
            cbx_error *error)
{
        cbx_call *call = NULL;
        int r = check_report(report, error); /* before anything is run */

        if (r == 0)
                r = start(warden, policy, spec, NULL, PLAN_BOXED, true, &call, error);
        if (!call)
                return r;
        r = cbx_wait(call, report, error);
        client_leave_line(warden, call);
        cbx_call_free(call);
        return r;
}

/* ---- What the caller can do ---- */

/* A call that is over has nobody who listens: that is as good. */
static int say(const cbx_call *call, enum wire_type type, const struct pack *pack, int flags)
{
        int r = wire_send_packed(call->socket, type, pack, NULL, 0, flags);

        return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}

int cbx_kill(cbx_call *call)
{
        struct pack nothing = PACK_INIT;

        /* It must arrive, even behind a flood of signals; the warden always reads on. */
        return say(call, WIRE_KILL, &nothing, 0);
}

int cbx_signal(cbx_call *call, int signal)
{
        _cleanup_pack_ struct pack pack = PACK_INIT;

        if (signal < 1 || signal > 64)
                return -EINVAL;
        pack_number(&pack, (uint64_t)signal);
        return say(call, WIRE_SIGNAL, &pack, MSG_DONTWAIT);
}
