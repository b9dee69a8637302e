/* SPDX-License-Identifier: MIT */
/* Writing to a descriptor of the caller's without ever being blocked by it. */
#ifndef WARDEN_SINK_H
#define WARDEN_SINK_H

#include "base/base.h"

enum sink_method {
        SINK_NONE,
        SINK_FILE,   /* a regular file: takes everything at once */
        SINK_OWN,    /* our own non-blocking opening of the caller's pipe or terminal */
        SINK_SOCKET, /* sends with MSG_DONTWAIT */
        SINK_POLL,   /* writes little pieces after asking poll */
        SINK_OUTPUT, /* messages to a client's socket (wire.h) ... */
        SINK_ERRORS,
        SINK_RESULT,
};

struct sink {
        enum sink_method method;
        int fd;
};

/* `fd` stays the caller's; its own flags are not touched: they are shared with its owner. */
void sink_open(struct sink *sink, int fd);

/* The same as messages on a client's socket: pieces of this stream (output.h). */
int sink_open_messages(struct sink *sink, int socket, int stream);
void sink_close(struct sink *sink);

/* Write what can be written now; returns the number of bytes taken, or -EAGAIN, or an error. */
ssize_t sink_write(struct sink *sink, const char *data, size_t length);

#endif
