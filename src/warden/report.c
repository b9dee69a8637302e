/* SPDX-License-Identifier: MIT */
/* What came of a call: filled from the page, told in words, in JSON and as an exit code. */
#include "warden/report.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "warden/denials.h"

static const char *const reason_names[REASON_MAX_] = {
        [REASON_EXITED] = "exited",       [REASON_SIGNALED] = "signaled",
        [REASON_TIMEOUT] = "timeout",     [REASON_CPU] = "cpu",
        [REASON_MEMORY] = "memory",       [REASON_PIDS] = "pids",
        [REASON_OUTPUT] = "output",       [REASON_DENIED] = "denied",
        [REASON_CANCELLED] = "cancelled", [REASON_SETUP] = "setup",
        [REASON_INTERNAL] = "internal",
};

const char *reason_str(enum reason reason)
{
        return reason_names[reason];
}

void report_free(struct report *report)
{
        free(report->id);
        for (int i = 0; i < STREAMS; i++)
                output_free(&report->output[i]);
        json_decref(report->denials);
        json_decref(report->tool);
        json_decref(report->promised);
        free(report->parts);
        cbx_policy_unref(report->policy);
        for (size_t i = 0; i < report->n_warnings; i++)
                free(report->warnings[i]);
        free(report->warnings);
        *report = (struct report)REPORT_INIT;
}

int report_warn(struct report *report, const char *format, ...)
{
        char **warnings = reallocarray(report->warnings, report->n_warnings + 2, sizeof(char *));
        va_list args;
        int r;

        if (!warnings)
                return -ENOMEM;
        report->warnings = warnings;
        va_start(args, format);
        r = vasprintf(&warnings[report->n_warnings], format, args);
        va_end(args);
        if (r < 0) {
                warnings[report->n_warnings] = NULL;
                return -ENOMEM;
        }
        warnings[++report->n_warnings] = NULL;
        return 0;
}

/* ---- From the page ---- */

int report_take_page(struct report *report, const struct plan *plan, const struct box_page *page)
{
        uint64_t started = atomic_load(&page->started);
        const struct rusage *usage = &page->usage;

        report->run_time = started && page->ended > started ? page->ended - started : 0;
        report->cpu_user = (uint64_t)usage->ru_utime.tv_sec * NSEC_PER_SEC +
                           (uint64_t)usage->ru_utime.tv_usec * 1000;
        report->cpu_system = (uint64_t)usage->ru_stime.tv_sec * NSEC_PER_SEC +
                             (uint64_t)usage->ru_stime.tv_usec * 1000;
        /* Killed before it could add up: what it saw last is better than nothing. */
        if (report->cpu_user + report->cpu_system < page->cpu)
                report->cpu_user = page->cpu - report->cpu_system;
        report->memory_peak = MAX(page->memory_peak, (uint64_t)usage->ru_maxrss * KIB);
        report->processes_peak = MAX(page->processes_peak, started ? 1U : 0U);
        report->denials = denials_of(plan, page);
        if (page->denials_lost)
                report_warn(report, "%llu more refused calls of further kinds are not listed",
                            (unsigned long long)page->denials_lost);
        if (page->traces_lost)
                report_warn(report, "%llu more refused paths and addresses are not listed",
                            (unsigned long long)page->traces_lost);
        return report->denials ? 0 : -ENOMEM;
}

/* ---- Words, exit code, JSON ---- */

static const char *size_text(uint64_t bytes, char *room, size_t size)
{
        if (bytes >= GIB && bytes % GIB == 0)
                snprintf(room, size, "%llu GiB", (unsigned long long)(bytes / GIB));
        else if (bytes >= MIB && bytes % MIB == 0)
                snprintf(room, size, "%llu MiB", (unsigned long long)(bytes / MIB));
        else
                snprintf(room, size, "%llu bytes", (unsigned long long)bytes);
        return room;
}

static const char *signal_name(int signal, char room[24])
{
        const char *name = sigabbrev_np(signal);

        if (name)
                snprintf(room, 24, "SIG%s", name);
        else if (signal >= SIGRTMIN && signal <= SIGRTMAX)
                snprintf(room, 24, "SIGRTMIN+%d", signal - SIGRTMIN);
        else
                snprintf(room, 24, "SIG%d", signal);
        return room;
}

/* What the reader would change: an option of the command, or a key of the policy. */
static const char *knob(const struct report *report, const char *option, const char *key)
{
        return report->of_command ? option : key;
}

static bool has_denial(const struct report *report, const char *kind, const char *what)
{
        size_t i;
        json_t *denial;

        json_array_foreach(report->denials, i,
                           denial) if (strcmp(json_string_value(json_object_get(denial, "kind")),
                                              kind) == 0 &&
                                       strcmp(json_string_value(json_object_get(denial, "what")),
                                              what) == 0) return true;
        return false;
}

void report_text(const struct report *report, char *ret, size_t room)
{
        const struct policy_limits *limits = &report->limits;
        const char *denied =
                json_string_value(json_object_get(json_array_get(report->denials, 0), "what"));
        char text[24], size[32];

        switch (report->reason) {
        case REASON_EXITED:
                snprintf(ret, room, "the program exited with code %d", report->code);
                break;
        case REASON_SIGNALED:
                snprintf(ret, room, "the program was killed by %s",
                         signal_name(report->signal, text));
                if (report->signal == SIGXFSZ && limits->file_size)
                        snprintf(ret + strlen(ret), room - strlen(ret),
                                 ", as when it makes a file larger than it may (%s)",
                                 knob(report, "--file-size", "limits.file_size"));
                break;
        case REASON_TIMEOUT:
                snprintf(ret, room, "the program ran longer than %g s and was ended (%s)",
                         limits->wall, knob(report, "--timeout", "limits.wall"));
                break;
        case REASON_CPU:
                snprintf(ret, room,
                         "the program used more than %g s of processor time and was ended (%s)",
                         limits->cpu, knob(report, "--cpu", "limits.cpu"));
                break;
        case REASON_MEMORY:
                if (has_denial(report, "space", "pipes"))
                        snprintf(ret, room,
                                 "the program took so many pipes that its user was short of them, "
                                 "and was ended");
                else
                        snprintf(ret, room,
                                 "the program used more than %s of memory and was ended (%s)",
                                 size_text(limits->memory, size, sizeof(size)),
                                 knob(report, "--memory", "limits.memory"));
                break;
        case REASON_PIDS:
                snprintf(ret, room,
                         "the program had more than %llu processes and threads and was ended (%s)",
                         (unsigned long long)limits->processes,
                         knob(report, "--processes", "limits.processes"));
                break;
        case REASON_OUTPUT:
                snprintf(ret, room, "the program wrote more than %s and was ended (%s)",
                         size_text(limits->output, size, sizeof(size)),
                         knob(report, "--output", "limits.output"));
                break;
        case REASON_DENIED:
                snprintf(ret, room,
                         "the program was ended at its first refused system call%s%s (%s)",
                         denied ? ", " : "", denied ? denied : "",
                         knob(report, "--on-denied kill", "syscalls.on_denied"));
                break;
        case REASON_CANCELLED:
                snprintf(ret, room, "the call was cancelled");
                break;
        case REASON_SETUP:
        case REASON_INTERNAL:
        case REASON_MAX_:
                snprintf(ret, room, "%s", report->error.text);
                break;
        }
}

int report_exit_code(const struct report *report)
{
        switch (report->reason) {
        case REASON_EXITED:
                return report->code == 0 && report->output_lost ? 125 : report->code;
        case REASON_SIGNALED:
                return 128 + report->signal;
        case REASON_TIMEOUT:
        case REASON_CPU:
                return 124;
        case REASON_SETUP:
                return report->not_found ? 127 : report->not_executable ? 126 : 125;
        case REASON_INTERNAL:
                return 125;
        default:
                return 128 + SIGKILL;
        }
}

/* Milliseconds, to the microsecond. */
static double milliseconds(uint64_t nanoseconds)
{
        uint64_t microseconds = nanoseconds / 1000;

        return (double)microseconds / 1000;
}

static json_t *usage_to_json(const struct report *report)
{
        uint64_t bytes_out = report->output[0].total + report->output[1].total;

        return json_pack("{s:f, s:f, s:I, s:I, s:I, s:I}", "cpu_user_ms",
                         milliseconds(report->cpu_user), "cpu_system_ms",
                         milliseconds(report->cpu_system), "memory_peak",
                         (json_int_t)report->memory_peak, "processes_peak",
                         (json_int_t)report->processes_peak, "bytes_in",
                         (json_int_t)report->bytes_in, "bytes_out", (json_int_t)bytes_out);
}

static json_t *strings_to_json(char *const *strings, size_t n)
{
        json_t *array = json_array();

        for (size_t i = 0; array && i < n; i++)
                json_array_append_new(array, json_string(strings[i]));
        return array;
}

static json_t *started_at_to_json(const struct report *report)
{
        char text[64], whole[32];
        struct tm tm;

        gmtime_r(&report->started_at.tv_sec, &tm);
        strftime(whole, sizeof(whole), "%Y-%m-%dT%H:%M:%S", &tm);
        snprintf(text, sizeof(text), "%s.%03ldZ", whole, report->started_at.tv_nsec / 1000000);
        return json_string(text);
}

static json_t *array_or_empty(json_t *array)
{
        return array ? json_incref(array) : json_array();
}

json_t *report_guarantees(const struct report *report)
{
        if (report->promised)
                return json_incref(report->promised);
        return report->policy ? guarantees_to_json(report->policy, report_basis(report))
                              : json_array();
}

json_t *report_to_json(const struct report *report)
{
        char text[512], signal[24];
        json_t *json = json_object();

        report_text(report, text, sizeof(text));
        if (report->id)
                json_object_set_new(json, "id", json_string(report->id));
        json_object_set_new(json, "reason", json_string(reason_str(report->reason)));
        json_object_set_new(json, "code",
                            report->reason == REASON_EXITED ? json_integer(report->code)
                                                            : json_null());
        json_object_set_new(json, "signal",
                            report->reason == REASON_SIGNALED
                                    ? json_string(signal_name(report->signal, signal))
                                    : json_null());
        json_object_set_new(json, "text", json_string(text));
        if (report->tool)
                json_object_set(json, "tool", report->tool);
        if (report->error.code != 0)
                json_object_set_new(json, "error",
                                    json_pack("{s:s, s:s, s:s}", "where", report->error.where,
                                              "text", report->error.text, "hint",
                                              report->error.hint));
        json_object_set_new(json, "started_at", started_at_to_json(report));
        json_object_set_new(json, "time",
                            json_pack("{s:f, s:f}", "setup_ms", milliseconds(report->setup_time),
                                      "run_ms", milliseconds(report->run_time)));
        json_object_set_new(json, "usage", usage_to_json(report));
        if (report->captured) {
                json_object_set_new(json, "stdout", output_to_json(&report->output[0]));
                json_object_set_new(json, "stderr", output_to_json(&report->output[1]));
        }
        /* Of a tool that did well all of it is under "tool"; else what there is can be read. Who
         * wants it raw has it elsewhere. */
        if (report->has_result && !report->raw &&
            !json_is_true(json_object_get(report->tool, "ok")))
                json_object_set_new(json, "result", output_to_json(&report->output[STREAM_RESULT]));
        json_object_set_new(json, "denials", array_or_empty(report->denials));
        json_object_set_new(json, "guarantees", report_guarantees(report));
        json_object_set_new(json, "warnings",
                            strings_to_json(report->warnings, report->n_warnings));
        return json;
}
