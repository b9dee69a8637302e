/* SPDX-License-Identifier: MIT */
/* What came of a call. */
#ifndef WARDEN_REPORT_H
#define WARDEN_REPORT_H

#include <jansson.h>
#include <time.h>

#include "box/page.h"
#include "policy/plan.h"
#include "warden/cgroup.h"
#include "warden/output.h"

enum reason {
        REASON_EXITED,
        REASON_SIGNALED,
        REASON_TIMEOUT,
        REASON_CPU,
        REASON_MEMORY,
        REASON_PIDS,
        REASON_OUTPUT,
        REASON_DENIED,
        REASON_CANCELLED,
        REASON_SETUP,
        REASON_INTERNAL,
        REASON_MAX_,
};
const char *reason_str(enum reason reason);

/* A part of what came on the result channel: where it is in it. */
struct report_part {
        size_t at, length;
};

struct report {
        char *id;
        enum reason reason;
        int code;                       /* REASON_EXITED */
        int signal;                     /* REASON_SIGNALED */
        bool not_found, not_executable; /* REASON_SETUP: why the program could not be executed */
        bool output_lost;               /* it could not be read, or not be written */
        bool kill_pending;              /* killed, but a process is stuck in the kernel */
        struct timespec started_at;     /* CLOCK_REALTIME */
        uint64_t setup_time, run_time;  /* nanoseconds */
        uint64_t cpu_user, cpu_system;  /* nanoseconds */
        uint64_t memory_peak, processes_peak, bytes_in;
        struct policy_limits limits; /* those of the call */
        struct output output[STREAMS];
        bool captured;   /* stdout and stderr belong into the JSON form */
        bool has_result; /* there was a result channel */
        bool of_command; /* texts name options of `callbox run`, not keys of the policy */
        json_t *denials;
        json_t *tool; /* what came of it as the call of a tool (src/tool/); NULL: it was none */
        struct report_part *parts; /* its result as it was written, and what belongs to it */
        size_t n_parts;
        bool raw;                  /* the result is wanted in these parts alone */
        cbx_policy *policy;        /* what the box kept; NULL: there was none */
        bool caged;                /* ... and what it was made of */
        enum plan_unboxed unboxed; /* ... or why there was none */
        int landlock_abi;          /* ... as it was */
        enum cgroup_means cgroup;
        enum cgroup_obstacle obstacle; /* of one that only asks: why there is no group */
        json_t *promised;              /* what another backend says that it keeps; NULL: none ran */
        char **warnings;               /* NULL-terminated, or NULL */
        size_t n_warnings;
        cbx_error error; /* REASON_SETUP, REASON_INTERNAL */
};

#define REPORT_INIT                                                                                \
        {                                                                                          \
                .reason = REASON_SETUP, .error = CBX_ERROR_INIT                                    \
        }

void report_free(struct report *report);
int report_warn(struct report *report, const char *format, ...) PRINTF_LIKE(2, 3);

/* Take over from the page what init and main noted there. */
int report_take_page(struct report *report, const struct plan *plan, const struct box_page *page);

/* One sentence on why the call ended. */
void report_text(const struct report *report, char *ret, size_t room);

/* The exit code that tells the same to a shell. */
int report_exit_code(const struct report *report);

json_t *report_to_json(const struct report *report);

/* What was enforced, and by what; an empty array where nothing ran. NULL: out of memory. */
json_t *report_guarantees(const struct report *report);

/* What decides which guarantees are kept (guarantees.c). */
struct guarantee_basis {
        bool caged;
        enum plan_unboxed unboxed;
        int landlock_abi;
        enum cgroup_means cgroup;
};

static inline struct guarantee_basis report_basis(const struct report *report)
{
        return (struct guarantee_basis){ report->caged, report->unboxed, report->landlock_abi,
                                         report->cgroup };
}

static inline struct guarantee_basis plan_basis(const struct plan *plan, enum cgroup_means cgroup)
{
        return (struct guarantee_basis){ plan->caged, plan->unboxed, plan->landlock_abi, cgroup };
}

/* What a box of this policy enforces, and by what. */
json_t *guarantees_to_json(const cbx_policy *policy, struct guarantee_basis basis);
/* The same of one that only asks, with whether each is required and how to get those that are not
 * kept; and whether all that is required is kept. NULL: out of memory. */
json_t *guarantees_explain(const struct report *report, bool *ret_met);
/* Does the policy run nothing without a control group? */
bool guarantees_need_cgroup(const cbx_policy *policy);
/* Refuse a policy that requires a guarantee which this host cannot keep. Where an application has
 * said that there is no box, what only a box keeps is not asked for. */
int guarantees_check(const cbx_policy *policy, struct guarantee_basis basis, cbx_error *error);

/* Tell first of all that there is no box. */
void guarantees_warn_unboxed(struct report *report);

/* Warn of what a best-effort box was asked to keep and does not. */
void guarantees_warn(struct report *report);

/* A call may ask for more than its policy: a share of the processors, which not every host keeps.
 */
int guarantees_check_limits(const cbx_policy *policy, const struct policy_limits *limits,
                            enum cgroup_means cgroup, cbx_error *error);

#endif
