/* SPDX-License-Identifier: MIT */
/* S: calls that are many in one, devices, attributes, and names that make a repository. */
#include "payload.h"

#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <termios.h>

/* The kernel looks at the lower half of these arguments. */
static const unsigned long high[] = { 0, 1UL << 32, 0xffffffffUL << 32, 1UL << 63 };

/* ---- S12: what makes the host wait ---- */

struct delegation { /* newer than the headers */
        uint32_t flags;
        uint16_t type, pad;
};

static int s12_lease(int argc, char **argv)
{
        static const int kinds[] = { F_RDLCK, F_WRLCK };
        struct delegation delegation = { .type = F_RDLCK };
        struct tally tally = { 0 };
        char again[64];
        int fd = argc > 1 ? open(argv[0], O_RDONLY | O_CLOEXEC) : -1, directory, reopened;

        if (fd < 0)
                return untried("%s", errno_name(errno));
        directory = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
        reopened = open(again, O_RDONLY | O_CLOEXEC);
        for (size_t h = 0; h < COUNT(high); h++) {
                for (size_t i = 0; i < COUNT(kinds); i++) {
                        expect_failure(&tally, "lease",
                                       syscall(SYS_fcntl, fd, F_SETLEASE | high[h], kinds[i]));
                        expect_failure(&tally, "lease of one opened again",
                                       syscall(SYS_fcntl, reopened, F_SETLEASE | high[h],
                                               kinds[i]));
                        syscall(SYS_fcntl, fd, F_SETLEASE, F_UNLCK);
                        syscall(SYS_fcntl, reopened, F_SETLEASE, F_UNLCK);
                }
                expect_failure(&tally, "notice",
                               syscall(SYS_fcntl, directory, F_NOTIFY | high[h], DN_CREATE));
                expect_failure(&tally, "delegation",
                               syscall(SYS_fcntl, directory, 1040 | high[h], &delegation));
        }
        return verdict(&tally);
}

/* ---- S18: requests ---- */

/* Held where the kernel has not looked at it: it would say something else of a wrong pointer, or of
 * what it does not have. */
static void expect_no_such(struct tally *tally, const char *what, long result)
{
        if (result < 0 && (errno == ENOTTY || errno == EPERM || errno == ENOSYS))
                put_held(tally, "%s %s", what, errno_name(errno));
        else
                put_broken(tally, "%s %s", what, result < 0 ? errno_name(errno) : "done");
}

static int s18_terminal(int argc, char **argv)
{
        static const struct {
                const char *name;
                unsigned long request;
        } requests[] = {
                { "TIOCSETD", TIOCSETD },
                { "TIOCSTI", TIOCSTI },
                { "TIOCSLCKTRMIOS", TIOCSLCKTRMIOS },
                { "TIOCSIG", 0x40045436 },
        };
        struct tally tally = { 0 };
        int master = posix_openpt(O_RDWR | O_NOCTTY), slave = -1;

        (void)argc;
        (void)argv;
        if (master < 0)
                return held("no terminal %s", errno_name(errno));
        if (unlockpt(master) == 0)
                slave = open(ptsname(master), O_RDWR | O_NOCTTY);
        for (size_t i = 0; i < COUNT(requests); i++)
                for (size_t h = 0; h < COUNT(high); h++) {
                        expect_no_such(&tally, requests[i].name,
                                       syscall(SYS_ioctl, master, requests[i].request | high[h],
                                               8));
                        if (slave >= 0)
                                expect_no_such(&tally, requests[i].name,
                                               syscall(SYS_ioctl, slave,
                                                       requests[i].request | high[h], 8));
                }
        return verdict(&tally);
}

/* Each asks for a part of the kernel by its name, of whatever socket. */
static int s18_modules(int argc, char **argv)
{
        static const unsigned long requests[] = { 0x8940 /* SIOCGIFBR */, 0x8982 /* SIOCGIFVLAN */,
                                                  0x89a0 /* SIOCBRADDBR */, 0x8980 /* DLCI */ };
        struct tally tally = { 0 };
        int pair[2];

        (void)argc;
        (void)argv;
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
                return untried("%s", errno_name(errno));
        for (size_t i = 0; i < COUNT(requests); i++)
                for (size_t h = 0; h < COUNT(high); h++)
                        expect_no_such(&tally, "socket request",
                                       syscall(SYS_ioctl, pair[0], requests[i] | high[h], 8));
        return verdict(&tally);
}

/* Names that nobody would look at: only a btrfs or a bcachefs would make them. The report counts
 * how often it was refused; nothing here can tell. */
static int s18_subvolumes(int argc, char **argv)
{
        static const unsigned long requests[] = {
                0x5000940e /* BTRFS_IOC_SUBVOL_CREATE */,    0x50009401 /* SNAP_CREATE */,
                0x50009418 /* SUBVOL_CREATE_V2 */,           0x50009417 /* SNAP_CREATE_V2 */,
                0x4020bc10 /* BCH_IOCTL_SUBVOLUME_CREATE */,
        };
        struct tally tally = { 0 };
        int fd = argc > 0 ? open(argv[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

        if (fd < 0)
                return untried("%s", errno_name(errno));
        for (size_t i = 0; i < COUNT(requests); i++)
                for (size_t h = 0; h < COUNT(high); h++)
                        expect_no_such(&tally, "subvolume",
                                       syscall(SYS_ioctl, fd, requests[i] | high[h], 8));
        return verdict(&tally);
}

/* ---- S18: sockets ---- */

static int s18_sockets(int argc, char **argv)
{
        static const struct {
                const char *name;
                int family, type, protocol;
        } kinds[] = {
                { "MPTCP", AF_INET, SOCK_STREAM, 262 },
                { "MPTCP of IPv6", AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 262 },
                { "UDP-Lite", AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE },
                { "UDP-Lite of IPv6", AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, IPPROTO_UDPLITE },
                { "SCTP", AF_INET, SOCK_STREAM, IPPROTO_SCTP },
                { "SCTP packets", AF_INET6, SOCK_SEQPACKET, IPPROTO_SCTP },
                { "DCCP", AF_INET, 6 /* SOCK_DCCP */, IPPROTO_DCCP },
                { "L2TP", AF_INET, SOCK_DGRAM, 115 },
                { "SMC", AF_INET, SOCK_STREAM, 256 },
                { "raw", AF_INET, SOCK_RAW, IPPROTO_ICMP },
                { "raw packets", AF_INET, 10 /* SOCK_PACKET, another family */, 0 },
                { "netlink of others", AF_NETLINK, SOCK_RAW, NETLINK_GENERIC },
                { "netlink of sockets", AF_NETLINK, SOCK_DGRAM, 4 /* NETLINK_SOCK_DIAG */ },
        };
        struct tally tally = { 0 };

        (void)argc;
        (void)argv;
        for (size_t i = 0; i < COUNT(kinds); i++)
                for (size_t h = 0; h < COUNT(high); h++)
                        for (int where = 0; where < 2; where++)
                                expect_failure(&tally, kinds[i].name,
                                               syscall(SYS_socket, kinds[i].family,
                                                       (unsigned long)kinds[i].type |
                                                               (where ? high[h] : 0),
                                                       (unsigned long)kinds[i].protocol |
                                                               (where ? 0 : high[h])));
        return verdict(&tally);
}

/* A raw local socket is one of datagrams, which could go to any path. */
static int s18_local(int argc, char **argv)
{
        static const int types[] = { SOCK_RAW, SOCK_DGRAM, SOCK_RAW | SOCK_CLOEXEC };
        struct tally tally = { 0 };
        int pair[2];

        (void)argc;
        (void)argv;
        for (size_t i = 0; i < COUNT(types); i++)
                for (size_t h = 0; h < COUNT(high); h++) {
                        expect_failure(&tally, "datagrams",
                                       syscall(SYS_socket, AF_UNIX,
                                               (unsigned long)types[i] | high[h], 0));
                        expect_failure(&tally, "a pair of datagrams",
                                       syscall(SYS_socketpair, AF_UNIX,
                                               (unsigned long)types[i] | high[h], 0, pair));
                }
        return verdict(&tally);
}

/* ---- S10: nodes and files that the box's id owns on the host ---- */

static void try_node(struct tally *tally, const char *path)
{
        char link[64];
        struct timespec times[2];
        struct stat st;
        int fd;

        if (stat(path, &st) < 0)
                return;
        times[0] = st.st_atim;
        times[1] = st.st_mtim;
        fd = open(path, O_PATH | O_CLOEXEC);
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        expect_failure(tally, path, chmod(path, st.st_mode & 0777));
        expect_failure(tally, path, chmod(link, st.st_mode & 0777));
        expect_failure(tally, path, chown(path, st.st_uid, st.st_gid));
        expect_failure(tally, path, fchownat(fd, "", st.st_uid, st.st_gid, AT_EMPTY_PATH));
        expect_failure(tally, path, utimensat(AT_FDCWD, path, times, 0));
        expect_failure(tally, path, setxattr(path, "user.attack", "x", 1, 0));
        expect_failure(tally, path, removexattr(path, "system.posix_acl_access"));
        expect_failure(tally, path, unlink(path));
        close(fd);
}

static int s10_nodes(int argc, char **argv)
{
        static const char *const paths[] = {
                "/dev/null",          "/dev/zero",
                "/dev/full",          "/dev/random",
                "/dev/urandom",       "/dev/tty",
                "/etc/passwd",        "/etc/hosts",
                "/proc/uptime",       "/proc/sys/kernel/hostname",
                "/etc/ld.so.cache",   "/usr/bin/env",
                "/etc/nsswitch.conf", "/etc",
        };
        struct tally tally = { 0 };

        (void)argc;
        (void)argv;
        for (size_t i = 0; i < COUNT(paths); i++)
                try_node(&tally, paths[i]);
        return verdict(&tally);
}

/* ---- S16: extended attributes of what is not shown ---- */

static int s16_attributes(int argc, char **argv)
{
        struct tally tally = { 0 };
        const char *path = argc > 0 ? argv[0] : "", *name = "user.attack";
        char room[256], link[64];
        uint64_t how[2] = { (uint64_t)(uintptr_t)room, sizeof(room) };
        int fd = open(path, O_PATH | O_CLOEXEC);

        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        expect_failure(&tally, "getxattr", getxattr(path, name, room, sizeof(room)));
        expect_failure(&tally, "getxattr's size", getxattr(path, name, NULL, 0));
        expect_failure(&tally, "lgetxattr", lgetxattr(path, name, room, sizeof(room)));
        expect_failure(&tally, "listxattr", listxattr(path, room, sizeof(room)));
        expect_failure(&tally, "llistxattr", llistxattr(path, room, sizeof(room)));
        expect_failure(&tally, "getxattr by link", getxattr(link, name, room, sizeof(room)));
        expect_failure(&tally, "listxattr by link", listxattr(link, room, sizeof(room)));
        expect_failure(&tally, "fgetxattr", fgetxattr(fd, name, room, sizeof(room)));
        expect_failure(&tally, "getxattrat", syscall(464, AT_FDCWD, path, 0, name, how, 16));
        expect_failure(&tally, "listxattrat", syscall(465, AT_FDCWD, path, 0, room, 256));
        expect_failure(&tally, "file_getattr", syscall(468, AT_FDCWD, path, room, 24, 0));
        return verdict(&tally);
}

/* ---- S15: a directory that is a repository ---- */

static void try_file(struct tally *tally, const char *path)
{
        int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

        expect_failure(tally, path, fd);
        if (fd >= 0) {
                close(fd);
                unlink(path);
        }
}

/* In the workspace, which is the current directory: every way in which a name comes to be. */
static int s15_repository(int argc, char **argv)
{
        struct tally tally = { 0 };

        (void)argc;
        (void)argv;
        mkdir("docs", 0700);
        mkdir("docs/objects", 0700);
        mkdir("docs/refs", 0700);
        if (mknod("docs/x", S_IFREG | 0600, 0) < 0 || access("docs/refs", F_OK) < 0)
                return untried("%s", errno_name(errno));
        try_file(&tally, "docs/HEAD");
        try_file(&tally, "docs/refs/HEAD");
        try_file(&tally, ".git/hidden/HEAD");
        try_file(&tally, ".git/refs/heads/HEAD");
        expect_failure(&tally, "mknod", mknod("docs/HEAD", S_IFREG | 0600, 0));
        expect_failure(&tally, "link", link("docs/x", "docs/HEAD"));
        expect_failure(&tally, "symlink", symlink("refs/heads/main", "docs/HEAD"));
        expect_failure(&tally, "rename", rename("docs/x", "docs/HEAD"));
        unlink("docs/HEAD");
        expect_failure(&tally, "logs, moved", rename(".git/logs", "moved"));
        expect_failure(&tally, "logs, moved inside", rename(".git/logs", ".git/moved"));
        expect_failure(&tally, "a remote, moved", rename(".git/refs/remotes/origin", "docs/o"));
        expect_failure(&tally, "exchanged",
                       syscall(SYS_renameat2, AT_FDCWD, "docs/refs", AT_FDCWD, ".git/logs",
                               2 /* RENAME_EXCHANGE */));
        expect_failure(&tally, "objects in logs", mkdir(".git/logs/objects", 0700));
        expect_failure(&tally, "refs in a remote", mkdir(".git/refs/remotes/origin/refs", 0700));
        return verdict(&tally);
}

/* Spellings of .git that other file systems, or other machines, take for it. */
static int s15_spellings(int argc, char **argv)
{
        static const char *const names[] = {
                ".GIT",       ".git.",           ".git ",          ".git . .",
                "git~1",      "GIT~2",           ".git::$DATA",    ".git::$INDEX_ALLOCATION",
                ".git:x",     ".g\u200cit",      ".git\u200d",     "\ufeff.git",
                ".gi\u206ft", ".vscode.",        ".VSCODE::$DATA", ".en\u200evrc",
                "docs/.git.", "docs/.g\u206ait", "docs/Git~1",     ".envrc ",
        };
        struct tally tally = { 0 };

        (void)argc;
        (void)argv;
        mkdir("docs", 0700);
        for (size_t i = 0; i < COUNT(names); i++) {
                expect_failure(&tally, names[i], mkdir(names[i], 0700));
                rmdir(names[i]);
                try_file(&tally, names[i]);
        }
        return verdict(&tally);
}

/* Names that are read by whoever opens, enters or commits; as arguments. */
static int s15_names(int argc, char **argv)
{
        struct tally tally = { 0 };

        for (int i = 0; i < argc; i++) {
                char parent[256], *slash;

                snprintf(parent, sizeof(parent), "%s", argv[i]);
                for (slash = strchr(parent, '/'); slash; slash = strchr(slash + 1, '/')) {
                        *slash = '\0';
                        mkdir(parent, 0700);
                        *slash = '/';
                }
                try_file(&tally, argv[i]);
        }
        return verdict(&tally);
}

/* A directory with names that are free elsewhere: from the box's own to the workspace. */
static int s15_brought(int argc, char **argv)
{
        struct tally tally = { 0 };
        char from[4096], inner[4200];

        (void)argc;
        (void)argv;
        snprintf(from, sizeof(from), "%s", scratch("brought"));
        snprintf(inner, sizeof(inner), "%s/.git", from);
        if (mkdir(from, 0700) < 0 || mkdir(inner, 0700) < 0)
                return untried("%s", errno_name(errno));
        expect_failure(&tally, "moved", rename(from, "brought"));
        mkdir("other", 0700);
        expect_failure(&tally, "exchanged",
                       syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, "other", 2));
        expect_failure(&tally, "exchanged back",
                       syscall(SYS_renameat2, AT_FDCWD, "other", AT_FDCWD, from, 2));
        return verdict(&tally);
}

const struct attack attacks_filter[] = {
        { "S10-nodes", s10_nodes },
        { "S12-lease", s12_lease },
        { "S15-brought", s15_brought },
        { "S15-names", s15_names },
        { "S15-repository", s15_repository },
        { "S15-spellings", s15_spellings },
        { "S16-attributes", s16_attributes },
        { "S18-local", s18_local },
        { "S18-modules", s18_modules },
        { "S18-sockets", s18_sockets },
        { "S18-subvolumes", s18_subvolumes },
        { "S18-terminal", s18_terminal },
        { NULL, NULL },
};
