/* SPDX-License-Identifier: MIT */
/* A compacted filter decides as the one that libseccomp wrote, call by call. */
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "policy/syscalls.h"

/* The part of classic BPF that libseccomp makes use of. */
static uint32_t run(const struct sock_filter *filter, size_t length,
                    const struct seccomp_data *data)
{
        uint32_t a = 0;

        for (size_t at = 0; at < length;) {
                const struct sock_filter *i = &filter[at++];

                switch (i->code) {
                case BPF_LD | BPF_W | BPF_ABS:
                        memcpy(&a, (const char *)data + i->k, sizeof(a));
                        break;
                case BPF_ALU | BPF_AND | BPF_K:
                        a &= i->k;
                        break;
                case BPF_JMP | BPF_JA:
                        at += i->k;
                        break;
                case BPF_JMP | BPF_JEQ | BPF_K:
                        at += a == i->k ? i->jt : i->jf;
                        break;
                case BPF_JMP | BPF_JGT | BPF_K:
                        at += a > i->k ? i->jt : i->jf;
                        break;
                case BPF_JMP | BPF_JGE | BPF_K:
                        at += a >= i->k ? i->jt : i->jf;
                        break;
                case BPF_RET | BPF_K:
                        return i->k;
                default:
                        fail_msg("instruction 0x%x", i->code);
                }
        }
        fail_msg("ran off the end");
        return 0;
}

static unsigned short compile(unsigned variant, char *const *allow, char *const *deny,
                              struct sock_filter *filter)
{
        scmp_filter_ctx context = seccomp_init(SCMP_ACT_NOTIFY);
        cbx_error error = CBX_ERROR_INIT;
        int fd = memfd_create("filter", MFD_CLOEXEC);
        ssize_t size;

        assert_non_null(context);
        assert_int_equal(syscalls_build(context, variant, allow, deny, &error), 0);
        assert_int_equal(seccomp_export_bpf(context, fd), 0);
        seccomp_release(context);
        size = pread(fd, filter, BPF_MAXINSNS * sizeof(*filter), 0);
        assert_true(size > 0);
        base_close(fd);
        return (unsigned short)((size_t)size / sizeof(*filter));
}

/* Every number around the known ones, and arguments in which the filters are interested. */
static void compare(const struct sock_filter *before, size_t n_before,
                    const struct sock_filter *after, size_t n_after)
{
        static const uint32_t arches[] = { AUDIT_ARCH_X86_64, AUDIT_ARCH_I386, 0 };
        static const uint32_t bases[] = { 0, 0x40000000, 0x80000000, 0xfffffc00 };
        static const uint64_t values[] = { 0,           1,           2,          5,
                                           10,          16,          0x40,       06755,
                                           0x10000,     0x10400,     0x10000000, 0xffffffff,
                                           3,           1024,        TIOCSETD,   TCGETS,
                                           0x100000000, 0x100000001, UINT64_MAX };

        for (size_t i = 0; i < ARRAY_SIZE(arches) * ARRAY_SIZE(bases) * 1024; i++)
                for (size_t j = 0; j < ARRAY_SIZE(values) * ARRAY_SIZE(values); j++) {
                        uint64_t one = values[j / ARRAY_SIZE(values)],
                                 other = values[j % ARRAY_SIZE(values)];
                        struct seccomp_data data = {
                                .nr = (int)(bases[i / 1024 % ARRAY_SIZE(bases)] + i % 1024),
                                .arch = arches[i / 1024 / ARRAY_SIZE(bases)],
                                .args = { one, other, one, other, one, other },
                        };

                        if (run(before, n_before, &data) != run(after, n_after, &data))
                                fail_msg("arch 0x%x, call %d, arguments 0x%llx 0x%llx", data.arch,
                                         data.nr, (unsigned long long)one,
                                         (unsigned long long)other);
                }
}

/* Every value that a filter compares anything with, and those beside it, as each argument. */
static void compare_constants(const struct sock_filter *before, size_t n_before,
                              const struct sock_filter *after, size_t n_after)
{
        for (size_t i = 0; i < n_before * 6; i++) {
                uint64_t value = before[i / 6].k - 1 + i % 3;
                size_t first = 0;

                while (before[first].k != before[i / 6].k)
                        first++;
                if (first < i / 6)
                        continue;
                if (i % 6 >= 3)
                        value |= 0x100000000;
                for (int number = 0; number < 512; number++) {
                        struct seccomp_data data = { .nr = number, .arch = AUDIT_ARCH_X86_64 };

                        for (size_t j = 0; j < ARRAY_SIZE(data.args); j++) {
                                data.args[j] = value;
                                if (run(before, n_before, &data) != run(after, n_after, &data))
                                        fail_msg("call %d, argument %zu 0x%llx", number, j,
                                                 (unsigned long long)value);
                        }
                }
        }
}

static void check(unsigned variant, char *const *allow, char *const *deny)
{
        static struct sock_filter before[BPF_MAXINSNS], after[BPF_MAXINSNS];
        unsigned short n_before = compile(variant, allow, deny, before), n_after = n_before;

        memcpy(after, before, n_before * sizeof(*before));
        syscalls_compact(after, &n_after);
        assert_true(n_after < n_before);
        compare(before, n_before, after, n_after);
        compare_constants(before, n_before, after, n_after);
}

static void compacted_filters_decide_alike(void **state)
{
        static const unsigned others[] = {
                SYSCALLS_SOCKETS | SYSCALLS_GUARDED | SYSCALLS_HIDING,
                SYSCALLS_SOCKETS | SYSCALLS_GUARDED | SYSCALLS_LENT,
                SYSCALLS_SOCKETS | SYSCALLS_GUARDED | SYSCALLS_CAGED,
                SYSCALLS_ZYGOTE,
        };

        (void)state;
        for (unsigned variant = 0; variant < 8; variant++)
                check(variant, NULL, NULL);
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                check(others[i], NULL, NULL);
}

static const struct {
        int number;
        uint64_t args[3];
        enum { REFUSED, ALLOWED, FORKING /* allowed for the init of a forked box */ } fate;
} calls[] = {
        { SYS_fcntl, { 3, F_GETFL }, ALLOWED },
        { SYS_fcntl, { 3, F_SETLKW }, ALLOWED },
        { SYS_fcntl, { 3, F_SETLEASE }, FORKING },
        { SYS_fcntl, { 3, F_SETPIPE_SZ, 0 }, ALLOWED },
        { SYS_fcntl, { 3, F_SETPIPE_SZ, 65535 }, ALLOWED },
        { SYS_fcntl, { 3, F_SETPIPE_SZ, 65536 }, ALLOWED },
        { SYS_fcntl, { 3, F_SETPIPE_SZ, 65537 }, REFUSED },
        { SYS_fcntl, { 3, F_SETPIPE_SZ, 131072 }, REFUSED },
        { SYS_fcntl, { 3, F_SETPIPE_SZ, 0x80000000 }, REFUSED },
        { SYS_setsockopt, { 3, SOL_SOCKET, SO_REUSEADDR }, ALLOWED },
        { SYS_setsockopt, { 3, SOL_SOCKET, SO_DETACH_FILTER }, ALLOWED },
        { SYS_setsockopt, { 3, SOL_SOCKET, SO_ATTACH_FILTER }, REFUSED },
        { SYS_setsockopt, { 3, SOL_SOCKET, SO_ATTACH_BPF }, REFUSED },
        { SYS_setsockopt, { 3, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF }, REFUSED },
        { SYS_setsockopt, { 3, SOL_SOCKET, SO_ATTACH_REUSEPORT_EBPF }, REFUSED },
        { SYS_setsockopt, { 3, IPPROTO_IP, SO_ATTACH_FILTER }, ALLOWED },
        { SYS_setsockopt, { 3, IPPROTO_IPV6, SO_ATTACH_FILTER }, ALLOWED },
        { SYS_landlock_create_ruleset, { 0 }, FORKING },
        { SYS_landlock_add_rule, { 0 }, FORKING },
        { SYS_landlock_restrict_self, { 0 }, ALLOWED },
        { SYS_fcntl, { 3, F_NOTIFY }, REFUSED },
        { SYS_fcntl, { 3, 1040 }, REFUSED },
        { SYS_ioctl, { 3, TCGETS }, ALLOWED },
        { SYS_ioctl, { 3, FIONBIO }, ALLOWED },
        { SYS_ioctl, { 3, 0x40049409 /* FICLONE */ }, ALLOWED },
        { SYS_ioctl, { 3, TIOCSETD }, REFUSED },
        { SYS_ioctl, { 3, TIOCSTI }, REFUSED },
        { SYS_ioctl, { 3, 0x5000940e }, REFUSED },
        { SYS_ioctl, { 3, 0x8940 }, REFUSED },
        { SYS_socket, { AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0 }, ALLOWED },
        { SYS_socket, { AF_INET6, SOCK_DGRAM, IPPROTO_UDP }, ALLOWED },
        { SYS_socket, { AF_INET, SOCK_STREAM, 262 }, REFUSED },
        { SYS_socket, { AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE }, REFUSED },
        { SYS_socket, { AF_INET, SOCK_RAW, IPPROTO_ICMP }, REFUSED },
        { SYS_socket, { AF_INET, 10, 0 }, REFUSED },
        { SYS_socket, { AF_NETLINK, SOCK_RAW, 16 }, REFUSED },
        { SYS_socket, { AF_ALG, SOCK_SEQPACKET, 0 }, REFUSED },
};

/* Calls that are many in one, by two arguments: in the filter of every kind of box, whatever is in
 * the half of a register at which the kernel does not look. */
static void requests_and_sockets_are_listed(void **state)
{
        static const unsigned variants[] = {
                0,
                SYSCALLS_SOCKETS,
                SYSCALLS_SOCKETS | SYSCALLS_GUARDED,
                SYSCALLS_ZYGOTE,
                SYSCALLS_CAGED | SYSCALLS_SOCKETS | SYSCALLS_GUARDED | SYSCALLS_ONLINE,
        };
        static struct sock_filter filter[BPF_MAXINSNS];

        (void)state;
        for (size_t v = 0; v < ARRAY_SIZE(variants); v++) {
                unsigned short n = compile(variants[v], NULL, NULL, filter);

                syscalls_compact(filter, &n);
                for (size_t i = 0; i < 4 * ARRAY_SIZE(calls); i++) {
                        uint64_t high = (uint64_t)(i % 4) << 62 | (uint64_t)(i % 4 != 0) << 32;
                        const uint64_t *args = calls[i / 4].args;
                        struct seccomp_data data = {
                                .nr = calls[i / 4].number,
                                .arch = AUDIT_ARCH_X86_64,
                                .args = { args[0], args[1] | high, args[2] | high },
                        };
                        bool due = calls[i / 4].fate == ALLOWED ||
                                   (calls[i / 4].fate == FORKING && variants[v] == SYSCALLS_ZYGOTE);
                        bool allowed = run(filter, n, &data) == SECCOMP_RET_ALLOW;

                        if (allowed != due)
                                fail_msg("variant 0x%x: call %d, 0x%llx 0x%llx is %s", variants[v],
                                         data.nr, (unsigned long long)data.args[1],
                                         (unsigned long long)data.args[2],
                                         allowed ? "allowed" : "refused");
                }
        }
}

static void so_do_those_of_a_policy(void **state)
{
        char *const allow[] = { (char *)"ptrace", (char *)"socket", NULL };
        char *const deny[] = { (char *)"fork", (char *)"clone", (char *)"uname", NULL };

        (void)state;
        check(SYSCALLS_SOCKETS, allow, deny);
}

static void what_is_not_known_is_left_alone(void **state)
{
        struct sock_filter filter[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
                                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 200, 0),
                                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL) };
        struct sock_filter copy[ARRAY_SIZE(filter)];
        unsigned short length = ARRAY_SIZE(filter);

        (void)state;
        memcpy(copy, filter, sizeof(filter));
        syscalls_compact(filter, &length);
        assert_int_equal(length, ARRAY_SIZE(filter));
        assert_memory_equal(filter, copy, sizeof(filter));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(compacted_filters_decide_alike),
                cmocka_unit_test(so_do_those_of_a_policy),
                cmocka_unit_test(requests_and_sockets_are_listed),
                cmocka_unit_test(what_is_not_known_is_left_alone),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
