/* SPDX-License-Identifier: MIT */
/* Which guarantees a box keeps, and by what: for the report, and for refusing to run without. */
#include <stdio.h>
#include <string.h>

#include "warden/report.h"

/* A share of the processors only the kernel can keep. */
static const char *kept_cpu_by(const struct policy_limits *limits, enum cgroup_means cgroup)
{
        if (limits->cpus > 0 && cgroup != CGROUP_SHARED)
                return NULL;
        return limits->cpus > 0 && limits->cpu > 0 ? "cgroup cpu.max, sampling by init, RLIMIT_CPU"
               : limits->cpus > 0                  ? "cgroup cpu.max"
               : limits->cpu > 0                   ? "sampling by init, RLIMIT_CPU"
                                                   : NULL;
}

/* With what is not held: the rest, and each bound, is in docs/security.md. */
static const char *kept_memory_by(const cbx_policy *policy, struct guarantee_basis basis)
{
        enum cgroup_means cgroup = basis.cgroup;
        bool caged = basis.caged, unseen = caged || policy->network == POLICY_NETWORK_HOST;

        return !policy->limits.memory    ? NULL
               : cgroup == CGROUP_MEMORY ? "cgroup memory.limit_in_bytes, counting by init"
               : cgroup != CGROUP_NONE   ? "cgroup memory.max"
               : basis.unboxed           ? "counting by init; not in one that fights it"
               : caged                   ? "counting by init; not file locks, sockets in flight"
               : unseen                  ? "counting by init; not sockets in flight"
                                         : "counting by init; not epoll sets in flight";
}

/* Is its absence what the policy asked for, rather than the host's fault? */
static bool not_asked(const cbx_policy *policy, enum guarantee guarantee)
{
        const struct policy_limits *limits = &policy->limits;

        return (guarantee == GUARANTEE_NETWORK && policy->network == POLICY_NETWORK_HOST) ||
               (guarantee == GUARANTEE_MEMORY && !limits->memory) ||
               (guarantee == GUARANTEE_PIDS && !limits->processes) ||
               (guarantee == GUARANTEE_CPU && !(limits->cpu > 0) && !(limits->cpus > 0));
}

/* Those that are kept by the fences of a box alone. */
#define GUARANTEES_OF_FENCES                                                                       \
        (1U << GUARANTEE_FILES | 1U << GUARANTEE_NETWORK | 1U << GUARANTEE_SYSCALLS |              \
         1U << GUARANTEE_PRIVILEGES | 1U << GUARANTEE_LANDLOCK)

/* Is there no box, and this what a box would keep? */
static bool is_given_up(struct guarantee_basis basis, enum guarantee guarantee)
{
        return basis.unboxed && GUARANTEES_OF_FENCES & 1U << guarantee;
}

/* The same in a box without namespaces, where it is another means; NULL: it is not kept. */
static const char *kept_in_cage(enum guarantee guarantee, struct guarantee_basis basis, char *room,
                                size_t size)
{
        int landlock_abi = basis.landlock_abi;
        enum cgroup_means cgroup = basis.cgroup;

        if (is_given_up(basis, guarantee))
                return NULL;
        switch (guarantee) {
        case GUARANTEE_TREE_KILL:
                if (basis.unboxed)
                        return "keeper and init as subreapers; not one that fights them";
                return landlock_abi >= 6 ? "keeper and init as subreapers, Landlock's signal scope"
                                         : "keeper and init as subreapers, killing until empty";
        case GUARANTEE_FILES:
                snprintf(room, size,
                         "Landlock ABI %d, init; names are visible, /tmp has no size limit",
                         landlock_abi);
                return landlock_abi > 0 ? room : NULL;
        case GUARANTEE_NETWORK:
                return "no socket families but local ones, by seccomp";
        case GUARANTEE_PRIVILEGES:
                return "no capabilities, no_new_privs";
        case GUARANTEE_PIDS:
                return cgroup > CGROUP_MEMORY ? "cgroup pids.max, sampling by init, RLIMIT_NPROC"
                                              : "sampling by init, RLIMIT_NPROC";
        default:
                return "";
        }
}

/* By what a guarantee is kept, or NULL when it is not. */
static const char *kept_by(const cbx_policy *policy, enum guarantee guarantee,
                           struct guarantee_basis basis, char *room, size_t size)
{
        const struct policy_limits *limits = &policy->limits;
        enum cgroup_means cgroup = basis.cgroup;
        int landlock_abi = basis.landlock_abi;
        const char *in_cage = basis.caged ? kept_in_cage(guarantee, basis, room, size) : "";

        if ((!in_cage || *in_cage) && !not_asked(policy, guarantee))
                return in_cage;
        switch (guarantee) {
        case GUARANTEE_TREE_KILL:
                return "pid namespace";
        case GUARANTEE_FILES:
                return "own mount namespace and root";
        case GUARANTEE_NETWORK:
                return policy->network == POLICY_NETWORK_HOST ? NULL : "net namespace";
        case GUARANTEE_SYSCALLS:
                return "seccomp allow-list";
        case GUARANTEE_PRIVILEGES:
                return "user namespace, no capabilities, no_new_privs";
        case GUARANTEE_ENVIRONMENT:
                return "own environment block";
        case GUARANTEE_MEMORY:
                return kept_memory_by(policy, basis);
        case GUARANTEE_PIDS:
                return !limits->processes       ? NULL
                       : cgroup > CGROUP_MEMORY ? "cgroup pids.max, RLIMIT_NPROC"
                                                : "counting by init, RLIMIT_NPROC";
        case GUARANTEE_CPU:
                return kept_cpu_by(limits, cgroup);
        case GUARANTEE_LANDLOCK:
                snprintf(room, size, "Landlock ABI %d", landlock_abi);
                return landlock_abi > 0 ? room : NULL;
        case GUARANTEE_CGROUP:
                return cgroup == CGROUP_NONE     ? NULL
                       : cgroup == CGROUP_MEMORY ? "cgroup v1, memory alone"
                                                 : "cgroup v2, own subtree";
        case GUARANTEE_MAX_:
                break;
        }
        return NULL;
}

/* Why it is not kept. */
static void absence(const cbx_policy *policy, enum guarantee guarantee,
                    struct guarantee_basis basis, char *room, size_t size)
{
        if (not_asked(policy, guarantee))
                snprintf(room, size, "not asked for");
        else if (is_given_up(basis, guarantee))
                snprintf(room, size, "no box: %s", plan_unboxed_str(basis.unboxed));
        else if (guarantee == GUARANTEE_CGROUP && cgroup_is_v1())
                snprintf(room, size, "cgroup v1 is here, and used where it is required");
        else
                snprintf(room, size, "not available here");
}

static json_t *guarantee_to_json(const cbx_policy *policy, enum guarantee guarantee,
                                 struct guarantee_basis basis)
{
        char room[128];
        const char *by = kept_by(policy, guarantee, basis, room, sizeof(room));
        bool enforced = by;

        if (!enforced) {
                absence(policy, guarantee, basis, room, sizeof(room));
                by = room;
        }
        return json_pack("{s:s, s:b, s:s}", "name", guarantee_str(guarantee), "enforced", enforced,
                         "by", by);
}

json_t *guarantees_to_json(const cbx_policy *policy, struct guarantee_basis basis)
{
        json_t *array = json_array();

        for (int i = 0; array && i < GUARANTEE_MAX_; i++)
                json_array_append_new(array, guarantee_to_json(policy, (enum guarantee)i, basis));
        return array;
}

static const struct {
        enum guarantee guarantee;
        const char *hint;
} fixes[] = {
        { GUARANTEE_FILES,
          "there are neither user namespaces nor Landlock here: allow the former (`callbox doctor` "
          "says how), or boot a kernel of 5.13 or newer with landlock in its lsm= list" },
        { GUARANTEE_LANDLOCK,
          "use a kernel built with Landlock (Linux 5.13 or newer) that has it in "
          "its lsm= list" },
};

#define CPU_FIX                                                                                    \
        "as root: echo +cpu >CGROUP/cgroup.subtree_control in each group above that of callbox, "  \
        "or Delegate=yes in its unit"

/* Of version 1 memory alone is used. */
static enum cgroup_obstacle obstacle_of(enum guarantee guarantee, enum cgroup_obstacle obstacle)
{
        return guarantee == GUARANTEE_CPU && obstacle == CGROUP_FINE && cgroup_is_v1() ? CGROUP_V1
                                                                                       : obstacle;
}

/* The groups that are missing: why, and how to get them. */
static void hint_cgroup(enum guarantee guarantee, cbx_error *error)
{
        enum cgroup_obstacle obstacle = obstacle_of(guarantee, cgroup_look());

        if (guarantee == GUARANTEE_CPU)
                error_set(error, -EOPNOTSUPP, "limits.cpus",
                          "this host cannot keep a share of the processors: %s",
                          obstacle == CGROUP_FINE ? "the cpu controller has not been handed down"
                                                  : cgroup_obstacle_str(obstacle));
        else if (obstacle != CGROUP_FINE)
                error_set(error, -EOPNOTSUPP, "require",
                          "this host cannot keep the guarantee \"%s\": %s",
                          guarantee_str(guarantee), cgroup_obstacle_str(obstacle));
        error_hint(error, "%s", obstacle == CGROUP_FINE ? CPU_FIX : cgroup_obstacle_fix(obstacle));
}

/* How to get what a policy does not ask for. */
static const struct {
        enum guarantee guarantee;
        const char *hint;
} wishes[] = {
        { GUARANTEE_NETWORK, "ask for it: \"network\": \"none\" in the policy" },
        { GUARANTEE_MEMORY, "ask for it: \"limits\": {\"memory\": \"512M\"} in the policy" },
        { GUARANTEE_PIDS, "ask for it: \"limits\": {\"processes\": 64} in the policy" },
        { GUARANTEE_CPU, "ask for it: \"limits\": {\"cpu\": 30} in the policy" },
};

/* How to get a guarantee that is not kept. */
static const char *fix_for(const struct report *report, enum guarantee guarantee)
{
        enum cgroup_obstacle obstacle = obstacle_of(guarantee, report->obstacle);

        if (not_asked(report->policy, guarantee)) {
                for (size_t i = 0; i < ARRAY_SIZE(wishes); i++)
                        if (wishes[i].guarantee == guarantee)
                                return wishes[i].hint;
                return "";
        }
        if (is_given_up(report_basis(report), guarantee))
                return "let the application run it in a box: mode strict, and no rule that "
                       "elevates it";
        if (guarantee == GUARANTEE_CGROUP || guarantee == GUARANTEE_CPU)
                return obstacle != CGROUP_FINE ? cgroup_obstacle_fix(obstacle)
                       : guarantee == GUARANTEE_CPU
                               ? CPU_FIX
                               : "ask for it: \"require\": [\"cgroup\"] in the policy";
        for (size_t i = 0; i < ARRAY_SIZE(fixes); i++)
                if (fixes[i].guarantee == guarantee)
                        return fixes[i].hint;
        return "";
}

json_t *guarantees_explain(const struct report *report, bool *ret_met)
{
        _cleanup_json_ json_t *shown = report_guarantees(report);
        json_t *array = json_deep_copy(shown), *item;
        bool met = true;
        size_t i;

        json_array_foreach(array, i, item)
        {
                bool enforced = json_is_true(json_object_get(item, "enforced"));
                bool required = report->policy->require & 1U << i &&
                                !not_asked(report->policy, (enum guarantee)i);
                const char *fix = enforced ? "" : fix_for(report, (enum guarantee)i);

                met &= enforced || !required ||
                       is_given_up(report_basis(report), (enum guarantee)i);
                if (json_object_set_new(item, "required", json_boolean(required)) < 0 ||
                    json_object_set_new(item, "fix", json_string(fix)) < 0) {
                        json_decref(array);
                        return NULL;
                }
        }
        *ret_met = met;
        return array;
}

bool guarantees_need_cgroup(const cbx_policy *policy)
{
        return policy->require & 1U << GUARANTEE_CGROUP;
}

int guarantees_check(const cbx_policy *policy, struct guarantee_basis basis, cbx_error *error)
{
        char room[128];

        for (int i = 0; i < GUARANTEE_MAX_; i++) {
                enum guarantee guarantee = (enum guarantee)i;

                if (!(policy->require & 1U << i) || not_asked(policy, guarantee) ||
                    is_given_up(basis, guarantee) ||
                    kept_by(policy, guarantee, basis, room, sizeof(room)))
                        continue;
                error_set(error, -EOPNOTSUPP, "require",
                          "this host cannot keep the guarantee \"%s\"", guarantee_str(guarantee));
                for (size_t j = 0; j < ARRAY_SIZE(fixes); j++)
                        if (fixes[j].guarantee == guarantee)
                                error_hint(error, "%s", fixes[j].hint);
                if (guarantee == GUARANTEE_CGROUP || guarantee == GUARANTEE_CPU)
                        hint_cgroup(guarantee, error);
                return -EOPNOTSUPP;
        }
        return 0;
}

int guarantees_check_limits(const cbx_policy *policy, const struct policy_limits *limits,
                            enum cgroup_means cgroup, cbx_error *error)
{
        if (!(limits->cpus > 0) || cgroup == CGROUP_SHARED ||
            !(policy->require & 1U << GUARANTEE_CPU))
                return 0;
        hint_cgroup(GUARANTEE_CPU, error);
        return -EOPNOTSUPP;
}

/* A share of the processors is told by its own sentence: the call may have asked for it alone. */
void guarantees_warn(struct report *report)
{
        const unsigned on_top = 1U << GUARANTEE_LANDLOCK | 1U << GUARANTEE_CGROUP;
        bool share = report->limits.cpus > 0 && report->cgroup != CGROUP_SHARED;
        char room[128];

        if (report->reason >= REASON_SETUP) /* nothing ran without it */
                return;
        for (int i = 0; i < GUARANTEE_MAX_; i++) {
                enum guarantee guarantee = (enum guarantee)i;

                if (on_top & 1U << i || not_asked(report->policy, guarantee) ||
                    (guarantee == GUARANTEE_CPU && share) ||
                    is_given_up(report_basis(report), guarantee) ||
                    kept_by(report->policy, guarantee, report_basis(report), room, sizeof(room)))
                        continue;
                report_warn(report, "the guarantee \"%s\" is not kept: this host cannot",
                            guarantee_str(guarantee));
        }
        if (share)
                report_warn(report,
                            "the share of the processors (cpus) is not kept: there is no control "
                            "group with the cpu controller");
}

void guarantees_warn_unboxed(struct report *report)
{
        if (report->unboxed)
                report_warn(report,
                            "NO BOX (%s): the program runs with all rights of its caller; files, "
                            "network and system calls are not fenced",
                            plan_unboxed_str(report->unboxed));
}
