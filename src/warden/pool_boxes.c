/* SPDX-License-Identifier: MIT */
/* The boxes that wait in a pool: which of them can be used, and how far they are got ready. */
#include <poll.h>

#include "warden/pool.h"

void pool_box_drop(struct pool_box *box)
{
        box_kill(&box->prepared.box);
        prepared_free(&box->prepared);
        maker_plan_unref(box->plan);
        free(box);
}

/* The oldest box; where it has to be a fresh one, the oldest in which nothing runs. */
static struct pool_box *take_first(struct pool *pool, bool fresh)
{
        struct pool_box *box = STAILQ_FIRST(&pool->boxes);

        while (box && fresh && (box->prepared.running || box->prepared.zygote))
                box = STAILQ_NEXT(box, link);
        if (box) {
                STAILQ_REMOVE(&pool->boxes, box, pool_box, link);
                pool->n_boxes--;
        }
        return box;
}

void pool_drop_boxes(struct pool *pool, unsigned left)
{
        while (pool->n_boxes > left)
                pool_box_drop(take_first(pool, false));
}

/* A box that says something before its call, or whose init is gone, could not be made; or its
 * program was started and has not waited for its input. */
static bool is_sound(const struct pool_box *box)
{
        const struct prepared *prepared = &box->prepared;
        struct pollfd fds[2 + STREAMS] = { { .fd = prepared->box.pidfd, .events = POLLIN },
                                           { .fd = prepared->box.control, .events = POLLIN } };

        for (int i = 0; i < STREAMS; i++)
                fds[2 + i] = (struct pollfd){ .fd = prepared->running ? prepared->output[i][0] : -1,
                                              .events = POLLIN };
        return poll(fds, ARRAY_SIZE(fds), 0) == 0;
}

/* Get a box as far as it can be without a call: its streams, and the program if it is known. */
static int warm_up(struct pool *pool, struct pool_box *box)
{
        const struct wire_program *program = &pool->wanted.program;
        struct box_spec spec = { .argv = program->argv,
                                 .environment = program->environment,
                                 .directory = program->directory,
                                 .result = program->result,
                                 .limits = pool->policy->limits };

        if (box->prepared.running) /* it was given back */
                return 0;
        box_touch(&box->prepared.box);
        if (!program->argv) {
                if (prepared_open_streams(&box->prepared, &box->plan->plan, false) == 0)
                        prepared_offer(&box->prepared);
                return 0; /* else the call tries */
        }
        program_look(&pool->wanted, pool->policy, &box->prepared.files);
        return prepared_start(&box->prepared, &box->plan->plan, &spec, NULL);
}

void pool_keep_box(struct pool *pool, struct pool_box *box, bool first)
{
        if (warm_up(pool, box) < 0) {
                pool_box_drop(box);
                return;
        }
        if (first)
                STAILQ_INSERT_HEAD(&pool->boxes, box, link);
        else
                STAILQ_INSERT_TAIL(&pool->boxes, box, link);
        pool->n_boxes++;
}

/* The oldest box that can be used. What a program was started from may have been replaced. */
struct pool_box *pool_take_fit(struct pool *pool, bool fresh)
{
        struct program_files files;
        struct pool_box *box;

        if (pool->wanted.program.argv && (pool->n_boxes > 0 || pool->zygote)) {
                program_look(&pool->wanted, pool->policy, &files);
                zygote_check(pool, &files);
        }
        while ((box = take_first(pool, fresh)) &&
               (!is_sound(box) ||
                (box->prepared.running && !program_is_same(&box->prepared.files, &files))))
                pool_box_drop(box);
        return box;
}
