/* SPDX-License-Identifier: MIT */
/* Filling in what is missing. Metered and bounded like a check. */
#include <limits.h>

#include "schema/schema_parts.h"

struct filling {
        struct check check;
        int added;
};

static int fill(struct filling *filling, const struct node *node, json_t *instance);

/* Whether what its subschemas say holds without a condition. */
static bool takes_in(const struct rule *rule)
{
        return rule->keyword->check == check_ref || rule->keyword->check == check_all_of;
}

/* The default of a node, or of what it takes in. Ends: a loop of these is refused by the compiler.
 */
static int find_default(struct filling *filling, const struct node *node, const json_t **ret)
{
        int r = check_spend(&filling->check, 1);

        *ret = json_object_get(node->json, "default");
        if (filling->check.nesting == SCHEMA_NESTING_MAX)
                return -E2BIG;
        filling->check.nesting++;
        for (size_t i = 0; r == 0 && !*ret && i < node->n_rules; i++) {
                const struct rule *rule = &node->rules[i];

                if (!takes_in(rule))
                        continue;
                for (size_t j = 0; r == 0 && !*ret && j < rule->n_nodes; j++)
                        r = find_default(filling, rule->nodes[j], ret);
        }
        filling->check.nesting--;
        return r;
}

/* A default goes in only once; what it lacks itself is filled in after that. */
static int fill_property(struct filling *filling, const struct node *node, const char *name,
                         json_t *object)
{
        json_t *there = json_object_get(object, name);
        const json_t *value = NULL;
        int r = there ? 0 : find_default(filling, node, &value);

        if (r < 0)
                return r;
        if (!there && value) {
                if (filling->added == INT_MAX ||
                    json_object_set_new(object, name, json_deep_copy(value)) < 0)
                        return -ENOMEM;
                filling->added++;
                there = json_object_get(object, name);
        }
        return there ? fill(filling, node, there) : 0;
}

static int fill_properties(struct filling *filling, const struct rule *rule, json_t *object)
{
        const char *name;
        json_t *number;

        json_object_foreach((json_t *)rule->names, name, number)
        {
                int r = check_spend(&filling->check, 1);

                if (r == 0)
                        r = fill_property(filling, rule->nodes[json_integer_value(number)], name,
                                          object);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int fill_by_rule(struct filling *filling, const struct node *node, const struct rule *rule,
                        json_t *instance)
{
        int r = 0;

        if (rule == node->properties)
                return fill_properties(filling, rule, instance);
        if (!takes_in(rule))
                return 0;
        for (size_t i = 0; r == 0 && i < rule->n_nodes; i++)
                r = fill(filling, rule->nodes[i], instance);
        return r;
}

static int fill(struct filling *filling, const struct node *node, json_t *instance)
{
        int r = check_spend(&filling->check, 1);

        if (r < 0 || !json_is_object(instance))
                return r;
        if (filling->check.nesting == SCHEMA_NESTING_MAX)
                return -E2BIG;
        filling->check.nesting++;
        for (size_t i = 0; r == 0 && i < node->n_rules; i++)
                r = fill_by_rule(filling, node, &node->rules[i], instance);
        filling->check.nesting--;
        return r;
}

int schema_apply_defaults(const struct schema *schema, json_t *instance)
{
        struct filling filling = { .check = { .schema = schema, .steps = SCHEMA_STEPS_MAX } };
        int r;

        if (value_is_deeper(instance, SCHEMA_INSTANCE_DEPTH_MAX))
                return -E2BIG;
        r = fill(&filling, schema->root, instance);
        return r < 0 ? r : filling.added;
}
