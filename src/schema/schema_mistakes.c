/* SPDX-License-Identifier: MIT */
/*
 * What is wrong, in words. Whoever reads them wrote the value, and may be a language model: they
 * name what was asked for and what was found, and quote both, cut and free of control characters.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "schema/schema_parts.h"

#define STEPS_PER_MISTAKE 128 /* to print one takes as long */

/* ---- Places ---- */

static int print_key(const char *key, struct buffer *to)
{
        for (; *key && to->length < SCHEMA_PATH_MAX; key++) {
                int r = *key == '~'   ? buffer_add(to, "~0", 2)
                        : *key == '/' ? buffer_add(to, "~1", 2)
                                      : buffer_add(to, key, 1);

                if (r < 0)
                        return r;
        }
        return 0;
}

static void cut_path(struct buffer *path)
{
        static const char dots[] = "...";
        size_t end = SCHEMA_PATH_MAX - sizeof(dots);

        if (path->length < SCHEMA_PATH_MAX)
                return;
        while (end > 0 && ((unsigned char)path->data[end] & 0xc0) == 0x80)
                end--; /* not through the middle of a character */
        memcpy(path->data + end, dots, sizeof(dots));
        path->length = end + strlen(dots);
}

int place_print(const struct place *at, struct buffer *to)
{
        const struct place *steps[MAX(SCHEMA_DEPTH_MAX, SCHEMA_INSTANCE_DEPTH_MAX) + 1];
        size_t n = 0;
        int r;

        for (; at && n < ARRAY_SIZE(steps); at = at->parent)
                steps[n++] = at;
        r = buffer_add(to, "", 0);
        while (r == 0 && n > 0 && to->length < SCHEMA_PATH_MAX) {
                at = steps[--n];
                if (!at->key) {
                        r = buffer_printf(to, "/%zu", at->index);
                        continue;
                }
                r = buffer_add(to, "/", 1);
                if (r == 0)
                        r = print_key(at->key, to);
        }
        if (r < 0)
                return r;
        cut_path(to);
        text_make_showable(to->data);
        return 0;
}

/* ---- Quotes ---- */

/* Cut to at most so many bytes, between two characters. */
static size_t cut_length(const char *text, size_t length)
{
        if (length <= SCHEMA_QUOTE_MAX)
                return length;
        length = SCHEMA_QUOTE_MAX;
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
                length--;
        return length;
}

const char *quote_name(const char *name, char quote[QUOTE_ROOM])
{
        size_t length = cut_length(name, strnlen(name, SCHEMA_QUOTE_MAX + 1));

        (void)snprintf(quote, QUOTE_ROOM, "%.*s%s", (int)length, name, name[length] ? "..." : "");
        text_make_showable(quote);
        return quote;
}

static void quote_string(const json_t *string, char quote[QUOTE_ROOM])
{
        size_t length = json_string_length(string), n = 0;
        const char *text = json_string_value(string);
        const size_t cut = cut_length(text, length);

        quote[n++] = '"';
        for (size_t i = 0; i < cut && n < QUOTE_ROOM - 8; i++) {
                static const char plain[] = "\"\\\n\t\r", letters[] = "\"\\ntr";
                const char *special = text[i] ? strchr(plain, text[i]) : NULL;

                if (special)
                        quote[n++] = '\\';
                quote[n++] = special ? letters[special - plain] : text[i] ? text[i] : '?';
        }
        (void)snprintf(quote + n, QUOTE_ROOM - n, "%s\"", cut < length ? "..." : "");
        text_make_showable(quote);
}

const char *quote_value(const json_t *value, char quote[QUOTE_ROOM])
{
        switch (json_typeof(value)) {
        case JSON_STRING:
                quote_string(value, quote);
                return quote;
        case JSON_INTEGER:
        case JSON_REAL:
                number_print(value, quote);
                return quote;
        case JSON_NULL:
                return "null";
        case JSON_TRUE:
                return "true";
        case JSON_FALSE:
                return "false";
        case JSON_ARRAY:
                return json_array_size(value) ? "an array" : "an empty array";
        case JSON_OBJECT:
                break;
        }
        return json_object_size(value) ? "an object" : "an empty object";
}

/* ---- Lists ---- */

static void mistake_clear(struct schema_mistake *item)
{
        free(item->path);
        free(item->keyword);
        free(item->text);
}

void schema_mistakes_free(struct schema_mistakes *mistakes)
{
        for (size_t i = 0; i < mistakes->n; i++)
                mistake_clear(&mistakes->items[i]);
        free(mistakes->items);
        *mistakes = (struct schema_mistakes)SCHEMA_MISTAKES_INIT;
}

static bool same(const struct schema_mistake *a, const struct schema_mistake *b)
{
        return strcmp(a->path, b->path) == 0 && strcmp(a->keyword, b->keyword) == 0 &&
               strcmp(a->text, b->text) == 0;
}

/* Takes what the item points to, also where it is not listed. */
static int append(struct schema_mistakes *to, struct schema_mistake item)
{
        bool known = false;

        for (size_t i = 0; i < to->n && !known; i++)
                known = same(&to->items[i], &item);
        if (known || to->n == SCHEMA_MISTAKES_MAX) {
                to->cut |= !known;
                mistake_clear(&item);
                return 0;
        }
        if (!to->items)
                to->items = calloc(SCHEMA_MISTAKES_MAX, sizeof(*to->items));
        if (!to->items) {
                mistake_clear(&item);
                return -ENOMEM;
        }
        to->items[to->n++] = item;
        return 0;
}

int mistakes_move(struct schema_mistakes *to, struct schema_mistakes *from)
{
        int r = 0;

        to->cut |= from->cut;
        for (size_t i = 0; i < from->n; i++) {
                struct schema_mistake item = from->items[i];

                from->items[i] = (struct schema_mistake){ NULL, NULL, NULL };
                if (r == 0)
                        r = append(to, item);
                else
                        mistake_clear(&item);
        }
        schema_mistakes_free(from);
        return r;
}

int mistake_add(struct check *check, const struct place *at, const char *keyword, char *text)
{
        _cleanup_buffer_ struct buffer path = BUFFER_INIT;
        struct schema_mistake item = { .text = text };
        int r = place_print(at, &path);

        item.keyword = strdup(keyword);
        item.path = TAKE_PTR(path.data);
        if (r < 0 || !item.keyword || !item.path || !item.text) {
                mistake_clear(&item);
                return -ENOMEM;
        }
        text_make_showable(item.text);
        r = append(check->list, item);
        return r < 0 ? r : 1;
}

int mistake(const struct frame *frame, const char *keyword, const char *format, ...)
{
        char *text = NULL;
        va_list args;
        int n;

        if (!frame->check->list)
                return 1;
        n = check_spend(frame->check, STEPS_PER_MISTAKE);
        if (n < 0)
                return n;
        va_start(args, format);
        n = vasprintf(&text, format, args);
        va_end(args);
        if (n < 0)
                return -ENOMEM;
        return mistake_add(frame->check, frame->at, keyword, text);
}
