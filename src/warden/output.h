/* SPDX-License-Identifier: MIT */
/*
 * What is kept of one output stream: its head and its tail, and how much there was.
 *
 * Both lie in one piece: the head, and behind it the tail, a ring. As long as nothing is cut off
 * that is the stream as it was. A small one is in memory. A large one goes into a memory file,
 * which the warden writes but never maps, and hands over as it is: however large a result, the
 * warden does not grow by it, and it is not copied on its way to the client.
 */
#ifndef WARDEN_OUTPUT_H
#define WARDEN_OUTPUT_H

#include <jansson.h>
#include <sys/uio.h>

#include "base/base.h"

/* The streams of a program; the result, descriptor 3, only where the call asks for it. */
enum { STREAM_OUTPUT, STREAM_ERRORS, STREAM_RESULT, STREAMS };

#define OUTPUT_IN_MEMORY (256 * KIB) /* more than this is in a file */

struct output {
        size_t capacity; /* bytes kept, half of them for the head */
        char *data;      /* NULL: nothing was kept, or it is in a file that is not mapped */
        size_t room;     /* bytes at `data`; of a mapping, all of it */
        size_t head_length, tail_length, tail_at; /* tail is a ring; tail_at: its oldest byte */
        uint64_t total;
        bool filed, mapped; /* it is in `file`; `data` is a mapping of it */
        int file;
};

void output_init(struct output *output, size_t capacity);
void output_free(struct output *output);
int output_add(struct output *output, const char *data, size_t length);

static inline size_t output_kept(const struct output *output)
{
        return output->head_length + output->tail_length;
}

/* What is kept in memory, in order, in pieces: the head, then the tail, which may lie in two. */
#define OUTPUT_PARTS 3
void output_parts(const struct output *output, struct iovec parts[OUTPUT_PARTS]);

/* What is kept, in one piece, with a NUL behind it, to be freed. */
int output_join(const struct output *output, char **ret_data, size_t *ret_length);

/* Nothing is added to the file any more: a NUL is put behind it, and it cannot change. */
int output_seal(const struct output *output);

/* The other way round, for whoever gets a report. Lengths are set already; afterwards `data` has
 * all that is kept, in order, with a NUL behind it. Copied from one piece, or taken over in a
 * sealed file. */
int output_take_kept(struct output *output, const char *data);
int output_take_file(struct output *output, int file);

/* Bytes that were read but not kept. */
uint64_t output_omitted(const struct output *output);

/* Decode with U+FFFD for each byte that is not part of a character. A NUL is replaced as well:
 * readers in C would stop at it. `replaced` becomes true where that was done. */
int output_decode(const char *data, size_t length, struct buffer *to, bool *replaced);

/* The JSON form: text with replacement characters, byte count, truncation, raw bytes if needed. */
json_t *output_to_json(const struct output *output);

#endif
