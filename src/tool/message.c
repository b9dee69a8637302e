/* SPDX-License-Identifier: MIT */
/*
 * Reading messages. The lines that a command writes on its stdout:
 *
 *   {"progress": 3, "total": 10, "message": "..."}    {"log": "...", "level": "warning"}
 *   {"text": "..."}    {"result": ...}    {"error": "..."}
 */
#include <math.h>
#include <string.h>

#include "policy/json_read.h"
#include "tool/message.h"

#define LINE_MAX_BYTES (64 * MIB) /* what is captured bounds it further */

void message_clear(struct message *message)
{
        json_decref(message->line);
        *message = (struct message){ 0 };
}

static int bad(cbx_error *error, const char *text)
{
        return error_set(error, -EBADMSG, "", "%s", text);
}

/* ---- Frames ---- */

/* Copy the fixed part from the front of a frame's text. */
static bool take_front(struct message *message, void *to, size_t size)
{
        if (message->length < size)
                return false;
        memcpy(to, message->text, size);
        message->text += size;
        message->length -= size;
        return true;
}

static bool set_progress(struct message *message, double done, double total)
{
        if (!isfinite(done) || !isfinite(total) || done < 0 || total < 0)
                return false;
        message->done = done;
        message->total = total;
        return true;
}

static bool read_frame(struct message *message)
{
        struct message_progress progress;
        struct message_log log;
        struct message_done done;

        switch (message->kind) {
        case MESSAGE_RESULT:
        case MESSAGE_TEXT:
        case MESSAGE_ERROR:
        case MESSAGE_DATA:
                return true;
        case MESSAGE_PROGRESS:
                return take_front(message, &progress, sizeof(progress)) &&
                       set_progress(message, progress.done, progress.total);
        case MESSAGE_LOG:
                if (!take_front(message, &log, sizeof(log)) || log.level >= MESSAGE_LEVELS)
                        return false;
                message->level = message_levels[log.level];
                return true;
        case MESSAGE_DONE:
                if (!take_front(message, &done, sizeof(done)) || message->length > 0)
                        return false;
                message->code = done.code;
                return true;
        default:
                return false;
        }
}

static int take_frame(const char *data, size_t length, bool last, size_t *ret_taken,
                      struct message *message, cbx_error *error)
{
        struct message_frame frame = { 0 };

        if (length >= sizeof(frame))
                memcpy(&frame, data, sizeof(frame));
        if (length < sizeof(frame) || length - sizeof(frame) < frame.length)
                return last && length > 0 ? bad(error, "its last message is cut off") : 0;
        if (frame.kind >= MESSAGE_MAX_)
                return bad(error, "it wrote something that is no message on the result channel");
        *message = (struct message){ .kind = (enum message_kind)frame.kind,
                                     .text = data + sizeof(frame),
                                     .length = frame.length };
        if (!read_frame(message))
                return bad(error, "it wrote a message with a wrong content on the result channel");
        *ret_taken = sizeof(frame) + frame.length;
        return 1;
}

/* ---- Lines ---- */

static bool set_text(struct message *message, json_t *value, bool optional)
{
        if (!value && optional) {
                message->text = "";
                return true;
        }
        message->text = json_string_value(value);
        message->length = json_string_length(value);
        return json_is_string(value);
}

static bool set_level(struct message *message, json_t *level)
{
        const char *name = level ? json_string_value(level) : "info";

        for (size_t i = 0; name && i < MESSAGE_LEVELS; i++)
                if (strcmp(message_levels[i], name) == 0)
                        message->level = message_levels[i];
        return message->level != NULL;
}

static bool read_line(struct message *message)
{
        static const struct {
                const char *key;
                enum message_kind kind;
                size_t most; /* members */
        } forms[] = {
                { "result", MESSAGE_RESULT, 1 },     { "text", MESSAGE_TEXT, 1 },
                { "error", MESSAGE_ERROR, 1 },       { "log", MESSAGE_LOG, 2 },
                { "progress", MESSAGE_PROGRESS, 3 },
        };
        json_t *line = message->line, *value = NULL, *total = json_object_get(line, "total");
        size_t i = 0;

        while (i < ARRAY_SIZE(forms) && !(value = json_object_get(line, forms[i].key)))
                i++;
        if (!value || json_object_size(line) > forms[i].most)
                return false;
        message->kind = forms[i].kind;
        switch (message->kind) {
        case MESSAGE_RESULT:
                message->value = value;
                return true;
        case MESSAGE_PROGRESS:
                return json_is_number(value) && (!total || json_is_number(total)) &&
                       set_progress(message, json_number_value(value), json_number_value(total)) &&
                       set_text(message, json_object_get(line, "message"), true) &&
                       json_object_size(line) ==
                               1U + (total != NULL) + (json_object_get(line, "message") != NULL);
        case MESSAGE_LOG:
                return set_text(message, value, false) &&
                       set_level(message, json_object_get(line, "level")) &&
                       json_object_size(line) == 1U + (json_object_get(line, "level") != NULL);
        default:
                return set_text(message, value, false);
        }
}

static int take_line(const char *data, size_t length, bool last, size_t *ret_taken,
                     struct message *message, cbx_error *error)
{
        size_t blank = 0, end;
        const char *newline;
        int r;

        while (blank < length && strchr(" \t\r\n", data[blank]) && data[blank])
                blank++;
        newline = memchr(data + blank, '\n', length - blank);
        if (!newline && (!last || blank == length))
                return 0;
        end = newline ? (size_t)(newline - data) : length;
        *message = (struct message){ 0 };
        r = json_parse(data + blank, end - blank, "it", LINE_MAX_BYTES,
                       JSON_PARSE_NUL | JSON_PARSE_LINE, error, &message->line);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        if (!json_is_object(message->line) || !read_line(message)) {
                message_clear(message);
                return bad(error, "it is JSON, but no message: that is a result, text, error, "
                                  "progress or log, as callbox-manifest(5) has them");
        }
        *ret_taken = newline ? end + 1 : end;
        return 1;
}

int message_take(enum message_form form, const char *data, size_t length, bool last,
                 size_t *ret_taken, struct message *ret_message, cbx_error *error)
{
        return form == MESSAGE_FRAMES
                       ? take_frame(data, length, last, ret_taken, ret_message, error)
                       : take_line(data, length, last, ret_taken, ret_message, error);
}
