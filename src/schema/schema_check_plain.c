/* SPDX-License-Identifier: MIT */
/* Keywords about values that hold no others: types, numbers, strings, and sets of values. */
#include <string.h>

#include "schema/schema_parts.h"

#define ENUM_LISTED 10 /* values of an enum that are told */

/* ---- Types ---- */

static const struct {
        unsigned type;
        const char *name;
} type_names[] = {
        { TYPE_STRING, "a string" }, { TYPE_INTEGER, "an integer" },
        { TYPE_NUMBER, "a number" }, { TYPE_BOOLEAN, "true or false" },
        { TYPE_ARRAY, "an array" },  { TYPE_OBJECT, "an object" },
        { TYPE_NULL, "null" },
};

int check_type(const struct frame *frame, const struct rule *rule)
{
        _cleanup_buffer_ struct buffer names = BUFFER_INIT;
        char quote[QUOTE_ROOM];

        if (rule->count & value_type(frame->instance))
                return 0;
        if (!frame->check->list)
                return 1;
        for (size_t i = 0; i < ARRAY_SIZE(type_names); i++)
                if ((rule->count & type_names[i].type) &&
                    buffer_printf(&names, "%s%s", names.length ? " or " : "", type_names[i].name) <
                            0)
                        return -ENOMEM;
        return mistake(frame, "type", "must be %s, is %s%s", names.data,
                       json_is_string(frame->instance) ? "the string " : "",
                       quote_value(frame->instance, quote));
}

/* ---- Sets of values ---- */

static int list_values(const json_t *values, struct buffer *to)
{
        size_t i;
        json_t *value;

        json_array_foreach((json_t *)values, i, value)
        {
                char quote[QUOTE_ROOM];
                int r;

                if (i == ENUM_LISTED)
                        return buffer_printf(to, " and %zu more", json_array_size(values) - i);
                r = buffer_printf(to, "%s%s", i ? ", " : "", quote_value(value, quote));
                if (r < 0)
                        return r;
        }
        return buffer_add(to, "", 0);
}

/* The string among the values that was probably meant. */
static const char *nearest_value(const json_t *values, const json_t *instance)
{
        const char *nearest = NULL;
        int best = WORD_FAR;
        size_t i;
        json_t *value;

        if (!json_is_string(instance))
                return NULL;
        json_array_foreach((json_t *)values, i,
                           value) if (json_is_string(value) &&
                                      word_is_nearer(json_string_value(instance),
                                                     json_string_value(value),
                                                     json_string_length(value), &best)) nearest =
                json_string_value(value);
        return nearest;
}

int check_enum(const struct frame *frame, const struct rule *rule)
{
        _cleanup_buffer_ struct buffer values = BUFFER_INIT;
        char found[QUOTE_ROOM], meant[QUOTE_ROOM];
        const char *nearest;
        json_t *value;
        size_t i;
        int r;

        json_array_foreach((json_t *)rule->value, i, value)
        {
                r = value_equal(frame->check, value, frame->instance);
                if (r <= 0)
                        return r;
        }
        if (!frame->check->list)
                return 1;
        if (list_values(rule->value, &values) < 0)
                return -ENOMEM;
        r = check_spend(frame->check, STEPS_PER_WORD * json_array_size(rule->value));
        if (r < 0)
                return r;
        nearest = nearest_value(rule->value, frame->instance);
        if (nearest)
                return mistake(frame, "enum", "must be one of %s, is %s; did you mean \"%s\"?",
                               values.data, quote_value(frame->instance, found),
                               quote_name(nearest, meant));
        return mistake(frame, "enum", "must be one of %s, is %s", values.data,
                       quote_value(frame->instance, found));
}

int check_const(const struct frame *frame, const struct rule *rule)
{
        char wanted[QUOTE_ROOM], found[QUOTE_ROOM];
        int r = value_equal(frame->check, rule->value, frame->instance);

        if (r <= 0)
                return r;
        if ((json_is_object(rule->value) && json_is_object(frame->instance)) ||
            (json_is_array(rule->value) && json_is_array(frame->instance)))
                return mistake(frame, "const", "must be exactly the value that the schema has");
        return mistake(frame, "const", "must be %s, is %s", quote_value(rule->value, wanted),
                       quote_value(frame->instance, found));
}

/* ---- Numbers ---- */

static int wrong_number(const struct frame *frame, const struct rule *rule, const char *wanted)
{
        char bound[QUOTE_ROOM], found[QUOTE_ROOM];

        return mistake(frame, rule->keyword->name, "must be %s %s, is %s", wanted,
                       quote_value(rule->value, bound), quote_value(frame->instance, found));
}

int check_multiple_of(const struct frame *frame, const struct rule *rule)
{
        return number_is_multiple(frame->instance, rule->value)
                       ? 0
                       : wrong_number(frame, rule, "a multiple of");
}

int check_maximum(const struct frame *frame, const struct rule *rule)
{
        return number_compare(frame->instance, rule->value) <= 0
                       ? 0
                       : wrong_number(frame, rule, "at most");
}

int check_exclusive_maximum(const struct frame *frame, const struct rule *rule)
{
        return number_compare(frame->instance, rule->value) < 0
                       ? 0
                       : wrong_number(frame, rule, "less than");
}

int check_minimum(const struct frame *frame, const struct rule *rule)
{
        return number_compare(frame->instance, rule->value) >= 0
                       ? 0
                       : wrong_number(frame, rule, "at least");
}

int check_exclusive_minimum(const struct frame *frame, const struct rule *rule)
{
        return number_compare(frame->instance, rule->value) > 0
                       ? 0
                       : wrong_number(frame, rule, "more than");
}

/* ---- Strings ---- */

static int wrong_length(const struct frame *frame, const struct rule *rule, const char *wanted,
                        size_t length)
{
        return mistake(frame, rule->keyword->name, "must have at %s %llu character%s, has %zu",
                       wanted, (unsigned long long)rule->count, rule->count == 1 ? "" : "s",
                       length);
}

static int read_length(const struct frame *frame, size_t *ret)
{
        int r = check_spend(frame->check, json_string_length(frame->instance) / BYTES_PER_STEP);

        if (r == 0)
                *ret = value_length(frame->instance);
        return r;
}

int check_max_length(const struct frame *frame, const struct rule *rule)
{
        size_t length = 0;
        int r = read_length(frame, &length);

        return r < 0 || length <= rule->count ? r : wrong_length(frame, rule, "most", length);
}

int check_min_length(const struct frame *frame, const struct rule *rule)
{
        size_t length = 0;
        int r = read_length(frame, &length);

        return r < 0 || length >= rule->count ? r : wrong_length(frame, rule, "least", length);
}

int check_pattern(const struct frame *frame, const struct rule *rule)
{
        char pattern[QUOTE_ROOM], found[QUOTE_ROOM];
        int r = regex_match(frame->check, rule->regexes[0], json_string_value(frame->instance),
                            json_string_length(frame->instance));

        if (r <= 0)
                return r;
        return mistake(frame, "pattern", "must match the pattern %s, is %s",
                       quote_value(rule->value, pattern), quote_value(frame->instance, found));
}
