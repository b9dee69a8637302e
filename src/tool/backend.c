/* SPDX-License-Identifier: MIT */
/*
 * Backends of the application's own. They are asked for what they keep before they run anything: a
 * policy that requires more than they promise is refused, as one is that this host cannot keep.
 */
#include <string.h>

#include "tool/route.h"

/* ---- What it promises ---- */

struct cbx_promises {
        const char *backend;
        json_t *array; /* of all guarantees, as in a report */
        bool failed;
};

int cbx_promise(cbx_promises *promises, const char *guarantee, const char *by)
{
        json_t *item;
        size_t i;

        json_array_foreach(promises->array, i, item)
        {
                if (!guarantee || strcmp(guarantee_str((enum guarantee)i), guarantee) != 0)
                        continue;
                if (json_object_set_new(item, "enforced", json_true()) < 0 ||
                    json_object_set_new(item, "by",
                                        json_sprintf("%s: %s", promises->backend, by ? by : "")) <
                            0) {
                        promises->failed = true;
                        return -ENOMEM;
                }
                return 0;
        }
        return -EINVAL;
}

/* None of them is enforced, until it says so. */
static json_t *promise_nothing(const char *backend)
{
        json_t *array = json_array();

        for (int i = 0; array && i < GUARANTEE_MAX_; i++)
                if (json_array_append_new(
                            array, json_pack("{s:s, s:b, s:o}", "name",
                                             guarantee_str((enum guarantee)i), "enforced", 0, "by",
                                             json_sprintf("%s does not keep it", backend))) < 0) {
                        json_decref(array);
                        return NULL;
                }
        return array;
}

int backend_ask(const cbx_backend *backend, cbx_policy *policy, struct report *ret_report,
                cbx_error *error)
{
        struct cbx_promises promises = { .backend = backend->name,
                                         .array = promise_nothing(backend->name) };
        int r = promises.array ? 0 : -ENOMEM;

        if (r == 0 && backend->capabilities)
                r = backend->capabilities(backend->userdata, policy, &promises);
        if (promises.failed)
                r = -ENOMEM;
        if (r < 0) {
                json_decref(promises.array);
                return r == -ENOMEM
                               ? error_oom(error)
                               : error_set(error, r, "backend",
                                           "the backend \"%.64s\" cannot say what it keeps: %s",
                                           backend->name, strerror(-r));
        }
        ret_report->promised = promises.array;
        ret_report->policy = cbx_policy_ref(policy);
        return 0;
}

/* ---- Whether it may run ---- */

int backend_check(const cbx_backend *backend, cbx_error *error)
{
        cbx_error why = CBX_ERROR_INIT;
        int r = backend->is_available ? backend->is_available(backend->userdata, &why) : 0;

        if (r == 0)
                return 0;
        r = r < 0 ? r : -EOPNOTSUPP;
        error_set(error, r, "backend", "the backend \"%.64s\" is not available here%s%s",
                  backend->name, why.text[0] ? ": " : "", why.text);
        if (why.hint[0])
                error_hint(error, "%s", why.hint);
        return r;
}

/* It fails closed, as a box does that this host cannot keep. */
static int check_promises(const cbx_backend *backend, const struct report *report, cbx_error *error)
{
        bool met = false;
        _cleanup_json_ json_t *all = guarantees_explain(report, &met);
        json_t *item;
        size_t i;

        if (!all)
                return error_oom(error);
        json_array_foreach(all, i, item)
        {
                if (json_is_true(json_object_get(item, "enforced")) ||
                    !json_is_true(json_object_get(item, "required")))
                        continue;
                error_set(error, -EOPNOTSUPP, "require",
                          "the backend \"%.64s\" does not keep the guarantee \"%s\"", backend->name,
                          guarantee_str((enum guarantee)i));
                error_hint(error,
                           "let it keep it and promise so, run the tool in a box, or give it "
                           "a policy with \"best_effort\" that does not require it");
                return -EOPNOTSUPP;
        }
        return 0;
}

/* ---- A call ---- */

struct cbx_outcome {
        struct report *report;
        bool ended, failed;
};

static int add(cbx_outcome *outcome, int stream, const void *data, size_t length)
{
        int r;

        if (!outcome || (!data && length > 0))
                return -EINVAL;
        r = output_add(&outcome->report->output[stream], data, length);
        outcome->failed |= r < 0;
        return r < 0 ? r : 0;
}

int cbx_outcome_output(cbx_outcome *outcome, const void *data, size_t length)
{
        return add(outcome, STREAM_OUTPUT, data, length);
}

int cbx_outcome_errors(cbx_outcome *outcome, const void *data, size_t length)
{
        return add(outcome, STREAM_ERRORS, data, length);
}

int cbx_outcome_end(cbx_outcome *outcome, int reason, int code_or_signal)
{
        if (!outcome || reason < CBX_EXITED || reason >= CBX_SETUP)
                return -EINVAL;
        outcome->report->reason = (enum reason)reason;
        outcome->report->code = reason == CBX_EXITED ? code_or_signal : 0;
        outcome->report->signal = reason == CBX_SIGNALED ? code_or_signal : 0;
        outcome->ended = true;
        return 0;
}

int cbx_outcome_warn(cbx_outcome *outcome, const char *text)
{
        return outcome && text ? report_warn(outcome->report, "%s", text) : -EINVAL;
}

/* Head and tail, as whoever gets a report has them. */
static int settle(struct output *output)
{
        _cleanup_free_ char *data = NULL;
        size_t length;
        int r = output_join(output, &data, &length);
        struct output kept = { .capacity = output->capacity,
                               .head_length = output->head_length,
                               .tail_length = output->tail_length,
                               .total = output->total,
                               .file = -1 };

        if (r < 0)
                return r;
        output_free(output);
        *output = kept;
        return output_take_kept(output, data);
}

void backend_run(const cbx_backend *backend, const cbx_order *order, struct report *report)
{
        struct cbx_outcome outcome = { .report = report };
        cbx_error why = CBX_ERROR_INIT;
        uint64_t begun;
        int r;

        report->reason = REASON_SETUP;
        report->captured = true;
        clock_gettime(CLOCK_REALTIME, &report->started_at);
        for (int i = 0; i < STREAMS; i++)
                output_init(&report->output[i], (size_t)order->capture_limit);
        r = backend_check(backend, &report->error);
        if (r == 0)
                r = backend_ask(backend, order->policy, report, &report->error);
        if (r == 0)
                r = check_promises(backend, report, &report->error);
        if (r < 0)
                return;
        begun = time_now();
        r = backend->run(backend->userdata, order, &outcome, &why);
        report->run_time = time_now() - begun;
        for (int i = 0; i < STREAMS; i++)
                outcome.failed |= settle(&report->output[i]) < 0;
        if (r == 0 && outcome.ended && !outcome.failed)
                return;
        report->reason = outcome.failed ? REASON_INTERNAL : REASON_SETUP;
        if (outcome.failed)
                error_oom(&report->error);
        else
                error_set(&report->error, r < 0 ? r : -EPROTO, "backend",
                          "the backend \"%.64s\" has not run it: %s", backend->name,
                          why.text[0] ? why.text
                          : r < 0     ? strerror(-r)
                                      : "it does not say how the call ended");
        if (!outcome.failed && why.hint[0])
                error_hint(&report->error, "%s", why.hint);
}
