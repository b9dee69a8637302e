/* SPDX-License-Identifier: MIT */
/* The system calls by name, as data. What is in none of these lists is answered with ENOSYS. */
#ifndef POLICY_SYSCALLS_TABLE_H
#define POLICY_SYSCALLS_TABLE_H

#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* clang-format off */

/* Allowed whatever their arguments. */
static const char *const syscalls_allowed[] = {
        /* files by descriptor */
        "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2",
        "pwritev2", "close", "lseek", "dup", "dup2", "dup3", "flock",
        "fsync", "fdatasync", "sync_file_range", "syncfs", "sync", "ftruncate", "fallocate",
        "fadvise64", "readahead", "sendfile", "splice", "tee", "copy_file_range",
        "pipe", "pipe2", "fstat", "fstatfs", "fchown", "fchdir", "getdents",
        "getdents64", "cachestat",
        /* files by path */
        "stat", "lstat", "newfstatat", "statx", "statfs", "access", "faccessat", "faccessat2",
        "readlink", "readlinkat", "chdir", "getcwd", "truncate", "unlink", "unlinkat", "rmdir",
        "chown", "lchown", "fchownat", "utime", "utimes",
        "futimesat", "utimensat", "umask", "getxattr", "lgetxattr", "fgetxattr", "listxattr",
        "llistxattr", "flistxattr", "setxattr", "lsetxattr", "fsetxattr", "removexattr",
        "lremovexattr", "fremovexattr", "ustat",
        /* waiting */
        "select", "pselect6", "poll", "ppoll", "epoll_create", "epoll_create1", "epoll_ctl",
        "epoll_wait", "epoll_pwait", "epoll_pwait2", "eventfd", "eventfd2", "signalfd",
        "signalfd4", "timerfd_create", "timerfd_settime", "timerfd_gettime", "inotify_init",
        "inotify_init1", "inotify_add_watch", "inotify_rm_watch",
        /* memory */
        "brk", "munmap", "mprotect", "mremap", "madvise", "mincore", "msync", "mlock",
        "mlock2", "munlock", "mlockall", "munlockall", "membarrier", "pkey_alloc", "pkey_free",
        "pkey_mprotect", "get_mempolicy", "set_mempolicy", "mbind", "mseal",
        "map_shadow_stack", "remap_file_pages",
        /* processes and threads */
        "fork", "vfork", "execve", "execveat", "exit", "exit_group", "wait4", "waitid", "getpid",
        "getppid", "gettid", "getpgid", "setpgid", "getpgrp", "getsid", "setsid", "getuid",
        "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getgroups", "setuid", "setgid",
        "setreuid", "setregid", "setresuid", "setresgid", "setfsuid", "setfsgid", "setgroups",
        "capget", "capset", "prctl", "arch_prctl", "set_tid_address", "set_robust_list",
        "get_robust_list", "rseq", "futex", "futex_waitv", "futex_wait", "futex_wake",
        "futex_requeue", "sched_yield", "sched_getaffinity", "sched_setaffinity",
        "sched_getparam", "sched_setparam", "sched_getscheduler", "sched_setscheduler",
        "sched_get_priority_max", "sched_get_priority_min", "sched_rr_get_interval",
        "sched_getattr", "sched_setattr", "getpriority", "setpriority", "ioprio_get",
        "ioprio_set", "getcpu", "getrusage", "getrlimit", "setrlimit", "times", "pidfd_open",
        "pidfd_send_signal", "restart_syscall", "landlock_restrict_self", "seccomp",
        /* signals */
        "kill", "tkill", "tgkill", "pause", "alarm", "sigaltstack", "rt_sigaction",
        "rt_sigprocmask", "rt_sigpending", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait",
        "rt_sigqueueinfo", "rt_tgsigqueueinfo",
        /* time */
        "time", "gettimeofday", "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep",
        "getitimer", "setitimer", "timer_create", "timer_settime", "timer_gettime",
        "timer_getoverrun", "timer_delete",
        /* sockets; socket and socketpair are below */
        "connect", "listen", "accept", "accept4", "getsockname", "getpeername",
        "getsockopt", "send", "sendto", "sendmsg", "sendmmsg", "recv", "recvfrom",
        "recvmsg", "recvmmsg", "shutdown",
        /* System V and POSIX inter-process communication, in the box's own namespace */
        "shmget", "shmat", "shmdt", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget",
        "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive",
        "mq_notify", "mq_getsetattr",
        /* about the system */
        "uname", "sysinfo", "getrandom",
};

/* Allowed with some arguments only; a refused one is known all the same. */
static const char *const syscalls_conditional[] = {
        "fcntl", "ioctl", "socketpair", "close_range", "clone", "unshare", "prlimit64", "chmod",
        "fchmod", "fchmodat", "fchmodat2", "setsockopt",
};

/* The sockets of a network that a program needs: streams, datagrams, the echoes of `ping`, and what
 * tells of interfaces and routes. A protocol of 0 is the usual one of its kind. Not among them are
 * raw ones, MPTCP, UDP-Lite, SCTP, DCCP, L2TP, SMC: parts of the kernel that are seldom used, and
 * loaded for whoever asks. */
#define SYSCALLS_SOCKET_KIND 0xf /* of a socket's type; the rest are flags */
static const struct {
        unsigned family, kind, protocol;
} syscalls_sockets[] = {
        { AF_INET, SOCK_STREAM, 0 },      { AF_INET, SOCK_STREAM, IPPROTO_TCP },
        { AF_INET, SOCK_DGRAM, 0 },       { AF_INET, SOCK_DGRAM, IPPROTO_UDP },
        { AF_INET, SOCK_DGRAM, IPPROTO_ICMP },
        { AF_INET6, SOCK_STREAM, 0 },     { AF_INET6, SOCK_STREAM, IPPROTO_TCP },
        { AF_INET6, SOCK_DGRAM, 0 },      { AF_INET6, SOCK_DGRAM, IPPROTO_UDP },
        { AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6 },
        { AF_NETLINK, SOCK_RAW, NETLINK_ROUTE },
        { AF_NETLINK, SOCK_DGRAM, NETLINK_ROUTE },
};

/* Allowed, but for what init has to count (syscalls_memory.c). */
static const char *const syscalls_counted[] = { "mmap", "memfd_create" };

/* Calls that make or replace a name: allowed, and made by init in a guarded box. The opening calls
 * are init's where they make or change something. */
static const char *const syscalls_naming[] = {
        "bind", "mkdir", "mkdirat", "symlink", "symlinkat", "link", "linkat", "rename", "renameat",
        "renameat2", "creat", "mknod", "mknodat",
};

/* Allowed elsewhere; in a box without namespaces not at all (what they reach is the host's), or with
 * conditions (syscalls_cage.c). */
static const char *const syscalls_caged[] = {
        "shmget", "shmat", "shmdt", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget",
        "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive",
        "mq_notify", "mq_getsetattr", "setxattr", "lsetxattr", "fsetxattr", "removexattr",
        "lremovexattr", "fremovexattr", "getxattr", "lgetxattr", "fgetxattr", "listxattr",
        "llistxattr", "flistxattr", "inotify_init", "inotify_init1", "inotify_add_watch", "prctl",
        "setpriority", "ioprio_set", "sched_setaffinity", "sched_setparam", "sched_setscheduler",
        "sched_setattr",
};

/* Calls that change a file without opening it, or take a name away: Landlock does not see them, or
 * not in every version, and a mount on a name goes with the name. In a guarded box init makes them
 * where the program may write. */
static const char *const syscalls_changing[] = {
        "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchown", "fchownat",
        "utime", "utimes", "futimesat", "utimensat", "truncate", "setxattr", "lsetxattr",
        "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "unlink", "unlinkat", "rmdir",
        "umask", /* init makes files with it */
};

/* Calls that send a signal. */
static const char *const syscalls_signalling[] = {
        "kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal",
};

/* Calls that set the mode of a file, and which argument it is. A box sets no set-user-id or
 * set-group-id bits: what it leaves in a workspace would give its owner's rights to whoever runs it
 * on the host. */
static const struct {
        const char *name;
        unsigned mode;
} syscalls_mode[] = {
        { "chmod", 1 }, { "fchmod", 1 }, { "fchmodat", 2 }, { "fchmodat2", 2 },
        { "creat", 1 }, { "mknod", 1 },  { "mknodat", 2 },
};

/* Calls that look up a path or an address; with --explain, init watches how they end. What is sent
 * with sendmsg is not among them: main sends its notifier to init by it. */
static const char *const syscalls_looking[] = {
        "open", "openat", "stat", "lstat", "newfstatat", "statx", "access", "faccessat",
        "faccessat2", "readlink", "readlinkat", "chdir", "execve", "execveat",
        "truncate", "unlink", "unlinkat", "rmdir", "chmod", "fchmod", "fchmodat", "fchmodat2",
        "chown", "lchown", "fchown", "fchownat", "utime", "utimes", "futimesat", "utimensat",
        "setxattr", "lsetxattr", "removexattr", "lremovexattr",
        "creat", "mkdir", "mkdirat", "mknod", "mknodat", "symlink", "symlinkat", "link", "linkat",
        "rename", "renameat", "renameat2",
        "connect", "bind", "sendto",
};

/* Refused with EPERM: known, and either dangerous or of no use without capabilities. */
static const char *const syscalls_refused[] = {
        /* kernel memory, code and tracing */
        "bpf", "perf_event_open", "userfaultfd", "ptrace", "process_vm_readv",
        "process_vm_writev", "process_madvise", "process_mrelease", "kcmp", "pidfd_getfd",
        "lookup_dcookie", "init_module", "finit_module", "delete_module", "create_module",
        "query_module", "get_kernel_syms", "kexec_load", "kexec_file_load",
        /* rings that do other calls behind the filter's back */
        "io_uring_setup", "io_uring_enter", "io_uring_register",
        /* keyrings */
        "keyctl", "add_key", "request_key",
        /* mounts and namespaces; clone and unshare are below */
        "mount", "umount2", "pivot_root", "chroot", "open_tree", "open_tree_attr", "move_mount",
        "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "statmount", "listmount",
        "listns", "setns", "open_by_handle_at", "name_to_handle_at", "fanotify_init",
        "fanotify_mark",
        /* the machine */
        "reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "settimeofday",
        "clock_settime", "clock_adjtime", "adjtimex", "stime", "sethostname", "setdomainname",
        "syslog", "vhangup", "iopl", "ioperm", "modify_ldt", "vm86", "vm86old", "nfsservctl",
        "uselib", "_sysctl", "sysfs", "personality", "move_pages", "migrate_pages",
        "set_mempolicy_home_node",
};

/* clang-format on */

#endif
