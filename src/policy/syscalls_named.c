/* SPDX-License-Identifier: MIT */
/*
 * What it does to name a call in syscalls.allow. Nothing that another guarantee rests on is opened:
 * such a call stays on its conditions, or the policy is refused. What is opened leaves a warning
 * that says what is given up.
 */
#include <string.h>

#include "policy/syscalls_rules.h"
#include "policy/syscalls_table.h"

#define LOOKED_AT (SYSCALLS_GUARDED | SYSCALLS_SOCKETS | SYSCALLS_CAGED)
#define NAMES_MAX 28

static const struct named {
        const char *names[NAMES_MAX];
        unsigned only;   /* where the variant has one of these; 0: everywhere */
        unsigned unless; /* ... and none of these */
        enum syscalls_effect effect;
        const char *note;
} table[] = {
        /* Never. */
        { { "io_uring_setup", "io_uring_enter", "io_uring_register" },
          .effect = SYSCALLS_NEVER,
          .note = "its rings make other calls that neither the filter nor the box's init would "
                  "see; programs fall back to ordinary calls" },
        { { "clone3" },
          .effect = SYSCALLS_NEVER,
          .note = "its flags are behind a pointer, where no filter sees them; programs fall back "
                  "to clone" },
        { { "landlock_create_ruleset", "landlock_add_rule" },
          .effect = SYSCALLS_NEVER,
          .note = "each file that is opened in a domain keeps it, which is memory that is not "
                  "counted; programs do without, as on a kernel that has no Landlock" },
        { { "openat2" },
          .only = LOOKED_AT,
          .effect = SYSCALLS_NEVER,
          .note = "its flags are behind a pointer, where no filter sees them; programs fall back "
                  "to openat" },
        { { "socket" },
          .only = SYSCALLS_CAGED,
          .unless = SYSCALLS_ONLINE,
          .effect = SYSCALLS_NEVER,
          .note = "a box without namespaces is kept from the host's network by refusing it "
                  "sockets" },
        { { "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr" },
          .only = SYSCALLS_CAGED,
          .effect = SYSCALLS_NEVER,
          .note = "Landlock does not see it: it would change files that the box may not write" },
        { { "getxattr", "lgetxattr", "fgetxattr", "listxattr", "llistxattr", "flistxattr" },
          .only = SYSCALLS_CAGED,
          .effect = SYSCALLS_NEVER,
          .note = "Landlock does not see it: it would read attributes of files that the box may "
                  "not read" },
        { { "fcntl" },
          .only = SYSCALLS_SIGNALS,
          .effect = SYSCALLS_NEVER,
          .note = "it can have signals sent, which Landlock does not keep inside here" },

        /* With the conditions that they have. */
        { { "open", "openat" },
          .effect = SYSCALLS_KEPT,
          .note = "files with a set-user-id or set-group-id bit are not made by it" },
        { { "creat", "mknod", "mknodat" },
          .only = SYSCALLS_GUARDED,
          .effect = SYSCALLS_KEPT,
          .note = "files with a set-user-id or set-group-id bit are not made by it" },
        { { "chmod", "fchmod", "fchmodat", "fchmodat2" },
          .only = SYSCALLS_CAGED,
          .effect = SYSCALLS_KEPT,
          .note = "set-user-id and set-group-id bits are not set by it" },
        { { "socketpair" },
          .effect = SYSCALLS_KEPT,
          .note = "pairs are of local sockets; where the box looks at connections, of those that "
                  "stay connected" },
        { { "prlimit64" },
          .effect = SYSCALLS_KEPT,
          .note = "limits of other processes, those of callbox among them, cannot be set" },
        { { "close_range" },
          .effect = SYSCALLS_KEPT,
          .note = "what a thread held in a descriptor table of its own would not be counted" },
        { { "mmap", "memfd_create" },
          .effect = SYSCALLS_KEPT,
          .note = "what they take of the kernel counts for the limit on memory" },
        { { "setsockopt" },
          .effect = SYSCALLS_KEPT,
          .note = "filters of sockets, and without namespaces the size of their buffers, are "
                  "memory that is not counted" },
        { { "prctl" },
          .only = SYSCALLS_CAGED | SYSCALLS_GUARDED | SYSCALLS_HIDING,
          .effect = SYSCALLS_KEPT,
          .note = "init must be able to look into the program" },

        /* Opened. */
        { { "socket" },
          .effect = SYSCALLS_OPENED,
          .note = "sockets of every family but vsock, local ones on their conditions, and with "
                  "them rarely used parts of the kernel are within reach" },
        { { "chmod", "fchmod", "fchmodat", "fchmodat2", "creat", "mknod", "mknodat" },
          .effect = SYSCALLS_OPENED,
          .note = "the program may leave files that give whoever runs them their owner's rights" },
        { { "clone", "unshare" },
          .effect = SYSCALLS_OPENED,
          .note = "the program may try to make namespaces, in which it would have capabilities" },
        { { "setns", "mount", "umount2", "pivot_root", "chroot", "open_tree", "open_tree_attr",
            "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "statmount",
            "listmount", "listns" },
          .effect = SYSCALLS_OPENED,
          .note = "only the lack of capabilities keeps the program in its mounts and namespaces" },
        { { "open_by_handle_at", "name_to_handle_at", "fanotify_init", "fanotify_mark" },
          .effect = SYSCALLS_OPENED,
          .note = "only the lack of capabilities keeps the program to the files that it is shown" },
        { { "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise",
            "process_mrelease", "kcmp", "pidfd_getfd" },
          .effect = SYSCALLS_OPENED,
          .note = "processes in the box may look into and change one another" },
        { { "keyctl", "add_key", "request_key" },
          .effect = SYSCALLS_OPENED,
          .note = "the program may reach keys of whoever runs callbox: no fence keeps keyrings" },
        { { "userfaultfd" },
          .effect = SYSCALLS_OPENED,
          .note = "the program may hold up the kernel, and the box's init, where they read its "
                  "memory: the one for attacks upon it, the other against its limits" },
        { { "bpf",           "perf_event_open", "lookup_dcookie", "modify_ldt",
            "vm86",          "vm86old",         "init_module",    "finit_module",
            "delete_module", "create_module",   "query_module",   "get_kernel_syms",
            "kexec_load",    "kexec_file_load", "iopl",           "ioperm",
            "uselib",        "move_pages",      "migrate_pages",  "set_mempolicy_home_node" },
          .effect = SYSCALLS_OPENED,
          .note = "parts of the kernel that many attacks upon it begin with are within reach" },
        { { "shmget", "shmat", "shmdt", "shmctl", "semget", "semop", "semtimedop", "semctl",
            "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink", "mq_timedsend",
            "mq_timedreceive", "mq_notify", "mq_getsetattr" },
          .only = SYSCALLS_CAGED,
          .effect = SYSCALLS_OPENED,
          .note = "queues, semaphores and shared memory of the host are within reach" },
        { { "inotify_init", "inotify_init1", "inotify_add_watch" },
          .only = SYSCALLS_CAGED,
          .effect = SYSCALLS_OPENED,
          .note = "the program may watch what others do with the host's files" },
        { { "fcntl" },
          .effect = SYSCALLS_OPENED,
          .note = "the program may take leases on the host's files that it reads: whoever opens "
                  "one then waits" },
        { { "ioctl" },
          .only = SYSCALLS_CAGED,
          .effect = SYSCALLS_OPENED,
          .note = "the program may change attributes of files that it may only read, and type "
                  "into its terminal" },
        { { "ioctl" },
          .effect = SYSCALLS_OPENED,
          .note = "the program may type into its terminal, make subvolumes with protected names, "
                  "and rarely used parts of the kernel are within reach" },
        { { "setpriority", "ioprio_set", "sched_setaffinity", "sched_setparam",
            "sched_setscheduler", "sched_setattr" },
          .only = SYSCALLS_CAGED,
          .effect = SYSCALLS_OPENED,
          .note = "the program may change the priority of other processes of its user" },
};

static bool in(const char *name, const char *const *names, size_t length)
{
        for (size_t i = 0; i < length && names[i]; i++)
                if (strcmp(names[i], name) == 0)
                        return true;
        return false;
}

enum syscalls_effect syscalls_effect(unsigned variant, const char *name, const char **ret_note)
{
        *ret_note = "";
        if (seccomp_syscall_resolve_name(name) < 0)
                return SYSCALLS_ALREADY; /* another machine's: there is nothing to open */
        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                const struct named *named = &table[i];

                if ((named->only && !(variant & named->only)) || (variant & named->unless) ||
                    !in(name, named->names, NAMES_MAX))
                        continue;
                *ret_note = named->note;
                return named->effect;
        }
        if (strcmp(name, "openat2") == 0 ||
            in(name, syscalls_allowed, ARRAY_SIZE(syscalls_allowed)) ||
            in(name, syscalls_naming, ARRAY_SIZE(syscalls_naming)))
                return SYSCALLS_ALREADY;
        *ret_note = "it is none of the calls that a box is known to be safe with";
        return SYSCALLS_OPENED;
}
