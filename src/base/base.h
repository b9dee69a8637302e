/* SPDX-License-Identifier: MIT */
/* Helpers that know nothing of policies and boxes: cleanup, descriptors, errors. */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "callbox.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define PRINTF_LIKE(text, args) __attribute__((format(printf, text, args)))

#define NSEC_PER_SEC 1000000000ULL
#define NSEC_PER_MSEC 1000000ULL
#define KIB 1024ULL
#define MIB (1024ULL * KIB)
#define GIB (1024ULL * MIB)

/* ---- Cleanup: a variable that frees itself at the end of its scope. ---- */

#define _cleanup_(f) __attribute__((cleanup(f)))

static inline void base_free(void *p)
{
        free(*(void **)p);
}

/* Close and keep errno: error paths close descriptors while they carry the first error. */
static inline int base_close(int fd)
{
        int saved = errno;

        if (fd >= 0)
                (void)close(fd);
        errno = saved;
        return -1;
}

static inline void base_closep(int *fd)
{
        *fd = base_close(*fd);
}

#define _cleanup_free_ _cleanup_(base_free)
#define _cleanup_fd_ _cleanup_(base_closep)

#define TAKE_PTR(p)                                                                                \
        ({                                                                                         \
                __typeof__(p) *base_p_ = &(p), base_v_ = *base_p_;                                 \
                *base_p_ = NULL;                                                                   \
                base_v_;                                                                           \
        })

#define TAKE_FD(fd)                                                                                \
        ({                                                                                         \
                int *base_p_ = &(fd), base_v_ = *base_p_;                                          \
                *base_p_ = -1;                                                                     \
                base_v_;                                                                           \
        })

/* ---- Errors ---- */

/* Fill an error and return its code, so that `return error_set(...)` joins the two. The first
 * form takes where and text; hints are added with error_hint. A NULL error is allowed. */
int error_set(cbx_error *error, int code, const char *where, const char *format, ...)
        PRINTF_LIKE(4, 5);
void error_hint(cbx_error *error, const char *format, ...) PRINTF_LIKE(2, 3);
int error_oom(cbx_error *error);

/* ---- Text from elsewhere (text.c) ---- */

/* Is it UTF-8? */
bool text_is_valid(const char *text);

/* Make it safe to show: valid UTF-8, without characters that steer a terminal, turn the direction
 * of text or are not seen. Each byte of what is not becomes '?', so this works in place. */
void text_make_showable(char *text);

/* The same for a stream of bytes, lines and all: bytes that are no UTF-8 stay. Returns how many are
 * ready; what is left, three bytes at most, is the beginning of a character. */
size_t text_make_printable(unsigned char *text, size_t n);
/* Where no more comes: what was left. What could still become a character that steers is replaced.
 */
void text_end_printable(unsigned char *begun, size_t n);

/* ---- Buffers: a growing run of bytes. ---- */

struct buffer {
        char *data;
        size_t length, room;
};

#define BUFFER_INIT                                                                                \
        {                                                                                          \
                NULL, 0, 0                                                                         \
        }

void buffer_free(struct buffer *buffer);
int buffer_grow(struct buffer *buffer, size_t more); /* room for so many bytes and a NUL */
int buffer_add(struct buffer *buffer, const void *data, size_t length);
int buffer_printf(struct buffer *buffer, const char *format, ...) PRINTF_LIKE(2, 3);
#define _cleanup_buffer_ _cleanup_(buffer_free)

/* ---- NULL-terminated lists of strings (list.c) ---- */

char **list_new(void);
char **list_copy(const char *const *list); /* NULL: out of memory */
size_t list_length(char *const *list);
int list_add(char ***list, const char *text);
int list_take(char ***list, char *text); /* frees it on failure; NULL is -ENOMEM */
void list_sort(char **list);             /* each string is kept once */
void list_free(char **list);

static inline void list_freep(char ***list)
{
        list_free(*list);
}
#define _cleanup_list_ _cleanup_(list_freep)

/* ---- Descriptors and files ---- */

int fd_write_all(int fd, const void *data, size_t length);

/* The same to a memory file: one that is larger than the process may make is an error, not a
 * signal. */
int fd_write_memory(int fd, const void *data, size_t length);
int fd_write_memory_at(int fd, const void *data, size_t length, uint64_t at);

/* Read a whole file of at most `limit` bytes; NUL-terminated, the length in ret_length. -EFBIG
 * when it is longer. */
int file_read(int dirfd, const char *path, size_t limit, char **ret_data, size_t *ret_length);

/* The same of what a descriptor still gives. */
int fd_read(int fd, size_t limit, char **ret_data, size_t *ret_length);

/* Make sure that descriptors 0, 1 and 2 are taken, so that none of ours becomes one of them. */
int fd_reserve_stdio(void);

/* ---- Time ---- */

uint64_t time_now(void); /* CLOCK_MONOTONIC, nanoseconds */

/* ---- Words ---- */

#define WORD_FAR INT_MAX

/* Whether `word` is nearer to what was given than the best so far (at first WORD_FAR), and near at
 * all: a third of its letters may be wrong. Takes it as the best then. */
bool word_is_nearer(const char *given, const char *word, size_t length, int *best);

/* ---- Numbers ---- */

#define NUMBER_ROOM 48

/* The fewest digits that read back as the same number, with a point. */
void number_write(double number, char room[NUMBER_ROOM]);

/* ---- Hashing: FNV-1a, for table keys and policy identity, not for secrets. ---- */

#define HASH_INIT 0xcbf29ce484222325ULL
uint64_t hash_bytes(uint64_t hash, const void *data, size_t length);

/* ---- For secrets (sha256.c) ---- */

#define SHA256_SIZE 32
void sha256(const void *data, size_t length, unsigned char ret[SHA256_SIZE]);
void hmac_sha256(const unsigned char key[SHA256_SIZE], const void *data, size_t length,
                 unsigned char ret[SHA256_SIZE]);
/* Takes as long for any two that are as long. */
bool bytes_equal(const void *one, const void *two, size_t length);

#endif
