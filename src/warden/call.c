/* SPDX-License-Identifier: MIT */
#include "warden/call.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>

#define SETUP_LIMIT (10 * NSEC_PER_SEC)  /* to get a box ready */
#define WATCH_AFTER (4 * NSEC_PER_MSEC)  /* for calls that are over before */
#define LEAVE_GRACE (5 * NSEC_PER_SEC)   /* for a program that was asked to go */
#define KILL_GRACE (2 * NSEC_PER_SEC)    /* for killed processes to go */
#define FLUSH_GRACE (30 * NSEC_PER_MSEC) /* for the caller to take output after a forced end */

/* ---- Events ---- */

/* Tell the owner how far the call is; each thing once. */
static void tell(struct call *call)
{
        void (*over)(struct call *) = call->done ? call->over : NULL;
        void (*gone)(struct call *) = call->done && call->dead ? call->gone : NULL;

        if (over) {
                call->over = NULL;
                over(call);
        }
        if (gone) {
                call->gone = NULL;
                gone(call);
        }
}

static void over(struct call *call)
{
        if (call->done)
                return;
        call->done = true;
        call_write_report(call);
        tell(call);
}

/* Events can no longer be relied on: end the call, and do not wait for them. */
void call_give_in(struct call *call, int code)
{
        error_set(&call->report->error, -code, "", "cannot watch for events: %s", strerror(code));
        box_kill(&call->box.box);
        call->forced = call->gave_in = true;
        call->forced_reason = REASON_INTERNAL;
        call->ended = true;
        over(call);
}

void call_watch(struct call *call, struct watch *watch, uint32_t events)
{
        int r = loop_watch(call->loop, watch, events);

        if (r < 0 && watch != &call->input_source) /* a device that cannot be waited for */
                call_give_in(call, -r);
}

static void set_deadline(struct call *call, uint64_t at)
{
        call->deadline = at;
        loop_set_timer(call->loop, &call->timer, MIN(call->deadline, call->cancel_at));
}

/* When the program began to work for this call: when it was executed, unless it ran before. Taken
 * once, and never later than now: of a box that was forked it is a stranger who says so. */
static uint64_t started_at(struct call *call)
{
        uint64_t started = atomic_load(&call->box.box.page->started);

        if (!call->started && started)
                call->started = MAX(MIN(started, time_now()), call->begun);
        return call->started;
}

/* The wall limit counts from that moment. */
static uint64_t wall_end(const struct call *call, uint64_t started)
{
        double wall = call->spec->limits.wall * (double)NSEC_PER_SEC;

        return wall >= (double)(UINT64_MAX / 4) ? LOOP_NEVER : started + (uint64_t)wall;
}

/* ---- The end ---- */

static void ended(struct call *call);

/* Watch for the end of init, with which nothing of the box is left. */
static void await_init(struct call *call)
{
        if (call->dead || loop_watch(call->loop, &call->init, EPOLLIN) == 0)
                return;
        call->dead = true; /* whenever it goes */
        ended(call);
        tell(call);
}

static void kill_box(struct call *call)
{
        call->kill_by = time_now() + KILL_GRACE;
        set_deadline(call, call->kill_by);
        box_kill(&call->box.box);
        await_init(call);
}

void call_force_end(struct call *call, enum reason reason)
{
        if (call->done || call->forced)
                return;
        call->forced = true;
        call->forced_reason = call->ended ? REASON_MAX_ : reason;
        kill_box(call);
        if (call->ended) /* but for output, which nobody may ever take */
                set_deadline(call, time_now() + FLUSH_GRACE);
}

static void stop_input(struct call *call)
{
        if (call->spec->tty)
                return;
        loop_unwatch(call->loop, &call->input_box);
        loop_unwatch(call->loop, &call->input_source);
        input_close(&call->input);
}

/* Everything is over when init has reported an empty tree, or is dead, and the output has been
 * handed on. What the kernel still has to clear up happens after the answer. */
void call_finish_if_over(struct call *call)
{
        for (int i = 0; i < STREAMS; i++)
                if (!call_output_is_over(&call->streams[i]))
                        return;
        if (call->ended)
                over(call);
}

/* Init has reported, or was killed: from now on only output is awaited. */
static void ended(struct call *call)
{
        if (call->ended)
                return;
        call->ended = true;
        stop_input(call);
        if (call->spec->tty) /* the rest of it, and its end */
                call_watch(call, &call->streams[0].source, EPOLLIN);
        set_deadline(call, time_now() + (call->forced ? FLUSH_GRACE : KILL_GRACE));
        for (int i = 0; i < STREAMS; i++)
                call_output_drain(call, &call->streams[i]);
        call_finish_if_over(call);
}

/* ---- Input ---- */

static void input_ready(struct watch *ready, uint32_t events)
{
        struct call *call = ready->owner;

        if (ready == &call->input_box && (events & (EPOLLERR | EPOLLHUP))) {
                stop_input(call);
                return;
        }
        loop_unwatch(call->loop, &call->input_source);
        input_step(&call->input);
        if (call->input.box < 0) {
                call->input_box.events = 0; /* closing took it out of the set */
                return;
        }
        if (call->input.waiting) {
                call->input_source.fd = call->input.source;
                call_watch(call, &call->input_source, EPOLLIN);
                call_watch(call, &call->input_box, EPOLLERR);
        } else {
                call_watch(call, &call->input_box, EPOLLOUT);
        }
}

/* What is typed goes to the box's terminal as it is; the end of input becomes control-D. */
static void typed(struct watch *source, uint32_t events)
{
        struct call *call = source->owner;
        char room[1024];
        ssize_t n = read(source->fd, room, sizeof(room));

        (void)events;
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n <= 0) {
                loop_unwatch(call->loop, source);
                room[0] = 4;
                n = 1;
        }
        if (call->streams[0].source.fd >= 0)
                (void)!write(call->streams[0].source.fd, room, (size_t)n);
        call->report->bytes_in += (uint64_t)n;
}

/* ---- The box ---- */

static void terminal_ready(struct watch *terminal, uint32_t events)
{
        struct call *call = terminal->owner;
        int master = box_receive_terminal(&call->box.box);

        (void)events;
        loop_unwatch(call->loop, terminal);
        if (master < 0)
                return; /* init says why */
        (void)fcntl(master, F_SETFL, fcntl(master, F_GETFL) | O_NONBLOCK);
        if (call_output_open(call, 0, master) < 0) {
                call_force_end(call, REASON_INTERNAL);
                return;
        }
        call->input_source =
                (struct watch){ .fd = call->spec->stdin_fd, .ready = typed, .owner = call };
        call_watch(call, &call->streams[0].source, EPOLLIN);
        call_watch(call, &call->input_source, EPOLLIN);
}

static void control_ready(struct watch *control, uint32_t events)
{
        struct call *call = control->owner;
        char message;
        ssize_t n = recv(control->fd, &message, 1, MSG_DONTWAIT);

        (void)events;
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n > 0)
                ended(call);
        loop_unwatch(call->loop, control);
        /* Init was killed; others may not be dead yet. The kernel sees to them before init is gone,
         * and without namespaces its keeper. */
        if (n <= 0 && !call->plan->caged && !call->ended) {
                call->closing = true;
                set_deadline(call, time_now() + FLUSH_GRACE);
        }
        await_init(call);
}

static void init_gone(struct watch *init, uint32_t events)
{
        struct call *call = init->owner;
        char message;

        (void)events;
        loop_unwatch(call->loop, init);
        call->dead = true;
        for (int i = 0; i < STREAMS; i++)
                call_output_drain(call, &call->streams[i]);
        /* Its last message may still lie there; in that of a zygote's, any number. */
        for (int i = 0; i < 8 && recv(call->control.fd, &message, 1, MSG_DONTWAIT) == 1; i++)
                ;
        ended(call);
        call_finish_if_over(call);
        tell(call);
}

/* Does it need no more than nothing to read, and two streams to write to? */
static bool takes_offer(const struct call_spec *spec)
{
        return !spec->stdin_data && spec->stdin_fd < 0 && !spec->result && !spec->tty;
}

/* Take the streams that the box came with, or make them; `ret_input` is the box's stdin, unless
 * that is nothing. */
static int open_streams(struct call *call, int *ret_input)
{
        const struct call_spec *spec = call->spec;
        int r = prepared_open_streams(&call->box, call->plan, spec->result);
        int pipe[2] = { call->box.input[0], call->box.input[1] };

        for (int i = 0; r == 0 && i < (spec->result ? STREAMS : STREAM_RESULT); i++) {
                call->box_ends[i] = TAKE_FD(call->box.output[i][1]);
                r = call_output_open(call, i, TAKE_FD(call->box.output[i][0]));
        }
        if (r < 0)
                return r;
        if (call->box.running) {
                call->box.input[0] = call->box.input[1] = -1;
                return input_join(&call->input, spec->stdin_fd, spec->stdin_data,
                                  spec->stdin_length, pipe);
        }
        if (!spec->stdin_data && spec->stdin_fd < 0)
                return 0;
        *ret_input = input_open(&call->input, spec->stdin_fd, spec->stdin_data, spec->stdin_length);
        if (*ret_input < 0)
                return *ret_input;
        if (call->input.box >= 0) /* else it is the host's /dev/null */
                prepared_give(call->plan, *ret_input);
        return 0;
}

static int start_box(struct call *call, cbx_error *error)
{
        const struct call_spec *spec = call->spec;
        struct box_spec particulars = {
                .argv = spec->argv,
                .environment = spec->environment,
                .directory = spec->directory,
                .tty = spec->tty,
                .result = spec->result,
                .rows = spec->rows,
                .columns = spec->columns,
                .limits = spec->limits,
        };
        _cleanup_fd_ int input = -1;
        int r = spec->tty ? 0 : open_streams(call, &input);
        int fds[] = { input < 0 ? call->box.nothing : input, call->box_ends[0], call->box_ends[1],
                      call->box_ends[STREAM_RESULT] };

        if (r < 0)
                return error_set(error, r, "", "cannot make a pipe: %s", strerror(-r));
        if (call->box.running)
                return 0;
        /* Of the pipes' other ends a copy is kept until init has reported: their end would wake
         * this process while the program is still on its way out. */
        return box_start(&call->box.box, &particulars,
                         call->box.offered && takes_offer(spec) ? NULL : fds, error);
}

static void watch_box(struct call *call)
{
        const struct box *box = &call->box.box;

        call->control = (struct watch){ .fd = box->control, .ready = control_ready, .owner = call };
        call->init = (struct watch){ .fd = box->pidfd, .ready = init_gone, .owner = call };
        call->input_box =
                (struct watch){ .fd = call->input.box, .ready = input_ready, .owner = call };
        call->input_source = (struct watch){ .fd = -1, .ready = input_ready, .owner = call };
        if (call->box.running && call->input.box >= 0) /* it waits for nothing else */
                input_ready(&call->input_box, EPOLLOUT);
        call_watch(call, &call->control, EPOLLIN); /* which ends no later than init ... */
        if (call->box.zygote) /* ... unless it was forked by one who may hold it as well */
                call_watch(call, &call->init, EPOLLIN);
        for (int i = 0; i < STREAMS; i++)
                call_watch(call, &call->streams[i].source, EPOLLIN);
        if (call->spec->tty) {
                call->terminal =
                        (struct watch){ .fd = box->start, .ready = terminal_ready, .owner = call };
                call_watch(call, &call->terminal, EPOLLIN);
        } else if (call->input.box >= 0 && !call->box.running) {
                call_watch(call, &call->input_box, EPOLLOUT);
        }
}

static void expire(struct timer *timer, uint64_t now);

int call_start(struct call *call, struct loop *loop, const struct plan *plan,
               const struct call_spec *spec, struct prepared *box, struct report *report)
{
        int r;

        *call = (struct call){ .loop = loop,
                               .plan = plan,
                               .spec = spec,
                               .report = report,
                               .box = *box,
                               .timer = { .expired = expire, .owner = call },
                               .begun = time_now(),
                               .cancel_at = LOOP_NEVER };
        *box = (struct prepared)PREPARED_INIT;
        for (int i = 0; i < STREAMS; i++)
                call->box_ends[i] = call->streams[i].source.fd = -1;
        call->input.box = call->input.null = call->input.rest = -1;
        clock_gettime(CLOCK_REALTIME, &report->started_at);
        report->limits = spec->limits;
        report->captured = spec->captured;
        report->has_result = spec->result;
        report->id = spec->id ? strdup(spec->id) : NULL;
        for (int i = 0; i < STREAMS; i++) {
                uint64_t kept = i == STREAM_RESULT ? spec->limits.result : spec->limits.capture;

                output_init(&report->output[i], spec->output[i].capture ? (size_t)kept : 0);
        }

        r = loop_add_timer(loop, &call->timer);
        if (r < 0)
                error_oom(&report->error);
        else
                r = start_box(call, &report->error);
        if (r < 0) {
                report->reason = REASON_SETUP;
                box_kill(&call->box.box);
                return r;
        }
        watch_box(call);
        /* A first look soon, and no later than the wall limit; it is counted from the start once
         * there is one. */
        set_deadline(call, MIN(call->begun + WATCH_AFTER, wall_end(call, call->begun)));
        return 0;
}

/* ---- Time ---- */

static void expire_running(struct call *call, uint64_t now)
{
        uint64_t started = started_at(call);
        uint64_t end = started ? wall_end(call, started) : call->begun + SETUP_LIMIT;

        if (!call->watched)
                box_watch(&call->box.box);
        call->watched = true;
        if (!box_fence(FENCE_DEADLINE))
                end = LOOP_NEVER;
        if (now < end) /* whether it has started shows only when one looks */
                set_deadline(call, started ? end : MIN(end, now + NSEC_PER_MSEC));
        else if (started)
                call_force_end(call, REASON_TIMEOUT);
        else
                call_force_end(call, REASON_SETUP);
}

/* Killed and still there: a process hangs in the kernel. Tell so rather than hang as well. */
static void give_up(struct call *call)
{
        call->report->kill_pending = true;
        report_warn(call->report, "a process of the call is stuck in the kernel; it was killed and "
                                  "will go when the kernel lets it");
        call->ended = true;
        stop_input(call);
        over(call);
}

/* That the caller does not take, of a call that was ended. */
static void drop_output(struct call *call)
{
        report_warn(call->report, "output that the caller did not read in time was dropped");
        for (int i = 0; i < STREAMS; i++)
                if (call->streams[i].source.fd >= 0)
                        call_output_close(call, &call->streams[i]);
}

/* Is there nothing to wait for but a reader who is slow? He may be: nobody has ended the call. */
static bool awaits_reader(const struct call *call)
{
        return call->ended && !call->forced && !call->done;
}

static void expire(struct timer *timer, uint64_t now)
{
        struct call *call = timer->owner;

        if (now >= call->cancel_at) {
                call->cancel_at = LOOP_NEVER;
                call_cancel(call);
        }
        if (now < call->deadline) {
                set_deadline(call, call->deadline);
        } else if (call->closing && !call->ended) { /* there is much to clear up */
                ended(call);
        } else if (!call->ended && !call->forced) {
                expire_running(call, now);
        } else if (!call->dead && call->kill_by == 0) { /* init reported but does not go */
                kill_box(call);
        } else if (!call->dead && now >= call->kill_by && !awaits_reader(call)) {
                give_up(call);
        } else {
                if (!call->done && call->ended && call->forced)
                        drop_output(call);
                set_deadline(call, call->dead            ? LOOP_NEVER
                                   : now < call->kill_by ? call->kill_by
                                                         : now + KILL_GRACE);
        }
}

/* ---- What the caller can do ---- */

void call_cancel(struct call *call)
{
        call_force_end(call, REASON_CANCELLED);
}

void call_signal(struct call *call, int signal)
{
        box_signal(&call->box.box, signal);
        if ((signal == SIGTERM || signal == SIGHUP) && call->cancel_at == LOOP_NEVER) {
                call->cancel_at = time_now() + LEAVE_GRACE;
                set_deadline(call, call->deadline);
        }
}

void call_resize(struct call *call, unsigned short rows, unsigned short columns)
{
        struct winsize size = { .ws_row = rows, .ws_col = columns };

        if (call->spec->tty && call->streams[0].source.fd >= 0)
                (void)ioctl(call->streams[0].source.fd, TIOCSWINSZ, &size);
}

void call_free(struct call *call)
{
        struct watch *watches[] = { &call->control, &call->init, &call->terminal, &call->input_box,
                                    &call->input_source };

        for (size_t i = 0; i < ARRAY_SIZE(watches); i++)
                loop_unwatch(call->loop, watches[i]);
        loop_remove_timer(call->loop, &call->timer);
        for (int i = 0; i < STREAMS; i++) {
                base_close(call->box_ends[i]);
                call_output_free(call, &call->streams[i]);
        }
        input_close(&call->input);
        /* A stuck process would make reaping wait for it: leave it to the kernel. */
        if (call->report->kill_pending)
                call->box.box.pidfd = base_close(call->box.box.pidfd);
        prepared_free(&call->box);
}
