/* SPDX-License-Identifier: MIT */
/*
 * Keywords that put subschemas together. Those whose subschemas may fail without harm have marks of
 * their own for each, and give them on only when it held.
 */
#include <string.h>

#include "schema/schema_parts.h"

/* ---- References ---- */

int check_ref(const struct frame *frame, const struct rule *rule)
{
        return check_node(frame->check, rule->nodes[0], frame->instance, frame->at, frame->marks);
}

/* The outermost schema on the way here that has the anchor has the word. */
int check_dynamic_ref(const struct frame *frame, const struct rule *rule)
{
        const struct node *target = rule->nodes[0];

        for (const struct scope *scope = frame->check->scope; rule->anchor && scope;
             scope = scope->outer) {
                const json_t *number = json_object_get(scope->resource->dynamic, rule->anchor);
                int r = check_spend(frame->check, 1);

                if (r < 0)
                        return r;
                if (number)
                        target = frame->check->schema->nodes[json_integer_value(number)];
        }
        return check_node(frame->check, target, frame->instance, frame->at, frame->marks);
}

/* ---- All, and none ---- */

int check_all_of(const struct frame *frame, const struct rule *rule)
{
        int result = 0;

        for (size_t i = 0; i < rule->n_nodes; i++) {
                int r = check_node(frame->check, rule->nodes[i], frame->instance, frame->at,
                                   frame->marks);

                if (check_is_over(frame->check, r))
                        return r;
                result |= r;
        }
        return result;
}

int check_not(const struct frame *frame, const struct rule *rule)
{
        int r = check_silently(frame->check, rule->nodes[0], frame->instance, frame->at, NULL);

        if (r < 0)
                return r;
        return r > 0 ? 0 : mistake(frame, "not", "must not be what the schema of 'not' describes");
}

/* ---- Branches ---- */

/* With marks of its own, which become the frame's where the subschema holds. */
static int try_branch(const struct frame *frame, const struct node *node)
{
        _cleanup_(marks_free) struct marks own = { 0 };
        int r;

        if (!frame->marks)
                return check_node(frame->check, node, frame->instance, frame->at, NULL);
        r = marks_init(&own, frame->instance);
        if (r == 0)
                r = check_spend(frame->check, own.n / BYTES_PER_STEP);
        if (r == 0)
                r = check_node(frame->check, node, frame->instance, frame->at, &own);
        if (r == 0)
                marks_join(frame->marks, &own);
        return r;
}

int check_if(const struct frame *frame, const struct rule *rule)
{
        const struct rule *branch;
        struct schema_mistakes *list = frame->check->list;
        int r;

        frame->check->list = NULL;
        r = try_branch(frame, rule->nodes[0]);
        frame->check->list = list;
        if (r < 0)
                return r;
        branch = r == 0 ? frame->node->then_ : frame->node->else_;
        if (!branch)
                return 0;
        return check_node(frame->check, branch->nodes[0], frame->instance, frame->at, frame->marks);
}

/* ---- The nearest branch ---- */

/* How far a branch is: another type, a mark that says "not this branch", anything else. */
struct distance {
        bool type;
        size_t constants, mistakes;
};

static int measure(const struct frame *frame, const struct schema_mistakes *found,
                   struct distance *ret)
{
        _cleanup_buffer_ struct buffer here = BUFFER_INIT;

        if (place_print(frame->at, &here) < 0)
                return -ENOMEM;
        *ret = (struct distance){ .mistakes = found->n };
        for (size_t i = 0; i < found->n; i++) {
                const struct schema_mistake *item = &found->items[i];

                ret->type |= (strcmp(item->keyword, "type") == 0 ||
                              strcmp(item->keyword, "false") == 0) &&
                             strcmp(item->path, here.data) == 0;
                ret->constants +=
                        strcmp(item->keyword, "const") == 0 || strcmp(item->keyword, "enum") == 0;
        }
        return 0;
}

static bool is_less(const struct distance *a, const struct distance *b)
{
        if (a->type != b->type)
                return b->type;
        if (a->constants != b->constants)
                return a->constants < b->constants;
        return a->mistakes < b->mistakes;
}

struct nearest {
        struct schema_mistakes found;
        struct distance distance;
        size_t branch;
};

static void nearest_clear(struct nearest *nearest)
{
        schema_mistakes_free(&nearest->found);
}

/* Try a branch and keep its mistakes if it is the nearest so far. */
static int try_collecting(const struct frame *frame, const struct node *node, size_t i,
                          struct nearest *nearest)
{
        _cleanup_schema_mistakes_ struct schema_mistakes found = SCHEMA_MISTAKES_INIT;
        struct schema_mistakes *list = frame->check->list;
        struct distance distance;
        int r;

        if (!list)
                return try_branch(frame, node);
        frame->check->list = &found;
        r = try_branch(frame, node);
        frame->check->list = list;
        if (r <= 0)
                return r;
        if (measure(frame, &found, &distance) < 0)
                return -ENOMEM;
        if (nearest->found.n > 0 && !is_less(&distance, &nearest->distance))
                return 1;
        schema_mistakes_free(&nearest->found);
        nearest->found = found;
        found = (struct schema_mistakes)SCHEMA_MISTAKES_INIT;
        nearest->distance = distance;
        nearest->branch = i;
        return 1;
}

static int tell_nearest(const struct frame *frame, const struct rule *rule, struct nearest *nearest)
{
        int r;

        if (!frame->check->list)
                return 1;
        if (rule->n_nodes > 1) {
                r = mistake(frame, rule->keyword->name,
                            "fits none of the %zu forms that are allowed here; form %zu is the "
                            "nearest, and what is wrong for it follows",
                            rule->n_nodes, nearest->branch + 1);
                if (r < 0)
                        return r;
        }
        r = mistakes_move(frame->check->list, &nearest->found);
        return r < 0 ? r : 1;
}

int check_any_of(const struct frame *frame, const struct rule *rule)
{
        _cleanup_(nearest_clear) struct nearest nearest = { .branch = 0 };
        bool held = false;

        for (size_t i = 0; i < rule->n_nodes; i++) {
                int r = try_collecting(frame, rule->nodes[i], i, &nearest);

                if (r < 0)
                        return r;
                held |= r == 0;
                /* The others matter only for what they mark. */
                if (held && !frame->marks)
                        return 0;
        }
        return held ? 0 : tell_nearest(frame, rule, &nearest);
}

int check_one_of(const struct frame *frame, const struct rule *rule)
{
        _cleanup_(nearest_clear) struct nearest nearest = { .branch = 0 };
        size_t held = 0, first = 0;

        for (size_t i = 0; i < rule->n_nodes; i++) {
                int r = try_collecting(frame, rule->nodes[i], i, &nearest);

                if (r < 0)
                        return r;
                if (r > 0)
                        continue;
                if (held++ > 0)
                        return mistake(frame, "oneOf",
                                       "must fit exactly one of the %zu forms that are allowed "
                                       "here, but fits form %zu and form %zu",
                                       rule->n_nodes, first + 1, i + 1);
                first = i;
        }
        return held == 1 ? 0 : tell_nearest(frame, rule, &nearest);
}
