/* SPDX-License-Identifier: MIT */
/* The part of a manifest under "run": a command, a shell text, a function of a shared object, of a
 * Python file, or of a server. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "tool/python.h"

struct run_reader {
        json_t *run;
        const struct tool_origin *origin;
        struct tool *tool;
        struct tool_mistakes *mistakes;
};

static const struct json_place run_place = { .key = "run" };

static int note(struct run_reader *reader, cbx_error *error)
{
        tool_mistake_add(reader->mistakes, error);
        return -EINVAL;
}

/* Mistakes in one place are no reason not to look at the other. */
static int worse(int a, int b)
{
        return a == -ENOMEM || b == 0 ? a : b;
}

static int read_template(struct run_reader *reader, const char *key)
{
        struct json_place place = { .parent = &run_place, .key = key };
        struct template_context context = {
                .schema = json_object_get(reader->tool->document, "inputSchema"),
                .defaults = reader->tool->defaults,
                .directory = reader->origin->directory,
                .mistakes = reader->mistakes,
        };
        json_t *list = json_object_get(reader->run, key);

        return list ? template_read(list, &place, &context, &reader->tool->template) : 0;
}

static int read_choice(struct run_reader *reader, const char *key, struct json_words words,
                       size_t *ret)
{
        struct json_place place = { .parent = &run_place, .key = key };
        json_t *value = json_object_get(reader->run, key);
        cbx_error error = CBX_ERROR_INIT;

        if (value && json_read_choice(value, &place, words, &error, ret) < 0)
                return note(reader, &error);
        return 0;
}

static int read_success(struct run_reader *reader)
{
        struct json_place place = { .parent = &run_place, .key = "success" };
        json_t *list = json_object_get(reader->run, "success"), *item;
        struct tool *tool = reader->tool;
        cbx_error error = CBX_ERROR_INIT;
        size_t i;
        int r = 0;

        if (!list)
                return 0;
        if (!json_is_array(list) || json_array_size(list) == 0 ||
            json_array_size(list) > ARRAY_SIZE(tool->success)) {
                json_set_refusal(&place, &error, "must be an array of 1 to %zu exit codes",
                                 ARRAY_SIZE(tool->success));
                return note(reader, &error);
        }
        tool->n_success = 0;
        json_array_foreach(list, i, item)
        {
                if (!json_is_integer(item) || json_integer_value(item) < 0 ||
                    json_integer_value(item) > 255) {
                        struct json_place at = { .parent = &place, .index = i };

                        json_set_refusal(&at, &error, "must be an exit code, 0 to 255");
                        r = note(reader, &error);
                }
                tool->success[tool->n_success++] = (int)json_integer_value(item);
        }
        return r;
}

/* What commands and shell texts have in common. */
static int read_streams(struct run_reader *reader)
{
        static const char *const ways[] = { "none", "stdin", "environment", "both" };
        static const char *const outputs[] = { "text", "json", "json-lines" };
        size_t way = 0, output = 0;
        int r = worse(read_choice(reader, "arguments", JSON_WORDS(ways), &way),
                      read_choice(reader, "output", JSON_WORDS(outputs), &output));

        r = worse(r, read_success(reader));
        reader->tool->arguments = (enum tool_arguments)way;
        reader->tool->output = (enum tool_output)output;
        return r;
}

static int read_command(struct run_reader *reader)
{
        struct json_place place = { .parent = &run_place, .key = "command" };
        struct tool *tool = reader->tool;
        cbx_error error = CBX_ERROR_INIT;
        int r;

        tool->kind = TOOL_COMMAND;
        r = worse(read_streams(reader), read_template(reader, "command"));
        if (r == 0 && !template_program(tool->template)) {
                json_set_refusal(&place, &error,
                                 "must begin with the program: a fixed name, or "
                                 "{\"file\": \"...\"}");
                return note(reader, &error);
        }
        return r;
}

static int read_shell(struct run_reader *reader)
{
        struct json_place place = { .parent = &run_place, .key = "shell" };
        struct tool *tool = reader->tool;
        cbx_error error = CBX_ERROR_INIT;
        const char *text;
        int r;

        tool->kind = TOOL_SHELL;
        r = worse(read_streams(reader), read_template(reader, "parameters"));
        if (json_read_string(json_object_get(reader->run, "shell"), &place, &error, &text) < 0)
                return note(reader, &error);
        if (strlen(text) > TEMPLATE_ARGUMENT_MAX) {
                json_set_refusal(&place, &error, "is too long for a command line");
                error_hint(&error, "put it into a file: \"command\": [\"/bin/sh\", {\"file\": "
                                   "\"script.sh\"}]");
                return note(reader, &error);
        }
        tool->shell = strdup(text);
        return tool->shell ? r : -ENOMEM;
}

static bool is_symbol(const char *text)
{
        static const char known[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                    "0123456789_";

        return text[0] && text[strspn(text, known)] == '\0' && strlen(text) < 256;
}

static int read_object(struct run_reader *reader)
{
        struct json_place object = { .parent = &run_place, .key = "object" },
                          function = { .parent = &run_place, .key = "function" };
        const char *directory = reader->origin->directory, *name, *symbol;
        json_t *value = json_object_get(reader->run, "function");
        char joined[PATH_MAX], path[PATH_MAX];
        cbx_error error = CBX_ERROR_INIT;
        int r;

        reader->tool->kind = TOOL_FUNCTION;
        if (json_read_string(json_object_get(reader->run, "object"), &object, &error, &name) < 0)
                return note(reader, &error);
        if (!value || json_read_string(value, &function, &error, &symbol) < 0 ||
            !is_symbol(symbol)) {
                json_set_refusal(&function, &error, "must be the name of a C function");
                return note(reader, &error);
        }
        if (name[0] != '/' && !directory) {
                json_set_refusal(&object, &error,
                                 "\"%.200s\" is relative, and there is no "
                                 "directory of the manifest",
                                 name);
                error_hint(&error, "name the object by an absolute path");
                return note(reader, &error);
        }
        r = snprintf(joined, sizeof(joined), "%s%s%s", name[0] == '/' ? "" : directory,
                     name[0] == '/' ? "" : "/", name);
        if (r >= (int)sizeof(joined) || !realpath(joined, path)) {
                json_set_refusal(&object, &error, "there is no file \"%.200s\"%s", name,
                                 name[0] == '/' ? "" : " beside the manifest");
                return note(reader, &error);
        }
        r = function_of_object(path, symbol, reader->origin->server, &reader->tool->function,
                               &error);
        if (r < 0 && r != -ENOMEM) {
                snprintf(error.where, sizeof(error.where), "run.object");
                return note(reader, &error);
        }
        return r;
}

/* The program and its arguments, all of them fixed. */
static int read_word(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        const char *word;
        int r = json_read_string(value, at, error, &word);

        return r < 0 ? r : list_add(to, word);
}

static int read_server(struct run_reader *reader)
{
        struct json_place server = { .parent = &run_place, .key = "server" },
                          place = { .parent = &run_place, .key = "function" },
                          forks = { .parent = &run_place, .key = "forks" };
        struct function *function = &reader->tool->function;
        json_t *fork = json_object_get(reader->run, "forks");
        json_t *list = json_object_get(reader->run, "server");
        const char *line = json_string_value(json_object_get(reader->run, "function"));
        cbx_error error = CBX_ERROR_INIT;
        int r;

        reader->tool->kind = TOOL_FUNCTION;
        function->argv = list_new();
        r = function->argv ? json_read_array(list, &server, read_word, &error, &function->argv)
                           : -ENOMEM;
        if (r == 0 && (!function->argv[0] || !function->argv[0][0]))
                r = json_refuse(&server, &error, "must begin with a program");
        if (r == 0 && fork)
                r = json_read_bool(fork, &forks, &error, &function->forks);
        if (r < 0)
                return r == -ENOMEM ? r : note(reader, &error);
        if (!line || !line[0] || strchr(line, '\n')) {
                json_set_refusal(&place, &error, "must be a line of text that names the function");
                return note(reader, &error);
        }
        function->line = strdup(line);
        return function->line ? 0 : -ENOMEM;
}

static int read_python(struct run_reader *reader)
{
        return python_read_run(reader->run, reader->origin, reader->tool, reader->mistakes);
}

int manifest_read_run(json_t *run, const struct tool_origin *origin, struct tool *tool,
                      struct tool_mistakes *mistakes)
{
        static const struct kind {
                const char *keys[5]; /* the first tells the kind */
                int (*read)(struct run_reader *reader);
        } kinds[] = {
                { { "command", "arguments", "output", "success" }, read_command },
                { { "shell", "parameters", "arguments", "output", "success" }, read_shell },
                { { "object", "function" }, read_object },
                { { "python", "file", "path", "interpreter" }, read_python },
                { { "server", "function", "forks" }, read_server },
        };
        struct run_reader reader = { run, origin, tool, mistakes };
        cbx_error error = CBX_ERROR_INIT;

        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                size_t n = 0;
                int r;

                if (!json_object_get(run, kinds[i].keys[0]))
                        continue;
                while (n < ARRAY_SIZE(kinds[i].keys) && kinds[i].keys[n])
                        n++;
                r = tool_mistakes_keys(run, &run_place,
                                       (struct json_words){ kinds[i].keys, n, sizeof(char *) },
                                       mistakes);
                return worse(r, kinds[i].read(&reader));
        }
        json_set_refusal(&run_place, &error,
                         json_is_object(run) ? "says nothing that can be run"
                                             : "must be an object");
        error_hint(&error, "it has one of: command, shell, object, python, server");
        return note(&reader, &error);
}
