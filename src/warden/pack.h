/* SPDX-License-Identifier: MIT */
/*
 * Values in the body of a message: numbers as eight bytes, bytes with their length before and a
 * NUL behind. Reading never goes past the end: what is not there makes the reader bad, and from
 * then on everything reads as zero, so that one look at the end suffices.
 */
#ifndef WARDEN_PACK_H
#define WARDEN_PACK_H

#include "base/base.h"

/* Writing fails only for want of memory: look at `failed` when all is written. */
struct pack {
        struct buffer buffer;
        bool failed;
};

#define PACK_INIT                                                                                  \
        {                                                                                          \
                .buffer = BUFFER_INIT                                                              \
        }

void pack_number(struct pack *pack, uint64_t value);
void pack_real(struct pack *pack, double value);
void pack_bytes(struct pack *pack, const void *data, size_t length);
void pack_text(struct pack *pack, const char *text);          /* NULL is kept apart from "" */
void pack_texts(struct pack *pack, const char *const *texts); /* NULL-terminated; may be NULL */
void pack_free(struct pack *pack);
#define _cleanup_pack_ _cleanup_(pack_free)

struct unpack {
        const char *at, *end;
        bool bad;
};

#define UNPACK_INIT(data, length)                                                                  \
        {                                                                                          \
                .at = (data), .end = (data) + (length)                                             \
        }

uint64_t unpack_number(struct unpack *unpack);
uint64_t unpack_number_below(struct unpack *unpack, uint64_t limit); /* at or above it is bad */
double unpack_real(struct unpack *unpack);                           /* finite, not negative */
/* These point into the message. A text has no NUL in it. */
const char *unpack_bytes(struct unpack *unpack, size_t *ret_length);
const char *unpack_text(struct unpack *unpack);
/* An array of pointers into the message, NULL-terminated, to be freed; NULL when bad. */
char **unpack_texts(struct unpack *unpack, size_t limit);

/* Was everything there, and nothing else? */
static inline bool unpack_is_whole(const struct unpack *unpack)
{
        return !unpack->bad && unpack->at == unpack->end;
}

#endif
