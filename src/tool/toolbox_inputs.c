/* SPDX-License-Identifier: MIT */
/*
 * What no tool of a toolbox may write: the folders that it follows, where a file that comes to be
 * is a tool with a policy of its own, and the files that its tools are made of. Each new tool is
 * asked about all that is there, and each new folder all that may write.
 */
#include <stdio.h>
#include <string.h>

#include "policy/inputs.h"
#include "policy/pins.h"
#include "tool/toolbox.h"

int toolbox_hold(cbx_toolbox *toolbox, const char *path, bool hidden)
{
        char ***list = hidden ? &toolbox->hide : &toolbox->hold;
        char here[4096];

        if (!getcwd(here, sizeof(here)))
                return -errno;
        if (!*list && !(*list = list_new()))
                return -ENOMEM;
        return list_take(list, policy_canonical(here, path));
}

static int refuse_folder(const struct tool *tool, const struct inputs_mounts *mounts,
                         const struct toolbox_folder *folder, cbx_error *error)
{
        int r = tool_refuse_input(tool, mounts, "the folder of manifests", folder->path, "policy",
                                  error);

        if (r == 0)
                r = tool_refuse_input(tool, mounts, "the folder of policies", folder->policies,
                                      "policy", error);
        return r;
}

int toolbox_admit(const cbx_toolbox *toolbox, const struct tool *tool, cbx_error *error)
{
        struct inputs_mounts *mounts = NULL;
        const struct toolbox_folder *folder;
        int r;

        if (inputs_mounts_read(&mounts) == -ENOMEM)
                return error_oom(error);
        r = 0;
        TAILQ_FOREACH(folder, &toolbox->folders, link)
        {
                if (r == 0)
                        r = refuse_folder(tool, mounts, folder, error);
        }
        if (r == 0)
                r = tool_refuse_pair(tool, tool, mounts, error);
        for (size_t i = 0; r == 0 && i < toolbox->n_tools; i++)
                if (strcmp(toolbox->tools[i]->name, tool->name) != 0)
                        r = tool_refuse_pair(tool, toolbox->tools[i], mounts, error);
        inputs_mounts_free(mounts);
        return r;
}

int toolbox_follow_tool(const cbx_toolbox *toolbox, struct tool *tool)
{
        char what[192];
        int r = 0;

        tool->policy->group = toolbox;
        if (tool->ask.policy)
                tool->ask.policy->group = toolbox;
        snprintf(what, sizeof(what), "a file of the tool \"%s\",", tool->name);
        for (char **path = tool->inputs; r == 0 && path && *path; path++)
                r = inputs_follow(tool, toolbox, what, *path);
        for (char **path = tool->found; r == 0 && path && *path; path++)
                r = inputs_follow(tool, toolbox, what, *path);
        return r;
}

int toolbox_admit_folder(const cbx_toolbox *toolbox, const char *path, cbx_error *error)
{
        struct inputs_item item = { .what = "the folder of manifests",
                                    .path = path,
                                    .whose = "boxes of this policy",
                                    .harm = "they could give themselves a tool with any policy" };
        struct inputs_mounts *mounts = NULL;
        int r;

        if (inputs_mounts_read(&mounts) == -ENOMEM)
                return error_oom(error);
        r = inputs_refuse(toolbox->policy, mounts, &item, "directory", error);
        for (size_t i = 0; r == 0 && i < toolbox->n_tools; i++)
                r = tool_refuse_input(toolbox->tools[i], mounts, item.what, path, "directory",
                                      error);
        inputs_mounts_free(mounts);
        return r;
}
