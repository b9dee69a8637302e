/* SPDX-License-Identifier: MIT */
/* A growing run of bytes. Once something was added, a NUL that is not counted follows the last. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

#define BUFFER_FIRST_ROOM 256

void buffer_free(struct buffer *buffer)
{
        free(buffer->data);
        *buffer = (struct buffer)BUFFER_INIT;
}

int buffer_grow(struct buffer *buffer, size_t more)
{
        size_t needed, room;
        char *data;

        if (__builtin_add_overflow(buffer->length, more, &needed) || needed >= SIZE_MAX / 2)
                return -ENOMEM;
        needed++;
        if (needed <= buffer->room)
                return 0;
        room = MAX(buffer->room, (size_t)BUFFER_FIRST_ROOM);
        while (room < needed)
                room *= 2;
        data = realloc(buffer->data, room);
        if (!data)
                return -ENOMEM;
        buffer->data = data;
        buffer->room = room;
        return 0;
}

int buffer_add(struct buffer *buffer, const void *data, size_t length)
{
        int r;

        r = buffer_grow(buffer, length);
        if (r < 0)
                return r;
        if (length > 0)
                memcpy(buffer->data + buffer->length, data, length);
        buffer->length += length;
        buffer->data[buffer->length] = '\0';
        return 0;
}

int buffer_printf(struct buffer *buffer, const char *format, ...)
{
        va_list args;
        int n, r;

        va_start(args, format);
        n = vsnprintf(NULL, 0, format, args);
        va_end(args);
        if (n < 0)
                return -EINVAL;
        r = buffer_grow(buffer, (size_t)n);
        if (r < 0)
                return r;
        va_start(args, format);
        (void)vsnprintf(buffer->data + buffer->length, (size_t)n + 1, format, args);
        va_end(args);
        buffer->length += (size_t)n;
        return 0;
}
