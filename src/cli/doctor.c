/* SPDX-License-Identifier: MIT */
/* callbox doctor: what this host can enforce, each line proven by a probe, with the fix. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "box/fences.h"
#include "cli/doctor.h"
#include "cli/options.h"

#define WIDTH_MAX 100U

static const char help[] =
        "Usage: callbox doctor [--json]\n"
        "\n"
        "Shows which guarantees this host can keep, and by what. Each line is proven by\n"
        "a probe: a real box in which callbox tries what must be refused. For what is\n"
        "missing the cause and the fix are told. Nothing on the host is changed.\n"
        "\n"
        "  tree-kill    nothing of a call outlives it\n"
        "  files        what is not shown does not exist, what is shown is read-only\n"
        "  network      no socket outside of the box can be reached\n"
        "  syscalls     system calls that are not on the list are refused and reported\n"
        "  privileges   no capabilities, no way to get any\n"
        "  environment  no variable of the caller's but a few harmless ones\n"
        "  memory, pids, cpu   a call over its limit is ended, with that reason\n"
        "  landlock     a second fence around files and signals    (wanted, not required)\n"
        "  cgroup       exact accounting of memory and processes   (wanted, not required)\n"
        "\n"
        "  --json       one JSON object (schema: doctor.schema.json)\n"
        "\n"
        "Exit code: 0 when every guarantee that is required by default holds, 1 when one\n"
        "does not, 125 when nothing could be tried. Manual: callbox-doctor(1)\n";

/* ---- The text ---- */

struct style {
        unsigned width;
        const char *good, *bad, *quiet, *plain; /* colours, "" where there are none */
};

static struct style choose_style(void)
{
        struct style style = { WIDTH_MAX, "", "", "", "" };
        const char *term = getenv("TERM");
        struct winsize size;

        if (!isatty(STDOUT_FILENO))
                return style;
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
                style.width = MIN(size.ws_col, WIDTH_MAX);
        if (getenv("NO_COLOR") || !term || strcmp(term, "dumb") == 0)
                return style;
        style.good = "\033[32m";
        style.bad = "\033[31m";
        style.quiet = "\033[2m";
        style.plain = "\033[0m";
        return style;
}

/* Print words in lines that fit, each but the first indented; the first begins at `indent` too. */
static void print_wrapped(const struct style *style, unsigned indent, const char *text)
{
        unsigned room = style->width > indent + 20 ? style->width - indent : 20, used = 0;

        while (*text) {
                unsigned n = (unsigned)strcspn(text, " ");

                if (used > 0 && used + 1 + n > room) {
                        printf("\n%*s", (int)indent, "");
                        used = 0;
                }
                printf("%s%.*s", used ? " " : "", (int)n, text);
                used += n + (used > 0);
                text += n + (text[n] == ' ');
        }
        putchar('\n');
}

static void print_fact(const struct style *style, const char *name, const char *format, ...)
        PRINTF_LIKE(3, 4);
static void print_fact(const struct style *style, const char *name, const char *format, ...)
{
        _cleanup_free_ char *text = NULL;
        va_list args;
        int n;

        va_start(args, format);
        n = vasprintf(&text, format, args);
        va_end(args);
        if (n < 0)
                text = NULL;
        printf("  %-18s", name);
        print_wrapped(style, 20, text ? text : "");
}

static void print_cgroup(const struct style *style, const struct doctor_host *host)
{
        if (host->cgroup_version < 2)
                print_fact(style, "cgroup", "%s", host->cgroup_version ? "v1" : "not mounted");
        else
                print_fact(style, "cgroup", "v2, controllers: %s%s",
                           host->cgroup_controllers[0] ? host->cgroup_controllers : "none",
                           host->cgroup_writable ? "" : "; not ours to divide");
}

static void print_trees(const struct style *style, const struct doctor_findings *findings)
{
        const struct doctor_finding *trees = &findings->trees;

        if (trees->enforced)
                print_fact(style, "id-mapped mounts", "usable: %s", trees->proof);
        else if (strcmp(trees->cause, findings->guarantees[0].cause) == 0)
                print_fact(style, "id-mapped mounts", "not tried: no box can be made, see below");
        else
                print_fact(style, "id-mapped mounts", "refused: %s; to fix it: %s", trees->cause,
                           trees->fix);
}

/* Where boxes can be made without namespaces, nothing else says why there are none. */
static void print_refused(const struct style *style, const struct doctor_host *host,
                          const struct doctor_findings *findings)
{
        struct doctor_obstacle obstacle;
        size_t index = 0;

        print_fact(style, "user namespaces", "refused: %s namespace, %s", host->namespaces,
                   strerror(host->namespaces_error));
        if (!findings->guarantees[GUARANTEE_TREE_KILL].enforced)
                return;
        print_fact(style, "", "boxes are made of Landlock and seccomp instead (--box)");
        if (doctor_next_obstacle(host, "namespaces", &index, &obstacle))
                print_fact(style, "", "cause: %s; to fix it: %s", obstacle.cause, obstacle.fix);
}

static void print_host(const struct style *style, const struct doctor_host *host,
                       const struct doctor_findings *findings)
{
        struct doctor_obstacle obstacle;
        size_t index = 0;

        print_fact(style, "kernel", "%s %s, %s", host->system.sysname, host->system.release,
                   host->system.machine);
        if (host->uid == 0)
                print_fact(style, "run by", "root");
        else
                print_fact(style, "run by", "user %u", host->uid);
        if (host->namespaces[0])
                print_refused(style, host, findings);
        else
                print_fact(style, "user namespaces", "usable, with every kind of namespace below");
        print_fact(style, "seccomp", "%s%s",
                   host->seccomp_notifier ? "filters with notifications"
                                          : "no filters with notifications (Linux 5.0 has them)",
                   host->filtered ? "; another filter is in force already" : "");
        if (host->landlock_abi > 0)
                print_fact(style, "Landlock", "ABI %d", host->landlock_abi);
        else
                print_fact(style, "Landlock", "none: %s", strerror(host->landlock_error));
        if (doctor_next_obstacle(host, DOCTOR_READING, &index, &obstacle))
                print_fact(style, "ptrace",
                           "refused: no workspaces, and no boxes without namespaces; cause: %s; to "
                           "fix it: %s",
                           obstacle.cause, obstacle.fix);
        print_cgroup(style, host);
        if (host->uid == 0)
                print_trees(style, findings);
        if (host->container != CONTAINER_NONE)
                print_fact(style, "container", "%s (%s)", doctor_container_str(host->container),
                           host->container_hint);
        else
                print_fact(style, "container", "none seen");
        putchar('\n');
}

#define BY_AT 19U

/* Of several findings with the same trouble only the first tells it whole. */
static const char *told_before(const struct doctor_findings *findings, int index)
{
        for (int i = 0; i < index; i++)
                if (!findings->guarantees[i].enforced &&
                    strcmp(findings->guarantees[i].cause, findings->guarantees[index].cause) == 0)
                        return guarantee_str((enum guarantee)i);
        return NULL;
}

static void print_missing(const struct style *style, const struct doctor_findings *findings,
                          int index)
{
        const struct doctor_finding *finding = &findings->guarantees[index];
        bool required = findings->required & 1U << index;
        const char *before = told_before(findings, index);

        printf("  %s%s%s  %-13s", required ? style->bad : style->quiet, required ? "NO" : "--",
               style->plain, guarantee_str((enum guarantee)index));
        if (before) {
                printf("missing, as %s\n", before);
                return;
        }
        puts(required ? "missing" : "missing; wanted, not required");
        printf("%*scause  ", (int)BY_AT, "");
        print_wrapped(style, BY_AT + 7, finding->cause);
        printf("%*sfix    ", (int)BY_AT, "");
        print_wrapped(style, BY_AT + 7, finding->fix);
}

static void print_guarantees(const struct style *style, const struct doctor_findings *findings)
{
        unsigned by = 0, proof = 0;
        bool wide;

        for (int i = 0; i < GUARANTEE_MAX_; i++) {
                by = MAX(by, (unsigned)strlen(findings->guarantees[i].by));
                proof = MAX(proof, (unsigned)strlen(findings->guarantees[i].proof));
        }
        wide = BY_AT + by + 2 + proof <= style->width;
        if (wide && by > 0)
                printf("      %s%-13s%-*s  %s%s\n", style->quiet, "guarantee", (int)by, "kept by",
                       "proven: in a box ...", style->plain);
        for (int i = 0; i < GUARANTEE_MAX_; i++) {
                const struct doctor_finding *finding = &findings->guarantees[i];

                if (!finding->enforced) {
                        print_missing(style, findings, i);
                        continue;
                }
                printf("  %sok%s  %-13s", style->good, style->plain,
                       guarantee_str((enum guarantee)i));
                if (wide)
                        printf("%-*s  %s%s%s\n", (int)by, finding->by, style->quiet, finding->proof,
                               style->plain);
                else
                        printf("%s\n%*s%s%s%s\n", finding->by, (int)BY_AT, "", style->quiet,
                               finding->proof, style->plain);
        }
}

static bool all_required(const struct doctor_findings *findings)
{
        for (int i = 0; i < GUARANTEE_MAX_; i++)
                if ((findings->required & 1U << i) && !findings->guarantees[i].enforced)
                        return false;
        return true;
}

static int print_text(const struct doctor_host *host, const struct doctor_findings *findings)
{
        struct style style = choose_style();

        printf("callbox %s\n\n", cbx_version());
        print_host(&style, host, findings);
        print_guarantees(&style, findings);
        printf("\n%s\n", all_required(findings)
                                 ? "Every guarantee that a box needs by default holds on this host."
                                 : "A box with the default policy cannot be kept on this host: it "
                                   "is refused.");
        return fflush(stdout) == 0 ? 0 : cli_fail("cannot write the output: %s", strerror(errno));
}

/* ---- The JSON form ---- */

static json_t *words_to_json(const char *text)
{
        json_t *words = json_array();

        while (*text) {
                size_t n = strcspn(text, " ");

                if (n > 0)
                        json_array_append_new(words, json_stringn(text, n));
                text += n + (text[n] == ' ');
        }
        return words;
}

static json_t *obstacles_to_json(const struct doctor_host *host)
{
        struct doctor_obstacle obstacle;
        json_t *array = json_array();
        size_t index = 0;

        while (doctor_next_obstacle(host, NULL, &index, &obstacle))
                json_array_append_new(array, json_pack("{s:s, s:s}", "cause", obstacle.cause, "fix",
                                                       obstacle.fix));
        return array;
}

static json_t *host_to_json(const struct doctor_host *host, const struct doctor_findings *findings)
{
        json_t *container = host->container == CONTAINER_NONE
                                    ? json_null()
                                    : json_string(doctor_container_str(host->container));
        json_t *cgroup = json_pack("{s:i, s:b, s:o}", "version", host->cgroup_version, "writable",
                                   host->cgroup_writable, "controllers",
                                   words_to_json(host->cgroup_controllers));

        return json_pack("{s:s, s:s, s:b, s:I, s:b, s:b, s:b, s:i, s:o, s:o, s:o, s:o}", "kernel",
                         host->system.release, "machine", host->system.machine, "root",
                         host->uid == 0, "uid", (json_int_t)host->uid, "user_namespaces",
                         !host->namespaces[0], "seccomp_notifier", host->seccomp_notifier,
                         "seccomp_filtered", host->filtered, "landlock_abi", host->landlock_abi,
                         "cgroup", cgroup, "idmapped_mounts",
                         host->uid == 0 ? json_boolean(findings->trees.enforced) : json_null(),
                         "container", container, "obstacles", obstacles_to_json(host));
}

static int print_json(const struct doctor_host *host, const struct doctor_findings *findings)
{
        json_t *array = json_array();
        _cleanup_json_ json_t *json = NULL;

        for (int i = 0; i < GUARANTEE_MAX_; i++) {
                const struct doctor_finding *finding = &findings->guarantees[i];

                json_array_append_new(array,
                                      json_pack("{s:s, s:b, s:b, s:s, s:s, s:s, s:s}", "name",
                                                guarantee_str((enum guarantee)i), "enforced",
                                                finding->enforced, "required",
                                                (findings->required & 1U << i) != 0, "by",
                                                finding->by, "proof", finding->proof, "cause",
                                                finding->cause, "fix", finding->fix));
        }
        json = json_pack("{s:s, s:b, s:o, s:o}", "version", cbx_version(), "ok",
                         all_required(findings), "host", host_to_json(host, findings), "guarantees",
                         array);
        return cli_print_json(json, STDOUT_FILENO);
}

/* ---- The verb ---- */

static int parse(int argc, char **argv, bool *ret_json, cbx_error *error)
{
        for (int i = 1; i < argc;) {
                if (strcmp(argv[i], "--json") == 0) {
                        *ret_json = true;
                        i++;
                        continue;
                }
#ifdef BOX_UNFENCED
                const char *names;

                if (options_value(argc, argv, &i, "--without", error, &names) > 0) {
                        if (box_fence_leave_out(names) < 0)
                                return error_set(error, -EINVAL, "--without", "no such fence: %s",
                                                 names);
                        continue;
                }
#endif
                error_set(error, -EINVAL, "", "doctor knows no %s \"%s\"",
                          argv[i][0] == '-' ? "option" : "argument", argv[i]);
                error_hint(error, "see callbox doctor --help");
                return -EINVAL;
        }
        return 0;
}

int cli_doctor(int argc, char **argv)
{
        struct doctor_findings findings = { 0 };
        cbx_error error = CBX_ERROR_INIT;
        struct doctor_host host;
        bool json = false;
        int code;

        if (argc > 1 && strcmp(argv[1], "--probe") == 0) {
                code = doctor_inside(argc - 2, argv + 2);
                if (code >= 0)
                        return code;
        }
        for (int i = 1; i < argc; i++)
                if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
                        return fputs(help, stdout) < 0 ? EXIT_CALLBOX : 0;
        code = parse(argc, argv, &json, &error);
        if (code == 0) {
                doctor_look_at_host(&host);
                code = doctor_probe(&host, &findings, &error);
        }
        if (code < 0) {
                cli_print_error(&error);
                return EXIT_CALLBOX;
        }
        if (findings.signal)
                return 128 + findings.signal;
        code = json ? print_json(&host, &findings) : print_text(&host, &findings);
        return code != 0 ? code : !all_required(&findings);
}
