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

static int allow(struct child *child, int ruleset, const char *path, uint64_t access)
{
        struct ll_path_beneath_attr rule = {
                .allowed_access = landlock_known(child->plan->landlock_abi, access)
        };
        _cleanup_fd_ int fd = open(path, O_PATH | O_CLOEXEC);

        if (fd < 0)
                return step_failed(child, "open for Landlock", path, errno);
        rule.parent_fd = fd;
        if (syscall(SYS_landlock_add_rule, ruleset, LL_RULE_PATH_BENEATH, &rule, 0) < 0)
                return step_failed(child, "add a Landlock rule", path, errno);
        return 0;
}

/* Not /dev/zero: a shared mapping of what is open for writing there is memory that nobody would
 * count (shared.c). The last one only where there is a terminal. */
static const char *const devices[] = { "/dev/null",    "/dev/full", "/dev/random",
                                       "/dev/urandom", "/dev/pts",  "/dev/tty" };

static int allow_writable(struct child *child, int ruleset)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(devices) - (child->plan->tty ? 0 : 1); i++)
                r = allow(child, ruleset, devices[i], USE_DEVICE);
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

/* Where the kernel has it; of main in a box without namespaces, from where it keeps signals. A
 * zygote goes without: nothing can be mounted in a Landlock domain, nor in what is forked from it.
 */
static bool is_wanted(const struct child *child)
{
        return child->plan->landlock_abi >= (child->plan->caged ? 6 : 1) && !child->zygote &&
               box_fence(FENCE_LANDLOCK) && box_fence(FENCE_ROOT);
}

/* Made by init, which sees the finished root; -1 where there is to be none. */
int box_open_ruleset(struct child *child, int *ret)
{
        int r;
        _cleanup_fd_ int ruleset = -1;

        if (!is_wanted(child))
                return 0;
        if (child->plan->caged) /* init is in the domain of files already */
                return box_open_scope(child, ret);
        ruleset = landlock_create(child->plan->landlock_abi, CHANGE_DIRECTORY | LL_FS_IOCTL_DEV,
                                  LL_SCOPE_ABSTRACT_UNIX_SOCKET | LL_SCOPE_SIGNAL);
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
