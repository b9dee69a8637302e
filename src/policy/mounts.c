/* SPDX-License-Identifier: MIT */
/* Where a path lies in its file system, by /proc/self/mountinfo: bind mounts give one place many
 * paths. */
#include "policy/mounts.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "policy/plan.h"

#define MOUNTINFO_MAX (16 * MIB)

struct inputs_mounts *inputs_mounts_free(struct inputs_mounts *mounts)
{
        if (!mounts)
                return NULL;
        free(mounts->items);
        free(mounts->text);
        free(mounts);
        return NULL;
}

/* Spaces and the like are written as three octal digits. */
static void unescape(char *text)
{
        char *to = text;

        for (; *text; text++) {
                if (text[0] == '\\' && text[1] && text[2] && text[3]) {
                        *to++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 |
                                       (text[3] - '0'));
                        text += 3;
                } else {
                        *to++ = *text;
                }
        }
        *to = '\0';
}

/* "36 35 98:0 /root /mount/point options ..." */
static bool read_line(char *line, struct mounts_item *ret)
{
        char *fields[5];

        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
                if (!(fields[i] = strsep(&line, " ")))
                        return false;
        unescape(fields[3]);
        unescape(fields[4]);
        *ret = (struct mounts_item){ fields[2], fields[3], fields[4] };
        return true;
}

int inputs_mounts_read(struct inputs_mounts **ret_mounts)
{
        struct inputs_mounts *mounts = calloc(1, sizeof(*mounts));
        size_t length, room = 0;
        char *rest, *line;
        int r = mounts ? file_read(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MAX, &mounts->text,
                                   &length)
                       : -ENOMEM;

        if (r < 0) {
                inputs_mounts_free(mounts);
                return r;
        }
        for (const char *at = mounts->text; (at = strchr(at, '\n')); at++)
                room++;
        mounts->items = calloc(room + 1, sizeof(*mounts->items));
        if (!mounts->items) {
                inputs_mounts_free(mounts);
                return -ENOMEM;
        }
        rest = mounts->text;
        while ((line = strsep(&rest, "\n")))
                mounts->n += mounts->n < room && read_line(line, &mounts->items[mounts->n]);
        *ret_mounts = mounts;
        return 0;
}

const char *mounts_below(const char *path, const char *tree)
{
        size_t n = strlen(tree);

        if (n == 1)
                n = 0; /* the root */
        if (strnlen(path, n) < n || (path[n] != '\0' && path[n] != '/'))
                return NULL;
        /* On a file system that ignores it, another case is the same name. */
        if (strncasecmp(path, tree, n) != 0)
                return NULL;
        return path + n;
}

/* The mount that a path is on: of several at one place the last. */
static const struct mounts_item *mount_of(const struct inputs_mounts *mounts, const char *path)
{
        const struct mounts_item *found = NULL;

        for (size_t i = 0; i < mounts->n; i++)
                if (mounts_below(path, mounts->items[i].point) &&
                    (!found || strlen(mounts->items[i].point) >= strlen(found->point)))
                        found = &mounts->items[i];
        return found;
}

bool mounts_place(const struct inputs_mounts *mounts, const char *path, struct mounts_place *ret)
{
        const struct mounts_item *mount = mounts ? mount_of(mounts, path) : NULL;
        const char *rest = mount ? mounts_below(path, mount->point) : NULL;
        size_t n, more;

        if (!rest)
                return false;
        n = strcmp(mount->root, "/") == 0 ? 0 : strlen(mount->root);
        more = strlen(rest) + 1;
        if (n + more > sizeof(ret->path))
                return false;
        ret->device = mount->device;
        memcpy(ret->path, mount->root, n);
        memcpy(ret->path + n, rest, more);
        return true;
}

static bool is_in(const struct mounts_place *place, const char *device, const char *root)
{
        return strcmp(place->device, device) == 0 && mounts_below(place->path, *root ? root : "/");
}

/* Add where a tree shows a place, when the part of a file system that is at `root` is at `point`.
 */
static int add_place(char ***list, const struct mounts_place *place, const char *root,
                     const char *point)
{
        const char *rest = plan_below(place->path, strcmp(root, "/") == 0 ? "" : root);
        char *text;

        if (!rest || asprintf(&text, "%s%s", point, rest) < 0)
                return rest ? -ENOMEM : 0;
        for (char **known = *list; *known; known++)
                if (strcmp(*known, text) == 0) {
                        free(text);
                        return 0;
                }
        return list_take(list, text);
}

char **mounts_shown(const struct inputs_mounts *mounts, const char *tree, const char *path)
{
        char **list = list_new();
        struct mounts_place place, top;
        const char *rest = plan_below(path, tree);
        int r = list ? 0 : -ENOMEM;

        if (r == 0 && rest)
                r = list_take(&list, strdup(path));
        if (r == 0 && mounts_place(mounts, path, &place)) {
                if (mounts_place(mounts, tree, &top) && strcmp(place.device, top.device) == 0)
                        r = add_place(&list, &place, top.path, tree);
                for (size_t i = 0; r == 0 && i < mounts->n; i++) {
                        const struct mounts_item *item = &mounts->items[i];

                        if (strcmp(place.device, item->device) != 0 ||
                            !plan_below(item->point, tree) || strcmp(item->point, tree) == 0)
                                continue;
                        r = add_place(&list, &place, item->root, item->point);
                        /* ... or a part of it alone is mounted there */
                        if (r == 0 && plan_below(item->root, place.path))
                                r = add_place(&list,
                                              &(struct mounts_place){ .device = item->device }, "/",
                                              item->point);
                }
        }
        if (r < 0) {
                list_free(list);
                return NULL;
        }
        return list;
}

bool mounts_reach(const struct inputs_mounts *mounts, const char *tree, const char *path)
{
        struct mounts_place place, top;

        if (mounts_below(path, tree))
                return true;
        if (!mounts_place(mounts, path, &place))
                return false;
        if (mounts_place(mounts, tree, &top) && is_in(&place, top.device, top.path))
                return true;
        /* What is mounted in the tree is part of it. */
        for (size_t i = 0; i < mounts->n; i++)
                if (mounts_below(mounts->items[i].point, tree) &&
                    is_in(&place, mounts->items[i].device, mounts->items[i].root))
                        return true;
        return false;
}
