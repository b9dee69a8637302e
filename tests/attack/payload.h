/* SPDX-License-Identifier: MIT */
/*
 * The attack program: one sub-command per case of the attack suite.
 *
 *     payload CASE TOKEN [ARGUMENT...]
 *
 * TOKEN does nothing here; it marks the command line, and thereby every process that is forked
 * without exec, so that the suite finds survivors on the host. A sub-command tries its attack,
 * prints one line and exits:
 *
 *     HELD what was refused          0
 *     BROKEN what succeeded          42
 *     UNTRIED why                    3
 *
 * Rule for every case: where the attack succeeds it does no harm. Files are opened for writing
 * but not written, targets do not exist, arguments are such that the kernel answers EINVAL, and
 * processes, memory and time are bounded.
 */
#ifndef ATTACK_PAYLOAD_H
#define ATTACK_PAYLOAD_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define EXIT_HELD 0
#define EXIT_BROKEN 42
#define EXIT_UNTRIED 3

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MIB (1024L * 1024L)

struct attack {
        const char *name;
        int (*run)(int argc, char **argv); /* the arguments after the token */
};

extern const struct attack attacks_life[];      /* A */
extern const struct attack attacks_resources[]; /* B */
extern const struct attack attacks_handles[];   /* C, D */
extern const struct attack attacks_files[];     /* E, F */
extern const struct attack attacks_privilege[]; /* G, H */
extern const struct attack attacks_surface[];   /* I, J */
extern const struct attack attacks_channels[];  /* L, M, O, Q, R */
extern const struct attack attacks_extra[];     /* X: beyond the list */
extern const struct attack attacks_memory2[];   /* S9, S11 */
extern const struct attack attacks_memory3[];   /* S9 */
extern const struct attack attacks_memory4[];   /* S9 */
extern const struct attack attacks_memory5[];   /* S9 */
extern const struct attack attacks_books[];     /* B28 */
extern const struct attack attacks_traces[];
extern const struct attack attacks_filter[]; /* S */
extern const struct attack attacks_cage[];   /* what no namespace keeps */
extern const struct attack attacks_keep[];   /* while the host works */

/* A way to take memory: how much came of it. Held for a second, it breaks the limit. */
struct memory_kind {
        const char *kind;
        long (*take)(long total);
};
/* Run `take` in several processes, each for its part, and add up what they say. */
long in_processes(int n, long total, long (*take)(long part));
int send_descriptor(int socket, int fd);
int take_kind(const struct memory_kind *ways, size_t n, int argc, char **argv);

extern const char *self_path;  /* argv[0] */
extern const char *self_token; /* the token, to hand on to an exec of oneself */

/* One verdict. */
int held(const char *format, ...) __attribute__((format(printf, 1, 2)));
int broken(const char *format, ...) __attribute__((format(printf, 1, 2)));
int untried(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Several probes in one case: each is put down as held or broken, the verdict is their sum. */
struct tally {
        char held[4096];
        char broken[4096];
        int held_count;
        int broken_count;
};

void put_held(struct tally *tally, const char *format, ...) __attribute__((format(printf, 2, 3)));
void put_broken(struct tally *tally, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Held if the call failed, with whatever errno. `result` is -1 and errno, or a success. */
void expect_failure(struct tally *tally, const char *what, long result);

/*
 * Held only if a fence refused the call: EPERM, ENOSYS, EAFNOSUPPORT, EACCES. Any other error
 * shows that the call came as far as the kernel's look at its (wrong) arguments.
 */
void expect_fence(struct tally *tally, const char *what, long result);

int verdict(const struct tally *tally);

/* Time */
double now(void);
void nap(double seconds);
/* Stay alive, deaf to what can be ignored, for at most so many seconds; then exit with 0. */
_Noreturn void linger(int seconds);
void ignore_signals(void);

/* Small readers */
const char *errno_name(int number);
/* The whole of a small file as a string, or NULL with errno; the buffer is static. */
const char *slurp(const char *path);
/* The value of a "Name:" line of /proc/self/status as text, or NULL. */
const char *status_field(const char *name);
bool opens(const char *path, int flags);
/* Is it the process that has the memory of our zygote too? Only in a box that was forked are we the
 * third. */
bool is_holder(int pid);
/* Is this a box without namespaces? It has a directory of the host's for its /tmp. */
bool caged(void);
/* A place for temporary files: the box's own. */
const char *scratch(const char *name);
/* What is wrong with the fences as seen from main, or a child of it; NULL where all hold. */
const char *missing_fence(bool child);
long argument(int argc, char **argv, int index, long otherwise);
/* Run a function in a child and give its wait status, or -1. */
int in_child(int (*function)(void *), void *data);

#endif
