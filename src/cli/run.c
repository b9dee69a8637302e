/* SPDX-License-Identifier: MIT */
/* callbox run: one call, its output streamed or captured, its end told. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>

#include "box/fences.h"
#include "cli/options.h"
#include "cli/run_warden.h"
#include "cli/spec.h"
#include "cli/verb.h"
#include "policy/host.h"
#include "policy/inputs.h"
#include "policy/outputs.h"
#include "warden/call.h"
#include "warden/input.h"

static const char help[] =
        "Usage: callbox run [OPTIONS] [--] PROGRAM [ARG...]\n"
        "\n"
        "Runs PROGRAM in a box of its own, its output passed on as it comes. The current\n"
        "directory is shown read-only unless --workspace, --cwd or --policy is given.\n"
        "\n"
        "%s"
        "Call:    --cwd DIR          start here        --stdin FILE|none\n"
        "         --spec FILE        argv and more, JSON\n"
        "         -t, --tty          private terminal; no timeout unless one is given\n"
        "         --warden SOCKET    in a box that a running callbox warden has ready\n"
        "Report:  --json             JSON on stdout, output within  --report FILE\n"
        "         --explain          tell what was refused and which option allows it\n"
        "         -q, --quiet        only the program's own output  --sanitize\n"
        "Help:    -h, --help         Manual: callbox-run(1)\n"
        "Exit code: the program's; 124 timeout, 125 callbox failed, 126 not executable,\n"
        "127 not found, 128+n killed by signal n.\n";

struct run {
        struct options options;
        struct spec spec;
        char **argv; /* what to run */
        const char *spec_file, *report_file, *directory, *stdin_file, *warden;
        struct plan *plan;
        cbx_call *remote; /* the call, when a warden runs it */
        bool json, explain, quiet, sanitize, tty;
        struct termios terminal; /* as it was */
        bool terminal_raw;
        int signals, report_fd;
        char *line; /* the command line, in one piece */
        size_t line_length;
        unsigned interrupts;
};

/* ---- Command line ---- */

static const struct {
        const char *name, *alias;
        size_t offset;
} switches[] = {
        { "--json", NULL, offsetof(struct run, json) },
        { "--explain", NULL, offsetof(struct run, explain) },
        { "--quiet", "-q", offsetof(struct run, quiet) },
        { "--sanitize", NULL, offsetof(struct run, sanitize) },
        { "--tty", "-t", offsetof(struct run, tty) },
};

static const struct {
        const char *name;
        size_t offset;
} values[] = {
        { "--cwd", offsetof(struct run, directory) },
        { "--stdin", offsetof(struct run, stdin_file) },
        { "--spec", offsetof(struct run, spec_file) },
        { "--report", offsetof(struct run, report_file) },
        { "--warden", offsetof(struct run, warden) },
};

static int take_own(struct run *run, int argc, char **argv, int *index, cbx_error *error)
{
        for (size_t i = 0; i < ARRAY_SIZE(switches); i++)
                if (strcmp(argv[*index], switches[i].name) == 0 ||
                    (switches[i].alias && strcmp(argv[*index], switches[i].alias) == 0)) {
                        *(bool *)((char *)run + switches[i].offset) = true;
                        *index += 1;
                        return 1;
                }
        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
                const char **to = (const char **)((char *)run + values[i].offset);
                int r = options_value(argc, argv, index, values[i].name, error, to);

                if (r != 0)
                        return r;
        }
#ifdef BOX_UNFENCED
        {
                const char *names;
                int r = options_value(argc, argv, index, "--without", error, &names);

                if (r > 0 && box_fence_leave_out(names) < 0)
                        return error_set(error, -EINVAL, "--without", "no such fence: %s", names);
                if (r != 0)
                        return r;
        }
#endif
        return 0;
}

static int parse(struct run *run, int argc, char **argv, cbx_error *error)
{
        int index = 1, r;

        while (index < argc && argv[index][0] == '-') {
                if (strcmp(argv[index], "--") == 0) {
                        index++;
                        break;
                }
                r = take_own(run, argc, argv, &index, error);
                if (r == 0)
                        r = options_take(&run->options, argc, argv, &index, error);
                if (r < 0)
                        return r;
                if (r == 0) {
                        error_set(error, -EINVAL, "", "there is no option \"%s\"", argv[index]);
                        error_hint(error, "see callbox run --help; options of the program go after "
                                          "its name");
                        return -EINVAL;
                }
        }
        if (run->spec_file) {
                r = spec_read(run->spec_file, error, &run->spec);
                if (r < 0)
                        return r;
        }
        run->argv = index < argc ? argv + index : run->spec.argv;
        if (!run->argv || !run->argv[0] || !*run->argv[0]) {
                error_set(error, -EINVAL, "", "no program to run");
                error_hint(error, "callbox run [OPTIONS] -- PROGRAM [ARG...]");
                return -EINVAL;
        }
        options_guard(&run->options, "the spec", run->spec_file, "--spec", false);
        options_guard(&run->options, "the report", run->report_file, "--report", false);
        options_guard(&run->options, "the socket of the warden", run->warden, "--warden", false);
        run->tty |= run->spec.tty;
        if (run->tty) /* whoever sits there ends it */
                run->options.wall = WALL_FOREVER;
        if (!run->directory)
                run->directory = run->spec.directory;
        if (run->warden && run->tty)
                return error_set(error, -EINVAL, "--tty", "cannot be used with --warden");
        if (run->json && run->tty)
                return error_set(error, -EINVAL, "--tty", "cannot be used with --json");
        if (run->directory && run->directory[0] != '/')
                return error_set(error, -EINVAL, "--cwd", "must be an absolute path in the box");
        return 0;
}

/* ---- The policy of this call ---- */

/* The call's own limits may only tighten the policy's. Done before the plan is made of it. */
static int set_limits(const struct run *run, cbx_policy *policy, cbx_error *error)
{
        if (!run->spec.limits)
                return 0;
        return policy_limits_from_json(run->spec.limits, "limits", true, error, &policy->limits);
}

/* ---- Signals and the terminal ---- */

/* A signal to callbox is one to the program; a second request to go ends the call. */
static void signal_ready(struct call *call, void *data)
{
        struct run *run = data;
        struct signalfd_siginfo info;
        struct winsize size;

        while (read(run->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
                int signal = (int)info.ssi_signo;

                if (signal == SIGWINCH) {
                        if (call && ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0)
                                call_resize(call, size.ws_row, size.ws_col);
                        continue;
                }
                if (signal != SIGUSR1 && signal != SIGUSR2 && run->interrupts++ > 0)
                        run->remote ? (void)cbx_kill(run->remote) : call_cancel(call);
                else
                        run->remote ? (void)cbx_signal(run->remote, signal)
                                    : call_signal(call, signal);
        }
}

static void raise_terminal(struct run *run)
{
        struct termios raw;

        if (!run->tty || tcgetattr(STDIN_FILENO, &run->terminal) < 0)
                return;
        raw = run->terminal;
        cfmakeraw(&raw);
        run->terminal_raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

static void restore_terminal(struct run *run)
{
        if (run->terminal_raw)
                (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &run->terminal);
        run->terminal_raw = false;
}

/* ---- One call ---- */

/*
 * Most hosts allow namespaces. To ask first takes a tenth of the time of a call, so the box is
 * simply made; and only when that has failed is the host asked, and another box made where it
 * refuses. Nothing has run in the first one, and its input is still there (input_stays).
 */
static int run_here(struct run *run, cbx_policy *policy, struct plan_options *options,
                    const struct call_spec *spec, const struct call_hook *hook,
                    struct report *report)
{
        struct timespec started_at = report->started_at;
        int r;

        options->hopeful = policy->box == POLICY_BOX_AUTO && input_stays(spec->stdin_fd);
        for (;;) {
                plan_free(run->plan);
                run->plan = NULL;
                r = plan_compile(policy, options, &report->error, &run->plan);
                if (r == 0)
                        call_run(run->plan, spec, hook, report);
                if (!options->hopeful || (r == 0 && report->reason != REASON_SETUP) ||
                    run->interrupts > 0 || host_refuses_namespaces() == 0)
                        return r;
                options->hopeful = false;
                report_free(report);
                report->started_at = started_at;
                report->captured = run->json;
        }
}

/* A box may have left a pipe there, which nobody writes to: what is a stream is one by its name. */
static int check_stdin(int fd, const char *file, const char *where, cbx_error *error)
{
        struct stat st = { 0 };
        int flags = fcntl(fd, F_GETFL), r;

        if (fstat(fd, &st) < 0 || (!S_ISREG(st.st_mode) && !inputs_is_stream(file))) {
                bool directory = S_ISDIR(st.st_mode);

                base_close(fd);
                error_set(error, directory ? -EISDIR : -EINVAL, where, "%s is %s", file,
                          directory ? "a directory" : "no regular file");
                if (!directory)
                        error_hint(error, "a pipe of the caller's own is /dev/fd/N");
                return directory ? -EISDIR : -EINVAL;
        }
        if (fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0)
                return fd;
        r = error_set(error, -errno, where, "cannot read %s: %s", file, strerror(errno));
        base_close(fd);
        return r;
}

static int open_stdin(struct run *run, const cbx_policy *policy, cbx_error *error)
{
        const char *file = run->stdin_file ? run->stdin_file : run->spec.stdin_file;
        const char *where = run->stdin_file ? "--stdin" : "stdin.file";
        bool none = run->stdin_file && strcmp(run->stdin_file, "none") == 0;
        struct stat st;
        int fd;

        if (run->tty)
                return STDIN_FILENO;
        if (file && !none) {
                fd = inputs_open(policy, file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
                                 "the input", where, error);
                if (fd < 0)
                        return error->code < 0 ? fd
                                               : error_set(error, fd, where, "cannot open %s: %s",
                                                           file, strerror(-fd));
                return check_stdin(fd, file, where, error);
        }
        /* A terminal is never passed on: what is typed belongs to whoever typed it. */
        if (none || run->spec.stdin_none || run->spec.stdin_text || isatty(STDIN_FILENO))
                return -1;
        if (fstat(STDIN_FILENO, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))
                return -1; /* /dev/null: the box has one */
        return STDIN_FILENO;
}

/* Does a policy file leave out the current directory, and names no other to start in? */
static bool file_leaves_out(const struct run *run)
{
        _cleanup_free_ char *here = run->options.file && run->plan ? getcwd(NULL, 0) : NULL;
        const char *start = here ? run->plan->start_directory : "";

        return here && (!*start || strcmp(start, PLAN_HOME) == 0) && !plan_shows(run->plan, here);
}

static void warn_of_variables(const struct run *run, struct report *report)
{
        for (char **variable = run->spec.environment; variable && *variable; variable++) {
                char name[128];

                snprintf(name, sizeof(name), "%.*s", (int)strcspn(*variable, "="), *variable);
                if (policy_variable_is_risky(name))
                        report_warn(report,
                                    "%s is set in the box by the spec; it can make "
                                    "programs load code",
                                    name);
        }
}

static int run_call(struct run *run, struct report *report)
{
        _cleanup_policy_ cbx_policy *policy = NULL;
        struct plan_options plan_options = { .explain = run->explain,
                                             .looks = true,
                                             .tty = run->tty,
                                             .environment = environ,
                                             .wipe = run->line,
                                             .wipe_length = run->line_length };
        struct call_spec spec = { .argv = run->argv,
                                  .environment = run->spec.environment,
                                  .id = run->spec.id,
                                  .directory = run->directory,
                                  .stdin_data = run->stdin_file ? NULL : run->spec.stdin_text,
                                  .tty = run->tty,
                                  .captured = run->json,
                                  .sanitize = run->sanitize };
        struct call_hook hook = { .ready = signal_ready, .data = run };
        struct winsize size = { 0 };
        bool left_out = false;
        int r;

#ifdef BOX_UNFENCED
        plan_options.pass_all = box_fence(FENCE_ENVIRONMENT) ? NULL : "all";
        plan_options.tty |= !box_fence(FENCE_SESSION);
#endif
        /* First of all: a signal that comes while the box is made is the program's as well. */
        hook.fd = run->signals = verb_open_signals();
        r = run->directory ? 0 : verb_show_here(&run->options, &left_out, &report->error);
        if (r >= 0)
                r = options_policy(&run->options, &report->error, &policy);
        if (r < 0) {
                options_blame(&run->options, &report->error);
                return r;
        }
        r = set_limits(run, policy, &report->error);
        if (r < 0)
                return r;
        spec.limits = policy->limits;
        spec.stdin_fd = open_stdin(run, policy, &report->error);
        if (report->error.code < 0)
                return report->error.code;
        spec.stdin_length = spec.stdin_data ? strlen(spec.stdin_data) : 0;
        if (run->tty && ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0) {
                spec.rows = size.ws_row;
                spec.columns = size.ws_col;
        }
        for (int i = 0; i < 2; i++)
                spec.output[i] =
                        (struct call_output){ .capture = run->json,
                                              .forward = run->json ? -1 : STDOUT_FILENO + i };
        raise_terminal(run);
        if (run->warden)
                run_through_warden(run->warden, policy, &spec, run->explain, &hook, &run->remote,
                                   report);
        else
                r = run_here(run, policy, &plan_options, &spec, &hook, report);
        restore_terminal(run);
        if (r < 0) {
                options_blame(&run->options, &report->error);
                return r;
        }
        warn_of_variables(run, report);
        if (left_out || (!run->directory && file_leaves_out(run)))
                verb_warn_of_here(run->argv, left_out && run->explain, report);
        if (report->not_found)
                verb_hint_at_program(run->argv[0], policy, run->spec.environment, &report->error);
        if (report->not_executable)
                verb_hint_at_mode(run->argv[0], &report->error);
        if (strcmp(report->error.where, "cwd") == 0 && !run->spec.directory)
                snprintf(report->error.where, sizeof(report->error.where), "--cwd");
        options_blame(&run->options, &report->error);
        return 0;
}

/* Opened before anything runs: a report that cannot be written is no reason to have run. */
static int open_report_file(struct run *run, cbx_error *error)
{
        run->report_fd = outputs_open(run->report_file, O_TRUNC, 0666, "--report", error);
        return run->report_fd < 0 ? run->report_fd : 0;
}

/* Print what there is to print; the exit code tells of a report that could not be written. */
static int tell(const struct run *run, const struct report *report)
{
        _cleanup_json_ json_t *json = NULL;
        int code = report_exit_code(report), r = 0;

        if (run->json || run->report_fd >= 0)
                json = report_to_json(report);
        if (!run->json || report->reason == REASON_SETUP)
                verb_print_end(report, run->quiet, run->explain);
        if (run->json)
                r = cli_print_json(json, STDOUT_FILENO);
        if (run->report_fd >= 0)
                r = cli_print_json(json, run->report_fd);
        return r != 0 ? r : code;
}

int cli_run(int argc, char **argv)
{
        struct run run = { .signals = -1, .report_fd = -1 };
        struct report report = REPORT_INIT;
        int code, r;

        for (int i = 1; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0; i++)
                if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
                        return printf(help, options_help) < 0 ? EXIT_CALLBOX : 0;
        run.line = argv[0];
        run.line_length = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) - argv[0]);
        clock_gettime(CLOCK_REALTIME, &report.started_at);
        r = parse(&run, argc, argv, &report.error);
        report.captured = run.json;
        if (run.report_file && r == 0)
                r = open_report_file(&run, &report.error);
        else if (run.report_file) /* a report of what is wrong; the first error is told */
                (void)open_report_file(&run, NULL);
        if (r == 0)
                (void)run_call(&run, &report);
        report.of_command = true;
        code = tell(&run, &report);
#ifndef __SANITIZE_ADDRESS__ /* which looks for what was not freed */
        _exit(code);         /* the kernel frees it all at once */
#endif
        base_close(run.report_fd);
        plan_free(run.plan);
        report_free(&report);
        options_free(&run.options);
        spec_free(&run.spec);
        return code;
}
