/* SPDX-License-Identifier: MIT */
/*
 * MCP over two descriptors: one message per line, nothing else. Neither is made non-blocking, which
 * others who share the same open file would see: reads and writes are as long as poll promises.
 */
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "serve/lines.h"
#include "serve/serve_parts.h"

#define READ_SIZE (64 * KIB)
#define BACKLOG_NOTES                                                                              \
        (4 * MIB) /* that the client has not read: then notifications are dropped ... */
#define BACKLOG_READ (8 * MIB) /* ... and then nothing more is read */
#define FLUSH_MS 50            /* at the end, for what has been answered */

struct serve_stdio {
        struct serve_reply reply; /* first; the same for all requests */
        struct event_base *base;
        struct serve_peer *peer;
        int in, out;
        struct event *readable, *writable;
        struct lines lines;
        struct buffer unsent;
        size_t sent; /* of it */
        bool ended, gone;
};

/* ---- Out ---- */

/* At most PIPE_BUF bytes: so much a pipe that is writable takes without waiting. */
static ssize_t write_some(int fd, const char *data, size_t length)
{
        struct pollfd poller = { .fd = fd, .events = POLLOUT };
        ssize_t n = send(fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n >= 0 || errno != ENOTSOCK)
                return n;
        if (poll(&poller, 1, 0) == 0) {
                errno = EAGAIN;
                return -1;
        }
        return write(fd, data, MIN(length, (size_t)PIPE_BUF));
}

static void leave(struct serve_stdio *stdio)
{
        event_base_loopbreak(stdio->base);
}

static void write_out(struct serve_stdio *stdio)
{
        while (stdio->sent < stdio->unsent.length) {
                ssize_t n = write_some(stdio->out, stdio->unsent.data + stdio->sent,
                                       stdio->unsent.length - stdio->sent);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        break;
                if (n < 0) {
                        stdio->gone = true;
                        stdio->unsent.length = stdio->sent = 0;
                        leave(stdio);
                        return;
                }
                stdio->sent += (size_t)n;
        }
        if (stdio->sent == stdio->unsent.length) {
                buffer_free(&stdio->unsent);
                stdio->sent = 0;
        }
        if (stdio->unsent.length > 0)
                event_add(stdio->writable, NULL);
        if (stdio->unsent.length - stdio->sent <= BACKLOG_READ && !stdio->ended)
                event_add(stdio->readable, NULL);
        else
                event_del(stdio->readable);
}

static void on_writable(evutil_socket_t fd, short what, void *context)
{
        (void)fd, (void)what;
        write_out(context);
}

static void put(struct serve_stdio *stdio, const char *text, size_t length)
{
        if (stdio->gone)
                return;
        if (buffer_add(&stdio->unsent, text, length) < 0 ||
            buffer_add(&stdio->unsent, "\n", 1) < 0) {
                stdio->gone = true; /* half a line is worse than none */
                leave(stdio);
                return;
        }
        write_out(stdio);
}

static bool may_drop(const struct serve_stdio *stdio)
{
        return stdio->unsent.length - stdio->sent > BACKLOG_NOTES;
}

static void send_to_peer(void *context, const char *text, size_t length)
{
        struct serve_stdio *stdio = context;

        if (!may_drop(stdio))
                put(stdio, text, length);
}

static bool send_reply(struct serve_reply *reply, const char *text, size_t length)
{
        struct serve_stdio *stdio = (struct serve_stdio *)reply;

        if (may_drop(stdio))
                return false;
        put(stdio, text, length);
        return !stdio->gone;
}

static void finish_reply(struct serve_reply *reply, int status, const char *text, size_t length)
{
        (void)status;
        if (text)
                put((struct serve_stdio *)reply, text, length);
}

/* ---- In ---- */

static void refuse(struct serve_stdio *stdio, const struct rpc_message *message,
                   const struct rpc_failure *failure)
{
        _cleanup_free_ char *text = serve_refuse(message, failure);

        if (text)
                put(stdio, text, strlen(text));
}

static void take_line(struct serve_stdio *stdio, const char *line, size_t length)
{
        _cleanup_failure_ struct rpc_failure failure = { 0 };
        _cleanup_rpc_message_ struct rpc_message message = { 0 };

        if (rpc_read(line, length, &message, &failure) < 0)
                refuse(stdio, &message, &failure);
        else
                (void)serve_receive(stdio->peer, &message, &stdio->reply);
}

static void take_lines(struct serve_stdio *stdio)
{
        struct rpc_failure failure = { 0 };
        const char *line;
        size_t length;
        int r;

        while (!stdio->gone && (r = lines_next(&stdio->lines, stdio->ended, &line, &length)) != 0) {
                if (r > 0) {
                        take_line(stdio, line, length);
                        continue;
                }
                rpc_fail(&failure, RPC_PARSE_ERROR, "the message is longer than %llu bytes",
                         RPC_MESSAGE_MAX);
                refuse(stdio, &(struct rpc_message){ 0 }, &failure);
        }
}

static void on_readable(evutil_socket_t fd, short what, void *context)
{
        struct serve_stdio *stdio = context;
        char data[READ_SIZE];
        ssize_t n = read(fd, data, sizeof(data));

        (void)what;
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
                return;
        stdio->ended = n <= 0;
        if (n > 0 && lines_add(&stdio->lines, data, (size_t)n) < 0)
                stdio->ended = true;
        take_lines(stdio);
        if (stdio->ended)
                leave(stdio);
}

static bool can_be_polled(int fd)
{
        struct stat facts;

        return fstat(fd, &facts) == 0 &&
               (S_ISFIFO(facts.st_mode) || S_ISSOCK(facts.st_mode) || isatty(fd));
}

/* A file cannot be polled, and need not be. */
static void read_file(evutil_socket_t fd, short what, void *context)
{
        struct serve_stdio *stdio = context;

        on_readable(stdio->in, what, context);
        (void)fd;
        if (!stdio->ended)
                event_active(stdio->readable, EV_READ, 0);
}

/* ---- All of it ---- */

static const struct serve_peer_ops ops = { .transport = "stdio", .send = send_to_peer };

int serve_stdio_open(struct serve *serve, struct event_base *base, int in, int out,
                     struct serve_stdio **ret_stdio, cbx_error *error)
{
        struct serve_stdio *stdio = calloc(1, sizeof(*stdio));

        if (!stdio)
                return error_oom(error);
        *stdio = (struct serve_stdio){ .reply = { .send = send_reply, .finish = finish_reply },
                                       .base = base,
                                       .in = in,
                                       .out = out,
                                       .lines = { .limit = RPC_MESSAGE_MAX } };
        stdio->peer = serve_peer_new(serve, &ops, stdio);
        stdio->readable = event_new(base, in, EV_READ | EV_PERSIST, on_readable, stdio);
        stdio->writable = event_new(base, out, EV_WRITE, on_writable, stdio);
        if (!stdio->peer || !stdio->readable || !stdio->writable) {
                serve_stdio_close(stdio);
                return error_oom(error);
        }
        if (!can_be_polled(in)) {
                event_assign(stdio->readable, base, -1, 0, read_file, stdio);
                event_active(stdio->readable, EV_READ, 0);
        } else if (event_add(stdio->readable, NULL) < 0) {
                serve_stdio_close(stdio);
                return error_set(error, -EIO, "", "cannot wait for stdin");
        }
        *ret_stdio = stdio;
        return 0;
}

struct serve_stdio *serve_stdio_close(struct serve_stdio *stdio)
{
        uint64_t end = time_now() + FLUSH_MS * NSEC_PER_MSEC;

        if (!stdio)
                return NULL;
        serve_peer_free(stdio->peer);
        stdio->ended = true;
        while (stdio->writable && stdio->unsent.length > 0 && time_now() < end) {
                (void)poll(&(struct pollfd){ .fd = stdio->out, .events = POLLOUT }, 1, 10);
                write_out(stdio);
        }
        if (stdio->readable)
                event_free(stdio->readable);
        if (stdio->writable)
                event_free(stdio->writable);
        lines_free(&stdio->lines);
        buffer_free(&stdio->unsent);
        free(stdio);
        return NULL;
}
