/* SPDX-License-Identifier: MIT */
/* callbox run --warden: the same call, made by a warden that is running already. */
#ifndef CLI_RUN_WARDEN_H
#define CLI_RUN_WARDEN_H

#include "warden/call.h"

/* Failures are in the report. While the call runs it is in *call, for the hook. */
void run_through_warden(const char *socket, cbx_policy *policy, const struct call_spec *spec,
                        bool explain, const struct call_hook *hook, cbx_call **call,
                        struct report *report);

#endif
