/* SPDX-License-Identifier: MIT */
/*
 * The files that a tool runs though its manifest does not call them files: the program, as it is
 * named or as it is found along PATH, and among the fixed words of its command those that are code.
 * A word that is data stays what it is: a file that the tool reads or writes.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "policy/pins.h"
#include "policy/plan.h"
#include "tool/tool.h"

/* Programs whose first path is that of a program. */
static const char *const interpreters[] = {
        "ash",    "bash", "bun",  "busybox", "dash",    "deno",     "env",     "java",
        "julia",  "ksh",  "lua",  "nice",    "node",    "perl",     "php",     "pypy",
        "python", "R",    "ruby", "sh",      "stdbuf",  "tclsh",    "timeout", "tsx",
        "uv",     "zsh",  "qjs",  "guile",   "ts-node", "wasmtime",
};

static const char *const endings[] = {
        ".awk", ".bash", ".cjs", ".jar", ".js", ".lua", ".mjs", ".mk", ".php", ".pl",
        ".py",  ".pyz",  ".R",   ".r",   ".rb", ".sed", ".sh",  ".so", ".ts",  ".wasm",
};

static bool is_interpreter(const char *program)
{
        const char *name = strrchr(program, '/');
        size_t n;

        name = name ? name + 1 : program;
        n = strcspn(name, "0123456789.");
        for (size_t i = 0; i < ARRAY_SIZE(interpreters); i++)
                if (strlen(interpreters[i]) == n && strncmp(name, interpreters[i], n) == 0)
                        return true;
        return strncmp(name, "Rscript", 7) == 0;
}

/* By its name, or what is there says so. */
static bool is_code(const char *path)
{
        const char *end = strrchr(path, '.');
        _cleanup_fd_ int fd = -1;
        char start[2];
        struct stat st;

        for (size_t i = 0; end && i < ARRAY_SIZE(endings); i++)
                if (strcmp(end, endings[i]) == 0)
                        return true;
        if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
                return false;
        if (st.st_mode & 0111)
                return true;
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        return fd >= 0 && read(fd, start, 2) == 2 && memcmp(start, "#!", 2) == 0;
}

/* Add a path of the box by the host's. */
static int add_path(char ***list, const cbx_policy *policy, const char *path)
{
        for (size_t i = 0; i < policy->n_paths; i++) {
                const struct policy_path *rule = &policy->paths[i];
                const char *rest = rule->box && rule->host ? plan_below(path, rule->box) : NULL;
                char *text, here[PATH_MAX];
                bool absolute;

                if (!rest)
                        continue;
                absolute = rule->host[0] == '/';
                if (!absolute && !getcwd(here, sizeof(here)))
                        return -errno;
                if (asprintf(&text, "%s%s%s%s", absolute ? "" : here, absolute ? "" : "/",
                             rule->host, rest) < 0)
                        return -ENOMEM;
                if (list_take(list, text) < 0)
                        return -ENOMEM;
        }
        return list_add(list, path);
}

/* The PATH that its boxes have. */
static const char *search_path(const cbx_policy *policy)
{
        const char *own = getenv("PATH");

        for (size_t i = 0; i < policy->n_variables; i++)
                if (strcmp(policy->variables[i].name, "PATH") == 0 && policy->variables[i].value)
                        return policy->variables[i].value;
        return own ? own : "";
}

/* Does the policy show what is at this path? */
static bool is_shown(const cbx_policy *policy, const char *path)
{
        _cleanup_free_ char *canonical = policy_canonical("/", path);
        char here[PATH_MAX];

        if (!canonical || !getcwd(here, sizeof(here)))
                return true;
        for (size_t i = 0; i < policy->n_paths; i++) {
                const struct policy_path *rule = &policy->paths[i];
                _cleanup_free_ char *tree =
                        rule->access == POLICY_READ || rule->access == POLICY_WRITE
                                ? policy_canonical(here, rule->host)
                                : NULL;

                if ((tree && plan_below(canonical, tree)) ||
                    (rule->box && plan_below(path, rule->box)))
                        return true;
        }
        return policy->system && function_is_of_system(canonical);
}

/* Each place where it would be found first if it were there, up to the one where it is. */
static int add_found(char ***list, const cbx_policy *policy, const char *name)
{
        int r = 0;

        for (const char *at = search_path(policy); r == 0 && *at;) {
                size_t n = strcspn(at, ":");
                char path[PATH_MAX];

                if (n > 0 && *at == '/' &&
                    snprintf(path, sizeof(path), "%.*s/%s", (int)n, at, name) < PATH_MAX) {
                        bool shown = is_shown(policy, path);

                        r = shown ? add_path(list, policy, path) : 0;
                        if (shown && access(path, X_OK) == 0)
                                break;
                }
                at += n + (at[n] == ':');
        }
        return r;
}

/* From where a box starts: the caller's directory, or the workspace. */
static int add_relative(char ***list, const cbx_policy *policy, const char *name)
{
        char here[PATH_MAX], path[2 * PATH_MAX];
        int r = 0;

        if (!getcwd(here, sizeof(here)))
                return -errno;
        snprintf(path, sizeof(path), "%s/%s", here, name);
        r = list_add(list, path);
        for (size_t i = 0; r == 0 && i < policy->n_paths; i++) {
                const struct policy_path *rule = &policy->paths[i];

                if (!rule->workspace)
                        continue;
                if (rule->host[0] == '/')
                        snprintf(path, sizeof(path), "%s/%s", rule->host, name);
                else
                        snprintf(path, sizeof(path), "%s/%s/%s", here, rule->host, name);
                r = list_add(list, path);
        }
        return r;
}

static int add_program(char ***list, char ***found, const cbx_policy *policy, const char *program)
{
        if (program[0] == '/')
                return add_path(list, policy, program);
        return strchr(program, '/') ? add_relative(list, policy, program)
                                    : add_found(found, policy, program);
}

int tool_list_words(const struct tool *tool, const cbx_policy *policy, char ***ret_paths,
                    char ***ret_found)
{
        _cleanup_list_ char **words = list_new(), **paths = list_new(), **found = list_new();
        const char *program =
                tool->template && !tool->shell ? template_program(tool->template) : NULL;
        struct stat st;
        bool expected;
        int r = words && paths && found ? 0 : -ENOMEM;

        if (r == 0 && tool->template && !tool->shell)
                r = template_words(tool->template, &words);
        for (char **word = tool->function.argv; r == 0 && word && *word; word++)
                r = list_add(&words, *word);
        if (r == 0 && tool->function.argv)
                program = tool->function.argv[0];
        /* The interpreter of a Python function, with its packages, is as much the project's own as
         * a program along PATH is. */
        for (char **tree = tool->function.trees; r == 0 && tree && *tree; tree++)
                r = add_path(&found, policy, *tree);
        if (r == 0 && program && tool->function.source)
                r = add_path(&found, policy, program);
        else if (r == 0 && program)
                r = add_program(&paths, &found, policy, program);
        expected = program && is_interpreter(program);
        for (char **word = words; r == 0 && *word; word++) {
                if ((*word)[0] != '/' || (program && strcmp(*word, program) == 0))
                        continue;
                if (stat(*word, &st) == 0 && S_ISDIR(st.st_mode))
                        continue;
                if (expected || is_code(*word))
                        r = add_path(&paths, policy, *word);
                expected = false;
        }
        if (r < 0)
                return r;
        *ret_paths = TAKE_PTR(paths);
        *ret_found = TAKE_PTR(found);
        return 0;
}
