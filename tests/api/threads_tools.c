/* SPDX-License-Identifier: MIT */
/*
 * Sixteen threads that share one toolbox: most call tools, one adds and removes them, one lists
 * them, one takes the changes, of calls and of a directory that another writes to.
 */
#include <callbox.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "threads.h"

#define THREADS 16
#define MANIFEST                                                                                   \
        "{\"name\": \"%s\", \"inputSchema\": {\"type\": \"object\", \"required\": [\"n\"],"        \
        " \"properties\": {\"n\": {\"type\": \"integer\"}}}, \"calls\": 4,"                        \
        " \"run\": {\"command\": [\"echo\", \"{n}\"], \"output\": \"json\"}}"

struct thread {
        pthread_t id;
        int number, calls, good;
        cbx_toolbox *toolbox;
        const char *directory;
        char why[256];
};

/* Every third call has arguments that are wrong, every fifth a tool that comes and goes. */
static int one_call(struct thread *thread, int number, cbx_error *error)
{
        const char *name = number % 5 == 4 ? "passing" : "steady";
        cbx_report report = CBX_REPORT_INIT;
        const cbx_result *result = NULL;
        cbx_call *call = NULL;
        char arguments[64], wanted[32];
        int wrong = number % 3 == 2, good = 0;

        snprintf(wanted, sizeof(wanted), "%d", thread->number * 1000 + number);
        snprintf(arguments, sizeof(arguments), wrong ? "{\"n\": \"%s\"}" : "{\"n\": %s}", wanted);
        if (cbx_toolbox_call(thread->toolbox, name, arguments, &call, error) == 0 &&
            cbx_wait(call, &report, error) == 0)
                result = cbx_report_result(&report);
        if (result && number % 5 == 4 && result->error &&
            strcmp(result->error, "unknown tool: passing") == 0)
                good = 1;
        else if (result && wrong)
                good = report.reason == CBX_SETUP && cbx_report_mistakes(&report)[0];
        else if (result)
                good = result->ok && strcmp(result->output, wanted) == 0;
        if (result && !good)
                snprintf(error->text, sizeof(error->text), "%s: %.200s", name,
                         result->error ? result->error : result->output);
        cbx_report_free(&report);
        cbx_call_free(call);
        return good;
}

static int add(cbx_toolbox *toolbox, const char *name, cbx_error *error)
{
        char text[512];
        int n = snprintf(text, sizeof(text), MANIFEST, name);

        return cbx_toolbox_add(toolbox, text, (size_t)n, error);
}

static int write_manifest(const char *directory, const char *name)
{
        char path[512];
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s.json", directory, name);
        file = fopen(path, "we");
        if (!file)
                return -1;
        fprintf(file, MANIFEST, name);
        return fclose(file);
}

static int one_change(struct thread *thread, int number, cbx_error *error)
{
        char *text = NULL, name[32];
        cbx_tool_event event = CBX_TOOL_EVENT_INIT;
        int r = 0;

        switch (thread->number) {
        case 0:
                r = add(thread->toolbox, "passing", error);
                if (r == 0)
                        r = cbx_toolbox_remove(thread->toolbox, "passing", error);
                return r == 0;
        case 1:
                r = cbx_toolbox_list(thread->toolbox, number % 2 ? "S" : NULL, &text, error);
                free(text);
                return r == 0;
        case 2:
                return cbx_toolbox_step(thread->toolbox, &event, error) == 0;
        default:
                snprintf(name, sizeof(name), "file%d", number % 5);
                return write_manifest(thread->directory, name) == 0;
        }
}

static void *work(void *context)
{
        struct thread *thread = context;
        cbx_error error = CBX_ERROR_INIT;
        int good = 1;

        for (int i = 0; good && i < thread->calls; i++) {
                good = thread->number < 4 ? one_change(thread, i, &error)
                                          : one_call(thread, i, &error);
                thread->good += good;
        }
        if (!good)
                snprintf(thread->why, sizeof(thread->why), "%.200s", error.text);
        return NULL;
}

static int run_all(cbx_toolbox *toolbox, const char *directory, int calls)
{
        static struct thread threads[THREADS];
        int good = 0;

        for (int i = 0; i < THREADS; i++) {
                threads[i] = (struct thread){
                        .number = i, .calls = calls, .toolbox = toolbox, .directory = directory
                };
                if (pthread_create(&threads[i].id, NULL, work, &threads[i]) != 0)
                        abort();
        }
        for (int i = 0; i < THREADS; i++) {
                pthread_join(threads[i].id, NULL);
                good += threads[i].good;
                if (threads[i].why[0])
                        printf("thread %d: %s\n", i, threads[i].why);
        }
        printf("one toolbox: %d of %d acts are right\n", good, THREADS * calls);
        return good == THREADS * calls;
}

int threads_share_tools(cbx_warden *warden, int calls)
{
        char directory[] = "/tmp/callbox-test-XXXXXX", path[512];
        cbx_error error = CBX_ERROR_INIT;
        cbx_toolbox *toolbox = NULL;
        int good = 0;

        if (!mkdtemp(directory))
                return 0;
        if (cbx_toolbox_open(warden, NULL, &toolbox, &error) == 0 &&
            cbx_toolbox_load(toolbox, directory, &error) == 0 &&
            add(toolbox, "steady", &error) == 0)
                good = run_all(toolbox, directory, calls);
        else
                printf("%s\n", error.text);
        cbx_toolbox_close(toolbox);
        for (int i = 0; i < 5; i++) {
                snprintf(path, sizeof(path), "%s/file%d.json", directory, i);
                (void)unlink(path);
        }
        (void)rmdir(directory);
        return good;
}
