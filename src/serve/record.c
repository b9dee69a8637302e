/* SPDX-License-Identifier: MIT */
#include "serve/record.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "policy/outputs.h"

const char *const record_denial_kinds[RECORD_DENIAL_KINDS] = { "syscall", "file", "space",
                                                               "connect", "bind", "protected" };

static const double bounds[RECORD_N_BUCKETS] = RECORD_BUCKETS;

/* ---- Counting ---- */

/* A tool that does not exist has no name here: clients could make up as many as they like. */
static void count_pair(struct record *record, const char *tool, const char *outcome)
{
        struct record_pair *pairs;

        if (record->n_pairs >= RECORD_PAIRS_MAX - 8)
                tool = "";
        for (size_t i = 0; i < record->n_pairs; i++)
                if (strcmp(record->pairs[i].outcome, outcome) == 0 &&
                    strcmp(record->pairs[i].tool, tool) == 0) {
                        record->pairs[i].count++;
                        return;
                }
        if (record->n_pairs == RECORD_PAIRS_MAX)
                return;
        pairs = reallocarray(record->pairs, record->n_pairs + 1, sizeof(*pairs));
        if (!pairs)
                return;
        record->pairs = pairs;
        pairs[record->n_pairs] =
                (struct record_pair){ .tool = strdup(tool), .outcome = outcome, .count = 1 };
        if (pairs[record->n_pairs].tool)
                record->n_pairs++;
}

static void count_denials(struct record *record, const cbx_report *report)
{
        const cbx_denial *const *denials = cbx_report_denials(report);

        for (; denials && *denials; denials++)
                for (size_t i = 0; i < ARRAY_SIZE(record_denial_kinds); i++)
                        if (strcmp((*denials)->kind, record_denial_kinds[i]) == 0)
                                record->denials[i] += (*denials)->count;
}

void record_ended(struct record *record, const struct serve_ended *call)
{
        size_t bucket = 0;

        count_pair(record, call->policy ? call->tool : "", call->outcome);
        while (bucket < RECORD_N_BUCKETS && call->seconds > bounds[bucket])
                bucket++;
        record->buckets[bucket]++;
        record->calls++;
        record->seconds += call->seconds;
        if (call->report) {
                record->cpu += (double)(call->report->cpu_user + call->report->cpu_system) /
                               (double)NSEC_PER_SEC;
                count_denials(record, call->report);
        }
        if (record->log >= 0)
                record_audit(record, call);
}

/* ---- Beginning and end ---- */

static int open_log(const char *file, cbx_error *error)
{
        return outputs_open(file, O_APPEND | O_NONBLOCK, 0600, "--audit", error);
}

int record_open(const char *file, struct record **ret_record, cbx_error *error)
{
        struct record *record = calloc(1, sizeof(*record));
        struct timespec now;

        if (!record)
                return error_oom(error);
        record->log = -1;
        clock_gettime(CLOCK_REALTIME, &now);
        record->started_at = (double)now.tv_sec + (double)now.tv_nsec / (double)NSEC_PER_SEC;
        if (file) {
                record->file = strdup(file);
                record->log = record->file ? open_log(file, error) : error_oom(error);
                if (record->log < 0) {
                        int r = record->log;

                        record_close(record);
                        return r;
                }
        }
        *ret_record = record;
        return 0;
}

int record_reopen(struct record *record, cbx_error *error)
{
        int fd = record->file ? open_log(record->file, error) : -1;

        if (!record->file)
                return 0;
        if (fd < 0)
                return fd;
        base_close(record->log);
        record->log = fd;
        record->torn = false;
        return 0;
}

struct record *record_close(struct record *record)
{
        if (!record)
                return NULL;
        for (size_t i = 0; i < record->n_pairs; i++)
                free(record->pairs[i].tool);
        free(record->pairs);
        free(record->file);
        base_close(record->log);
        free(record);
        return NULL;
}
