/* SPDX-License-Identifier: MIT */
/* Text from elsewhere: what is shown of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static void shows(const char *text, const char *expected)
{
        char room[256];

        snprintf(room, sizeof(room), "%s", text);
        text_make_showable(room);
        assert_string_equal(room, expected);
}

static void what_is_seen_stays(void **state)
{
        static const char *const texts[] = {
                "",       "plain /path-1",        "\u00e9\u00df\u20ac\u4e2d\U0001f600",
                "\u0601", "\u2764\ufe0f, \u00a0", "\u2010\u2027\u202f\u2030",
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                shows(texts[i], texts[i]);
}

static void what_steers_or_hides_does_not(void **state)
{
        (void)state;
        shows("\033[2Ja\tb\n\r\177", "?[2Ja?b???");
        shows("\xc2\x9b"
              "2J",
              "??2J");
        shows("a\u202eb\u202c\u2066c\u2069", "a???b??????c???");
        shows("\u2028\u2029\u200b\u200f\ufeff", "???????????????");
        shows("\U000e0041\U000e01ef", "????????");
        shows("x\u00ady\u061cz\u3164", "x??y??z???");
        shows("\xc3", "?");
        shows("\xe2\x80", "??");
        shows("\xe2\x80z\xff", "??z?");
        shows("\xed\xa0\x80", "???");
        shows("\xf4\x90\x80\x80", "????");
}

/* A stream gives the same however it is cut. */
static void a_stream_may_be_cut_anywhere(void **state)
{
        static const char text[] =
                "a\033b\n\t\u202ec\u202c\u200d\u20ac\xc2\x9b\U000e0041\xe9 \xe2\x80.\xff\u0601"
                "\x9b\x80\x9f\xa0";
        static const char expected[] = "a?b\n\t???c???\u200d\u20ac??????\xe9 \xe2?.\xff\u0601"
                                       "???\xa0";
        size_t n = sizeof(text) - 1;

        (void)state;
        for (size_t step = 1; step <= n; step++) {
                unsigned char room[sizeof(text) + 3], out[sizeof(text)];
                size_t held = 0, done = 0;

                for (size_t at = 0; at < n; at += step) {
                        size_t some = MIN(step, n - at), ready;

                        memcpy(room + held, text + at, some);
                        ready = text_make_printable(room, held + some);
                        memcpy(out + done, room, ready);
                        done += ready;
                        held = held + some - ready;
                        assert_true(held <= 3);
                        memmove(room, room + ready, held);
                }
                assert_int_equal(held, 0);
                assert_int_equal(done, n);
                assert_memory_equal(out, expected, n);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_seen_stays),
                cmocka_unit_test(what_steers_or_hides_does_not),
                cmocka_unit_test(a_stream_may_be_cut_anywhere),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
