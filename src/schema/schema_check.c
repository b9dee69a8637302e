/* SPDX-License-Identifier: MIT */
/* The walk: nodes against instances, with a number of steps and a depth. */
#include <string.h>

#include "schema/schema_parts.h"

int check_spend(struct check *check, uint64_t steps)
{
        if (steps > check->steps) {
                check->steps = 0;
                check->bound = "checking it takes too many steps";
                return -E2BIG;
        }
        check->steps -= steps;
        return 0;
}

bool check_is_over(const struct check *check, int result)
{
        return result < 0 || (result > 0 && (!check->list || check->list->cut));
}

/* ---- Marks ---- */

static size_t words_for(size_t n)
{
        return n / 64 + 1;
}

int marks_init(struct marks *marks, const json_t *instance)
{
        marks->n =
                json_is_object(instance) ? json_object_size(instance) : json_array_size(instance);
        marks->bits = calloc(words_for(marks->n), sizeof(*marks->bits));
        return marks->bits ? 0 : -ENOMEM;
}

void marks_free(struct marks *marks)
{
        free(marks->bits);
}

void marks_join(struct marks *to, const struct marks *from)
{
        if (!to)
                return;
        for (size_t i = 0; i < words_for(to->n); i++)
                to->bits[i] |= from->bits[i];
}

/* ---- Nodes ---- */

/* Once a rule has failed, what the others have left over is not known. */
static int check_rules(const struct frame *frame)
{
        const struct node *node = frame->node;
        const enum value_type type = value_type(frame->instance);
        int result = 0;

        for (size_t i = 0; i < node->n_rules; i++) {
                const struct rule *rule = &node->rules[i];
                int r;

                if (!rule->keyword->check || !(rule->keyword->types & type) ||
                    (rule->keyword->last && result != 0))
                        continue;
                r = rule->keyword->check(frame, rule);
                if (check_is_over(frame->check, r))
                        return r;
                result |= r;
        }
        return result;
}

/* A node that looks at the rest sees the marks of its own subschemas only. */
static int check_with_own_marks(const struct frame *outer)
{
        _cleanup_(marks_free) struct marks own = { 0 };
        const struct frame frame = { outer->check, outer->node, outer->instance, outer->at, &own };
        int r = marks_init(&own, outer->instance);

        if (r < 0)
                return r;
        r = check_spend(outer->check, own.n / BYTES_PER_STEP);
        if (r < 0)
                return r;
        r = check_rules(&frame);
        if (r == 0)
                marks_join(outer->marks, &own);
        return r;
}

static int check_in_scope(const struct frame *frame)
{
        const struct scope *outer = frame->check->scope;
        struct scope scope = { outer, frame->node->resource };
        bool entered = !outer || outer->resource != frame->node->resource;
        int r;

        if (entered)
                frame->check->scope = &scope;
        r = frame->node->unevaluated ? check_with_own_marks(frame) : check_rules(frame);
        frame->check->scope = outer;
        return r;
}

int check_node(struct check *check, const struct node *node, const json_t *instance,
               const struct place *at, struct marks *marks)
{
        const struct frame frame = { check, node, instance, at, marks };
        int r;

        r = check_spend(check, 1);
        if (r < 0)
                return r;
        if (node->never)
                return mistake(&frame, "false", "no value is allowed here");
        if (node->n_rules == 0)
                return 0;
        if (check->nesting == SCHEMA_NESTING_MAX) {
                check->bound = "the subschemas that it has to fit are nested too deeply";
                return -E2BIG;
        }
        check->nesting++;
        r = check_in_scope(&frame);
        check->nesting--;
        return r;
}

int check_silently(struct check *check, const struct node *node, const json_t *instance,
                   const struct place *at, struct marks *marks)
{
        struct schema_mistakes *list = check->list;
        int r;

        check->list = NULL;
        r = check_node(check, node, instance, at, marks);
        check->list = list;
        return r;
}

/* ---- The whole ---- */

static void check_clear(struct check *check)
{
        matcher_free(check->matcher);
}

/* A bound was reached: say which, instead of what was found so far. */
static int tell_exhausted(const char *bound, struct schema_mistakes *mistakes)
{
        struct check check = { .list = mistakes };
        char *text;
        int r;

        if (!mistakes)
                return -E2BIG;
        schema_mistakes_free(mistakes);
        mistakes->exhausted = true;
        text = strdup(bound);
        r = text ? mistake_add(&check, NULL, "", text) : -ENOMEM;
        return r < 0 ? r : -E2BIG;
}

static int run_pass(const struct schema *schema, const json_t *instance,
                    struct schema_mistakes *list, const char **ret_bound)
{
        _cleanup_(check_clear) struct check check = { .schema = schema,
                                                      .steps = SCHEMA_STEPS_MAX,
                                                      .list = list };
        int r = check_node(&check, schema->root, instance, NULL, NULL);

        *ret_bound = check.bound;
        return r;
}

int schema_check(const struct schema *schema, const json_t *instance,
                 struct schema_mistakes *mistakes)
{
        const char *bound;
        int r;

        if (mistakes)
                *mistakes = (struct schema_mistakes)SCHEMA_MISTAKES_INIT;
        if (value_is_deeper(instance, SCHEMA_INSTANCE_DEPTH_MAX))
                return tell_exhausted("it is nested too deeply", mistakes);
        r = run_pass(schema, instance, NULL, &bound);
        if (r == -E2BIG)
                return tell_exhausted(bound, mistakes);
        if (r <= 0 || !mistakes)
                return r;
        r = run_pass(schema, instance, mistakes, &bound);
        if (r == -E2BIG && mistakes->n > 0) {
                /* That it is wrong is known; there is only no time for all of it. */
                mistakes->cut = true;
                return 1;
        }
        if (r == -E2BIG)
                return tell_exhausted(bound, mistakes);
        if (r < 0)
                schema_mistakes_free(mistakes);
        return r;
}
