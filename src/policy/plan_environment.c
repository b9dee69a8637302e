/* SPDX-License-Identifier: MIT */
/* The environment of a box: a few safe names, what the policy passes or sets, nothing else. */
#include <stdio.h>
#include <string.h>

#include "policy/plan.h"

/* Safe names that keep the caller's value; without one, the default (NULL: left out). */
static const struct {
        const char *name, *fallback;
} passed[] = {
        { "PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin" },
        { "LANG", NULL },
        { "LC_ALL", NULL },
        { "LC_CTYPE", NULL },
        { "TERM", NULL },
        { "TZ", NULL },
};

/* Safe names whose value in the box is not the caller's. */
static const struct {
        const char *name, *value;
} given[] = {
        { "HOME", PLAN_HOME },        { "TMPDIR", "/tmp" },   { "USER", PLAN_BOX_NAME },
        { "LOGNAME", PLAN_BOX_NAME }, { "SHELL", "/bin/sh" },
};

struct block {
        char **strings;
        size_t n, room;
};

static char *find(char *const *environment, const char *name)
{
        size_t n = strlen(name);

        for (; environment && *environment; environment++)
                if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=')
                        return *environment;
        return NULL;
}

static const char *lookup(char **environment, const char *name)
{
        const char *variable = find(environment, name);

        return variable ? variable + strlen(name) + 1 : NULL;
}

char **plan_select_environment(const cbx_policy *policy, char *const *environment)
{
        size_t n = 0, room = ARRAY_SIZE(passed) + policy->n_variables + 1;
        char **selected = calloc(room, sizeof(char *));

        if (!selected)
                return NULL;
        for (size_t i = 0; i < ARRAY_SIZE(passed); i++) {
                selected[n] = find(environment, passed[i].name);
                n += selected[n] != NULL;
        }
        for (size_t i = 0; i < policy->n_variables; i++) {
                if (!policy->variables[i].value)
                        selected[n] = find(environment, policy->variables[i].name);
                n += selected[n] != NULL;
        }
        return selected;
}

/* Set a variable, replacing an earlier value. */
static int set(struct block *block, const char *name, const char *value)
{
        size_t n = strlen(name);
        char *string;

        if (asprintf(&string, "%s=%s", name, value) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < block->n; i++)
                if (strncmp(block->strings[i], name, n) == 0 && block->strings[i][n] == '=') {
                        free(block->strings[i]);
                        block->strings[i] = string;
                        return 0;
                }
        if (block->n + 1 >= block->room) {
                size_t room = block->room ? block->room * 2 : 32;
                char **strings = reallocarray(block->strings, room, sizeof(*strings));

                if (!strings) {
                        free(string);
                        return -ENOMEM;
                }
                block->strings = strings;
                block->room = room;
        }
        block->strings[block->n++] = string;
        block->strings[block->n] = NULL;
        return 0;
}

static int set_policy_variables(struct plan *plan, struct block *block, char **environment)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < plan->policy->n_variables; i++) {
                const struct policy_variable *variable = &plan->policy->variables[i];
                const char *value =
                        variable->value ? variable->value : lookup(environment, variable->name);

                if (!value)
                        continue;
                r = set(block, variable->name, value);
                if (r == 0 && policy_variable_is_risky(variable->name))
                        r = plan_warn(plan,
                                      "%s is %s the box by the policy; it can make programs "
                                      "load code",
                                      variable->name, variable->value ? "set in" : "passed into");
        }
        return r;
}

int plan_set_environment(struct plan *plan, const struct plan_options *options, cbx_error *error)
{
        struct block block = { 0 };
        int r = 0;

        for (char **v = options->pass_all ? options->environment : NULL; r == 0 && v && *v; v++) {
                char name[256];
                const char *equals = strchr(*v, '=');

                if (!equals || (size_t)(equals - *v) >= sizeof(name))
                        continue;
                snprintf(name, sizeof(name), "%.*s", (int)(equals - *v), *v);
                r = set(&block, name, equals + 1);
        }
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(passed); i++) {
                const char *value = lookup(options->environment, passed[i].name);

                value = value ? value : passed[i].fallback;
                if (value)
                        r = set(&block, passed[i].name, value);
        }
        /* A file that is there and may not be read ends git; it can be told not to look. */
        if (r == 0 && plan->caged && !plan->unboxed && !plan_shows(plan, "/etc/gitconfig"))
                r = set(&block, "GIT_CONFIG_NOSYSTEM", "1");
        /* Where the box's own /tmp is a directory of the host's, each has another (box/box.c). */
        for (size_t i = plan->caged ? 2 : 0; r == 0 && i < ARRAY_SIZE(given); i++)
                r = set(&block, given[i].name, given[i].value);
        if (r == 0)
                r = set_policy_variables(plan, &block, options->environment);
        plan->environment = block.strings;
        return r < 0 ? error_oom(error) : 0;
}
