/* SPDX-License-Identifier: MIT */
/*
 * Errors. Their texts quote what callers wrote: names, keys, paths. So whatever is stored here is
 * made safe to show: valid UTF-8 (a report is JSON) and free of control characters (a terminal
 * obeys them).
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

/* The length of the well-formed UTF-8 character at `s`, or 0. A NUL ends every sequence. */
static size_t utf8_length(const unsigned char *s)
{
        unsigned char low = 0x80, high = 0xbf; /* the range of the second byte */
        size_t length;

        if (s[0] < 0x80)
                return 1;
        if (s[0] < 0xc2 || s[0] > 0xf4)
                return 0;
        length = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
        if (s[0] == 0xe0)
                low = 0xa0; /* overlong */
        else if (s[0] == 0xed)
                high = 0x9f; /* surrogates */
        else if (s[0] == 0xf0)
                low = 0x90; /* overlong */
        else if (s[0] == 0xf4)
                high = 0x8f; /* beyond Unicode */
        if (s[1] < low || s[1] > high)
                return 0;
        for (size_t i = 2; i < length; i++)
                if (s[i] < 0x80 || s[i] > 0xbf)
                        return 0;
        return length;
}

/* C0, DEL, and C1, which UTF-8 spells c2 80 to c2 9f. */
static bool is_control(const unsigned char *s)
{
        return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

/* Bytes are only ever replaced one for one or cut off, so this works in place. */
void text_make_showable(char *text)
{
        unsigned char *s = (unsigned char *)text;

        while (*s) {
                size_t length = utf8_length(s);

                if (length == 0 || is_control(s)) {
                        *s++ = '?';
                        continue;
                }
                s += length;
        }
}

/* A text that was cut to fit says so. */
static void format_into(char *to, size_t size, const char *format, va_list args)
{
        static const char dots[] = "...";
        int n;

        n = vsnprintf(to, size, format, args);
        if (n < 0) {
                to[0] = '\0';
                return;
        }
        if ((size_t)n >= size) {
                size_t end = size - sizeof(dots);

                while (end > 0 && ((unsigned char)to[end] & 0xc0) == 0x80)
                        end--; /* not through the middle of a character */
                memcpy(to + end, dots, sizeof(dots));
        }
        text_make_showable(to);
}

static void format_where(cbx_error *error, const char *format, ...) PRINTF_LIKE(2, 3);
static void format_where(cbx_error *error, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        format_into(error->where, sizeof(error->where), format, args);
        va_end(args);
}

int error_set(cbx_error *error, int code, const char *where, const char *format, ...)
{
        va_list args;

        if (!error)
                return code;
        error->code = code;
        error->hint[0] = '\0';
        format_where(error, "%s", where ? where : "");
        va_start(args, format);
        format_into(error->text, sizeof(error->text), format, args);
        va_end(args);
        return code;
}

void error_hint(cbx_error *error, const char *format, ...)
{
        va_list args;

        if (!error)
                return;
        va_start(args, format);
        format_into(error->hint, sizeof(error->hint), format, args);
        va_end(args);
}

int error_oom(cbx_error *error)
{
        return error_set(error, -ENOMEM, NULL, "out of memory");
}
