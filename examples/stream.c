/* SPDX-License-Identifier: MIT */
/* Output as it comes: CBX_EVENTS turns what the program writes into events of the call. */
#include <callbox.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

/* Pass on whatever comes, until the call has ended. A piece is bytes, not a line and not a text. */
static int pass_on(cbx_call *call, cbx_error *error)
{
        cbx_event event = CBX_EVENT_INIT;
        int r = 0;

        while (r == 0 && event.kind != CBX_EVENT_ENDED) {
                struct pollfd fd = { .fd = cbx_call_fd(call), .events = POLLIN };

                r = cbx_step(call, &event, error);
                if (r < 0)
                        break;
                switch (event.kind) {
                case CBX_EVENT_OUTPUT:
                        fwrite(event.data, 1, event.length, stdout);
                        fflush(stdout);
                        break;
                case CBX_EVENT_ERRORS:
                        fwrite(event.data, 1, event.length, stderr);
                        break;
                case CBX_EVENT_NONE: /* only now is there something to wait for */
                        if (poll(&fd, 1, -1) < 0 && errno != EINTR)
                                return -errno;
                        break;
                default:
                        break;
                }
        }
        return r;
}

int main(void)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_report report = CBX_REPORT_INIT;
        cbx_spec spec = CBX_SPEC_INIT;
        cbx_warden *warden = NULL;
        cbx_policy *policy = NULL;
        cbx_call *call = NULL;
        int r;

        spec.shell = "for part in one two three; do echo part $part; sleep 0.1; done";
        spec.output_mode = CBX_EVENTS;
        spec.errors_mode = CBX_EVENTS;
        r = cbx_warden_open(NULL, &warden, &error);
        if (r == 0)
                r = cbx_policy_parse("{}", 2, &policy, &error);
        if (r == 0)
                r = cbx_start(warden, policy, &spec, &call, &error);
        if (r == 0)
                r = pass_on(call, &error);
        if (r == 0)
                r = cbx_wait(call, &report, &error);
        if (r < 0)
                fprintf(stderr, "stream: %s\n", error.text[0] ? error.text : strerror(-r));
        else
                printf("%llu bytes; %s\n", (unsigned long long)report.output.total, report.text);
        cbx_report_free(&report);
        cbx_call_free(call);
        cbx_policy_unref(policy);
        cbx_warden_close(warden);
        return r < 0;
}
