/* SPDX-License-Identifier: MIT */
/*
 * Tools: named, described callables, and the toolbox that holds them.
 *
 *   manifest (JSON) ─┐                            ┌─ template ─▶ argv of a command
 *                    ├─▶ tool ─▶ call ─ arguments ┤                                 ─▶ box
 *   C function ──────┘                            └─ request ──▶ function server
 *
 *   box ─▶ report ─ messages, stdout ─▶ outcome: result, error or denial, checked
 *
 * A tool is frozen when it is made: a call keeps the version it began with. All of this runs in the
 * caller's process and starts nothing there; the warden starts the boxes, holds the bounds on calls
 * at once, and keeps the queue. Nothing that a tool prints or writes is trusted: the reader of
 * messages, the JSON parser and the schema check stand between it and the caller.
 */
#ifndef TOOL_TOOL_H
#define TOOL_TOOL_H

#include <jansson.h>

#include "client/client.h"
#include "policy/json_read.h"
#include "schema/schema.h"
#include "tool/function.h"
#include "tool/message.h"
#include "tool/route.h"

/* ---- Mistakes in a manifest ---- */

struct tool_mistake {
        char *where; /* JSON path; may be empty */
        char *text, *hint;
};

struct tool_mistakes {
        struct tool_mistake *items;
        size_t n;
        bool cut;    /* there are more than are listed */
        bool failed; /* memory ran out: there may be more */
};

#define TOOL_MISTAKES_MAX 64
#define TOOL_MISTAKES_INIT                                                                         \
        {                                                                                          \
                NULL, 0, false, false                                                              \
        }

void tool_mistakes_free(struct tool_mistakes *mistakes);
/* Note an error and go on; the error is empty again afterwards. */
void tool_mistake_add(struct tool_mistakes *mistakes, cbx_error *error);
/* The first of them as an error, which says how many more there are. */
int tool_mistakes_error(const struct tool_mistakes *mistakes, cbx_error *error);
#define _cleanup_mistakes_ _cleanup_(tool_mistakes_free)

/* Note every key of an object that is none of these; -EINVAL when there are some. */
int tool_mistakes_keys(json_t *object, const struct json_place *at, struct json_words keys,
                       struct tool_mistakes *mistakes);

/* Read a part of a manifest with a reader that stops at the first mistake. Then, to find the
 * others, again without what was wrong (into `to` NULL). `prefix` is where the part is. */
typedef int tool_part_reader(json_t *part, cbx_error *error, void *to);
int tool_mistakes_find(json_t *part, const char *prefix, tool_part_reader *read, void *to,
                       struct tool_mistakes *mistakes);

/* ---- The argv of a command (template.c) ---- */

struct template;

/* Read a list of elements. Every mistake is noted. `schema` is the tool's inputSchema, in which a
 * placeholder must name a property; `directory` is where files beside the manifest are. */
struct template_context {
        const json_t *schema;
        bool defaults;         /* missing arguments get their default */
        const char *directory; /* NULL: there is none */
        struct tool_mistakes *mistakes;
};
#define TEMPLATE_ARGUMENT_MAX (128 * KIB - 1) /* the kernel's own bound on one string */
int template_read(json_t *list, const struct json_place *at, const struct template_context *context,
                  struct template **ret_template);
struct template *template_free(struct template *template);
/* Files of the host that it names: to be shown in the box. */
const char *const *template_files(const struct template *template);
/* Its first element, where that is fixed by the manifest; else NULL. */
const char *template_program(const struct template *template);
/* Its words that no argument has a part in, added to a list. */
int template_words(const struct template *template, char ***list);
/* Each value becomes one argument, added to a NULL-terminated list. Refuses what could become an
 * option, cannot be an argument, or is too long: every such value is noted, by its JSON pointer. */
int template_expand(const struct template *template, const json_t *arguments,
                    struct tool_mistakes *mistakes, char ***argv);

/* ---- A tool ---- */

enum tool_kind { TOOL_COMMAND, TOOL_SHELL, TOOL_FUNCTION };
enum tool_output { TOOL_TEXT, TOOL_JSON, TOOL_LINES };
enum tool_arguments {
        TOOL_ARGUMENTS_NOT, /* only where the template names them */
        TOOL_ARGUMENTS_STDIN,
        TOOL_ARGUMENTS_ENVIRONMENT,
        TOOL_ARGUMENTS_BOTH,
};

enum { TOOL_NEEDS_ELICITATION = 1 << 0, TOOL_NEEDS_SAMPLING = 1 << 1, TOOL_NEEDS_ROOTS = 1 << 2 };
enum tool_task { TOOL_TASK_NEVER, TOOL_TASK_OPTIONAL, TOOL_TASK_REQUIRED };

/* What has to be approved before a call is made. */
struct tool_ask {
        bool asks;
        char *message;      /* for whoever decides */
        char *when;         /* an argument: calls that have it ask; NULL: all of them */
        json_t *written;    /* the policy of calls that were approved, as the manifest has it ... */
        cbx_policy *policy; /* ... and with what the tool needs; NULL: the tool's own */
};

struct tool {
        unsigned refs;
        json_t *document; /* as it is listed: the shape of MCP */
        const char *name; /* in the document */
        enum tool_kind kind;
        struct template *template; /* argv, or the parameters of the shell */
        char *shell;
        struct function function;
        enum tool_arguments arguments;
        enum tool_output output;
        int success[16]; /* exit codes that are none of a failure */
        size_t n_success;
        bool defaults;  /* fill in missing arguments */
        unsigned calls; /* at once; 0: no bound of its own */
        uint64_t key;   /* of that bound, in the warden */
        struct schema *input, *result;
        cbx_policy *policy; /* with all that the tool itself needs */
        struct tool_ask ask;
        enum tool_route route; /* what its manifest says: it can only tighten */
        bool returns_content;  /* its result is one of MCP: content blocks, or questions */
        enum tool_task task;
        unsigned needs;   /* TOOL_NEEDS_...: what its caller must be able to be asked for */
        bool input_first; /* what it asks for, it asks before there is a task */
        unsigned char digest[SHA256_SIZE]; /* of its manifest; of a function zero */
        /* Where it comes from, for a toolbox that watches. */
        char *file;        /* name in its directory; NULL: a call added it */
        char *policy_name; /* NULL: inline, or none */
        char **inputs;     /* files that say what it does, and links to them, each by its canonical
                              place (tool_inputs.c) */
        char **found;      /* the same, of what is looked for along PATH */
        const cbx_policy *base; /* the toolbox's, where it names none of its own: compared only */
};

/* What a manifest is read with. */
struct tool_origin {
        const char *directory; /* of the files it names; NULL: they must be absolute */
        const char *policies;  /* folder of policies; NULL: there is none */
        const char *server;    /* program that serves functions of shared objects */
        const char *python;    /* interpreter of Python functions; NULL: the usual one */
        cbx_warden *warden;    /* that makes the boxes in which Python files are asked; or NULL */
        struct python_answers *answers; /* what they said before; or NULL */
        const json_t *described;        /* what is known of the function already; or NULL */
        char ***sources;                /* Python files that are named are added here; or NULL */
        cbx_policy *policy;             /* of tools that name none */
        char *const *hold; /* paths that no tool may write: held in its policies; or NULL */
        char *const *hide; /* ... nor see; or NULL */
};

/* An empty one, with a reference. */
struct tool *tool_new(void);
struct tool *tool_ref(struct tool *tool);
struct tool *tool_unref(struct tool *tool);
static inline void tool_unrefp(struct tool **tool)
{
        tool_unref(*tool);
}
#define _cleanup_tool_ _cleanup_(tool_unrefp)

/* Its members of MCP, which the tool keeps, and the schemas among them (tool.c). Mistakes are
 * noted; returns -EINVAL when there were some. */
int tool_describe(struct tool *tool, json_t *document, struct tool_mistakes *mistakes);
/* The policy that its calls run under: the given one, with the files that the tool itself needs and
 * room for its result. */
int tool_set_policy(struct tool *tool, const cbx_policy *policy, const struct tool_origin *origin,
                    cbx_error *error);
/* Only that policy. */
int tool_fit_policy(const struct tool *tool, const cbx_policy *policy,
                    const struct tool_origin *origin, cbx_error *error, cbx_policy **ret_policy);

/* ---- What tells a toolbox what to do (tool_inputs.c) ---- */

/* Note a file that says what the tool does. */
int tool_add_input(struct tool *tool, const char *path);
/* Add the places of each of these paths to a list, with the links on the way to it. */
int tool_add_ways(char ***list, char *const *paths);
/* The host's paths of what it runs by the words of its command, and where its program is looked for
 * along PATH; both to be freed (tool_words.c). */
int tool_list_words(const struct tool *tool, const cbx_policy *policy, char ***ret_paths,
                    char ***ret_found);
/* A canonical path, refused where calls of the tool could write it: -EPERM. */
struct inputs_mounts;
int tool_refuse_input(const struct tool *tool, const struct inputs_mounts *mounts, const char *what,
                      const char *path, const char *where, cbx_error *error);
/* May these two be in one toolbox? Neither may write what the other is made of, nor a link on the
 * way to a path of the other's policy; that may be the same tool. */
int tool_refuse_pair(const struct tool *tool, const struct tool *other,
                     const struct inputs_mounts *mounts, cbx_error *error);
/* Read a file whole, provided that it is one, and tell where it really is. */
int tool_read_input(const char *path, size_t most, char **ret_text, size_t *ret_length,
                    char **ret_real);

/* Has this call to be approved? (manifest_ask.c) */
bool tool_asks(const struct tool *tool, const json_t *arguments);

/* manifest.c: returns -EINVAL with at least one mistake, or -ENOMEM. */
int manifest_read(const char *text, size_t length, const struct tool_origin *origin,
                  struct tool_mistakes *mistakes, struct tool **ret_tool);
/* manifest_run.c: the part under "run". */
int manifest_read_run(json_t *run, const struct tool_origin *origin, struct tool *tool,
                      struct tool_mistakes *mistakes);
/* A policy within a manifest; the reader that tool_mistakes_find takes. Where `to` is not NULL, the
 * policy is put there. */
int manifest_read_policy(json_t *part, cbx_error *error, void *to);
/* manifest_ask.c: "ask", "returns", "needs" and "task". Mistakes are noted; -ENOMEM. */
int manifest_read_ask(json_t *manifest, struct tool *tool, struct tool_mistakes *mistakes);

/* ---- Arguments and outcome ---- */

#define TOOL_ARGUMENTS_MAX (16 * MIB)
#define TOOL_BAD_ARGUMENTS "the arguments are wrong"

/* Why there is no result: an object with "error", all mistakes in one sentence, and "mistakes"
 * (arguments.c). NULL when memory ran out. */
json_t *tool_refusal(const char *before, const struct schema_mistakes *mistakes);
json_t *tool_refusal_of(const char *before, const cbx_error *error);
json_t *tool_refusal_of_all(const char *before, const struct tool_mistakes *mistakes);

/* Parse, fill in and check. -EINVAL comes with a refusal. `ret_wide`: among them are integers of
 * more than 64 bits, which only the text has as they are. */
int arguments_read(const struct tool *tool, const char *text, size_t length, json_t **ret_arguments,
                   bool *ret_wide, json_t **ret_refusal);
/* The same of arguments that were parsed before, which stay as they are. */
int arguments_check(const struct tool *tool, json_t *given, json_t **ret_arguments,
                    json_t **ret_refusal);

/* What a finished call has come to: the "tool" member of its report (outcome.c). The parts of a
 * function's result are noted in the report. `raw`: it is not read, only its parts are wanted. */
json_t *outcome_judge(const struct tool *tool, struct report *report, bool raw);
#define OUTCOME_PARTS_MAX (64 * 1024U)
/* Of a call that did not get as far as a box. */
json_t *outcome_refused(const char *name, json_t *refusal);

#endif
