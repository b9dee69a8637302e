/* SPDX-License-Identifier: MIT */
/*
 * Which names mean a protected one. File systems of other machines, and those that are shared with
 * them, read several spellings as the same name: in other cases (all of them), with dots or blanks
 * behind it or as a stream of it (NTFS), with characters in it that are left out of comparisons
 * (HFS+), or shortened (git~1). git refuses the same spellings of .git.
 *
 * And which names make a directory a repository: git takes one for it that has a HEAD, objects and
 * refs, and then runs what its configuration names. A HEAD is made in a .git alone, where git
 * itself keeps one. No .git is made by a box: what is one was there before.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "policy/plan.h"

static const char head[] = POLICY_ANYWHERE "HEAD", git[] = ".git";

/* ---- Spellings ---- */

/* U+200C to U+200F, U+202A to U+202E, U+206A to U+206F, U+FEFF. */
static size_t left_out(const char *text)
{
        const unsigned char *s = (const unsigned char *)text;

        if (s[0] == 0xe2 && ((s[1] == 0x80 && s[2] >= 0x8c && s[2] <= 0x8f) ||
                             (s[1] == 0x80 && s[2] >= 0xaa && s[2] <= 0xae) ||
                             (s[1] == 0x81 && s[2] >= 0xaa && s[2] <= 0xaf)))
                return 3;
        return s[0] == 0xef && s[1] == 0xbb && s[2] == 0xbf ? 3 : 0;
}

/* What no file system counts at the end of a name. */
static const char *skip_end(const char *path)
{
        size_t n;

        while ((n = *path == '.' || *path == ' ' ? 1 : left_out(path)) > 0)
                path += n;
        return *path == ':' ? path + strcspn(path, "/") : path;
}

/* The end of the first part of `path`, where that is a spelling of the first part of `name`. */
static const char *match_part(const char *name, const char *path)
{
        static const char shortened[] = "git~";
        size_t n = strlen(shortened);

        if (strncasecmp(path, shortened, n) == 0 && isdigit((unsigned char)path[n]) &&
            strncmp(name, git, strlen(git)) == 0 && strchr("/", name[strlen(git)])) {
                path += n + 1;
        } else {
                for (; *name && *name != '/'; name++, path++) {
                        path += left_out(path);
                        if (tolower((unsigned char)*name) != tolower((unsigned char)*path))
                                return NULL;
                }
        }
        path = skip_end(path);
        return *path == '\0' || *path == '/' ? path : NULL;
}

/* Is `path` a spelling of `name`, of the first parts of it, or of something below it? */
static bool matches(const char *name, const char *path)
{
        for (;;) {
                path = match_part(name, path);
                name += strcspn(name, "/");
                if (!path || !*path || !*name)
                        return path != NULL;
                path++;
                name++;
        }
}

/* ---- Repositories ---- */

/* What follows the last .git in a path, or NULL. */
static const char *in_repository(const char *path)
{
        const char *found = NULL;

        for (const char *at = path; (at = strchr(at, '/')); at++)
                if (strncmp(at + 1, git, strlen(git)) == 0 && at[1 + strlen(git)] == '/')
                        found = at + 2 + strlen(git);
        return found;
}

static bool begins(const char *text, const char *with)
{
        return strncmp(text, with, strlen(with)) == 0;
}

/* git's own: of the repository, of its logs, of what remotes have checked out. What makes the last
 * two a repository as well is not made there, though a branch may be called so. */
static bool completes_repository(const char *path)
{
        const char *inside = in_repository(path), *name = strrchr(path, '/') + 1;
        bool remote =
                inside && (begins(inside, "refs/remotes/") || begins(inside, "logs/refs/remotes/"));

        if (strncmp(name, "HEAD", 4) == 0 && !*skip_end(name + 4))
                return !inside || !(remote || strcmp(inside, "HEAD") == 0 ||
                                    strcmp(inside, "logs/HEAD") == 0 ||
                                    begins(inside, "worktrees/") || begins(inside, "modules/"));
        return (remote && strcmp(name, "refs") == 0) ||
               (inside && strcmp(inside, "logs/objects") == 0);
}

bool plan_parts_repository(const struct plan *plan, const char *path)
{
        for (size_t i = 0; i < plan->n_guards; i++) {
                const struct plan_guard *guard = &plan->guards[i];
                size_t n = strlen(guard->path) - strlen(guard->name);

                if (strcmp(guard->name, head) == 0 && strncmp(path, guard->path, n) == 0 &&
                    in_repository(path + n - 1))
                        return true;
        }
        return false;
}

/* ---- Drafts ---- */

static const char *const draft_ends[] = {
        "~",    ".lock", ".tmp", ".temp", ".new",  ".part",        ".swp",
        ".swo", ".swx",  ".bak", ".sav",  ".save", "___jb_tmp___", "___jb_old___",
};

/* "NAME.1234", "NAME.x8f3Qa": a number, or letters that were drawn by lot. */
static bool is_drawn(const char *end)
{
        return end[0] == '.' && end[1] && strpbrk(end, "0123456789") &&
               end[1 + strspn(end + 1, "0123456789abcdefghijklmnopqrstuvwxyz"
                                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ_-")] == '\0';
}

bool plan_is_draft(const char *kept, const char *path)
{
        const char *slash = strrchr(kept, '/'), *name = slash ? slash + 1 : kept, *end;
        size_t place = (size_t)(name - kept), n = strlen(name);

        if (strncasecmp(kept, path, place) != 0 || strchr(path + place, '/') || n == 0)
                return false;
        path += place;
        /* ".#NAME", "#NAME#", ".NAME.swp", ".NAME.Xq3f9a" */
        if ((path[0] == '.' || path[0] == '#') && strncasecmp(path + 1, name, n) == 0)
                return path[1 + n] == '.' || path[1 + n] == '#' || path[1 + n] == '~';
        if (path[0] == '.' && path[1] == '#' && strncasecmp(path + 2, name, n) == 0)
                return path[2 + n] == '\0';
        if (strncasecmp(path, name, n) != 0)
                return false;
        end = path + n;
        for (size_t i = 0; i < sizeof(draft_ends) / sizeof(*draft_ends); i++)
                if (strcasecmp(end, draft_ends[i]) == 0)
                        return true;
        return is_drawn(end);
}

/* ---- Guards ---- */

struct plan_letters plan_letters_of(const char *name)
{
        struct plan_letters letters = { 0 };

        letters.first = (unsigned char)tolower((unsigned char)name[0]);
        if (name[0] && name[1] != '/')
                letters.second = (unsigned char)tolower((unsigned char)name[1]);
        return letters;
}

bool plan_means(const char *guarded, const char *name, const char *path)
{
        size_t n = strlen(path), place = strlen(guarded) - strlen(name) - (*name ? 1 : 0);
        const char *anywhere = policy_anywhere(name), *last;

        if (n <= place) /* the place itself, or one above it */
                return !anywhere && strncasecmp(guarded, path, n) == 0 && strchr("/", guarded[n]);
        if (path[place] != '/' ||
            (!anywhere && *name &&
             !plan_may_mean(plan_letters_of(name), plan_letters_of(path + place + 1))) ||
            strncasecmp(guarded, path, place) != 0)
                return false;
        if (!anywhere)
                return !*name || matches(name, path + place + 1);
        if (strcmp(name, head) == 0)
                return completes_repository(path + place);
        last = strrchr(path, '/');
        return match_part(anywhere, last + 1) != NULL;
}
