/* SPDX-License-Identifier: MIT */
/* Compiling a policy to a plan: identity, limits, filter; files and environment are beside. */
#include "policy/plan.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "policy/host.h"
#include "policy/inputs.h"
#include "policy/landlock_abi.h"
#include "policy/pins.h"
#include "policy/syscalls.h"

struct plan *plan_free(struct plan *plan)
{
        if (!plan)
                return NULL;
        for (size_t i = 0; i < plan->n_steps; i++) {
                free(plan->steps[i].target);
                free(plan->steps[i].text);
                free(plan->steps[i].source);
                base_close(plan->steps[i].fd);
        }
        for (size_t i = 0; i < plan->n_guards; i++)
                free(plan->guards[i].path);
        for (size_t i = 0; i < plan->n_marks; i++)
                free(plan->marks[i].name);
        for (size_t i = 0; i < plan->n_facts; i++)
                free(plan->facts[i].path);
        for (char **v = plan->environment; v && *v; v++)
                free(*v);
        for (size_t i = 0; i < plan->n_warnings; i++)
                free(plan->warnings[i]);
        for (size_t i = 0; i < plan->n_rules; i++)
                if (plan->rules[i].own)
                        base_close(plan->rules[i].fd);
        inputs_mounts_free(plan->mounts);
        free(plan->steps);
        free(plan->rules);
        free(plan->guards);
        free(plan->marks);
        free(plan->facts);
        free(plan->environment);
        free(plan->warnings);
        free(plan->start_directory);
        free(plan->directory);
        free(plan->filter_own);
        free(plan->zygote_filter_own);
        free(plan->loading_filter);
        free(plan->denied);
        cbx_policy_unref((cbx_policy *)plan->policy);
        free(plan);
        return NULL;
}

int plan_warn(struct plan *plan, const char *format, ...)
{
        char **warnings;
        va_list args;
        int r;

        warnings = reallocarray(plan->warnings, plan->n_warnings + 2, sizeof(*warnings));
        if (!warnings)
                return -ENOMEM;
        plan->warnings = warnings;
        va_start(args, format);
        r = vasprintf(&warnings[plan->n_warnings], format, args);
        va_end(args);
        if (r < 0) {
                warnings[plan->n_warnings] = NULL;
                return -ENOMEM;
        }
        warnings[++plan->n_warnings] = NULL;
        return 0;
}

struct plan_step *plan_add_step(struct plan *plan, enum plan_kind kind, const char *target,
                                const char *text)
{
        struct plan_step *steps = plan_grow(plan->steps, plan->n_steps, sizeof(*steps)), *step;

        if (!steps)
                return NULL;
        plan->steps = steps;
        step = &steps[plan->n_steps];
        *step = (struct plan_step){ .kind = kind, .fd = -1, .directory = true };
        step->target = strdup(target);
        step->text = text ? strdup(text) : NULL;
        if (!step->target || (text && !step->text)) {
                free(step->target);
                free(step->text);
                return NULL;
        }
        plan->n_steps++;
        return step;
}

/* The canonical path of a descriptor, as the kernel sees it. */
static char *descriptor_path(int fd)
{
        char link[64], path[4096];
        ssize_t n;

        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, path, sizeof(path) - 1);
        if (n <= 0 || path[0] != '/')
                return NULL;
        path[n] = '\0';
        return strdup(path);
}

/* Does somebody else than the kernel answer for it, over a network or in user space? */
static bool is_remote(int fd)
{
        static const unsigned long types[] = {
                FUSE_SUPER_MAGIC, NFS_SUPER_MAGIC,  CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC,
                AFS_SUPER_MAGIC,  CEPH_SUPER_MAGIC, V9FS_MAGIC,       CODA_SUPER_MAGIC,
        };
        struct statfs fs;

        if (fstatfs(fd, &fs) < 0)
                return true;
        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                if ((unsigned long)fs.f_type == types[i])
                        return true;
        return false;
}

/* Is it absolute, without a "." or "..", and without a slash too many? */
static bool is_plain(const char *path)
{
        const char *name = path;

        while (*name == '/') {
                size_t n = strcspn(++name, "/");

                if (n == 0 || (name[0] == '.' && (n == 1 || (n == 2 && name[1] == '.'))))
                        return false;
                name += n;
        }
        return name > path && *name == '\0';
}

/* Open what a path leads to, and tell where that is: where there is no link on the way, at the very
 * path. */
static int open_source(int dirfd, const char *path, char **ret)
{
        struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };
        bool direct = is_plain(path);
        int fd = direct ? (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how)) : -1;

        if (!direct || (fd < 0 && errno != ENOENT)) { /* a link, or a host that refuses the call */
                direct = false;
                fd = openat(dirfd, path, O_PATH | O_CLOEXEC);
        }
        if (fd < 0)
                return -errno;
        *ret = direct ? strdup(path) : descriptor_path(fd);
        if (!*ret)
                base_close(fd);
        return *ret ? fd : -ENOENT;
}

/* Takes over the descriptor and the path, also on failure. */
static int add_opened(struct plan *plan, int opened, char *path, const char *target, bool writable,
                      const char *where)
{
        _cleanup_free_ char *source = path;
        _cleanup_fd_ int fd = opened;
        struct plan_step *step;
        struct statx st;

        if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st) < 0)
                return -errno;
        step = plan_add_step(plan, PLAN_TREE, target ? target : source, NULL);
        if (!step)
                return -ENOMEM;
        step->where = where;
        step->directory = S_ISDIR(st.stx_mode);
        step->writable = writable;
        step->device = makedev(st.stx_dev_major, st.stx_dev_minor);
        step->inode = st.stx_ino;
        step->born = policy_birth(&st);
        step->uid = st.stx_uid;
        step->gid = st.stx_gid;
        step->source = TAKE_PTR(source);
        step->fd = TAKE_FD(fd);
        plan->remote |= where && is_remote(step->fd);
        return 0;
}

int plan_add_tree(struct plan *plan, int dirfd, const char *host, const char *target, bool writable,
                  const char *where)
{
        char *source = NULL;
        int fd = open_source(dirfd, host, &source);

        if (fd < 0 || !source)
                return fd < 0 ? fd : -ENOMEM;
        return add_opened(plan, fd, source, target, writable, where);
}

int plan_add_rule(struct plan *plan, const struct policy_path *rule, const char *target,
                  bool writable, cbx_error *error)
{
        struct policy_pin pin = { 0 };
        int fd = policy_pin_open(plan->policy, plan->directory, rule, &pin, error), r;

        if (fd < 0)
                return fd;
        r = add_opened(plan, fd, TAKE_PTR(pin.path), target, writable, rule->where);
        policy_pin_clear(&pin);
        return r;
}

/* ---- Facts ---- */

int plan_add_fact(struct plan *plan, const char *directory, const char *path,
                  const struct plan_step *found)
{
        struct plan_fact *facts = plan_grow(plan->facts, plan->n_facts, sizeof(*facts));
        struct plan_fact *fact;

        if (!facts)
                return -ENOMEM;
        plan->facts = facts;
        fact = &facts[plan->n_facts];
        *fact = (struct plan_fact){ .device = found ? found->device : 0,
                                    .inode = found ? found->inode : 0,
                                    .born = found ? found->born : 0 };
        if (path[0] == '/' ? !(fact->path = strdup(path))
                           : asprintf(&fact->path, "%s/%s", directory, path) < 0)
                return -ENOMEM;
        plan->n_facts++;
        return 0;
}

int plan_note(struct plan *plan, const char *path)
{
        struct plan_step found = { 0 };
        struct statx st = { 0 };

        if (statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, STATX_INO | STATX_BTIME, &st) == 0) {
                found.device = makedev(st.stx_dev_major, st.stx_dev_minor);
                found.inode = st.stx_ino;
                found.born = policy_birth(&st);
        }
        return plan_add_fact(plan, NULL, path, &found);
}

int plan_note_absent(struct plan *plan, const char *directory, const char *name)
{
        const struct plan_fact *last = plan->n_facts ? &plan->facts[plan->n_facts - 1] : NULL;
        size_t n = strlen(directory), part = strcspn(name, "/");
        char path[2 * PATH_MAX];
        int r;

        if (n + 1 + part >= sizeof(path))
                return -ENAMETOOLONG;
        memcpy(path, directory, n);
        path[n] = '/';
        memcpy(path + n + 1, name, part);
        path[n + 1 + part] = '\0';
        if (last && last->guarded && strcmp(last->path, path) == 0)
                return 0;
        r = plan_add_fact(plan, NULL, path, NULL);
        if (r == 0)
                plan->facts[plan->n_facts - 1].guarded = true;
        return r;
}

static bool is_at(const char *path, dev_t device, ino_t inode, uint64_t born)
{
        struct statx st = { 0 };

        if (statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, STATX_INO | STATX_BTIME, &st) < 0 &&
            errno != ENOENT && errno != ENOTDIR)
                return false;
        return makedev(st.stx_dev_major, st.stx_dev_minor) == device && st.stx_ino == inode &&
               policy_birth(&st) == born;
}

bool plan_facts_hold(const struct plan_fact *facts, size_t n, bool guarded)
{
        for (size_t i = 0; i < n; i++)
                if ((guarded || !facts[i].guarded) &&
                    !is_at(facts[i].path, facts[i].device, facts[i].inode, facts[i].born))
                        return false;
        return true;
}

bool plan_is_current(const struct plan *plan)
{
        for (size_t i = 0; i < plan->n_steps; i++) {
                const struct plan_step *step = &plan->steps[i];

                if (step->kind == PLAN_TREE && !step->where &&
                    !is_at(step->source, step->device, step->inode, step->born))
                        return false;
        }
        return plan_facts_hold(plan->facts, plan->n_facts, false);
}

/* ---- Identity and limits ---- */

bool plan_is_caged(const cbx_policy *policy)
{
        return policy->box == POLICY_BOX_LANDLOCK ||
               (policy->box == POLICY_BOX_AUTO && host_refuses_namespaces() != 0);
}

static int set_directory(struct plan *plan, const char *directory)
{
        plan->directory = directory ? strdup(directory) : getcwd(NULL, 0);
        if (!plan->directory && errno != ENOMEM)
                plan->directory = strdup("/nowhere"); /* the current directory is gone */
        return plan->directory ? 0 : -ENOMEM;
}

static bool is_caged(const cbx_policy *policy, const struct plan_options *options)
{
        if (options->unboxed)
                return true;
        if (options->hopeful && policy->box == POLICY_BOX_AUTO)
                return host_refuses_clone3() != 0;
        return plan_is_caged(policy);
}

/* Some limits the kernel keeps for each id of the host: descriptors in flight, pages of pipes, what
 * is watched; and where there are no namespaces who has the same one can be signalled. So the boxes
 * of each plan have one of their own, by chance, but where this process has no such ids, and where
 * tests have to know it. Boxes of one plan share it: the trees of a mould are mapped for all. */
static uid_t choose_id(void)
{
        uint16_t chance = 0;
        unsigned long outside;

#ifndef BOX_UNFENCED
        if (host_maps_id(PLAN_HOST_ID + PLAN_HOST_IDS - 1, &outside))
                (void)!getrandom(&chance, sizeof(chance), GRND_NONBLOCK);
#else
        (void)outside;
#endif
        return PLAN_HOST_ID + chance % PLAN_HOST_IDS;
}

/* Root hands its boxes to an id that is nobody's; everyone else, and a root that has no such id
 * to give (in a container that maps a single one), stays who he is, without any privilege. */
/* Of a zygote: while it loads, somebody looks after what it does to files and where it connects. */
static int compile_zygote(struct plan *plan, cbx_error *error)
{
        unsigned looked = plan->calls & (SYSCALLS_GUARDED | SYSCALLS_SOCKETS);
        int r = syscalls_compile(plan->policy, SYSCALLS_ZYGOTE, error, &plan->zygote_filter,
                                 &plan->zygote_filter_length, &plan->zygote_filter_own);

        if (r < 0 || !looked)
                return r;
        if (getrandom(&plan->loading_mark, sizeof(plan->loading_mark), 0) !=
            (ssize_t)sizeof(plan->loading_mark))
                return error_set(error, -errno, "", "cannot choose a number: %s", strerror(errno));
        plan->loading_mark |= 1; /* never that of who has none */
        r = syscalls_compile_loading(looked, plan->loading_mark, &plan->loading_filter,
                                     &plan->loading_filter_length);
        return r < 0 ? error_oom(error) : 0;
}

static void set_identity(struct plan *plan)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2];
        const uint32_t ids = 1U << CAP_SETUID | 1U << CAP_SETGID;
        const uint32_t wanted =
                plan->caged ? ids | 1U << CAP_KILL | 1U << CAP_CHOWN : ids | 1U << CAP_SYS_ADMIN;
        unsigned long outside;

        plan->host_uid = geteuid();
        plan->host_gid = getegid();
        plan->host_root = host_is_root();
        if (plan->unboxed) /* it is who runs callbox, with all his rights */
                return;
        if (geteuid() != 0 || syscall(SYS_capget, &header, data) < 0 ||
            (data[0].effective & wanted) != wanted)
                return;
        if (!host_maps_id(PLAN_HOST_ID, &outside))
                return;
        plan->privileged = true;
        plan->host_root = false;
        plan->host_uid = choose_id();
        plan->host_gid = plan->host_uid;
}

/*
 * Limits that the kernel keeps by itself. RLIMIT_DATA is no memory limit (it counts what is
 * reserved, and a program that hits it only sees a failed allocation): it bounds how far one
 * process can get between two looks of init's at the tree. What the kernel counts for the user as a
 * whole, whose boxes and other programs share it, is low enough for eight boxes at once.
 */
size_t plan_rlimits(const struct policy_limits *limits, struct plan_rlimit ret[PLAN_RLIMITS_MAX])
{
        size_t n = 0;

        ret[n++] = (struct plan_rlimit){ RLIMIT_CORE, 0 };
        ret[n++] = (struct plan_rlimit){ RLIMIT_MEMLOCK, 64 * KIB };
        ret[n++] = (struct plan_rlimit){ RLIMIT_MSGQUEUE, 64 * KIB };
        ret[n++] = (struct plan_rlimit){ RLIMIT_RTPRIO, 0 };
        ret[n++] = (struct plan_rlimit){ RLIMIT_SIGPENDING, 512 };
        if (limits->file_size)
                ret[n++] = (struct plan_rlimit){ RLIMIT_FSIZE, limits->file_size };
        if (limits->open_files)
                ret[n++] = (struct plan_rlimit){ RLIMIT_NOFILE, limits->open_files };
        if (limits->memory)
                ret[n++] = (struct plan_rlimit){ RLIMIT_DATA, 2 * limits->memory + 8 * GIB };
        if (limits->cpu > 0)
                ret[n++] = (struct plan_rlimit){ RLIMIT_CPU, (rlim_t)ceil(limits->cpu) + 1 };
        /* Counted in the box's own user namespace, init included. Init ends a call that has more
         * than its limit; the kernel stops it a little above that, so that a tree which is held
         * there is seen to be beyond. Without a user namespace all processes of the user count;
         * then it bounds a storm (box/limits.c). */
        if (limits->processes)
                ret[n++] = (struct plan_rlimit){ RLIMIT_NPROC,
                                                 limits->processes + limits->processes / 8 + 8 };
        return n;
}

/* Init asks before it looks at a call for another reason (box/notify.c). */
static int list_denied(struct plan *plan)
{
        size_t n = 0;

        while (plan->policy->syscalls_deny[n])
                n++;
        plan->denied = malloc(MAX(n, 1) * sizeof(*plan->denied));
        if (!plan->denied)
                return -ENOMEM;
        for (; plan->n_denied < n; plan->n_denied++)
                plan->denied[plan->n_denied] = (short)seccomp_syscall_resolve_name(
                        plan->policy->syscalls_deny[plan->n_denied]);
        return 0;
}

/* May a net namespace be lent to boxes of this plan, one after the other? Only where init sees all
 * that could be left in it, and every way in which a descriptor could leave the box. */
static bool leaves_no_trace(const struct plan *plan)
{
        const cbx_policy *policy = plan->policy;

        if (plan->caged || policy->network != POLICY_NETWORK_NONE || plan->explain ||
            plan->host_root || (policy->syscalls_allow && policy->syscalls_allow[0]))
                return false;
        /* A socket that is bound in a tree which others see is seen by init in guarded boxes. */
        for (size_t i = 0; !plan->guarded && i < plan->n_steps; i++)
                if (plan->steps[i].kind == PLAN_TREE && plan->steps[i].writable)
                        return false;
        return true;
}

/* What mounts and namespaces would keep, the filter and init have to. */
static unsigned caged_variant(const struct plan *plan)
{
        return SYSCALLS_CAGED | SYSCALLS_SOCKETS | SYSCALLS_GUARDED |
               (plan->landlock_abi < 6 ? SYSCALLS_SIGNALS : 0U) |
               (plan->policy->network == POLICY_NETWORK_HOST ? SYSCALLS_ONLINE : 0U) |
               (plan->unnamed ? SYSCALLS_UNNAMED : 0U);
}

/* What is given up by the calls that the policy allows, and which of them it allows in vain. */
static int warn_of_allowed(struct plan *plan)
{
        int r = 0;

        for (char **name = plan->policy->syscalls_allow; r == 0 && *name; name++) {
                const char *note;
                enum syscalls_effect effect = syscalls_effect(plan->calls, *name, &note);

                if (effect == SYSCALLS_OPENED && strstr(*name, "chmod"))
                        plan->sets_ids = true;
                if (effect == SYSCALLS_OPENED)
                        r = plan_warn(plan, "%s is allowed: %s", *name, note);
                else if (effect == SYSCALLS_KEPT)
                        r = plan_warn(plan, "allowing %s changes nothing: %s", *name, note);
        }
        return r;
}

int plan_compile(cbx_policy *policy, const struct plan_options *options, cbx_error *error,
                 struct plan **ret_plan)
{
        _cleanup_plan_ struct plan *plan = calloc(1, sizeof(*plan));
        int r;

        if (!plan)
                return error_oom(error);
        plan->policy = cbx_policy_ref(policy);
        plan->unboxed = options->unboxed;
        plan->explain = options->explain && !plan->unboxed; /* nothing will be refused */
        plan->looks = options->looks;
        plan->tty = options->tty;
        plan->wipe = options->wipe;
        plan->wipe_length = options->wipe_length;
        plan->landlock_abi = landlock_abi();
        plan->caged = is_caged(policy, options);
        if (set_directory(plan, options->directory) < 0)
                return error_oom(error);
        set_identity(plan);
        plan->n_rlimits = plan_rlimits(&policy->limits, plan->rlimits);
        r = policy->system ? plan_add_system(plan, error) : 0;
        if (r == 0)
                r = plan_add_files(plan, options, error);
        if (r == 0 && !options->directory) /* else whoever looked the paths up has asked */
                r = inputs_refuse_own_links(policy, error);
        if (r == 0 && plan->unboxed)
                r = plan_unbox(plan, error);
        else if (r == 0 && plan->caged)
                r = plan_cage(plan, error);
        if (r == 0)
                r = plan_set_environment(plan, options, error);
        if (r < 0)
                return r;
        if (plan->unboxed) { /* there is no filter, and nothing for init to look after */
                *ret_plan = TAKE_PTR(plan);
                return 0;
        }
        if ((plan->caged || plan->guarded || plan->hides) && (r = host_forbids_reading()))
                return host_explain_reading(r, plan->caged ? "box" : "workspace",
                                            plan->caged ? "without namespaces" : "in a workspace",
                                            error);
        plan->guards_sockets |= plan->caged;
        plan->lends = options->lends && leaves_no_trace(plan);
        plan->calls = (plan->guarded ? SYSCALLS_GUARDED : 0U) |
                      (plan->hides ? SYSCALLS_HIDING : 0U) |
                      (plan->caged ? caged_variant(plan) : 0U) |
                      (plan->guards_sockets ? SYSCALLS_SOCKETS : 0U) |
                      (plan->explain ? SYSCALLS_EXPLAIN : 0U) | (plan->lends ? SYSCALLS_LENT : 0U);
        r = syscalls_compile(policy, plan->calls, error, &plan->filter, &plan->filter_length,
                             &plan->filter_own);
        /* A zygote makes namespaces, and may mount a /proc of its own there. In that the host's
         * root changes settings of the kernel by his id alone, without any capability. */
        if (r == 0 && options->zygote && !plan->caged && !plan->host_root)
                r = compile_zygote(plan, error);
        if (r < 0)
                return r;
        r = list_denied(plan);
        if (r == 0)
                r = warn_of_allowed(plan);
        if (r < 0)
                return error_oom(error);
        *ret_plan = TAKE_PTR(plan);
        return 0;
}
