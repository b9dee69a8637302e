/* SPDX-License-Identifier: MIT */
/* What a refused call is answered with. By itself: init asks for it, and needs no library. */
#include <errno.h>
#include <linux/audit.h>
#include <sys/syscall.h>

#include "default_filters.h"
#include "policy/syscalls.h"
#include "policy/syscalls_table.h"

#define X32_BIT 0x40000000

bool syscalls_is_network_socket(const uint64_t *arguments)
{
        for (size_t i = 0; i < ARRAY_SIZE(syscalls_sockets); i++)
                if (arguments[0] == syscalls_sockets[i].family &&
                    (arguments[1] & SYSCALLS_SOCKET_KIND) == syscalls_sockets[i].kind &&
                    (uint32_t)arguments[2] == syscalls_sockets[i].protocol)
                        return true;
        return false;
}

/* As a kernel answers that has no such family, kind or protocol. */
static int socket_errno(const uint64_t *arguments)
{
        if ((arguments[0] != AF_INET && arguments[0] != AF_INET6) ||
            syscalls_is_network_socket(arguments)) /* of a box that has no network at all */
                return EAFNOSUPPORT;
        return (arguments[1] & SYSCALLS_SOCKET_KIND) == SOCK_RAW ? EPERM : EPROTONOSUPPORT;
}

int syscalls_errno(uint32_t arch, int number, const uint64_t *arguments)
{
        if (arch != AUDIT_ARCH_X86_64 || (number & X32_BIT))
                return ENOSYS;
        if (number == SYS_socket)
                return socket_errno(arguments);
        if (number == SYS_ioctl) /* as of what has no such request: programs do without */
                return ENOTTY;
        for (size_t i = 0; i < ARRAY_SIZE(syscalls_known); i++)
                if (syscalls_known[i] == number)
                        return EPERM;
        return ENOSYS;
}
