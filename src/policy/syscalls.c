/* SPDX-License-Identifier: MIT */
/* The filter of a policy, and what a refused call is answered with. */
#include <linux/audit.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "default_filters.h"
#include "policy/json_read.h"
#include "policy/syscalls.h"

/* What a policy denies is not for a zygote to keep, but for the boxes that are forked from it. */
static char *const *denied(const cbx_policy *policy, unsigned variant)
{
        return variant & SYSCALLS_ZYGOTE ? NULL : policy->syscalls_deny;
}

static bool is_default(const cbx_policy *policy, unsigned variant)
{
        char *const *deny = denied(policy, variant);

        return (!policy->syscalls_allow || !policy->syscalls_allow[0]) && (!deny || !deny[0]);
}

static int export_filter(scmp_filter_ctx context, struct sock_filter **ret, unsigned short *ret_n)
{
        _cleanup_fd_ int fd = memfd_create("filter", MFD_CLOEXEC);
        _cleanup_free_ struct sock_filter *filter = NULL;
        struct stat st;
        int r;

        if (fd < 0)
                return -errno;
        r = seccomp_export_bpf(context, fd);
        if (r < 0)
                return r;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (st.st_size <= 0 || (size_t)st.st_size / sizeof(*filter) > BPF_MAXINSNS)
                return -EFBIG;
        filter = malloc((size_t)st.st_size);
        if (!filter)
                return -ENOMEM;
        if (pread(fd, filter, (size_t)st.st_size, 0) != (ssize_t)st.st_size)
                return -EIO;
        *ret_n = (unsigned short)((size_t)st.st_size / sizeof(*filter));
        syscalls_compact(filter, ret_n);
        *ret = TAKE_PTR(filter);
        return 0;
}

/* Compiled with callbox. */
static const struct {
        unsigned variant;
        const struct sock_filter *filter;
        unsigned short length;
} ready[] = {
        { 0, syscalls_default_filter, ARRAY_SIZE(syscalls_default_filter) },
        { SYSCALLS_SOCKETS, syscalls_shown_filter, ARRAY_SIZE(syscalls_shown_filter) },
        { SYSCALLS_SOCKETS | SYSCALLS_GUARDED, syscalls_guarded_filter,
          ARRAY_SIZE(syscalls_guarded_filter) },
        { SYSCALLS_SOCKETS | SYSCALLS_HIDING, syscalls_hiding_filter,
          ARRAY_SIZE(syscalls_hiding_filter) },
        { SYSCALLS_SOCKETS | SYSCALLS_GUARDED | SYSCALLS_HIDING, syscalls_guarded_hiding_filter,
          ARRAY_SIZE(syscalls_guarded_hiding_filter) },
        { SYSCALLS_LENT | SYSCALLS_SOCKETS | SYSCALLS_HIDING, syscalls_lent_hiding_filter,
          ARRAY_SIZE(syscalls_lent_hiding_filter) },
        { SYSCALLS_LENT | SYSCALLS_SOCKETS | SYSCALLS_GUARDED | SYSCALLS_HIDING,
          syscalls_lent_guarded_hiding_filter, ARRAY_SIZE(syscalls_lent_guarded_hiding_filter) },
        { SYSCALLS_LENT, syscalls_lent_filter, ARRAY_SIZE(syscalls_lent_filter) },
        { SYSCALLS_LENT | SYSCALLS_SOCKETS, syscalls_lent_shown_filter,
          ARRAY_SIZE(syscalls_lent_shown_filter) },
        { SYSCALLS_LENT | SYSCALLS_SOCKETS | SYSCALLS_GUARDED, syscalls_lent_guarded_filter,
          ARRAY_SIZE(syscalls_lent_guarded_filter) },
        { SYSCALLS_ZYGOTE, syscalls_zygote_filter, ARRAY_SIZE(syscalls_zygote_filter) },
        { SYSCALLS_CAGED | SYSCALLS_SOCKETS | SYSCALLS_GUARDED, syscalls_caged_filter,
          ARRAY_SIZE(syscalls_caged_filter) },
        { SYSCALLS_CAGED | SYSCALLS_SOCKETS | SYSCALLS_SIGNALS | SYSCALLS_GUARDED,
          syscalls_caged_old_filter, ARRAY_SIZE(syscalls_caged_old_filter) },
};

/* Refuse a name that nobody knows, with the one that was probably meant. */
static int check_names(char *const *names, const char *list, cbx_error *error)
{
        char *known[ARRAY_SIZE(syscalls_known)], where[64];
        struct json_words words = { known, 0, sizeof(known[0]) };
        const char *nearest;

        for (size_t i = 0; names && names[i]; i++) {
                if (seccomp_syscall_resolve_name(names[i]) != __NR_SCMP_ERROR)
                        continue;
                for (size_t j = 0; j < ARRAY_SIZE(syscalls_known); j++) {
                        known[words.count] = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE,
                                                                              syscalls_known[j]);
                        words.count += known[words.count] != NULL;
                }
                nearest = json_nearest(names[i], words);
                snprintf(where, sizeof(where), "syscalls.%s[%zu]", list, i);
                error_set(error, -EINVAL, where, "there is no system call named \"%s\"%s%s%s",
                          names[i], nearest ? "; did you mean \"" : "", nearest ? nearest : "",
                          nearest ? "\"?" : "");
                while (words.count > 0)
                        free(known[--words.count]);
                return -EINVAL;
        }
        return 0;
}

int syscalls_compile(const cbx_policy *policy, unsigned variant, cbx_error *error,
                     const struct sock_filter **ret_filter, unsigned short *ret_length,
                     struct sock_filter **ret_own)
{
        scmp_filter_ctx context;
        int r;

        for (size_t i = 0; is_default(policy, variant) && i < ARRAY_SIZE(ready); i++)
                if (ready[i].variant == variant) {
                        *ret_filter = ready[i].filter;
                        *ret_length = ready[i].length;
                        return 0;
                }
        r = check_names(policy->syscalls_deny, "deny", error);
        if (r == 0)
                r = check_names(policy->syscalls_allow, "allow", error);
        if (r < 0)
                return r;
        context = seccomp_init(syscalls_default(variant));
        if (!context)
                return error_oom(error);
        r = syscalls_build(context, variant, policy->syscalls_allow, denied(policy, variant),
                           error);
        if (r == 0) {
                r = export_filter(context, ret_own, ret_length);
                if (r < 0)
                        error_set(error, r, "syscalls", "cannot compile the filter: %s",
                                  strerror(-r));
                else
                        *ret_filter = *ret_own;
        }
        seccomp_release(context);
        return r;
}

#define X32_BIT 0x40000000
#define NEWER_FIRST 440

/* Calls that the library may be too old to know. They have the same number on every machine. */
static const char *const newer[] = {
        "process_madvise",
        "epoll_pwait2",
        "mount_setattr",
        "quotactl_fd",
        "landlock_create_ruleset",
        "landlock_add_rule",
        "landlock_restrict_self",
        "memfd_secret",
        "process_mrelease",
        "futex_waitv",
        "set_mempolicy_home_node",
        "cachestat",
        "fchmodat2",
        "map_shadow_stack",
        "futex_wake",
        "futex_wait",
        "futex_requeue",
        "statmount",
        "listmount",
        "lsm_get_self_attr",
        "lsm_set_self_attr",
        "lsm_list_modules",
        "mseal",
        "setxattrat",
        "getxattrat",
        "listxattrat",
        "removexattrat",
        "open_tree_attr",
        "file_getattr",
        "file_setattr",
        "listns",
};

bool syscalls_name(uint32_t arch, int number, char *ret, size_t room)
{
        bool known;
        const char *prefix = "";
        char *name;
        uint32_t token = SCMP_ARCH_X86_64;

        if (arch == AUDIT_ARCH_I386) {
                prefix = "i386:";
                token = SCMP_ARCH_X86;
        } else if (arch == AUDIT_ARCH_X86_64 && (number & X32_BIT)) {
                prefix = "x32:";
                number &= ~X32_BIT;
        }
        name = seccomp_syscall_resolve_num_arch(token, number);
        known = name != NULL;
        if (known)
                snprintf(ret, room, "%s%s", prefix, name);
        else if (number >= NEWER_FIRST && number < NEWER_FIRST + (int)ARRAY_SIZE(newer))
                snprintf(ret, room, "%s%s", prefix, newer[number - NEWER_FIRST]);
        else
                snprintf(ret, room, "%s#%d", prefix, number);
        free(name);
        return known;
}
