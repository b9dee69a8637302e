/* SPDX-License-Identifier: MIT */
/* What processes hold of the memory. */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

#include <stddef.h>

/* All of it that is in memory, shared or not; 0 when it is not known. */
double memory_resident_kb(int pid);

/* The boxes below a warden, once no more are being made: how many, and what their processes hold
 * that nobody shares. */
struct memory_boxes {
        size_t n;
        double private_kb;
};

struct memory_boxes memory_of_boxes(int warden);

#endif
