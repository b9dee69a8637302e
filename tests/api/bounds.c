/* SPDX-License-Identifier: MIT */
/*
 * Calls that are bound, from request to report, driven by test_warm.py. The bounds are not part of
 * the public API, so this is linked with the library's own objects. The argument is a directory in
 * which the calls can write.
 */
#include <stdio.h>
#include <string.h>

#include "client/client.h"

#define MANY 4000
#define FLIGHT 12

static cbx_warden *warden;
static cbx_policy *policy;
static const char *place;

#define MUST(holds)                                                                                \
        do {                                                                                       \
                if (!(holds))                                                                      \
                        fail(__LINE__, #holds);                                                    \
        } while (0)

static _Noreturn void fail(int line, const char *what)
{
        printf("bounds.c:%d: %s\n", line, what);
        exit(1);
}

static cbx_call *start(const char *shell, const char *id, struct wire_bound one,
                       struct wire_bound other)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_spec spec = CBX_SPEC_INIT;
        cbx_call *call = NULL;

        spec.shell = shell;
        spec.id = id;
        spec.cwd = place;
        if (client_start(warden, policy, &spec, (struct wire_bound[]){ one, other }, PLAN_BOXED,
                         &call, &error) < 0)
                fail(__LINE__, error.text);
        return call;
}

/* Its output, which is short; the reason has to be this. */
static void finish(cbx_call *call, int reason, char output[64])
{
        cbx_report report = CBX_REPORT_INIT;

        if (cbx_wait(call, &report, NULL) < 0)
                fail(__LINE__, "no report");
        if (report.reason != reason)
                fail(__LINE__, report.text);
        if (output)
                snprintf(output, 64, "%s", report.output.data);
        cbx_report_free(&report);
        cbx_call_free(call);
}

static struct wire_bound bound(uint64_t key, uint32_t most)
{
        return (struct wire_bound){ .key = key, .most = most };
}

static void touch(const char *name)
{
        char path[4096];
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s", place, name);
        file = fopen(path, "we");
        MUST(file);
        fclose(file);
}

/* A call that runs until the file `name` is there. */
static cbx_call *start_gate(const char *name, struct wire_bound one)
{
        char shell[256];

        snprintf(shell, sizeof(shell), "until [ -e %s ]; do sleep 0.01; done", name);
        return start(shell, NULL, one, bound(0, 0));
}

/* Never more than two of one key and three of the other at once, and each of them comes. */
static void most_at_once(void)
{
        cbx_call *calls[FLIGHT];
        char output[64];

        for (int i = 0; i < FLIGHT; i++) {
                char text[256];

                /* Whoever runs has a directory there. */
                snprintf(text, sizeof(text),
                         "mkdir run.%d; ls -d run.* | wc -l; sleep 0.05; rmdir run.%d", i, i);
                calls[i] = start(text, NULL, bound(1, 3), bound(2, i % 2 ? 2 : 3));
        }
        for (int i = 0; i < FLIGHT; i++) {
                finish(calls[i], CBX_EXITED, output);
                MUST(output[0] >= '1' && output[0] <= '3' && output[1] == '\n');
        }
}

/* One of a kind at a time, in the order in which they were started. */
static void in_order(void)
{
        cbx_call *calls[FLIGHT], *gate = start_gate("gate1", bound(3, 1));
        char output[64];

        for (int i = 0; i < FLIGHT; i++)
                calls[i] = start("echo >> order; wc -l < order", NULL, bound(3, 1), bound(0, 0));
        touch("gate1");
        finish(gate, CBX_EXITED, NULL);
        for (int i = 0; i < FLIGHT; i++) {
                finish(calls[i], CBX_EXITED, output);
                MUST(atoi(output) == i + 1);
        }
}

/* Those that wait hold up nobody of another kind, and can be cancelled. */
static void others_pass(void)
{
        cbx_call *gate = start_gate("gate2", bound(4, 1)), *held[FLIGHT];
        char output[64];

        for (int i = 0; i < FLIGHT; i++)
                held[i] = start("echo held", NULL, bound(4, 1), bound(0, 0));
        for (int i = 0; i < FLIGHT; i++) {
                finish(start("echo free", NULL, bound(5, 1), bound(0, 0)), CBX_EXITED, output);
                MUST(strcmp(output, "free\n") == 0);
                finish(start("echo free", NULL, bound(0, 0), bound(0, 0)), CBX_EXITED, output);
        }
        for (int i = 0; i < FLIGHT; i += 2) {
                MUST(cbx_kill(held[i]) == 0);
                finish(held[i], CBX_CANCELLED, NULL);
        }
        touch("gate2");
        finish(gate, CBX_EXITED, NULL);
        for (int i = 1; i < FLIGHT; i += 2)
                finish(held[i], CBX_EXITED, output);
        MUST(strcmp(output, "held\n") == 0);
}

/* A queue of thousands behind one call: others are served beside it, and forgetting it is quick. */
static void long_queue(void)
{
        static cbx_call *held[MANY];
        cbx_call *gate = start_gate("gate3", bound(6, 1));

        for (int i = 0; i < MANY; i++)
                held[i] = start("true", NULL, bound(6, 1), bound(7, 2));
        for (int i = 0; i < FLIGHT; i++)
                finish(start("true", NULL, bound(7, 1), bound(0, 0)), CBX_EXITED, NULL);
        for (int i = FLIGHT; i < MANY; i++)
                cbx_call_free(held[i]);
        touch("gate3");
        finish(gate, CBX_EXITED, NULL);
        for (int i = 0; i < FLIGHT; i++)
                finish(held[i], CBX_EXITED, NULL);
        finish(start("true", NULL, bound(6, 1), bound(7, 1)), CBX_EXITED, NULL);
}

int main(int argc, char **argv)
{
        cbx_error error = CBX_ERROR_INIT;
        char text[8192];

        MUST(argc == 2);
        place = argv[1];
        snprintf(text, sizeof(text),
                 "{\"files\": {\"workspace\": \"%s\"}, \"limits\": {\"wall\": 100}}", place);
        if (cbx_policy_parse(text, strlen(text), &policy, &error) < 0 ||
            cbx_warden_open(NULL, &warden, &error) < 0)
                fail(__LINE__, error.text);
        most_at_once();
        in_order();
        others_pass();
        long_queue();
        cbx_warden_close(warden);
        cbx_policy_unref(policy);
        puts("ok");
        return 0;
}
