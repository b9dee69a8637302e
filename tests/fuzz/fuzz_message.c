/* SPDX-License-Identifier: MIT */
/*
 * What tools say. The same messages come of the same bytes however they are cut, and every stream
 * has an outcome that is either well, and then as the tool promised, or says what is wrong. The
 * input is a byte for what is tried, a byte for how it is cut, and the bytes that the tool wrote.
 */
#include <string.h>

#include "tool/tool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
        if (!holds)
                abort();
}

/* ---- However it is cut ---- */

static void write_message(struct buffer *to, const struct message *message)
{
        _cleanup_free_ char *value = message->value ? json_write(message->value, 0) : NULL;

        must(!message->value == !value);
        must(message->length == 0 || message->text);
        must(buffer_printf(to, "%d %s %a %a %d %s %zu:", (int)message->kind,
                           message->level ? message->level : "", message->done, message->total,
                           message->code, value ? value : "", message->length) == 0);
        must(buffer_add(to, message->text, message->length) == 0);
}

/* Take what is there. Returns what message_take said in the end: 0, or -EBADMSG. */
static int take_all(enum message_form form, const char *data, size_t length, bool last,
                    struct buffer *to, size_t *ret_taken)
{
        size_t at = 0;
        int r;

        do {
                cbx_error error = CBX_ERROR_INIT;
                struct message message = { 0 };
                size_t taken = 0;

                r = message_take(form, data + at, length - at, last, &taken, &message, &error);
                must(r == 0 || r == 1 || (r == -EBADMSG && error.text[0]));
                must(r == 1 ? taken > 0 && taken <= length - at : taken == 0);
                if (r == 1)
                        write_message(to, &message);
                message_clear(&message);
                at += taken;
        } while (r == 1);
        *ret_taken = at;
        return r;
}

static void try_cuts(enum message_form form, const char *data, size_t length, unsigned cut)
{
        _cleanup_buffer_ struct buffer whole = BUFFER_INIT, pieces = BUFFER_INIT;
        size_t taken, at = 0, end = 0;
        int expected = take_all(form, data, length, true, &whole, &taken), r = 0;

        while (r == 0 && end < length) {
                cut = cut * 1103515245U + 12345U;
                end = MIN(length, end + 1 + (cut >> 16) % 40);
                r = take_all(form, data + at, end - at, false, &pieces, &taken);
                at += taken;
        }
        if (r == 0)
                r = take_all(form, data + at, length - at, true, &pieces, &taken);
        must(r == expected && whole.length == pieces.length);
        must(whole.length == 0 || memcmp(whole.data, pieces.data, whole.length) == 0);
}

/* ---- What comes of it ---- */

static struct tool *make_tool(enum tool_kind kind, enum tool_output output, const char *schema)
{
        _cleanup_mistakes_ struct tool_mistakes mistakes = TOOL_MISTAKES_INIT;
        _cleanup_json_ json_t *document =
                json_pack("{s:s, s:{s:s}, s:o*}", "name", "it", "inputSchema", "type", "object",
                          "outputSchema", schema ? json_loads(schema, 0, NULL) : NULL);
        struct tool *tool = tool_new();

        must(document && tool && tool_describe(tool, document, &mistakes) == 0);
        tool->kind = kind;
        tool->output = output;
        return tool;
}

static void check_parts(const struct report *report, bool ok)
{
        const struct output *output = &report->output[STREAM_RESULT];

        must(ok || report->n_parts == 0);
        for (size_t i = 0; i < report->n_parts; i++)
                must(report->parts[i].at <= output_kept(output) &&
                     report->parts[i].length <= output_kept(output) - report->parts[i].at);
}

static void check_outcome(const struct tool *tool, struct report *report, bool raw)
{
        _cleanup_json_ json_t *outcome = outcome_judge(tool, report, raw), *again = NULL;
        _cleanup_free_ char *text = outcome ? json_write(outcome, 0) : NULL;
        const json_t *output = json_object_get(outcome, "output"),
                     *error = json_object_get(outcome, "error");
        bool ok = json_is_true(json_object_get(outcome, "ok"));

        must(text &&
             json_parse(text, strlen(text), "it", SIZE_MAX, JSON_PARSE_NUL, NULL, &again) == 0);
        must(json_equal(outcome, again));
        must(ok == !error && (ok || json_string_length(error) > 0) && (ok || !output));
        must(!ok || report->code == 0);
        check_parts(report, ok);
        if (raw && tool->kind == TOOL_FUNCTION)
                must(!output);
        else
                must(!ok || !tool->result || schema_check(tool->result, output, NULL) == 0);
}

static void try_outcome(const struct tool *tool, const char *data, size_t length, unsigned how)
{
        struct report report = { .reason = REASON_EXITED, .code = how & 1 };
        const char *errors = "it says:\n\xff\n";

        /* Head and tail may be too small for all of it. */
        for (size_t i = 0; i < STREAMS; i++)
                output_init(&report.output[i], how & 2 ? 100 : 128 * KIB);
        must(output_add(&report.output[STREAM_ERRORS], errors, strlen(errors)) == 0);
        must(output_add(&report.output[tool->kind == TOOL_FUNCTION ? STREAM_RESULT : STREAM_OUTPUT],
                        data, length) == 0);
        check_outcome(tool, &report, how & 4);
        report_free(&report);
}

static struct tool *tool_at(size_t i)
{
        static const char schema[] =
                "{\"type\": [\"object\", \"string\", \"number\"], \"maxProperties\": 2,"
                " \"additionalProperties\": {\"type\": \"array\", \"items\": {\"pattern\": "
                "\"^a*$\"},"
                " \"uniqueItems\": true}, \"maxLength\": 5, \"multipleOf\": 0.5}";
        static const struct {
                enum tool_kind kind;
                enum tool_output output;
        } kinds[] = { { TOOL_FUNCTION, TOOL_TEXT },
                      { TOOL_COMMAND, TOOL_TEXT },
                      { TOOL_COMMAND, TOOL_JSON },
                      { TOOL_SHELL, TOOL_LINES } };
        static struct tool *tools[2 * ARRAY_SIZE(kinds)];

        i %= ARRAY_SIZE(tools);
        if (!tools[i])
                tools[i] = make_tool(kinds[i / 2].kind, kinds[i / 2].output, i % 2 ? schema : NULL);
        return tools[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        /* A copy of exactly this size: reading past its end is seen. */
        _cleanup_free_ char *copy = NULL;

        if (size < 2)
                return 0;
        copy = malloc(MAX(size - 2, 1));
        must(copy != NULL);
        memcpy(copy, data + 2, size - 2);
        if (data[0] % 10 < 2)
                try_cuts(data[0] % 10 == 0 ? MESSAGE_FRAMES : MESSAGE_LINES, copy, size - 2,
                         data[1]);
        else
                try_outcome(tool_at(data[0] % 10U - 2U), copy, size - 2, data[1]);
        return 0;
}
