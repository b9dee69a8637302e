/* SPDX-License-Identifier: MIT */
/* The table of sub-commands, and what they share. See payload.h for the rules. */
#include "payload.h"

#include <net/if.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>

const char *self_path;
const char *self_token;

static int say(const char *word, int status, const char *format, va_list args)
{
        char line[9000];
        int n = snprintf(line, sizeof(line) - 1, "%s ", word);
        ssize_t written;

        n += vsnprintf(line + n, sizeof(line) - 1 - (size_t)n, format, args);
        if (n > (int)sizeof(line) - 2)
                n = sizeof(line) - 2;
        line[n++] = '\n';
        written = write(STDOUT_FILENO, line, (size_t)n);
        (void)written; /* the exit status says the same */
        return status;
}

#define SAY(word, status)                                                                          \
        do {                                                                                       \
                va_list args;                                                                      \
                int r;                                                                             \
                va_start(args, format);                                                            \
                r = say(word, status, format, args);                                               \
                va_end(args);                                                                      \
                return r;                                                                          \
        } while (0)

int held(const char *format, ...)
{
        SAY("HELD", EXIT_HELD);
}

int broken(const char *format, ...)
{
        SAY("BROKEN", EXIT_BROKEN);
}

int untried(const char *format, ...)
{
        SAY("UNTRIED", EXIT_UNTRIED);
}

static void append(char *text, size_t size, const char *format, va_list args)
{
        size_t used = strlen(text);

        if (used > 0 && used + 2 < size) {
                memcpy(text + used, ", ", 3);
                used += 2;
        }
        vsnprintf(text + used, size - used, format, args);
}

void put_held(struct tally *tally, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        append(tally->held, sizeof(tally->held), format, args);
        va_end(args);
        tally->held_count++;
}

void put_broken(struct tally *tally, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        append(tally->broken, sizeof(tally->broken), format, args);
        va_end(args);
        tally->broken_count++;
}

void expect_failure(struct tally *tally, const char *what, long result)
{
        int number = errno;

        if (result < 0)
                put_held(tally, "%s %s", what, errno_name(number));
        else
                put_broken(tally, "%s succeeded", what);
}

void expect_fence(struct tally *tally, const char *what, long result)
{
        int number = errno;

        if (result >= 0)
                put_broken(tally, "%s succeeded", what);
        else if (number == EPERM || number == ENOSYS || number == EAFNOSUPPORT || number == EACCES)
                put_held(tally, "%s %s", what, errno_name(number));
        else
                put_broken(tally, "%s reached the kernel (%s)", what, errno_name(number));
}

int verdict(const struct tally *tally)
{
        if (tally->broken_count > 0)
                return broken("%s", tally->broken);
        if (tally->held_count == 0)
                return untried("no probe was made");
        return held("%s", tally->held);
}

double now(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void nap(double seconds)
{
        double until = now() + seconds;

        for (double left = seconds; left > 0; left = until - now()) {
                struct timespec t = { .tv_sec = (time_t)left,
                                      .tv_nsec = (long)((left - (double)(time_t)left) * 1e9) };
                nanosleep(&t, NULL);
        }
}

void ignore_signals(void)
{
        for (int number = 1; number < 65; number++)
                if (number != SIGCHLD && number != SIGALRM)
                        signal(number, SIG_IGN);
}

_Noreturn void linger(int seconds)
{
        ignore_signals();
        nap(seconds);
        _exit(0);
}

const char *errno_name(int number)
{
        const char *name = strerrorname_np(number);

        return name ? name : "E?";
}

const char *slurp(const char *path)
{
        static char text[65536];
        size_t used = 0;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

        if (fd < 0)
                return NULL;
        while (used < sizeof(text) - 1) {
                ssize_t n = read(fd, text + used, sizeof(text) - 1 - used);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && used == 0) {
                        int number = errno;

                        close(fd);
                        errno = number;
                        return NULL;
                }
                if (n <= 0)
                        break;
                used += (size_t)n;
        }
        close(fd);
        text[used] = '\0';
        return text;
}

bool is_holder(int pid)
{
        return getpid() == 3 && pid == 4;
}

const char *status_field(const char *name)
{
        static char value[256];
        size_t length = strlen(name);
        const char *text = slurp("/proc/self/status");

        if (!text) /* a second try: the suite injects faults into single calls */
                text = slurp("/proc/self/status");
        while (text) {
                if (strncmp(text, name, length) == 0 && text[length] == ':') {
                        text += length + 1;
                        text += strspn(text, " \t");
                        snprintf(value, sizeof(value), "%.*s", (int)strcspn(text, "\n"), text);
                        return value;
                }
                text = strchr(text, '\n');
                if (text)
                        text++;
        }
        return NULL;
}

bool opens(const char *path, int flags)
{
        int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);

        if (fd >= 0)
                close(fd);
        return fd >= 0;
}

static bool differs(const char *field, const char *expected)
{
        const char *value = status_field(field);

        return !value || strcmp(value, expected) != 0;
}

/* Is there any interface but lo, or is lo up? ioctl on a socket of the box's own network. */
static bool network_present(void)
{
        struct ifreq request = { 0 };
        bool found = false;
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (fd < 0)
                return false;
        strcpy(request.ifr_name, "lo");
        if (ioctl(fd, SIOCGIFFLAGS, &request) == 0 && request.ifr_flags & IFF_UP)
                found = true;
        for (int index = 1; !found && index < 64; index++) {
                request.ifr_ifindex = index;
                if (ioctl(fd, SIOCGIFNAME, &request) < 0)
                        continue;
                if (ioctl(fd, SIOCGIFFLAGS, &request) == 0 && request.ifr_flags & IFF_UP)
                        found = true;
        }
        close(fd);
        return found;
}

bool caged(void)
{
        const char *place = getenv("TMPDIR");

        return place && strncmp(place, "/tmp/callbox-", 13) == 0;
}

const char *scratch(const char *name)
{
        static char path[512];

        snprintf(path, sizeof(path), "%s/%s", caged() ? getenv("TMPDIR") : "/tmp", name);
        return path;
}

/* The same without namespaces: other fences stand for some of them, and names can be seen. */
static const char *missing_fence_of_cage(bool child)
{
        static const char *const none = "0000000000000000";

        if (differs("CapInh", none) || differs("CapPrm", none) || differs("CapEff", none) ||
            differs("CapAmb", none))
                return "privileges: capabilities are left";
        if (!child && kill(getppid(), 0) == 0)
                return "tree-kill: init can be signalled";
        if (opens("/proc/self/oom_score_adj", O_WRONLY))
                return "files: /proc is writable";
        if (opens("/usr/bin/env", O_WRONLY) || chmod("/usr/bin/env", 0755) == 0)
                return "files: the system is writable";
        if (opens("/etc/shadow", O_RDONLY) || opens("/root", O_RDONLY) ||
            opens("/var/lib", O_RDONLY) || opens("/", O_RDONLY))
                return "files: the host's tree can be read";
        return NULL;
}

/* What every box has. */
static const char *missing_common(void)
{
        if (network_present())
                return "network: an interface is up";
        if (getsid(0) <= 0 || (getsid(0) != getpid() && getsid(0) != getpgid(0)))
                return "session: not a new one";
        if (getenv("ATTACK_SECRET"))
                return "environment: passed on";
        return NULL;
}

const char *missing_fence(bool child)
{
        static const char *const none = "0000000000000000";
        struct statvfs info;
        char host[128] = "";

        /* First of all: what is opened below might not be closed where a test lets that fail. */
        for (int fd = 3; fd < 1024; fd++)
                if (fcntl(fd, F_GETFD) >= 0)
                        return "descriptors: more than three are open";
        if (differs("Seccomp", "2"))
                return "syscalls: no filter";
        if (differs("NoNewPrivs", "1"))
                return "privileges: no_new_privs is not set";
        if (caged())
                return missing_fence_of_cage(child) ? missing_fence_of_cage(child)
                                                    : missing_common();
        if (differs("CapInh", none) || differs("CapPrm", none) || differs("CapEff", none) ||
            differs("CapBnd", none) || differs("CapAmb", none))
                return "privileges: capabilities are left";
        if (getuid() == 0 || geteuid() == 0 || getgid() == 0)
                return "privileges: id 0";
        if (!child && getppid() != 1)
                return "tree-kill: no pid namespace";
        if (opens("/proc/kallsyms", O_RDONLY) && slurp("/proc/kallsyms") &&
            *slurp("/proc/kallsyms"))
                return "files: /proc is not masked";
        if (opens("/proc/self/oom_score_adj", O_WRONLY))
                return "files: /proc is writable";
        if (statvfs("/usr", &info) < 0 || !(info.f_flag & ST_RDONLY))
                return "files: the system is writable";
        if (opens("/etc/shadow", O_PATH) || opens("/root", O_PATH) || opens("/var/lib", O_PATH))
                return "files: the host's tree is visible";
        gethostname(host, sizeof(host) - 1);
        if (strcmp(host, "box") != 0)
                return "files: no own uts namespace";
        return missing_common();
}

long argument(int argc, char **argv, int index, long otherwise)
{
        return index < argc ? strtol(argv[index], NULL, 10) : otherwise;
}

int in_child(int (*function)(void *), void *data)
{
        int status = -1;
        pid_t pid = fork();

        if (pid < 0)
                return -1;
        if (pid == 0)
                _exit(function(data));
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        return status;
}

/* ---- Sub-commands that are tools of the suite rather than attacks ---- */

static int tool_exit(int argc, char **argv)
{
        return (int)argument(argc, argv, 0, 0);
}

static int tool_sleep(int argc, char **argv)
{
        nap((double)argument(argc, argv, 0, 0) / 1000);
        return held("slept");
}

static int tool_echo(int argc, char **argv)
{
        for (int i = 0; i < argc; i++)
                printf("%s\n", argv[i]);
        return fflush(stdout) == 0 ? 0 : EXIT_UNTRIED;
}

static int tool_crash(int argc, char **argv)
{
        (void)argc;
        (void)argv;
        return raise(SIGSEGV);
}

static const struct attack tools[] = {
        { "exit", tool_exit },   { "sleep", tool_sleep }, { "echo", tool_echo },
        { "crash", tool_crash }, { NULL, NULL },
};

int main(int argc, char **argv)
{
        const struct attack *const groups[] = {
                attacks_life,    attacks_resources, attacks_handles, attacks_files,
                tools,           attacks_privilege, attacks_surface, attacks_channels,
                attacks_extra,   attacks_traces,    attacks_cage,    attacks_filter,
                attacks_keep,    attacks_memory2,   attacks_memory3, attacks_memory4,
                attacks_memory5, attacks_books,
        };

        if (argc < 3) {
                for (size_t g = 0; g < COUNT(groups); g++)
                        for (const struct attack *a = groups[g]; a->name; a++)
                                printf("%s\n", a->name);
                return EXIT_UNTRIED;
        }
        self_path = argv[0];
        self_token = argv[2];
        for (size_t g = 0; g < COUNT(groups); g++)
                for (const struct attack *a = groups[g]; a->name; a++)
                        if (strcmp(a->name, argv[1]) == 0)
                                return a->run(argc - 3, argv + 3);
        return untried("there is no case %s", argv[1]);
}
