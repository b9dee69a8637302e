/* SPDX-License-Identifier: MIT */
/* What a worker writes and a client expects: byte `at` of the stream that a seed stands for. */
#ifndef SOAK_STREAM_H
#define SOAK_STREAM_H

#include <stddef.h>

static inline char stream_byte(unsigned seed, size_t at)
{
        unsigned long long mixed = (at + 1) * 0x9e3779b97f4a7c15ULL + seed * 0xbf58476d1ce4e5b9ULL;

        return (char)(mixed >> 56);
}

#endif
