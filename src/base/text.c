/* SPDX-License-Identifier: MIT */
/*
 * Text from elsewhere, made safe to show: valid UTF-8 (a report is JSON), free of characters that a
 * terminal obeys, and of those that make a text look other than it is: they turn the direction of
 * what follows, begin a line, or are not seen at all.
 */
#include "base/base.h"

/* The character at `s`, of which there are `n` bytes, and how many it takes. 0: it is none. */
static size_t decode(const unsigned char *s, size_t n, uint32_t *ret)
{
        unsigned char low = 0x80, high = 0xbf; /* the range of the second byte */
        size_t length;

        *ret = s[0];
        if (s[0] < 0x80)
                return 1;
        if (s[0] < 0xc2 || s[0] > 0xf4)
                return 0;
        length = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
        *ret = s[0] & (0xffU >> (length + 1));
        if (s[0] == 0xe0)
                low = 0xa0; /* overlong */
        else if (s[0] == 0xed)
                high = 0x9f; /* surrogates */
        else if (s[0] == 0xf0)
                low = 0x90; /* overlong */
        else if (s[0] == 0xf4)
                high = 0x8f; /* beyond Unicode */
        for (size_t i = 1; i < length; i++) {
                if (i == n || s[i] < low || s[i] > high)
                        return 0;
                *ret = *ret << 6 | (s[i] & 0x3f);
                low = 0x80;
                high = 0xbf;
        }
        return length;
}

bool text_is_valid(const char *text)
{
        const unsigned char *s = (const unsigned char *)text;
        uint32_t point;
        size_t length;

        for (; *s; s += length) {
                length = decode(s, SIZE_MAX, &point); /* a NUL ends every sequence */
                if (length == 0)
                        return false;
        }
        return true;
}

/* Controls, formats, separators of lines, and what is drawn as nothing. Signs that are formats by
 * name but seen, and the two by which a picture is chosen for a letter, are none of them. */
static const struct {
        uint32_t first, last;
} unseen[] = {
        { 0x00, 0x1f },       { 0x7f, 0x9f },       { 0xad, 0xad },       { 0x34f, 0x34f },
        { 0x61c, 0x61c },     { 0x115f, 0x1160 },   { 0x17b4, 0x17b5 },   { 0x180b, 0x180f },
        { 0x200b, 0x200f },   { 0x2028, 0x202e },   { 0x2060, 0x206f },   { 0x3164, 0x3164 },
        { 0xfe00, 0xfe0d },   { 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 },   { 0xfff0, 0xfffb },
        { 0x13430, 0x1343f }, { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
};

static bool has_unseen(uint32_t first, uint32_t last)
{
        for (size_t i = 0; i < ARRAY_SIZE(unseen) && last >= unseen[i].first; i++)
                if (first <= unseen[i].last)
                        return true;
        return false;
}

static bool is_unseen(uint32_t point)
{
        return has_unseen(point, point);
}

void text_make_showable(char *text)
{
        unsigned char *s = (unsigned char *)text;

        while (*s) {
                uint32_t point;
                size_t length = decode(s, SIZE_MAX, &point); /* a NUL ends every sequence */

                if (length > 0 && !is_unseen(point)) {
                        s += length;
                        continue;
                }
                for (length = MAX(length, 1); length > 0; length--)
                        *s++ = '?';
        }
}

/* Joiners are a part of how some languages are written, and of pictures. */
static bool may_be_printed(uint32_t point)
{
        return point == '\n' || point == '\t' || point == 0x200c || point == 0x200d ||
               !is_unseen(point);
}

/* Are these the first bytes of a character, of which the rest may come? */
static bool is_begun(const unsigned char *s, size_t n)
{
        size_t length = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

        if (s[0] < 0xc2 || s[0] > 0xf4 || n >= length)
                return false;
        for (size_t i = 1; i < n; i++)
                if ((s[i] & 0xc0) != 0x80)
                        return false;
        return true;
}

/* By itself, some terminals obey it: 0x9b is their ESC [. */
static bool is_raw_control(unsigned char byte)
{
        return byte >= 0x80 && byte <= 0x9f;
}

size_t text_make_printable(unsigned char *text, size_t n)
{
        for (size_t at = 0; at < n;) {
                uint32_t point;
                size_t length = decode(text + at, n - at, &point);

                if (length == 0 && is_begun(text + at, n - at))
                        return at;
                if (length == 0 ? !is_raw_control(text[at]) : may_be_printed(point)) {
                        at += MAX(length, 1);
                        continue;
                }
                for (length = MAX(length, 1); length > 0; length--)
                        text[at++] = '?';
        }
        return n;
}

void text_end_printable(unsigned char *begun, size_t n)
{
        size_t length = n == 0 ? 0 : begun[0] < 0xe0 ? 2 : begun[0] < 0xf0 ? 3 : 4, bits;
        uint32_t point;

        if (n == 0 || n >= length)
                return;
        point = begun[0] & (0xffU >> (length + 1));
        for (size_t i = 1; i < n; i++)
                point = point << 6 | (begun[i] & 0x3f);
        bits = 6 * (length - n);
        for (size_t i = 0; i < n; i++)
                if (is_raw_control(begun[i]) ||
                    has_unseen(point << bits, point << bits | ((1U << bits) - 1)))
                        begun[i] = '?';
}
