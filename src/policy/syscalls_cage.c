/* SPDX-License-Identifier: MIT */
/*
 * The rules of a box without namespaces. There the host's files, processes and queues are within
 * reach of the program's own user id; Landlock closes what is opened, these close what is not.
 */
#include <fcntl.h>
#include <linux/prctl.h>
#include <sys/resource.h>

#include "policy/syscalls_rules.h"

#define IOPRIO_WHO_PROCESS 1
#define TMPFILE 020000000 /* O_TMPFILE without O_DIRECTORY */

/* Of the process itself, named by 0. */
static const char *const own_scheduling[] = {
        "sched_setaffinity",
        "sched_setparam",
        "sched_setscheduler",
        "sched_setattr",
};

/* A process that cannot be looked into cannot be looked after: its memory files would not be seen,
 * nor the paths that it names. Asking for that does nothing. */
int rules_add_served(struct rules *rules)
{
        static const unsigned bits = 7; /* in which all options there are differ from this one */
        struct scmp_arg_cmp dumpable = SCMP_A0(SCMP_CMP_MASKED_EQ, RULES_LOW32, PR_SET_DUMPABLE);
        struct scmp_arg_cmp hide[] = { dumpable, SCMP_A1(SCMP_CMP_MASKED_EQ, RULES_LOW32, 0) };
        struct scmp_arg_cmp show[] = { dumpable, SCMP_A1(SCMP_CMP_MASKED_EQ, RULES_LOW32, 1) };
        int r = rules_add(rules, SCMP_ACT_ERRNO(0), "prctl", 2, hide);

        if (r == 0)
                r = rules_add(rules, SCMP_ACT_ALLOW, "prctl", 2, show);
        for (unsigned i = 0; r == 0 && i < bits; i++) {
                scmp_datum_t bit = 1U << i;

                r = rules_add(rules, SCMP_ACT_ALLOW, "prctl", 1,
                              &SCMP_A0(SCMP_CMP_MASKED_EQ, bit,
                                       ~(scmp_datum_t)PR_SET_DUMPABLE & bit));
        }
        return r;
}

/* Attributes of a file are read by its name, without opening it: Landlock does not see it. They are
 * as on a file system that has none, with which programs that list and copy files do well. */
static int add_attributes(struct rules *rules)
{
        static const char *const names[] = { "getxattr",  "lgetxattr",  "fgetxattr",
                                             "listxattr", "llistxattr", "flistxattr" };
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(names); i++)
                r = rules_add(rules, SCMP_ACT_ERRNO(EOPNOTSUPP), names[i], 0, NULL);
        return r;
}

static int add_scheduling(struct rules *rules)
{
        struct scmp_arg_cmp priority[] = { SCMP_A0(SCMP_CMP_MASKED_EQ, RULES_LOW32, PRIO_PROCESS),
                                           SCMP_A1(SCMP_CMP_MASKED_EQ, RULES_LOW32, 0) };
        struct scmp_arg_cmp io[] = { SCMP_A0(SCMP_CMP_MASKED_EQ, RULES_LOW32, IOPRIO_WHO_PROCESS),
                                     SCMP_A1(SCMP_CMP_MASKED_EQ, RULES_LOW32, 0) };
        int r = rules_add(rules, SCMP_ACT_ALLOW, "setpriority", 2, priority);

        if (r == 0)
                r = rules_add(rules, SCMP_ACT_ALLOW, "ioprio_set", 2, io);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(own_scheduling); i++)
                r = rules_add(rules, SCMP_ACT_ALLOW, own_scheduling[i], 1,
                              &SCMP_A0(SCMP_CMP_MASKED_EQ, RULES_LOW32, 0));
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
                { changes | O_NOFOLLOW | O_PATH, 0 },
                { changes | O_DIRECTORY, O_DIRECTORY },
                { changes | O_NOFOLLOW | O_PATH, O_NOFOLLOW | O_PATH },
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
        int r = add_attributes(rules);

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
