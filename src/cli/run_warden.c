/* SPDX-License-Identifier: MIT */
#include "cli/run_warden.h"

#include <poll.h>

#include "cli/cli.h"
#include "client/client.h"

static void ask_for(const struct call_spec *spec, bool explain, cbx_spec *ret)
{
        ret->id = spec->id;
        ret->argv = (const char *const *)spec->argv;
        ret->environment = (const char *const *)spec->environment;
        ret->cwd = spec->directory;
        if (spec->stdin_data) {
                ret->input = spec->stdin_data;
                ret->input_length = spec->stdin_length;
        } else if (spec->stdin_fd >= 0) {
                ret->input_mode = CBX_FROM_FD;
                ret->input_fd = spec->stdin_fd;
        }
        ret->output_mode = spec->output[0].capture ? CBX_CAPTURE : CBX_TO_FD;
        ret->errors_mode = spec->output[1].capture ? CBX_CAPTURE : CBX_TO_FD;
        ret->output_fd = spec->output[0].forward;
        ret->errors_fd = spec->output[1].forward;
        ret->explain = explain;
        ret->sanitize = spec->sanitize;
#ifdef BOX_UNFENCED /* the attack suite tries forked boxes as well */
        ret->warm = getenv("CALLBOX_FORKED") ? CBX_WARM_FORKED : 0;
#endif
}

static void await(cbx_call *call, const struct call_hook *hook)
{
        struct pollfd fds[2] = { { .fd = cbx_call_fd(call), .events = POLLIN },
                                 { .fd = hook->fd, .events = POLLIN } };
        cbx_event event = CBX_EVENT_INIT;

        while (event.kind != CBX_EVENT_ENDED) {
                if (poll(fds, 2, -1) < 0)
                        continue;
                if (fds[1].revents)
                        hook->ready(NULL, hook->data);
                if (fds[0].revents)
                        (void)cbx_step(call, &event, NULL);
        }
}

void run_through_warden(const char *socket, cbx_policy *policy, const struct call_spec *spec,
                        bool explain, const struct call_hook *hook, cbx_call **call,
                        struct report *report)
{
        cbx_warden_options options = CBX_WARDEN_OPTIONS_INIT;
        cbx_spec asked = CBX_SPEC_INIT;
        cbx_warden *warden;

        options.socket = socket;
        if (cli_open_warden(&options, &warden, &report->error) < 0)
                return;
        ask_for(spec, explain, &asked);
        if (cbx_start(warden, policy, &asked, call, &report->error) == 0) {
                await(*call, hook);
                report_free(report);
                *report = (*call)->report;
                (*call)->report = (struct report)REPORT_INIT;
                *call = cbx_call_free(*call);
        }
        cbx_warden_close(warden);
}
