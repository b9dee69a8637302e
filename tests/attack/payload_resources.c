/* SPDX-License-Identifier: MIT */
/* B: resources. Amounts are small multiples of the limits that the suite sets. */
#include "payload.h"

#include <linux/aio_abi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define HOLD 2.0 /* seconds for which an amount beyond the limit is held, to be noticed */

static void touch(char *from, long length)
{
        for (long i = 0; i < length; i += 4096)
                from[i] = 1;
}

static int b20_memory(int argc, char **argv)
{
        long total = argument(argc, argv, 0, 300);

        for (long have = 0; have < total; have += 4) {
                char *p = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                               -1, 0);

                if (p == MAP_FAILED)
                        return held("mmap after %ld MiB %s", have, errno_name(errno));
                touch(p, 4 * MIB);
        }
        nap(HOLD);
        return broken("held %ld MiB for %g s", total, HOLD);
}

/* The same in `count` processes, each below any limit per process. */
static int b21_memory_spread(int argc, char **argv)
{
        long count = argument(argc, argv, 0, 20), each = argument(argc, argv, 1, 15);
        long got = 0;

        for (long i = 0; i < count; i++)
                if (fork() == 0) {
                        char *p = mmap(NULL, (size_t)(each * MIB), PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

                        if (p == MAP_FAILED)
                                _exit(1);
                        touch(p, each * MIB);
                        nap(HOLD);
                        _exit(0);
                }
        for (int status; wait(&status) > 0;)
                got += status == 0;
        if (got == count)
                return broken("held %ld MiB in %ld processes for %g s", count * each, count, HOLD);
        return held("%ld of %ld processes got their memory", got, count);
}

static long fill_file(int fd, long total)
{
        static char block[MIB];
        long have = 0;

        memset(block, 1, sizeof(block));
        while (have < total) {
                ssize_t n = write(fd, block, sizeof(block));

                if (n <= 0)
                        break;
                have += n;
        }
        return have;
}

static int memfd(void)
{
        return (int)syscall(SYS_memfd_create, "b22", 0);
}

static long take_memfd_mapped(long total)
{
        int fd = memfd();
        char *p;

        if (fd < 0 || ftruncate(fd, total) < 0)
                return 0;
        p = mmap(NULL, (size_t)total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED)
                return 0;
        touch(p, total);
        return total;
}

/* Written but never mapped: in no process's resident set. */
static long take_memfd_written(long total)
{
        int fd = memfd();

        return fd < 0 ? 0 : fill_file(fd, total);
}

/* Attached, touched, and detached again: it lives on in the namespace alone. */
static long take_sysv(long total)
{
        const long part = 16 * MIB;
        long have = 0;

        for (; have < total; have += part) {
                int id = shmget(IPC_PRIVATE, (size_t)part, IPC_CREAT | 0600);
                char *p = id < 0 ? (char *)-1 : shmat(id, NULL, 0);

                if (p == (char *)-1)
                        break;
                touch(p, part);
                shmdt(p);
        }
        return have;
}

static long take_tmpfs(long total)
{
        const char *const places[] = { "/tmp/b22", "/dev/shm/b22" };
        long have = 0;

        for (size_t i = 0; i < COUNT(places); i++) {
                int fd = open(places[i], O_RDWR | O_CREAT | O_EXCL, 0600);

                if (fd < 0)
                        continue;
                unlink(places[i]);
                have += fill_file(fd, total / 2);
        }
        return have;
}

/* Bytes in the buffers of sockets that nobody reads; four processes, for the descriptors. */
static long take_sockets(long total)
{
        static char block[65536];
        const int workers = 4;
        atomic_long *have =
                mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        atomic_int *done = (atomic_int *)(void *)((char *)have + 64);
        double until = now() + 4;

        if (have == MAP_FAILED)
                return 0;
        for (int w = 0; w < workers; w++) {
                if (fork() != 0)
                        continue;
                for (int i = 0; i < 480 && atomic_load(have) < total; i++) {
                        int pair[2], size = 1 << 20;

                        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) < 0)
                                break;
                        for (int end = 0; end < 2; end++) {
                                setsockopt(pair[end], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
                                for (ssize_t n; (n = write(pair[end], block, sizeof(block))) > 0;)
                                        atomic_fetch_add(have, n);
                        }
                }
                atomic_fetch_add(done, 1);
                nap(HOLD + 1);
                _exit(0);
        }
        while (atomic_load(done) < workers && now() < until)
                nap(0.01);
        return atomic_load(have);
}

/* Pages of an anonymous shared mapping that is no longer in any page table. */
static long take_shared_dropped(long total)
{
        char *p = mmap(NULL, (size_t)total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                       0);

        if (p == MAP_FAILED)
                return 0;
        for (long at = 0; at < total; at += 4 * MIB) {
                touch(p + at, 4 * MIB);
                madvise(p + at, 4 * MIB, MADV_DONTNEED);
        }
        return p[0] == 1 && p[total - 4096] == 1 ? total : 0;
}

/* Memory files on their way through a socket: in nobody's table of descriptors. */
static long take_in_flight(long total)
{
        const long part = 8 * MIB;
        int pair[2];
        long have = 0;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) < 0)
                return 0;
        while (have < total) {
                char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0;
                struct iovec io = { .iov_base = &byte, .iov_len = 1 };
                struct msghdr message = { .msg_iov = &io,
                                          .msg_iovlen = 1,
                                          .msg_control = control,
                                          .msg_controllen = sizeof(control) };
                struct cmsghdr *header = CMSG_FIRSTHDR(&message);
                int fd = memfd();

                header->cmsg_level = SOL_SOCKET;
                header->cmsg_type = SCM_RIGHTS;
                header->cmsg_len = CMSG_LEN(sizeof(int));
                memcpy(CMSG_DATA(header), &fd, sizeof(int));
                if (fd < 0 || fill_file(fd, part) < part)
                        break;
                if (sendmsg(pair[0], &message, 0) != 1) {
                        close(fd);
                        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) < 0)
                                break;
                        continue;
                }
                close(fd);
                have += part;
        }
        return have;
}

/* A thread with a table of descriptors of its own, which /proc/PID/fd does not show. */
struct own_table {
        long total, have;
};

static void *fill_own_table(void *data)
{
        struct own_table *table = data;

        if (unshare(CLONE_FILES) == 0)
                table->have = take_memfd_written(table->total);
        nap(HOLD + 1);
        return NULL;
}

static long take_in_thread(long total)
{
        static struct own_table table;
        pthread_t thread;
        double until = now() + 3;

        table.total = total;
        if (pthread_create(&thread, NULL, fill_own_table, &table) != 0)
                return 0;
        while (*(volatile long *)&table.have < total && now() < until)
                nap(0.01);
        return table.have;
}

/* Processes whose first thread has exited: their /proc/PID/stat shows no memory. */
static atomic_long *headless_have;
static long headless_part;

static void *fill_headless(void *data)
{
        char *p;

        (void)data;
        nap(0.1);
        p = mmap(NULL, (size_t)headless_part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                 -1, 0);
        if (p != MAP_FAILED) {
                touch(p, headless_part);
                atomic_fetch_add(headless_have, headless_part);
        }
        nap(HOLD + 1);
        _exit(0);
}

static long take_headless(long total)
{
        double until = now() + 3;

        headless_part = total / 8;
        headless_have = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (headless_have == MAP_FAILED)
                return 0;
        for (int i = 0; i < 8; i++)
                if (fork() == 0) {
                        pthread_t thread;

                        pthread_create(&thread, NULL, fill_headless, NULL);
                        syscall(SYS_exit, 0);
                }
        while (atomic_load(headless_have) < total && now() < until)
                nap(0.01);
        return atomic_load(headless_have);
}

/* More segments than one look at the list of them may show. */
static long take_sysv_many(long total)
{
        long have = 0;

        for (; have < total; have += MIB) {
                int id = shmget(IPC_PRIVATE, MIB, IPC_CREAT | 0600);
                char *p = id < 0 ? (char *)-1 : shmat(id, NULL, 0);

                if (p == (char *)-1)
                        break;
                touch(p, MIB);
                shmdt(p);
        }
        return have;
}

/* Messages in queues: kernel memory, 16 KiB a queue, thousands of queues. */
static long take_messages(long total)
{
        static struct {
                long type;
                char text[8000];
        } message = { .type = 1 };
        long have = 0;

        while (have < total) {
                int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);

                if (id < 0)
                        break;
                while (msgsnd(id, &message, sizeof(message.text), IPC_NOWAIT) == 0)
                        have += (long)sizeof(message.text);
        }
        return have;
}

/* Sets of semaphores: 64 bytes each, 32000 in a set, thousands of sets. */
static long take_semaphores(long total)
{
        const int each = 32000;
        long have = 0;

        for (; have < total; have += each * 64L)
                if (semget(IPC_PRIVATE, each, IPC_CREAT | 0600) < 0)
                        break;
        return have;
}

static long take_pipes(long total)
{
        static char block[65536];
        const int workers = 4;
        atomic_long *have =
                mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        double until = now() + 2;

        if (have == MAP_FAILED)
                return 0;
        for (int w = 0; w < workers; w++) {
                if (fork() != 0)
                        continue;
                for (int i = 0; i < 480 && atomic_load(have) < total; i++) {
                        int ends[2];

                        if (pipe2(ends, O_NONBLOCK) < 0)
                                break;
                        fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
                        for (ssize_t n; (n = write(ends[1], block, sizeof(block))) > 0;)
                                atomic_fetch_add(have, n);
                }
                nap(HOLD + 2);
                _exit(0);
        }
        while (atomic_load(have) < total && now() < until)
                nap(0.01);
        return atomic_load(have);
}

static int b22_indirect(int argc, char **argv)
{
        static const struct {
                const char *kind;
                long (*take)(long total);
        } kinds[] = {
                { "memfd-mapped", take_memfd_mapped },
                { "memfd-written", take_memfd_written },
                { "sysv", take_sysv },
                { "tmpfs", take_tmpfs },
                { "sockets", take_sockets },
                { "pipes", take_pipes },
                { "shared-dropped", take_shared_dropped },
                { "in-flight", take_in_flight },
                { "in-thread", take_in_thread },
                { "headless", take_headless },
                { "sysv-many", take_sysv_many },
                { "messages", take_messages },
                { "semaphores", take_semaphores },
        };
        long total = argument(argc, argv, 1, 200) * MIB, have;

        for (size_t i = 0; argc > 0 && i < COUNT(kinds); i++) {
                if (strcmp(argv[0], kinds[i].kind) != 0)
                        continue;
                have = kinds[i].take(total);
                if (have < total)
                        return held("%s: %ld MiB, then refused", argv[0], have / MIB);
                nap(HOLD);
                return broken("held %ld MiB as %s for %g s", have / MIB, argv[0], HOLD);
        }
        return untried("no such kind");
}

static int b23_tmpfs(int argc, char **argv)
{
        const char *const places[] = { "/tmp/b23", "/dev/shm/b23" };
        long total = argument(argc, argv, 0, 32) * MIB;
        struct tally tally = { 0 };

        for (size_t i = 0; i < COUNT(places); i++) {
                int fd = open(places[i], O_RDWR | O_CREAT | O_EXCL, 0600);
                long have;

                if (fd < 0)
                        return untried("%s %s", places[i], errno_name(errno));
                unlink(places[i]);
                have = fill_file(fd, total);
                if (have < total)
                        put_held(&tally, "%s after %ld MiB %s", places[i], have / MIB,
                                 errno_name(errno));
                else
                        put_broken(&tally, "%s took %ld MiB", places[i], have / MIB);
                close(fd);
        }
        return verdict(&tally);
}

static int b24_file_size(int argc, char **argv)
{
        long beyond = argument(argc, argv, 0, 8) * MIB;
        struct tally tally = { 0 };
        int fd = open("b24", O_RDWR | O_CREAT | O_EXCL, 0600);

        signal(SIGXFSZ, SIG_IGN);
        if (fd < 0)
                return untried("open %s", errno_name(errno));
        unlink("b24");
        expect_failure(&tally, "ftruncate", ftruncate(fd, beyond));
        expect_failure(&tally, "fallocate", fallocate(fd, 0, 0, beyond));
        expect_failure(&tally, "pwrite", pwrite(fd, "x", 1, beyond));
        return verdict(&tally);
}

static int b24_inodes(int argc, char **argv)
{
        long bound = argument(argc, argv, 0, 150000);

        for (long i = 0; i < bound; i++) {
                char name[64];

                if (i % 1000 == 0) {
                        snprintf(name, sizeof(name), "/tmp/b24-%ld", i / 1000);
                        if (mkdir(name, 0700) < 0)
                                return held("mkdir after %ld files %s", i, errno_name(errno));
                }
                snprintf(name, sizeof(name), "/tmp/b24-%ld/%ld", i / 1000, i);
                if (mknod(name, S_IFREG | 0600, 0) < 0)
                        return held("create after %ld files %s", i, errno_name(errno));
        }
        return broken("made %ld files", bound);
}

static void pour(const char *unit, size_t length, long total)
{
        static char block[65536];

        for (size_t i = 0; i < sizeof(block); i++)
                block[i] = unit[i % length];
        while (total > 0) {
                size_t part = total < (long)sizeof(block) ? (size_t)total : sizeof(block);
                ssize_t n = write(STDOUT_FILENO, block, part);

                if (n <= 0)
                        _exit(EXIT_UNTRIED);
                total -= n;
        }
}

static int b25_flood(int argc, char **argv)
{
        pour("HEAD\n", 5, 5);
        pour("y\n", 2, argument(argc, argv, 0, 64) * MIB);
        pour("TAIL\n", 5, 5);
        return 7;
}

static int b26_bytes(int argc, char **argv)
{
        unsigned char all[256];

        (void)argc;
        (void)argv;
        for (int i = 0; i < 256; i++)
                all[i] = (unsigned char)i;
        for (int i = 0; i < 4; i++)
                pour((const char *)all, 256, 256);
        return 0;
}

static int b26_line(int argc, char **argv)
{
        pour("A\0\377B", 4, argument(argc, argv, 0, 64) * MIB);
        return 0;
}

static void give_up(int number)
{
        (void)number;
        _exit(EXIT_BROKEN);
}

static int b27_unread(int argc, char **argv)
{
        (void)argc;
        (void)argv;
        signal(SIGALRM, give_up);
        alarm(4);
        pour("unread\n", 7, 1024 * 1024 * MIB);
        return EXIT_UNTRIED;
}

static void *burn(void *until)
{
        while (now() < *(double *)until)
                ;
        return NULL;
}

static double cpu_time(void)
{
        struct timespec t;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Burn until the whole process has used so much, or for 10 s: other programs may be busy too. */
static void *burn_all(void *amount)
{
        double until = now() + 10;

        while (cpu_time() < *(double *)amount && now() < until)
                ;
        return NULL;
}

static int b28_threads(int argc, char **argv)
{
        double amount = (double)argument(argc, argv, 0, 3000) / 1000;
        pthread_t threads[16];

        for (size_t i = 0; i < COUNT(threads); i++)
                if (pthread_create(&threads[i], NULL, burn_all, &amount) != 0)
                        return untried("pthread_create");
        for (size_t i = 0; i < COUNT(threads); i++)
                pthread_join(threads[i], NULL);
        if (cpu_time() < amount)
                return untried("only %g s of cpu time were to be had", cpu_time());
        return broken("burnt %g s of cpu time", cpu_time());
}

/* Children that burn a little each and are reaped: no process ever has much cpu time. */
static int b28_children(int argc, char **argv)
{
        double amount = (double)argument(argc, argv, 0, 3000) / 1000, until = now() + 10;
        struct rusage usage = { 0 };
        double used = 0;

        while (used < amount && now() < until) {
                if (fork() == 0) {
                        double end = now() + 0.1;

                        burn(&end);
                        _exit(0);
                }
                wait(NULL);
                getrusage(RUSAGE_CHILDREN, &usage);
                used = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
        }
        if (used < amount)
                return untried("only %g s of cpu time were to be had", used);
        return broken("children burnt %g s of cpu time", used);
}

static int b30_core(int argc, char **argv)
{
        struct rlimit limit;

        (void)argc;
        (void)argv;
        if (getrlimit(RLIMIT_CORE, &limit) < 0)
                return untried("getrlimit %s", errno_name(errno));
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_CORE, &limit);
        getrlimit(RLIMIT_CORE, &limit);
        /* 1 byte is as good as 0 for files, and better for handlers behind a pipe. */
        if (limit.rlim_cur > 1)
                return broken("core files of %llu bytes may be made",
                              (unsigned long long)limit.rlim_cur);
        held("no core file may be made");
        abort();
}

static int b31_quotas(int argc, char **argv)
{
        struct tally tally = { 0 };
        aio_context_t context = 0;
        int last = 0, count = 0;
        void *p;

        (void)argc;
        (void)argv;
        p = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        expect_failure(&tally, "mlock of 64 MiB", p == MAP_FAILED ? -1 : mlock(p, 64 * MIB));
        /* The kernel's count of requests is one for the whole host. */
        expect_fence(&tally, "io_setup", syscall(SYS_io_setup, 1, &context));
        while (last >= 0 && count < 4096) {
                last = dup(STDOUT_FILENO);
                count++;
        }
        if (last >= 0)
                put_broken(&tally, "%d descriptors were opened", count);
        else
                put_held(&tally, "descriptors after %d %s", count, errno_name(errno));
        for (int fd = 3; fd < 4200; fd++)
                close(fd);
        expect_fence(&tally, "add_key",
                     syscall(SYS_add_key, "user", "callbox-attack", "x", 1, -3 /* session */));
        return verdict(&tally);
}

/* Any cgroup tree in sight? With the default policy there is to be none. */
static int b33_cgroup_files(int argc, char **argv)
{
        static const char *const files[] = {
                "/sys/fs/cgroup",
                "/sys/fs/cgroup/cgroup.procs",
                "/sys/fs/cgroup/memory",
                "/sys/fs/cgroup/memory/cgroup.procs",
                "/sys/fs/cgroup/unified/cgroup.procs",
                "/sys/fs/cgroup/pids/cgroup.procs",
                "/sys/fs/cgroup/devices/release_agent",
        };
        struct tally tally = { 0 };
        const char *mounts;

        (void)argc;
        (void)argv;
        for (size_t i = 0; i < COUNT(files); i++) {
                if (opens(files[i], caged() ? O_RDONLY : O_PATH))
                        put_broken(&tally, "%s is visible", files[i]);
                else
                        put_held(&tally, "%s %s", files[i], errno_name(errno));
                if (opens(files[i], O_WRONLY))
                        put_broken(&tally, "%s opens for writing", files[i]);
        }
        mounts = slurp("/proc/self/mountinfo");
        if (!mounts)
                return untried("/proc/self/mountinfo %s", errno_name(errno));
        if (strstr(mounts, " - cgroup") && !caged())
                put_broken(&tally, "a cgroup mount is listed");
        return verdict(&tally);
}

static int b34_cgroup_mount(int argc, char **argv)
{
        static const char *const types[] = { "cgroup2", "cgroup" };
        struct tally tally = { 0 };

        (void)argc;
        (void)argv;
        mkdir("/tmp/b34", 0700);
        for (size_t i = 0; i < COUNT(types); i++) {
                long r = mount("none", "/tmp/b34", types[i], 0,
                               i ? "none,name=callbox-attack" : NULL);

                expect_failure(&tally, types[i], r);
                if (r == 0) {
                        if (opens("/tmp/b34/cgroup.procs", O_WRONLY))
                                put_broken(&tally, "cgroup.procs opens for writing");
                        umount2("/tmp/b34", MNT_DETACH);
                }
        }
        expect_failure(&tally, "unshare cgroup", syscall(SYS_unshare, 0x02000000));
        rmdir("/tmp/b34");
        return verdict(&tally);
}

static int b35_raise_limits(int argc, char **argv)
{
        static const struct {
                const char *name;
                int resource;
        } limits[] = {
                { "open files", RLIMIT_NOFILE },
                { "processes", RLIMIT_NPROC },
                { "file size", RLIMIT_FSIZE },
                { "core", RLIMIT_CORE },
        };
        struct tally tally = { 0 };

        (void)argc;
        (void)argv;
        for (size_t i = 0; i < COUNT(limits); i++) {
                struct rlimit limit, more;
                long r;

                if (getrlimit((__rlimit_resource_t)limits[i].resource, &limit) < 0)
                        return untried("getrlimit %s", errno_name(errno));
                if (limit.rlim_max == RLIM_INFINITY) {
                        put_broken(&tally, "%s: there is no limit", limits[i].name);
                        continue;
                }
                more.rlim_cur = more.rlim_max = limit.rlim_max + 1;
                expect_failure(&tally, limits[i].name,
                               setrlimit((__rlimit_resource_t)limits[i].resource, &more));
                r = prlimit(getpid(), (__rlimit_resource_t)limits[i].resource, &more, NULL);
                expect_failure(&tally, limits[i].name, r);
                more.rlim_cur = more.rlim_max = RLIM_INFINITY;
                r = syscall(SYS_prlimit64, 0, limits[i].resource, &more, NULL);
                expect_failure(&tally, limits[i].name, r);
        }
        return verdict(&tally);
}

const struct attack attacks_resources[] = {
        { "B20-memory", b20_memory },
        { "B21-memory-spread", b21_memory_spread },
        { "B22-indirect", b22_indirect },
        { "B23-tmpfs", b23_tmpfs },
        { "B24-file-size", b24_file_size },
        { "B24-inodes", b24_inodes },
        { "B25-flood", b25_flood },
        { "B26-bytes", b26_bytes },
        { "B26-line", b26_line },
        { "B27-unread", b27_unread },
        { "B28-threads", b28_threads },
        { "B28-children", b28_children },
        { "B30-core", b30_core },
        { "B31-quotas", b31_quotas },
        { "B33-cgroup-files", b33_cgroup_files },
        { "B34-cgroup-mount", b34_cgroup_mount },
        { "B35-raise-limits", b35_raise_limits },
        { NULL, NULL },
};
