/* SPDX-License-Identifier: MIT */
/* What is kept of one output stream: its head and its tail, and how much there was. */
#ifndef WARDEN_OUTPUT_H
#define WARDEN_OUTPUT_H

#include <jansson.h>
#include <sys/uio.h>

#include "base/base.h"

/* The streams of a program; the result, descriptor 3, only where the call asks for it. */
enum { STREAM_OUTPUT, STREAM_ERRORS, STREAM_RESULT, STREAMS };

struct output {
        size_t capacity; /* bytes kept, half of them for the head */
        char *head, *tail;
        size_t head_length, tail_length, tail_at; /* tail is a ring; tail_at: its oldest byte */
        uint64_t total;
};

void output_init(struct output *output, size_t capacity);
void output_free(struct output *output);
int output_add(struct output *output, const char *data, size_t length);

/* What is kept, in order, in pieces: the head, then the tail, which may lie in two. */
#define OUTPUT_PARTS 3
void output_parts(const struct output *output, struct iovec parts[OUTPUT_PARTS]);

/* The same in one piece, with a NUL behind it, to be freed. */
int output_join(const struct output *output, char **ret_data, size_t *ret_length);

/* The other way round: copy head and tail, whose lengths are set already, from one piece. */
int output_take_kept(struct output *output, const char *data);

/* Bytes that were read but not kept. */
uint64_t output_omitted(const struct output *output);

/* Decode with U+FFFD for each byte that is not part of a character. A NUL is replaced as well:
 * readers in C would stop at it. `replaced` becomes true where that was done. */
int output_decode(const char *data, size_t length, struct buffer *to, bool *replaced);

/* The JSON form: text with replacement characters, byte count, truncation, raw bytes if needed. */
json_t *output_to_json(const struct output *output);

#endif
