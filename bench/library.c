/* SPDX-License-Identifier: MIT */
/*
 * Calls through libcallbox:
 *
 *   call        /bin/true: posix_spawn, a box that was ready, one made on demand, the first of a
 *               policy, bubblewrap; and a program that waits in a warm box
 *   agents      the same from a small and from a large process, beside Python's subprocess
 *   throughput  eight at once
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define IN_FLIGHT 8
#define BATCH 400

static const char *const just_true[] = { "/bin/true", NULL };

/* ---- Calls ---- */

cbx_warden *open_warden(unsigned prepared)
{
        cbx_warden_options opening = CBX_WARDEN_OPTIONS_INIT;
        cbx_error error = CBX_ERROR_INIT;
        cbx_warden *warden;

        opening.prepared = prepared;
        if (cbx_warden_open(&opening, &warden, &error) < 0)
                die_callbox("open a warden", &error);
        return warden;
}

cbx_policy *parse_policy(const char *text)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_policy *policy;

        if (cbx_policy_parse(text, strlen(text), &policy, &error) < 0)
                die_callbox(text, &error);
        return policy;
}

static void check(cbx_report *report)
{
        if (report->reason != CBX_EXITED || report->code != 0) {
                fprintf(stderr, "bench: a call went wrong: %s\n", report->text);
                exit(2);
        }
        cbx_report_free(report);
}

static double box_call(cbx_warden *warden, cbx_policy *policy, const cbx_spec *spec)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_report report = CBX_REPORT_INIT;
        double before = now_ms(), after;

        if (cbx_run(warden, policy, spec, &report, &error) < 0)
                die_callbox("call", &error);
        after = now_ms();
        check(&report);
        return after - before;
}

double box_true(cbx_warden *warden, cbx_policy *policy)
{
        cbx_spec spec = CBX_SPEC_INIT;

        spec.argv = just_true;
        return box_call(warden, policy, &spec);
}

static pid_t spawn(void)
{
        pid_t pid;
        int r = posix_spawn(&pid, just_true[0], NULL, NULL, (char *const *)just_true, environ);

        if (r != 0) {
                errno = r;
                die("posix_spawn");
        }
        return pid;
}

double spawn_true(void)
{
        double before = now_ms();

        command_await(spawn());
        return now_ms() - before;
}

/* ---- One call ---- */

struct way {
        cbx_warden *warden;
        cbx_policy *policy;
        unsigned serial;
};

static double run_spawn(struct contestant *self)
{
        (void)self;
        return spawn_true();
}

static double run_box(struct contestant *self)
{
        const struct way *way = self->with;

        return box_true(way->warden, way->policy);
}

/* A policy that the warden has never heard of: it gets a maker of its own and is compiled. */
static double run_new_policy(struct contestant *self)
{
        struct way *way = self->with;
        char text[64];
        double ms;

        snprintf(text, sizeof(text), "{\"limits\": {\"memory\": %u}}",
                 (1U << 29) - 4096 * ++way->serial);
        way->policy = parse_policy(text);
        ms = box_true(way->warden, way->policy);
        way->policy = cbx_policy_unref(way->policy);
        return ms;
}

/* A program that has been started and waits for its input; it answers with a result. */
static double run_warm(struct contestant *self)
{
        static const char question[] = "6 * 7";
        const struct way *way = self->with;
        cbx_spec spec = CBX_SPEC_INIT;

        spec.argv = (const char *[]){ options.answer, NULL };
        spec.input = question;
        spec.input_length = sizeof(question) - 1;
        spec.result_mode = CBX_RESULT;
        spec.warm = 1;
        return box_call(way->warden, way->policy, &spec);
}

static cbx_policy *answer_policy(void)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_policy *policy = NULL;
        char path[PATH_MAX + 8];

        snprintf(path, sizeof(path), "[\"%s\"]", options.answer);
        if (cbx_policy_set(&policy, "files.read", path, &error) < 0)
                die_callbox(path, &error);
        return policy;
}

void race_call(void)
{
        cbx_policy *policy = parse_policy("{}");
        struct way ready = { .warden = open_warden(0), .policy = policy },
                   cold = { .warden = open_warden(CBX_NONE), .policy = policy },
                   fresh = { .warden = open_warden(CBX_NONE) },
                   warm = { .warden = ready.warden, .policy = answer_policy() };
        struct race race = { .name = "call",
                             .what = "/bin/true, request to report",
                             .rounds = options.rounds,
                             .pause_us = PAUSE_US };
        struct contestant *bare = race_enter(&race, "posix_spawn", run_spawn, NULL),
                          *first = race_enter(&race, "a box that was ready", run_box, &ready),
                          *second = race_enter(&race, "a box made on demand", run_box, &cold),
                          *waits = race_enter(&race, "a warm box, its program waiting", run_warm,
                                              &warm),
                          *bwrap;

        race_enter(&race, "the first box of a new policy", run_new_policy, &fresh);
        bwrap = race_enter(&race, "bubblewrap, a command", command_run, NULL);
        add_bubblewrap(bwrap);
        command_add(bwrap, just_true);
        race_at_most(&race, "a call in a box that was ready, against posix_spawn", first, 1.1,
                     bare);
        race_at_most(&race, "a call in a box made on demand, against posix_spawn", second, 3, bare);
        race_at_most(&race, "a call in a warm box, against posix_spawn", waits, 0.8, bare);
        race_run(&race);
        cbx_warden_close(ready.warden);
        cbx_warden_close(cold.warden);
        cbx_warden_close(fresh.warden);
        cbx_policy_unref(warm.policy);
        cbx_policy_unref(policy);
}

/* ---- Many at once ---- */

/* How many at once is what the contestant comes with. */
static double run_spawn_batch(struct contestant *self)
{
        const size_t *in_flight = self->with;
        double before = now_ms();
        size_t started = 0, ended = 0;

        while (ended < BATCH) {
                for (; started < BATCH && started - ended < *in_flight; started++)
                        spawn();
                command_await(-1);
                ended++;
        }
        return now_ms() - before;
}

static cbx_call *start_true(const struct way *way)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_spec spec = CBX_SPEC_INIT;
        cbx_call *call;

        spec.argv = just_true;
        if (cbx_start(way->warden, way->policy, &spec, &call, &error) < 0)
                die_callbox("start a call", &error);
        return call;
}

/* Takes the report and starts the next call in its place. */
static cbx_call *replace(const struct way *way, cbx_call *call, bool again)
{
        cbx_report report = CBX_REPORT_INIT;
        cbx_error error = CBX_ERROR_INIT;

        if (cbx_wait(call, &report, &error) < 0)
                die_callbox("wait for a call", &error);
        check(&report);
        cbx_call_free(call);
        return again ? start_true(way) : NULL;
}

static double run_box_batch(struct contestant *self)
{
        const struct way *way = self->with;
        cbx_call *calls[IN_FLIGHT];
        struct pollfd fds[IN_FLIGHT];
        double before = now_ms();
        size_t started = 0, ended = 0;

        for (; started < IN_FLIGHT; started++) {
                calls[started] = start_true(way);
                fds[started] = (struct pollfd){ cbx_call_fd(calls[started]), POLLIN, 0 };
        }
        while (ended < BATCH) {
                if (poll(fds, IN_FLIGHT, -1) < 0)
                        die("poll");
                for (size_t i = 0; i < IN_FLIGHT; i++) {
                        if (!fds[i].revents)
                                continue;
                        calls[i] = replace(way, calls[i], started < BATCH);
                        fds[i].fd = calls[i] ? cbx_call_fd(calls[i]) : -1;
                        started += calls[i] != NULL;
                        ended++;
                }
        }
        return now_ms() - before;
}

void race_throughput(void)
{
        struct way way = { .warden = open_warden(0), .policy = parse_policy("{}") };
        size_t one = 1, many = IN_FLIGHT;
        struct race race = { .name = "throughput",
                             .what = "400 times /bin/true, 8 in flight unless it says otherwise",
                             .rounds = options.work_rounds,
                             .calls = BATCH,
                             .pause_us = 100000 };
        struct contestant *loop = race_enter(&race, "posix_spawn loop, one at a time",
                                             run_spawn_batch, &one),
                          *bare = race_enter(&race, "posix_spawn", run_spawn_batch, &many),
                          *ours = race_enter(&race, "callbox, all fences", run_box_batch, &way);

        race_at_least(&race, "calls per second, of a bare posix_spawn loop's", ours, 0.5, loop);
        race_tell(&race, "calls per second, of posix_spawn's with 8 in flight", ours, bare);
        race_run(&race);
        cbx_warden_close(way.warden);
        cbx_policy_unref(way.policy);
}
