/* SPDX-License-Identifier: MIT */
/*
 * Three C functions as tools. Each call of one runs in a box of its own: the function sees neither
 * this program's memory nor its files, and may crash.
 *
 *   functions                          call each of them once
 *   functions NAME '{"a": 1, "b": 2}'  call one
 */
#include <callbox.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The functions ---- */

static int reply(cbx_reply *to, json_t *result)
{
        char *text = json_dumps(result, JSON_COMPACT | JSON_ENCODE_ANY);
        int r = text ? cbx_reply_result(to, text, strlen(text)) : -1;

        free(text);
        json_decref(result);
        return r;
}

static int add(const char *arguments, size_t length, cbx_reply *to)
{
        json_t *json = json_loadb(arguments, length, 0, NULL);
        double sum = json_number_value(json_object_get(json, "a")) +
                     json_number_value(json_object_get(json, "b"));

        json_decref(json);
        return reply(to, json_real(sum));
}

/* How often each letter occurs. What it prints is captured, and no part of the result. */
static int letters(const char *arguments, size_t length, cbx_reply *to)
{
        json_t *json = json_loadb(arguments, length, 0, NULL), *result = json_object();
        const char *text = json_string_value(json_object_get(json, "text"));

        printf("counting the letters of \"%s\"\n", text);
        for (; *text; text++) {
                char letter[] = { *text, '\0' };
                json_int_t n = json_integer_value(json_object_get(result, letter));

                if ((*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z'))
                        json_object_set_new(result, letter, json_integer(n + 1));
        }
        json_decref(json);
        return reply(to, result);
}

static int primes(const char *arguments, size_t length, cbx_reply *to)
{
        json_t *json = json_loadb(arguments, length, 0, NULL), *result = json_array();
        json_int_t below = json_integer_value(json_object_get(json, "below"));

        json_decref(json);
        for (json_int_t n = 2; n < below; n++) {
                json_int_t d = 2;

                while (d * d <= n && n % d != 0)
                        d++;
                if (d * d > n)
                        json_array_append_new(result, json_integer(n));
                if (n % 1000 == 0)
                        cbx_reply_progress(to, (double)n, (double)below, "looking for primes");
        }
        cbx_reply_log(to, "info", "done");
        return reply(to, result);
}

static const cbx_tool tools[] = {
        { .name = "add",
          .description = "Add two numbers.",
          .input_schema = "{\"type\": \"object\", \"required\": [\"a\", \"b\"],"
                          " \"properties\": {\"a\": {\"type\": \"number\"},"
                          " \"b\": {\"type\": \"number\"}}}",
          .output_schema = "{\"type\": \"number\"}",
          .run = add },
        { .name = "letters",
          .description = "Count the letters of a text.",
          .input_schema = "{\"type\": \"object\", \"required\": [\"text\"],"
                          " \"properties\": {\"text\": {\"type\": \"string\"}}}",
          .run = letters },
        { .name = "primes",
          .description = "List the primes below a number.",
          .input_schema = "{\"type\": \"object\", \"properties\":"
                          " {\"below\": {\"type\": \"integer\", \"minimum\": 2,"
                          " \"maximum\": 100000, \"default\": 30}}}",
          .run = primes,
          .defaults = 1 },
};

/* ---- The program ---- */

static void show(const cbx_report *report)
{
        const cbx_result *result = cbx_report_result(report);

        if (!result)
                printf("%s\n", report->text);
        else if (result->ok)
                printf("%s: %s\n", result->tool, result->output);
        else
                printf("%s failed: %s\n", result->tool,
                       result->denied ? result->reason : result->error);
}

static int call(cbx_toolbox *toolbox, const char *name, const char *arguments, cbx_error *error)
{
        cbx_spec spec = CBX_SPEC_INIT;
        cbx_event event = CBX_EVENT_INIT;
        cbx_report report = CBX_REPORT_INIT;
        cbx_call *call = NULL;
        int r;

        spec.result_mode = CBX_RESULT_EVENTS; /* progress and log lines as they come */
        r = cbx_toolbox_start(toolbox, name, arguments, &spec, &call, error);
        while (r == 0 && event.kind != CBX_EVENT_ENDED) {
                struct pollfd ready = { .fd = cbx_call_fd(call), .events = POLLIN };

                r = cbx_step(call, &event, error);
                if (event.kind == CBX_EVENT_PROGRESS)
                        fprintf(stderr, "%s, %g of %g\n", event.data, event.done, event.total);
                else if (event.kind == CBX_EVENT_LOG)
                        fprintf(stderr, "%s: %s\n", event.level, event.data);
                else if (event.kind == CBX_EVENT_NONE)
                        poll(&ready, 1, -1);
        }
        if (r == 0)
                r = cbx_wait(call, &report, error);
        if (r == 0)
                show(&report);
        cbx_report_free(&report);
        cbx_call_free(call);
        return r;
}

int main(int argc, char **argv)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_warden *warden = NULL;
        cbx_toolbox *toolbox = NULL;
        int r;

        cbx_serve_functions(argc, argv); /* in a box this does not return */

        r = cbx_warden_open(NULL, &warden, &error);
        if (r == 0)
                r = cbx_toolbox_open(warden, NULL, &toolbox, &error);
        for (size_t i = 0; r == 0 && i < sizeof(tools) / sizeof(tools[0]); i++)
                r = cbx_toolbox_add_function(toolbox, &tools[i], &error);
        if (r == 0 && argc > 1) {
                r = call(toolbox, argv[1], argc > 2 ? argv[2] : NULL, &error);
        } else if (r == 0) {
                r = call(toolbox, "add", "{\"a\": 1, \"b\": 2}", &error);
                if (r == 0)
                        r = call(toolbox, "letters", "{\"text\": \"hello\"}", &error);
                if (r == 0)
                        r = call(toolbox, "primes", NULL, &error);
                if (r == 0)
                        r = call(toolbox, "add", "{\"a\": \"one\"}", &error);
        }
        if (r < 0)
                fprintf(stderr, "functions: %s%s%s\n", error.where, error.where[0] ? ": " : "",
                        error.text);
        cbx_toolbox_close(toolbox);
        cbx_warden_close(warden);
        return r < 0;
}
