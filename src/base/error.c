/* SPDX-License-Identifier: MIT */
/*
 * Errors. Their texts quote what callers wrote: names, keys, paths. So whatever is stored here is
 * made safe to show (text.c).
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

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
