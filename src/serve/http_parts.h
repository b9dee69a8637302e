/* SPDX-License-Identifier: MIT */
/* The inside of the HTTP transport; the map of its files is in http.h. */
#ifndef SERVE_HTTP_PARTS_H
#define SERVE_HTTP_PARTS_H

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <sys/queue.h>

#include "serve/http.h"
#include "serve/http_parse.h"

#define SESSION_ID_LENGTH 32
#define HTTP_STATUSES 600

/* What a connection waits for. */
enum http_state {
        HTTP_HEAD,    /* for its client: a request */
        HTTP_BODY,    /* for its client: the rest of one */
        HTTP_QUEUED,  /* for its turn to be read */
        HTTP_READING, /* for what is read of it */
        HTTP_BUSY,    /* for the dispatcher */
        HTTP_STREAM,  /* for nothing: it is the way of a session's notifications */
        HTTP_FLUSH,   /* for its client to take the answer */
        HTTP_LINGER,  /* for its client to have heard that it is refused */
};

struct http_connection {
        struct serve_reply reply; /* first: what the dispatcher knows of it */
        struct serve_http *http;
        struct bufferevent *bev;
        struct event *timer;
        enum http_state state;
        struct http_head head;
        size_t sought; /* bytes of a head that were looked at */
        struct http_chunks chunks;
        struct buffer body;
        uint64_t asked; /* when its last good request came; 0: there was none */
        bool began;     /* some of a head has come */
        bool gone;      /* to be freed as soon as it does not run */
        bool running;   /* in connection_go */
        bool close;     /* after this answer */
        bool refused;   /* there is more of the request, which nobody wants */
        bool accepts_sse;
        bool sse;                /* the answer is a stream, and has begun */
        bool receiving;          /* serve_receive has not returned yet */
        bool initializing;       /* of a session that is not yet one */
        bool modern;             /* the client's leaving is a cancellation */
        struct serve_peer *peer; /* of this one request; NULL: the session's */
        struct http_session *session;
        struct serve_request *request;
        uint64_t stream, events; /* a stream that can be taken up again: its number, and that of its
                                    next event; 0: it cannot */
        struct http_lost *lost;  /* which this one has taken up; NULL: none */
        TAILQ_ENTRY(http_connection) link, queued;
};

TAILQ_HEAD(http_connections, http_connection);

struct http_session {
        char id[SESSION_ID_LENGTH + 1];
        struct serve_http *http;
        struct serve_peer *peer;
        struct http_connection *stream; /* GET; NULL: there is none */
        unsigned requests;              /* connections that wait for an answer of it */
        uint64_t used;                  /* when it was last spoken to */
        TAILQ_HEAD(, http_lost) lost;   /* streams that may be taken up again */
        TAILQ_ENTRY(http_session) link;
};

struct serve_http {
        struct serve *serve;
        struct event_base *base;
        struct record *record;
        char *token, **hosts, **origins;
        size_t body_max;
        int listener;
        unsigned port;
        struct event *acceptable, *pause, *tick;
        struct http_reader *reader;
        struct http_connections connections, queue;
        unsigned n_connections, connections_max;
        TAILQ_HEAD(, http_session) sessions;
        unsigned n_sessions, sessions_max;
        size_t buffered;  /* bytes of bodies that are not whole, or wait */
        size_t kept;      /* bytes of answers to streams that were lost */
        uint64_t streams; /* numbers that were given */
        bool closing;
        uint64_t accepted, evicted, statuses[HTTP_STATUSES];
};

/* ---- http_reader.c ---- */

int reader_open(struct serve_http *http);
struct http_reader *reader_close(struct http_reader *reader);
/* Its body is long: it is read when it is its turn. */
void reader_queue(struct http_connection *connection);
/* It goes away, whether it waits for that or not. */
void reader_forget(struct http_connection *connection);

/* ---- http_connection.c ---- */

int connection_new(struct serve_http *http, int fd);
void connection_free(struct http_connection *connection);

/* Answer, whole. `more` is "Name: value\r\n" or "". */
void connection_answer(struct http_connection *connection, int status, const char *type,
                       const char *more, const char *text, size_t length);
/* Refuse with a JSON-RPC error that names no request. */
void connection_refuse(struct http_connection *connection, int status, const char *more,
                       const char *text);
/* A stream of events: begin, one event (text NULL: a comment), end. False: it was dropped. */
void connection_sse_begin(struct http_connection *connection, const char *more);
bool connection_sse(struct http_connection *connection, const char *text, size_t length,
                    bool droppable);
void connection_sse_end(struct http_connection *connection);

/* Its memory is given back as soon as it was read. */
void connection_forget_body(struct http_connection *connection);

/* Go on with what the client has sent. */
void connection_go(struct http_connection *connection);

/* ---- http_access.c ---- */

/* Returns 0, or the status of the refusal with its reason. */
int http_check_access(const struct serve_http *http, const struct http_head *head,
                      const char **ret_why);
bool http_check_token(const char *token, const struct http_head *head);

/* ---- http_check.c ---- */

/* Do the headers of a 2026-07-28 request say what its body says? 0, or -EINVAL with a failure. */
int http_check_mirror(const struct http_head *head, const struct rpc_message *message,
                      const json_t *tool, struct rpc_failure *failure);

/* ---- http_endpoint.c ---- */

/* May this request bring its body? 0, or a status that was answered. */
int endpoint_admit(struct http_connection *connection);
/* The request is whole. */
void endpoint_take(struct http_connection *connection);
/* The same in two steps, for a long one: the first has no effect on anything else. */
struct endpoint_message {
        struct rpc_message message;
        struct rpc_failure failure;
        int error; /* 0, -EINVAL with a failure, -E2BIG, -ENOMEM */
};
void endpoint_read(const struct buffer *body, struct endpoint_message *ret);
void endpoint_take_read(struct http_connection *connection, struct endpoint_message *read);
void endpoint_message_clear(struct endpoint_message *message);
/* The client is gone: end or detach what it waits for. */
void endpoint_leave(struct http_connection *connection);

/* ---- http_lost.c ---- */

/* The connection goes: its stream is kept for its client. On failure nothing changes. */
int lost_keep(struct http_connection *connection, struct serve_request *request);
/* Go on with a stream, if it is one of the session's that was lost. */
bool lost_resume(struct http_connection *connection, struct http_session *session);
/* A connection that had taken one up goes. */
void lost_leave(struct http_connection *connection);
void lost_expire(struct http_session *session, uint64_t now);
void lost_free_all(struct http_session *session);

/* ---- http_metrics.c ---- */

/* Everything that /metrics tells. */
int http_write_metrics(const struct serve_http *http, struct buffer *text);

/* ---- http_session.c ---- */

struct http_session *session_new(struct serve_http *http);
struct http_session *session_find(struct serve_http *http, const char *id);
/* Ends its calls; connections that wait for it are told. */
void session_free(struct http_session *session);
void session_expire(struct serve_http *http);

#endif
