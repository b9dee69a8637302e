/* SPDX-License-Identifier: MIT */
/*
 * Where a call goes: into a box, out of one, or nowhere; and who runs it. The application says so,
 * with the mode, the rules and the backends that a toolbox is opened with; a manifest can only
 * tighten it. Nothing else has a say: neither arguments nor specs nor policies come here.
 *
 *   mode, rules ─┐
 *                ├─▶ decision ─▶ box, by the warden ─ or by a backend of the application's
 * (backend.c) tool ────────┘             ├▶ host, by the warden, without a box └▶ nobody
 */
#ifndef TOOL_ROUTE_H
#define TOOL_ROUTE_H

#include "client/client.h"

#define ROUTE_AUTO "auto"
#define ROUTE_HOST "host"

/* What a manifest says. */
enum tool_route { TOOL_ROUTE_OPEN, TOOL_ROUTE_BOXED, TOOL_ROUTE_REFUSED };

struct routing {
        int mode;
        cbx_rule *rules; /* ends with one without a pattern; NULL: there are none */
        cbx_backend *backends;
        size_t n_backends;
        char *backend; /* of those whose rule names none */
        cbx_log *log;
        void *log_userdata;
};

struct route {
        int to; /* CBX_TO_BOX ... */
        const char *reason, *backend;
        enum plan_unboxed unboxed; /* of CBX_TO_HOST */
};

int routing_open(struct routing *routing, const cbx_toolbox_options *options, cbx_error *error);
void routing_close(struct routing *routing);
/* Is there anything to decide, so that it is told? */
bool routing_is_plain(const struct routing *routing);

struct route routing_decide(const struct routing *routing, const char *name,
                            enum tool_route manifest);
/* Is it a rule for a tool of this name? */
bool route_fits(const cbx_rule *rule, const char *name);
/* "box", "host", "nobody" */
const char *route_str(int to);

/* That of the application; NULL: it is one of the library's, or none. */
const cbx_backend *routing_find(const struct routing *routing, const char *backend);

/* ---- Backends of the application's (backend.c) ---- */

/* Can it be used here? 0, or a negative errno with why not. */
int backend_check(const cbx_backend *backend, cbx_error *error);
/* What it promises under a policy: a report as of client_ask. */
int backend_ask(const cbx_backend *backend, cbx_policy *policy, struct report *ret_report,
                cbx_error *error);
/* Let it run a call, and wait for that: whatever comes of it is in the report. */
void backend_run(const cbx_backend *backend, const cbx_order *order, struct report *report);

#endif
