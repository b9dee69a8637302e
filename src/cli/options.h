/* SPDX-License-Identifier: MIT */
/* Policy options: the same policy in another spelling. Each option edits the policy's JSON. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "cli/cli.h"

#define WALL_FOREVER 1e9 /* seconds: the longest that a policy may say */

#define OPTIONS_INPUTS_MAX 40

struct options {
        json_t *policy;   /* what the options say, as a policy document */
        char *file;       /* --policy */
        bool argument;    /* ... but it came as an argument, without that word */
        bool workspace;   /* --workspace was given */
        double wall;      /* the wall limit where neither names one; 0: the policy's own default */
        char **unprotect; /* --unprotect; NULL-terminated */
        size_t n_unprotect;
        struct {
                char *where; /* JSON path */
                char option[32];
        } * origins;
        size_t n_origins;
        struct options_input {
                const char *what, *path, *option;
                bool secret;
        } inputs[OPTIONS_INPUTS_MAX];
        size_t n_inputs;
};

void options_free(struct options *options);

/* Try argv[*index] as a policy option. Returns 1 and moves *index past it, 0 when it is none of
 * them, or a negative errno with the error filled. */
int options_take(struct options *options, int argc, char **argv, int *index, cbx_error *error);

/* Show a path as --read does, elsewhere where `box` is not NULL. It is taken as it is: a colon in
 * it means nothing. */
int options_show(struct options *options, const char *host, const char *box, cbx_error *error);

/* A file of the verb's own that no box may write, nor see where it is a secret; NULL: there is
 * none. "the report", "--report". */
void options_guard(struct options *options, const char *what, const char *path, const char *option,
                   bool secret);

/* Refuse what is to be held where nothing would be (options_hold.c). */
int options_check_holds(const cbx_policy *policy, cbx_error *error);

/* Put file and options together. The policy holds what tells callbox what to do: the file, the
 * command itself, and what was guarded. */
int options_policy(struct options *options, cbx_error *error, cbx_policy **ret_policy);

/* What --hold names: an array, or NULL. */
const json_t *options_held(const struct options *options);
/* The same for the policies that tools bring along, with what --hold names. */
int cli_guard_tools(const struct options *options, cbx_toolbox *toolbox, cbx_error *error);

/* Let an error name the option that the user typed rather than the JSON path it became. */
void options_blame(const struct options *options, cbx_error *error);

/* Match "--name value" and "--name=value". Returns 1 with the value, 0, or a negative errno. */
int options_value(int argc, char **argv, int *index, const char *name, cbx_error *error,
                  const char **ret_value);

/* Is it digits, where a fraction is allowed with one or an exponent, as in JSON, and nothing else:
 * no sign, space or other base? The one grammar of numbers on the command line; sizes are these
 * with a unit. */
bool options_is_number(const char *text, bool fraction);

/* The part of --help that explains these options. */
extern const char options_help[];

#endif
