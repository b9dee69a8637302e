/* SPDX-License-Identifier: MIT */
/* The read-only system that every box sees unless its policy says otherwise. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "policy/plan.h"

/* Directories of programs; on a merged-/usr host most are links into /usr and stay links. */
static const char *const system_trees[] = {
        "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
};

/* What programs need of /etc. No secrets, nothing about the host's users, network or services;
 * what is not on this host is left out. Each costs a mount: the lists are short on purpose. */
static const char *const system_etc[] = {
        "/etc/alternatives",    "/etc/fonts",           "/etc/java-11-openjdk",
        "/etc/java-17-openjdk", "/etc/java-21-openjdk", "/etc/ld.so.cache",
};

/* Of use only where there is a network, its own loopback included. */
static const char *const system_etc_network[] = {
        "/etc/pki", "/etc/protocols", "/etc/services", "/etc/ssl/certs", "/etc/ssl/openssl.cnf",
};

/* Needed only to find other hosts. */
static const char *const system_etc_host[] = { "/etc/gai.conf", "/etc/resolv.conf" };

/* Without namespaces: what programs open because it is there, and fail where they may not. Of
 * no use to anyone who would attack the host. */
static const char *const system_etc_caged[] = {
        "/etc/bash.bashrc", "/etc/debian_version",  "/etc/host.conf",      "/etc/inputrc",
        "/etc/ld.so.conf",  "/etc/ld.so.conf.d",    "/etc/locale.alias",   "/etc/magic",
        "/etc/magic.mime",  "/etc/mailcap",         "/etc/manpath.config", "/etc/mime.types",
        "/etc/networks",    "/etc/nsswitch.conf",   "/etc/perl",           "/etc/profile",
        "/etc/python3",     "/etc/python3.9",       "/etc/python3.10",     "/etc/python3.11",
        "/etc/python3.12",  "/etc/python3.13",      "/etc/python3.14",     "/etc/shells",
        "/etc/ssl/certs",   "/etc/ssl/openssl.cnf", "/etc/terminfo",       "/etc/timezone",
};

/* Files of the box's own, and whether they are of use without a network. */
static const struct {
        const char *target, *text;
        bool network;
} system_files[] = {
        { "/etc/passwd",
          "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
          "box:x:1000:1000:box:" PLAN_HOME ":/bin/sh\n"
          "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
          false },
        { "/etc/group", "root:x:0:\nbox:x:1000:\nnogroup:x:65534:\n", false },
        { "/etc/hosts", "127.0.0.1 localhost box\n::1 localhost\n", true },
        { "/etc/nsswitch.conf",
          "passwd: files\ngroup: files\nhosts: files dns\n"
          "services: files\nprotocols: files\n",
          true },
};

static const char *const system_directories[] = { "/etc", "/run", "/var" };

static int add_program_tree(struct plan *plan, const char *path)
{
        char link[256];
        ssize_t n = readlink(path, link, sizeof(link) - 1);

        if (n > 0) {
                link[n] = '\0';
                return plan_add_step(plan, PLAN_LINK, path, link) ? 0 : -ENOMEM;
        }
        return plan_add_tree(plan, AT_FDCWD, path, path, false, NULL);
}

/* The time zone is a link into the shown system, and stays one. */
static int add_time_zone(struct plan *plan)
{
        static const char path[] = "/etc/localtime";
        char link[256];
        ssize_t n = readlink(path, link, sizeof(link) - 1);

        if (n <= 0)
                return n < 0 && errno != EINVAL
                               ? 0
                               : plan_add_tree(plan, AT_FDCWD, path, path, false, NULL);
        link[n] = '\0';
        return plan_add_step(plan, PLAN_LINK, path, link) ? 0 : -ENOMEM;
}

static int failed(const char *path, int r, cbx_error *error)
{
        /* A part that is absent, or that this caller may not read, is simply not shown. */
        if (r == 0 || r == -ENOENT || r == -EACCES || r == -ENOTDIR)
                return 0;
        return error_set(error, r, "system", "cannot open %s: %s", path, strerror(-r));
}

/* A part of /etc. It may be a link that leads elsewhere (/etc/resolv.conf): then it is what was
 * found there that is shown in its place. Without namespaces that can only be opened where it is.
 */
static int add_part(struct plan *plan, const char *path)
{
        struct plan_step *step;
        int r;

        r = plan_add_tree(plan, AT_FDCWD, path, path, false, NULL);
        if (r < 0)
                return r;
        step = &plan->steps[plan->n_steps - 1];
        if (strcmp(step->source, path) == 0)
                return 0;
        if (plan->caged) {
                free(step->target);
                step->target = strdup(step->source);
        }
        return step->target ? plan_note(plan, path) : -ENOMEM;
}

static int add_etc(struct plan *plan, const char *const *paths, size_t n, cbx_error *error)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < n; i++)
                r = failed(paths[i], add_part(plan, paths[i]), error);
        return r;
}

int plan_add_system(struct plan *plan, cbx_error *error)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(system_directories); i++)
                if (!plan_add_step(plan, PLAN_DIRECTORY, system_directories[i], NULL))
                        return error_oom(error);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(system_trees); i++)
                r = failed(system_trees[i], add_program_tree(plan, system_trees[i]), error);
        if (r == 0)
                r = add_etc(plan, system_etc, ARRAY_SIZE(system_etc), error);
        if (r == 0 && plan->policy->network != POLICY_NETWORK_NONE)
                r = add_etc(plan, system_etc_network, ARRAY_SIZE(system_etc_network), error);
        if (r == 0 && plan->policy->network == POLICY_NETWORK_HOST)
                r = add_etc(plan, system_etc_host, ARRAY_SIZE(system_etc_host), error);
        if (r == 0 && plan->caged)
                r = add_etc(plan, system_etc_caged, ARRAY_SIZE(system_etc_caged), error);
        if (r == 0)
                r = failed("/etc/localtime", add_time_zone(plan), error);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(system_files); i++) {
                if (system_files[i].network && plan->policy->network == POLICY_NETWORK_NONE)
                        continue;
                if (plan->caged) /* the host's own */
                        r = add_etc(plan, &system_files[i].target, 1, error);
                else if (!plan_add_step(plan, PLAN_FILE, system_files[i].target,
                                        system_files[i].text))
                        return error_oom(error);
        }
        if (r == 0 &&
            (!plan_add_step(plan, PLAN_LINK, "/etc/os-release", "../usr/lib/os-release") ||
             !plan_add_step(plan, PLAN_LINK, "/var/tmp", PLAN_HOME)))
                return error_oom(error);
        for (size_t i = 0; i < plan->n_steps; i++)
                plan->steps[i].system = true;
        return r;
}
