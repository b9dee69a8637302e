/* SPDX-License-Identifier: MIT */
/* What came of a call: the reason, from what the warden and init saw, and the numbers. */
#include <string.h>
#include <sys/wait.h>

#include "warden/call.h"

static void judge_status(struct report *report, int status)
{
        if (WIFSIGNALED(status)) {
                report->reason = REASON_SIGNALED;
                report->signal = WTERMSIG(status);
        } else {
                report->reason = REASON_EXITED;
                report->code = WEXITSTATUS(status);
        }
}

static void judge_failure(struct report *report, const struct box_page *page)
{
        const struct box_failure *failure = &page->failure;

        report->reason = REASON_SETUP;
        box_explain_failure(failure, &report->error);
        if (!page->exec_failed)
                return;
        report->not_found = failure->error == ENOENT || failure->error == ENOTDIR;
        report->not_executable = !report->not_found;
        error_set(&report->error, -failure->error, "program", "cannot execute %s: %s",
                  failure->detail, strerror(failure->error));
        if (failure->error == ENOEXEC)
                error_hint(&report->error, "it is no program for this machine; a script without a "
                                           "#! line is run by /bin/sh, if the box has that");
}

/* The reason comes from what the warden and init saw, never from an exit code. */
static void judge(struct call *call, const struct box_page *page, bool sense,
                  const struct cgroup_usage *usage)
{
        static const enum reason verdicts[] = { [BOX_MEMORY] = REASON_MEMORY,
                                                [BOX_CPU] = REASON_CPU,
                                                [BOX_PIDS] = REASON_PIDS,
                                                [BOX_DENIED] = REASON_DENIED };
        struct report *report = call->report;

        /* The end of init makes a main that was on its way fail: that is not why. */
        if (call->gave_in || (call->forced && call->forced_reason != REASON_SETUP &&
                              call->forced_reason != REASON_MAX_ && page->ended == 0)) {
                report->reason = call->forced_reason;
        } else if (!sense) {
                report->reason = REASON_INTERNAL;
                error_set(&report->error, -EPROTO, "init", "the box's report made no sense");
                error_hint(&report->error, "what the program had loaded before the call may have "
                                           "changed it: see what its modules do when they are "
                                           "loaded");
        } else if (page->failure.step[0]) {
                judge_failure(report, page);
        } else if (call->forced && call->forced_reason == REASON_SETUP) {
                report->reason = REASON_SETUP;
                error_set(&report->error, -ETIMEDOUT, "init", "the box was not ready in time");
        } else if (usage->out_of_memory) {
                report->reason = REASON_MEMORY;
        } else if (page->verdict != BOX_OK) {
                report->reason = verdicts[page->verdict];
        } else if (usage->host_out_of_memory) {
                report->reason = REASON_INTERNAL;
                error_set(&report->error, -ENOMEM, "host",
                          "the host ran out of memory, and its kernel killed this call for it");
                error_hint(&report->error, "the call was within its own limit: run fewer calls at "
                                           "once, or give the host more memory");
        } else if (page->ended == 0) {
                report->reason = REASON_INTERNAL;
                error_set(&report->error, -EPROTO, "init", "the box's init was killed");
                error_hint(&report->error, "the host may be out of memory: see its kernel log");
        } else {
                judge_status(report, page->status);
        }
        /* What ended a call too late to be the reason is none. */
        if (report->reason < REASON_SETUP)
                report->error = (cbx_error)CBX_ERROR_INIT;
}

void call_write_report(struct call *call)
{
        struct report *report = call->report;
        _cleanup_free_ struct box_page *copy = NULL;
        struct box_page *page = call->box.box.page;
        struct cgroup_usage usage;
        uint64_t started;
        bool sense = true;

        if (call->box.zygote) {
                copy = page = box_copy_page(&call->box.box, &sense);
                if (!page) {
                        report->reason = REASON_INTERNAL;
                        error_oom(&report->error);
                        return;
                }
        }
        started = atomic_load(&page->started);
        cgroup_read(&call->box.cgroup, &usage);
        judge(call, page, sense, &usage);
        if (copy && !call->forced)
                zygote_judge(call->box.zygote, sense, started);
        if (page->ended == 0 && started) /* killed before it could say so itself */
                page->ended = time_now();
        report->setup_time = started > call->begun ? started - call->begun : 0;
        if (!call->spec->tty)
                report->bytes_in = call->input.total;
        if (report_take_page(report, call->plan, page) < 0)
                report_warn(report, "out of memory while the report was written");
        if (call->box.running && started && started < call->begun) /* it waited for this call */
                report->run_time = page->ended > call->begun ? page->ended - call->begun : 0;
        report->memory_peak = usage.memory_peak ? usage.memory_peak : report->memory_peak;
        report->processes_peak = MAX(report->processes_peak, usage.processes_peak);
        if (usage.cpu_user + usage.cpu_system > 0) {
                report->cpu_user = usage.cpu_user;
                report->cpu_system = usage.cpu_system;
        }
        report->policy = cbx_policy_ref((cbx_policy *)call->plan->policy);
        report->caged = call->plan->caged;
        report->unboxed = call->plan->unboxed;
        report->landlock_abi = MIN(page->landlock_abi, call->plan->landlock_abi);
        report->cgroup = cgroup_means(&call->box.cgroup);
        guarantees_warn_unboxed(report);
        for (size_t i = 0; i < call->plan->n_warnings; i++)
                report_warn(report, "%s", call->plan->warnings[i]);
        guarantees_warn(report);
}
