/* SPDX-License-Identifier: MIT */
/*
 * What a Python file says of its functions: a box is asked, and what comes back is a box's word. It
 * is as long as PYTHON_ANSWER_MAX lets it be, parsed within the parser's own bounds, and no more is
 * taken of it than what a manifest could say; a policy is none of that.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "policy/pins.h"
#include "tool/python.h"

#define KEPT 64 /* answers */
#define OUTPUT_MAX (64 * KIB)

/* ---- Answers that are kept ---- */

struct python_answers {
        struct {
                unsigned char key[SHA256_SIZE];
                json_t *answer;
        } kept[KEPT];
        size_t next; /* to go */
};

struct python_answers *python_answers_new(void)
{
        return calloc(1, sizeof(struct python_answers));
}

struct python_answers *python_answers_free(struct python_answers *answers)
{
        for (size_t i = 0; answers && i < KEPT; i++)
                json_decref(answers->kept[i].answer);
        free(answers);
        return NULL;
}

/* Of all that an answer depends on, and can be seen from here. An installed module cannot be. */
static int make_key(const struct function *function, const char *symbol, const cbx_policy *policy,
                    unsigned char key[SHA256_SIZE])
{
        _cleanup_buffer_ struct buffer text = BUFFER_INIT;
        _cleanup_free_ char *rules = NULL;
        struct stat facts;
        int r = 0;

        if (!function->source[0] || stat(function->source, &facts) < 0)
                return -ENOENT;
        if (cbx_policy_print(policy, &rules, NULL) < 0)
                return -ENOMEM;
        for (char **word = function->argv; r == 0 && *word; word++)
                r = buffer_printf(&text, "%s\n", *word);
        if (r == 0)
                r = buffer_printf(&text, "%s\n%s\n%llx %llx %llx %lld.%ld %lld.%ld",
                                  symbol ? symbol : "", rules, (unsigned long long)facts.st_dev,
                                  (unsigned long long)facts.st_ino,
                                  (unsigned long long)facts.st_size,
                                  (long long)facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec,
                                  (long long)facts.st_ctim.tv_sec, facts.st_ctim.tv_nsec);
        if (r == 0)
                sha256(text.data, text.length, key);
        return r;
}

static json_t *find_kept(const struct python_answers *answers, const unsigned char *key)
{
        for (size_t i = 0; answers && i < KEPT; i++)
                if (answers->kept[i].answer && memcmp(answers->kept[i].key, key, SHA256_SIZE) == 0)
                        return answers->kept[i].answer;
        return NULL;
}

static void keep_answer(struct python_answers *answers, const unsigned char *key, json_t *answer)
{
        size_t at;

        if (!answers)
                return;
        at = answers->next++ % KEPT;
        json_decref(answers->kept[at].answer);
        answers->kept[at].answer = json_incref(answer);
        memcpy(answers->kept[at].key, key, SHA256_SIZE);
}

/* ---- The box ---- */

/* The same policy, where nothing goes out: no network, and what could be written is only read. */
static int make_still(cbx_policy *policy, cbx_policy **ret_policy, cbx_error *error)
{
        static const char *const gone[] = { "write", "workspace", "protect", "hold" };
        _cleanup_json_ json_t *json = policy_to_json(policy);
        json_t *files = json_object_get(json, "files"), *read = json_object_get(files, "read");
        json_t *workspace = json_object_get(files, "workspace");
        int r = read ? 0 : -ENOMEM;

        if (r == 0)
                r = json_array_extend(read, json_object_get(files, "write"));
        if (r == 0 && workspace && !json_is_null(workspace))
                r = json_array_append(read, workspace);
        for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
                json_object_del(files, gone[i]);
        if (r < 0 || json_object_set_new(json, "network", json_string("none")) < 0)
                return error_oom(error);
        r = policy_from_json(json, error, ret_policy);
        if (r == 0 &&
            policy_pin_copy(policy, *ret_policy) < 0) /* it shows what the tool's own does */
                r = error_oom(error);
        return r;
}

/* Where a call would start, though nothing can be written there. */
static const char *start_directory(const cbx_policy *policy, char room[PATH_MAX])
{
        for (size_t i = 0; i < policy->n_paths; i++) {
                const struct policy_path *rule = &policy->paths[i];

                if (rule->workspace)
                        return rule->box ? rule->box : realpath(rule->host, room);
        }
        return NULL;
}

/* An error with its traceback, of which the file is no part that its writer knows. */
static void set_first_line(const char *text, size_t length, cbx_error *error)
{
        const char *end = memchr(text, '\n', length);

        length = MIN(end ? (size_t)(end - text) : length, 400U);
        error_set(error, -EINVAL, "", "%.*s", (int)length, text);
}

/* The last result of all that it wrote on the channel. */
static int read_frames(const cbx_output *output, const char **ret_text, size_t *ret_length,
                       cbx_error *error)
{
        const char *rest = output->data, *end = output->data + output->length;
        int r = 1;

        if (output->omitted > 0)
                return error_set(error, -EMSGSIZE, "",
                                 "says too much of its functions: %llu bytes, and %u are the most",
                                 (unsigned long long)output->total, (unsigned)PYTHON_ANSWER_MAX);
        while (r > 0 && rest < end) {
                struct message message = { 0 };
                size_t taken = 0;

                r = message_take(MESSAGE_FRAMES, rest, (size_t)(end - rest), true, &taken, &message,
                                 error);
                if (r > 0 && message.kind == MESSAGE_RESULT) {
                        *ret_text = message.text;
                        *ret_length = message.length;
                }
                if (r > 0 && message.kind == MESSAGE_ERROR)
                        set_first_line(message.text, message.length, error);
                rest += taken;
        }
        return r < 0 ? r : 0;
}

/* By its name, which says nothing for sure. */
static bool is_named_python(const char *program)
{
        char real[PATH_MAX];
        const char *slash = realpath(program, real) ? strrchr(real, '/') : NULL;

        return !slash || strstr(slash, "py");
}

/* Nothing was said of the functions: what else is there to say? */
static int explain_end(const cbx_report *report, const char *program, cbx_error *error)
{
        const cbx_output *errors = &report->errors;
        size_t length = errors->length, from;

        if (error && error->code < 0)
                return error->code;
        if (report->error)
                return error_set(error, report->error->code, "", "%s", report->error->text);
        while (length > 0 && errors->data[length - 1] == '\n')
                length--;
        for (from = length; from > 0 && errors->data[from - 1] != '\n' && length - from < 200;)
                from--;
        if (report->reason == CBX_TIMEOUT)
                return error_set(error, -ETIMEDOUT, "",
                                 "is not loaded within %g seconds: what it does at its top level "
                                 "takes too long",
                                 PYTHON_DESCRIBE_WALL);
        if (!is_named_python(program)) {
                error_set(error, -EINVAL, "", "%.200s seems to be no interpreter of Python: %s",
                          program, report->text ? report->text : "no reason is known");
                error_hint(error, "name one: --python in a command, \"interpreter\" in a manifest");
                return -EINVAL;
        }
        return error_set(error, -EINVAL, "", "ends its interpreter while it is loaded: %s%s%.*s",
                         report->text ? report->text : "no reason is known", length > 0 ? ": " : "",
                         (int)(length - from), errors->data ? errors->data + from : "");
}

/* What a question is about. */
struct question {
        const struct function *function;
        const char *symbol; /* a function; NULL: all of them */
        cbx_policy *still;
        const char *directory;
        const struct tool_origin *origin;
};

static int ask_box(const struct question *question, cbx_error *error, json_t **ret_answer)
{
        _cleanup_json_ json_t *line = json_pack("{s:s?}", "describe", question->symbol);
        _cleanup_free_ char *asked = line ? json_write(line, 0) : NULL;
        _cleanup_buffer_ struct buffer input = BUFFER_INIT;
        cbx_report report = CBX_REPORT_INIT;
        cbx_spec spec = CBX_SPEC_INIT;
        cbx_error said = CBX_ERROR_INIT;
        const char *text = NULL;
        cbx_call *call = NULL;
        size_t length = 0;
        int r;

        if (!asked || buffer_printf(&input, "%s\n{}", asked) < 0)
                return error_oom(error);
        spec.argv = (const char *const *)question->function->argv;
        spec.cwd = question->directory;
        spec.input = input.data;
        spec.input_length = input.length;
        spec.result_mode = CBX_RESULT;
        spec.result_limit = MIN(question->still->limits.result, (uint64_t)PYTHON_ANSWER_MAX);
        spec.capture_limit = MIN(question->still->limits.capture, (uint64_t)OUTPUT_MAX);
        spec.wall_limit = MIN(question->still->limits.wall, PYTHON_DESCRIBE_WALL);
        r = client_start(question->origin->warden, question->still, &spec, NULL, PLAN_BOXED, &call,
                         error);
        if (r == 0)
                r = cbx_wait(call, &report, error);
        if (r == 0)
                r = read_frames(&report.result, &text, &length, &said);
        if (r == 0 && !text)
                r = explain_end(&report, question->function->argv[0], &said);
        if (r == 0)
                r = json_parse(text, length, "what it says of its functions", PYTHON_ANSWER_MAX, 0,
                               &said, ret_answer);
        if (said.code < 0 && error)
                *error = said;
        cbx_report_free(&report);
        cbx_call_free(call);
        return r;
}

/* ---- What it says ---- */

/* A module that is missing may lie where only a path is to be named for it. */
static void hint_missing(const struct function *function, const char *name, cbx_error *error)
{
        static const char known[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                    "0123456789_";
        const char *slash = strrchr(function->source, '/');
        size_t length = strspn(name, known);
        char beside[PATH_MAX + 300];

        if (!slash && length > 0 && length < 200) { /* a module, which may be meant as a file */
                snprintf(beside, sizeof(beside), "%.*s.py", (int)length, name);
                if (access(beside, F_OK) == 0) {
                        error_hint(error,
                                   "name the file, %s, or add where the module lies: "
                                   "--python-path .",
                                   beside);
                        return;
                }
        }
        if (slash && length > 0 && length < 200) {
                int n = snprintf(beside, sizeof(beside), "%.*s/%.*s",
                                 (int)(slash - function->source), function->source, (int)length,
                                 name);
                bool there = access(beside, F_OK) == 0;

                snprintf(beside + n, sizeof(beside) - (size_t)n, ".py");
                if (there || access(beside, F_OK) == 0) {
                        error_hint(error,
                                   "it lies beside the file: add that directory, \"path\": "
                                   "[\".\"] in a manifest, --python-path %.*s in a command",
                                   (int)(slash - function->source), function->source);
                        return;
                }
        }
        error_hint(
                error,
                "install it for %.200s, or name an interpreter that has it: \"interpreter\" in a "
                "manifest, --python in a command",
                function->argv[0]);
}

static int refuse_answer(const struct function *function, const json_t *trouble, cbx_error *error)
{
        const char *text = json_string_value(json_object_get(trouble, "text"));
        const char *missing = json_string_value(json_object_get(trouble, "missing"));
        const char *nearest = json_string_value(json_object_get(trouble, "nearest"));
        const char *source = json_string_value(json_object_get(trouble, "source"));
        const char *slash = strrchr(function->source, '/');

        if (!function->symbol)
                slash = NULL; /* whoever asked for all of it names the file */
        error_set(error, -EINVAL, "", "%.100s%s%.300s", slash ? slash + 1 : "", slash ? ": " : "",
                  text ? text : "it cannot be loaded");
        if (missing)
                hint_missing(function, missing, error);
        else if (nearest && *nearest)
                error_hint(error, "did you mean \"%.100s\"?", nearest);
        else if (source && *(source += strspn(source, " \t\r\n")))
                error_hint(error, "look at: %.*s", (int)MIN(strcspn(source, "\n"), 100U), source);
        return -EINVAL;
}

/* Its shape; what is in the tools is checked as what a manifest says is. */
static int check_answer(const struct function *function, const json_t *answer, cbx_error *error)
{
        const json_t *tools = json_object_get(answer, "tools"),
                     *left = json_object_get(answer, "left");
        const json_t *trouble = json_object_get(answer, "error"), *first;

        if (json_is_object(trouble))
                return refuse_answer(function, trouble, error);
        if (!json_is_array(tools) || !json_is_array(left))
                return error_set(error, -EBADMSG, "",
                                 "says nothing of its functions that could be understood");
        if (json_array_size(tools) > PYTHON_TOOLS_MAX || json_array_size(left) > PYTHON_TOOLS_MAX)
                return error_set(error, -E2BIG, "", "has more than %d functions", PYTHON_TOOLS_MAX);
        first = json_array_get(left, 0);
        if (function->symbol && json_array_size(tools) == 0) {
                const char *why = json_string_value(json_object_get(first, "why"));

                return error_set(error, -EINVAL, "", "%s cannot be a tool: %.300s",
                                 function->symbol, why ? why : "it is not described");
        }
        return 0;
}

/* The answer that is kept, else that of a box. */
static int ask(const struct question *question, cbx_error *error, json_t **ret_answer)
{
        unsigned char key[SHA256_SIZE];
        bool keyed = make_key(question->function, question->symbol, question->still, key) == 0;
        json_t *answer = keyed ? find_kept(question->origin->answers, key) : NULL;
        int r;

        if (answer) {
                *ret_answer = json_incref(answer);
                return 0;
        }
        r = ask_box(question, error, ret_answer);
        if (r == 0 && keyed)
                keep_answer(question->origin->answers, key, *ret_answer);
        return r;
}

/* One function of an answer that has all; NULL: it is not there. */
static json_t *pick(const json_t *answer, const char *symbol)
{
        json_t *tool;
        size_t i;

        json_array_foreach(json_object_get(answer, "tools"), i, tool)
        {
                const char *name = json_string_value(json_object_get(tool, "function"));

                if (name && strcmp(name, symbol) == 0)
                        return json_pack("{s:[O], s:[]}", "tools", tool, "left");
        }
        return NULL;
}

int python_describe(const struct tool *tool, const cbx_policy *policy,
                    const struct tool_origin *origin, cbx_error *error, json_t **ret_answer)
{
        const struct function *function = &tool->function;
        _cleanup_policy_ cbx_policy *fitted = NULL, *still = NULL;
        struct question question = { .function = function, .origin = origin };
        _cleanup_json_ json_t *answer = NULL;
        json_t *picked = NULL;
        char room[PATH_MAX];
        int r;

        if (!origin->warden)
                return error_set(error, -EINVAL, "", "there is no warden to ask it in a box");
        r = tool_fit_policy(tool, policy, origin, error, &fitted);
        if (r == 0)
                r = make_still(fitted, &still, error);
        if (r < 0 || !still)
                return r;
        question.still = still;
        question.directory = start_directory(fitted, room);
        r = ask(&question, error, &answer); /* other manifests may name the same file */
        if (r == 0 && function->symbol && !json_object_get(answer, "error"))
                picked = pick(answer, function->symbol);
        if (r == 0 && function->symbol && !picked && !json_object_get(answer, "error")) {
                json_decref(TAKE_PTR(answer));
                question.symbol = function->symbol;
                r = ask(&question, error, &answer);
        } else if (picked) {
                json_decref(answer);
                answer = picked;
        }
        if (r == 0)
                r = check_answer(function, answer, error);
        if (r == 0)
                *ret_answer = TAKE_PTR(answer);
        return r;
}
