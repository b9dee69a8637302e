/* SPDX-License-Identifier: MIT */
/*
 * What is told of a call while it runs: progress, output as it comes, log lines. Numbers of
 * progress grow with each message. A tool that floods does not flood the client: messages beyond a
 * rate are left out, output is put together.
 */
#include <math.h>
#include <string.h>

#include "serve/serve_parts.h"

#define CREDIT 64                          /* messages at once ... */
#define CREDIT_EVERY (20 * NSEC_PER_MSEC)  /* ... and then one in this time */
#define OUTPUT_EVERY (100 * NSEC_PER_MSEC) /* output that comes in between is put together */
#define OUTPUT_MAX (4 * KIB)               /* of it in one message: the end */

static void on_later(evutil_socket_t fd, short what, void *context)
{
        (void)fd, (void)what;
        progress_flush(context);
}

static enum serve_level wanted_level(const struct serve_request *request)
{
        const json_t *level = json_object_get(request->message.meta, META "logLevel");

        if (!request->modern)
                return request->peer->level;
        return json_is_string(level) ? level_of(json_string_value(level)) : LEVEL_NONE;
}

int progress_begin(struct serve_call *call)
{
        struct progress *progress = &call->progress;
        json_t *token;

        progress_end(call);
        if (!call->request) { /* of a task: its state says how far it is */
                progress->level = LEVEL_NONE;
                return 0;
        }
        token = json_object_get(call->request->message.meta, "progressToken");
        progress->level = wanted_level(call->request);
        progress->credit = CREDIT;
        progress->credited = time_now();
        progress->counts = call->tool->kind != TOOL_FUNCTION && call->tool->output != TOOL_LINES;
        if (!json_is_string(token) && !json_is_number(token))
                return 0;
        progress->token = token;
        progress->later = evtimer_new(call->serve->base, on_later, call);
        return progress->later ? 0 : -ENOMEM;
}

void progress_end(struct serve_call *call)
{
        struct progress *progress = &call->progress;

        if (progress->later)
                event_free(progress->later);
        progress->later = NULL;
        progress->token = NULL;
        buffer_free(&progress->output);
}

/* May one more message be sent? */
static bool take_credit(struct progress *progress)
{
        uint64_t grown = (time_now() - progress->credited) / CREDIT_EVERY;

        progress->credited += grown * CREDIT_EVERY;
        progress->credit = (unsigned)MIN(progress->credit + grown, (uint64_t)CREDIT);
        if (progress->credit == 0)
                return false;
        progress->credit--;
        return true;
}

static void send_progress(struct serve_call *call, double done, const char *text)
{
        struct progress *progress = &call->progress;
        json_t *params = json_pack("{s:O, s:f, s:s*}", "progressToken", progress->token, "progress",
                                   done, "message", text && *text ? text : NULL);

        /* A whole number is written as one. */
        if (params && done == floor(done) && fabs(done) < 1e15)
                json_object_set_new(params, "progress", json_integer((json_int_t)done));
        if (params && progress->total > 0)
                json_object_set_new(params, "total",
                                    progress->total == floor(progress->total) &&
                                                    progress->total < 1e15
                                            ? json_integer((json_int_t)progress->total)
                                            : json_real(progress->total));
        progress->done = done;
        progress->told = true;
        if (params)
                request_send(call->request,
                             rpc_write_notification("notifications/progress", params));
}

/* ---- Output ---- */

/* How many bytes there are without the beginning of a character that is not whole yet. */
static size_t whole_characters(const char *data, size_t length)
{
        for (size_t back = 1; back <= 3 && back <= length; back++) {
                unsigned char c = (unsigned char)data[length - back];

                if ((c & 0xc0) == 0x80)
                        continue;
                if ((c >= 0xc0 && back < 2) || (c >= 0xe0 && back < 3) || (c >= 0xf0 && back < 4))
                        return length - back;
                break;
        }
        return length;
}

void progress_flush(struct serve_call *call)
{
        struct progress *progress = &call->progress;
        _cleanup_buffer_ struct buffer text = BUFFER_INIT;
        size_t length = whole_characters(progress->output.data, progress->output.length);
        size_t from = length > OUTPUT_MAX ? length - OUTPUT_MAX : 0;
        bool replaced = false;
        double done;

        if (!progress->token || length == 0)
                return;
        while (from > 0 && from < length && (progress->output.data[from] & 0xc0) == 0x80)
                from++;
        progress->dropped += from;
        if ((progress->dropped > 0 && buffer_printf(&text, "[... %llu bytes left out ...]\n",
                                                    (unsigned long long)progress->dropped) < 0) ||
            output_decode(progress->output.data + from, length - from, &text, &replaced) < 0)
                return;
        progress->dropped = 0;
        memmove(progress->output.data, progress->output.data + length,
                progress->output.length - length);
        progress->output.length -= length;
        /* The numbers are the tool's own where it has some: output moves them by the least. */
        done = progress->counts ? (double)progress->bytes
                                : (progress->told ? nextafter(progress->done, INFINITY) : 0);
        send_progress(call, done, text.data);
}

static void hear_output(struct serve_call *call, const cbx_event *event)
{
        struct progress *progress = &call->progress;
        struct timeval wait = { .tv_usec = OUTPUT_EVERY / 1000 };

        if (!progress->token || event->length == 0)
                return;
        if (event->kind == CBX_EVENT_OUTPUT && call->tool->output == TOOL_LINES &&
            call->tool->kind != TOOL_FUNCTION)
                return; /* messages, not text */
        progress->bytes += event->length;
        if (progress->output.length > 4 * OUTPUT_MAX) { /* the end is what will be told */
                progress->dropped += progress->output.length - OUTPUT_MAX;
                memmove(progress->output.data,
                        progress->output.data + progress->output.length - OUTPUT_MAX, OUTPUT_MAX);
                progress->output.length = OUTPUT_MAX;
        }
        if (buffer_add(&progress->output, event->data, event->length) == 0 &&
            !evtimer_pending(progress->later, NULL))
                evtimer_add(progress->later, &wait);
}

/* ---- Progress and log ---- */

static void hear_progress(struct serve_call *call, const cbx_event *event)
{
        struct progress *progress = &call->progress;

        if (call->task)
                task_note(call->task, event->data);
        if (!progress->token || !isfinite(event->done) ||
            (progress->told && event->done <= progress->done) || !take_credit(progress))
                return;
        progress->total = isfinite(event->total) ? event->total : 0;
        send_progress(call, event->done, event->data);
}

static void hear_log(struct serve_call *call, const cbx_event *event)
{
        enum serve_level level = event->level ? level_of(event->level) : LEVEL_INFO;
        json_t *params;

        if (!call->request || level < call->progress.level || !take_credit(&call->progress))
                return;
        params = json_pack("{s:s, s:s, s:s}", "level", event->level ? event->level : "info",
                           "logger", call->tool->name, "data", event->data ? event->data : "");
        if (params)
                request_send(call->request,
                             rpc_write_notification("notifications/message", params));
}

void progress_tell(struct serve_call *call, const cbx_event *event)
{
        switch (event->kind) {
        case CBX_EVENT_OUTPUT:
        case CBX_EVENT_ERRORS:
                hear_output(call, event);
                break;
        case CBX_EVENT_PROGRESS:
                hear_progress(call, event);
                break;
        case CBX_EVENT_LOG:
                hear_log(call, event);
                break;
        default:
                break;
        }
}
