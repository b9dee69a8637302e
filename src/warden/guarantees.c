/* SPDX-License-Identifier: MIT */
/* Which guarantees a box keeps, and by what: for the report, and for refusing to run without. */
#include <stdio.h>
#include <string.h>

#include "warden/report.h"

/* By what a guarantee is kept, or NULL when it is not. */
static const char *kept_by(const cbx_policy *policy, enum guarantee guarantee, int landlock_abi,
                           bool cgroup, char *room, size_t size)
{
        const struct policy_limits *limits = &policy->limits;

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
                return !limits->memory ? NULL
                       : cgroup        ? "cgroup memory.max"
                                       : "sampling by init, RLIMIT_DATA";
        case GUARANTEE_PIDS:
                return !limits->processes ? NULL
                       : cgroup           ? "cgroup pids.max, RLIMIT_NPROC"
                                          : "RLIMIT_NPROC in an own user namespace";
        case GUARANTEE_CPU:
                return !(limits->cpu > 0) ? NULL : "sampling by init, RLIMIT_CPU";
        case GUARANTEE_LANDLOCK:
                snprintf(room, size, "Landlock ABI %d", landlock_abi);
                return landlock_abi > 0 ? room : NULL;
        case GUARANTEE_CGROUP:
                return cgroup ? "cgroup v2, own subtree" : NULL;
        case GUARANTEE_MAX_:
                break;
        }
        return NULL;
}

/* Is its absence what the policy asked for, rather than the host's fault? */
static bool not_asked(const cbx_policy *policy, enum guarantee guarantee)
{
        const struct policy_limits *limits = &policy->limits;

        return (guarantee == GUARANTEE_NETWORK && policy->network == POLICY_NETWORK_HOST) ||
               (guarantee == GUARANTEE_MEMORY && !limits->memory) ||
               (guarantee == GUARANTEE_PIDS && !limits->processes) ||
               (guarantee == GUARANTEE_CPU && !(limits->cpu > 0));
}

json_t *guarantees_to_json(const cbx_policy *policy, int landlock_abi, bool cgroup)
{
        json_t *array = json_array();
        char room[64];

        for (int i = 0; array && i < GUARANTEE_MAX_; i++) {
                enum guarantee guarantee = (enum guarantee)i;
                const char *by =
                        kept_by(policy, guarantee, landlock_abi, cgroup, room, sizeof(room));
                const char *absent =
                        not_asked(policy, guarantee) ? "not asked for" : "not available here";

                json_array_append_new(array,
                                      json_pack("{s:s, s:b, s:s}", "name", guarantee_str(guarantee),
                                                "enforced", by != NULL, "by", by ? by : absent));
        }
        return array;
}

static const struct {
        enum guarantee guarantee;
        const char *hint;
} fixes[] = {
        { GUARANTEE_LANDLOCK,
          "use a kernel built with Landlock (Linux 5.13 or newer) that has it in "
          "its lsm= list" },
        { GUARANTEE_CGROUP, "give callbox a cgroup v2 subtree of its own, for example: systemd-run "
                            "--user --scope -p Delegate=yes callbox run ..." },
};

int guarantees_check(const cbx_policy *policy, int landlock_abi, bool cgroup, cbx_error *error)
{
        char room[64];

        for (int i = 0; i < GUARANTEE_MAX_; i++) {
                enum guarantee guarantee = (enum guarantee)i;

                if (!(policy->require & 1U << i) || not_asked(policy, guarantee) ||
                    kept_by(policy, guarantee, landlock_abi, cgroup, room, sizeof(room)))
                        continue;
                error_set(error, -EOPNOTSUPP, "require",
                          "this host cannot keep the guarantee \"%s\"", guarantee_str(guarantee));
                for (size_t j = 0; j < ARRAY_SIZE(fixes); j++)
                        if (fixes[j].guarantee == guarantee)
                                error_hint(error, "%s", fixes[j].hint);
                return -EOPNOTSUPP;
        }
        return 0;
}
