/* SPDX-License-Identifier: MIT */
/* What `callbox run` and `callbox wrap` share around the call itself. */
#ifndef CLI_VERB_H
#define CLI_VERB_H

#include "cli/options.h"
#include "warden/report.h"

/* Show the current directory read-only, unless it was spoken of or is too much to show:
 * `callbox run -- python3 script.py` is meant to find the script (verb_here.c). `ret_left_out` is
 * set in the latter case. */
int verb_show_here(struct options *options, bool *ret_left_out, cbx_error *error);
/* Is it a place where programs keep keys and passwords, or below one (verb_secrets.c)? The second:
 * of who lives there; it asks only for what is in a home. */
bool verb_is_secret(const char *directory);
bool verb_is_secret_of(const char *home, const char *directory);
/* Warn that the box does not show the current directory: of a program that failed and was told a
 * name in it, or to `explain`. */
void verb_warn_of_here(char *const *argv, bool explain, struct report *report);

/* Block the signals that are the program's and get them from a descriptor. */
int verb_open_signals(void);

/* Say where the caller would have found a program that the box does not have, or not on its PATH;
 * `environment` is the call's own, or NULL. */
void verb_hint_at_program(const char *name, const cbx_policy *policy, char *const *environment,
                          cbx_error *error);
/* Say why the box may not execute what the caller may. */
void verb_hint_at_mode(const char *name, cbx_error *error);

/* Tell on stderr how the call ended, unless it ended by itself. */
void verb_print_end(const struct report *report, bool quiet, bool explain);

#endif
