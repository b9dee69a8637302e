/* SPDX-License-Identifier: MIT */
#include "warden/fork_plan.h"

#include <string.h>

#define MANY 65536

static void pack_steps(struct pack *pack, const struct plan *plan)
{
        pack_number(pack, plan->n_steps);
        for (size_t i = 0; i < plan->n_steps; i++) {
                const struct plan_step *step = &plan->steps[i];

                pack_number(pack, step->kind);
                pack_text(pack, step->target);
                pack_text(pack, step->text);
                pack_number(pack, step->system);
                pack_number(pack, step->directory);
                pack_number(pack, step->writable);
                pack_number(pack, step->device);
                pack_number(pack, step->size);
        }
}

static void pack_marks(struct pack *pack, const struct plan *plan)
{
        pack_number(pack, plan->guarded);
        pack_number(pack, plan->hides);
        pack_number(pack, plan->sets_ids);
        pack_number(pack, plan->n_marks);
        for (size_t i = 0; i < plan->n_marks; i++) {
                const struct plan_mark *mark = &plan->marks[i];

                pack_number(pack, mark->node.device);
                pack_number(pack, mark->node.inode);
                pack_number(pack, mark->node.born);
                pack_text(pack, mark->name);
                pack_number(pack, mark->keeping);
        }
}

void fork_plan_pack(struct pack *pack, const struct plan *plan)
{
        pack_number(pack, plan->policy->network);
        pack_number(pack, plan->policy->refusal);
        pack_number(pack, plan->policy->limits.tmp_size);
        pack_number(pack, plan->host_uid);
        pack_number(pack, plan->explain);
        pack_number(pack, plan->lends);
        pack_number(pack, plan->guards_sockets);
        pack_number(pack, (uint64_t)plan->landlock_abi);
        pack_steps(pack, plan);
        pack_number(pack, plan->n_guards);
        for (size_t i = 0; i < plan->n_guards; i++) {
                pack_text(pack, plan->guards[i].path);
                pack_text(pack, plan->guards[i].name);
                pack_number(pack, plan->guards[i].hides);
        }
        pack_marks(pack, plan);
        pack_bytes(pack, plan->denied, plan->n_denied * sizeof(*plan->denied));
        pack_bytes(pack, plan->rlimits, plan->n_rlimits * sizeof(*plan->rlimits));
        pack_bytes(pack, plan->filter, plan->filter_length * sizeof(*plan->filter));
}

static int unpack_steps(struct unpack *unpack, struct fork_plan *ret)
{
        size_t n = unpack_number_below(unpack, MANY);

        ret->plan.steps = calloc(n + 1, sizeof(*ret->plan.steps));
        ret->trees = calloc(n + 1, sizeof(*ret->trees));
        if (!ret->plan.steps || !ret->trees)
                return -ENOMEM;
        for (; ret->plan.n_steps < n; ret->plan.n_steps++)
                ret->plan.steps[ret->plan.n_steps] = (struct plan_step){
                        .kind = (enum plan_kind)unpack_number(unpack),
                        .target = (char *)unpack_text(unpack),
                        .text = (char *)unpack_text(unpack),
                        .system = unpack_number(unpack),
                        .directory = unpack_number(unpack),
                        .writable = unpack_number(unpack),
                        .source = (char *)"",
                        .fd = -1,
                        .device = unpack_number(unpack),
                        .size = unpack_number(unpack),
                };
        return 0;
}

static int unpack_guards(struct unpack *unpack, struct plan *plan)
{
        size_t n = unpack_number_below(unpack, MANY);

        plan->guards = calloc(n + 1, sizeof(*plan->guards));
        if (!plan->guards)
                return -ENOMEM;
        for (; plan->n_guards < n; plan->n_guards++) {
                char *path = (char *)unpack_text(unpack);
                const char *name = unpack_text(unpack);

                if (!path || !name)
                        return -EPROTO;
                plan_set_guard(plan, plan->n_guards, path, name);
                plan->guards[plan->n_guards].hides = unpack_number(unpack);
        }
        return 0;
}

static int unpack_marks(struct unpack *unpack, struct plan *plan)
{
        size_t n;

        plan->guarded = unpack_number(unpack);
        plan->hides = unpack_number(unpack);
        plan->sets_ids = unpack_number(unpack);
        n = unpack_number_below(unpack, MANY);
        plan->marks = calloc(n + 1, sizeof(*plan->marks));
        if (!plan->marks)
                return -ENOMEM;
        for (; plan->n_marks < n; plan->n_marks++) {
                struct plan_node node = { .device = unpack_number(unpack),
                                          .inode = unpack_number(unpack),
                                          .born = unpack_number(unpack) };
                char *name = (char *)unpack_text(unpack);

                plan->marks[plan->n_marks] =
                        plan_mark_of(node, name, (enum plan_keeping)unpack_number(unpack));
        }
        return 0;
}

/* An array of so many things, each of that size. A copy: what is in the message is not aligned. */
static void *unpack_array(struct unpack *unpack, size_t size, size_t *ret_n)
{
        size_t length = 0;
        const char *data = unpack_bytes(unpack, &length);
        void *copy = malloc(MAX(length, 1));

        if (copy && data)
                memcpy(copy, data, length);
        *ret_n = length / size;
        return copy;
}

int fork_plan_unpack(struct unpack *unpack, struct fork_plan *ret)
{
        _cleanup_free_ struct plan_rlimit *rlimits = NULL;
        struct plan *plan = &ret->plan;
        size_t n;
        int r;

        *ret = (struct fork_plan){ .plan = { .policy = &ret->policy } };
        ret->policy.network = (enum policy_network)unpack_number(unpack);
        ret->policy.refusal = (enum policy_refusal)unpack_number(unpack);
        ret->policy.limits.tmp_size = unpack_number(unpack);
        plan->host_uid = (uid_t)unpack_number(unpack);
        plan->explain = unpack_number(unpack);
        plan->lends = unpack_number(unpack);
        plan->guards_sockets = unpack_number(unpack);
        plan->landlock_abi = (int)unpack_number(unpack);
        r = unpack_steps(unpack, ret);
        if (r == 0)
                r = unpack_guards(unpack, plan);
        if (r == 0)
                r = unpack_marks(unpack, plan);
        if (r < 0)
                return r;
        plan->denied = unpack_array(unpack, sizeof(*plan->denied), &plan->n_denied);
        rlimits = unpack_array(unpack, sizeof(*rlimits), &plan->n_rlimits);
        plan->filter_own = unpack_array(unpack, sizeof(*plan->filter_own), &n);
        plan->filter = plan->filter_own;
        plan->filter_length = (unsigned short)n;
        if (!plan->denied || !rlimits || !plan->filter)
                return -ENOMEM;
        if (!unpack_is_whole(unpack) || plan->n_rlimits > PLAN_RLIMITS_MAX)
                return -EPROTO;
        memcpy(plan->rlimits, rlimits, plan->n_rlimits * sizeof(*rlimits));
        return 0;
}
