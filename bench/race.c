/* SPDX-License-Identifier: MIT */
/* Races: contestants that take turns. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

/* ---- Entering ---- */

struct contestant *race_enter(struct race *race, const char *name,
                              double (*run)(struct contestant *self), void *with)
{
        struct contestant *c;

        if (race->n >= MAX_CONTESTANTS) {
                errno = E2BIG;
                die(race->name);
        }
        c = &race->contestants[race->n++];
        c->name = name;
        c->run = run;
        c->with = with;
        return c;
}

static void expect(struct race *race, struct expectation expectation)
{
        if (race->n_expectations >= ARRAY_SIZE(race->expectations)) {
                errno = E2BIG;
                die(race->name);
        }
        expectation.budget.unit = "x";
        race->expectations[race->n_expectations++] = expectation;
}

void race_at_most(struct race *race, const char *what, const struct contestant *ours, double limit,
                  const struct contestant *theirs)
{
        expect(race, (struct expectation){ .budget = { .what = what, .limit = limit },
                                           .ours = ours,
                                           .theirs = theirs });
}

void race_at_least(struct race *race, const char *what, const struct contestant *ours, double limit,
                   const struct contestant *theirs)
{
        expect(race,
               (struct expectation){ .budget = { .what = what, .limit = limit, .at_least = true },
                                     .ours = ours,
                                     .theirs = theirs });
}

void race_tell(struct race *race, const char *what, const struct contestant *ours,
               const struct contestant *theirs)
{
        race->told = (struct expectation){ .budget.what = what, .ours = ours, .theirs = theirs };
}

/* ---- Running ---- */

static int compare_doubles(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

double median(double *values, size_t n)
{
        qsort(values, n, sizeof(*values), compare_doubles);
        return values[n / 2];
}

/* Another order in each round: what the kernel clears up after one contestant would otherwise be
 * always on the bill of the same other one. */
static void shuffle(size_t *order, size_t n)
{
        static unsigned state = 1;

        for (size_t i = 0; i < n; i++)
                order[i] = i;
        for (size_t i = n; i > 1; i--) {
                size_t other = (state = state * 1103515245 + 12345) / 65536 % i,
                       moved = order[i - 1];

                order[i - 1] = order[other];
                order[other] = moved;
        }
}

static void measure(struct race *race)
{
        const size_t warm_up = race->rounds >= 100 ? 10 : 1;
        size_t order[MAX_CONTESTANTS] = { 0 };

        for (size_t round = 0; round < race->rounds + warm_up; round++) {
                shuffle(order, race->n);
                for (size_t i = 0; i < race->n; i++) {
                        struct contestant *c = &race->contestants[order[i]];
                        double ms;

                        if (c->absent[0])
                                continue;
                        if (race->pause_us > 0)
                                usleep(race->pause_us);
                        ms = c->run(c);
                        if (round >= warm_up)
                                c->ms[round - warm_up] = ms;
                }
        }
        for (size_t i = 0; i < race->n; i++) {
                struct contestant *c = &race->contestants[i];

                c->p50 = median(c->ms, race->rounds);
                c->p10 = c->ms[race->rounds / 10];
                c->p90 = c->ms[race->rounds * 9 / 10];
        }
}

/* ---- Telling ---- */

static void print(const struct race *race)
{
        const struct contestant *bare = &race->contestants[0];

        printf("  %-34s %9s %9s %9s %9s%s\n", "", "p10 ms", "p50 ms", "p90 ms", "x first",
               race->calls ? "   calls/s" : "");
        for (size_t i = 0; i < race->n; i++) {
                const struct contestant *c = &race->contestants[i];

                if (c->absent[0]) {
                        printf("  %-34s not measured: %s\n", c->name, c->absent);
                        continue;
                }
                printf("  %-34s %9.2f %9.2f %9.2f %9.2f", c->name, c->p10, c->p50, c->p90,
                       bare->absent[0] ? 0 : c->p50 / bare->p50);
                if (race->calls)
                        printf(" %9.0f", (double)race->calls / c->p50 * 1e3);
                printf("\n");
        }
        if (race->told.ours)
                printf("  told    %s: %.2f\n", race->told.budget.what,
                       race->told.theirs->p50 / race->told.ours->p50);
}

static json_t *describe(const struct contestant *c)
{
        if (c->absent[0])
                return json_pack("{s:s, s:s}", "name", c->name, "absent", c->absent);
        return json_pack("{s:s, s:f, s:f, s:f}", "name", c->name, "p50_ms", c->p50, "p90_ms",
                         c->p90, "min_ms", c->ms[0]);
}

/* The last repetition: the first in which everything held, if there was one. */
static void write_down(const struct race *race)
{
        json_t *json = json_object(), *list = json_array();
        struct utsname uts;
        char path[PATH_MAX], at[32];
        time_t seconds = time(NULL);
        struct tm tm;

        uname(&uts);
        strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &tm));
        for (size_t i = 0; i < race->n; i++)
                json_array_append_new(list, describe(&race->contestants[i]));
        json_object_set_new(json, "race", json_string(race->name));
        json_object_set_new(json, "what", json_string(race->what));
        json_object_set_new(json, "at", json_string(at));
        json_object_set_new(json, "kernel", json_string(uts.release));
        json_object_set_new(json, "cpus", json_integer(get_nprocs()));
        json_object_set_new(json, "root", json_boolean(geteuid() == 0));
        json_object_set_new(json, "rounds", json_integer((json_int_t)race->rounds));
        json_object_set_new(json, "contestants", list);
        snprintf(path, sizeof(path), "%s/%s.json", options.results, race->name);
        if (json_dump_file(json, path, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) < 0)
                die(path);
        json_decref(json);
}

/* Returns whether all of it holds by now, or cannot be judged. */
static bool judge(struct race *race)
{
        bool good = true;

        for (size_t i = 0; i < race->n_expectations; i++) {
                struct expectation *e = &race->expectations[i];
                double ratio = e->budget.at_least ? e->theirs->p50 / e->ours->p50
                                                  : e->ours->p50 / e->theirs->p50;

                if (e->ours->absent[0] || e->theirs->absent[0])
                        continue;
                budget_try(&e->budget, ratio);
                good = good && budget_holds(&e->budget);
        }
        return good;
}

void race_run(struct race *race)
{
        bool good = false;

        race->ms = calloc(race->n * race->rounds, sizeof(*race->ms));
        if (!race->ms)
                die("allocate");
        for (size_t i = 0; i < race->n; i++) {
                struct contestant *c = &race->contestants[i];

                c->ms = race->ms + i * race->rounds;
                if (c->run == command_run && !c->absent[0])
                        command_try(c);
        }
        printf("\n%s: %s (%zu rounds, side by side)\n", race->name, race->what, race->rounds);
        for (int i = 0; i < MAX_TRIES && !good; i++) {
                if (i > 0)
                        printf("  over a budget: once more, as the machine may have been busy\n");
                measure(race);
                print(race);
                good = judge(race);
        }
        write_down(race);
        for (size_t i = 0; i < race->n_expectations; i++)
                budget_settle(&race->expectations[i].budget);
        free(race->ms);
}
