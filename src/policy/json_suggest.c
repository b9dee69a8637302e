/* SPDX-License-Identifier: MIT */
/* "Did you mean": the known word that is nearest to one that is not. */
#include <string.h>

#include "policy/json_read.h"

/*
 * The keys of our documents, the object they belong in, and what other tools or a guess may call
 * them. Objects that are not listed (a path rule, say) are served from their own keys alone.
 */
static const struct spelling {
        const char *key, *section, *others;
} spellings[] = {
        { "box", "", "backend sandbox" },
        { "system", "", "base rootfs" },
        { "files", "", "file paths filesystem fs mounts binds" },
        { "network", "", "net networking" },
        { "environment", "", "env environ variables vars" },
        { "limits", "", "limit rlimits resources" },
        { "syscalls", "", "syscall seccomp" },
        { "require", "", "required requires guarantees" },
        { "best_effort", "", "best-effort" },
        { "read", "files", "ro readonly read_only read-only allow_read" },
        { "write", "files", "rw writable readwrite read_write allow_write" },
        { "workspace", "files", "workdir directory project" },
        { "hide", "files", "hidden mask deny_read" },
        { "tmpfs", "files", "tmp scratch" },
        { "protect", "files", "protected" },
        { "hold", "files", "held keep" },
        { "pass", "environment", "inherit keep passthrough pass_through" },
        { "set", "environment", "values" },
        { "wall", "limits", "timeout time wall_time walltime deadline seconds" },
        { "cpu", "limits", "cpu_time" },
        { "cpus", "limits", "cpu_quota cores cpu_max processors" },
        { "memory", "limits", "mem ram rss max_memory memory_limit" },
        { "processes", "limits", "pids nproc procs threads max_processes" },
        { "file_size", "limits", "fsize filesize max_file_size" },
        { "open_files", "limits", "nofile fds descriptors files_open" },
        { "tmp_size", "limits", "tmpsize tmpfs_size shm_size" },
        { "output", "limits", "max_output output_size" },
        { "capture", "limits", "max_capture capture_size" },
        { "allow", "syscalls", "allowed whitelist allowlist" },
        { "deny", "syscalls", "denied block blacklist denylist" },
        { "on_denied", "syscalls", "action default_action on_deny" },
        { "argv", "", "args arguments command cmd" },
        { "cwd", "", "workdir working_directory" },
};

/* Any word in a list that is divided by spaces. */
static bool one_is_nearer(const char *given, const char *list, int *best)
{
        bool nearer = false;

        while (*list) {
                size_t length = strcspn(list, " ");

                nearer |= word_is_nearer(given, list, length, best);
                list += length;
                list += strspn(list, " ");
        }
        return nearer;
}

const char *json_nearest(const char *word, struct json_words words)
{
        const char *nearest = NULL;
        int best = WORD_FAR;

        for (size_t i = 0; i < words.count; i++) {
                const char *candidate = json_word(&words, i);

                if (word_is_nearer(word, candidate, strlen(candidate), &best))
                        nearest = candidate;
        }
        return nearest;
}

static bool has_word(struct json_words words, const char *word)
{
        for (size_t i = 0; i < words.count; i++)
                if (strcmp(json_word(&words, i), word) == 0)
                        return true;
        return false;
}

/* Among the spellings whose key is one of `keys` (if `here`) or any. */
static const struct spelling *nearest_spelling(const char *given, struct json_words keys, bool here)
{
        const struct spelling *nearest = NULL;
        int best = WORD_FAR;

        for (size_t i = 0; i < ARRAY_SIZE(spellings); i++) {
                const struct spelling *s = &spellings[i];

                if (here && !has_word(keys, s->key))
                        continue;
                if (word_is_nearer(given, s->key, strlen(s->key), &best) ||
                    one_is_nearer(given, s->others, &best))
                        nearest = s;
        }
        return nearest;
}

bool json_asks_for_no_box(const char *key)
{
        static const char *const words[] = { "mode",      "sandbox_mode",   "elevated", "elevate",
                                             "unboxed",   "elevated_tools", "no_box",   "backends",
                                             "nosandbox", "rules" };

        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (strcmp(words[i], key) == 0)
                        return true;
        return false;
}

int json_refuse_key(const struct json_place *at, const char *key, struct json_words keys,
                    cbx_error *error)
{
        struct json_place place = { .parent = at, .key = key };
        const char *near = json_nearest(key, keys);
        const struct spelling *other;

        if (json_asks_for_no_box(key))
                return json_refuse(&place, error, "unknown key \"%.64s\"", key);
        if (!near && (other = nearest_spelling(key, keys, true)))
                near = other->key;
        if (near)
                return json_refuse(&place, error, "unknown key \"%.64s\"; did you mean \"%s\"?",
                                   key, near);
        other = nearest_spelling(key, keys, false);
        if (other && other->section[0] != '\0')
                return json_refuse(&place, error, "unknown key \"%.64s\"; did you mean \"%s.%s\"?",
                                   key, other->section, other->key);
        return json_refuse(&place, error, "unknown key \"%.64s\"", key);
}
