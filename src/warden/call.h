/* SPDX-License-Identifier: MIT */
/*
 * A call: one box from its making to its report, driven by the events of one epoll set. Everything
 * that can take time is an event, nothing here waits; the only clock is the monotonic one.
 */
#ifndef WARDEN_CALL_H
#define WARDEN_CALL_H

#include "box/box.h"
#include "box/fences.h"
#include "warden/cgroup.h"
#include "warden/input.h"
#include "warden/report.h"
#include "warden/sink.h"

struct call_spec {
        const char *id;
        char *const *argv;
        char *const *environment; /* added to the plan's */
        const char *directory;    /* NULL: the plan's */
        int stdin_fd;             /* -1: none */
        const char *stdin_data;   /* goes before stdin_fd */
        size_t stdin_length;
        bool tty; /* a terminal of the box's own, joined to stdin_fd and forward[0] */
        unsigned short rows, columns;
        struct policy_limits limits;
        int forward[2]; /* where output goes as it comes; -1: nowhere */
        bool capture;   /* keep head and tail for the report */
        bool account;   /* list the guarantees in the report */
        bool sanitize;
};

struct call;

/* Something in the epoll set; `ready` is told the events. */
struct call_watch {
        int fd;
        uint32_t events; /* 0: not in the set */
        void (*ready)(struct call *call, struct call_watch *watch, uint32_t events);
};

struct call_stream {
        struct call_watch source, target;
        struct sink sink;
        struct output *output; /* in the report */
        bool held;             /* half a character that the next read completes */
        char *pending;         /* read, kept, not yet forwarded */
        size_t pending_at, pending_length;
};

struct call {
        int epoll;
        const struct plan *plan;
        const struct call_spec *spec;
        struct report *report;
        struct box box;
        struct cgroup cgroup;
        struct call_watch control, init, input_box, input_source, terminal;
        struct input input;
        struct call_stream streams[2];
        uint64_t begun;
        uint64_t deadline;  /* of whatever comes next */
        uint64_t cancel_at; /* when patience with a program that was asked to go is over */
        bool ended;         /* init has reported, or is dead */
        bool forced;        /* by a limit, or by the caller */
        enum reason forced_reason;
        bool dead; /* init is gone: nothing of the box is left */
        bool done;
};

/* Start a call. On failure the report says why; nothing is left. */
int call_start(struct call *call, int epoll, const struct plan *plan, const struct call_spec *spec,
               struct report *report);

/* When call_expire wants to be called at the latest; UINT64_MAX: never. */
uint64_t call_deadline(const struct call *call);
void call_expire(struct call *call, uint64_t now);

/* End the call now. Idempotent. */
void call_cancel(struct call *call);

/* Send a signal to the program. One that asks it to go (SIGTERM, SIGHUP) is followed by the end
 * of the call if it stays. */
void call_signal(struct call *call, int signal);

/* The caller's terminal changed its size. */
void call_resize(struct call *call, unsigned short rows, unsigned short columns);

void call_free(struct call *call);

/* Fill the report of a call that is over (call_report.c). */
void call_write_report(struct call *call);

/* Something else that the loop below waits for, signals for example. */
struct call_hook {
        int fd; /* -1: nothing */
        void (*ready)(struct call *call, void *data);
        void *data;
};

/* Run one call from start to end (run.c). Failures are in the report. */
void call_run(const struct plan *plan, const struct call_spec *spec, const struct call_hook *hook,
              struct report *report);

#endif
