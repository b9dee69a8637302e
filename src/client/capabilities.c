/* SPDX-License-Identifier: MIT */
/* What calls have here, before there is one: asked of the warden, which knows the host. */
#include <stdio.h>
#include <string.h>

#include "client/client.h"
#include "policy/json_read.h"

/* What the public struct points to. */
struct owner {
        struct report report;
        char *backend;
        json_t *guarantees;
        const cbx_guarantee **list;
};

static const char *const nothing[] = { NULL };

static void owner_free(struct owner *owner)
{
        report_free(&owner->report);
        json_decref(owner->guarantees);
        free(owner->backend);
        free(owner->list);
        free(owner);
}

/* What a box that was asked for is made of. */
static const char *backend_of(const struct report *report)
{
        return report->unboxed ? "host" : report->caged ? "landlock" : "namespaces";
}

static int fill(struct owner *owner, const char *backend, bool *ret_met)
{
        void *items = NULL;
        cbx_guarantee *guarantees;
        size_t n;

        owner->backend = strdup(backend);
        owner->guarantees = guarantees_explain(&owner->report, ret_met);
        n = json_array_size(owner->guarantees);
        owner->list = client_new_list(n, sizeof(cbx_guarantee), &items);
        if (!owner->backend || !owner->guarantees || !owner->list)
                return -ENOMEM;
        guarantees = items;
        for (size_t i = 0; i < n; i++)
                guarantees[i] = client_guarantee(json_array_get(owner->guarantees, i));
        return 0;
}

int client_check_capabilities(const cbx_capability_list *list, cbx_error *error)
{
        if (!list || list->size < sizeof(*list) || list->size > CLIENT_STRUCT_MAX)
                return error_set(error, -EINVAL, "list",
                                 "cbx_capability_list is not initialised with "
                                 "CBX_CAPABILITY_LIST_INIT");
        return 0;
}

int client_fill_capabilities(struct report *report, const char *backend,
                             cbx_capability_list *ret_list, cbx_error *error)
{
        struct owner *owner = calloc(1, sizeof(*owner));
        size_t size = ret_list->size;
        bool met = false;

        if (!owner) {
                report_free(report);
                return error_oom(error);
        }
        owner->report = *report;
        if (fill(owner, backend ? backend : backend_of(&owner->report), &met) < 0) {
                owner_free(owner);
                return error_oom(error);
        }
        memset(ret_list, 0, size);
        *ret_list = (cbx_capability_list){
                .size = size,
                .backend = owner->backend,
                .met = met,
                .guarantees = owner->list,
                .warnings = owner->report.warnings ? (const char *const *)owner->report.warnings
                                                   : nothing,
                .owner = owner,
        };
        return 0;
}

int cbx_capabilities(cbx_warden *warden, cbx_policy *policy, cbx_capability_list *ret_list,
                     cbx_error *error)
{
        struct report report = REPORT_INIT;
        int r = client_check_capabilities(ret_list, error);

        if (r < 0)
                return r;
        if (!warden || !policy)
                return error_set(error, -EINVAL, !warden ? "warden" : "policy", "is NULL");
        r = client_ask(warden, policy, PLAN_BOXED, &report, error);
        return r < 0 ? r : client_fill_capabilities(&report, NULL, ret_list, error);
}

void cbx_capabilities_free(cbx_capability_list *list)
{
        size_t size;

        if (!list || list->size < sizeof(*list))
                return;
        if (list->owner)
                owner_free(list->owner);
        size = list->size;
        memset(list, 0, size);
        list->size = size;
}

static json_t *to_json(const cbx_capability_list *list)
{
        const struct owner *owner = list->owner;
        json_t *warnings = json_array();

        for (const char *const *warning = list->warnings; warning && *warning; warning++)
                json_array_append_new(warnings, json_string(*warning));
        return json_pack("{s:s, s:b, s:O, s:o}", "backend", list->backend, "met", list->met,
                         "guarantees", owner->guarantees, "warnings", warnings);
}

static int print(json_t *json, char **ret_json, cbx_error *error)
{
        char *text = json ? json_write(json, 0) : NULL;

        if (!text)
                return error_oom(error);
        *ret_json = text;
        return 0;
}

int cbx_capabilities_print(const cbx_capability_list *list, char **ret_json, cbx_error *error)
{
        _cleanup_json_ json_t *json = NULL;

        if (client_check_capabilities(list, error) < 0 || !list->owner)
                return error_set(error, -EINVAL, "list", "nothing has been asked for yet");
        json = to_json(list);
        return print(json, ret_json, error);
}

/* ---- Backends ---- */

json_t *client_describe_backend(const char *name, const cbx_capability_list *list,
                                const cbx_error *refused)
{
        const struct owner *owner = list ? list->owner : NULL;
        bool available = owner && list->met;
        json_t *json = json_pack("{s:s, s:b}", "name", name, "available", available);
        const cbx_guarantee **missing;

        if (!json)
                return NULL;
        if (!owner) {
                json_object_set_new(json, "why", json_string(refused->text));
                json_object_set_new(json, "fix", json_string(refused->hint));
                return json;
        }
        missing = owner->list;
        while (*missing && ((*missing)->enforced || !(*missing)->required))
                missing++;
        if (!available && *missing) {
                json_object_set_new(json, "why",
                                    json_sprintf("the guarantee \"%s\" is not kept: %s",
                                                 (*missing)->name, (*missing)->by));
                json_object_set_new(json, "fix", json_string((*missing)->fix));
        }
        if (strcmp(name, owner->backend) != 0)
                json_object_set_new(json, "uses", json_string(owner->backend));
        json_object_set(json, "guarantees", owner->guarantees);
        return json;
}

static const char *const names[] = { "auto", "namespaces", "landlock", "host" };

bool client_is_backend(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(names[i], name) == 0)
                        return true;
        return false;
}

int client_ask_backend(cbx_warden *warden, const char *name, cbx_capability_list *ret_list,
                       cbx_error *error)
{
        _cleanup_policy_ cbx_policy *policy = NULL;
        enum plan_unboxed unboxed = strcmp(name, "host") == 0 ? PLAN_OFF : PLAN_BOXED;
        struct report report = REPORT_INIT;
        char box[64];
        int r;

        snprintf(box, sizeof(box), "\"%s\"", unboxed ? "auto" : name);
        r = cbx_policy_set(&policy, "box", box, error);
        if (r == 0)
                r = client_ask(warden, policy, unboxed, &report, error);
        return r < 0 ? r : client_fill_capabilities(&report, NULL, ret_list, error);
}

int client_list_backends(cbx_warden *warden, json_t *array, cbx_error *error)
{
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                cbx_capability_list list = CBX_CAPABILITY_LIST_INIT;
                cbx_error refused = CBX_ERROR_INIT;
                int r = client_ask_backend(warden, names[i], &list, &refused);
                json_t *json = client_describe_backend(names[i], r < 0 ? NULL : &list, &refused);

                cbx_capabilities_free(&list);
                if (r == -ENOMEM || !json || json_array_append_new(array, json) < 0)
                        return error_oom(error);
        }
        return 0;
}

int cbx_backends(cbx_warden *warden, char **ret_json, cbx_error *error)
{
        _cleanup_json_ json_t *array = json_array();
        int r;

        if (!warden)
                return error_set(error, -EINVAL, "warden", "is NULL");
        r = array ? client_list_backends(warden, array, error) : error_oom(error);
        return r < 0 ? r : print(array, ret_json, error);
}
