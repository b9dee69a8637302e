/* SPDX-License-Identifier: MIT */
#include "serve/lines.h"

#include <string.h>

void lines_free(struct lines *lines)
{
        buffer_free(&lines->data);
        lines->at = lines->sought = 0;
}

int lines_add(struct lines *lines, const char *data, size_t length)
{
        if (lines->skipping) {
                const char *newline = memchr(data, '\n', length);

                if (!newline)
                        return 0;
                lines->skipping = false;
                length -= (size_t)(newline + 1 - data);
                data = newline + 1;
        }
        if (lines->at > 0) {
                memmove(lines->data.data, lines->data.data + lines->at,
                        lines->data.length - lines->at);
                lines->data.length -= lines->at;
                lines->sought -= lines->at;
                lines->at = 0;
        }
        /* A buffer that was large once is not kept for ever. */
        if (lines->data.length == 0 && lines->data.room > 64 * KIB)
                buffer_free(&lines->data);
        return buffer_add(&lines->data, data, length);
}

static bool is_blank(const char *line, size_t length)
{
        while (length > 0 && strchr(" \t\r", line[length - 1]) && line[length - 1])
                length--;
        return length == 0;
}

int lines_next(struct lines *lines, bool ended, const char **ret_line, size_t *ret_length)
{
        while (lines->at < lines->data.length) {
                const char *line = lines->data.data + lines->at, *newline;
                size_t length;

                newline = memchr(lines->data.data + lines->sought, '\n',
                                 lines->data.length - lines->sought);
                length = newline ? (size_t)(newline - line) : lines->data.length - lines->at;
                if (length > lines->limit) {
                        lines->at = lines->sought =
                                newline ? lines->at + length + 1 : lines->data.length;
                        lines->skipping = !newline;
                        return -EMSGSIZE;
                }
                if (!newline && !ended) {
                        lines->sought = lines->data.length;
                        return 0;
                }
                lines->at += length + (newline ? 1 : 0);
                lines->sought = lines->at;
                if (is_blank(line, length))
                        continue;
                *ret_line = line;
                *ret_length = length;
                return 1;
        }
        return 0;
}
