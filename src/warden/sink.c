/* SPDX-License-Identifier: MIT */
#include "warden/sink.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

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

void sink_close(struct sink *sink)
{
        if (sink->method == SINK_OWN)
                base_close(sink->fd);
        sink->fd = -1;
        sink->method = SINK_NONE;
}

ssize_t sink_write(struct sink *sink, const char *data, size_t length)
{
        struct pollfd poll_fd = { .fd = sink->fd, .events = POLLOUT };
        ssize_t n;

        switch (sink->method) {
        case SINK_NONE:
                return (ssize_t)length;
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
