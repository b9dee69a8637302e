/* SPDX-License-Identifier: MIT */
#include "policy/outputs.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "policy/pins.h"

static bool is_number(const char *text)
{
        return *text && text[strspn(text, "0123456789")] == '\0';
}

/* As it is spelled, to the letter: /dev/.. and /proc/self/cwd lead anywhere, also to what a box has
 * left there. */
bool outputs_is_stream(const char *path)
{
        static const char *const numbered[] = { "/dev/fd/", "/dev/pts/", "/proc/self/fd/" };
        static const char *const others[] = { "/dev/", "/dev/.", "/dev/..", "/dev/shm" };
        bool is = strncmp(path, "/dev/", 5) == 0 && !strchr(path + 5, '/');

        for (size_t i = 0; is && i < ARRAY_SIZE(others); i++)
                is = strcmp(path, others[i]) != 0;
        for (size_t i = 0; !is && i < ARRAY_SIZE(numbered); i++)
                is = strncmp(path, numbered[i], strlen(numbered[i])) == 0 &&
                     is_number(path + strlen(numbered[i]));
        return is;
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

        if (!*path)
                return error_set(error, -EINVAL, where, "is empty: no file is named");
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
