/* SPDX-License-Identifier: MIT */
/* The loop around one call. */
#include <string.h>
#include <sys/epoll.h>

#include "warden/call.h"

static int wait_time(const struct call *call)
{
        uint64_t deadline = call_deadline(call), now = time_now();
        uint64_t left = deadline > now ? deadline - now : 0;

        if (deadline == UINT64_MAX)
                return -1;
        return (int)MIN((left + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC, 3600000);
}

static void dispatch(struct call *call, const struct call_hook *hook, struct epoll_event *events,
                     int n)
{
        for (int i = 0; i < n; i++) {
                struct call_watch *watch = events[i].data.ptr;

                if (!watch)
                        hook->ready(call, hook->data);
                else if (watch->events) /* not taken out by an event before it */
                        watch->ready(call, watch, events[i].events);
        }
}

void call_run(const struct plan *plan, const struct call_spec *spec, const struct call_hook *hook,
              struct report *report)
{
        struct epoll_event event = { .events = EPOLLIN }, events[16];
        _cleanup_fd_ int epoll = epoll_create1(EPOLL_CLOEXEC);
        struct call call;
        int n;

        if (epoll < 0 || (hook->fd >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, hook->fd, &event) < 0)) {
                error_set(&report->error, -errno, "", "cannot watch for events: %s",
                          strerror(errno));
                return;
        }
        if (call_start(&call, epoll, plan, spec, report) == 0)
                while (!call.done) {
                        n = epoll_wait(epoll, events, ARRAY_SIZE(events), wait_time(&call));
                        if (n < 0 && errno != EINTR) {
                                call_cancel(&call);
                                break;
                        }
                        dispatch(&call, hook, events, MAX(n, 0));
                        call_expire(&call, time_now());
                }
        call_free(&call);
}
