/* SPDX-License-Identifier: MIT */
/* Where tools run, what is enforced there before any call, and backends of the application's own.
 */
#include "api.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define SHELL(name, text, more)                                                                    \
        "{\"name\": \"" name "\", \"inputSchema\": {\"type\": \"object\"}, \"run\": {\"shell\": "  \
        "\"" text "\"}" more "}"

/* What only a program without a box sees: the process that calls it, by its own number. */
#define SEES "test -e /proc/$AGENT/status && echo host || echo box"
#define AGENT ", \"policy\": {\"environment\": {\"pass\": [\"AGENT\"]}}"

static cbx_toolbox *open_box(struct api *api, const cbx_toolbox_options *options)
{
        cbx_toolbox *toolbox = NULL;
        char pid[16];

        snprintf(pid, sizeof(pid), "%d", getpid());
        setenv("AGENT", pid, 1);
        EQUAL(cbx_toolbox_open(api->warden, options, &toolbox, &api->error), 0);
        return toolbox;
}

static void add(struct api *api, cbx_toolbox *toolbox, const char *manifest)
{
        if (cbx_toolbox_add(toolbox, manifest, strlen(manifest), &api->error) < 0)
                fail(__FILE__, __LINE__, api->error.text);
}

static const cbx_result *call(struct api *api, cbx_toolbox *toolbox, const char *name)
{
        cbx_call *started = NULL;

        cbx_report_free(&api->report);
        EQUAL(cbx_toolbox_call(toolbox, name, NULL, &started, &api->error), 0);
        EQUAL(cbx_wait(started, &api->report, &api->error), 0);
        cbx_call_free(started);
        CHECK(cbx_report_result(&api->report));
        return cbx_report_result(&api->report);
}

static const cbx_guarantee *find(const cbx_guarantee *const *list, const char *name)
{
        for (; *list; list++)
                if (strcmp((*list)->name, name) == 0)
                        return *list;
        fail(__FILE__, __LINE__, name);
}

/* ---- Deciding ---- */

static void decisions(struct api *api)
{
        const cbx_rule rules[] = { { "git_push", CBX_REFUSED, NULL },
                                   { "git_*", CBX_ELEVATED, NULL },
                                   { "read", CBX_BOXED, "landlock" },
                                   { "*", CBX_BOXED, NULL },
                                   { "read", CBX_ELEVATED, NULL },
                                   { "git_gc", CBX_REFUSED, NULL },
                                   { NULL, 0, NULL } };
        static const struct {
                int mode;
                const char *tool;
                int route;
                const char *reason, *backend;
        } cases[] = {
                { CBX_STRICT, "git_push", CBX_TO_NOBODY, "Tool is refused by the application", "" },
                { CBX_OFF, "git_push", CBX_TO_NOBODY, "Tool is refused by the application", "" },
                { CBX_OFF, "git_gc", CBX_TO_NOBODY, "Tool is refused by the application", "" },
                { CBX_STRICT, "git_log", CBX_TO_HOST, "Tool is marked as elevated", "host" },
                { CBX_WARN, "git_log", CBX_TO_HOST, "Tool is marked as elevated", "host" },
                { CBX_OFF, "read", CBX_TO_HOST, "Mode is off", "host" },
                { CBX_WARN, "read", CBX_TO_HOST,
                  "Warn mode advisory: tool would run in a box, executing on host", "host" },
                { CBX_STRICT, "read", CBX_TO_BOX, "Strict mode: tool runs in a box", "landlock" },
                { CBX_STRICT, "gitx", CBX_TO_BOX, "Strict mode: tool runs in a box", "auto" },
        };
        cbx_decision decision = CBX_DECISION_INIT;

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                EQUAL(cbx_decide(cases[i].mode, rules, cases[i].tool, &decision, &api->error), 0);
                EQUAL(decision.route, cases[i].route);
                SAME_TEXT(decision.reason, cases[i].reason);
                SAME_TEXT(decision.backend, cases[i].backend);
        }
        EQUAL(cbx_decide(CBX_STRICT, NULL, "any", &decision, &api->error), 0);
        EQUAL(decision.route, CBX_TO_BOX);
        api_refused(api, cbx_decide(7, NULL, "any", &decision, &api->error), -EINVAL, "mode");
        api_refused(api, cbx_decide(-1, NULL, "any", &decision, &api->error), -EINVAL, "mode");
        api_refused(api,
                    cbx_decide(CBX_OFF, (cbx_rule[]){ { "x", 3, NULL }, { NULL, 0, NULL } }, "any",
                               &decision, &api->error),
                    -EINVAL, "rules[0].means");
        decision.size = 0;
        api_refused(api, cbx_decide(CBX_OFF, NULL, "any", &decision, &api->error), -EINVAL,
                    "decision");
}

static void wrong_options(struct api *api)
{
        cbx_toolbox_options options = CBX_TOOLBOX_OPTIONS_INIT;
        cbx_toolbox *toolbox = NULL;
        cbx_backend nameless = CBX_BACKEND_INIT;
        static const struct {
                cbx_rule rule;
                const char *where;
        } cases[] = {
                { { "", CBX_BOXED, NULL }, "rules[0].pattern" },
                { { "x", 9, NULL }, "rules[0].means" },
                { { "x", CBX_ELEVATED, "landlock" }, "rules[0].backend" },
                { { "x", CBX_BOXED, "host" }, "rules[0].backend" },
                { { "x", CBX_BOXED, "dokcer" }, "rules[0].backend" },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                options.rules = (cbx_rule[]){ cases[i].rule, { NULL, 0, NULL } };
                api_refused(api, cbx_toolbox_open(api->warden, &options, &toolbox, &api->error),
                            -EINVAL, cases[i].where);
        }
        options.rules = NULL;
        options.backend = "host";
        api_refused(api, cbx_toolbox_open(api->warden, &options, &toolbox, &api->error), -EINVAL,
                    "backend");
        options.backend = NULL;
        options.mode = 3;
        api_refused(api, cbx_toolbox_open(api->warden, &options, &toolbox, &api->error), -EINVAL,
                    "mode");
        options.mode = CBX_STRICT;
        options.backends = (const cbx_backend *const[]){ &nameless, NULL };
        api_refused(api, cbx_toolbox_open(api->warden, &options, &toolbox, &api->error), -EINVAL,
                    "backends");
        CHECK(!toolbox);
        /* The first version of the struct ended before all of this. */
        options.mode = 3;
        options.size = offsetof(cbx_toolbox_options, mode);
        EQUAL(cbx_toolbox_open(api->warden, &options, &toolbox, &api->error), 0);
        cbx_toolbox_close(toolbox);
}

/* ---- Running ---- */

static void note(void *userdata, const char *level, const char *text)
{
        SAME_TEXT(level, "warning");
        snprintf(userdata, 200, "%s", text);
}

/* In every mode, by every rule: where it ran, as the program itself sees it. */
static void routes(struct api *api)
{
        const cbx_rule rules[] = { { "up", CBX_ELEVATED, NULL },
                                   { "boxed_up", CBX_ELEVATED, NULL },
                                   { "no", CBX_REFUSED, NULL },
                                   { NULL, 0, NULL } };
        static const char *const wanted[3][2] = { { "box\n", "box" },
                                                  { "host\n", "host" },
                                                  { "host\n", "host" } };
        char log[200];

        for (int mode = CBX_STRICT; mode <= CBX_OFF; mode++) {
                cbx_toolbox_options options = CBX_TOOLBOX_OPTIONS_INIT;
                const cbx_result *result;
                cbx_toolbox *toolbox;

                options.mode = mode;
                options.rules = rules;
                options.log = note;
                options.log_userdata = log;
                log[0] = '\0';
                toolbox = open_box(api, &options);
                add(api, toolbox, SHELL("any", SEES, AGENT));
                add(api, toolbox, SHELL("up", SEES, AGENT));
                add(api, toolbox, SHELL("no", SEES, AGENT));
                add(api, toolbox, SHELL("boxed", SEES, AGENT ", \"route\": \"boxed\""));
                add(api, toolbox, SHELL("boxed_up", SEES, AGENT ", \"route\": \"boxed\""));
                add(api, toolbox, SHELL("never", SEES, AGENT ", \"route\": \"refused\""));

                result = call(api, toolbox, "up");
                SAME_TEXT(result->text, "host\n");
                SAME_TEXT(result->route_reason, "Tool is marked as elevated");
                HAS(cbx_report_warnings(&api->report)[0], "NO BOX (elevated by the application)");
                SAME_TEXT(log, "");
                result = call(api, toolbox, "any");
                SAME_TEXT(result->text, wanted[mode][0]);
                SAME_TEXT(result->route, wanted[mode][1]);
                if (mode == CBX_WARN)
                        SAME_TEXT(log,
                                  "Tool 'any' would run in a box (mode=warn, running on host)");
                else
                        SAME_TEXT(log, "");
                if (mode == CBX_STRICT)
                        CHECK(!cbx_report_warnings(&api->report)[0]);
                else
                        HAS(cbx_report_warnings(&api->report)[0],
                            mode == CBX_WARN ? "NO BOX (mode warn)" : "NO BOX (mode off)");
                /* A manifest tightens what the application allows. */
                SAME_TEXT(call(api, toolbox, "boxed")->text, "box\n");
                SAME_TEXT(call(api, toolbox, "boxed_up")->text, "box\n");
                for (int i = 0; i < 2; i++) {
                        result = call(api, toolbox, i ? "never" : "no");
                        CHECK(!result->ok && result->denied && !result->error);
                        SAME_TEXT(result->reason, i ? "Tool is refused by its manifest"
                                                    : "Tool is refused by the application");
                        SAME_TEXT(result->route, "nobody");
                        EQUAL(api->report.reason, CBX_SETUP);
                        EQUAL(api->report.error->code, -EPERM);
                }
                cbx_toolbox_close(toolbox);
        }
}

/* A toolbox whose application says nothing is as it was. */
static void nothing_said(struct api *api)
{
        cbx_toolbox *toolbox = open_box(api, NULL);
        const cbx_result *result;
        char *text = NULL;

        add(api, toolbox, SHELL("any", SEES, AGENT));
        result = call(api, toolbox, "any");
        SAME_TEXT(result->text, "box\n");
        CHECK(!result->route && !result->route_reason);
        EQUAL(cbx_report_print(&api->report, &text, &api->error), 0);
        CHECK(!strstr(text, "\"route\""));
        free(text);
        cbx_toolbox_close(toolbox);
}

/* Without a box the limits that need no fence hold, and nothing outlives the call. */
static void limits_without_box(struct api *api)
{
        cbx_toolbox_options options = CBX_TOOLBOX_OPTIONS_INIT;
        const cbx_result *result;
        cbx_toolbox *toolbox;
        struct timespec pause = { .tv_nsec = 20000000 };
        int pid, alive = 1;

        options.mode = CBX_OFF;
        toolbox = open_box(api, &options);
        add(api, toolbox, SHELL("slow", "sleep 60", ", \"policy\": {\"limits\": {\"wall\": 0.3}}"));
        add(api, toolbox,
            SHELL("much", "yes",
                  ", \"policy\": {\"limits\": {\"output\": \"64K\", \"wall\": 20}}"));
        add(api, toolbox,
            SHELL("hungry", "dd if=/dev/zero of=/dev/null bs=200M count=100000",
                  ", \"policy\": {\"limits\": {\"memory\": \"64M\", \"wall\": 30}}"));
        add(api, toolbox,
            SHELL("many", "for i in $(seq 64); do sleep 60 & done; wait",
                  ", \"policy\": {\"limits\": {\"processes\": 16, \"wall\": 30}}"));
        add(api, toolbox,
            SHELL("busy", "while :; do :; done",
                  ", \"policy\": {\"limits\": {\"cpu\": 1, \"wall\": 30}}"));
        add(api, toolbox, SHELL("leaves", "setsid sleep 60 >/dev/null 2>&1 & echo $!", ""));
        add(api, toolbox, SHELL("clean", "env | grep -c SECRET_OF_THE_AGENT; true", ""));

        (void)call(api, toolbox, "slow");
        EQUAL(api->report.reason, CBX_TIMEOUT);
        (void)call(api, toolbox, "much");
        EQUAL(api->report.reason, CBX_OUTPUT);
        (void)call(api, toolbox, "hungry");
        EQUAL(api->report.reason, CBX_MEMORY);
        (void)call(api, toolbox, "many");
        EQUAL(api->report.reason, CBX_PIDS);
        (void)call(api, toolbox, "busy");
        EQUAL(api->report.reason, CBX_CPU);
        setenv("SECRET_OF_THE_AGENT", "1", 1);
        SAME_TEXT(call(api, toolbox, "clean")->text, "0\n");
        result = call(api, toolbox, "leaves");
        pid = atoi(result->text);
        CHECK(pid > 1);
        for (int i = 0; alive && i < 250; i++) { /* the report may come before the last is reaped */
                alive = kill(pid, 0) == 0;
                if (alive)
                        nanosleep(&pause, NULL);
        }
        CHECK(!alive);
        CHECK(find(cbx_report_guarantees(&api->report), "tree-kill")->enforced);
        SAME_TEXT(find(cbx_report_guarantees(&api->report), "files")->by, "no box: mode off");
        CHECK(!find(cbx_report_guarantees(&api->report), "files")->enforced);
        cbx_toolbox_close(toolbox);
}

/* ---- Capabilities ---- */

/* What is promised before a call is what its report says. */
static void compare(struct api *api, const cbx_capability_list *list)
{
        const cbx_guarantee *const *told = cbx_report_guarantees(&api->report);
        size_t n = 0;

        for (; list->guarantees[n] && told[n]; n++) {
                SAME_TEXT(told[n]->name, list->guarantees[n]->name);
                SAME_TEXT(told[n]->by, list->guarantees[n]->by);
                EQUAL(told[n]->enforced, list->guarantees[n]->enforced);
        }
        CHECK(n > 8 && !list->guarantees[n] && !told[n]);
        for (n = 0; list->warnings[n]; n++)
                SAME_TEXT(cbx_report_warnings(&api->report)[n], list->warnings[n]);
        CHECK(!cbx_report_warnings(&api->report)[n]);
}

static void capabilities_agree(struct api *api)
{
        static const char *const policies[] = {
                "{}",
                "{\"box\": \"landlock\"}",
                "{\"network\": \"host\", \"limits\": {\"memory\": null, \"cpu\": 5}}",
                "{\"box\": \"landlock\", \"network\": \"host\", \"limits\": {\"processes\": null}}",
                "{\"best_effort\": true, \"limits\": {\"cpus\": 0.5}}",
                "{\"box\": \"landlock\", \"syscalls\": {\"allow\": [\"ptrace\"]}}",
        };

        for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
                cbx_capability_list list = CBX_CAPABILITY_LIST_INIT;
                cbx_policy *policy = api_policy(policies[i]);
                char *text = NULL;

                EQUAL(cbx_capabilities(api->warden, policy, &list, &api->error), 0);
                EQUAL(list.met, 1);
                SAME_TEXT(list.backend,
                          strstr(policies[i], "landlock") ? "landlock" : "namespaces");
                api->spec = (cbx_spec)CBX_SPEC_INIT;
                api->spec.shell = "true";
                cbx_report_free(&api->report);
                EQUAL(cbx_run(api->warden, policy, &api->spec, &api->report, &api->error), 0);
                EQUAL(api->report.reason, CBX_EXITED);
                compare(api, &list);
                EQUAL(cbx_capabilities_print(&list, &text, &api->error), 0);
                HAS(text, "\"guarantees\":[{\"name\":\"tree-kill\",\"enforced\":true");
                free(text);
                cbx_capabilities_free(&list);
                CHECK(!list.owner);
                cbx_policy_unref(policy);
        }
}

/* For a tool, wherever its rule sends it: without a box, by a zygote's box, by another backend. */
static void tools_agree(struct api *api)
{
        const cbx_rule rules[] = { { "up", CBX_ELEVATED, NULL },
                                   { "caged", CBX_BOXED, "landlock" },
                                   { "no", CBX_REFUSED, NULL },
                                   { NULL, 0, NULL } };
        static const char *const names[] = { "any", "up", "caged" };
        static const char *const backends[] = { "namespaces", "host", "landlock" };
        cbx_toolbox_options options = CBX_TOOLBOX_OPTIONS_INIT;
        cbx_capability_list list = CBX_CAPABILITY_LIST_INIT;
        cbx_toolbox *toolbox;

        options.rules = rules;
        toolbox = open_box(api, &options);
        add(api, toolbox, SHELL("any", "true", ""));
        add(api, toolbox, SHELL("up", "true", ""));
        add(api, toolbox, SHELL("caged", "true", ""));
        add(api, toolbox, SHELL("no", "true", ""));
        for (size_t i = 0; i < 3; i++) {
                EQUAL(cbx_toolbox_capabilities(toolbox, names[i], &list, &api->error), 0);
                SAME_TEXT(list.backend, backends[i]);
                CHECK(call(api, toolbox, names[i])->ok);
                compare(api, &list);
                cbx_capabilities_free(&list);
        }
        api_refused(api, cbx_toolbox_capabilities(toolbox, "no", &list, &api->error), -EPERM,
                    "name");
        api_refused(api, cbx_toolbox_capabilities(toolbox, "other", &list, &api->error), -ENOENT,
                    "name");
        cbx_toolbox_close(toolbox);
}

/* What a policy requires and this host cannot keep is told with the fix, not only refused. */
static void capabilities_missing(struct api *api)
{
        cbx_capability_list list = CBX_CAPABILITY_LIST_INIT;
        cbx_policy *policy = api_policy("{\"limits\": {\"cpus\": 0.5}}");
        const cbx_guarantee *cpu;
        int r;

        EQUAL(cbx_capabilities(api->warden, policy, &list, &api->error), 0);
        r = cbx_prepare(api->warden, policy, &api->error);
        EQUAL(list.met, r == 0);
        cpu = find(list.guarantees, "cpu");
        EQUAL(cpu->required, 1);
        EQUAL(cpu->enforced, r == 0);
        CHECK(cpu->enforced || cpu->fix[0]);
        cbx_capabilities_free(&list);
        cbx_policy_unref(policy);

        policy = api_policy("{\"files\": {\"read\": [\"/nonexistent/place\"]}}");
        api_refused(api, cbx_capabilities(api->warden, policy, &list, &api->error), -ENOENT,
                    "files.read[0]");
        CHECK(!list.owner);
        cbx_policy_unref(policy);
        list.size = 3;
        api_refused(api, cbx_capabilities(api->warden, api->policy, &list, &api->error), -EINVAL,
                    "list");
}

/* ---- Backends ---- */

/* One like docker: the command line of a container engine, for a program that stands in for it. */
struct engine {
        int there, promises, runs, result;
        char line[256];
};

static int engine_is_there(void *userdata, cbx_error *error)
{
        const struct engine *engine = userdata;

        if (engine->there)
                return 0;
        snprintf(error->text, sizeof(error->text), "the engine does not answer");
        snprintf(error->hint, sizeof(error->hint), "start it: systemctl start engine");
        return -ECONNREFUSED;
}

static int engine_promises(void *userdata, cbx_policy *policy, cbx_promises *promises)
{
        static const char *const all[] = { "tree-kill",  "files",       "network", "syscalls",
                                           "privileges", "environment", "memory",  "pids" };
        const struct engine *engine = userdata;

        CHECK(policy);
        for (int i = 0; i < engine->promises; i++)
                EQUAL(cbx_promise(promises, all[i], "container"), 0);
        EQUAL(cbx_promise(promises, "nonsense", "container"), -EINVAL);
        return 0;
}

static int engine_runs(void *userdata, const cbx_order *order, cbx_outcome *outcome,
                       cbx_error *error)
{
        struct engine *engine = userdata;
        size_t n = 0;
        char text[64];

        engine->runs++;
        n = (size_t)snprintf(engine->line, sizeof(engine->line), "run --rm --memory %llu",
                             (unsigned long long)order->memory_limit);
        for (const char *const *word = order->argv; *word; word++)
                n += (size_t)snprintf(engine->line + n, sizeof(engine->line) - n, " %s", *word);
        if (engine->result < 0) {
                snprintf(error->text, sizeof(error->text), "no such image");
                return engine->result;
        }
        EQUAL(cbx_outcome_end(outcome, CBX_SETUP, 0), -EINVAL);
        snprintf(text, sizeof(text), "out of %s\n", order->tool);
        EQUAL(cbx_outcome_output(outcome, text, strlen(text)), 0);
        EQUAL(cbx_outcome_errors(outcome, "err\n", 4), 0);
        EQUAL(cbx_outcome_warn(outcome, "the image is old"), 0);
        if (engine->result == 99)
                return 0; /* and does not say how it ended */
        return cbx_outcome_end(outcome, CBX_EXITED, engine->result);
}

static void own_backend(struct api *api)
{
        struct engine engine = { .there = 1, .promises = 8 };
        cbx_backend backend = CBX_BACKEND_INIT;
        const cbx_rule rules[] = { { "far", CBX_BOXED, "engine" }, { NULL, 0, NULL } };
        cbx_toolbox_options options = CBX_TOOLBOX_OPTIONS_INIT;
        cbx_capability_list list = CBX_CAPABILITY_LIST_INIT;
        const cbx_result *result;
        cbx_toolbox *toolbox;
        char *text = NULL;

        backend.name = "engine";
        backend.userdata = &engine;
        backend.is_available = engine_is_there;
        backend.capabilities = engine_promises;
        backend.run = engine_runs;
        options.rules = rules;
        options.backends = (const cbx_backend *const[]){ &backend, NULL };
        toolbox = open_box(api, &options);
        add(api, toolbox,
            SHELL("far", "echo hello", ", \"policy\": {\"limits\": {\"memory\": \"64M\"}}"));
        add(api, toolbox, SHELL("near", SEES, AGENT));

        EQUAL(cbx_toolbox_capabilities(toolbox, "far", &list, &api->error), 0);
        SAME_TEXT(list.backend, "engine");
        EQUAL(list.met, 1);
        result = call(api, toolbox, "far");
        EQUAL(result->ok, 1);
        SAME_TEXT(result->text, "out of far\n");
        SAME_TEXT(result->route, "box");
        SAME_TEXT(engine.line, "run --rm --memory 67108864 /bin/sh -c echo hello far");
        SAME_TEXT(api->report.errors.data, "err\n");
        SAME_TEXT(cbx_report_warnings(&api->report)[0], "the image is old");
        for (size_t i = 0; list.guarantees[i]; i++) {
                const cbx_guarantee *told = cbx_report_guarantees(&api->report)[i];

                EQUAL(told->enforced, list.guarantees[i]->enforced);
                SAME_TEXT(told->by, list.guarantees[i]->by);
        }
        SAME_TEXT(find(list.guarantees, "files")->by, "engine: container");
        SAME_TEXT(find(list.guarantees, "landlock")->by, "engine does not keep it");
        cbx_capabilities_free(&list);
        SAME_TEXT(call(api, toolbox, "near")->text, "box\n");
        EQUAL(engine.runs, 1);

        engine.result = 3;
        EQUAL(call(api, toolbox, "far")->ok, 0);
        EQUAL(api->report.code, 3);
        engine.result = 99;
        EQUAL(call(api, toolbox, "far")->ok, 0);
        EQUAL(api->report.reason, CBX_SETUP);
        HAS(api->report.error->text, "does not say how the call ended");
        engine.result = -ENOENT;
        EQUAL(call(api, toolbox, "far")->ok, 0);
        EQUAL(api->report.reason, CBX_SETUP);
        HAS(api->report.error->text, "no such image");

        /* It fails closed: there is no other place for the call. */
        engine.runs = engine.result = engine.there = 0;
        EQUAL(call(api, toolbox, "far")->ok, 0);
        EQUAL(api->report.reason, CBX_SETUP);
        HAS(api->report.error->text, "is not available here: the engine does not answer");
        SAME_TEXT(api->report.error->hint, "start it: systemctl start engine");
        api_refused(api, cbx_toolbox_backend_available(toolbox, "engine", &api->error),
                    -ECONNREFUSED, "backend");
        EQUAL(cbx_toolbox_backends(toolbox, &text, &api->error), 0);
        HAS(text, "{\"name\":\"engine\",\"available\":false");
        HAS(text, "{\"name\":\"host\",\"available\":true");
        HAS(text, "{\"name\":\"landlock\",\"available\":true");
        free(text);
        engine.there = 1;
        engine.promises = 7; /* not pids */
        EQUAL(call(api, toolbox, "far")->ok, 0);
        HAS(api->report.error->text, "does not keep the guarantee \"pids\"");
        EQUAL(engine.runs, 0);
        EQUAL(cbx_toolbox_backend_available(toolbox, "engine", &api->error), 0);
        EQUAL(cbx_toolbox_backend_available(toolbox, "auto", &api->error), 0);
        api_refused(api, cbx_toolbox_backend_available(toolbox, "other", &api->error), -ENOENT,
                    "backend");
        cbx_toolbox_close(toolbox);
}

const struct api_test modes_tests[] = {
        { "a mode and rules decide where a tool runs: one that refuses, then the first that fits",
          decisions },
        { "modes, rules and backends that make no sense are refused by name", wrong_options },
        { "tools run where mode, rule and manifest send them, and the report says so", routes },
        { "a toolbox without a mode and rules is as it was", nothing_said },
        { "without a box the limits hold that need none, and nothing is left", limits_without_box },
        { "capabilities before a call are the guarantees of its report", capabilities_agree },
        { "so are those of a tool, wherever it runs", tools_agree },
        { "what is missing is told with its fix, and a policy at fault as by cbx_prepare",
          capabilities_missing },
        { "a backend of the application's own runs tools, or nothing does", own_backend },
        { NULL, NULL },
};
