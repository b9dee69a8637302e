/* SPDX-License-Identifier: MIT */
/*
 * Reading JSON documents strictly: every value has a place, every refusal names it
 * ("files.read[2].box"), and an unknown word is answered with the nearest known one.
 */
#ifndef POLICY_JSON_READ_H
#define POLICY_JSON_READ_H

#include <jansson.h>

#include "base/base.h"

#define JSON_PATH_MAX 128

/* Add a step to a path; what does not fit is left out. */
void json_path_add_key(char path[JSON_PATH_MAX], const char *key, size_t length);
void json_path_add_index(char path[JSON_PATH_MAX], size_t index);

/* Where a value is in its document; NULL is the document itself. Lives on the reader's stack. */
struct json_place {
        const struct json_place *parent;
        const char *key; /* NULL: an element of an array */
        size_t index;
};

void json_place_str(const struct json_place *at, char path[JSON_PATH_MAX]);

/* Refuse the value at a place. Macros, so that readers of the code and its checkers see the
 * failure: -EINVAL. */
#define json_refuse(at, error, ...) (json_set_refusal((at), (error), __VA_ARGS__), -EINVAL)
#define json_refuse_type(at, error, wanted, value)                                                 \
        json_refuse((at), (error), "must be %s, not %s", (wanted), json_type_str(value))

void json_set_refusal(const struct json_place *at, cbx_error *error, const char *format, ...)
        PRINTF_LIKE(3, 4);
const char *json_type_str(const json_t *value); /* "an object", "null", ... */

/* Words that are known at a place: a table whose rows begin with a `const char *`. */
struct json_words {
        const void *rows;
        size_t count, stride;
};
#define JSON_WORDS(table)                                                                          \
        (struct json_words)                                                                        \
        {                                                                                          \
                (table), ARRAY_SIZE(table), sizeof((table)[0])                                     \
        }

static inline const char *json_word(const struct json_words *words, size_t i)
{
        return *(const char *const *)((const char *)words->rows + i * words->stride);
}

/* Refuse an object that has a key which is not one of these. */
int json_check_keys(json_t *object, const struct json_place *at, struct json_words keys,
                    cbx_error *error);

/* ---- Readers: what they return stays untouched on failure. ---- */

int json_read_string(json_t *value, const struct json_place *at, cbx_error *error,
                     const char **ret_text);
int json_read_bool(json_t *value, const struct json_place *at, cbx_error *error, bool *ret_bool);

/* One of a few words; ret_index is its row. */
int json_read_choice(json_t *value, const struct json_place *at, struct json_words choices,
                     cbx_error *error, size_t *ret_index);

typedef int json_reader(json_t *value, const struct json_place *at, cbx_error *error, void *to);

struct json_field {
        const char *key;
        json_reader *read;
};

/* Read the fields that are there, in the order of the table; any other key is refused. */
int json_read_fields(json_t *value, const struct json_place *at, const struct json_field *fields,
                     size_t n_fields, cbx_error *error, void *to);
int json_read_array(json_t *value, const struct json_place *at, json_reader *read, cbx_error *error,
                    void *to);

/* ---- Text (json_parse.c, json_write.c) ---- */

enum {
        JSON_PARSE_NUL = 1 << 0,  /* strings may hold a NUL */
        JSON_PARSE_LINE = 1 << 1, /* it is one line of many: the caller says which */
};

/* Parse strictly: one value, no duplicate keys, at most 64 levels and `limit` bytes. `what` names
 * the document in errors ("the policy"). */
int json_parse(const char *text, size_t length, const char *what, size_t limit, unsigned flags,
               cbx_error *error, json_t **ret_json);

/* The text of a value, in one line where indent is 0; NULL when memory ran out. */
char *json_write(const json_t *value, unsigned indent);
void json_write_number(double number, char room[NUMBER_ROOM]);

/* ---- Suggestions (json_suggest.c) ---- */

/* The nearest of some words, or NULL if none is near. */
const char *json_nearest(const char *word, struct json_words words);

/* Who says what runs without a box: no document does, whatever the key. */
bool json_asks_for_no_box(const char *key);
#define JSON_WHO_MAY                                                                               \
        "what runs without a box only the application says: cbx_toolbox_options, or --mode and "   \
        "--elevate of callbox tool and callbox mcp"

/* Refuse a key, with the one that was probably meant. */
int json_refuse_key(const struct json_place *at, const char *key, struct json_words keys,
                    cbx_error *error);

#endif
