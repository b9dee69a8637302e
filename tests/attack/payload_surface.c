/* SPDX-License-Identifier: MIT */
/* I and J: the surface of system calls, sockets and the network. */
#include "payload.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#define NOBODY 0x3fffffffL /* a pid that does not exist */
#define HERE ((long)AT_FDCWD)

/* A call with arguments that are wrong, so that it can do nothing where it is let through. */
struct probe {
        const char *name;
        long number;
        long args[6];
};

static int probe_all(const struct probe *probes, size_t count)
{
        struct tally tally = { 0 };

        for (size_t i = 0; i < count; i++) {
                const long *a = probes[i].args;

                expect_fence(&tally, probes[i].name,
                             syscall(probes[i].number, a[0], a[1], a[2], a[3], a[4], a[5]));
        }
        return verdict(&tally);
}

static int i111_io_uring(int argc, char **argv)
{
        static const struct probe probes[] = {
                { "io_uring_setup", SYS_io_uring_setup, { 0, 0 } },
                { "io_uring_enter", SYS_io_uring_enter, { -1, 0, 0, 0, 0, 0 } },
                { "io_uring_register", SYS_io_uring_register, { -1, -1, 0, 0 } },
        };

        (void)argc;
        (void)argv;
        return probe_all(probes, COUNT(probes));
}

/* Which of these the fence has refused is in the report too; the suite compares. */
static int i112_dangerous(int argc, char **argv)
{
        static const struct probe probes[] = {
                { "bpf", SYS_bpf, { 0, 0, 0x7fffffff } },
                { "perf_event_open", SYS_perf_event_open, { 0, 0, -1, -1, 0 } },
                { "userfaultfd", SYS_userfaultfd, { 0x40000001 } },
                { "kexec_load", SYS_kexec_load, { 0, 0, 0, -1 } },
#ifdef SYS_kexec_file_load
                { "kexec_file_load", SYS_kexec_file_load, { -1, -1, 0, 0, -1 } },
#endif
                { "init_module", SYS_init_module, { 0, 0, 0 } },
                { "finit_module", SYS_finit_module, { -1, 0, -1 } },
                { "delete_module", SYS_delete_module, { 0, 0 } },
                { "keyctl", SYS_keyctl, { 9999, 0, 0, 0, 0 } },
                { "add_key", SYS_add_key, { 0, 0, 0, 0, 0 } },
                { "request_key", SYS_request_key, { 0, 0, 0, 0 } },
                { "ptrace", SYS_ptrace, { 2 /* peek */, NOBODY, 0, 0 } },
                { "process_vm_readv", SYS_process_vm_readv, { NOBODY, 0, 0, 0, 0, 1 } },
                { "process_vm_writev", SYS_process_vm_writev, { NOBODY, 0, 0, 0, 0, 1 } },
                { "kcmp", SYS_kcmp, { NOBODY, NOBODY, 0, 0, 0 } },
                { "pidfd_getfd", SYS_pidfd_getfd, { -1, 0, 1 } },
                { "process_madvise", SYS_process_madvise, { -1, 0, 0, 0, 1 } },
                { "lookup_dcookie", 212, { 0, 0, 0 } },
                { "quotactl", SYS_quotactl, { -1, 0, 0, 0 } },
                { "quotactl_fd", SYS_quotactl_fd, { -1, -1, 0, 0 } },
                { "acct", SYS_acct, { -1 } },
                { "swapon", SYS_swapon, { -1, -1 } },
                { "swapoff", SYS_swapoff, { -1 } },
                { "reboot", SYS_reboot, { 0, 0, 0, 0 } },
                { "syslog", SYS_syslog, { 10, 0, 0 } },
                { "open_by_handle_at", SYS_open_by_handle_at, { -1, 0, 0 } },
                { "fanotify_init", SYS_fanotify_init, { 0x40000000, 0 } },
                { "nfsservctl", 180, { 0, 0, 0 } },
                { "move_pages", SYS_move_pages, { NOBODY, 1, 0, 0, 0, 0x40000000 } },
                { "migrate_pages", SYS_migrate_pages, { NOBODY, 0, 0, 0 } },
#ifdef SYS_uselib
                { "uselib", SYS_uselib, { 0 } },
#endif
        };

        (void)argc;
        (void)argv;
        return probe_all(probes, COUNT(probes));
}

static int i113_mount_api(int argc, char **argv)
{
        static const char slash[] = "/";
        static const char nowhere[] = "/nonexistent/callbox-attack";
        static const char notype[] = "callbox-no-such-type";
        const struct probe probes[] = {
                { "open_tree", SYS_open_tree, { HERE, (long)slash, 0 } },
                { "open_tree clone", SYS_open_tree, { HERE, (long)nowhere, 1 } },
                { "open_tree_attr", 467, { HERE, (long)nowhere, 1, 0, 0 } },
                { "move_mount", SYS_move_mount, { -1, (long)nowhere, -1, (long)nowhere, 0 } },
                { "fsopen", SYS_fsopen, { (long)notype, 0 } },
                { "fsconfig", SYS_fsconfig, { -1, -1, 0, 0, 0 } },
                { "fsmount", SYS_fsmount, { -1, 0, 0 } },
                { "fspick", SYS_fspick, { HERE, (long)nowhere, 0 } },
                { "mount_setattr", SYS_mount_setattr, { HERE, (long)nowhere, 0x7fff0000, 0, 0 } },
                { "statmount", 457, { 0, 0, 0, 1 } },
                { "listmount", 458, { 0, 0, 0, 0x40000000 } },
                { "mount", SYS_mount, { (long)nowhere, (long)nowhere, (long)notype, 0, 0 } },
                { "umount2", SYS_umount2, { (long)nowhere, 0 } },
                { "pivot_root", SYS_pivot_root, { (long)nowhere, (long)nowhere } },
        };

        (void)argc;
        (void)argv;
        return probe_all(probes, COUNT(probes));
}

static int i114_personality(int argc, char **argv)
{
        static const struct {
                const char *name;
                unsigned long value;
        } kinds[] = {
                { "READ_IMPLIES_EXEC", READ_IMPLIES_EXEC },
                { "ADDR_NO_RANDOMIZE", ADDR_NO_RANDOMIZE },
                { "MMAP_PAGE_ZERO", MMAP_PAGE_ZERO },
                { "ADDR_COMPAT_LAYOUT", ADDR_COMPAT_LAYOUT },
                { "PER_SVR4", PER_SVR4 },
                { "high bits", 1UL << 32 | READ_IMPLIES_EXEC },
        };
        struct tally tally = { 0 };

        (void)argc;
        (void)argv;
        for (size_t i = 0; i < COUNT(kinds); i++) {
                long r = syscall(SYS_personality, kinds[i].value);
                int number = errno;
                long after = syscall(SYS_personality, 0xffffffffUL);

                if (r >= 0 && after > 0 && (after & (long)(kinds[i].value & 0xffffffffUL)))
                        put_broken(&tally, "%s is set", kinds[i].name);
                else
                        put_held(&tally, "%s %s", kinds[i].name, errno_name(number));
                syscall(SYS_personality, 0UL);
        }
        return verdict(&tally);
}

static int i115_arch(int argc, char **argv)
{
#ifdef __x86_64__
        static const struct probe probes[] = {
                { "modify_ldt", SYS_modify_ldt, { 0, 0, 0 } },
                { "iopl", SYS_iopl, { 99 } },
                { "ioperm", SYS_ioperm, { 0x100000, 1, 1 } },
        };

        (void)argc;
        (void)argv;
        return probe_all(probes, COUNT(probes));
#else
        (void)argc;
        (void)argv;
        return untried("only on x86-64");
#endif
}

/* ---- Filters of our own on top of the box's ---- */

static long load_filter(uint32_t action, long number, unsigned int flags)
{
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, action),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { .len = COUNT(code), .filter = code };

        return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static bool still_refused(void)
{
        return syscall(SYS_mount, NULL, NULL, NULL, 0, NULL) < 0 &&
               (errno == EPERM || errno == ENOSYS);
}

/* Answer one call of a child with "continue", from a listener of our own. */
static int own_listener(struct tally *tally)
{
        struct seccomp_notif request;
        struct seccomp_notif_resp response = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
        int pair[2], status;
        pid_t pid;

        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
                return -1;
        pid = fork();
        if (pid == 0) {
                char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0;
                struct iovec io = { .iov_base = &byte, .iov_len = 1 };
                struct msghdr message = { .msg_iov = &io,
                                          .msg_iovlen = 1,
                                          .msg_control = control,
                                          .msg_controllen = sizeof(control) };
                struct cmsghdr *part = CMSG_FIRSTHDR(&message);
                int fd = (int)load_filter(SECCOMP_RET_USER_NOTIF, SYS_mount,
                                          SECCOMP_FILTER_FLAG_NEW_LISTENER);

                if (fd < 0)
                        _exit(errno);
                part->cmsg_level = SOL_SOCKET;
                part->cmsg_type = SCM_RIGHTS;
                part->cmsg_len = CMSG_LEN(sizeof(int));
                memcpy(CMSG_DATA(part), &fd, sizeof(int));
                sendmsg(pair[1], &message, 0);
                _exit(still_refused() ? 0 : 255);
        } else {
                char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte;
                struct iovec io = { .iov_base = &byte, .iov_len = 1 };
                struct msghdr message = { .msg_iov = &io,
                                          .msg_iovlen = 1,
                                          .msg_control = control,
                                          .msg_controllen = sizeof(control) };

                close(pair[1]);
                if (recvmsg(pair[0], &message, 0) > 0 && CMSG_FIRSTHDR(&message)) {
                        int fd;

                        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
                        memset(&request, 0, sizeof(request));
                        if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &request) == 0) {
                                response.id = request.id;
                                ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &response);
                        }
                        close(fd);
                }
        }
        waitpid(pid, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 255)
                put_broken(tally, "a listener of our own lets a refused call through");
        else
                put_held(tally, "own listener %s",
                         WEXITSTATUS(status) ? errno_name(WEXITSTATUS(status)) : "changes nothing");
        return 0;
}

/* The argument says whether another listener is to be tried, which nothing else may have. */
static int i116_own_filters(int argc, char **argv)
{
        static const struct {
                const char *name;
                uint32_t action;
        } actions[] = {
                { "allow", SECCOMP_RET_ALLOW },
                { "log", SECCOMP_RET_LOG },
                { "trace", SECCOMP_RET_TRACE },
                { "notify without a listener", SECCOMP_RET_USER_NOTIF },
        };
        struct tally tally = { 0 };

        (void)argc;
        (void)argv;
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        own_listener(&tally);
        for (size_t i = 0; i < COUNT(actions); i++) {
                if (load_filter(actions[i].action, SYS_mount, SECCOMP_FILTER_FLAG_TSYNC) < 0)
                        put_held(&tally, "%s %s", actions[i].name, errno_name(errno));
                else if (!still_refused())
                        put_broken(&tally, "mount comes through after %s", actions[i].name);
                else
                        put_held(&tally, "%s changes nothing", actions[i].name);
        }
        return verdict(&tally);
}

/* memfd_secret, shadow stacks and Landlock may be there; they must not weaken anything. */
static int i116_harmless(int argc, char **argv)
{
        struct tally tally = { 0 };
        long fd = syscall(447 /* memfd_secret */, 0), r;

        (void)argc;
        (void)argv;
        put_held(&tally, "memfd_secret %s", fd < 0 ? errno_name(errno) : "works");
        r = syscall(444 /* landlock_create_ruleset */, NULL, 0, 1);
        put_held(&tally, "landlock %s", r < 0 ? errno_name(errno) : "works");
        r = syscall(453 /* map_shadow_stack */, 0, 4096, 0x40000000);
        put_held(&tally, "map_shadow_stack %s", r < 0 ? errno_name(errno) : "works");
        if (!still_refused())
                put_broken(&tally, "mount is no longer refused");
        if (fd >= 0)
                close((int)fd);
        if (missing_fence(false))
                put_broken(&tally, "%s", missing_fence(false));
        return verdict(&tally);
}

/* ---- J ---- */

static void try_socket(struct tally *tally, long family, long type, long protocol)
{
        bool known = (family & 0xffffffff) == AF_UNIX || (family & 0xffffffff) == AF_INET ||
                     (family & 0xffffffff) == AF_INET6;
        char what[80];
        long fd;

        if ((family & 0xffffffff) == AF_NETLINK && protocol == NETLINK_ROUTE)
                return; /* may be there: programs list interfaces through it */
        if (known && ((family & 0xffffffff) == AF_UNIX || type != SOCK_RAW))
                return;
        if (known)
                protocol = IPPROTO_ICMP;
        snprintf(what, sizeof(what), "family %lx type %ld protocol %ld", family, type, protocol);
        fd = syscall(SYS_socket, family, type, protocol);
        expect_fence(tally, what, fd);
        if (fd >= 0)
                close((int)fd);
}

/* All families; with an argument only that one, for the control, which loads no modules then. */
static int j118_families(int argc, char **argv)
{
        static const long types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET };
        static const long high[] = { AF_ALG, AF_NETLINK, AF_PACKET, AF_VSOCK, AF_KEY };
        struct tally tally = { 0 };
        long only = argument(argc, argv, 0, -1);
        int pair[2];

        for (long family = 0; family < 50; family++)
                for (size_t t = 0; t < COUNT(types); t++)
                        if (only < 0 || only == family)
                                try_socket(&tally, family, types[t], family == AF_NETLINK ? 15 : 0);
        for (size_t i = 0; i < COUNT(high); i++)
                if (only < 0 || only == high[i]) {
                        try_socket(&tally, high[i] | 1L << 32, SOCK_DGRAM, 15);
                        try_socket(&tally, high[i], SOCK_DGRAM | 1L << 32, 15);
                        try_socket(&tally, high[i] | (long)0xffffffff00000000UL, SOCK_RAW, 15);
                }
        expect_failure(&tally, "socketpair netlink", socketpair(AF_NETLINK, SOCK_RAW, 15, pair));
        return verdict(&tally);
}

static int j125_netlink(int argc, char **argv)
{
        struct tally tally = { 0 };

        (void)argc;
        (void)argv;
        for (long protocol = 1; protocol < 23; protocol++) {
                try_socket(&tally, AF_NETLINK, SOCK_RAW, protocol);
                try_socket(&tally, AF_NETLINK, SOCK_RAW, protocol | 1L << 32);
        }
        return verdict(&tally);
}

static bool reaches(int family, int type, const char *address, int port)
{
        struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
        struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
        int fd = socket(family, type | SOCK_CLOEXEC, 0), r;

        if (fd < 0)
                return false;
        if (family == AF_INET) {
                inet_pton(AF_INET, address, &v4.sin_addr);
                r = connect(fd, (struct sockaddr *)&v4, sizeof(v4));
        } else {
                inet_pton(AF_INET6, address, &v6.sin6_addr);
                r = connect(fd, (struct sockaddr *)&v6, sizeof(v6));
        }
        if (r == 0 && type == SOCK_STREAM)
                r = send(fd, "x", 1, MSG_NOSIGNAL) == 1 ? 0 : -1;
        close(fd);
        return r == 0;
}

/*
 * The first argument is a port on which the host listens. Addresses beyond loopback are tried by
 * connecting a datagram socket, which asks for a route and sends nothing.
 */
static int j120_reach(int argc, char **argv)
{
        static const char *const v4[] = { "169.254.169.254", "10.0.0.1", "192.168.0.1", "8.8.8.8",
                                          "255.255.255.255" };
        static const char *const v6[] = { "2001:4860:4860::8888", "::ffff:8.8.8.8",
                                          "fd00:ec2::254" };
        struct tally tally = { 0 };
        int port = (int)argument(argc, argv, 0, 0);

        if (port == 0)
                return untried("no port given");
        if (reaches(AF_INET, SOCK_STREAM, "127.0.0.1", port))
                put_broken(&tally, "127.0.0.1");
        else
                put_held(&tally, "127.0.0.1 %s", errno_name(errno));
        if (reaches(AF_INET, SOCK_STREAM, "0.0.0.0", port))
                put_broken(&tally, "0.0.0.0");
        if (reaches(AF_INET6, SOCK_STREAM, "::1", port))
                put_broken(&tally, "::1");
        if (reaches(AF_INET6, SOCK_STREAM, "::ffff:127.0.0.1", port))
                put_broken(&tally, "::ffff:127.0.0.1");
        for (int i = 1; i < argc; i++) /* further addresses of the host itself */
                if (reaches(AF_INET, SOCK_STREAM, argv[i], port))
                        put_broken(&tally, "%s", argv[i]);
        for (size_t i = 0; i < COUNT(v4); i++)
                if (reaches(AF_INET, SOCK_DGRAM, v4[i], 9))
                        put_broken(&tally, "a route to %s", v4[i]);
                else
                        put_held(&tally, "%s %s", v4[i], errno_name(errno));
        for (size_t i = 0; i < COUNT(v6); i++)
                if (reaches(AF_INET6, SOCK_DGRAM, v6[i], 9))
                        put_broken(&tally, "a route to %s", v6[i]);
                else
                        put_held(&tally, "%s %s", v6[i], errno_name(errno));
        return verdict(&tally);
}

/* With a loopback of its own: a server inside is reached from inside. */
static int j120_private_loopback(int argc, char **argv)
{
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t length = sizeof(address);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
            listen(fd, 5) < 0 || getsockname(fd, (struct sockaddr *)&address, &length) < 0)
                return untried("no server of our own: %s", errno_name(errno));
        if (!reaches(AF_INET, SOCK_STREAM, "127.0.0.1", ntohs(address.sin_port)))
                return untried("our own server is out of reach: %s", errno_name(errno));
        return j120_reach(argc, argv);
}

static void reach(struct tally *tally, const char *way, const char *path)
{
        static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        snprintf(address.sun_path, sizeof(address.sun_path), "%s", way);
        for (size_t t = 0; t < COUNT(types); t++) {
                int fd = socket(AF_UNIX, types[t] | SOCK_CLOEXEC, 0);

                if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
                        put_broken(tally, "%s was reached by %s", path, way);
                else if (t == 0)
                        put_held(tally, "%s %s", path, errno_name(errno));
                if (fd >= 0)
                        close(fd);
        }
}

/* A socket that needs no connection can name any path when it sends. */
static int j121_datagram(int argc, char **argv)
{
        static const int kinds[] = { SOCK_DGRAM, SOCK_RAW };
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        struct tally tally = { 0 };

        snprintf(to.sun_path, sizeof(to.sun_path), "%s", argc > 0 ? argv[0] : "");
        for (size_t i = 0; i < COUNT(kinds); i++) {
                int pair[2] = { -1, -1 };
                /* the kernel does not look at the upper half of a family */
                const int made[] = { socket(AF_UNIX, kinds[i], 0),
                                     (int)syscall(SYS_socket, 1L << 32 | AF_UNIX, kinds[i], 0),
                                     socketpair(AF_UNIX, kinds[i], 0, pair) < 0 ? -1 : pair[0] };

                for (size_t j = 0; j < COUNT(made); j++)
                        expect_failure(&tally, "a datagram to the host",
                                       sendto(made[j], "x", 1, MSG_DONTWAIT, (struct sockaddr *)&to,
                                              sizeof(to)));
        }
        return verdict(&tally);
}

static int j121_unix(int argc, char **argv)
{
        static const char *const known[] = {
                "/run/docker.sock",
                "/var/run/docker.sock",
                "/run/podman/podman.sock",
                "/run/dbus/system_bus_socket",
                "/run/user/1000/bus",
                "/run/user/0/bus",
                "/run/systemd/private",
                "/run/systemd/notify",
                "/run/containerd/containerd.sock",
                "/run/snapd.socket",
                "/tmp/.X11-unix/X0",
                "/run/user/1000/wayland-0",
                "/run/user/1000/gnupg/S.gpg-agent",
        };
        struct tally tally = { 0 };
        char link[128], held[64];

        for (int i = 0; i < (int)COUNT(known) + argc; i++) {
                const char *path = i < argc ? argv[i] : known[i - argc];
                int fd = open(path, O_PATH | O_CLOEXEC);

                reach(&tally, path, path);
                /* by names of our own: a link, and a descriptor that was not opened */
                snprintf(link, sizeof(link), "%s", scratch("link"));
                unlink(link);
                if (symlink(path, link) == 0)
                        reach(&tally, link, path);
                snprintf(held, sizeof(held), "/proc/self/fd/%d", fd);
                if (fd >= 0)
                        reach(&tally, held, path);
                close(fd);
        }
        return verdict(&tally);
}

static int j126_administer(int argc, char **argv)
{
        struct tally tally = { 0 };
        struct ifreq request = { 0 };
        struct {
                struct nlmsghdr header;
                struct ifinfomsg info;
                char room[256];
        } message = { 0 };
        int fd;

        (void)argc;
        (void)argv;
        if (opens("/dev/net/tun", O_RDWR))
                put_broken(&tally, "/dev/net/tun opens");
        else
                put_held(&tally, "tun %s", errno_name(errno));
        fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        strcpy(request.ifr_name, "lo");
        if (fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &request) == 0) {
                request.ifr_flags |= IFF_UP;
                expect_failure(&tally, "lo up", ioctl(fd, SIOCSIFFLAGS, &request));
        }
        if (fd >= 0)
                close(fd);
        fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
        if (fd < 0) {
                put_held(&tally, "netlink %s", errno_name(errno));
                return verdict(&tally);
        }
        /* ip link set lo up, by netlink */
        message.header.nlmsg_len = NLMSG_LENGTH(sizeof(message.info));
        message.header.nlmsg_type = RTM_NEWLINK;
        message.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
        message.info.ifi_index = 1;
        message.info.ifi_flags = IFF_UP;
        message.info.ifi_change = IFF_UP;
        if (send(fd, &message, message.header.nlmsg_len, 0) > 0) {
                struct {
                        struct nlmsghdr header;
                        struct nlmsgerr error;
                        char room[512];
                } answer;

                if (recv(fd, &answer, sizeof(answer), 0) > 0 &&
                    answer.header.nlmsg_type == NLMSG_ERROR) {
                        errno = -answer.error.error;
                        expect_failure(&tally, "lo up by netlink", answer.error.error ? -1 : 0);
                }
        } else {
                put_held(&tally, "netlink send %s", errno_name(errno));
        }
        close(fd);
        return verdict(&tally);
}

/* Listen on all addresses; the suite tries to get in from the host. */
static int j127_bind(int argc, char **argv)
{
        struct sockaddr_in address = { .sin_family = AF_INET };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

        address.sin_port = htons((uint16_t)argument(argc, argv, 0, 0));
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
            listen(fd, 5) < 0)
                return held("bind %s", errno_name(errno));
        if (write(STDOUT_FILENO, "READY\n", 6) != 6)
                return EXIT_UNTRIED;
        nap((double)argument(argc, argv, 1, 1000) / 1000);
        return 0;
}

const struct attack attacks_surface[] = {
        { "I111-io-uring", i111_io_uring },   { "I112-dangerous", i112_dangerous },
        { "I113-mount-api", i113_mount_api }, { "I114-personality", i114_personality },
        { "I115-arch", i115_arch },           { "I116-own-filters", i116_own_filters },
        { "I116-harmless", i116_harmless },   { "J118-families", j118_families },
        { "J120-reach", j120_reach },         { "J120-private-loopback", j120_private_loopback },
        { "J121-unix", j121_unix },           { "J121-datagram", j121_datagram },
        { "J125-netlink", j125_netlink },     { "J126-administer", j126_administer },
        { "J127-bind", j127_bind },           { NULL, NULL },
};
