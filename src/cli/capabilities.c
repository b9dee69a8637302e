/* SPDX-License-Identifier: MIT */
/* callbox policy capabilities and backends: what the library answers, to be read. */
#include "cli/capabilities.h"

#include <stdio.h>
#include <string.h>

static int open_warden(cbx_warden **ret, cbx_error *error)
{
        cbx_warden_options options = CBX_WARDEN_OPTIONS_INIT;

        options.program = "/proc/self/exe";
        options.prepared = CBX_NONE; /* nothing will be run */
        return cli_open_warden(&options, ret, error);
}

static int print_text(const char *text)
{
        _cleanup_json_ json_t *json = json_loads(text, 0, NULL);

        return json ? cli_print_json(json, STDOUT_FILENO) : cli_fail("out of memory");
}

static void print_guarantee(const cbx_guarantee *guarantee)
{
        printf("  %s  %-13s%s\n",
               guarantee->enforced   ? "ok"
               : guarantee->required ? "NO"
                                     : "--",
               guarantee->name, guarantee->by);
        if (!guarantee->enforced && guarantee->fix[0])
                printf("                   to get it: %s\n", guarantee->fix);
}

static int print_list(const cbx_capability_list *list)
{
        printf("%s\n", list->backend);
        for (const cbx_guarantee *const *g = list->guarantees; *g; g++)
                print_guarantee(*g);
        for (const char *const *warning = list->warnings; *warning; warning++)
                printf("warning: %s\n", *warning);
        if (!list->met)
                puts("This host does not keep what the policy requires: calls are refused.");
        return 0;
}

int capabilities_print(cbx_policy *policy, bool json, cbx_error *error)
{
        cbx_capability_list list = CBX_CAPABILITY_LIST_INIT;
        _cleanup_free_ char *text = NULL;
        cbx_warden *warden = NULL;
        int code = 0, r = open_warden(&warden, error);

        if (r == 0)
                r = cbx_capabilities(warden, policy, &list, error);
        if (r == 0 && json)
                r = cbx_capabilities_print(&list, &text, error);
        if (r == 0) {
                code = json ? print_text(text) : print_list(&list);
                code = code == 0 && !list.met ? 1 : code;
        }
        cbx_capabilities_free(&list);
        cbx_warden_close(warden);
        return r < 0 ? r : code;
}

static int print_backends(const char *text)
{
        _cleanup_json_ json_t *array = json_loads(text, 0, NULL);
        json_t *item;
        size_t i;

        if (!array)
                return cli_fail("out of memory");
        json_array_foreach(array, i, item)
        {
                const char *name = json_string_value(json_object_get(item, "name"));
                const char *uses = json_string_value(json_object_get(item, "uses"));
                const char *why = json_string_value(json_object_get(item, "why"));
                const char *fix = json_string_value(json_object_get(item, "fix"));
                bool available = json_is_true(json_object_get(item, "available"));

                printf("%-12s%s%s\n", name,
                       available ? "available" : "not available: ", !available && why ? why : "");
                if (uses)
                        printf("            here: %s\n", uses);
                if (!available && fix && *fix)
                        printf("            to get it: %s\n", fix);
        }
        return 0;
}

int capabilities_print_backends(bool json, cbx_error *error)
{
        _cleanup_free_ char *text = NULL;
        cbx_warden *warden = NULL;
        int r = open_warden(&warden, error);

        if (r == 0)
                r = cbx_backends(warden, &text, error);
        if (r == 0)
                r = json ? print_text(text) : print_backends(text);
        cbx_warden_close(warden);
        return r;
}
