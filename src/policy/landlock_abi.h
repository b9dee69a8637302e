/* SPDX-License-Identifier: MIT */
/* Landlock's interface: newer than the C library's headers, so spelled out here. */
#ifndef POLICY_LANDLOCK_ABI_H
#define POLICY_LANDLOCK_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LL_CREATE_RULESET_VERSION (1U << 0)
#define LL_RULE_PATH_BENEATH 1

#define LL_FS_EXECUTE (1ULL << 0)
#define LL_FS_WRITE_FILE (1ULL << 1)
#define LL_FS_READ_FILE (1ULL << 2)
#define LL_FS_READ_DIR (1ULL << 3)
#define LL_FS_REMOVE_DIR (1ULL << 4)
#define LL_FS_REMOVE_FILE (1ULL << 5)
#define LL_FS_MAKE_CHAR (1ULL << 6)
#define LL_FS_MAKE_DIR (1ULL << 7)
#define LL_FS_MAKE_REG (1ULL << 8)
#define LL_FS_MAKE_SOCK (1ULL << 9)
#define LL_FS_MAKE_FIFO (1ULL << 10)
#define LL_FS_MAKE_BLOCK (1ULL << 11)
#define LL_FS_MAKE_SYM (1ULL << 12)
#define LL_FS_REFER (1ULL << 13)     /* ABI 2 */
#define LL_FS_TRUNCATE (1ULL << 14)  /* ABI 3 */
#define LL_FS_IOCTL_DEV (1ULL << 15) /* ABI 5 */

#define LL_SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0) /* ABI 6 */
#define LL_SCOPE_SIGNAL (1ULL << 1)               /* ABI 6 */

struct ll_ruleset_attr {
        uint64_t handled_access_fs;
        uint64_t handled_access_net; /* ABI 4 */
        uint64_t scoped;             /* ABI 6 */
};

struct ll_path_beneath_attr {
        uint64_t allowed_access;
        int32_t parent_fd;
} __attribute__((packed));

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

/* Of these rights, those that a version knows. */
static inline uint64_t landlock_known(int abi, uint64_t access)
{
        if (abi < 5)
                access &= ~LL_FS_IOCTL_DEV;
        if (abi < 3)
                access &= ~LL_FS_TRUNCATE;
        if (abi < 2)
                access &= ~LL_FS_REFER;
        return access;
}

/* A ruleset that handles what the version knows of it; -1 with errno. */
static inline int landlock_create(int abi, uint64_t access, uint64_t scoped)
{
        struct ll_ruleset_attr attr = { .handled_access_fs = landlock_known(abi, access),
                                        .scoped = abi >= 6 ? scoped : 0 };
        size_t size = abi >= 6   ? sizeof(attr)
                      : abi >= 4 ? offsetof(struct ll_ruleset_attr, scoped)
                                 : offsetof(struct ll_ruleset_attr, handled_access_net);

        return (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
}

/* The version that the running kernel offers, 0 for none. */
static inline int landlock_abi(void)
{
        long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LL_CREATE_RULESET_VERSION);
#ifdef BOX_UNFENCED /* the attack suite tries older ones as well */
        const char *wanted = getenv("CALLBOX_LANDLOCK_ABI");

        if (wanted && *wanted && atoi(wanted) < abi)
                abi = atoi(wanted);
#endif

        return abi < 0 ? 0 : (int)abi;
}

#endif
