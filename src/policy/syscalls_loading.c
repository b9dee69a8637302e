/* SPDX-License-Identifier: MIT */
/*
 * A second filter for a zygote, while it loads: what makes, changes or takes away files, and what
 * connects, goes to the init of its box, as it would in the box of a call. A chain of filters has
 * one listener, and the boxes that are forked later need theirs: so init leaves this one when the
 * zygote has loaded, and what it would have sent there is refused from then on (ENOSYS), but for
 * calls with a word that only init of a forked box has been told (box/own.h), and for those that
 * the newer filter of a call sends to its own init.
 *
 * Which call it is comes first: of all others the kernel notes once that they are allowed.
 */
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "policy/syscalls_rules.h"
#include "policy/syscalls_table.h"

#define CODE_MAX 256
#define NAMELESS (O_TMPFILE & ~O_DIRECTORY)
#define LOW(n) ((uint32_t)offsetof(struct seccomp_data, args[n]))
#define HIGH(n) (LOW(n) + 4U)

/* Where a call goes on. */
enum target { MARKED, MARKED_OR_NONE, OPEN, OPENAT, LOCAL, N_TARGETS };

struct code {
        struct sock_filter *filter;
        unsigned short n;
        unsigned short jumps[CODE_MAX]; /* that have to be set, and to where */
        enum target targets[CODE_MAX];
        unsigned short n_jumps;
};

static void put(struct code *code, unsigned short what, uint8_t yes, uint8_t no, uint32_t value)
{
        code->filter[code->n++] = (struct sock_filter){ what, yes, no, value };
}

static void load(struct code *code, uint32_t offset)
{
        put(code, BPF_LD | BPF_W | BPF_ABS, 0, 0, offset);
}

static void answer(struct code *code, uint32_t action)
{
        put(code, BPF_RET | BPF_K, 0, 0, action);
}

/* Calls of this number go on there. */
static void go_on(struct code *code, int number, enum target target)
{
        if (number < 0) /* one that this libseccomp does not know */
                return;
        put(code, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)number);
        code->jumps[code->n_jumps] = code->n;
        code->targets[code->n_jumps++] = target;
        put(code, BPF_JMP | BPF_JA, 0, 0, 0);
}

static void go_on_all(struct code *code, const char *const *names, size_t n)
{
        for (size_t i = 0; i < n; i++)
                go_on(code, seccomp_syscall_resolve_name(names[i]), MARKED);
}

/* It is allowed with the mark, and otherwise this is what comes of it. */
static void check_mark(struct code *code, uint64_t mark, uint32_t otherwise)
{
        load(code, LOW(5));
        put(code, BPF_JMP | BPF_JEQ | BPF_K, 0, 3, (uint32_t)mark);
        load(code, HIGH(5));
        put(code, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)(mark >> 32));
        answer(code, SECCOMP_RET_ALLOW);
        answer(code, otherwise);
}

/* An opening that is no change is anyone's. */
static void check_opening(struct code *code, unsigned flags, uint64_t mark)
{
        load(code, LOW(flags));
        put(code, BPF_JMP | BPF_JSET | BPF_K, 1, 0, O_PATH);
        put(code, BPF_JMP | BPF_JSET | BPF_K, 1, 0, O_ACCMODE | O_TRUNC | O_CREAT | NAMELESS);
        answer(code, SECCOMP_RET_ALLOW);
        check_mark(code, mark, SECCOMP_RET_USER_NOTIF);
}

/* Local sockets that send without connecting could name any path. */
static void check_local(struct code *code, uint64_t mark)
{
        load(code, LOW(0));
        put(code, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, AF_UNIX);
        load(code, LOW(1));
        put(code, BPF_ALU | BPF_AND | BPF_K, 0, 0, 0xf);
        put(code, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SOCK_STREAM);
        put(code, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SOCK_SEQPACKET);
        answer(code, SECCOMP_RET_ALLOW);
        check_mark(code, mark, SECCOMP_RET_USER_NOTIF);
}

int syscalls_compile_loading(unsigned variant, uint64_t mark, struct sock_filter **ret,
                             unsigned short *ret_n)
{
        struct code code = { .filter = calloc(CODE_MAX, sizeof(*code.filter)) };
        unsigned short at[N_TARGETS];

        if (!code.filter)
                return -ENOMEM;
        load(&code, (uint32_t)offsetof(struct seccomp_data, arch));
        put(&code, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, AUDIT_ARCH_X86_64);
        answer(&code, SECCOMP_RET_ALLOW); /* the other filter refuses it */
        load(&code, (uint32_t)offsetof(struct seccomp_data, nr));
        if (variant & SYSCALLS_GUARDED) {
                go_on_all(&code, syscalls_naming, ARRAY_SIZE(syscalls_naming));
                go_on_all(&code, syscalls_changing, ARRAY_SIZE(syscalls_changing));
                go_on(&code, SYS_open, OPEN);
                go_on(&code, SYS_openat, OPENAT);
        }
        if (variant & SYSCALLS_SOCKETS) {
                go_on(&code, SYS_connect, MARKED);
                go_on(&code, SYS_socket, LOCAL);
                go_on(&code, SYS_socketpair, LOCAL);
        }
        go_on(&code, SYS_openat2, MARKED_OR_NONE); /* flags behind a pointer: programs use openat */
        answer(&code, SECCOMP_RET_ALLOW);
        at[MARKED] = code.n;
        check_mark(&code, mark, SECCOMP_RET_USER_NOTIF);
        at[MARKED_OR_NONE] = code.n;
        check_mark(&code, mark, SECCOMP_RET_ERRNO | ENOSYS);
        at[OPEN] = code.n;
        check_opening(&code, 1, mark);
        at[OPENAT] = code.n;
        check_opening(&code, 2, mark);
        at[LOCAL] = code.n;
        check_local(&code, mark);
        for (unsigned short i = 0; i < code.n_jumps; i++)
                code.filter[code.jumps[i]].k = at[code.targets[i]] - code.jumps[i] - 1U;
        *ret = code.filter;
        *ret_n = code.n;
        return 0;
}
