/* SPDX-License-Identifier: MIT */
/* Calls: what goes in, what comes out, how they end. */
#include "api.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB (1024 * 1024)

/* What is run. A spec outlives the block it is filled in. */
static const char *const with_code[] = { "sh", "-c", "echo out; echo err >&2; exit 7", NULL };
static const char *const cat[] = { "cat", NULL };
static const char *const nothing[] = { "true", NULL };
static const char *const zeroes[] = { "head", "-c", "8388608", "/dev/zero", NULL };
static const char *const yes[] = { "yes", NULL };
static const char *const missing[] = { "/nonexistent/tool", NULL };
static const char *const unknown[] = { "no-such-tool", NULL };
static const char *const no_program[] = { "/etc/passwd", NULL };
static const char *const long_sleep[] = { "sleep", "50", NULL };
static const char *const two_variables[] = { "ONE=1", "TWO=a=b", NULL };

static int memory_file(const char *text)
{
        int fd = memfd_create("api", MFD_CLOEXEC);

        CHECK(fd >= 0);
        EQUAL(write(fd, text, strlen(text)), (long long)strlen(text));
        EQUAL(lseek(fd, 0, SEEK_SET), 0);
        return fd;
}

static void exited_with(struct api *api, int code)
{
        EQUAL(api->report.reason, CBX_EXITED);
        EQUAL(api->report.code, code);
        EQUAL(api->report.signal, 0);
        CHECK(!api->report.error);
}

/* ---- What goes in ---- */

static void capture(struct api *api)
{
        api->spec.argv = with_code;
        api->spec.id = "first";
        api_run(api);
        exited_with(api, 7);
        SAME_TEXT(api->report.output.data, "out\n");
        SAME_TEXT(api->report.errors.data, "err\n");
        EQUAL(api->report.output.length, 4);
        EQUAL(api->report.output.total, 4);
        EQUAL(api->report.output.omitted, 0);
        EQUAL(api->report.bytes_out, 8);
        SAME_TEXT(api->report.id, "first");
        SAME_TEXT(api->report.text, "the program exited with code 7");
        EQUAL(cbx_report_exit_code(&api->report), 7);
        api->spec.id = NULL;
        api_run(api);
        CHECK(!api->report.id);
}

static void without_errors(struct api *api)
{
        cbx_report_free(NULL);
        api->spec.shell = "true";
        EQUAL(cbx_run(api->warden, api->policy, &api->spec, &api->report, NULL), 0);
        exited_with(api, 0);
        EQUAL(api->report.output.length, 0);
        SAME_TEXT(api->report.output.data, ""); /* also where there is nothing */
        CHECK(!cbx_call_free(NULL));
}

static void shell(struct api *api)
{
        api_shell(api, "echo $0; printf '%s|' a 'b c'");
        exited_with(api, 0);
        SAME_TEXT(api->report.output.data, "/bin/sh\na|b c|");
}

static void environment(struct api *api)
{
        api->spec.shell = "echo \"$ONE $TWO $HOME\"";
        api->spec.environment = two_variables;
        api_run(api);
        SAME_TEXT(api->report.output.data, "1 a=b /tmp\n");
        setenv("SECRET", "s", 1); /* of the caller: not asked for, not there */
        api_shell(api, "echo \"<$SECRET>\"");
        SAME_TEXT(api->report.output.data, "<>\n");
}

static void directory(struct api *api)
{
        api->spec.shell = "pwd";
        api->spec.cwd = "/usr/share";
        api_run(api);
        SAME_TEXT(api->report.output.data, "/usr/share\n");
        api->spec.cwd = "/nonexistent";
        api_run(api);
        EQUAL(api->report.reason, CBX_SETUP);
        CHECK(api->report.error && strstr(api->report.error->text, "/nonexistent"));
}

static void input(struct api *api)
{
        static const char small[] = "one\0two\n";
        char *large = api_allocate(MIB);

        api->spec.argv = cat;
        api_run(api);
        EQUAL(api->report.output.length, 0); /* none by default */
        api->spec.input = small;
        api->spec.input_length = sizeof(small) - 1;
        api_run(api);
        EQUAL(api->report.output.length, (long long)sizeof(small) - 1);
        EQUAL(memcmp(api->report.output.data, small, sizeof(small)), 0);
        EQUAL(api->report.bytes_in, (long long)sizeof(small) - 1);

        for (size_t i = 0; i < MIB; i++)
                large[i] = (char)(i % 251);
        cbx_policy_unref(api->policy);
        api->policy = api_policy("{\"limits\": {\"capture\": \"4M\"}}");
        api->spec.input = large;
        api->spec.input_length = MIB;
        api_run(api);
        EQUAL(api->report.output.length, MIB);
        EQUAL(memcmp(api->report.output.data, large, MIB), 0);
        EQUAL(api->report.bytes_in, MIB);
        free(large);
}

static void input_descriptor(struct api *api)
{
        int fd = memory_file("from a file\nand more\n");

        api->spec.argv = cat;
        api->spec.input_mode = CBX_FROM_FD;
        api->spec.input_fd = fd;
        api_run(api);
        SAME_TEXT(api->report.output.data, "from a file\nand more\n");
        EQUAL(fcntl(fd, F_GETFD), FD_CLOEXEC); /* it is still the caller's */
        EQUAL(lseek(fd, 0, SEEK_SET), 0);
        api->spec.argv = nothing;
        api_run(api);
        EQUAL(lseek(fd, 0, SEEK_CUR), 0); /* what is not read stays there */
        close(fd);
        api->spec.input_fd = -1;
        CHECK(cbx_run(api->warden, api->policy, &api->spec, &api->report, &api->error) < 0);
        CHECK(api->error.text[0]);
}

/* ---- What comes out ---- */

static void events(struct api *api)
{
        char out[64] = "", err[64] = "";
        cbx_event event = CBX_EVENT_INIT;
        cbx_call *call;

        api->spec.shell = "echo one; echo two >&2; echo three";
        api->spec.output_mode = CBX_EVENTS;
        api->spec.errors_mode = CBX_EVENTS;
        call = api_start(api);
        for (;;) {
                char *to = event.kind == CBX_EVENT_OUTPUT ? out : err;

                api_next(api, call, &event);
                if (event.kind == CBX_EVENT_ENDED)
                        break;
                to = event.kind == CBX_EVENT_OUTPUT ? out : err;
                CHECK(event.length > 0 && strlen(to) + event.length < sizeof(out));
                strncat(to, event.data, event.length);
        }
        SAME_TEXT(out, "one\nthree\n");
        SAME_TEXT(err, "two\n");
        api_next(api, call, &event);
        EQUAL(event.kind, CBX_EVENT_ENDED); /* and again */
        EQUAL(cbx_wait(call, &api->report, &api->error), 0);
        exited_with(api, 0);
        SAME_TEXT(api->report.output.data, "one\nthree\n"); /* it is captured as well */
        cbx_call_free(call);
}

/* A program whose output nobody takes waits; whoever calls cbx_wait has it go on. */
static void events_not_taken(struct api *api)
{
        struct pollfd fd = { .events = POLLIN };
        cbx_call *call;

        api->spec.argv = zeroes;
        api->spec.output_mode = CBX_EVENTS;
        call = api_start(api);
        fd.fd = cbx_call_fd(call);
        EQUAL(poll(&fd, 1, 60000), 1);
        api_shell(api, "echo meanwhile"); /* nobody else has to wait */
        exited_with(api, 0);
        cbx_report_free(&api->report);
        EQUAL(cbx_wait(call, &api->report, &api->error), 0);
        exited_with(api, 0);
        EQUAL(api->report.output.total, 8388608);
        cbx_call_free(call);
}

static void to_descriptor(struct api *api)
{
        char text[64] = "";
        int out = memory_file(""), pair[2];

        EQUAL(pipe2(pair, O_CLOEXEC), 0);
        api->spec.shell = "echo to a file; echo to a pipe >&2";
        api->spec.output_mode = api->spec.errors_mode = CBX_TO_FD;
        api->spec.output_fd = out;
        api->spec.errors_fd = pair[1];
        api_run(api);
        exited_with(api, 0);
        EQUAL(pread(out, text, sizeof(text), 0), 10);
        SAME_TEXT(text, "to a file\n");
        EQUAL(read(pair[0], text, sizeof(text)), 10);
        SAME_TEXT(text, "to a pipe\n");
        EQUAL(api->report.output.length, 0); /* not kept, but counted */
        EQUAL(api->report.output.total, 10);
        EQUAL(fcntl(pair[1], F_GETFD), FD_CLOEXEC);
        close(out);
        close(pair[0]);
        close(pair[1]);
}

static void discard(struct api *api)
{
        api->spec.argv = zeroes;
        api->spec.output_mode = CBX_DISCARD;
        api_run(api);
        exited_with(api, 0);
        EQUAL(api->report.output.length, 0);
        EQUAL(api->report.output.total, 8388608);
        EQUAL(api->report.bytes_out, 8388608);
}

static void truncated(struct api *api)
{
        const cbx_output *output = &api->report.output;

        api->spec.shell = "echo begin; head -c 100000 /dev/zero | tr '\\0' x; echo end";
        api->spec.capture_limit = 1000;
        api_run(api);
        exited_with(api, 0);
        EQUAL(output->total, 100010);
        CHECK(output->length <= 1000 && output->length > 900);
        CHECK(output->head > 0 && output->head < output->length);
        EQUAL(output->omitted, (long long)(output->total - output->length));
        EQUAL(memcmp(output->data, "begin\n", 6), 0);
        SAME_TEXT(output->data + output->length - 5, "xend\n");
}

static void binary(struct api *api)
{
        static const char wanted[] = "a\0b\377\0\n";

        api_shell(api, "printf 'a\\000b\\377\\000\\n'");
        EQUAL(api->report.output.length, 6);
        EQUAL(memcmp(api->report.output.data, wanted, 7), 0); /* with the NUL behind the last */
}

/* ---- How they end ---- */

static void limits(struct api *api)
{
        cbx_policy_unref(api->policy);
        api->policy = api_policy("{\"limits\": {\"wall\": 20, \"cpu\": 10, \"memory\": \"256M\", "
                                 "\"processes\": 64, \"file_size\": \"1M\", \"open_files\": 64, "
                                 "\"output\": \"1M\", \"capture\": \"64K\"}}");
        api->spec.shell = "ulimit -n; sleep 30";
        api->spec.open_files_limit = 32;
        api->spec.wall_limit = 0.3;
        api_run(api);
        EQUAL(api->report.reason, CBX_TIMEOUT);
        EQUAL(api->report.code, -1);
        SAME_TEXT(api->report.output.data, "32\n");
        EQUAL(cbx_report_exit_code(&api->report), 124);
        api->spec = (cbx_spec)CBX_SPEC_INIT;
        api->spec.argv = yes;
        api->spec.output_limit = 10000;
        api_run(api);
        EQUAL(api->report.reason, CBX_OUTPUT);
#define LOOSEN(field, value, name)                                                                 \
        api->spec = (cbx_spec)CBX_SPEC_INIT;                                                       \
        api->spec.shell = "true";                                                                  \
        api->spec.field = value;                                                                   \
        api_refused(api, cbx_run(api->warden, api->policy, &api->spec, &api->report, &api->error), \
                    -EINVAL, name)
        LOOSEN(wall_limit, 21, "wall");
        LOOSEN(wall_limit, -1, "wall");
        LOOSEN(cpu_limit, 11, "cpu");
        LOOSEN(memory_limit, 1ULL << 30, "memory");
        LOOSEN(process_limit, 65, "processes");
        LOOSEN(file_size_limit, 2 * MIB, "file_size");
        LOOSEN(open_files_limit, 65, "open_files");
        LOOSEN(output_limit, 2 * MIB, "output");
        LOOSEN(capture_limit, MIB, "capture");
        LOOSEN(result_limit, 17 * MIB, "result");
#undef LOOSEN
}

static void no_such_program(struct api *api)
{
        api->spec.argv = missing;
        api_run(api);
        EQUAL(api->report.reason, CBX_SETUP);
        CHECK(api->report.error);
        EQUAL(api->report.error->code, -ENOENT);
        HAS(api->report.text, "/nonexistent/tool");
        EQUAL(cbx_report_exit_code(&api->report), 127);
        api->spec.argv = unknown;
        api_run(api);
        EQUAL(api->report.reason, CBX_SETUP);
        HAS(api->report.text, "no-such-tool");
        api->spec.argv = no_program;
        api_run(api);
        EQUAL(api->report.reason, CBX_SETUP);
        EQUAL(cbx_report_exit_code(&api->report), 126);
}

static void wait_twice(struct api *api)
{
        cbx_report second = CBX_REPORT_INIT;
        cbx_call *call;

        api->spec.shell = "true";
        call = api_start(api);
        EQUAL(cbx_wait(call, &api->report, &api->error), 0);
        EQUAL(cbx_wait(call, &second, NULL), -EALREADY);
        EQUAL(cbx_wait(call, &second, &api->error), -EALREADY);
        CHECK(api->error.text[0] && !second.text);
        exited_with(api, 0);
        cbx_call_free(call);
        exited_with(api, 0); /* the report is not the call's */
}

static void kill_call(struct api *api)
{
        cbx_call *call;

        api->spec.argv = long_sleep;
        call = api_start(api);
        EQUAL(cbx_kill(call), 0); /* perhaps before it has a box */
        EQUAL(cbx_kill(call), 0);
        EQUAL(cbx_wait(call, &api->report, &api->error), 0);
        EQUAL(api->report.reason, CBX_CANCELLED);
        EQUAL(cbx_kill(call), 0);
        EQUAL(cbx_signal(call, SIGUSR1), 0);
        cbx_call_free(call);
        cbx_report_free(&api->report);

        api->spec.argv = nothing;
        call = api_start(api);
        EQUAL(cbx_wait(call, &api->report, &api->error), 0);
        EQUAL(cbx_kill(call), 0); /* over already: it stays what it was */
        exited_with(api, 0);
        cbx_call_free(call);
        call = api_start(api);
        cbx_call_free(call); /* nobody wants to know */
}

/* At whatever moment it comes: in the queue, while the box is made, at the start of the program. */
static void kill_early(struct api *api)
{
        api->spec.argv = long_sleep;
        for (int i = 0; i < 60; i++) {
                cbx_call *call = api_start(api);

                usleep((useconds_t)(i % 20) * 100);
                EQUAL(cbx_kill(call), 0);
                cbx_report_free(&api->report);
                EQUAL(cbx_wait(call, &api->report, &api->error), 0);
                EQUAL(api->report.reason, CBX_CANCELLED);
                CHECK(!api->report.error);
                cbx_call_free(call);
        }
}

static void signal_call(struct api *api)
{
        cbx_event event;
        cbx_call *call;

        api->spec.shell = "trap 'exit 5' USR1; echo ready; while :; do sleep 0.05; done";
        api->spec.output_mode = CBX_EVENTS;
        call = api_start(api);
        api_next(api, call, &event);
        EQUAL(event.kind, CBX_EVENT_OUTPUT);
        EQUAL(cbx_signal(call, 0), -EINVAL);
        EQUAL(cbx_signal(call, 65), -EINVAL);
        EQUAL(cbx_signal(call, SIGUSR1), 0);
        EQUAL(cbx_wait(call, &api->report, &api->error), 0);
        exited_with(api, 5);
        cbx_call_free(call);
        cbx_report_free(&api->report);

        api->spec.shell = "echo ready; exec sleep 50";
        call = api_start(api);
        api_next(api, call, &event);
        EQUAL(cbx_signal(call, SIGKILL), 0);
        EQUAL(cbx_wait(call, &api->report, &api->error), 0);
        EQUAL(api->report.reason, CBX_SIGNALED);
        EQUAL(api->report.signal, SIGKILL);
        EQUAL(cbx_report_exit_code(&api->report), 128 + SIGKILL);
        cbx_call_free(call);
}

/* What is said to a call that is just ending is lost, its report is not. */
static void signals_cross_end(struct api *api)
{
        api->spec.argv = nothing;
        for (int i = 0; i < 100; i++) {
                cbx_call *call = api_start(api);
                struct pollfd fd = { .fd = cbx_call_fd(call), .events = POLLIN };

                while (poll(&fd, 1, 0) == 0)
                        (void)cbx_signal(call, SIGURG);
                cbx_report_free(&api->report);
                EQUAL(cbx_wait(call, &api->report, &api->error), 0);
                exited_with(api, 0);
                cbx_call_free(call);
        }
}

static void kill_behind_signals(struct api *api)
{
        cbx_call *call;
        int r = 0;

        api->spec.argv = long_sleep;
        call = api_start(api);
        for (int i = 0; r == 0 && i < 100000; i++)
                r = cbx_signal(call, SIGURG);
        CHECK(r == 0 || r == -EAGAIN); /* more than it can hold is refused, not forgotten */
        EQUAL(cbx_kill(call), 0);
        EQUAL(cbx_wait(call, &api->report, &api->error), 0);
        EQUAL(api->report.reason, CBX_CANCELLED);
        cbx_call_free(call);
}

static void outlive_warden(struct api *api)
{
        cbx_warden *warden = NULL;
        cbx_call *call = NULL;
        cbx_event event;

        EQUAL(cbx_warden_open(NULL, &warden, &api->error), 0);
        api->spec.shell = "echo ready; sleep 50";
        api->spec.output_mode = CBX_EVENTS;
        EQUAL(cbx_start(warden, api->policy, &api->spec, &call, &api->error), 0);
        api_next(api, call, &event);
        CHECK(!cbx_warden_close(warden));
        EQUAL(cbx_wait(call, &api->report, &api->error), 0);
        EQUAL(api->report.reason, CBX_CANCELLED);
        EQUAL(cbx_kill(call), 0);
        cbx_call_free(call);
}

static void warden_killed(struct api *api)
{
        int first = cbx_warden_pid(api->warden);
        cbx_event event;
        cbx_call *call;

        api->spec.shell = "echo ready; sleep 50";
        api->spec.output_mode = CBX_EVENTS;
        api->spec.id = "lost";
        call = api_start(api);
        api_next(api, call, &event);
        EQUAL(kill(first, SIGKILL), 0);
        EQUAL(cbx_wait(call, &api->report, &api->error), 0);
        EQUAL(api->report.reason, CBX_INTERNAL);
        SAME_TEXT(api->report.id, "lost");
        CHECK(api->report.error && api->report.error->text[0] && api->report.error->hint[0]);
        EQUAL(cbx_report_exit_code(&api->report), 125);
        cbx_call_free(call);
        /* By a new warden. One that is dying may still take a call along. */
        for (int i = 0; api->report.reason == CBX_INTERNAL && i < 100; i++)
                api_shell(api, "echo again");
        SAME_TEXT(api->report.output.data, "again\n");
        CHECK(cbx_warden_pid(api->warden) > 0 && cbx_warden_pid(api->warden) != first);
}

const struct api_test calls_tests[] = {
        { "output is captured, with code and id", capture },
        { "errors may be NULL", without_errors },
        { "a shell text", shell },
        { "an environment", environment },
        { "a directory", directory },
        { "input: none, a little with NULs, 1 MiB", input },
        { "input from a descriptor", input_descriptor },
        { "output as events", events },
        { "events that are not taken", events_not_taken },
        { "output to descriptors", to_descriptor },
        { "output that is discarded", discard },
        { "output that is cut", truncated },
        { "output with NULs", binary },
        { "limits are tightened, never loosened", limits },
        { "a program that is not there", no_such_program },
        { "a report is taken once", wait_twice },
        { "kill, once and again", kill_call },
        { "kill at any moment of the start", kill_early },
        { "signals", signal_call },
        { "signals that cross the end of a call", signals_cross_end },
        { "a kill behind a flood of signals", kill_behind_signals },
        { "a call outlives the close of its warden", outlive_warden },
        { "a warden that is killed", warden_killed },
        { NULL, NULL },
};
