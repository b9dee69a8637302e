/* SPDX-License-Identifier: MIT */
/* The tools that callbox mcp brings along. Each runs in a box as any other tool. */
#ifndef SERVE_BUILTIN_H
#define SERVE_BUILTIN_H

#include "tool/tool.h"

/* run_command and run_python; with `files` also read_file, write_file, list_files, search_files.
 * The policy is the toolbox's. */
int builtin_add(cbx_toolbox *toolbox, const cbx_policy *policy, bool files, cbx_error *error);

bool builtin_is_taken(cbx_toolbox *toolbox, const char *name);
int builtin_add_files(cbx_toolbox *toolbox, cbx_error *error); /* builtin_files.c */

/* A call of theirs may name a timeout, which counts where it is shorter than the policy's. */
void builtin_tighten(const struct tool *tool, const json_t *arguments, cbx_spec *spec);

/* Is the output of this tool what its caller wants to read? */
bool builtin_shows_output(const struct tool *tool);
int builtin_text(const cbx_report *report, const cbx_result *result, struct buffer *to);

#endif
