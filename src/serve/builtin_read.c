/* SPDX-License-Identifier: MIT */
/* read_file: a function that runs in a box. What does not fit an answer is left out by whole lines,
 * and a line that fits none is cut; either way the answer says how to go on. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "serve/builtin_files.h"
#include "warden/output.h"

#define READ_BYTES (256 * KIB) /* in one answer */
#define FILE_MAX (64 * MIB)    /* that is read at all */

struct part {
        json_int_t first, limit, skip; /* what is wanted: lines, and bytes of the first not */
        json_int_t last, total;        /* what there is */
        json_int_t next, next_skip;    /* how to go on; 0: there is no more */
        size_t line;                   /* bytes of a line that was cut; 0: none was */
        struct buffer text;
};

/* How much of a line fits, in whole characters. */
static size_t fitting(const char *line, size_t size, size_t room)
{
        size_t n = MIN(size, room);

        if (n == size)
                return n;
        while (n > 1 && ((unsigned char)line[n] & 0xc0) == 0x80 && room - n < 3)
                n--;
        return n;
}

static int take_line(struct part *part, const char *line, size_t size, json_int_t number)
{
        size_t skip = number == part->first ? MIN((size_t)part->skip, size) : 0;
        size_t room = READ_BYTES - MIN(READ_BYTES, part->text.length), fits;
        bool replaced = false;

        if (size - skip > room && number != part->first) {
                part->next = number; /* whole, in the next answer */
                return 0;
        }
        fits = fitting(line + skip, size - skip, room);
        if (skip + fits < size) {
                part->next = number;
                part->next_skip = (json_int_t)skip + (json_int_t)fits;
                part->line = size;
        }
        part->last = number;
        return output_decode(line + skip, fits, &part->text, &replaced);
}

static int take_lines(struct part *part, const char *data, size_t length)
{
        json_int_t line = 1;
        int r = 0;

        part->last = part->first - 1;
        for (const char *at = data, *end = data + length; r == 0 && at < end; line++) {
                const char *newline = memchr(at, '\n', (size_t)(end - at));
                const char *next = newline ? newline + 1 : end;

                if (line >= part->first && !part->next) {
                        if (line < part->first + part->limit)
                                r = take_line(part, at, (size_t)(next - at), line);
                        else
                                part->next = line;
                }
                at = next;
        }
        part->total = line - 1;
        return r;
}

static int add_note(struct part *part)
{
        struct buffer *text = &part->text;
        const char *before = text->length > 0 && text->data[text->length - 1] != '\n' ? "\n" : "";

        if (part->next_skip)
                return buffer_printf(text,
                                     "%s[line %lld is cut: it has %zu bytes; go on with first %lld "
                                     "and skip %lld]",
                                     before, (long long)part->last, part->line,
                                     (long long)part->next, (long long)part->next_skip);
        if (part->next)
                return buffer_printf(text, "%s[lines %lld to %lld of %lld; go on with first %lld]",
                                     before, (long long)part->first, (long long)part->last,
                                     (long long)part->total, (long long)part->next);
        if (part->first > 1)
                return buffer_printf(text, "%s[lines %lld to %lld of %lld]", before,
                                     (long long)part->first, (long long)part->last,
                                     (long long)part->total);
        return 0;
}

static bool is_directory(const char *path)
{
        struct stat facts;

        return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

static json_t *describe(const char *path, const struct part *part)
{
        json_t *next =
                part->next ? json_pack("{s:I, s:I}", "first", part->next, "skip", part->next_skip)
                           : json_null();

        return json_pack("{s:s, s:o, s:I, s:I, s:I, s:o}", "path", path, "text",
                         json_stringn(part->text.data, part->text.length), "first", part->first,
                         "last", part->last, "lines", part->total, "next", next);
}

static int read_part(const char *path, struct part *part, cbx_reply *reply)
{
        _cleanup_free_ char *data = NULL;
        char place[PATH_MAX];
        size_t size = 0;
        int r = files_place(path, false, place);

        if (r == 0)
                r = is_directory(place) ? -EISDIR
                                        : file_read(AT_FDCWD, place, FILE_MAX, &data, &size);
        if (r == -EFBIG)
                return files_fail(
                        reply,
                        "%s is larger than 64 MiB, which is the most that is read: take a "
                        "part of it by run_command, with sed -n, head or tail",
                        path);
        if (r != 0 || !data)
                return files_refuse(reply, "read", path, r);
        if (memchr(data, '\0', MIN(size, 8 * KIB)))
                return files_fail(reply, "%s is no text: a file of %zu bytes with NUL in it", path,
                                  size);
        if (buffer_add(&part->text, "", 0) < 0 || take_lines(part, data, size) < 0 ||
            add_note(part) < 0)
                return files_fail(reply, "out of memory");
        return files_answer(reply, describe(path, part), part->text.data);
}

int builtin_read_file(const char *given, size_t length, cbx_reply *reply)
{
        _cleanup_json_ json_t *arguments = files_arguments(given, length);
        struct part part = { .first = files_number(arguments, "first", 1),
                             .limit = files_number(arguments, "lines", 2000),
                             .skip = files_number(arguments, "skip", 0) };
        int r = read_part(files_text(arguments, "path", ""), &part, reply);

        buffer_free(&part.text);
        return r;
}
