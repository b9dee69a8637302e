/* SPDX-License-Identifier: MIT */
/*
 * Values to JSON text. jansson writes every number with as many digits as it is told; here each has
 * the fewest that read back as the same number, so that 0.1 stays 0.1 and nothing is lost.
 */
#include <stdio.h>
#include <string.h>

#include "policy/json_read.h"
#include "policy/policy.h"

void json_write_number(double number, char room[NUMBER_ROOM])
{
        number_write(number, room);
        /* It was no integer when it was read, and is none when it is read again. */
        if (!strpbrk(room, ".eEn"))
                snprintf(room + strlen(room), NUMBER_ROOM - strlen(room), ".0");
}

/* A character that cannot stand for itself in a string. */
static int write_escape(struct buffer *to, unsigned char c)
{
        static const struct {
                char c, letter;
        } brief[] = { { '"', '"' }, { '\\', '\\' }, { '\n', 'n' }, { '\t', 't' }, { '\r', 'r' } };

        for (size_t i = 0; i < ARRAY_SIZE(brief); i++)
                if ((unsigned char)brief[i].c == c)
                        return buffer_add(to, (char[]){ '\\', brief[i].letter }, 2);
        return buffer_printf(to, "\\u%04x", c);
}

static int write_string(struct buffer *to, const json_t *value)
{
        const char *s = json_string_value(value), *end = s + json_string_length(value);
        int r = buffer_add(to, "\"", 1);

        while (r == 0 && s < end) {
                const char *plain = s;

                while (s < end && (unsigned char)*s >= 0x20 && *s != '"' && *s != '\\')
                        s++;
                r = buffer_add(to, plain, (size_t)(s - plain));
                if (r == 0 && s < end)
                        r = write_escape(to, (unsigned char)*s++);
        }
        return r < 0 ? r : buffer_add(to, "\"", 1);
}

struct writer {
        struct buffer *to;
        unsigned indent, depth;
};

static int new_line(const struct writer *writer)
{
        int r = writer->indent > 0 ? buffer_add(writer->to, "\n", 1) : 0;

        for (unsigned i = 0; r == 0 && i < writer->indent * writer->depth; i++)
                r = buffer_add(writer->to, " ", 1);
        return r;
}

static int write_value(struct writer *writer, const json_t *value);

/* What stands before the next item of an array or object. */
static int write_separator(const struct writer *writer, bool first)
{
        int r = first ? 0 : buffer_add(writer->to, ",", 1);

        return r < 0 ? r : new_line(writer);
}

static int write_members(struct writer *writer, const json_t *value)
{
        bool first = true;
        json_t *member;
        const char *key;
        int r = 0;

        json_object_foreach((json_t *)value, key, member)
        {
                _cleanup_json_ json_t *name = json_string(key);

                r = name ? write_separator(writer, first) : -ENOMEM;
                if (r == 0)
                        r = write_string(writer->to, name);
                if (r == 0)
                        r = buffer_add(writer->to, ": ", writer->indent > 0 ? 2 : 1);
                if (r == 0)
                        r = write_value(writer, member);
                if (r < 0)
                        break;
                first = false;
        }
        return r;
}

static int write_items(struct writer *writer, const json_t *value)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < json_array_size(value); i++) {
                r = write_separator(writer, i == 0);
                if (r == 0)
                        r = write_value(writer, json_array_get(value, i));
        }
        return r;
}

static int write_container(struct writer *writer, const json_t *value)
{
        bool array = json_is_array(value);
        bool empty = (array ? json_array_size(value) : json_object_size(value)) == 0;
        int r = buffer_add(writer->to, array ? "[" : "{", 1);

        writer->depth++;
        if (r == 0)
                r = array ? write_items(writer, value) : write_members(writer, value);
        writer->depth--;
        if (r == 0 && !empty)
                r = new_line(writer);
        return r < 0 ? r : buffer_add(writer->to, array ? "]" : "}", 1);
}

static int write_value(struct writer *writer, const json_t *value)
{
        char room[NUMBER_ROOM];

        switch (json_typeof(value)) {
        case JSON_OBJECT:
        case JSON_ARRAY:
                return write_container(writer, value);
        case JSON_STRING:
                return write_string(writer->to, value);
        case JSON_INTEGER:
                return buffer_printf(writer->to, "%" JSON_INTEGER_FORMAT,
                                     json_integer_value(value));
        case JSON_REAL:
                json_write_number(json_real_value(value), room);
                return buffer_add(writer->to, room, strlen(room));
        case JSON_TRUE:
                return buffer_add(writer->to, "true", 4);
        case JSON_FALSE:
                return buffer_add(writer->to, "false", 5);
        default:
                return buffer_add(writer->to, "null", 4);
        }
}

char *json_write(const json_t *value, unsigned indent)
{
        _cleanup_buffer_ struct buffer text = BUFFER_INIT;
        struct writer writer = { .to = &text, .indent = indent };

        return write_value(&writer, value) < 0 ? NULL : TAKE_PTR(text.data);
}
