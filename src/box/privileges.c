/* SPDX-License-Identifier: MIT */
/* Fence: privileges. Every capability leaves every set, and no exec brings one back. */
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "box/child.h"

#define SECUREBITS                                                                                 \
        (SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |                           \
         SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |   \
         SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

/* Init keeps the right to look at the memory of the box's processes: it adds it up (watch.c) and
 * reads the names in refused calls. It means nothing outside the box's user namespace. */
#define KEPT_BY_INIT (1U << CAP_SYS_PTRACE)

int box_empty_bounds(struct child *child)
{
        int cap = 0;

        if (prctl(PR_SET_SECUREBITS, SECUREBITS, 0, 0, 0) < 0)
                return step_failed(child, "lock the secure bits", NULL, errno);
        while (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
                cap++;
        /* The first that the kernel does not know: neither to drop nor to read. */
        if (errno != EINVAL || prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0)
                return step_failed(child, "empty the bounding set", NULL, errno);
        return 0;
}

int box_drop_privileges(struct child *child, bool init)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct sets[2] = { 0 };
        int r;

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return step_failed(child, "forbid new privileges", NULL, errno);
        r = init ? 0 : box_empty_bounds(child);
        if (r < 0)
                return r;
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
                return step_failed(child, "clear the ambient capabilities", NULL, errno);
        if (init)
                sets[0].effective = sets[0].permitted = KEPT_BY_INIT;
        if (syscall(SYS_capset, &header, sets) < 0)
                return step_failed(child, "drop the capabilities", NULL, errno);

        /* Assert, don't hope. */
        if (syscall(SYS_capget, &header, sets) < 0 ||
            sets[0].permitted != (init ? KEPT_BY_INIT : 0) || sets[1].permitted != 0)
                return step_failed(child, "see the capabilities gone", NULL, EPERM);
        return 0;
}

/* For the test build: carry the capabilities of the box's user namespace over exec. */
int box_keep_privileges(struct child *child)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct sets[2];

        if (syscall(SYS_capget, &header, sets) < 0)
                return step_failed(child, "read the capabilities", NULL, errno);
        for (int i = 0; i < 2; i++)
                sets[i].inheritable = sets[i].permitted;
        if (syscall(SYS_capset, &header, sets) < 0)
                return step_failed(child, "keep the capabilities", NULL, errno);
        for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
                (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0);
        return 0;
}
