/* SPDX-License-Identifier: MIT */
/*
 * The audit log. A line is one write to a file that is open for appending: lines of several servers
 * that share a log do not mix. Where one could not be written whole, the next begins on a line of
 * its own.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "serve/record.h"

#define DENIALS_MAX 100 /* in one line */

static json_t *time_to_json(void)
{
        struct timespec now;
        struct tm parts;
        char text[48];
        size_t n;

        clock_gettime(CLOCK_REALTIME, &now);
        gmtime_r(&now.tv_sec, &parts);
        n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
        snprintf(text + n, sizeof(text) - n, ".%03ldZ", now.tv_nsec / (long)NSEC_PER_MSEC);
        return json_string(text);
}

static json_t *seconds_to_json(uint64_t nanoseconds)
{
        return json_real((double)nanoseconds / (double)NSEC_PER_SEC);
}

/* Text of a client need not be what JSON can hold. */
static json_t *text_to_json(const char *text)
{
        json_t *json = json_string(text);

        return json ? json : json_string("?");
}

static json_t *usage_to_json(const cbx_report *report)
{
        return json_pack("{s:o, s:o, s:o, s:I, s:I, s:I, s:I}", "run_seconds",
                         seconds_to_json(report->run_time), "cpu_user_seconds",
                         seconds_to_json(report->cpu_user), "cpu_system_seconds",
                         seconds_to_json(report->cpu_system), "memory_peak",
                         (json_int_t)report->memory_peak, "processes_peak",
                         (json_int_t)report->processes_peak, "bytes_in",
                         (json_int_t)report->bytes_in, "bytes_out", (json_int_t)report->bytes_out);
}

static json_t *denials_to_json(const cbx_report *report)
{
        const cbx_denial *const *denials = cbx_report_denials(report);
        json_t *list = json_array();

        for (size_t i = 0; denials && denials[i] && i < DENIALS_MAX; i++)
                (void)json_array_append_new(
                        list, json_pack("{s:s, s:o, s:s, s:I}", "kind", denials[i]->kind, "what",
                                        text_to_json(denials[i]->what), "errno", denials[i]->error,
                                        "count", (json_int_t)denials[i]->count));
        return list;
}

static int add_report(json_t *line, const cbx_report *report)
{
        int r = json_object_set_new(line, "reason", json_string(cbx_reason_name(report->reason)));

        if (report->reason == CBX_EXITED)
                r |= json_object_set_new(line, "code", json_integer(report->code));
        if (report->reason == CBX_SIGNALED)
                r |= json_object_set_new(line, "signal", json_integer(report->signal));
        r |= json_object_set_new(line, "usage", usage_to_json(report));
        r |= json_object_set_new(line, "denials", denials_to_json(report));
        return r;
}

static json_t *line_of(const struct serve_ended *ended)
{
        json_t *line = json_pack("{s:o, s:s, s:o, s:s, s:s, s:o, s:f}", "time", time_to_json(),
                                 "id", ended->id ? ended->id : "", "tool",
                                 text_to_json(ended->tool ? ended->tool : ""), "outcome",
                                 ended->outcome, "transport", ended->transport, "client",
                                 text_to_json(ended->client ? ended->client : ""), "seconds",
                                 ended->seconds);
        char hash[32];
        int r = line ? 0 : -1;

        if (r == 0 && ended->policy) {
                snprintf(hash, sizeof(hash), "%016llx",
                         (unsigned long long)cbx_policy_hash(ended->policy));
                r = json_object_set_new(line, "policy", json_string(hash));
        }
        if (r == 0 && ended->report)
                r = add_report(line, ended->report);
        else if (r == 0 && strcmp(ended->outcome, "cancelled") == 0) /* nobody waited for more */
                r = json_object_set_new(line, "reason", json_string("cancelled"));
        if (r == 0)
                return line;
        json_decref(line);
        return NULL;
}

void record_audit(struct record *record, const struct serve_ended *ended)
{
        _cleanup_json_ json_t *line = line_of(ended);
        _cleanup_free_ char *text = line ? json_write(line, 0) : NULL;
        _cleanup_buffer_ struct buffer out = BUFFER_INIT;
        ssize_t n;

        if (!text || buffer_printf(&out, "%s%s\n", record->torn ? "\n" : "", text) < 0) {
                record->lost++;
                return;
        }
        do
                n = write(record->log, out.data, out.length);
        while (n < 0 && errno == EINTR);
        if (n < (ssize_t)out.length)
                record->lost++;
        record->torn = n < 0 ? record->torn : n > 0 && n < (ssize_t)out.length;
}
