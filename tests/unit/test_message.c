/* SPDX-License-Identifier: MIT */
/* What tools say: frames and lines, whole, in pieces, and wrong. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tool/message.h"

static void add_frame(struct buffer *to, uint32_t kind, const void *body, size_t length)
{
        struct message_frame frame = { .length = (uint32_t)length, .kind = kind };

        assert_int_equal(buffer_add(to, &frame, sizeof(frame)), 0);
        assert_int_equal(buffer_add(to, body, length), 0);
}

static int take(enum message_form form, const char *data, size_t length, bool last,
                struct message *message)
{
        cbx_error error = CBX_ERROR_INIT;
        size_t taken = 0;
        int r = message_take(form, data, length, last, &taken, message, &error);

        assert_true(r == 1 || taken == 0);
        assert_true(r >= 0 || error.text[0] != '\0');
        return r == 1 ? (int)taken : r;
}

static void assert_text(const struct message *message, enum message_kind kind, const char *text)
{
        assert_int_equal(message->kind, kind);
        assert_int_equal(message->length, strlen(text));
        assert_memory_equal(message->text, text, message->length);
}

/* ---- Frames ---- */

static void every_kind_of_frame_is_read(void **state)
{
        _cleanup_buffer_ struct buffer data = BUFFER_INIT;
        struct {
                struct message_progress front;
                char text[2];
        } progress = { { 3, 10 }, "hi" };
        struct {
                struct message_log front;
                char text[3];
        } log = { { 2 }, "log" };
        struct message_done done = { .code = -7 };
        struct message message;
        size_t at = 0;

        (void)state;
        add_frame(&data, MESSAGE_RESULT, "[1]", 3);
        add_frame(&data, MESSAGE_TEXT, "", 0);
        add_frame(&data, MESSAGE_ERROR, "bad", 3);
        add_frame(&data, MESSAGE_PROGRESS, &progress, sizeof(progress.front) + 2);
        add_frame(&data, MESSAGE_LOG, &log, sizeof(log.front) + 3);
        add_frame(&data, MESSAGE_DONE, &done, sizeof(done));
        at += (size_t)take(MESSAGE_FRAMES, data.data + at, data.length - at, false, &message);
        assert_text(&message, MESSAGE_RESULT, "[1]");
        at += (size_t)take(MESSAGE_FRAMES, data.data + at, data.length - at, false, &message);
        assert_text(&message, MESSAGE_TEXT, "");
        at += (size_t)take(MESSAGE_FRAMES, data.data + at, data.length - at, false, &message);
        assert_text(&message, MESSAGE_ERROR, "bad");
        at += (size_t)take(MESSAGE_FRAMES, data.data + at, data.length - at, false, &message);
        assert_text(&message, MESSAGE_PROGRESS, "hi");
        assert_true(message.done == 3 && message.total == 10);
        at += (size_t)take(MESSAGE_FRAMES, data.data + at, data.length - at, false, &message);
        assert_text(&message, MESSAGE_LOG, "log");
        assert_string_equal(message.level, "warning");
        at += (size_t)take(MESSAGE_FRAMES, data.data + at, data.length - at, false, &message);
        assert_int_equal(message.kind, MESSAGE_DONE);
        assert_int_equal(message.code, -7);
        assert_int_equal(at, data.length);
        assert_int_equal(take(MESSAGE_FRAMES, data.data + at, 0, true, &message), 0);
}

static void a_frame_that_is_not_whole_is_waited_for(void **state)
{
        _cleanup_buffer_ struct buffer data = BUFFER_INIT;
        struct message message;

        (void)state;
        add_frame(&data, MESSAGE_TEXT, "some text", 9);
        for (size_t i = 0; i < data.length; i++) {
                assert_int_equal(take(MESSAGE_FRAMES, data.data, i, false, &message), 0);
                assert_int_equal(take(MESSAGE_FRAMES, data.data, i, true, &message),
                                 i == 0 ? 0 : -EBADMSG);
        }
        assert_int_equal(take(MESSAGE_FRAMES, data.data, data.length, false, &message),
                         data.length);
}

static void a_wrong_frame_is_refused(void **state)
{
        static const struct message_progress bad[] = {
                { -1, 0 }, { 0, -1 }, { NAN, 0 }, { 0, INFINITY }
        };
        struct message_log level = { MESSAGE_LEVELS };
        char long_done[sizeof(struct message_done) + 1] = "";
        struct message message;

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(bad) + 6; i++) {
                _cleanup_buffer_ struct buffer data = BUFFER_INIT;

                if (i < ARRAY_SIZE(bad))
                        add_frame(&data, MESSAGE_PROGRESS, &bad[i], sizeof(bad[i]));
                else if (i == ARRAY_SIZE(bad))
                        add_frame(&data, MESSAGE_PROGRESS, &bad[0], sizeof(bad[0]) - 1);
                else if (i == ARRAY_SIZE(bad) + 1)
                        add_frame(&data, MESSAGE_LOG, &level, sizeof(level));
                else if (i == ARRAY_SIZE(bad) + 2)
                        add_frame(&data, MESSAGE_LOG, &level, 3);
                else if (i == ARRAY_SIZE(bad) + 3)
                        add_frame(&data, MESSAGE_DONE, long_done, sizeof(long_done));
                else if (i == ARRAY_SIZE(bad) + 4)
                        add_frame(&data, MESSAGE_MAX_, "", 0);
                else
                        add_frame(&data, UINT32_MAX, "", 0);
                assert_int_equal(take(MESSAGE_FRAMES, data.data, data.length, false, &message),
                                 -EBADMSG);
        }
}

/* ---- Lines ---- */

static void every_kind_of_line_is_read(void **state)
{
        static const char data[] =
                "{\"progress\": 1, \"message\": \"m\", \"total\": 2.5}\n"
                " \r\n{\"log\": \"l\"}\r\n{\"log\": \"\", \"level\": \"error\"}\n"
                "{\"text\": \"t\"}\n{\"error\": \"e\"}\n{\"result\": null}";
        struct message message;
        size_t at = 0, length = strlen(data);

        (void)state;
        at += (size_t)take(MESSAGE_LINES, data + at, length - at, false, &message);
        assert_text(&message, MESSAGE_PROGRESS, "m");
        assert_true(message.done == 1 && message.total == 2.5);
        message_clear(&message);
        at += (size_t)take(MESSAGE_LINES, data + at, length - at, false, &message);
        assert_text(&message, MESSAGE_LOG, "l");
        assert_string_equal(message.level, "info");
        message_clear(&message);
        at += (size_t)take(MESSAGE_LINES, data + at, length - at, false, &message);
        assert_string_equal(message.level, "error");
        message_clear(&message);
        at += (size_t)take(MESSAGE_LINES, data + at, length - at, false, &message);
        assert_text(&message, MESSAGE_TEXT, "t");
        message_clear(&message);
        at += (size_t)take(MESSAGE_LINES, data + at, length - at, false, &message);
        assert_text(&message, MESSAGE_ERROR, "e");
        message_clear(&message);
        /* The last line has no end: it is one when nothing can follow. */
        assert_int_equal(take(MESSAGE_LINES, data + at, length - at, false, &message), 0);
        at += (size_t)take(MESSAGE_LINES, data + at, length - at, true, &message);
        assert_int_equal(message.kind, MESSAGE_RESULT);
        assert_true(json_is_null(message.value));
        message_clear(&message);
        assert_int_equal(at, length);
}

static void a_wrong_line_is_refused(void **state)
{
        static const char *const lines[] = {
                "x\n",
                "1\n",
                "[]\n",
                "{}\n",
                "null\n",
                "{\"what\": 1}\n",
                "{\"text\": 1}\n",
                "{\"text\": \"a\", \"log\": \"b\"}\n",
                "{\"result\": 1, \"x\": 1}\n",
                "{\"log\": \"a\", \"level\": \"loud\"}\n",
                "{\"log\": \"a\", \"x\": 1}\n",
                "{\"log\": 1}\n",
                "{\"progress\": \"1\"}\n",
                "{\"progress\": -1}\n",
                "{\"progress\": 1, \"total\": null}\n",
                "{\"progress\": 1, \"message\": 1}\n",
                "{\"progress\": 1, \"level\": \"info\"}\n",
                "{\"text\": \"a\", \"text\": \"b\"}\n",
                "{\"text\": \"\\ud800\"}\n",
                "{\"text\": \"\xff\"}\n",
                "{\"error\": null}\n",
                "{\"text\": \"a\"} {\"text\": \"b\"}\n",
        };
        struct message message = { 0 };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                int r = take(MESSAGE_LINES, lines[i], strlen(lines[i]), false, &message);

                if (r != -EBADMSG)
                        fail_msg("%s: %d", lines[i], r);
        }
}

static void blank_lines_say_nothing(void **state)
{
        struct message message;

        (void)state;
        assert_int_equal(take(MESSAGE_LINES, "", 0, true, &message), 0);
        assert_int_equal(take(MESSAGE_LINES, "\n \t\r\n\n", 6, true, &message), 0);
        assert_int_equal(take(MESSAGE_LINES, "\n \t", 3, false, &message), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_kind_of_frame_is_read),
                cmocka_unit_test(a_frame_that_is_not_whole_is_waited_for),
                cmocka_unit_test(a_wrong_frame_is_refused),
                cmocka_unit_test(every_kind_of_line_is_read),
                cmocka_unit_test(a_wrong_line_is_refused),
                cmocka_unit_test(blank_lines_say_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
