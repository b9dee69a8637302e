/* SPDX-License-Identifier: MIT */
/*
 * The probes from outside: the box of each, and the verdict. A guarantee counts as kept when the
 * report of its probe's call claims it and the probe agrees.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include "cli/doctor.h"
#include "warden/call.h"

#define FAULT                                                                                      \
        "none is known: this is a fault of callbox or of the kernel; report it with the output "   \
        "of "                                                                                      \
        "callbox doctor --json"

struct examination {
        const struct doctor_host *host;
        struct doctor_plants plants;
        int signals, signal;
        /* arguments of the probes, beside what is planted */
        char variable[32], forbidden_id[16], abi[8];
};

struct probe {
        const char *name;
        const char *limits;  /* where they differ from the default policy's */
        enum reason reason;  /* how its call must end */
        size_t arguments[2]; /* offsets in struct examination; 0: none */
        const char *proof;   /* the words for success */
        bool (*check)(struct examination *x, const struct report *report,
                      struct doctor_finding *finding); /* a further look from outside; or NULL */
};

/* ---- Looks from outside ---- */

static bool check_tree_kill(struct examination *x, const struct report *report,
                            struct doctor_finding *finding)
{
        (void)report;
        if (flock(x->plants.lock, LOCK_EX | LOCK_NB) < 0) {
                snprintf(finding->cause, sizeof(finding->cause),
                         "a process that the call left in the background is still alive");
                return false;
        }
        (void)flock(x->plants.lock, LOCK_UN);
        return true;
}

/* Every call that the probe made stands in the report; but what a filter around callbox refuses as
 * well never gets as far as ours. */
static bool check_syscalls(struct examination *x, const struct report *report,
                           struct doctor_finding *finding)
{
        static const char *const tried[] = { "unshare", "mount", "bpf", "ptrace" };
        json_t *denial;
        size_t i, seen = 0;

        json_array_foreach(report->denials, i, denial)
        {
                const char *what = json_string_value(json_object_get(denial, "what"));

                for (size_t j = 0; j < ARRAY_SIZE(tried); j++)
                        seen += what && strcmp(what, tried[j]) == 0;
        }
        if (seen == ARRAY_SIZE(tried) || x->host->filtered)
                return true;
        snprintf(finding->cause, sizeof(finding->cause),
                 "the report names %zu of %zu refused system calls", seen, ARRAY_SIZE(tried));
        return false;
}

static bool check_landlock(struct examination *x, const struct report *report,
                           struct doctor_finding *finding)
{
        (void)report;
        if (x->host->landlock_abi < 6)
                snprintf(finding->proof, sizeof(finding->proof), "the box's rules were taken");
        return true;
}

static bool check_trees(struct examination *x, const struct report *report,
                        struct doctor_finding *finding)
{
        char made[128];
        struct stat st;

        (void)report;
        snprintf(made, sizeof(made), "%s/made", x->plants.tree);
        if (stat(made, &st) == 0 && st.st_uid == geteuid())
                return true;
        snprintf(finding->cause, sizeof(finding->cause),
                 "a file that was made in a box does not belong to the directory's owner");
        return false;
}

#define ARGUMENT(member) offsetof(struct examination, member)

static const struct probe probes[GUARANTEE_MAX_] = {
        [GUARANTEE_TREE_KILL] = { "tree-kill",
                                  NULL,
                                  REASON_EXITED,
                                  { 0 },
                                  "a detached child died with it",
                                  check_tree_kill },
        [GUARANTEE_FILES] = { "files",
                              NULL,
                              REASON_EXITED,
                              { ARGUMENT(plants.planted) },
                              "a file not shown was not there",
                              NULL },
        [GUARANTEE_NETWORK] = { "network",
                                NULL,
                                REASON_EXITED,
                                { ARGUMENT(plants.port), ARGUMENT(plants.socket) },
                                "the host's sockets: out of reach",
                                NULL },
        [GUARANTEE_SYSCALLS] = { "syscalls",
                                 NULL,
                                 REASON_EXITED,
                                 { 0 },
                                 "unshare, mount, bpf refused",
                                 check_syscalls },
        [GUARANTEE_PRIVILEGES] = { "privileges",
                                   NULL,
                                   REASON_EXITED,
                                   { ARGUMENT(forbidden_id) },
                                   "no capabilities, none to gain",
                                   NULL },
        [GUARANTEE_ENVIRONMENT] = { "environment",
                                    NULL,
                                    REASON_EXITED,
                                    { ARGUMENT(variable) },
                                    "a planted variable was absent",
                                    NULL },
        [GUARANTEE_MEMORY] = { "memory",
                               "{\"memory\": \"64M\"}",
                               REASON_MEMORY,
                               { 0 },
                               "a call over 64 MiB was ended",
                               NULL },
        [GUARANTEE_PIDS] = { "pids",
                             "{\"processes\": 8}",
                             REASON_PIDS,
                             { 0 },
                             "a call over 8 processes was ended",
                             NULL },
        [GUARANTEE_CPU] = { "cpu",
                            "{\"cpu\": 0.05}",
                            REASON_CPU,
                            { 0 },
                            "a call over 0.05 s was ended",
                            NULL },
        [GUARANTEE_LANDLOCK] = { "landlock",
                                 NULL,
                                 REASON_EXITED,
                                 { ARGUMENT(abi) },
                                 "a signal out of it was refused",
                                 check_landlock },
        [GUARANTEE_CGROUP] = { "cgroup",
                               NULL,
                               REASON_EXITED,
                               { 0 },
                               "a call ran in a group of its own",
                               NULL },
};

static const struct probe probe_trees = {
        "trees", NULL, REASON_EXITED, { 0 }, "a file made in a box was its owner's", check_trees
};

/* ---- One probe ---- */

/* The default policy, and what the probe needs to see. */
static int probe_policy(const struct examination *x, const struct probe *probe, cbx_error *error,
                        cbx_policy **ret_policy)
{
        _cleanup_json_ json_t *limits = json_pack("{s:i}", "wall", 5), *policy = NULL;
        _cleanup_json_ json_t *more =
                probe->limits ? json_loads(probe->limits, 0, NULL) : json_object();

        if (!limits || !more || json_object_update(limits, more) < 0)
                return error_oom(error);
        policy = json_pack("{s:{s:[s, s]}, s:O}", "files", "read", x->plants.program,
                           x->plants.shown, "limits", limits);
        if (policy && probe == &probe_trees)
                json_object_set_new(json_object_get(policy, "files"), "write",
                                    json_pack("[s]", x->plants.tree));
        if (!policy)
                return error_set(error, -EILSEQ, "", "the path of callbox is not UTF-8");
        return policy_from_json(policy, error, ret_policy);
}

/* The examination is over when the user says so. */
static void interrupted(struct call *call, void *data)
{
        struct examination *x = data;
        struct signalfd_siginfo info;

        if (read(x->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
                x->signal = (int)info.ssi_signo;
        call_cancel(call);
}

static void run_box(struct examination *x, const struct probe *probe, struct report *report)
{
        char *argv[8] = { x->plants.program, (char *)"doctor", (char *)"--probe",
                          (char *)probe->name, x->plants.directory };
        struct plan_options options = { .environment = environ };
        struct call_hook hook = { .fd = x->signals, .ready = interrupted, .data = x };
        struct call_spec spec = { .argv = argv,
                                  .stdin_fd = -1,
                                  .output = { { .capture = true, .forward = -1 },
                                              { .capture = true, .forward = -1 } },
                                  .captured = true };
        _cleanup_policy_ cbx_policy *policy = NULL;
        _cleanup_plan_ struct plan *plan = NULL;

#ifdef BOX_UNFENCED
        options.pass_all = box_fence(FENCE_ENVIRONMENT) ? NULL : "all";
#endif
        if (probe_policy(x, probe, &report->error, &policy) < 0 ||
            plan_compile(policy, &options, &report->error, &plan) < 0)
                return;
        /* Where root has no other id to give, its boxes stay its own, without its privileges. */
        snprintf(x->forbidden_id, sizeof(x->forbidden_id), "%d", plan->privileged ? 0 : -1);
        for (size_t i = 0; i < ARRAY_SIZE(probe->arguments) && probe->arguments[i]; i++)
                argv[5 + i] = (char *)x + probe->arguments[i];
        spec.limits = plan->policy->limits;
        call_run(plan, &spec, &hook, report);
}

/* ---- The verdict ---- */

/* The box could not be made: the engine's words, and the settings that are known to do this. */
static void explain_setup(const struct examination *x, const struct report *report,
                          struct doctor_finding *finding)
{
        struct doctor_obstacle obstacle;
        size_t index = 0, at, fix_at = 0;
        const char *where = report->error.where;

        /* A process can have one listener only; and where there is no Landlock either, it is the
         * namespaces that are missing. */
        if (report->error.code == -EBUSY)
                where = DOCTOR_LISTENER;
        else if (strcmp(where, "require") == 0)
                where = "namespaces";

        at = (size_t)snprintf(finding->cause, sizeof(finding->cause), "%s", report->error.text);
        while (doctor_next_obstacle(x->host, where, &index, &obstacle)) {
                at += (size_t)snprintf(finding->cause + at, sizeof(finding->cause) - at, "; %s",
                                       obstacle.cause);
                fix_at += (size_t)snprintf(finding->fix + fix_at, sizeof(finding->fix) - fix_at,
                                           "%s%s", fix_at ? "; and: " : "", obstacle.fix);
                at = MIN(at, sizeof(finding->cause) - 1);
                fix_at = MIN(fix_at, sizeof(finding->fix) - 1);
        }
        if (!finding->fix[0])
                snprintf(finding->fix, sizeof(finding->fix), "%s",
                         report->error.hint[0] ? report->error.hint : FAULT);
}

/* The call ended, but not as it should have. */
static void explain_end(const struct probe *probe, const struct report *report,
                        struct doctor_finding *finding)
{
        _cleanup_json_ json_t *output = output_to_json(&report->output[0]);
        const char *said = json_string_value(json_object_get(output, "text"));
        char text[256];

        if (report->reason == REASON_EXITED && report->code != PROBE_HELD && said && *said) {
                snprintf(finding->cause, sizeof(finding->cause), "%.*s", (int)strcspn(said, "\n"),
                         said);
        } else {
                report_text(report, text, sizeof(text));
                snprintf(finding->cause, sizeof(finding->cause),
                         "the probe ended with reason %s, not %s: %s", reason_str(report->reason),
                         reason_str(probe->reason), text);
        }
}

/* Does the report claim the guarantee? Then by what. */
static bool claimed(const struct report *report, const char *name, struct doctor_finding *finding)
{
        _cleanup_json_ json_t *guarantees = report_guarantees(report);
        json_t *item;
        size_t i;

        json_array_foreach(guarantees, i,
                           item) if (strcmp(json_string_value(json_object_get(item, "name")),
                                            name) == 0 &&
                                     json_is_true(json_object_get(item, "enforced")))
        {
                snprintf(finding->by, sizeof(finding->by), "%s",
                         json_string_value(json_object_get(item, "by")));
                return true;
        }
        return false;
}

static void explain_absence(const struct examination *x, const char *name,
                            struct doctor_finding *finding)
{
        struct doctor_obstacle obstacle = { .cause = "the report does not claim it", .fix = FAULT };

        if (strcmp(name, "landlock") == 0)
                doctor_explain_landlock(x->host, &obstacle);
        else if (strcmp(name, "cgroup") == 0)
                doctor_explain_cgroup(x->host, &obstacle);
        snprintf(finding->cause, sizeof(finding->cause), "%s", obstacle.cause);
        snprintf(finding->fix, sizeof(finding->fix), "%s", obstacle.fix);
}

static void run_probe(struct examination *x, const struct probe *probe,
                      struct doctor_finding *finding)
{
        struct report report = REPORT_INIT;

        run_box(x, probe, &report);
        snprintf(finding->proof, sizeof(finding->proof), "%s", probe->proof);
        if (report.reason == REASON_SETUP || report.reason == REASON_INTERNAL)
                explain_setup(x, &report, finding);
        else if (report.reason != probe->reason ||
                 (report.reason == REASON_EXITED && report.code != PROBE_HELD))
                explain_end(probe, &report, finding);
        else if (probe != &probe_trees && !claimed(&report, probe->name, finding))
                explain_absence(x, probe->name, finding);
        else
                finding->enforced = !probe->check || probe->check(x, &report, finding);
        if (!finding->enforced) {
                finding->by[0] = finding->proof[0] = '\0';
                if (!finding->fix[0])
                        snprintf(finding->fix, sizeof(finding->fix), "%s", FAULT);
        }
        report_free(&report);
}

/* ---- All of them ---- */

/* Signals wait until what was planted is gone. */
static int hold_signals(sigset_t *before)
{
        static const int held[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
        sigset_t mask;

        sigemptyset(&mask);
        for (size_t i = 0; i < ARRAY_SIZE(held); i++)
                sigaddset(&mask, held[i]);
        sigprocmask(SIG_BLOCK, &mask, before);
        return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

int doctor_probe(const struct doctor_host *host, struct doctor_findings *findings, cbx_error *error)
{
        struct examination x = { .host = host,
                                 .plants = DOCTOR_PLANTS_INIT,
                                 .variable = DOCTOR_VARIABLE };
        _cleanup_policy_ cbx_policy *policy = NULL;
        sigset_t before;
        int r;

        r = cbx_policy_parse("{}", 2, &policy, error);
        if (r < 0)
                return r;
        findings->required = policy->require;
        x.signals = hold_signals(&before);
        snprintf(x.abi, sizeof(x.abi), "%d", host->landlock_abi);
        r = doctor_plant(&x.plants, error);
        for (int i = 0; r == 0 && i < GUARANTEE_MAX_ && !x.signal; i++)
                run_probe(&x, &probes[i], &findings->guarantees[i]);
        if (r == 0 && host->uid == 0 && !x.signal)
                run_probe(&x, &probe_trees, &findings->trees);
        doctor_clear(&x.plants);
        base_close(x.signals);
        sigprocmask(SIG_SETMASK, &before, NULL);
        findings->signal = x.signal;
        return r;
}
