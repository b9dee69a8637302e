/* SPDX-License-Identifier: MIT */
/* What a refused call is answered with. By itself: init asks for it, and needs no library. */
#include <errno.h>
#include <linux/audit.h>
#include <sys/syscall.h>

#include "default_filters.h"
#include "policy/syscalls.h"

#define X32_BIT 0x40000000

int syscalls_errno(uint32_t arch, int number)
{
        if (arch != AUDIT_ARCH_X86_64 || (number & X32_BIT))
                return ENOSYS;
        if (number == SYS_socket)
                return EAFNOSUPPORT;
        for (size_t i = 0; i < ARRAY_SIZE(syscalls_known); i++)
                if (syscalls_known[i] == number)
                        return EPERM;
        return ENOSYS;
}
