/* SPDX-License-Identifier: MIT */
#include "warden/pack.h"

#include <math.h>
#include <string.h>

#define NONE UINT64_MAX /* as the length of a text: there is none */

void pack_free(struct pack *pack)
{
        buffer_free(&pack->buffer);
}

static void add(struct pack *pack, const void *data, size_t length)
{
        if (!pack->failed && buffer_add(&pack->buffer, data, length) < 0)
                pack->failed = true;
}

void pack_number(struct pack *pack, uint64_t value)
{
        add(pack, &value, sizeof(value));
}

void pack_real(struct pack *pack, double value)
{
        add(pack, &value, sizeof(value));
}

void pack_bytes(struct pack *pack, const void *data, size_t length)
{
        pack_number(pack, length);
        add(pack, data, length);
        add(pack, "", 1);
}

void pack_text(struct pack *pack, const char *text)
{
        if (text)
                pack_bytes(pack, text, strlen(text));
        else
                pack_number(pack, NONE);
}

void pack_texts(struct pack *pack, const char *const *texts)
{
        size_t n = 0;

        while (texts && texts[n])
                n++;
        pack_number(pack, n);
        for (size_t i = 0; i < n; i++)
                pack_text(pack, texts[i]);
}

static const char *take(struct unpack *unpack, size_t length)
{
        const char *at = unpack->at;

        if (unpack->bad || length > (size_t)(unpack->end - unpack->at)) {
                unpack->bad = true;
                return NULL;
        }
        unpack->at += length;
        return at;
}

uint64_t unpack_number(struct unpack *unpack)
{
        const char *at = take(unpack, sizeof(uint64_t));
        uint64_t value = 0;

        if (at)
                memcpy(&value, at, sizeof(value));
        return value;
}

uint64_t unpack_number_below(struct unpack *unpack, uint64_t limit)
{
        uint64_t value = unpack_number(unpack);

        if (value < limit)
                return value;
        unpack->bad = true;
        return 0;
}

double unpack_real(struct unpack *unpack)
{
        const char *at = take(unpack, sizeof(double));
        double value = 0;

        if (at)
                memcpy(&value, at, sizeof(value));
        if (isfinite(value) && value >= 0)
                return value;
        unpack->bad = true;
        return 0;
}

static const char *take_bytes(struct unpack *unpack, uint64_t length)
{
        const char *data = length < SIZE_MAX ? take(unpack, length) : NULL;
        const char *end = data ? take(unpack, 1) : NULL;

        if (end && *end == '\0')
                return data;
        unpack->bad = true;
        return NULL;
}

const char *unpack_bytes(struct unpack *unpack, size_t *ret_length)
{
        uint64_t length = unpack_number(unpack);
        const char *data = take_bytes(unpack, length);

        *ret_length = data ? (size_t)length : 0;
        return data;
}

const char *unpack_text(struct unpack *unpack)
{
        uint64_t length = unpack_number(unpack);
        const char *text;

        if (unpack->bad || length == NONE)
                return NULL;
        text = take_bytes(unpack, length);
        if (text && strlen(text) != length)
                unpack->bad = true;
        return unpack->bad ? NULL : text;
}

char **unpack_texts(struct unpack *unpack, size_t limit)
{
        /* Each takes nine bytes at least: a count beyond that is a lie. */
        uint64_t left = (uint64_t)(unpack->end - unpack->at) / 9;
        size_t n = (size_t)unpack_number_below(unpack, MIN(limit, left) + 1);
        char **texts = unpack->bad ? NULL : calloc(n + 1, sizeof(char *));

        for (size_t i = 0; texts && i < n; i++) {
                texts[i] = (char *)unpack_text(unpack);
                if (!texts[i])
                        unpack->bad = true;
        }
        if (texts && !unpack->bad)
                return texts;
        unpack->bad = true;
        free(texts);
        return NULL;
}
