/* SPDX-License-Identifier: MIT */
/* Memory of the host that no page table of the program's shows, and limits of the user who runs it:
 * S9 and S11. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "payload.h"

#define KIB 1024L
#define GIB (1024L * MIB)
#define HOLD 1.0
#define PAGE 4096L
#define PIECE (8 * MIB)

static char block[MIB];

long in_processes(int n, long total, long (*take)(long part))
{
        int ends[2], started = 0;
        long have = 0, part;

        if (pipe(ends) < 0)
                return 0;
        for (int i = 0; i < n; i++) {
                pid_t pid = fork();

                if (pid == 0) {
                        part = take(total / n);
                        (void)!write(ends[1], &part, sizeof(part));
                        nap(HOLD + 3);
                        _exit(0);
                }
                started += pid > 0;
        }
        close(ends[1]);
        while (started-- > 0 && read(ends[0], &part, sizeof(part)) == sizeof(part))
                have += part;
        return have;
}

/* ---- Page tables ---- */

/* To read anonymous memory maps the page of zeros, which nobody counts. */
static long take_tables_at(long total, size_t step, long each)
{
        long have = 0;
        char *at = mmap(NULL, (size_t)(total / each) * step, PROT_READ,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (at == MAP_FAILED)
                return 0;
        madvise(at, (size_t)(total / each) * step, MADV_NOHUGEPAGE);
        for (; have + each <= total; have += each, at += step)
                (void)*(volatile char *)at;
        return have;
}

static long take_tables(long total)
{
        return take_tables_at(total, 2 * MIB, PAGE);
}

/* A page of each of two levels for a gigabyte of addresses. */
static long take_upper_tables(long total)
{
        return take_tables_at(total, GIB, 2 * PAGE);
}

static long take_tables_spread(long total)
{
        return in_processes(16, total, take_tables);
}

/* ---- Shared memory ---- */

/* Of each piece one page stays mapped, the rest stays in memory. */
static long take_shared_cut(long total)
{
        long have = 0;

        for (; have < total; have += PIECE) {
                char *p = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                               0);

                if (p == MAP_FAILED)
                        break;
                memset(p, 1, PIECE);
                munmap(p + PAGE, PIECE - PAGE);
        }
        return have;
}

/* Who has filled it is gone, and who has it mapped has not touched it. */
static long take_shared_left(long total)
{
        long have = 0;

        for (; have < total; have += PIECE) {
                char *p = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                               0);
                pid_t pid;

                if (p == MAP_FAILED)
                        break;
                pid = fork();
                if (pid == 0) {
                        memset(p, 1, PIECE);
                        _exit(0);
                }
                waitpid(pid, NULL, 0);
        }
        return have;
}

static long take_zero_device(long total)
{
        int fd = open("/dev/zero", O_RDWR);
        long have = 0;
        char *p = fd < 0 ? MAP_FAILED
                         : mmap(NULL, (size_t)total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (p == MAP_FAILED)
                return 0;
        for (; have < total; have += PIECE) {
                memset(p + have, 1, PIECE);
                madvise(p + have, PIECE, MADV_DONTNEED);
        }
        return have;
}

static int fill_memfd(long size)
{
        int fd = (int)syscall(SYS_memfd_create, "m", 0);

        for (long have = 0; fd >= 0 && have < size; have += MIB)
                if (write(fd, block, sizeof(block)) < 0)
                        break;
        return fd;
}

/* Known by a mapping of one page alone. */
static long take_memfd_closed(long total)
{
        long have = 0;

        for (; have < total; have += PIECE) {
                int fd = fill_memfd(PIECE);
                void *page = fd < 0 ? MAP_FAILED : mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);

                if (page == MAP_FAILED)
                        break;
                close(fd);
        }
        return have;
}

int send_descriptor(int socket, int fd)
{
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(sizeof(int))];
        } control = { .head = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
        struct iovec byte = { block, 1 };
        struct msghdr message = { .msg_iov = &byte,
                                  .msg_iovlen = 1,
                                  .msg_control = &control,
                                  .msg_controllen = sizeof(control) };

        memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
        return (int)sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Pages that are locked while they are mapped, one window after the other. */
static long take_secret(long total)
{
        int fd = (int)syscall(SYS_memfd_secret, 0);
        long have = 0, window = 64 * KIB;

        if (fd < 0 || ftruncate(fd, total) < 0)
                return 0;
        for (; have < total; have += window) {
                char *p = mmap(NULL, (size_t)window, PROT_READ | PROT_WRITE, MAP_SHARED, fd, have);

                if (p == MAP_FAILED)
                        break;
                memset(p, 1, (size_t)window);
                munmap(p, (size_t)window);
        }
        return have;
}

/* ---- Sockets and pipes ---- */

/* Fill one direction; each message costs the kernel some 800 bytes, however short it is. */
static long fill_socket(int fd, size_t length)
{
        int size = 256 * (int)MIB;
        long n = 0;

        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
        fcntl(fd, F_SETFL, O_NONBLOCK);
        while (send(fd, block, length, MSG_NOSIGNAL) >= 0)
                n++;
        return n * (length > KIB ? (long)length : 768);
}

/* Messages without a byte, of senders that are gone. */
static long take_closed_peers(long total)
{
        long have = 0;
        int pair[2];

        while (have < total && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0) {
                have += fill_socket(pair[0], 0);
                close(pair[0]);
        }
        return have;
}

static long take_closed_spread(long total)
{
        return in_processes(8, total, take_closed_peers);
}

/* Connections that nobody has accepted, of clients that are gone. */
static long take_backlog(long total)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int listener = socket(AF_UNIX, SOCK_STREAM, 0), client;
        long have = 0;

        snprintf(address.sun_path, sizeof(address.sun_path), "%s", scratch("backlog"));
        if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
            listen(listener, 4096) < 0)
                return 0;
        while (have < total) {
                client = socket(AF_UNIX, SOCK_STREAM, 0);
                if (connect(client, (struct sockaddr *)&address, sizeof(address)) < 0)
                        break;
                have += fill_socket(client, 1);
                close(client);
        }
        return have;
}

/* Full sockets on their way in other sockets. */
static long take_nested(long total)
{
        int carrier[2], pair[2];
        long have = 0;

        for (int i = 0; have < total && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0; i++) {
                if (i % 32 == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, carrier) < 0)
                        break;
                have += fill_socket(pair[0], 32000) + fill_socket(pair[1], 32000);
                if (send_descriptor(carrier[0], pair[0]) < 0 ||
                    send_descriptor(carrier[0], pair[1]) < 0)
                        break;
                close(pair[0]);
                close(pair[1]);
        }
        return have;
}

static long take_pairs(long total)
{
        int pair[2];
        long have = 0;

        while (have < total && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0)
                have += fill_socket(pair[0], 32000) + fill_socket(pair[1], 32000);
        return have;
}

/* One small piece of a huge page in a pipe keeps the whole of it. */
static long take_huge_pieces(long total)
{
        const long huge = 2 * MIB;
        long have = 0;
        int ends[2] = { -1, -1 };

        for (int i = 0; have < total; i++, have += huge) {
                char *p = mmap(NULL, 2 * (size_t)huge, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                char *at = (char *)(((uintptr_t)p + huge - 1) & ~(uintptr_t)(huge - 1));
                struct iovec piece = { at, 1 };

                if (p == MAP_FAILED || (i % 16 == 0 && pipe2(ends, O_NONBLOCK) < 0))
                        break;
                madvise(at, (size_t)huge, MADV_HUGEPAGE);
                memset(at, 1, (size_t)huge);
                if (syscall(SYS_vmsplice, ends[1], &piece, 1UL, 0) < 0)
                        break;
                munmap(p, 2 * (size_t)huge);
        }
        return have;
}

/* ---- What the kernel needs for the program ---- */

/* Mappings that are never touched. */
static long take_areas(long total)
{
        long have = 0;
        char *p = mmap(NULL, 65000 * 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (p == MAP_FAILED)
                return 0;
        for (int i = 0; have < total && i < 32000; i++, have += 500)
                if (mprotect(p + i * 2 * PAGE, PAGE, PROT_NONE) < 0)
                        break;
        return have;
}

static long take_areas_spread(long total)
{
        return in_processes(100, total, take_areas);
}

static long take_locks(long total)
{
        long have = 0;
        struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1 };

        for (int i = 0; have < total && i < 500; i++) {
                int fd = open(scratch("locks"), O_RDWR | O_CREAT, 0600);

                if (fd < 0)
                        break;
                unlink(scratch("locks"));
                for (lock.l_start = 0; have < total && lock.l_start < 8000; lock.l_start += 2)
                        if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
                                have += 256;
                        else
                                return have;
        }
        return have;
}

static long take_locks_spread(long total)
{
        return in_processes(8, total, take_locks);
}

/* One set, and each file under every number that it can have. */
static long take_watches(long total)
{
        int set = epoll_create1(0);
        struct epoll_event event = { .events = EPOLLIN };
        long have = 0;

        for (int i = 0; have < total && i < 300; i++) {
                int fd = eventfd(0, 0);

                if (fd < 0)
                        break;
                for (int j = 350; have < total && j < 650; j++)
                        if (dup2(fd, j) < 0 || epoll_ctl(set, EPOLL_CTL_ADD, j, &event) < 0)
                                break;
                        else
                                have += 160;
        }
        return have;
}

static long take_watches_spread(long total)
{
        return in_processes(60, total, take_watches);
}

static long take_descriptors(long total)
{
        long have = 0;

        for (; have < total; have += 2 * 2 * KIB) {
                int pair[2];

                if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
                        break;
        }
        return have;
}

static long take_descriptors_spread(long total)
{
        return in_processes(120, total, take_descriptors);
}

/* Rules on ports cost no file. */
static long take_rules(long total)
{
        struct {
                unsigned long files, net;
        } handled = { .net = 1 };
        struct {
                unsigned long access, port;
        } rule = { .access = 1 };
        long have = 0;

        while (have < total) {
                int fd = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0);

                for (rule.port = 0; have < total && rule.port < 65536; rule.port++)
                        if (fd < 0 || syscall(SYS_landlock_add_rule, fd, 2, &rule, 0) < 0)
                                return have;
                        else
                                have += 64;
        }
        return have;
}

static long take_rules_spread(long total)
{
        return in_processes(4, total, take_rules);
}

static long undo_all(long total)
{
        long have = 0;

        for (int id = 0; have < total && id < 4096; id++) {
                struct sembuf up = { 0, 1, SEM_UNDO };

                if (semop(id, &up, 1) < 0)
                        break;
                have += 64 * KIB;
        }
        return have;
}

static long take_undo(long total)
{
        for (int i = 0; i < 10; i++)
                if (semget(IPC_PRIVATE, 32000, IPC_CREAT | 0600) < 0)
                        return 0;
        return in_processes(120, total, undo_all);
}

static const struct memory_kind kinds[] = {
        { "page-tables", take_tables },
        { "upper-tables", take_upper_tables },
        { "page-tables-spread", take_tables_spread },
        { "shared-cut", take_shared_cut },
        { "shared-left", take_shared_left },
        { "zero-device", take_zero_device },
        { "memfd-closed", take_memfd_closed },
        { "secret", take_secret },
        { "closed-peers", take_closed_spread },
        { "backlog", take_backlog },
        { "nested", take_nested },
        { "large-buffers", take_pairs },
        { "huge-pieces", take_huge_pieces },
        { "areas", take_areas_spread },
        { "locks", take_locks_spread },
        { "watches", take_watches_spread },
        { "descriptors", take_descriptors_spread },
        { "rules", take_rules_spread },
        { "undo", take_undo },
};

int take_kind(const struct memory_kind *ways, size_t n, int argc, char **argv)
{
        long total = argument(argc, argv, 1, 240) * MIB, have;

        for (size_t i = 0; argc > 0 && i < n; i++) {
                if (strcmp(argv[0], ways[i].kind) != 0)
                        continue;
                have = ways[i].take(total);
                if (have < total - total / 8)
                        return held("%s: %ld MiB, then %s", argv[0], have / MIB, errno_name(errno));
                nap(HOLD);
                return broken("held %ld MiB as %s for %g s", have / MIB, argv[0], HOLD);
        }
        return untried("no such kind");
}

static int s9_memory(int argc, char **argv)
{
        return take_kind(kinds, COUNT(kinds), argc, argv);
}

const struct attack attacks_memory2[] = {
        { "S9-memory", s9_memory },
        { NULL, NULL },
};
