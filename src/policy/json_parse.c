/* SPDX-License-Identifier: MIT */
/*
 * JSON text to values. jansson does the parsing; before it a scan without recursion refuses what
 * nests too deeply, and after a refusal the same scan, stopped at the mistake, tells its path.
 */
#include <string.h>

#include "policy/policy_parts.h"

#define JSON_DEPTH_MAX 64
/* A parsed value takes far more memory than its text, an object most of all: "{}," some 80 times as
 * much. Objects and arrays weigh as much as four other values. */
#define JSON_WEIGHT_MAX 2000000

struct scan_level {
        bool array;
        size_t index;    /* in an array */
        const char *key; /* in an object: the last key, as it is written; NULL before it */
        size_t key_length;
};

struct scan {
        struct scan_level levels[JSON_DEPTH_MAX];
        size_t depth;
        size_t weight;
        int line;
};

/* The closing quote of the string that begins at `s`, or `end`. */
static const char *scan_string(const char *s, const char *end)
{
        for (s++; s < end && *s != '"'; s++)
                if (*s == '\\' && s + 1 < end)
                        s++;
        return s;
}

/* Follow brackets, keys and commas. False as soon as there are too many levels or values. Text that
 * is not JSON is followed no further than to jansson's first complaint, so it may scan as anything.
 */
static bool scan_text(struct scan *scan, const char *text, size_t length)
{
        const char *end = text + length;

        *scan = (struct scan){ .line = 1 };
        for (const char *s = text; s < end; s++) {
                struct scan_level *level = scan->depth ? &scan->levels[scan->depth - 1] : NULL;
                const char *begin = s + 1;

                switch (*s) {
                case '"':
                        s = scan_string(s, end);
                        if (level && !level->array && !level->key && s < end) {
                                level->key = begin;
                                level->key_length = (size_t)(s - begin);
                        }
                        break;
                case '[':
                case '{':
                        scan->weight += 4;
                        if (scan->depth == JSON_DEPTH_MAX || scan->weight > JSON_WEIGHT_MAX)
                                return false;
                        scan->levels[scan->depth++] = (struct scan_level){ .array = *s == '[' };
                        break;
                case ']':
                case '}':
                        if (scan->depth > 0)
                                scan->depth--;
                        break;
                case ',':
                        if (++scan->weight > JSON_WEIGHT_MAX)
                                return false;
                        if (level) {
                                level->index++;
                                level->key = NULL;
                        }
                        break;
                case '\n':
                        scan->line++;
                        break;
                default:
                        break;
                }
        }
        return true;
}

static void scan_path(const struct scan *scan, char path[JSON_PATH_MAX])
{
        path[0] = '\0';
        for (size_t i = 0; i < scan->depth; i++) {
                const struct scan_level *level = &scan->levels[i];

                if (level->array)
                        json_path_add_index(path, level->index);
                else if (level->key)
                        json_path_add_key(path, level->key, level->key_length);
        }
}

static int refuse_line(const char *path, const char *what, int line, unsigned flags,
                       const char *sentence, cbx_error *error)
{
        if (flags & JSON_PARSE_LINE)
                return error_set(error, -EINVAL, path, "%s", sentence);
        return error_set(error, -EINVAL, path, "%s, line %d: %s", what, line, sentence);
}

static int refuse_text(const char *text, size_t length, const char *what, unsigned flags,
                       const json_error_t *mistake, cbx_error *error)
{
        static const struct {
                enum json_error_code code;
                const char *text;
        } sentences[] = {
                { json_error_duplicate_key, "this key is given twice" },
                { json_error_numeric_overflow, "this number is out of range" },
                { json_error_null_character, "a string may not hold a NUL" },
                { json_error_null_byte_in_key, "a key may not hold a NUL" },
                { json_error_invalid_utf8, "this is not UTF-8" },
        };
        enum json_error_code code = json_error_code(mistake);
        char path[JSON_PATH_MAX];
        struct scan scan;

        /* Out of memory, jansson mostly just stops, without a text. */
        if (code == json_error_out_of_memory || mistake->text[0] == '\0')
                return error_oom(error);
        (void)scan_text(&scan, text, MIN(length, (size_t)MAX(mistake->position, 0)));
        scan_path(&scan, path);
        for (size_t i = 0; i < ARRAY_SIZE(sentences); i++)
                if (sentences[i].code == code)
                        return refuse_line(path, what, mistake->line, flags, sentences[i].text,
                                           error);
        if (flags & JSON_PARSE_LINE)
                return error_set(error, -EINVAL, path, "%s is not JSON: %s", what, mistake->text);
        return error_set(error, -EINVAL, path, "%s, line %d, is not JSON: %s", what, mistake->line,
                         mistake->text);
}

int json_parse(const char *text, size_t length, const char *what, size_t limit, unsigned flags,
               cbx_error *error, json_t **ret_json)
{
        char too_deep[64];
        json_error_t mistake;
        struct scan scan;
        json_t *json;

        if (length == 0)
                return error_set(error, -EINVAL, NULL, "%s is empty", what);
        if (length > limit)
                return error_set(error, -EFBIG, NULL, "%s is longer than %zu bytes", what, limit);
        snprintf(too_deep, sizeof(too_deep), "nested more than %d deep", JSON_DEPTH_MAX);
        if (!scan_text(&scan, text, length))
                return scan.weight > JSON_WEIGHT_MAX
                               ? error_set(error, -EFBIG, NULL, "%s has too many values", what)
                               : refuse_line(NULL, what, scan.line, flags, too_deep, error);
        json = json_loadb(text, length,
                          JSON_REJECT_DUPLICATES | JSON_DECODE_ANY |
                                  (flags & JSON_PARSE_NUL ? JSON_ALLOW_NUL : 0),
                          &mistake);
        if (!json)
                return refuse_text(text, length, what, flags, &mistake, error);
        *ret_json = json;
        return 0;
}

int policy_json_parse(const char *text, size_t length, const char *what, cbx_error *error,
                      json_t **ret_json)
{
        return json_parse(text, length, what, POLICY_TEXT_MAX, 0, error, ret_json);
}
