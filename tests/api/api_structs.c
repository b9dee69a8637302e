/* SPDX-License-Identifier: MIT */
/* What is handed in: structs of every age, specs, policies, and the errors about them. */
#include "api.h"

#include <errno.h>

#define TAIL 64 /* fields of a newer header */

static const char *const echo[] = { "echo", "hello", NULL };

/* ---- Structs of another size ---- */

static void size_of_spec(struct api *api)
{
        struct {
                cbx_spec known;
                char tail[TAIL];
        } newer = { .known = CBX_SPEC_INIT };

        api->spec.argv = echo;
        api->spec.size = offsetof(cbx_spec, result_mode) - 1;
        api_refused(api, cbx_run(api->warden, api->policy, &api->spec, &api->report, &api->error),
                    -EINVAL, "cbx_spec");
        api->spec.size = 0;
        EQUAL(cbx_run(api->warden, api->policy, &api->spec, &api->report, &api->error), -EINVAL);
        HAS(api->error.text, "INIT");

        /* The first version of it: what lies behind is not looked at. */
        api->spec.size = offsetof(cbx_spec, result_mode);
        memset((char *)&api->spec + api->spec.size, 0x5a, sizeof(cbx_spec) - api->spec.size);
        EQUAL(cbx_run(api->warden, api->policy, &api->spec, &api->report, &api->error), 0);
        SAME_TEXT(api->report.output.data, "hello\n");
        cbx_report_free(&api->report);

        newer.known.size = sizeof(newer);
        newer.known.argv = echo;
        EQUAL(cbx_run(api->warden, api->policy, &newer.known, &api->report, &api->error), 0);
        SAME_TEXT(api->report.output.data, "hello\n");
        cbx_report_free(&api->report);
        newer.tail[TAIL - 1] = 1;
        EQUAL(cbx_run(api->warden, api->policy, &newer.known, &api->report, &api->error), -E2BIG);
        HAS(api->error.text, "does not know");
        api_refused(api, -E2BIG, -E2BIG, "cbx_spec");
}

static void size_of_warden_options(struct api *api)
{
        struct {
                cbx_warden_options known;
                char tail[TAIL];
        } newer = { .known = CBX_WARDEN_OPTIONS_INIT };
        cbx_warden *untouched = (cbx_warden *)api, *warden = untouched;

        newer.known.size = sizeof(cbx_warden_options) - 1;
        api_refused(api, cbx_warden_open(&newer.known, &warden, &api->error), -EINVAL,
                    "cbx_warden_options");
        newer.known.size = sizeof(newer);
        newer.tail[0] = 1;
        EQUAL(cbx_warden_open(&newer.known, &warden, &api->error), -E2BIG);
        HAS(api->error.text, "does not know");
        CHECK(warden == untouched);
        newer.tail[0] = 0;
        EQUAL(cbx_warden_open(&newer.known, &warden, &api->error), 0);
        CHECK(cbx_warden_pid(warden) > 0);
        cbx_warden_close(warden);
}

/* What is filled by the library is zeroed as far as the caller says it reaches, so that fields of
 * a newer header are seen as empty, whatever was in them. */
static int is_zero(const char *tail)
{
        for (size_t i = 0; i < TAIL; i++)
                if (tail[i])
                        return 0;
        return 1;
}

static void size_of_event(struct api *api)
{
        struct {
                cbx_event known;
                char tail[TAIL];
        } newer = { .known = CBX_EVENT_INIT };
        cbx_call *call;

        api->spec.argv = echo;
        call = api_start(api);
        newer.known.size = offsetof(cbx_event, done) - 1; /* less than the first there was */
        api_refused(api, cbx_step(call, &newer.known, &api->error), -EINVAL, "event");
        newer.known.size = sizeof(newer);
        EQUAL(cbx_step(call, &newer.known, &api->error), 0);
        EQUAL(newer.known.size, sizeof(newer));
        memset(newer.tail, 1, TAIL);
        EQUAL(cbx_step(call, &newer.known, &api->error), 0);
        CHECK(is_zero(newer.tail));
        cbx_call_free(call);
}

static void size_of_report(struct api *api)
{
        struct {
                cbx_report known;
                char tail[TAIL];
        } newer = { .known = CBX_REPORT_INIT };
        cbx_call *call;

        api->spec.argv = echo;
        call = api_start(api);
        newer.known.size = offsetof(cbx_report, result) - 1;
        api_refused(api, cbx_wait(call, &newer.known, &api->error), -EINVAL, "report");
        newer.known.size = sizeof(newer);
        memset(newer.tail, 1, TAIL);
        EQUAL(cbx_wait(call, &newer.known, &api->error), 0); /* a refusal does not take it */
        EQUAL(newer.known.size, sizeof(newer));
        CHECK(is_zero(newer.tail));
        SAME_TEXT(newer.known.output.data, "hello\n");
        memset(newer.tail, 1, TAIL);
        cbx_report_free(&newer.known);
        EQUAL(newer.known.size, sizeof(newer));
        CHECK(is_zero(newer.tail) && !newer.known.text && !newer.known.owner);
        cbx_report_free(&newer.known); /* once more does no harm */
        cbx_call_free(call);
}

/* The first version had no result: nothing is written where it would be. */
static void size_of_first_report(struct api *api)
{
        cbx_report report = CBX_REPORT_INIT;
        size_t size = offsetof(cbx_report, result);

        report.size = size;
        memset(&report.result, 0x5a, sizeof(report.result));
        api->spec.shell = "echo hello; echo 1 >&3";
        api->spec.result_mode = CBX_RESULT;
        EQUAL(cbx_run(api->warden, api->policy, &api->spec, &report, &api->error), 0);
        EQUAL(report.size, size);
        EQUAL(report.reason, CBX_EXITED);
        SAME_TEXT(report.output.data, "hello\n");
        EQUAL(report.result.length, 0x5a5a5a5a5a5a5a5a);
        cbx_report_free(&report);
        EQUAL(report.size, size);
        CHECK(!report.owner && !report.text && report.result.total == 0x5a5a5a5a5a5a5a5a);
}

/* ---- Specs ---- */

static void refuse(struct api *api, const cbx_spec *spec, const char *where)
{
        cbx_call *untouched = (cbx_call *)api, *call = untouched;
        int r = cbx_start(api->warden, api->policy, spec, &call, NULL);

        CHECK(call == untouched);
        EQUAL(cbx_start(api->warden, api->policy, spec, &call, &api->error), r);
        api_refused(api, r, -EINVAL, where);
}

static void bad_specs(struct api *api)
{
        static const char *const empty[] = { NULL }, *const nameless[] = { "", NULL };
        static const char *const no_value[] = { "NAME", NULL }, *const no_name[] = { "=v", NULL };
        cbx_spec good = CBX_SPEC_INIT, spec;

        good.argv = echo;
#define REFUSE(field, value, where)                                                                \
        spec = good;                                                                               \
        spec.field = value;                                                                        \
        refuse(api, &spec, where)
        REFUSE(argv, NULL, "argv");
        REFUSE(argv, empty, "argv");
        REFUSE(argv, nameless, "argv");
        REFUSE(shell, "true", "argv"); /* both */
        REFUSE(id, "", "id");
        REFUSE(cwd, "tmp", "cwd");
        REFUSE(environment, no_value, "environment");
        REFUSE(environment, no_name, "environment");
        REFUSE(input_mode, 9, "input_mode");
        REFUSE(output_mode, -1, "output_mode");
        REFUSE(result_mode, 3, "result_mode");
        REFUSE(errors_mode, 99, "errors_mode");
        REFUSE(input_length, 5, "input");
#undef REFUSE
}

/* A report that cannot be filled is refused before anything is run. */
static void bad_report(struct api *api)
{
        static const char *const paths[] = { "/nonexistent", NULL };
        cbx_report report = CBX_REPORT_INIT;

        report.size = 8;
        api->spec.argv = echo;
        api_refused(api, cbx_run(api->warden, api->policy, &api->spec, &report, &api->error),
                    -EINVAL, "report");
        api->spec.argv = paths; /* would be another error, if it were looked at */
        api->spec.cwd = "relative";
        api_refused(api, cbx_run(api->warden, api->policy, &api->spec, &report, &api->error),
                    -EINVAL, "report");
}

static void long_arguments(struct api *api)
{
        const char *argv[] = { "echo", NULL, NULL };
        size_t length = 8U << 20;
        char *text = api_allocate(length + 1);

        memset(text, 'x', length);
        text[length] = '\0';
        argv[1] = text;
        api->spec.argv = argv;
        api_refused(api, cbx_run(api->warden, api->policy, &api->spec, &api->report, &api->error),
                    -E2BIG, "argv");
        free(text);
        api->spec.argv = echo; /* the connection is as good as before */
        api_run(api);
        EQUAL(api->report.reason, CBX_EXITED);
}

/* ---- Policies ---- */

static void policies(struct api *api)
{
        static const char negative[] = "{\"limits\": {\"wall\": -1}}";
        cbx_policy *policy = NULL, *other, *untouched = api->policy;
        char *text = NULL;
        uint64_t hash;

        EQUAL(cbx_policy_set(&policy, "limits.memory", "\"256M\"", &api->error), 0);
        hash = cbx_policy_hash(policy);
        CHECK(hash != cbx_policy_hash(api->policy));
        other = api_policy("{\"limits\": {\"memory\": 268435456}}");
        CHECK(hash == cbx_policy_hash(other));
        cbx_policy_unref(other);

        other = cbx_policy_ref(policy);
        CHECK(other == policy);
        EQUAL(cbx_policy_set(&policy, "files.read", "[\"/srv\"]", &api->error), 0);
        CHECK(policy != other); /* whoever has the old one keeps it as it was */
        CHECK(hash == cbx_policy_hash(other));
        cbx_policy_unref(other);
        EQUAL(cbx_policy_print(policy, &text, &api->error), 0);
        HAS(text, "\"/srv\"");
        HAS(text, "\"memory\": \"256M\"");
        other = api_policy(text); /* it prints what it reads */
        CHECK(cbx_policy_hash(policy) == cbx_policy_hash(other));
        cbx_policy_unref(other);
        free(text);

        hash = cbx_policy_hash(policy);
        other = policy;
        api_refused(api, cbx_policy_set(&policy, "limits.memory", "\"lots\"", &api->error), -EINVAL,
                    "limits.memory");
        CHECK(cbx_policy_set(&policy, "limits.colour", "1", NULL) < 0);
        CHECK(cbx_policy_set(&policy, "limits.memory", "{", NULL) < 0);
        CHECK(policy == other && hash == cbx_policy_hash(policy));
        cbx_policy_unref(policy);

        api_refused(api, cbx_policy_parse(negative, strlen(negative), &untouched, &api->error),
                    -EINVAL, "limits.wall");
        CHECK(cbx_policy_parse("{\"colour\": 1}", 13, &untouched, NULL) < 0);
        CHECK(untouched == api->policy);
        CHECK(!cbx_policy_unref(NULL));
}

/* A policy that cannot be kept here: now from cbx_prepare, or later from the call. */
static void policy_of_missing_path(struct api *api)
{
        cbx_policy *good = api->policy;

        EQUAL(cbx_prepare(api->warden, good, &api->error), 0);
        EQUAL(cbx_prepare(api->warden, good, NULL), 0);
        api->policy = api_policy("{\"files\": {\"read\": [\"/nonexistent/data\"]}}");
        EQUAL(cbx_prepare(api->warden, api->policy, NULL), -ENOENT);
        for (int i = 0; i < 50; i++) /* the same each time, not only the first */
                EQUAL(cbx_prepare(api->warden, api->policy, &api->error), -ENOENT);
        HAS(api->error.text, "/nonexistent/data");
        HAS(api->error.where, "files.read");
        CHECK(api->error.hint[0]);
        api->spec.argv = echo;
        api->spec.id = "refused";
        api_run(api);
        EQUAL(api->report.reason, CBX_SETUP);
        EQUAL(api->report.code, -1);
        SAME_TEXT(api->report.id, "refused");
        CHECK(api->report.error);
        EQUAL(api->report.error->code, -ENOENT);
        HAS(api->report.error->where, "files.read");
        HAS(api->report.text, "/nonexistent/data");
        EQUAL(cbx_report_exit_code(&api->report), 125);
        cbx_policy_unref(api->policy);
        api->policy = good;
        api_run(api);
        EQUAL(api->report.reason, CBX_EXITED);
}

/* ---- Wardens and the rest ---- */

static void wardens(struct api *api)
{
        cbx_warden_options options = CBX_WARDEN_OPTIONS_INIT;
        cbx_warden *warden = NULL;

        CHECK(!cbx_warden_close(NULL));
        options.program = "/nonexistent/callbox";
        CHECK(cbx_warden_open(&options, &warden, NULL) < 0);
        CHECK(cbx_warden_open(&options, &warden, &api->error) < 0);
        /* valgrind makes a fork of vfork: posix_spawn cannot tell that there is no program */
        if (!getenv("API_VALGRIND")) {
                EQUAL(api->error.code, -ENOENT);
                HAS(api->error.text, "/nonexistent/callbox");
                HAS(api->error.hint, "CALLBOX_WARDEN");
        }
        options.program = "/bin/true"; /* not a warden at all */
        CHECK(cbx_warden_open(&options, &warden, NULL) < 0);
        CHECK(cbx_warden_open(&options, &warden, &api->error) < 0);
        HAS(api->error.hint, "/bin/true");
        options.program = NULL;
        options.socket = "/nonexistent/socket";
        EQUAL(cbx_warden_open(&options, &warden, NULL), -ENOENT);
        EQUAL(cbx_warden_open(&options, &warden, &api->error), -ENOENT);
        HAS(api->error.hint, "callbox warden --socket");
        CHECK(!warden);
        options.socket = NULL;
        options.calls = 1;
        options.queue = 2;
        options.prepared = 1;
        EQUAL(cbx_warden_open(&options, &warden, &api->error), 0);
        CHECK(cbx_warden_pid(warden) != cbx_warden_pid(api->warden));
        cbx_warden_close(warden);
}

static void names(struct api *api)
{
        static const char *const wanted[] = { "exited",    "signaled", "timeout", "cpu",
                                              "memory",    "pids",     "output",  "denied",
                                              "cancelled", "setup",    "internal" };

        (void)api;
        for (int i = CBX_EXITED; i <= CBX_INTERNAL; i++)
                SAME_TEXT(cbx_reason_name(i), wanted[i]);
        CHECK(!cbx_reason_name(-1) && !cbx_reason_name(CBX_INTERNAL + 1));
        CHECK(strchr(cbx_version(), '.'));
}

const struct api_test structs_tests[] = {
        { "a cbx_spec of another size", size_of_spec },
        { "cbx_warden_options of another size", size_of_warden_options },
        { "a cbx_event of another size", size_of_event },
        { "a cbx_report of another size", size_of_report },
        { "a cbx_report of the first version", size_of_first_report },
        { "specs that are refused", bad_specs },
        { "a report that is refused", bad_report },
        { "arguments that are too long", long_arguments },
        { "policies: set, print, hash, references", policies },
        { "a policy with a path that does not exist", policy_of_missing_path },
        { "wardens that cannot be had", wardens },
        { "names", names },
        { NULL, NULL },
};
