/* SPDX-License-Identifier: MIT */
/* The current directory: whether a box shows it although nobody has asked for it. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
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
                return leads_into(fields[5], here) || verb_is_secret_of(fields[5], here->path);
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

/* Is it of the system, of which a box has its own, or its own part? */
static bool is_system(const char *directory)
{
        static const char *const trees[] = { "/etc", "/proc", "/sys", "/dev", "/usr" };

        for (size_t i = 0; i < ARRAY_SIZE(trees); i++)
                if (plan_below(directory, trees[i]))
                        return true;
        return false;
}

/* Directories that are too much to show without being asked. */
static bool too_much(const char *directory)
{
        static const char *const exact[] = { "/",     "/tmp", "/var/tmp", "/var", "/home", "/root",
                                             "/boot", "/opt", "/srv",     "/mnt", "/media" };
        struct here here = { .path = directory, .home = getenv("HOME"), .caller = getuid() };

        for (size_t i = 0; i < ARRAY_SIZE(exact); i++)
                if (strcmp(directory, exact[i]) == 0)
                        return true;
        if (plan_below(directory, "/run"))
                return true;
        if (access(".ssh", F_OK) == 0) /* a home, whoever keeps the list of users */
                return true;
        if (verb_is_secret(directory))
                return true;
        if (is_in_own_home(&here))
                return false;
        return stat(".", &here.st) < 0 || (here.home && leads_into(here.home, &here)) ||
               is_at_homes(&here) || is_home(&here);
}

/* ---- Showing it ---- */

enum rule { RULE_NONE, RULE_ABOVE, RULE_HERE };

/* Does a rule of the command line speak for this directory already? One that hides speaks for all
 * below it; one that shows what is above it shows it as well, and lets it be shown again. */
static enum rule find_rule(const struct options *options, const char *directory)
{
        static const char *const lists[] = { "read", "write", "hide", "tmpfs" };
        json_t *files = json_object_get(options->policy, "files"), *item;
        enum rule found = RULE_NONE;
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
                                return RULE_HERE;
                        if (rest && strcmp(lists[i], "tmpfs") != 0)
                                found = RULE_ABOVE;
                }
        return found;
}

int verb_show_here(struct options *options, bool *ret_left_out, cbx_error *error)
{
        _cleanup_free_ char *directory = getcwd(NULL, 0);
        enum rule rule;

        if (options->file || options->workspace || !directory || directory[0] != '/' ||
            is_system(directory))
                return 0;
        rule = find_rule(options, directory);
        if (rule == RULE_HERE)
                return 0;
        if (too_much(directory)) {
                *ret_left_out = rule == RULE_NONE;
                return 0;
        }
        if (!text_is_valid(directory)) {
                *ret_left_out = true; /* a policy cannot name it */
                return 0;
        }
        return options_show(options, directory, NULL, error);
}

/* ---- Missing it ---- */

#define WORDS_MAX 1000 /* to look for */

/* Is it the name of something in the current directory? Then a copy of it is in `ret`. */
static bool is_name_here(const char *word, size_t length, char ret[NAME_MAX + 1])
{
        if (length == 0 || length > NAME_MAX || word[0] == '/')
                return false;
        (void)snprintf(ret, NAME_MAX + 1, "%.*s", (int)length, word);
        return faccessat(AT_FDCWD, ret, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Do the arguments name something there? One of them, or a word in one, as in a line for a shell.
 */
static bool find_name_here(char *const *argv, char ret[NAME_MAX + 1])
{
        static const char between[] = " \t\n;|&<>()'\"`=,";
        unsigned left = WORDS_MAX;

        for (char *const *argument = argv + 1; *argument; argument++) {
                const char *word = *argument;

                if (is_name_here(word, strlen(word), ret))
                        return true;
                while (*(word += strspn(word, between)) && left-- > 0) {
                        size_t length = strcspn(word, between);

                        if (is_name_here(word, length, ret))
                                return true;
                        word += length;
                }
        }
        return false;
}

void verb_warn_of_here(char *const *argv, bool explain, struct report *report)
{
        bool failed = report->reason == REASON_EXITED && report->code != 0;
        _cleanup_free_ char *directory = getcwd(NULL, 0);
        char name[NAME_MAX + 1], what[NAME_MAX + 32] = "";

        if (!directory || report->reason >= REASON_SETUP || (!failed && !explain))
                return;
        if (failed && find_name_here(argv, name))
                (void)snprintf(what, sizeof(what), ", so \"%s\" is not there", name);
        else if (!explain)
                return;
        report_warn(report, "the current directory, %s, is not shown in the box%s: %s", directory,
                    what,
                    strcmp(directory, "/") == 0
                            ? "go to the directory that the program needs"
                            : "add --read ., or --workspace . to let it be changed");
}
