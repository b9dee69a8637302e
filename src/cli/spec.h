/* SPDX-License-Identifier: MIT */
/* One call's particulars as the command collects them: from --spec FILE and from options. */
#ifndef CLI_SPEC_H
#define CLI_SPEC_H

#include "cli/cli.h"

struct spec {
        char *id;
        char **argv;        /* NULL-terminated; NULL when the file has none */
        char **environment; /* NAME=VALUE, NULL-terminated */
        char *directory;
        char *stdin_file;
        char *stdin_text;
        bool stdin_none;
        bool tty;
        json_t *limits; /* as in a policy; may only tighten */
};

void spec_free(struct spec *spec);
int spec_parse(const char *text, size_t length, cbx_error *error, struct spec *ret_spec);
int spec_read(const char *path, cbx_error *error, struct spec *ret_spec);

#endif
