/* SPDX-License-Identifier: MIT */
/*
 * callbox wrap: somebody else's MCP server in a box, for as long as its client is there. It is
 * `callbox run` with other defaults: no limit of time, and an end that follows the client's.
 *
 * A client that is gone shows in its pipes. The end of input is passed on, and a server that stays
 * nevertheless is ended; so is one that does not even read what lies before the end. When nobody
 * can read its answers any more it is ended at once. That a parent died says nothing: it may have
 * been a shell on the way.
 */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "cli/verb.h"
#include "cli/wrap.h"
#include "policy/outputs.h"
#include "warden/call.h"

#define LOOK_EVERY (50 * NSEC_PER_MSEC) /* at a server whose client is gone */
#define GRACE_MAX 3600

static const char help[] =
        "Usage: callbox wrap [OPTIONS] [--] SERVER [ARG...]\n"
        "\n"
        "Runs an MCP server that speaks over stdio in a box of its own. Its input and\n"
        "output pass untouched; the box goes with the client. No limit of time unless\n"
        "--timeout is given. `npx PACKAGE` runs what npx has fetched, without a network.\n"
        "\n"
        "%s"
        "Call:    --cwd DIR          start here        --grace SEC (5)  to go in\n"
        "Report:  --report FILE      JSON, at the end  -q, --quiet\n"
        "         --explain          tell what was refused and which option allows it\n"
        "Help:    -h, --help         Manual: callbox-wrap(1)\n"
        "Exit code: the server's; 124 timeout, 125 callbox failed, 126 not executable,\n"
        "127 not found, 128+n killed by signal n, 137 ended because its client was gone.\n";

struct wrap {
        struct options options;
        char **argv;  /* what was asked for */
        char **found; /* what npx would run for it */
        const char *directory, *report_file, *grace_text;
        bool explain, quiet;
        double grace;
        int set, signals, clock, report_fd;
        bool leaving;       /* the client's end of the input was seen */
        uint64_t last_seen; /* that the server took some of it */
        uint64_t last_total;
        unsigned interrupts;
        char *line; /* the command line, in one piece */
        size_t line_length;
};

/* ---- Command line ---- */

static int take_own(struct wrap *wrap, int argc, char **argv, int *index, cbx_error *error)
{
        struct {
                const char *name;
                const char **to;
        } values[] = { { "--cwd", &wrap->directory },
                       { "--report", &wrap->report_file },
                       { "--grace", &wrap->grace_text } };
        const char *arg = argv[*index];
        bool *on = strcmp(arg, "--explain") == 0                           ? &wrap->explain
                   : strcmp(arg, "--quiet") == 0 || strcmp(arg, "-q") == 0 ? &wrap->quiet
                                                                           : NULL;

        if (on) {
                *on = true;
                *index += 1;
                return 1;
        }
        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
                int r = options_value(argc, argv, index, values[i].name, error, values[i].to);

                if (r != 0)
                        return r;
        }
        return options_take(&wrap->options, argc, argv, index, error);
}

static int read_grace(struct wrap *wrap, cbx_error *error)
{
        if (!wrap->grace_text)
                return 0;
        wrap->grace = strtod(wrap->grace_text, NULL);
        if (!options_is_number(wrap->grace_text, true) || wrap->grace > GRACE_MAX)
                return error_set(error, -EINVAL, "--grace",
                                 "\"%s\" is no number of seconds from 0 to %d", wrap->grace_text,
                                 GRACE_MAX);
        return 0;
}

static int parse(struct wrap *wrap, int argc, char **argv, cbx_error *error)
{
        int index = 1, r;

        while (index < argc && argv[index][0] == '-') {
                if (strcmp(argv[index], "--") == 0) {
                        index++;
                        break;
                }
                r = take_own(wrap, argc, argv, &index, error);
                if (r < 0)
                        return r;
                if (r == 0) {
                        error_set(error, -EINVAL, "", "there is no option \"%s\"", argv[index]);
                        error_hint(error, "see callbox wrap --help; options of the server go after "
                                          "its name");
                        return -EINVAL;
                }
        }
        wrap->argv = argv + index;
        if (!wrap->argv[0] || !*wrap->argv[0]) {
                error_set(error, -EINVAL, "", "no server to run");
                error_hint(error, "callbox wrap [OPTIONS] -- SERVER [ARG...]");
                return -EINVAL;
        }
        if (wrap->directory && wrap->directory[0] != '/')
                return error_set(error, -EINVAL, "--cwd", "must be an absolute path in the box");
        return read_grace(wrap, error);
}

/* ---- The client ---- */

static void look_every(struct wrap *wrap, uint64_t interval)
{
        struct timespec time = { .tv_nsec = (long)interval };
        struct itimerspec timer = { .it_interval = time, .it_value = time };

        (void)timerfd_settime(wrap->clock, 0, &timer, NULL);
}

static int watch(struct wrap *wrap, int fd, uint32_t events)
{
        struct epoll_event event = { .events = events, .data.fd = fd };

        return epoll_ctl(wrap->set, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* Ends of pipes are told whatever is asked for; of a socket the half that is input has to be. */
static int watch_client(struct wrap *wrap)
{
        wrap->set = epoll_create1(EPOLL_CLOEXEC);
        wrap->signals = verb_open_signals();
        wrap->clock = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (wrap->set < 0 || wrap->signals < 0 || wrap->clock < 0 ||
            watch(wrap, wrap->signals, EPOLLIN) < 0 || watch(wrap, wrap->clock, EPOLLIN) < 0)
                return -errno;
        (void)watch(wrap, STDOUT_FILENO, 0); /* a file has no reader that could go */
        if (watch(wrap, STDIN_FILENO, EPOLLRDHUP) < 0)
                look_every(wrap, LOOK_EVERY); /* a file ends without a word */
        return 0;
}

/* The client has said all that it will say: give the server time for as long as it takes input, and
 * a last while from there. */
static void look(struct wrap *wrap, struct call *call)
{
        uint64_t now = time_now(), grace = (uint64_t)(wrap->grace * (double)NSEC_PER_SEC);

        if (call->input.box >= 0 && !wrap->leaving)
                return;
        if (!wrap->leaving || call->input.total != wrap->last_total) {
                wrap->leaving = true;
                wrap->last_total = call->input.total;
                wrap->last_seen = now;
        }
        if (now - wrap->last_seen >= grace)
                call_cancel(call);
}

static void client_ready(struct wrap *wrap, struct call *call, int fd)
{
        (void)epoll_ctl(wrap->set, EPOLL_CTL_DEL, fd, NULL);
        if (fd == STDOUT_FILENO) {
                call_cancel(call);
                return;
        }
        wrap->leaving = true;
        wrap->last_seen = time_now();
        wrap->last_total = call->input.total;
        look_every(wrap, LOOK_EVERY);
}

/* A signal to callbox is one to the server; a second request to go ends the call. */
static void signal_ready(struct wrap *wrap, struct call *call)
{
        struct signalfd_siginfo info;

        while (read(wrap->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
                int signal = (int)info.ssi_signo;

                if (signal == SIGWINCH)
                        continue;
                if (signal != SIGUSR1 && signal != SIGUSR2 && wrap->interrupts++ > 0)
                        call_cancel(call);
                else
                        call_signal(call, signal);
        }
}

static void ready(struct call *call, void *data)
{
        struct wrap *wrap = data;
        struct epoll_event events[4];
        uint64_t ticks;
        int n = epoll_wait(wrap->set, events, ARRAY_SIZE(events), 0);

        for (int i = 0; i < n; i++) {
                int fd = events[i].data.fd;

                if (fd == wrap->signals)
                        signal_ready(wrap, call);
                else if (fd == wrap->clock && read(fd, &ticks, sizeof(ticks)) > 0)
                        look(wrap, call);
                else if (fd == STDIN_FILENO || fd == STDOUT_FILENO)
                        client_ready(wrap, call, fd);
        }
}

/* ---- The call ---- */

static bool has_network(const struct wrap *wrap)
{
        const char *mode = json_string_value(json_object_get(wrap->options.policy, "network"));

        return wrap->options.file || (mode && strcmp(mode, "host") == 0);
}

static int make_policy(struct wrap *wrap, cbx_error *error, cbx_policy **ret_policy)
{
        bool left_out; /* servers are started anywhere */
        int r = 0;

        wrap->options.wall = WALL_FOREVER;
        if (!has_network(wrap))
                r = wrap_find_package(wrap->argv, &wrap->options, error, &wrap->found);
        if (r >= 0 && !wrap->directory)
                r = verb_show_here(&wrap->options, &left_out, error);
        if (r >= 0)
                r = options_policy(&wrap->options, error, ret_policy);
        return r;
}

static int run_server(struct wrap *wrap, struct report *report)
{
        _cleanup_policy_ cbx_policy *policy = NULL;
        _cleanup_plan_ struct plan *plan = NULL;
        struct plan_options plan_options = { .explain = wrap->explain,
                                             .looks = true,
                                             .environment = environ,
                                             .wipe = wrap->line,
                                             .wipe_length = wrap->line_length };
        struct call_spec spec = { .directory = wrap->directory,
                                  .stdin_fd = STDIN_FILENO,
                                  .output = { { .forward = STDOUT_FILENO },
                                              { .forward = STDERR_FILENO } } };
        struct call_hook hook = { .ready = ready, .data = wrap };
        int r = watch_client(wrap);

        if (r < 0)
                return error_set(&report->error, r, "", "cannot watch the client: %s",
                                 strerror(-r));
        r = make_policy(wrap, &report->error, &policy);
        if (r >= 0)
                r = plan_compile(policy, &plan_options, &report->error, &plan);
        if (r >= 0) {
                hook.fd = wrap->set;
                spec.argv = wrap->found ? wrap->found : wrap->argv;
                spec.limits = policy->limits;
                call_run(plan, &spec, &hook, report);
                if (report->not_found)
                        verb_hint_at_program(spec.argv[0], policy, spec.environment,
                                             &report->error);
                if (report->not_executable)
                        verb_hint_at_mode(spec.argv[0], &report->error);
                if (strcmp(report->error.where, "cwd") == 0)
                        snprintf(report->error.where, sizeof(report->error.where), "--cwd");
        }
        options_blame(&wrap->options, &report->error);
        return r;
}

/* A server that fails does so in its own words, which seldom say what it was that is missing. */
static void print_hint(const struct wrap *wrap, const struct report *report)
{
        if (wrap->quiet || report->reason != REASON_EXITED || report->code == 0)
                return;
        fprintf(stderr, "callbox: the server ended with code %d", report->code);
        if (!wrap->explain)
                fprintf(stderr, "; with --explain this lists what it was refused, and the option "
                                "that allows it");
        fputc('\n', stderr);
}

static int tell(const struct wrap *wrap, const struct report *report)
{
        bool client_gone = report->reason == REASON_CANCELLED;
        int code = report_exit_code(report), r = 0;

        /* That the box went with its client is what was asked for. */
        verb_print_end(report, wrap->quiet || client_gone, wrap->explain);
        print_hint(wrap, report);
        if (wrap->report_fd >= 0) {
                _cleanup_json_ json_t *json = report_to_json(report);

                r = cli_print_json(json, wrap->report_fd);
        }
        return r != 0 ? r : code;
}

int cli_wrap(int argc, char **argv)
{
        struct wrap wrap = { .set = -1, .signals = -1, .clock = -1, .report_fd = -1, .grace = 5 };
        struct report report = REPORT_INIT;
        int code, r;

        for (int i = 1; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0; i++)
                if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
                        return printf(help, options_help) < 0 ? EXIT_CALLBOX : 0;
        wrap.line = argv[0];
        wrap.line_length = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) - argv[0]);
        clock_gettime(CLOCK_REALTIME, &report.started_at);
        r = parse(&wrap, argc, argv, &report.error);
        if (r == 0 && wrap.report_file) {
                wrap.report_fd =
                        outputs_open(wrap.report_file, O_TRUNC, 0666, "--report", &report.error);
                r = MIN(wrap.report_fd, 0);
                options_guard(&wrap.options, "the report", wrap.report_file, "--report", false);
        }
        if (r == 0)
                (void)run_server(&wrap, &report);
        report.of_command = true;
        code = tell(&wrap, &report);
        base_close(wrap.report_fd);
        base_close(wrap.set);
        base_close(wrap.signals);
        base_close(wrap.clock);
        report_free(&report);
        options_free(&wrap.options);
        list_free(wrap.found);
        return code;
}
