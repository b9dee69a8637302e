/* SPDX-License-Identifier: MIT */
#include "warden/scope.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "base/base.h"

#define PATIENCE NSEC_PER_SEC
#define LOOK_EVERY 5 /* ms */
#define MESSAGE_MAX 2048U

/* ---- Messages ---- */

/* Values of D-Bus as they lie in a message, each aligned to its size from the beginning. Whatever
 * does not fit is dropped, and the message is not sent. */
struct message {
        unsigned char data[MESSAGE_MAX];
        size_t length;
        bool failed;
};

static void put(struct message *message, const void *data, size_t length, size_t align)
{
        size_t at = (message->length + align - 1) & ~(align - 1);

        if (at + length > sizeof(message->data)) {
                message->failed = true;
                return;
        }
        memset(message->data + message->length, 0, at - message->length);
        if (length > 0)
                memcpy(message->data + at, data, length);
        message->length = at + length;
}

static void put_number(struct message *message, uint32_t number)
{
        put(message, &number, sizeof(number), sizeof(number));
}

static void put_text(struct message *message, const char *text)
{
        put_number(message, (uint32_t)strlen(text));
        put(message, text, strlen(text) + 1, 1);
}

static void put_signature(struct message *message, const char *signature)
{
        put(message, (char[]){ (char)strlen(signature) }, 1, 1);
        put(message, signature, strlen(signature) + 1, 1);
}

/* The length of an array stands before it and is known after it; between the two may be a gap. */
struct array {
        size_t number, from;
};

static struct array begin_array(struct message *message, size_t align)
{
        struct array array;

        put_number(message, 0);
        array.number = message->length - sizeof(uint32_t);
        put(message, NULL, 0, align);
        array.from = message->length;
        return array;
}

static void end_array(struct message *message, struct array array)
{
        uint32_t length = (uint32_t)(message->length - array.from);

        memcpy(message->data + array.number, &length, sizeof(length));
}

static void put_field(struct message *message, unsigned char code, const char *type,
                      const char *value)
{
        put(message, &code, 1, 8);
        put_signature(message, type);
        if (*type == 'g')
                put_signature(message, value);
        else
                put_text(message, value);
}

/* A property of a unit: its name, and what of the kinds s, b and au its value is. */
static void put_property(struct message *message, const char *name, const char *type,
                         const char *text, uint32_t number)
{
        put(message, NULL, 0, 8);
        put_text(message, name);
        put_signature(message, type);
        if (*type == 's') {
                put_text(message, text);
        } else if (*type == 'a') {
                struct array pids = begin_array(message, sizeof(number));

                put_number(message, number);
                end_array(message, pids);
        } else {
                put_number(message, number);
        }
}

/* Numbers are sent as this processor has them; the letter says which way round that is. */
static void put_head(struct message *message)
{
        unsigned char order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 'l' : 'B';
        struct array fields;

        put(message, (unsigned char[]){ order, 1, 0, 1 }, 4, 1); /* a method call, version 1 */
        put_number(message, 0);                                  /* the length of the body */
        put_number(message, 1);                                  /* the serial number */
        fields = begin_array(message, 8);
        put_field(message, 1, "o", "/org/freedesktop/systemd1");
        put_field(message, 2, "s", "org.freedesktop.systemd1.Manager");
        put_field(message, 3, "s", "StartTransientUnit");
        put_field(message, 6, "s", "org.freedesktop.systemd1");
        put_field(message, 8, "g", "ssa(sv)a(sa(sv))");
        end_array(message, fields);
        put(message, NULL, 0, 8);
}

/* StartTransientUnit(name, mode, properties, no other units). */
static void put_request(struct message *message)
{
        struct array properties;
        uint32_t length;
        size_t body;
        char name[64];

        put_head(message);
        body = message->length;
        snprintf(name, sizeof(name), "callbox-%d.scope", getpid());
        put_text(message, name);
        put_text(message, "fail");
        properties = begin_array(message, 8);
        put_property(message, "Description", "s", "Boxes of callbox", 0);
        put_property(message, "CollectMode", "s", "inactive-or-failed", 0);
        put_property(message, "Delegate", "b", NULL, 1);
        put_property(message, "PIDs", "au", NULL, (uint32_t)getpid());
        end_array(message, properties);
        end_array(message, begin_array(message, 8));
        length = (uint32_t)(message->length - body);
        memcpy(message->data + sizeof(length), &length, sizeof(length));
}

/* ---- The manager ---- */

static int open_manager(void)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        const char *runtime = getenv("XDG_RUNTIME_DIR");
        size_t size = sizeof(address.sun_path);
        _cleanup_fd_ int fd = -1;
        int n;

        if (access("/run/systemd/system", F_OK) < 0)
                return -EOPNOTSUPP;
        if (geteuid() == 0)
                n = snprintf(address.sun_path, size, "/run/systemd/private");
        else if (runtime && *runtime == '/')
                n = snprintf(address.sun_path, size, "%s/systemd/private", runtime);
        else
                n = snprintf(address.sun_path, size, "/run/user/%u/systemd/private", geteuid());
        if (n >= (int)size)
                return -ENAMETOOLONG;
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
                return errno == ENOENT ? -EOPNOTSUPP : -errno;
        return TAKE_FD(fd);
}

/* Who we are, in the hexadecimal digits of the decimal ones, and the request right behind it. */
static int ask(int fd)
{
        struct message message = { 0 };
        char id[16], hello[128];
        struct iovec parts[3];
        size_t whole = 0, n;

        snprintf(id, sizeof(id), "%u", geteuid());
        n = (size_t)snprintf(hello, sizeof(hello), "AUTH EXTERNAL ");
        for (const char *digit = id; *digit; digit++) /* that of 0 is 30, of 9 is 39 */
                n += (size_t)snprintf(hello + n, sizeof(hello) - n, "3%c", *digit);
        snprintf(hello + n, sizeof(hello) - n, "\r\nBEGIN\r\n");
        put_request(&message);
        if (message.failed)
                return -EMSGSIZE;
        parts[0] = (struct iovec){ (char[]){ 0 }, 1 };
        parts[1] = (struct iovec){ hello, strlen(hello) };
        parts[2] = (struct iovec){ message.data, message.length };
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
                whole += parts[i].iov_len;
        /* A fresh socket takes so little at once. */
        return writev(fd, parts, ARRAY_SIZE(parts)) == (ssize_t)whole ? 0 : -EPIPE;
}

static bool is_there(const char *before)
{
        _cleanup_free_ char *now = NULL;
        size_t length;

        return file_read(AT_FDCWD, "/proc/self/cgroup", 64 * KIB, &now, &length) == 0 &&
               strcmp(now, before) != 0;
}

/* The answer comes when the job is queued; that it is done shows in the process itself. */
static int await(int fd, const char *before)
{
        uint64_t deadline = time_now() + PATIENCE;
        struct pollfd socket = { .fd = fd, .events = POLLIN };
        char answer[1024];
        ssize_t n;

        while (time_now() < deadline) {
                if (is_there(before))
                        return 0;
                (void)poll(&socket, 1, LOOK_EVERY);
                n = socket.revents ? recv(fd, answer, sizeof(answer), MSG_DONTWAIT) : -1;
                if (n == 0)
                        return -EPIPE;
                if (n > 0 && memmem(answer, (size_t)n, "REJECTED", strlen("REJECTED")))
                        return -EACCES;
        }
        return -ETIMEDOUT;
}

int scope_enter(void)
{
        _cleanup_free_ char *before = NULL;
        _cleanup_fd_ int fd = open_manager();
        size_t length;
        int r = fd < 0 ? fd : 0;

        if (r == 0)
                r = file_read(AT_FDCWD, "/proc/self/cgroup", 64 * KIB, &before, &length);
        if (r == 0)
                r = ask(fd);
        return r == 0 ? await(fd, before) : r;
}
