/* SPDX-License-Identifier: MIT */
/* Which interpreter runs the functions of a file, what of the host it needs to see, and where the
 * text is that it runs. */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tool/python.h"

/* ---- The interpreter ---- */

/* A program, rather than a script that looks for one: what such a script would find, and do before,
 * nobody knows. */
static bool is_program(const char *path)
{
        char magic[SELFMAG];
        struct stat facts;
        _cleanup_fd_ int fd = -1;

        if (stat(path, &facts) < 0 || !S_ISREG(facts.st_mode) || access(path, X_OK) < 0)
                return false;
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        return fd >= 0 && read(fd, magic, sizeof(magic)) == sizeof(magic) &&
               memcmp(magic, ELFMAG, sizeof(magic)) == 0;
}

/* The directory spelled out, the name as it is: it tells where the virtual environment is. */
static int take_program(const char *path, char **ret_program)
{
        char directory[PATH_MAX], real[PATH_MAX];
        const char *slash = strrchr(path, '/');

        snprintf(directory, sizeof(directory), "%.*s", (int)(slash - path + 1), path);
        if (!realpath(directory, real))
                return -errno;
        return asprintf(ret_program, "%s/%s", real, slash + 1) < 0 ? -ENOMEM : 0;
}

static int find_along_path(const char *name, char **ret_program)
{
        const char *at = getenv("PATH");

        while (at && *at) {
                size_t n = strcspn(at, ":");
                char path[PATH_MAX];

                if (n > 0 && *at == '/' &&
                    snprintf(path, sizeof(path), "%.*s/%s", (int)n, at, name) < PATH_MAX &&
                    is_program(path))
                        return take_program(path, ret_program);
                at += n + (at[n] == ':');
        }
        return -ENOENT;
}

/* Whoever names a virtual environment means the interpreter in it. `directory`: where a name
 * without a slash would be one, which is not looked for along the PATH; or NULL. */
static bool refuse_directory(const char *given, const char *directory, cbx_error *error)
{
        bool joined = given[0] != '/' && directory;
        char path[PATH_MAX + 32];
        struct stat facts;
        int n = snprintf(path, PATH_MAX, "%s%s%s", joined ? directory : "", joined ? "/" : "",
                         given);

        if (n >= PATH_MAX || stat(path, &facts) < 0 || !S_ISDIR(facts.st_mode))
                return false;
        error_set(error, -EISDIR, "", "\"%.200s\" is a directory", given);
        snprintf(path + n, sizeof(path) - (size_t)n, "/bin/python3");
        if (is_program(path))
                error_hint(error, "name the interpreter in it, %.200s/bin/python3", given);
        else
                error_hint(error, "name the interpreter itself, by its path");
        return true;
}

static int refuse_interpreter(const char *given, const char *directory, cbx_error *error)
{
        bool there = strchr(given, '/') && access(given, F_OK) == 0;

        if (refuse_directory(given, directory, error))
                return -EISDIR;
        error_set(error, -ENOENT, "",
                  there ? "\"%.200s\" is no program: an interpreter of Python is wanted"
                        : "there is no interpreter \"%.200s\"",
                  given);
        error_hint(error, there ? "name the interpreter itself, which it prints by "
                                  "-c 'import sys; print(sys.executable)'"
                                : "install python3, or name the interpreter by its path");
        return -ENOENT;
}

int python_find_interpreter(const char *given, const char *directory, char **ret_program,
                            cbx_error *error)
{
        const char *active = getenv("VIRTUAL_ENV");
        char path[PATH_MAX];
        int r = -ENOENT;

        if (given && strchr(given, '/')) {
                bool joined = given[0] != '/' && directory;

                snprintf(path, sizeof(path), "%s%s%s", joined ? directory : "", joined ? "/" : "",
                         given);
                r = is_program(path) ? take_program(path, ret_program) : -ENOENT;
                given = path;
        } else if (given) {
                r = find_along_path(given, ret_program);
        } else {
                snprintf(path, sizeof(path), "%s/bin/python3", active ? active : "");
                if (active && active[0] == '/' && is_program(path))
                        r = take_program(path, ret_program);
                else
                        r = find_along_path("python3", ret_program);
                given = "python3";
        }
        if (r == -ENOMEM)
                return error_oom(error);
        return r < 0 ? refuse_interpreter(given, directory, error) : 0;
}

static int add_tree(char ***trees, const char *path)
{
        return access(path, F_OK) < 0 || function_is_of_system(path) ? 0 : list_add(trees, path);
}

int python_find_trees(const char *program, char ***ret_trees)
{
        static const char *const parts[] = { "bin", "lib", "lib64" };
        _cleanup_list_ char **trees = list_new();
        char real[PATH_MAX], path[PATH_MAX + 16];
        const char *name = strrchr(program, '/');
        int r = trees ? 0 : -ENOMEM;

        /* DIRECTORY/bin/python3, and DIRECTORY/pyvenv.cfg beside it. */
        if (r == 0 && name - program > 4 && strncmp(name - 4, "/bin", 4) == 0) {
                snprintf(path, sizeof(path), "%.*s/pyvenv.cfg", (int)(name - 4 - program), program);
                if (access(path, R_OK) == 0) {
                        *strrchr(path, '/') = '\0';
                        r = add_tree(&trees, path);
                }
        }
        if (r == 0 && realpath(program, real) && !function_is_of_system(real)) {
                char *slash = strrchr(real, '/');

                r = list_add(&trees, real);
                *slash = '\0';
                slash = strrchr(real, '/');
                if (slash && strcmp(slash, "/bin") == 0)
                        *slash = '\0'; /* else it has its library elsewhere */
                for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parts); i++) {
                        snprintf(path, sizeof(path), "%s/%s", real, parts[i]);
                        r = add_tree(&trees, path);
                }
        }
        if (r == 0)
                *ret_trees = TAKE_PTR(trees);
        return r;
}

/* ---- The server ---- */

int python_find_server(const char *server, char **ret_path, cbx_error *error)
{
        /* From where callbox-functions is: in a wheel it is in the package's "bin", a build has a
         * tree beside it, and it is installed below the same prefix. */
        static const char *const places[] = { "/../_serve.py", "/python/callbox/_serve.py",
                                              "/../" CALLBOX_PYTHON_FROM_LIBEXEC
                                              "/callbox/_serve.py" };
        char directory[PATH_MAX], path[PATH_MAX + 128], real[PATH_MAX];
        char *slash;

        snprintf(directory, sizeof(directory), "%s", server);
        slash = strrchr(directory, '/');
        for (size_t i = 0; slash && i < ARRAY_SIZE(places); i++) {
                snprintf(path, sizeof(path), "%.*s%s", (int)(slash - directory), directory,
                         places[i]);
                if (realpath(path, real) && access(real, R_OK) == 0) {
                        *ret_path = strdup(real);
                        return *ret_path ? 0 : error_oom(error);
                }
        }
        if (access(CALLBOX_PYTHON_SERVER, R_OK) == 0) {
                *ret_path = strdup(CALLBOX_PYTHON_SERVER);
                return *ret_path ? 0 : error_oom(error);
        }
        error_set(error, -ENOENT, "", "there is no %s, which runs Python functions in a box",
                  CALLBOX_PYTHON_SERVER);
        error_hint(error, "install callbox whole");
        return -ENOENT;
}
