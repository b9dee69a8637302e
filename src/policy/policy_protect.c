/* SPDX-License-Identifier: MIT */
/* The names that are protected in a workspace by default. */
#include <stddef.h>

#include "policy/policy.h"

/*
 * The test for this list: something on the host executes what the file says although nobody asked
 * for the project to be built or run: by entering the directory, opening it, asking for its status,
 * committing, or logging in. Makefile, package.json, .github and their like are the work itself and
 * stay writable, and so do configurations of linters and compilers, which an editor may run, such
 * as eslint.config.js and .cargo/config.toml: opening the project runs its build scripts as well.
 * So does .gitattributes, which can only name filters that a configuration defines. Work of every
 * day are a .venv, which an editor may ask for its version, a .env, and a rebase, whose list of
 * steps can have commands in it: they stay writable too, and security.md says so.
 */
/* clang-format off */
const char *const policy_protect_default[] = {
        /* git: hooks; and configuration, which names programs (core.fsmonitor, core.pager,
         * filters). commondir and the worktrees' copies of it say where git finds both; each
         * submodule keeps its own pair below modules. */
        ".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir",
        ".git/info/attributes", ".git/modules", ".git/worktrees", ".gitconfig",
        /* In a repository that is made below, git also runs what its configuration names, and
         * asks for its status from above; and a directory with a HEAD is one itself
         * (plan_names.c). */
        "**/.git", "HEAD", "**/HEAD",
        /* The same for others: hooks, extensions, and where they find both. */
        "**/.hg", ".hg/hgrc", ".hg/hgrc-not-shared", ".hg/requires", ".hg/sharedpath", "**/.jj",
        ".jj/repo/config.toml", "**/.sl", ".sl/config", ".sl/requires", ".sl/sharedpath",
        "**/.bzr", ".bzr/branch/branch.conf", ".bzr/branch/location", "**/_darcs",
        "_darcs/prefs/defaults", "**/.pijul", ".pijul/config", ".hgrc",
        /* What the hooks in use read, at every commit. */
        ".githooks", ".husky", ".huskyrc", ".huskyrc.js", ".huskyrc.json", ".huskyrc.yaml",
        ".huskyrc.yml", "husky.config.js", ".lintstagedrc", ".lintstagedrc.js",
        ".lintstagedrc.cjs", ".lintstagedrc.mjs", ".lintstagedrc.ts", ".lintstagedrc.json",
        ".lintstagedrc.yaml", ".lintstagedrc.yml", "lint-staged.config.js",
        "lint-staged.config.cjs", "lint-staged.config.mjs", "lint-staged.config.ts",
        ".pre-commit-config.yaml", ".pre-commit-config.yml", "prek.toml", "lefthook.yml",
        "lefthook.yaml", "lefthook.toml", "lefthook.json", ".lefthook.yml", ".lefthook.yaml",
        ".lefthook.toml", ".lefthook.json", "lefthook-local.yml", "lefthook-local.yaml",
        "lefthook-local.toml", "lefthook-local.json", ".lefthook-local.yml",
        ".lefthook-local.yaml", ".lefthook-local.toml", ".lefthook-local.json", ".overcommit.yml",
        /* Editors: tasks, interpreters, language servers and debuggers to start. */
        ".vscode", ".vs", ".idea", ".fleet", ".zed", ".nova", ".helix", ".devcontainer",
        ".devcontainer.json", ".exrc", ".vimrc", ".nvimrc", ".nvim.lua", ".lazy.lua", ".vim",
        ".dir-locals.el", ".dir-locals-2.el",
        /* Sourced when the directory is entered. */
        ".envrc", ".autoenv", ".autoenv.zsh", ".autoenv_leave.zsh", ".rvmrc", "mise.toml",
        "mise.local.toml", ".mise.toml", ".mise.local.toml", ".mise",
        /* Run when an interpreter, a debugger or a notebook is started there. */
        ".Rprofile", ".Renviron", ".irbrc", ".pryrc", ".rdbgrc", ".byebugrc", ".pdbrc",
        ".pdbrc.py", ".ghci", ".octaverc", "startup.m", ".gdbinit", ".lldbinit", ".perldb",
        ".iex.exs", ".erlang", ".ocamlinit", "jupyter_config.py", "jupyter_lab_config.py",
        "jupyter_notebook_config.py", "jupyter_server_config.py",
        /* Agents: servers to start, hooks to run, permissions to take as given. */
        ".mcp.json", ".claude", ".codex", ".cursor", ".gemini", ".windsurf", ".opencode",
        "opencode.json", "opencode.jsonc", ".crush", ".crush.json", "crush.json", ".kiro", ".roo",
        ".amazonq", ".qwen", ".junie", ".continue", ".factory", ".kilocode", ".trae", ".cline",
        ".clinerules", ".augment", ".amp", ".goose", ".agents", ".aider.conf.yml", ".openhands",
        /* A workspace that is a home directory: shells, sessions, keys, services, and what is
         * run by name or at the start of a program. */
        ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases",
        ".bash_completion", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout",
        ".oh-my-zsh", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".xprofile", ".xinitrc",
        ".xsession", ".xsessionrc", ".pam_environment", ".ssh", ".gnupg", ".tmux.conf",
        ".screenrc", ".gvimrc", ".emacs", ".emacs.d", ".ipython", ".forward", ".local/bin",
        ".local/lib", ".local/share/systemd", ".config/git", ".config/hg", ".config/jj",
        ".config/mise", ".config/mise.toml", ".config/zsh", ".config/fish",
        ".config/starship.toml", ".config/direnv", ".config/nvim", ".config/emacs",
        ".config/helix", ".config/tmux", ".config/autostart", ".config/plasma-workspace",
        ".config/environment.d", ".config/systemd",
        NULL,
};
/* clang-format on */
