/* SPDX-License-Identifier: MIT */
#include "warden/denials.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "policy/syscalls.h"

#define ALIKE_MAX 3 /* of one directory or host are listed one by one */

#define HELD                                                                                       \
        "held: by --hold or --hide (\"hold\" or \"hide\" in the policy), by a read-only rule, or " \
        "since callbox itself goes by it"

/* ---- One denial ---- */

struct denial {
        const char *kind;
        char what[BOX_TRACE_TEXT];
        int error;
        uint64_t count;
        char option[BOX_TRACE_TEXT + 256];
        json_t *policy;   /* the part of a policy that allows it; NULL: none does */
        const char *note; /* why there is none; or NULL */
        size_t stem; /* of what: the directory or host, where others of it are alike; 0: none */
};

struct denials {
        const struct plan *plan;
        struct denial list[BOX_DENIALS_MAX + BOX_TRACES_MAX];
        size_t n;
};

static void denials_clear(struct denials *denials)
{
        for (size_t i = 0; i < denials->n; i++)
                json_decref(denials->list[i].policy);
}

/* What would allow it; takes the part of a policy. */
static void allow_by(struct denial *denial, json_t *policy, const char *format, ...)
        PRINTF_LIKE(3, 4);
static void allow_by(struct denial *denial, json_t *policy, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        vsnprintf(denial->option, sizeof(denial->option), format, args);
        va_end(args);
        json_decref(denial->policy);
        denial->policy = policy;
}

static void allow_by_nothing(struct denial *denial, const char *note)
{
        allow_by(denial, NULL, "%s", "");
        denial->note = note;
}

/* Would writing there be writing to the system itself, or to all that the host has of a kind? */
static bool is_systems(const char *path)
{
        static const char *const trees[] = { "/usr", "/etc", "/bin", "/sbin", "/boot" };
        static const char *const exact[] = { "/home", "/root", "/var", "/run", "/opt", "/srv" };

        for (size_t i = 0; i < ARRAY_SIZE(trees); i++) {
                size_t n = strlen(trees[i]);

                if (strncmp(path, trees[i], n) == 0 && strchr("/", path[n]))
                        return true;
        }
        for (size_t i = 0; i < ARRAY_SIZE(exact); i++)
                if (strcmp(path, exact[i]) == 0)
                        return true;
        return strncmp(path, "/lib", 4) == 0; /* and lib32, lib64, libx32 */
}

/* "--read PATH" and {"files": {"read": [PATH]}}; nothing where a policy with that is refused, or
 * gives away more than anyone should for one name. */
static void allow_path(struct denial *denial, bool write, const char *path)
{
        char shown[BOX_TRACE_TEXT];

        if (path[0] == '/' && policy_box_path_refusal(path)) {
                allow_by_nothing(denial, path[1] ? "no policy opens /proc, /dev or /sys"
                                                 : "no policy opens the root directory itself");
                return;
        }
        if (write && is_systems(path)) {
                allow_by_nothing(denial, "it is the host's system: have the program write to its "
                                         "workspace or to /tmp");
                return;
        }
        snprintf(shown, sizeof(shown), "%s", path);
        text_make_showable(shown); /* it comes out of the box */
        allow_by(denial, json_pack("{s:{s:[s]}}", "files", write ? "write" : "read", shown),
                 "--%s %s", write ? "write" : "read", shown);
}

/* What there is to know about the option, in brackets. */
static void add_remark(struct denial *denial, const char *remark)
{
        size_t n = strlen(denial->option);

        if (n > 0)
                snprintf(denial->option + n, sizeof(denial->option) - n, " (%s)", remark);
}

/* ---- System calls ---- */

/* Calls that fail in a box even when the filter lets them through. */
static bool is_hopeless(const char *name)
{
        static const char *const names[] = { "unshare",    "clone",  "setns",  "mount", "umount2",
                                             "pivot_root", "chroot", "reboot", "swapon" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(name, names[i]) == 0)
                        return true;
        return false;
}

static bool is_listed(const char *name, char *const *list)
{
        for (; list && *list; list++)
                if (strcmp(*list, name) == 0)
                        return true;
        return false;
}

/* A policy denies it by name: what allows it is the list without it. */
static void explain_denied(const cbx_policy *policy, struct denial *denial)
{
        json_t *names = json_array();

        for (char **name = policy->syscalls_deny; names && *name; name++)
                if (strcmp(*name, denial->what) != 0 &&
                    json_array_append_new(names, json_string(*name)) < 0) {
                        json_decref(names);
                        names = NULL;
                }
        allow_by(denial, names ? json_pack("{s:{s:o}}", "syscalls", "deny", names) : NULL,
                 "no --deny-syscall %s (the policy itself denies it)", denial->what);
}

static void explain_syscall(const struct plan *plan, struct denial *denial)
{
        const char *name = denial->what, *note;
        enum syscalls_effect effect = syscalls_effect(plan->calls, name, &note);

        if (is_listed(name, plan->policy->syscalls_deny)) {
                explain_denied(plan->policy, denial);
        } else if (is_hopeless(name)) {
                denial->note = "no box has the privilege that it needs";
        } else if (effect == SYSCALLS_NEVER && strcmp(name, "socket") == 0) {
                allow_by(denial, json_pack("{s:s}", "network", "host"), "--net host");
        } else if (effect == SYSCALLS_OPENED && !is_listed(name, plan->policy->syscalls_allow)) {
                allow_by(denial, json_pack("{s:{s:[s]}}", "syscalls", "allow", name),
                         "--allow-syscall %s (%s)", name, note);
        } else {
                denial->note = *note ? note : "it is allowed, but not with these arguments";
        }
}

static void add_syscall(struct denials *denials, const struct box_denial *found)
{
        struct denial *denial = &denials->list[denials->n++];
        const char *name = denial->what;
        bool known;

        *denial =
                (struct denial){ .kind = "syscall", .error = found->error, .count = found->count };
        known = syscalls_name(found->arch, found->number, denial->what, sizeof(denial->what));
        if (strchr(name, ':'))
                denial->note = "no box makes calls by an entry other than the 64-bit one";
        else if (!known)
                denial->note =
                        "the library that makes the filter (libseccomp) does not know it, so "
                        "no policy can name it";
        else
                explain_syscall(denials->plan, denial);
}

/* ---- Paths ---- */

/*
 * Only what the host really has is worth a word: programs look for many files in vain. But whoever
 * chooses what a box runs must not learn from a report what the host has, and a path that comes out
 * of a box may lead to a file system that does not answer: so the host is looked at for its user
 * alone, who ran the command. All others are told of everything that was refused.
 */
static bool on_host(const struct plan *plan, const char *path)
{
        struct stat st;

        return !plan->looks ||
               fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0;
}

/* A program that was looked for along the PATH of the box. */
static bool is_search(const struct plan *plan, const char *path)
{
        const char *slash = strrchr(path, '/'), *at = NULL;
        size_t length = slash ? (size_t)(slash - path) : 0;

        for (char **variable = plan->environment; variable && *variable; variable++)
                if (strncmp(*variable, "PATH=", 5) == 0)
                        at = *variable + 5;
        while (at && *at) {
                size_t n = strcspn(at, ":");

                if (n == length && n > 0 && strncmp(at, path, n) == 0)
                        return true;
                at += n + (at[n] == ':');
        }
        return false;
}

/* What an interpreter of Python looks for while it starts and imports: its own environment and
 * library beside it, and what it has compiled before. */
static bool is_pythons(const char *path)
{
        static const char cache[] = "/__pycache__";
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        const char *at = strstr(path, cache);
        size_t digits = strncmp(name, "python", 6) == 0 ? strspn(name + 6, "0123456789") : 0;

        return (at && strchr("/", at[strlen(cache)])) || strcmp(name, "pyvenv.cfg") == 0 ||
               strcmp(name, "pybuilddir.txt") == 0 ||
               (digits > 0 && strcmp(name + 6 + digits, ".zip") == 0);
}

/* What programs look for wherever they run, and seldom find: where the host is not asked, told to
 * nobody. */
static bool is_routine(const struct plan *plan, const struct box_trace *trace)
{
        static const char *const files[] = { "/etc/ld.so.preload", "/etc/selinux/config",
                                             "/etc/gitconfig" };

        if (plan->looks || (trace->kind != BOX_TRACE_FILE && trace->kind != BOX_TRACE_LOST) ||
            trace->error != ENOENT)
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                if (strcmp(trace->text, files[i]) == 0)
                        return true;
        return is_search(plan, trace->text) || is_pythons(trace->text) ||
               strncmp(trace->text, PLAN_HOME "/.", strlen(PLAN_HOME "/.")) == 0;
}

/* The directory of a path, or the host of an address: with what stands before the name or port. */
static size_t stem_of(const char *text)
{
        const char *end = strrchr(text, text[0] == '/' ? '/' : ':');

        return end ? (size_t)(end + 1 - text) : 0;
}

static void directory_of(const char *path, char *room, size_t size)
{
        size_t n = stem_of(path);

        snprintf(room, size, "%.*s", (int)(n > 1 ? n - 1 : n), path);
}

/* Is it in what is mounted read-only within what is writable: what is held, what a tool is made of,
 * a read-only rule? One that allows writing would not help. A warden has the guards alone. */
static bool is_mounted_held(const struct plan *plan, const char *path)
{
        for (size_t i = 0; i < plan->n_guards; i++)
                if (!*plan->guards[i].name && !plan->guards[i].hides &&
                    plan_below(path, plan->guards[i].path))
                        return true;
        return false;
}

/* Returns false where there is nothing to say. */
static bool explain_path(const struct plan *plan, struct denial *denial,
                         const struct box_trace *trace)
{
        bool write = trace->kind != BOX_TRACE_FILE && trace->kind != BOX_TRACE_LOST;
        char directory[BOX_TRACE_TEXT];
        bool known;
        bool there = on_host(plan, trace->text);

        if (is_routine(plan, trace))
                return false;
        if (write && is_mounted_held(plan, trace->text)) {
                allow_by_nothing(denial, HELD);
                return true;
        }
        /* What is to be made is its directory's; whether it was there is not told. */
        known = plan->looks || trace->kind != BOX_TRACE_WRITE;
        directory_of(trace->text, directory, sizeof(directory));
        if (trace->kind == BOX_TRACE_REMOVE && there) { /* a name is its directory's */
                allow_path(denial, write, directory);
        } else if (trace->text[strlen(trace->text) - 1] ==
                   '*') { /* many that are alike (box/notify.c) */
                if (!on_host(plan, directory))
                        return false;
                allow_path(denial, write, directory);
        } else if (trace->kind != BOX_TRACE_WRITE && !there) {
                return false;
        } else {
                allow_path(denial, write, there && known ? trace->text : directory);
        }
        denial->stem = trace->kind == BOX_TRACE_FILE ? 0 : stem_of(trace->text);
        return true;
}

/* Root can read it, and the box that root made is somebody else. */
static void explain_mode(struct denial *denial, const char *path)
{
        allow_path(denial, false, path);
        add_remark(denial, "its mode keeps the box's user out; or chmod o+rX");
}

/* As sizes are written in a policy. */
static void double_of(uint64_t size, char *text, size_t room)
{
        if (size % MIB == 0 && size > 0)
                snprintf(text, room, "%lluM", (unsigned long long)(2 * (size / MIB)));
        else
                snprintf(text, room, "%llu", (unsigned long long)(2 * size));
}

/* A place in the box has no room left: by which limit? */
static void explain_full(const struct plan *plan, struct denial *denial, const char *path)
{
        uint64_t size = plan->policy->limits.tmp_size;
        bool own = false;
        char text[32];

        for (size_t i = 0; i < plan->policy->n_paths; i++) {
                const struct policy_path *rule = &plan->policy->paths[i];

                if (rule->access == POLICY_TMPFS && rule->box && strcmp(rule->box, path) == 0) {
                        size = rule->size;
                        own = true;
                }
        }
        double_of(size, text, sizeof(text));
        if (own)
                allow_by(denial,
                         json_pack("{s:{s:[{s:s, s:s}]}}", "files", "tmpfs", "path", path, "size",
                                   text),
                         "--tmpfs %s=%s", path, text);
        else
                allow_by(denial, json_pack("{s:{s:s}}", "limits", "tmp_size", text),
                         "--tmp-size %s", text);
}

/* Something else has met its bound. */
static void explain_limit(const struct plan *plan, struct denial *denial, enum box_trace_kind kind)
{
        char text[32];

        if (kind == BOX_TRACE_PIPES) {
                allow_by_nothing(denial, "the kernel counts the pages of pipes for the user as a "
                                         "whole (fs.pipe-user-pages-soft)");
                return;
        }
        double_of(plan->policy->limits.memory, text, sizeof(text));
        allow_by(denial, json_pack("{s:{s:s}}", "limits", "memory", text), "--memory %s", text);
        denial->note = "it counts for the limit on memory with its whole length";
}

/* ---- Sockets ---- */

/* Programs look for services in vain, as they do for files. */
static bool is_hosts_socket(const struct plan *plan, const char *path)
{
        struct stat st;

        return !plan->looks ||
               (fstatat(AT_FDCWD, path, &st, AT_NO_AUTOMOUNT) == 0 && S_ISSOCK(st.st_mode));
}

/* By the socket itself, and not by its directory: there may be others in that. */
static void explain_socket(struct denial *denial, const char *what, bool own)
{
        if (what[0] == '/') {
                allow_path(denial, true, what);
                add_remark(denial, "a service of the host then does what the program asks it for");
        } else if (strchr(what, ':')) { /* an address, and not a name of the host's network */
                allow_by(denial, json_pack("{s:s}", "network", own ? "loopback" : "host"),
                         "--net %s", own ? "loopback (the box's own) or --net host" : "host");
                denial->stem = stem_of(what);
        } else {
                denial->note = "it is of the host's network, and may be anyone's: use a socket "
                               "with a path";
        }
}

/* ---- Protected names ---- */

/* A file that will take a protected name is kept from being made as well (plan_is_draft). */
static const char *drafted_name(const struct plan *plan, const char *path)
{
        const char *slash = strrchr(path, '/');

        for (size_t i = 0; slash && i < plan->n_guards; i++) {
                const struct plan_guard *guard = &plan->guards[i];
                const char *last = strrchr(guard->name, '/');

                if (*guard->name &&
                    (policy_anywhere(guard->name)
                             ? plan_is_draft(last ? last + 1 : guard->name, slash + 1)
                             : plan_is_draft(guard->path, path)))
                        return guard->name;
        }
        return NULL;
}

/* The name to unprotect for a path: the protected name itself, or what lies above several. NULL
 * where it stands for many that have nothing in common but their directory (box/notify.c). */
static const char *protected_name(const struct plan *plan, const char *path)
{
        const char *anywhere = NULL;

        for (size_t i = 0; i < plan->n_guards; i++) {
                const struct plan_guard *guard = &plan->guards[i];
                size_t length = strlen(guard->path), n = strlen(path);
                size_t lead = length - strlen(guard->name);

                if (!*guard->name || !plan_is_guarded(guard, path))
                        continue; /* no name, but another rule */
                if (!policy_anywhere(guard->name))
                        return n < length && n > lead ? path + lead : guard->name;
                anywhere = guard->name;
        }
        return anywhere;
}

/* Is it kept by another rule than a protected name? */
static bool is_held(const struct plan *plan, const char *path)
{
        for (size_t i = 0; i < plan->n_guards; i++)
                if (!*plan->guards[i].name && plan_is_guarded(&plan->guards[i], path))
                        return true;
        return false;
}

/* A policy has no list of what is not protected: it is the list of what is, without these. */
static json_t *without_name(const struct plan *plan, const char *path, const char *drafted)
{
        json_t *names = json_array();

        for (char **name = plan->policy->protect; names && name && *name; name++) {
                bool meant = drafted && strcmp(drafted, *name) == 0;

                for (size_t i = 0; i < plan->n_guards; i++)
                        meant |= strcmp(plan->guards[i].name, *name) == 0 &&
                                 plan_is_guarded(&plan->guards[i], path);
                if (!meant && json_array_append_new(names, json_string(*name)) < 0) {
                        json_decref(names);
                        return NULL;
                }
        }
        return json_pack("{s:{s:o}}", "files", "protect", names);
}

static void allow_unprotected(struct denial *denial, json_t *policy, const char *name)
{
        allow_by(denial, policy, strchr(name, '*') ? "--unprotect '%s'" : "--unprotect %s", name);
}

/* ---- What the policy hides ---- */

static bool is_of_path(const struct box_trace *trace)
{
        return trace->kind <= BOX_TRACE_MODE ||
               (trace->kind == BOX_TRACE_CONNECT && trace->text[0] == '/');
}

/* It is told by its own name and not by what was looked for in it: what the host has there is not
 * to be known, not even by way of a report. Returns false where it is not hidden. */
static bool add_hidden(struct denials *denials, const struct box_trace *trace)
{
        static const char note[] = "hidden by the policy";
        const struct plan *plan = denials->plan;
        const struct plan_step *step = is_of_path(trace) ? plan_step_for(plan, trace->text) : NULL;
        struct denial new = { .kind = trace->kind == BOX_TRACE_CONNECT ? "connect" : "file",
                              .error = trace->error,
                              .count = trace->count,
                              .note = note };

        /* Without namespaces the box sees for itself what is not there. */
        if (!step || step->kind != PLAN_HIDE || (plan->caged && trace->error == ENOENT))
                return false;
        snprintf(new.what, sizeof(new.what), "%s", step->target);
        text_make_showable(new.what);
        for (size_t i = 0; i < denials->n; i++) {
                struct denial *other = &denials->list[i];

                if (other->note == note && strcmp(other->kind, new.kind) == 0 &&
                    strcmp(other->what, new.what) == 0) {
                        other->count += new.count;
                        return true;
                }
        }
        denials->list[denials->n++] = new;
        return true;
}

/* Was it a directory that is shown, and could not be listed (box/guard_explain.c)? */
static bool is_unlisted(const struct plan *plan, const struct box_trace *trace)
{
        const struct plan_step *step = plan_step_for(plan, trace->text);

        return plan->caged && trace->kind == BOX_TRACE_FILE && trace->error == EACCES && step &&
               step->kind == PLAN_TREE;
}

/* ---- All of them ---- */

static void add_trace(struct denials *denials, const struct box_trace *trace)
{
        struct denial *denial = &denials->list[denials->n];
        const char *what = trace->text, *name;
        bool told = true;

        if (add_hidden(denials, trace))
                return;
        *denial = (struct denial){ .kind = "file", .error = trace->error, .count = trace->count };
        switch (trace->kind) {
        case BOX_TRACE_FILE:
        case BOX_TRACE_LOST:
        case BOX_TRACE_CHANGE:
        case BOX_TRACE_REMOVE:
        case BOX_TRACE_WRITE:
                if (is_unlisted(denials->plan, trace))
                        allow_by_nothing(denial, "a directory in it is hidden by the policy, and "
                                                 "names cannot be kept one by one without "
                                                 "namespaces");
                else
                        told = explain_path(denials->plan, denial, trace);
                break;
        case BOX_TRACE_MODE:
                told = on_host(denials->plan, what);
                explain_mode(denial, what);
                break;
        case BOX_TRACE_FULL:
                denial->kind = "space";
                explain_full(denials->plan, denial, what);
                break;
        case BOX_TRACE_CONNECT:
        case BOX_TRACE_LOOPBACK:
                denial->kind = "connect";
                told = what[0] != '/' || trace->error != ENOENT ||
                       is_hosts_socket(denials->plan, what);
                explain_socket(denial, what, trace->kind == BOX_TRACE_LOOPBACK);
                break;
        case BOX_TRACE_BIND:
        case BOX_TRACE_BIND_LOOPBACK:
                denial->kind = "bind";
                if (trace->error == EACCES)
                        denial->note = "a port below 1024 is for the privileged, anywhere";
                else
                        explain_socket(denial, what, trace->kind == BOX_TRACE_BIND_LOOPBACK);
                break;
        case BOX_TRACE_PROTECTED:
                denial->kind = "protected";
                name = protected_name(denials->plan, what);
                if (name)
                        allow_unprotected(denial, without_name(denials->plan, what, NULL), name);
                else if (is_held(denials->plan, what))
                        allow_by_nothing(denial, HELD);
                else if ((name = drafted_name(denials->plan, what))) {
                        allow_unprotected(denial, without_name(denials->plan, what, name), name);
                        add_remark(denial, "what is made here is a draft of that name");
                } else
                        allow_by_nothing(denial, "these are more protected names than are told");
                denial->stem = stem_of(what);
                break;
        case BOX_TRACE_MEMORY:
        case BOX_TRACE_PIPES:
                denial->kind = "space";
                explain_limit(denials->plan, denial, trace->kind);
                break;
        }
        snprintf(denial->what, sizeof(denial->what), "%s", what);
        text_make_showable(denial->what); /* it comes out of the box */
        text_make_showable(denial->option);
        denials->n += told;
}

static bool are_alike(const struct denial *a, const struct denial *b)
{
        return a->stem > 0 && a->stem == b->stem && a->error == b->error &&
               strcmp(a->kind, b->kind) == 0 && strncmp(a->what, b->what, a->stem) == 0 &&
               a->note == b->note &&
               (strcmp(a->kind, "protected") == 0 /* each name is an option of its own */
                        ? strcmp(a->option, b->option) == 0
                        : strncmp(a->option, b->option, strcspn(a->option, " ") + 1) == 0);
}

/* Make one of many: what would allow it is what would allow all of them. */
static void merge(struct denials *denials, size_t first)
{
        struct denial *denial = &denials->list[first];
        size_t n = first + 1;

        for (size_t i = first + 1; i < denials->n; i++) {
                struct denial *other = &denials->list[i];

                if (!are_alike(denial, other)) {
                        denials->list[n++] = *other;
                        continue;
                }
                denial->count += other->count;
                json_decref(other->policy);
        }
        denials->n = n;
        if (strcmp(denial->kind, "file") == 0 && denial->policy) {
                char directory[BOX_TRACE_TEXT];

                directory_of(denial->what, directory, sizeof(directory));
                allow_path(denial, strncmp(denial->option, "--write", 7) == 0, directory);
        }
        snprintf(denial->what + denial->stem, sizeof(denial->what) - denial->stem, "*");
}

static void merge_alike(struct denials *denials)
{
        for (size_t i = 0; i < denials->n; i++) {
                size_t alike = 0;
                bool many = false;

                for (size_t j = i; j < denials->n; j++)
                        if (are_alike(&denials->list[i], &denials->list[j])) {
                                alike++;
                                many |= strcmp(denials->list[j].what + denials->list[j].stem,
                                               "*") == 0;
                        }
                if (alike > ALIKE_MAX || (many && alike > 1))
                        merge(denials, i);
        }
}

/* A part of a policy as one line, without the braces around it. */
static char *line_of(const json_t *policy)
{
        char *text = policy ? json_dumps(policy, JSON_ENSURE_ASCII) : strdup("{}");
        size_t n = text ? strlen(text) : 0;

        if (!text)
                return NULL;
        memmove(text, text + 1, n - 2);
        text[n - 2] = '\0';
        return text;
}

static int write_one(json_t *array, const struct denial *denial)
{
        const char *name = strerrorname_np(denial->error);
        _cleanup_free_ char *line = line_of(denial->policy);
        json_t *json =
                line ? json_pack("{s:s, s:s, s:s, s:I, s:s, s:s}", "kind", denial->kind, "what",
                                 denial->what, "errno", name ? name : "EPERM", "count",
                                 (json_int_t)denial->count, "allow", denial->option, "policy", line)
                     : NULL;

        if (json && denial->note &&
            json_object_set_new(json, "note", json_string(denial->note)) < 0) {
                json_decref(json);
                return -1;
        }
        return json ? json_array_append_new(array, json) : -1;
}

json_t *denials_of(const struct plan *plan, const struct box_page *page)
{
        uint32_t n_calls = MIN(page->n_denials, BOX_DENIALS_MAX);
        uint32_t n_traces = MIN(atomic_load(&page->n_traces), BOX_TRACES_MAX);
        _cleanup_json_ json_t *array = json_array();
        struct denials *denials;
        int r = 0;

        if (!array || (n_calls == 0 && n_traces == 0))
                return TAKE_PTR(array);
        denials = calloc(1, sizeof(*denials));
        if (!denials)
                return NULL;
        denials->plan = plan;
        for (uint32_t i = 0; i < n_calls; i++)
                add_syscall(denials, &page->denials[i]);
        for (uint32_t i = 0; i < n_traces; i++)
                add_trace(denials, &page->traces[i]);
        merge_alike(denials);
        for (size_t i = 0; r == 0 && i < denials->n; i++)
                r = write_one(array, &denials->list[i]);
        denials_clear(denials);
        free(denials);
        return r == 0 ? TAKE_PTR(array) : NULL;
}
