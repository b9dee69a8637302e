/* SPDX-License-Identifier: MIT */
/*
 * callbox as a command, beside others of its kind, and work inside a box:
 *
 *   start     /bin/true: bare, in callbox, in bubblewrap with the same isolation
 *   firejail  the same with firejail
 *   landlock  the same in a box without namespaces and in one with them
 *   compile   gcc on a small file, bare and boxed          (work: what a box costs while it runs)
 *   find      a walk over /usr, bare and boxed
 *   syscalls  a loop of getppid, bare and boxed
 *   output    64 MiB through a pipe, bare, boxed and streamed, boxed and captured
 */
#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"

/* ---- Contestants ---- */

/* Words to put in front of a command so that it runs in a box. */
static void add_callbox(struct contestant *c)
{
        command_add(c, (const char *const[]){ options.callbox, "run", "-q", NULL });
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

/*
 * What callbox does by default, in bubblewrap's words: all namespaces and none below them, an
 * unprivileged id, the same parts of the system, the current directory, private /proc, /dev, /tmp
 * and /dev/shm, no capabilities, a clean environment, a seccomp allow-list. It has no limits, no
 * Landlock, no watching and no report.
 */
void add_bubblewrap(struct contestant *c)
{
        static const char *const links[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };
        static const char *const etc[] = { "/etc/alternatives",    "/etc/fonts",
                                           "/etc/java-11-openjdk", "/etc/java-17-openjdk",
                                           "/etc/java-21-openjdk", "/etc/ld.so.cache" };
        static char paths[ARRAY_SIZE(links)][2][32], here[4096];
        static bool ready;
        struct stat st;

        if (!ready)
                command_offer_filter(make_filter());
        ready = true;
        command_add(c, (const char *const[]){ "bwrap", "--unshare-all", "--unshare-user",
                                              "--disable-userns", "--uid", "1000", "--gid", "1000",
                                              "--hostname", "box", "--die-with-parent",
                                              "--new-session", "--ro-bind", "/usr", "/usr", NULL });
        for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
                snprintf(paths[i][0], sizeof(paths[i][0]), "usr/%s", links[i]);
                snprintf(paths[i][1], sizeof(paths[i][1]), "/%s", links[i]);
                if (lstat(paths[i][1], &st) == 0 && S_ISLNK(st.st_mode))
                        command_add(c, (const char *const[]){ "--symlink", paths[i][0], paths[i][1],
                                                              NULL });
                else if (stat(paths[i][1], &st) == 0)
                        command_add(c, (const char *const[]){ "--ro-bind", paths[i][1], paths[i][1],
                                                              NULL });
        }
        for (size_t i = 0; i < ARRAY_SIZE(etc); i++)
                if (stat(etc[i], &st) == 0)
                        command_add(c, (const char *const[]){ "--ro-bind", etc[i], etc[i], NULL });
        command_add(c, (const char *const[]){ "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
                                              "--tmpfs", "/dev/shm", "--cap-drop", "ALL",
                                              "--clearenv", "--setenv", "PATH", "/usr/bin:/bin",
                                              "--setenv", "HOME", "/tmp", NULL });
        if (getcwd(here, sizeof(here)))
                command_add(c, (const char *const[]){ "--ro-bind", here, here, "--chdir", here,
                                                      NULL });
        command_add(c, (const char *const[]){ "--seccomp", "20", NULL });
        command_add(c, (const char *const[]){ "--", NULL });
}

/* The nearest that firejail has: it keeps the host's tree and needs its set-uid root program. */
static void add_firejail(struct contestant *c)
{
        command_add(c,
                    (const char *const[]){ "firejail", "--quiet", "--noprofile", "--net=none",
                                           "--private", "--private-dev", "--private-tmp",
                                           "--ipc-namespace", "--caps.drop=all", "--nonewprivs",
                                           "--noroot", "--seccomp", "--hostname=box", "--", NULL });
}

/* ---- The races ---- */

static const char *const just_true[] = { "/bin/true", NULL };
static const char *const boxed_true[] = { "--", "/bin/true", NULL };

void race_start(void)
{
        struct race race = {
                .name = "start", .what = "/bin/true", .rounds = options.rounds, .pause_us = PAUSE_US
        };
        struct contestant *bare = race_enter(&race, "posix_spawn", command_run, NULL),
                          *ours = race_enter(&race, "callbox run", command_run, NULL),
                          *bwrap = race_enter(&race, "bubblewrap", command_run, NULL);

        command_add(bare, just_true);
        add_callbox(ours);
        command_add(ours, boxed_true);
        add_bubblewrap(bwrap);
        command_add(bwrap, just_true);
        race_at_least(&race, "callbox run, times as fast as bubblewrap", ours, 2, bwrap);
        race_run(&race);
}

/* The two kinds of boxes, each as it is made for one call. */
void race_landlock(void)
{
        struct race race = { .name = "landlock", .what = "/bin/true", .rounds = options.rounds };
        struct contestant *spaces = race_enter(&race, "namespaces", command_run, NULL),
                          *landlock = race_enter(&race, "landlock", command_run, NULL);

        add_callbox(spaces);
        command_add(spaces, (const char *const[]){ "--box", "namespaces", NULL });
        command_add(spaces, boxed_true);
        add_callbox(landlock);
        command_add(landlock, (const char *const[]){ "--box", "landlock", NULL });
        command_add(landlock, boxed_true);
        race_at_most(&race, "a box without namespaces / one with them", landlock, 1.2, spaces);
        race_run(&race);
}

/* A race of its own: the kernel clears up after firejail for longer than the others run, and that
 * would be on their bill. */
void race_firejail(void)
{
        struct race race = { .name = "firejail",
                             .what = "/bin/true",
                             .rounds = options.rounds / 5 + 1 };
        struct contestant *bare = race_enter(&race, "posix_spawn", command_run, NULL),
                          *ours = race_enter(&race, "callbox run", command_run, NULL),
                          *fire = race_enter(&race, "firejail", command_run, NULL);

        command_add(bare, just_true);
        add_callbox(ours);
        command_add(ours, boxed_true);
        add_firejail(fire);
        command_add(fire, just_true);
        race_run(&race);
}

/* `flags` are options of callbox that the boxed one needs. Start-up is on the bill. */
static void race_work(const char *name, const char *what, const char *budget,
                      const char *const *flags, const char *const *command)
{
        struct race race = { .name = name, .what = what, .rounds = options.work_rounds };
        struct contestant *bare = race_enter(&race, "outside", command_run, NULL),
                          *ours = race_enter(&race, "in a box", command_run, NULL);

        command_add(bare, command);
        add_callbox(ours);
        command_add(ours, flags);
        command_add(ours, (const char *const[]){ "--", NULL });
        command_add(ours, command);
        race_at_most(&race, budget, ours, 1.03, bare);
        race_run(&race);
}

void race_find(void)
{
        race_work("find", "find /usr | wc -l", "find in a box", (const char *const[]){ NULL },
                  (const char *const[]){ "sh", "-c", "find /usr 2>/dev/null | wc -l", NULL });
}

void race_syscalls(void)
{
        race_work("syscalls", "3 million getppid", "system calls in a box",
                  (const char *const[]){ "--read", options.loop, NULL },
                  (const char *const[]){ options.loop, "3000000", NULL });
}

void race_output(void)
{
        struct race race = { .name = "output",
                             .what = "64 MiB of output read through a pipe",
                             .rounds = options.work_rounds };
        struct contestant *bare = race_enter(&race, "outside", command_run, NULL),
                          *streamed = race_enter(&race, "in a box, streamed", command_run, NULL),
                          *captured = race_enter(&race, "in a box, captured", command_run, NULL);
        const char *const command[] = { "head", "-c", "67108864", "/dev/zero", NULL };

        bare->pipe = streamed->pipe = captured->pipe = true;
        command_add(bare, command);
        add_callbox(streamed);
        command_add(streamed, (const char *const[]){ "--", NULL });
        command_add(streamed, command);
        add_callbox(captured);
        command_add(captured, (const char *const[]){ "--json", "--", NULL });
        command_add(captured, command);
        race_at_least(&race, "captured output, of the rate outside", captured, 0.7, bare);
        race_run(&race);
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

void race_compile(void)
{
        static const char compile[] =
                "cd \"$(mktemp -d)\" && gcc -O1 -c -o work.o \"$1\"; status=$?; "
                "rm -f work.o; rmdir \"$PWD\"; exit $status";
        char source[PATH_MAX];

        snprintf(source, sizeof(source), "%s/work.c", options.scratch);
        write_source(source);
        race_work("compile", "gcc -O1 -c of 400 small functions", "compiling in a box",
                  (const char *const[]){ "--read", options.scratch, NULL },
                  (const char *const[]){ "sh", "-c", compile, "sh", source, NULL });
        unlink(source);
}
