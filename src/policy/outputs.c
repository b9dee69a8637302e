/* SPDX-License-Identifier: MIT */
#include "policy/outputs.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "policy/pins.h"

static bool is_below(const char *path, const char *directory)
{
        size_t n = strlen(directory);

        return strncmp(path, directory, n) == 0 && path[n] == '/';
}

/* As it is spelled: what a link that a box could make leads to does not count. */
bool outputs_is_stream(const char *path)
{
        return (is_below(path, "/dev") && !is_below(path, "/dev/shm")) || is_below(path, "/proc");
}

static int refuse_link(const char *path, const char *where, cbx_error *error)
{
        error_set(error, -ELOOP, where,
                  "%.200s has a symbolic link in it, which is not followed: a program in a box may "
                  "have left it there",
                  path);
        error_hint(error, "look at it first; remove it, or if it is meant, name the real path, "
                          "which readlink -f tells");
        return -ELOOP;
}

static int check_file(int fd, const char *path, const char *where, cbx_error *error)
{
        struct stat st;

        if (fstat(fd, &st) < 0)
                return error_set(error, -errno, where, "cannot write %s: %s", path,
                                 strerror(errno));
        if (!S_ISREG(st.st_mode)) {
                error_set(error, -EINVAL, where, "%.200s is no regular file", path);
                error_hint(error, "remove it; a pipe of the caller's own is /dev/fd/N");
                return -EINVAL;
        }
        if (st.st_nlink > 1) {
                error_set(error, -EMLINK, where,
                          "%.200s is also known by another name, which would be written to as well",
                          path);
                error_hint(error, "remove it: it is made anew");
                return -EMLINK;
        }
        return 0;
}

int outputs_open(const char *path, int flags, mode_t mode, const char *where, cbx_error *error)
{
        const int always = O_WRONLY | O_CLOEXEC | O_NOCTTY;
        _cleanup_fd_ int fd = -1;
        int r;

        if (outputs_is_stream(path)) {
                fd = open(path, always | flags);
                return fd < 0 ? error_set(error, -errno, where, "cannot write %s: %s", path,
                                          strerror(errno))
                              : TAKE_FD(fd);
        }
        fd = policy_make_direct(path, always | O_CREAT | O_NONBLOCK | (flags & ~O_TRUNC), mode);
        if (fd == -ELOOP)
                return refuse_link(path, where, error);
        if (fd == -ENXIO) {
                error_set(error, -ENXIO, where, "%.200s is no regular file", path);
                error_hint(error, "remove it; a pipe of the caller's own is /dev/fd/N");
                return -ENXIO;
        }
        if (fd < 0)
                return error_set(error, fd, where, "cannot write %s: %s", path, strerror(-fd));
        r = check_file(fd, path, where, error);
        if (r < 0)
                return r;
        if ((flags & O_TRUNC) && ftruncate(fd, 0) < 0)
                return error_set(error, -errno, where, "cannot write %s: %s", path,
                                 strerror(errno));
        return TAKE_FD(fd);
}
