/* SPDX-License-Identifier: MIT */
/* Two ways to stop a call: ask the program by a signal, and end the whole box. */
#include <callbox.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static cbx_error error = CBX_ERROR_INIT;

/* Wait until there is something to be heard of the call, for at most so many milliseconds. */
static int wait_for(cbx_call *call, int milliseconds)
{
        struct pollfd fd = { .fd = cbx_call_fd(call), .events = POLLIN };

        return poll(&fd, 1, milliseconds) < 0 && errno != EINTR ? -errno : 0;
}

/* The program says when it is ready to be asked; before that the signal would just kill it. */
static int ask(cbx_warden *warden, cbx_policy *policy, cbx_report *report)
{
        cbx_spec spec = CBX_SPEC_INIT;
        cbx_event event = CBX_EVENT_INIT;
        cbx_call *call;
        int r;

        spec.shell = "trap 'echo saved; exit 3' USR1; echo ready; while :; do sleep 0.05; done";
        spec.output_mode = CBX_EVENTS;
        r = cbx_start(warden, policy, &spec, &call, &error);
        if (r < 0)
                return r;
        while (r == 0 && event.kind == CBX_EVENT_NONE) {
                r = wait_for(call, -1);
                if (r == 0)
                        r = cbx_step(call, &event, &error);
        }
        if (r == 0)
                r = cbx_signal(call, SIGUSR1);
        if (r == 0)
                r = cbx_wait(call, report, &error);
        cbx_call_free(call);
        return r;
}

static int end(cbx_warden *warden, cbx_policy *policy, cbx_report *report)
{
        cbx_spec spec = CBX_SPEC_INIT;
        cbx_call *call;
        int r;

        spec.argv = (const char *[]){ "sleep", "20", NULL };
        r = cbx_start(warden, policy, &spec, &call, &error);
        if (r < 0)
                return r;
        r = wait_for(call, 200);
        if (r == 0)
                r = cbx_kill(call); /* does no harm if the call is over */
        if (r == 0)
                r = cbx_wait(call, report, &error);
        cbx_call_free(call);
        return r;
}

int main(void)
{
        cbx_report asked = CBX_REPORT_INIT, ended = CBX_REPORT_INIT;
        cbx_warden *warden = NULL;
        cbx_policy *policy = NULL;
        int r;

        r = cbx_warden_open(NULL, &warden, &error);
        if (r == 0)
                r = cbx_policy_parse("{}", 2, &policy, &error);
        if (r == 0)
                r = ask(warden, policy, &asked);
        if (r == 0)
                r = end(warden, policy, &ended);
        if (r < 0)
                fprintf(stderr, "cancel: %s\n", error.text[0] ? error.text : strerror(-r));
        else
                printf("asked: %s\nended: %s\n", asked.text, ended.text);
        cbx_report_free(&asked);
        cbx_report_free(&ended);
        cbx_policy_unref(policy);
        cbx_warden_close(warden);
        return r < 0;
}
