/* SPDX-License-Identifier: MIT */
/*
 * MCP over HTTP: one endpoint, /mcp, and beside it /healthz and /metrics.
 *
 *   http.c             the listener, its connections, their number and their deadlines
 *   http_connection.c  one connection: head, body, answer, and again
 *   http_parse.c       heads and chunks
 *   http_reader.c      long messages, read by a thread
 *   http_access.c      who may ask: Host, Origin, token
 *   http_check.c       2026-07-28: do the headers say what the body says
 *   http_endpoint.c    POST, GET and DELETE of /mcp: from a body to the dispatcher and back
 *   http_lost.c        2025-11-25: streams that are taken up again
 *   http_metrics.c     the numbers behind /metrics, with those of record.h
 *   http_session.c     2025-11-25 and older: sessions
 *
 * evhttp of libevent is not used: it hands a request on when all of its body is there, so that
 * whoever has no token fills the memory nevertheless; its only deadline begins anew with each byte;
 * and it has no bound on connections.
 *
 * Nobody is made to wait for another client. A connection has a deadline for each thing that it
 * waits for, counted from when the waiting began. Where there is no room for one more connection,
 * the oldest that asks nothing goes. Long messages, which take milliseconds to read, wait
 * in a queue of their own and are read one at a time, when nothing else is to be done.
 */
#ifndef SERVE_HTTP_H
#define SERVE_HTTP_H

#include "serve/serve.h"

struct serve_http;
struct record;

struct serve_http_options {
        const char *address;        /* "127.0.0.1:8765", "[::1]:8765"; port 0: any */
        const char *token;          /* NULL: anybody who can connect may ask */
        const char *const *hosts;   /* names that Host may have, besides addresses and localhost */
        const char *const *origins; /* that browsers may send, besides those of this host */
        struct record *record;      /* for /metrics; NULL: there are none */
        unsigned connections;       /* at once; 0: 512 */
        unsigned sessions;          /* at once; 0: 1024 */
        size_t body;                /* bytes of one message; 0: 1 MiB */
};

/* The serve and the base must outlive it. Options are copied, the record is not. */
int serve_http_open(struct serve *serve, struct event_base *base,
                    const struct serve_http_options *options, struct serve_http **ret_http,
                    cbx_error *error);

/* The port that is listened on. */
unsigned serve_http_port(const struct serve_http *http);

/* Ends every request with 503 and every call, and lets what was answered go out for a moment. */
struct serve_http *serve_http_close(struct serve_http *http);

#endif
