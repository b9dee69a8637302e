/* SPDX-License-Identifier: MIT */
/* Three C functions as tools: each call runs in a box of its own, in another process. */
#include <callbox.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

        return reply(to, json_real(json_number_value(json_object_get(json, "a")) +
                                   json_number_value(json_object_get(json, "b"))));
}

/* What a function prints is captured, and no part of its result. */
static int letters(const char *arguments, size_t length, cbx_reply *to)
{
        json_t *json = json_loadb(arguments, length, 0, NULL), *result = json_object();
        const char *text = json_string_value(json_object_get(json, "text"));

        printf("counting the letters of \"%s\"\n", text);
        for (; *text; text++) {
                char letter[] = { *text, '\0' };
                json_int_t n = json_integer_value(json_object_get(result, letter));

                json_object_set_new(result, letter, json_integer(n + 1));
        }
        return reply(to, result);
}

/* Progress goes to callers that ask for events. */
static int primes(const char *arguments, size_t length, cbx_reply *to)
{
        json_t *json = json_loadb(arguments, length, 0, NULL), *result = json_array();
        json_int_t below = json_integer_value(json_object_get(json, "below"));

        for (json_int_t n = 2; n < below; n++) {
                json_int_t d = 2;

                while (d * d <= n && n % d != 0)
                        d++;
                if (d * d > n)
                        json_array_append_new(result, json_integer(n));
                if (n % 1000 == 0)
                        cbx_reply_progress(to, (double)n, (double)below, "looking for primes");
        }
        return reply(to, result);
}

static const cbx_tool tools[] = {
        { .name = "add",
          .description = "Add two numbers.",
          .input_schema = "{\"type\": \"object\", \"required\": [\"a\", \"b\"], \"properties\": "
                          "{\"a\": {\"type\": \"number\"}, \"b\": {\"type\": \"number\"}}}",
          .output_schema = "{\"type\": \"number\"}",
          .run = add },
        { .name = "letters",
          .description = "Count the letters of a text.",
          .input_schema = "{\"type\": \"object\", \"required\": [\"text\"], \"properties\": "
                          "{\"text\": {\"type\": \"string\", \"pattern\": \"^[a-z]*$\"}}}",
          .run = letters },
        { .name = "primes",
          .description = "List the primes below a number.",
          .input_schema = "{\"type\": \"object\", \"properties\": {\"below\": {\"type\": "
                          "\"integer\", \"maximum\": 100000, \"default\": 30}}}",
          .defaults = 1,
          .run = primes },
};

static int call(cbx_toolbox *toolbox, const char *name, const char *arguments, cbx_error *error)
{
        cbx_report report = CBX_REPORT_INIT;
        cbx_call *call = NULL;
        int failed = cbx_toolbox_call(toolbox, name, arguments, &call, error) < 0 ||
                     cbx_wait(call, &report, error) < 0;
        const cbx_result *result = failed ? NULL : cbx_report_result(&report);

        if (result)
                printf("%s%s: %s\n", name, result->ok ? "" : " failed",
                       result->ok       ? result->output
                       : result->denied ? result->reason
                                        : result->error);
        cbx_report_free(&report);
        cbx_call_free(call);
        return !result;
}

int main(int argc, char **argv)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_warden *warden = NULL;
        cbx_toolbox *toolbox = NULL;
        int failed;

        cbx_serve_functions(argc, argv); /* in a box this does not return */

        failed = cbx_warden_open(NULL, &warden, &error) < 0 ||
                 cbx_toolbox_open(warden, NULL, &toolbox, &error) < 0;
        for (size_t i = 0; !failed && i < sizeof(tools) / sizeof(tools[0]); i++)
                failed = cbx_toolbox_add_function(toolbox, &tools[i], &error) < 0;
        failed = failed || call(toolbox, "add", "{\"a\": 1, \"b\": 2}", &error) ||
                 call(toolbox, "letters", "{\"text\": \"hello\"}", &error) ||
                 call(toolbox, "primes", NULL, &error) ||
                 call(toolbox, "add", "{\"a\": \"one\"}", &error);
        if (failed)
                fprintf(stderr, "functions: %s\n", error.text);
        cbx_toolbox_close(toolbox);
        cbx_warden_close(warden);
        return failed;
}
