/* SPDX-License-Identifier: MIT */
/*
 * Sixteen threads, first with a warden each, then all with one, then with one toolbox: built with
 * ThreadSanitizer together with the library's own sources. Each thread checks that every report is
 * that of its own call.
 */
#include <callbox.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "threads.h"

#define THREADS 16

struct thread {
        pthread_t id;
        int number, calls;
        cbx_warden *warden; /* NULL: one of its own */
        cbx_policy *policy; /* shared by all */
        int good;
        char why[256];
};

/* Every fourth call is watched by its events, every fifth is cancelled. */
static int one_call(struct thread *thread, cbx_warden *warden, int number, cbx_error *error)
{
        cbx_report report = CBX_REPORT_INIT;
        cbx_event event = CBX_EVENT_INIT;
        cbx_spec spec = CBX_SPEC_INIT;
        cbx_call *call = NULL;
        char id[32], wanted[40];
        int killed = number % 5 == 4, r, good;

        snprintf(id, sizeof(id), "%d-%d", thread->number, number);
        snprintf(wanted, sizeof(wanted), "%s\n", id);
        spec.id = id;
        spec.argv = killed ? (const char *[]){ "sleep", "50", NULL }
                           : (const char *[]){ "echo", id, NULL };
        spec.output_mode = number % 4 == 0 ? CBX_EVENTS : CBX_CAPTURE;
        r = cbx_start(warden, thread->policy, &spec, &call, error);
        if (r < 0)
                return r;
        if (killed)
                r = cbx_kill(call);
        while (r == 0 && spec.output_mode == CBX_EVENTS && event.kind != CBX_EVENT_ENDED) {
                struct pollfd fd = { .fd = cbx_call_fd(call), .events = POLLIN };

                r = cbx_step(call, &event, error);
                if (r == 0 && event.kind == CBX_EVENT_NONE && poll(&fd, 1, 60000) != 1)
                        r = -ETIME;
        }
        if (r == 0)
                r = cbx_wait(call, &report, error);
        good = r == 0 && report.id && strcmp(report.id, id) == 0 &&
               (killed ? report.reason == CBX_CANCELLED
                       : report.reason == CBX_EXITED && report.code == 0 &&
                                 strcmp(report.output.data, wanted) == 0);
        if (r == 0 && !good)
                snprintf(error->text, sizeof(error->text), "call %s: id %s, %s", id,
                         report.id ? report.id : "none", report.text);
        (void)cbx_report_guarantees(&report);
        cbx_report_free(&report);
        cbx_call_free(call);
        return good ? 0 : -EPROTO;
}

static void *work(void *context)
{
        struct thread *thread = context;
        cbx_error error = CBX_ERROR_INIT;
        cbx_warden *warden = thread->warden;
        cbx_policy *policy = cbx_policy_ref(thread->policy);
        int r = warden ? 0 : cbx_warden_open(NULL, &warden, &error);

        if (r == 0 && thread->number % 4 == 0)
                r = cbx_prepare(warden, policy, &error);
        for (int i = 0; r == 0 && i < thread->calls; i++) {
                r = one_call(thread, warden, i, &error);
                thread->good += r == 0 && cbx_warden_pid(warden) > 0;
        }
        snprintf(thread->why, sizeof(thread->why), "%.200s", r < 0 ? error.text : "");
        cbx_policy_unref(policy);
        if (!thread->warden)
                cbx_warden_close(warden);
        return NULL;
}

static int together(cbx_warden *shared, cbx_policy *policy, int calls)
{
        static struct thread threads[THREADS];
        int good = 0;

        memset(threads, 0, sizeof(threads));
        for (int i = 0; i < THREADS; i++) {
                threads[i].number = i;
                threads[i].calls = calls;
                threads[i].warden = shared;
                threads[i].policy = policy;
                if (pthread_create(&threads[i].id, NULL, work, &threads[i]) != 0)
                        abort();
        }
        for (int i = 0; i < THREADS; i++) {
                pthread_join(threads[i].id, NULL);
                good += threads[i].good;
                if (threads[i].why[0])
                        printf("thread %d: %s\n", i, threads[i].why);
        }
        printf("%s: %d of %d calls are right\n", shared ? "one warden" : "a warden each", good,
               THREADS * calls);
        return good == THREADS * calls;
}

static int raced;

static void *race(void *context)
{
        for (int i = 0; i < 1000; i++)
                raced += i;
        return context;
}

/* Threads that do race, to see that it would be told. */
static int control(void)
{
        pthread_t ids[2];

        for (int i = 0; i < 2; i++)
                if (pthread_create(&ids[i], NULL, race, NULL) != 0)
                        abort();
        for (int i = 0; i < 2; i++)
                pthread_join(ids[i], NULL);
        return raced == 0;
}

int main(int argc, char **argv)
{
        int calls = argc > 1 ? atoi(argv[1]) : 20, good;
        cbx_error error = CBX_ERROR_INIT;
        cbx_warden *warden = NULL;
        cbx_policy *policy = NULL;

        if (argc > 1 && strcmp(argv[1], "--race") == 0)
                return control();
        if (cbx_policy_parse("{}", 2, &policy, &error) < 0 ||
            cbx_warden_open(NULL, &warden, &error) < 0) {
                printf("%s\n", error.text);
                return 1;
        }
        good = together(NULL, policy, calls);
        good = together(warden, policy, calls) && good;
        good = threads_share_tools(warden, calls) && good;
        cbx_warden_close(warden);
        cbx_policy_unref(policy);
        return good ? 0 : 1;
}
