/* SPDX-License-Identifier: MIT */
/*
 * A call: one box from its start to its report, driven by the events of a loop. Everything that
 * can take time is an event, nothing here waits; the only clock is the monotonic one.
 */
#ifndef WARDEN_CALL_H
#define WARDEN_CALL_H

#include "box/fences.h"
#include "warden/input.h"
#include "warden/loop.h"
#include "warden/prepared.h"
#include "warden/report.h"
#include "warden/sink.h"

/* What becomes of an output stream. */
struct call_output {
        bool capture; /* keep head and tail for the report */
        int forward;  /* where it goes as it comes; -1: nowhere */
        bool message; /* `forward` is the socket of a client: goes as messages (wire.h) */
};

struct call_spec {
        const char *id;
        char *const *argv;
        char *const *environment; /* added to the plan's */
        const char *directory;    /* NULL: the plan's */
        int stdin_fd;             /* -1: none */
        const char *stdin_data;   /* goes before stdin_fd */
        size_t stdin_length;
        bool tty; /* a terminal of the box's own, joined to stdin_fd and the first output */
        unsigned short rows, columns;
        struct policy_limits limits;
        struct call_output output[STREAMS];
        bool result;   /* there is a result channel: the third of them */
        bool captured; /* what was captured belongs into the JSON form */
        bool sanitize; /* make output harmless to a terminal */
};

struct call;

/* One output stream of the box (call_output.c). */
struct call_stream {
        struct watch source, target;
        struct sink sink;
        struct output *output; /* in the report */
        bool finished;         /* all that was written has been read */
        unsigned char held[3]; /* of a character that the next read completes */
        size_t n_held;
        char *pending; /* read, kept, not yet forwarded */
        size_t pending_at, pending_length;
};

struct call {
        struct loop *loop;
        const struct plan *plan;
        const struct call_spec *spec;
        struct report *report;
        struct prepared box;
        struct watch control, init, input_box, input_source, terminal;
        struct timer timer;
        struct input input;
        struct call_stream streams[STREAMS];
        int box_ends[STREAMS]; /* of their pipes: as long as these are open, they do not end */
        uint64_t begun;
        uint64_t started;   /* when that was first seen; 0 before */
        uint64_t deadline;  /* of whatever comes next */
        uint64_t kill_by;   /* when who was killed must have gone; 0: nobody was */
        uint64_t cancel_at; /* when patience with a program that was asked to go is over */
        bool watched;       /* init has been told to look at the tree */
        bool closing;       /* init is on its way out, and has not reported */
        bool ended;         /* init has reported, or is dead */
        bool forced;        /* by a limit, or by the caller */
        enum reason forced_reason;
        bool gave_in; /* what came after that was not seen */
        bool dead;    /* init is gone: nothing of the box is left */
        bool done;    /* the report is written */
        /* Told when the call is done, and when it is dead as well; NULL: nobody wants to know. */
        void (*over)(struct call *call);
        void (*gone)(struct call *call);
        void *owner;
};

/* Start a call in a box that is taken over. On failure the report says why, and the box is only
 * to be freed. Set over, gone and owner afterwards: nothing happens before the next event. */
int call_start(struct call *call, struct loop *loop, const struct plan *plan,
               const struct call_spec *spec, struct prepared *box, struct report *report);

/* End the call now, also one of which only output is awaited. Idempotent. */
void call_cancel(struct call *call);

/* Send a signal to the program. One that asks it to go (SIGTERM, SIGHUP) is followed by the end
 * of the call if it stays. */
void call_signal(struct call *call, int signal);

/* The caller's terminal changed its size. */
void call_resize(struct call *call, unsigned short rows, unsigned short columns);

/* Let go of everything. The call is dead, or could not be started, or is stuck in the kernel. */
void call_free(struct call *call);

/* ---- Between the files of a call ---- */

/* Watch for events; a call that can no longer watch is ended. */
void call_watch(struct call *call, struct watch *watch, uint32_t events);
void call_force_end(struct call *call, enum reason reason);
void call_finish_if_over(struct call *call);
void call_give_in(struct call *call, int code);

/* call_output.c. `fd` is the box's pipe or terminal, does not block, and is taken over. */
int call_output_open(struct call *call, int index, int fd);
static inline bool call_output_is_over(const struct call_stream *stream)
{
        return stream->finished || stream->source.fd < 0;
}
void call_output_drain(struct call *call, struct call_stream *stream);
void call_output_close(struct call *call, struct call_stream *stream);
void call_output_free(struct call *call, struct call_stream *stream);

/* call_report.c: fill the report of a call that is over. */
void call_write_report(struct call *call);

/* ---- One call from start to end (run.c) ---- */

/* Something else that the loop waits for, signals for example. */
struct call_hook {
        int fd; /* -1: nothing */
        void (*ready)(struct call *call, void *data);
        void *data;
};

/* Would a call of this plan be refused because this host cannot keep what it asks for? Else the
 * report has the warnings of what it would do without. */
int call_check(const struct plan *plan, struct report *report);

/* Failures are in the report. */
void call_run(const struct plan *plan, const struct call_spec *spec, const struct call_hook *hook,
              struct report *report);

#endif
