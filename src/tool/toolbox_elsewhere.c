/* SPDX-License-Identifier: MIT */
/* A call that a backend of the application's own runs, here and now: when it comes back the call is
 * over. It has a report like any other. */
#include <string.h>

#include "tool/toolbox.h"

static uint64_t limit_of(uint64_t asked, uint64_t policy)
{
        return asked ? asked : policy;
}

static double time_of(double asked, double policy)
{
        return asked > 0 ? asked : policy;
}

/* Those of the call, which are no wider than its policy's: that has been checked. */
static void set_limits(const cbx_spec *spec, const struct policy_limits *limits, cbx_order *order)
{
        order->wall_limit = time_of(spec->wall_limit, limits->wall);
        order->cpu_limit = time_of(spec->cpu_limit, limits->cpu);
        order->cpus_limit = time_of(spec->cpus_limit, limits->cpus);
        order->memory_limit = limit_of(spec->memory_limit, limits->memory);
        order->process_limit = limit_of(spec->process_limit, limits->processes);
        order->file_size_limit = limit_of(spec->file_size_limit, limits->file_size);
        order->open_files_limit = limit_of(spec->open_files_limit, limits->open_files);
        order->output_limit = limit_of(spec->output_limit, limits->output);
        order->capture_limit = limit_of(spec->capture_limit, limits->capture);
}

int toolbox_start_elsewhere(const cbx_backend *backend, const struct tool *tool, cbx_order *order,
                            const cbx_spec *spec, cbx_call **ret_call, cbx_error *error)
{
        _cleanup_fd_ int theirs = -1;
        cbx_spec known = CBX_SPEC_INIT;
        struct wire_spec asked;
        cbx_call *call = NULL;
        char *shell[4];
        int r = client_read_spec(spec, order->policy, &known, shell, &asked, error);

        if (r == 0 && tool->kind == TOOL_FUNCTION)
                r = error_set(error, -EOPNOTSUPP, "backend",
                              "the backend \"%.64s\" runs commands, and %s is a function",
                              backend->name, tool->name);
        if (r == 0)
                r = client_open_call(order->policy, spec->id, &call, &theirs, error);
        if (!call)
                return r;
        set_limits(spec, &order->policy->limits, order);
        backend_run(backend, order, &call->report);
        call->report.limits = order->policy->limits;
        (void)policy_limits_tighten(&asked.limits, &call->report.limits, NULL); /* as checked */
        call->report.id = spec->id ? strdup(spec->id) : NULL;
        if (spec->id && !call->report.id) {
                cbx_call_free(call);
                return error_oom(error);
        }
        call->ended = true; /* the end of the socket makes it readable */
        *ret_call = call;
        return 0;
}
