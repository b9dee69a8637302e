/* SPDX-License-Identifier: MIT */
#include "tool/route.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#define RULES_MAX 65536

const char *route_str(int to)
{
        static const char *const words[] = {
                [CBX_TO_BOX] = "box", [CBX_TO_HOST] = "host", [CBX_TO_NOBODY] = "nobody"
        };

        return words[to];
}

/* ---- What the application says ---- */

const cbx_backend *routing_find(const struct routing *routing, const char *backend)
{
        for (size_t i = 0; i < routing->n_backends; i++)
                if (strcmp(routing->backends[i].name, backend) == 0)
                        return &routing->backends[i];
        return NULL;
}

static int check_mode(int mode, cbx_error *error)
{
        if (mode < CBX_STRICT || mode > CBX_OFF)
                return error_set(error, -EINVAL, "mode", "%d is none of the modes of callbox.h",
                                 mode);
        return 0;
}

static int check_rule(const cbx_rule *rule, size_t index, cbx_error *error)
{
        char where[64];

        if (!rule->pattern[0]) {
                snprintf(where, sizeof(where), "rules[%zu].pattern", index);
                return error_set(error, -EINVAL, where, "is empty: it names no tool");
        }
        if (rule->means < CBX_BOXED || rule->means > CBX_REFUSED) {
                snprintf(where, sizeof(where), "rules[%zu].means", index);
                return error_set(error, -EINVAL, where,
                                 "%d is none of CBX_BOXED, CBX_ELEVATED and CBX_REFUSED",
                                 rule->means);
        }
        if (rule->backend && rule->means != CBX_BOXED) {
                snprintf(where, sizeof(where), "rules[%zu].backend", index);
                return error_set(error, -EINVAL, where,
                                 "only a rule of CBX_BOXED has one: the others run in none");
        }
        return 0;
}

/* What is not boxed is elevated, by that name alone. */
static int check_backend(const struct routing *routing, const char *backend, const char *where,
                         cbx_error *error)
{
        char known[256] = "auto, landlock, namespaces";

        if (!backend || routing_find(routing, backend))
                return 0;
        if (strcmp(backend, ROUTE_HOST) == 0) {
                error_set(error, -EINVAL, where, "\"host\" is no box");
                error_hint(error, "mode CBX_OFF runs all tools without one, a rule of CBX_ELEVATED "
                                  "some");
                return -EINVAL;
        }
        if (client_is_backend(backend))
                return 0;
        for (size_t i = 0; i < routing->n_backends; i++)
                snprintf(known + strlen(known), sizeof(known) - strlen(known), ", %s",
                         routing->backends[i].name);
        error_set(error, -EINVAL, where, "unknown backend \"%.64s\"", backend);
        error_hint(error, "there are: %s", known);
        return -EINVAL;
}

static int take_backend(struct routing *routing, const cbx_backend *given, cbx_error *error)
{
        cbx_backend *backends, known = CBX_BACKEND_INIT;
        int r = client_read_struct("cbx_backend", given, sizeof(known), &known, sizeof(known),
                                   error);

        if (r < 0)
                return r;
        if (!known.name || !known.name[0] || !known.run)
                return error_set(error, -EINVAL, "backends", "a backend has a name and can run");
        if (client_is_backend(known.name) || routing_find(routing, known.name))
                return error_set(error, -EEXIST, "backends", "there is a backend \"%.64s\" already",
                                 known.name);
        backends = reallocarray(routing->backends, routing->n_backends + 1, sizeof(*backends));
        if (!backends)
                return error_oom(error);
        routing->backends = backends;
        known.name = strdup(known.name);
        if (!known.name)
                return error_oom(error);
        backends[routing->n_backends++] = known;
        return 0;
}

static int take_rules(struct routing *routing, const cbx_rule *rules, cbx_error *error)
{
        size_t n = 0;
        char where[64];
        int r = 0;

        while (n < RULES_MAX && rules[n].pattern)
                n++;
        if (n == RULES_MAX)
                return error_set(error, -E2BIG, "rules", "has no end: the last has no pattern");
        routing->rules = calloc(n + 1, sizeof(cbx_rule));
        if (!routing->rules)
                return error_oom(error);
        for (size_t i = 0; r == 0 && i < n; i++) {
                cbx_rule *rule = &routing->rules[i];

                snprintf(where, sizeof(where), "rules[%zu].backend", i);
                r = check_rule(&rules[i], i, error);
                if (r == 0)
                        r = check_backend(routing, rules[i].backend, where, error);
                if (r < 0)
                        break;
                *rule = (cbx_rule){
                        .pattern = strdup(rules[i].pattern),
                        .means = rules[i].means,
                        .backend = rules[i].backend ? strdup(rules[i].backend) : NULL,
                };
                if (!rule->pattern || (rules[i].backend && !rule->backend))
                        r = error_oom(error);
        }
        return r;
}

int routing_open(struct routing *routing, const cbx_toolbox_options *options, cbx_error *error)
{
        int r = check_mode(options->mode, error);

        routing->mode = options->mode;
        routing->log = options->log;
        routing->log_userdata = options->log_userdata;
        for (const cbx_backend *const *b = options->backends; r == 0 && b && *b; b++)
                r = take_backend(routing, *b, error);
        if (r == 0)
                r = check_backend(routing, options->backend, "backend", error);
        if (r == 0 && options->rules)
                r = take_rules(routing, options->rules, error);
        if (r < 0)
                return r;
        routing->backend = strdup(options->backend ? options->backend : ROUTE_AUTO);
        return routing->backend ? 0 : error_oom(error);
}

void routing_close(struct routing *routing)
{
        /* One that memory was missing for is the last. */
        for (cbx_rule *rule = routing->rules; rule && rule->pattern; rule++) {
                free((char *)rule->pattern);
                free((char *)rule->backend);
        }
        free(routing->rules);
        for (size_t i = 0; i < routing->n_backends; i++)
                free((char *)routing->backends[i].name);
        free(routing->backends);
        free(routing->backend);
        *routing = (struct routing){ 0 };
}

bool routing_is_plain(const struct routing *routing)
{
        return routing->mode == CBX_STRICT && !routing->rules && !routing->n_backends &&
               strcmp(routing->backend, ROUTE_AUTO) == 0;
}

/* ---- The decision ---- */

bool route_fits(const cbx_rule *rule, const char *name)
{
        return strcmp(rule->pattern, name) == 0 || fnmatch(rule->pattern, name, 0) == 0;
}

/* A refusal counts wherever it stands: what somebody wants not to run, no pattern before it runs.
 */
static const cbx_rule *find_rule(const cbx_rule *rules, const char *name)
{
        const cbx_rule *first = NULL;

        for (; rules && rules->pattern; rules++) {
                if ((first && rules->means != CBX_REFUSED) || !route_fits(rules, name))
                        continue;
                first = rules;
                if (rules->means == CBX_REFUSED)
                        break;
        }
        return first;
}

static struct route to_nobody(const char *reason)
{
        return (struct route){ .to = CBX_TO_NOBODY, .reason = reason, .backend = "" };
}

static struct route to_host(const char *reason, enum plan_unboxed unboxed)
{
        return (struct route){
                .to = CBX_TO_HOST, .reason = reason, .backend = ROUTE_HOST, .unboxed = unboxed
        };
}

struct route routing_decide(const struct routing *routing, const char *name,
                            enum tool_route manifest)
{
        const cbx_rule *rule = find_rule(routing->rules, name);
        int means = rule ? rule->means : CBX_BOXED;
        struct route box = { .to = CBX_TO_BOX,
                             .reason = "Strict mode: tool runs in a box",
                             .backend = rule && rule->backend ? rule->backend
                                        : routing->backend    ? routing->backend
                                                              : ROUTE_AUTO };

        if (means == CBX_REFUSED)
                return to_nobody("Tool is refused by the application");
        if (manifest == TOOL_ROUTE_REFUSED)
                return to_nobody("Tool is refused by its manifest");
        if (manifest == TOOL_ROUTE_BOXED) {
                box.reason = "Tool asks for a box in its manifest";
                return box;
        }
        if (means == CBX_ELEVATED)
                return to_host("Tool is marked as elevated", PLAN_ELEVATED);
        if (routing->mode == CBX_OFF)
                return to_host("Mode is off", PLAN_OFF);
        if (routing->mode == CBX_WARN)
                return to_host("Warn mode advisory: tool would run in a box, executing on host",
                               PLAN_WARN);
        return box;
}

int cbx_decide(int mode, const cbx_rule *rules, const char *tool, cbx_decision *ret_decision,
               cbx_error *error)
{
        struct routing routing = { .mode = mode, .rules = (cbx_rule *)rules };
        struct route route;
        int r = check_mode(mode, error);

        if (!tool)
                return error_set(error, -EINVAL, "tool", "is NULL");
        if (!ret_decision || ret_decision->size < sizeof(*ret_decision))
                return error_set(error, -EINVAL, "decision",
                                 "cbx_decision is not initialised with CBX_DECISION_INIT");
        for (size_t i = 0; r == 0 && rules && rules[i].pattern; i++)
                r = check_rule(&rules[i], i, error);
        if (r < 0)
                return r;
        route = routing_decide(&routing, tool, TOOL_ROUTE_OPEN);
        ret_decision->route = route.to;
        ret_decision->reason = route.reason;
        ret_decision->backend = route.backend;
        return 0;
}
