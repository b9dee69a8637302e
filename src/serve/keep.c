/* SPDX-License-Identifier: MIT */
#include "serve/keep.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "serve/keep_place.h"

#define FILES_MAX 32
#define FILE_MAX (64 * MIB)

struct keep {
        struct keep_place place;
        const char *shown; /* NULL: as on the host */
        char names[FILES_MAX][KEEP_NAME];
        size_t next;
};

/* ---- The directory ---- */

struct keep *keep_close(struct keep *keep)
{
        if (!keep)
                return NULL;
        keep_place_remove(&keep->place);
        free(keep);
        return NULL;
}

/* Boxes of root's are somebody else, who has to get there by himself where there are no mounts. */
static bool is_open_to_all(const char *directory)
{
        char path[PATH_MAX];
        struct stat st;
        char *slash;

        if (snprintf(path, sizeof(path), "%s", directory) >= (int)sizeof(path))
                return false;
        while (stat(path, &st) == 0 && (st.st_mode & S_IXOTH)) {
                slash = strrchr(path, '/');
                if (!slash || slash == path)
                        return true; /* nobody is kept from / */
                *slash = '\0';
        }
        return false;
}

int keep_open(bool caged, bool unboxed, struct keep **ret_keep, cbx_error *error)
{
        const char *variables[] = { "XDG_RUNTIME_DIR", "TMPDIR" }, *parent = NULL;
        struct keep *keep = calloc(1, sizeof(*keep));
        bool secret = caged && geteuid() == 0;
        int r;

        if (!keep)
                return error_oom(error);
        for (size_t i = 0; !parent && i < ARRAY_SIZE(variables); i++) {
                parent = secure_getenv(variables[i]);
                if (parent && (parent[0] != '/' || access(parent, W_OK | X_OK) < 0 ||
                               (secret && !is_open_to_all(parent))))
                        parent = NULL;
        }
        parent = parent ? parent : "/tmp";
        keep_place_sweep(parent);
        keep->shown = caged || unboxed ? NULL : KEEP_SHOWN;
        r = keep_place_make(parent, secret, &keep->place);
        if (r < 0) {
                free(keep);
                return error_set(error, r, "", "cannot make a directory for long output in %s: %s",
                                 parent, strerror(-r));
        }
        *ret_keep = keep;
        return 0;
}

const char *keep_directory(const struct keep *keep)
{
        return keep->place.inner;
}

const char *keep_shown(const struct keep *keep)
{
        return keep->shown ? keep->shown : keep->place.inner;
}

/* ---- Streams ---- */

void keep_begin(struct keep *keep, struct keep_stream *stream, const char *id, const char *which,
                size_t room)
{
        char secret[KEEP_SECRET] = "";

        *stream = (struct keep_stream){ .keep = keep, .room = room, .fd = -1 };
        /* Other calls see the same directory, perhaps of other clients: whoever was told of it
         * reads it. */
        if (!keep || keep_place_secret(secret) < 0)
                stream->keep = NULL;
        snprintf(stream->name, sizeof(stream->name), "%.40s-%s.%.16s", id, secret, which);
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
                (void)unlinkat(keep->place.fd, name, 0);
        snprintf(name, sizeof(keep->names[0]), "%s", stream->name);
        stream->fd = openat(keep->place.fd, name,
                            O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
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

static void begin_file(struct keep_stream *stream)
{
        make_file(stream);
        write_some(stream, stream->first.data, stream->first.length);
        buffer_free(&stream->first);
}

bool keep_whole(struct keep_stream *stream)
{
        if (stream->keep && !stream->begun && stream->first.length > 0)
                begin_file(stream);
        return stream->begun && stream->written > 0;
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
        if (!stream->begun)
                begin_file(stream);
        write_some(stream, data, length);
}

void keep_end(struct keep_stream *stream)
{
        buffer_free(&stream->first);
        stream->fd = base_close(stream->fd);
}
