/* SPDX-License-Identifier: MIT */
/* Directories in which programs keep keys, passwords and sessions of their user. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/verb.h"

#define DEPTH_MAX 64

/* By these names alone, wherever they are. */
static const char *const by_name[] = {
        ".ssh", ".gnupg",  ".aws",     ".azure",       ".kube",  ".password-store",
        ".pki", ".gcloud", ".mozilla", ".thunderbird", ".putty", ".local/share/keyrings",
};

/* In a home; elsewhere they may be anything. */
static const char *const in_home[] = {
        ".ssh",
        ".gnupg",
        ".aws",
        ".azure",
        ".kube",
        ".password-store",
        ".pki",
        ".gcloud",
        ".mozilla",
        ".putty",
        ".config",
        ".docker",
        ".thunderbird",
        ".minikube",
        ".oci",
        ".chef",
        ".terraform.d",
        ".subversion",
        ".android",
        ".purple",
        ".bitcoin",
        ".gem",
        ".var/app",
        "snap",
        ".claude",
        ".codex",
        ".gemini",
        ".cursor",
        ".local/share/keyrings",
        ".local/share/kwalletd",
        ".local/share/gnupg",
        ".local/share/password-store",
        ".local/share/pass",
        ".local/share/containers",
        ".local/state",
};

/* Where a program looks instead, if it is told to. */
static const char *const variables[] = {
        "XDG_CONFIG_HOME",  "GNUPGHOME",          "CLOUDSDK_CONFIG", "DOCKER_CONFIG",
        "AZURE_CONFIG_DIR", "PASSWORD_STORE_DIR", "GH_CONFIG_DIR",   "CLAUDE_CONFIG_DIR",
};

/* Does a path have these parts, one after the other? */
static bool has_parts(const char *path, const char *parts)
{
        size_t n = strlen(parts);

        for (const char *at = path; (at = strchr(at, '/')); at++)
                if (strncmp(at + 1, parts, n) == 0 && strchr("/", at[n + 1]))
                        return true;
        return false;
}

/* Which directory it is, and those above it. */
struct line {
        struct stat st[DEPTH_MAX];
        size_t n;
};

static void trace(const char *directory, struct line *ret)
{
        char path[PATH_MAX];
        char *slash;

        ret->n = 0;
        (void)snprintf(path, sizeof(path), "%s", directory);
        while (ret->n < DEPTH_MAX && *path) {
                ret->n += stat(path, &ret->st[ret->n]) == 0;
                slash = strrchr(path, '/');
                if (!slash)
                        break;
                *slash = '\0';
        }
}

/* By whatever name: a link, or a directory that is mounted twice, is the same directory. */
static bool is_on(const char *path, const struct line *line)
{
        struct stat st;

        if (stat(path, &st) < 0)
                return false;
        for (size_t i = 0; i < line->n; i++)
                if (st.st_dev == line->st[i].st_dev && st.st_ino == line->st[i].st_ino)
                        return true;
        return false;
}

bool verb_is_secret_of(const char *home, const char *directory)
{
        const char *rest = plan_below(directory, home);
        struct line line;
        char path[PATH_MAX];

        for (size_t i = 0; rest && *rest && i < ARRAY_SIZE(in_home); i++)
                if (plan_below(rest + 1, in_home[i]))
                        return true;
        if (home[0] != '/' || strcmp(home, "/") == 0)
                return false;
        trace(directory, &line);
        for (size_t i = 0; i < ARRAY_SIZE(in_home); i++) {
                (void)snprintf(path, sizeof(path), "%s/%s", home, in_home[i]);
                if (is_on(path, &line))
                        return true;
        }
        return false;
}

/* Of those at home below /home, not all of whom are in a file here, and of root; but for the one
 * who has been looked at. */
static bool is_secret_of_another(const char *looked_at, const char *directory)
{
        const char *rest = plan_below(directory, "/home"), *slash;
        char home[PATH_MAX] = "/root";

        slash = rest && *rest ? strchr(rest + 1, '/') : NULL;
        if (slash)
                (void)snprintf(home, sizeof(home), "/home%.*s", (int)(slash - rest), rest);
        return !(looked_at && strcmp(looked_at, home) == 0) && verb_is_secret_of(home, directory);
}

bool verb_is_secret(const char *directory)
{
        const char *home = getenv("HOME");
        struct line line;

        for (size_t i = 0; i < ARRAY_SIZE(by_name); i++)
                if (has_parts(directory, by_name[i]))
                        return true;
        if ((home && verb_is_secret_of(home, directory)) || is_secret_of_another(home, directory))
                return true;
        trace(directory, &line);
        for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
                const char *value = getenv(variables[i]);

                /* Not one that is a home itself, or above it. */
                if (value && value[0] == '/' && !(home && plan_below(home, value)) &&
                    is_on(value, &line))
                        return true;
        }
        return false;
}
