/* SPDX-License-Identifier: MIT */
/* What the library answers before any call, printed. */
#ifndef CLI_CAPABILITIES_H
#define CLI_CAPABILITIES_H

#include "cli/cli.h"

/* Returns an exit code, 1 where the policy requires more than there is; or a negative errno. */
int capabilities_print(cbx_policy *policy, bool json, cbx_error *error);
int capabilities_print_backends(bool json, cbx_error *error);

#endif
