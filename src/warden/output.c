/* SPDX-License-Identifier: MIT */
/* Head and tail of a stream. Memory grows with what is kept, never with what is written. */
#include "warden/output.h"

#include <string.h>

void output_init(struct output *output, size_t capacity)
{
        *output = (struct output){ .capacity = capacity };
}

void output_free(struct output *output)
{
        free(output->head);
        free(output->tail);
        *output = (struct output){ .capacity = output->capacity };
}

static size_t head_room(const struct output *output)
{
        return output->capacity - output->capacity / 2;
}

static size_t tail_room(const struct output *output)
{
        return output->capacity / 2;
}

static size_t add_to_head(struct output *output, const char *data, size_t length)
{
        size_t n = MIN(length, head_room(output) - output->head_length);

        memcpy(output->head + output->head_length, data, n);
        output->head_length += n;
        return n;
}

static void add_to_tail(struct output *output, const char *data, size_t length)
{
        size_t room = tail_room(output), end, first;

        if (length > room) {
                data += length - room;
                length = room;
        }
        if (length == 0)
                return;
        end = output->tail_at + output->tail_length;
        end -= end >= room ? room : 0;
        first = MIN(length, room - end);
        memcpy(output->tail + end, data, first);
        memcpy(output->tail, data + first, length - first);
        output->tail_length += length;
        if (output->tail_length > room) {
                output->tail_at += output->tail_length - room;
                output->tail_at -= output->tail_at >= room ? room : 0;
                output->tail_length = room;
        }
}

int output_add(struct output *output, const char *data, size_t length)
{
        size_t n;

        output->total += length;
        if (length == 0 || output->capacity == 0)
                return 0;
        if (!output->head)
                output->head = malloc(head_room(output));
        if (!output->head)
                return -ENOMEM;
        n = add_to_head(output, data, length);
        if (n == length)
                return 0;
        if (!output->tail)
                output->tail = malloc(MAX(tail_room(output), 1));
        if (!output->tail)
                return -ENOMEM;
        add_to_tail(output, data + n, length - n);
        return 0;
}

uint64_t output_omitted(const struct output *output)
{
        return output->total - output->head_length - output->tail_length;
}

void output_parts(const struct output *output, struct iovec parts[OUTPUT_PARTS])
{
        size_t first = MIN(output->tail_length, tail_room(output) - output->tail_at);

        parts[0] = (struct iovec){ output->head, output->head_length };
        parts[1] = (struct iovec){ output->tail ? output->tail + output->tail_at : NULL, first };
        parts[2] = (struct iovec){ output->tail, output->tail_length - first };
}

int output_take_kept(struct output *output, const char *data)
{
        output->head = malloc(MAX(output->head_length, 1));
        output->tail = malloc(MAX(output->tail_length, 1));
        if (!output->head || !output->tail)
                return -ENOMEM;
        memcpy(output->head, data, output->head_length);
        memcpy(output->tail, data + output->head_length, output->tail_length);
        output->tail_at = 0;
        return 0;
}

int output_join(const struct output *output, char **ret_data, size_t *ret_length)
{
        struct iovec parts[OUTPUT_PARTS];
        size_t length = output->head_length + output->tail_length, at = 0;
        char *data = malloc(length + 1);

        if (!data)
                return -ENOMEM;
        output_parts(output, parts);
        for (size_t i = 0; i < OUTPUT_PARTS; i++) {
                if (parts[i].iov_base)
                        memcpy(data + at, parts[i].iov_base, parts[i].iov_len);
                at += parts[i].iov_len;
        }
        data[length] = '\0';
        *ret_data = data;
        *ret_length = length;
        return 0;
}

/* The length of the valid UTF-8 sequence at `data`, 0 when there is none. */
static size_t sequence(const unsigned char *data, size_t length)
{
        static const struct {
                unsigned char mask, lead;
                size_t n;
                uint32_t least;
        } forms[] = { { 0x80, 0x00, 1, 0x00 },
                      { 0xe0, 0xc0, 2, 0x80 },
                      { 0xf0, 0xe0, 3, 0x800 },
                      { 0xf8, 0xf0, 4, 0x10000 } };

        for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
                uint32_t point;

                if ((data[0] & forms[i].mask) != forms[i].lead)
                        continue;
                if (forms[i].n > length)
                        return 0;
                point = data[0] & (unsigned char)~forms[i].mask;
                for (size_t j = 1; j < forms[i].n; j++) {
                        if ((data[j] & 0xc0) != 0x80)
                                return 0;
                        point = point << 6 | (data[j] & 0x3f);
                }
                if (point < forms[i].least || point > 0x10ffff ||
                    (point >= 0xd800 && point <= 0xdfff))
                        return 0;
                return forms[i].n;
        }
        return 0;
}

int output_decode(const char *data, size_t length, struct buffer *to, bool *replaced)
{
        const unsigned char *bytes = (const unsigned char *)data;
        size_t at = 0, from = 0;

        while (at < length) {
                size_t n = bytes[at] ? sequence(bytes + at, length - at) : 0;

                if (n > 0) {
                        at += n;
                        continue;
                }
                if (buffer_add(to, data + from, at - from) < 0 ||
                    buffer_add(to, "\xef\xbf\xbd", 3) < 0)
                        return -ENOMEM;
                *replaced = true;
                from = ++at;
        }
        return buffer_add(to, data + from, length - from);
}

static json_t *base64(const char *data, size_t length)
{
        static const char digits[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const unsigned char *in = (const unsigned char *)data;
        _cleanup_free_ char *text = malloc((length + 2) / 3 * 4 + 1);
        size_t n = 0;

        if (!text)
                return NULL;
        for (size_t i = 0; i < length; i += 3) {
                size_t left = length - i;
                uint32_t group = (uint32_t)in[i] << 16;

                group |= left > 1 ? (uint32_t)in[i + 1] << 8 : 0;
                group |= left > 2 ? in[i + 2] : 0;
                text[n++] = digits[group >> 18];
                text[n++] = digits[group >> 12 & 63];
                text[n++] = left > 1 ? digits[group >> 6 & 63] : '=';
                text[n++] = left > 2 ? digits[group & 63] : '=';
        }
        return json_stringn(text, n);
}

json_t *output_to_json(const struct output *output)
{
        _cleanup_buffer_ struct buffer raw = BUFFER_INIT, text = BUFFER_INIT;
        uint64_t omitted = output_omitted(output);
        bool replaced = false;
        size_t head = output->head_length;
        struct iovec parts[OUTPUT_PARTS];
        json_t *json;

        output_parts(output, parts);
        for (size_t i = 0; i < OUTPUT_PARTS; i++)
                if (buffer_add(&raw, parts[i].iov_base, parts[i].iov_len) < 0)
                        return NULL;
        /* Without a cut head and tail are one piece: a character may lie across the seam. */
        if (omitted == 0) {
                if (output_decode(raw.data, raw.length, &text, &replaced) < 0)
                        return NULL;
        } else if (output_decode(raw.data, head, &text, &replaced) < 0 ||
                   buffer_printf(&text, "\n[... %llu bytes omitted ...]\n",
                                 (unsigned long long)omitted) < 0 ||
                   output_decode(raw.data + head, raw.length - head, &text, &replaced) < 0) {
                return NULL;
        }
        json = json_pack("{s:o, s:I, s:b, s:I}", "text",
                         json_stringn(text.data ? text.data : "", text.length), "bytes",
                         (json_int_t)output->total, "truncated", omitted > 0, "omitted",
                         (json_int_t)omitted);
        if (json && replaced)
                json_object_set_new(json, "base64", base64(raw.data, raw.length));
        return json;
}
