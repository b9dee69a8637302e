/* SPDX-License-Identifier: MIT */
/*
 * The other end: the process in the box that runs one function and ends. It needs nothing of the
 * library but this file, so that the program that serves shared objects is as small as it can be.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "tool/function.h"
#include "tool/message.h"

#define EXIT_SERVER 125 /* there was no function to run */

/* ---- What a function can say ---- */

struct cbx_reply {
        int fd;
        pthread_mutex_t lock; /* a function may have threads */
};

/* All of it, from the first byte that was not yet written. */
static int write_rest(int fd, const struct iovec *parts, size_t n, size_t written)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < n; i++) {
                size_t skip = MIN(written, parts[i].iov_len);

                r = fd_write_all(fd, (const char *)parts[i].iov_base + skip,
                                 parts[i].iov_len - skip);
                written -= skip;
        }
        return r;
}

/* A frame in one piece, between those of other threads; a short one also between those of processes
 * that the function has forked, as a pipe takes up to PIPE_BUF bytes at once. */
static int send_frame(cbx_reply *reply, enum message_kind kind, const void *front,
                      size_t front_length, const char *text, size_t length)
{
        struct message_frame frame = { .length = (uint32_t)(front_length + length),
                                       .kind = (uint32_t)kind };
        struct iovec parts[] = { { &frame, sizeof(frame) },
                                 { (void *)front, front_length },
                                 { (void *)text, length } };
        ssize_t n;
        int r;

        if (length > UINT32_MAX - front_length)
                return -EFBIG;
        pthread_mutex_lock(&reply->lock);
        n = writev(reply->fd, parts, ARRAY_SIZE(parts));
        r = n < 0 && errno != EINTR && errno != EAGAIN ? -errno : 0;
        if (r == 0)
                r = write_rest(reply->fd, parts, ARRAY_SIZE(parts), (size_t)MAX(n, 0));
        pthread_mutex_unlock(&reply->lock);
        return r;
}

int cbx_reply_result(cbx_reply *reply, const char *json, size_t length)
{
        return send_frame(reply, MESSAGE_RESULT, NULL, 0, json, length);
}

int cbx_reply_text(cbx_reply *reply, const char *text)
{
        return send_frame(reply, MESSAGE_TEXT, NULL, 0, text, strlen(text));
}

int cbx_reply_error(cbx_reply *reply, const char *text)
{
        return send_frame(reply, MESSAGE_ERROR, NULL, 0, text, strlen(text));
}

int cbx_reply_progress(cbx_reply *reply, double done, double total, const char *text)
{
        struct message_progress front = { .done = done, .total = total };

        return send_frame(reply, MESSAGE_PROGRESS, &front, sizeof(front), text ? text : "",
                          text ? strlen(text) : 0);
}

int cbx_reply_log(cbx_reply *reply, const char *level, const char *text)
{
        for (uint32_t i = 0; level && i < MESSAGE_LEVELS; i++) {
                struct message_log front = { .level = i };

                if (strcmp(level, message_levels[i]) == 0)
                        return send_frame(reply, MESSAGE_LOG, &front, sizeof(front), text,
                                          strlen(text));
        }
        return -EINVAL;
}

static int fail(cbx_reply *reply, const char *what, const char *name, const char *why)
{
        char text[512];

        snprintf(text, sizeof(text), "%s %.200s%s%s", what, name, why ? ": " : "", why ? why : "");
        return cbx_reply_error(reply, text);
}

/* ---- Finding the function ---- */

static int first_base(struct dl_phdr_info *info, size_t size, void *data)
{
        (void)size;
        *(uintptr_t *)data = info->dlpi_addr;
        return 1; /* the program itself comes first */
}

/* "OFFSET DEVICE INODE [PATH]" */
static cbx_function *by_offset(cbx_reply *reply, char *text)
{
        char *path = text;
        uintptr_t base = 0, offset = strtoul(path, &path, 16);
        unsigned long device = strtoul(path, &path, 16), inode = strtoul(path, &path, 16);
        struct link_map *map = NULL;
        struct stat facts;
        void *file;

        path += *path == ' ';
        if (stat(*path ? path : "/proc/self/exe", &facts) < 0 || facts.st_dev != device ||
            facts.st_ino != inode) {
                fail(reply, "the program's file was replaced since it was started", path, NULL);
                return NULL;
        }
        if (!*path) {
                dl_iterate_phdr(first_base, &base);
                return (cbx_function *)(base + offset);
        }
        file = dlopen(path, RTLD_NOW);
        if (!file || dlinfo(file, RTLD_DI_LINKMAP, &map) < 0) {
                fail(reply, "cannot load", path, dlerror());
                return NULL;
        }
        return (cbx_function *)(map->l_addr + offset);
}

static cbx_function *find(cbx_reply *reply, char *line, void *object, const char *trouble)
{
        size_t word = strcspn(line, " ");
        char *rest = line + word + (line[word] == ' ');
        cbx_function *function;

        line[word] = '\0';
        if (strcmp(line, FUNCTION_BY_OFFSET) == 0)
                return by_offset(reply, rest);
        if (!object) {
                fail(reply, "cannot load the object of", rest, trouble);
                return NULL;
        }
        *(void **)&function = dlsym(object, rest);
        if (!function)
                fail(reply, "the object has no function", rest, NULL);
        return function;
}

/* ---- Serving ---- */

static int read_request(struct buffer *request)
{
        char room[65536];
        ssize_t n;
        int r = 0;

        while (r == 0 && (n = read(STDIN_FILENO, room, sizeof(room))) != 0) {
                if (n > 0)
                        r = buffer_add(request, room, (size_t)n);
                else if (errno != EINTR)
                        r = -errno;
        }
        return r;
}

static int serve(cbx_reply *reply, void *object, const char *trouble)
{
        struct buffer request = BUFFER_INIT;
        struct message_done done = { .code = -1 };
        cbx_function *function;
        char *arguments;

        if (read_request(&request) < 0 || request.length == 0 ||
            !(arguments = memchr(request.data, '\n', request.length)))
                return EXIT_SERVER;
        *arguments++ = '\0';
        function = find(reply, request.data, object, trouble);
        if (!function)
                return EXIT_SERVER;
        done.code = function(arguments, request.length - (size_t)(arguments - request.data), reply);
        fflush(NULL);
        (void)send_frame(reply, MESSAGE_DONE, &done, sizeof(done), "", 0);
        return done.code == 0 ? 0 : 1;
}

void cbx_serve_functions(int argc, char **argv)
{
        static cbx_reply reply = { .lock = PTHREAD_MUTEX_INITIALIZER };
        const char *channel = getenv("CALLBOX_RESULT_FD"), *trouble = NULL;
        void *object = NULL;

        function_served = true;
        if (argc < 2 || strcmp(argv[1], FUNCTION_MARK) != 0)
                return;
        if (!channel) {
                fputs(FUNCTION_MARK " is for boxes of callbox: see libcallbox-tools(3)\n", stderr);
                _exit(EXIT_SERVER);
        }
        reply.fd = atoi(channel);
        (void)fcntl(reply.fd, F_SETFD, FD_CLOEXEC); /* not for what the function starts */
        unsetenv("CALLBOX_RESULT_FD");
        unsetenv("LD_LIBRARY_PATH");
        /* What it does when it is loaded is done before there is a call. */
        if (argc > 2 && !(object = dlopen(argv[2], RTLD_NOW)))
                trouble = strdup(dlerror());
        _exit(serve(&reply, object, trouble));
}
