/* SPDX-License-Identifier: MIT */
/*
 * A call without a box: the program runs as whoever runs callbox, sees what he sees and may do what
 * he may. What is left of a plan are the limits that need no fence, a clean environment, a
 * directory for temporary files and the place where the program starts, which is that of a box of
 * this policy. Only an application says that a call has none (callbox.h); the report tells it
 * first.
 */
#include <string.h>

#include "policy/plan.h"

static const char *const unboxed_names[PLAN_UNBOXED_MAX_] = {
        [PLAN_BOXED] = "",
        [PLAN_OFF] = "mode off",
        [PLAN_WARN] = "mode warn",
        [PLAN_ELEVATED] = "elevated by the application",
};

const char *plan_unboxed_str(enum plan_unboxed unboxed)
{
        return unboxed_names[unboxed];
}

/* What a policy shows under another name is not there; where the program would start in it, it
 * starts at its own. */
static int leave_names(struct plan *plan)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < plan->n_steps; i++) {
                const struct plan_step *step = &plan->steps[i];
                char *start;

                if (step->kind != PLAN_TREE || strcmp(step->source, step->target) == 0 ||
                    !step->where)
                        continue;
                r = plan_warn(plan, "%s is not at %s: there is no box", step->source, step->target);
                if (r < 0 || strcmp(plan->start_directory, step->target) != 0)
                        continue;
                start = strdup(step->source);
                if (!start)
                        return -ENOMEM;
                free(plan->start_directory);
                plan->start_directory = start;
        }
        return r;
}

int plan_unbox(struct plan *plan, cbx_error *error)
{
        if (leave_names(plan) < 0)
                return error_oom(error);
        for (size_t i = 0; i < plan->n_guards; i++)
                free(plan->guards[i].path);
        plan->n_guards = 0;
        plan->guarded = plan->hides = plan->guards_sockets = false;
        plan->landlock_abi = 0;
        return 0;
}
