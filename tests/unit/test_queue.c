/* SPDX-License-Identifier: MIT */
/* The queue of a client: bounds hold, order is kept where it matters, and nothing waits for ever.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "warden/server.h"

#define KEYS 3

static void open_queue(struct client *client)
{
        memset(client, 0, sizeof(*client));
        TAILQ_INIT(&client->queue);
        TAILQ_INIT(&client->running);
}

static struct job *add(struct client *client, uint64_t key, uint32_t most, uint64_t other,
                       uint32_t other_most)
{
        struct job *job = calloc(1, sizeof(*job));

        assert_non_null(job);
        job->client = client;
        job->asked.bounds[0] = (struct wire_bound){ key, most };
        job->asked.bounds[1] = (struct wire_bound){ other, other_most };
        queue_add(job);
        assert_int_equal(queue_bind(job), 0);
        return job;
}

static void forget(struct job *job)
{
        queue_unbind(job);
        free(job);
}

static void finish(struct job *job)
{
        queue_end(job);
        forget(job);
}

/* Begin the next one, which must be `expected`. */
static void begins(struct client *client, struct job *expected)
{
        struct job *job = queue_first(client);

        assert_ptr_equal(job, expected);
        if (job)
                queue_begin(job);
}

static void in_order_without_bounds(void **state)
{
        struct client client;
        struct job *jobs[5];

        (void)state;
        open_queue(&client);
        for (size_t i = 0; i < ARRAY_SIZE(jobs); i++)
                jobs[i] = add(&client, 0, 0, 0, 0);
        for (size_t i = 0; i < ARRAY_SIZE(jobs); i++)
                begins(&client, jobs[i]);
        begins(&client, NULL);
        assert_int_equal(client.n_queued, 0);
        for (size_t i = 0; i < ARRAY_SIZE(jobs); i++)
                finish(jobs[i]);
}

static void others_pass(void **state)
{
        struct client client;
        struct job *a, *b, *c, *d, *e;

        (void)state;
        open_queue(&client);
        a = add(&client, 1, 1, 0, 0);
        b = add(&client, 1, 1, 0, 0);
        c = add(&client, 2, 1, 0, 0);
        d = add(&client, 1, 1, 0, 0);
        e = add(&client, 0, 0, 0, 0);
        begins(&client, a);
        begins(&client, c);
        begins(&client, e);
        begins(&client, NULL);
        assert_int_equal(client.n_queued, 2);
        finish(a);
        begins(&client, b);
        begins(&client, NULL);
        finish(b);
        begins(&client, d);
        finish(c);
        finish(d);
        finish(e);
        assert_null(queue_any(&client));
}

/* It was there first: who comes later and is bound less must not pass. */
static void order_within_a_key(void **state)
{
        struct client client;
        struct job *a, *b, *c;

        (void)state;
        open_queue(&client);
        a = add(&client, 7, 1, 0, 0);
        b = add(&client, 7, 1, 0, 0);
        c = add(&client, 7, 9, 0, 0);
        begins(&client, a);
        begins(&client, NULL);
        finish(a);
        begins(&client, b);
        begins(&client, c);
        finish(b);
        finish(c);
}

static void two_bounds(void **state)
{
        struct client client;
        struct job *a, *b, *both, *later;

        (void)state;
        open_queue(&client);
        a = add(&client, 1, 1, 0, 0);
        b = add(&client, 2, 1, 0, 0);
        both = add(&client, 1, 1, 2, 1);
        later = add(&client, 1, 1, 0, 0);
        begins(&client, a);
        begins(&client, b);
        begins(&client, NULL);
        finish(a); /* `both` has its turn of the one and waits for the other: `later` passes */
        begins(&client, later);
        finish(b);
        begins(&client, NULL);
        finish(later);
        begins(&client, both);
        finish(both);
        assert_int_equal(client.n_queued, 0);
}

static void the_same_twice(void **state)
{
        struct client client;
        struct job *a, *b, *c;

        (void)state;
        open_queue(&client);
        a = add(&client, 1, 4, 1, 2);
        b = add(&client, 1, 4, 1, 2);
        c = add(&client, 1, 4, 1, 2);
        begins(&client, a);
        begins(&client, b);
        begins(&client, NULL);
        finish(a);
        begins(&client, c);
        finish(b);
        finish(c);
}

static void cancelled_while_aside(void **state)
{
        struct client client;
        struct job *a, *b, *c;

        (void)state;
        open_queue(&client);
        a = add(&client, 1, 1, 0, 0);
        b = add(&client, 1, 1, 0, 0);
        c = add(&client, 1, 1, 0, 0);
        begins(&client, a);
        begins(&client, NULL);
        queue_leave(b);
        forget(b);
        finish(a); /* `c` is called; it goes before it has begun */
        queue_leave(c);
        forget(c);
        a = add(&client, 1, 1, 0, 0);
        begins(&client, a);
        finish(a);
        assert_int_equal(client.n_queued, 0);
        assert_null(queue_any(&client));
}

/* ---- At random ---- */

struct world {
        struct client client;
        struct job *jobs[256]; /* whatever is there; NULL: nothing */
        unsigned running[KEYS];
        uint64_t begun[KEYS * KEYS]; /* the last serial of each pair of keys */
        uint64_t seed;
        bool uneven; /* the same key with different bounds */
};

static unsigned roll(struct world *world, unsigned n)
{
        world->seed = world->seed * 6364136223846793005ULL + 1442695040888963407ULL;
        return (unsigned)(world->seed >> 33) % n;
}

static void count(struct world *world, const struct job *job, int by)
{
        for (int i = 0; i < WIRE_BOUNDS; i++)
                if (job->asked.bounds[i].most > 0 && (i == 0 || job->bounds[0] != job->bounds[1]))
                        world->running[job->asked.bounds[i].key] += (unsigned)by;
}

static void add_some(struct world *world, size_t slot)
{
        uint64_t first = roll(world, KEYS), second = roll(world, KEYS);
        uint32_t most = 1 + (uint32_t)first + (world->uneven ? roll(world, 3) : 0);
        uint32_t other = 1 + (uint32_t)second + (world->uneven ? roll(world, 3) : 0);

        world->jobs[slot] = add(&world->client, first, roll(world, 4) ? most : 0, second,
                                roll(world, 2) && second != first ? other : 0);
}

static void begin_some(struct world *world)
{
        struct job *job = queue_first(&world->client);
        struct wire_bound *bounds = job ? job->asked.bounds : NULL;

        if (!job)
                return;
        for (int i = 0; i < WIRE_BOUNDS; i++)
                assert_true(bounds[i].most == 0 || world->running[bounds[i].key] < bounds[i].most);
        /* Of those that are bound in the same way the oldest comes first. */
        if (!world->uneven && bounds[0].most > 0 && bounds[1].most > 0) {
                uint64_t *last = &world->begun[bounds[0].key * KEYS + bounds[1].key];

                assert_true(job->serial > *last);
                *last = job->serial;
        }
        queue_begin(job);
        count(world, job, 1);
}

static void end_some(struct world *world, size_t slot)
{
        struct job *job = world->jobs[slot];

        world->jobs[slot] = NULL;
        if (job->queued) {
                queue_leave(job);
                forget(job);
        } else {
                count(world, job, -1);
                finish(job);
        }
}

/* With nothing running, the first of a queue can always run. */
static void drain(struct world *world)
{
        for (size_t i = 0; i < ARRAY_SIZE(world->jobs); i++)
                if (world->jobs[i] && !world->jobs[i]->queued)
                        end_some(world, i);
        while (world->client.n_queued > 0) {
                struct job *job = queue_first(&world->client);

                assert_non_null(job);
                queue_begin(job);
                count(world, job, 1);
                for (size_t i = 0; i < ARRAY_SIZE(world->jobs); i++)
                        if (world->jobs[i] == job)
                                end_some(world, i);
        }
        assert_null(queue_any(&world->client));
}

static void at_random(void **state)
{
        static struct world world;

        (void)state;
        for (uint64_t round = 0; round < 400; round++) {
                memset(&world, 0, sizeof(world));
                open_queue(&world.client);
                world.seed = round;
                world.uneven = round % 2;
                for (unsigned step = 0; step < 2000; step++) {
                        size_t slot = roll(&world, ARRAY_SIZE(world.jobs));

                        if (roll(&world, 3) > 0)
                                begin_some(&world);
                        else if (!world.jobs[slot])
                                add_some(&world, slot);
                        else if (!world.jobs[slot]->queued || roll(&world, 4) == 0)
                                end_some(&world, slot);
                }
                drain(&world);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(in_order_without_bounds),
                cmocka_unit_test(others_pass),
                cmocka_unit_test(order_within_a_key),
                cmocka_unit_test(two_bounds),
                cmocka_unit_test(the_same_twice),
                cmocka_unit_test(cancelled_while_aside),
                cmocka_unit_test(at_random),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
