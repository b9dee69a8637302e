/* SPDX-License-Identifier: MIT */
/*
 * What is kept of calls that have ended: numbers for /metrics, and a line each in the audit log.
 *
 *   record.c         counting; beginning and end
 *   record_audit.c   the log: JSON, one line for each call, written by one write
 *   record_write.c   the numbers as text for Prometheus
 */
#ifndef SERVE_RECORD_H
#define SERVE_RECORD_H

#include "serve/serve.h"

#define RECORD_PAIRS_MAX 1024 /* of tool and outcome that are counted apart */

/* Upper bounds of the histogram, in seconds. */
#define RECORD_BUCKETS                                                                             \
        {                                                                                          \
                0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60     \
        }
#define RECORD_N_BUCKETS 15
#define RECORD_DENIAL_KINDS 6

struct record_pair {
        char *tool;
        const char *outcome;
        uint64_t count;
};

struct record {
        struct record_pair *pairs;
        size_t n_pairs;
        uint64_t buckets[RECORD_N_BUCKETS + 1]; /* the last: longer than all */
        uint64_t calls;
        double seconds, cpu;
        uint64_t denials[RECORD_DENIAL_KINDS];
        double started_at; /* of the process, since 1970 */
        char *file;        /* the log; NULL: none */
        int log;
        bool torn; /* the last line was not written whole */
        uint64_t lost;
};

extern const char *const record_denial_kinds[RECORD_DENIAL_KINDS];

/* `file` NULL: no log. */
int record_open(const char *file, struct record **ret_record, cbx_error *error);
struct record *record_close(struct record *record);

/* After the log was moved away: begin a new one. The old one is kept where that fails. */
int record_reopen(struct record *record, cbx_error *error);

/* Count a call and write its line: for the hook of the server. */
void record_ended(struct record *record, const struct serve_ended *call);

/* ---- Between the files ---- */

void record_audit(struct record *record, const struct serve_ended *ended);
int record_write(const struct record *record, struct buffer *text);

#endif
