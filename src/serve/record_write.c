/* SPDX-License-Identifier: MIT */
/* Numbers in the text format of Prometheus, 0.0.4. */
#include <stdio.h>
#include <string.h>

#include "serve/record.h"

static const double bounds[RECORD_N_BUCKETS] = RECORD_BUCKETS;

/* Names of tools are letters, digits and _-. alone: nothing in them needs to be escaped. */
static int write_pairs(const struct record *record, struct buffer *text)
{
        int r = buffer_printf(text, "# HELP callbox_calls_total Calls of tools that have ended.\n"
                                    "# TYPE callbox_calls_total counter\n");

        for (size_t i = 0; r == 0 && i < record->n_pairs; i++)
                r = buffer_printf(text, "callbox_calls_total{tool=\"%s\",outcome=\"%s\"} %llu\n",
                                  record->pairs[i].tool, record->pairs[i].outcome,
                                  (unsigned long long)record->pairs[i].count);
        return r;
}

static int write_histogram(const struct record *record, struct buffer *text)
{
        unsigned long long total = 0;
        int r = buffer_printf(text, "# HELP callbox_call_duration_seconds From the request to the "
                                    "answer.\n"
                                    "# TYPE callbox_call_duration_seconds histogram\n");

        for (size_t i = 0; r == 0 && i < RECORD_N_BUCKETS; i++) {
                total += record->buckets[i];
                r = buffer_printf(text, "callbox_call_duration_seconds_bucket{le=\"%g\"} %llu\n",
                                  bounds[i], total);
        }
        if (r == 0)
                r = buffer_printf(text,
                                  "callbox_call_duration_seconds_bucket{le=\"+Inf\"} %llu\n"
                                  "callbox_call_duration_seconds_sum %.9g\n"
                                  "callbox_call_duration_seconds_count %llu\n",
                                  (unsigned long long)record->calls, record->seconds,
                                  (unsigned long long)record->calls);
        return r;
}

static int write_denials(const struct record *record, struct buffer *text)
{
        int r = buffer_printf(text, "# HELP callbox_denials_total Operations that boxes refused.\n"
                                    "# TYPE callbox_denials_total counter\n");

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(record_denial_kinds); i++)
                r = buffer_printf(text, "callbox_denials_total{kind=\"%s\"} %llu\n",
                                  record_denial_kinds[i], (unsigned long long)record->denials[i]);
        return r;
}

int record_write(const struct record *record, struct buffer *text)
{
        int r = write_pairs(record, text);

        if (r == 0)
                r = write_histogram(record, text);
        if (r == 0)
                r = write_denials(record, text);
        if (r == 0)
                r = buffer_printf(text,
                                  "# HELP callbox_calls_cpu_seconds_total Processor time of "
                                  "calls.\n"
                                  "# TYPE callbox_calls_cpu_seconds_total counter\n"
                                  "callbox_calls_cpu_seconds_total %.9g\n"
                                  "# HELP callbox_audit_lost_total Lines that could not be "
                                  "written to the audit log.\n"
                                  "# TYPE callbox_audit_lost_total counter\n"
                                  "callbox_audit_lost_total %llu\n"
                                  "# HELP process_start_time_seconds When the server began, "
                                  "since 1970.\n"
                                  "# TYPE process_start_time_seconds gauge\n"
                                  "process_start_time_seconds %.3f\n",
                                  record->cpu, (unsigned long long)record->lost,
                                  record->started_at);
        return r;
}
