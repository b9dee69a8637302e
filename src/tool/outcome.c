/* SPDX-License-Identifier: MIT */
/*
 * What a call has come to. That it ended, and why, the warden says; what it was for, the tool says:
 * by its exit code and stdout, or by messages. What the tool says is checked against what it has
 * promised.
 */
#include <stdio.h>
#include <string.h>

#include "tool/tool.h"

#define ERROR_TAIL 2000 /* bytes of stderr that an error quotes */

/* What the tool has said, as far as it was understood. */
struct said {
        json_t *result;
        struct buffer parts; /* struct report_part: the result, then its data */
        struct buffer data;  /* the same: of a result that is still to come */
        bool raw;            /* the result is not wanted as JSON */
        struct buffer text;
        struct buffer error;
        bool failed;   /* it says so */
        bool returned; /* a function: it came to its end ... */
        int code;      /* ... with this */
};

static void said_clear(struct said *said)
{
        json_decref(said->result);
        buffer_free(&said->parts);
        buffer_free(&said->data);
        buffer_free(&said->text);
        buffer_free(&said->error);
}

/* ---- Errors ---- */

/* The error of a call that failed; the first one stands. */
static int fail(json_t *outcome, const char *text)
{
        if (json_object_get(outcome, "error"))
                return 0;
        return json_object_set_new(outcome, "error", json_string(text)) < 0 ? -ENOMEM : 0;
}

/* json_object_update does not tell when memory ran out; then it would pass as no refusal. */
static int take_refusal(json_t *outcome, json_t *refusal)
{
        const char *key;
        json_t *value;

        json_object_foreach(refusal, key, value)
        {
                if (json_object_set(outcome, key, value) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int fail_error(json_t *outcome, const char *before, const cbx_error *error)
{
        char text[sizeof(error->where) + sizeof(error->text) + 64];

        snprintf(text, sizeof(text), "%s%s%s%s", before, error->where, error->where[0] ? ": " : "",
                 error->text);
        return fail(outcome, text);
}

/* "exit code 2: what it wrote on stderr last" */
static int fail_code(json_t *outcome, const struct report *report)
{
        _cleanup_buffer_ struct buffer text = BUFFER_INIT;
        _cleanup_free_ char *errors = NULL;
        size_t length, from;
        bool replaced = false;
        int r = output_join(&report->output[STREAM_ERRORS], &errors, &length);

        if (r == 0)
                r = buffer_printf(&text, "exit code %d", report->code);
        while (r == 0 && length > 0 && (errors[length - 1] == '\n' || errors[length - 1] == ' '))
                length--;
        from = length > ERROR_TAIL ? length - ERROR_TAIL : 0;
        if (r == 0 && length > 0)
                r = buffer_printf(&text, from > 0 ? ": ... " : ": ");
        if (r == 0)
                r = output_decode(errors + from, length - from, &text, &replaced);
        return r < 0 ? r : fail(outcome, text.data);
}

static bool is_success(const struct tool *tool, int code)
{
        for (size_t i = 0; i < tool->n_success; i++)
                if (tool->success[i] == code)
                        return true;
        return false;
}

/* ---- Reading ---- */

/* JSON that the tool wrote. `what` names it in an error, which goes into the outcome. */
static int read_json(json_t *outcome, const char *text, size_t length, const char *what,
                     json_t **ret)
{
        cbx_error error = CBX_ERROR_INIT;
        int r = json_parse(text, length, what, SIZE_MAX, JSON_PARSE_NUL, &error, ret);

        return r < 0 && r != -ENOMEM ? fail_error(outcome, "", &error) : r;
}

/* Bytes of a frame: they are only noted. A box can write many small ones, so there is a bound. */
static int note_data(json_t *outcome, const struct report_part *part, struct said *said)
{
        if (said->data.length / sizeof(*part) >= OUTCOME_PARTS_MAX)
                return fail(outcome, "its result has too many parts");
        return buffer_add(&said->data, part, sizeof(*part));
}

/* The last result counts, with the data that came since the one before. */
static int note_result(json_t *outcome, const struct message *message,
                       const struct report_part *part, struct said *said)
{
        json_decref(said->result);
        said->result = message->value ? json_incref(message->value) : NULL;
        said->parts.length = 0;
        if (buffer_add(&said->parts, part, sizeof(*part)) < 0 ||
            buffer_add(&said->parts, said->data.data, said->data.length) < 0)
                return -ENOMEM;
        said->data.length = 0;
        return said->result || said->raw ? 0
                                         : read_json(outcome, message->text, message->length,
                                                     "its result", &said->result);
}

static int hear(json_t *outcome, const struct message *message, const struct report_part *part,
                struct said *said)
{
        bool replaced = false;

        switch (message->kind) {
        case MESSAGE_RESULT:
                return note_result(outcome, message, part, said);
        case MESSAGE_DATA:
                return note_data(outcome, part, said);
        case MESSAGE_TEXT:
                return output_decode(message->text, message->length, &said->text, &replaced);
        case MESSAGE_ERROR:
                said->failed = true;
                if (said->error.length > 0 && buffer_add(&said->error, "; ", 2) < 0)
                        return -ENOMEM;
                return output_decode(message->text, message->length, &said->error, &replaced);
        case MESSAGE_DONE:
                said->returned = true;
                said->code = message->code;
                return 0;
        default:
                return 0;
        }
}

/* "line 3 of its output: ", where that line begins the rest. */
static void name_line(const char *data, const char *rest, const char *end, char *text, size_t size)
{
        size_t line = 1;

        while (rest < end && (*rest == '\n' || *rest == '\r' || *rest == ' ' || *rest == '\t'))
                rest++; /* blank lines belong to the message that follows */
        for (; data < rest; data++)
                line += *data == '\n';
        snprintf(text, size, "line %zu of its output: ", line);
}

static int hear_all(json_t *outcome, enum message_form form, const char *data, size_t length,
                    struct said *said)
{
        const char *rest = data, *end = data + length;
        cbx_error error = CBX_ERROR_INIT;
        char before[64] = "";
        int r = 1;

        while (r > 0 && rest < end) {
                struct message message = { 0 };
                size_t taken = 0;

                r = message_take(form, rest, (size_t)(end - rest), true, &taken, &message, &error);
                if (r > 0) {
                        struct report_part part = { .length = message.length };
                        int heard;

                        if (form == MESSAGE_FRAMES && message.text)
                                part.at = (size_t)(message.text - data);
                        heard = hear(outcome, &message, &part, said);
                        message_clear(&message);
                        if (heard < 0)
                                return heard;
                        rest += taken;
                }
        }
        if (r != -EBADMSG)
                return MIN(r, 0);
        if (form == MESSAGE_LINES)
                name_line(data, rest, end, before, sizeof(before));
        return fail_error(outcome, before, &error);
}

/* A stream as the tool wrote it, whole; where it is not, that is the outcome, and there is none. It
 * lies in one piece then (output.h). */
static int take_whole(json_t *outcome, const struct output *output, const char **ret,
                      size_t *ret_length)
{
        char text[160];

        if (output_omitted(output) == 0) {
                *ret = output->data ? output->data : "";
                *ret_length = output_kept(output);
                return 0;
        }
        snprintf(text, sizeof(text),
                 "its result is too large: %llu bytes, of which %zu are kept (limits.result)",
                 (unsigned long long)output->total, output->capacity);
        return fail(outcome, text);
}

static int hear_stream(json_t *outcome, enum message_form form, const struct output *output,
                       struct said *said)
{
        const char *data = NULL;
        size_t length = 0;
        int r = take_whole(outcome, output, &data, &length);

        return r < 0 || !data ? r : hear_all(outcome, form, data, length, said);
}

/* ---- By kind ---- */

static int judge_function(json_t *outcome, const struct report *report, struct said *said)
{
        char text[96];
        int r = hear_stream(outcome, MESSAGE_FRAMES, &report->output[STREAM_RESULT], said);

        if (r < 0)
                return r;
        if (said->failed)
                return fail(outcome, said->error.length > 0 ? said->error.data : "it failed");
        /* That it returned is only its word; the code of its process is the warden's. */
        if (report->code != 0 && (!said->returned || said->code == 0))
                return fail_code(outcome, report);
        if (!said->returned)
                return fail(outcome, "the function ended its process instead of returning");
        if (said->code == 0)
                return 0;
        snprintf(text, sizeof(text), "the function returned %d", said->code);
        return fail(outcome, text);
}

static int judge_command(const struct tool *tool, json_t *outcome, const struct report *report,
                         struct said *said)
{
        const struct output *output = &report->output[STREAM_OUTPUT];
        _cleanup_json_ json_t *captured = NULL;
        const char *data = NULL;
        size_t length = 0;
        int r = 0;

        if (tool->output == TOOL_LINES) {
                r = hear_stream(outcome, MESSAGE_LINES, output, said);
                if (r == 0 && said->failed)
                        r = fail(outcome, said->error.length > 0 ? said->error.data : "it failed");
        }
        if (r == 0 && !is_success(tool, report->code))
                return fail_code(outcome, report);
        if (r == 0 && tool->output == TOOL_JSON) {
                r = take_whole(outcome, output, &data, &length);
                if (r == 0 && data)
                        r = read_json(outcome, data, length, "its output", &said->result);
        }
        if (r == 0 && tool->output == TOOL_TEXT) {
                captured = output_to_json(output);
                said->result = json_incref(json_object_get(captured, "text"));
                r = said->result ? 0 : -ENOMEM;
        }
        return r;
}

/* Why the box ended, where it was not by the program's own exit. */
static int judge_end(json_t *outcome, const struct report *report)
{
        char text[512];

        report_text(report, text, sizeof(text));
        if (report->reason != REASON_DENIED)
                return fail(outcome, text);
        return json_object_set_new(outcome, "denied", json_true()) < 0 ||
                               json_object_set_new(outcome, "reason", json_string(text)) < 0
                       ? -ENOMEM
                       : 0;
}

/* ---- The promise ---- */

static int check_promise(const struct tool *tool, json_t *outcome, const json_t *result)
{
        _cleanup_schema_mistakes_ struct schema_mistakes mistakes = SCHEMA_MISTAKES_INIT;
        _cleanup_json_ json_t *refusal = NULL;
        char text[256];
        int r;

        if (!tool->result)
                return 0;
        if (tool->returns_content) {
                /* What it promises is the structured part; questions and errors have none. */
                if (!json_object_get(result, "content") ||
                    json_is_true(json_object_get(result, "isError")))
                        return 0;
                result = json_object_get(result, "structuredContent");
        }
        snprintf(text, sizeof(text), "%s broke its own promise: %s", tool->name,
                 result ? "its result is not what outputSchema says"
                        : "it gave no result, which outputSchema describes");
        if (!result)
                return fail(outcome, text);
        r = schema_check(tool->result, result, &mistakes);
        if (r == 0 || (r < 0 && r != -E2BIG))
                return r;
        refusal = tool_refusal(text, &mistakes);
        return refusal ? take_refusal(outcome, refusal) : -ENOMEM;
}

static int judge(const struct tool *tool, json_t *outcome, const struct report *report,
                 struct said *said)
{
        int r;

        if (report->reason != REASON_EXITED)
                r = judge_end(outcome, report);
        else if (report->output_lost) /* what is there may be a part, and look like the whole */
                r = fail(outcome, "what it wrote could not be read");
        else if (tool->kind == TOOL_FUNCTION)
                r = judge_function(outcome, report, said);
        else
                r = judge_command(tool, outcome, report, said);
        if (r == 0 && !json_object_get(outcome, "error") && !json_object_get(outcome, "reason"))
                r = check_promise(tool, outcome, said->result);
        return r;
}

/* The parts of a function's result become the report's. */
static void keep_parts(struct said *said, struct report *report)
{
        free(report->parts);
        report->n_parts = said->parts.length / sizeof(struct report_part);
        report->parts = (struct report_part *)(void *)TAKE_PTR(said->parts.data);
}

json_t *outcome_judge(const struct tool *tool, struct report *report, bool raw)
{
        _cleanup_(said_clear) struct said said = {
                /* What is checked has to be read. */
                .raw = raw && tool->kind == TOOL_FUNCTION && !tool->result,
        };
        json_t *outcome = json_pack("{s:s, s:b, s:b}", "name", tool->name, "ok", 0, "denied", 0);
        bool failed;

        report->raw = raw && tool->kind == TOOL_FUNCTION;
        if (!outcome || judge(tool, outcome, report, &said) < 0) {
                json_decref(outcome);
                return NULL;
        }
        failed = json_object_get(outcome, "error") || json_object_get(outcome, "reason");
        /* A result that breaks the promise, or that a failure left behind, is not one. */
        if ((!failed && json_object_set_new(outcome, "ok", json_true()) < 0) ||
            (!failed && said.result && !report->raw &&
             json_object_set(outcome, "output", said.result) < 0) ||
            (said.text.length > 0 &&
             json_object_set_new(outcome, "text", json_string(said.text.data)) < 0)) {
                json_decref(outcome);
                return NULL;
        }
        if (!failed && tool->kind == TOOL_FUNCTION)
                keep_parts(&said, report);
        return outcome;
}

json_t *outcome_refused(const char *name, json_t *refusal)
{
        json_t *outcome = json_pack("{s:s, s:b, s:b}", "name", name, "ok", 0, "denied", 0);

        if (outcome && take_refusal(outcome, refusal) < 0) {
                json_decref(outcome);
                return NULL;
        }
        return outcome;
}
