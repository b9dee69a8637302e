/* SPDX-License-Identifier: MIT */
#include "warden/pool.h"

#include <malloc.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "warden/report.h"

#define FIRST_TARGET 2
#define STARTING_MAX 8 /* who wait for a box; others wait their turn */
#define REFILL_AFTER (2 * NSEC_PER_MSEC)
#define ZYGOTE_AFTER (50 * NSEC_PER_MSEC) /* a first call, which would contend with it */
#define ZYGOTE_YOUNG (40 * NSEC_PER_MSEC) /* it will take longer than a call without it */
#define IDLE_MAX 30                       /* looks without a call until the maker may go */

/* ---- The maker ---- */

static void hear(struct watch *watch, uint32_t events);

/* No longer among those for whom the nursery is to be asked. */
static void end_birth(struct pool *pool)
{
        if (pool->unborn >= 0)
                TAILQ_REMOVE(&pool->pools->births, pool, birth);
        pool->unborn = base_close(pool->unborn);
}

/* Has the nursery died? That is an event, which ends the warden and says so to everyone; others may
 * come before it. */
static bool is_orphaned(const struct pools *pools)
{
        struct pollfd nursery = { .fd = pools->nursery.fd, .events = POLLIN };

        return poll(&nursery, 1, 0) > 0;
}

/* Ask for the makers that nobody has asked for yet. Many may be wanted at once, each with a policy
 * of its own; the warden does not wait until the nursery has forked them. Returns why the one of
 * `asking` cannot be had; that of another shows as its death. */
static int bear(struct pools *pools, const struct pool *asking)
{
        struct pool *pool;
        int r = 0, refused = 0;

        while (r != -EAGAIN && (pool = TAILQ_FIRST(&pools->births))) {
                struct wire_policy policy = pool->wanted;

                /* Inits are copies of their maker. */
                policy.program = (struct wire_program){ .forks = policy.program.forks };
                r = nursery_ask(pools->nursery.fd, &policy, pool->unborn);
                if (r < 0 && is_orphaned(pools))
                        return 0;
                if (r == -EAGAIN)
                        continue;
                end_birth(pool);
                if (pool == asking)
                        refused = r;
        }
        if (pools->nursery.events)
                (void)loop_watch(pools->loop, &pools->nursery,
                                 TAILQ_EMPTY(&pools->births) ? EPOLLIN : EPOLLIN | EPOLLOUT);
        return refused;
}

void pools_bear(struct pools *pools)
{
        (void)bear(pools, NULL);
}

static int open_maker(struct pool *pool, cbx_error *error)
{
        int pair[2], r;

        r = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ? -errno : 0;
        if (r == 0) {
                pool->maker = (struct watch){ .fd = pair[0], .ready = hear, .owner = pool };
                pool->unborn = pair[1];
                pool->proven = false;
                TAILQ_INSERT_TAIL(&pool->pools->births, pool, birth);
                r = loop_watch(pool->pools->loop, &pool->maker, EPOLLIN);
                if (r == 0)
                        r = bear(pool->pools, pool);
                if (r < 0) { /* one that is not heard would be waited for, for ever */
                        loop_unwatch(pool->pools->loop, &pool->maker);
                        pool->maker.fd = base_close(pool->maker.fd);
                        end_birth(pool);
                }
        }
        if (r < 0)
                return error_set(error, r, "", "cannot start a maker of boxes: %s", strerror(-r));
        return 0;
}

void pool_close_maker(struct pool *pool)
{
        struct pool_box *box;

        loop_unwatch(pool->pools->loop, &pool->maker);
        pool->maker.fd = base_close(pool->maker.fd);
        end_birth(pool);
        while ((box = STAILQ_FIRST(&pool->asked))) {
                STAILQ_REMOVE_HEAD(&pool->asked, link);
                pool_box_drop(box);
        }
        pool->n_asked = 0;
        pool->zygote_asked = false;
        pool->failures = 0;
        zygote_leave(pool);
        pool->plan = maker_plan_unref(pool->plan);
}

/* To move what was forked into a group of version 1 takes an eighth of its call. */
int pool_open_cgroup(const struct pool *pool, bool forked, struct cgroup *cgroup, cbx_error *error)
{
        struct cgroup_parent *parent = &pool->pools->cgroup;

        bool ahead = !forked && pool->pools->prepared_max > 0;

        if (parent->v1 && !ahead && !guarantees_need_cgroup(pool->policy))
                return 0;
        return cgroup_open(cgroup, parent, &pool->policy->limits, error);
}

static int ask_for_box(struct pool *pool, bool zygote, cbx_error *error)
{
        struct pool_box *box = calloc(1, sizeof(*box));
        int r = 0;

        if (!box)
                return error_oom(error);
        box->prepared = (struct prepared)PREPARED_INIT;
        box->zygote = zygote;
        r = pool_open_cgroup(pool, zygote, &box->prepared.cgroup, error);
        if (r == 0 && pool->maker.fd < 0)
                r = open_maker(pool, error);
        if (r == 0) {
                r = wire_send(pool->maker.fd, WIRE_MAKE, &(struct iovec){ &box->zygote, 1 }, zygote,
                              &box->prepared.cgroup.fd, box->prepared.cgroup.fd >= 0, MSG_DONTWAIT);
                /* A maker that is gone has left a word that says why, or will be missed. */
                if (r == -EPIPE || r == -ECONNRESET)
                        r = 0;
                if (r < 0)
                        error_set(error, r, "", "the maker of boxes does not hear: %s",
                                  strerror(-r));
        }
        if (r < 0) {
                pool_box_drop(box);
                return r;
        }
        STAILQ_INSERT_TAIL(&pool->asked, box, link);
        pool->n_asked += !zygote;
        return 0;
}

/* What the filter of a zygote refuses, a tracer could let pass (policy/syscalls_build.c). */
static bool may_trace(const cbx_policy *policy)
{
        for (char *const *name = policy->syscalls_allow; name && *name; name++)
                if (strcmp(*name, "ptrace") == 0)
                        return true;
        return false;
}

/* Are boxes forked for all but those who need one in which nothing has been started? */
static bool is_forking(const struct pool *pool)
{
        return pool->wanted.program.forks && pool->failures < ZYGOTE_FAILURES_MAX &&
               !may_trace(pool->policy) &&
               !(pool->plan && (pool->plan->plan.remote || pool->plan->forks_length == 0));
}

int pool_ask_for_zygote(struct pool *pool)
{
        int r = pool->zygote_asked ? 0 : ask_for_box(pool, true, NULL);

        if (r == 0 && !pool->zygote_asked)
                pool->zygote_since = time_now();
        pool->zygote_asked = r == 0;
        return r;
}

/* Is the host as it was when the plan was made, as far as one may look without waiting? What comes
 * to be under a protected name init keeps; a zygote has no such init once it has loaded. */
static bool shows_host(const struct pool *pool, bool zygote)
{
        return !pool->plan || pool->plan->plan.remote ||
               plan_facts_hold(pool->plan->plan.facts, pool->plan->plan.n_facts, zygote);
}

/* The host is not as it was when the plan was made: nothing that was made or asked for may be used,
 * neither what is here nor what is on its way. The maker finds out by itself. */
static void outdate(struct pool *pool)
{
        struct pool_box *box;

        zygote_leave(pool);
        pool_drop_boxes(pool, 0);
        STAILQ_FOREACH(box, &pool->asked, link)
        {
                box->outdated = true;
        }
        pool->n_asked = 0;
        pool->zygote_asked = false;
}

/* ---- Takers ---- */

/* The first who waits; a box that was forked does not do for everyone. */
static struct pool_taker *next_taker(struct pool *pool, bool forked)
{
        struct pool_taker *taker = TAILQ_FIRST(&pool->takers);

        while (taker && forked && taker->fresh)
                taker = TAILQ_NEXT(taker, link);
        if (taker)
                pool_abandon(pool, taker);
        return taker;
}

void pool_abandon(struct pool *pool, struct pool_taker *taker)
{
        if (!taker->waiting)
                return;
        TAILQ_REMOVE(&pool->takers, taker, link);
        taker->waiting = false;
        pool->n_takers--;
        pool->n_fresh -= taker->fresh;
        pool->n_direct -= taker->direct;
}

static void refuse_all(struct pool *pool, const cbx_error *error)
{
        struct pool_taker *taker;

        pool->target = 0;
        while ((taker = next_taker(pool, false)))
                taker->refused(taker, error);
}

/* The last who waits for a box of the maker's; `few`: others have theirs from a zygote. */
static struct pool_taker *last_taker(const struct pool *pool, bool few)
{
        struct pool_taker *taker = TAILQ_LAST(&pool->takers, pool_takers);

        while (few && !taker->fresh && !taker->direct)
                taker = TAILQ_PREV(taker, pool_takers, link);
        return taker;
}

/* One for each who waits for it: those that were asked for earlier may not be usable. Nobody is
 * left to wait for one that nobody was asked for. */
void pool_ask_maker(struct pool *pool)
{
        bool few = is_forking(pool) && !pool->slow;

        while (pool->n_asked < (few ? pool->n_fresh + pool->n_direct : pool->n_takers)) {
                cbx_error error = CBX_ERROR_INIT;
                struct pool_taker *taker;

                if (ask_for_box(pool, false, &error) == 0)
                        continue;
                taker = last_taker(pool, few);
                pool_abandon(pool, taker);
                taker->refused(taker, &error);
        }
}

static void hand_out(struct pool_box *box, struct pool_taker *taker)
{
        taker->taken(taker, &box->prepared, TAKE_PTR(box->plan));
        prepared_free(&box->prepared); /* what was not taken over: nothing */
        free(box);
}

void pool_serve(struct pool *pool)
{
        if (is_forking(pool) && pool->n_takers > pool->n_fresh + pool->n_direct &&
            zygote_refill(pool) < 0)
                pool->failures = ZYGOTE_FAILURES_MAX;
        pool_ask_maker(pool);
}

/* The first call does not wait until a zygote has loaded its program, which takes longer than to
 * start it; nor does one that comes when the zygote has just been started. One at a time: many
 * would load it as often. */
static bool is_direct(const struct pool *pool, const struct pool_taker *taker)
{
        return pool->wanted.program.later && is_forking(pool) && !taker->fresh && !pool->direct &&
               !zygote_is_ready(pool->zygote) &&
               (!(pool->zygote || pool->zygote_asked) ||
                time_now() - pool->zygote_since < ZYGOTE_YOUNG);
}

static void go_directly(struct pool *pool, struct pool_taker *taker)
{
        taker->direct = pool->direct = true;
        pool->n_direct++;
        if (pool->refill.at == LOOP_NEVER)
                loop_set_timer(pool->pools->loop, &pool->refill, time_now() + ZYGOTE_AFTER);
}

/* A box in which a program was started ahead does not do for everyone. */
bool pool_may_take(const struct pool *pool, const struct pool_taker *taker)
{
        return pool->n_takers < STARTING_MAX ||
               (pool->n_boxes > 0 && !(taker->fresh && pool->wanted.program.argv));
}

void pool_take(struct pool *pool, struct pool_taker *taker)
{
        struct pool_box *box;

        pool->taken++;
        pool->idle = 0;
        if (!shows_host(pool, false))
                outdate(pool);
        box = pool_take_fit(pool, taker->fresh);
        if (box) {
                hand_out(box, taker);
                return;
        }
        /* Without a box there is nothing that takes long to make. */
        if (!pool->wanted.unboxed && (!taker->fresh || !pool->wanted.program.argv))
                pool->target = MIN(MAX(pool->target * 2, FIRST_TARGET), pool->pools->prepared_max);
        taker->waiting = true;
        TAILQ_INSERT_TAIL(&pool->takers, taker, link);
        pool->n_takers++;
        pool->n_fresh += taker->fresh;
        if (is_direct(pool, taker))
                go_directly(pool, taker);
        pool_serve(pool);
}

void pool_give_back(struct pool *pool, struct prepared *prepared, struct maker_plan *plan)
{
        struct pool_box *box = plan->plan.remote ? NULL : calloc(1, sizeof(*box));

        if (!box) {
                box_kill(&prepared->box);
                return; /* whoever holds it frees it */
        }
        box->prepared = *prepared;
        *prepared = (struct prepared)PREPARED_INIT;
        box->plan = maker_plan_ref(plan);
        pool_keep_box(pool, box, true);
}

static void refill(struct pool *pool)
{
        /* The warden must not wait for a file system, so it cannot tell whether a box that shows a
         * remote one is still good: those are made when they are asked for. */
        if (pool->plan && pool->plan->plan.remote)
                return;
        if (is_forking(pool)) {
                (void)zygote_refill(pool);
                return;
        }
        while (pool->maker.fd >= 0 && pool->n_boxes + pool->n_asked < pool->target + pool->n_takers)
                if (ask_for_box(pool, false, NULL) < 0)
                        return;
}

void pool_refill_now(struct timer *timer, uint64_t now)
{
        (void)now;
        refill(timer->owner);
}

/* Whoever got an answer just now has something to do with it: making boxes can wait a little. */
void pool_refill(struct pool *pool)
{
        uint64_t at = time_now() + REFILL_AFTER;

        pool->direct = false;
        if (pool->n_boxes < (pool->target + 1) / 2 && (pool->zygote || !is_forking(pool)))
                refill(pool);
        else if (pool->n_boxes + pool->n_asked < pool->target && pool->refill.at > at)
                loop_set_timer(pool->pools->loop, &pool->refill, at);
}

/* ---- What the maker says ---- */

static void take_plan(struct pool *pool, struct wire_message *message)
{
        cbx_error error = CBX_ERROR_INIT;
        struct maker_plan *plan;

        if (maker_unpack_plan(message, pool->policy, &error, &plan) < 0) {
                pool_close_maker(pool);
                pool_drop_boxes(pool, 0);
                refuse_all(pool, &error);
                return;
        }
        if (pool->plan) { /* the host has changed: what was made before shows what was */
                zygote_leave(pool);
                pool_drop_boxes(pool, 0);
        }
        maker_plan_unref(pool->plan);
        pool->plan = plan;
        if (pool->n_takers > 0) /* for boxes of a zygote that was left, or may not be one now */
                pool_serve(pool);
}

void pool_take_made(struct pool *pool, struct pool_box *box)
{
        struct pool_taker *taker = next_taker(pool, box->prepared.zygote);

        if (taker)
                hand_out(box, taker);
        else if (box->plan->plan.remote) /* whoever asked for it has gone */
                pool_box_drop(box);
        else
                pool_keep_box(pool, box, false);
        /* Whoever got it may not be the one for whom it was asked. */
        pool_ask_maker(pool);
}

/* There is no such box. */
static void refuse_one(struct pool *pool, struct pool_box *box, const cbx_error *error)
{
        struct pool_taker *taker = next_taker(pool, box->zygote);

        pool_box_drop(box);
        pool->target = 0; /* until somebody asks again */
        if (taker)
                taker->refused(taker, error);
        /* A zygote is one for all who wait, and any other box may have been another's. */
        pool_serve(pool);
}

static void take_box(struct pool *pool, struct wire_message *message)
{
        struct pool_box *box = STAILQ_FIRST(&pool->asked);
        cbx_error error = CBX_ERROR_INIT;
        int r = -EPROTO;

        if (!box || !pool->plan)
                return;
        STAILQ_REMOVE_HEAD(&pool->asked, link);
        pool->n_asked -= !box->outdated && !box->zygote;
        pool->zygote_asked &= box->outdated || !box->zygote;
        r = maker_unpack_box(message, &pool->plan->plan, &box->prepared.box, &error);
        if (r == 0)
                r = guarantees_check(
                        pool->policy,
                        plan_basis(&pool->plan->plan, cgroup_means(&box->prepared.cgroup)), &error);
        if (box->outdated) {
                pool_box_drop(box);
                return;
        }
        if (r < 0) {
                refuse_one(pool, box, &error);
                return;
        }
        pool->proven = true;
        if (box->zygote && !is_forking(pool)) { /* as the plan has shown since it was asked for */
                pool_box_drop(box);
                pool_serve(pool);
                return;
        }
        if (box->zygote) {
                zygote_start(pool, box);
                return;
        }
        box->plan = maker_plan_ref(pool->plan);
        pool_take_made(pool, box);
}

/* The maker is gone. If it was ever of use, those who wait get another; where none can be had, they
 * will be told. */
static void lose_maker(struct pool *pool)
{
        cbx_error error = CBX_ERROR_INIT;
        bool proven = pool->proven;

        pool_close_maker(pool);
        pool_drop_boxes(pool, 0);
        if (is_orphaned(pool->pools))
                return;
        if (proven) {
                pool_serve(pool);
                return;
        }
        error_set(&error, -EPIPE, "maker", "the process that makes boxes has died");
        refuse_all(pool, &error);
}

static void hear(struct watch *watch, uint32_t events)
{
        static struct wire_room room;
        struct pool *pool = watch->owner;
        _cleanup_message_ struct wire_message message = WIRE_MESSAGE_INIT;
        int r;

        (void)events;
        r = wire_receive(watch->fd, &room, SIZE_MAX, MSG_DONTWAIT, &message);
        if (r == -EAGAIN)
                return;
        if (r > 0 && message.type == WIRE_PLAN)
                take_plan(pool, &message);
        else if (r > 0 && message.type == WIRE_BOX)
                take_box(pool, &message);
        else
                lose_maker(pool);
}

/* ---- Size ---- */

/* Without calls a pool halves at each look, and after a while its maker goes as well. A zygote has
 * nobody who keeps it from what the host has replaced, or made, since its box was: it is not left
 * there until the next call. */
void pool_look(struct timer *timer, uint64_t now)
{
        struct pool *pool = timer->owner;

        if (pool->zygote && !shows_host(pool, true))
                outdate(pool);
        if (pool->taken == 0) {
                pool->target /= 2;
                pool_drop_boxes(pool, pool->target);
                if (pool->idle == 0)
                        (void)malloc_trim(0); /* what many calls at once have needed */
                if (++pool->idle >= IDLE_MAX && pool->n_takers == 0 && pool->n_asked == 0) {
                        pool_close_maker(pool);
                        pool->pools->sweep = true;
                }
        }
        pool->taken = 0;
        loop_set_timer(pool->pools->loop, timer, now + POOL_LOOK_EVERY);
}
