/* SPDX-License-Identifier: MIT */
/*
 * Side-by-side measurements in one run.
 *
 * A race has contestants, each a command. In every round each contestant runs once, one after the
 * other, so that noise on the machine hits all alike; the first to start moves on by one in each
 * round. What counts are ratios between medians, not milliseconds.
 *
 *   start     /bin/true: bare, in callbox, in bubblewrap with the same isolation, in firejail
 *   compile   gcc on a small file, bare and boxed          (work: what a box costs while it runs)
 *   find      a walk over /usr, bare and boxed
 *   syscalls  a loop of getppid, bare and boxed
 *   output    64 MiB through a pipe, bare, boxed and streamed, boxed and captured
 *
 * Exit status: 0, 1 when the budget is missed, 2 when something could not be measured.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <seccomp.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MAX_CONTESTANTS 5
#define MAX_ARGS 80
#define FILTER_FD 20 /* where bubblewrap finds its seccomp filter */
#define OUTPUT_BYTES (64L * 1024 * 1024)

struct contestant {
        const char *name;
        const char *argv[MAX_ARGS];
        size_t n_args;
        char absent[256]; /* why it cannot run here; empty when it can */
        double *ms;       /* one per round, sorted in the end */
        double p50, p90;
};

struct race {
        const char *name, *what;
        size_t rounds;
        bool pipe; /* read stdout through a pipe instead of throwing it away */
        struct contestant contestants[MAX_CONTESTANTS];
        size_t n;
        double *ms; /* room for all times of all contestants */
};

static const char *build = "build", *results = "bench/results", *only;
static size_t rounds = 300, work_rounds = 15;
static char callbox[PATH_MAX], loop[PATH_MAX], scratch[] = "/tmp/callbox-bench-XXXXXX";
static int filter_fd = -1;

static void die(const char *what)
{
        fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
        exit(2);
}

static double now_ms(void)
{
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* ---- Contestants ---- */

static struct contestant *enter(struct race *race, const char *name)
{
        struct contestant *c = &race->contestants[race->n++];

        c->name = name;
        return c;
}

static void arg(struct contestant *c, const char *word)
{
        if (c->n_args + 1 >= MAX_ARGS) {
                errno = E2BIG;
                die(c->name);
        }
        c->argv[c->n_args++] = word;
}

static void args(struct contestant *c, const char *const *words)
{
        for (; *words; words++)
                arg(c, *words);
}

/* Words to put in front of a command so that it runs in a box. */
static void boxed(struct contestant *c)
{
        args(c, (const char *const[]){ callbox, "run", "-q", NULL });
}

/*
 * What callbox does by default, in bubblewrap's words: all namespaces and none below them, an
 * unprivileged id, the same parts of the system, the current directory, private /proc, /dev, /tmp
 * and /dev/shm, no capabilities, a clean environment, a seccomp allow-list. It has no limits, no
 * Landlock, no watching and no report.
 */
static void bubblewrap(struct contestant *c)
{
        static const char *const links[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };
        static const char *const etc[] = { "/etc/alternatives",    "/etc/fonts",
                                           "/etc/java-11-openjdk", "/etc/java-17-openjdk",
                                           "/etc/java-21-openjdk", "/etc/ld.so.cache" };
        static char paths[ARRAY_SIZE(links)][2][32], here[4096];
        struct stat st;

        args(c, (const char *const[]){ "bwrap", "--unshare-all", "--unshare-user",
                                       "--disable-userns", "--uid", "1000", "--gid", "1000",
                                       "--hostname", "box", "--die-with-parent", "--new-session",
                                       "--ro-bind", "/usr", "/usr", NULL });
        for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
                snprintf(paths[i][0], sizeof(paths[i][0]), "usr/%s", links[i]);
                snprintf(paths[i][1], sizeof(paths[i][1]), "/%s", links[i]);
                if (lstat(paths[i][1], &st) == 0 && S_ISLNK(st.st_mode))
                        args(c,
                             (const char *const[]){ "--symlink", paths[i][0], paths[i][1], NULL });
                else if (stat(paths[i][1], &st) == 0)
                        args(c,
                             (const char *const[]){ "--ro-bind", paths[i][1], paths[i][1], NULL });
        }
        for (size_t i = 0; i < ARRAY_SIZE(etc); i++)
                if (stat(etc[i], &st) == 0)
                        args(c, (const char *const[]){ "--ro-bind", etc[i], etc[i], NULL });
        args(c, (const char *const[]){ "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
                                       "--tmpfs", "/dev/shm", "--cap-drop", "ALL", "--clearenv",
                                       "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME",
                                       "/tmp", NULL });
        if (getcwd(here, sizeof(here)))
                args(c, (const char *const[]){ "--ro-bind", here, here, "--chdir", here, NULL });
        if (filter_fd >= 0)
                args(c, (const char *const[]){ "--seccomp", "20", NULL });
        arg(c, "--");
}

/* The nearest that firejail has: it keeps the host's tree and needs its set-uid root program. */
static void firejail(struct contestant *c)
{
        args(c, (const char *const[]){ "firejail", "--quiet", "--noprofile", "--net=none",
                                       "--private", "--private-dev", "--private-tmp",
                                       "--ipc-namespace", "--caps.drop=all", "--nonewprivs",
                                       "--noroot", "--seccomp", "--hostname=box", "--", NULL });
}

/*
 * An allow-list of the size of callbox's own, as a binary tree, for bubblewrap to load: every call
 * that libseccomp knows but for some forty.
 */
static int make_filter(void)
{
        static const char *const refused[] = {
                "acct",           "add_key",         "bpf",
                "clock_settime",  "create_module",   "delete_module",
                "finit_module",   "fsconfig",        "fsmount",
                "fsopen",         "fspick",          "init_module",
                "io_uring_enter", "io_uring_setup",  "ioperm",
                "iopl",           "kexec_load",      "keyctl",
                "mount",          "mount_setattr",   "move_mount",
                "open_tree",      "perf_event_open", "pivot_root",
                "ptrace",         "quotactl",        "reboot",
                "request_key",    "setns",           "settimeofday",
                "swapoff",        "swapon",          "syslog",
                "umount2",        "unshare",         "userfaultfd",
                "vhangup",        "clone3",          "process_vm_writev",
                "kcmp",
        };
        scmp_filter_ctx context = seccomp_init(SCMP_ACT_ERRNO(EPERM));
        int fd = memfd_create("filter", 0);

        if (!context || fd < 0 || seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2) < 0)
                die("make a filter");
        for (int number = 0; number < 456; number++) {
                char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
                bool allowed = name != NULL;

                for (size_t i = 0; allowed && i < ARRAY_SIZE(refused); i++)
                        allowed = strcmp(name, refused[i]) != 0;
                if (allowed)
                        seccomp_rule_add(context, SCMP_ACT_ALLOW, number, 0);
                free(name);
        }
        if (seccomp_export_bpf(context, fd) < 0)
                die("make a filter");
        seccomp_release(context);
        return fd;
}

/* ---- Running ---- */

/* Run once; stdout goes to `out`. Returns the wait status. */
static pid_t start(const struct contestant *c, int out, int err)
{
        posix_spawn_file_actions_t actions;
        pid_t pid;
        int r;

        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, out, 1);
        posix_spawn_file_actions_adddup2(&actions, err, 2);
        if (filter_fd >= 0 && strcmp(c->argv[0], "bwrap") == 0) {
                lseek(filter_fd, 0, SEEK_SET);
                posix_spawn_file_actions_adddup2(&actions, filter_fd, FILTER_FD);
        }
        r = posix_spawnp(&pid, c->argv[0], &actions, NULL, (char *const *)c->argv, environ);
        posix_spawn_file_actions_destroy(&actions);
        if (r != 0) {
                errno = r;
                return -1;
        }
        return pid;
}

static int await(pid_t pid)
{
        int status;

        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        die("wait");
        return status;
}

static double run_once(const struct contestant *c, bool through_pipe)
{
        static char buffer[1 << 16];
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC), ends[2] = { -1, -1 };
        double before, after;
        pid_t pid;
        int status;

        if (null < 0 || (through_pipe && pipe2(ends, O_CLOEXEC) < 0))
                die("open");
        before = now_ms();
        pid = start(c, through_pipe ? ends[1] : null, null);
        if (pid < 0)
                die(c->name);
        if (through_pipe) {
                close(ends[1]);
                while (read(ends[0], buffer, sizeof(buffer)) > 0)
                        ;
        }
        status = await(pid);
        after = now_ms();
        close(null);
        if (through_pipe)
                close(ends[0]);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
                fprintf(stderr, "bench: %s failed in the middle of a race (status %#x)\n", c->name,
                        (unsigned)status);
                exit(2);
        }
        return after - before;
}

/* Whether it runs here at all; if not, its own last words are kept. */
static void try_out(struct contestant *c)
{
        int err = memfd_create("errors", MFD_CLOEXEC),
            null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        char words[4096];
        ssize_t length;
        pid_t pid;
        int status = 0;

        if (err < 0 || null < 0)
                die("open");
        pid = start(c, null, err);
        if (pid < 0)
                snprintf(c->absent, sizeof(c->absent), "%s", strerror(errno));
        else
                status = await(pid);
        if (pid >= 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
                length = pread(err, words, sizeof(words) - 1, 0);
                words[length > 0 ? length : 0] = '\0';
                for (char *end = words + strlen(words); end > words && end[-1] == '\n'; end--)
                        end[-1] = '\0';
                char *line = strrchr(words, '\n');

                snprintf(c->absent, sizeof(c->absent), "exit status %d: %.200s",
                         WIFEXITED(status) ? WEXITSTATUS(status) : -1, line ? line + 1 : words);
        }
        close(err);
        close(null);
}

static int compare_doubles(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

static void run_race(struct race *race)
{
        const size_t warm_up = race->rounds >= 100 ? 10 : 1;

        for (size_t i = 0; i < race->n; i++) {
                try_out(&race->contestants[i]);
                race->contestants[i].ms = race->ms + i * race->rounds;
        }
        for (size_t round = 0; round < race->rounds + warm_up; round++)
                for (size_t i = 0; i < race->n; i++) {
                        struct contestant *c = &race->contestants[(round + i) % race->n];
                        double ms = c->absent[0] ? 0 : run_once(c, race->pipe);

                        if (round >= warm_up)
                                c->ms[round - warm_up] = ms;
                }
        for (size_t i = 0; i < race->n; i++) {
                struct contestant *c = &race->contestants[i];

                qsort(c->ms, race->rounds, sizeof(*c->ms), compare_doubles);
                c->p50 = c->ms[race->rounds / 2];
                c->p90 = c->ms[race->rounds * 9 / 10];
        }
}

/* ---- Telling ---- */

static void print_race(const struct race *race)
{
        const struct contestant *bare = &race->contestants[0];

        printf("\n%s: %s (%zu rounds, side by side)\n", race->name, race->what, race->rounds);
        printf("  %-26s %10s %10s %12s\n", "", "p50 ms", "p90 ms", "x bare");
        for (size_t i = 0; i < race->n; i++) {
                const struct contestant *c = &race->contestants[i];

                if (c->absent[0])
                        printf("  %-26s not measured: %s\n", c->name, c->absent);
                else if (bare->p50 > 0)
                        printf("  %-26s %10.2f %10.2f %12.2f\n", c->name, c->p50, c->p90,
                               c->p50 / bare->p50);
        }
}

static void write_race(const struct race *race)
{
        json_t *json = json_object(), *list = json_array();
        struct utsname uts;
        char path[PATH_MAX], at[32];
        time_t seconds = time(NULL);
        struct tm tm;

        uname(&uts);
        strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &tm));
        for (size_t i = 0; i < race->n; i++) {
                const struct contestant *c = &race->contestants[i];

                if (c->absent[0])
                        json_array_append_new(list, json_pack("{s:s, s:s}", "name", c->name,
                                                              "absent", c->absent));
                else
                        json_array_append_new(list, json_pack("{s:s, s:f, s:f, s:f}", "name",
                                                              c->name, "p50_ms", c->p50, "p90_ms",
                                                              c->p90, "min_ms", c->ms[0]));
        }
        json_object_set_new(json, "race", json_string(race->name));
        json_object_set_new(json, "what", json_string(race->what));
        json_object_set_new(json, "at", json_string(at));
        json_object_set_new(json, "kernel", json_string(uts.release));
        json_object_set_new(json, "cpus", json_integer(get_nprocs()));
        json_object_set_new(json, "root", json_boolean(geteuid() == 0));
        json_object_set_new(json, "rounds", json_integer((json_int_t)race->rounds));
        json_object_set_new(json, "contestants", list);
        snprintf(path, sizeof(path), "%s/%s.json", results, race->name);
        if (json_dump_file(json, path, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) < 0)
                die(path);
        json_decref(json);
}

static bool wanted(const char *name)
{
        return !only || strcmp(only, name) == 0;
}

static void finish(struct race *race)
{
        race->ms = calloc(race->n * race->rounds, sizeof(*race->ms));
        if (!race->ms)
                die("allocate");
        run_race(race);
        print_race(race);
        write_race(race);
        free(race->ms);
}

/* ---- The races ---- */

/* Returns false when the budget is missed. */
static bool race_start(void)
{
        struct race race = { .name = "start", .what = "/bin/true", .rounds = rounds };
        struct contestant *bare = enter(&race, "posix_spawn"), *ours = enter(&race, "callbox run"),
                          *bwrap = enter(&race, "bubblewrap");
        double ratio;

        arg(bare, "/bin/true");
        boxed(ours);
        args(ours, (const char *const[]){ "--", "/bin/true", NULL });
        bubblewrap(bwrap);
        arg(bwrap, "/bin/true");
        finish(&race);

        if (ours->absent[0] || bwrap->absent[0]) {
                printf("  the budget cannot be judged: %s does not run here\n",
                       ours->absent[0] ? "callbox" : "bubblewrap");
                exit(2);
        }
        ratio = bwrap->p50 / ours->p50;
        printf("  callbox run is %.2f times as fast as bubblewrap; budget: at least 2: %s\n", ratio,
               ratio >= 2 ? "held" : "MISSED");
        return ratio >= 2;
}

/* A race of its own: the kernel clears up after firejail for longer than the others run, and that
 * would be on their bill. */
static void race_firejail(void)
{
        struct race race = { .name = "firejail", .what = "/bin/true", .rounds = rounds / 5 + 1 };
        struct contestant *bare = enter(&race, "posix_spawn"), *ours = enter(&race, "callbox run"),
                          *fire = enter(&race, "firejail");

        arg(bare, "/bin/true");
        boxed(ours);
        args(ours, (const char *const[]){ "--", "/bin/true", NULL });
        firejail(fire);
        arg(fire, "/bin/true");
        finish(&race);
}

/* `flags` are options of callbox that the boxed one needs. The last contestant is set against the
 * first; the aim is printed, not enforced: on a busy machine a few percent are noise. */
static void race_work(const char *name, const char *what, const char *const *flags,
                      const char *const *command)
{
        struct race race = { .name = name, .what = what, .rounds = work_rounds };
        struct contestant *bare = enter(&race, "outside"), *ours = enter(&race, "in a box");

        args(bare, command);
        boxed(ours);
        args(ours, flags);
        arg(ours, "--");
        args(ours, command);
        finish(&race);
        if (!ours->absent[0])
                printf("  aim: at most 1.03, start-up included\n");
}

static void race_output(void)
{
        struct race race = { .name = "output",
                             .what = "64 MiB of output read through a pipe",
                             .rounds = work_rounds,
                             .pipe = true };
        struct contestant *bare = enter(&race, "outside"),
                          *streamed = enter(&race, "in a box, streamed"),
                          *captured = enter(&race, "in a box, captured");
        const char *const command[] = { "head", "-c", "67108864", "/dev/zero", NULL };

        args(bare, command);
        boxed(streamed);
        arg(streamed, "--");
        args(streamed, command);
        boxed(captured);
        args(captured, (const char *const[]){ "--json", "--", NULL });
        args(captured, command);
        finish(&race);
        for (size_t i = 1; i < race.n; i++)
                if (!race.contestants[i].absent[0])
                        printf("  %s: %.0f MiB/s, %.2f of outside%s\n", race.contestants[i].name,
                               (double)OUTPUT_BYTES / (1024 * 1024) / race.contestants[i].p50 * 1e3,
                               bare->p50 / race.contestants[i].p50,
                               i == 2 ? " (aim: at least 0.7)" : "");
}

/* Enough work for the compiler to be measured. */
static void write_source(const char *path)
{
        FILE *file = fopen(path, "we");

        if (!file)
                die(path);
        fprintf(file, "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n");
        for (int i = 0; i < 400; i++)
                fprintf(file,
                        "int f%d(const char *s, int n) { int sum = %d; for (int i = 0; i < n; i++) "
                        "sum = sum * 31 + s[i] %% (i + %d); return sum + (int)strlen(s); }\n",
                        i, i, i + 1);
        if (fclose(file) != 0)
                die(path);
}

static void race_compile(void)
{
        static const char compile[] =
                "cd \"$(mktemp -d)\" && gcc -O1 -c -o work.o \"$1\"; status=$?; "
                "rm -f work.o; rmdir \"$PWD\"; exit $status";
        char source[PATH_MAX];

        snprintf(source, sizeof(source), "%s/work.c", scratch);
        write_source(source);
        race_work("compile", "gcc -O1 -c of 400 small functions",
                  (const char *const[]){ "--read", scratch, NULL },
                  (const char *const[]){ "sh", "-c", compile, "sh", source, NULL });
        unlink(source);
}

static void usage(FILE *to)
{
        fprintf(to, "usage: bench [--build DIR] [--results DIR] [--rounds N] [--work-rounds N]\n"
                    "             [--only start|firejail|compile|find|syscalls|output]\n");
}

static void parse_options(int argc, char **argv)
{
        static const struct option options[] = {
                { "build", required_argument, NULL, 'b' },
                { "results", required_argument, NULL, 'r' },
                { "rounds", required_argument, NULL, 'n' },
                { "work-rounds", required_argument, NULL, 'w' },
                { "only", required_argument, NULL, 'o' },
                { "help", no_argument, NULL, 'h' },
                { NULL, 0, NULL, 0 },
        };
        int option;

        while ((option = getopt_long(argc, argv, "h", options, NULL)) >= 0) {
                switch (option) {
                case 'b':
                        build = optarg;
                        break;
                case 'r':
                        results = optarg;
                        break;
                case 'n':
                        rounds = strtoul(optarg, NULL, 10);
                        break;
                case 'w':
                        work_rounds = strtoul(optarg, NULL, 10);
                        break;
                case 'o':
                        only = optarg;
                        break;
                case 'h':
                        usage(stdout);
                        exit(0);
                default:
                        usage(stderr);
                        exit(2);
                }
        }
        if (rounds < 1 || work_rounds < 1 || optind < argc) {
                usage(stderr);
                exit(2);
        }
}

int main(int argc, char **argv)
{
        bool held = true;
        char path[PATH_MAX];

        parse_options(argc, argv);
        setvbuf(stdout, NULL, _IOLBF, 0);
        if (snprintf(path, sizeof(path), "%s/callbox", build) >= (int)sizeof(path) ||
            !realpath(path, callbox))
                die(path);
        if (snprintf(path, sizeof(path), "%s/bench/syscall-loop", build) >= (int)sizeof(path) ||
            !realpath(path, loop))
                die(path);
        if (mkdir(results, 0777) < 0 && errno != EEXIST)
                die(results);
        if (!mkdtemp(scratch) || chmod(scratch, 0755) < 0)
                die(scratch);
        filter_fd = make_filter();

        if (wanted("start"))
                held = race_start();
        if (wanted("firejail"))
                race_firejail();
        if (wanted("compile"))
                race_compile();
        if (wanted("find"))
                race_work("find", "find /usr | wc -l", (const char *const[]){ NULL },
                          (const char *const[]){ "sh", "-c", "find /usr 2>/dev/null | wc -l",
                                                 NULL });
        if (wanted("syscalls"))
                race_work("syscalls", "3 million getppid",
                          (const char *const[]){ "--read", loop, NULL },
                          (const char *const[]){ loop, "3000000", NULL });
        if (wanted("output"))
                race_output();
        rmdir(scratch);
        return held ? 0 : 1;
}
