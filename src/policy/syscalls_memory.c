/* SPDX-License-Identifier: MIT */
/*
 * Calls by which a program takes memory that no look at its processes would find. Init answers them
 * and counts (box/shared.c).
 */
#include <sys/mman.h>
#include <sys/socket.h>

#include "policy/syscalls_rules.h"

#define LOW32 0xffffffffULL
#define OPTION_BITS 10 /* there are no higher ones */

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

/* Where the network is the host's, init does not see sockets on their way in messages of others, so
 * their buffers stay as large as they are for everyone: asking for another size does nothing, as it
 * does above what the host allows. Every other option or level differs in one of these bits. */
static int add_options(struct rules *rules)
{
        static const int sizes[] = { SO_SNDBUF, SO_RCVBUF };
        static const struct {
                scmp_datum_t mask, value;
        } others[] = { { 9, 0 }, { 10, 0 }, { 12, 0 }, { 9, 9 }, { 10, 10 }, { 12, 12 } };
        int r = 0;

        _Static_assert(SO_SNDBUF == 7 && SO_RCVBUF == 8, "what the others differ from");
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(sizes); i++) {
                struct scmp_arg_cmp size[] = {
                        SCMP_A1(SCMP_CMP_MASKED_EQ, LOW32, SOL_SOCKET),
                        SCMP_A2(SCMP_CMP_MASKED_EQ, LOW32, (scmp_datum_t)sizes[i]),
                };

                r = rules_add(rules, SCMP_ACT_ERRNO(0), "setsockopt", 2, size);
        }
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(others); i++)
                r = rules_add(rules, SCMP_ACT_ALLOW, "setsockopt", 1,
                              &SCMP_A2(SCMP_CMP_MASKED_EQ, others[i].mask, others[i].value));
        for (unsigned i = 0; r == 0 && i < OPTION_BITS; i++) {
                scmp_datum_t bit = 1U << i;

                r = rules_add(rules, SCMP_ACT_ALLOW, "setsockopt", 1,
                              &SCMP_A1(SCMP_CMP_MASKED_EQ, bit, ~(scmp_datum_t)SOL_SOCKET & bit));
                if (r == 0 && i >= 4)
                        r = rules_add(rules, SCMP_ACT_ALLOW, "setsockopt", 1,
                                      &SCMP_A2(SCMP_CMP_MASKED_EQ, bit, bit));
        }
        return r;
}

int rules_add_memory(struct rules *rules)
{
        int r;

        if (!(rules->variant & SYSCALLS_ZYGOTE)) {
                r = add_mapping(rules);
                return r == 0 && (rules->variant & SYSCALLS_CAGED) ? add_options(rules) : r;
        }
        /* Nobody answers its calls; what is forked from it has a filter of its own. */
        r = rules_add(rules, SCMP_ACT_ALLOW, "mmap", 0, NULL);
        if (r == 0)
                r = rules_add(rules, SCMP_ACT_ALLOW, "landlock_add_rule", 0, NULL);
        return r == 0 ? rules_add(rules, SCMP_ACT_ALLOW, "memfd_create", 0, NULL) : r;
}
