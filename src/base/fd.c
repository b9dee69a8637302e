/* SPDX-License-Identifier: MIT */
/* Descriptors and whole files. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "base/base.h"

/* The descriptor may be a caller's and non-blocking: then wait until it takes more. */
static int wait_writable(int fd)
{
        struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };

        if (poll(&poll_fd, 1, -1) < 0 && errno != EINTR)
                return -errno;
        return 0;
}

int fd_write_all(int fd, const void *data, size_t length)
{
        const char *next = data;

        while (length > 0) {
                ssize_t n = write(fd, next, length);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN) {
                        int r = wait_writable(fd);

                        if (r < 0)
                                return r;
                        continue;
                }
                if (n < 0)
                        return -errno;
                next += n;
                length -= (size_t)n;
        }
        return 0;
}

static int write_at(int fd, const char *data, size_t length, uint64_t at)
{
        while (length > 0) {
                ssize_t n = pwrite(fd, data, length, (off_t)at);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -ENOSPC;
                data += n;
                at += (uint64_t)n;
                length -= (size_t)n;
        }
        return 0;
}

/* SIGXFSZ comes with -EFBIG: it is held off meanwhile, and taken back. */
static void block_too_large(sigset_t *ret_before)
{
        sigset_t too_large;

        sigemptyset(&too_large);
        sigaddset(&too_large, SIGXFSZ);
        (void)pthread_sigmask(SIG_BLOCK, &too_large, ret_before);
}

static int unblock_too_large(const sigset_t *before, int r)
{
        struct timespec none = { 0 };
        sigset_t too_large;

        sigemptyset(&too_large);
        sigaddset(&too_large, SIGXFSZ);
        if (r == -EFBIG && sigismember(before, SIGXFSZ) == 0)
                (void)sigtimedwait(&too_large, NULL, &none);
        (void)pthread_sigmask(SIG_SETMASK, before, NULL);
        return r;
}

int fd_write_memory(int fd, const void *data, size_t length)
{
        sigset_t before;

        block_too_large(&before);
        return unblock_too_large(&before, fd_write_all(fd, data, length));
}

int fd_write_memory_at(int fd, const void *data, size_t length, uint64_t at)
{
        sigset_t before;

        block_too_large(&before);
        return unblock_too_large(&before, write_at(fd, data, length, at));
}

/* Read to the end, or one byte past the limit, which tells that there is more. */
static int read_up_to(int fd, size_t limit, struct buffer *buffer)
{
        for (;;) {
                /* Most are files of a few lines; of a large one as much again as there is. */
                size_t want = MIN(MAX(buffer->length, KIB), limit + 1 - buffer->length);
                int r = buffer_grow(buffer, want);
                ssize_t n;

                if (r < 0)
                        return r;
                n = read(fd, buffer->data + buffer->length, want);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                buffer->length += (size_t)n;
                buffer->data[buffer->length] = '\0';
                if (n == 0)
                        return 0;
                if (buffer->length > limit)
                        return -EFBIG;
        }
}

int fd_read(int fd, size_t limit, char **ret_data, size_t *ret_length)
{
        _cleanup_buffer_ struct buffer buffer = BUFFER_INIT;
        int r = read_up_to(fd, MIN(limit, SIZE_MAX / 2), &buffer);

        if (r < 0)
                return r;
        if (ret_length)
                *ret_length = buffer.length;
        *ret_data = TAKE_PTR(buffer.data);
        return 0;
}

int file_read(int dirfd, const char *path, size_t limit, char **ret_data, size_t *ret_length)
{
        _cleanup_fd_ int fd = -1;

        /* Not blocking: a named pipe that nobody writes to reads as empty rather than for ever. */
        fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0 || fcntl(fd, F_SETFL, 0) < 0)
                return -errno;
        return fd_read(fd, limit, ret_data, ret_length);
}

/* open() returns the lowest free number: that of the first one missing. They are meant to be
 * inherited, hence no O_CLOEXEC. Call it before there are threads. */
int fd_reserve_stdio(void)
{
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
                int taken = fcntl(fd, F_GETFD) < 0 ? open("/dev/null", O_RDWR) : fd;

                if (taken < 0)
                        return -errno;
        }
        return 0;
}
