/* SPDX-License-Identifier: MIT */
/* Fill a libseccomp context with a box's rules. Linked into callbox and its build-time generator.
 */
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/netlink.h>
#include <linux/ptrace.h>
#include <sched.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "policy/syscalls_rules.h"
#include "policy/syscalls_table.h"

#define NAMESPACE_FLAGS                                                                            \
        (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | \
         CLONE_NEWCGROUP)
#define NAMELESS (O_TMPFILE & ~O_DIRECTORY) /* the one bit by which it is known */
#define FAMILIES_END 64                     /* above all that there are */
#ifndef AF_QIPCRTR
#define AF_QIPCRTR 42
#endif
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

/* Our own set-up makes these calls after the filter is loaded and before the program starts. */
static const char *const needed[] = {
        "execve",         "sendmsg",    "recvmsg",      "close_range",
        "dup3",           "chdir",      "openat",       "ioctl",
        "close",          "newfstatat", "rt_sigaction", "landlock_restrict_self",
        "rt_sigprocmask", "exit_group", "prlimit64",
};

static bool listed(const char *name, char *const *list)
{
        for (; list && *list; list++)
                if (strcmp(*list, name) == 0)
                        return true;
        return false;
}

static bool in_table(const char *name, const char *const *table, size_t length)
{
        for (size_t i = 0; i < length; i++)
                if (strcmp(table[i], name) == 0)
                        return true;
        return false;
}

/* A zygote that has loaded has nobody to ask (until then: syscalls_loading.c): there is one
 * listener at most in a chain of filters, and that is the one of a forked box. Without a tracer
 * this is ENOSYS, and where the policy allows one nothing is forked; where the filter of a box that
 * was forked asks its init, that goes first. */
uint32_t syscalls_default(unsigned variant)
{
        return variant & SYSCALLS_ZYGOTE ? SCMP_ACT_TRACE(0) : SCMP_ACT_NOTIFY;
}

/* Calls of which something stays closed when the policy opens them: they have rules of their own.
 */
static bool opens_in_part(const char *name)
{
        static const char *const names[] = { "socket", "clone", "unshare" };

        return in_table(name, names, ARRAY_SIZE(names));
}

bool rules_opened(const struct rules *rules, const char *name)
{
        const char *note;

        return listed(name, rules->allow) &&
               syscalls_effect(rules->variant, name, &note) == SYSCALLS_OPENED;
}

int rules_add(struct rules *rules, uint32_t action, const char *name, unsigned n,
              const struct scmp_arg_cmp *compare)
{
        int number, r;

        if (listed(name, rules->deny) ||
            (n > 0 && !opens_in_part(name) && rules_opened(rules, name)))
                return 0;
        number = seccomp_syscall_resolve_name(name);
        if (number == __NR_SCMP_ERROR || number < 0)
                return 0;
        r = seccomp_rule_add_array(rules->context, action, number, n, compare);
        return r < 0 ? error_set(rules->error, r, name, "cannot add a rule for %s: %s", name,
                                 strerror(-r))
                     : 0;
}

static bool sets_mode(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(syscalls_mode); i++)
                if (strcmp(syscalls_mode[i].name, name) == 0)
                        return true;
        return false;
}

bool rules_watched(const struct rules *rules, const char *name)
{
        if ((rules->variant & SYSCALLS_UNNAMED) &&
            (strcmp(name, "bind") == 0 || strcmp(name, "connect") == 0))
                return false;
        if ((rules->variant & SYSCALLS_GUARDED) &&
            (in_table(name, syscalls_naming, ARRAY_SIZE(syscalls_naming)) ||
             in_table(name, syscalls_changing, ARRAY_SIZE(syscalls_changing))))
                return true;
        if ((rules->variant & (SYSCALLS_SOCKETS | SYSCALLS_EXPLAIN)) &&
            strcmp(name, "connect") == 0)
                return true;
        if ((rules->variant & SYSCALLS_SIGNALS) &&
            in_table(name, syscalls_signalling, ARRAY_SIZE(syscalls_signalling)))
                return true;
        /* A mode that the policy lets through needs nobody who looks at it. */
        return (rules->variant & SYSCALLS_EXPLAIN) &&
               in_table(name, syscalls_looking, ARRAY_SIZE(syscalls_looking)) &&
               !(sets_mode(name) && rules_opened(rules, name));
}

/* Is it allowed elsewhere, but not or with conditions without namespaces? Where init makes calls
 * for the program it has to look into it. */
static bool closed_in_cage(const struct rules *rules, const char *name)
{
        if ((rules->variant & (SYSCALLS_GUARDED | SYSCALLS_HIDING)) && strcmp(name, "prctl") == 0)
                return true;
        return (rules->variant & SYSCALLS_CAGED) &&
               in_table(name, syscalls_caged, ARRAY_SIZE(syscalls_caged));
}

static int add_modes(struct rules *rules)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(syscalls_mode); i++) {
                struct scmp_arg_cmp plain = { syscalls_mode[i].mode, SCMP_CMP_MASKED_EQ,
                                              S_ISUID | S_ISGID, 0 };

                if (!rules_watched(rules, syscalls_mode[i].name))
                        r = rules_add(rules, SCMP_ACT_ALLOW, syscalls_mode[i].name, 1, &plain);
        }
        return r;
}

static int add_allowed(struct rules *rules, const char *const *table, size_t length)
{
        for (size_t i = 0; i < length; i++) {
                int r;

                if (rules_watched(rules, table[i]) || sets_mode(table[i]) ||
                    closed_in_cage(rules, table[i]))
                        continue;
                r = rules_add(rules, SCMP_ACT_ALLOW, table[i], 0, NULL);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Of a policy that opens sockets: every family, but for those that no network namespace keeps, and
 * for local ones, whose conditions the guard rests on. */
static int add_families(struct rules *rules)
{
        int r = 0;

        for (scmp_datum_t family = 0; r == 0 && family < FAMILIES_END; family++)
                if (family != AF_UNIX && family != AF_VSOCK && family != AF_QIPCRTR)
                        r = rules_add(rules, SCMP_ACT_ALLOW, "socket", 1,
                                      &SCMP_A0(SCMP_CMP_EQ, family));
        return r;
}

/* Sockets of the box's own network, and local ones. Where init has to look at connections, local
 * sockets must be of the kinds that connect: one that sends without it could name any path. Where
 * it cannot look at them, there are only those that are connected from the start, and stay it. */
static int add_sockets(struct rules *rules)
{
        static const int kinds[] = { SOCK_STREAM, SOCK_SEQPACKET };
        static const char *const makers[] = { "socket", "socketpair" };
        bool none = (rules->variant & SYSCALLS_CAGED) && !(rules->variant & SYSCALLS_ONLINE);
        bool all = rules_opened(rules, "socket");
        int r = all ? add_families(rules) : 0;

        if (r == 0 && !all && !none)
                r = rules_add_network_sockets(rules);
        for (size_t i = rules->variant & SYSCALLS_UNNAMED ? 1 : 0; r == 0 && i < ARRAY_SIZE(makers);
             i++) {
                if (!(rules->variant & SYSCALLS_SOCKETS))
                        r = rules_add(rules, SCMP_ACT_ALLOW, makers[i], 1,
                                      &SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
                for (size_t j = 0;
                     r == 0 && (rules->variant & SYSCALLS_SOCKETS) && j < ARRAY_SIZE(kinds); j++)
                        r = rules_add(rules, SCMP_ACT_ALLOW, makers[i], 2,
                                      (struct scmp_arg_cmp[]){ SCMP_A0(SCMP_CMP_EQ, AF_UNIX),
                                                               SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf,
                                                                       (scmp_datum_t)kinds[j]) });
        }
        return r;
}

/* Calls that are allowed with some arguments only. */
static int add_conditional(struct rules *rules)
{
        static const unsigned long personas[] = { PER_LINUX, 0xffffffff };
        scmp_datum_t made = rules_opened(rules, "clone") ? 0 : NAMESPACE_FLAGS;
        scmp_datum_t left = rules_opened(rules, "unshare") ? 0 : NAMESPACE_FLAGS | CLONE_NEWTIME;
        struct scmp_arg_cmp process = SCMP_A0(SCMP_CMP_MASKED_EQ, made | CLONE_THREAD, 0);
        struct scmp_arg_cmp thread = SCMP_A0(SCMP_CMP_MASKED_EQ, made | CLONE_THREAD | CLONE_FILES,
                                             CLONE_THREAD | CLONE_FILES);
        int r = add_sockets(rules);

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(personas); i++)
                r = rules_add(rules, SCMP_ACT_ALLOW, "personality", 1,
                              &SCMP_A0(SCMP_CMP_EQ, personas[i]));
        /* A thread shares its process's descriptors: what it held in a table of its own, init would
         * not find (box/watch.c). */
        if (r == 0)
                r = rules_add(rules, SCMP_ACT_ALLOW, "clone", 1, &process);
        if (r == 0)
                r = rules_add(rules, SCMP_ACT_ALLOW, "clone", 1, &thread);
        if (r == 0)
                r = rules_add(rules, SCMP_ACT_ALLOW, "close_range", 1,
                              &SCMP_A2(SCMP_CMP_MASKED_EQ, CLOSE_RANGE_UNSHARE, 0));
        if (r == 0)
                r = rules_add(rules, SCMP_ACT_ALLOW, "unshare", 1,
                              &SCMP_A0(SCMP_CMP_MASKED_EQ, left | CLONE_FILES, 0));
        /* Limits of others, init's among them, may be read but not set. */
        if (r == 0)
                r = rules_add(rules, SCMP_ACT_ALLOW, "prlimit64", 1,
                              &SCMP_A0(SCMP_CMP_MASKED_EQ, RULES_LOW32, 0));
        if (r == 0)
                r = rules_add(rules, SCMP_ACT_ALLOW, "prlimit64", 1, &SCMP_A2(SCMP_CMP_EQ, 0));
        /* Where init sees what is sent to an address, what has none goes without. */
        if (r == 0 && (rules->variant & SYSCALLS_EXPLAIN))
                r = rules_add(rules, SCMP_ACT_ALLOW, "sendto", 1, &SCMP_A4(SCMP_CMP_EQ, 0));
        /* Its flags are behind a pointer: libc falls back to clone, which can be checked. */
        if (r == 0)
                r = rules_add(rules, SCMP_ACT_ERRNO(ENOSYS), "clone3", 0, NULL);
        return r;
}

/* Whether an opening may go to the kernel at once is in its flags: for a directory or a link that
 * is only to be looked at always; for anything that is only to be looked at where nobody counts
 * memory files (box/shared.c); for reading where nothing is hidden; for the rest where nothing is
 * guarded.
 */
static int add_opening_of(struct rules *rules, const char *name, unsigned flags)
{
        const scmp_datum_t changes = O_ACCMODE | O_TRUNC | O_CREAT | NAMELESS;
        const scmp_datum_t looks[] = { O_PATH | O_NOFOLLOW, O_PATH | O_DIRECTORY, O_PATH };
        const struct scmp_arg_cmp reads = { flags, SCMP_CMP_MASKED_EQ, changes | O_PATH, 0 };
        const struct scmp_arg_cmp no_file = { flags, SCMP_CMP_MASKED_EQ,
                                              O_CREAT | NAMELESS | O_PATH, 0 };
        const struct scmp_arg_cmp plain[] = {
                { flags, SCMP_CMP_MASKED_EQ, O_PATH, 0 },
                { flags + 1, SCMP_CMP_MASKED_EQ, S_ISUID | S_ISGID, 0 },
        };
        bool guarded = rules->variant & SYSCALLS_GUARDED, hiding = rules->variant & SYSCALLS_HIDING;
        bool zygote = rules->variant & SYSCALLS_ZYGOTE;
        int r = 0;

        for (size_t i = 0; r == 0 && i < (zygote ? 3 : 2); i++)
                r = rules_add(rules, SCMP_ACT_ALLOW, name, 1,
                              &(struct scmp_arg_cmp){ flags, SCMP_CMP_MASKED_EQ, looks[i],
                                                      looks[i] });
        if (r < 0 || hiding)
                return r;
        if (guarded)
                return rules_add(rules, SCMP_ACT_ALLOW, name, 1, &reads);
        /* Where no file is made the mode is whatever was in the register. */
        r = rules_add(rules, SCMP_ACT_ALLOW, name, 1, &no_file);
        return r == 0 ? rules_add(rules, SCMP_ACT_ALLOW, name, 2, plain) : r;
}

/* Flags and mode of openat2 are behind a pointer, so wherever they count, which is where trees of
 * the host are shown, it is answered with ENOSYS and programs use openat. Elsewhere it may be that
 * something is only to be looked at, as above. */
static int add_opening(struct rules *rules)
{
        int r = 0;

        if (!rules_watched(rules, "open"))
                r = add_opening_of(rules, "open", 1);
        if (r == 0 && !rules_watched(rules, "openat"))
                r = add_opening_of(rules, "openat", 2);
        if (r == 0 && (rules->variant &
                       (SYSCALLS_GUARDED | SYSCALLS_SOCKETS | SYSCALLS_EXPLAIN | SYSCALLS_HIDING)))
                r = rules_add(rules, SCMP_ACT_ERRNO(ENOSYS), "openat2", 0, NULL);
        else if (r == 0 && (rules->variant & SYSCALLS_ZYGOTE))
                r = rules_add(rules, SCMP_ACT_ALLOW, "openat2", 0, NULL);
        return r;
}

/* What a process needs to fork a box: new namespaces of the one kind, and what builds the view that
 * the box has (box/fork_view.c). Without user namespaces of its own it could do nothing with them.
 */
static int add_forking(struct rules *rules)
{
        static const char *const building[] = { "fsopen",      "fsconfig",         "fsmount",
                                                "move_mount",  "open_tree",        "mount_setattr",
                                                "pidfd_getfd", "process_vm_readv", "kcmp" };
        static const scmp_datum_t kinds[] = { SYSCALLS_FORK_FLAGS,
                                              SYSCALLS_FORK_FLAGS | CLONE_NEWNET };
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(building); i++)
                r = rules_add(rules, SCMP_ACT_ALLOW, building[i], 0, NULL);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(kinds); i++)
                r = rules_add(rules, SCMP_ACT_ALLOW, "clone", 1,
                              &SCMP_A0(SCMP_CMP_MASKED_EQ, NAMESPACE_FLAGS | CLONE_THREAD,
                                       kinds[i]));
        /* To stop a process for good (box/holder.c), and nothing else that a tracer can do: what
         * the filter refuses, no call of these lets pass. */
        if (r == 0)
                r = rules_add(rules, SCMP_ACT_ALLOW, "ptrace", 2,
                              (struct scmp_arg_cmp[]){ SCMP_A0(SCMP_CMP_EQ, PTRACE_SEIZE),
                                                       SCMP_A3(SCMP_CMP_EQ, PTRACE_O_EXITKILL) });
        if (r == 0)
                r = rules_add(rules, SCMP_ACT_ALLOW, "ptrace", 1,
                              &SCMP_A0(SCMP_CMP_EQ, PTRACE_INTERRUPT));
        /* The init of a forked box asks what its sockets hold. */
        if (r == 0)
                r = rules_add(rules, SCMP_ACT_ALLOW, "socket", 2,
                              (struct scmp_arg_cmp[]){ SCMP_A0(SCMP_CMP_EQ, AF_NETLINK),
                                                       SCMP_A2(SCMP_CMP_EQ, NETLINK_SOCK_DIAG) });
        return r;
}

/* Calls that the policy names; refused are those that would not work. */
static int add_named(struct rules *rules)
{
        const char *note;
        char where[64];
        int r;

        for (size_t i = 0; rules->deny && rules->deny[i]; i++) {
                snprintf(where, sizeof(where), "syscalls.deny[%zu]", i);
                if (in_table(rules->deny[i], needed, ARRAY_SIZE(needed)))
                        return error_set(rules->error, -EINVAL, where,
                                         "%s cannot be denied: the box needs it to start the "
                                         "program",
                                         rules->deny[i]);
        }
        for (size_t i = 0; rules->allow && rules->allow[i]; i++) {
                snprintf(where, sizeof(where), "syscalls.allow[%zu]", i);
                if (listed(rules->allow[i], rules->deny))
                        return error_set(rules->error, -EINVAL, where,
                                         "%s is both allowed and denied", rules->allow[i]);
                switch (syscalls_effect(rules->variant, rules->allow[i], &note)) {
                case SYSCALLS_NEVER:
                        error_set(rules->error, -EINVAL, where, "%s cannot be allowed: %s",
                                  rules->allow[i], note);
                        if (strcmp(rules->allow[i], "socket") == 0)
                                error_hint(rules->error, "%s",
                                           "give it the host's network: --net host, "
                                           "\"network\": \"host\" in a policy");
                        return -EINVAL;
                case SYSCALLS_OPENED: /* what init makes for the program it makes with less asked */
                        if (opens_in_part(rules->allow[i]) ||
                            ((rules->variant & SYSCALLS_GUARDED) && sets_mode(rules->allow[i])))
                                continue;
                        break;
                case SYSCALLS_ALREADY:
                case SYSCALLS_KEPT:
                        continue;
                }
                r = rules_add(rules, SCMP_ACT_ALLOW, rules->allow[i], 0, NULL);
                if (r < 0)
                        return r;
        }
        return 0;
}

int syscalls_build(scmp_filter_ctx context, unsigned variant, char *const *allow, char *const *deny,
                   cbx_error *error)
{
        struct rules rules = { context, variant, allow, deny, error };
        int r;

        /* A foreign entry (32-bit, x32) goes to init as well, which refuses it by name. */
        r = seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, syscalls_default(variant));
        if (r == 0)
                r = seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2);
        if (r < 0)
                return error_set(error, r, "syscalls", "libseccomp: %s", strerror(-r));
        r = add_named(&rules);
        if (r == 0)
                r = add_allowed(&rules, syscalls_allowed, ARRAY_SIZE(syscalls_allowed));
        if (r == 0)
                r = add_allowed(&rules, syscalls_naming, ARRAY_SIZE(syscalls_naming));
        if (r == 0)
                r = add_modes(&rules);
        if (r == 0)
                r = rules_add_requests(&rules);
        if (r == 0)
                r = add_conditional(&rules);
        if (r == 0)
                r = rules_add_memory(&rules);
        if (r == 0 && (variant & SYSCALLS_ZYGOTE))
                r = add_forking(&rules);
        if (r == 0 && (variant & (SYSCALLS_GUARDED | SYSCALLS_HIDING)))
                r = rules_add_served(&rules);
        if (r == 0 && (variant & SYSCALLS_CAGED))
                r = rules_add_caged(&rules);
        if (r < 0)
                return r;
        return variant & SYSCALLS_CAGED ? rules_add_caged_opening(&rules) : add_opening(&rules);
}
