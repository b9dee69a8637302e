/* SPDX-License-Identifier: MIT */
/*
 * The warden as a process of its own: clients connect, name policies and ask for calls.
 *
 *   client ──connection──▶ server ──▶ queue of the client ──▶ pool ──▶ call ──▶ report
 *          ◀─────────────── call socket ────────────────────────────────────────┘
 *
 * Each client has so many calls in flight, and a queue behind them. What is free goes to the
 * clients in turn. Nothing a client sends or leaves unread makes another one wait. A call may be
 * bound: it waits while too many calls of its kind run, and lets others pass.
 */
#ifndef WARDEN_SERVER_H
#define WARDEN_SERVER_H

#include "warden/call.h"
#include "warden/pool.h"
#include "warden/wire.h"

#define SERVER_CALLS 1024
#define SERVER_QUEUE 4096
#define SERVER_PREPARED 16
#define SERVER_BOUNDS 64 /* rows of a client's table of them */

struct server_options {
        unsigned calls;    /* of one client in flight */
        unsigned queue;    /* of one client behind them */
        unsigned prepared; /* boxes kept ready for one policy */
        int listener;      /* a listening socket; -1: none */
        const char *path;  /* of that socket, to be removed in the end; NULL: not known */
        int directory;     /* where it starts */
        int connection;    /* of the one client this warden was started for; -1: none */
        bool unboxed;      /* whoever attaches may ask for calls without a box as well */
};

struct server;
struct client;

struct job;
TAILQ_HEAD(jobs, job);

/* How many calls with one key run, and those that wait for their turn among them (queue.c). */
struct bound {
        uint64_t key;
        unsigned refs;       /* of jobs */
        unsigned running;    /* of those */
        unsigned called;     /* that have a turn, and are back in the client's queue */
        struct jobs waiting; /* in the order in which they came */
        LIST_ENTRY(bound) link;
};

LIST_HEAD(bounds, bound);

/* One call of a client's, from request to the end of its box (job.c). */
struct job {
        struct client *client;
        struct pool *pool;
        struct maker_plan *plan;
        struct pool_taker taker;
        struct watch own;     /* the call's socket, unless it is one of the client's lines */
        struct watch *socket; /* either of them; fd -1: nobody listens any more */
        struct wire_line line;
        uint64_t policy; /* by the client's number */
        char *body;      /* what the spec points into */
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
        TAILQ_ENTRY(job) link; /* in the client's queue, a bound's, or among the running ones */
        bool queued;
        uint64_t serial; /* in the order in which they came */
        struct bound *bounds[WIRE_BOUNDS];
        struct bound *held_by, *called_by; /* in whose queue it waits; who let it go on */
        bool dead;                         /* among the server's dead */
};

struct client_policy {
        uint64_t id;
        struct pool *pool; /* NULL: it was refused */
        cbx_error error;
        TAILQ_ENTRY(client_policy) link;
};

struct client {
        struct server *server;
        struct watch connection;
        struct watch process;           /* pidfd; fd -1: not known */
        struct watch lines[WIRE_LINES]; /* fd -1: not open; their owner is a job, or the client */
        pid_t accepted; /* who has connected, and must be who speaks; 0: not known, or given */
        bool unboxed;   /* it may ask for calls without a box */
        bool greeted, closed;
        TAILQ_HEAD(, client_policy) policies;
        unsigned n_policies;
        struct jobs queue, running;
        unsigned n_queued, n_running;
        uint64_t serial; /* of the last call */
        struct bounds bounds[SERVER_BOUNDS];
        TAILQ_ENTRY(client) link;
};

struct server {
        struct server_options options;
        struct loop loop;
        struct pools pools;
        struct watch listener, signals;
        struct wire_room room;
        TAILQ_HEAD(, client) clients; /* the next to be served first */
        struct jobs dead;             /* to be freed between two rounds of the loop */
        unsigned n_running;           /* of all clients */
        int spare;                    /* a descriptor to be given up when there are no others */
        unsigned running_max;         /* what descriptors suffice for */
        bool leaving;
        cbx_error error; /* why, if nobody asked for it */
};

/* Serve until there is nothing left to serve. The listener tells of senders (peer.h). Returns 0 or
 * a negative errno with the error. */
int server_run(const struct server_options *options, cbx_error *error);

/* ---- Between the files of the server ---- */

/* The queue of a client (queue.c). A job is bound once it has said to what, and unbound in the end.
 * Those that wait for another call of their kind stand aside. */
void queue_add(struct job *job);
int queue_bind(struct job *job);
void queue_unbind(struct job *job);
struct job *queue_first(struct client *client); /* that may run now, as far as bounds go */
struct job *queue_any(struct client *client);   /* whatever waits; NULL: nothing does */
void queue_leave(struct job *job);              /* without having run */
void queue_begin(struct job *job);              /* it runs ... */
void queue_end(struct job *job);                /* ... and is over */

/* A request of a client's; takes the message over. Returns -EPROTO for one that is none. */
int job_open(struct client *client, struct wire_message *message);
/* A job whose turn has come. */
void job_begin(struct job *job);
/* End it: cancelled, or by an error of the warden's own. */
void job_end(struct job *job, const cbx_error *error);
void job_hang_up(struct job *job); /* nobody listens any more */
void job_free(struct job *job);

/* The lines of a client: none is open yet; those that no job has are closed. */
void job_init_lines(struct client *client);
void job_close_lines(struct client *client);

/* Called by jobs when they no longer count as running, and when they can be freed. */
void server_job_over(struct job *job);
void server_job_gone(struct job *job);

#endif
