/* SPDX-License-Identifier: MIT */
/* The words of a policy: names of enum values, and the names that are protected by default. */
#include <string.h>

#include "policy/policy_parts.h"

static const char *const boxes[] = {
        [POLICY_BOX_AUTO] = "auto",
        [POLICY_BOX_NAMESPACES] = "namespaces",
        [POLICY_BOX_LANDLOCK] = "landlock",
};

static const char *const networks[] = {
        [POLICY_NETWORK_NONE] = "none",
        [POLICY_NETWORK_LOOPBACK] = "loopback",
        [POLICY_NETWORK_HOST] = "host",
};

static const char *const refusals[] = {
        [POLICY_REFUSE_ERRNO] = "errno",
        [POLICY_REFUSE_KILL] = "kill",
};

static const char *const guarantees[] = {
        [GUARANTEE_TREE_KILL] = "tree-kill",
        [GUARANTEE_FILES] = "files",
        [GUARANTEE_NETWORK] = "network",
        [GUARANTEE_SYSCALLS] = "syscalls",
        [GUARANTEE_PRIVILEGES] = "privileges",
        [GUARANTEE_ENVIRONMENT] = "environment",
        [GUARANTEE_MEMORY] = "memory",
        [GUARANTEE_PIDS] = "pids",
        [GUARANTEE_CPU] = "cpu",
        [GUARANTEE_LANDLOCK] = "landlock",
        [GUARANTEE_CGROUP] = "cgroup",
};
_Static_assert(ARRAY_SIZE(guarantees) == GUARANTEE_MAX_, "every guarantee has a name");

#define WORDS_INIT(table)                                                                          \
        {                                                                                          \
                (table), ARRAY_SIZE(table), sizeof((table)[0])                                     \
        }
const struct json_words policy_box_words = WORDS_INIT(boxes);
const struct json_words policy_network_words = WORDS_INIT(networks);
const struct json_words policy_refusal_words = WORDS_INIT(refusals);
const struct json_words policy_guarantee_words = WORDS_INIT(guarantees);

const char *policy_network_str(enum policy_network network)
{
        return (size_t)network < ARRAY_SIZE(networks) ? networks[network] : NULL;
}

const char *guarantee_str(enum guarantee guarantee)
{
        return (size_t)guarantee < ARRAY_SIZE(guarantees) ? guarantees[guarantee] : NULL;
}

/*
 * The test for this list: something on the host executes what the file says although nobody asked
 * for the project to be built or run: by entering the directory, opening it, asking for its status,
 * committing, or logging in. Makefile, package.json and their like are the work itself and stay
 * writable; so does .gitattributes, which can only name filters that a configuration defines.
 */
const char *const policy_protect_default[] = {
        /* git: hooks; and configuration, which names programs (core.fsmonitor, core.pager,
         * filters). commondir and the worktrees' copies of it say where git finds both; each
         * submodule keeps its own pair below modules. */
        ".git/hooks",
        ".git/config",
        ".git/config.worktree",
        ".git/commondir",
        ".git/info/attributes",
        ".git/modules",
        ".git/worktrees",
        ".gitconfig",
        /* In a repository that is made below, git also runs what its configuration names, and asks
         * for its status from above; and a directory with a HEAD is one itself. */
        "**/.git",
        "HEAD",
        ".config/git",
        ".hg/hgrc",
        /* What the hooks in use read, at every commit. */
        ".githooks",
        ".husky",
        ".pre-commit-config.yaml",
        ".lefthook.yml",
        "lefthook.yml",
        ".overcommit.yml",
        /* Editors: tasks, interpreters, language servers and debuggers to start. */
        ".vscode",
        ".idea",
        ".zed",
        ".devcontainer",
        ".devcontainer.json",
        ".exrc",
        ".vimrc",
        ".nvimrc",
        ".nvim.lua",
        ".dir-locals.el",
        /* Sourced when a shell, an interpreter or a debugger is started in the directory. */
        ".envrc",
        ".Rprofile",
        ".Renviron",
        ".irbrc",
        ".pdbrc",
        ".ghci",
        ".octaverc",
        ".gdbinit",
        ".lldbinit",
        /* Agents: servers to start, hooks to run, permissions to take as given. */
        ".mcp.json",
        ".claude",
        ".codex",
        ".cursor",
        ".gemini",
        ".windsurf",
        ".opencode",
        ".aider.conf.yml",
        /* A workspace that is a home directory: shells, sessions, keys, services. */
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".bash_aliases",
        ".profile",
        ".zshrc",
        ".zshenv",
        ".zprofile",
        ".zlogin",
        ".zlogout",
        ".kshrc",
        ".cshrc",
        ".tcshrc",
        ".login",
        ".inputrc",
        ".xprofile",
        ".xinitrc",
        ".xsession",
        ".xsessionrc",
        ".ssh",
        ".config/fish",
        ".config/autostart",
        ".config/environment.d",
        ".config/systemd",
        ".local/share/systemd",
        NULL,
};

const char *policy_anywhere(const char *name)
{
        size_t n = strlen(POLICY_ANYWHERE);

        return strncmp(name, POLICY_ANYWHERE, n) == 0 ? name + n : NULL;
}
