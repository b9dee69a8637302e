/* SPDX-License-Identifier: MIT */
#ifndef CLI_WRAP_H
#define CLI_WRAP_H

#include "cli/options.h"

/*
 * `npx PACKAGE` without a network: npx itself could neither ask the registry nor write to its
 * cache, but what it would run lies ready, in ./node_modules or in the cache. Finds it there.
 *
 * Returns 1 with the command that npx would run and with options that show it, 0 where the command
 * is no npx or one with options that only npx understands, or a negative errno.
 */
int wrap_find_package(char **argv, struct options *options, cbx_error *error, char ***ret_argv);

#endif
