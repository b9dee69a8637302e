/* SPDX-License-Identifier: MIT */
/*
 * Working side by side. The warden, init and main have half a millisecond of work each, but
 * schedulers like to keep a forked child behind its parent. So each child waits until its parent
 * has moved it to another processor, where there is one to spare, and then lifts that restriction
 * again. On a busy host nobody is moved.
 */
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "box/child.h"

void box_signal_word(_Atomic uint32_t *word)
{
        atomic_store(word, 1);
        syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Main's wait ends with init, which takes it along; init's has to look for the end of the warden
 * and of its maker, which may be killed before it has said the word. */
int box_await_word(struct child *child, _Atomic uint32_t *word)
{
        struct pollfd fds[2] = { { .fd = child->warden, .events = POLLIN }, { .fd = child->ids } };
        struct timespec a_while = { .tv_nsec = 20 * 1000 * 1000 };

        while (atomic_load(word) == 0) {
                if (syscall(SYS_futex, word, FUTEX_WAIT, 0, &a_while, NULL, 0) < 0 &&
                    errno != EAGAIN && errno != EINTR && errno != ETIMEDOUT)
                        return step_failed(child, "wait for the other side", NULL, errno);
                if (atomic_load(word) != 0)
                        break;
                if (poll(fds, 2, 0) > 0 && atomic_load(word) == 0)
                        return step_failed(child, "wait for the other side", NULL, EPIPE);
        }
        return 0;
}

/* In the parent: move `pid` away from this processor, and let it go on. */
void box_place(struct child *child, pid_t pid, _Atomic uint32_t *placed)
{
        unsigned long others[ARRAY_SIZE(child->processors)];
        unsigned cpu = 0;

        memcpy(others, child->processors, sizeof(others));
        if (child->spread && syscall(SYS_getcpu, &cpu, NULL, NULL) == 0 &&
            cpu < sizeof(others) * 8) {
                others[cpu / 64] &= ~(1UL << cpu % 64);
                (void)syscall(SYS_sched_setaffinity, pid, sizeof(others), others);
        }
        box_signal_word(placed);
}

/* In the child, first of all. */
int box_await_place(struct child *child, _Atomic uint32_t *placed)
{
        int r = box_await_word(child, placed);

        if (r == 0 && child->spread)
                (void)syscall(SYS_sched_setaffinity, 0, sizeof(child->processors),
                              child->processors);
        return r;
}

/* A maker lets its boxes be built without taking the processor from those who work. Whoever has
 * done that part has to be quick from now on. */
void box_hurry(const struct child *child)
{
        struct sched_param none = { 0 };

        if (child->unhurried)
                (void)syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &none);
}
