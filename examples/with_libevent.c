/* SPDX-License-Identifier: MIT */
/* Calls inside a libevent loop: the descriptor of a call is an event like any other. */
#include <callbox.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#define CALLS 3

struct job {
        cbx_call *call;
        struct event *ready;
        char word[32]; /* what the program said */
        int failed;
};

/* The call has something to tell: take it all, and leave the loop's care when it has ended. */
static void look(evutil_socket_t fd, short what, void *context)
{
        struct job *job = context;
        cbx_error error = CBX_ERROR_INIT;
        cbx_report report = CBX_REPORT_INIT;
        cbx_event event = CBX_EVENT_INIT;

        (void)fd, (void)what;
        do
                job->failed = cbx_step(job->call, &event, &error);
        while (job->failed == 0 && event.kind != CBX_EVENT_NONE && event.kind != CBX_EVENT_ENDED);
        if (job->failed == 0 && event.kind == CBX_EVENT_NONE)
                return;
        if (job->failed == 0)
                job->failed = cbx_wait(job->call, &report, &error);
        if (job->failed)
                fprintf(stderr, "with_libevent: %s\n", error.text);
        else
                snprintf(job->word, sizeof(job->word), "%.*s",
                         (int)strcspn(report.output.data, "\n"), report.output.data);
        cbx_report_free(&report);
        event_del(job->ready); /* the loop ends when none is left */
}

static int start(struct event_base *base, cbx_warden *warden, cbx_policy *policy, struct job *job,
                 const char *word)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_spec spec = CBX_SPEC_INIT;
        int r;

        spec.argv = (const char *[]){ "echo", word, NULL };
        r = cbx_start(warden, policy, &spec, &job->call, &error);
        if (r == 0) {
                job->ready =
                        event_new(base, cbx_call_fd(job->call), EV_READ | EV_PERSIST, look, job);
                r = job->ready ? event_add(job->ready, NULL) : -1;
        }
        if (r < 0)
                fprintf(stderr, "with_libevent: %s\n", error.text[0] ? error.text : "no event");
        return r;
}

int main(void)
{
        static const char *const words[CALLS] = { "one", "two", "three" };
        cbx_error error = CBX_ERROR_INIT;
        struct job jobs[CALLS] = { 0 };
        struct event_base *base = event_base_new();
        cbx_warden *warden = NULL;
        cbx_policy *policy = NULL;
        int failed = !base || cbx_warden_open(NULL, &warden, &error) < 0 ||
                     cbx_policy_parse("{}", 2, &policy, &error) < 0;

        if (failed)
                fprintf(stderr, "with_libevent: %s\n", base ? error.text : "no event base");
        for (int i = 0; !failed && i < CALLS; i++)
                failed = start(base, warden, policy, &jobs[i], words[i]) < 0;
        failed = failed || event_base_dispatch(base) < 0;
        for (int i = 0; i < CALLS; i++) {
                failed = failed || jobs[i].failed;
                if (!failed)
                        printf("%s%s", jobs[i].word, i + 1 < CALLS ? " " : "\n");
                if (jobs[i].ready)
                        event_free(jobs[i].ready); /* before the descriptor goes */
                cbx_call_free(jobs[i].call);
        }
        cbx_policy_unref(policy);
        cbx_warden_close(warden);
        if (base)
                event_base_free(base);
        return failed;
}
