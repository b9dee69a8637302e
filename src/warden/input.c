/* SPDX-License-Identifier: MIT */
#include "warden/input.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#define PIECE 4096

static enum input_kind kind_of(int fd)
{
        struct statfs fs;
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return INPUT_NONE;
        /* Files of /proc may have to be waited for, like /proc/kmsg. */
        if (S_ISREG(st.st_mode) && fstatfs(fd, &fs) == 0 && fs.f_type != PROC_SUPER_MAGIC)
                return INPUT_FILE;
        if (S_ISFIFO(st.st_mode))
                return INPUT_PIPE;
        return S_ISSOCK(st.st_mode) ? INPUT_SOCKET : INPUT_OTHER;
}

bool input_stays(int source)
{
        struct stat st;

        return kind_of(source) != INPUT_OTHER ||
               (fstat(source, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3));
}

int input_make_pipe(int ret_pipe[2])
{
        int pipe[2];

        if (pipe2(pipe, O_CLOEXEC) < 0)
                return -errno;
        /* One page: the pipe is either empty or full, and the kernel says when it empties. */
        if (fcntl(pipe[1], F_SETPIPE_SZ, PIECE) < 0 || fcntl(pipe[1], F_SETFL, O_NONBLOCK) < 0) {
                int r = -errno;

                base_close(pipe[0]);
                base_close(pipe[1]);
                return r;
        }
        memcpy(ret_pipe, pipe, sizeof(pipe));
        return 0;
}

/* Everything but the pipe. */
static int begin(struct input *input, int source, const char *data, size_t length)
{
        off_t at;

        *input = (struct input){
                .source = source, .box = -1, .null = -1, .rest = -1, .data = data, .length = length
        };
        input->kind = data ? INPUT_DATA : kind_of(source);
        if (input->kind == INPUT_FILE) {
                at = lseek(source, 0, SEEK_CUR);
                input->at = at < 0 ? 0 : (uint64_t)at;
        }
        if (input->kind == INPUT_PIPE) {
                input->null = open("/dev/null", O_WRONLY | O_CLOEXEC);
                if (input->null < 0)
                        return -errno;
        }
        return 0;
}

int input_open(struct input *input, int source, const char *data, size_t length)
{
        int pipe[2] = { -1, -1 }, r = begin(input, source, data, length);

        if (r < 0)
                return r;
        if (input->kind == INPUT_NONE) {
                int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

                return fd < 0 ? -errno : fd;
        }
        r = input_make_pipe(pipe);
        if (r < 0)
                return r;
        input->box = pipe[1];
        if (input->kind == INPUT_DATA)
                input->rest = fcntl(pipe[0], F_DUPFD_CLOEXEC, 3);
        return pipe[0];
}

int input_join(struct input *input, int source, const char *data, size_t length, const int pipe[2])
{
        int r = begin(input, source, data, length);

        input->box = pipe[1];
        input->rest = pipe[0];
        if (r < 0 || input->kind != INPUT_DATA) /* a box that closes its end is to be seen */
                input->rest = base_close(input->rest);
        if (r < 0 || input->kind == INPUT_NONE) /* there is nothing to be read */
                input->box = base_close(input->box);
        return r;
}

/* Take `length` bytes that the box has read out of the caller's descriptor. Never waits for them:
 * another reader of the same pipe may have been faster. */
static void consume(struct input *input, size_t length)
{
        char room[PIECE];

        input->total += length;
        if (input->kind == INPUT_FILE)
                input->at += length;
        while (length > 0 && (input->kind == INPUT_PIPE || input->kind == INPUT_SOCKET)) {
                ssize_t n = input->kind == INPUT_PIPE
                                    ? splice(input->source, NULL, input->null, NULL, length,
                                             SPLICE_F_NONBLOCK)
                                    : recv(input->source, room, MIN(length, sizeof(room)),
                                           MSG_DONTWAIT);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return;
                length -= (size_t)n;
        }
}

/* Has the box emptied its pipe? */
static bool emptied(struct input *input)
{
        int left = 0;

        if (input->shown == 0)
                return true;
        if (ioctl(input->box, FIONREAD, &left) < 0 || left > 0)
                return false;
        consume(input, input->shown);
        input->shown = 0;
        return true;
}

/* Put the next piece into the box's pipe. Returns its length, 0 at the end, or a negative errno. */
static ssize_t show(struct input *input)
{
        struct pollfd source = { .fd = input->source, .events = POLLIN };
        char room[PIECE];
        ssize_t n;

        switch (input->kind) {
        case INPUT_DATA:
                n = (ssize_t)MIN(input->length - input->at, PIECE);
                if (n > 0)
                        n = write(input->box, input->data + input->at, (size_t)n);
                input->at += n > 0 ? (size_t)n : 0;
                return n < 0 ? -errno : n;
        case INPUT_PIPE:
                n = tee(input->source, input->box, PIECE, SPLICE_F_NONBLOCK);
                return n < 0 ? -errno : n;
        case INPUT_SOCKET:
                n = recv(input->source, room, sizeof(room), MSG_PEEK | MSG_DONTWAIT);
                break;
        case INPUT_FILE:
                n = pread(input->source, room, sizeof(room), (off_t)input->at);
                break;
        default:
                if (poll(&source, 1, 0) == 0)
                        return -EAGAIN;
                n = read(input->source, room, sizeof(room));
        }
        if (n <= 0)
                return n < 0 ? -errno : 0;
        n = write(input->box, room, (size_t)n);
        return n < 0 ? -errno : n;
}

void input_step(struct input *input)
{
        ssize_t n;

        input->waiting = false;
        if (input->box < 0 || !emptied(input))
                return;
        n = show(input);
        if (n == -EAGAIN || n == -EINTR) {
                input->waiting = true;
        } else if (n > 0 && input->rest >= 0 && input->at == input->length) {
                /* That was all of it: the box need not wait for this process to say so. */
                input->shown = (size_t)n;
                input->box = base_close(input->box);
        } else if (n <= 0) {
                /* The end, or a reader that is gone. */
                input->box = base_close(input->box);
        } else {
                input->shown = (size_t)n;
        }
}

void input_close(struct input *input)
{
        int left = 0;

        if (input->kind == INPUT_NONE)
                return;
        if (input->shown > 0 &&
            ioctl(input->box >= 0 ? input->box : input->rest, FIONREAD, &left) == 0)
                consume(input, input->shown - MIN((size_t)left, input->shown));
        input->box = base_close(input->box);
        input->null = base_close(input->null);
        input->rest = base_close(input->rest);
        if (input->kind == INPUT_FILE)
                (void)lseek(input->source, (off_t)input->at, SEEK_SET);
        input->kind = INPUT_NONE;
}
