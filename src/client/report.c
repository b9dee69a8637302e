/* SPDX-License-Identifier: MIT */
/* A report as the caller sees it. */
#include <string.h>

#include "client/client.h"
#include "policy/json_read.h"

/* The enums are the same, in the same order: report.c of the engine has the words. */
_Static_assert((int)CBX_EXITED == (int)REASON_EXITED && (int)CBX_DENIED == (int)REASON_DENIED &&
                       (int)CBX_INTERNAL == (int)REASON_INTERNAL,
               "reasons of the API are those of the engine");

/* What the public struct points to. The lists are made when they are first asked for. */
struct owner {
        struct report report;
        char text[512];
        json_t *guarantees;
        const cbx_denial **denial_list;
        const cbx_guarantee **guarantee_list;
        cbx_result result;
        char *result_output, *result_text;
        const cbx_mistake **mistake_list;
};

static const char *const nothing[] = { NULL };

static void owner_free(struct owner *owner)
{
        report_free(&owner->report);
        json_decref(owner->guarantees);
        free(owner->denial_list);
        free(owner->guarantee_list);
        free(owner->result_output);
        free(owner->result_text);
        free(owner->mistake_list);
        free(owner);
}

/* It is in order already, with a NUL behind it (output_take_kept). Of a call that never had a box
 * there is nothing. */
static cbx_output show(const struct output *output)
{
        return (cbx_output){ .data = output->data ? output->data : "",
                             .length = output_kept(output),
                             .head = output->head_length,
                             .total = output->total,
                             .omitted = output_omitted(output) };
}

int client_fill_report(struct report *report, cbx_report *ret_report, cbx_error *error)
{
        cbx_report filled = CBX_REPORT_INIT;
        struct owner *owner = calloc(1, sizeof(*owner));
        size_t size = ret_report->size;

        if (!owner) {
                report_free(report);
                return error_oom(error);
        }
        owner->report = *report;
        report = &owner->report;
        filled.output = show(&report->output[STREAM_OUTPUT]);
        filled.errors = show(&report->output[STREAM_ERRORS]);
        filled.result = show(&report->output[STREAM_RESULT]);
        report_text(report, owner->text, sizeof(owner->text));
        filled.reason = (int)report->reason;
        filled.code = report->reason == REASON_EXITED ? report->code : -1;
        filled.signal = report->reason == REASON_SIGNALED ? report->signal : 0;
        filled.id = report->id;
        filled.text = owner->text;
        filled.error = report->error.code ? &report->error : NULL;
        filled.started_at = (uint64_t)report->started_at.tv_sec * NSEC_PER_SEC +
                            (uint64_t)report->started_at.tv_nsec;
        filled.setup_time = report->setup_time;
        filled.run_time = report->run_time;
        filled.cpu_user = report->cpu_user;
        filled.cpu_system = report->cpu_system;
        filled.memory_peak = report->memory_peak;
        filled.processes_peak = report->processes_peak;
        filled.bytes_in = report->bytes_in;
        filled.bytes_out = report->output[0].total + report->output[1].total;
        filled.owner = owner;
        /* A caller with a newer header has a larger struct: what is not known here is zero. */
        memset(ret_report, 0, size);
        memcpy(ret_report, &filled, MIN(size, sizeof(filled)));
        ret_report->size = size;
        return 0;
}

void cbx_report_free(cbx_report *report)
{
        const cbx_report empty = CBX_REPORT_INIT;
        size_t size;

        if (!report || report->size < CLIENT_REPORT_LEAST)
                return;
        if (report->owner)
                owner_free(report->owner);
        size = report->size;
        memset(report, 0, size);
        memcpy(report, &empty, MIN(size, sizeof(empty)));
        report->size = size;
}

const char *cbx_reason_name(int reason)
{
        return reason >= 0 && reason < REASON_MAX_ ? reason_str((enum reason)reason) : NULL;
}

static const char *text_of(const json_t *object, const char *key)
{
        const char *text = json_string_value(json_object_get(object, key));

        return text ? text : "";
}

cbx_guarantee client_guarantee(const json_t *json)
{
        return (cbx_guarantee){ .name = text_of(json, "name"),
                                .enforced = json_is_true(json_object_get(json, "enforced")),
                                .by = text_of(json, "by"),
                                .required = json_is_true(json_object_get(json, "required")),
                                .fix = text_of(json, "fix") };
}

void *client_new_list(size_t n, size_t size, void **ret_items)
{
        void **list = calloc(1, (n + 1) * sizeof(void *) + n * size);

        if (!list)
                return NULL;
        *ret_items = list + n + 1;
        for (size_t i = 0; i < n; i++)
                list[i] = (char *)*ret_items + i * size;
        return list;
}

const cbx_denial *const *cbx_report_denials(const cbx_report *report)
{
        struct owner *owner = report->owner;
        size_t n = owner ? json_array_size(owner->report.denials) : 0;
        cbx_denial *denials;
        void *items = NULL;

        if (n == 0)
                return (const cbx_denial *const *)nothing;
        if (owner->denial_list)
                return owner->denial_list;
        owner->denial_list = client_new_list(n, sizeof(cbx_denial), &items);
        denials = items;
        for (size_t i = 0; owner->denial_list && i < n; i++) {
                json_t *json = json_array_get(owner->report.denials, i);

                denials[i] = (cbx_denial){
                        .kind = text_of(json, "kind"),
                        .what = text_of(json, "what"),
                        .error = text_of(json, "errno"),
                        .count = (uint64_t)json_integer_value(json_object_get(json, "count")),
                        .allow = text_of(json, "allow"),
                        .policy = text_of(json, "policy"),
                };
        }
        return owner->denial_list;
}

const char *client_denial_note(const cbx_report *report, size_t index)
{
        const struct owner *owner = report->owner;

        return owner ? text_of(json_array_get(owner->report.denials, index), "note") : "";
}

const cbx_guarantee *const *cbx_report_guarantees(const cbx_report *report)
{
        struct owner *owner = report->owner;
        cbx_guarantee *guarantees;
        void *items = NULL;
        size_t n;

        if (!owner || (!owner->report.policy && !owner->report.promised))
                return (const cbx_guarantee *const *)nothing;
        if (owner->guarantee_list)
                return owner->guarantee_list;
        owner->guarantees = report_guarantees(&owner->report);
        n = json_array_size(owner->guarantees);
        owner->guarantee_list = client_new_list(n, sizeof(cbx_guarantee), &items);
        guarantees = items;
        for (size_t i = 0; owner->guarantee_list && i < n; i++)
                guarantees[i] = client_guarantee(json_array_get(owner->guarantees, i));
        return owner->guarantee_list;
}

const char *const *cbx_report_warnings(const cbx_report *report)
{
        const struct owner *owner = report->owner;

        return owner && owner->report.warnings ? (const char *const *)owner->report.warnings
                                               : nothing;
}

/* A string that is a result, for reading: NULs in it, which would end it early, are replaced as
 * they are in the output of programs. NULL when memory ran out. */
static const char *string_to_read(struct owner *owner, const json_t *string)
{
        _cleanup_buffer_ struct buffer text = BUFFER_INIT;
        const char *value = json_string_value(string);
        size_t length = json_string_length(string);
        bool replaced = false;

        if (strlen(value) == length)
                return value;
        if (!owner->result_text && output_decode(value, length, &text, &replaced) == 0)
                owner->result_text = TAKE_PTR(text.data);
        return owner->result_text;
}

/* What the toolbox has judged (src/tool/outcome.c), as a struct. */
const cbx_result *cbx_report_result(const cbx_report *report)
{
        struct owner *owner = report->owner;
        json_t *tool = owner ? owner->report.tool : NULL, *output;
        const json_t *route = json_object_get(tool, "route");
        cbx_result *result;
        const char *text;

        if (!tool)
                return NULL;
        result = &owner->result;
        output = json_object_get(tool, "output");
        if (output && !owner->result_output)
                owner->result_output = json_write(output, 0);
        if (output && !owner->result_output)
                return NULL;
        text = json_is_string(output) ? string_to_read(owner, output) : owner->result_output;
        if (output && !text)
                return NULL;
        *result = (cbx_result){
                .tool = text_of(tool, "name"),
                .ok = json_is_true(json_object_get(tool, "ok")),
                .output = owner->result_output,
                .text = text,
                .error = json_string_value(json_object_get(tool, "error")),
                .denied = json_is_true(json_object_get(tool, "denied")),
                .reason = json_string_value(json_object_get(tool, "reason")),
                .duration = owner->report.setup_time + owner->report.run_time,
                .started_at = report->started_at,
                .route = json_string_value(json_object_get(route, "to")),
                .route_reason = json_string_value(json_object_get(route, "reason")),
        };
        if (json_object_get(tool, "text") || !result->text)
                result->text = text_of(tool, "text");
        return result;
}

const cbx_mistake *const *cbx_report_mistakes(const cbx_report *report)
{
        struct owner *owner = report->owner;
        json_t *list = owner ? json_object_get(owner->report.tool, "mistakes") : NULL;
        size_t n = json_array_size(list);
        cbx_mistake *mistakes;
        void *items = NULL;

        if (!owner || n == 0)
                return (const cbx_mistake *const *)nothing;
        if (owner->mistake_list)
                return owner->mistake_list;
        owner->mistake_list = client_new_list(n, sizeof(cbx_mistake), &items);
        mistakes = items;
        for (size_t i = 0; owner->mistake_list && i < n; i++) {
                json_t *json = json_array_get(list, i);

                mistakes[i] = (cbx_mistake){ .path = text_of(json, "path"),
                                             .keyword = text_of(json, "keyword"),
                                             .text = text_of(json, "text") };
        }
        return owner->mistake_list;
}

int cbx_report_part(const cbx_report *report, size_t index, cbx_part *ret_part)
{
        const struct owner *owner = report->owner;
        const struct output *output;
        const struct report_part *part;
        cbx_part found = CBX_PART_INIT;

        if (!ret_part || ret_part->size < CLIENT_PART_LEAST || ret_part->size > CLIENT_STRUCT_MAX)
                return -EINVAL;
        if (!owner || index >= owner->report.n_parts)
                return -ENOENT;
        output = &owner->report.output[STREAM_RESULT];
        part = &owner->report.parts[index];
        found.size = ret_part->size;
        found.data = output->data + part->at;
        found.length = part->length;
        found.fd = output->filed ? output->file : -1;
        found.offset = output->filed ? part->at : 0;
        memset(ret_part, 0, found.size);
        memcpy(ret_part, &found, MIN(found.size, sizeof(found)));
        return 0;
}

int cbx_report_print(const cbx_report *report, char **ret_text, cbx_error *error)
{
        const struct owner *owner = report->owner;
        _cleanup_json_ json_t *json = NULL;
        char *text;

        if (!owner)
                return error_set(error, -EINVAL, "report", "there is no report in it");
        json = report_to_json(&owner->report);
        text = json ? json_write(json, 2) : NULL;
        if (!text)
                return error_oom(error);
        *ret_text = text;
        return 0;
}

int cbx_report_exit_code(const cbx_report *report)
{
        const struct owner *owner = report->owner;

        return owner ? report_exit_code(&owner->report) : 125;
}
