/* SPDX-License-Identifier: MIT */
/*
 * Streams that were lost. In a session of 2025-11-25 a connection that ends cancels nothing, and
 * the client may take up its stream again: the events of an answer have ids, and a GET that names
 * the last one (Last-Event-ID) gets what comes, or came, after it.
 *
 * What is kept for that is the answer, for some minutes and within a bound; what would have been
 * told on the way is dropped while nobody listens. What was sent is not sent again.
 */
#include <stdlib.h>
#include <string.h>

#include "serve/http_parts.h"

#define LOST_MAX 32 /* of one session */
#define KEPT_MAX (16 * MIB)
#define KEPT_TIME (300 * NSEC_PER_SEC)

struct http_lost {
        struct serve_reply reply; /* first: what the dispatcher knows of it */
        struct http_session *session;
        uint64_t stream, events;            /* its number, and that of its next event */
        struct http_connection *connection; /* that has taken it up; NULL: nobody has */
        char *answer;                       /* NULL: there is none yet */
        size_t length;
        uint64_t since;
        TAILQ_ENTRY(http_lost) link;
};

static void lost_free(struct http_lost *lost)
{
        if (lost->connection)
                lost->connection->lost = NULL;
        lost->session->http->kept -= lost->length;
        TAILQ_REMOVE(&lost->session->lost, lost, link);
        free(lost->answer);
        free(lost);
}

void lost_free_all(struct http_session *session)
{
        while (!TAILQ_EMPTY(&session->lost))
                lost_free(TAILQ_FIRST(&session->lost));
}

void lost_expire(struct http_session *session, uint64_t now)
{
        struct http_lost *lost, *next;

        for (lost = TAILQ_FIRST(&session->lost); lost; lost = next) {
                next = TAILQ_NEXT(lost, link);
                if (lost->answer && now - lost->since > KEPT_TIME)
                        lost_free(lost);
        }
}

/* ---- Its way back ---- */

static bool lost_send(struct serve_reply *reply, const char *text, size_t length)
{
        struct http_connection *connection = ((struct http_lost *)reply)->connection;

        return connection && connection_sse(connection, text, length, true);
}

static void lost_finish(struct serve_reply *reply, int status, const char *text, size_t length)
{
        struct http_lost *lost = (struct http_lost *)reply;
        struct http_connection *connection = lost->connection;
        struct serve_http *http = lost->session->http;

        (void)status; /* the head of the answer has gone out long ago */
        if (connection) {
                if (text)
                        (void)connection_sse(connection, text, length, false);
                lost_free(lost);
                connection_sse_end(connection);
                return;
        }
        lost->answer = text && http->kept + length <= KEPT_MAX ? strndup(text, length) : NULL;
        if (!lost->answer) {
                lost_free(lost);
                return;
        }
        lost->length = length;
        lost->since = time_now();
        http->kept += length;
}

/* ---- Losing and taking up ---- */

int lost_keep(struct http_connection *connection, struct serve_request *request)
{
        struct http_session *session = connection->session;
        struct http_lost *lost, *oldest = TAILQ_FIRST(&session->lost);
        unsigned n = 0;

        TAILQ_FOREACH(lost, &session->lost, link)
        n++;
        if (n >= LOST_MAX && !oldest->answer)
                return -ENOSPC;
        if (n >= LOST_MAX)
                lost_free(oldest);
        lost = calloc(1, sizeof(*lost));
        if (!lost)
                return -ENOMEM;
        *lost = (struct http_lost){ .reply = { .send = lost_send, .finish = lost_finish },
                                    .session = session,
                                    .stream = connection->stream,
                                    .events = connection->events };
        TAILQ_INSERT_TAIL(&session->lost, lost, link);
        serve_request_redirect(request, &lost->reply);
        return 0;
}

void lost_leave(struct http_connection *connection)
{
        struct http_lost *lost = TAKE_PTR(connection->lost);

        if (lost) {
                lost->events = connection->events;
                lost->connection = NULL;
        }
}

bool lost_resume(struct http_connection *connection, struct http_session *session)
{
        const char *last = http_head_get(&connection->head, "last-event-id");
        unsigned long long stream = last ? strtoull(last, NULL, 10) : 0;
        struct http_lost *lost;

        TAILQ_FOREACH(lost, &session->lost, link)
        {
                if (stream > 0 && lost->stream == stream)
                        break;
        }
        if (!lost)
                return false;
        if (lost->connection) { /* the client has lost that one as well, without our knowing */
                struct http_connection *old = lost->connection;

                lost_leave(old);
                connection_sse_end(old);
        }
        session->requests++;
        connection->session = session;
        connection->state = HTTP_STREAM;
        connection->stream = lost->stream;
        connection->events = lost->events;
        connection_sse_begin(connection, "");
        if (lost->answer) {
                (void)connection_sse(connection, lost->answer, lost->length, false);
                lost_free(lost);
                connection_sse_end(connection);
                return true;
        }
        lost->connection = connection;
        connection->lost = lost;
        return true;
}
