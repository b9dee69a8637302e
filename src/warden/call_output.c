/* SPDX-License-Identifier: MIT */
/*
 * The output of a call: read as it comes, counted, kept as far as asked, handed on. A caller that
 * does not take what it asked for makes the program wait, and nobody else: while the sink is full,
 * the pipe is not read.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>

#include "warden/call.h"

#define CHUNK (64 * 1024)

void call_output_close(struct call *call, struct call_stream *stream)
{
        loop_unwatch(call->loop, &stream->source);
        loop_unwatch(call->loop, &stream->target);
        stream->source.fd = base_close(stream->source.fd);
        call_finish_if_over(call);
}

/* Hand on as much as the sink takes; returns how much that was. */
static size_t hand_on(struct call *call, struct call_stream *stream, const char *data,
                      size_t length)
{
        size_t at = 0;

        while (at < length) {
                ssize_t n = sink_write(&stream->sink, data + at, length - at);

                if (n == -EINTR)
                        continue;
                if (n == -EAGAIN)
                        break;
                if (n < 0) {
                        /* The reader is gone: let the program find out as it would by itself. Any
                         * other failure it cannot see: say so. */
                        if (n != -EPIPE && !call->report->output_lost) {
                                call->report->output_lost = true;
                                report_warn(call->report, "the output could not be written: %s",
                                            strerror((int)-n));
                        }
                        call_output_close(call, stream);
                        return length;
                }
                at += (size_t)n;
        }
        return at;
}

static bool is_result(const struct call *call, const struct call_stream *stream)
{
        return stream == &call->streams[STREAM_RESULT];
}

/* Count what was read. Returns how much of it is within the output limit. */
static size_t take(struct call *call, struct call_stream *stream, const char *data, size_t length)
{
        uint64_t limit = is_result(call, stream) ? 0 : call->spec->limits.output;
        uint64_t total = call->report->output[0].total + call->report->output[1].total;

        if (limit && total + length > limit) {
                if (!call->ended)
                        call_force_end(call, REASON_OUTPUT);
                length = total < limit ? (size_t)(limit - total) : 0;
        }
        if (output_add(stream->output, data, length) < 0 && !call->report->output_lost) {
                call->report->output_lost = true;
                report_warn(call->report, "out of memory: the output was not kept whole");
        }
        return length;
}

/* Everything that could steer a terminal, or be read as what it is not, becomes question marks.
 * What is not a whole character yet is held back. `room` starts with a place for it. Returns where
 * the harmless text starts. */
static unsigned char *sanitized(struct call_stream *stream, unsigned char *room, size_t *length)
{
        unsigned char *data = room + sizeof(stream->held) - stream->n_held;
        size_t n = *length + stream->n_held;

        memcpy(data, stream->held, stream->n_held);
        *length = text_make_printable(data, n);
        stream->n_held = n - *length;
        memcpy(stream->held, data + *length, stream->n_held);
        return data;
}

/* The sink is full: keep the rest, and do not read on until it has gone. */
static void hold_back(struct call *call, struct call_stream *stream, const char *data,
                      size_t length)
{
        stream->pending = malloc(length);
        if (!stream->pending) {
                call_give_in(call, ENOMEM);
                return;
        }
        memcpy(stream->pending, data, length);
        stream->pending_at = 0;
        stream->pending_length = length;
        loop_unwatch(call->loop, &stream->source);
        stream->target.fd = stream->sink.fd;
        call_watch(call, &stream->target, EPOLLOUT);
}

/* The rest of the character does not come any more: it is none. */
static void end_held(struct call *call, struct call_stream *stream)
{
        const char *held = (const char *)stream->held;
        size_t n;

        text_end_printable(stream->held, stream->n_held);
        n = stream->n_held ? take(call, stream, held, stream->n_held) : 0;
        if (n > 0)
                (void)hand_on(call, stream, held, n);
        stream->n_held = 0;
}

/* Read once. Returns whether it is worth trying again. */
static bool read_some(struct watch *source)
{
        struct call *call = source->owner;
        struct call_stream *stream =
                (struct call_stream *)((char *)source - offsetof(struct call_stream, source));
        /* With a place for what was held back; on the stack every page of it would be touched. */
        static unsigned char room[sizeof(stream->held) + CHUNK];
        unsigned char *data = room + sizeof(stream->held);
        size_t length, taken;
        ssize_t n;

        n = read(source->fd, data, CHUNK);
        if (n < 0 && errno == EINTR)
                return true;
        if (n < 0 && errno == EAGAIN) {
                /* Nobody of the box is left: what is not there now does not come. A terminal says
                 * so by itself. */
                stream->finished = call->dead || (call->ended && !call->spec->tty);
                if (stream->finished)
                        end_held(call, stream);
                call_finish_if_over(call);
                return false;
        }
        if (n <= 0 && call->spec->tty && !call->ended) {
                /* Nobody has the terminal open just now. Closing it would hang up on the program.
                 */
                loop_unwatch(call->loop, source);
                return false;
        }
        if (n < 0 && !call->spec->tty && !call->report->output_lost) {
                call->report->output_lost = true;
                report_warn(call->report, "the output could not be read: %s", strerror(errno));
        }
        if (n <= 0) { /* the end; a terminal says EIO */
                end_held(call, stream);
                call_output_close(call, stream);
                return false;
        }
        length = (size_t)n;
        if (call->spec->sanitize && !is_result(call, stream))
                data = sanitized(stream, room, &length);
        length = take(call, stream, (char *)data, length);
        taken = hand_on(call, stream, (char *)data, length);
        if (taken < length)
                hold_back(call, stream, (char *)data + taken, length - taken);
        return true;
}

static void readable(struct watch *source, uint32_t events)
{
        (void)events;
        (void)read_some(source);
}

/* Read what is there, as far as the caller takes it. */
void call_output_drain(struct call *call, struct call_stream *stream)
{
        bool more = true;

        while (more && stream->source.fd >= 0 && stream->source.events && !call->done)
                more = read_some(&stream->source);
}

static void writable(struct watch *target, uint32_t events)
{
        struct call *call = target->owner;
        struct call_stream *stream =
                (struct call_stream *)((char *)target - offsetof(struct call_stream, target));

        (void)events;
        stream->pending_at += hand_on(call, stream, stream->pending + stream->pending_at,
                                      stream->pending_length - stream->pending_at);
        if (stream->pending_at < stream->pending_length)
                return;
        free(stream->pending);
        stream->pending = NULL;
        loop_unwatch(call->loop, target);
        if (stream->source.fd < 0)
                return;
        call_watch(call, &stream->source, EPOLLIN);
        if (call->ended)
                call_output_drain(call, stream);
}

int call_output_open(struct call *call, int index, int fd)
{
        struct call_stream *stream = &call->streams[index];
        const struct call_output *output = &call->spec->output[index];

        stream->output = &call->report->output[index];
        stream->source = (struct watch){ .fd = fd, .ready = readable, .owner = call };
        stream->target = (struct watch){ .fd = -1, .ready = writable, .owner = call };
        if (output->message)
                return sink_open_messages(&stream->sink, output->forward, index);
        sink_open(&stream->sink, output->forward);
        return 0;
}

void call_output_free(struct call *call, struct call_stream *stream)
{
        loop_unwatch(call->loop, &stream->source);
        loop_unwatch(call->loop, &stream->target);
        stream->source.fd = base_close(stream->source.fd);
        sink_close(&stream->sink);
        free(stream->pending);
        stream->pending = NULL;
}
