/* SPDX-License-Identifier: MIT */
/* Making a box: what its root is built from, the clone, and the mould that many are copied from. */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include "box/enter.h"
#include "box/mapping.h"
#include "policy/host.h"

/* ---- Trees that a privileged warden hands in ---- */

struct trees {
        int *fds; /* one per step of the plan, -1 where there is none */
        size_t n;
        int mapping; /* the last one made: most plans need one only */
        uid_t uid;
        gid_t gid;
};

static void trees_close(struct trees *trees)
{
        for (size_t i = 0; i < trees->n; i++)
                base_close(trees->fds[i]);
        free(trees->fds);
        base_close(trees->mapping);
}

static int map_tree(struct trees *trees, const struct plan *plan, const struct plan_step *step,
                    int tree, cbx_error *error)
{
        int r = 0;

        if (trees->mapping < 0 || trees->uid != step->uid || trees->gid != step->gid) {
                base_close(trees->mapping);
                trees->mapping = mapping_open(step->uid, step->gid, plan->host_uid, plan->host_gid);
                trees->uid = step->uid;
                trees->gid = step->gid;
                r = trees->mapping < 0 ? trees->mapping : 0;
        }
        if (r == 0)
                r = mapping_apply(tree, trees->mapping);
        /* Some file systems cannot be mapped. Reading then depends on the files' own modes. */
        if (r == -EINVAL && !step->writable)
                return 0;
        if (r < 0) {
                error_set(error, r, step->where, "%s cannot be mapped to the box's id: %s",
                          step->source, strerror(-r));
                error_hint(error, "its file system or this kernel knows no id-mapped mounts; "
                                  "use a directory on ext4, xfs or btrfs, or run as its owner");
        }
        return r;
}

/* A place for the copies of the host's mounts. What the policy names is copied here, from the
 * plan's descriptors, by a warden that may reach it (`hand_in`); init copies the rest. */
static int trees_open(struct trees *trees, const struct plan *plan, bool hand_in, cbx_error *error)
{
        trees->fds = malloc(MAX(plan->n_steps, 1) * sizeof(int));
        if (!trees->fds)
                return error_oom(error);
        for (size_t i = 0; i < plan->n_steps; i++) {
                const struct plan_step *step = &plan->steps[i];
                int fd, r;

                trees->fds[trees->n++] = -1;
                if (step->kind != PLAN_TREE || !step->where || !hand_in)
                        continue;
                fd = (int)syscall(SYS_open_tree, step->fd, "",
                                  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
                                          AT_EMPTY_PATH);
                if (fd < 0)
                        return error_set(error, -errno, step->where,
                                         "cannot copy the mounts of %s: %s", step->source,
                                         strerror(errno));
                trees->fds[i] = fd;
                if (step->map) {
                        r = map_tree(trees, plan, step, fd, error);
                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

/* ---- Making a box ---- */

/* The net namespace is made by main, beside init's work (network.c), or was entered before. */
static uint64_t namespace_flags(void)
{
        uint64_t flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWCGROUP;

        if (box_fence(FENCE_PID))
                flags |= CLONE_NEWPID;
        if (box_fence(FENCE_IPC))
                flags |= CLONE_NEWIPC;
        if (box_fence(FENCE_UTS))
                flags |= CLONE_NEWUTS;
        return flags;
}

/* Is there a processor to spare? /proc/loadavg tells how many tasks want one right now. */
static void look_at_processors(struct child *child)
{
        _cleanup_free_ char *text = NULL;
        unsigned n = 0, running;
        size_t length;

        if (syscall(SYS_sched_getaffinity, 0, sizeof(child->processors), child->processors) < 0 ||
            file_read(AT_FDCWD, "/proc/loadavg", 128, &text, &length) < 0 ||
            sscanf(text, "%*s %*s %*s %u", &running) != 1)
                return;
        for (size_t i = 0; i < ARRAY_SIZE(child->processors); i++)
                n += (unsigned)__builtin_popcountl(child->processors[i]);
        child->spread = running <= n;
}

/* Clone init with all signals blocked: none may arrive between clone and exec. */
/* Into a group of version 1 nobody can be born. */
static bool enters_cgroup(const struct plan *plan, int cgroup)
{
        struct statfs fs;

        return !plan->caged && cgroup >= 0 && fstatfs(cgroup, &fs) == 0 &&
               fs.f_type == CGROUP_SUPER_MAGIC;
}

static pid_t clone_init(const struct plan *plan, int cgroup, int *ret_pidfd)
{
        struct clone_args args = {
                .flags = namespace_flags() | CLONE_PIDFD,
                .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
                .exit_signal = SIGCHLD,
        };

        /* Hosts that refuse namespaces may refuse clone3 as well. */
        if (plan->caged)
                return (pid_t)syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, NULL, ret_pidfd, NULL, 0UL);
        if (cgroup >= 0 && !enters_cgroup(plan, cgroup)) {
                args.flags |= CLONE_INTO_CGROUP;
                args.cgroup = (uint64_t)cgroup;
        }
        return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static int maps_refused(int r, cbx_error *error)
{
        error_set(error, r, "namespaces", "cannot write the box's id maps: %s", strerror(-r));
        error_hint(error, "see `callbox doctor`");
        return r;
}

static int write_maps(const struct plan *plan, int proc, pid_t pid, int ids, cbx_error *error)
{
        int r = mapping_write(proc, pid, !plan->privileged, PLAN_BOX_ID, plan->host_uid,
                              PLAN_BOX_ID, plan->host_gid);

        if (r == 0)
                r = fd_write_all(ids, "i", 1);
        return r < 0 ? maps_refused(r, error) : 0;
}

int box_make(const struct plan *plan, const struct box_ends *ends, pid_t *ret_pid, int *ret_pidfd,
             cbx_error *error)
{
        _cleanup_(trees_close) struct trees trees = { .mapping = -1 };
        _cleanup_fd_ int ids_in = -1, ids_out = -1;
        int ids[2], pidfd = -1, r;
        sigset_t all, before;
        struct child child;
        pid_t pid;

        r = trees_open(&trees, plan, plan->privileged && !plan->caged && ends->mould < 0, error);
        if (r < 0)
                return r;
        if (pipe2(ids, O_CLOEXEC) < 0)
                return error_set(error, -errno, "", "cannot make a pipe: %s", strerror(errno));
        ids_in = ids[0];
        ids_out = ids[1];
        child = (struct child){ .plan = plan,
                                .page = ends->page,
                                .control = ends->control,
                                .start = ends->start,
                                .ids = ids_in,
                                .ids_end = ids_out,
                                .warden = ends->warden,
                                .trees = trees.fds,
                                .shared = ends->zygote,
                                .cast = ends->mould >= 0,
                                .host_proc = ends->mould,
                                .root = -1,
                                .parent = { .fd = -1 },
                                .proc = -1,
                                .notifier = -1,
                                .pair = { -1, -1 },
                                .main = -1,
                                .keeper = -1,
                                .scratch = -1,
                                .terminal = { -1, -1 },
                                .cgroup = ends->cgroup,
                                .unhurried = ends->unhurried,
                                .used = ends->used,
                                .zygote = ends->zygote };
        child.enters_cgroup = enters_cgroup(plan, ends->cgroup);
        if (!ends->unhurried)
                look_at_processors(&child);

        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, &before);
        pid = clone_init(plan, ends->cgroup, &pidfd);
        if (pid == 0 && plan->caged)
                box_keep(&child);
        if (pid == 0)
                box_enter(&child);
        r = pid < 0 ? -errno : 0;
        if (r == 0)
                box_place(&child, pid, &ends->page->init_placed);
        sigprocmask(SIG_SETMASK, &before, NULL);
        if (r < 0)
                return host_explain_refusal(-r, error);
        *ret_pid = pid;
        *ret_pidfd = pidfd;
        if (plan->caged)
                return 0;
        return write_maps(plan, ends->mould, pid, ids_out, error);
}

/* ---- The mould ---- */

/* Of all the capabilities that come with a user namespace, keep the one that is needed: others open
 * files that are closed to their owner. Another one to hand on id 0, as the kernel asks since 5.12.
 */
static int keep_administration(const struct plan *plan)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct sets[2] = { 0 };

        sets[0].effective = 1U << CAP_SYS_ADMIN | (plan->host_uid == 0 ? 1U << CAP_SETFCAP : 0U);
        sets[0].permitted = sets[0].effective;
        return syscall(SYS_capset, &header, sets) < 0 ? -errno : 0;
}

/* Run by an ordinary user, a process may have mounts of its own, and make net namespaces to lend,
 * only in a user namespace of its own. It is there who it was. It could not come back to the host's
 * network, so one that is to lend takes an empty one as its home. */
static int enter_namespaces(const struct plan *plan, cbx_error *error)
{
        int flags = CLONE_NEWNS, r;

        if (!plan->privileged)
                flags |= CLONE_NEWUSER | (plan->lends ? CLONE_NEWNET : 0);
        if (syscall(SYS_unshare, flags) < 0)
                return host_explain_refusal(errno, error);
        if (plan->privileged)
                return 0;
        r = mapping_write(-1, getpid(), true, plan->host_uid, plan->host_uid, plan->host_gid,
                          plan->host_gid);
        if (r == 0)
                r = keep_administration(plan);
        return r < 0 ? maps_refused(r, error) : 0;
}

bool box_can_cast(const struct plan *plan)
{
        return !plan->caged && box_fence(FENCE_ROOT) && box_fence(FENCE_PID);
}

int box_enter_mould(const struct plan *plan, int *ret_mould, cbx_error *error)
{
        _cleanup_(trees_close) struct trees trees = { .mapping = -1 };
        struct box_page *page;
        struct child child;
        mode_t before;
        int r;

        r = trees_open(&trees, plan, plan->privileged, error);
        if (r == 0)
                r = enter_namespaces(plan, error);
        if (r < 0)
                return r;
        page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED)
                return error_oom(error);
        child = (struct child){ .plan = plan,
                                .page = page,
                                .trees = trees.fds,
                                .shared = true,
                                .root = -1,
                                .parent = { .fd = -1 },
                                .proc = -1,
                                .host_proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC) };
        before = umask(022); /* made by root, this is still to be looked at by the box */
        r = child.host_proc < 0 ? step_failed(&child, "open", "/proc", errno)
                                : box_build_mould(&child);
        umask(before);
        if (r < 0)
                r = box_explain_failure(&page->failure, error);
        else
                *ret_mould = TAKE_FD(child.host_proc);
        base_close(child.host_proc);
        munmap(page, sizeof(*page));
        return r;
}
