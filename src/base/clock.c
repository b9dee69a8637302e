/* SPDX-License-Identifier: MIT */
#include <time.h>

#include "base/base.h"

/* clock_gettime cannot fail for a clock that every kernel has. */
uint64_t time_now(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}
