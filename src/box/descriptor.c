/* SPDX-License-Identifier: MIT */
#include "box/descriptor.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/base.h"

#define DESCRIPTORS_MAX 4

union control {
        char room[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
        struct cmsghdr header;
};

int descriptor_send(int socket, char byte, const int *fds, unsigned n)
{
        struct iovec data = { &byte, 1 };
        union control control = { 0 };
        struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };

        if (n > DESCRIPTORS_MAX)
                return -EINVAL;
        if (n > 0) {
                message.msg_control = control.room;
                message.msg_controllen = CMSG_SPACE(n * sizeof(int));
                control.header.cmsg_level = SOL_SOCKET;
                control.header.cmsg_type = SCM_RIGHTS;
                control.header.cmsg_len = CMSG_LEN(n * sizeof(int));
                memcpy(CMSG_DATA(&control.header), fds, n * sizeof(int));
        }
        return sendmsg(socket, &message, MSG_NOSIGNAL) == 1 ? 0 : -errno;
}

int descriptor_receive(int socket, int *ret_fds, int n, char *ret_byte)
{
        char byte = 0;
        struct iovec data = { &byte, 1 };
        union control control;
        struct msghdr message = { .msg_iov = &data,
                                  .msg_iovlen = 1,
                                  .msg_control = control.room,
                                  .msg_controllen = sizeof(control.room) };
        struct cmsghdr *header;
        ssize_t got;

        do
                got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
        while (got < 0 && errno == EINTR);
        if (got < 0)
                return -errno;
        for (int i = 0; i < n; i++)
                ret_fds[i] = -1;
        header = CMSG_FIRSTHDR(&message);
        if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
                size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

                for (size_t i = 0; i < count; i++) {
                        int fd;

                        memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
                        if (i < (size_t)n)
                                ret_fds[i] = fd;
                        else
                                base_close(fd);
                }
        }
        *ret_byte = byte;
        return got > 0;
}

int descriptor_keep(unsigned from, int *fds, unsigned n)
{
        for (unsigned i = 0; i < n; i++) { /* in ascending order */
                unsigned least = i;
                int fd;

                for (unsigned j = i + 1; j < n; j++)
                        if (fds[j] < fds[least])
                                least = j;
                fd = fds[least];
                fds[least] = fds[i];
                fds[i] = fd;
                if (fd < 0)
                        continue;
                if ((unsigned)fd > from && syscall(SYS_close_range, from, (unsigned)fd - 1, 0) < 0)
                        return -errno;
                from = (unsigned)fd + 1;
        }
        return syscall(SYS_close_range, from, ~0U, 0) < 0 ? -errno : 0;
}
