/* SPDX-License-Identifier: MIT */
#include "load.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stream.h"

#define FLOOD_LIMIT (64U << 10)
#define HOG_LIMIT (48U << 20)
#define INPUT_MAX (400U << 10)

const char *const load_kind_names[LOAD_KINDS_] = {
        "exit",   "echo", "events", "timeout", "flood", "crash", "memory", "leave",
        "cancel", "race", "drop",   "missing", "cpu",   "pids",  "nap",
};

/* In parts of a thousand. Those that cost whole milliseconds of a processor are rare. */
static const unsigned mix[LOAD_KINDS_] = {
        [LOAD_EXIT] = 470,  [LOAD_ECHO] = 60,  [LOAD_EVENTS] = 60, [LOAD_TIMEOUT] = 60,
        [LOAD_FLOOD] = 50,  [LOAD_CRASH] = 60, [LOAD_MEMORY] = 15, [LOAD_LEAVE] = 60,
        [LOAD_CANCEL] = 65, [LOAD_RACE] = 40,  [LOAD_DROP] = 40,   [LOAD_MISSING] = 15,
        [LOAD_CPU] = 2,     [LOAD_PIDS] = 3,
};

/* ---- Chance and time ---- */

unsigned load_random(struct load *load, unsigned below)
{
        load->random = load->random * 6364136223846793005ULL + 1442695040888963407ULL;
        return (unsigned)((load->random >> 33) % below);
}

unsigned long long load_now(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (unsigned long long)now.tv_sec * 1000 + (unsigned long long)now.tv_nsec / 1000000;
}

enum load_kind load_choose(struct load *load)
{
        unsigned at = load_random(load, 1000);

        for (unsigned kind = 0; kind < LOAD_KINDS_; kind++) {
                if (at < mix[kind])
                        return (enum load_kind)kind;
                at -= mix[kind];
        }
        return LOAD_EXIT;
}

/* ---- Policies ---- */

int load_open(struct load *load, const char *worker, unsigned seed, cbx_error *error)
{
        static const char *const more[LOAD_POLICIES] = {
                "",
                ",\"limits\":{\"memory\":\"96M\",\"processes\":16,\"open_files\":64}",
                ",\"network\":\"loopback\"",
                ",\"environment\":{\"set\":{\"SOAK\":\"1\"}},\"limits\":{\"tmp_size\":\"1M\"}",
        };
        int r = 0;

        *load = (struct load){ .worker = worker, .random = seed };
        for (int i = 0; r == 0 && i < LOAD_POLICIES; i++) {
                char text[4600];

                snprintf(text, sizeof(text), "{\"files\":{\"read\":[\"%s\"]}%s}", worker, more[i]);
                r = cbx_policy_parse(text, strlen(text), &load->policies[i], error);
        }
        return r;
}

void load_close(struct load *load)
{
        for (int i = 0; i < LOAD_POLICIES; i++)
                load->policies[i] = cbx_policy_unref(load->policies[i]);
}

/* ---- Starting ---- */

/* The words of the worker, and what is to come of them. */
struct words {
        const char *argv[8];
        char room[4][24];
};

static const char *number(struct words *words, int slot, unsigned long value)
{
        snprintf(words->room[slot], sizeof(words->room[slot]), "%lu", value);
        return words->room[slot];
}

static void say_exit(struct load *load, struct load_call *call, struct words *words)
{
        /* Mostly short; sometimes more than is captured. */
        call->out = load_random(load, 8) ? load_random(load, 2000) : load_random(load, 200000);
        call->err = load_random(load, 3) ? 0 : load_random(load, 5000);
        call->code = (int)load_random(load, 256);
        words->argv[1] = "exit";
        words->argv[2] = number(words, 0, (unsigned long)call->code);
        words->argv[3] = number(words, 1, call->out);
        words->argv[4] = number(words, 2, call->err);
        words->argv[5] = number(words, 3, call->seed);
}

static bool fill_input(struct load *load, struct load_call *call, cbx_spec *spec)
{
        call->out = load_random(load, INPUT_MAX);
        call->input = malloc(call->out + 1);
        if (!call->input)
                return false;
        for (size_t i = 0; i < call->out; i++)
                call->input[i] = stream_byte(call->seed, i);
        spec->input = call->input;
        spec->input_length = call->out;
        return true;
}

static bool describe(struct load *load, struct load_call *call, struct words *words, cbx_spec *spec)
{
        unsigned long long soon = call->began + load_random(load, 25);

        switch (call->kind) {
        case LOAD_EXIT:
                say_exit(load, call, words);
                break;
        case LOAD_ECHO:
                words->argv[1] = "echo";
                return fill_input(load, call, spec);
        case LOAD_EVENTS:
                say_exit(load, call, words);
                spec->output_mode = CBX_EVENTS;
                spec->errors_mode = load_random(load, 2) ? CBX_EVENTS : CBX_CAPTURE;
                break;
        case LOAD_TIMEOUT:
                words->argv[1] = load_random(load, 8) ? "sleep" : "spin";
                spec->wall_limit = 0.01 + load_random(load, 60) / 1000.0;
                break;
        case LOAD_FLOOD:
                words->argv[1] = "flood";
                spec->output_limit = FLOOD_LIMIT;
                break;
        case LOAD_CRASH:
                call->signal = load_random(load, 2) ? SIGSEGV : SIGABRT;
                words->argv[1] = call->signal == SIGSEGV ? "crash" : "abort";
                break;
        case LOAD_MEMORY:
                words->argv[1] = "hog";
                spec->memory_limit = HOG_LIMIT;
                break;
        case LOAD_LEAVE:
                call->code = (int)load_random(load, 256);
                words->argv[1] = "leave";
                words->argv[2] = number(words, 0, (unsigned long)call->code);
                break;
        case LOAD_CANCEL:
                words->argv[1] = "sleep";
                call->act_at = soon;
                break;
        case LOAD_DROP:
                words->argv[1] = load_random(load, 2) ? "sleep" : "flood";
                call->act_at = soon;
                break;
        case LOAD_RACE:
                say_exit(load, call, words);
                call->act_at = soon;
                break;
        case LOAD_MISSING:
                words->argv[0] = "/nowhere/at/all";
                break;
        case LOAD_CPU:
                words->argv[1] = "spin";
                spec->cpu_limit = 0.05;
                break;
        case LOAD_PIDS:
                words->argv[1] = "fork";
                spec->process_limit = 8;
                break;
        default:
                words->argv[1] = "nap";
                words->argv[2] = number(words, 0, load_random(load, 60));
        }
        return true;
}

int load_start(struct load *load, cbx_warden *warden, enum load_kind kind, struct load_call *call,
               cbx_error *error)
{
        struct words words = { .argv = { load->worker } };
        cbx_spec spec = CBX_SPEC_INIT;
        int r;

        *call = (struct load_call){ .kind = kind,
                                    .seed = load_random(load, 1U << 30),
                                    .began = load_now() };
        snprintf(call->id, sizeof(call->id), "call-%lu", load->number++);
        spec.id = call->id;
        spec.argv = words.argv;
        if (!describe(load, call, &words, &spec))
                return -ENOMEM;
        r = cbx_start(warden, load->policies[load_random(load, LOAD_POLICIES)], &spec, &call->call,
                      error);
        /* Also before it can have started. */
        if (r == 0 && kind == LOAD_CANCEL && load_random(load, 4) == 0) {
                cbx_kill(call->call);
                call->act_at = 0;
        }
        return r;
}

/* ---- On the way ---- */

/* Take one event, and be slow about it now and then. */
static int take_event(struct load_call *call, unsigned long long now, char *why, size_t size)
{
        cbx_event event = CBX_EVENT_INIT;
        cbx_error error = CBX_ERROR_INIT;
        int stream;

        if (cbx_step(call->call, &event, &error) < 0) {
                snprintf(why, size, "cbx_step: %s", error.text);
                return -1;
        }
        if (event.kind == CBX_EVENT_NONE || event.kind == CBX_EVENT_ENDED)
                return event.kind == CBX_EVENT_ENDED;
        stream = event.kind == CBX_EVENT_ERRORS;
        for (size_t i = 0; i < event.length; i++)
                if (event.data[i] !=
                    stream_byte(call->seed + (unsigned)stream, call->taken[stream] + i)) {
                        snprintf(why, size, "byte %zu of an event on stream %d is wrong",
                                 call->taken[stream] + i, stream);
                        return -1;
                }
        call->taken[stream] += event.length;
        call->look_at = now + (call->seed + call->taken[stream]) % 4;
        return 0;
}

int load_step(struct load_call *call, char *why, size_t size)
{
        unsigned long long now = load_now();

        if (call->act_at && now >= call->act_at) {
                call->act_at = 0;
                if (call->kind == LOAD_DROP) {
                        call->call = cbx_call_free(call->call);
                        return 1;
                }
                for (int i = 0; i < 2; i++) /* it may be said twice */
                        if (cbx_kill(call->call) < 0) {
                                snprintf(why, size, "cbx_kill failed");
                                return -1;
                        }
        }
        return now < call->look_at ? 0 : take_event(call, now, why, size);
}

/* ---- The report ---- */

static bool output_is(const cbx_output *output, unsigned seed, size_t length)
{
        if (output->total != length || output->length + output->omitted != length ||
            output->head > output->length || output->data[output->length] != '\0')
                return false;
        for (size_t i = 0; i < output->length; i++) {
                size_t at = i < output->head ? i : i + (size_t)output->omitted;

                if (output->data[i] != stream_byte(seed, at))
                        return false;
        }
        return true;
}

static bool ended_with(const cbx_report *report, int reason, int code, int signal)
{
        return report->reason == reason && report->code == code && report->signal == signal;
}

static bool is_right(const struct load_call *call, const cbx_report *report)
{
        switch (call->kind) {
        case LOAD_RACE:
                if (ended_with(report, CBX_CANCELLED, -1, 0))
                        return true;
                /* fall through */
        case LOAD_EXIT:
                return ended_with(report, CBX_EXITED, call->code, 0) &&
                       output_is(&report->output, call->seed, call->out) &&
                       output_is(&report->errors, call->seed + 1, call->err);
        case LOAD_EVENTS:
                return ended_with(report, CBX_EXITED, call->code, 0) &&
                       output_is(&report->output, call->seed, call->out) &&
                       output_is(&report->errors, call->seed + 1, call->err) &&
                       call->taken[0] == call->out;
        case LOAD_ECHO:
                return ended_with(report, CBX_EXITED, 0, 0) && report->bytes_in == call->out &&
                       output_is(&report->output, call->seed, call->out);
        case LOAD_TIMEOUT:
                return ended_with(report, CBX_TIMEOUT, -1, 0);
        case LOAD_FLOOD:
                return ended_with(report, CBX_OUTPUT, -1, 0) &&
                       output_is(&report->output, 0, FLOOD_LIMIT);
        case LOAD_CRASH:
                return ended_with(report, CBX_SIGNALED, -1, call->signal);
        case LOAD_MEMORY:
                return ended_with(report, CBX_MEMORY, -1, 0);
        case LOAD_LEAVE:
                return ended_with(report, CBX_EXITED, call->code, 0) &&
                       strcmp(report->output.data, "left\n") == 0;
        case LOAD_CANCEL:
        case LOAD_DROP:
                return ended_with(report, CBX_CANCELLED, -1, 0);
        case LOAD_MISSING:
                return ended_with(report, CBX_SETUP, -1, 0) &&
                       strcmp(report->error->where, "program") == 0;
        case LOAD_CPU:
                return ended_with(report, CBX_CPU, -1, 0);
        case LOAD_PIDS:
                return ended_with(report, CBX_PIDS, -1, 0);
        default:
                return ended_with(report, CBX_EXITED, 0, 0);
        }
}

static void explain(const struct load_call *call, const cbx_report *report, char *why, size_t size)
{
        snprintf(why, size,
                 "%s, kind %s, seed %u (code %d, signal %d, %zu and %zu bytes, %zu of events): "
                 "%s, code %d, signal %d, %llu and %llu bytes, %llu omitted; %s; %s %s",
                 call->id, load_kind_names[call->kind], call->seed, call->code, call->signal,
                 call->out, call->err, call->taken[0], cbx_reason_name(report->reason),
                 report->code, report->signal, (unsigned long long)report->output.total,
                 (unsigned long long)report->errors.total,
                 (unsigned long long)report->output.omitted, report->text,
                 report->error ? report->error->where : "",
                 report->error ? report->error->text : "");
}

/* A warden in need may lose output, but not without saying so. */
static bool tells_of_loss(const cbx_report *report)
{
        const char *const *warning = cbx_report_warnings(report);

        for (; warning && *warning; warning++)
                if (strstr(*warning, "output"))
                        return true;
        return false;
}

bool load_finish(struct load_call *call, unsigned excused, bool *ret_excused, char *why,
                 size_t size)
{
        cbx_report report = CBX_REPORT_INIT;
        cbx_error error = CBX_ERROR_INIT;
        bool right = true, excuse = false;
        int r;

        if (call->call) {
                r = cbx_wait(call->call, &report, &error);
                if (r < 0) {
                        snprintf(why, size, "cbx_wait: %s", error.text);
                        right = false;
                } else if (cbx_wait(call->call, &(cbx_report)CBX_REPORT_INIT, NULL) != -EALREADY) {
                        snprintf(why, size, "%s: there is a second report", call->id);
                        right = false;
                } else if (!report.id || strcmp(report.id, call->id) != 0 || !report.text) {
                        snprintf(why, size, "%s: the report is of %s", call->id, report.id);
                        right = false;
                } else if (!is_right(call, &report)) {
                        excuse = (excused & (1U << report.reason)) ||
                                 (excused && tells_of_loss(&report));
                        right = excuse;
                        explain(call, &report, why, size);
                }
                if (right && (report.error != NULL) != (report.reason == CBX_SETUP ||
                                                        report.reason == CBX_INTERNAL)) {
                        snprintf(why, size, "%s: reason %s, but %s", call->id,
                                 cbx_reason_name(report.reason),
                                 report.error ? report.error->text : "no error");
                        right = false;
                }
        }
        if (ret_excused)
                *ret_excused = excuse;
        cbx_report_free(&report);
        call->call = cbx_call_free(call->call);
        free(call->input);
        call->input = NULL;
        return right;
}
