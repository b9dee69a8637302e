/* SPDX-License-Identifier: MIT */
/*
 * Whether a call costs the same however much there is and was:
 *
 *   live   beside 1 to 1 000 live boxes; what these take, and how long it takes to end them
 *   calls  from the first to the last of many
 *
 * What is set side by side here lies apart in time: a busy moment may hit the reference as well,
 * and make the ratio look better than it is. So repetitions are not judged one by one. For each
 * point the best time of all of them is kept, and the ratio is between those.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"
#include "memory.h"

#define SETTLE_US 2000
#define PATIENCE_MS 60000 /* until as many live as are wanted */
#define FLAT 1.2 /* what is called flat: so much is noise between two minutes of one machine */
#define TENTHS 10
#define POINTS 50
#define SPAWN_EVERY 4 /* of posix_spawn, to see what the machine does meanwhile */

/* ---- Live boxes ---- */

struct crowd {
        cbx_warden *warden;
        cbx_policy *patient; /* of those that live */
        cbx_policy *policy;  /* of those that are measured */
        cbx_call **calls;
        size_t n;
};

static const size_t levels[] = { 1, 10, 100, 300, 1000 };

/* A program that says when it is there, and then sleeps. */
static cbx_call *start_sleeper(const struct crowd *crowd)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_spec spec = CBX_SPEC_INIT;
        cbx_call *call;

        spec.shell = "echo; exec sleep 600";
        spec.output_mode = CBX_EVENTS;
        if (cbx_start(crowd->warden, crowd->patient, &spec, &call, &error) < 0)
                die_callbox("start a box", &error);
        return call;
}

/* Returns false when it does not come in time. */
static bool await_word(cbx_call *call, double until)
{
        struct pollfd fd = { .fd = cbx_call_fd(call), .events = POLLIN };
        cbx_event event = CBX_EVENT_INIT;
        cbx_error error = CBX_ERROR_INIT;

        while (event.kind != CBX_EVENT_OUTPUT) {
                double left = until - now_ms();

                if (left <= 0 || poll(&fd, 1, (int)left) <= 0)
                        return false;
                if (cbx_step(call, &event, &error) < 0 || event.kind == CBX_EVENT_ENDED)
                        die_callbox("a box did not live", &error);
        }
        return true;
}

static bool grow(struct crowd *crowd, size_t n)
{
        double until = now_ms() + PATIENCE_MS;
        size_t from = crowd->n;

        for (; crowd->n < n; crowd->n++)
                crowd->calls[crowd->n] = start_sleeper(crowd);
        for (size_t i = from; i < n; i++)
                if (!await_word(crowd->calls[i], until)) {
                        printf("  only %zu of %zu boxes were there after %d s\n", i, n,
                               PATIENCE_MS / 1000);
                        return false;
                }
        return true;
}

/* Returns the seconds until all of them were reported. */
static double kill_all(struct crowd *crowd)
{
        double before = now_ms(), after;

        for (size_t i = 0; i < crowd->n; i++)
                cbx_kill(crowd->calls[i]);
        for (size_t i = 0; i < crowd->n; i++) {
                cbx_report report = CBX_REPORT_INIT;
                cbx_error error = CBX_ERROR_INIT;

                if (cbx_wait(crowd->calls[i], &report, &error) < 0)
                        die_callbox("end a box", &error);
                if (report.reason != CBX_CANCELLED) {
                        fprintf(stderr, "bench: a box ended by itself: %s\n", report.text);
                        exit(2);
                }
                cbx_report_free(&report);
        }
        after = now_ms();
        for (size_t i = 0; i < crowd->n; i++)
                cbx_call_free(crowd->calls[i]);
        crowd->n = 0;
        return (after - before) / 1e3;
}

/* The medians of `n` calls in a box and as many without. */
static void measure_calls(const struct crowd *crowd, double *boxed, double *bare, double *ret_boxed,
                          double *ret_bare)
{
        for (size_t i = 0; i < options.rounds; i++) {
                usleep(SETTLE_US);
                boxed[i] = box_true(crowd->warden, crowd->policy);
                usleep(SETTLE_US);
                bare[i] = spawn_true();
        }
        *ret_boxed = median(boxed, options.rounds);
        *ret_bare = median(bare, options.rounds);
}

enum { LIVE_FLAT, LIVE_WARDEN, LIVE_BOX, LIVE_KILL, LIVE_BUDGETS };

struct live_times {
        double n[ARRAY_SIZE(levels)], boxed[ARRAY_SIZE(levels)], bare[ARRAY_SIZE(levels)];
        size_t count;
};

static void keep_least(double *least, double value)
{
        if (*least == 0 || value < *least)
                *least = value;
}

static void measure_level(const struct crowd *crowd, double *room, size_t i,
                          struct live_times *times)
{
        double boxed, bare;

        measure_calls(crowd, room, room + options.rounds, &boxed, &bare);
        times->n[i] = (double)levels[i];
        times->count = times->count > i + 1 ? times->count : i + 1;
        keep_least(&times->boxed[i], boxed);
        keep_least(&times->bare[i], bare);
        printf("  %-14zu %12.2f %12.2f %12.1f\n", levels[i], boxed, bare,
               memory_resident_kb(cbx_warden_pid(crowd->warden)) / 1024);
}

/* Returns false when there were not as many as wanted. */
static bool measure_live(struct budget *budgets, struct live_times *times)
{
        struct crowd crowd = { .warden = open_warden(0),
                               .patient = parse_policy("{\"limits\": {\"wall\": 600}}"),
                               .policy = parse_policy("{}"),
                               .calls = calloc(options.live + 1, sizeof(cbx_call *)) };
        double *room = calloc(2 * options.rounds, sizeof(*room)), box_kb;
        size_t last = 0;
        struct memory_boxes boxes;
        int pid = cbx_warden_pid(crowd.warden);
        bool all = true;

        if (!crowd.calls || !room)
                die("allocate");
        box_true(crowd.warden, crowd.policy);
        boxes = memory_of_boxes(pid);
        box_kb = boxes.n ? boxes.private_kb / (double)boxes.n : 0;
        printf("  %-14s %12s %12s %12s\n", "live boxes", "box p50 ms", "bare p50 ms", "warden MiB");
        for (size_t i = 0; i < ARRAY_SIZE(levels) && levels[i] <= options.live; i++) {
                all = grow(&crowd, levels[i]);
                if (!all)
                        break;
                measure_level(&crowd, room, i, times);
                last = i;
        }
        if (box_kb > 0)
                budget_try(&budgets[LIVE_BOX], box_kb);
        if (all) {
                budget_try(&budgets[LIVE_WARDEN], memory_resident_kb(pid) / 1024);
                budget_try(&budgets[LIVE_KILL], kill_all(&crowd));
                /* The reference once more, from the other side of the others. */
                (void)grow(&crowd, levels[0]);
                measure_level(&crowd, room, 0, times);
                budget_set(&budgets[LIVE_FLAT], times->boxed[last] / times->boxed[0]);
        }
        kill_all(&crowd);
        cbx_warden_close(crowd.warden);
        cbx_policy_unref(crowd.patient);
        cbx_policy_unref(crowd.policy);
        free(crowd.calls);
        free(room);
        return all;
}

static void raise_descriptors(void)
{
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
                limit.rlim_cur = limit.rlim_max;
                (void)setrlimit(RLIMIT_NOFILE, &limit);
        }
}

void scale_live(void)
{
        static char what[64]; /* the verdict at the end of all shows it again */
        struct budget budgets[LIVE_BUDGETS] = {
                [LIVE_FLAT] = { "a call beside that many live boxes, against beside one", "x", FLAT,
                                false, 0, 0 },
                [LIVE_WARDEN] = { "resident memory of the warden with them", "MiB", 32, false, 0,
                                  0 },
                [LIVE_BOX] = { "private memory of a box that is ready", "KiB", 300, false, 0, 0 },
                [LIVE_KILL] = { what, "s", 1, false, 0, 0 },
        };
        struct live_times times = { 0 };
        bool good = false;

        raise_descriptors();
        snprintf(what, sizeof(what), "kill of %zu live boxes, until all reports are there",
                 options.live);
        printf("\nlive: /bin/true beside live boxes (%zu rounds each)\n", options.rounds);
        for (int i = 0; i < MAX_TRIES && !good; i++) {
                if (i > 0)
                        printf("  over a budget: once more, as the machine may have been busy\n");
                if (!measure_live(budgets, &times))
                        break;
                good = true;
                for (size_t j = 0; j < LIVE_BUDGETS; j++)
                        good = good && (budgets[j].tries == 0 || budget_holds(&budgets[j]));
        }
        for (size_t i = 0; i < LIVE_BUDGETS; i++)
                budget_settle(&budgets[i]);
        plot_write(&(struct plot){ .title = "Cost of a call beside live boxes",
                                   .x_label = "live boxes",
                                   .y_label = "ms, median",
                                   .log_x = true,
                                   .dots = true,
                                   .series = { { "callbox", PLOT_OURS, times.n, times.boxed,
                                                 times.count },
                                               { "posix_spawn", PLOT_THEIRS, times.n, times.bare,
                                                 times.count } } },
                   "live-boxes");
}

/* ---- Many calls ---- */

struct history {
        double *boxed, *bare; /* in the order they were made; every few calls a bare one */
        size_t n_boxed, n_bare;
};

static void make_calls(struct history *history)
{
        cbx_warden *warden = open_warden(0);
        cbx_policy *policy = parse_policy("{}");
        int pid = cbx_warden_pid(warden);
        double before;

        for (int i = 0; i < 50; i++)
                box_true(warden, policy);
        before = memory_resident_kb(pid);
        history->n_boxed = history->n_bare = 0;
        for (size_t i = 0; i < options.calls; i++) {
                history->boxed[history->n_boxed++] = box_true(warden, policy);
                if (i % SPAWN_EVERY == 0)
                        history->bare[history->n_bare++] = spawn_true();
        }
        printf("  resident memory of the warden: %.1f MiB before, %.1f MiB after\n", before / 1024,
               memory_resident_kb(pid) / 1024);
        cbx_warden_close(warden);
        cbx_policy_unref(policy);
}

/* The median of one of `parts` equal parts. */
static double part(const double *times, size_t n, size_t index, size_t parts)
{
        size_t from = n * index / parts, length = n * (index + 1) / parts - from;
        double *copy = malloc((length + 1) * sizeof(*copy)), found;

        if (!copy || length == 0)
                die("too few calls");
        memcpy(copy, times + from, length * sizeof(*copy));
        found = median(copy, length);
        free(copy);
        return found;
}

static void plot_history(const struct history *history)
{
        double x[POINTS], boxed[POINTS], bare[POINTS];

        for (size_t i = 0; i < POINTS; i++) {
                x[i] = (double)(options.calls * (2 * i + 1)) / (2 * POINTS);
                boxed[i] = part(history->boxed, history->n_boxed, i, POINTS);
                bare[i] = part(history->bare, history->n_bare, i, POINTS);
        }
        plot_write(&(struct plot){ .title = "Cost of a call, from the first to the last",
                                   .x_label = "calls made by one warden",
                                   .y_label = "ms, median",
                                   .series = { { "callbox", PLOT_OURS, x, boxed, POINTS },
                                               { "posix_spawn", PLOT_THEIRS, x, bare, POINTS } } },
                   "many-calls");
}

/* Set against posix_spawn at the same time, as minutes lie between the first and the last. */
void scale_calls(void)
{
        struct budget flat = {
                "the last tenth of the calls, against the first", "x", FLAT, false, 0, 0
        };
        struct history history = {
                .boxed = calloc(options.calls, sizeof(double)),
                .bare = calloc(options.calls, sizeof(double)),
        };
        double best[2][TENTHS] = { 0 };

        if (!history.boxed || !history.bare)
                die("allocate");
        printf("\ncalls: /bin/true %zu times, one after the other\n", options.calls);
        for (int i = 0; i < MAX_TRIES && !budget_holds(&flat); i++) {
                if (i > 0)
                        printf("  over a budget: once more, as the machine may have been busy\n");
                make_calls(&history);
                printf("  %-14s %12s %12s %12s\n", "tenth", "box p50 ms", "bare p50 ms", "x bare");
                for (size_t j = 0; j < TENTHS; j++) {
                        double boxed = part(history.boxed, history.n_boxed, j, TENTHS),
                               bare = part(history.bare, history.n_bare, j, TENTHS);

                        keep_least(&best[0][j], boxed);
                        keep_least(&best[1][j], bare);
                        printf("  %-14zu %12.2f %12.2f %12.2f\n", j + 1, boxed, bare, boxed / bare);
                }
                budget_set(&flat,
                           best[0][TENTHS - 1] / best[1][TENTHS - 1] / (best[0][0] / best[1][0]));
        }
        budget_settle(&flat);
        plot_history(&history);
        free(history.boxed);
        free(history.bare);
}
