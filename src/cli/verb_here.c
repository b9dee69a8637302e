/* SPDX-License-Identifier: MIT */
/* The current directory: whether a box shows it although nobody has asked for it. */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/verb.h"

/* ---- Too much to show ---- */

struct here {
        const char *path; /* canonical */
        struct stat st;
        const char *home; /* $HOME, or NULL */
        uid_t caller;
};

static bool is_same(const struct stat *a, const struct stat *b)
{
        return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Does a path lead to the directory, or to what is below it? By whatever name: of a link only the
 * end counts, and of a directory that is mounted twice only which one it is. */
static bool leads_into(const char *path, const struct here *here)
{
        char real[PATH_MAX];
        struct stat st;

        if (plan_below(path, here->path))
                return true;
        return stat(path, &st) == 0 &&
               (is_same(&st, &here->st) || (realpath(path, real) && plan_below(real, here->path)));
}

/* Is it /home, above that, or just below it? Of those that live there some are in no file here. */
static bool is_at_homes(const struct here *here)
{
        const char *rest = plan_below(here->path, "/home");
        struct stat above, homes;
        char real[PATH_MAX];

        if (rest && *rest)
                return !strchr(rest + 1, '/');
        if (stat("/home", &homes) < 0)
                return false;
        return is_same(&homes, &here->st) || (stat("..", &above) == 0 && is_same(&homes, &above)) ||
               (realpath("/home", real) && plan_below(real, here->path));
}

/* A line of /etc/passwd: is the home in it the directory, or below it? Where it leads is asked for
 * those alone who own the directory or make the call: a host may have many homes, and some of them
 * may be on a server that does not answer. */
static bool is_home_of(char *line, const struct here *here)
{
        char *fields[6], *end;
        unsigned long uid;

        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
                if (!(fields[i] = strsep(&line, ":")))
                        return false;
        if (fields[5][0] != '/' || (here->home && strcmp(fields[5], here->home) == 0))
                return false; /* or asked for before */
        uid = strtoul(fields[2], &end, 10);
        if (end > fields[2] && !*end && (uid == here->st.st_uid || uid == here->caller))
                return leads_into(fields[5], here);
        return plan_below(fields[5], here->path) != NULL;
}

/* Is it the home of somebody in /etc/passwd, or above one? Read by hand: this is on the way of each
 * call, stdio takes three times as long, and a static program has no getpwent(). */
static bool is_home(const struct here *here)
{
        _cleanup_fd_ int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        char buffer[4096], *next;
        size_t length = 0;
        ssize_t n = 1;

        while (fd >= 0 && n > 0) {
                char *line = buffer;

                n = read(fd, buffer + length, sizeof(buffer) - 1 - length);
                if (n > 0)
                        length += (size_t)n;
                else
                        buffer[length++] = '\n'; /* the last line may have none */
                for (; (next = memchr(line, '\n', length)); line = next + 1) {
                        *next = '\0';
                        length -= (size_t)(next + 1 - line);
                        if (is_home_of(line, here))
                                return true;
                }
                if (length == sizeof(buffer) - 1) /* no entry is that long */
                        length = 0;
                memmove(buffer, line, length);
        }
        return false;
}

/* Does the caller live above it? Then nobody else does below. Not asked of root, whose may be any
 * directory. */
static bool is_in_own_home(const struct here *here)
{
        const char *rest = here->home ? plan_below(here->path, here->home) : NULL;
        struct stat st;

        return rest && *rest && here->caller != 0 && stat(here->home, &st) == 0 &&
               st.st_uid == here->caller;
}

/* Directories that are too much to show without being asked, or are the box's own. */
static bool too_much(const char *directory)
{
        static const char *const exact[] = {
                "/",     "/tmp", "/var/tmp", "/var", "/home", "/root",
                "/boot", "/run", "/opt",     "/srv", "/mnt",  "/media"
        };
        static const char *const trees[] = { "/etc", "/proc", "/sys", "/dev", "/usr", "/run" };
        struct here here = { .path = directory, .home = getenv("HOME"), .caller = getuid() };

        for (size_t i = 0; i < ARRAY_SIZE(exact); i++)
                if (strcmp(directory, exact[i]) == 0)
                        return true;
        for (size_t i = 0; i < ARRAY_SIZE(trees); i++)
                if (plan_below(directory, trees[i]))
                        return true;
        if (access(".ssh", F_OK) == 0) /* a home, whoever keeps the list of users */
                return true;
        if (is_in_own_home(&here))
                return false;
        return stat(".", &here.st) < 0 || (here.home && leads_into(here.home, &here)) ||
               is_at_homes(&here) || is_home(&here);
}

/* ---- Showing it ---- */

/* Does a rule of the command line speak for this directory already? One that hides speaks for all
 * below it. */
static bool is_named(const struct options *options, const char *directory)
{
        static const char *const lists[] = { "read", "write", "hide", "tmpfs" };
        json_t *files = json_object_get(options->policy, "files"), *item;
        char real[PATH_MAX];
        size_t index;

        for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
                json_array_foreach(json_object_get(files, lists[i]), index, item)
                {
                        const char *path = json_string_value(
                                !json_is_object(item)            ? item
                                : strcmp(lists[i], "tmpfs") == 0 ? json_object_get(item, "path")
                                                                 : json_object_get(item, "host"));
                        const char *rest =
                                path && realpath(path, real) ? plan_below(directory, real) : NULL;

                        if (rest && (!*rest || strcmp(lists[i], "hide") == 0))
                                return true;
                }
        return false;
}

int verb_show_here(struct options *options, cbx_error *error)
{
        _cleanup_free_ char *directory = getcwd(NULL, 0);
        char *argv[] = { (char *)"--read", directory, NULL };
        int index = 0, r;

        if (options->file || options->workspace || !directory || directory[0] != '/' ||
            too_much(directory) || is_named(options, directory))
                return 0;
        r = options_take(options, 2, argv, &index, error);
        return MIN(r, 0);
}
