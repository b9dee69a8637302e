/* SPDX-License-Identifier: MIT */
/*
 * Side-by-side measurements in one run.
 *
 *   bench.c     what there is to measure; the options; the verdict
 *   race.c      contestants that take turns, medians, repetitions
 *   budget.c    what must hold, and whether it did
 *   command.c   contestants that are commands
 *   commands.c  callbox run beside bubblewrap and firejail; work inside a box
 *   library.c   calls through libcallbox beside posix_spawn, Python and bubblewrap
 *   tool.c      calls of tools
 *   mcp.c       the same over HTTP
 *   callers.c   calls from processes of a given size, and from Python
 *   scale.c     many live boxes, many calls
 *   schema.c    arguments against a schema
 *   workspace.c building, git and many small files in a workspace
 *   plot.c      curves as SVG
 *   agent.c, popen.py, functions.py    those processes
 *
 * A race has contestants. In every round each runs once, one after the other and each time in
 * another order, so that noise on the machine hits all alike. What counts are ratios between
 * medians, not milliseconds. Where a budget is missed the whole race is run again, up to
 * three times in all, and the best ratio is judged, as the machine may be busy; every run is
 * printed. That is lenient: read a budget that held by a hair in the third run as one at its edge.
 */
#ifndef BENCH_H
#define BENCH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <callbox.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MAX_CONTESTANTS 16
#define MAX_ARGS 80
#define PAUSE_US 6000 /* until boxes are refilled and the kernel has cleared up after them */
#define MAX_TRIES 3

struct options {
        const char *build, *results, *source;
        size_t rounds, work_rounds, calls, live;
        char callbox[PATH_MAX], loop[PATH_MAX], answer[PATH_MAX], agent[PATH_MAX];
        char scratch[32]; /* a directory that is there until the end */
};

extern struct options options;

/* ---- bench.c ---- */

/* Something cannot be measured at all: say so and leave with status 2. */
__attribute__((noreturn)) void die(const char *what);
__attribute__((noreturn)) void die_callbox(const char *what, const cbx_error *error);
double now_ms(void);

/* ---- budget.c ---- */

struct budget {
        const char *what;
        const char *unit; /* "x", "MiB", "s" */
        double limit;
        bool at_least; /* the limit is a floor, not a ceiling */
        double best;
        unsigned tries;
};

bool budget_holds(const struct budget *budget);
void budget_try(struct budget *budget, double value);
/* The same with a value that takes all tries into account already. */
void budget_set(struct budget *budget, double value);
/* Print it, and keep it for the verdict. A budget without a try was not judged. */
void budget_settle(const struct budget *budget);
/* Print all of them once more. Returns the exit status: 0, 1 when one is missed, 2 when one could
 * not be judged. */
int budget_verdict(void);

/* ---- race.c ---- */

struct contestant {
        const char *name;
        double (*run)(struct contestant *self); /* once; returns the milliseconds */
        void *with;                             /* what that needs */
        const char *argv[MAX_ARGS];             /* of a command */
        size_t n_args;
        bool pipe;        /* of a command: read stdout rather than throw it away */
        char absent[256]; /* why it cannot run here; empty when it can */
        double *ms;       /* one per round, sorted in the end */
        double p10, p50, p90;
};

/* The ratio between two medians: at most so much, or at least so many times as fast. */
struct expectation {
        struct budget budget;
        const struct contestant *ours, *theirs;
};

struct race {
        const char *name, *what;
        size_t rounds;
        unsigned pause_us; /* before each start, until what the one before left behind is gone */
        size_t calls;      /* each contestant makes in a round; 0: one */
        struct contestant contestants[MAX_CONTESTANTS];
        size_t n;
        struct expectation expectations[4];
        size_t n_expectations;
        struct expectation told; /* a ratio beside them that is not judged; `ours` may be NULL */
        unsigned tries;
        double *ms; /* room for all times of all contestants */
};

struct contestant *race_enter(struct race *race, const char *name,
                              double (*run)(struct contestant *self), void *with);
void race_at_most(struct race *race, const char *what, const struct contestant *ours, double limit,
                  const struct contestant *theirs);
void race_at_least(struct race *race, const char *what, const struct contestant *ours, double limit,
                   const struct contestant *theirs);
/* Print how many times as fast ours is, without judging it. */
void race_tell(struct race *race, const char *what, const struct contestant *ours,
               const struct contestant *theirs);
/* Run it, print it, write it down; again where an expectation is not met. */
void race_run(struct race *race);

/* Sorts. */
double median(double *values, size_t n);

/* ---- command.c ---- */

#define COMMAND_FILTER_FD 20 /* where bubblewrap finds its seccomp filter */

void command_add(struct contestant *command, const char *const *words);
/* The descriptors become its stdin, stdout and stderr. A negative errno when it cannot be started.
 */
pid_t command_start(const struct contestant *command, int in, int out, int err);
int command_await(pid_t pid);
double command_run(struct contestant *command);
/* Whether it runs here at all; if not, its own last words are kept. */
void command_try(struct contestant *command);
void command_offer_filter(int fd);

/* ---- What there is to measure ---- */

void race_start(void);
void race_firejail(void);
void race_landlock(void);
void race_compile(void);
void race_find(void);
void race_syscalls(void);
void race_output(void);
void race_workspace(void);

/* What callbox does by default, in bubblewrap's words, up to the program. */
void add_bubblewrap(struct contestant *command);

void race_call(void);
void race_agents(void);
void race_throughput(void);
void race_functions(void);
void race_first(void);
void race_tool(void);
void race_mcp(void);

void race_schema(void);

void scale_live(void);
void scale_calls(void);

/* ---- Calls through the library (library.c) ---- */

cbx_warden *open_warden(unsigned prepared);
cbx_policy *parse_policy(const char *text);
/* /bin/true, by posix_spawn and in a box; the milliseconds. */
double spawn_true(void);
double box_true(cbx_warden *warden, cbx_policy *policy);

/* ---- plot.c ---- */

#define PLOT_OURS "#2563eb"
#define PLOT_THEIRS "#9ca3af"

struct series {
        const char *name, *colour;
        const double *x, *y;
        size_t n;
};

struct plot {
        const char *title, *x_label, *y_label;
        bool log_x, dots;
        struct series series[2];
};

/* Into bench/results/NAME.svg. */
void plot_write(const struct plot *plot, const char *name);

#endif
