/* SPDX-License-Identifier: MIT */
/* One call, from the making of its box to the last trace of it, in a loop of its own. */
#include <string.h>
#include <sys/epoll.h>

#include "warden/call.h"

struct run {
        struct call call;
        const struct call_hook *hook;
};

static void hook_ready(struct watch *watch, uint32_t events)
{
        struct run *run = watch->owner;

        (void)events;
        run->hook->ready(&run->call, run->hook->data);
}

/* The report is complete, and nothing of the box is left (or it hangs in the kernel). */
static bool is_over(const struct call *call)
{
        return call->done && (call->dead || call->report->kill_pending);
}

static void go_through(struct run *run, struct loop *loop)
{
        int r = 0;

        while (!is_over(&run->call) && r >= 0)
                r = loop_step(loop, LOOP_NEVER);
        if (r < 0)
                call_give_in(&run->call, -r);
}

/* The group of a box, and whether with it this host keeps what the policy asks for. */
static int open_group(const struct plan *plan, const struct policy_limits *limits,
                      struct cgroup_parent *parent, struct cgroup *cgroup, cbx_error *error)
{
        int r;

        cgroup_parent_open(parent, guarantees_need_cgroup(plan->policy));
        r = cgroup_open(cgroup, parent, limits, error);
        if (r == 0)
                r = guarantees_check(plan->policy, plan_basis(plan, cgroup_means(cgroup)), error);
        if (r == 0)
                r = guarantees_check_limits(plan->policy, limits, cgroup_means(cgroup), error);
        return r;
}

int call_check(const struct plan *plan, struct report *report)
{
        _cleanup_(cgroup_parent_close) struct cgroup_parent parent = CGROUP_PARENT_INIT;
        struct cgroup cgroup = CGROUP_INIT;
        int r = open_group(plan, &plan->policy->limits, &parent, &cgroup, &report->error);

        if (r == 0) {
                report->reason = REASON_EXITED; /* as far as a policy can tell */
                report->policy = cbx_policy_ref((cbx_policy *)plan->policy);
                report->limits = plan->policy->limits;
                report->caged = plan->caged;
                report->unboxed = plan->unboxed;
                report->landlock_abi = plan->landlock_abi;
                report->cgroup = cgroup_means(&cgroup);
                guarantees_warn(report);
        }
        cgroup_close(&cgroup);
        return r;
}

void call_run(const struct plan *plan, const struct call_spec *spec, const struct call_hook *hook,
              struct report *report)
{
        _cleanup_(loop_close) struct loop loop = LOOP_INIT;
        _cleanup_(cgroup_parent_close) struct cgroup_parent parent = CGROUP_PARENT_INIT;
        struct prepared box = PREPARED_INIT;
        struct run run = { .hook = hook };
        struct watch signals = { .fd = hook->fd, .ready = hook_ready, .owner = &run };
        int r = loop_open(&loop);

        if (r == 0)
                r = loop_watch(&loop, &signals, EPOLLIN);
        if (r < 0) {
                error_set(&report->error, r, "", "cannot watch for events: %s", strerror(-r));
                return;
        }
        r = open_group(plan, &spec->limits, &parent, &box.cgroup, &report->error);
        if (r == 0)
                r = box_prepare(plan, box.cgroup.fd, &box.box, &report->error);
        if (r < 0) {
                report->reason = REASON_SETUP;
                box_kill(&box.box);
                prepared_free(&box);
                return;
        }
        if (call_start(&run.call, &loop, plan, spec, &box, report) == 0)
                go_through(&run, &loop);
        call_free(&run.call);
}
