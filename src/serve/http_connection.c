/* SPDX-License-Identifier: MIT */
/* One connection: a head, a body, an answer, and again. The client is read from all the time, so
 * that its leaving shows at once; what it sends ahead is bounded. */
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "serve/http_parts.h"

/* Seconds that a client may take, counted from the beginning of each thing. */
#define IDLE_TIME 60    /* between requests */
#define HEAD_TIME 10    /* from the first byte of a head to its last */
#define BODY_TIME 30    /* for the body */
#define FLUSH_TIME 30   /* to take the answer */
#define LINGER_TIME 2   /* to notice that it was refused */
#define STALL_TIME 30   /* to take anything at all of a stream */
#define PROBE_TIME 10   /* between probes of a client that says nothing: its host may be gone */
#define COMMENT_TIME 15 /* between signs of life on a stream */

#define AHEAD_MAX (64 * KIB)    /* that is sent while a request is being answered */
#define BACKLOG_MAX (1 * MIB)   /* that the client has not read: then notifications are dropped */
#define RETRY_MS "1000"         /* for a client whose stream was lost to come back */
#define LONG_BODY (8 * KIB)     /* takes longer to read than others should wait, many times over */
#define BUFFERED_MAX (64 * MIB) /* bytes of all bodies */

static const char *reason_of(int status)
{
        static const struct {
                int status;
                const char *text;
        } reasons[] = { { 200, "OK" },
                        { 202, "Accepted" },
                        { 400, "Bad Request" },
                        { 401, "Unauthorized" },
                        { 403, "Forbidden" },
                        { 404, "Not Found" },
                        { 405, "Method Not Allowed" },
                        { 406, "Not Acceptable" },
                        { 408, "Request Timeout" },
                        { 413, "Content Too Large" },
                        { 415, "Unsupported Media Type" },
                        { 417, "Expectation Failed" },
                        { 431, "Request Header Fields Too Large" },
                        { 500, "Internal Server Error" },
                        { 501, "Not Implemented" },
                        { 503, "Service Unavailable" },
                        { 505, "HTTP Version Not Supported" } };

        for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
                if (reasons[i].status == status)
                        return reasons[i].text;
        return "Unknown";
}

static void wait_for(struct http_connection *connection, enum http_state state, int seconds)
{
        struct timeval time = { .tv_sec = seconds };

        connection->state = state;
        if (seconds > 0)
                (void)event_add(connection->timer, &time);
        else
                (void)event_del(connection->timer);
}

/* ---- Answers ---- */

static void begin_answer(struct http_connection *connection, int status, const char *type,
                         const char *more)
{
        struct evbuffer *out = bufferevent_get_output(connection->bev);
        time_t now = time(NULL);
        struct tm parts;
        char date[40] = "";

        if (gmtime_r(&now, &parts))
                (void)strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &parts);
        if (!connection->head.keep_alive || connection->refused || connection->http->closing)
                connection->close = true;
        connection->http->statuses[status % HTTP_STATUSES]++;
        evbuffer_add_printf(out, "HTTP/1.1 %d %s\r\nDate: %s\r\n%sConnection: %s\r\n", status,
                            reason_of(status), date, more,
                            connection->close ? "close" : "keep-alive");
        if (type)
                evbuffer_add_printf(out,
                                    "Content-Type: %s\r\nCache-Control: no-store\r\n"
                                    "X-Content-Type-Options: nosniff\r\n",
                                    type);
}

void connection_answer(struct http_connection *connection, int status, const char *type,
                       const char *more, const char *text, size_t length)
{
        struct evbuffer *out = bufferevent_get_output(connection->bev);

        begin_answer(connection, status, type, more);
        evbuffer_add_printf(out, "Content-Length: %zu\r\n\r\n", length);
        if (length > 0)
                evbuffer_add(out, text, length);
        wait_for(connection, HTTP_FLUSH, FLUSH_TIME);
}

void connection_refuse(struct http_connection *connection, int status, const char *more,
                       const char *text)
{
        _cleanup_failure_ struct rpc_failure failure = { 0 };
        _cleanup_free_ char *body = NULL;

        rpc_fail(&failure, RPC_INVALID_REQUEST, "%s", text);
        body = rpc_write_failure(NULL, &failure);
        connection_answer(connection, status, "application/json", more, body ? body : "",
                          body ? strlen(body) : 0);
}

void connection_sse_begin(struct http_connection *connection, const char *more)
{
        struct timeval time = { .tv_sec = STALL_TIME };

        if (!connection->head.streams)
                connection->head.keep_alive = false;
        begin_answer(connection, 200, "text/event-stream", more);
        evbuffer_add_printf(bufferevent_get_output(connection->bev),
                            "X-Accel-Buffering: no\r\n%s\r\n",
                            connection->head.streams ? "Transfer-Encoding: chunked\r\n" : "");
        connection->sse = true;
        bufferevent_set_timeouts(connection->bev, NULL, &time);
        wait_for(connection, connection->state, COMMENT_TIME);
        if (connection->stream && connection->events == 0)
                (void)connection_sse(connection, "", 0, false); /* an id to come back with */
        else
                (void)connection_sse(connection, NULL, 0, true);
}

bool connection_sse(struct http_connection *connection, const char *text, size_t length,
                    bool droppable)
{
        struct evbuffer *out = bufferevent_get_output(connection->bev);
        bool chunked = connection->head.streams;
        char id[96] = "";

        if (droppable && evbuffer_get_length(out) > BACKLOG_MAX)
                return false;
        if (text && connection->stream) {
                snprintf(id, sizeof(id), "id: %llu-%llu\n%s",
                         (unsigned long long)connection->stream,
                         (unsigned long long)connection->events,
                         connection->events == 0 ? "retry: " RETRY_MS "\n" : "");
                connection->events++;
        }
        if (chunked)
                evbuffer_add_printf(out, "%zx\r\n", text ? strlen(id) + length + 8 : 3);
        if (text) {
                evbuffer_add_printf(out, "%sdata: ", id);
                evbuffer_add(out, text, length);
                evbuffer_add(out, "\n\n", 2);
        } else {
                evbuffer_add(out, ":\n\n", 3);
        }
        if (chunked)
                evbuffer_add(out, "\r\n", 2);
        return true;
}

void connection_sse_end(struct http_connection *connection)
{
        if (connection->head.streams)
                evbuffer_add(bufferevent_get_output(connection->bev), "0\r\n\r\n", 5);
        wait_for(connection, HTTP_FLUSH, FLUSH_TIME);
}

/* ---- From one request to the next ---- */

void connection_forget_body(struct http_connection *connection)
{
        connection->http->buffered -= connection->body.length;
        buffer_free(&connection->body);
}

static void next_request(struct http_connection *connection)
{
        endpoint_leave(connection);
        connection_forget_body(connection);
        http_head_clear(&connection->head);
        connection->chunks = (struct http_chunks){ 0 };
        connection->sought = 0;
        connection->accepts_sse = connection->sse = connection->modern = false;
        connection->stream = connection->events = 0;
        bufferevent_set_timeouts(connection->bev, NULL, NULL);
        wait_for(connection, HTTP_HEAD, IDLE_TIME);
}

/* The answer is with the kernel. */
static void flushed(struct http_connection *connection)
{
        if (!connection->close) {
                next_request(connection);
        } else if (connection->refused) {
                /* Closed with something unread, the kernel would take the answer back. */
                (void)shutdown(bufferevent_getfd(connection->bev), SHUT_WR);
                wait_for(connection, HTTP_LINGER, LINGER_TIME);
        } else {
                connection->gone = true;
        }
}

/* ---- Reading ---- */

static bool refuse_rest(struct http_connection *connection, int status, const char *text)
{
        connection->refused = true;
        connection_refuse(connection, status, "", text);
        return true;
}

/* How much of the input is a head; 0: not all of it is there. */
static size_t find_head(struct http_connection *connection, struct evbuffer *in)
{
        struct evbuffer_ptr from, at;
        size_t length = evbuffer_get_length(in);

        if (evbuffer_ptr_set(in, &from, connection->sought, EVBUFFER_PTR_SET) < 0)
                return 0;
        at = evbuffer_search(in, "\r\n\r\n", 4, &from);
        connection->sought = length > 3 ? length - 3 : 0;
        return at.pos < 0 ? 0 : (size_t)at.pos + 4;
}

static bool take_head(struct http_connection *connection, struct evbuffer *in)
{
        struct http_head *head = &connection->head;
        size_t length = find_head(connection, in);
        int status;

        if (length == 0 && evbuffer_get_length(in) == 0)
                return false;
        if ((length == 0 && evbuffer_get_length(in) > HTTP_HEAD_MAX) || length > HTTP_HEAD_MAX)
                return refuse_rest(connection, 431, "the header is too long");
        if (length == 0) {
                if (!connection->began)
                        wait_for(connection, HTTP_HEAD, HEAD_TIME);
                connection->began = true;
                return false;
        }
        connection->began = false;
        status = http_head_parse(head, (const char *)evbuffer_pullup(in, (ev_ssize_t)length),
                                 length);
        evbuffer_drain(in, length);
        if (status)
                return refuse_rest(connection, status, "this is no good HTTP request");
        connection->refused = head->chunked || head->length > 0; /* unless it is wanted */
        if (endpoint_admit(connection) != 0)
                return true;
        connection->asked = time_now(); /* not of those who may not: they go first */
        if (head->length > connection->http->body_max)
                return refuse_rest(connection, 413, "the message is too long (see --body)");
        connection->refused = false;
        if (head->expects && evbuffer_get_length(in) == 0)
                (void)bufferevent_write(connection->bev, "HTTP/1.1 100 Continue\r\n\r\n", 25);
        wait_for(connection, HTTP_BODY, BODY_TIME);
        return true;
}

/* A piece of the body. Returns how much of it was used, or a negative errno. */
static ssize_t take_piece(struct http_connection *connection, const char *data, size_t length)
{
        struct buffer *body = &connection->body;
        int r;

        if (connection->head.chunked)
                return http_chunks_take(&connection->chunks, data, length,
                                        connection->http->body_max, body);
        length = MIN(length, (size_t)connection->head.length - body->length);
        r = buffer_add(body, data, length);
        return r < 0 ? r : (ssize_t)length;
}

static bool is_whole(const struct http_connection *connection)
{
        return connection->head.chunked ? connection->chunks.state == CHUNK_DONE
                                        : connection->body.length == connection->head.length;
}

static bool take_body(struct http_connection *connection, struct evbuffer *in)
{
        struct evbuffer_iovec piece;
        size_t before;
        ssize_t n;

        while (!is_whole(connection)) {
                if (evbuffer_peek(in, -1, NULL, &piece, 1) < 1 || piece.iov_len == 0)
                        return false;
                before = connection->body.length;
                n = take_piece(connection, piece.iov_base, piece.iov_len);
                connection->http->buffered += connection->body.length - before;
                if (n == -EFBIG)
                        return refuse_rest(connection, 413, "the message is too long (see --body)");
                if (n == -EBADMSG)
                        return refuse_rest(connection, 400, "the body is not in good chunks");
                if (n < 0 || connection->http->buffered > BUFFERED_MAX)
                        return refuse_rest(connection, 503, "there is no memory for the message");
                evbuffer_drain(in, (size_t)n);
        }
        if (connection->body.length > LONG_BODY) {
                wait_for(connection, HTTP_QUEUED, 0);
                reader_queue(connection);
                return false;
        }
        wait_for(connection, HTTP_BUSY, 0);
        endpoint_take(connection);
        return true;
}

/* One step; true: there may be another. */
static bool step(struct http_connection *connection)
{
        struct evbuffer *in = bufferevent_get_input(connection->bev);

        switch (connection->state) {
        case HTTP_HEAD:
                return take_head(connection, in);
        case HTTP_BODY:
                return take_body(connection, in);
        case HTTP_LINGER:
                evbuffer_drain(in, evbuffer_get_length(in));
                return false;
        default:
                if (evbuffer_get_length(in) > AHEAD_MAX) {
                        if (connection->refused)
                                evbuffer_drain(in, evbuffer_get_length(in));
                        else
                                connection->gone = true;
                }
                return false;
        }
}

void connection_go(struct http_connection *connection)
{
        if (connection->running)
                return;
        connection->running = true;
        while (!connection->gone && step(connection))
                ;
        connection->running = false;
        if (connection->gone)
                connection_free(connection);
}

/* ---- Events ---- */

static void on_read(struct bufferevent *bev, void *context)
{
        (void)bev;
        connection_go(context);
}

static void on_write(struct bufferevent *bev, void *context)
{
        struct http_connection *connection = context;

        if (connection->state != HTTP_FLUSH || evbuffer_get_length(bufferevent_get_output(bev)) > 0)
                return;
        flushed(connection);
        connection_go(connection);
}

/* The client is gone, or does not read. */
static void on_event(struct bufferevent *bev, short what, void *context)
{
        struct http_connection *connection = context;
        bool half = (what & BEV_EVENT_EOF) && !(what & BEV_EVENT_ERROR);

        /* One that has said all it has to say may still listen to the answer. */
        if (half && connection->state == HTTP_FLUSH &&
            evbuffer_get_length(bufferevent_get_output(bev)) > 0) {
                connection->close = true;
                connection->refused = false;
                return;
        }
        connection_free(connection);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
        struct http_connection *connection = context;

        (void)fd, (void)what;
        if (connection->sse && connection->state != HTTP_FLUSH) {
                (void)connection_sse(connection, NULL, 0, true);
                wait_for(connection, connection->state, COMMENT_TIME);
        } else if (connection->state == HTTP_BODY || connection->began) {
                connection->began = false;
                (void)refuse_rest(connection, 408, "the request took too long to come");
        } else {
                connection_free(connection);
        }
}

/* ---- Beginning and end ---- */

int connection_new(struct serve_http *http, int fd)
{
        struct http_connection *connection = calloc(1, sizeof(*connection));
        int on = 1, probe = PROBE_TIME, stall = STALL_TIME * 1000;

        if (!connection) {
                base_close(fd);
                return -ENOMEM;
        }
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &probe, sizeof(probe));
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &probe, sizeof(probe));
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &stall, sizeof(stall));
        connection->http = http;
        TAILQ_INSERT_TAIL(&http->connections, connection, link);
        http->n_connections++;
        connection->timer = evtimer_new(http->base, on_timer, connection);
        connection->bev = bufferevent_socket_new(http->base, fd, BEV_OPT_CLOSE_ON_FREE);
        if (!connection->bev || !connection->timer) {
                if (!connection->bev)
                        base_close(fd);
                connection_free(connection);
                return -ENOMEM;
        }
        bufferevent_setcb(connection->bev, on_read, on_write, on_event, connection);
        wait_for(connection, HTTP_HEAD, HEAD_TIME);
        return bufferevent_enable(connection->bev, EV_READ | EV_WRITE);
}

void connection_free(struct http_connection *connection)
{
        struct serve_http *http = connection->http;

        endpoint_leave(connection);
        reader_forget(connection);
        TAILQ_REMOVE(&http->connections, connection, link);
        http->n_connections--;
        connection_forget_body(connection);
        http_head_clear(&connection->head);
        if (connection->timer)
                event_free(connection->timer);
        if (connection->bev)
                bufferevent_free(connection->bev);
        free(connection);
}
