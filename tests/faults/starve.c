/* SPDX-License-Identifier: MIT */
/*
 * A warden that is in need for a while: without descriptors, processes, memory or room in files, or
 * with one system call that always fails. Calls may be refused then, with an error that says why;
 * each still has its report, the warden lives on, and afterwards every call works again.
 *
 *     starve WORKER SCENARIO                        a limit on the warden's processes
 *     starve WORKER CALL ERRNO EVERY INJECTOR LOG   a system call (inject.c)
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../soak/host.h"
#include "../soak/load.h"

#define AT_ONCE 16
#define CALLS 80
#define DEADLINE_MS 60000
#define TREE_MAX 2048
#define SLACK_DESCRIPTORS 8

#define ROLE(role) (1U << (role))
#define MAKERS (ROLE(HOST_NURSERY) | ROLE(HOST_MAKER) | ROLE(HOST_MOULD))

static const struct scenario {
        const char *name;
        int resource;
        unsigned roles; /* who is bounded */
        bool relative;  /* to what the process uses now */
        rlim_t value;
} scenarios[] = {
        { "descriptors of the warden", RLIMIT_NOFILE, ROLE(HOST_WARDEN), true, 6 },
        { "no descriptor for the warden", RLIMIT_NOFILE, ROLE(HOST_WARDEN), false, 0 },
        { "descriptors of the makers", RLIMIT_NOFILE, MAKERS, false, 9 },
        { "processes", RLIMIT_NPROC, ROLE(HOST_WARDEN) | MAKERS, false, 1 },
        { "memory of the warden", RLIMIT_AS, ROLE(HOST_WARDEN), false, 1U << 20 },
        { "memory of the makers", RLIMIT_AS, MAKERS, false, 1U << 20 },
        { "room in files", RLIMIT_FSIZE, ROLE(HOST_WARDEN) | MAKERS, false, 0 },
};

struct starve {
        struct load load;
        cbx_warden *warden;
        struct load_call calls[AT_ONCE];
        unsigned refused, faults;
        char last[2048]; /* why a call was refused */
};

static void fault(struct starve *starve, const char *when, const char *why)
{
        if (starve->faults++ < 10)
                printf("wrong: %s: %s\n", when, why);
}

/* ---- Calls ---- */

static void begin(struct starve *starve, struct load_call *call, bool hungry)
{
        static const enum load_kind kinds[] = { LOAD_EXIT,  LOAD_EXIT,   LOAD_NAP,    LOAD_ECHO,
                                                LOAD_LEAVE, LOAD_EVENTS, LOAD_CANCEL, LOAD_FLOOD };
        cbx_error error = CBX_ERROR_INIT;

        if (load_start(&starve->load, starve->warden,
                       kinds[load_random(&starve->load, sizeof(kinds) / sizeof(kinds[0]))], call,
                       &error) < 0) {
                call->call = NULL;
                fault(starve, hungry ? "a call in need" : "a call", error.text);
        }
}

static void proceed(struct starve *starve, struct load_call *call, bool hungry)
{
        unsigned excused = hungry ? 1U << CBX_SETUP | 1U << CBX_INTERNAL : 0;
        char why[2048] = "";
        bool excuse = false;
        int r = load_step(call, why, sizeof(why));

        if (r == 0)
                return;
        if (r < 0 || !load_finish(call, excused, &excuse, why, sizeof(why)))
                fault(starve, hungry ? "a call in need" : "a call", why);
        call->call = cbx_call_free(call->call);
        starve->refused += excuse;
        if (excuse)
                memcpy(starve->last, why, sizeof(why));
}

static void work(struct starve *starve, unsigned calls, bool hungry)
{
        unsigned long long last = load_now() + DEADLINE_MS;
        unsigned running, started = 0;

        do {
                struct pollfd fds[AT_ONCE];

                running = 0;
                for (int i = 0; i < AT_ONCE; i++) {
                        struct load_call *call = &starve->calls[i];

                        if (!call->call && started < calls) {
                                started++;
                                begin(starve, call, hungry);
                        }
                        if (call->call)
                                proceed(starve, call, hungry);
                        running += call->call != NULL;
                        fds[i] = (struct pollfd){ .fd = call->call ? cbx_call_fd(call->call) : -1,
                                                  .events = POLLIN };
                }
                (void)poll(fds, AT_ONCE, 2);
        } while ((running > 0 || started < calls) && load_now() < last);
        for (int i = 0; i < AT_ONCE; i++)
                if (starve->calls[i].call) {
                        fault(starve, "a call without a report",
                              load_kind_names[starve->calls[i].kind]);
                        starve->calls[i].call = cbx_call_free(starve->calls[i].call);
                }
}

/* ---- Need ---- */

static struct bounded {
        pid_t pid;
        struct rlimit before;
} bounded[TREE_MAX];
static size_t n_bounded;

static rlim_t used_descriptors(pid_t pid)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/fd", pid);
        return (rlim_t)host_entries(path) - 2; /* without . and .. */
}

static void bound(struct starve *starve, const struct scenario *scenario)
{
        static struct host_process tree[TREE_MAX];
        size_t n = host_tree(cbx_warden_pid(starve->warden), tree, TREE_MAX);

        for (size_t i = 0; i < n; i++) {
                struct rlimit limit;

                if (!(scenario->roles & ROLE(tree[i].role)) ||
                    prlimit(tree[i].pid, scenario->resource, NULL, &bounded[n_bounded].before) < 0)
                        continue;
                limit = bounded[n_bounded].before;
                limit.rlim_cur =
                        scenario->value + (scenario->relative ? used_descriptors(tree[i].pid) : 0);
                bounded[n_bounded].pid = tree[i].pid;
                if (prlimit(tree[i].pid, scenario->resource, &limit, NULL) == 0)
                        n_bounded++;
        }
        if (n_bounded == 0)
                fault(starve, scenario->name, "nobody could be bounded");
}

static void release(const struct scenario *scenario)
{
        while (n_bounded > 0) {
                n_bounded--;
                (void)prlimit(bounded[n_bounded].pid, scenario->resource,
                              &bounded[n_bounded].before, NULL);
        }
}

/* The injector, attached; its pid. */
static pid_t inject(struct starve *starve, char **argv)
{
        char pid_text[16], line[64];
        int pipe[2];
        pid_t pid;

        snprintf(pid_text, sizeof(pid_text), "%d", cbx_warden_pid(starve->warden));
        if (pipe2(pipe, O_CLOEXEC) < 0)
                return -1;
        fflush(stdout);
        pid = fork();
        if (pid == 0) {
                dup2(pipe[1], 1);
                execl(argv[5], argv[5], "--log", argv[6], "--attach", pid_text, "--name", argv[2],
                      "--error", argv[3], "--every", argv[4], NULL);
                _exit(127);
        }
        close(pipe[1]);
        if (pid > 0 && read(pipe[0], line, sizeof(line)) <= 0)
                fault(starve, argv[2], "the injector could not attach");
        close(pipe[0]);
        return pid;
}

static const struct scenario *find_scenario(const char *name)
{
        for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
                if (strcmp(scenarios[i].name, name) == 0)
                        return &scenarios[i];
        return NULL;
}

/* ---- Before, in need, afterwards ---- */

static void play(struct starve *starve, const struct scenario *scenario, char **argv)
{
        int warden = cbx_warden_pid(starve->warden);
        struct host_use before = { 0 }, after = { 0 };
        pid_t injector = -1;

        work(starve, CALLS / 2, false);
        if (!host_measure(warden, &before))
                fault(starve, "before", "the warden does not come to rest");
        if (starve->faults > 0)
                return;
        if (scenario)
                bound(starve, scenario);
        else
                injector = inject(starve, argv);
        work(starve, CALLS, true);
        if (scenario) {
                release(scenario);
        } else if (injector > 0) {
                (void)kill(injector, SIGTERM);
                (void)waitpid(injector, NULL, 0);
        }
        /* Boxes that were being made meanwhile may still fail. */
        if (cbx_warden_pid(starve->warden) == warden && !host_measure(warden, &after))
                fault(starve, "afterwards", "the warden does not come to rest");
        work(starve, CALLS, false);
        if (cbx_warden_pid(starve->warden) != warden)
                fault(starve, "afterwards", "the warden is another one");
        else if (!host_measure(warden, &after))
                fault(starve, "afterwards", "the warden does not come to rest");
        else if (after.descriptors > before.descriptors + SLACK_DESCRIPTORS)
                fault(starve, "afterwards", "the warden has more descriptors");
        printf("%u of %d refused%s%s\n", starve->refused, CALLS, starve->refused ? ": " : "",
               starve->last);
}

int main(int argc, char **argv)
{
        static struct starve starve;
        const struct scenario *scenario = argc == 3 ? find_scenario(argv[2]) : NULL;
        cbx_warden_options options = CBX_WARDEN_OPTIONS_INIT;
        cbx_error error = CBX_ERROR_INIT;

        setvbuf(stdout, NULL, _IOLBF, 0);
        if (argc != 7 && !scenario) {
                fputs("usage: starve WORKER SCENARIO | WORKER CALL ERRNO EVERY INJECTOR LOG\n",
                      stderr);
                return 2;
        }
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        options.prepared = 4;
        if (load_open(&starve.load, argv[1], 1, &error) < 0 ||
            cbx_warden_open(&options, &starve.warden, &error) < 0) {
                printf("cannot begin: %s\n", error.text);
                return 1;
        }
        play(&starve, scenario, argv);
        cbx_warden_close(starve.warden);
        load_close(&starve.load);
        if (host_reap(20, true) > 0)
                fault(&starve, "afterwards", "processes are left");
        return starve.faults > 0;
}
