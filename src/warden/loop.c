/* SPDX-License-Identifier: MIT */
#include "warden/loop.h"

#include <sys/epoll.h>

#define BATCH 32

int loop_open(struct loop *loop)
{
        *loop = (struct loop){ .epoll = epoll_create1(EPOLL_CLOEXEC) };
        return loop->epoll < 0 ? -errno : 0;
}

void loop_close(struct loop *loop)
{
        loop->epoll = base_close(loop->epoll);
        free(loop->heap);
        *loop = (struct loop)LOOP_INIT;
}

/* ---- Descriptors ---- */

int loop_watch(struct loop *loop, struct watch *watch, uint32_t events)
{
        struct epoll_event event = { .events = events, .data.ptr = watch };

        if (watch->fd < 0 || (watch->events && watch->events == events))
                return 0;
        if (epoll_ctl(loop->epoll, watch->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, watch->fd,
                      &event) < 0)
                return -errno;
        watch->events = events;
        return 0;
}

void loop_unwatch(struct loop *loop, struct watch *watch)
{
        if (watch->events)
                (void)epoll_ctl(loop->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
        watch->events = 0;
}

/* ---- Timers: a binary heap, the earliest at slot 1 ---- */

static void put(struct loop *loop, size_t slot, struct timer *timer)
{
        loop->heap[slot] = timer;
        timer->slot = slot;
}

/* Move a timer up or down to where its time belongs. */
static void settle(struct loop *loop, struct timer *timer)
{
        size_t slot = timer->slot, child;

        while (slot > 1 && loop->heap[slot / 2]->at > timer->at) {
                put(loop, slot, loop->heap[slot / 2]);
                slot /= 2;
        }
        while ((child = slot * 2) <= loop->n_timers) {
                if (child < loop->n_timers && loop->heap[child + 1]->at < loop->heap[child]->at)
                        child++;
                if (loop->heap[child]->at >= timer->at)
                        break;
                put(loop, slot, loop->heap[child]);
                slot = child;
        }
        put(loop, slot, timer);
}

int loop_add_timer(struct loop *loop, struct timer *timer)
{
        if (loop->n_timers + 1 >= loop->room) {
                size_t room = loop->room ? loop->room * 2 : 16;
                struct timer **heap = reallocarray(loop->heap, room, sizeof(struct timer *));

                if (!heap)
                        return -ENOMEM;
                loop->heap = heap;
                loop->room = room;
        }
        timer->at = LOOP_NEVER;
        put(loop, ++loop->n_timers, timer);
        return 0;
}

void loop_set_timer(struct loop *loop, struct timer *timer, uint64_t at)
{
        if (timer->slot == 0 || timer->at == at)
                return;
        timer->at = at;
        settle(loop, timer);
}

void loop_remove_timer(struct loop *loop, struct timer *timer)
{
        struct timer *last;

        if (timer->slot == 0)
                return;
        last = loop->heap[loop->n_timers--];
        if (last != timer) {
                put(loop, timer->slot, last);
                settle(loop, last);
        }
        timer->slot = 0;
}

/* ---- One round ---- */

/* In whole milliseconds, rounded up: never early. */
static int wait_time(const struct loop *loop, uint64_t until)
{
        uint64_t now = time_now(), left;

        if (until == 0)
                return 0;
        if (loop->n_timers > 0)
                until = MIN(until, loop->heap[1]->at);
        if (until == LOOP_NEVER)
                return -1;
        left = until > now ? until - now : 0;
        return (int)MIN((left + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC, 3600000);
}

static void expire(struct loop *loop)
{
        uint64_t now;

        if (loop->n_timers == 0 || loop->heap[1]->at == LOOP_NEVER)
                return;
        now = time_now();
        /* One that sets itself anew gets a later time, so this ends. */
        while (loop->n_timers > 0 && loop->heap[1]->at <= now) {
                struct timer *timer = loop->heap[1];

                loop_set_timer(loop, timer, LOOP_NEVER);
                timer->expired(timer, now);
        }
}

int loop_step(struct loop *loop, uint64_t until)
{
        struct epoll_event events[BATCH];
        int n = epoll_wait(loop->epoll, events, BATCH, wait_time(loop, until));

        if (n < 0 && errno != EINTR)
                return -errno;
        for (int i = 0; i < n; i++) {
                struct watch *watch = events[i].data.ptr;

                if (watch->events) /* not taken out by an event before it */
                        watch->ready(watch, events[i].events);
        }
        expire(loop);
        return MAX(n, 0);
}
