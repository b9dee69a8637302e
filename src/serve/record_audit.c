/* SPDX-License-Identifier: MIT */
/*
 * The audit log. A line is one write to a file that is open for appending: lines of several servers
 * that share a log do not mix. Where one could not be written whole, the next begins on a line of
 * its own.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "serve/keep.h"
#include "serve/record.h"
#include "tool/tool.h"

#define TEXT_MAX 513 /* of one text */

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

/* Text of a client need not be what JSON can hold, and has no end. */
static json_t *text_to_json(const char *text)
{
        char shown[TEXT_MAX];
        json_t *json;

        if (!text)
                return json_null();
        snprintf(shown, sizeof(shown), "%s", text);
        text_make_showable(shown);
        json = json_string(shown);
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

        for (size_t i = 0; denials && denials[i]; i++)
                (void)json_array_append_new(
                        list, json_pack("{s:s, s:o, s:s, s:I}", "kind", denials[i]->kind, "what",
                                        text_to_json(denials[i]->what), "errno", denials[i]->error,
                                        "count", (json_int_t)denials[i]->count));
        return list;
}

/* A hash that an operator can compare: where long output is kept is another place at each start,
 * and is no setting. */
static json_t *policy_to_hash(const cbx_policy *policy)
{
        char text[32];

        if (!policy)
                return json_null();
        snprintf(text, sizeof(text), "%016llx",
                 (unsigned long long)policy_hash_without(policy, keep_is_shown));
        return json_string(text);
}

/* Where nothing was run, or nothing came back, there is a reason as well. */
static json_t *reason_to_json(const struct serve_ended *ended)
{
        static const struct {
                const char *outcome, *reason;
        } reasons[] = { { "cancelled", "cancelled" },
                        { "refused", "setup" },
                        { "declined", "setup" },
                        { "error", "internal" } };

        if (ended->report)
                return json_string(cbx_reason_name(ended->report->reason));
        for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
                if (strcmp(reasons[i].outcome, ended->outcome) == 0)
                        return json_string(reasons[i].reason);
        return json_null(); /* it has not ended: it asks */
}

/* Why nothing was run. What is wrong with arguments is not told: it may quote them. */
static json_t *error_to_json(const struct serve_ended *ended)
{
        const cbx_report *report = ended->report;
        const cbx_mistake *const *mistakes = report ? cbx_report_mistakes(report) : NULL;

        if (mistakes && *mistakes && report->reason == CBX_SETUP)
                return json_string(TOOL_BAD_ARGUMENTS);
        if (report && report->error && report->error->text[0])
                return text_to_json(report->error->text);
        return ended->why ? text_to_json(ended->why) : json_null();
}

/* Where it went, and why; null where nobody has said anything and it went to a box. */
static json_t *route_to_json(const cbx_report *report)
{
        const cbx_result *result = report ? cbx_report_result(report) : NULL;

        if (!result || !result->route)
                return json_null();
        return json_pack("{s:s, s:s}", "to", result->route, "reason", result->route_reason);
}

/* What came of the call: every key is there, whether there is something to say or not. */
static int add_end(json_t *line, const struct serve_ended *ended)
{
        const cbx_report *report = ended->report;
        bool ran = report && report->reason != CBX_SETUP && report->reason != CBX_INTERNAL;
        int r = json_object_set_new(line, "reason", reason_to_json(ended));

        r |= json_object_set_new(line, "code",
                                 ran && report->reason == CBX_EXITED ? json_integer(report->code)
                                                                     : json_null());
        r |= json_object_set_new(line, "signal",
                                 ran && report->reason == CBX_SIGNALED
                                         ? json_integer(report->signal)
                                         : json_null());
        r |= json_object_set_new(line, "route", route_to_json(report));
        r |= json_object_set_new(line, "error", error_to_json(ended));
        r |= json_object_set_new(line, "usage", ran ? usage_to_json(report) : json_null());
        r |= json_object_set_new(line, "denials", report ? denials_to_json(report) : json_array());
        return r;
}

static json_t *line_of(const struct serve_ended *ended)
{
        json_t *line = json_pack("{s:o, s:s, s:o, s:o, s:s, s:s, s:o, s:f}", "time", time_to_json(),
                                 "id", ended->id, "tool", text_to_json(ended->tool), "policy",
                                 policy_to_hash(ended->policy), "outcome", ended->outcome,
                                 "transport", ended->transport, "client",
                                 text_to_json(ended->client), "seconds", ended->seconds);

        if (line && add_end(line, ended) == 0)
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
