/* SPDX-License-Identifier: MIT */
/*
 * MCP on top of a toolbox.
 *
 *   stdio.c ─┐  lines                        ┌─ tools/list ...   answered at once
 *            ├──────▶ rpc ─▶ peer ─▶ request ┤
 *   http*.c ─┘  bodies                       └─ tools/call ─▶ cbx_toolbox_start ─▶ box
 *
 * One thread, one event_base; long bodies of HTTP alone are parsed by a second thread, which
 * touches nothing else (http_reader.c). A transport reads bytes, makes a message of them (rpc.h),
 * and hands it to the peer that it came from together with a reply: the way back for everything
 * that belongs to that one request. Calls are events of the same base: nothing here ever waits.
 *
 * A _peer_ is one conversation, in which ids of requests are unique and legacy state is kept:
 *
 *   stdio                        one peer, from start to end of stdin
 *   HTTP, 2025-11-25 and older   one peer for each session (MCP-Session-Id)
 *   HTTP, 2026-07-28             one peer for each POST, freed with its connection
 *
 * The era is chosen per request: modern where params._meta names a protocol version, legacy where
 * the peer has been initialized.
 *
 * Who may do what: a transport knows nothing of tools; the dispatcher knows nothing of lines,
 * headers and sockets, but tells the HTTP status that goes with an answer. Texts that tools print
 * reach a client as JSON strings only, so that no tool can forge a message.
 */
#ifndef SERVE_SERVE_H
#define SERVE_SERVE_H

#include "serve/rpc.h"

struct event_base;
struct serve;
struct serve_peer;
struct serve_request;

#define SERVE_MODERN_VERSION "2026-07-28"
#define SERVE_LEGACY_VERSION "2025-11-25" /* the newest of the older era */

/* NULL-terminated, newest first: all that is spoken. */
extern const char *const serve_versions[];
bool serve_version_is_known(const char *version);
bool serve_version_is_modern(const char *version);

/* ---- The server ---- */

/* A call of a tool that has ended, was refused or was cancelled; for metrics and audit. A call that
 * asks its client for something ends as "asked", and what follows the answer is told by itself. */
struct serve_ended {
        const char *id;           /* of the call, ours: unique in this process */
        const char *tool;         /* as it was asked for; NULL: not at all */
        const cbx_policy *policy; /* that it runs under, or would; NULL: there is no such tool */
        const cbx_report *report; /* NULL: nothing was run, or no report came */
        const char *why;          /* nothing was run; may be NULL */
        const char *outcome;      /* "ok", "error", "denied", "cancelled", "refused", "asked",
                                     "declined" */
        const char *transport;    /* of the peer: "stdio", "http" */
        const char *client;       /* what the client calls itself; may be empty */
        double seconds;           /* from the request to the answer */
};

struct serve_hooks {
        void *context;
        void (*started)(void *context, const char *tool); /* any of them may be NULL */
        void (*ended)(void *context, const struct serve_ended *ended);
        /* A manifest has mistakes; the last good version of its tool stays. */
        void (*broken)(void *context, const char *file, const char *text);
};

struct serve_options {
        const char *instructions; /* for the model, how to use the tools; may be NULL */
        unsigned page;            /* tools in one answer to tools/list; 0: 100 */
        unsigned requests;        /* in flight for one peer; 0: 1024 */
        struct keep *keep;        /* for output that is too long; NULL: it is not kept (keep.h) */
        struct serve_hooks hooks;
};

/* The toolbox and the event base must outlive it. Its own events are those of the toolbox (changes)
 * and of calls. Options are copied. */
int serve_open(struct event_base *base, cbx_toolbox *toolbox, const struct serve_options *options,
               struct serve **ret_serve, cbx_error *error);

/* Ends every call and answers every request that is open, subscriptions well, others with an error:
 * the graceful stop, before the transports are closed. */
void serve_stop(struct serve *serve);

/* Ends every call; nothing more is sent. Frees the peers that are left. */
struct serve *serve_close(struct serve *serve);

/* What is going on: for /healthz and /metrics. */
struct serve_numbers {
        size_t peers, requests, calls, tasks;
};
void serve_count(const struct serve *serve, struct serve_numbers *ret);

cbx_toolbox *serve_toolbox(const struct serve *serve);

/* ---- Peers ---- */

/*
 * What a transport embeds as its side of a peer. Messages are whole, valid JSON without a newline;
 * bytes are the transport's to copy. A transport may drop a notification when its client does not
 * read; it must not drop answers.
 */
struct serve_peer_ops {
        const char *transport; /* "stdio", "http" */
        /* What belongs to no request: list changes of the legacy era. NULL: there is no way. */
        void (*send)(void *context, const char *text, size_t length);
};

struct serve_peer *serve_peer_new(struct serve *serve, const struct serve_peer_ops *ops,
                                  void *context);
/* The client has gone: every call of the peer is ended at once, nothing more is sent, no reply is
 * used any more. NULL is allowed. Returns NULL. */
struct serve_peer *serve_peer_free(struct serve_peer *peer);
/* Legacy: initialize was answered, with this version; else NULL. */
const char *serve_peer_version(const struct serve_peer *peer);

/* ---- Requests ---- */

/*
 * The way back of one request: embedded in a struct of the transport's, which lives until `finish`
 * was called or the request was cancelled, detached, or its peer freed. Neither function may call
 * back into the server: a client that turns out to be gone is told of later, from the loop.
 */
struct serve_reply {
        /* A message before the answer: progress, log, a question to the client. False: it was
         * dropped, since the client does not read; a question is then not asked. */
        bool (*send)(struct serve_reply *reply, const char *text, size_t length);
        /* The answer; the reply is not used any more. `status` is what HTTP says. text NULL: there
         * is none (a notification or a response was taken: 202; a request was cancelled: 0). */
        void (*finish)(struct serve_reply *reply, int status, const char *text, size_t length);
};

/*
 * Hand a message in, which is taken over (and cleared). The answer may come before this returns:
 * then it returns NULL, and otherwise the request that is going on.
 *
 * HTTP checks its headers against the message before. Order of checks there: version header against
 * body (-32020) before the supported versions (-32022), which are checked here.
 */
struct serve_request *serve_receive(struct serve_peer *peer, struct rpc_message *message,
                                    struct serve_reply *reply);

/* The client closed the response stream, 2026-07-28: kills the tree at once; nothing more is sent.
 * The reply is not used any more. */
void serve_request_cancel(struct serve_request *request);
/* The way back is another from now on. */
void serve_request_redirect(struct serve_request *request, struct serve_reply *reply);
/* The same in the legacy era, where it is no cancellation: the call goes on, its answer is lost. */
void serve_request_detach(struct serve_request *request);

/* A failure that the transport itself found, as text to send; NULL when memory ran out. */
char *serve_refuse(const struct rpc_message *message, const struct rpc_failure *failure);

/* ---- Transports ---- */

/* Serve two descriptors, which stay the caller's. The loop of the base is ended when there is
 * nothing more to read, or nobody to read what is written. */
struct serve_stdio;
int serve_stdio_open(struct serve *serve, struct event_base *base, int in, int out,
                     struct serve_stdio **ret_stdio, cbx_error *error);
/* What was answered is written first, as far as the client reads it at once. */
struct serve_stdio *serve_stdio_close(struct serve_stdio *stdio);

#endif
