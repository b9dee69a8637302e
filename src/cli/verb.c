/* SPDX-License-Identifier: MIT */
#include "cli/verb.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

/* ---- Signals ---- */

int verb_open_signals(void)
{
        static const int passed[] = {
                SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH
        };
        sigset_t mask;

        sigemptyset(&mask);
        for (size_t i = 0; i < ARRAY_SIZE(passed); i++)
                sigaddset(&mask, passed[i]);
        sigprocmask(SIG_BLOCK, &mask, NULL);
        return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* ---- Telling the end ---- */

/* The PATH that the box has, where it is another than the caller's; or NULL. */
static const char *other_path(const cbx_policy *policy, char *const *environment)
{
        for (; environment && *environment; environment++)
                if (strncmp(*environment, "PATH=", 5) == 0)
                        return *environment + 5;
        for (size_t i = 0; i < policy->n_variables; i++)
                if (strcmp(policy->variables[i].name, "PATH") == 0)
                        return policy->variables[i].value;
        return NULL;
}

static bool is_on(const char *path, const char *directory, size_t length)
{
        while (*path) {
                size_t n = strcspn(path, ":");

                if (n == length && strncmp(path, directory, n) == 0)
                        return true;
                path += n + (path[n] == ':');
        }
        return false;
}

static bool hint_at_directory(const char *name, cbx_error *error)
{
        struct stat st;

        if (stat(name, &st) < 0 || !S_ISDIR(st.st_mode))
                return false;
        error_hint(error, "%s is a directory: name a program, in it or elsewhere", name);
        return true;
}

void verb_hint_at_program(const char *name, const cbx_policy *policy, char *const *environment,
                          cbx_error *error)
{
        const char *other = other_path(policy, environment);
        const char *path = getenv("PATH");
        char candidate[PATH_MAX], real[PATH_MAX];

        if (strchr(name, '/')) {
                if (!hint_at_directory(name, error) && access(name, X_OK) == 0)
                        error_hint(error,
                                   "the file is on the host, but the box does not show it, or "
                                   "its interpreter: add --read for its directory");
                return;
        }
        while (path && *path) {
                size_t n = strcspn(path, ":");

                if (snprintf(candidate, sizeof(candidate), "%.*s/%s", (int)n, path, name) <
                            (int)sizeof(candidate) &&
                    access(candidate, X_OK) == 0 && realpath(candidate, real)) {
                        char *slash = strrchr(real, '/');

                        if (other && !is_on(other, path, n)) {
                                error_hint(error,
                                           "the host has it as %s, which is not on the PATH that "
                                           "the box is given",
                                           candidate);
                                return;
                        }
                        error_hint(error,
                                   "the host has it as %s, which the box does not show: add "
                                   "--read %.*s",
                                   real, slash == real ? 1 : (int)(slash - real), real);
                        return;
                }
                path += n + (path[n] == ':');
        }
}

/* Root may execute it, and the box that root makes is somebody else. */
void verb_hint_at_mode(const char *name, cbx_error *error)
{
        if (error->code != -EACCES || !strchr(name, '/') || hint_at_directory(name, error))
                return;
        if (geteuid() == 0 && access(name, X_OK) == 0)
                error_hint(error,
                           "its mode may keep the box's user out: add --read %s, or chmod o+rx",
                           name);
}

static void print_denials(const struct report *report, bool explain)
{
        json_t *denial;
        size_t i;

        json_array_foreach(report->denials, i, denial)
        {
                const char *kind = json_string_value(json_object_get(denial, "kind"));
                const char *allow = json_string_value(json_object_get(denial, "allow"));
                const char *note = json_string_value(json_object_get(denial, "note"));
                json_int_t count = json_integer_value(json_object_get(denial, "count"));

                if (!explain && strcmp(kind, "protected") != 0)
                        continue;
                fprintf(stderr, "callbox: refused: %s %s (%s, %lld time%s)", kind,
                        json_string_value(json_object_get(denial, "what")),
                        json_string_value(json_object_get(denial, "errno")), (long long)count,
                        count == 1 ? "" : "s");
                if (*allow)
                        fprintf(stderr, "; allow it with %s", allow);
                else if (note)
                        fprintf(stderr, "; %s", note);
                fputc('\n', stderr);
        }
}

void verb_print_end(const struct report *report, bool quiet, bool explain)
{
        char text[512];

        if (report->reason == REASON_SETUP || report->reason == REASON_INTERNAL) {
                cli_print_error(&report->error);
                return;
        }
        if (quiet)
                return;
        for (size_t i = 0; i < report->n_warnings; i++)
                fprintf(stderr, "callbox: warning: %s\n", report->warnings[i]);
        print_denials(report, explain);
        if (report->reason == REASON_EXITED)
                return;
        report_text(report, text, sizeof(text));
        fprintf(stderr, "callbox: %s: %s\n", reason_str(report->reason), text);
}
