/* SPDX-License-Identifier: MIT */
/*
 * The library's side: a connection to a warden, and calls, each with a socket of its own. No
 * thread, no fork, no signal handler; a lock holds the connection together when threads share it.
 */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include <pthread.h>

#include "warden/wire.h"

#define CLIENT_STRUCT_MAX 65536 /* a struct of the caller's that claims more is none */
#define CLIENT_POLICIES 192     /* that one connection keeps in use; the least used one goes */

/* A policy that the warden has been told of, and under which circumstances it holds. */
struct client_policy {
        cbx_policy *policy; /* a reference; NULL: free */
        struct buffer circumstances;
        uint64_t id;
        uint64_t used;
};

/* A call's socket that has served, and will serve again. */
struct client_line {
        int socket; /* -1: in use, or not there yet */
        bool busy;
};

struct cbx_warden {
        pthread_mutex_t lock;
        char *program, *path; /* to start one, or to attach to one */
        unsigned calls, queue, prepared;
        int socket; /* -1: lost */
        int pid;
        uint64_t serial;
        /* A call that is over leaves its line while others still wait for the warden: nothing is
         * waited for under this lock. */
        pthread_mutex_t line_lock;
        uint64_t connections; /* that there have been */
        struct client_line lines[WIRE_LINES];
        struct client_policy policies[CLIENT_POLICIES];
};

/* How a toolbox takes part in a call of one of its tools (src/tool/). */
struct client_tool {
        /* A piece of output came: make it an event of the tool's, or keep it and say false. */
        bool (*heard)(struct client_tool *tool, cbx_event *event);
        /* The next event of what was kept; false: there is none. */
        bool (*next)(struct client_tool *tool, cbx_event *event);
        /* The report is wanted, and is there but for what the tool says. */
        void (*ended)(struct client_tool *tool, struct report *report);
        void (*free)(struct client_tool *tool);
};

struct cbx_call {
        int socket;
        unsigned line;       /* from 1; 0: the socket is its own ... */
        uint64_t connection; /* ... of which connection */
        cbx_policy *policy;
        char *id;
        bool ended; /* `report` is there */
        bool taken; /* and was handed out */
        bool lost;  /* it was not the warden who wrote it */
        struct report report;
        struct wire_message message; /* the last event's */
        struct client_tool *tool;    /* NULL: the call of a command */
        struct wire_room room;
};

/* A struct of the caller's, as large as he knows it: copied into one of ours. Fails when it is
 * smaller than the first that ever was, or has something in fields that are not known here. */
int client_read_struct(const char *what, const void *from, size_t least, void *to, size_t size,
                       cbx_error *error);

/* The first versions of these structs ended before these fields. */
#define CLIENT_SPEC_LEAST offsetof(cbx_spec, result_mode)
#define CLIENT_REPORT_LEAST offsetof(cbx_report, result)
#define CLIENT_EVENT_LEAST offsetof(cbx_event, done)
#define CLIENT_PART_LEAST sizeof(cbx_part)

/* Start a call that waits as long as too many of its kind run (wire.h), with a box or without;
 * cbx_start is the case without bounds, NULL, and with a box (call.c). */
int client_start(cbx_warden *warden, cbx_policy *policy, const cbx_spec *spec,
                 const struct wire_bound bounds[WIRE_BOUNDS], enum plan_unboxed unboxed,
                 cbx_call **ret_call, cbx_error *error);

/* What a call under this policy would have: a report of none, with its guarantees (call.c). */
int client_ask(cbx_warden *warden, cbx_policy *policy, enum plan_unboxed unboxed,
               struct report *ret_report, cbx_error *error);

/* The program that is started as a warden. */
const char *client_program(const cbx_warden *warden);

/* A number that this connection has not given out before. */
uint64_t client_serial(cbx_warden *warden);

/* The spec as it is sent (spec.c). What `ret` points to is the caller's, but for argv. */
int client_read_spec(const cbx_spec *spec, const cbx_policy *policy, cbx_spec *room, char *shell[4],
                     struct wire_spec *ret, cbx_error *error);

/* Parts of it, for calls that are refused before there is one. An id must be able to come back in a
 * report; NULL is allowed. */
int client_check_id(const char *id, cbx_error *error);
int client_check_modes(const cbx_spec *spec, cbx_error *error);

/* What boxes are prepared for, besides the policy. */
struct client_how {
        bool explain;
        enum plan_unboxed unboxed;
        struct wire_program program;
};

/* What is asked of a warden, under a policy. */
struct client_request {
        enum wire_type type;
        struct client_how how;
        const struct wire_spec *spec; /* NULL: it does not start a call */
        cbx_call *line_for;           /* give this call a line; NULL: its socket comes along */
        int fds[4];                   /* the call's socket, and the spec's descriptors */
        size_t n_fds;
};

int client_send_request(cbx_warden *warden, cbx_policy *policy, struct client_request *request,
                        cbx_error *error);

/* A call that had a line is over. */
void client_leave_line(cbx_warden *warden, cbx_call *call);

/* Get boxes ready, as cbx_prepare does; with a spec that is warm, with its program started in them.
 * NULL: without (call.c). */
int client_prepare(cbx_warden *warden, cbx_policy *policy, const cbx_spec *spec, cbx_error *error);

/* A call on a socket pair; the warden's end is returned (call.c). */
int client_open_call(cbx_policy *policy, const char *id, cbx_call **ret_call, int *ret_socket,
                     cbx_error *error);

/* A list of pointers, NULL-terminated, and what they point to, in one piece (report.c). */
void *client_new_list(size_t n, size_t size, void **ret_items);
/* One of the guarantees of a report, which it points into. */
cbx_guarantee client_guarantee(const json_t *json);

/* What a report of client_ask says, as the caller sees it; takes the report over, also on failure.
 * `backend` NULL: what the box is made of (capabilities.c). */
int client_fill_capabilities(struct report *report, const char *backend,
                             cbx_capability_list *ret_list, cbx_error *error);
int client_check_capabilities(const cbx_capability_list *list, cbx_error *error);

/* The backends that the library has by itself: is it one, what it keeps under an empty policy, and
 * all of them in an array. */
bool client_is_backend(const char *name);
int client_ask_backend(cbx_warden *warden, const char *name, cbx_capability_list *ret_list,
                       cbx_error *error);
int client_list_backends(cbx_warden *warden, json_t *array, cbx_error *error);
/* One of them in that array; `list` NULL: it was refused. NULL: out of memory. */
json_t *client_describe_backend(const char *name, const cbx_capability_list *list,
                                const cbx_error *refused);

/* Turn a report into what the caller sees; takes it over, also on failure (report.c). */
int client_fill_report(struct report *report, cbx_report *ret_report, cbx_error *error);

/* Why nothing would allow one of its denials, or "": cbx_denial has no room for it. */
const char *client_denial_note(const cbx_report *report, size_t index);

#endif
