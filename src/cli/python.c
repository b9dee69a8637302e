/* SPDX-License-Identifier: MIT */
#include "cli/python.h"

#include <stdio.h>
#include <string.h>

const char python_help[] =
        "  --python-tools FILE|MODULE   all tools of a Python file or module, watched\n"
        "  --python PATH      interpreter for them ($VIRTUAL_ENV/bin/python3, or python3)\n"
        "  --python-path DIR  where they find modules of their own; shown to them\n";

static int take_many(const char **list, size_t *n, int argc, char **argv, int *index,
                     const char *name, cbx_error *error)
{
        const char *value = NULL;
        int r = options_value(argc, argv, index, name, error, &value);

        if (r <= 0)
                return r;
        if (!*value)
                return error_set(error, -EINVAL, name, "is empty");
        if (*n == PYTHON_SOURCES)
                return error_set(error, -E2BIG, name, "can be given %d times", PYTHON_SOURCES);
        list[(*n)++] = value;
        return 1;
}

int python_options_take(struct python_options *python, int argc, char **argv, int *index,
                        cbx_error *error)
{
        int r = take_many(python->sources, &python->n_sources, argc, argv, index, "--python-tools",
                          error);

        if (r == 0)
                r = take_many(python->path, &python->n_path, argc, argv, index, "--python-path",
                              error);
        return r != 0 ? r : options_value(argc, argv, index, "--python", error, &python->python);
}

void python_options_guard(const struct python_options *python, struct options *options)
{
        for (size_t i = 0; i < python->n_sources; i++)
                if (access(python->sources[i], F_OK) == 0) /* else it is a module */
                        options_guard(options, "the file of Python tools", python->sources[i],
                                      "--python-tools", false);
        for (size_t i = 0; i < python->n_path; i++)
                options_guard(options, "the directory of Python modules", python->path[i],
                              "--python-path", false);
}

void python_options_set(const struct python_options *python, cbx_toolbox_options *options)
{
        options->python = python->python;
        options->python_path = python->n_path > 0 ? python->path : NULL;
}

int python_options_load(const struct python_options *python, cbx_toolbox *toolbox, cbx_error *error)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < python->n_sources; i++) {
                r = cbx_toolbox_load_python(toolbox, python->sources[i], error);
                if (r < 0 && error && strcmp(error->where, "source") == 0)
                        snprintf(error->where, sizeof(error->where), "--python-tools %.100s",
                                 python->sources[i]);
                else if (r < 0 && error && strcmp(error->where, "python") == 0)
                        snprintf(error->where, sizeof(error->where), "--python");
        }
        return r;
}

void python_print_broken(const char *directory, const char *file, const char *text, bool functions)
{
        size_t length = strlen(file);
        bool manifest = directory && length > 5 && strcmp(file + length - 5, ".json") == 0;
        char first[600];

        snprintf(first, sizeof(first), "%.*s", (int)strcspn(text, "\n"), text);
        text_make_showable(first);
        if (manifest)
                fprintf(stderr, "callbox: %s/%s is left out: %s (see callbox tool check)\n",
                        directory, file, first);
        else if (functions)
                fprintf(stderr, "callbox: %s: %s\n", file, first);
}
