/* SPDX-License-Identifier: MIT */
/* Keywords about objects. */
#include <stdio.h>
#include <string.h>

#include "schema/schema_parts.h"

#define NAMES_LISTED 12 /* known names that are told where none is near */

static int spend_on_name(const struct frame *frame, size_t length)
{
        return check_spend(frame->check, 1 + length / BYTES_PER_STEP);
}

/* ---- Sizes ---- */

static int wrong_size(const struct frame *frame, const struct rule *rule, const char *wanted)
{
        return mistake(frame, rule->keyword->name, "must have at %s %llu propert%s, has %zu",
                       wanted, (unsigned long long)rule->count, rule->count == 1 ? "y" : "ies",
                       json_object_size(frame->instance));
}

int check_max_properties(const struct frame *frame, const struct rule *rule)
{
        return json_object_size(frame->instance) <= rule->count ? 0
                                                                : wrong_size(frame, rule, "most");
}

int check_min_properties(const struct frame *frame, const struct rule *rule)
{
        return json_object_size(frame->instance) >= rule->count ? 0
                                                                : wrong_size(frame, rule, "least");
}

/* ---- Names that must be there ---- */

int check_required(const struct frame *frame, const struct rule *rule)
{
        int result = 0;
        size_t i;
        json_t *name;

        json_array_foreach((json_t *)rule->value, i, name)
        {
                char quote[QUOTE_ROOM];
                int r = spend_on_name(frame, json_string_length(name));

                if (r < 0)
                        return r;
                if (json_object_get(frame->instance, json_string_value(name)))
                        continue;
                r = mistake(frame, "required", "the property '%s' is missing",
                            quote_name(json_string_value(name), quote));
                if (check_is_over(frame->check, r))
                        return r;
                result |= r;
        }
        return result;
}

static int check_dependents(const struct frame *frame, const char *cause, const json_t *names)
{
        int result = 0;
        size_t i;
        json_t *name;

        json_array_foreach((json_t *)names, i, name)
        {
                char missing[QUOTE_ROOM], there[QUOTE_ROOM];
                int r = spend_on_name(frame, json_string_length(name));

                if (r < 0)
                        return r;
                if (json_object_get(frame->instance, json_string_value(name)))
                        continue;
                r = mistake(frame, "dependentRequired",
                            "the property '%s' is missing; it must be there because '%s' is",
                            quote_name(json_string_value(name), missing), quote_name(cause, there));
                if (check_is_over(frame->check, r))
                        return r;
                result |= r;
        }
        return result;
}

int check_dependent_required(const struct frame *frame, const struct rule *rule)
{
        const char *cause;
        json_t *names;
        int result = 0;

        json_object_foreach((json_t *)rule->value, cause, names)
        {
                int r = spend_on_name(frame, strlen(cause));

                if (r == 0 && json_object_get(frame->instance, cause))
                        r = check_dependents(frame, cause, names);
                if (check_is_over(frame->check, r))
                        return r;
                result |= r;
        }
        return result;
}

int check_dependent_schemas(const struct frame *frame, const struct rule *rule)
{
        const char *cause;
        json_t *number;
        int result = 0;

        json_object_foreach((json_t *)rule->names, cause, number)
        {
                int r = spend_on_name(frame, strlen(cause));

                if (r == 0 && json_object_get(frame->instance, cause))
                        r = check_node(frame->check, rule->nodes[json_integer_value(number)],
                                       frame->instance, frame->at, frame->marks);
                if (check_is_over(frame->check, r))
                        return r;
                result |= r;
        }
        return result;
}

/* ---- Properties that nobody knows ---- */

/* The known names: all of them, where there are few, or the one that was probably meant. */
static int suggest(const json_t *names, const char *name, struct buffer *to)
{
        const char *known, *nearest = NULL;
        int best = WORD_FAR;
        char quote[QUOTE_ROOM];
        size_t i = 0;
        json_t *number;

        json_object_foreach((json_t *)names, known,
                            number) if (word_is_nearer(name, known, strlen(known), &best)) nearest =
                known;
        if (nearest)
                return buffer_printf(to, "; did you mean '%s'?", quote_name(nearest, quote));
        json_object_foreach((json_t *)names, known, number)
        {
                int r;

                if (i == NAMES_LISTED)
                        return buffer_printf(to, " and %zu more", json_object_size(names) - i);
                r = buffer_printf(to, "%s'%s'", i++ ? ", " : "; known are ",
                                  quote_name(known, quote));
                if (r < 0)
                        return r;
        }
        return 0;
}

static int tell_unknown(const struct frame *frame, const char *keyword, const char *name)
{
        _cleanup_buffer_ struct buffer suggestion = BUFFER_INIT;
        const struct rule *properties = frame->node->properties;
        char quote[QUOTE_ROOM];
        int r;

        if (!frame->check->list)
                return 1;
        r = buffer_add(&suggestion, "", 0);
        if (r == 0 && properties)
                r = check_spend(frame->check, STEPS_PER_WORD * properties->n_nodes);
        if (r == 0 && properties)
                r = suggest(properties->names, name, &suggestion);
        if (r < 0)
                return r;
        return mistake(frame, keyword, "the property '%s' is not known here%s",
                       quote_name(name, quote), suggestion.data);
}

static int tell_forbidden(const struct frame *frame, const char *keyword, const char *name)
{
        char quote[QUOTE_ROOM];

        return mistake(frame, keyword, "the property '%s' is not allowed here",
                       quote_name(name, quote));
}

/* ---- Properties by name, by pattern, and the rest: one walk for all three ---- */

/* A name that is forbidden is told at the object that has it: there the name is to be changed. */
static int check_value(const struct frame *frame, const struct node *node, const char *keyword,
                       const char *name, const json_t *value)
{
        struct place place = { .parent = frame->at, .key = name };

        if (!node->never)
                return check_node(frame->check, node, value, &place, NULL);
        if (strcmp(keyword, "properties") == 0 || strcmp(keyword, "patternProperties") == 0)
                return tell_forbidden(frame, keyword, name);
        return tell_unknown(frame, keyword, name);
}

/* Sets *known where `properties` or a pattern speaks of the name. */
static int check_known(const struct frame *frame, const char *name, const json_t *value,
                       bool *known)
{
        const struct rule *named = frame->node->properties,
                          *patterns = frame->node->pattern_properties;
        const json_t *number = named ? json_object_get(named->names, name) : NULL;
        int result = 0, r;

        if (number) {
                *known = true;
                result = check_value(frame, named->nodes[json_integer_value(number)], "properties",
                                     name, value);
                if (check_is_over(frame->check, result))
                        return result;
        }
        for (size_t i = 0; patterns && i < patterns->n_nodes; i++) {
                r = regex_match(frame->check, patterns->regexes[i], name, strlen(name));
                if (r < 0)
                        return r;
                if (r > 0)
                        continue;
                *known = true;
                r = check_value(frame, patterns->nodes[i], "patternProperties", name, value);
                if (check_is_over(frame->check, r))
                        return r;
                result |= r;
        }
        return result;
}

int check_members(const struct frame *frame, const struct rule *rule)
{
        const struct node *node = frame->node;
        const struct rule *first = node->properties           ? node->properties
                                   : node->pattern_properties ? node->pattern_properties
                                                              : node->additional;
        const char *name;
        json_t *value;
        size_t i = 0;
        int result = 0;

        if (rule != first)
                return 0;
        json_object_foreach((json_t *)frame->instance, name, value)
        {
                bool known = false;
                int r = spend_on_name(frame, strlen(name));

                if (r == 0)
                        r = check_known(frame, name, value, &known);
                if (r == 0 && !known && node->additional) {
                        known = true;
                        r = check_value(frame, node->additional->nodes[0], "additionalProperties",
                                        name, value);
                }
                if (check_is_over(frame->check, r))
                        return r;
                result |= r;
                if (known)
                        marks_set(frame->marks, i);
                i++;
        }
        return result;
}

int check_unevaluated_properties(const struct frame *frame, const struct rule *rule)
{
        const char *name;
        json_t *value;
        size_t i = 0;
        int result = 0;

        json_object_foreach((json_t *)frame->instance, name, value)
        {
                int r = check_spend(frame->check, 1);

                if (r == 0 && !marks_has(frame->marks, i))
                        r = check_value(frame, rule->nodes[0], "unevaluatedProperties", name,
                                        value);
                if (check_is_over(frame->check, r))
                        return r;
                result |= r;
                marks_set(frame->marks, i++);
        }
        return result;
}

/* ---- Names ---- */

/* What is wrong with a name is told as one mistake of the object. */
static int tell_name(const struct frame *frame, const char *name,
                     const struct schema_mistakes *found)
{
        char quote[QUOTE_ROOM];

        return mistake(frame, "propertyNames", "the property name '%s' is not allowed%s%s",
                       quote_name(name, quote), found->n ? ": it " : "",
                       found->n ? found->items[0].text : "");
}

static int check_name(const struct frame *frame, const struct node *node, const char *name)
{
        _cleanup_schema_mistakes_ struct schema_mistakes found = SCHEMA_MISTAKES_INIT;
        _cleanup_value_ json_t *text = json_string(name);
        struct schema_mistakes *list = frame->check->list;
        int r = spend_on_name(frame, strlen(name));

        if (r < 0)
                return r;
        if (!text)
                return -ENOMEM;
        frame->check->list = list ? &found : NULL;
        r = check_node(frame->check, node, text, frame->at, NULL);
        frame->check->list = list;
        return r > 0 ? tell_name(frame, name, &found) : r;
}

int check_property_names(const struct frame *frame, const struct rule *rule)
{
        const char *name;
        json_t *value;
        int result = 0;

        json_object_foreach((json_t *)frame->instance, name, value)
        {
                int r = check_name(frame, rule->nodes[0], name);

                if (check_is_over(frame->check, r))
                        return r;
                result |= r;
        }
        return result;
}
