/* SPDX-License-Identifier: MIT */
#include "warden/program.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "policy/pins.h"
#include "warden/call.h"

/* ---- Where a path of the box lies on the host ---- */

/* What follows `tree` in a path that lies in it; NULL when it does not. */
static const char *rest_in(const char *path, const char *tree)
{
        size_t n = strlen(tree);

        while (n > 0 && tree[n - 1] == '/')
                n--;
        if (strncmp(path, tree, n) != 0 || !strchr("/", path[n]))
                return NULL;
        path += n;
        return path + strspn(path, "/");
}

/* The deepest tree of the policy that shows `path`; `ret_rest` is where in it. */
static bool find_tree(const struct wire_policy *asked, const cbx_policy *policy, const char *path,
                      char tree[PATH_MAX], const char **ret_rest)
{
        const char *deepest = NULL;

        for (size_t i = 0; i < policy->n_paths; i++) {
                const struct policy_path *rule = &policy->paths[i];
                bool relative = rule->host && rule->host[0] != '/';
                _cleanup_free_ char *pinned = NULL;
                char host[PATH_MAX];
                const char *rest;
                int n;

                if (!rule->host || rule->access == POLICY_HIDE)
                        continue;
                n = snprintf(host, sizeof(host), "%s%s%s", relative ? asked->directory : "",
                             relative ? "/" : "", strcmp(rule->host, ".") == 0 ? "" : rule->host);
                rest = n < (int)sizeof(host) ? rest_in(path, rule->box ? rule->box : host) : NULL;
                if (!rest || (deepest && strlen(rest) >= strlen(deepest)))
                        continue;
                pinned = policy_pin_path(policy, asked->directory, rule);
                if (!pinned || strlen(pinned) >= PATH_MAX)
                        continue;
                deepest = rest;
                memcpy(tree, pinned, strlen(pinned) + 1);
        }
        *ret_rest = deepest;
        return deepest;
}

static bool is_of_system(const cbx_policy *policy, const char *path)
{
        static const char *const trees[] = { "/usr", "/bin", "/sbin", "/lib", "/lib64" };

        for (size_t i = 0; policy->system && i < ARRAY_SIZE(trees); i++)
                if (rest_in(path, trees[i]))
                        return true;
        return false;
}

/* Open what a path in a tree leads to. A box may write to the tree, so links that lead out of it
 * are not followed: they could lead to a file system that does not answer. */
static int open_in_tree(const char *tree, const char *rest)
{
        _cleanup_fd_ int directory = policy_open_direct(tree, O_PATH);
        struct open_how how = { .flags = O_PATH | O_CLOEXEC,
                                .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
        int fd;

        if (directory < 0)
                return directory;
        if (!*rest)
                return TAKE_FD(directory);
        fd = (int)syscall(SYS_openat2, directory, rest, &how, sizeof(how));
        if (fd < 0 && errno == EXDEV) { /* then the link itself has to do */
                how.flags |= O_NOFOLLOW;
                fd = (int)syscall(SYS_openat2, directory, rest, &how, sizeof(how));
        }
        return fd < 0 ? -errno : fd;
}

static int open_on_host(const struct wire_policy *asked, const cbx_policy *policy, const char *path)
{
        char tree[PATH_MAX];
        const char *rest;
        int fd;

        if (find_tree(asked, policy, path, tree, &rest))
                return open_in_tree(tree, rest);
        if (!is_of_system(policy, path))
                return -ENOENT; /* nor is it there in the box */
        fd = open(path, O_PATH | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* ---- Looking ---- */

void program_look(const struct wire_policy *asked, const cbx_policy *policy,
                  struct program_files *ret)
{
        size_t n = 0;

        memset(ret, 0, sizeof(*ret));
        for (char **argument = asked->program.argv; *argument && n < PROGRAM_FILES; argument++) {
                _cleanup_fd_ int fd = -1;
                struct stat st;

                if ((*argument)[0] != '/')
                        continue;
                fd = open_on_host(asked, policy, *argument);
                if (fd < 0 || fstat(fd, &st) < 0) {
                        ret->files[n++].inode = (ino_t)(fd < 0 ? -fd : errno);
                        continue;
                }
                ret->files[n].device = st.st_dev;
                ret->files[n].inode = st.st_ino;
                ret->files[n].size = st.st_size;
                ret->files[n].changed = st.st_ctim;
                ret->files[n++].modified = st.st_mtim;
        }
}

bool program_is_same(const struct program_files *a, const struct program_files *b)
{
        for (size_t i = 0; i < PROGRAM_FILES; i++)
                if (a->files[i].device != b->files[i].device ||
                    a->files[i].inode != b->files[i].inode ||
                    a->files[i].size != b->files[i].size ||
                    a->files[i].changed.tv_sec != b->files[i].changed.tv_sec ||
                    a->files[i].changed.tv_nsec != b->files[i].changed.tv_nsec ||
                    a->files[i].modified.tv_sec != b->files[i].modified.tv_sec ||
                    a->files[i].modified.tv_nsec != b->files[i].modified.tv_nsec)
                        return false;
        return true;
}

/* ---- Whether it suits a call ---- */

static bool same_texts(char *const *a, char *const *b)
{
        static char *const none[] = { NULL };

        a = a ? a : none;
        b = b ? b : none;
        for (; *a && *b; a++, b++)
                if (strcmp(*a, *b) != 0)
                        return false;
        return *a == *b;
}

static bool same_text(const char *a, const char *b)
{
        return a == b || (a && b && strcmp(a, b) == 0);
}

bool program_suits(const struct wire_program *program, const cbx_policy *policy,
                   const struct call_spec *spec)
{
        const struct policy_limits *has = &policy->limits, *wants = &spec->limits;

        return program->argv && has->cpu == wants->cpu && has->cpus == wants->cpus &&
               has->memory == wants->memory && has->processes == wants->processes &&
               has->file_size == wants->file_size && has->open_files == wants->open_files &&
               has->tmp_size == wants->tmp_size && program->result == spec->result &&
               same_texts(program->argv, spec->argv) &&
               same_texts(program->environment, spec->environment) &&
               same_text(program->directory, spec->directory);
}
