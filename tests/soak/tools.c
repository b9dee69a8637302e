/* SPDX-License-Identifier: MIT */
/*
 * Many calls over twenty tools, 64 at once, from one poll loop: results, failures, crashes, limits,
 * floods, cancels, bad arguments and unknown names. Every result is compared with what was to come
 * of its call; what agent and warden hold must not grow.
 *
 *     tools CALLS [SEED]
 *
 * Ten of the tools are functions of this program, ten are commands. Ends with 0 when everything was
 * right. Figures and faults go to stdout.
 */
#include <callbox.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

#define AT_ONCE 64
#define SILENCE_MS 60000
#define FAULTS_SHOWN 20
#define SLACK_KIB 4096
#define SLACK_CLIENT_KIB 64
#define SLACK_DESCRIPTORS 12
#define SLACK_BOXES 256

/* ---- The functions: a{"n": N, "s": "..."} each ---- */

static long number_of(const char *arguments)
{
        const char *at = strstr(arguments, "\"n\":");

        return at ? strtol(at + 4, NULL, 10) : -1;
}

static int say_number(cbx_reply *reply, long number)
{
        char text[32];

        snprintf(text, sizeof(text), "%ld", number);
        return cbx_reply_result(reply, text, strlen(text));
}

static int give_back(const char *arguments, size_t length, cbx_reply *reply)
{
        return cbx_reply_result(reply, arguments, length);
}

static int square(const char *arguments, size_t length, cbx_reply *reply)
{
        long number = number_of(arguments);

        (void)length;
        printf("squaring %ld\n", number);
        return say_number(reply, number * number);
}

static int report_on(const char *arguments, size_t length, cbx_reply *reply)
{
        (void)length;
        for (int i = 1; i <= 5; i++) {
                cbx_reply_progress(reply, i, 5, "step");
                cbx_reply_log(reply, "info", "line");
        }
        cbx_reply_text(reply, "five steps");
        return say_number(reply, number_of(arguments));
}

static int long_text(const char *arguments, size_t length, cbx_reply *reply)
{
        size_t bytes = 1000 + 1000 * (size_t)(number_of(arguments) % 100);
        char *text = malloc(bytes + 2);
        int r;

        (void)length;
        if (!text)
                return 1;
        memset(text, 'z', bytes + 2);
        text[0] = text[bytes + 1] = '"';
        r = cbx_reply_result(reply, text, bytes + 2);
        free(text);
        return r;
}

static int refuse(const char *arguments, size_t length, cbx_reply *reply)
{
        (void)arguments;
        (void)length;
        return cbx_reply_error(reply, "not today") < 0 ? 2 : 1;
}

static volatile int on = 1;

static int crash(const char *arguments, size_t length, cbx_reply *reply)
{
        (void)length;
        say_number(reply, number_of(arguments));
        raise(SIGSEGV);
        return 0;
}

static int spin(const char *arguments, size_t length, cbx_reply *reply)
{
        (void)length;
        say_number(reply, number_of(arguments));
        while (on)
                pause();
        return 0;
}

static int flood(const char *arguments, size_t length, cbx_reply *reply)
{
        static char noise[65536];

        (void)length;
        memset(noise, 'n', sizeof(noise));
        for (int i = 0; i < 16; i++)
                if (fwrite(noise, sizeof(noise), 1, stdout) != 1)
                        return 1;
        return say_number(reply, number_of(arguments));
}

static int overfill(const char *arguments, size_t length, cbx_reply *reply)
{
        static char noise[65537];

        (void)arguments;
        (void)length;
        memset(noise, 'n', sizeof(noise) - 1);
        for (int i = 0; i < 8; i++)
                cbx_reply_text(reply, noise);
        return 0;
}

static int lie(const char *arguments, size_t length, cbx_reply *reply)
{
        (void)arguments;
        (void)length;
        return cbx_reply_result(reply, "\"no number\"", 11);
}

/* ---- What is to come of each ---- */

enum outcome {
        GIVES_BACK,
        SQUARE,
        NUMBER,
        LONG,
        FAILS,
        SIGNALED,
        TIMEOUT,
        TOO_LARGE,
        PROMISE,
        TEXT
};

struct tool {
        const char *name;
        cbx_function *run;   /* a function ... */
        const char *command; /* ... or what a command runs: the part "run" of its manifest */
        enum outcome outcome;
        const char *error; /* of a failure */
        const char *promise;
};

#define SHELL(text) "{\"shell\": \"" text "\", \"parameters\": [\"{n}\"]"
#define JSON ", \"output\": \"json\"}"
#define LINES ", \"output\": \"json-lines\"}"

static const struct tool tools[] = {
        { "f-give", give_back, NULL, GIVES_BACK, NULL, NULL },
        { "f-square", square, NULL, SQUARE, NULL, "{\"type\": \"integer\"}" },
        { "f-steps", report_on, NULL, NUMBER, NULL, NULL },
        { "f-long", long_text, NULL, LONG, NULL, NULL },
        { "f-refuse", refuse, NULL, FAILS, "not today", NULL },
        { "f-crash", crash, NULL, SIGNALED, "SIGSEGV", NULL },
        { "f-spin", spin, NULL, TIMEOUT, "longer", NULL },
        { "f-flood", flood, NULL, NUMBER, NULL, NULL },
        { "f-overfill", overfill, NULL, TOO_LARGE, "its result is too large", NULL },
        { "f-lie", lie, NULL, PROMISE, "f-lie broke its own promise", "{\"type\": \"integer\"}" },
        { "c-echo", NULL, "{\"command\": [\"echo\", \"-n\", \"{s}\"]}", TEXT, NULL, NULL },
        { "c-square", NULL, SHELL("echo $(($1 * $1))") JSON, SQUARE, NULL,
          "{\"type\": \"integer\"}" },
        { "c-steps", NULL,
          SHELL("echo '{\\\"progress\\\": 1}'; echo '{\\\"log\\\": \\\"line\\\"}'; echo "
                "\\\"{\\\\\\\"result\\\\\\\": $1}\\\"") LINES,
          NUMBER, NULL, NULL },
        { "c-stdin", NULL,
          "{\"command\": [\"cat\"], \"arguments\": \"stdin\", \"output\": \"json\"}", GIVES_BACK,
          NULL, NULL },
        { "c-fail", NULL, SHELL("echo gone wrong >&2; exit 7") "}", FAILS,
          "exit code 7: gone wrong", NULL },
        { "c-crash", NULL, SHELL("kill -SEGV $$") "}", SIGNALED, "SIGSEGV", NULL },
        { "c-sleep", NULL, "{\"command\": [\"sleep\", \"60\"]}", TIMEOUT, "longer", NULL },
        { "c-flood", NULL, SHELL("head -c 1000000 /dev/zero >&2; echo $1") JSON, NUMBER, NULL,
          NULL },
        { "c-overfill", NULL, SHELL("head -c 1000000 /dev/zero") JSON, TOO_LARGE,
          "its result is too large", NULL },
        { "c-lie", NULL, SHELL("echo nonsense") JSON, FAILS, "is not JSON", NULL },
};

#define TOOLS (sizeof(tools) / sizeof(tools[0]))

/* Those of which the warden holds most. */
static const struct tool *const largest[] = { &tools[3], &tools[8], &tools[17], &tools[18] };
#define LARGEST (sizeof(largest) / sizeof(largest[0]))

#define SCHEMA                                                                                     \
        "{\"type\": \"object\", \"required\": [\"n\", \"s\"], \"additionalProperties\": false,"    \
        " \"properties\": {\"n\": {\"type\": \"integer\", \"minimum\": 0},"                        \
        " \"s\": {\"type\": \"string\"}}}"

/* What is done with a call beside waiting for it. */
enum way { PLAIN, WATCHED, WRONG, UNKNOWN, KILLED, DROPPED, WAYS };

struct call {
        cbx_call *call; /* NULL: free */
        const struct tool *tool;
        enum way way;
        long number;
        char id[32], text[200];
        unsigned long long act_at; /* when to kill or drop */
        bool ended;
        unsigned events;
};

struct soak {
        cbx_warden *warden;
        cbx_toolbox *toolbox;
        struct call calls[AT_ONCE];
        unsigned running;
        unsigned long started, done, faults, ways[WAYS], by_tool[TOOLS];
        unsigned long long random, last_end;
};

static unsigned long long now(void)
{
        struct timespec time;

        clock_gettime(CLOCK_MONOTONIC, &time);
        return (unsigned long long)time.tv_sec * 1000 + (unsigned long long)time.tv_nsec / 1000000;
}

static unsigned choose(struct soak *soak, unsigned below)
{
        soak->random = soak->random * 6364136223846793005ULL + 1442695040888963407ULL;
        return (unsigned)(soak->random >> 33) % below;
}

static void fault(struct soak *soak, const struct call *call, const char *why, const char *more)
{
        if (soak->faults++ < FAULTS_SHOWN)
                printf("wrong: %s, %s: %s%s%.300s\n", call ? call->id : "",
                       call ? call->tool->name : "", why, more ? ": " : "", more ? more : "");
}

/* ---- Comparing ---- */

static bool is_output(const struct call *call, const cbx_result *result)
{
        char wanted[400];

        if (!result->ok || !result->output)
                return false;
        switch (call->tool->outcome) {
        case GIVES_BACK:
                snprintf(wanted, sizeof(wanted), "{\"n\":%ld,\"s\":\"%s\"}", call->number,
                         call->text);
                return strcmp(result->output, wanted) == 0;
        case SQUARE:
                return strtol(result->output, NULL, 10) == call->number * call->number;
        case NUMBER:
                return strtol(result->output, NULL, 10) == call->number;
        case LONG:
                return strlen(result->output) == 1002 + 1000 * (size_t)(call->number % 100) &&
                       result->output[1] == 'z';
        case TEXT:
                return strcmp(result->text, call->text) == 0;
        default:
                return false;
        }
}

static bool is_right(const struct call *call, const cbx_report *report, const cbx_result *result)
{
        static const int reasons[] = { [FAILS] = CBX_EXITED,
                                       [SIGNALED] = CBX_SIGNALED,
                                       [TIMEOUT] = CBX_TIMEOUT,
                                       [TOO_LARGE] = CBX_EXITED,
                                       [PROMISE] = CBX_EXITED };
        enum outcome outcome = call->tool->outcome;

        if (!result || !report->id || strcmp(report->id, call->id) != 0)
                return false;
        if (call->way == UNKNOWN)
                return report->reason == CBX_SETUP && report->setup_time == 0 &&
                       strcmp(result->error, "unknown tool: nobody") == 0;
        if (strcmp(result->tool, call->tool->name) != 0)
                return false;
        if (call->way == WRONG)
                return report->reason == CBX_SETUP && report->setup_time == 0 &&
                       cbx_report_mistakes(report)[0] && cbx_report_mistakes(report)[1] &&
                       !cbx_report_mistakes(report)[2];
        /* One that is killed may have ended before. */
        if (call->way == KILLED && report->reason == CBX_CANCELLED)
                return !result->ok && result->error;
        if (!call->tool->error)
                return report->reason == CBX_EXITED && is_output(call, result);
        return !result->ok && !result->output && result->error &&
               report->reason == reasons[outcome] && strstr(result->error, call->tool->error);
}

static void finish(struct soak *soak, struct call *call)
{
        cbx_report report = CBX_REPORT_INIT;
        cbx_error error = CBX_ERROR_INIT;
        const cbx_result *result;

        if (cbx_wait(call->call, &report, &error) < 0) {
                fault(soak, call, "no report", error.text);
        } else {
                result = cbx_report_result(&report);
                if (!is_right(call, &report, result))
                        fault(soak, call, report.text,
                              !result          ? "no result"
                              : result->error  ? result->error
                              : result->output ? result->output
                                               : "nothing");
                if (call->way == WATCHED && !strcmp(call->tool->name, "f-steps") &&
                    call->events != 10)
                        fault(soak, call, "events are missing", NULL);
        }
        cbx_report_free(&report);
}

/* ---- Running ---- */

static void start(struct soak *soak, struct call *call)
{
        /* Of a hundred calls. */
        static const unsigned shares[WAYS] = { 55, 20, 8, 2, 10, 5 };
        unsigned pick = choose(soak, 100), way = 0;
        cbx_error error = CBX_ERROR_INIT;
        cbx_spec spec = CBX_SPEC_INIT;
        char arguments[300];

        while (pick >= shares[way])
                pick -= shares[way++];
        /* The largest first, all at once: later ones find the memory that these needed. */
        if (soak->started < 2UL * AT_ONCE)
                way = PLAIN;
        *call = (struct call){ .tool = soak->started < 2UL * AT_ONCE
                                               ? largest[soak->started % LARGEST]
                                               : &tools[choose(soak, TOOLS)],
                               .way = (enum way)way,
                               .number = (long)choose(soak, 100000) };
        snprintf(call->id, sizeof(call->id), "c%lu", soak->started);
        snprintf(call->text, sizeof(call->text), "text %lu of %ld $(id) ' ;", soak->started,
                 call->number);
        if (call->way == WRONG)
                snprintf(arguments, sizeof(arguments), "{\"n\": -%ld, \"s\": 5}", call->number + 1);
        else
                snprintf(arguments, sizeof(arguments), "{\"n\": %ld, \"s\": \"%s\"}", call->number,
                         call->text);
        spec.id = call->id;
        spec.result_mode = call->way == WATCHED ? CBX_RESULT_EVENTS : CBX_NO_RESULT;
        if (call->tool->outcome == TIMEOUT)
                spec.wall_limit = 0.05 + choose(soak, 100) / 1000.0;
        if (call->way == KILLED || call->way == DROPPED)
                call->act_at = now() + choose(soak, 30);
        soak->started++;
        soak->ways[call->way]++;
        soak->by_tool[call->tool - tools]++;
        if (cbx_toolbox_start(soak->toolbox, call->way == UNKNOWN ? "nobody" : call->tool->name,
                              arguments, &spec, &call->call, &error) < 0) {
                fault(soak, call, "cannot be started", error.text);
                soak->done++;
                return;
        }
        soak->running++;
}

static void step(struct soak *soak, struct call *call)
{
        cbx_event event = CBX_EVENT_INIT;
        cbx_error error = CBX_ERROR_INIT;
        bool due = call->act_at && call->act_at <= now();

        if (due && call->way == KILLED) {
                call->act_at = 0;
                if (cbx_kill(call->call) < 0)
                        fault(soak, call, "cannot be killed", NULL);
        }
        while (!(due && call->way == DROPPED) && !call->ended &&
               cbx_step(call->call, &event, &error) == 0 && event.kind != CBX_EVENT_NONE) {
                call->ended = event.kind == CBX_EVENT_ENDED;
                call->events += event.kind == CBX_EVENT_PROGRESS || event.kind == CBX_EVENT_LOG;
        }
        if (call->ended)
                finish(soak, call);
        else if (!(due && call->way == DROPPED))
                return;
        call->call = cbx_call_free(call->call);
        soak->running--;
        soak->done++;
        soak->last_end = now();
}

static void wait_for_any(struct soak *soak)
{
        struct pollfd fds[AT_ONCE];
        unsigned long long time = now(), next = time + 1000;
        nfds_t n = 0;

        for (int i = 0; i < AT_ONCE; i++) {
                const struct call *call = &soak->calls[i];

                if (!call->call)
                        continue;
                if (call->act_at && call->act_at < next)
                        next = call->act_at;
                fds[n++] = (struct pollfd){ .fd = cbx_call_fd(call->call), .events = POLLIN };
        }
        (void)poll(fds, n, next > time ? (int)(next - time) : 0);
}

/* Returns false when nothing moves any more. */
static bool run(struct soak *soak, unsigned long calls)
{
        unsigned long until = soak->started + calls;

        soak->last_end = now();
        while (soak->running > 0 || soak->started < until) {
                for (int i = 0; i < AT_ONCE && soak->started < until; i++)
                        if (!soak->calls[i].call)
                                start(soak, &soak->calls[i]);
                wait_for_any(soak);
                for (int i = 0; i < AT_ONCE; i++)
                        if (soak->calls[i].call)
                                step(soak, &soak->calls[i]);
                if (now() - soak->last_end > SILENCE_MS) {
                        for (int i = 0; i < AT_ONCE; i++)
                                if (soak->calls[i].call)
                                        fault(soak, &soak->calls[i], "hangs", NULL);
                        return false;
                }
        }
        return true;
}

/* ---- Measuring ---- */

static void compare(struct soak *soak, const char *what, long before, long after, long slack)
{
        printf("%-28s %8ld %8ld\n", what, before, after);
        if (after > before + slack)
                fault(soak, NULL, what, "grew");
}

static void compare_all(struct soak *soak, const struct host_use *a, const struct host_use *b)
{
        printf("%-28s %8s %8s\n", "", "before", "after");
        compare(soak, "memory of the warden, KiB", a->warden_kib, b->warden_kib, SLACK_KIB);
        compare(soak, "of nursery and makers, KiB", a->others_kib, b->others_kib, SLACK_KIB);
        compare(soak, "of this agent, KiB", a->client_kib, b->client_kib, SLACK_CLIENT_KIB);
        compare(soak, "descriptors of the warden", a->descriptors, b->descriptors,
                SLACK_DESCRIPTORS);
        compare(soak, "of this agent", a->own, b->own, 0);
        compare(soak, "boxes that wait", a->boxes, b->boxes, SLACK_BOXES);
        compare(soak, "zombies", a->zombies, b->zombies, 0);
        compare(soak, "mounts", a->mounts, b->mounts, 0);
        compare(soak, "control groups", a->cgroups, b->cgroups, 0);
}

static void print_figures(const struct soak *soak, double seconds, unsigned long calls)
{
        static const char *const names[WAYS] = { "plain",   "watched", "wrong",
                                                 "unknown", "killed",  "dropped" };

        printf("%lu calls of %zu tools, %d at once: %.0f in a second\n", soak->done, TOOLS, AT_ONCE,
               (double)calls / (seconds > 0 ? seconds : 1));
        for (int i = 0; i < WAYS; i++)
                printf("%s %lu%s", names[i], soak->ways[i], i == WAYS - 1 ? "\n" : ", ");
        for (size_t i = 0; i < TOOLS; i++)
                printf("%s %lu%s", tools[i].name, soak->by_tool[i], i == TOOLS - 1 ? "\n" : ", ");
}

/* What a process holds at rest goes up and down with what happens to lie at the end of its heap. So
 * it is looked at several times: the least of the second half is compared with the most of the
 * first. What is lost with every call shows all the same. */
#define HALF 3

static void keep(struct host_use *kept, const struct host_use *found, bool most)
{
        long *const to[] = { &kept->warden_kib, &kept->others_kib, &kept->client_kib };
        const long from[] = { found->warden_kib, found->others_kib, found->client_kib };
        struct host_use last = *found;

        for (size_t i = 0; i < sizeof(to) / sizeof(to[0]); i++)
                if (most ? from[i] < *to[i] : from[i] > *to[i])
                        *(long *)((char *)&last + ((char *)to[i] - (char *)kept)) = *to[i];
        *kept = last;
}

static void soak_calls(struct soak *soak, unsigned long calls)
{
        struct host_use halves[2], found;
        unsigned long long spent = 0, began;
        int pid = cbx_warden_pid(soak->warden);

        for (int i = 0; i < 2 * HALF; i++) {
                began = now();
                if (!run(soak, calls / (2 * HALF) + (i == 0 ? calls % (2 * HALF) : 0)))
                        return;
                spent += now() - began;
                if (!host_measure(pid, &found)) {
                        fault(soak, NULL, "the warden does not come to rest", NULL);
                        return;
                }
                if (i % HALF == 0)
                        halves[i / HALF] = found;
                else
                        keep(&halves[i / HALF], &found, i < HALF);
        }
        print_figures(soak, (double)spent / 1000.0, soak->done);
        if (cbx_warden_pid(soak->warden) != pid)
                fault(soak, NULL, "the warden is another one", NULL);
        compare_all(soak, &halves[0], &halves[1]);
}

/* ---- The program ---- */

static int add_tool(struct soak *soak, const struct tool *tool, cbx_error *error)
{
        char manifest[2000];
        int n;

        if (tool->run)
                return cbx_toolbox_add_function(soak->toolbox,
                                                &(cbx_tool){ .name = tool->name,
                                                             .input_schema = SCHEMA,
                                                             .output_schema = tool->promise,
                                                             .run = tool->run },
                                                error);
        n = snprintf(manifest, sizeof(manifest),
                     "{\"name\": \"%s\", \"inputSchema\": %s, \"run\": %s%s%s}", tool->name, SCHEMA,
                     tool->command, tool->promise ? ", \"outputSchema\": " : "",
                     tool->promise ? tool->promise : "");
        return cbx_toolbox_add(soak->toolbox, manifest, (size_t)n, error);
}

static int open_tools(struct soak *soak, cbx_error *error)
{
        static const char policy[] = "{\"limits\": {\"result\": \"256K\", \"wall\": 60}}";
        cbx_toolbox_options options = CBX_TOOLBOX_OPTIONS_INIT;
        int r = cbx_policy_parse(policy, strlen(policy), &options.policy, error);

        if (r == 0)
                r = cbx_warden_open(NULL, &soak->warden, error);
        if (r == 0)
                r = cbx_toolbox_open(soak->warden, &options, &soak->toolbox, error);
        cbx_policy_unref(options.policy);
        for (size_t i = 0; r == 0 && i < TOOLS; i++)
                r = add_tool(soak, &tools[i], error);
        return r;
}

int main(int argc, char **argv)
{
        static struct soak soak;
        cbx_error error = CBX_ERROR_INIT;
        unsigned long calls = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;

        cbx_serve_functions(argc, argv);
        setvbuf(stdout, NULL, _IOLBF, 0);
        if (argc < 2 || argc > 3 || calls < 2 * HALF) {
                fputs("usage: tools CALLS [SEED]\n", stderr);
                return 2;
        }
        soak.random = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
        /* What the warden leaves behind becomes this process's own, and is seen. */
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        if (open_tools(&soak, &error) < 0) {
                printf("cannot begin: %s: %s\n", error.where, error.text);
                return 1;
        }
        soak_calls(&soak, calls);
        for (int i = 0; i < AT_ONCE; i++)
                cbx_call_free(soak.calls[i].call);
        cbx_toolbox_close(soak.toolbox);
        cbx_warden_close(soak.warden);
        if (host_reap(20, true) > 0)
                fault(&soak, NULL, "processes are left", NULL);
        printf("%lu wrong\n", soak.faults);
        return soak.faults > 0;
}
