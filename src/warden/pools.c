/* SPDX-License-Identifier: MIT */
/* The pools of a warden: one per policy in use, and how long they are kept. */
#include <string.h>

#include "warden/pool.h"

#define UNUSED_MAX 32 /* pools that are kept though nobody refers to them */

static struct pool *find(const struct pools *pools, const char *key, size_t length, uint64_t hash)
{
        struct pool *pool;

        TAILQ_FOREACH(pool, &pools->list, link)
        {
                if (pool->hash == hash && pool->key_length == length &&
                    memcmp(pool->key, key, length) == 0)
                        return pool;
        }
        return NULL;
}

static void pool_free(struct pool *pool)
{
        pool_close_maker(pool);
        pool_drop_boxes(pool, 0);
        loop_remove_timer(pool->pools->loop, &pool->look);
        loop_remove_timer(pool->pools->loop, &pool->refill);
        TAILQ_REMOVE(&pool->pools->list, pool, link);
        cbx_policy_unref(pool->policy);
        wire_policy_free(&pool->wanted);
        free(pool->key);
        free(pool);
}

int pool_open(struct pools *pools, const struct wire_policy *policy, cbx_error *error,
              struct pool **ret_pool)
{
        _cleanup_pack_ struct pack key = PACK_INIT;
        _cleanup_policy_ cbx_policy *parsed = NULL;
        struct wire_policy nameless = *policy;
        struct unpack unpack;
        struct pool *pool;
        uint64_t hash;
        int r;

        nameless.id = 0;
        wire_pack_policy(&key, &nameless);
        if (key.failed)
                return error_oom(error);
        hash = hash_bytes(HASH_INIT, key.buffer.data, key.buffer.length);
        pool = find(pools, key.buffer.data, key.buffer.length, hash);
        if (pool) {
                TAILQ_REMOVE(&pools->list, pool, link);
                TAILQ_INSERT_TAIL(&pools->list, pool, link);
                *ret_pool = pool_ref(pool);
                return 0;
        }
        r = policy_from_text(policy->text, policy->length, error, &parsed);
        if (r == 0 && wire_take_pins(policy, parsed) < 0)
                r = error_oom(error);
        if (r < 0)
                return r;
        pool = calloc(1, sizeof(*pool));
        if (!pool)
                return error_oom(error);
        *pool = (struct pool){ .pools = pools,
                               .refs = 1,
                               .key = TAKE_PTR(key.buffer.data),
                               .key_length = key.buffer.length,
                               .hash = hash,
                               .policy = TAKE_PTR(parsed),
                               .maker = { .fd = -1 },
                               .unborn = -1,
                               .look = { .expired = pool_look, .owner = pool },
                               .refill = { .expired = pool_refill_now, .owner = pool } };
        STAILQ_INIT(&pool->boxes);
        STAILQ_INIT(&pool->asked);
        TAILQ_INIT(&pool->takers);
        TAILQ_INSERT_TAIL(&pools->list, pool, link);
        unpack = (struct unpack)UNPACK_INIT(pool->key, pool->key_length);
        if (wire_unpack_policy(&unpack, &pool->wanted) < 0 ||
            loop_add_timer(pools->loop, &pool->look) < 0 ||
            loop_add_timer(pools->loop, &pool->refill) < 0) {
                pool_free(pool);
                return error_oom(error);
        }
        loop_set_timer(pools->loop, &pool->look, time_now() + POOL_LOOK_EVERY);
        *ret_pool = pool;
        return 0;
}

struct pool *pool_ref(struct pool *pool)
{
        pool->pools->n_unused -= pool->refs == 0;
        pool->refs++;
        return pool;
}

struct pool *pool_unref(struct pool *pool)
{
        /* It is kept for a while: the next client may want the same. */
        if (pool && --pool->refs == 0 && ++pool->pools->n_unused > UNUSED_MAX)
                pool->pools->sweep = true;
        return NULL;
}

void pools_sweep(struct pools *pools)
{
        struct pool *pool, *next;

        zygotes_sweep(pools);
        if (!pools->sweep)
                return;
        pools->sweep = false;
        /* The list is in the order of last use. */
        for (pool = TAILQ_FIRST(&pools->list); pool; pool = next) {
                next = TAILQ_NEXT(pool, link);
                if (pool->refs == 0 && (pools->n_unused > UNUSED_MAX || pool->maker.fd < 0)) {
                        pools->n_unused--;
                        pool_free(pool);
                }
        }
}

void pools_close(struct pools *pools)
{
        struct pool *pool, *next;

        for (pool = TAILQ_FIRST(&pools->list); pool; pool = next) {
                next = TAILQ_NEXT(pool, link);
                pool_free(pool);
        }
        zygotes_sweep(pools);
        pools->nursery.fd = base_close(pools->nursery.fd);
}
