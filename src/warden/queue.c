/* SPDX-License-Identifier: MIT */
/*
 * The queue of a client, in which calls can be bound: at most so many with one key run at once. A
 * call whose turn it would be, but that is held by a bound, stands aside in the queue of that
 * bound, and those behind it pass. When a call of the same key is over, the first that stands aside
 * is called back to its old place. So nothing is ever searched through: each event moves a call or
 * two.
 *
 * Wherever somebody stands aside, there is a call of that key which runs or was called, and whose
 * end calls the next.
 */
#include "warden/server.h"

/* ---- Bounds ---- */

static struct bound *find_bound(struct client *client, uint64_t key)
{
        size_t row = (size_t)(hash_bytes(HASH_INIT, &key, sizeof(key)) % SERVER_BOUNDS);
        struct bound *bound = LIST_FIRST(&client->bounds[row]);

        while (bound && bound->key != key)
                bound = LIST_NEXT(bound, link);
        if (bound)
                return bound;
        bound = calloc(1, sizeof(*bound));
        if (!bound)
                return NULL;
        bound->key = key;
        TAILQ_INIT(&bound->waiting);
        LIST_INSERT_HEAD(&client->bounds[row], bound, link);
        return bound;
}

int queue_bind(struct job *job)
{
        for (int i = 0; i < WIRE_BOUNDS; i++) {
                const struct wire_bound *asked = &job->asked.bounds[i];
                struct bound *bound;

                if (asked->most == 0)
                        continue;
                bound = find_bound(job->client, asked->key);
                if (!bound)
                        return -ENOMEM;
                if (i > 0 && bound == job->bounds[0]) /* said twice: the tighter one holds */
                        continue;
                job->bounds[i] = bound;
                bound->refs++;
        }
        return 0;
}

void queue_unbind(struct job *job)
{
        for (int i = 0; i < WIRE_BOUNDS; i++) {
                struct bound *bound = job->bounds[i];

                job->bounds[i] = NULL;
                if (bound && --bound->refs == 0) {
                        LIST_REMOVE(bound, link);
                        free(bound);
                }
        }
}

static unsigned most_of(const struct job *job, const struct bound *bound)
{
        unsigned most = UINT32_MAX;

        for (int i = 0; i < WIRE_BOUNDS; i++)
                if (job->asked.bounds[i].most > 0 && job->asked.bounds[i].key == bound->key)
                        most = MIN(most, job->asked.bounds[i].most);
        return most;
}

/* The bound that keeps a job from running now, or NULL. Nobody passes one of the same key that
 * stands aside. */
static struct bound *holds(const struct job *job)
{
        for (int i = 0; i < WIRE_BOUNDS; i++) {
                struct bound *bound = job->bounds[i];
                const struct job *first = bound ? TAILQ_FIRST(&bound->waiting) : NULL;

                if (bound && (bound->running >= most_of(job, bound) ||
                              (first && first->serial < job->serial)))
                        return bound;
        }
        return NULL;
}

/* ---- Places ---- */

/* Put a job into its place. It is the oldest or the youngest, but for a few. */
static void insert(struct jobs *jobs, struct job *job)
{
        struct job *other = TAILQ_FIRST(jobs);

        if (other && job->serial < other->serial) {
                TAILQ_INSERT_BEFORE(other, job, link);
                return;
        }
        other = TAILQ_LAST(jobs, jobs);
        while (other && other->serial > job->serial)
                other = TAILQ_PREV(other, jobs, link);
        if (other)
                TAILQ_INSERT_AFTER(jobs, other, job, link);
        else
                TAILQ_INSERT_HEAD(jobs, job, link);
}

/* Call those whose turn it is back into the client's queue. */
static void call_next(struct client *client, struct bound *bound)
{
        struct job *job;

        while ((job = TAILQ_FIRST(&bound->waiting)) &&
               bound->running + bound->called < most_of(job, bound)) {
                TAILQ_REMOVE(&bound->waiting, job, link);
                job->held_by = NULL;
                job->called_by = bound;
                bound->called++;
                insert(&client->queue, job);
        }
}

/* Take a job out of whichever queue it is in. Whoever comes next there has then to be called. */
static struct bound *take_out(struct job *job)
{
        struct bound *bound = job->held_by ? job->held_by : job->called_by;

        TAILQ_REMOVE(job->held_by ? &job->held_by->waiting : &job->client->queue, job, link);
        if (job->called_by)
                job->called_by->called--;
        job->held_by = job->called_by = NULL;
        return bound;
}

/* ---- The queue ---- */

void queue_add(struct job *job)
{
        struct client *client = job->client;

        job->serial = ++client->serial;
        job->queued = true;
        TAILQ_INSERT_TAIL(&client->queue, job, link);
        client->n_queued++;
}

struct job *queue_first(struct client *client)
{
        struct bound *bound, *left;
        struct job *job;

        while ((job = TAILQ_FIRST(&client->queue)) && (bound = holds(job))) {
                left = take_out(job);
                job->held_by = bound;
                insert(&bound->waiting, job);
                if (left)
                        call_next(client, left);
        }
        return job;
}

struct job *queue_any(struct client *client)
{
        struct bound *bound;

        if (!TAILQ_EMPTY(&client->queue))
                return TAILQ_FIRST(&client->queue);
        for (size_t i = 0; client->n_queued > 0 && i < SERVER_BOUNDS; i++)
                LIST_FOREACH(bound, &client->bounds[i], link)
                {
                        if (!TAILQ_EMPTY(&bound->waiting))
                                return TAILQ_FIRST(&bound->waiting);
                }
        return NULL;
}

void queue_leave(struct job *job)
{
        struct bound *left = take_out(job);

        job->queued = false;
        job->client->n_queued--;
        if (left)
                call_next(job->client, left);
}

void queue_begin(struct job *job)
{
        for (int i = 0; i < WIRE_BOUNDS; i++)
                if (job->bounds[i])
                        job->bounds[i]->running++;
        queue_leave(job);
}

void queue_end(struct job *job)
{
        for (int i = 0; i < WIRE_BOUNDS; i++)
                if (job->bounds[i]) {
                        job->bounds[i]->running--;
                        call_next(job->client, job->bounds[i]);
                }
}
