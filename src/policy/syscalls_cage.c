/* SPDX-License-Identifier: MIT */
/*
 * The rules of a box without namespaces. There the host's files, processes and queues are within
 * reach of the program's own user id; Landlock closes what is opened, these close what is not.
 */
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/prctl.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "policy/syscalls_rules.h"

#define LOW32 0xffffffffULL
#define IOPRIO_WHO_PROCESS 1
#ifndef F_OFD_GETLK
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#define F_OFD_SETLKW 38
#endif
#define TMPFILE 020000000 /* O_TMPFILE without O_DIRECTORY */
#define TIOCGPTPEER_ 0x5441

/* Commands that touch nobody else: no leases, no notices, no signals to owners. */
static const unsigned fcntl_commands[] = {
        F_DUPFD,
        F_DUPFD_CLOEXEC,
        F_GETFD,
        F_SETFD,
        F_GETFL,
        F_SETFL,
        F_GETLK,
        F_SETLK,
        F_SETLKW,
        F_OFD_GETLK,
        F_OFD_SETLK,
        F_OFD_SETLKW,
        F_GETOWN,
        F_GETSIG,
        F_SETPIPE_SZ,
        F_GETPIPE_SZ,
        F_ADD_SEALS,
        F_GET_SEALS,
        F_GETLEASE,
        1027,
        /* F_DUPFD_QUERY */ 1028, /* F_CREATED_QUERY */
};

/* Requests that change no file but the one that was opened to be changed: the owner of a file may
 * set its flags, seal it or make subvolumes beside it without writing to it. No typing into a
 * terminal either (TIOCSTI, TIOCLINUX). */
static const unsigned ioctl_requests[] = {
        /* descriptors */
        FIOCLEX,
        FIONCLEX,
        FIONBIO,
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
        TCGETS,
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
        TIOCGWINSZ,
        TIOCSWINSZ,
        TIOCGSID,
        TIOCNOTTY,
        TIOCSETD,
        TIOCGETD,
        TCSBRKP,
        TIOCGPTN,
        TIOCSPTLCK,
        TIOCGPTLCK,
        TIOCGPTPEER_,
        TIOCPKT,
        TIOCGPKT,
        TIOCGEXCL,
        0x802c542a /* TCGETS2 */,
        0x402c542b /* TCSETS2 */,
        0x402c542c,
        0x402c542d,
        /* sockets, where there are any */
        0x8906 /* SIOCGSTAMP */,
        0x8905 /* SIOCATMARK */,
        0x8910 /* SIOCGIFNAME */,
        0x8912 /* SIOCGIFCONF */,
        0x8913 /* SIOCGIFFLAGS */,
        0x8915 /* SIOCGIFADDR */,
        0x8919 /* SIOCGIFBRDADDR */,
        0x891b /* SIOCGIFNETMASK */,
        0x8921 /* SIOCGIFMTU */,
        0x8927 /* SIOCGIFHWADDR */,
        0x8933 /* SIOCGIFINDEX */,
        /* random numbers */
        0x80045200 /* RNDGETENTCNT */,
};

/* Of the process itself, named by 0. */
static const char *const own_scheduling[] = {
        "sched_setaffinity",
        "sched_setparam",
        "sched_setscheduler",
        "sched_setattr",
};

static int add_values(struct rules *rules, const char *name, const unsigned *values, size_t n)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < n; i++)
                r = rules_add(rules, SCMP_ACT_ALLOW, name, 1,
                              &SCMP_A1(SCMP_CMP_MASKED_EQ, LOW32, values[i]));
        return r;
}

/* A process that cannot be looked into cannot be looked after: its memory files would not be seen.
 * Asking for that does nothing. */
static int add_process_control(struct rules *rules)
{
        struct scmp_arg_cmp hide[] = { SCMP_A0(SCMP_CMP_MASKED_EQ, LOW32, PR_SET_DUMPABLE),
                                       SCMP_A1(SCMP_CMP_MASKED_EQ, LOW32, 0) };
        int r = rules_add(rules, SCMP_ACT_ERRNO(0), "prctl", 2, hide);

        /* Any other option differs from this one in a bit; and so does any other value. */
        for (unsigned i = 0; r == 0 && i < 32; i++) {
                scmp_datum_t bit = 1U << i;

                r = rules_add(rules, SCMP_ACT_ALLOW, "prctl", 1,
                              &SCMP_A0(SCMP_CMP_MASKED_EQ, bit,
                                       ~(scmp_datum_t)PR_SET_DUMPABLE & bit));
                if (r == 0)
                        r = rules_add(rules, SCMP_ACT_ALLOW, "prctl", 1,
                                      &SCMP_A1(SCMP_CMP_MASKED_EQ, bit, bit));
        }
        return r;
}

static int add_scheduling(struct rules *rules)
{
        struct scmp_arg_cmp priority[] = { SCMP_A0(SCMP_CMP_MASKED_EQ, LOW32, PRIO_PROCESS),
                                           SCMP_A1(SCMP_CMP_MASKED_EQ, LOW32, 0) };
        struct scmp_arg_cmp io[] = { SCMP_A0(SCMP_CMP_MASKED_EQ, LOW32, IOPRIO_WHO_PROCESS),
                                     SCMP_A1(SCMP_CMP_MASKED_EQ, LOW32, 0) };
        int r = rules_add(rules, SCMP_ACT_ALLOW, "setpriority", 2, priority);

        if (r == 0)
                r = rules_add(rules, SCMP_ACT_ALLOW, "ioprio_set", 2, io);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(own_scheduling); i++)
                r = rules_add(rules, SCMP_ACT_ALLOW, own_scheduling[i], 1,
                              &SCMP_A0(SCMP_CMP_MASKED_EQ, LOW32, 0));
        return r;
}

/* Opening, for reading alone: the rest is init's. So is what must not be a link and may be anything
 * else, which is how libc opens shared memory (guard_path.c). A file that is opened for reading and
 * truncated with it goes by Landlock before ABI 3. */
static int add_opening_of(struct rules *rules, const char *name, unsigned flags)
{
        const scmp_datum_t changes = O_ACCMODE | O_TRUNC | O_CREAT | TMPFILE;
        const struct {
                scmp_datum_t mask, value;
        } kinds[] = {
                { changes | O_NOFOLLOW, 0 },
                { changes | O_DIRECTORY, O_DIRECTORY },
                { changes | O_PATH, O_PATH },
        };
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(kinds); i++) {
                struct scmp_arg_cmp reads = { flags, SCMP_CMP_MASKED_EQ, kinds[i].mask,
                                              kinds[i].value };

                r = rules_add(rules, SCMP_ACT_ALLOW, name, 1, &reads);
        }
        return r;
}

int rules_add_caged(struct rules *rules)
{
        int r = add_values(rules, "fcntl", fcntl_commands, ARRAY_SIZE(fcntl_commands));

        if (r == 0)
                r = add_values(rules, "ioctl", ioctl_requests, ARRAY_SIZE(ioctl_requests));
        if (r == 0)
                r = add_process_control(rules);
        return r == 0 ? add_scheduling(rules) : r;
}

int rules_add_caged_opening(struct rules *rules)
{
        int r = 0;

        if (!rules_watched(rules, "open"))
                r = add_opening_of(rules, "open", 1);
        if (r == 0 && !rules_watched(rules, "openat"))
                r = add_opening_of(rules, "openat", 2);
        return r == 0 ? rules_add(rules, SCMP_ACT_ERRNO(ENOSYS), "openat2", 0, NULL) : r;
}
