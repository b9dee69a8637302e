/* SPDX-License-Identifier: MIT */
#include "warden/zygote.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "warden/pool.h"
#include "warden/report.h"

#define LOAD_WAIT (NSEC_PER_SEC / 4)    /* for which callers wait until it has loaded */
#define LOAD_LIMIT (120 * NSEC_PER_SEC) /* after which it is given up */
#define FORK_LIMIT (5 * NSEC_PER_SEC)   /* to fork a box */

struct zygote {
        unsigned refs; /* of its pool, and of boxes that were forked from it */
        struct pools *pools;
        struct pool *pool;   /* NULL: left */
        struct prepared box; /* its own */
        struct maker_plan *plan;
        struct watch socket;
        struct timer patience;
        bool ready;
        bool forked; /* it has forked a box */
        STAILQ_HEAD(, pool_box) asked;
        unsigned n_asked;
        STAILQ_ENTRY(zygote) link;
};

/* ---- The end ---- */

struct zygote *zygote_unref(struct zygote *zygote)
{
        if (!zygote || --zygote->refs > 0)
                return NULL;
        box_kill(&zygote->box.box);
        base_close(zygote->socket.fd);
        prepared_free(&zygote->box);
        maker_plan_unref(zygote->plan);
        STAILQ_INSERT_TAIL(&zygote->pools->dead, zygote, link);
        return NULL;
}

void zygotes_sweep(struct pools *pools)
{
        struct zygote *zygote;

        while ((zygote = STAILQ_FIRST(&pools->dead))) {
                STAILQ_REMOVE_HEAD(&pools->dead, link);
                free(zygote);
        }
}

void zygote_leave(struct pool *pool)
{
        struct zygote *zygote = TAKE_PTR(pool->zygote);
        struct pool_box *box;

        if (!zygote)
                return;
        loop_unwatch(pool->pools->loop, &zygote->socket);
        loop_remove_timer(pool->pools->loop, &zygote->patience);
        zygote->pool = NULL;
        while ((box = STAILQ_FIRST(&zygote->asked))) {
                STAILQ_REMOVE_HEAD(&zygote->asked, link);
                pool_box_drop(box);
        }
        pool->slow = false;
        pool_drop_boxes(pool, 0);
        zygote_unref(zygote);
}

bool zygote_is_ready(const struct zygote *zygote)
{
        return zygote && zygote->ready;
}

void zygote_check(struct pool *pool, const struct program_files *files)
{
        if (pool->zygote && !program_is_same(&pool->zygote->box.files, files))
                zygote_leave(pool);
}

/* It is of no use. Whoever waits for it gets another; or, after a few, a box in which the program
 * is started anew. */
static void give_up(struct pool *pool)
{
        pool->failures++;
        zygote_leave(pool);
        pool_serve(pool);
}

static void out_of_patience(struct timer *timer, uint64_t now)
{
        struct zygote *zygote = timer->owner;
        struct pool *pool = zygote->pool;

        if (zygote->ready || pool->slow) {
                give_up(pool);
                return;
        }
        pool->slow = true;
        loop_set_timer(pool->pools->loop, timer, now + LOAD_LIMIT);
        pool_ask_maker(pool);
}

void zygote_judge(struct zygote *zygote, bool sense, bool ran)
{
        struct pool *pool = zygote->pool;

        if (!pool)
                return;
        pool->failures = sense && ran ? 0 : pool->failures + 1;
        if (!sense) /* nothing honest does that */
                pool->failures = ZYGOTE_FAILURES_MAX;
        if (pool->failures >= ZYGOTE_FAILURES_MAX) {
                zygote_leave(pool);
                pool_serve(pool);
        }
}

/* ---- Boxes ---- */

/* The page is shared with a stranger, who must not be able to take it away. */
static int open_page(void)
{
        _cleanup_fd_ int page = memfd_create("callbox", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        if (page < 0 || ftruncate(page, sizeof(struct box_page)) < 0 ||
            fcntl(page, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
                return -errno;
        return TAKE_FD(page);
}

static int order(struct zygote *zygote, struct pool_box *box)
{
        struct box_ends ends = BOX_ENDS_INIT;
        /* Calls come faster than boxes are made: this one will be used as soon as it is there. */
        bool hurry = zygote->pool->n_boxes == 0 && zygote->forked;
        _cleanup_fd_ int page = open_page();
        int r = page < 0 ? page : 0;

        if (r == 0)
                r = pool_open_cgroup(zygote->pool, true, &box->prepared.cgroup, NULL);
        if (r == 0)
                r = guarantees_check(
                        zygote->pool->policy,
                        plan_basis(&zygote->plan->plan, cgroup_means(&box->prepared.cgroup)), NULL);
        if (r == 0)
                r = box_open(&box->prepared.box, &zygote->plan->plan, page, &ends, NULL);
        if (r == 0)
                box->prepared.box.page->mark = zygote->plan->plan.loading_mark;
        if (r == 0)
                r = wire_send(zygote->socket.fd, WIRE_MAKE, &(struct iovec){ &hurry, 1 }, hurry,
                              (int[]){ [ZYGOTE_PAGE] = page,
                                       [ZYGOTE_CONTROL] = ends.control,
                                       [ZYGOTE_START] = ends.start },
                              3, MSG_DONTWAIT);
        base_close(ends.control);
        base_close(ends.start);
        return r;
}

static int ask(struct zygote *zygote)
{
        struct pool_box *box = calloc(1, sizeof(*box));
        int r;

        if (!box)
                return -ENOMEM;
        box->prepared = (struct prepared)PREPARED_INIT;
        r = order(zygote, box);
        if (r < 0) {
                pool_box_drop(box);
                return r;
        }
        STAILQ_INSERT_TAIL(&zygote->asked, box, link);
        if (zygote->n_asked++ == 0)
                loop_set_timer(zygote->pools->loop, &zygote->patience, time_now() + FORK_LIMIT);
        return 0;
}

int zygote_refill(struct pool *pool)
{
        struct zygote *zygote = pool->zygote;
        unsigned wanted = pool->target + pool->n_takers - pool->n_fresh;
        int r = 0;

        if (!zygote)
                return pool->n_boxes < wanted ? pool_ask_for_zygote(pool) : 0;
        while (r == 0 && zygote->ready && pool->n_boxes + zygote->n_asked < wanted)
                r = ask(zygote);
        return zygote->n_asked > 0 ? 0 : r;
}

static int take_box(struct zygote *zygote, struct wire_message *message)
{
        struct pool_box *box = STAILQ_FIRST(&zygote->asked);
        struct unpack unpack = UNPACK_INIT(message->body, message->length);
        uint64_t code = unpack_number(&unpack);
        int r;

        if (!box)
                return -EPROTO;
        STAILQ_REMOVE_HEAD(&zygote->asked, link);
        zygote->n_asked--;
        loop_set_timer(zygote->pools->loop, &zygote->patience,
                       zygote->n_asked > 0 ? time_now() + FORK_LIMIT : LOOP_NEVER);
        r = code == 0 && unpack_is_whole(&unpack) && message->fds[0] >= 0 ? 0 : -EPROTO;
        if (r == 0)
                r = box_check_forked(message->fds[0], zygote->box.box.pidfd);
        if (r == 0)
                r = cgroup_adopt(&box->prepared.cgroup, message->fds[0]);
        if (r == 0)
                r = box_adopt(&box->prepared.box, message->fds[0]);
        if (r < 0) {
                pool_box_drop(box);
                return r;
        }
        (void)TAKE_FD(message->fds[0]);
        zygote->refs++;
        zygote->forked = true;
        box->prepared.zygote = zygote;
        box->prepared.files = zygote->box.files;
        box->plan = maker_plan_ref(zygote->plan);
        pool_take_made(zygote->pool, box);
        return 0;
}

/* ---- What it says ---- */

static void hear(struct watch *watch, uint32_t events)
{
        static struct wire_room room;
        struct zygote *zygote = watch->owner;
        struct pool *pool = zygote->pool;
        _cleanup_message_ struct wire_message message = WIRE_MESSAGE_INIT;
        int r;

        (void)events;
        r = wire_receive(watch->fd, &room, 0, MSG_DONTWAIT, &message);
        if (r == -EAGAIN)
                return;
        r = r > 0 ? 0 : -EPIPE;
        if (r == 0 && message.type == WIRE_READY && !zygote->ready) {
                zygote->ready = true;
                pool->slow = false;
                box_loaded(&zygote->box.box);
                loop_set_timer(pool->pools->loop, &zygote->patience, LOOP_NEVER);
                r = zygote_refill(pool);
        } else if (r == 0 && message.type == WIRE_BOX && zygote->ready) {
                r = take_box(zygote, &message);
        } else if (r == 0 && message.type == WIRE_FORGET && zygote->forked) {
                r = -ESTALE; /* the next one will be as it should */
        } else {
                r = -EPROTO;
        }
        if (r < 0)
                give_up(pool);
}

/* ---- The beginning ---- */

static int start_program(struct zygote *zygote, const struct pool *pool, int socket)
{
        const struct wire_program *program = &pool->wanted.program;
        struct box_spec spec = { .argv = program->argv,
                                 .environment = program->environment,
                                 .directory = program->directory,
                                 .zygote = true,
                                 .limits = pool->policy->limits };
        _cleanup_fd_ int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

        if (nothing < 0)
                return -errno;
        program_look(&pool->wanted, pool->policy, &zygote->box.files);
        return box_start(&zygote->box.box, &spec, (int[]){ nothing, nothing, nothing, socket },
                         NULL);
}

static int begin(struct zygote *zygote, struct pool *pool)
{
        struct iovec plan = { (void *)zygote->plan->forks, zygote->plan->forks_length };
        _cleanup_fd_ int theirs = -1;
        int pair[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        zygote->socket.fd = pair[0];
        theirs = pair[1];
        r = start_program(zygote, pool, theirs);
        if (r == 0)
                r = wire_send(zygote->socket.fd, WIRE_PLAN, &plan, 1, NULL, 0, MSG_DONTWAIT);
        if (r == 0)
                r = loop_watch(pool->pools->loop, &zygote->socket, EPOLLIN);
        if (r == 0)
                r = loop_add_timer(pool->pools->loop, &zygote->patience);
        if (r == 0)
                loop_set_timer(pool->pools->loop, &zygote->patience, time_now() + LOAD_WAIT);
        return r;
}

void zygote_start(struct pool *pool, struct pool_box *box)
{
        struct zygote *zygote = calloc(1, sizeof(*zygote));
        int r = zygote ? 0 : -ENOMEM;

        if (zygote) {
                *zygote = (struct zygote){ .refs = 1,
                                           .pools = pool->pools,
                                           .pool = pool,
                                           .box = box->prepared,
                                           .plan = maker_plan_ref(pool->plan),
                                           .socket = { .fd = -1, .ready = hear, .owner = zygote },
                                           .patience = { .expired = out_of_patience,
                                                         .owner = zygote } };
                STAILQ_INIT(&zygote->asked);
                box->prepared = (struct prepared)PREPARED_INIT;
                pool->zygote = zygote;
                r = begin(zygote, pool);
        }
        pool_box_drop(box);
        if (r < 0)
                give_up(pool);
}
