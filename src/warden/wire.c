/* SPDX-License-Identifier: MIT */
/* Messages: a header, a body, descriptors. */
#include "warden/wire.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

union control {
        char room[CMSG_SPACE(WIRE_FDS_MAX * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
        struct cmsghdr header;
};

/* ---- Sending ---- */

static int write_parts(int fd, const struct iovec *parts, size_t n_parts)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < n_parts; i++)
                r = fd_write_memory(fd, parts[i].iov_base, parts[i].iov_len);
        return r;
}

static int send_message(int socket, struct iovec *parts, size_t n_parts, const int *fds,
                        size_t n_fds, int flags)
{
        union control control = { 0 };
        struct msghdr message = { .msg_iov = parts, .msg_iovlen = n_parts };
        ssize_t n;

        if (n_fds > 0) {
                message.msg_control = control.room;
                message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
                control.header.cmsg_level = SOL_SOCKET;
                control.header.cmsg_type = SCM_RIGHTS;
                control.header.cmsg_len = CMSG_LEN(n_fds * sizeof(int));
                memcpy(CMSG_DATA(&control.header), fds, n_fds * sizeof(int));
        }
        do
                n = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : 0;
}

int wire_send(int socket, enum wire_type type, const struct iovec *parts, size_t n_parts,
              const int *fds, size_t n_fds, int flags)
{
        struct wire_header header = { .type = type };
        struct iovec all[1 + WIRE_PARTS_MAX] = { { &header, sizeof(header) } };
        int all_fds[WIRE_FDS_MAX];
        _cleanup_fd_ int file = -1;
        int r;

        if (n_parts > WIRE_PARTS_MAX || n_fds > WIRE_FDS_MAX - 1)
                return -EINVAL;
        for (size_t i = 0; i < n_parts; i++) {
                all[1 + i] = parts[i];
                header.length += parts[i].iov_len;
        }
        if (header.length <= WIRE_INLINE)
                return send_message(socket, all, 1 + n_parts, fds, n_fds, flags);
        file = memfd_create("callbox", MFD_CLOEXEC);
        if (file < 0)
                return -errno;
        r = write_parts(file, parts, n_parts);
        if (r < 0)
                return r;
        header.filed = 1;
        if (n_fds > 0)
                memcpy(all_fds, fds, n_fds * sizeof(int));
        all_fds[n_fds] = file;
        return send_message(socket, all, 1, all_fds, n_fds + 1, flags);
}

int wire_send_packed(int socket, enum wire_type type, const struct pack *pack, const int *fds,
                     size_t n_fds, int flags)
{
        struct iovec part = { pack->buffer.data, pack->buffer.length };

        if (pack->failed)
                return -ENOMEM;
        return wire_send(socket, type, &part, 1, fds, n_fds, flags);
}

/* ---- Receiving ---- */

void wire_message_free(struct wire_message *message)
{
        free(message->own);
        message->own = NULL;
        message->body = NULL;
        for (size_t i = 0; i < WIRE_FDS_MAX; i++)
                message->fds[i] = base_close(message->fds[i]);
}

static void take_sender(struct msghdr *header, struct wire_message *message)
{
        for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
                struct ucred sender;

                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
                        continue;
                memcpy(&sender, CMSG_DATA(c), sizeof(sender));
                message->sender = sender.pid;
        }
}

/* Returns how many there were, and keeps those that have a place. */
static size_t take_descriptors(struct msghdr *header, struct wire_message *message)
{
        size_t n = 0;

        for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
                size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                for (size_t i = 0; i < count; i++) {
                        int fd;

                        memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
                        if (n < WIRE_FDS_MAX)
                                message->fds[n++] = fd;
                        else
                                base_close(fd);
                }
        }
        return n;
}

/* The body lies in a file that its sender may still change: copy it once, then look at it. */
static int read_file(int fd, uint64_t length, size_t limit, char **ret)
{
        _cleanup_free_ char *data = NULL;
        size_t at = 0;
        struct stat st;

        if (length > limit)
                return -EFBIG;
        /* A memory file, which has seals: any other might keep the reader waiting. */
        if (fd < 0 || fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &st) < 0 ||
            (uint64_t)st.st_size != length)
                return -EPROTO;
        data = malloc(MAX(length, 1));
        if (!data)
                return -ENOMEM;
        while (at < length) {
                ssize_t n = pread(fd, data + at, length - at, (off_t)at);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return -EPROTO;
                at += (size_t)n;
        }
        *ret = TAKE_PTR(data);
        return 0;
}

static int read_body(struct wire_message *message, const struct wire_room *room, size_t got,
                     size_t n_fds, size_t limit)
{
        const struct wire_header *header = (const struct wire_header *)room->data;
        int r;

        if (got < sizeof(*header) || header->type == 0 || header->type > WIRE_READY)
                return -EPROTO;
        message->type = header->type;
        message->length = header->length;
        message->body = room->data + sizeof(*header);
        if (!header->filed)
                return header->length == got - sizeof(*header) ? 0 : -EPROTO;
        if (message->lost)
                return -EMFILE;
        if (n_fds == 0 || got != sizeof(*header))
                return -EPROTO;
        r = read_file(message->fds[n_fds - 1], header->length, limit, &message->own);
        message->fds[n_fds - 1] = base_close(message->fds[n_fds - 1]);
        message->body = message->own;
        return r;
}

int wire_receive(int socket, struct wire_room *room, size_t limit, int flags,
                 struct wire_message *ret_message)
{
        struct iovec data = { room->data, sizeof(room->data) };
        union control control;
        struct msghdr header = { .msg_iov = &data,
                                 .msg_iovlen = 1,
                                 .msg_control = control.room,
                                 .msg_controllen = sizeof(control.room) };
        _cleanup_message_ struct wire_message message = WIRE_MESSAGE_INIT;
        size_t n_fds;
        ssize_t n;
        int r;

        /* A peer that left with something unread resets the connection, once; what it had said
         * before is still there. */
        do
                n = recvmsg(socket, &header, flags | MSG_CMSG_CLOEXEC);
        while (n < 0 && (errno == EINTR || errno == ECONNRESET));
        if (n < 0)
                return -errno;
        n_fds = take_descriptors(&header, &message);
        take_sender(&header, &message);
        message.lost = header.msg_flags & MSG_CTRUNC;
        if (n == 0 && n_fds == 0)
                return 0;
        if (header.msg_flags & MSG_TRUNC)
                return -EPROTO;
        r = read_body(&message, room, (size_t)n, n_fds, limit);
        if (r < 0)
                return r;
        *ret_message = message;
        message = (struct wire_message)WIRE_MESSAGE_INIT;
        return 1;
}
