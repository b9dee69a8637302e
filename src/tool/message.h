/* SPDX-License-Identifier: MIT */
/*
 * What a tool says besides its prints. A function writes frames on the result channel, a command
 * lines of JSON on its stdout (message.c). All of it comes out of a box and is trusted with
 * nothing.
 */
#ifndef TOOL_MESSAGE_H
#define TOOL_MESSAGE_H

#include <jansson.h>

#include "base/base.h"

enum message_kind {
        MESSAGE_RESULT,   /* JSON */
        MESSAGE_TEXT,     /* a piece of text for reading */
        MESSAGE_ERROR,    /* it failed, and says why */
        MESSAGE_PROGRESS, /* so much is done */
        MESSAGE_LOG,
        MESSAGE_DONE, /* a function has returned, with this code */
        MESSAGE_DATA, /* bytes that belong to the result which follows */
        MESSAGE_MAX_,
};

#define MESSAGE_LEVELS 4
extern const char *const message_levels[MESSAGE_LEVELS]; /* "debug", "info", "warning", "error" */

/* ---- Frames. Both ends are on one machine: numbers are as it has them. ---- */

struct message_frame {
        uint32_t length; /* of what follows */
        uint32_t kind;
};

/* What stands before the text in a frame of progress and of a log line, and alone in one that says
 * that the function has returned. */
struct message_progress {
        double done, total;
};
struct message_log {
        uint32_t level;
};
struct message_done {
        int32_t code;
};

/* ---- Reading ---- */

/* Text points into what was read, is not NUL-terminated and need not be UTF-8. */
struct message {
        enum message_kind kind;
        const char *text;
        size_t length;
        const char *level;  /* of a log line */
        double done, total; /* of progress; total 0: not known */
        int code;           /* of MESSAGE_DONE */
        json_t *line;       /* JSON lines: what text and value point into; else NULL */
        json_t *value;      /* JSON lines: the result */
};

enum message_form { MESSAGE_FRAMES, MESSAGE_LINES };

/* Take the next message from bytes. Returns 1 and how many bytes it took, 0 when more bytes are
 * needed (`last`: none will come), -EBADMSG with the error filled, or -ENOMEM. */
int message_take(enum message_form form, const char *data, size_t length, bool last,
                 size_t *ret_taken, struct message *ret_message, cbx_error *error);
void message_clear(struct message *message);

#endif
