/* SPDX-License-Identifier: MIT */
/* Keywords about arrays. */
#include "schema/schema_parts.h"

static int wrong_size(const struct frame *frame, const struct rule *rule, const char *wanted)
{
        return mistake(frame, rule->keyword->name, "must have at %s %llu item%s, has %zu", wanted,
                       (unsigned long long)rule->count, rule->count == 1 ? "" : "s",
                       json_array_size(frame->instance));
}

int check_max_items(const struct frame *frame, const struct rule *rule)
{
        return json_array_size(frame->instance) <= rule->count ? 0
                                                               : wrong_size(frame, rule, "most");
}

int check_min_items(const struct frame *frame, const struct rule *rule)
{
        return json_array_size(frame->instance) >= rule->count ? 0
                                                               : wrong_size(frame, rule, "least");
}

/* ---- Items ---- */

static int check_item(const struct frame *frame, const struct node *node, size_t i)
{
        struct place place = { .parent = frame->at, .index = i };

        marks_set(frame->marks, i);
        return check_node(frame->check, node, json_array_get(frame->instance, i), &place, NULL);
}

int check_prefix_items(const struct frame *frame, const struct rule *rule)
{
        size_t n = MIN(json_array_size(frame->instance), rule->n_nodes);
        int result = 0;

        for (size_t i = 0; i < n; i++) {
                int r = check_item(frame, rule->nodes[i], i);

                if (check_is_over(frame->check, r))
                        return r;
                result |= r;
        }
        return result;
}

int check_items(const struct frame *frame, const struct rule *rule)
{
        const struct rule *prefix = frame->node->prefix;
        size_t first = prefix ? prefix->n_nodes : 0, n = json_array_size(frame->instance);
        int result = 0;

        if (rule->nodes[0]->never && n > first)
                return mistake(frame, "items", "must have at most %zu item%s, has %zu", first,
                               first == 1 ? "" : "s", n);
        for (size_t i = first; i < n; i++) {
                int r = check_item(frame, rule->nodes[0], i);

                if (check_is_over(frame->check, r))
                        return r;
                result |= r;
        }
        return result;
}

int check_unevaluated_items(const struct frame *frame, const struct rule *rule)
{
        size_t n = json_array_size(frame->instance);
        int result = 0;

        for (size_t i = 0; i < n; i++) {
                int r;

                if (marks_has(frame->marks, i))
                        continue;
                r = rule->nodes[0]->never
                            ? mistake(frame, "unevaluatedItems", "item %zu is one too many", i)
                            : check_item(frame, rule->nodes[0], i);
                if (check_is_over(frame->check, r))
                        return r;
                result |= r;
                marks_set(frame->marks, i);
        }
        return result;
}

/* ---- Contains ---- */

static int tell_contains(const struct frame *frame, const char *keyword, const char *wanted,
                         uint64_t count, uint64_t found)
{
        return mistake(frame, keyword,
                       "must hold at %s %llu item%s that fit%s the schema of 'contains', holds "
                       "%llu",
                       wanted, (unsigned long long)count, count == 1 ? "" : "s",
                       count == 1 ? "s" : "", (unsigned long long)found);
}

int check_contains(const struct frame *frame, const struct rule *rule)
{
        const struct rule *minimum = frame->node->min_contains,
                          *maximum = frame->node->max_contains;
        const uint64_t least = minimum ? minimum->count : 1;
        size_t n = json_array_size(frame->instance);
        uint64_t found = 0;

        for (size_t i = 0; i < n; i++) {
                struct place place = { .parent = frame->at, .index = i };
                int r = check_silently(frame->check, rule->nodes[0],
                                       json_array_get(frame->instance, i), &place, NULL);

                if (r < 0)
                        return r;
                if (r > 0)
                        continue;
                found++;
                marks_set(frame->marks, i);
                /* Enough is known, unless somebody asks which ones. */
                if (found >= least && !maximum && !frame->marks)
                        return 0;
        }
        if (found < least)
                return tell_contains(frame, minimum ? "minContains" : "contains", "least", least,
                                     found);
        if (maximum && found > maximum->count)
                return tell_contains(frame, "maxContains", "most", maximum->count, found);
        return 0;
}

/* ---- Uniqueness ---- */

struct hashed {
        uint64_t hash;
        size_t index;
};

static int compare_hashed(const void *a, const void *b)
{
        const struct hashed *x = a, *y = b;

        if (x->hash != y->hash)
                return x->hash < y->hash ? -1 : 1;
        return (x->index > y->index) - (x->index < y->index);
}

/* Items with the same hash lie together. Those that only share it are paid for pair by pair. */
static int find_twins(const struct frame *frame, const struct hashed *items, size_t n,
                      size_t *ret_a, size_t *ret_b)
{
        for (size_t i = 0; i < n; i++)
                for (size_t j = i + 1; j < n && items[j].hash == items[i].hash; j++) {
                        int r = value_equal(frame->check,
                                            json_array_get(frame->instance, items[i].index),
                                            json_array_get(frame->instance, items[j].index));

                        if (r < 0)
                                return r;
                        if (r == 0) {
                                *ret_a = items[i].index;
                                *ret_b = items[j].index;
                                return 1;
                        }
                }
        return 0;
}

int check_unique_items(const struct frame *frame, const struct rule *rule)
{
        size_t n = json_array_size(frame->instance), a = 0, b = 0;
        _cleanup_free_ struct hashed *items = NULL;
        int r;

        if (!json_is_true(rule->value) || n < 2)
                return 0;
        items = calloc(n, sizeof(*items));
        if (!items)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                items[i].index = i;
                r = value_hash(frame->check, json_array_get(frame->instance, i), &items[i].hash);
                if (r < 0)
                        return r;
        }
        qsort(items, n, sizeof(*items), compare_hashed);
        r = find_twins(frame, items, n, &a, &b);
        if (r <= 0)
                return r;
        return mistake(frame, "uniqueItems",
                       "must have no two equal items, but items %zu and %zu are equal", a, b);
}
