/* SPDX-License-Identifier: MIT */
/* L, M, O, Q, R: the notifier, the report, other boxes, the environment, and truth. */
#include "payload.h"

#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>

/* ---- L: the notifier ---- */

static char shared_path[4096];
static const char *two_paths[2];
static volatile bool flipping = true;

static void *flip(void *data)
{
        (void)data;
        for (int i = 0; flipping; i++)
                memcpy(shared_path, two_paths[i & 1], strlen(two_paths[i & 1]) + 1);
        return NULL;
}

/* A path that changes between a look at it and its use; arguments: harmless, secret. */
static int l139_rewrite(int argc, char **argv)
{
        pthread_t thread;
        double until = now() + 0.7;
        int opened = 0;
        bool leaked = false;

        if (argc < 2)
                return untried("two paths are needed");
        two_paths[0] = argv[0];
        two_paths[1] = argv[1];
        if (pthread_create(&thread, NULL, flip, NULL) != 0)
                return untried("no thread");
        while (now() < until && !leaked) {
                char text[64] = "";
                int fd = open(shared_path, O_RDONLY | O_CLOEXEC);

                if (fd < 0)
                        continue;
                opened++;
                if (read(fd, text, sizeof(text) - 1) > 0 && strstr(text, "callbox-secret"))
                        leaked = true;
                close(fd);
        }
        flipping = false;
        pthread_join(thread, NULL);
        if (leaked)
                return broken("the secret was read");
        if (opened == 0)
                return untried("nothing could be opened");
        return held("%d opens, none of the secret", opened);
}

/* While the suite stops and then kills our init, a refused call must never come through. */
static int l140_insist(int argc, char **argv)
{
        double until = now() + 3;

        (void)argc;
        (void)argv;
        if (write(STDOUT_FILENO, "READY\n", 6) != 6)
                return EXIT_UNTRIED;
        while (now() < until)
                if (syscall(SYS_personality, 0x0040000UL /* ADDR_NO_RANDOMIZE */) >= 0)
                        return broken("personality came through");
        return held("personality was refused all the time");
}

static void *refused_calls(void *until)
{
        while (now() < *(double *)until)
                syscall(SYS_mount, NULL, NULL, NULL, 0, NULL);
        return NULL;
}

static int l142_flood(int argc, char **argv)
{
        double until = now() + 3;
        pthread_t threads[8];

        (void)argc;
        (void)argv;
        for (size_t i = 0; i < COUNT(threads); i++)
                if (pthread_create(&threads[i], NULL, refused_calls, &until) != 0)
                        return untried("no thread");
        for (size_t i = 0; i < COUNT(threads); i++)
                pthread_join(threads[i], NULL);
        return broken("the flood went on for 3 s");
}

static void no_action(int number)
{
        (void)number;
}

static int l143_interrupted(int argc, char **argv)
{
        struct sigaction action = { .sa_handler = no_action }; /* no SA_RESTART */
        struct itimerval timer = { .it_interval.tv_usec = 1500, .it_value.tv_usec = 1500 };
        double until = now() + 1.2;
        int rounds = 0, refused = 0;

        (void)argc;
        (void)argv;
        sigaction(SIGALRM, &action, NULL);
        setitimer(ITIMER_REAL, &timer, NULL);
        while (now() < until) {
                int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), status;
                pid_t pid;

                if (fd < 0 && errno != EINTR)
                        return untried("open %s", errno_name(errno));
                if (fd >= 0 && close(fd) < 0)
                        return broken("close was lost: %s", errno_name(errno));
                pid = fork();
                if (pid < 0)
                        return broken("fork was lost: %s", errno_name(errno));
                if (pid == 0)
                        _exit(7);
                while (waitpid(pid, &status, 0) < 0)
                        if (errno != EINTR)
                                return broken("waitpid %s", errno_name(errno));
                if (!WIFEXITED(status) || WEXITSTATUS(status) != 7)
                        return broken("a child's status is 0x%x", status);
                if (syscall(SYS_mount, NULL, NULL, NULL, 0, NULL) == 0)
                        return broken("mount came through");
                refused += errno == EPERM || errno == ENOSYS;
                rounds++;
        }
        return held("%d rounds, %d refusals", rounds, refused);
}

/* ---- M: forged results ---- */

static int m145_forge(int argc, char **argv)
{
        static const char text[] =
                "{\"reason\":\"timeout\",\"code\":0,\"signal\":null,\"text\":\"forged\"}\n";
        int written = 0;

        (void)argc;
        (void)argv;
        for (int fd = 0; fd < 1024; fd++)
                if (fcntl(fd, F_GETFD) >= 0 && write(fd, text, sizeof(text) - 1) > 0)
                        written++;
        return written > 0 ? 5 : EXIT_UNTRIED;
}

/* ---- O: between two boxes ---- */

static struct sockaddr_un abstract(const char *name, socklen_t *length)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s", name);
        *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
        return address;
}

/* name, key: leave things behind under every name, say so, and wait. */
static int o159_leave(int argc, char **argv)
{
        char path[3][128];
        struct sockaddr_un address;
        socklen_t length;
        key_t key;
        int fd, shm, sem, msg;
        mqd_t queue;

        if (argc < 2)
                return untried("two arguments are needed");
        key = (key_t)strtol(argv[1], NULL, 10);
        snprintf(path[0], sizeof(path[0]), "%s", scratch(argv[0]));
        snprintf(path[1], sizeof(path[1]), "/dev/shm/%s", argv[0]);
        snprintf(path[2], sizeof(path[2]), "/%s", argv[0]);
        for (int i = 0; i < 2; i++)
                close(open(path[i], O_RDWR | O_CREAT | O_CLOEXEC, 0666));
        shm = shmget(key, 4096, IPC_CREAT | 0666);
        sem = semget(key, 1, IPC_CREAT | 0666);
        msg = msgget(key, IPC_CREAT | 0666);
        queue = mq_open(path[2], O_RDWR | O_CREAT, 0666, NULL);
        address = abstract(argv[0], &length);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if ((bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, 5) < 0) && !caged())
                return untried("abstract socket %s", errno_name(errno));
        if (write(STDOUT_FILENO, "READY\n", 6) != 6)
                return EXIT_UNTRIED;
        nap(1.5);
        for (int i = 0; i < 2; i++)
                unlink(path[i]);
        shmctl(shm, IPC_RMID, NULL);
        semctl(sem, 0, IPC_RMID);
        msgctl(msg, IPC_RMID, NULL);
        if (queue >= 0)
                mq_unlink(path[2]);
        return held("all was left for a while");
}

static int o159_find(int argc, char **argv)
{
        struct tally tally = { 0 };
        char path[128];
        struct sockaddr_un address;
        socklen_t length;
        key_t key;

        if (argc < 2)
                return untried("two arguments are needed");
        key = (key_t)strtol(argv[1], NULL, 10);
        snprintf(path, sizeof(path), "%s", scratch(argv[0]));
        expect_failure(&tally, "/tmp", access(path, F_OK));
        snprintf(path, sizeof(path), "/dev/shm/%s", argv[0]);
        expect_failure(&tally, "/dev/shm", access(path, F_OK));
        expect_failure(&tally, "/dev/shm, opened", open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC));
        expect_failure(&tally, "shmget", shmget(key, 0, 0));
        expect_failure(&tally, "semget", semget(key, 0, 0));
        expect_failure(&tally, "msgget", msgget(key, 0));
        snprintf(path, sizeof(path), "/%s", argv[0]);
        expect_failure(&tally, "mq_open", mq_open(path, O_RDONLY));
        address = abstract(argv[0], &length);
        expect_failure(&tally, "abstract socket",
                       connect(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
                               (struct sockaddr *)&address, length));
        return verdict(&tally);
}

/* ---- Q: the environment ---- */

static int q165_environment(int argc, char **argv)
{
        (void)argc;
        (void)argv;
        for (char **e = environ; *e; e++)
                printf("%s\n", *e);
        return fflush(stdout) == 0 ? 0 : EXIT_UNTRIED;
}

/* The argument is the marker backwards, so that our own command line does not hold it. */
static int q167_arguments(int argc, char **argv)
{
        static const char *const files[] = { "cmdline", "environ", "comm" };
        struct tally tally = { 0 };
        char marker[128] = "";
        DIR *dir = opendir("/proc");
        struct dirent *entry;
        size_t length;

        if (argc < 1 || !dir)
                return untried("a marker and /proc are needed");
        length = strlen(argv[0]);
        for (size_t i = 0; i < length && i < sizeof(marker) - 1; i++)
                marker[i] = argv[0][length - 1 - i];
        while ((entry = readdir(dir))) {
                if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
                        continue;
                for (size_t i = 0; i < COUNT(files); i++) {
                        static char text[65536];
                        char path[300];
                        int fd;
                        ssize_t n;

                        snprintf(path, sizeof(path), "/proc/%s/%s", entry->d_name, files[i]);
                        fd = open(path, O_RDONLY | O_CLOEXEC);
                        n = fd < 0 ? -1 : read(fd, text, sizeof(text));
                        if (fd >= 0)
                                close(fd);
                        if (n > 0 && memmem(text, (size_t)n, marker, length))
                                put_broken(&tally, "%s shows it", path);
                        else if (n > 0)
                                put_held(&tally, "%s", path);
                }
        }
        closedir(dir);
        return verdict(&tally);
}

/* ---- R: truth ---- */

static int r169_fences(int argc, char **argv)
{
        bool child = argc > 0 && strcmp(argv[0], "child") == 0;
        const char *missing = missing_fence(child);

        if (missing) /* once more: the suite injects faults into single calls */
                missing = missing_fence(child);
        return missing ? broken("%s", missing) : held("every fence stands");
}

/* ---- Cages: run callbox itself where the kernel refuses some of what it needs ---- */

struct refusal {
        long number;
        int error;
};

static const struct {
        const char *name;
        struct refusal refusals[20];
} cages[] = {
        /* as in a container with its default filter */
        { "container",
          { { SYS_mount, EPERM },
            { SYS_umount2, EPERM },
            { SYS_unshare, EPERM },
            { SYS_setns, EPERM },
            { SYS_pivot_root, EPERM },
            { SYS_open_tree, EPERM },
            { SYS_move_mount, EPERM },
            { SYS_fsopen, EPERM },
            { SYS_fsmount, EPERM },
            { SYS_mount_setattr, EPERM },
            { SYS_clone3, ENOSYS } } },
        { "no-namespaces", { { SYS_unshare, EPERM }, { SYS_clone3, EPERM } } },
        { "no-mount-api",
          { { SYS_open_tree, ENOSYS },
            { SYS_move_mount, ENOSYS },
            { SYS_fsopen, ENOSYS },
            { SYS_mount_setattr, ENOSYS } } },
        { "no-openat2", { { SYS_openat2, ENOSYS } } },
        { "no-clone3", { { SYS_clone3, ENOSYS } } },
        { "no-pidfd", { { SYS_pidfd_open, ENOSYS }, { SYS_pidfd_send_signal, ENOSYS } } },
        { "no-close-range", { { SYS_close_range, ENOSYS } } },
        { "no-landlock",
          { { 444 /* create */, ENOSYS },
            { 445 /* add */, ENOSYS },
            { 446 /* restrict */, ENOSYS } } },
        { "no-seccomp", { { SYS_seccomp, ENOSYS } } },
        { "no-setsid", { { SYS_setsid, EPERM } } },
        { "no-prlimit", { { SYS_prlimit64, EPERM }, { SYS_setrlimit, EPERM } } },
        { "no-capset", { { SYS_capset, EPERM } } },
        { "no-sethostname", { { SYS_sethostname, EPERM } } },
};

/* cage TOKEN KIND COMMAND...: a filter that lasts through exec, then the command. */
static int tool_cage(int argc, char **argv)
{
        for (size_t c = 0; argc > 1 && c < COUNT(cages); c++) {
                struct sock_filter code[64];
                struct sock_fprog program = { .filter = code };

                if (strcmp(argv[0], cages[c].name) != 0)
                        continue;
                code[program.len++] =
                        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                     offsetof(struct seccomp_data, nr));
                for (const struct refusal *r = cages[c].refusals; r->error; r++) {
                        code[program.len++] =
                                (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                             (uint32_t)r->number, 0, 1);
                        code[program.len++] = (struct sock_filter)BPF_STMT(
                                BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)r->error);
                }
                code[program.len++] =
                        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
                if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
                        return untried("no filter: %s", errno_name(errno));
                execv(argv[1], argv + 1);
                return untried("%s %s", argv[1], errno_name(errno));
        }
        for (size_t c = 0; c < COUNT(cages); c++)
                printf("%s\n", cages[c].name);
        return EXIT_UNTRIED;
}

const struct attack attacks_channels[] = {
        { "L139-rewrite", l139_rewrite },
        { "L140-insist", l140_insist },
        { "L142-flood", l142_flood },
        { "L143-interrupted", l143_interrupted },
        { "M145-forge", m145_forge },
        { "O159-leave", o159_leave },
        { "O159-find", o159_find },
        { "Q165-environment", q165_environment },
        { "Q167-arguments", q167_arguments },
        { "R169-fences", r169_fences },
        { "cage", tool_cage },
        { NULL, NULL },
};
