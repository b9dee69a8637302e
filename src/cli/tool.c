/* SPDX-License-Identifier: MIT */
/* callbox tool: look at tools, call one, check manifests. */
#include "cli/tool.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "manifest_schema.h" /* manifest_schema_text, written by the build */

static const char help[] =
        "Usage: callbox tool list SOURCE... [QUERY]\n"
        "       callbox tool call SOURCE... [OPTIONS] NAME [ARGUMENTS]\n"
        "       callbox tool check DIR|FILE\n"
        "       callbox tool schema\n"
        "\n"
        "list    print the tools whose name or description holds QUERY\n"
        "call    call a tool in a box of its own; ARGUMENTS is a JSON object, - for stdin\n"
        "check   tell every mistake in manifests or a Python file, and how to fix it\n"
        "schema  print the JSON Schema of manifests\n"
        "\n"
        "A SOURCE is where tools come from:\n"
        "  --tools DIR        folder of manifests (*.json)\n"
        "  --policies DIR     folder of the policies they name (DIR/policies)\n"
        "%s"
        "\n"
        "  --json             JSON on stdout\n"
        "  --call-id ID       comes back in the report\n"
        "  --explain          list refused paths and connections in the report\n"
        "  --warden SOCKET    in boxes that a running callbox warden has ready\n"
        "  -q, --quiet        no progress and log lines\n"
        "  --approve          say yes to what the tool asks for before it is called\n"
        "  --timeout SEC, --memory SIZE ...   limits tighter than the tool's own\n"
        "  --mode MODE        strict (the default), warn or off: without a box\n"
        "  --elevate PATTERN  run without a box     --refuse PATTERN  do not run at all\n"
        "Options of callbox run for files, network and environment make the policy of\n"
        "tools that have none of their own.\n"
        "\n"
        "Exit code of call: 0 it did well, 1 it failed, 2 the call was refused, 3 it was\n"
        "denied something, 125 callbox failed.\n"
        "Manual: callbox-tool(1), callbox-manifest(5)\n";

static const struct {
        const char *name;
        size_t offset;
} values[] = {
        { "--tools", offsetof(struct tool_command, tools) },
        { "--policies", offsetof(struct tool_command, policies) },
        { "--call-id", offsetof(struct tool_command, id) },
        { "--warden", offsetof(struct tool_command, warden) },
};

static const struct {
        const char *name, *alias;
        size_t offset;
} switches[] = {
        { "--json", NULL, offsetof(struct tool_command, json) },
        { "--explain", NULL, offsetof(struct tool_command, explain) },
        { "--quiet", "-q", offsetof(struct tool_command, quiet) },
        { "--approve", NULL, offsetof(struct tool_command, approve) },
};

static const struct {
        const char *name;
        int (*run)(struct tool_command *command);
        int words; /* at most */
} verbs[] = {
        { "list", tool_command_list, 1 },
        { "call", tool_command_call, 2 },
        { "check", tool_command_check, 1 },
};

/* One of our own options. Returns 1, 0 when it is none, or a negative errno. */
static int take_own(struct tool_command *command, int argc, char **argv, int *index,
                    cbx_error *error)
{
        for (size_t i = 0; i < ARRAY_SIZE(switches); i++)
                if (strcmp(argv[*index], switches[i].name) == 0 ||
                    (switches[i].alias && strcmp(argv[*index], switches[i].alias) == 0)) {
                        *(bool *)((char *)command + switches[i].offset) = true;
                        *index += 1;
                        return 1;
                }
        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
                const char **value = (const char **)((char *)command + values[i].offset);
                int r = options_value(argc, argv, index, values[i].name, error, value);

                if (r != 0)
                        return r;
        }
        return 0;
}

static int parse(struct tool_command *command, int argc, char **argv, int words, cbx_error *error)
{
        bool only_words = false;

        for (int index = 2; index < argc;) {
                int r = only_words ? 0 : take_own(command, argc, argv, &index, error);

                if (r == 0 && !only_words)
                        r = routes_take(&command->routes, argc, argv, &index, error);
                if (r == 0 && !only_words)
                        r = python_options_take(&command->python, argc, argv, &index, error);
                if (r == 0 && !only_words)
                        r = options_take(&command->options, argc, argv, &index, error);
                if (r < 0)
                        return r;
                if (r > 0)
                        continue;
                if (!only_words && strcmp(argv[index], "--") == 0) {
                        only_words = true;
                        index++;
                        continue;
                }
                if (!only_words && argv[index][0] == '-' && argv[index][1] != '\0')
                        return error_set(error, -EINVAL, "",
                                         "there is no option \"%s\" (see callbox tool --help)",
                                         argv[index]);
                if (command->n_words == words)
                        return error_set(error, -EINVAL, "",
                                         "\"%s\" is one word too many (see callbox tool --help)",
                                         argv[index]);
                command->words[command->n_words++] = argv[index++];
        }
        return 0;
}

const char *tool_command_server(void)
{
        static const char *const places[] = { "callbox-functions", "../libexec/callbox-functions" };
        static char path[PATH_MAX + 64];
        const char *named = secure_getenv("CALLBOX_FUNCTIONS");
        char program[PATH_MAX], *slash;
        ssize_t n;

        if (named && *named)
                return NULL; /* what the user names goes before what lies beside us */
        n = readlink("/proc/self/exe", program, sizeof(program) - 1);
        program[MAX(n, 0)] = '\0';
        slash = strrchr(program, '/');
        for (size_t i = 0; slash && i < ARRAY_SIZE(places); i++) {
                snprintf(path, sizeof(path), "%.*s%s", (int)(slash + 1 - program), program,
                         places[i]);
                if (access(path, X_OK) == 0)
                        return path;
        }
        return NULL; /* the library knows */
}

int cli_tool(int argc, char **argv)
{
        const char *verb = argc > 1 ? argv[1] : "";
        struct tool_command command = { 0 };
        cbx_error error = CBX_ERROR_INIT;
        int code = EXIT_CALLBOX;

        for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
                if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
                        return printf(help, python_help) < 0 ? EXIT_CALLBOX : 0;
        if (strcmp(verb, "schema") == 0 && argc == 2)
                return fputs(manifest_schema_text, stdout) < 0; /* main tells */
        for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
                if (strcmp(verb, verbs[i].name) != 0)
                        continue;
                if (parse(&command, argc, argv, verbs[i].words, &error) < 0)
                        cli_print_error(&error);
                else
                        code = verbs[i].run(&command);
                options_free(&command.options);
                routes_free(&command.routes);
                return code;
        }
        return cli_fail(
                "tool is followed by list, call, check or schema (see callbox tool --help)");
}
