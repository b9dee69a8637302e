/* SPDX-License-Identifier: MIT */
/*
 * The event loop of a warden: descriptors in one epoll set, deadlines in one heap. Whoever is
 * watched embeds a watch or a timer and is told when it is ready; nothing here owns memory that is
 * not its own.
 */
#ifndef WARDEN_LOOP_H
#define WARDEN_LOOP_H

#include "base/base.h"

#define LOOP_NEVER UINT64_MAX

struct watch {
        int fd;
        uint32_t events; /* 0: not in the set */
        void (*ready)(struct watch *watch, uint32_t events);
        void *owner;
};

struct timer {
        uint64_t at; /* CLOCK_MONOTONIC, nanoseconds; LOOP_NEVER: not now */
        size_t slot; /* in the heap, from 1; 0: not there */
        void (*expired)(struct timer *timer, uint64_t now);
        void *owner;
};

struct loop {
        int epoll;
        struct timer **heap;
        size_t n_timers, room;
};

#define LOOP_INIT                                                                                  \
        {                                                                                          \
                .epoll = -1                                                                        \
        }

int loop_open(struct loop *loop);
void loop_close(struct loop *loop);

/* Wait for these events, instead of what was waited for before. */
int loop_watch(struct loop *loop, struct watch *watch, uint32_t events);
void loop_unwatch(struct loop *loop, struct watch *watch);

/* Adding a timer may fail for want of memory; setting one that was added never does. */
int loop_add_timer(struct loop *loop, struct timer *timer);
void loop_set_timer(struct loop *loop, struct timer *timer, uint64_t at);
void loop_remove_timer(struct loop *loop, struct timer *timer);

/*
 * Wait for events, at most until `until` (0: do not wait), and hand them out. Returns how many
 * there were. A watch that is taken out meanwhile is not told any more, but it must not be freed
 * before this returns.
 */
int loop_step(struct loop *loop, uint64_t until);

#endif
