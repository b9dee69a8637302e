/* SPDX-License-Identifier: MIT */
/*
 * The calls that are many in one: `fcntl`, `ioctl` and `socket`. Every box has the commands,
 * requests and kinds of sockets that are listed and no others: none that makes the host wait, loads
 * a part of the kernel, changes a file that was not opened to be changed, or makes a name that the
 * guard does not see.
 */
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "policy/syscalls_rules.h"
#include "policy/syscalls_table.h"

#ifndef F_OFD_GETLK
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#define F_OFD_SETLKW 38
#endif
#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#ifndef TIOCGPTPEER
#define TIOCGPTPEER 0x5441
#endif

/* Commands that touch nobody else: no leases, no notices, no delegations. The most used first. */
static const unsigned fcntl_commands[] = {
        F_GETFL,
        F_SETFD,
        F_GETFD,
        F_SETFL,
        F_DUPFD_CLOEXEC,
        F_DUPFD,
        F_SETLK,
        F_SETLKW,
        F_GETLK,
        F_OFD_SETLK,
        F_OFD_SETLKW,
        F_OFD_GETLK,
        F_ADD_SEALS,
        F_GET_SEALS,
        F_GETPIPE_SZ,
        F_GETOWN,
        F_GETOWN_EX, /* which libc makes of the one before */
        F_GETSIG,
        F_GETLEASE,
        1027 /* F_DUPFD_QUERY */,
        1028 /* F_CREATED_QUERY */,
};

/* Signals for a descriptor. They reach the box's own processes, where these have numbers of their
 * own. */
static const unsigned fcntl_owners[] = { F_SETOWN, F_SETOWN_EX, F_SETSIG };

/* Requests that change no file but the one that was opened to be changed. Of a terminal nothing
 * that types into it (TIOCSTI, TIOCLINUX), takes the console's output (TIOCCONS) or changes what it
 * is driven by (TIOCSETD); of a btrfs or bcachefs no subvolumes, whose names nobody would look at;
 * of a socket nothing that asks for a bridge or a VLAN, which the kernel would load. */
static const unsigned ioctl_requests[] = {
        /* descriptors */
        TCGETS,
        FIONBIO,
        FIOCLEX,
        FIONCLEX,
        FIOASYNC,
        FIONREAD,
        FIOQSIZE,
        FIGETBSZ,
        FICLONE,
        FICLONERANGE,
        FS_IOC_GETFLAGS,
        FS_IOC_FIEMAP,
        FS_IOC_FSGETXATTR,
        FS_IOC_GETVERSION,
        /* terminals */
        TIOCGWINSZ,
        TCSETS,
        TCSETSW,
        TCSETSF,
        TCGETA,
        TCSETA,
        TCSETAW,
        TCSETAF,
        TCSBRK,
        TCXONC,
        TCFLSH,
        TIOCEXCL,
        TIOCNXCL,
        TIOCSCTTY,
        TIOCGPGRP,
        TIOCSPGRP,
        TIOCOUTQ,
        TIOCSWINSZ,
        TIOCGSID,
        TIOCNOTTY,
        TIOCGETD,
        TCSBRKP,
        TIOCGPTN,
        TIOCSPTLCK,
        TIOCGPTLCK,
        TIOCGPTPEER,
        TIOCPKT,
        TIOCGPKT,
        TIOCGEXCL,
        0x802c542a /* TCGETS2 */,
        0x402c542b /* TCSETS2 */,
        0x402c542c,
        0x402c542d,
        /* sockets, where there are any */
        0x8906 /* SIOCGSTAMP */,
        0x8907 /* SIOCGSTAMPNS */,
        0x8905 /* SIOCATMARK */,
        0x8910 /* SIOCGIFNAME */,
        0x8912 /* SIOCGIFCONF */,
        0x8913 /* SIOCGIFFLAGS */,
        0x8915 /* SIOCGIFADDR */,
        0x8917 /* SIOCGIFDSTADDR */,
        0x8919 /* SIOCGIFBRDADDR */,
        0x891b /* SIOCGIFNETMASK */,
        0x891d /* SIOCGIFMETRIC */,
        0x8921 /* SIOCGIFMTU */,
        0x8927 /* SIOCGIFHWADDR */,
        0x8933 /* SIOCGIFINDEX */,
        0x8942 /* SIOCGIFTXQLEN */,
        /* random numbers */
        0x80045200 /* RNDGETENTCNT */,
};

/* Of a file that is open for reading, where a mount says whether it may be changed and nobody takes
 * that mount away. */
static const unsigned ioctl_flags[] = { FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR };

/* ... and those whose answer is about the box's own network and processes. */
static const unsigned ioctl_apart[] = {
        FIDEDUPERANGE,          0x8901 /* FIOSETOWN */, 0x8902 /* SIOCSPGRP */,
        0x8903 /* FIOGETOWN */, 0x8904 /* SIOCGPGRP */, 0x8946 /* SIOCETHTOOL */,
};

/* What the init of a box does that is forked from a zygote, whose filter it has: it serves calls,
 * and sees by a lease that nobody else has a memory file any more (box/shared.c). */
static const unsigned fcntl_forking[] = { F_SETLEASE };
static const unsigned ioctl_forking[] = {
        SECCOMP_IOCTL_NOTIF_RECV,     SECCOMP_IOCTL_NOTIF_SEND,
        SECCOMP_IOCTL_NOTIF_ID_VALID, 0x40082102 /* the same, as it was first numbered */,
        SECCOMP_IOCTL_NOTIF_ADDFD,    0x40082104 /* SECCOMP_IOCTL_NOTIF_SET_FLAGS */,
        0x8914 /* SIOCSIFFLAGS */,
};

static int add_values(struct rules *rules, const char *name, const unsigned *values, size_t n)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < n; i++)
                r = rules_add(rules, SCMP_ACT_ALLOW, name, 1,
                              &SCMP_A1(SCMP_CMP_MASKED_EQ, RULES_LOW32, values[i]));
        return r;
}

int rules_add_requests(struct rules *rules)
{
        bool caged = rules->variant & SYSCALLS_CAGED, zygote = rules->variant & SYSCALLS_ZYGOTE;
        int r = add_values(rules, "fcntl", fcntl_commands, ARRAY_SIZE(fcntl_commands));

        if (r == 0 && !caged)
                r = add_values(rules, "fcntl", fcntl_owners, ARRAY_SIZE(fcntl_owners));
        if (r == 0)
                r = add_values(rules, "ioctl", ioctl_requests, ARRAY_SIZE(ioctl_requests));
        if (r == 0 && !caged)
                r = add_values(rules, "ioctl", ioctl_apart, ARRAY_SIZE(ioctl_apart));
        if (r == 0 && !caged && !(rules->variant & (SYSCALLS_GUARDED | SYSCALLS_HIDING)))
                r = add_values(rules, "ioctl", ioctl_flags, ARRAY_SIZE(ioctl_flags));
        if (r == 0 && zygote)
                r = add_values(rules, "fcntl", fcntl_forking, ARRAY_SIZE(fcntl_forking));
        if (r == 0 && zygote)
                r = add_values(rules, "ioctl", ioctl_forking, ARRAY_SIZE(ioctl_forking));
        return r;
}

/* MPTCP is what programs try before TCP: they are told that there is none, and nobody counts it. */
int rules_add_network_sockets(struct rules *rules)
{
        static const int families[] = { AF_INET, AF_INET6 };
        bool seen = rules->variant & SYSCALLS_LENT; /* by init, which lets these go on */
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(families); i++)
                r = rules_add(rules, SCMP_ACT_ERRNO(EPROTONOSUPPORT), "socket", 2,
                              (struct scmp_arg_cmp[]){
                                      SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i]),
                                      SCMP_A2(SCMP_CMP_MASKED_EQ, RULES_LOW32, IPPROTO_MPTCP) });
        for (size_t i = 0; r == 0 && !seen && i < ARRAY_SIZE(syscalls_sockets); i++)
                r = rules_add(rules, SCMP_ACT_ALLOW, "socket", 3,
                              (struct scmp_arg_cmp[]){
                                      SCMP_A0(SCMP_CMP_EQ, syscalls_sockets[i].family),
                                      SCMP_A1(SCMP_CMP_MASKED_EQ, SYSCALLS_SOCKET_KIND,
                                              syscalls_sockets[i].kind),
                                      SCMP_A2(SCMP_CMP_MASKED_EQ, RULES_LOW32,
                                              syscalls_sockets[i].protocol) });
        return r;
}
