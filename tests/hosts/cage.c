/* SPDX-License-Identifier: MIT */
/*
 * A cage like that of a container, to see what callbox does in it: namespaces of its own, a root
 * that is a layer over the host's, parts of /proc covered and /sys read-only, the capabilities and
 * the system calls that Docker leaves to a container by default, and no init. Run by root; what
 * is changed in it is gone with it.
 *
 *   cage [OPTIONS] -- COMMAND...
 *     --seccomp docker|unconfined   refuse what Docker's default profile refuses   (docker)
 *     --paths masked|unmasked       cover parts of /proc, keep /sys read-only      (masked)
 *     --caps docker|none|all        what is left to root, or to nobody             (docker)
 *     --cgroup ro|rw                the tree of the cage's own control group       (ro)
 *     --no-userns                   user.max_user_namespaces=0, in an own user namespace
 *     --no-new-privs                as a pod without allowPrivilegeEscalation
 *     --mark FILE                   an empty file at the root: /.dockerenv, say
 *     --id N                        as this user and group
 *     --init                        an init that reaps, for suites that leave orphans
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BASE "/mnt" /* exists on every Debian, and is covered in the cage's own mounts alone */

static struct {
        bool filtered, masked, no_userns, no_new_privs, cgroup_writable, init;
        const char *caps, *mark;
        unsigned id;
} settings = { .filtered = true, .masked = true, .caps = "docker" };

static _Noreturn void fail(const char *what)
{
        (void)fprintf(stderr, "cage: %s: %s\n", what, strerror(errno));
        _exit(99);
}

static void write_file(const char *path, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
static void write_file(const char *path, const char *format, ...)
{
        char text[128];
        va_list args;
        int fd = open(path, O_WRONLY | O_CLOEXEC), n;

        va_start(args, format);
        n = vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        if (fd < 0 || write(fd, text, (size_t)n) != n)
                fail(path);
        close(fd);
}

/* ---- Mounts ---- */

/* As Docker has them. */
static const char *const masked[] = { "/proc/acpi",       "/proc/asound", "/proc/interrupts",
                                      "/proc/kcore",      "/proc/keys",   "/proc/latency_stats",
                                      "/proc/timer_list", "/proc/scsi",   "/sys/firmware" };
static const char *const read_only[] = { "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
                                         "/proc/sysrq-trigger" };

static void cover(void)
{
        struct stat st;

        for (size_t i = 0; i < sizeof(masked) / sizeof(*masked); i++) {
                if (stat(masked[i], &st) < 0)
                        continue;
                if (S_ISDIR(st.st_mode) ? mount("tmpfs", masked[i], "tmpfs", MS_RDONLY, "size=0")
                                        : mount("/dev/null", masked[i], NULL, MS_BIND, NULL))
                        fail(masked[i]);
        }
        for (size_t i = 0; i < sizeof(read_only) / sizeof(*read_only); i++) {
                if (stat(read_only[i], &st) < 0)
                        continue;
                if (mount(read_only[i], read_only[i], NULL, MS_BIND, NULL) < 0 ||
                    mount(NULL, read_only[i], NULL,
                          MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
                          NULL) < 0)
                        fail(read_only[i]);
        }
}

/* A layer over the host's root, with what is writable in memory. */
static void enter_root(void)
{
        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("tmpfs", BASE, "tmpfs", 0, "mode=755") < 0)
                fail("mount " BASE);
        if (mkdir(BASE "/upper", 0755) < 0 || mkdir(BASE "/work", 0755) < 0 ||
            mkdir(BASE "/root", 0755) < 0 ||
            mount("overlay", BASE "/root", "overlay", 0,
                  "lowerdir=/,upperdir=" BASE "/upper,workdir=" BASE "/work") < 0)
                fail("mount the layer");
        if (mount("/dev", BASE "/root/dev", NULL, MS_BIND | MS_REC, NULL) < 0 ||
            mount("proc", BASE "/root/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
                fail("mount /dev and /proc");
        if (mount("sysfs", BASE "/root/sys", "sysfs",
                  MS_NOSUID | MS_NODEV | MS_NOEXEC | (settings.masked ? MS_RDONLY : 0), NULL) < 0)
                fail("mount /sys");
        if (mount("tmpfs", BASE "/root/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") < 0)
                fail("mount /tmp");
        if (chdir(BASE "/root") < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
            umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
                fail("enter the root");
}

static void mount_cgroup(void)
{
        unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;

        /* Where the host has version 1 there is none, as in a container of such a host. */
        if (access("/sys/fs/cgroup", F_OK) == 0)
                (void)mount("cgroup", "/sys/fs/cgroup", "cgroup2",
                            flags | (settings.cgroup_writable ? 0 : MS_RDONLY), NULL);
}

static void raise_loopback(void)
{
        struct ifreq request = { .ifr_name = "lo" };
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        request.ifr_flags = IFF_UP;
        if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
                fail("lo");
        close(fd);
}

/* ---- Privileges ---- */

/* What Docker leaves to root in a container: chown, dac_override, fowner, fsetid, kill, setgid,
 * setuid, setpcap, net_bind_service, net_raw, sys_chroot, mknod, audit_write, setfcap. */
#define DOCKER_CAPS                                                                                \
        (1ULL << CAP_CHOWN | 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_FOWNER | 1ULL << CAP_FSETID |  \
         1ULL << CAP_KILL | 1ULL << CAP_SETGID | 1ULL << CAP_SETUID | 1ULL << CAP_SETPCAP |        \
         1ULL << CAP_NET_BIND_SERVICE | 1ULL << CAP_NET_RAW | 1ULL << CAP_SYS_CHROOT |             \
         1ULL << CAP_MKNOD | 1ULL << CAP_AUDIT_WRITE | 1ULL << CAP_SETFCAP)

static void drop_caps(unsigned long long keep)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2] = { 0 };

        for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
                if (!(keep & 1ULL << cap) && prctl(PR_CAPBSET_DROP, cap) < 0)
                        fail("drop capabilities");
        for (int i = 0; i < 2; i++)
                data[i].effective = data[i].permitted = (unsigned)(keep >> 32 * i);
        if (syscall(SYS_capset, &header, data) < 0)
                fail("set capabilities");
}

static void become(unsigned id)
{
        if (id > 0 && (syscall(SYS_setgroups, 0, NULL) < 0 || setresgid(id, id, id) < 0 ||
                       setresuid(id, id, id) < 0))
                fail("become the user");
        prctl(PR_SET_DUMPABLE, 1); /* else /proc/self is root's */
}

/* The number of user namespaces is a limit of each user namespace: here of an own one. */
static void forbid_userns(unsigned id)
{
        if (unshare(CLONE_NEWUSER) < 0)
                fail("make a user namespace");
        write_file("/proc/self/setgroups", "deny");
        write_file("/proc/self/uid_map", "%u %u 1", id, id);
        write_file("/proc/self/gid_map", "%u %u 1", id, id);
        write_file("/proc/sys/user/max_user_namespaces", "0");
}

/* For one who is to undo that: the right to it outlives the exec. */
static void keep_resource(void)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2] = { { .effective = ~0U, .permitted = ~0U } };

        data[0].inheritable = 1U << CAP_SYS_RESOURCE;
        if (syscall(SYS_capset, &header, data) < 0 ||
            prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_RESOURCE, 0, 0) < 0)
                fail("keep a capability");
}

/* ---- System calls ---- */

/* What Docker's default profile does not allow to a container without further capabilities. */
static const char *const refused[] = {
        "acct",
        "add_key",
        "bpf",
        "clock_adjtime",
        "clock_settime",
        "create_module",
        "delete_module",
        "fanotify_init",
        "finit_module",
        "fsconfig",
        "fsmount",
        "fsopen",
        "fspick",
        "get_kernel_syms",
        "get_mempolicy",
        "init_module",
        "ioperm",
        "iopl",
        "kcmp",
        "kexec_file_load",
        "kexec_load",
        "keyctl",
        "lookup_dcookie",
        "mbind",
        "mount",
        "mount_setattr",
        "move_mount",
        "move_pages",
        "nfsservctl",
        "open_by_handle_at",
        "open_tree",
        "perf_event_open",
        "pidfd_getfd",
        "pivot_root",
        "query_module",
        "quotactl",
        "quotactl_fd",
        "reboot",
        "request_key",
        "set_mempolicy",
        "set_mempolicy_home_node",
        "setdomainname",
        "sethostname",
        "setns",
        "settimeofday",
        "swapoff",
        "swapon",
        "sysfs",
        "syslog",
        "umount",
        "umount2",
        "unshare",
        "uselib",
        "userfaultfd",
        "ustat",
        "vhangup",
        "vm86",
        "vm86old",
};

static void load_filter(void)
{
        static const uint64_t namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                           CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                                           CLONE_NEWNET;
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
        int r = filter ? 0 : -ENOMEM;

        for (size_t i = 0; r == 0 && i < sizeof(refused) / sizeof(*refused); i++) {
                int number = seccomp_syscall_resolve_name(refused[i]);

                if (number != __NR_SCMP_ERROR && number >= 0)
                        r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
        }
        /* One rule for each flag: any of them is refused. */
        for (uint64_t bit = 1; r == 0 && bit <= namespaces; bit <<= 1)
                if (namespaces & bit)
                        r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                             SCMP_A0(SCMP_CMP_MASKED_EQ, bit, bit));
        /* Its flags cannot be seen; libraries then use clone. */
        if (r == 0)
                r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
        if (r == 0)
                r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1,
                                     SCMP_A0(SCMP_CMP_EQ, AF_VSOCK));
        /* Docker loads it as root, without no_new_privs. */
        if (r == 0)
                r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0);
        if (r == 0)
                r = seccomp_load(filter);
        errno = -r;
        if (r < 0)
                fail("load the filter");
        seccomp_release(filter);
}

/* ---- The beginning ---- */

/* Be pid 1, and let the command go on as another. Its end is the end of all. */
static void be_init(void)
{
        pid_t pid = fork(), gone;
        int status = 0;

        if (pid < 0)
                fail("fork");
        if (pid == 0)
                return;
        do
                gone = waitpid(-1, &status, 0);
        while (gone != pid && (gone > 0 || errno == EINTR));
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static _Noreturn void be_caged(char **command)
{
        unsigned long long keep = strcmp(settings.caps, "all") == 0      ? ~0ULL
                                  : strcmp(settings.caps, "docker") == 0 ? DOCKER_CAPS
                                                                         : 0;
        char *at = getcwd(NULL, 0);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        enter_root();
        if (unshare(CLONE_NEWCGROUP) == 0)
                mount_cgroup();
        raise_loopback();
        if (settings.mark)
                close(open(settings.mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
        if (settings.masked)
                cover();
        if (at && chdir(at) < 0)
                fail(at);
        if (settings.no_new_privs)
                prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (settings.filtered && !settings.no_userns)
                load_filter();
        if (settings.no_userns) {
                become(settings.id);
                forbid_userns(settings.id);
        }
        if (keep == ~0ULL && settings.no_userns)
                keep_resource();
        else if (settings.id > 0 && !settings.no_userns)
                become(settings.id);
        else if (keep != ~0ULL)
                drop_caps(keep);
        if (settings.init)
                be_init();
        execvp(command[0], command);
        fail(command[0]);
}

static bool parse(int argc, char **argv, int *ret_command)
{
        int i = 1;

        for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
                const char *value = i + 1 < argc ? argv[i + 1] : "";

                if (strcmp(argv[i], "--no-userns") == 0) {
                        settings.no_userns = true;
                        continue;
                }
                if (strcmp(argv[i], "--init") == 0) {
                        settings.init = true;
                        continue;
                }
                if (strcmp(argv[i], "--no-new-privs") == 0) {
                        settings.no_new_privs = true;
                        continue;
                }
                if (strcmp(argv[i], "--seccomp") == 0)
                        settings.filtered = strcmp(value, "docker") == 0;
                else if (strcmp(argv[i], "--paths") == 0)
                        settings.masked = strcmp(value, "masked") == 0;
                else if (strcmp(argv[i], "--caps") == 0)
                        settings.caps = value;
                else if (strcmp(argv[i], "--cgroup") == 0)
                        settings.cgroup_writable = strcmp(value, "rw") == 0;
                else if (strcmp(argv[i], "--mark") == 0)
                        settings.mark = value;
                else if (strcmp(argv[i], "--id") == 0)
                        settings.id = (unsigned)strtoul(value, NULL, 10);
                else
                        return false;
                i++;
        }
        *ret_command = i + 1;
        return i + 1 < argc;
}

int main(int argc, char **argv)
{
        int command = 0, status = 0;
        pid_t pid;

        if (!parse(argc, argv, &command)) {
                (void)fputs("usage: cage [OPTIONS] -- COMMAND...\n", stderr);
                return 98;
        }
        if (unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET) < 0)
                fail("make namespaces");
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pid = fork();
        if (pid == 0)
                be_caged(argv + command);
        if (pid < 0 || waitpid(pid, &status, 0) != pid)
                fail("wait");
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
