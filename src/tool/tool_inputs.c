/* SPDX-License-Identifier: MIT */
/*
 * Own inputs of a toolbox: a manifest brings a policy of its own, and the files that it names run
 * under that. Whoever may write one of them has the rights of that tool, or any that he likes. So a
 * tool is refused where it could write what it or another one is made of.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "policy/inputs.h"
#include "policy/pins.h"
#include "tool/tool.h"

int tool_add_input(struct tool *tool, const char *path)
{
        if (!tool->inputs && !(tool->inputs = list_new()))
                return -ENOMEM;
        return list_take(&tool->inputs, policy_canonical("/", path));
}

int tool_add_ways(char ***list, char *const *paths)
{
        int r = 0;

        if (!*list && !(*list = list_new()))
                return -ENOMEM;
        for (; r == 0 && *paths; paths++) {
                _cleanup_list_ char **links = NULL;
                char *canonical = NULL;

                if (policy_follow("/", *paths, &canonical, &links) < 0)
                        continue; /* it leads nowhere */
                for (char **link = links; r == 0 && link && *link; link++)
                        r = list_add(list, *link);
                if (r == 0)
                        r = list_take(list, canonical);
                else
                        free(canonical);
        }
        return r;
}

int tool_refuse_input(const struct tool *tool, const struct inputs_mounts *mounts, const char *what,
                      const char *path, const char *where, cbx_error *error)
{
        const cbx_policy *policies[] = { tool->policy, tool->ask.policy };
        char whose[160];
        struct inputs_item item = { .what = what,
                                    .path = path,
                                    .whose = whose,
                                    .harm = "they could give themselves a tool with any policy" };
        int r = 0;

        snprintf(whose, sizeof(whose), "calls of the tool \"%s\"", tool->name);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(policies); i++)
                if (policies[i])
                        r = inputs_refuse(policies[i], mounts, &item, where, error);
        return r;
}

static int refuse_links(const struct tool *tool, const struct tool *writer,
                        const struct inputs_mounts *mounts, cbx_error *error)
{
        const cbx_policy *policies[] = { tool->policy, tool->ask.policy },
                         *writers[] = { writer->policy, writer->ask.policy };
        char whose[160], where[sizeof(error->where)];
        int r = 0;

        snprintf(whose, sizeof(whose), "calls of the tool \"%s\"", writer->name);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(policies) * ARRAY_SIZE(writers); i++)
                if (policies[i / 2] && writers[i % 2])
                        r = inputs_refuse_links(policies[i / 2], writers[i % 2], whose, mounts,
                                                error);
        if (r < 0 && error) {
                snprintf(where, sizeof(where), "policy.%.100s", error->where);
                memcpy(error->where, where, sizeof(where));
        }
        return r;
}

/* Who may write what a tool with the same policy finds along PATH gains nothing by that: it is
 * where a project's own programs are. */
static bool have_same_rights(const struct tool *tool, const struct tool *writer)
{
        return tool->base && tool->base == writer->base && !tool->ask.policy && !writer->ask.policy;
}

static int refuse_inputs(const struct tool *tool, const struct tool *writer,
                         const struct inputs_mounts *mounts, cbx_error *error)
{
        const cbx_policy *policies[] = { writer->policy, writer->ask.policy };
        char what[192], whose[160];
        struct inputs_item item = { .what = what,
                                    .whose = whose,
                                    .harm = "they could give themselves a tool with any policy" };
        int r = 0;

        snprintf(what, sizeof(what), "a file of the tool \"%s\",", tool->name);
        snprintf(whose, sizeof(whose), "calls of the tool \"%s\"", writer->name);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(policies); i++) {
                if (policies[i] && tool->inputs)
                        r = inputs_refuse_places(policies[i], mounts, &item, tool->inputs, "policy",
                                                 error);
                if (r == 0 && policies[i] && tool->found && !have_same_rights(tool, writer))
                        r = inputs_refuse_places(policies[i], mounts, &item, tool->found, "policy",
                                                 error);
        }
        return r;
}

int tool_refuse_pair(const struct tool *tool, const struct tool *other,
                     const struct inputs_mounts *mounts, cbx_error *error)
{
        int r = refuse_inputs(tool, other, mounts, error);

        if (r == 0)
                r = refuse_links(tool, other, mounts, error);
        if (r == 0 && tool != other)
                r = refuse_inputs(other, tool, mounts, error);
        if (r == 0 && tool != other)
                r = refuse_links(other, tool, mounts, error);
        return r;
}

/* What it is, where it is and what is in it are all asked of one descriptor: between two looks at a
 * name it may be another file. A pipe is not waited for. */
int tool_read_input(const char *path, size_t most, char **ret_text, size_t *ret_length,
                    char **ret_real)
{
        _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        char link[64], real[PATH_MAX];
        _cleanup_free_ char *text = NULL, *place = NULL;
        struct stat before, after;
        ssize_t n;
        int r;

        if (fd < 0 || fstat(fd, &before) < 0)
                return errno == ENXIO ? -EINVAL : -errno;
        if (!S_ISREG(before.st_mode))
                return -EINVAL;
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, real, sizeof(real) - 1);
        if (n <= 0)
                return -errno;
        real[n] = '\0';
        place = strdup(real);
        r = place ? fd_read(fd, most, &text, ret_length) : -ENOMEM;
        if (r == 0 && fstat(fd, &after) < 0)
                r = -errno;
        if (r == 0 &&
            (before.st_size != after.st_size || before.st_mtim.tv_sec != after.st_mtim.tv_sec ||
             before.st_mtim.tv_nsec != after.st_mtim.tv_nsec))
                r = -EAGAIN;
        if (r < 0)
                return r;
        *ret_text = TAKE_PTR(text);
        *ret_real = TAKE_PTR(place);
        return 0;
}
