/* SPDX-License-Identifier: MIT */
/* Where tools run, by the operator's own command line: --mode, --elevate, --refuse. */
#ifndef CLI_ROUTES_H
#define CLI_ROUTES_H

#include "cli/options.h"

struct routes {
        int mode;        /* CBX_STRICT ... */
        cbx_rule *rules; /* as they were given; NULL: none */
        size_t n_rules;
        bool quiet; /* nobody is told of a tool that should have had a box */
};

extern const char routes_help[];

/* Try argv[*index] as one of these options, as options_take does. */
int routes_take(struct routes *routes, int argc, char **argv, int *index, cbx_error *error);
void routes_free(struct routes *routes);

/* Let a toolbox be opened with them. */
void routes_apply(struct routes *routes, cbx_toolbox_options *options);

/* The option that a rule was given by. */
const char *routes_option(const cbx_rule *rule);

/* Tell on stderr which of them fit no tool there: most often they are misspelled. */
void routes_tell_unused(const struct routes *routes, cbx_toolbox *toolbox);

/* Say before anything runs that something will run without a box; NULL: nothing will. */
const char *routes_warning(const struct routes *routes);

#endif
