/* SPDX-License-Identifier: MIT */
/* Many calls at once in one poll loop, without a thread: each call has a descriptor to wait for. */
#include <callbox.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define CALLS 32

static int fail(const cbx_error *error)
{
        fprintf(stderr, "many: %s%s%s\n", error->where, error->where[0] ? ": " : "", error->text);
        if (error->hint[0])
                fprintf(stderr, "many: to fix it: %s\n", error->hint);
        return -1;
}

static int start(cbx_warden *warden, cbx_policy *policy, int number, cbx_call **ret)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_spec spec = CBX_SPEC_INIT;
        char text[64];

        snprintf(text, sizeof(text), "echo $((%d * %d))", number, number);
        spec.shell = text; /* it is copied */
        return cbx_start(warden, policy, &spec, ret, &error) < 0 ? fail(&error) : 0;
}

/* Returns 1 when the call has ended and its result was added, 0 when not, -1 on failure. */
static int look(cbx_call *call, long *sum)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_report report = CBX_REPORT_INIT;
        cbx_event event = CBX_EVENT_INIT;

        if (cbx_step(call, &event, &error) < 0)
                return fail(&error);
        if (event.kind != CBX_EVENT_ENDED)
                return 0;
        if (cbx_wait(call, &report, &error) < 0) /* has the report, so does not wait */
                return fail(&error);
        if (report.reason == CBX_EXITED && report.code == 0)
                *sum += strtol(report.output.data, NULL, 10);
        else
                fprintf(stderr, "many: %s\n", report.text);
        cbx_report_free(&report);
        return 1;
}

int main(void)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_warden *warden = NULL;
        cbx_policy *policy = NULL;
        cbx_call *calls[CALLS] = { NULL };
        struct pollfd fds[CALLS];
        int running = 0, failed = 0;
        long sum = 0;

        if (cbx_warden_open(NULL, &warden, &error) < 0 ||
            cbx_policy_parse("{}", 2, &policy, &error) < 0)
                failed = fail(&error);
        for (int i = 0; !failed && i < CALLS; i++) {
                failed = start(warden, policy, i + 1, &calls[i]);
                fds[i].fd = failed ? -1 : cbx_call_fd(calls[i]);
                fds[i].events = POLLIN;
                running += !failed;
        }
        while (!failed && running > 0) {
                failed = poll(fds, CALLS, -1) < 0;
                if (failed)
                        perror("many: poll");
                for (int i = 0; !failed && i < CALLS; i++) {
                        int ended = fds[i].fd >= 0 && fds[i].revents ? look(calls[i], &sum) : 0;

                        failed = ended < 0;
                        running -= ended > 0;
                        if (ended > 0)
                                fds[i].fd = -1; /* poll passes over it */
                }
        }
        if (!failed)
                printf("%d calls, the squares add up to %ld\n", CALLS, sum);
        for (int i = 0; i < CALLS; i++)
                cbx_call_free(calls[i]);
        cbx_policy_unref(policy);
        cbx_warden_close(warden);
        return failed ? 1 : 0;
}
