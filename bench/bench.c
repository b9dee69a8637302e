/* SPDX-License-Identifier: MIT */
/*
 * What there is to measure, and in which order; bench.h says how.
 *
 * Exit status: 0, 1 when a budget is missed, 2 when something could not be measured.
 */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct options options = {
        .build = "build",
        .results = "bench/results",
        .source = "bench",
        .rounds = 300,
        .work_rounds = 15,
        .calls = 3000,
        .live = 1000,
        .scratch = "/tmp/callbox-bench-XXXXXX",
};

static const struct {
        const char *name;
        void (*run)(void);
} measurements[] = {
        { "call", race_call },
        { "agents", race_agents },
        { "throughput", race_throughput },
        { "tool", race_tool },
        { "functions", race_functions },
        { "first", race_first },
        { "mcp", race_mcp },
        { "live", scale_live },
        { "calls", scale_calls },
        { "start", race_start },
        { "firejail", race_firejail },
        { "landlock", race_landlock },
        { "compile", race_compile },
        { "find", race_find },
        { "syscalls", race_syscalls },
        { "output", race_output },
        { "workspace", race_workspace },
        { "schema", race_schema },
};

static const char *only;

void die(const char *what)
{
        fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
        exit(2);
}

void die_callbox(const char *what, const cbx_error *error)
{
        fprintf(stderr, "bench: %s: %s%s%s\n", what, error->text, error->hint[0] ? "; " : "",
                error->hint);
        exit(2);
}

double now_ms(void)
{
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void usage(FILE *to)
{
        fprintf(to, "usage: bench [--build DIR] [--results DIR] [--source DIR] [--rounds N]\n"
                    "             [--work-rounds N] [--calls N] [--live N] [--only NAME]\n"
                    "names:");
        for (size_t i = 0; i < ARRAY_SIZE(measurements); i++)
                fprintf(to, " %s", measurements[i].name);
        fprintf(to, "\n");
}

static bool is_name(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(measurements); i++)
                if (strcmp(measurements[i].name, name) == 0)
                        return true;
        return false;
}

static void parse_options(int argc, char **argv)
{
        static const struct option known[] = {
                { "build", required_argument, NULL, 'b' },
                { "results", required_argument, NULL, 'r' },
                { "source", required_argument, NULL, 's' },
                { "rounds", required_argument, NULL, 'n' },
                { "work-rounds", required_argument, NULL, 'w' },
                { "calls", required_argument, NULL, 'c' },
                { "live", required_argument, NULL, 'l' },
                { "only", required_argument, NULL, 'o' },
                { "help", no_argument, NULL, 'h' },
                { NULL, 0, NULL, 0 },
        };
        int option;
        bool good = true;

        while ((option = getopt_long(argc, argv, "h", known, NULL)) >= 0) {
                switch (option) {
                case 'b':
                        options.build = optarg;
                        break;
                case 'r':
                        options.results = optarg;
                        break;
                case 's':
                        options.source = optarg;
                        break;
                case 'n':
                        options.rounds = strtoul(optarg, NULL, 10);
                        break;
                case 'w':
                        options.work_rounds = strtoul(optarg, NULL, 10);
                        break;
                case 'c':
                        options.calls = strtoul(optarg, NULL, 10);
                        break;
                case 'l':
                        options.live = strtoul(optarg, NULL, 10);
                        break;
                case 'o':
                        only = optarg;
                        break;
                case 'h':
                        usage(stdout);
                        exit(0);
                default:
                        good = false;
                }
        }
        if (!good || options.rounds < 1 || options.work_rounds < 1 || options.calls < 200 ||
            options.live < 1 || optind < argc || (only && !is_name(only))) {
                usage(stderr);
                exit(2);
        }
}

/* The full path of something that was built. */
static void find_built(const char *name, char *ret)
{
        char path[PATH_MAX];

        if (snprintf(path, sizeof(path), "%s/%s", options.build, name) >= (int)sizeof(path) ||
            !realpath(path, ret))
                die(path);
}

static void clean_up(void)
{
        unlink(options.callbox);
        rmdir(options.scratch);
}

/* The command is run from a copy, as one that is installed: what a linker has just written lies in
 * the page cache in pieces, and takes longer to start. */
static void install(const char *name, char *path)
{
        _Alignas(4096) static char piece[1024 * 1024];
        char copy[PATH_MAX];
        int from = open(path, O_RDONLY | O_CLOEXEC), to;
        ssize_t n;

        snprintf(copy, sizeof(copy), "%s/%s", options.scratch, name);
        snprintf(path, PATH_MAX, "%s", copy);
        atexit(clean_up);
        to = open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
        if (from < 0 || to < 0)
                die(copy);
        while ((n = read(from, piece, sizeof(piece))) > 0)
                if (write(to, piece, (size_t)n) != n)
                        die(copy);
        if (n < 0 || close(from) < 0 || close(to) < 0)
                die(copy);
}

int main(int argc, char **argv)
{
        cbx_serve_functions(argc, argv); /* in a box this does not return */
        parse_options(argc, argv);
        setvbuf(stdout, NULL, _IOLBF, 0);
        find_built("callbox", options.callbox);
        find_built("bench/syscall-loop", options.loop);
        find_built("bench/answer", options.answer);
        find_built("bench/agent", options.agent);
        if (!mkdtemp(options.scratch) || chmod(options.scratch, 0755) < 0)
                die(options.scratch);
        install("callbox", options.callbox);
        /* The warden that was built, not one that is installed. */
        if (setenv("CALLBOX_WARDEN", options.callbox, 1) < 0)
                die("CALLBOX_WARDEN");
        if (mkdir(options.results, 0777) < 0 && errno != EEXIST)
                die(options.results);
        for (size_t i = 0; i < ARRAY_SIZE(measurements); i++)
                if (!only || strcmp(only, measurements[i].name) == 0)
                        measurements[i].run();
        return budget_verdict();
}
