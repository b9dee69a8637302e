/* SPDX-License-Identifier: MIT */
#include "serve/keep_place.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "serve/keep.h"

#define TRIES 16

/* ---- Removing ---- */

static void remove_files(int directory)
{
        int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *stream = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *entry;

        if (!stream)
                base_close(fd);
        while (stream && (entry = readdir(stream)))
                (void)unlinkat(directory, entry->d_name, 0); /* . and .. are none of ours */
        if (stream)
                closedir(stream);
}

static void remove_inner(int outer, const char *name)
{
        _cleanup_fd_ int inner = -1;

        if (fchmodat(outer, name, 0700, 0) == 0) /* so that we can list it */
                inner = openat(outer, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (inner >= 0)
                remove_files(inner);
        (void)unlinkat(outer, name, AT_REMOVEDIR);
}

/* All that is ever in one: a directory with files. */
static void remove_place(int outer, const char *path)
{
        int fd = openat(outer, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *stream = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *entry;

        if (!stream)
                base_close(fd);
        while (stream && (entry = readdir(stream)))
                if (strncmp(entry->d_name, KEEP_INNER, strlen(KEEP_INNER)) == 0)
                        remove_inner(outer, entry->d_name);
        if (stream)
                closedir(stream);
        (void)rmdir(path);
}

void keep_place_sweep(const char *parent)
{
        DIR *stream = opendir(parent);
        struct dirent *entry;

        while (stream && (entry = readdir(stream))) {
                _cleanup_fd_ int fd = -1;
                char path[PATH_MAX];
                struct stat st;

                if (strncmp(entry->d_name, KEEP_OUTER, strlen(KEEP_OUTER)) != 0 ||
                    snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name) >=
                            (int)sizeof(path))
                        continue;
                fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
                if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
                    flock(fd, LOCK_EX | LOCK_NB) == 0)
                        remove_place(fd, path);
        }
        if (stream)
                closedir(stream);
}

/* ---- The process that removes ---- */

/* It holds nothing of the server's but the lock, and no signal of a terminal ends it before. */
static _Noreturn void keep_watch(const struct keep_place *place, int ended)
{
        sigset_t all;
        char byte;

        sigfillset(&all);
        (void)sigprocmask(SIG_SETMASK, &all, NULL);
        (void)prctl(PR_SET_NAME, "callbox-keep");
        (void)dup2(ended, 0);
        (void)dup2(place->lock, 1);
        (void)close_range(2, ~0U, 0);
        while (read(0, &byte, 1) < 0 && errno == EINTR)
                ;
        remove_place(1, place->outer);
        _exit(0);
}

static int start_keeper(struct keep_place *place)
{
        int ends[2];

        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        place->keeper = fork();
        if (place->keeper == 0)
                keep_watch(place, ends[0]);
        base_close(ends[0]);
        place->alive = ends[1];
        return place->keeper < 0 ? -errno : 0;
}

/* ---- Making ---- */

/* -EAGAIN: a sweeper was faster, which takes what nobody has locked. */
static int make_outer(const char *parent, struct keep_place *place)
{
        struct stat st;

        free(place->outer);
        if (asprintf(&place->outer, "%s/" KEEP_OUTER "XXXXXX", parent) < 0) {
                place->outer = NULL;
                return -ENOMEM;
        }
        if (!mkdtemp(place->outer)) {
                int r = -errno;

                free(place->outer);
                place->outer = NULL;
                return r;
        }
        base_close(place->lock);
        place->lock = open(place->outer, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (place->lock < 0)
                return errno == ENOENT ? -EAGAIN : -errno;
        if (flock(place->lock, LOCK_EX | LOCK_NB) < 0 || fstat(place->lock, &st) < 0 ||
            st.st_nlink == 0)
                return -EAGAIN;
        return 0;
}

int keep_place_secret(char ret[KEEP_SECRET])
{
        unsigned char bytes[KEEP_SECRET / 2];

        if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
                return -errno;
        for (size_t i = 0; i < sizeof(bytes); i++)
                snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
        return 0;
}

static int choose_name(bool secret, char name[64])
{
        char part[KEEP_SECRET] = "";
        int r = secret ? keep_place_secret(part) : 0;

        snprintf(name, 64, KEEP_INNER "%s%s", secret ? "-" : "", part);
        return r;
}

static int make_inner(struct keep_place *place, bool secret)
{
        char name[64];
        int r = choose_name(secret, name);

        if (r < 0)
                return r;
        if (asprintf(&place->inner, "%s/%s", place->outer, name) < 0) {
                place->inner = NULL;
                return -ENOMEM;
        }
        if (mkdirat(place->lock, name, 0700) < 0 || (secret && fchmod(place->lock, 0711) < 0))
                return -errno;
        place->fd = openat(place->lock, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        /* Nobody lists it: what a call is to read it is told the name of (keep.c). */
        if (place->fd < 0 || fchmod(place->fd, 0311) < 0)
                return -errno;
        return 0;
}

int keep_place_make(const char *parent, bool secret, struct keep_place *ret_place)
{
        struct keep_place place = { .fd = -1, .lock = -1, .alive = -1 };
        int r = -EAGAIN;

        for (int tries = 0; r == -EAGAIN && tries < TRIES; tries++)
                r = make_outer(parent, &place);
        if (r == 0)
                r = make_inner(&place, secret);
        if (r == 0)
                r = start_keeper(&place);
        if (r < 0) {
                if (place.outer && place.lock >= 0)
                        remove_place(place.lock, place.outer);
                keep_place_remove(&place);
                return r;
        }
        *ret_place = place;
        return 0;
}

void keep_place_remove(struct keep_place *place)
{
        place->fd = base_close(place->fd);
        place->lock = base_close(place->lock);
        place->alive = base_close(place->alive);
        if (place->keeper > 0)
                while (waitpid(place->keeper, NULL, 0) < 0 && errno == EINTR)
                        ;
        place->keeper = 0;
        free(place->outer);
        free(place->inner);
        place->outer = place->inner = NULL;
}
