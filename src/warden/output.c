/* SPDX-License-Identifier: MIT */
/* Head and tail of a stream. Memory grows with what is kept, never with what is written. */
#include "warden/output.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

void output_init(struct output *output, size_t capacity)
{
        *output = (struct output){ .capacity = capacity };
}

void output_free(struct output *output)
{
        if (output->mapped)
                (void)munmap(output->data, output->room);
        else
                free(output->data);
        if (output->filed)
                base_close(output->file);
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

/* ---- Keeping ---- */

/* From memory into a file. */
static int move_to_file(struct output *output)
{
        _cleanup_fd_ int file = memfd_create("callbox-output", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        int r = file < 0 ? -errno : fd_write_memory_at(file, output->data, output_kept(output), 0);

        if (r < 0)
                return r;
        free(output->data);
        output->data = NULL;
        output->room = 0;
        output->file = TAKE_FD(file);
        output->filed = true;
        return 0;
}

/* Room for so many bytes in memory. It grows by what is there, not by what might come. */
static int grow(struct output *output, size_t needed)
{
        size_t room = MAX(output->room, 4 * KIB);
        char *data;

        if (needed <= output->room)
                return 0;
        while (room < needed)
                room *= 2;
        data = realloc(output->data, room);
        if (!data)
                return -ENOMEM;
        output->data = data;
        output->room = room;
        return 0;
}

/* Put bytes where they belong, of the head or of the tail. */
static int put(struct output *output, size_t at, const char *data, size_t length)
{
        int r = 0;

        if (length == 0)
                return 0;
        if (!output->filed && at + length > OUTPUT_IN_MEMORY)
                r = move_to_file(output);
        if (r == 0 && output->filed)
                return fd_write_memory_at(output->file, data, length, at);
        if (r == 0)
                r = grow(output, at + length);
        if (r == 0)
                memcpy(output->data + at, data, length);
        return r;
}

static int add_to_tail(struct output *output, const char *data, size_t length)
{
        size_t room = tail_room(output), end, first;
        int r;

        if (length > room) {
                data += length - room;
                length = room;
        }
        if (length == 0)
                return 0;
        end = output->tail_at + output->tail_length;
        end -= end >= room ? room : 0;
        first = MIN(length, room - end);
        r = put(output, head_room(output) + end, data, first);
        if (r == 0)
                r = put(output, head_room(output), data + first, length - first);
        if (r < 0)
                return r;
        output->tail_length += length;
        if (output->tail_length > room) {
                output->tail_at += output->tail_length - room;
                output->tail_at -= output->tail_at >= room ? room : 0;
                output->tail_length = room;
        }
        return 0;
}

int output_add(struct output *output, const char *data, size_t length)
{
        size_t n = MIN(length, head_room(output) - output->head_length);
        int r = put(output, output->head_length, data, n);

        output->total += length;
        if (r < 0)
                return r;
        output->head_length += n;
        return add_to_tail(output, data + n, length - n);
}

uint64_t output_omitted(const struct output *output)
{
        return output->total - output_kept(output);
}

/* ---- Handing over ---- */

void output_parts(const struct output *output, struct iovec parts[OUTPUT_PARTS])
{
        size_t first = MIN(output->tail_length, tail_room(output) - output->tail_at);
        char *tail = output->data ? output->data + output->head_length : NULL;

        memset(parts, 0, OUTPUT_PARTS * sizeof(*parts));
        if (!output->data)
                return;
        parts[0] = (struct iovec){ output->data, output->head_length };
        parts[1] = (struct iovec){ tail + output->tail_at, first };
        parts[2] = (struct iovec){ tail, output->tail_length - first };
}

static int read_at(int file, char *to, size_t length, size_t at)
{
        while (length > 0) {
                ssize_t n = pread(file, to, length, (off_t)at);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EPROTO;
                to += n;
                at += (size_t)n;
                length -= (size_t)n;
        }
        return 0;
}

/* The pieces of output_parts, out of the file. */
static int read_kept(const struct output *output, int file, char *to)
{
        size_t first = MIN(output->tail_length, tail_room(output) - output->tail_at);
        size_t head = output->head_length;
        int r = read_at(file, to, head, 0);

        if (r == 0)
                r = read_at(file, to + head, first, head + output->tail_at);
        if (r == 0)
                r = read_at(file, to + head + first, output->tail_length - first, head);
        return r;
}

int output_join(const struct output *output, char **ret_data, size_t *ret_length)
{
        struct iovec parts[OUTPUT_PARTS];
        size_t length = output_kept(output), at = 0;
        _cleanup_free_ char *data = malloc(length + 1);
        int r = data ? 0 : -ENOMEM;

        if (r == 0 && output->filed && !output->mapped)
                r = read_kept(output, output->file, data);
        output_parts(output, parts);
        for (size_t i = 0; r == 0 && i < OUTPUT_PARTS; i++) {
                if (parts[i].iov_base)
                        memcpy(data + at, parts[i].iov_base, parts[i].iov_len);
                at += parts[i].iov_len;
        }
        if (r < 0)
                return r;
        data[length] = '\0';
        *ret_data = TAKE_PTR(data);
        *ret_length = length;
        return 0;
}

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

int output_seal(const struct output *output)
{
        if (ftruncate(output->file, (off_t)output_kept(output) + 1) < 0 ||
            fcntl(output->file, F_ADD_SEALS, SEALS) < 0)
                return -errno;
        return 0;
}

/* ---- Taking ---- */

int output_take_kept(struct output *output, const char *data)
{
        size_t length = output_kept(output);

        output->data = malloc(length + 1);
        if (!output->data)
                return -ENOMEM;
        memcpy(output->data, data, length);
        output->data[length] = '\0';
        output->room = length + 1;
        output->tail_at = 0;
        return 0;
}

/* A tail that has gone round is put in order, which takes a copy; only what was cut has one. */
static int take_cut(struct output *output, int file)
{
        size_t length = output_kept(output);
        _cleanup_free_ char *data = malloc(length + 1);
        int r = data ? read_kept(output, file, data) : -ENOMEM;

        if (r < 0)
                return r;
        data[length] = '\0';
        output->data = TAKE_PTR(data);
        output->room = length + 1;
        output->tail_at = 0;
        base_close(file);
        return 0;
}

int output_take_file(struct output *output, int file)
{
        size_t size = output_kept(output) + 1;
        int seals = fcntl(file, F_GET_SEALS);
        struct stat st;
        void *data;

        /* Without the seals it could change while it is read, or be gone: that would be a signal.
         */
        if (seals < 0 || (seals & SEALS) != SEALS || fstat(file, &st) < 0 ||
            st.st_size != (off_t)size)
                return -EPROTO;
        if (output->tail_at > 0)
                return take_cut(output, file);
        data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
        if (data == MAP_FAILED)
                return -errno;
        output->data = data;
        output->room = size;
        output->file = file;
        output->filed = output->mapped = true;
        return 0;
}

/* ---- As text ---- */

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
        _cleanup_buffer_ struct buffer text = BUFFER_INIT;
        _cleanup_free_ char *raw = NULL;
        uint64_t omitted = output_omitted(output);
        size_t head = output->head_length, length = 0;
        bool replaced = false;
        json_t *json;

        if (output_join(output, &raw, &length) < 0)
                return NULL;
        /* Without a cut head and tail are one piece: a character may lie across the seam. */
        if (omitted == 0) {
                if (output_decode(raw, length, &text, &replaced) < 0)
                        return NULL;
        } else if (output_decode(raw, head, &text, &replaced) < 0 ||
                   buffer_printf(&text, "\n[... %llu bytes omitted ...]\n",
                                 (unsigned long long)omitted) < 0 ||
                   output_decode(raw + head, length - head, &text, &replaced) < 0) {
                return NULL;
        }
        json = json_pack("{s:o, s:I, s:b, s:I}", "text",
                         json_stringn(text.data ? text.data : "", text.length), "bytes",
                         (json_int_t)output->total, "truncated", omitted > 0, "omitted",
                         (json_int_t)omitted);
        if (json && replaced)
                json_object_set_new(json, "base64", base64(raw, length));
        return json;
}
