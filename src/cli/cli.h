/* SPDX-License-Identifier: MIT */
/* The command: what its verbs share. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "policy/plan.h"

#define EXIT_CALLBOX 125 /* callbox's own failure, as opposed to the program's */

int cli_run(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_mcp(int argc, char **argv);
int cli_policy(int argc, char **argv);
int cli_tool(int argc, char **argv);
int cli_warden(int argc, char **argv);
int cli_wrap(int argc, char **argv);

/* Print an error as "callbox: WHERE: TEXT" and, on a second line, what to do. */
void cli_print_error(const cbx_error *error);

/* "callbox: TEXT", and the exit code for callbox's own failure. */
int cli_fail(const char *format, ...) PRINTF_LIKE(1, 2);

/* cbx_warden_open(), whose errors name the option. */
int cli_open_warden(const cbx_warden_options *options, cbx_warden **ret, cbx_error *error);

/* Print JSON: readable on a terminal, one line elsewhere. Returns 0 or an exit code. */
int cli_print_json(json_t *json, int fd);

#endif
