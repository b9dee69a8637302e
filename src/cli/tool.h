/* SPDX-License-Identifier: MIT */
/* callbox tool: what its verbs share. */
#ifndef CLI_TOOL_H
#define CLI_TOOL_H

#include "cli/options.h"
#include "cli/python.h"
#include "cli/routes.h"

struct tool_command {
        struct python_options python;
        struct options options; /* policy of tools that have none; limits of the call */
        struct routes routes;   /* where the tools run */
        const char *tools, *policies, *warden, *id;
        bool json, explain, quiet, approve;
        const char *words[2]; /* what is left: NAME and ARGUMENTS, or QUERY, or a place */
        int n_words;
};

/* Where the program is that runs functions of shared objects: beside this one, or where it was
 * installed. */
const char *tool_command_server(void);

int tool_command_list(struct tool_command *command);
int tool_command_call(struct tool_command *command);
int tool_command_check(struct tool_command *command);
/* The same of a Python file or module. */
int tool_check_python(struct tool_command *command, const char *place);

#endif
