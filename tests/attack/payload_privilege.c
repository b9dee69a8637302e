/* SPDX-License-Identifier: MIT */
/* G and H: namespaces, privilege, and the roads into the kernel other than plain syscalls. */
#include "payload.h"

#include <dirent.h>
#include <linux/securebits.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <sys/wait.h>

#define X32_BIT 0x40000000L

static const struct {
        const char *name;
        unsigned long flag;
} namespaces[] = {
        { "user", 0x10000000 },   { "mnt", 0x00020000 }, { "pid", 0x20000000 },
        { "net", 0x40000000 },    { "ipc", 0x08000000 }, { "uts", 0x04000000 },
        { "cgroup", 0x02000000 }, { "time", 0x80 },
};

struct clone3_args {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
};

/* A fork by the raw call: the child ends at once, the parent gets its pid. */
static long forked(long pid)
{
        int number = errno;

        if (pid == 0)
                _exit(0);
        if (pid > 0)
                waitpid((pid_t)pid, NULL, __WALL);
        errno = number;
        return pid;
}

static int unshare_one(void *flag)
{
        return syscall(SYS_unshare, *(unsigned long *)flag) < 0 ? errno : 0;
}

static int g90_namespaces(int argc, char **argv)
{
        struct tally tally = { 0 };

        (void)argc;
        (void)argv;
        for (size_t i = 0; i < COUNT(namespaces); i++) {
                unsigned long flag = namespaces[i].flag;
                char what[64];
                int status;

                snprintf(what, sizeof(what), "unshare %s", namespaces[i].name);
                status = in_child(unshare_one, &flag);
                errno = WEXITSTATUS(status);
                expect_fence(&tally, what, errno == 0 ? 0 : -1);
                if (flag == 0x80)
                        continue; /* clone takes no such flag */
                snprintf(what, sizeof(what), "clone %s", namespaces[i].name);
                expect_fence(&tally, what, forked(syscall(SYS_clone, flag | SIGCHLD, 0, 0, 0, 0)));
                snprintf(what, sizeof(what), "clone user+%s", namespaces[i].name);
                expect_fence(&tally, what,
                             forked(syscall(SYS_clone, flag | 0x10000000UL | SIGCHLD, 0, 0, 0, 0)));
                snprintf(what, sizeof(what), "clone %s with high bits", namespaces[i].name);
                expect_fence(&tally, what,
                             forked(syscall(SYS_clone, flag | 1UL << 40 | 0x10000000UL | SIGCHLD, 0,
                                            0, 0, 0)));
        }
        return verdict(&tally);
}

static int g91_setns(int argc, char **argv)
{
        static const char *const holders[] = { "self", "1" };
        struct tally tally = { 0 };

        (void)argc;
        (void)argv;
        for (size_t h = 0; h < COUNT(holders); h++)
                for (size_t i = 0; i < COUNT(namespaces); i++) {
                        char path[64], what[80];
                        int fd;

                        snprintf(path, sizeof(path), "/proc/%s/ns/%s", holders[h],
                                 namespaces[i].name);
                        fd = open(path, O_RDONLY | O_CLOEXEC);
                        snprintf(what, sizeof(what), "setns %s", path);
                        expect_fence(&tally, what, syscall(SYS_setns, fd, 0));
                        if (fd >= 0)
                                close(fd);
                }
        expect_fence(&tally, "setns of a pidfd",
                     syscall(SYS_setns, syscall(SYS_pidfd_open, getppid(), 0), 0x10000000));
        return verdict(&tally);
}

static int g92_root_inside(int argc, char **argv)
{
        static const char *const types[] = { "tmpfs", "overlay", "fuse", "proc", "sysfs" };
        struct tally tally = { 0 };

        (void)argc;
        (void)argv;
        expect_failure(&tally, "setuid 0", syscall(SYS_setuid, 0));
        expect_failure(&tally, "setresuid 0", syscall(SYS_setresuid, 0, 0, 0));
        expect_failure(&tally, "setgid 0", syscall(SYS_setgid, 0));
        expect_fence(&tally, "unshare user+mnt", syscall(SYS_unshare, 0x10000000UL | 0x00020000UL));
        mkdir("/tmp/g92", 0700);
        for (size_t i = 0; i < COUNT(types); i++) {
                long r = mount("none", "/tmp/g92", types[i], 0, NULL);

                expect_failure(&tally, types[i], r);
                if (r == 0)
                        umount2("/tmp/g92", MNT_DETACH);
        }
        rmdir("/tmp/g92");
        return verdict(&tally);
}

static int g93_capabilities(int argc, char **argv)
{
        static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };
        const int locked = SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |
                           SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
        struct tally tally = { 0 };
        const char *value;
        int bits;

        (void)argc;
        (void)argv;
        for (size_t i = 0; i < COUNT(sets); i++) {
                value = status_field(sets[i]);
                /* Only a privileged process can empty it; no_new_privs makes it mean nothing. */
                if (caged() && strcmp(sets[i], "CapBnd") == 0)
                        continue;
                if (!value || strcmp(value, "0000000000000000") != 0)
                        put_broken(&tally, "%s is %s", sets[i], value ? value : "unknown");
                else
                        put_held(&tally, "%s is empty", sets[i]);
        }
        value = status_field("NoNewPrivs");
        if (!value || strcmp(value, "1") != 0)
                put_broken(&tally, "no_new_privs is %s", value ? value : "unknown");
        expect_failure(&tally, "no_new_privs off", prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
        bits = prctl(PR_GET_SECUREBITS);
        if (caged() && bits == 0 && geteuid() != 0)
                put_held(&tally, "a user has none to lock");
        else if (bits < 0 || (bits & locked) != locked)
                put_broken(&tally, "securebits are 0x%x, not locked", (unsigned)bits);
        else
                put_held(&tally, "securebits are locked");
        value = status_field("Groups");
        if (value && strspn(value, "0123456789 ") == strlen(value) && strchr(value, ' ') &&
            strchr(value, ' ')[1])
                put_broken(&tally, "there are more groups: %s", value);
        return verdict(&tally);
}

static int g95_settings(int argc, char **argv)
{
        static const char *const paths[] = {
                "/proc/sys/user/max_user_namespaces", "/proc/sys/user/max_mnt_namespaces",
                "/proc/sys/user/max_pid_namespaces",  "/proc/sys/user/max_net_namespaces",
                "/proc/sys/user/max_inotify_watches",
        };
        struct tally tally = { 0 };

        (void)argc;
        (void)argv;
        for (size_t i = 0; i < COUNT(paths); i++)
                if (opens(paths[i], O_WRONLY))
                        put_broken(&tally, "%s opens for writing", paths[i]);
                else
                        put_held(&tally, "%s %s", paths[i], errno_name(errno));
        return verdict(&tally);
}

/* abstract socket name, SysV key, message queue name: all three were made on the host */
static int g98_ipc(int argc, char **argv)
{
        struct tally tally = { 0 };
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        socklen_t length;
        int fd;

        if (argc < 3)
                return untried("three arguments are needed");
        length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(argv[0]));
        memcpy(address.sun_path + 1, argv[0], strlen(argv[0]));
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return untried("socket %s", errno_name(errno));
        expect_failure(&tally, "the abstract socket",
                       connect(fd, (struct sockaddr *)&address, length));
        expect_failure(&tally, "the shared memory", shmget((key_t)strtol(argv[1], NULL, 10), 0, 0));
        expect_failure(&tally, "the message queue", mq_open(argv[2], O_RDONLY));
        return verdict(&tally);
}

static int g99_hostname(int argc, char **argv)
{
        struct tally tally = { 0 };
        char name[128] = "";

        (void)argc;
        (void)argv;
        /* the same name again, so that it does no harm */
        gethostname(name, sizeof(name) - 1);
        expect_fence(&tally, "sethostname", sethostname(name, strlen(name)));
        expect_fence(&tally, "setdomainname", setdomainname("", 0));
        if (strcmp(name, "box") != 0 && !caged())
                put_broken(&tally, "the host's name is %s", name);
        return verdict(&tally);
}

static int g100_clock(int argc, char **argv)
{
        struct tally tally = { 0 };
        /* out of range: the kernel says EINVAL before it asks who we are */
        struct timespec wrong = { .tv_sec = 0, .tv_nsec = -1 };
        struct timeval wrong_too = { .tv_sec = 0, .tv_usec = -1 };

        (void)argc;
        (void)argv;
        expect_fence(&tally, "clock_settime", syscall(SYS_clock_settime, CLOCK_REALTIME, &wrong));
        expect_fence(&tally, "settimeofday", syscall(SYS_settimeofday, &wrong_too, NULL));
        expect_fence(&tally, "adjtimex", syscall(SYS_adjtimex, NULL));
        expect_fence(&tally, "clock_adjtime", syscall(SYS_clock_adjtime, CLOCK_REALTIME, NULL));
        return verdict(&tally);
}

/* ---- H ---- */

/* The dangerous calls by their x32 numbers, with arguments that are wrong. */
static int x32_calls(void *data)
{
        static const long numbers[] = {
                SYS_mount,
                SYS_umount2,
                SYS_ptrace,
                SYS_unshare,
                SYS_setns,
                SYS_bpf,
                SYS_keyctl,
                SYS_add_key,
                SYS_chroot,
                SYS_pivot_root,
                SYS_reboot,
                SYS_init_module,
                SYS_kexec_load,
                SYS_io_uring_setup,
                SYS_perf_event_open,
                SYS_userfaultfd,
                SYS_open_tree,
                SYS_fsopen,
                SYS_process_vm_readv,
                SYS_socket,
                SYS_getpid,
                SYS_clone3,
                521 /* x32 ptrace */,
                539 /* x32 process_vm_readv */,
                512,
                528,
                546,
        };

        (void)data;
        for (size_t i = 0; i < COUNT(numbers); i++) {
                long r = syscall(X32_BIT | numbers[i], -1L, -1L, -1L, -1L, -1L, -1L);

                if (r >= 0 || (errno != ENOSYS && errno != EPERM))
                        return EXIT_BROKEN;
        }
        return 0;
}

static int h101_x32(int argc, char **argv)
{
        int status = in_child(x32_calls, NULL);

        (void)argc;
        (void)argv;
        if (WIFSIGNALED(status))
                return held("killed by signal %d", WTERMSIG(status));
        if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_BROKEN)
                return broken("an x32 number reached the kernel");
        return held("every x32 number was refused");
}

#ifdef __x86_64__

/* The 32-bit entry from 64-bit code: numbers mean other calls there. */
static long entry32(long number, long a, long b, long c, long d)
{
        long result;

        __asm__ volatile("int $0x80"
                         : "=a"(result)
                         : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d)
                         : "memory", "r8", "r9", "r10", "r11");
        return (long)(int)result;
}

/* A 32-bit program: getpid by int 0x80 and by the vdso's fast entry; exits 42 if one works. */
__asm__(".pushsection .rodata\n"
        ".code32\n"
        "program32:\n"
        "        movl $20, %eax\n"
        "        int $0x80\n"
        "        testl %eax, %eax\n"
        "        jg 9f\n"
        "        movl (%esp), %ecx\n"
        "        leal 8(%esp,%ecx,4), %esi\n"
        "1:      movl (%esi), %eax\n"
        "        addl $4, %esi\n"
        "        testl %eax, %eax\n"
        "        jnz 1b\n"
        "2:      movl (%esi), %eax\n"
        "        testl %eax, %eax\n"
        "        jz 8f\n"
        "        cmpl $32, %eax\n"
        "        je 3f\n"
        "        addl $8, %esi\n"
        "        jmp 2b\n"
        "3:      movl 4(%esi), %edi\n"
        "        movl $20, %eax\n"
        "        call *%edi\n"
        "        testl %eax, %eax\n"
        "        jg 9f\n"
        "8:      movl $1, %eax\n"
        "        xorl %ebx, %ebx\n"
        "        int $0x80\n"
        "        hlt\n"
        "9:      movl $1, %eax\n"
        "        movl $42, %ebx\n"
        "        int $0x80\n"
        "        hlt\n"
        "program32_end:\n"
        ".code64\n"
        ".popsection\n");
extern const char program32[], program32_end[];

struct elf32 {
        unsigned char ident[16];
        uint16_t type, machine;
        uint32_t version, entry, phoff, shoff, flags;
        uint16_t ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
        uint32_t p_type, p_offset, p_vaddr, p_paddr, p_filesz, p_memsz, p_flags, p_align;
};

static int run32(void *path)
{
        execl(path, path, (char *)NULL);
        return errno == ENOEXEC ? 0 : EXIT_UNTRIED;
}

static int getpid32(void *data)
{
        (void)data;
        return entry32(20, 0, 0, 0, 0) == getpid() ? EXIT_BROKEN : 0;
}

static void put_status(struct tally *tally, const char *what, int status)
{
        if (WIFSIGNALED(status))
                put_held(tally, "%s killed by signal %d", what, WTERMSIG(status));
        else if (WEXITSTATUS(status) == EXIT_BROKEN)
                put_broken(tally, "%s works", what);
        else
                put_held(tally, "%s refused", what);
}

static int h102_entry32(int argc, char **argv)
{
        struct tally tally = { 0 };
        const uint32_t base = 0x08048000;
        size_t length = (uintptr_t)program32_end - (uintptr_t)program32;
        struct elf32 header = {
                .ident = { 0x7f, 'E', 'L', 'F', 1, 1, 1 },
                .type = 2,
                .machine = 3,
                .version = 1,
                .entry = base + sizeof(header),
                .phoff = offsetof(struct elf32, p_type),
                .ehsize = 52,
                .phentsize = 32,
                .phnum = 1,
                .p_type = 1,
                .p_vaddr = base,
                .p_filesz = (uint32_t)(sizeof(header) + length),
                .p_memsz = (uint32_t)(sizeof(header) + length),
                .p_flags = 5,
                .p_align = 4096,
        };
        char *path = strdup(scratch("h102"));
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

        (void)argc;
        (void)argv;
        if (fd < 0 || write(fd, &header, sizeof(header)) != sizeof(header) ||
            write(fd, program32, length) != (ssize_t)length)
                return untried("%s %s", path, errno_name(errno));
        close(fd);
        put_status(&tally, "int 0x80", in_child(getpid32, NULL));
        put_status(&tally, "a 32-bit program", in_child(run32, path));
        unlink(path);
        return verdict(&tally);
}

/* socketcall(socket) and ipc(shmget), which multiplex what the filter looks at. */
static int socketcall32(void *data)
{
        uint32_t *args = data;

        args[0] = AF_UNIX;
        args[1] = SOCK_STREAM;
        args[2] = 0;
        return entry32(102, 1, (long)args, 0, 0) >= 0 ? EXIT_BROKEN : 0;
}

static int ipc32(void *data)
{
        long id = entry32(117, 23, IPC_PRIVATE, 4096, 0600);

        (void)data;
        if (id < 0)
                return 0;
        shmctl((int)id, IPC_RMID, NULL);
        return EXIT_BROKEN;
}

static int h103_multiplexers(int argc, char **argv)
{
        struct tally tally = { 0 };
        void *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

        (void)argc;
        (void)argv;
        if (low == MAP_FAILED)
                return untried("mmap %s", errno_name(errno));
        put_status(&tally, "socketcall", in_child(socketcall32, low));
        put_status(&tally, "ipc", in_child(ipc32, NULL));
        return verdict(&tally);
}

#else

static int h102_entry32(int argc, char **argv)
{
        (void)argc;
        (void)argv;
        return untried("only on x86-64");
}

static int h103_multiplexers(int argc, char **argv)
{
        return h102_entry32(argc, argv);
}

#endif

static void *no_work(void *data)
{
        return data;
}

static int h105_clone3(int argc, char **argv)
{
        struct tally tally = { 0 };
        struct clone3_args plain = { .exit_signal = SIGCHLD };
        struct clone3_args user = { .flags = 0x10000000, .exit_signal = SIGCHLD };
        pthread_t thread;
        long r = forked(syscall(SYS_clone3, &plain, sizeof(plain)));

        (void)argc;
        (void)argv;
        if (r < 0 && errno == ENOSYS)
                put_held(&tally, "clone3 ENOSYS");
        else
                put_broken(&tally, "clone3 %s", r < 0 ? errno_name(errno) : "works");
        expect_fence(&tally, "clone3 user", forked(syscall(SYS_clone3, &user, sizeof(user))));
        if (pthread_create(&thread, NULL, no_work, NULL) != 0)
                return untried("threads do not work");
        pthread_join(thread, NULL);
        return verdict(&tally);
}

static int h107_unknown(int argc, char **argv)
{
        static const long numbers[] = { 480, 500, 511, 600, 1000, 5000, 0x3fffffff };
        struct tally tally = { 0 };

        (void)argc;
        (void)argv;
        for (size_t i = 0; i < COUNT(numbers); i++) {
                long r = syscall(numbers[i], -1L, -1L, -1L, -1L, -1L, -1L);

                if (r < 0 && errno == ENOSYS)
                        put_held(&tally, "%ld ENOSYS", numbers[i]);
                else
                        put_broken(&tally, "%ld %s", numbers[i],
                                   r < 0 ? errno_name(errno) : "succeeded");
        }
        return verdict(&tally);
}

/* mount with bad pointers: EFAULT tells that no filter stood before the kernel. */
static int filtered(void *data)
{
        (void)data;
        if (syscall(SYS_mount, NULL, NULL, NULL, 0, NULL) == 0)
                return EXIT_BROKEN;
        return errno == EPERM || errno == ENOSYS ? 0 : EXIT_BROKEN;
}

static void *filtered_thread(void *data)
{
        *(int *)data = filtered(NULL);
        return NULL;
}

static int exec_filtered(void *data)
{
        (void)data;
        execl("/proc/self/exe", "payload", "H109-filtered", self_token, (char *)NULL);
        return EXIT_UNTRIED;
}

static int setuid_filtered(void *data)
{
        if (syscall(SYS_setuid, getuid()) < 0 && errno != EPERM)
                return EXIT_UNTRIED;
        prctl(PR_SET_DUMPABLE, 1);
        return filtered(data);
}

static int h109_filtered(int argc, char **argv)
{
        (void)argc;
        (void)argv;
        return filtered(NULL);
}

static int h109_survives(int argc, char **argv)
{
        struct tally tally = { 0 };
        pthread_t thread;
        int result = EXIT_UNTRIED, status;

        (void)argc;
        (void)argv;
        if (pthread_create(&thread, NULL, filtered_thread, &result) != 0)
                return untried("no thread");
        pthread_join(thread, NULL);
        if (result != 0)
                put_broken(&tally, "a thread is not filtered");
        else
                put_held(&tally, "thread");
        status = in_child(filtered, NULL);
        if (status != 0)
                put_broken(&tally, "a child is not filtered");
        else
                put_held(&tally, "child");
        status = in_child(setuid_filtered, NULL);
        if (status != 0)
                put_broken(&tally, "not filtered after setuid");
        else
                put_held(&tally, "setuid");
        status = in_child(exec_filtered, NULL);
        if (status != 0)
                put_broken(&tally, "not filtered after exec");
        else
                put_held(&tally, "exec");
        return verdict(&tally);
}

/* What a denied call comes back with: the argument says what is expected, EPERM or nothing. */
static int h110_denied(int argc, char **argv)
{
        const char *expected = argc > 0 ? argv[0] : "EPERM";
        /* PEEKDATA of no process: ESRCH where the call is let through */
        long r = syscall(SYS_ptrace, PTRACE_PEEKDATA, 0x3fffffff, 0, 0);
        const char *got = r < 0 ? errno_name(errno) : "0";

        if (strcmp(got, expected) != 0)
                return broken("ptrace gives %s, not %s", got, expected);
        return held("ptrace gives %s", got);
}

static int h110_deny_more(int argc, char **argv)
{
        char buffer[512];

        (void)argc;
        (void)argv;
        if (syscall(SYS_sysinfo, buffer) == 0)
                return broken("sysinfo is answered");
        return held("sysinfo %s", errno_name(errno));
}

const struct attack attacks_privilege[] = {
        { "G90-namespaces", g90_namespaces },
        { "G91-setns", g91_setns },
        { "G92-root-inside", g92_root_inside },
        { "G93-capabilities", g93_capabilities },
        { "G95-settings", g95_settings },
        { "G98-ipc", g98_ipc },
        { "G99-hostname", g99_hostname },
        { "G100-clock", g100_clock },
        { "H101-x32", h101_x32 },
        { "H102-entry32", h102_entry32 },
        { "H103-multiplexers", h103_multiplexers },
        { "H105-clone3", h105_clone3 },
        { "H107-unknown", h107_unknown },
        { "H109-filtered", h109_filtered },
        { "H109-survives", h109_survives },
        { "H110-denied", h110_denied },
        { "H110-deny-more", h110_deny_more },
        { NULL, NULL },
};
