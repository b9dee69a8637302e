/* SPDX-License-Identifier: MIT */
/*
 * A pool: the maker of one policy and the boxes that wait ready for it. Where the policy comes with
 * a program, it has been started in them (program.h). Each is used for one call and never again.
 * The pool grows with demand and shrinks without it; a policy that nobody uses has neither boxes
 * nor a maker.
 */
#ifndef WARDEN_POOL_H
#define WARDEN_POOL_H

#include <sys/queue.h>

#include "warden/loop.h"
#include "warden/maker.h"
#include "warden/prepared.h"

/* Someone who needs a box. One of the two is called, once, unless pool_abandon comes before. Box
 * and plan become the taker's own. */
struct pool_taker {
        void (*taken)(struct pool_taker *taker, struct prepared *box, struct maker_plan *plan);
        void (*refused)(struct pool_taker *taker, const cbx_error *error);
        bool fresh;  /* needs a box in which nothing has been started */
        bool direct; /* does not wait for a zygote */
        bool waiting;
        TAILQ_ENTRY(pool_taker) link;
};

/* A box, from the moment it is asked for. */
struct pool_box {
        struct prepared prepared;
        struct maker_plan *plan; /* from which it was made; NULL: not yet */
        bool outdated;           /* not to be used when it comes */
        bool zygote;             /* for one */
        STAILQ_ENTRY(pool_box) link;
};

struct pools;

struct pool {
        struct pools *pools;
        unsigned refs; /* of clients that know the policy, and of calls */
        char *key;     /* the policy as it was asked for, without its id */
        size_t key_length;
        uint64_t hash;
        struct wire_policy wanted; /* the same, read; points into the key */
        cbx_policy *policy;
        struct watch maker;      /* fd -1: there is none */
        int unborn;              /* the end of one that the nursery has not taken yet */
        bool proven;             /* this maker has made a box */
        struct maker_plan *plan; /* NULL: not known yet */
        STAILQ_HEAD(, pool_box) boxes, asked; /* ready; asked of the maker */
        unsigned n_boxes, n_asked;
        TAILQ_HEAD(pool_takers, pool_taker) takers;
        unsigned n_takers, n_fresh, n_direct;
        /* Where the program forks: */
        struct zygote *zygote; /* NULL: there is none */
        bool zygote_asked;     /* its box has been asked of the maker */
        uint64_t zygote_since; /* when that was */
        bool direct;           /* a call runs without it, and is not over */
        bool slow;             /* it takes so long to load that calls are started without it */
        unsigned failures;     /* of zygotes since a call has run in a box of one (zygote.h) */
        unsigned target;       /* how many to keep ready */
        unsigned taken;        /* since the last look */
        unsigned idle;         /* looks without a call */
        struct timer look, refill;
        TAILQ_ENTRY(pool) link, birth;
};

struct pools {
        struct loop *loop;
        struct watch nursery;
        TAILQ_HEAD(, pool) births; /* whose maker the nursery has not taken yet, as it is busy */
        struct cgroup_parent cgroup;
        unsigned prepared_max;
        unsigned n_unused; /* pools that nobody refers to */
        bool sweep;        /* some of them can go */
        STAILQ_HEAD(, zygote) dead;
        TAILQ_HEAD(, pool) list;
};

/* The pool for a policy as a client asks for it; a reference to it. Policies that say the same
 * share one. */
int pool_open(struct pools *pools, const struct wire_policy *policy, cbx_error *error,
              struct pool **ret_pool);
struct pool *pool_ref(struct pool *pool);
struct pool *pool_unref(struct pool *pool);

/* Is there a box for him, or are there few enough who wait for one? */
bool pool_may_take(const struct pool *pool, const struct pool_taker *taker);

/* Hand out a box, now or when there is one. `taken` or `refused` may be called before this
 * returns. */
void pool_take(struct pool *pool, struct pool_taker *taker);
void pool_abandon(struct pool *pool, struct pool_taker *taker);

/* A box that was taken and not used. */
void pool_give_back(struct pool *pool, struct prepared *prepared, struct maker_plan *plan);

/* A call is over: a good time to make new boxes. */
void pool_refill(struct pool *pool);

/* The nursery takes what it is asked for again. */
void pools_bear(struct pools *pools);

/* Free pools that nobody has asked for in a while; between two rounds of the loop. */
void pools_sweep(struct pools *pools);
void pools_close(struct pools *pools);

/* ---- Between the files of a pool: pool.c, pool_boxes.c, pools.c ---- */

#define POOL_LOOK_EVERY (2 * NSEC_PER_SEC)

void pool_look(struct timer *timer, uint64_t now); /* at how many boxes it keeps */
void pool_refill_now(struct timer *timer, uint64_t now);
void pool_close_maker(struct pool *pool);

/* A box has been made: it goes to the first who can use it, or is kept. */
void pool_take_made(struct pool *pool, struct pool_box *box);

/* See that there will be a box for each who waits. */
void pool_serve(struct pool *pool);

/* Make the group of a box, or none: one that is forked, or from which boxes are, has its own where
 * that is cheap or required. */
int pool_open_cgroup(const struct pool *pool, bool forked, struct cgroup *cgroup, cbx_error *error);

/* Ask the maker: for a box for each who waits for one that is not forked; for that of a zygote. */
void pool_ask_maker(struct pool *pool);
int pool_ask_for_zygote(struct pool *pool);

/* Get a box as far ready as it can be, and keep it, at either end of the row. */
void pool_keep_box(struct pool *pool, struct pool_box *box, bool first);
/* The oldest box that can be used; NULL: there is none. */
struct pool_box *pool_take_fit(struct pool *pool, bool fresh);
/* End boxes until so many are left. */
void pool_drop_boxes(struct pool *pool, unsigned left);
void pool_box_drop(struct pool_box *box);

#endif
