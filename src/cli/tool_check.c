/* SPDX-License-Identifier: MIT */
/* callbox tool check: every mistake in every manifest, with file, place and fix. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/tool.h"
#include "policy/inputs.h"
#include "tool/python.h"

#define MANIFEST_BYTES MIB

struct check {
        struct tool_command *command;
        char directory[PATH_MAX], policies[PATH_MAX + 16];
        const char *folder; /* as it was spelled, or the directory of the file */
        cbx_policy *policy;
        char **held;    /* by --hold, in all tools */
        json_t *names;  /* name → file */
        json_t *report; /* one object for each file */
        size_t n_files, n_mistakes;
        struct tool **tools; /* that are in order so far */
        size_t n_tools;
        cbx_warden *warden; /* opened when a manifest names a Python function */
        struct python_answers *answers;
};

/* Is there such a program along the PATH, which the box has as the caller does? */
static void check_program(const struct tool *tool, struct tool_mistakes *mistakes)
{
        const char *program = tool->kind == TOOL_COMMAND ? template_program(tool->template) : NULL;
        const char *path = getenv("PATH");
        cbx_error error = CBX_ERROR_INIT;

        if (!program || strchr(program, '/') || !path || !tool->policy->system)
                return;
        for (size_t i = 0; i < tool->policy->n_variables; i++)
                if (strcmp(tool->policy->variables[i].name, "PATH") == 0 &&
                    tool->policy->variables[i].value)
                        return; /* one of its own, in places of its own */
        while (*path) {
                size_t length = strcspn(path, ":");
                char file[PATH_MAX];

                snprintf(file, sizeof(file), "%.*s/%s", (int)length, path, program);
                if (access(file, X_OK) == 0)
                        return;
                path += length + (path[length] == ':');
        }
        error_set(&error, -ENOENT, "run.command[0]", "there is no program \"%.100s\" here",
                  program);
        error_hint(&error, "install it; one beside the manifest is {\"file\": \"%.100s\"}",
                   program);
        tool_mistake_add(mistakes, &error);
}

/* Can the host keep what the tool asks for? */
static void check_host(const struct tool *tool, struct tool_mistakes *mistakes)
{
        struct plan_options options = { .environment = environ };
        _cleanup_plan_ struct plan *plan = NULL;
        cbx_error error = CBX_ERROR_INIT;

        if (plan_compile(tool->policy, &options, &error, &plan) < 0) {
                char where[sizeof(error.where)];

                memcpy(where, error.where, sizeof(where));
                snprintf(error.where, sizeof(error.where), "policy%s%.100s", where[0] ? "." : "",
                         where);
                text_make_showable(error.where); /* it may be cut within a character */
                tool_mistake_add(mistakes, &error);
        }
}

static void check_name(struct check *check, const struct tool *tool, const char *path,
                       struct tool_mistakes *mistakes)
{
        const char *other = json_string_value(json_object_get(check->names, tool->name));
        cbx_error error = CBX_ERROR_INIT;

        if (other) {
                error_set(&error, -EEXIST, "name", "\"%s\" is already the name of the tool in %s",
                          tool->name, other);
                tool_mistake_add(mistakes, &error);
        } else {
                json_object_set_new(check->names, tool->name, json_string(path));
        }
}

/* What a toolbox would refuse: a tool that may write where manifests are followed, or what another
 * tool is made of. */
static void check_inputs(struct check *check, const struct tool *tool,
                         struct tool_mistakes *mistakes)
{
        struct inputs_mounts *mounts = NULL;
        cbx_error error = CBX_ERROR_INIT;
        int r;

        (void)inputs_mounts_read(&mounts);
        r = tool_refuse_input(tool, mounts, "the folder of manifests", check->folder, "policy",
                              &error);
        if (r == 0)
                r = tool_refuse_input(tool, mounts, "the folder of policies", check->policies,
                                      "policy", &error);
        if (r == 0)
                r = tool_refuse_pair(tool, tool, mounts, &error);
        for (size_t i = 0; r == 0 && i < check->n_tools; i++)
                r = tool_refuse_pair(tool, check->tools[i], mounts, &error);
        if (r < 0)
                tool_mistake_add(mistakes, &error);
        inputs_mounts_free(mounts);
}

static int note_tool(struct check *check, struct tool *tool)
{
        struct tool **tools = reallocarray(check->tools, check->n_tools + 1, sizeof(void *));

        if (!tools)
                return -ENOMEM;
        check->tools = tools;
        tools[check->n_tools++] = tool_ref(tool);
        return 0;
}

static void print(struct check *check, const char *path, const struct tool *tool,
                  const struct tool_mistakes *mistakes)
{
        json_t *list = json_array();

        if (!check->command->json && mistakes->n == 0 && tool)
                printf("%s: good: %s\n", path, tool->name);
        for (size_t i = 0; i < mistakes->n; i++) {
                const struct tool_mistake *item = &mistakes->items[i];

                json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "where", item->where,
                                                      "text", item->text, "hint", item->hint));
                if (check->command->json)
                        continue;
                printf("%s: %s%s%s\n", path, item->where, item->where[0] ? ": " : "", item->text);
                if (item->hint[0])
                        printf("    to fix it: %s\n", item->hint);
        }
        if (!check->command->json && mistakes->cut)
                printf("%s: and more mistakes\n", path);
        json_array_append_new(check->report, json_pack("{s:s, s:s?, s:o}", "file", path, "tool",
                                                       tool ? tool->name : NULL, "mistakes", list));
}

/* A box is asked for what a Python file says; other manifests are checked without. */
static void open_warden(struct check *check, const char *text, struct tool_mistakes *mistakes)
{
        cbx_warden_options options = CBX_WARDEN_OPTIONS_INIT;
        cbx_error error = CBX_ERROR_INIT;

        if (check->warden || !strstr(text, "\"python\""))
                return;
        options.program = "/proc/self/exe";
        options.prepared = CBX_NONE;
        if (cli_open_warden(&options, &check->warden, &error) < 0)
                tool_mistake_add(mistakes, &error);
}

static int check_file(struct check *check, const char *path)
{
        char shown[PATH_MAX + 300];
        struct tool_origin origin = { .directory = check->directory,
                                      .policies = check->policies,
                                      .server = function_server(tool_command_server()),
                                      .python = check->command->python.python,
                                      .answers = check->answers,
                                      .policy = check->policy,
                                      .hold = check->held };
        _cleanup_mistakes_ struct tool_mistakes mistakes = TOOL_MISTAKES_INIT;
        _cleanup_tool_ struct tool *tool = NULL;
        _cleanup_free_ char *text = NULL, *real = NULL;
        cbx_error error = CBX_ERROR_INIT;
        size_t length;
        int r = tool_read_input(path, MANIFEST_BYTES, &text, &length, &real);

        if (r == -ENOMEM)
                return r;
        snprintf(shown, sizeof(shown), "%s", path);
        text_make_showable(shown);
        if (r < 0) {
                error_set(&error, r, "", "cannot be read: %s",
                          r == -EINVAL ? "it is no regular file" : strerror(-r));
                tool_mistake_add(&mistakes, &error);
        } else {
                open_warden(check, text, &mistakes);
                origin.warden = check->warden;
                r = manifest_read(text, length, &origin, &mistakes, &tool);
        }
        if (r == 0) {
                check_host(tool, &mistakes);
                check_program(tool, &mistakes);
                check_name(check, tool, shown, &mistakes);
                if (tool_add_input(tool, real) < 0)
                        return -ENOMEM;
                check_inputs(check, tool, &mistakes);
                if (mistakes.n == 0 && note_tool(check, tool) < 0)
                        return -ENOMEM;
        }
        if (mistakes.failed)
                return -ENOMEM;
        print(check, shown, tool, &mistakes);
        check->n_files++;
        check->n_mistakes += mistakes.n;
        return 0;
}

static int is_manifest(const struct dirent *entry)
{
        size_t length = strlen(entry->d_name);

        return entry->d_name[0] != '.' && length > 5 &&
               strcmp(entry->d_name + length - 5, ".json") == 0;
}

/* As the toolbox reads them, whatever the locale. */
static int compare(const struct dirent **a, const struct dirent **b)
{
        return strcmp((*a)->d_name, (*b)->d_name);
}

static int check_directory(struct check *check, const char *path)
{
        struct dirent **entries;
        int n = scandir(path, &entries, is_manifest, compare), r = 0;

        if (n < 0)
                return -errno;
        for (int i = 0; i < n; i++) {
                char file[PATH_MAX + 300];

                snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
                if (r == 0)
                        r = check_file(check, file);
                free(entries[i]);
        }
        free(entries);
        return r;
}

/* As cli_guard_tools does for those who call. */
static int read_held(struct check *check)
{
        const json_t *held;
        size_t i;
        int r;

        check->held = list_new();
        r = check->held ? 0 : -ENOMEM;
        json_array_foreach(options_held(&check->command->options), i, held)
        {
                if (r == 0 && json_is_string(held))
                        r = list_add(&check->held, json_string_value(held));
        }
        return r;
}

/* Where the manifests are, and the policies they name. */
static int find_places(struct check *check, const char *place, bool *ret_directory)
{
        struct stat facts;
        char *slash;

        if (!realpath(place, check->directory) || stat(check->directory, &facts) < 0)
                return -errno;
        *ret_directory = S_ISDIR(facts.st_mode);
        check->folder = *ret_directory ? place : check->directory;
        slash = strrchr(check->directory, '/');
        if (!*ret_directory)
                slash[slash == check->directory] = '\0';
        if (check->command->policies)
                snprintf(check->policies, sizeof(check->policies), "%s", check->command->policies);
        else
                snprintf(check->policies, sizeof(check->policies), "%s/policies", check->directory);
        return 0;
}

/* A rule that fits no tool is most often one that is misspelled. */
static void check_rules(struct check *check)
{
        const struct routes *routes = &check->command->routes;

        for (size_t i = 0; i < routes->n_rules; i++) {
                const cbx_rule *rule = &routes->rules[i];
                const char *option = routes_option(rule);
                bool used = false;

                for (size_t j = 0; j < check->n_tools; j++)
                        used |= route_fits(rule, check->tools[j]->name);
                if (used)
                        continue;
                check->n_mistakes++;
                if (!check->command->json)
                        printf("%s %s: there is no such tool\n", option, rule->pattern);
                json_array_append_new(
                        check->report,
                        json_pack("{s:s, s:n, s:[{s:s, s:o, s:s}]}", "file", check->folder, "tool",
                                  "mistakes", "where", option, "text",
                                  json_sprintf("%s: there is no such tool", rule->pattern), "hint",
                                  ""));
        }
}

static bool is_python(const char *place)
{
        size_t length = strlen(place);

        return (length > 3 && strcmp(place + length - 3, ".py") == 0);
}

int tool_command_check(struct tool_command *command)
{
        struct check check = { .command = command };
        const char *place = command->n_words > 0 ? command->words[0] : command->tools;
        cbx_error error = CBX_ERROR_INIT;
        bool directory = false;
        int r, code = 0;

        if (!place && command->python.n_sources > 0)
                return tool_check_python(command, command->python.sources[0]);
        if (!place)
                return cli_fail("tool check needs a folder of manifests, or a file");
        if (is_python(place))
                return tool_check_python(command, place);
        check.names = json_object();
        check.report = json_array();
        check.answers = python_answers_new();
        r = options_policy(&command->options, &error, &check.policy);
        if (r < 0) {
                options_blame(&command->options, &error);
                cli_print_error(&error);
                code = EXIT_CALLBOX;
        } else {
                r = find_places(&check, place, &directory);
                if (r == 0)
                        r = read_held(&check);
                if (r == 0)
                        r = directory ? check_directory(&check, place) : check_file(&check, place);
                if (r == 0)
                        check_rules(&check);
                if (r < 0)
                        code = cli_fail("cannot read %s: %s", place, strerror(-r));
                else if (command->json)
                        code = cli_print_json(check.report, STDOUT_FILENO);
                else if (check.n_files == 0)
                        code = cli_fail("there are no manifests (*.json) in %s", place);
        }
        for (size_t i = 0; i < check.n_tools; i++)
                tool_unref(check.tools[i]);
        free(check.tools);
        list_free(check.held);
        json_decref(check.names);
        json_decref(check.report);
        python_answers_free(check.answers);
        cbx_warden_close(check.warden);
        cbx_policy_unref(check.policy);
        return code != 0 ? code : check.n_mistakes > 0;
}
