/* SPDX-License-Identifier: MIT */
/* Options that add the tools of Python files: callbox mcp and callbox tool. */
#ifndef CLI_PYTHON_H
#define CLI_PYTHON_H

#include "cli/options.h"

#define PYTHON_SOURCES 16

struct python_options {
        const char *python;                   /* the interpreter; NULL: the usual one */
        const char *sources[PYTHON_SOURCES];  /* files and modules */
        const char *path[PYTHON_SOURCES + 1]; /* directories; NULL-terminated */
        size_t n_sources, n_path;
};

extern const char python_help[];

/* One of these options. Returns 1 and moves *index past it, 0 when it is none, or a negative errno.
 */
int python_options_take(struct python_options *python, int argc, char **argv, int *index,
                        cbx_error *error);
/* No box may write the files, nor what is on the path. */
void python_options_guard(const struct python_options *python, struct options *options);
void python_options_set(const struct python_options *python, cbx_toolbox_options *options);
/* Load all of them; the error names the option. */
int python_options_load(const struct python_options *python, cbx_toolbox *toolbox,
                        cbx_error *error);

/* What a toolbox tells of a manifest in `directory` that has mistakes; or, where `functions` are
 * asked for, of a Python file. */
void python_print_broken(const char *directory, const char *file, const char *text, bool functions);

#endif
