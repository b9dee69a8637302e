/* SPDX-License-Identifier: MIT */
/*
 * Facts about the host, and its obstacles: the settings that are known to stop a box, each with the
 * command that changes it. An obstacle is one row of a table; nothing here changes anything.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "cli/doctor.h"
#include "policy/host.h"
#include "policy/landlock_abi.h"

static const char *const container_names[] = {
        [CONTAINER_NONE] = "none",     [CONTAINER_DOCKER] = "Docker",
        [CONTAINER_PODMAN] = "Podman", [CONTAINER_KUBERNETES] = "Kubernetes",
        [CONTAINER_OTHER] = "unknown",
};

const char *doctor_container_str(enum doctor_container container)
{
        return container_names[container];
}

/* The first line of a small file, "" where it cannot be read. */
static void read_line(const char *path, char *room, size_t size)
{
        _cleanup_free_ char *text = NULL;
        size_t length;

        room[0] = '\0';
        if (file_read(AT_FDCWD, path, 64 * KIB, &text, &length) == 0)
                snprintf(room, size, "%.*s", (int)strcspn(text, "\n"), text);
}

/* A setting that is a number, -1 where the host has no such setting. */
static long read_number(const char *path)
{
        char text[32], *end;
        long value;

        read_line(path, text, sizeof(text));
        value = strtol(text, &end, 10);
        return end == text ? -1 : value;
}

/* ---- Facts ---- */

static const struct {
        const char *name, *limit;
        int flag;
} namespaces[] = {
        { "user", "user", CLONE_NEWUSER },       { "mount", "mnt", CLONE_NEWNS },
        { "pid", "pid", CLONE_NEWPID },          { "network", "net", CLONE_NEWNET },
        { "IPC", "ipc", CLONE_NEWIPC },          { "UTS", "uts", CLONE_NEWUTS },
        { "cgroup", "cgroup", CLONE_NEWCGROUP },
};

/* Try them in a child, all below a user namespace of its own, as a box has them. */
static void look_at_namespaces(struct doctor_host *host)
{
        volatile int *errors =
                mmap(NULL, 4 * KIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        pid_t child;

        if (errors == MAP_FAILED)
                return;
        child = fork();
        if (child == 0) {
                for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++)
                        errors[i] = unshare(namespaces[i].flag) < 0 ? errno : 0;
                _exit(0);
        }
        while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
                ;
        for (size_t i = 0; child > 0 && !host->namespaces[0] && i < ARRAY_SIZE(namespaces); i++)
                if (errors[i]) {
                        snprintf(host->namespaces, sizeof(host->namespaces), "%s",
                                 namespaces[i].name);
                        host->namespaces_error = errors[i];
                }
        munmap((void *)errors, 4 * KIB);
}

static void look_at_cgroup(struct doctor_host *host)
{
        char line[PATH_MAX], path[PATH_MAX + 64];
        _cleanup_free_ char *text = NULL;
        struct statfs fs;
        size_t length;
        const char *own;

        host->cgroup_obstacle = cgroup_look();
        if (statfs("/sys/fs/cgroup", &fs) < 0)
                return;
        if (fs.f_type != CGROUP2_SUPER_MAGIC) {
                host->cgroup_version = access("/sys/fs/cgroup/memory", F_OK) == 0 ||
                                       access("/sys/fs/cgroup/pids", F_OK) == 0;
                return;
        }
        host->cgroup_version = 2;
        if (file_read(AT_FDCWD, "/proc/self/cgroup", 64 * KIB, &text, &length) < 0)
                return;
        own = strstr(text, "0::/");
        if (!own)
                return;
        snprintf(line, sizeof(line), "%.*s", (int)strcspn(own + 3, "\n"), own + 3);
        snprintf(path, sizeof(path), "/sys/fs/cgroup%s", line);
        host->cgroup_writable = access(path, W_OK) == 0;
        snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cgroup.controllers", line);
        read_line(path, host->cgroup_controllers, sizeof(host->cgroup_controllers));
}

static void look_at_container(struct doctor_host *host)
{
        static const struct {
                enum doctor_container container;
                const char *file;
        } files[] = { { CONTAINER_PODMAN, "/run/.containerenv" },
                      { CONTAINER_DOCKER, "/.dockerenv" },
                      { CONTAINER_KUBERNETES, "/run/secrets/kubernetes.io" },
                      { CONTAINER_KUBERNETES, "/var/run/secrets/kubernetes.io" },
                      { CONTAINER_OTHER, "/run/systemd/container" } };

        if (getenv("KUBERNETES_SERVICE_HOST")) {
                host->container = CONTAINER_KUBERNETES;
                snprintf(host->container_hint, sizeof(host->container_hint),
                         "KUBERNETES_SERVICE_HOST");
                return;
        }
        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                if (access(files[i].file, F_OK) == 0) {
                        host->container = files[i].container;
                        snprintf(host->container_hint, sizeof(host->container_hint), "%s",
                                 files[i].file);
                        return;
                }
        if (getenv("container")) {
                host->container = CONTAINER_OTHER;
                snprintf(host->container_hint, sizeof(host->container_hint), "container=%.40s",
                         getenv("container"));
        }
}

void doctor_look_at_host(struct doctor_host *host)
{
        uint32_t notify = SECCOMP_RET_USER_NOTIF;
        long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LL_CREATE_RULESET_VERSION);

        *host = (struct doctor_host){ .uid = geteuid() };
        host->landlock_abi = abi > 0 ? (int)abi : 0;
        host->landlock_error = abi < 0 ? errno : 0;
        (void)uname(&host->system);
        host->seccomp_notifier = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &notify) == 0;
        host->filtered = prctl(PR_GET_SECCOMP) == SECCOMP_MODE_FILTER;
        look_at_namespaces(host);
        look_at_cgroup(host);
        look_at_container(host);
}

/* ---- Obstacles ---- */

/* Which limit on namespaces is zero? */
static const char *forbidden_kind(void)
{
        char path[64];

        for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++) {
                snprintf(path, sizeof(path), "/proc/sys/user/max_%s_namespaces",
                         namespaces[i].limit);
                if (read_number(path) == 0)
                        return namespaces[i].limit;
        }
        return NULL;
}

static bool no_user_namespaces(const struct doctor_host *host)
{
        (void)host;
        return access("/proc/self/ns/user", F_OK) < 0 && access("/proc/self/ns", F_OK) == 0;
}

static bool none_allowed(const struct doctor_host *host)
{
        (void)host;
        return forbidden_kind() != NULL;
}

static bool none_for_users(const struct doctor_host *host)
{
        return host->uid != 0 && read_number("/proc/sys/kernel/unprivileged_userns_clone") == 0;
}

static bool apparmor_restricts(const struct doctor_host *host)
{
        return host->uid != 0 &&
               read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") > 0;
}

static bool reading_forbidden(const struct doctor_host *host)
{
        (void)host;
        return host_forbids_reading() != 0;
}

static bool selinux_denies(const struct doctor_host *host)
{
        (void)host;
        return read_number("/sys/fs/selinux/booleans/deny_userns") > 0;
}

/* In a chroot no mount point is the root directory. */
static bool in_chroot(const struct doctor_host *host)
{
        _cleanup_free_ char *text = NULL;
        size_t length;

        (void)host;
        return file_read(AT_FDCWD, "/proc/self/mountinfo", MIB, &text, &length) == 0 &&
               !strstr(text, " / rw") && !strstr(text, " / ro");
}

static bool proc_is_covered(const struct doctor_host *host)
{
        _cleanup_free_ char *text = NULL;
        size_t length;

        (void)host;
        if (file_read(AT_FDCWD, "/proc/self/mountinfo", MIB, &text, &length) < 0)
                return false;
        return strstr(text, " /proc/kcore ") || strstr(text, " /proc/keys ") ||
               strstr(text, " /proc/sys ") || strstr(text, " /proc/acpi ") ||
               strstr(text, " /proc/scsi ");
}

static bool is_filtered(const struct doctor_host *host)
{
        return host->filtered;
}

static bool filtered_by_docker(const struct doctor_host *host)
{
        return host->filtered && host->container == CONTAINER_DOCKER;
}

static bool filtered_by_podman(const struct doctor_host *host)
{
        return host->filtered && host->container == CONTAINER_PODMAN;
}

static bool filtered_by_kubernetes(const struct doctor_host *host)
{
        return host->filtered && host->container == CONTAINER_KUBERNETES;
}

static bool filtered_by_other(const struct doctor_host *host)
{
        return host->filtered &&
               (host->container == CONTAINER_OTHER || host->container == CONTAINER_NONE);
}

#define NAMESPACES "namespaces"
#define PROC "mount a /proc"
#define FILTER "a seccomp filter of the container refuses what boxes are made with"

/* The texts of those with a %s are about one kind of namespace. */
static const struct {
        const char *where;
        bool (*there)(const struct doctor_host *host);
        const char *cause, *fix;
} obstacles[] = {
        { NAMESPACES, no_user_namespaces, "the kernel has no user namespaces",
          "use a kernel that is built with CONFIG_USER_NS=y" },
        { NAMESPACES, none_allowed, "user.max_%s_namespaces is 0",
          "sudo sysctl -w user.max_%s_namespaces=15000 (and a line for it in /etc/sysctl.d/ to "
          "keep "
          "it)" },
        { NAMESPACES, none_for_users, "kernel.unprivileged_userns_clone is 0",
          "sudo sysctl -w kernel.unprivileged_userns_clone=1 (and a line for it in /etc/sysctl.d/ "
          "to keep it)" },
        { NAMESPACES, apparmor_restricts,
          "AppArmor restricts user namespaces of programs without a profile",
          "give callbox an AppArmor profile with the rule \"userns,\", or for every program: sudo "
          "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0" },
        { NAMESPACES, selinux_denies, "the SELinux boolean deny_userns is on",
          "sudo setsebool -P deny_userns off" },
        { NAMESPACES, in_chroot, "callbox runs in a chroot, where the kernel gives none",
          "enter the tree with pivot_root, as containers do, instead of chroot" },
        { NAMESPACES, filtered_by_docker, FILTER,
          "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
          "--security-opt systempaths=unconfined ..." },
        { NAMESPACES, filtered_by_podman, FILTER,
          "podman run --security-opt seccomp=unconfined --security-opt unmask=ALL ..." },
        { NAMESPACES, filtered_by_kubernetes, FILTER,
          "in the pod: hostUsers: false, and in the container's securityContext: seccompProfile: "
          "{type: Unconfined} and procMount: Unmasked" },
        { NAMESPACES, filtered_by_other,
          "a seccomp filter of whoever started callbox may refuse what boxes are made with",
          "start callbox without it (under systemd: without RestrictNamespaces= and "
          "SystemCallFilter=)" },
        { DOCTOR_READING, reading_forbidden,
          "kernel.yama.ptrace_scope lets no init look after what a program changes",
          "sudo sysctl -w kernel.yama.ptrace_scope=1 (where it is 3: in /etc/sysctl.d/, and boot "
          "again)" },
        { DOCTOR_LISTENER, is_filtered,
          "a seccomp filter of another box, which listens, is in force already",
          "start callbox without it: outside of that box" },
        { PROC, proc_is_covered, "parts of /proc are covered, so no box can have one of its own",
          "docker run --security-opt systempaths=unconfined ..., podman run --security-opt "
          "unmask=ALL ..., or procMount: Unmasked in a pod" },
};

bool doctor_next_obstacle(const struct doctor_host *host, const char *where, size_t *index,
                          struct doctor_obstacle *ret)
{
        for (; *index < ARRAY_SIZE(obstacles); (*index)++) {
                const char *kind;

                if ((where && strcmp(where, obstacles[*index].where) != 0) ||
                    !obstacles[*index].there(host))
                        continue;
                kind = obstacles[*index].there == none_allowed ? forbidden_kind() : "";
                *ret = (struct doctor_obstacle){ 0 };
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                snprintf(ret->cause, sizeof(ret->cause), obstacles[*index].cause, kind);
                snprintf(ret->fix, sizeof(ret->fix), obstacles[*index].fix, kind);
#pragma GCC diagnostic pop
                (*index)++;
                return true;
        }
        return false;
}

static void explain(struct doctor_obstacle *ret, const char *cause, const char *fix)
{
        snprintf(ret->cause, sizeof(ret->cause), "%s", cause);
        snprintf(ret->fix, sizeof(ret->fix), "%s", fix);
}

void doctor_explain_landlock(const struct doctor_host *host, struct doctor_obstacle *ret)
{
        if (host->landlock_abi > 0)
                explain(ret, "the kernel has Landlock, but the box did not enter it", "");
        else if (host->landlock_error == EOPNOTSUPP)
                explain(ret, "the kernel has Landlock, but it is switched off",
                        "boot with landlock in the list of the kernel parameter lsm= (as in "
                        "lsm=landlock,lockdown,yama,apparmor,bpf)");
        else if (host->landlock_error == EPERM)
                explain(ret, "a seccomp filter refuses Landlock",
                        "start callbox under a seccomp profile that allows the landlock_* system "
                        "calls");
        else
                explain(ret, "the kernel has no Landlock",
                        "use Linux 5.13 or newer, built with CONFIG_SECURITY_LANDLOCK=y");
}

void doctor_explain_cgroup(const struct doctor_host *host, struct doctor_obstacle *ret)
{
        enum cgroup_obstacle obstacle = host->cgroup_obstacle;

        if (obstacle == CGROUP_FINE && host->cgroup_version == 1)
                explain(ret, "cgroup v1: for boxes made ahead and on request, as it takes time",
                        "ask for it: --require cgroup, or \"require\" in a policy");
        else if (obstacle == CGROUP_FINE)
                explain(ret, "no group could be made although there is a place for it",
                        "raise cgroup.max.descendants and cgroup.max.depth of the groups above");
        else
                explain(ret, cgroup_obstacle_str(obstacle), cgroup_obstacle_fix(obstacle));
}
