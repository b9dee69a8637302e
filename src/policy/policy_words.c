/* SPDX-License-Identifier: MIT */
/* The words of a policy: names of enum values. */
#include <string.h>

#include "policy/policy_parts.h"

static const char *const boxes[] = {
        [POLICY_BOX_AUTO] = "auto",
        [POLICY_BOX_NAMESPACES] = "namespaces",
        [POLICY_BOX_LANDLOCK] = "landlock",
};

static const char *const networks[] = {
        [POLICY_NETWORK_NONE] = "none",
        [POLICY_NETWORK_LOOPBACK] = "loopback",
        [POLICY_NETWORK_HOST] = "host",
};

static const char *const refusals[] = {
        [POLICY_REFUSE_ERRNO] = "errno",
        [POLICY_REFUSE_KILL] = "kill",
};

static const char *const guarantees[] = {
        [GUARANTEE_TREE_KILL] = "tree-kill",
        [GUARANTEE_FILES] = "files",
        [GUARANTEE_NETWORK] = "network",
        [GUARANTEE_SYSCALLS] = "syscalls",
        [GUARANTEE_PRIVILEGES] = "privileges",
        [GUARANTEE_ENVIRONMENT] = "environment",
        [GUARANTEE_MEMORY] = "memory",
        [GUARANTEE_PIDS] = "pids",
        [GUARANTEE_CPU] = "cpu",
        [GUARANTEE_LANDLOCK] = "landlock",
        [GUARANTEE_CGROUP] = "cgroup",
};
_Static_assert(ARRAY_SIZE(guarantees) == GUARANTEE_MAX_, "every guarantee has a name");

#define WORDS_INIT(table)                                                                          \
        {                                                                                          \
                (table), ARRAY_SIZE(table), sizeof((table)[0])                                     \
        }
const struct json_words policy_box_words = WORDS_INIT(boxes);
const struct json_words policy_network_words = WORDS_INIT(networks);
const struct json_words policy_refusal_words = WORDS_INIT(refusals);
const struct json_words policy_guarantee_words = WORDS_INIT(guarantees);

const char *policy_network_str(enum policy_network network)
{
        return (size_t)network < ARRAY_SIZE(networks) ? networks[network] : NULL;
}

const char *guarantee_str(enum guarantee guarantee)
{
        return (size_t)guarantee < ARRAY_SIZE(guarantees) ? guarantees[guarantee] : NULL;
}

const char *policy_anywhere(const char *name)
{
        size_t n = strlen(POLICY_ANYWHERE);

        return strncmp(name, POLICY_ANYWHERE, n) == 0 ? name + n : NULL;
}
