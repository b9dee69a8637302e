/* SPDX-License-Identifier: MIT */
/* Asking a toolbox: where its tools run, by what, and what that keeps. */
#include <stdio.h>
#include <string.h>

#include "tool/toolbox.h"

struct route toolbox_route(const cbx_toolbox *toolbox, const struct tool *tool)
{
        return routing_decide(&toolbox->routing, tool->name, tool->route);
}

bool toolbox_tells_route(const cbx_toolbox *toolbox, const struct tool *tool)
{
        return tool->route != TOOL_ROUTE_OPEN || !routing_is_plain(&toolbox->routing);
}

/* A box of another kind than the tool's policy asks for, by a rule: once for all calls. */
int toolbox_choose_box(const cbx_toolbox *toolbox, struct tool *tool, cbx_error *error)
{
        struct route route = toolbox_route(toolbox, tool);
        char box[64];
        int r;

        if (route.to != CBX_TO_BOX || strcmp(route.backend, ROUTE_AUTO) == 0 ||
            !client_is_backend(route.backend))
                return 0;
        snprintf(box, sizeof(box), "\"%s\"", route.backend);
        r = cbx_policy_set(&tool->policy, "box", box, error);
        if (r == 0 && tool->ask.policy)
                r = cbx_policy_set(&tool->ask.policy, "box", box, error);
        return r;
}

int toolbox_set_route(json_t *outcome, const struct route *route)
{
        return json_object_set_new(outcome, "route",
                                   json_pack("{s:s, s:s, s:s}", "to", route_str(route->to),
                                             "reason", route->reason, "backend", route->backend));
}

void toolbox_log_route(const cbx_toolbox *toolbox, const struct tool *tool,
                       const struct route *route)
{
        char text[512];

        if (!toolbox->routing.log || route->unboxed != PLAN_WARN)
                return;
        snprintf(text, sizeof(text), "Tool '%s' would run in a box (mode=warn, running on host)",
                 tool->name);
        toolbox->routing.log(toolbox->routing.log_userdata, "warning", text);
}

static struct tool *find(cbx_toolbox *toolbox, const char *name, cbx_error *error)
{
        struct tool *tool;

        if (!toolbox || !name) {
                error_set(error, -EINVAL, !toolbox ? "toolbox" : "name", "is NULL");
                return NULL;
        }
        pthread_mutex_lock(&toolbox->lock);
        tool = toolbox_find(toolbox, name);
        if (tool)
                tool_ref(tool);
        pthread_mutex_unlock(&toolbox->lock);
        if (!tool)
                error_set(error, -ENOENT, "name", "unknown tool: %s", name);
        return tool;
}

int cbx_toolbox_decide(cbx_toolbox *toolbox, const char *name, cbx_decision *ret_decision,
                       cbx_error *error)
{
        _cleanup_tool_ struct tool *tool = NULL;
        struct route route;

        if (!ret_decision || ret_decision->size < sizeof(*ret_decision))
                return error_set(error, -EINVAL, "decision",
                                 "cbx_decision is not initialised with CBX_DECISION_INIT");
        tool = find(toolbox, name, error);
        if (!tool)
                return toolbox && name ? -ENOENT : -EINVAL;
        route = toolbox_route(toolbox, tool);
        ret_decision->route = route.to;
        ret_decision->reason = route.reason;
        ret_decision->backend = route.backend;
        return 0;
}

int cbx_toolbox_capabilities(cbx_toolbox *toolbox, const char *name, cbx_capability_list *ret_list,
                             cbx_error *error)
{
        _cleanup_tool_ struct tool *tool = NULL;
        struct report report = REPORT_INIT;
        const cbx_backend *backend;
        struct route route;
        int r = client_check_capabilities(ret_list, error);

        if (r < 0)
                return r;
        tool = find(toolbox, name, error);
        if (!tool)
                return toolbox && name ? -ENOENT : -EINVAL;
        route = toolbox_route(toolbox, tool);
        if (route.to == CBX_TO_NOBODY)
                return error_set(error, -EPERM, "name", "nobody runs %s: %s", name, route.reason);
        backend = routing_find(&toolbox->routing, route.backend);
        if (backend)
                r = backend_check(backend, error);
        if (r == 0)
                r = backend ? backend_ask(backend, tool->policy, &report, error)
                            : client_ask(toolbox->warden, tool->policy, route.unboxed, &report,
                                         error);
        return r < 0 ? r
                     : client_fill_capabilities(&report, backend ? backend->name : NULL, ret_list,
                                                error);
}

/* What a backend of the application's promises under an empty policy. */
static int ask_backend(const cbx_backend *backend, cbx_capability_list *ret_list, cbx_error *error)
{
        _cleanup_policy_ cbx_policy *policy = NULL;
        struct report report = REPORT_INIT;
        int r = backend_check(backend, error);

        if (r == 0)
                r = cbx_policy_parse("{}", 2, &policy, error);
        if (r == 0)
                r = backend_ask(backend, policy, &report, error);
        return r < 0 ? r : client_fill_capabilities(&report, backend->name, ret_list, error);
}

static int list_own(const cbx_toolbox *toolbox, json_t *array, cbx_error *error)
{
        for (size_t i = 0; i < toolbox->routing.n_backends; i++) {
                const cbx_backend *backend = &toolbox->routing.backends[i];
                cbx_capability_list list = CBX_CAPABILITY_LIST_INIT;
                cbx_error refused = CBX_ERROR_INIT;
                int r = ask_backend(backend, &list, &refused);
                json_t *json =
                        client_describe_backend(backend->name, r < 0 ? NULL : &list, &refused);

                cbx_capabilities_free(&list);
                if (r == -ENOMEM || !json || json_array_append_new(array, json) < 0)
                        return error_oom(error);
        }
        return 0;
}

int cbx_toolbox_backends(cbx_toolbox *toolbox, char **ret_json, cbx_error *error)
{
        _cleanup_json_ json_t *array = json_array();
        char *text;
        int r;

        if (!toolbox)
                return error_set(error, -EINVAL, "toolbox", "is NULL");
        r = array ? client_list_backends(toolbox->warden, array, error) : error_oom(error);
        if (r == 0)
                r = list_own(toolbox, array, error);
        if (r < 0)
                return r;
        text = json_write(array, 0);
        if (!text)
                return error_oom(error);
        *ret_json = text;
        return 0;
}

int cbx_toolbox_backend_available(cbx_toolbox *toolbox, const char *backend, cbx_error *error)
{
        cbx_capability_list list = CBX_CAPABILITY_LIST_INIT;
        const cbx_backend *own;
        bool met;
        int r;

        if (!toolbox || !backend)
                return error_set(error, -EINVAL, !toolbox ? "toolbox" : "backend", "is NULL");
        own = routing_find(&toolbox->routing, backend);
        if (own)
                return backend_check(own, error);
        if (!client_is_backend(backend))
                return error_set(error, -ENOENT, "backend", "unknown backend \"%.64s\"", backend);
        r = client_ask_backend(toolbox->warden, backend, &list, error);
        met = list.met;
        for (size_t i = 0; r == 0 && !met && list.guarantees[i]; i++) {
                const cbx_guarantee *guarantee = list.guarantees[i];

                if (guarantee->enforced || !guarantee->required)
                        continue;
                r = error_set(error, -EOPNOTSUPP, "backend", "the guarantee \"%s\" is not kept: %s",
                              guarantee->name, guarantee->by);
                error_hint(error, "%s", guarantee->fix);
        }
        cbx_capabilities_free(&list);
        return r;
}
