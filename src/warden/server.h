/* SPDX-License-Identifier: MIT */
/*
 * The warden as a process of its own: clients connect, name policies and ask for calls.
 *
 *   client ──connection──▶ server ──▶ queue of the client ──▶ pool ──▶ call ──▶ report
 *          ◀─────────────── call socket ────────────────────────────────────────┘
 *
 * Each client has so many calls in flight, and a queue behind them. What is free goes to the
 * clients in turn. Nothing a client sends or leaves unread makes another one wait.
 */
#ifndef WARDEN_SERVER_H
#define WARDEN_SERVER_H

#include "warden/call.h"
#include "warden/pool.h"
#include "warden/wire.h"

#define SERVER_CALLS 1024
#define SERVER_QUEUE 4096
#define SERVER_PREPARED 16

struct server_options {
        unsigned calls;    /* of one client in flight */
        unsigned queue;    /* of one client behind them */
        unsigned prepared; /* boxes kept ready for one policy */
        int listener;      /* a listening socket; -1: none */
        const char *path;  /* of that socket, to be removed in the end; NULL: not known */
        int directory;     /* where it starts */
        int connection;    /* of the one client this warden was started for; -1: none */
};

struct server;
struct client;

/* One call of a client's, from request to the end of its box (job.c). */
struct job {
        struct client *client;
        struct pool *pool;
        struct maker_plan *plan;
        struct pool_taker taker;
        struct watch socket; /* the call's; fd -1: nobody listens any more */
        char *body;          /* what the spec points into */
        struct wire_spec asked;
        struct call_spec spec;
        int fds[3]; /* the caller's own stdin, stdout, stderr; -1 */
        struct report report;
        struct call call;
        struct timer patience; /* with the maker of its box */
        bool probing;          /* only wants to know whether the policy can be kept */
        bool started;          /* `call` is in use */
        bool finished;         /* the report is ready */
        bool told;             /* it was sent, or there is nobody to send it to */
        bool gone;             /* nothing of the box is left */
        TAILQ_ENTRY(job) link; /* in the client's queue, or among its running ones */
        bool queued;
        bool dead; /* among the server's dead */
};

TAILQ_HEAD(jobs, job);

struct client_policy {
        uint64_t id;
        struct pool *pool; /* NULL: it was refused */
        cbx_error error;
        TAILQ_ENTRY(client_policy) link;
};

struct client {
        struct server *server;
        struct watch connection;
        struct watch process; /* pidfd; fd -1: not known */
        bool greeted, closed;
        TAILQ_HEAD(, client_policy) policies;
        unsigned n_policies;
        struct jobs queue, running;
        unsigned n_queued, n_running;
        TAILQ_ENTRY(client) link;
};

struct server {
        struct server_options options;
        struct loop loop;
        struct pools pools;
        struct watch listener, nursery, signals;
        struct wire_room room;
        TAILQ_HEAD(, client) clients; /* the next to be served first */
        struct jobs dead;             /* to be freed between two rounds of the loop */
        unsigned n_running;           /* of all clients */
        int spare;                    /* a descriptor to be given up when there are no others */
        unsigned running_max;         /* what descriptors suffice for */
        bool leaving;
        cbx_error error; /* why, if nobody asked for it */
};

/* Serve until there is nothing left to serve. Returns 0 or a negative errno with the error. */
int server_run(const struct server_options *options, cbx_error *error);

/* ---- Between the files of the server ---- */

/* A request of a client's; takes the message over. */
void job_open(struct client *client, struct wire_message *message);
/* A job whose turn has come. */
void job_begin(struct job *job);
/* End it: cancelled, or by an error of the warden's own. */
void job_end(struct job *job, const cbx_error *error);
void job_hang_up(struct job *job); /* nobody listens any more */
void job_free(struct job *job);

/* Called by jobs when they no longer count as running, and when they can be freed. */
void server_job_over(struct job *job);
void server_job_gone(struct job *job);

#endif
