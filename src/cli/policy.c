/* SPDX-License-Identifier: MIT */
/* callbox policy: check a policy, show the effective one, print its schema. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "cli/capabilities.h"
#include "cli/options.h"
#include "policy_schema.h" /* policy_schema_text, written by the build */
#include "warden/call.h"

static const char help[] =
        "Usage: callbox policy check [OPTIONS] FILE\n"
        "       callbox policy show [OPTIONS] [FILE]\n"
        "       callbox policy capabilities [--json] [OPTIONS] [FILE]\n"
        "       callbox policy backends [--json]\n"
        "       callbox policy schema\n"
        "\n"
        "check   tell whether this host can keep the policy of FILE and OPTIONS\n"
        "show    print the effective policy, defaults included, of FILE and OPTIONS\n"
        "capabilities  print every guarantee of that policy here: by what it is enforced,\n"
        "        or why it is not and how to get it; exit code 1 where one is\n"
        "        required and not kept\n"
        "backends  print what boxes can be made of here\n"
        "schema  print the JSON Schema of policies\n"
        "\n"
        "%s\n"
        "Manual: callbox-policy(5)\n";

static int show(struct options *options)
{
        _cleanup_policy_ cbx_policy *policy = NULL;
        cbx_error error = CBX_ERROR_INIT;
        _cleanup_free_ char *text = NULL;

        if (options_policy(options, &error, &policy) < 0 ||
            cbx_policy_print(policy, &text, &error) < 0) {
                options_blame(options, &error);
                cli_print_error(&error);
                return EXIT_CALLBOX;
        }
        return puts(text) < 0 ? EXIT_CALLBOX : 0;
}

static int check(struct options *options)
{
        struct plan_options plan_options = { .environment = environ };
        _cleanup_policy_ cbx_policy *policy = NULL;
        _cleanup_plan_ struct plan *plan = NULL;
        struct report report = REPORT_INIT;

        if (options_policy(options, &report.error, &policy) < 0 ||
            plan_compile(policy, &plan_options, &report.error, &plan) < 0 ||
            call_check(plan, &report) < 0) {
                options_blame(options, &report.error);
                cli_print_error(&report.error);
                report_free(&report);
                return EXIT_CALLBOX;
        }
        for (size_t i = 0; i < plan->n_warnings; i++)
                printf("warning: %s\n", plan->warnings[i]);
        for (size_t i = 0; i < report.n_warnings; i++)
                printf("warning: %s\n", report.warnings[i]);
        report_free(&report);
        printf("%s: good\n", options->file);
        return 0;
}

static int capabilities(struct options *options, bool json)
{
        _cleanup_policy_ cbx_policy *policy = NULL;
        cbx_error error = CBX_ERROR_INIT;
        int r = options_policy(options, &error, &policy);

        if (r == 0)
                r = capabilities_print(policy, json, &error);
        if (r >= 0)
                return r;
        options_blame(options, &error);
        cli_print_error(&error);
        return EXIT_CALLBOX;
}

static int backends(bool json)
{
        cbx_error error = CBX_ERROR_INIT;
        int r = capabilities_print_backends(json, &error);

        if (r >= 0)
                return r;
        cli_print_error(&error);
        return EXIT_CALLBOX;
}

static int parse(struct options *options, bool *json, int argc, char **argv, cbx_error *error)
{
        for (int index = 2; index < argc;) {
                int r;

                if (json && strcmp(argv[index], "--json") == 0) {
                        *json = true;
                        index++;
                        continue;
                }
                r = options_take(options, argc, argv, &index, error);

                if (r < 0)
                        return r;
                if (r > 0)
                        continue;
                if (argv[index][0] == '-')
                        return error_set(error, -EINVAL, "",
                                         "there is no option \"%s\" (see callbox "
                                         "policy --help)",
                                         argv[index]);
                if (options->file)
                        return error_set(error, -EINVAL, "",
                                         "only one file can be given, not also "
                                         "\"%s\"",
                                         argv[index]);
                options->argument = true;
                options->file = strdup(argv[index++]);
                if (!options->file)
                        return error_oom(error);
        }
        return 0;
}

int cli_policy(int argc, char **argv)
{
        const char *verb = argc > 1 ? argv[1] : "";
        cbx_error error = CBX_ERROR_INIT;
        struct options options = { 0 };
        bool asks = strcmp(verb, "capabilities") == 0 || strcmp(verb, "backends") == 0;
        bool json = false;
        int code = EXIT_CALLBOX;

        for (int i = 1; i < argc; i++)
                if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
                        return printf(help, options_help) < 0 ? EXIT_CALLBOX : 0;
        if (strcmp(verb, "schema") == 0 && argc == 2)
                return fputs(policy_schema_text, stdout) < 0 ? EXIT_CALLBOX : 0;
        if (parse(&options, asks ? &json : NULL, argc, argv, &error) < 0)
                cli_print_error(&error);
        else if (strcmp(verb, "show") == 0)
                code = show(&options);
        else if (strcmp(verb, "check") == 0 && options.file)
                code = check(&options);
        else if (strcmp(verb, "check") == 0)
                cli_fail("policy check needs a file");
        else if (strcmp(verb, "capabilities") == 0)
                code = capabilities(&options, json);
        else if (strcmp(verb, "backends") == 0 && (argc > 3 || (argc == 3 && !json)))
                cli_fail("policy backends takes nothing but --json");
        else if (strcmp(verb, "backends") == 0)
                code = backends(json);
        else
                cli_fail("policy is followed by check FILE, show [FILE], capabilities [FILE], "
                         "backends or "
                         "schema "
                         "(see callbox policy --help)");
        options_free(&options);
        return code;
}
