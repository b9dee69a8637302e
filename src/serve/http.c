/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "serve/http_parts.h"

#define CONNECTIONS 512
#define SESSIONS 1024
#define BODY (1 * MIB)
#define ACCEPT_AT_ONCE 16 /* connections; others want their turn as well */
#define PAUSE_MS 50       /* when there are no descriptors left */
#define TICK_SECONDS 60
#define FAREWELL_MS 200 /* for answers to go out at the end */

/* ---- Connections ---- */

static bool waits_for_answer(const struct http_connection *connection)
{
        return connection->state == HTTP_QUEUED || connection->state == HTTP_READING ||
               connection->state == HTTP_BUSY;
}

/* Where there is no room: clients that have never asked anything go first, then whoever has asked
 * nothing for the longest time. Whoever waits for an answer stays. */
static bool evict(struct serve_http *http)
{
        struct http_connection *connection, *chosen = NULL;

        TAILQ_FOREACH(connection, &http->connections, link)
        {
                if (waits_for_answer(connection))
                        continue;
                if (!chosen || connection->asked < chosen->asked)
                        chosen = connection;
        }
        if (!chosen)
                return false;
        http->evicted++;
        connection_free(chosen);
        return true;
}

static void pause_listening(struct serve_http *http)
{
        struct timeval time = { .tv_usec = PAUSE_MS * 1000 };

        (void)event_del(http->acceptable);
        (void)event_add(http->pause, &time);
}

static void on_pause_over(evutil_socket_t fd, short what, void *context)
{
        (void)fd, (void)what;
        (void)event_add(((struct serve_http *)context)->acceptable, NULL);
}

static void on_acceptable(evutil_socket_t listener, short what, void *context)
{
        struct serve_http *http = context;

        (void)what;
        for (int i = 0; i < ACCEPT_AT_ONCE; i++) {
                /* cppcheck-suppress nullPointer */
                int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

                if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
                        continue;
                if (fd < 0) {
                        /* No descriptors left: the listener would be ready for ever. */
                        if (errno != EAGAIN && !evict(http))
                                pause_listening(http);
                        return;
                }
                http->accepted++;
                if (http->n_connections >= http->connections_max && !evict(http)) {
                        base_close(fd);
                        continue;
                }
                (void)connection_new(http, fd);
        }
}

static void on_tick(evutil_socket_t fd, short what, void *context)
{
        (void)fd, (void)what;
        session_expire(context);
}

/* ---- Listening ---- */

/* "A.B.C.D:PORT", "[V6]:PORT" or "localhost:PORT": addresses, no names to be resolved. */
static int parse_address(const char *text, struct sockaddr_storage *address, socklen_t *length,
                         bool *loopback)
{
        struct sockaddr_in *v4 = (struct sockaddr_in *)address;
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
        const char *colon = strrchr(text, ':');
        char host[64], *end;
        unsigned long port;

        if (!colon || colon == text || colon - text >= (long)sizeof(host) ||
            !strchr("0123456789", colon[1]) || !colon[1])
                return -EINVAL;
        port = strtoul(colon + 1, &end, 10);
        if (*end || port > UINT16_MAX)
                return -EINVAL;
        snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
        *address = (struct sockaddr_storage){ 0 };
        if (host[0] == '[' && host[strlen(host) - 1] == ']') {
                host[strlen(host) - 1] = '\0';
                *length = sizeof(*v6);
                v6->sin6_family = AF_INET6;
                v6->sin6_port = htons((uint16_t)port);
                if (inet_pton(AF_INET6, host + 1, &v6->sin6_addr) != 1)
                        return -EINVAL;
                *loopback = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
                return 0;
        }
        *length = sizeof(*v4);
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host,
                      &v4->sin_addr) != 1)
                return -EINVAL;
        *loopback = ntohl(v4->sin_addr.s_addr) >> 24 == 127;
        return 0;
}

static int open_listener(struct serve_http *http, const struct serve_http_options *options,
                         cbx_error *error)
{
        struct sockaddr_storage address;
        socklen_t length;
        bool loopback;
        int on = 1;

        if (parse_address(options->address, &address, &length, &loopback) < 0) {
                error_set(error, -EINVAL, "--http", "\"%s\" is no address with a port",
                          options->address);
                error_hint(error, "like 127.0.0.1:8765 or [::1]:8765");
                return -EINVAL;
        }
        if (!loopback && !options->token) {
                error_set(error, -EINVAL, "--http",
                          "others than this host could connect to %s, and there is no token",
                          options->address);
                error_hint(error, "use 127.0.0.1, or give clients a token with --token-file FILE");
                return -EINVAL;
        }
        http->listener = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (http->listener < 0 ||
            setsockopt(http->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
            bind(http->listener, (struct sockaddr *)&address, length) < 0 ||
            listen(http->listener, SOMAXCONN) < 0 ||
            getsockname(http->listener, (struct sockaddr *)&address, &length) < 0)
                return error_set(error, -errno, "--http", "cannot listen on %s: %s",
                                 options->address, strerror(errno));
        http->port =
                ntohs(address.ss_family == AF_INET ? ((struct sockaddr_in *)&address)->sin_port
                                                   : ((struct sockaddr_in6 *)&address)->sin6_port);
        return 0;
}

/* ---- All of it ---- */

static int copy_options(struct serve_http *http, const struct serve_http_options *options)
{
        http->record = options->record;
        http->connections_max = options->connections ? options->connections : CONNECTIONS;
        http->sessions_max = options->sessions ? options->sessions : SESSIONS;
        http->body_max = options->body ? options->body : BODY;
        http->token = options->token ? strdup(options->token) : NULL;
        http->hosts = list_new();
        http->origins = list_new();
        if ((options->token && !http->token) || !http->hosts || !http->origins)
                return -ENOMEM;
        for (const char *const *name = options->hosts; name && *name; name++)
                if (list_add(&http->hosts, *name) < 0)
                        return -ENOMEM;
        for (const char *const *name = options->origins; name && *name; name++)
                if (list_add(&http->origins, *name) < 0)
                        return -ENOMEM;
        return 0;
}

static int open_events(struct serve_http *http)
{
        struct timeval tick = { .tv_sec = TICK_SECONDS };

        http->acceptable =
                event_new(http->base, http->listener, EV_READ | EV_PERSIST, on_acceptable, http);
        http->pause = evtimer_new(http->base, on_pause_over, http);
        http->tick = event_new(http->base, -1, EV_PERSIST, on_tick, http);
        if (!http->acceptable || !http->pause || !http->tick)
                return -ENOMEM;
        return event_add(http->acceptable, NULL) < 0 || event_add(http->tick, &tick) < 0 ? -ENOMEM
                                                                                         : 0;
}

int serve_http_open(struct serve *serve, struct event_base *base,
                    const struct serve_http_options *options, struct serve_http **ret_http,
                    cbx_error *error)
{
        struct serve_http *http = calloc(1, sizeof(*http));
        int r;

        if (!http)
                return error_oom(error);
        http->serve = serve;
        http->base = base;
        http->listener = -1;
        TAILQ_INIT(&http->connections);
        TAILQ_INIT(&http->queue);
        TAILQ_INIT(&http->sessions);
        r = copy_options(http, options);
        if (r == 0)
                r = open_listener(http, options, error);
        if (r == 0)
                r = open_events(http);
        if (r == 0)
                r = reader_open(http);
        if (r < 0) {
                serve_http_close(http);
                return r == -ENOMEM || r == -EAGAIN ? error_oom(error) : r;
        }
        *ret_http = http;
        return 0;
}

unsigned serve_http_port(const struct serve_http *http)
{
        return http->port;
}

/* Whoever waits is told, as far as it takes what it is told at once. */
static void say_farewell(struct serve_http *http)
{
        uint64_t end = time_now() + FAREWELL_MS * NSEC_PER_MSEC;
        struct http_connection *connection, *next;
        bool unsent = true;

        for (connection = TAILQ_FIRST(&http->connections); connection; connection = next) {
                next = TAILQ_NEXT(connection, link);
                endpoint_leave(connection);
                (void)bufferevent_disable(connection->bev, EV_READ);
                if (connection->state == HTTP_BUSY && !connection->sse)
                        connection_refuse(connection, 503, "", "the server is being ended");
                else if (connection->sse && connection->state != HTTP_FLUSH)
                        connection_sse_end(connection);
        }
        while (unsent && time_now() < end) {
                unsent = false;
                (void)event_base_loop(http->base, EVLOOP_NONBLOCK);
                TAILQ_FOREACH(connection, &http->connections, link)
                {
                        unsent |= connection->state == HTTP_FLUSH;
                }
                if (unsent)
                        (void)poll(NULL, 0, 1);
        }
}

static void close_events(struct serve_http *http)
{
        struct event *events[] = { http->acceptable, http->pause, http->tick };

        for (size_t i = 0; i < ARRAY_SIZE(events); i++)
                if (events[i])
                        event_free(events[i]);
}

struct serve_http *serve_http_close(struct serve_http *http)
{
        if (!http)
                return NULL;
        http->closing = true;
        close_events(http);
        base_close(http->listener);
        while (!TAILQ_EMPTY(&http->sessions))
                session_free(TAILQ_FIRST(&http->sessions));
        say_farewell(http);
        while (!TAILQ_EMPTY(&http->connections))
                connection_free(TAILQ_FIRST(&http->connections));
        http->reader = reader_close(http->reader);
        list_free(http->hosts);
        list_free(http->origins);
        if (http->token)
                explicit_bzero(http->token, strlen(http->token));
        free(http->token);
        free(http);
        return NULL;
}
