/* SPDX-License-Identifier: MIT */
#include "serve/keep.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FILES_MAX 32
#define FILE_MAX (64 * MIB)

struct keep {
        char *outer; /* which only we can enter ... */
        char *inner; /* ... and in it what boxes see, who are somebody else */
        int fd;      /* of the inner one */
        char names[FILES_MAX][64];
        size_t next;
};

/* ---- The directory ---- */

struct keep *keep_close(struct keep *keep)
{
        if (!keep)
                return NULL;
        for (size_t i = 0; i < FILES_MAX; i++)
                if (keep->fd >= 0 && keep->names[i][0])
                        (void)unlinkat(keep->fd, keep->names[i], 0);
        base_close(keep->fd);
        if (keep->inner)
                (void)rmdir(keep->inner);
        if (keep->outer)
                (void)rmdir(keep->outer);
        free(keep->inner);
        free(keep->outer);
        free(keep);
        return NULL;
}

int keep_open(struct keep **ret_keep, cbx_error *error)
{
        const char *variables[] = { "XDG_RUNTIME_DIR", "TMPDIR" }, *parent = NULL;
        struct keep *keep = calloc(1, sizeof(*keep));
        int r;

        if (!keep)
                return error_oom(error);
        keep->fd = -1;
        for (size_t i = 0; !parent && i < ARRAY_SIZE(variables); i++) {
                parent = secure_getenv(variables[i]);
                if (parent && (parent[0] != '/' || access(parent, W_OK | X_OK) < 0))
                        parent = NULL;
        }
        if (asprintf(&keep->outer, "%s/callbox-mcp-XXXXXX", parent ? parent : "/tmp") < 0)
                keep->outer = NULL;
        if (!keep->outer || !mkdtemp(keep->outer)) {
                r = keep->outer ? -errno : -ENOMEM;
                free(keep->outer);
                keep->outer = NULL;
        } else if (asprintf(&keep->inner, "%s/output", keep->outer) < 0) {
                keep->inner = NULL;
                r = -ENOMEM;
        } else {
                r = mkdir(keep->inner, 0755) < 0 || chmod(keep->inner, 0755) < 0 ? -errno : 0;
                if (r == 0)
                        keep->fd = open(keep->inner, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                if (r == 0 && keep->fd < 0)
                        r = -errno;
        }
        if (r < 0) {
                keep_close(keep);
                return error_set(error, r, "", "cannot make a directory for long output: %s",
                                 strerror(-r));
        }
        *ret_keep = keep;
        return 0;
}

const char *keep_directory(const struct keep *keep)
{
        return keep->inner;
}

/* ---- Streams ---- */

void keep_begin(struct keep *keep, struct keep_stream *stream, const char *id, const char *which,
                size_t room)
{
        *stream = (struct keep_stream){ .keep = keep, .room = room, .fd = -1 };
        snprintf(stream->name, sizeof(stream->name), "%.40s.%.16s", id, which);
}

static void give_up(struct keep_stream *stream)
{
        stream->cut = true;
        stream->fd = base_close(stream->fd);
}

/* A place for one more: the oldest goes. */
static void make_file(struct keep_stream *stream)
{
        struct keep *keep = stream->keep;
        char *name = keep->names[keep->next++ % FILES_MAX];

        if (name[0])
                (void)unlinkat(keep->fd, name, 0);
        snprintf(name, sizeof(keep->names[0]), "%s", stream->name);
        stream->fd =
                openat(keep->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (stream->fd < 0 || fchmod(stream->fd, 0644) < 0)
                give_up(stream);
        stream->begun = true;
}

static void write_some(struct keep_stream *stream, const char *data, size_t length)
{
        size_t fits = (size_t)MIN((uint64_t)length, FILE_MAX - stream->written);

        if (stream->fd < 0)
                return;
        if (fd_write_all(stream->fd, data, fits) < 0) {
                give_up(stream);
                return;
        }
        stream->written += fits;
        if (fits < length)
                give_up(stream);
}

void keep_add(struct keep_stream *stream, const char *data, size_t length)
{
        if (!stream->keep || length == 0)
                return;
        if (!stream->begun && stream->first.length + length <= stream->room) {
                if (buffer_add(&stream->first, data, length) < 0)
                        stream->keep = NULL;
                return;
        }
        if (!stream->begun) {
                make_file(stream);
                write_some(stream, stream->first.data, stream->first.length);
                buffer_free(&stream->first);
        }
        write_some(stream, data, length);
}

void keep_end(struct keep_stream *stream)
{
        buffer_free(&stream->first);
        stream->fd = base_close(stream->fd);
}
