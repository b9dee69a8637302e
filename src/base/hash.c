/* SPDX-License-Identifier: MIT */
#include "base/base.h"

#define FNV_PRIME 0x100000001b3ULL

uint64_t hash_bytes(uint64_t hash, const void *data, size_t length)
{
        const unsigned char *bytes = data;

        for (size_t i = 0; i < length; i++)
                hash = (hash ^ bytes[i]) * FNV_PRIME;
        return hash;
}
