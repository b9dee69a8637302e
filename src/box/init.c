/* SPDX-License-Identifier: MIT */
/*
 * Pid 1 of a box. It starts main, reaps whatever is orphaned, answers refused system calls, looks
 * at what the tree uses, and ends the box: when main has ended, when a limit is hit, or when the
 * warden is gone. Its own death takes the whole box along, whatever it was doing.
 */
#include "box/init.h"

#include "box/guard.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "box/tree.h"

#define LINGER (2 * NSEC_PER_MSEC)
/* Newer than the headers: who asks and who answers take turns on one processor. */
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, uint64_t)
#endif
#define WAKES_IN_PLACE 1UL

static void tell(struct child *child, char message)
{
        ssize_t n;

        do
                n = send(child->control, &message, 1, MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
}

static void note_status(struct child *child, pid_t pid, int status)
{
        if (pid == child->main) {
                child->page->status = status;
                child->main = -1;
        }
        holder_reaped(child, pid);
        guard_reaped(pid);
}

/*
 * Nobody is left in the box, and the warden answers before it is gone. To take down its namespaces
 * and memory takes as long as a short call does: leave the processors to the warden and to who
 * waits for the answer, which the kernel may have woken behind this process. A warden with one call
 * waits for the end of the box.
 */
static void linger(const struct child *child)
{
        struct pollfd fds[2] = { { .fd = child->control },
                                 { .fd = child->warden, .events = POLLIN } };
        struct timespec a_while = { .tv_nsec = LINGER };

        if (child->forked || child->unhurried)
                (void)ppoll(fds, 2, &a_while, NULL);
        else
                sched_yield();
}

/*
 * The end: nothing that main started outlives it. One kill(-1) suffices: the kernel sends it to
 * every process of the namespace at once, and a fork under way is given up. To find them it goes
 * through all processes of the host, so an init that is alone does without.
 */
static _Noreturn void end(struct child *child, enum box_verdict verdict)
{
        int status;
        pid_t pid;

        child->page->verdict = verdict;
        if (child->plan->explain && atomic_load(&child->page->started) != 0)
                guard_note_full(child);
        if (child->plan->caged && box_fence(FENCE_TREE_KILL))
                tree_end(child, note_status);
        else if (!child->alone && box_fence(FENCE_TREE_KILL) && getpid() == 1)
                kill(-1, SIGKILL);
        else if (child->main > 0)
                kill(child->main, SIGKILL);
        if (box_fence(FENCE_TREE_KILL) && !child->alone && !child->plan->caged)
                while ((pid = (pid_t)syscall(SYS_wait4, -1, &status, __WALL, NULL)) > 0 ||
                       errno == EINTR)
                        note_status(child, pid, status);
        getrusage(RUSAGE_CHILDREN, &child->page->usage);
        child->page->ended = time_now();
        tell(child,
             child->page->failure.step[0] && !child->page->exec_failed ? BOX_FAILED : BOX_ENDED);
        linger(child);
        /* In the test build that leaves the killing out, stay until the warden ends the box. */
        while (!box_fence(FENCE_TREE_KILL) && recv(child->control, &status, 1, 0) > 0)
                ;
        syscall(SYS_exit_group, 0);
        __builtin_unreachable();
}

void init_reap(struct child *child)
{
        int status;
        pid_t pid;

        while ((pid = (pid_t)syscall(SYS_wait4, -1, &status, __WALL | WNOHANG, NULL)) > 0)
                note_status(child, pid, status);
        /* Whoever loses its parent becomes init's child: without children it is alone. */
        child->alone = pid < 0 ? errno == ECHILD : child->main < 0 && holder_is_alone(child);
}

static void reap(struct child *child, int signals)
{
        char drained[512];

        (void)!read(signals, drained, sizeof(drained));
        init_reap(child);
}

/* A signal of the caller's. What a terminal sends to all who have it in front, goes to all who
 * would: a shell waits for its child before it looks. */
static void pass_on(const struct child *child, int signal)
{
        bool to_all = signal == SIGINT || signal == SIGQUIT || signal == SIGHUP;

        if (!to_all || kill(-child->main, signal) < 0)
                kill(child->main, signal);
}

/* Nobody is left under the filter: main and all that it started are on their way out, and nothing
 * is left to do for init but to wait for that. */
static void await_end(struct child *child)
{
        int status;
        pid_t pid = 0;

        /* Main may have been reaped by who watches; who opens a fifo for it may never end. */
        while (child->main > 0 && (pid >= 0 || errno == EINTR)) {
                pid = (pid_t)syscall(SYS_wait4, -1, &status, __WALL, NULL);
                if (pid > 0)
                        note_status(child, pid, status);
        }
        init_reap(child);
}

int box_start_main(struct child *child)
{
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, child->pair) < 0)
                return step_failed(child, "connect init and main", NULL, errno);
        child->main = box_spawn_main(child);
        if (child->main < 0)
                return step_failed(child, "start the main process", NULL, errno);
        child->pair[1] = base_close(child->pair[1]);
        box_place(child, child->main, &child->page->main_placed);
        return 0;
}

/* The loop. Everything that can happen to a box is one of these descriptors or the time. */
static _Noreturn void live(struct child *child, int signals)
{
        enum { SIGNALS, NOTIFIER, WARDEN, CONTROL, KEEPER, N_WATCHED };
        struct pollfd fds[N_WATCHED] = {
                [SIGNALS] = { .fd = signals, .events = POLLIN },
                [NOTIFIER] = { .fd = child->notifier, .events = POLLIN },
                [WARDEN] = { .fd = child->warden, .events = POLLIN },
                [CONTROL] = { .fd = child->control, .events = POLLIN },
                [KEEPER] = { .fd = child->keeper, .events = POLLIN },
        };
        enum box_verdict verdict = BOX_OK;
        bool watching = false; /* from when the warden asks for it ... */
        bool settling = false; /* ... until there is nothing to see */
        uint64_t next = 0;
        char order[2] = { 0 };

        box_hurry(child);
        for (;;) {
                uint64_t now = time_now(), left;
                struct timespec wait;

                if (verdict == BOX_OK && watching && now >= next)
                        verdict = watch_tree(child, now, &next);
                watching = watching && !(settling && child->still);
                if (verdict != BOX_OK)
                        end(child, verdict);
                left = next > now ? next - now : 0;
                wait = (struct timespec){ (time_t)(left / NSEC_PER_SEC),
                                          (long)(left % NSEC_PER_SEC) };
                if (ppoll(fds, N_WATCHED, watching ? &wait : NULL, NULL) < 0) {
                        if (errno == EINTR)
                                continue;
                        syscall(SYS_exit_group, 1); /* the warden sees that init has failed */
                }
                if (fds[KEEPER].revents) { /* nobody is left to do it */
                        tree_end(child, NULL);
                        syscall(SYS_exit_group, 1);
                }
                if (fds[WARDEN].revents ||
                    (fds[CONTROL].revents && recv(child->control, order, 2, 0) <= 0))
                        syscall(SYS_exit_group, 0);
                if (fds[CONTROL].revents && (order[0] == BOX_WATCH || order[0] == BOX_SETTLE)) {
                        watching = box_fence(FENCE_WATCH);
                        settling = order[0] == BOX_SETTLE;
                        next = settling ? time_now() + LOOK_USUAL : 0;
                }
                if (fds[CONTROL].revents && order[0] == BOX_LOADED && child->zygote) {
                        guard_close(child);
                        fds[NOTIFIER] = (struct pollfd){ .fd = -1 };
                }
                if (fds[CONTROL].revents && order[0] == BOX_SIGNAL && child->main > 0)
                        pass_on(child, order[1]);
                if (fds[NOTIFIER].revents & POLLIN) {
                        verdict = notify_serve(child);
                } else if (fds[NOTIFIER].revents) {
                        fds[NOTIFIER].fd = -1;
                        await_end(child);
                }
                if (fds[SIGNALS].revents)
                        reap(child, signals);
                if (child->main < 0)
                        end(child, BOX_OK);
        }
}

/* Init's own fences, and the descriptors that it lives by. */
static int settle(struct child *child, int *ret_signals)
{
        uint64_t mask = 1ULL << (SIGCHLD - 1);
        int r = box_fence(FENCE_PRIVILEGES) && !child->plan->caged
                        ? box_drop_privileges(child, true)
                        : 0;

        if (r < 0)
                return r;
        *ret_signals = (int)syscall(SYS_signalfd4, -1, &mask, sizeof(mask), O_CLOEXEC | O_NONBLOCK);
        if (*ret_signals < 0)
                return step_failed(child, "watch for signals", NULL, errno);
        r = descriptor_keep(0,
                            (int[]){ child->control, child->warden, child->pair[0], child->proc,
                                     child->keeper, *ret_signals },
                            6);
        return r < 0 ? step_failed(child, "close descriptors", NULL, -r) : 0;
}

/* Wait until main has something to say; a main that hangs must not keep init from seeing that the
 * warden is gone. */
static int await_main(struct child *child)
{
        struct pollfd fds[2] = { { .fd = child->pair[0], .events = POLLIN },
                                 { .fd = child->warden, .events = POLLIN } };
        int r;

        do
                r = ppoll(fds, 2, NULL, NULL);
        while (r < 0 && errno == EINTR);
        if (r < 0 || fds[1].revents)
                return step_failed(child, "wait for the main process", NULL, r < 0 ? errno : EPIPE);
        return 0;
}

/* The root stands. Take the notifier of main's filter, and let main into it. */
static int release_main(struct child *child)
{
        _cleanup_fd_ int ruleset = -1;
        bool notifies =
                box_fence(FENCE_SYSCALLS) && !child->plan->unboxed &&
                (!child->zygote || (child->plan->loading_filter && box_fence(FENCE_LOADING)));
        char byte;
        int r = box_open_ruleset(child, &ruleset);

        if (r == 0 && notifies)
                r = await_main(child);
        if (r < 0)
                return r;
        if (notifies && descriptor_receive(child->pair[0], &child->notifier, 1, &byte) <= 0)
                return step_failed(child, "take the notifier from the main process", NULL, EPIPE);
        if (notifies &&
            (child->plan->guarded || child->plan->hides || child->plan->caged)) /* often asked */
                (void)ioctl(child->notifier, SECCOMP_IOCTL_NOTIF_SET_FLAGS, WAKES_IN_PLACE, 0);
        if (notifies && child->notifier < 0) /* dropped on the way, for want of room */
                return step_failed(child, "take the notifier from the main process", NULL, EMFILE);
        holder_stop(child);
        r = descriptor_send(child->pair[0], 'd', &ruleset, ruleset >= 0);
        return r < 0 ? step_failed(child, "release the main process", NULL, -r) : 0;
}

_Noreturn void box_init(struct child *child)
{
        int signals = -1, r;

        r = child->plan->caged ? 0 : box_join_network(child);
        if (r == 0)
                r = settle(child, &signals);
        if (r == 0)
                r = release_main(child);
        if (r < 0) {
                /* Not by kill: main may still have an id that init may not signal. Nothing outlives
                 * the end of init itself. */
                tell(child, BOX_FAILED);
                syscall(SYS_exit_group, 1);
        }
        live(child, signals);
}
