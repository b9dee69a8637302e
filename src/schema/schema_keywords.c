/* SPDX-License-Identifier: MIT */
/*
 * What the value of each keyword must be, and the table of them all. Their order is the order in
 * which they are checked: cheap ones before those that walk, and last what is about the rest.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "schema/schema_parts.h"

typedef int keyword_compile(struct compiler *compiler, struct node *node, struct rule *rule,
                            const struct place *at);

#define refuse_value(compiler, node, rule, at, wanted)                                             \
        compile_refuse((compiler), (node)->resource, (at), "%s must be %s", (rule)->keyword->name, \
                       (wanted))

/* ---- Plain values ---- */

static int compile_number(struct compiler *compiler, struct node *node, struct rule *rule,
                          const struct place *at)
{
        if (!json_is_number(rule->value))
                return refuse_value(compiler, node, rule, at, "a number");
        return 0;
}

static int compile_positive(struct compiler *compiler, struct node *node, struct rule *rule,
                            const struct place *at)
{
        if (!json_is_number(rule->value) || !(json_number_value(rule->value) > 0))
                return refuse_value(compiler, node, rule, at, "a number above 0");
        return 0;
}

static int compile_count(struct compiler *compiler, struct node *node, struct rule *rule,
                         const struct place *at)
{
        double value = json_number_value(rule->value);

        if (!json_is_number(rule->value) || !number_is_integer(rule->value) || value < 0)
                return refuse_value(compiler, node, rule, at, "an integer that is not negative");
        if (json_is_integer(rule->value))
                rule->count = (uint64_t)json_integer_value(rule->value);
        else
                rule->count = value < INTEGER_END ? (uint64_t)value : UINT64_MAX;
        return 0;
}

static int compile_boolean(struct compiler *compiler, struct node *node, struct rule *rule,
                           const struct place *at)
{
        if (!json_is_boolean(rule->value))
                return refuse_value(compiler, node, rule, at, "true or false");
        return 0;
}

static int compile_string(struct compiler *compiler, struct node *node, struct rule *rule,
                          const struct place *at)
{
        if (!json_is_string(rule->value))
                return refuse_value(compiler, node, rule, at, "a string");
        return 0;
}

static int compile_array(struct compiler *compiler, struct node *node, struct rule *rule,
                         const struct place *at)
{
        if (!json_is_array(rule->value))
                return refuse_value(compiler, node, rule, at, "an array");
        return 0;
}

static int compile_anything(struct compiler *compiler, struct node *node, struct rule *rule,
                            const struct place *at)
{
        (void)compiler;
        (void)node;
        (void)rule;
        (void)at;
        return 0;
}

static int check_names(struct compiler *compiler, struct node *node, struct rule *rule,
                       const struct place *at, const json_t *list)
{
        _cleanup_value_ json_t *seen = json_object();
        size_t i;
        json_t *name;

        if (!seen)
                return -ENOMEM;
        if (!json_is_array(list))
                return refuse_value(compiler, node, rule, at, "an array of names");
        json_array_foreach((json_t *)list, i, name)
        {
                if (!value_is_text(name))
                        return refuse_value(compiler, node, rule, at, "an array of names");
                if (json_object_get(seen, json_string_value(name)))
                        return compile_refuse(compiler, node->resource, at,
                                              "the name \"%.64s\" stands in it twice",
                                              json_string_value(name));
                if (json_object_set_new(seen, json_string_value(name), json_true()) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int compile_names(struct compiler *compiler, struct node *node, struct rule *rule,
                         const struct place *at)
{
        return check_names(compiler, node, rule, at, rule->value);
}

static int compile_dependent_required(struct compiler *compiler, struct node *node,
                                      struct rule *rule, const struct place *at)
{
        const char *name;
        json_t *list;

        if (!json_is_object(rule->value))
                return refuse_value(compiler, node, rule, at, "an object of arrays of names");
        json_object_foreach((json_t *)rule->value, name, list)
        {
                const struct place *here = compile_place(compiler, at, name, 0);
                int r = here ? check_names(compiler, node, rule, here, list) : -ENOMEM;

                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- Types ---- */

static const struct {
        const char *name;
        unsigned types;
} types[] = {
        { "null", TYPE_NULL },     { "boolean", TYPE_BOOLEAN }, { "integer", TYPE_INTEGER },
        { "number", TYPE_NUMBER }, { "string", TYPE_STRING },   { "array", TYPE_ARRAY },
        { "object", TYPE_OBJECT },
};

static int compile_one_type(struct compiler *compiler, struct node *node, struct rule *rule,
                            const struct place *at, const json_t *name)
{
        int r;

        for (size_t i = 0; value_is_text(name) && i < ARRAY_SIZE(types); i++)
                if (strcmp(types[i].name, json_string_value(name)) == 0) {
                        if (rule->count & types[i].types)
                                return compile_refuse(compiler, node->resource, at,
                                                      "the type \"%s\" stands in it twice",
                                                      types[i].name);
                        rule->count |= types[i].types;
                        return 0;
                }
        if (value_is_text(name))
                r = compile_refuse(compiler, node->resource, at, "there is no type \"%.64s\"",
                                   json_string_value(name));
        else
                r = refuse_value(compiler, node, rule, at,
                                 "the name of a type or an array of them");
        error_hint(compiler->error,
                   "the types are null, boolean, integer, number, string, array and object");
        return r;
}

static int compile_type(struct compiler *compiler, struct node *node, struct rule *rule,
                        const struct place *at)
{
        size_t i;
        json_t *name;

        if (!json_is_array(rule->value))
                return compile_one_type(compiler, node, rule, at, rule->value);
        json_array_foreach((json_t *)rule->value, i, name)
        {
                int r = compile_one_type(compiler, node, rule, at, name);

                if (r < 0)
                        return r;
        }
        if (rule->count == 0)
                return refuse_value(compiler, node, rule, at, "at least one type");
        return 0;
}

/* ---- Patterns ---- */

static int add_regex(struct compiler *compiler, const struct node *node, struct rule *rule,
                     const struct place *at, const json_t *pattern, size_t i)
{
        char why[128];
        int r;

        r = regex_compile(compiler->schema, pattern, &rule->regexes[i], why, sizeof(why));
        if (r == -EINVAL)
                return compile_refuse(compiler, node->resource, at,
                                      "\"%.128s\" is no regular expression: %s",
                                      json_string_value(pattern), why);
        return r;
}

static int compile_pattern(struct compiler *compiler, struct node *node, struct rule *rule,
                           const struct place *at)
{
        int r = compile_string(compiler, node, rule, at);

        if (r < 0)
                return r;
        rule->regexes = schema_alloc(compiler->schema, sizeof(struct regex *));
        if (!rule->regexes)
                return -ENOMEM;
        return add_regex(compiler, node, rule, at, rule->value, 0);
}

/* ---- Subschemas ---- */

static int alloc_nodes(struct compiler *compiler, struct rule *rule, size_t n)
{
        rule->nodes = schema_alloc(compiler->schema, n * sizeof(struct node *));
        rule->n_nodes = rule->nodes ? n : 0;
        return rule->nodes ? 0 : -ENOMEM;
}

static int compile_schema(struct compiler *compiler, struct node *node, struct rule *rule,
                          const struct place *at)
{
        int r = alloc_nodes(compiler, rule, 1);

        if (r < 0)
                return r;
        return compile_node(compiler, rule->value, node->resource, at, &rule->nodes[0]);
}

static int compile_list(struct compiler *compiler, struct node *node, struct rule *rule,
                        const struct place *at)
{
        size_t i;
        json_t *value;
        int r;

        if (!json_is_array(rule->value) || json_array_size(rule->value) == 0)
                return refuse_value(compiler, node, rule, at, "an array of at least one schema");
        r = alloc_nodes(compiler, rule, json_array_size(rule->value));
        if (r < 0)
                return r;
        json_array_foreach((json_t *)rule->value, i, value)
        {
                const struct place *here = compile_place(compiler, at, NULL, i);

                r = here ? compile_node(compiler, value, node->resource, here, &rule->nodes[i])
                         : -ENOMEM;
                if (r < 0)
                        return r;
        }
        return 0;
}

/* An object of schemas: by name, or by pattern. */
static int compile_object(struct compiler *compiler, struct node *node, struct rule *rule,
                          const struct place *at)
{
        json_t *names = json_object(), *value;
        const char *name;
        size_t i = 0;
        int r;

        r = schema_hold(compiler->schema, names);
        if (r < 0)
                return r;
        if (!json_is_object(rule->value))
                return refuse_value(compiler, node, rule, at, "an object of schemas");
        r = alloc_nodes(compiler, rule, json_object_size(rule->value));
        if (r < 0)
                return r;
        rule->names = names;
        json_object_foreach((json_t *)rule->value, name, value)
        {
                const struct place *here = compile_place(compiler, at, name, 0);

                if (!here || json_object_set_new(names, name, json_integer((json_int_t)i)) < 0)
                        return -ENOMEM;
                r = compile_node(compiler, value, node->resource, here, &rule->nodes[i++]);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int compile_pattern_object(struct compiler *compiler, struct node *node, struct rule *rule,
                                  const struct place *at)
{
        int r = compile_object(compiler, node, rule, at);
        const char *name;
        size_t i = 0;
        json_t *value;

        if (r < 0)
                return r;
        rule->regexes = schema_alloc(compiler->schema, rule->n_nodes * sizeof(struct regex *));
        if (!rule->regexes)
                return -ENOMEM;
        json_object_foreach((json_t *)rule->value, name, value)
        {
                _cleanup_value_ json_t *pattern = json_string(name);

                if (!pattern)
                        return -ENOMEM;
                r = add_regex(compiler, node, rule, at, pattern, i++);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int compile_reference(struct compiler *compiler, struct node *node, struct rule *rule,
                             const struct place *at)
{
        int r;

        if (!value_is_text(rule->value))
                return refuse_value(compiler, node, rule, at, "a string");
        r = alloc_nodes(compiler, rule, 1);
        if (r < 0)
                return r;
        return ref_add_pending(compiler, node, rule, at);
}

/* ---- Rules that look at each other ---- */

#define WITH(name, then, field)                                                                    \
        static int name(struct compiler *compiler, struct node *node, struct rule *rule,           \
                        const struct place *at)                                                    \
        {                                                                                          \
                node->field = rule;                                                                \
                return then(compiler, node, rule, at);                                             \
        }

WITH(compile_properties, compile_object, properties)
WITH(compile_pattern_properties, compile_pattern_object, pattern_properties)
WITH(compile_additional, compile_schema, additional)
WITH(compile_prefix, compile_list, prefix)
WITH(compile_min_contains, compile_count, min_contains)
WITH(compile_max_contains, compile_count, max_contains)
WITH(compile_then, compile_schema, then_)
WITH(compile_else, compile_schema, else_)

/* ---- The table ---- */

#define CORE VOCABULARY_CORE
#define APPLY VOCABULARY_APPLICATOR
#define VALID VOCABULARY_VALIDATION
#define REST VOCABULARY_UNEVALUATED
#define META VOCABULARY_META_DATA

const struct keyword schema_keywords[] = {
        { "$comment", CORE, 0, false, false, compile_string, NULL },
        { "$defs", CORE, 0, false, false, compile_object, NULL },
        { "title", META, 0, false, false, compile_string, NULL },
        { "description", META, 0, false, false, compile_string, NULL },
        { "default", META, 0, false, false, compile_anything, NULL },
        { "deprecated", META, 0, false, false, compile_boolean, NULL },
        { "readOnly", META, 0, false, false, compile_boolean, NULL },
        { "writeOnly", META, 0, false, false, compile_boolean, NULL },
        { "examples", META, 0, false, false, compile_array, NULL },
        { "format", VOCABULARY_FORMAT, 0, false, false, compile_string, NULL },
        { "contentEncoding", VOCABULARY_CONTENT, 0, false, false, compile_string, NULL },
        { "contentMediaType", VOCABULARY_CONTENT, 0, false, false, compile_string, NULL },
        { "contentSchema", VOCABULARY_CONTENT, 0, false, false, compile_schema, NULL },

        { "type", VALID, TYPE_ANY, false, false, compile_type, check_type },
        { "const", VALID, TYPE_ANY, false, false, compile_anything, check_const },
        { "enum", VALID, TYPE_ANY, false, false, compile_array, check_enum },
        { "multipleOf", VALID, TYPE_NUMBER, false, false, compile_positive, check_multiple_of },
        { "maximum", VALID, TYPE_NUMBER, false, false, compile_number, check_maximum },
        { "exclusiveMaximum", VALID, TYPE_NUMBER, false, false, compile_number,
          check_exclusive_maximum },
        { "minimum", VALID, TYPE_NUMBER, false, false, compile_number, check_minimum },
        { "exclusiveMinimum", VALID, TYPE_NUMBER, false, false, compile_number,
          check_exclusive_minimum },
        { "maxLength", VALID, TYPE_STRING, false, false, compile_count, check_max_length },
        { "minLength", VALID, TYPE_STRING, false, false, compile_count, check_min_length },
        { "pattern", VALID, TYPE_STRING, false, false, compile_pattern, check_pattern },
        { "maxItems", VALID, TYPE_ARRAY, false, false, compile_count, check_max_items },
        { "minItems", VALID, TYPE_ARRAY, false, false, compile_count, check_min_items },
        { "uniqueItems", VALID, TYPE_ARRAY, false, false, compile_boolean, check_unique_items },
        { "maxProperties", VALID, TYPE_OBJECT, false, false, compile_count, check_max_properties },
        { "minProperties", VALID, TYPE_OBJECT, false, false, compile_count, check_min_properties },
        { "required", VALID, TYPE_OBJECT, false, false, compile_names, check_required },
        { "dependentRequired", VALID, TYPE_OBJECT, false, false, compile_dependent_required,
          check_dependent_required },

        { "minContains", VALID, 0, false, false, compile_min_contains, NULL },
        { "maxContains", VALID, 0, false, false, compile_max_contains, NULL },
        { "prefixItems", APPLY, TYPE_ARRAY, false, false, compile_prefix, check_prefix_items },
        { "items", APPLY, TYPE_ARRAY, false, false, compile_schema, check_items },
        { "contains", APPLY, TYPE_ARRAY, false, false, compile_schema, check_contains },
        { "propertyNames", APPLY, TYPE_OBJECT, false, false, compile_schema, check_property_names },
        /* The first of these three that is there looks at all of them. */
        { "properties", APPLY, TYPE_OBJECT, false, false, compile_properties, check_members },
        { "patternProperties", APPLY, TYPE_OBJECT, false, false, compile_pattern_properties,
          check_members },
        { "additionalProperties", APPLY, TYPE_OBJECT, false, false, compile_additional,
          check_members },

        { "$ref", CORE, TYPE_ANY, true, false, compile_reference, check_ref },
        { "$dynamicRef", CORE, TYPE_ANY, true, false, compile_reference, check_dynamic_ref },
        { "allOf", APPLY, TYPE_ANY, true, false, compile_list, check_all_of },
        { "anyOf", APPLY, TYPE_ANY, true, false, compile_list, check_any_of },
        { "oneOf", APPLY, TYPE_ANY, true, false, compile_list, check_one_of },
        { "not", APPLY, TYPE_ANY, true, false, compile_schema, check_not },
        { "then", APPLY, 0, true, false, compile_then, NULL },
        { "else", APPLY, 0, true, false, compile_else, NULL },
        { "if", APPLY, TYPE_ANY, true, false, compile_schema, check_if },
        { "dependentSchemas", APPLY, TYPE_OBJECT, true, false, compile_object,
          check_dependent_schemas },

        { "unevaluatedItems", REST, TYPE_ARRAY, false, true, compile_schema,
          check_unevaluated_items },
        { "unevaluatedProperties", REST, TYPE_OBJECT, false, true, compile_schema,
          check_unevaluated_properties },
};
const size_t schema_n_keywords = ARRAY_SIZE(schema_keywords);
