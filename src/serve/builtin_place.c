/* SPDX-License-Identifier: MIT */
/*
 * Where a path leads, for tools that work on files of the workspace alone. What a box may see at
 * all is the policy's affair: this keeps a model from taking the system in the box, which is not
 * its user's, for files of the project. So it is enough to look before: a link that is changed
 * meanwhile leads no further than the box does.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "serve/builtin_files.h"
#include "serve/keep.h"

#define LINKS_MAX 40

/* One name further. */
static int append(char *path, size_t size, const char *name, size_t length)
{
        size_t n = strlen(path);

        if (length == 1 && name[0] == '.')
                return 0;
        if (length == 2 && strncmp(name, "..", 2) == 0) {
                char *slash = strrchr(path, '/');

                slash[slash == path] = '\0';
                return 0;
        }
        if (n + length + 2 > size)
                return -ENAMETOOLONG;
        if (n > 1)
                path[n++] = '/';
        memcpy(path + n, name, length);
        path[n + length] = '\0';
        return 0;
}

/* What a link says goes before the rest. */
static int follow(const char *link, char *left, const char *rest, size_t size)
{
        char target[PATH_MAX], whole[2 * PATH_MAX];
        ssize_t n = readlink(link, target, sizeof(target) - 1);

        if (n < 0)
                return -errno;
        target[n] = '\0';
        snprintf(whole, sizeof(whole), "%s/%s", target, rest);
        if (strlen(whole) + 1 > size)
                return -ENAMETOOLONG;
        memcpy(left, whole, strlen(whole) + 1);
        return 0;
}

/* The path without links and dots, whether or not there is anything. */
static int resolve(const char *path, const char *start, char ret[PATH_MAX])
{
        char left[PATH_MAX], before[PATH_MAX], *rest = left;
        int links = 0, r = 0;

        if (snprintf(left, sizeof(left), "%s", path) >= (int)sizeof(left))
                return -ENAMETOOLONG;
        snprintf(ret, PATH_MAX, "%s", path[0] == '/' ? "/" : start);
        while (r == 0 && *(rest += strspn(rest, "/"))) {
                size_t n = strcspn(rest, "/");
                struct stat st;

                snprintf(before, sizeof(before), "%s", ret);
                r = append(ret, PATH_MAX, rest, n);
                rest += n;
                if (r < 0 || lstat(ret, &st) < 0 || !S_ISLNK(st.st_mode))
                        continue;
                if (++links > LINKS_MAX)
                        return -ELOOP;
                r = follow(ret, left, rest, sizeof(left));
                rest = left;
                snprintf(ret, PATH_MAX, "%s", left[0] == '/' ? "/" : before);
        }
        return r;
}

static bool is_below(const char *path, const char *directory)
{
        size_t n = strlen(directory);

        return strncmp(path, directory, n) == 0 && (n == 1 || path[n] == '/' || path[n] == '\0');
}

int files_place(const char *path, bool write, char ret[PATH_MAX])
{
        char start[PATH_MAX];
        int r;

        if (!getcwd(start, sizeof(start)))
                return -errno;
        r = resolve(path, start, ret);
        if (r < 0)
                return r;
        return is_below(ret, start) || (!write && keep_is_shown(ret)) ? 0 : -EXDEV;
}

int files_refuse(cbx_reply *reply, const char *verb, const char *path, int error)
{
        char start[PATH_MAX] = "", place[PATH_MAX] = "";

        if (error != -EXDEV)
                return files_fail(reply, "cannot %s %.1000s: %s", verb, path, strerror(-error));
        (void)!getcwd(start, sizeof(start));
        (void)files_place(path, true, place);
        return files_fail(
                reply,
                "cannot %s %.1000s: it leads to %.1000s, out of the workspace %.1000s, and "
                "this tool works on files there alone (run_command sees the rest of the "
                "box)",
                verb, path, place, start);
}
