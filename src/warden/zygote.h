/* SPDX-License-Identifier: MIT */
/*
 * A zygote, as the warden has it: a program that runs in a box of its own and from which the boxes
 * of calls are forked (box/fork.h). One per pool whose program is of that kind.
 *
 *   to the zygote   WIRE_PLAN, first of all; WIRE_MAKE, with a box's page and sockets, for each
 *   from it         WIRE_READY when it has loaded what it loads; WIRE_BOX for each WIRE_MAKE: an
 *                   errno, and a pidfd where that is 0; WIRE_FORGET: another one should be started
 *
 * What it says is a stranger's word. It stays until the last box that was forked from it is gone:
 * they end with it.
 */
#ifndef WARDEN_ZYGOTE_H
#define WARDEN_ZYGOTE_H

#include <stdbool.h>
#include <sys/queue.h>

enum { ZYGOTE_PAGE, ZYGOTE_CONTROL, ZYGOTE_START };

struct pool;
struct pool_box;
struct pools;
struct zygote;

/* Let boxes be forked, as many as the pool wants: asks for a zygote where there is none. */
int zygote_refill(struct pool *pool);

/* Does it fork? Until it does it loads its program. */
bool zygote_is_ready(const struct zygote *zygote);

/* A box has come for the program of the zygote that was asked for. */
void zygote_start(struct pool *pool, struct pool_box *box);

/* Leave the zygote of a pool: no more boxes are forked from it. */
void zygote_leave(struct pool *pool);

/* The same, if the program is not what it was started from any more. */
struct program_files;
void zygote_check(struct pool *pool, const struct program_files *files);

/* A box of it is at its end: did it say what one of ours could, and has its call run? After so many
 * zygotes or boxes that failed, with no call between them that ran, the maker does without. */
#define ZYGOTE_FAILURES_MAX 3
void zygote_judge(struct zygote *zygote, bool sense, bool ran);

struct zygote *zygote_unref(struct zygote *zygote);

/* Free those that nobody refers to; between two rounds of the loop. */
void zygotes_sweep(struct pools *pools);

#endif
