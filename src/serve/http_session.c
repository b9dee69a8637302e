/* SPDX-License-Identifier: MIT */
/*
 * Sessions of 2025-11-25 and older: a peer that outlives its connections. They begin with
 * initialize and end with DELETE, after an hour of silence, or when there are too many: then the
 * one that was silent longest goes. A client whose session is gone is told 404 and begins anew.
 */
#include <string.h>
#include <sys/random.h>

#include "serve/http_parts.h"

#define SILENCE (3600 * NSEC_PER_SEC)

static void notify(void *context, const char *text, size_t length)
{
        struct http_session *session = context;

        if (session->stream)
                (void)connection_sse(session->stream, text, length, true);
}

static const struct serve_peer_ops ops = { .transport = "http", .send = notify };

static bool is_idle(const struct http_session *session)
{
        return !session->stream && session->requests == 0;
}

static void make_room(struct serve_http *http)
{
        struct http_session *session, *oldest = NULL;

        if (http->n_sessions < http->sessions_max)
                return;
        TAILQ_FOREACH(session, &http->sessions, link)
        {
                if (is_idle(session) && (!oldest || session->used < oldest->used))
                        oldest = session;
        }
        if (oldest)
                session_free(oldest);
}

struct http_session *session_new(struct serve_http *http)
{
        static const char digits[] = "0123456789abcdef";
        unsigned char random[SESSION_ID_LENGTH / 2];
        struct http_session *session;

        make_room(http);
        if (http->n_sessions >= http->sessions_max ||
            getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
                return NULL;
        session = calloc(1, sizeof(*session));
        if (!session)
                return NULL;
        for (size_t i = 0; i < sizeof(random); i++) {
                session->id[2 * i] = digits[random[i] >> 4];
                session->id[2 * i + 1] = digits[random[i] & 15];
        }
        TAILQ_INIT(&session->lost);
        session->http = http;
        session->used = time_now();
        session->peer = serve_peer_new(http->serve, &ops, session);
        if (!session->peer) {
                free(session);
                return NULL;
        }
        TAILQ_INSERT_TAIL(&http->sessions, session, link);
        http->n_sessions++;
        return session;
}

struct http_session *session_find(struct serve_http *http, const char *id)
{
        struct http_session *session;

        TAILQ_FOREACH(session, &http->sessions, link)
        {
                /* Not yet one: nobody can know its id. */
                if (serve_peer_version(session->peer) && strcmp(session->id, id) == 0) {
                        session->used = time_now();
                        return session;
                }
        }
        return NULL;
}

void session_free(struct http_session *session)
{
        struct serve_http *http = session->http;
        struct http_connection *connection;

        TAILQ_REMOVE(&http->sessions, session, link);
        http->n_sessions--;
        serve_peer_free(session->peer);
        lost_free_all(session);
        TAILQ_FOREACH(connection, &http->connections, link)
        {
                bool waits = connection->state == HTTP_BUSY || connection->state == HTTP_STREAM;

                if (connection->session != session)
                        continue;
                connection->session = NULL;
                connection->request = NULL;
                connection->initializing = false;
                if (waits && connection->sse)
                        connection_sse_end(connection);
                else if (waits)
                        connection_refuse(connection, 404, "", "the session has ended");
        }
        free(session);
}

void session_expire(struct serve_http *http)
{
        struct http_session *session, *next;
        uint64_t now = time_now();

        for (session = TAILQ_FIRST(&http->sessions); session; session = next) {
                next = TAILQ_NEXT(session, link);
                lost_expire(session, now);
                if (is_idle(session) && now - session->used > SILENCE)
                        session_free(session);
        }
}
