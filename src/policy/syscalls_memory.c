/* SPDX-License-Identifier: MIT */
/*
 * Calls by which a program takes memory that no look at its processes would find. Init answers them
 * and counts (box/shared.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "policy/syscalls_rules.h"

#define OPTION_BITS 10 /* there are no higher ones */
#define PIPE_MAX 65536

/* A shared mapping without a file goes to init, and one of huge pages, which are set aside for
 * others; all others are the program's own. */
static int add_mapping(struct rules *rules)
{
        static const struct {
                scmp_datum_t mask, value;
        } kinds[] = {
                { MAP_HUGETLB | MAP_ANONYMOUS, 0 },
                { MAP_HUGETLB | MAP_SHARED, 0 },
                { MAP_HUGETLB | MAP_PRIVATE, MAP_PRIVATE },
        };
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(kinds); i++)
                r = rules_add(rules, SCMP_ACT_ALLOW, "mmap", 1,
                              &SCMP_A3(SCMP_CMP_MASKED_EQ, kinds[i].mask, kinds[i].value));
        return r;
}

/* Options of sockets that do not do what they do elsewhere.
 *
 * A filter is memory in a socket that may be on its way in a message of another, or of a kind that
 * the kernel does not tell of. Where the network is the host's, init does not see sockets on their
 * way, so their buffers stay as large as they are for everyone: asking for another size does
 * nothing, as it does above what the host allows. A zygote has sockets to the warden, and what it
 * sends there the warden closes: a connection that lingers would hold it up, for as long as the
 * zygote likes; asking for that does nothing, in the boxes that are forked from it as well. */
static const struct option {
        unsigned number, only; /* in which variants; 0: in all */
        uint32_t action;
} options[] = {
        { SO_ATTACH_FILTER, 0, SCMP_ACT_ERRNO(EPERM) },
        { SO_ATTACH_BPF, 0, SCMP_ACT_ERRNO(EPERM) },
        { SO_ATTACH_REUSEPORT_CBPF, 0, SCMP_ACT_ERRNO(EPERM) },
        { SO_ATTACH_REUSEPORT_EBPF, 0, SCMP_ACT_ERRNO(EPERM) },
        { SO_SNDBUF, SYSCALLS_CAGED, SCMP_ACT_ERRNO(0) },
        { SO_RCVBUF, SYSCALLS_CAGED, SCMP_ACT_ERRNO(0) },
        { SO_LINGER, SYSCALLS_ZYGOTE, SCMP_ACT_ERRNO(0) },
};

static bool is_there(const struct rules *rules, const struct option *option)
{
        return option->only == 0 || (rules->variant & option->only);
}

/* Allow the options whose bits of the mask have this value: all at once, or by the next bit. */
static int add_others(struct rules *rules, unsigned mask, unsigned value)
{
        unsigned next = mask ? (mask & -mask) >> 1 : 1U << (OPTION_BITS - 1);
        bool any = false;
        int r;

        for (size_t i = 0; i < ARRAY_SIZE(options); i++)
                any |= is_there(rules, &options[i]) && (options[i].number & mask) == value;
        if (!any)
                return rules_add(rules, SCMP_ACT_ALLOW, "setsockopt", 1,
                                 &SCMP_A2(SCMP_CMP_MASKED_EQ, mask, value));
        if (next == 0)
                return 0;
        r = add_others(rules, mask | next, value);
        return r == 0 ? add_others(rules, mask | next, value | next) : r;
}

static int add_options(struct rules *rules)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(options); i++)
                if (is_there(rules, &options[i]))
                        r = rules_add(rules, options[i].action, "setsockopt", 2,
                                      (struct scmp_arg_cmp[]){
                                              SCMP_A1(SCMP_CMP_MASKED_EQ, RULES_LOW32, SOL_SOCKET),
                                              SCMP_A2(SCMP_CMP_MASKED_EQ, RULES_LOW32,
                                                      options[i].number) });
        for (unsigned i = 0; r == 0 && i < OPTION_BITS; i++) {
                scmp_datum_t bit = 1U << i;

                r = rules_add(rules, SCMP_ACT_ALLOW, "setsockopt", 1,
                              &SCMP_A1(SCMP_CMP_MASKED_EQ, bit, ~(scmp_datum_t)SOL_SOCKET & bit));
        }
        return r == 0 ? add_others(rules, 0, 0) : r;
}

/* A pipe as large as it is from the start, or smaller. */
static int add_pipes(struct rules *rules)
{
        static const struct {
                scmp_datum_t mask, value;
        } sizes[] = { { 0xffff0000, 0 }, { RULES_LOW32, PIPE_MAX } };
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(sizes); i++)
                r = rules_add(rules, SCMP_ACT_ALLOW, "fcntl", 2,
                              (struct scmp_arg_cmp[]){
                                      SCMP_A1(SCMP_CMP_MASKED_EQ, RULES_LOW32, F_SETPIPE_SZ),
                                      SCMP_A2(SCMP_CMP_MASKED_EQ, sizes[i].mask, sizes[i].value) });
        return r;
}

/* A domain lives on in each file that was opened in it. Programs find no Landlock; main enters the
 * box's own, whose rules init has made. */
static int add_landlock(struct rules *rules, uint32_t action)
{
        int r = rules_add(rules, action, "landlock_create_ruleset", 0, NULL);

        return r == 0 ? rules_add(rules, action, "landlock_add_rule", 0, NULL) : r;
}

int rules_add_memory(struct rules *rules)
{
        int r = add_options(rules);

        if (r == 0)
                r = add_pipes(rules);
        if (r < 0)
                return r;
        if (!(rules->variant & SYSCALLS_ZYGOTE)) {
                r = add_mapping(rules);
                return r == 0 ? add_landlock(rules, SCMP_ACT_ERRNO(ENOSYS)) : r;
        }
        /* Nobody answers its calls; what is forked from it has a filter of its own, and its init
         * makes the rules. */
        r = rules_add(rules, SCMP_ACT_ALLOW, "mmap", 0, NULL);
        if (r == 0)
                r = add_landlock(rules, SCMP_ACT_ALLOW);
        return r == 0 ? rules_add(rules, SCMP_ACT_ALLOW, "memfd_create", 0, NULL) : r;
}
