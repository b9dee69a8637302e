/* SPDX-License-Identifier: MIT */
#include "warden/call.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>

#define CHUNK (64 * 1024)
#define SETUP_LIMIT (10 * NSEC_PER_SEC)  /* to get a box ready */
#define LEAVE_GRACE (5 * NSEC_PER_SEC)   /* for a program that was asked to go */
#define KILL_GRACE (2 * NSEC_PER_SEC)    /* for killed processes to go */
#define FLUSH_GRACE (30 * NSEC_PER_MSEC) /* for the caller to take output after a forced end */
#define FOREVER UINT64_MAX

/* ---- The epoll set ---- */

/* Events can no longer be relied on: end the call, and do not wait for them. */
static void give_in(struct call *call, int code)
{
        error_set(&call->report->error, -code, "", "cannot watch for events: %s", strerror(code));
        box_kill(&call->box);
        call->forced = true;
        call->forced_reason = REASON_INTERNAL;
        call->ended = call->done = true;
}

static void watch(struct call *call, struct call_watch *watch, uint32_t events)
{
        struct epoll_event event = { .events = events, .data.ptr = watch };
        int op = !watch->events ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

        if (watch->fd < 0 || (watch->events && watch->events == events))
                return;
        if (epoll_ctl(call->epoll, op, watch->fd, &event) == 0)
                watch->events = events;
        else if (watch != &call->input_source) /* a device that cannot be waited for */
                give_in(call, errno);
}

static void unwatch(struct call *call, struct call_watch *watch)
{
        if (watch->events)
                (void)epoll_ctl(call->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
        watch->events = 0;
}

/* The wall limit counts from the moment the program was executed. */
static uint64_t wall_end(const struct call *call, uint64_t started)
{
        double wall = call->spec->limits.wall * (double)NSEC_PER_SEC;

        return wall >= (double)(UINT64_MAX / 4) ? FOREVER : started + (uint64_t)wall;
}

/* ---- The end ---- */

static void force_end(struct call *call, enum reason reason)
{
        if (call->ended || call->forced)
                return;
        call->forced = true;
        call->forced_reason = reason;
        call->deadline = time_now() + KILL_GRACE;
        box_kill(&call->box);
}

static void stop_input(struct call *call)
{
        if (call->spec->tty)
                return;
        unwatch(call, &call->input_box);
        unwatch(call, &call->input_source);
        input_close(&call->input);
}

/* Everything is over when init has reported an empty tree, or is dead, and the output has been
 * handed on. What the kernel still has to clear up is not waited for here (await_init). */
static void finish_if_over(struct call *call)
{
        if (call->ended && call->streams[0].source.fd < 0 && call->streams[1].source.fd < 0)
                call->done = true;
}

/* Init has reported, or was killed: from now on only output is awaited. */
static void ended(struct call *call)
{
        if (call->ended)
                return;
        call->ended = true;
        stop_input(call);
        if (call->spec->tty) /* the rest of it, and its end */
                watch(call, &call->streams[0].source, EPOLLIN);
        call->deadline = call->forced ? time_now() + FLUSH_GRACE : time_now() + KILL_GRACE;
        finish_if_over(call);
}

/* ---- Output ---- */

static void stream_close(struct call *call, struct call_stream *stream)
{
        unwatch(call, &stream->source);
        unwatch(call, &stream->target);
        stream->source.fd = base_close(stream->source.fd);
        finish_if_over(call);
}

/* Hand on what was read. Returns false when the caller cannot take it now. */
static bool stream_flush(struct call *call, struct call_stream *stream)
{
        while (stream->pending_at < stream->pending_length) {
                ssize_t n = sink_write(&stream->sink, stream->pending + stream->pending_at,
                                       stream->pending_length - stream->pending_at);

                if (n == -EINTR)
                        continue;
                if (n == -EAGAIN)
                        return false;
                if (n < 0) {
                        /* The reader is gone: let the program find out as it would by itself. Any
                         * other failure it cannot see: say so. */
                        if (n != -EPIPE && !call->report->output_lost) {
                                call->report->output_lost = true;
                                report_warn(call->report, "the output could not be written: %s",
                                            strerror((int)-n));
                        }
                        stream->pending_at = stream->pending_length;
                        stream_close(call, stream);
                        return true;
                }
                stream->pending_at += (size_t)n;
        }
        return true;
}

/* Count what was read. Returns how much of it is within the output limit. */
static size_t take_output(struct call *call, struct call_stream *stream, size_t length)
{
        uint64_t limit = call->spec->limits.output;
        uint64_t total = call->report->output[0].total + call->report->output[1].total;

        if (limit && total + length > limit) {
                force_end(call, REASON_OUTPUT);
                length = total < limit ? (size_t)(limit - total) : 0;
        }
        (void)output_add(stream->output, stream->pending + stream->held, length);
        return length;
}

/* Everything that could steer a terminal becomes question marks. C1 controls come as UTF-8, 0xc2
 * 0x80 to 0xc2 0x9f: a 0xc2 at the end is held back until its other half is known. */
static size_t sanitized(struct call_stream *stream, size_t length)
{
        unsigned char *data = (unsigned char *)stream->pending;

        if (stream->held) {
                data[0] = 0xc2;
                length++;
        }
        stream->held = length > 0 && data[length - 1] == 0xc2;
        length -= stream->held;
        for (size_t i = 0; i < length; i++) {
                if ((data[i] < 0x20 && data[i] != '\n' && data[i] != '\t') || data[i] == 0x7f)
                        data[i] = '?';
                if (i > 0 && data[i - 1] == 0xc2 && data[i] >= 0x80 && data[i] <= 0x9f)
                        data[i - 1] = data[i] = '?';
        }
        return length;
}

static void stream_readable(struct call *call, struct call_watch *source, uint32_t events)
{
        struct call_stream *stream =
                source == &call->streams[0].source ? &call->streams[0] : &call->streams[1];
        size_t length;
        ssize_t n;

        (void)events;
        n = read(stream->source.fd, stream->pending + stream->held, CHUNK);
        if (n < 0 && errno == EINTR)
                return;
        if (n < 0 && errno == EAGAIN) {
                /* Nobody of the box is left: what is not there now does not come. */
                if (call->dead)
                        stream_close(call, stream);
                return;
        }
        if (n <= 0 && call->spec->tty && !call->ended) {
                /* Nobody has the terminal open just now. Closing it would hang up on the program.
                 */
                unwatch(call, source);
                return;
        }
        if (n <= 0) { /* the end; a terminal says EIO */
                stream_close(call, stream);
                return;
        }
        length = take_output(call, stream, (size_t)n);
        stream->pending_at = 0;
        stream->pending_length = call->spec->sanitize ? sanitized(stream, length) : length;
        if (stream_flush(call, stream))
                return;
        unwatch(call, &stream->source);
        stream->target.fd = stream->sink.fd;
        watch(call, &stream->target, EPOLLOUT);
}

/* Read what is left, as far as the caller takes it. */
static void drain(struct call *call, struct call_stream *stream)
{
        while (stream->source.fd >= 0 && stream->source.events)
                stream_readable(call, &stream->source, EPOLLIN);
}

static void stream_writable(struct call *call, struct call_watch *target, uint32_t events)
{
        struct call_stream *stream =
                target == &call->streams[0].target ? &call->streams[0] : &call->streams[1];

        (void)events;
        if (stream_flush(call, stream)) {
                unwatch(call, &stream->target);
                watch(call, &stream->source, EPOLLIN);
                if (call->dead)
                        drain(call, stream);
        }
}

static int stream_open(struct call *call, int index, int fd)
{
        struct call_stream *stream = &call->streams[index];

        stream->output = &call->report->output[index];
        stream->pending = malloc(CHUNK + 1);
        if (!stream->pending)
                return -ENOMEM;
        sink_open(&stream->sink, call->spec->forward[index]);
        stream->source = (struct call_watch){ .fd = fd, .ready = stream_readable };
        stream->target = (struct call_watch){ .fd = -1, .ready = stream_writable };
        (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
        watch(call, &stream->source, EPOLLIN);
        return 0;
}

/* ---- Input ---- */

static void input_ready(struct call *call, struct call_watch *ready, uint32_t events)
{
        if (ready == &call->input_box && (events & (EPOLLERR | EPOLLHUP))) {
                stop_input(call);
                return;
        }
        unwatch(call, &call->input_source);
        input_step(&call->input);
        if (call->input.box < 0) {
                call->input_box.events = 0; /* closing took it out of the set */
                return;
        }
        if (call->input.waiting) {
                call->input_source.fd = call->input.source;
                watch(call, &call->input_source, EPOLLIN);
                watch(call, &call->input_box, EPOLLERR);
        } else {
                watch(call, &call->input_box, EPOLLOUT);
        }
}

/* What is typed goes to the box's terminal as it is; the end of input becomes control-D. */
static void typed(struct call *call, struct call_watch *source, uint32_t events)
{
        char room[1024];
        ssize_t n = read(source->fd, room, sizeof(room));

        (void)events;
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n <= 0) {
                unwatch(call, source);
                room[0] = 4;
                n = 1;
        }
        if (call->streams[0].source.fd >= 0)
                (void)!write(call->streams[0].source.fd, room, (size_t)n);
        call->report->bytes_in += (uint64_t)n;
}

/* ---- The box ---- */

static void terminal_ready(struct call *call, struct call_watch *terminal, uint32_t events)
{
        int master = box_receive_terminal(&call->box);

        (void)events;
        unwatch(call, terminal);
        if (master < 0)
                return; /* init says why */
        if (stream_open(call, 0, master) < 0) {
                base_close(master);
                force_end(call, REASON_INTERNAL);
                return;
        }
        call->input_source = (struct call_watch){ .fd = call->spec->stdin_fd, .ready = typed };
        watch(call, &call->input_source, EPOLLIN);
}

static void control_ready(struct call *call, struct call_watch *control, uint32_t events)
{
        char message;
        ssize_t n = recv(control->fd, &message, 1, MSG_DONTWAIT);

        (void)events;
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        unwatch(call, control);
        ended(call);
}

static void init_gone(struct call *call, struct call_watch *init, uint32_t events)
{
        char message;

        (void)events;
        unwatch(call, init);
        call->dead = true;
        for (int i = 0; i < 2; i++)
                drain(call, &call->streams[i]);
        /* Its last message may still lie there. */
        while (recv(call->control.fd, &message, 1, MSG_DONTWAIT) == 1)
                ;
        ended(call);
        finish_if_over(call);
}

/* The box's user may open its own standard descriptors again, by /dev/stdout and the like. */
static void give_to_box(struct call *call, int fd)
{
        if (call->plan->privileged)
                (void)!fchown(fd, call->plan->host_uid, call->plan->host_gid);
}

static int open_pipes(int box_ends[3], struct call *call)
{
        for (int i = 0; i < 2; i++) {
                int pipe[2], r;

                if (pipe2(pipe, O_CLOEXEC) < 0)
                        return -errno;
                give_to_box(call, pipe[1]);
                box_ends[i + 1] = pipe[1];
                r = stream_open(call, i, pipe[0]);
                if (r < 0) {
                        base_close(pipe[0]);
                        return r;
                }
        }
        box_ends[0] = input_open(&call->input, call->spec->stdin_fd, call->spec->stdin_data,
                                 call->spec->stdin_length);
        if (box_ends[0] < 0)
                return box_ends[0];
        give_to_box(call, box_ends[0]);
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
                .rows = spec->rows,
                .columns = spec->columns,
                .limits = spec->limits,
        };
        int ends[3] = { -1, -1, -1 }, r = 0;

        if (!spec->tty)
                r = open_pipes(ends, call);
        if (r < 0)
                error_set(error, r, "", "cannot make a pipe: %s", strerror(-r));
        else
                r = box_start(&call->box, &particulars, ends, error);
        for (int i = 0; i < 3; i++)
                base_close(ends[i]);
        return r;
}

static void watch_box(struct call *call)
{
        call->control = (struct call_watch){ .fd = call->box.control, .ready = control_ready };
        call->init = (struct call_watch){ .fd = call->box.pidfd, .ready = init_gone };
        call->input_box = (struct call_watch){ .fd = call->input.box, .ready = input_ready };
        call->input_source = (struct call_watch){ .fd = -1, .ready = input_ready };
        watch(call, &call->control, EPOLLIN);
        watch(call, &call->init, EPOLLIN);
        if (call->spec->tty) {
                call->terminal =
                        (struct call_watch){ .fd = call->box.start, .ready = terminal_ready };
                watch(call, &call->terminal, EPOLLIN);
        } else if (call->input.box >= 0) {
                watch(call, &call->input_box, EPOLLOUT);
        }
}

int call_start(struct call *call, int epoll, const struct plan *plan, const struct call_spec *spec,
               struct report *report)
{
        const char *cgroup;
        int r;

        *call = (struct call){ .epoll = epoll,
                               .plan = plan,
                               .spec = spec,
                               .report = report,
                               .box = BOX_INIT,
                               .cgroup = CGROUP_INIT };
        call->input.box = call->input.null = -1;
        call->streams[0].source.fd = call->streams[1].source.fd = -1;
        call->begun = time_now();
        /* A first look no later than the wall limit; it is counted from the start once there is
         * one. */
        call->deadline = MIN(call->begun + SETUP_LIMIT, wall_end(call, call->begun));
        call->cancel_at = FOREVER;
        clock_gettime(CLOCK_REALTIME, &report->started_at);
        report->limits = spec->limits;
        report->captured = spec->capture;
        report->id = spec->id ? strdup(spec->id) : NULL;
        for (int i = 0; i < 2; i++)
                output_init(&report->output[i], spec->capture ? (size_t)spec->limits.capture : 0);

        r = cgroup_open(&call->cgroup, &spec->limits, &report->error);
        cgroup = call->cgroup.fd >= 0 ? "cgroup v2, own subtree" : NULL;
        if (r == 0)
                r = guarantees_check(plan, cgroup, &report->error);
        if (r == 0)
                r = box_prepare(plan, call->cgroup.fd, &call->box, &report->error);
        if (r == 0)
                r = start_box(call, &report->error);
        if (r < 0) {
                report->reason = REASON_SETUP;
                box_kill(&call->box);
                return r;
        }
        watch_box(call);
        return 0;
}

/* ---- Time ---- */

uint64_t call_deadline(const struct call *call)
{
        return MIN(call->deadline, call->cancel_at);
}

static void expire_running(struct call *call, uint64_t now)
{
        uint64_t started = atomic_load(&call->box.page->started);
        uint64_t end = started ? wall_end(call, started) : call->begun + SETUP_LIMIT;

        if (!box_fence(FENCE_DEADLINE))
                end = FOREVER;
        if (now < end) /* whether it has started shows only when one looks */
                call->deadline = started ? end : MIN(end, now + NSEC_PER_MSEC);
        else if (started)
                force_end(call, REASON_TIMEOUT);
        else
                force_end(call, REASON_SETUP);
}

/* Killed and still there: a process hangs in the kernel. Tell so rather than hang as well. */
static void give_up(struct call *call)
{
        call->report->kill_pending = true;
        report_warn(call->report, "a process of the call is stuck in the kernel; it was killed and "
                                  "will go when the kernel lets it");
        call->ended = call->done = true;
        stop_input(call);
}

void call_expire(struct call *call, uint64_t now)
{
        if (now >= call->cancel_at) {
                call->cancel_at = FOREVER;
                call_cancel(call);
        }
        if (now < call->deadline || call->done)
                return;
        if (!call->ended && !call->forced) {
                expire_running(call, now);
                return;
        }
        if (!call->dead) {
                if (call->forced)
                        give_up(call);
                else { /* init reported but does not go */
                        box_kill(&call->box);
                        call->forced = true;
                        call->forced_reason = REASON_MAX_;
                        call->deadline = now + KILL_GRACE;
                }
                return;
        }
        if (call->forced) { /* output that the caller does not take */
                for (int i = 0; i < 2; i++)
                        if (call->streams[i].source.fd >= 0)
                                stream_close(call, &call->streams[i]);
                report_warn(call->report,
                            "output that the caller did not read in time was dropped");
                return;
        }
        call->deadline = FOREVER;
}

/* ---- What the caller can do ---- */

void call_cancel(struct call *call)
{
        force_end(call, REASON_CANCELLED);
}

void call_signal(struct call *call, int signal)
{
        box_signal(&call->box, signal);
        if ((signal == SIGTERM || signal == SIGHUP) && call->cancel_at == FOREVER)
                call->cancel_at = time_now() + LEAVE_GRACE;
}

void call_resize(struct call *call, unsigned short rows, unsigned short columns)
{
        struct winsize size = { .ws_row = rows, .ws_col = columns };

        if (call->spec->tty && call->streams[0].source.fd >= 0)
                (void)ioctl(call->streams[0].source.fd, TIOCSWINSZ, &size);
}

/* ---- The end of it all ---- */

/* Init has said its last word, or was killed; by now it is mostly gone. Should it hang in the
 * kernel, leave it there and say so. */
static void await_init(struct call *call)
{
        struct pollfd init = { .fd = call->box.pidfd, .events = POLLIN };
        int grace = (int)(KILL_GRACE / NSEC_PER_MSEC);

        if (init.fd < 0 || call->report->kill_pending || poll(&init, 1, grace) > 0)
                return;
        box_kill(&call->box);
        if (poll(&init, 1, grace) <= 0)
                give_up(call);
}

void call_free(struct call *call)
{
        if (call->done)
                call_write_report(call);
        await_init(call);
        for (int i = 0; i < 2; i++) {
                struct call_stream *stream = &call->streams[i];

                unwatch(call, &stream->source);
                unwatch(call, &stream->target);
                base_close(stream->source.fd);
                sink_close(&stream->sink);
                free(stream->pending);
        }
        unwatch(call, &call->control);
        unwatch(call, &call->init);
        unwatch(call, &call->terminal);
        unwatch(call, &call->input_box);
        unwatch(call, &call->input_source);
        input_close(&call->input);
        /* A stuck process would make reaping wait for it: leave it to the kernel. */
        if (call->report->kill_pending)
                call->box.pidfd = base_close(call->box.pidfd);
        box_free(&call->box);
        cgroup_close(&call->cgroup);
}
