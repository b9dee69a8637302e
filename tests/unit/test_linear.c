/* SPDX-License-Identifier: MIT */
/* What it costs to read what a box said: for the worst that it can say the time grows with the
 * length and no faster. Each input is read at 1, 4 and 16 MB; what is quadratic would take sixteen
 * times as long for four times as much. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tool/tool.h"

#define MB 1000000UL
#define GROWTH_MAX 9.0 /* for four times the length; linear is 4, quadratic 16 */
#define NOISE 0.005    /* seconds: less than this says nothing */
#define TRIES 4        /* a busy machine is slow now and then, a bad parser always */

static double processor_time(void)
{
        struct timespec now;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- Inputs: how each begins, what is repeated, how it ends ---- */

struct input {
        const char *name, *begin, *repeat, *end;
};

static char *fill(const struct input *input, size_t size, size_t *ret_length)
{
        size_t head = strlen(input->begin), unit = strlen(input->repeat), tail = strlen(input->end);
        size_t times = (size - head - tail) / unit, length = head + times * unit + tail;
        char *text = malloc(length + 1), *at = text;

        assert_non_null(text);
        memcpy(at, input->begin, head);
        at += head;
        for (size_t i = 0; i < times; i++, at += unit)
                memcpy(at, input->repeat, unit);
        memcpy(at, input->end, tail + 1);
        *ret_length = length;
        return text;
}

static const struct input values[] = {
        { "quotes that never end", "\"", "\\\"", "" },
        { "backslashes", "\"", "\\\\", "\"" },
        { "strings without commas", "", "\"a\"", "" },
        { "brackets", "", "[", "" },
        { "empty arrays", "[0", ",[]", "]" },
        { "numbers", "[0", ",1", "]" },
        { "one long integer", "", "9", "" },
        { "one long fraction", "0.", "1", "" },
        { "one long exponent", "1e", "0", "1" },
        { "surrogates without a partner", "\"", "\\ud800", "\"" },
        { "keys that are the same", "{\"a\":1", ",\"a\":1", "}" },
        { "spaces", "", " ", "1" },
};

static const struct input lines[] = {
        { "empty lines", "", "\n", "x" },
        { "small lines", "", "{\"text\":\"a\"}\n", "" },
        { "small lines, then a wrong one", "", "{\"text\":\"a\"}\n", "?" },
        { "errors", "", "{\"error\":\"a\"}\n", "" },
        { "results", "", "{\"result\":[1]}\n", "" },
        { "one long line", "{\"text\":\"", "a", "\"}" },
};

static const struct input bytes[] = {
        { "bytes that are no characters", "", "\xff", "" },
        { "characters cut short", "", "\xf0\x9f\x98", "" },
        { "terminal sequences", "", "\x1b[31m\x1b]0;x", "" },
};

/* ---- Readers ---- */

static void read_as(enum tool_kind kind, enum tool_output form, const char *text, size_t length)
{
        struct tool tool = { .name = "linear", .kind = kind, .output = form, .n_success = 1 };
        struct report report = REPORT_INIT;
        struct output *output =
                &report.output[kind == TOOL_FUNCTION ? STREAM_RESULT : STREAM_OUTPUT];
        json_t *outcome, *json;

        for (size_t i = 0; i < STREAMS; i++)
                output_init(&report.output[i], 64 * MIB);
        report.reason = REASON_EXITED;
        report.captured = report.has_result = true;
        assert_int_equal(output_add(output, text, length), 0);
        if (output->filed) {
                int file = output->file;

                assert_int_equal(output_seal(output), 0);
                output->filed = false;
                assert_int_equal(output_take_file(output, file), 0);
        }
        outcome = outcome_judge(&tool, &report, false);
        assert_non_null(outcome);
        json = report_to_json(&report);
        assert_non_null(json);
        json_decref(json);
        json_decref(outcome);
        report_free(&report);
}

static void read_as_json(const char *text, size_t length)
{
        read_as(TOOL_COMMAND, TOOL_JSON, text, length);
}

static void read_as_lines(const char *text, size_t length)
{
        read_as(TOOL_COMMAND, TOOL_LINES, text, length);
}

static void read_as_text(const char *text, size_t length)
{
        read_as(TOOL_COMMAND, TOOL_TEXT, text, length);
}

/* As the body of small frames of each kind in turn, and of one large one. */
static void read_as_frames(const char *text, size_t length)
{
        _cleanup_buffer_ struct buffer data = BUFFER_INIT;
        struct message_frame frame = { .length = (uint32_t)length, .kind = MESSAGE_RESULT };

        assert_int_equal(buffer_add(&data, &frame, sizeof(frame)), 0);
        assert_int_equal(buffer_add(&data, text, length), 0);
        for (size_t at = 0; at + 3 <= length; at += sizeof(frame) + 3) {
                frame = (struct message_frame){ .length = 3,
                                                .kind = (uint32_t)(at / (sizeof(frame) + 3) % 4) };
                assert_int_equal(buffer_add(&data, &frame, sizeof(frame)), 0);
                assert_int_equal(buffer_add(&data, "[1]", 3), 0);
        }
        read_as(TOOL_FUNCTION, TOOL_JSON, data.data, data.length);
}

typedef void reader(const char *text, size_t length);

static double time_for(reader *read, const struct input *input, size_t size)
{
        _cleanup_free_ char *text = NULL;
        size_t length = 0;
        double begun;

        text = fill(input, size, &length);
        begun = processor_time();
        read(text, length);
        return processor_time() - begun;
}

/* By how much the time grows from each size to the next, at most; the least of some tries, as what
 * else the machine does only adds. */
static double growth(reader *read, const struct input *input)
{
        double least = 1e9;

        for (int i = 0; i < TRIES && least > GROWTH_MAX; i++) {
                double before = time_for(read, input, MB), most = 0;

                for (size_t size = 4 * MB; size <= 16 * MB; size *= 4) {
                        double now = time_for(read, input, size);

                        if (now >= NOISE)
                                most = MAX(most, now / MAX(before, NOISE / 4));
                        before = now;
                }
                least = MIN(least, most);
        }
        return least;
}

static void check_linear(reader *read, const struct input *inputs, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                double grown = growth(read, &inputs[i]);

                if (grown > GROWTH_MAX)
                        fail_msg("%s: four times the length takes %.1f times as long",
                                 inputs[i].name, grown);
        }
}

static void json_is_read_in_linear_time(void **state)
{
        (void)state;
        check_linear(read_as_json, values, ARRAY_SIZE(values));
}

static void lines_are_read_in_linear_time(void **state)
{
        (void)state;
        check_linear(read_as_lines, lines, ARRAY_SIZE(lines));
}

static void text_is_read_in_linear_time(void **state)
{
        (void)state;
        check_linear(read_as_text, bytes, ARRAY_SIZE(bytes));
}

static void frames_are_read_in_linear_time(void **state)
{
        (void)state;
        check_linear(read_as_frames, values, ARRAY_SIZE(values));
}

/* The test itself: what is quadratic is found out. */
static void read_badly(const char *text, size_t length)
{
        size_t found = 0;

        for (size_t at = 0; at < length; at += 20000)
                for (size_t i = at; i < length; i += 16)
                        found += text[i] == '?';
        assert_int_equal(found, 0);
}

static void what_is_quadratic_is_found(void **state)
{
        (void)state;
        assert_true(growth(read_badly, &values[0]) > GROWTH_MAX);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(json_is_read_in_linear_time),
                cmocka_unit_test(lines_are_read_in_linear_time),
                cmocka_unit_test(text_is_read_in_linear_time),
                cmocka_unit_test(frames_are_read_in_linear_time),
                cmocka_unit_test(what_is_quadratic_is_found),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
