/* SPDX-License-Identifier: MIT */
/* Callers that are processes of their own: of a given size, or in Python. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define SMALL_MB 20
#define LARGE_MB 2000
#define FUNCTION_ROUNDS 60 /* some take a quarter of a second */

struct agent {
        FILE *answers;
        int orders;
        pid_t pid;
};

static double run_agent(struct contestant *self)
{
        struct agent *agent = self->with;
        char line[256], *end;
        double ns;

        if (write(agent->orders, "!", 1) != 1 || !fgets(line, sizeof(line), agent->answers))
                die(self->name);
        ns = strtod(line, &end);
        if (*end != '\n') {
                fprintf(stderr, "bench: %s: %s", self->name, line);
                exit(2);
        }
        return ns / 1e6;
}

static long available_mb(void)
{
        FILE *file = fopen("/proc/meminfo", "re");
        char line[256];
        long kb = 0;

        while (file && kb == 0 && fgets(line, sizeof(line), file))
                if (strncmp(line, "MemAvailable:", 13) == 0)
                        kb = strtol(line + 13, NULL, 10);
        if (file)
                fclose(file);
        return kb / 1000;
}

/* Start `program KIND SIZE`, which is to run what the contestant is, once for each byte that it
 * gets. Without a kind it is given none. */
static void start_agent(struct contestant *c, const char *program, const char *kind,
                        unsigned megabytes)
{
        static char sizes[2 * MAX_CONTESTANTS][16];
        static size_t n_sizes;
        struct agent *agent = c->with;
        char *size = sizes[n_sizes++], line[256];
        int orders[2], answers[2];

        *agent = (struct agent){ .orders = -1 };
        if (available_mb() < (long)megabytes * 5 / 4 + 100) {
                snprintf(c->absent, sizeof(c->absent), "there is no %u MB of free memory",
                         megabytes);
                return;
        }
        snprintf(size, sizeof(sizes[0]), "%u", megabytes);
        command_add(c, kind ? (const char *const[]){ program, kind, size, NULL }
                            : (const char *const[]){ program, size, NULL });
        if (pipe2(orders, O_CLOEXEC) < 0 || pipe2(answers, O_CLOEXEC) < 0)
                die("pipe");
        agent->pid = command_start(c, orders[0], answers[1], 2);
        close(orders[0]);
        close(answers[1]);
        agent->orders = orders[1];
        agent->answers = fdopen(answers[0], "r");
        if (!agent->answers)
                die("pipe");
        if (agent->pid < 0) {
                snprintf(c->absent, sizeof(c->absent), "%s: %s", program, strerror(-agent->pid));
        } else if (!fgets(line, sizeof(line), agent->answers) || strcmp(line, "ready\n") != 0) {
                snprintf(c->absent, sizeof(c->absent), "%s did not get ready", program);
        }
}

static void end_agent(struct agent *agent)
{
        close(agent->orders);
        if (agent->answers)
                fclose(agent->answers);
        if (agent->pid > 0)
                command_await(agent->pid);
}

/* ---- A command, from a process of 20 MB and of 2 GB ---- */

static double run_spawn(struct contestant *self)
{
        (void)self;
        return spawn_true();
}

void race_agents(void)
{
        struct agent agents[4];
        char python[PATH_MAX];
        struct race race = { .name = "agents",
                             .what = "/bin/true, from a process of 20 MB and of 2 GB",
                             .rounds = options.rounds,
                             .pause_us = PAUSE_US };
        struct contestant *ours[2], *theirs[2];

        snprintf(python, sizeof(python), "%s/popen.py", options.source);
        race_enter(&race, "posix_spawn", run_spawn, NULL);
        ours[0] = race_enter(&race, "callbox, from 20 MB", run_agent, &agents[0]);
        ours[1] = race_enter(&race, "callbox, from 2 GB", run_agent, &agents[1]);
        theirs[0] = race_enter(&race, "Python Popen + setsid, from 20 MB", run_agent, &agents[2]);
        theirs[1] = race_enter(&race, "Python Popen + setsid, from 2 GB", run_agent, &agents[3]);
        for (int i = 0; i < 2; i++) {
                start_agent(ours[i], options.agent, NULL, i ? LARGE_MB : SMALL_MB);
                start_agent(theirs[i], python, NULL, i ? LARGE_MB : SMALL_MB);
        }
        race_at_most(&race, "a call from a process of 2 GB, against one from 20 MB", ours[1], 1.1,
                     ours[0]);
        race_run(&race);
        for (size_t i = 0; i < ARRAY_SIZE(agents); i++)
                end_agent(&agents[i]);
}

/* ---- A function of Python ---- */

#define MOST_MS 1.0

/* What counts is also how long it takes, whatever else there is. */
static void judge_time(const char *what, const struct contestant *ours)
{
        struct budget budget = { .what = what, .unit = "ms", .limit = MOST_MS };

        if (!ours->absent[0])
                budget_try(&budget, ours->p50);
        budget_settle(&budget);
}

void race_functions(void)
{
        static const struct {
                const char *kind, *name;
                unsigned megabytes;
        } kinds[] = {
                { "callbox", "callbox, warm", SMALL_MB },
                { "callbox", "callbox, warm, from 2 GB", LARGE_MB },
                { "callbox-8", "callbox, 8 at once, each", SMALL_MB },
                { "callbox-cold", "callbox, cold", SMALL_MB },
                { "callbox-row", "callbox, 300 without a pause, each", SMALL_MB },
                { "calute", "callbox.compat.calute, warm", SMALL_MB },
                { "jeevesagent", "callbox.compat.jeevesagent, warm", SMALL_MB },
                { "pool", "ProcessPoolExecutor (no isolation)", SMALL_MB },
                { "popen", "Popen + setsid of /bin/true", SMALL_MB },
                { "python", "subprocess.run, python -c", SMALL_MB },
                { "pickle", "python -c, pickle in base64", SMALL_MB },
                { "spawn", "multiprocessing, spawn", SMALL_MB },
                { "framework", "spawn + queue, a framework's imports", SMALL_MB },
        };
        struct race race = { .name = "functions",
                             .what = "a trivial function, from Python",
                             .rounds = options.rounds < FUNCTION_ROUNDS ? options.rounds
                                                                        : FUNCTION_ROUNDS,
                             .pause_us = PAUSE_US };
        struct agent agents[ARRAY_SIZE(kinds)];
        struct contestant *c[ARRAY_SIZE(kinds)];
        char program[PATH_MAX];

        snprintf(program, sizeof(program), "%s/functions.py", options.source);
        setenv("CALLBOX_BUILD", options.build, 1);
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                c[i] = race_enter(&race, kinds[i].name, run_agent, &agents[i]);
                start_agent(c[i], program, kinds[i].kind, kinds[i].megabytes);
        }
        race_at_least(&race, "through a drop-in, against spawn + queue in a framework", c[6], 200,
                      c[12]);
        race_at_least(&race, "through a drop-in, against python -c and pickle", c[5], 20, c[10]);
        race_at_most(&race, "calls without a pause, against calls with one", c[4], 1.5, c[0]);
        race_at_most(&race, "a Python function from a process of 2 GB, against one from 20 MB",
                     c[1], 1.1, c[0]);
        race_run(&race);
        judge_time("a Python function, warm", c[0]);
        judge_time("a Python function, warm, through the drop-in for calute", c[5]);
        judge_time("a Python function, warm, through the drop-in for jeevesagent", c[6]);
        for (size_t i = 0; i < ARRAY_SIZE(agents); i++)
                end_agent(&agents[i]);
}

/* ---- Programs that make one call ---- */

#define FIRST_ROUNDS 20

static void race_first_of(const char *name, const char *what, const char *suffix)
{
        static const char *const ways[] = { "calute", "openjarvis", "jeevesagent" };
        static char names[4 * ARRAY_SIZE(ways)][64], kinds[ARRAY_SIZE(names)][64];
        static size_t n_names;
        struct race race = { .name = name,
                             .what = what,
                             .rounds =
                                     options.rounds < FIRST_ROUNDS ? options.rounds : FIRST_ROUNDS,
                             .pause_us = PAUSE_US };
        struct agent agents[2 * ARRAY_SIZE(ways)];
        struct contestant *c[2 * ARRAY_SIZE(ways)];
        char program[PATH_MAX];

        snprintf(program, sizeof(program), "%s/first.py", options.source);
        setenv("CALLBOX_BUILD", options.build, 1);
        for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
                const char *way = ways[i / 2];
                bool theirs = i % 2;

                snprintf(names[n_names], sizeof(names[0]),
                         theirs ? "the way of %s" : "callbox.compat.%s", way);
                snprintf(kinds[n_names], sizeof(kinds[0]), "%s%s%s", way, theirs ? "-way" : "",
                         suffix);
                c[i] = race_enter(&race, names[n_names], run_agent, &agents[i]);
                start_agent(c[i], program, kinds[n_names], SMALL_MB);
                if (theirs)
                        race_at_most(&race, names[n_names - 1], c[i - 1], 1.0, c[i]);
                n_names++;
        }
        race_run(&race);
        for (size_t i = 0; i < ARRAY_SIZE(agents); i++)
                end_agent(&agents[i]);
}

void race_first(void)
{
        race_first_of("program", "a program that makes one call, from Python", "");
        race_first_of("first", "the call of such a program", "-call");
}
