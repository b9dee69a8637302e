/* SPDX-License-Identifier: MIT */
/*
 * What came of a call, in words for a model: why it failed, what it said last, what was refused and
 * which line of a policy would allow it, what is missing of its output. What a box printed is
 * quoted as it is: the reader sees it inside a JSON string.
 */
#include <stdio.h>
#include <string.h>

#include "serve/serve_parts.h"

#define TAIL 2000 /* bytes of a stream that are quoted */
#define DENIALS 20

/* ---- Output ---- */

/* Where all of a stream is, or how to get it. */
static int explain_place(struct keep_stream *kept, struct buffer *to)
{
        const char *shown, *host;
        int r;

        if (!keep_whole(kept))
                return buffer_printf(to,
                                     "For all of it, write it to a file in the workspace and read "
                                     "that in parts, or raise limits.capture (--capture).]");
        shown = keep_shown(kept->keep);
        host = keep_directory(kept->keep);
        r = buffer_printf(to, "%s is in %s/%s for run_command, run_python and read_file",
                          kept->cut ? "What was kept, from the beginning," : "All of it", shown,
                          kept->name);
        if (r == 0 && strcmp(shown, host) == 0)
                return buffer_printf(to, ", and on the host.]");
        return r < 0 ? r : buffer_printf(to, "; on the host it is %s/%s.]", host, kept->name);
}

/* Where the last lines begin that fit; in the middle of one that is longer than that. */
static size_t tail_of(const char *data, size_t length)
{
        size_t from = length > TAIL ? length - TAIL : 0;
        const char *newline;

        if (from == 0)
                return 0;
        newline = memchr(data + from - 1, '\n', length - from);
        if (newline)
                return (size_t)(newline + 1 - data);
        while (from < length && ((unsigned char)data[from] & 0xc0) == 0x80)
                from++;
        return from;
}

/* The end of a stream, which is what says why a program failed. */
static int quote_tail(const cbx_output *output, struct keep_stream *kept, const char *name,
                      struct buffer *to)
{
        const char *data = output->data;
        size_t length = output->length, from;
        uint64_t before;
        bool replaced = false;
        int r;

        while (length > 0 && (data[length - 1] == '\n' || data[length - 1] == ' '))
                length--;
        if (length == 0)
                return 0;
        from = tail_of(data, length);
        before = output->omitted + from;
        r = buffer_printf(to, "\n\n%s%s:\n%s", before > 0 ? "The end of " : "", name,
                          from > 0 && data[from - 1] != '\n' ? "[...] " : "");
        if (r == 0)
                r = output_decode(data + from, length - from, to, &replaced);
        if (r < 0 || before == 0)
                return r;
        r = buffer_printf(to, "\n[%llu of %llu bytes of %s, before that, are left out. ",
                          (unsigned long long)before, (unsigned long long)output->total, name);
        return r < 0 ? r : explain_place(kept, to);
}

static int explain_stream(const cbx_output *output, struct keep_stream *kept, const char *name,
                          struct buffer *to)
{
        int r;

        if (output->omitted == 0)
                return 0;
        r = buffer_printf(to, "\n\n[%llu of %llu bytes of %s are left out in the middle. ",
                          (unsigned long long)output->omitted, (unsigned long long)output->total,
                          name);
        return r < 0 ? r : explain_place(kept, to);
}

int explain_cut(struct serve_call *call, const cbx_report *report, struct buffer *to)
{
        int r = explain_stream(&report->output, &call->kept[0], "stdout", to);

        return r < 0 ? r : explain_stream(&report->errors, &call->kept[1], "stderr", to);
}

/* ---- Denials ---- */

/* A program that was looked for along the PATH, in a directory that the box does not show. */
static bool is_search(const cbx_denial *denial)
{
        const char *slash = strrchr(denial->what, '/'), *at = getenv("PATH");
        size_t length = slash ? (size_t)(slash - denial->what) : 0;

        if (strcmp(denial->kind, "file") != 0 || strcmp(denial->error, "ENOENT") != 0)
                return false;
        while (at && *at) {
                size_t n = strcspn(at, ":");

                if (n == length && n > 0 && strncmp(at, denial->what, n) == 0)
                        return true;
                at += n + (at[n] == ':');
        }
        return false;
}

bool explain_is_list(const char *kind)
{
        return strcmp(kind, "protected") == 0;
}

/* What a policy would have to say is the list of all other names: nobody reads some two hundred. */
static int explain_list(const cbx_denial *denial, struct buffer *to)
{
        _cleanup_json_ json_t *policy = json_sprintf("{%s}", denial->policy);
        _cleanup_json_ json_t *json = json_loads(json_string_value(policy), 0, NULL);
        size_t others = json_array_size(json_object_get(json_object_get(json, "files"), "protect"));

        return buffer_printf(to,
                             "; a policy whose \"files\": {\"protect\": [...]} has the other %zu "
                             "names and not this one would allow it (option: %s; the names: "
                             "callbox policy show)",
                             others, denial->allow);
}

static bool is_of_file(const cbx_denial *denial)
{
        return strcmp(denial->kind, "file") == 0 || strcmp(denial->kind, "protected") == 0;
}

static int explain_denial(const cbx_denial *denial, const char *note, struct buffer *to)
{
        int r = buffer_printf(to, "\n- %s %s: %s", denial->kind, denial->what, denial->error);

        if (r == 0 && denial->count > 1)
                r = buffer_printf(to, ", %llu times", (unsigned long long)denial->count);
        if (r == 0 && denial->policy[0] && explain_is_list(denial->kind))
                return explain_list(denial, to);
        if (r == 0 && denial->policy[0])
                return buffer_printf(to, "; a policy with %s would allow it (option: %s)",
                                     denial->policy, denial->allow);
        if (r == 0 && note[0] && is_of_file(denial))
                return buffer_printf(to, "; %s", note);
        return r < 0 ? r
                     : buffer_printf(to, "; %s",
                                     strcmp(denial->kind, "file") == 0 ? "not for a policy to allow"
                                                                       : "no policy allows it");
}

static int explain_denials(const cbx_report *report, struct buffer *to)
{
        const cbx_denial *const *denials = cbx_report_denials(report);
        size_t n = 0, more = 0;
        int r = 0;

        for (size_t i = 0; r == 0 && denials && denials[i]; i++) {
                if (is_search(denials[i]))
                        continue;
                if (n++ == 0)
                        r = buffer_printf(to, "\n\nRefused by the policy (may or may not be why):");
                if (n > DENIALS)
                        more++;
                else if (r == 0)
                        r = explain_denial(denials[i], client_denial_note(report, i), to);
        }
        if (r == 0 && more > 0)
                r = buffer_printf(to, "\n- and %zu more: all are in the report, under denials",
                                  more);
        return r;
}

/* ---- All of it ---- */

static int explain_mistakes(const cbx_report *report, struct buffer *to)
{
        const cbx_mistake *const *mistakes = cbx_report_mistakes(report);
        int r = 0;

        for (; r == 0 && mistakes && *mistakes; mistakes++)
                r = buffer_printf(to, "\n- %s: %s",
                                  (*mistakes)->path[0] ? (*mistakes)->path : "(all of it)",
                                  (*mistakes)->text);
        return r;
}

/* The first line: what happened. An error of an exit code has the end of stderr in it, which is
 * quoted below, and one of wrong arguments the mistakes. */
static int explain_reason(const struct serve_call *call, const cbx_report *report,
                          const cbx_result *result, struct buffer *to)
{
        const char *why = result->denied ? result->reason : result->error;
        const cbx_mistake *const *mistakes = cbx_report_mistakes(report);
        bool by_code = report->reason == CBX_EXITED && why && strncmp(why, "exit code ", 10) == 0;

        if (mistakes && *mistakes && report->reason == CBX_SETUP)
                return buffer_printf(to, "%s was not called: the arguments are wrong.",
                                     call->tool->name);
        if (by_code)
                return buffer_printf(to, "%s failed: exit code %d.", call->tool->name,
                                     report->code);
        return buffer_printf(to, "%s %s: %s", call->tool->name,
                             !result->denied               ? "failed"
                             : report->reason == CBX_SETUP ? "was not called"
                                                           : "was ended",
                             why            ? why
                             : report->text ? report->text
                                            : "");
}

int explain_output(struct serve_call *call, const cbx_report *report, struct buffer *to)
{
        /* Messages to us are no text for a model. */
        bool text = call->tool->output != TOOL_LINES && !call->tool->returns_content;
        int r = quote_tail(&report->errors, &call->kept[1], "stderr", to);

        if (r == 0 && text)
                r = quote_tail(&report->output, &call->kept[0], "stdout", to);
        return r < 0 ? r : explain_denials(report, to);
}

/* A server keeps its policies as long as it runs: nobody who reads this can make one anew. */
const char *explain_fix(const cbx_error *error)
{
        return error->code == -ESTALE && strncmp(error->where, "files.", strlen("files.")) == 0
                       ? "if that is meant, ask the user to restart this server (callbox mcp), in "
                         "most "
                         "clients by connecting to it again: it keeps what the paths of its "
                         "policies "
                         "led to when it was started"
                       : error->hint;
}

char *explain_failure(struct serve_call *call, const cbx_report *report, const cbx_result *result)
{
        _cleanup_buffer_ struct buffer text = BUFFER_INIT;
        int r = explain_reason(call, report, result, &text);

        if (r == 0)
                r = explain_mistakes(report, &text);
        if (r == 0 && report->reason == CBX_SETUP && report->error && report->error->hint[0])
                r = buffer_printf(&text, "\nTo fix it: %s", explain_fix(report->error));
        if (r == 0)
                r = explain_output(call, report, &text);
        return r == 0 ? TAKE_PTR(text.data) : NULL;
}
