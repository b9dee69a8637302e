/* SPDX-License-Identifier: MIT */
/*
 * The second fence around files: Landlock refuses every change outside the places that the plan
 * makes writable, should a mount ever turn out less read-only than it was meant to be. Where the
 * kernel knows how, it also keeps signals and abstract sockets inside the box.
 */
#include <fcntl.h>
#include <sys/syscall.h>

#include "box/child.h"
#include "policy/landlock_abi.h"

#define CHANGE_FILE (LL_FS_WRITE_FILE | LL_FS_TRUNCATE)
#define CHANGE_DIRECTORY                                                                           \
        (CHANGE_FILE | LL_FS_REMOVE_DIR | LL_FS_REMOVE_FILE | LL_FS_MAKE_CHAR | LL_FS_MAKE_DIR |   \
         LL_FS_MAKE_REG | LL_FS_MAKE_SOCK | LL_FS_MAKE_FIFO | LL_FS_MAKE_BLOCK | LL_FS_MAKE_SYM |  \
         LL_FS_REFER)
#define USE_DEVICE (CHANGE_FILE | LL_FS_IOCTL_DEV)

static uint64_t known(int abi, uint64_t access)
{
        if (abi < 5)
                access &= ~LL_FS_IOCTL_DEV;
        if (abi < 3)
                access &= ~LL_FS_TRUNCATE;
        if (abi < 2)
                access &= ~LL_FS_REFER;
        return access;
}

static int allow(struct child *child, int ruleset, const char *path, uint64_t access)
{
        struct ll_path_beneath_attr rule = { .allowed_access =
                                                     known(child->plan->landlock_abi, access) };
        _cleanup_fd_ int fd = open(path, O_PATH | O_CLOEXEC);

        if (fd < 0)
                return step_failed(child, "open for Landlock", path, errno);
        rule.parent_fd = fd;
        if (syscall(SYS_landlock_add_rule, ruleset, LL_RULE_PATH_BENEATH, &rule, 0) < 0)
                return step_failed(child, "add a Landlock rule", path, errno);
        return 0;
}

static int allow_writable(struct child *child, int ruleset)
{
        int r = allow(child, ruleset, "/dev", USE_DEVICE);

        if (r == 0)
                r = allow(child, ruleset, "/dev/shm", CHANGE_DIRECTORY);
        for (size_t i = 0; r == 0 && i < child->plan->n_steps; i++) {
                const struct plan_step *step = &child->plan->steps[i];

                if (step->kind == PLAN_TMPFS || (step->kind == PLAN_TREE && step->writable))
                        r = allow(child, ruleset, step->target,
                                  step->directory ? CHANGE_DIRECTORY : CHANGE_FILE);
        }
        return r;
}

/* Where the kernel has it. A zygote goes without: nothing can be mounted in a Landlock domain, nor
 * in what is forked from it. */
static bool is_wanted(const struct child *child)
{
        return child->plan->landlock_abi > 0 && !child->zygote && box_fence(FENCE_LANDLOCK) &&
               box_fence(FENCE_ROOT);
}

/* Made by init, which sees the finished root; -1 where there is to be none. */
int box_open_ruleset(struct child *child, int *ret)
{
        int abi = child->plan->landlock_abi, r;
        struct ll_ruleset_attr attr = {
                .handled_access_fs = known(abi, CHANGE_DIRECTORY | LL_FS_IOCTL_DEV),
                .scoped = abi >= 6 ? LL_SCOPE_ABSTRACT_UNIX_SOCKET | LL_SCOPE_SIGNAL : 0,
        };
        size_t size = abi >= 6   ? sizeof(attr)
                      : abi >= 4 ? offsetof(struct ll_ruleset_attr, scoped)
                                 : offsetof(struct ll_ruleset_attr, handled_access_net);
        _cleanup_fd_ int ruleset = -1;

        if (!is_wanted(child))
                return 0;
        ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
        if (ruleset < 0)
                return step_failed(child, "make a Landlock ruleset", NULL, errno);
        r = allow_writable(child, ruleset);
        if (r == 0)
                *ret = TAKE_FD(ruleset);
        return r;
}

int box_restrict_files(struct child *child, int ruleset)
{
        if (!is_wanted(child))
                return 0;
        if (ruleset < 0) /* a descriptor for which there is no room is dropped on the way */
                return step_failed(child, "take the Landlock ruleset", NULL, EMFILE);
        if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
                return step_failed(child, "enter the Landlock domain", NULL, errno);
        child->page->landlock_abi = child->plan->landlock_abi;
        return 0;
}
