/* SPDX-License-Identifier: MIT */
/*
 * Names that are protected in one spelling alone, as the others are ordinary: a `head` is a HEAD
 * only where the directory takes no notice of upper and lower case.
 */
#include <ctype.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "box/guard.h"

#ifndef FS_CASEFOLD_FL
#define FS_CASEFOLD_FL 0x40000000
#endif

static bool is_folded(int directory)
{
        _cleanup_fd_ int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int flags = 0;

        return fd >= 0 && ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_CASEFOLD_FL);
}

/* Is it found from above by its own name in other letters? */
static bool is_found_otherwise(int directory, const char *name)
{
        char other[3 + NAME_MAX + 1] = "../";
        struct stat st, found;
        size_t n = 3;

        for (const char *at = name; *at && n < sizeof(other) - 1; at++) {
                unsigned char c = (unsigned char)*at;

                other[n++] = (char)(islower(c) ? toupper(c) : tolower(c));
        }
        other[n] = '\0';
        return strcmp(other + 3, name) != 0 && fstat(directory, &st) == 0 &&
               fstatat(directory, other, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
               st.st_dev == found.st_dev && st.st_ino == found.st_ino;
}

bool guard_means_head(const struct child *child, const struct guard_path *path)
{
        char text[PATH_MAX], *slash;
        bool kept = false;

        if (strcasecmp(path->name, "HEAD") != 0)
                return false;
        text_copy(text, sizeof(text), path->text);
        slash = strrchr(text, '/');
        if (!slash)
                return false;
        text_copy(slash + 1, sizeof(text) - (size_t)(slash + 1 - text), "HEAD");
        for (size_t i = 0; i < child->plan->n_guards && !kept; i++)
                kept = plan_is_guarded(&child->plan->guards[i], text);
        *slash = '\0';
        slash = strrchr(text, '/');
        return kept &&
               (is_folded(path->parent) || (slash && is_found_otherwise(path->parent, slash + 1)));
}
