/* SPDX-License-Identifier: MIT */
#include "warden/sink.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "warden/wire.h"

_Static_assert(SINK_RESULT - SINK_OUTPUT == STREAM_RESULT &&
                       WIRE_RESULT - WIRE_OUTPUT == STREAM_RESULT,
               "sinks and messages come in the order of the streams");

/* A pipe or terminal that poll calls writable takes this much without blocking. */
#define PIECE 4096

void sink_open(struct sink *sink, int fd)
{
        char path[64];
        struct stat st;
        int own;

        sink->fd = fd;
        sink->method = fd < 0 ? SINK_NONE : SINK_POLL;
        if (fd < 0 || fstat(fd, &st) < 0)
                return;
        if (S_ISREG(st.st_mode)) {
                sink->method = SINK_FILE;
        } else if (S_ISSOCK(st.st_mode)) {
                sink->method = SINK_SOCKET;
        } else {
                snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
                own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
                if (own >= 0) {
                        sink->fd = own;
                        sink->method = SINK_OWN;
                }
        }
}

/* A descriptor of its own: the socket itself is watched for what the client says. */
int sink_open_messages(struct sink *sink, int socket, int stream)
{
        sink->method = SINK_OUTPUT + (enum sink_method)stream;
        sink->fd = fcntl(socket, F_DUPFD_CLOEXEC, 3);
        return sink->fd < 0 ? -errno : 0;
}

void sink_close(struct sink *sink)
{
        if (sink->method >= SINK_OUTPUT || sink->method == SINK_OWN)
                base_close(sink->fd);
        sink->fd = -1;
        sink->method = SINK_NONE;
}

static ssize_t send_piece(const struct sink *sink, const char *data, size_t length)
{
        struct iovec part = { (void *)data, MIN(length, WIRE_INLINE) };
        enum wire_type type = WIRE_OUTPUT + (enum wire_type)(sink->method - SINK_OUTPUT);
        int r = wire_send(sink->fd, type, &part, 1, NULL, 0, MSG_DONTWAIT);

        return r < 0 ? r : (ssize_t)part.iov_len;
}

ssize_t sink_write(struct sink *sink, const char *data, size_t length)
{
        struct pollfd poll_fd = { .fd = sink->fd, .events = POLLOUT };
        ssize_t n;

        switch (sink->method) {
        case SINK_NONE:
                return (ssize_t)length;
        case SINK_OUTPUT:
        case SINK_ERRORS:
        case SINK_RESULT:
                return send_piece(sink, data, length);
        case SINK_SOCKET:
                n = send(sink->fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);
                break;
        case SINK_POLL:
                if (poll(&poll_fd, 1, 0) == 0)
                        return -EAGAIN;
                n = write(sink->fd, data, MIN(length, PIECE));
                break;
        default:
                n = write(sink->fd, data, length);
        }
        return n < 0 ? -errno : n;
}
