/* SPDX-License-Identifier: MIT */
/*
 * The order of isolation where there are no namespaces. Init puts up what holds for itself as well
 * before it starts main: ids, privileges, and the Landlock domain that decides what can be opened.
 * So whatever init does for the program, it can do no more than the program. Main adds what holds
 * for it alone (main.c): a domain of its own, from which it cannot signal init, and the filter.
 *
 * A call without a box has the same processes, and none of these fences.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "box/enter.h"
#include "policy/landlock_abi.h"

#define READ_FILE (LL_FS_READ_FILE | LL_FS_EXECUTE)
#define READ_DIRECTORY (READ_FILE | LL_FS_READ_DIR)
#define WRITE_FILE (READ_FILE | LL_FS_WRITE_FILE | LL_FS_TRUNCATE)
#define WRITE_DIRECTORY                                                                            \
        (READ_DIRECTORY | WRITE_FILE | LL_FS_REMOVE_DIR | LL_FS_REMOVE_FILE | LL_FS_MAKE_DIR |     \
         LL_FS_MAKE_REG | LL_FS_MAKE_SOCK | LL_FS_MAKE_FIFO | LL_FS_MAKE_SYM | LL_FS_REFER)
#define USE_DEVICE (LL_FS_READ_FILE | LL_FS_WRITE_FILE | LL_FS_TRUNCATE | LL_FS_IOCTL_DEV)
#define HANDLED (WRITE_DIRECTORY | LL_FS_MAKE_CHAR | LL_FS_MAKE_BLOCK | LL_FS_IOCTL_DEV)

/* ---- Files ---- */

static int allow(struct child *child, int ruleset, int fd, uint64_t access)
{
        struct ll_path_beneath_attr rule = {
                .allowed_access = landlock_known(child->plan->landlock_abi, access), .parent_fd = fd
        };

        if (syscall(SYS_landlock_add_rule, ruleset, LL_RULE_PATH_BENEATH, &rule, 0) < 0)
                return step_failed(child, "add a Landlock rule", NULL, errno);
        return 0;
}

static uint64_t write_directory(const struct plan *plan)
{
        return plan->unnamed ? WRITE_DIRECTORY & ~LL_FS_MAKE_SOCK : WRITE_DIRECTORY;
}

static uint64_t access_of(const struct plan *plan, const struct plan_rule *rule)
{
        switch (rule->access) {
        case PLAN_READS:
                return rule->directory ? READ_DIRECTORY : READ_FILE;
        case PLAN_LISTS:
                return LL_FS_READ_DIR;
        case PLAN_USES:
                return USE_DEVICE;
        case PLAN_WRITES:
                return rule->directory ? write_directory(plan) : WRITE_FILE;
        }
        return 0;
}

static int enter_domain(struct child *child)
{
        int abi = child->plan->landlock_abi, r = 0;
        _cleanup_fd_ int ruleset = -1;

        if (abi == 0 || !box_fence(FENCE_LANDLOCK))
                return 0;
        ruleset = landlock_create(abi, HANDLED, LL_SCOPE_ABSTRACT_UNIX_SOCKET | LL_SCOPE_SIGNAL);
        if (ruleset < 0)
                return step_failed(child, "make a Landlock ruleset", NULL, errno);
        for (size_t i = 0; r == 0 && i < child->plan->n_rules; i++)
                r = allow(child, ruleset, child->plan->rules[i].fd,
                          access_of(child->plan, &child->plan->rules[i]));
        if (r == 0)
                r = allow(child, ruleset, child->scratch, write_directory(child->plan));
        if (r < 0)
                return r;
        if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
                return step_failed(child, "enter the Landlock domain", NULL, errno);
        child->page->landlock_abi = abi;
        child->scoped = abi >= 6;
        return 0;
}

/* A ruleset about signals alone. Every domain denies moves between directories that it does not
 * allow, so it has to. */
int box_open_scope(struct child *child, int *ret)
{
        _cleanup_fd_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        _cleanup_fd_ int ruleset = landlock_create(child->plan->landlock_abi, LL_FS_REFER,
                                                   LL_SCOPE_ABSTRACT_UNIX_SOCKET | LL_SCOPE_SIGNAL);
        int r;

        if (root < 0 || ruleset < 0)
                return step_failed(child, "make a Landlock ruleset", NULL, errno);
        r = allow(child, ruleset, root, LL_FS_REFER);
        if (r == 0)
                *ret = TAKE_FD(ruleset);
        return r;
}

/* From ABI 6 on: this process signals nobody but those who are started from it. */
int box_scope_signals(struct child *child)
{
        _cleanup_fd_ int ruleset = -1;
        int r;

        if (child->plan->landlock_abi < 6 || !box_fence(FENCE_LANDLOCK))
                return 0;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return step_failed(child, "forbid new privileges", NULL, errno);
        r = box_open_scope(child, &ruleset);
        if (r < 0)
                return r;
        if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
                return step_failed(child, "keep signals inside", NULL, errno);
        child->scoped = true;
        return 0;
}

/* ---- Who it is ---- */

static bool has_capability(unsigned capability)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct sets[2] = { 0 };

        return syscall(SYS_capget, &header, sets) == 0 && (sets[0].effective & 1U << capability);
}

/* The sets that only a privileged process can empty; for any other no_new_privs closes them. */
static int empty_bounds(struct child *child)
{
        return has_capability(CAP_SETPCAP) ? box_empty_bounds(child) : 0;
}

static int become_user(struct child *child)
{
        const struct plan *plan = child->plan;

        if (!plan->privileged)
                return 0;
        if (syscall(SYS_setgroups, 0, NULL) < 0 ||
            syscall(SYS_setresgid, plan->host_gid, plan->host_gid, plan->host_gid) < 0 ||
            syscall(SYS_setresuid, plan->host_uid, plan->host_uid, plan->host_uid) < 0)
                return step_failed(child, "become the box's user", NULL, errno);
        return 0;
}

static int forgo_privileges(struct child *child)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct sets[2] = { 0 };
        int r = empty_bounds(child);

        if (r == 0)
                r = become_user(child);
        if (r < 0)
                return r;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
            syscall(SYS_capset, &header, sets) < 0)
                return step_failed(child, "drop the capabilities", NULL, errno);
        /* Assert, don't hope. */
        if (syscall(SYS_capget, &header, sets) < 0 || sets[0].permitted != 0 ||
            sets[1].permitted != 0)
                return step_failed(child, "see the capabilities gone", NULL, EPERM);
        /* Its memory and its descriptors are nobody's to look into. */
        if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
                return step_failed(child, "close init to its children", NULL, errno);
        return 0;
}

/* ---- The order ---- */

/* Into the call's control group, where there is one: without the keeper, which outlives it. */
int box_enter_cgroup(struct child *child)
{
        _cleanup_fd_ int fd = -1;

        if (child->cgroup < 0)
                return 0;
        fd = openat(child->cgroup, "cgroup.procs", O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, "0", 1) != 1)
                return step_failed(child, "enter the control group", NULL, errno);
        return 0;
}

static int begin(struct child *child)
{
        child->keeper = (int)syscall(SYS_pidfd_open, child->keeper_pid, 0);
        if (child->keeper < 0 || getppid() != child->keeper_pid)
                return step_failed(child, "watch the box's keeper", NULL, ESRCH);
        if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
                return step_failed(child, "become the box's reaper", NULL, errno);
        return box_enter_cgroup(child);
}

/* Without a box: whatever the program starts can be ended, which a program that gains other rights
 * by being executed could not. */
static int forgo_gains(struct child *child)
{
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return step_failed(child, "forbid new privileges", NULL, errno);
        return 0;
}

_Noreturn void box_enter_cage(struct child *child)
{
        const char failed = BOX_FAILED;
        bool boxed = !child->plan->unboxed;
        int r = box_begin(child);

        if (r == 0)
                r = begin(child);
        if (r == 0)
                r = boxed ? forgo_privileges(child) : forgo_gains(child);
        if (r == 0 && child->plan->tty) /* of the host's terminals it will reach no other */
                r = box_make_terminal(child);
        if (r == 0 && boxed)
                r = enter_domain(child);
        if (r == 0)
                r = box_start_main(child); /* puts up its own fences */
        if (r == 0)
                box_init(child);
        (void)!write(child->control, &failed, 1);
        syscall(SYS_exit_group, 1);
        __builtin_unreachable();
}
