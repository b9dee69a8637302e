/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/wrap.h"
#include "policy/json_read.h"

#define MANIFEST_MAX (4 * MIB)

/* What `npx` was asked for: PACKAGE or PACKAGE@VERSION. */
struct package {
        const char *spec;
        char *name; /* without the version */
};

/* What npx found for it. */
struct found {
        char *tree;    /* the directory that holds node_modules */
        char *program; /* node_modules/.bin/NAME in it */
        time_t at;     /* when it was put there */
};

static void found_free(struct found *found)
{
        free(found->tree);
        free(found->program);
        *found = (struct found){ 0 };
}

/* npx's own options that change nothing for a package that is there. */
static bool is_harmless(const char *option)
{
        static const char *const names[] = { "-y",       "--yes",    "--no",
                                             "-q",       "--quiet",  "--prefer-offline",
                                             "--silent", "--offline" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(option, names[i]) == 0)
                        return true;
        return false;
}

static json_t *read_json(const char *path)
{
        _cleanup_free_ char *text = NULL;
        size_t length;

        if (file_read(AT_FDCWD, path, MANIFEST_MAX, &text, &length) < 0)
                return NULL;
        return json_loadb(text, length, 0, NULL);
}

/* The name of the program of a package: the only one, or the one that is called like it. */
static const char *program_name(const json_t *manifest, const char *package)
{
        const char *slash = strrchr(package, '/'), *plain = slash ? slash + 1 : package;
        json_t *programs = json_object_get(manifest, "bin");

        if (json_is_string(programs) || json_object_get(programs, plain))
                return plain;
        if (json_object_size(programs) != 1)
                return NULL;
        return json_object_iter_key(json_object_iter(programs));
}

/* A name that leads out of node_modules/.bin is none. */
static bool is_plain(const char *name)
{
        return *name && *name != '.' && !strchr(name, '/');
}

static void look_in(const char *tree, const struct package *package, struct found *best)
{
        _cleanup_free_ char *path = NULL, *program = NULL, *copy = strdup(tree);
        _cleanup_json_ json_t *manifest = NULL;
        const char *name;
        struct stat st;

        if (!copy || asprintf(&path, "%s/node_modules/%s/package.json", tree, package->name) < 0)
                return;
        manifest = read_json(path);
        name = manifest ? program_name(manifest, package->name) : NULL;
        if (!name || !is_plain(name) ||
            asprintf(&program, "%s/node_modules/.bin/%s", tree, name) < 0 ||
            stat(program, &st) < 0 || (best->tree && best->at >= st.st_mtime))
                return;
        found_free(best);
        best->tree = TAKE_PTR(copy);
        best->program = TAKE_PTR(program);
        best->at = st.st_mtime;
}

/* Was this directory of the cache made for just this specification? */
static bool is_for(const char *tree, const char *spec)
{
        _cleanup_free_ char *path = NULL;
        _cleanup_json_ json_t *manifest = NULL;
        json_t *packages;

        if (asprintf(&path, "%s/package.json", tree) < 0)
                return false;
        manifest = read_json(path);
        packages = json_object_get(json_object_get(manifest, "_npx"), "packages");
        return json_array_size(packages) == 1 &&
               strcmp(json_string_value(json_array_get(packages, 0)) ?: "", spec) == 0;
}

static void look_in_cache(const char *cache, const struct package *package, struct found *best)
{
        DIR *directory = opendir(cache);
        struct dirent *entry;

        while (directory && (entry = readdir(directory))) {
                _cleanup_free_ char *tree = NULL;

                if (entry->d_name[0] != '.' &&
                    asprintf(&tree, "%s/%s", cache, entry->d_name) >= 0 &&
                    is_for(tree, package->spec))
                        look_in(tree, package, best);
        }
        if (directory)
                closedir(directory);
}

static void look(const struct package *package, struct found *best)
{
        const char *home = getenv("HOME"), *own = getenv("npm_config_cache");
        _cleanup_free_ char *here = getcwd(NULL, 0), *cache = NULL;

        /* As npx does: a version that is asked for may not be the one that lies here. */
        if (here && strcmp(package->spec, package->name) == 0)
                look_in(here, package, best);
        if (best->tree || (!own && !home) ||
            asprintf(&cache, "%s%s/_npx", own ?: home, own ? "" : "/.npm") < 0)
                return;
        look_in_cache(cache, package, best);
}

/* Node is a single file; where it lies in a home, show that and nothing around it. */
static int show_node(struct options *options, cbx_error *error)
{
        const char *path = getenv("PATH");
        char candidate[PATH_MAX], real[PATH_MAX];

        for (size_t n; path && *path; path += n + (path[n] == ':')) {
                n = strcspn(path, ":");
                if (snprintf(candidate, sizeof(candidate), "%.*s/node", (int)n, path) >=
                            (int)sizeof(candidate) ||
                    access(candidate, X_OK) < 0 || !realpath(candidate, real))
                        continue;
                if (strncmp(candidate, "/usr/", 5) == 0 || strncmp(candidate, "/bin/", 5) == 0)
                        return 0;
                return options_show(options, real, candidate, error);
        }
        return 0;
}

static int take(const struct found *found, char **rest, struct options *options, cbx_error *error,
                char ***ret_argv)
{
        _cleanup_list_ char **argv = list_new();
        _cleanup_free_ char *modules = NULL;
        int r;

        if (!argv || list_add(&argv, found->program) < 0 ||
            asprintf(&modules, "%s/node_modules", found->tree) < 0)
                return error_oom(error);
        for (; *rest; rest++)
                if (list_add(&argv, *rest) < 0)
                        return error_oom(error);
        r = options_show(options, modules, NULL, error);
        if (r == 0)
                r = show_node(options, error);
        if (r < 0)
                return r;
        *ret_argv = TAKE_PTR(argv);
        return 1;
}

int wrap_find_package(char **argv, struct options *options, cbx_error *error, char ***ret_argv)
{
        const char *slash = strrchr(argv[0], '/'), *at;
        _cleanup_(found_free) struct found found = { 0 };
        _cleanup_free_ char *name = NULL;
        struct package package;

        if (strcmp(slash ? slash + 1 : argv[0], "npx") != 0)
                return 0;
        for (argv++; *argv && is_harmless(*argv); argv++)
                ;
        if (*argv && strcmp(*argv, "--") == 0)
                argv++;
        if (!*argv || (*argv)[0] == '-' || !(*argv)[0])
                return 0;
        at = strchr(*argv + 1, '@'); /* the first may be that of a scope */
        name = at ? strndup(*argv, (size_t)(at - *argv)) : strdup(*argv);
        if (!name)
                return error_oom(error);
        package = (struct package){ .spec = *argv, .name = name };
        look(&package, &found);
        if (found.tree)
                return take(&found, argv + 1, options, error, ret_argv);
        error_set(error, -ENOENT, "", "npx has not fetched %s yet, and the box has no network",
                  package.spec);
        error_hint(error,
                   "fetch it once, without running it: npx -y --package=%s true; or let the box "
                   "fetch it at each start: --net host --tmp-size 512M",
                   package.spec);
        return -ENOENT;
}
