/* SPDX-License-Identifier: MIT */
#include "cli/routes.h"

#include <stdio.h>
#include <string.h>

#include "policy/json_read.h"
#include "tool/route.h"

const char routes_help[] =
        "\n"
        "Where tools run; only here can that be said, never by a manifest or a client:\n"
        "  --mode MODE        strict: in a box (default); warn, off: without one\n"
        "  --elevate PATTERN  tools of this name run without a box, in every mode\n"
        "  --refuse PATTERN   tools of this name do not run, elevated or not\n";

static int take_mode(struct routes *routes, const char *mode, cbx_error *error)
{
        static const char *const modes[] = {
                [CBX_STRICT] = "strict", [CBX_WARN] = "warn", [CBX_OFF] = "off"
        };

        for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
                if (strcmp(modes[i], mode) == 0) {
                        routes->mode = (int)i;
                        return 1;
                }
        error_set(error, -EINVAL, "--mode", "there is no mode \"%.64s\"", mode);
        error_hint(error, "it is strict, warn or off");
        return -EINVAL;
}

static int take_rule(struct routes *routes, const char *option, const char *pattern, int means,
                     cbx_error *error)
{
        cbx_rule *rules;

        if (!*pattern)
                return error_set(error, -EINVAL, option, "needs the name of a tool, or a pattern");
        rules = reallocarray(routes->rules, routes->n_rules + 2, sizeof(*rules));
        if (!rules)
                return error_oom(error);
        routes->rules = rules;
        rules[routes->n_rules++] = (cbx_rule){ pattern, means, NULL };
        rules[routes->n_rules] = (cbx_rule){ NULL, 0, NULL };
        return 1;
}

int routes_take(struct routes *routes, int argc, char **argv, int *index, cbx_error *error)
{
        const char *value;
        int r = options_value(argc, argv, index, "--mode", error, &value);

        if (r != 0)
                return r < 0 ? r : take_mode(routes, value, error);
        r = options_value(argc, argv, index, "--elevate", error, &value);
        if (r != 0)
                return r < 0 ? r : take_rule(routes, "--elevate", value, CBX_ELEVATED, error);
        r = options_value(argc, argv, index, "--refuse", error, &value);
        return r <= 0 ? r : take_rule(routes, "--refuse", value, CBX_REFUSED, error);
}

void routes_free(struct routes *routes)
{
        free(routes->rules);
        *routes = (struct routes){ 0 };
}

static void print_log(void *userdata, const char *level, const char *text)
{
        const struct routes *routes = userdata;

        if (!routes->quiet)
                fprintf(stderr, "callbox: %s: %s\n", level, text);
}

void routes_apply(struct routes *routes, cbx_toolbox_options *options)
{
        options->mode = routes->mode;
        options->rules = routes->rules;
        options->log = print_log;
        options->log_userdata = routes;
}

const char *routes_option(const cbx_rule *rule)
{
        return rule->means == CBX_ELEVATED ? "--elevate" : "--refuse";
}

void routes_tell_unused(const struct routes *routes, cbx_toolbox *toolbox)
{
        _cleanup_free_ char *text = NULL;
        _cleanup_json_ json_t *list = NULL;

        if (routes->n_rules == 0 || cbx_toolbox_list(toolbox, NULL, &text, NULL) < 0)
                return;
        list = json_loads(text, 0, NULL);
        for (size_t i = 0; list && i < routes->n_rules; i++) {
                const cbx_rule *rule = &routes->rules[i];
                char shown[128];
                bool used = false;
                const json_t *tool;
                size_t j;

                json_array_foreach(list, j, tool)
                {
                        used |= route_fits(rule, json_string_value(json_object_get(tool, "name")));
                }
                if (used)
                        continue;
                snprintf(shown, sizeof(shown), "%s", rule->pattern);
                text_make_showable(shown);
                fprintf(stderr, "callbox: warning: %s %s: there is no such tool\n",
                        routes_option(rule), shown);
        }
}

const char *routes_warning(const struct routes *routes)
{
        if (routes->mode == CBX_OFF)
                return "NO BOX: tools run with all rights of this user (--mode off)";
        if (routes->mode == CBX_WARN)
                return "NO BOX: tools run with all rights of this user (--mode warn)";
        for (size_t i = 0; i < routes->n_rules; i++)
                if (routes->rules[i].means == CBX_ELEVATED)
                        return "NO BOX: some tools run with all rights of this user (--elevate)";
        return NULL;
}
