/* SPDX-License-Identifier: MIT */
/*
 * callbox: a box of its own for every tool call.
 *
 * Conventions of this API
 *
 *   - Functions return 0 or a negative errno and fill a caller-owned cbx_error; both may be
 *     ignored separately, and the error argument may be NULL.
 *   - Out parameters come last, the error behind them; they stay untouched on failure. Strings and
 *     bytes are copied in.
 *   - Plain structs start with their size and have an INIT macro, so that they can grow: a program
 *     that was compiled with an older or a newer header works. Only a newer one that asks for what
 *     this library does not know is refused, with -E2BIG.
 *   - The library keeps no global state (but for whether main has called cbx_serve_functions),
 * starts no threads, installs no signal handlers, does not fork and never prints. What says nothing
 * else may be used from any thread.
 *
 * A program in five lines (more in libcallbox(3) and in examples/):
 *
 *     cbx_warden_open(NULL, &warden, &error);
 *     cbx_policy_set(&policy, "files.workspace", "\".\"", &error);
 *     cbx_spec spec = CBX_SPEC_INIT;
 *     spec.argv = (const char *[]){ "python3", "tool.py", NULL };
 *     cbx_run(warden, policy, &spec, &report, &error);
 */
#ifndef CALLBOX_H
#define CALLBOX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CBX_API __attribute__((visibility("default")))

/* The version of the library that is linked in, as "major.minor.patch". */
CBX_API const char *cbx_version(void);

/* ---- Errors --------------------------------------------------------------------------- */

/*
 * What went wrong, where, and what to do about it. `code` is the negative errno that the
 * function returned. `where` is the JSON path or field at fault, or the step of the set-up
 * that failed; empty where there is none. `hint` is the fix; empty where none is known.
 */
typedef struct cbx_error {
        size_t size;
        int code;
        char where[128];
        char text[384];
        char hint[384];
} cbx_error;

#define CBX_ERROR_INIT                                                                             \
        {                                                                                          \
                sizeof(cbx_error), 0, "", "", ""                                                   \
        }

/* ---- Policies ------------------------------------------------------------------------- */

/*
 * What a box may see, reach and use: callbox-policy(5). A policy never changes: it may be shared
 * between threads, and is freed when its last reference is dropped.
 */
typedef struct cbx_policy cbx_policy;

/* Read a policy from JSON text. An empty object is a safe policy. */
CBX_API int cbx_policy_parse(const char *text, size_t length, cbx_policy **ret_policy,
                             cbx_error *error);

/*
 * The setter: replace *policy by one in which the value at `path` ("limits.memory",
 * "files.read") is `json` ("\"256M\"", "[\"/srv/data\"]"). *policy may be NULL, the policy of an
 * empty object; the reference to the old one is dropped. Nothing changes on failure.
 */
CBX_API int cbx_policy_set(cbx_policy **policy, const char *path, const char *json,
                           cbx_error *error);

/* Write the effective policy, defaults included, as JSON; free the result with free(3). */
CBX_API int cbx_policy_print(const cbx_policy *policy, char **ret_text, cbx_error *error);

/* A number that is equal for policies that mean the same and, in practice, only for those. */
CBX_API uint64_t cbx_policy_hash(const cbx_policy *policy);

CBX_API cbx_policy *cbx_policy_ref(cbx_policy *policy);

/* Drop a reference; NULL is allowed. Returns NULL. */
CBX_API cbx_policy *cbx_policy_unref(cbx_policy *policy);

/* ---- Wardens -------------------------------------------------------------------------- */

/*
 * A connection to a warden: the small process that makes, keeps ready, watches and ends boxes. One
 * connection may be used by many threads at once. When its warden dies, every call it had ends
 * with the reason CBX_INTERNAL, and the next call starts a new one (or attaches again).
 *
 * A connection belongs to the process that opened it: after a fork the child opens its own.
 */
typedef struct cbx_warden cbx_warden;

#define CBX_NONE ((unsigned)-1)

/* 0 in any of these means the default. */
typedef struct cbx_warden_options {
        size_t size;
        /* The callbox program; default: $CALLBOX_WARDEN, else the one that was installed with this
         * library. */
        const char *program;
        /* Attach to the shared warden that listens here (`callbox warden --socket PATH`) rather
         * than start one. The fields below are then its own affair. */
        const char *socket;
        unsigned calls; /* running at once; default 1024 */
        unsigned queue; /* waiting behind them; default 4096 */
        /* Boxes kept ready for each policy, at most; default 16. CBX_NONE: each box is made when it
         * is asked for, which takes longer and holds no memory between calls. */
        unsigned prepared;
} cbx_warden_options;

#define CBX_WARDEN_OPTIONS_INIT                                                                    \
        {                                                                                          \
                sizeof(cbx_warden_options), NULL, NULL, 0, 0, 0                                    \
        }

/* Start a warden for this program alone, or attach to a shared one. */
CBX_API int cbx_warden_open(const cbx_warden_options *options, cbx_warden **ret_warden,
                            cbx_error *error);

/* The process id of the warden, or a negative errno. */
CBX_API int cbx_warden_pid(const cbx_warden *warden);

/* End every call that still runs, and the connection. NULL is allowed. Returns NULL. No other
 * thread may use the warden any more; its calls stay valid and report that they were ended. */
CBX_API cbx_warden *cbx_warden_close(cbx_warden *warden);

/* Compile a policy for this host and get boxes ready for it, so that the first call is as fast as
 * the others and a policy that cannot be kept here is refused now. Waits for the answer. */
CBX_API int cbx_prepare(cbx_warden *warden, cbx_policy *policy, cbx_error *error);

/* ---- Calls ---------------------------------------------------------------------------- */

/* What comes on stdin. */
enum {
        CBX_BYTES,   /* the given bytes; none by default */
        CBX_FROM_FD, /* what a descriptor gives */
};

/* What becomes of an output stream. */
enum {
        CBX_CAPTURE, /* head and tail of it are in the report */
        CBX_EVENTS,  /* the same, and it comes as events while the call runs */
        CBX_TO_FD,   /* it is written to a descriptor as it comes, and not kept */
        CBX_DISCARD, /* it is counted and dropped */
};

/* Whether there is a third output stream: descriptor 3 of the program, for its result alone. The
 * program finds the number in CALLBOX_RESULT_FD. It counts towards no limit but its own. */
enum {
        CBX_NO_RESULT,     /* there is none */
        CBX_RESULT,        /* it is in the report */
        CBX_RESULT_EVENTS, /* the same, and it comes as events while the call runs */
};

/* Whether boxes are kept ready in which the program runs already: one that waits for its input. */
enum {
        CBX_WARM_STARTED = 1,  /* it was started in each of them */
        CBX_WARM_FORKED,       /* it was started once, and forks itself into them */
        CBX_WARM_FORKED_LATER, /* the same; first calls do not wait for it, and start their own */
};

/*
 * The particulars of one call. Whatever is zero is safe: nothing on stdin, output captured, the
 * policy's own limits. A spec can only tighten its policy: a limit above the policy's is refused.
 */
typedef struct cbx_spec {
        size_t size;
        const char *id;                 /* comes back in the report */
        const char *const *argv;        /* NULL-terminated; the program, found along the PATH */
        const char *shell;              /* instead of argv: text for /bin/sh -c */
        const char *const *environment; /* NAME=VALUE, NULL-terminated; added to the policy's */
        const char *cwd;                /* in the box; default: the policy's */
        int input_mode;                 /* CBX_BYTES: `input`; CBX_FROM_FD: `input_fd` */
        const void *input;
        size_t input_length;
        int input_fd;                 /* what the program does not read from it stays there */
        int output_mode, errors_mode; /* CBX_CAPTURE ...: what becomes of stdout and stderr */
        int output_fd, errors_fd;     /* for CBX_TO_FD */
        /* 0: the policy's own */
        double wall_limit, cpu_limit; /* seconds */
        uint64_t memory_limit, process_limit, file_size_limit, open_files_limit;
        uint64_t output_limit;  /* bytes of stdout and stderr together; then the call is ended */
        uint64_t capture_limit; /* bytes kept of each */
        int explain;            /* not 0: list refused paths and connections in the report */
        int sanitize;           /* not 0: the output, passed on or kept, cannot steer a terminal */
        int result_mode;        /* CBX_NO_RESULT ...: whether there is a descriptor 3 */
        /* CBX_WARM_STARTED ...: the program is one that waits for its input. Boxes are kept
         * ready in which it runs already: for this argv, environment, cwd and result channel. The
         * rest may differ from call to call; a call with a tighter limit that only the box can
         * enforce (cpu, memory, processes, file size, open files) starts its program anew. */
        int warm;
        uint64_t result_limit; /* bytes kept of the result; 0: the policy's own */
        /* Not 0, for the call of a tool that is a function: its result is neither parsed nor
         * copied, only checked where there is an output schema; cbx_report_part has it as it is. */
        int raw;
        /* Of calls of tools alone (callbox-manifest(5)). */
        int approved;        /* not 0: whoever decides has said yes to what the tool asks for */
        const char *answers; /* JSON: what was answered to the tool, in CALLBOX_ANSWERS */
        double cpus_limit;   /* processors' worth of time; 0: the policy's own */
} cbx_spec;

#define CBX_SPEC_INIT                                                                              \
        {                                                                                          \
                sizeof(cbx_spec), NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, 0, 0, 0, 0, 0, 0, 0,   \
                        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, 0                             \
        }

/*
 * In a program that is started with CBX_WARM_FORKED: when it has got everything ready, it waits
 * here for its calls. This returns 1 in a process of each call's own, forked from this one, with
 * nothing open but descriptors 0 to 2, and 3 where there is a result channel; and 0 at once in a
 * program that was started for one call. It must have one thread, and hold nothing that its calls
 * may not.
 */
CBX_API int cbx_await_call(cbx_error *error);

/* Why a call ended. It comes from the warden alone, never from an exit code. */
typedef enum cbx_reason {
        CBX_EXITED,
        CBX_SIGNALED,
        CBX_TIMEOUT,
        CBX_CPU,
        CBX_MEMORY,
        CBX_PIDS,
        CBX_OUTPUT,
        CBX_DENIED,
        CBX_CANCELLED,
        CBX_SETUP,    /* the call could not be started; the error says why */
        CBX_INTERNAL, /* the warden or the box's init died; the error says what is known */
} cbx_reason;

/* "exited", "signaled", ...; NULL for what is no reason. */
CBX_API const char *cbx_reason_name(int reason);

/* What is kept of a stream. When `omitted` is not 0, that many bytes are missing between the first
 * `head` bytes and the rest. A NUL stands behind the last byte. */
typedef struct cbx_output {
        const char *data;
        size_t length, head;
        uint64_t total, omitted;
} cbx_output;

#define CBX_OUTPUT_INIT                                                                            \
        {                                                                                          \
                NULL, 0, 0, 0, 0                                                                   \
        }

/*
 * What came of a call. Everything that is pointed to belongs to the report and goes with
 * cbx_report_free.
 */
typedef struct cbx_report {
        size_t size;
        int reason;                    /* a cbx_reason */
        int code;                      /* of CBX_EXITED; -1 otherwise */
        int signal;                    /* of CBX_SIGNALED; 0 otherwise */
        const char *id;                /* of the spec, or NULL */
        const char *text;              /* one sentence on why the call ended */
        const cbx_error *error;        /* of CBX_SETUP and CBX_INTERNAL; NULL otherwise */
        cbx_output output, errors;     /* stdout and stderr */
        uint64_t started_at;           /* nanoseconds since 1970, UTC */
        uint64_t setup_time;           /* nanoseconds until the program was started ... */
        uint64_t run_time;             /* ... and from there until it ended */
        uint64_t cpu_user, cpu_system; /* nanoseconds, whole tree */
        uint64_t memory_peak;          /* bytes, whole tree */
        uint64_t processes_peak;
        uint64_t bytes_in, bytes_out; /* of stdin; of stdout and stderr */
        void *owner;                  /* private */
        cbx_output result;            /* what came on descriptor 3, if there was one */
} cbx_report;

#define CBX_REPORT_INIT                                                                            \
        {                                                                                          \
                sizeof(cbx_report), 0, -1, 0, NULL, NULL, NULL, { NULL, 0, 0, 0, 0 },              \
                        { NULL, 0, 0, 0, 0 }, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, CBX_OUTPUT_INIT     \
        }

/* An operation that was refused. */
typedef struct cbx_denial {
        const char *kind;   /* "syscall", "file", "space", "connect", "bind", "protected" */
        const char *what;   /* its name, path or address; * at the end: several of them */
        const char *error;  /* what the program was told: "EPERM" */
        uint64_t count;     /* how often */
        const char *allow;  /* the option of `callbox run` that allows it; may be empty */
        const char *policy; /* the line of a policy that does, as JSON; may be empty */
} cbx_denial;

/* One named thing that is enforced, or not. */
typedef struct cbx_guarantee {
        const char *name;
        int enforced;
        const char *by;  /* by what; or why it is not */
        int required;    /* of cbx_capabilities alone: the policy runs nothing without it ... */
        const char *fix; /* ... and how to get one that is not enforced; may be empty */
} cbx_guarantee;

/* NULL-terminated lists, which belong to the report; NULL when memory ran out. They are made when
 * they are first asked for: a report is used by one thread at a time. */
CBX_API const cbx_denial *const *cbx_report_denials(const cbx_report *report);
CBX_API const cbx_guarantee *const *cbx_report_guarantees(const cbx_report *report);
CBX_API const char *const *cbx_report_warnings(const cbx_report *report);

/* The whole report as JSON, as `callbox run --json` prints it; free it with free(3). */
CBX_API int cbx_report_print(const cbx_report *report, char **ret_text, cbx_error *error);

/* The exit code with which `callbox run` tells the same to a shell. */
CBX_API int cbx_report_exit_code(const cbx_report *report);

/* Free what the report points to and set it back to CBX_REPORT_INIT. NULL is allowed. */
CBX_API void cbx_report_free(cbx_report *report);

/* Start a call, wait for its end. A call that fails is a report; what is returned is only whether
 * there is one. `report` must be CBX_REPORT_INIT or have been freed. */
CBX_API int cbx_run(cbx_warden *warden, cbx_policy *policy, const cbx_spec *spec,
                    cbx_report *report, cbx_error *error);

/* A live call. It may move between threads but is used by one at a time; only cbx_kill and
 * cbx_signal may be called from anywhere, until it is freed. */
typedef struct cbx_call cbx_call;

/* Start a call and return at once. A policy or a program that is at fault shows in the report. */
CBX_API int cbx_start(cbx_warden *warden, cbx_policy *policy, const cbx_spec *spec,
                      cbx_call **ret_call, cbx_error *error);

/* The pollable descriptor: readable when cbx_step has something to tell. It belongs to the call. */
CBX_API int cbx_call_fd(const cbx_call *call);

enum {
        CBX_EVENT_NONE,   /* nothing now: wait until the descriptor is readable */
        CBX_EVENT_OUTPUT, /* a piece of stdout, for CBX_EVENTS */
        CBX_EVENT_ERRORS, /* a piece of stderr */
        CBX_EVENT_ENDED,  /* the report is there: cbx_wait returns it at once */
        CBX_EVENT_RESULT, /* a piece of the result, for CBX_RESULT_EVENTS */
        /* Of tools, for CBX_RESULT_EVENTS; `data` is their text. */
        CBX_EVENT_PROGRESS, /* so much of the work is done */
        CBX_EVENT_LOG,      /* a line for a log */
};

/* `data` is good until the next call of cbx_step, cbx_wait or cbx_call_free. */
typedef struct cbx_event {
        size_t size;
        int kind;
        const char *data;
        size_t length;
        double done, total; /* of CBX_EVENT_PROGRESS; total 0: not known. Of CBX_EVENT_ENDED total
                               is the bytes that the report has: with many, to take it is work */
        const char *level;  /* of CBX_EVENT_LOG: "debug", "info", "warning", "error" */
} cbx_event;

#define CBX_EVENT_INIT                                                                             \
        {                                                                                          \
                sizeof(cbx_event), 0, NULL, 0, 0, 0, NULL                                          \
        }

/* Take the next event. Never waits. A caller that does not take output makes the program wait, and
 * nobody else. */
CBX_API int cbx_step(cbx_call *call, cbx_event *event, cbx_error *error);

/* Wait for the end and take the report, once; -EALREADY after that. Output events that were not
 * taken are dropped (the report has what was captured). */
CBX_API int cbx_wait(cbx_call *call, cbx_report *report, cbx_error *error);

/* End the call: its report says CBX_CANCELLED, unless it was over already. Idempotent. Waits only
 * where more signals are on their way than the warden has read. */
CBX_API int cbx_kill(cbx_call *call);

/* Send a signal to the program; SIGINT, SIGQUIT and SIGHUP to its process group, as a terminal
 * would. One that comes before it was started or after its end is lost; a program that is still
 * there 5 seconds after SIGTERM or SIGHUP is ended as by cbx_kill, and so is a call whose output
 * nobody has taken by then. -EAGAIN when there are more signals on their way than can be held. */
CBX_API int cbx_signal(cbx_call *call, int signal);

/* End the call if it still runs, and forget it. NULL is allowed. Returns NULL. */
CBX_API cbx_call *cbx_call_free(cbx_call *call);

/* ---- Capabilities --------------------------------------------------------------------- */

/* What calls under a policy have here, before there is one. */
typedef struct cbx_capability_list {
        size_t size;
        const char *backend; /* that keeps them: "namespaces", "landlock", "host" ... */
        int met;             /* calls are not refused: what is required is enforced, or given up */
        const cbx_guarantee *const *guarantees; /* those that a report has; NULL-terminated */
        const char *const *warnings;            /* the same */
        void *owner;                            /* private; all of it goes with the list */
} cbx_capability_list;

#define CBX_CAPABILITY_LIST_INIT                                                                   \
        {                                                                                          \
                sizeof(cbx_capability_list), NULL, 0, NULL, NULL, NULL                             \
        }

/* Ask the warden; a policy at fault is an error as of cbx_prepare. Waits for the answer. */
CBX_API int cbx_capabilities(cbx_warden *warden, cbx_policy *policy, cbx_capability_list *ret_list,
                             cbx_error *error);
CBX_API void cbx_capabilities_free(cbx_capability_list *list);

/* As JSON, to be freed with free(3): a list; and what calls can be run by here, an array of objects
 * with a name, whether it is available, its guarantees, and where it is not why and the fix. */
CBX_API int cbx_capabilities_print(const cbx_capability_list *list, char **ret_json,
                                   cbx_error *error);
CBX_API int cbx_backends(cbx_warden *warden, char **ret_json, cbx_error *error);

/* ---- Modes, routes and backends ------------------------------------------------------- */

/*
 * Whether tools run in boxes is said by the application, which opens the toolbox with a mode, rules
 * and backends: libcallbox-tools(3). A manifest can only tighten that; nothing else has a say.
 *
 * The mode: in a box or not at all; without one, and report and log warn; without one.
 */
enum { CBX_STRICT, CBX_WARN, CBX_OFF };

/* What a rule makes of a tool: as the mode says, and so is one without a rule; it runs without a
 * box in every mode; it does not run. */
enum { CBX_BOXED, CBX_ELEVATED, CBX_REFUSED };

/* An array of them ends with one without a pattern; of those that fit the first
 * counts, but for one that refuses, which counts wherever it stands. Does not grow. */
typedef struct cbx_rule {
        const char *pattern; /* the name of a tool, or one as of fnmatch(3): "git_*" */
        int means;           /* CBX_BOXED ... */
        const char *backend; /* of CBX_BOXED: what runs them; NULL: the toolbox's */
} cbx_rule;

/* Where a call goes. Texts are good as long as the rules and the toolbox are. */
enum { CBX_TO_BOX, CBX_TO_HOST, CBX_TO_NOBODY };
typedef struct cbx_decision {
        size_t size;
        int route;           /* CBX_TO_BOX ... */
        const char *reason;  /* one sentence */
        const char *backend; /* that runs it: "auto", "host", ...; "" of CBX_TO_NOBODY */
} cbx_decision;

#define CBX_DECISION_INIT                                                                          \
        {                                                                                          \
                sizeof(cbx_decision), 0, NULL, NULL                                                \
        }

/* By a mode and rules alone, which may be NULL. */
CBX_API int cbx_decide(int mode, const cbx_rule *rules, const char *tool,
                       cbx_decision *ret_decision, cbx_error *error);

/* What a backend of the application's is asked to run: what a box would, with these variables
 * beside the policy's and this on stdin. A limit of 0 is none. The library's own struct: it grows.
 */
typedef struct cbx_order {
        const char *tool, *arguments; /* JSON, checked */
        const char *const *argv, *const *environment;
        const void *input;
        size_t input_length;
        cbx_policy *policy;
        double wall_limit, cpu_limit, cpus_limit; /* seconds */
        uint64_t memory_limit, process_limit, file_size_limit, open_files_limit;
        uint64_t output_limit, capture_limit;
} cbx_order;

/* What it tells, each 0 or a negative errno: bytes, which are copied; why it ended, a cbx_reason,
 * with the exit code or the signal; and beforehand which guarantees it keeps, and by what. */
typedef struct cbx_outcome cbx_outcome;
typedef struct cbx_promises cbx_promises;
CBX_API int cbx_outcome_output(cbx_outcome *outcome, const void *data, size_t length);
CBX_API int cbx_outcome_errors(cbx_outcome *outcome, const void *data, size_t length);
CBX_API int cbx_outcome_end(cbx_outcome *outcome, int reason, int code_or_signal);
CBX_API int cbx_outcome_warn(cbx_outcome *outcome, const char *text);
CBX_API int cbx_promise(cbx_promises *promises, const char *guarantee, const char *by);

/* A backend runs the commands of tools elsewhere, in a container say. `run` is called by the thread
 * that starts a call, which waits for it. Each returns 0, or a negative errno, with why and what to
 * do in the error; then there is no call, nor where it does not promise what a policy requires. */
typedef struct cbx_backend {
        size_t size;
        const char *name;
        void *userdata;
        int (*is_available)(void *userdata, cbx_error *error);
        int (*capabilities)(void *userdata, cbx_policy *policy, cbx_promises *promises);
        int (*run)(void *userdata, const cbx_order *order, cbx_outcome *outcome, cbx_error *error);
} cbx_backend;

#define CBX_BACKEND_INIT                                                                           \
        {                                                                                          \
                sizeof(cbx_backend), NULL, NULL, NULL, NULL, NULL                                  \
        }

/* The caller's log, told by the thread that starts a call. Level: "warning". */
typedef void cbx_log(void *userdata, const char *level, const char *text);

/* ---- Tools ---------------------------------------------------------------------------- */

/*
 * A tool is a named, described callable: a command, or a C function. A toolbox holds tools, checks
 * the arguments of a call against their schema, runs each call in a box of its own, and checks the
 * result: libcallbox-tools(3), and callbox-manifest(5) for tools that are written as JSON.
 *
 * A toolbox may be used by many threads at once. It needs its warden as long as it is used.
 */
typedef struct cbx_toolbox cbx_toolbox;

typedef struct cbx_toolbox_options {
        size_t size;
        cbx_policy *policy;   /* of tools that have none of their own; default: an empty one */
        const char *policies; /* folder of policies that manifests name; default: "policies" in the
                                 directory that is loaded */
        unsigned calls;       /* of all its tools at once; 0: as many as the warden allows */
        const char *server;   /* program that serves functions of shared objects; default:
                                 $CALLBOX_FUNCTIONS, else the one that was installed */
        /* Where its tools run. All of it is copied but for the backends' userdata. */
        int mode;                           /* CBX_STRICT ... */
        const cbx_rule *rules;              /* NULL: none */
        const cbx_backend *const *backends; /* that rules may name, NULL-terminated; NULL: none */
        const char *backend;                /* of tools whose rule names none; default: "auto" */
        cbx_log *log;                       /* told what runs without a box that should not */
        void *log_userdata;
        const char *python; /* interpreter of Python functions; default: that of the active virtual
                               environment, else python3 along the PATH */
        const char *const *python_path; /* directories in which functions of cbx_toolbox_load_python
                                           find modules, before what is installed; shown to them;
                                           NULL-terminated */
} cbx_toolbox_options;

#define CBX_TOOLBOX_OPTIONS_INIT                                                                   \
        {                                                                                          \
                sizeof(cbx_toolbox_options), NULL, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL, \
                        NULL, NULL                                                                 \
        }

CBX_API int cbx_toolbox_open(cbx_warden *warden, const cbx_toolbox_options *options,
                             cbx_toolbox **ret_toolbox, cbx_error *error);

/* Calls that run go on. NULL is allowed. Returns NULL. */
CBX_API cbx_toolbox *cbx_toolbox_close(cbx_toolbox *toolbox);

/* What a function has to say; it lives as long as the function runs. */
typedef struct cbx_reply cbx_reply;

/* Each returns 0 or a negative errno: the caller is gone, or has heard enough. Text is UTF-8. */
CBX_API int cbx_reply_result(cbx_reply *reply, const char *json,
                             size_t length);                    /* the last counts */
CBX_API int cbx_reply_text(cbx_reply *reply, const char *text); /* for reading; pieces are joined */
CBX_API int cbx_reply_error(cbx_reply *reply, const char *text); /* why it fails */
CBX_API int cbx_reply_progress(cbx_reply *reply, double done, double total, const char *text);
/* level: "debug", "info", "warning" or "error" */
CBX_API int cbx_reply_log(cbx_reply *reply, const char *level, const char *text);

/*
 * A function that is a tool. Arguments are JSON text, checked against the input schema, with a NUL
 * behind them. Returns 0, or anything else when it failed. It runs in a process of its own, in a
 * box: what it prints is captured, what it changes in memory is gone afterwards, and where it
 * crashes the call says so.
 */
typedef int cbx_function(const char *arguments, size_t length, cbx_reply *reply);

/*
 * A program that adds functions to a toolbox calls this first in main, before it starts threads or
 * opens anything: boxes start the same program again, and there this call runs the function and
 * does not return. Everywhere else it returns at once.
 */
CBX_API void cbx_serve_functions(int argc, char **argv);

/* Texts are copied. A size of 0 stands for that of the header the program was compiled with. */
typedef struct cbx_tool {
        size_t size;
        const char *name;          /* letters, digits, _ - . */
        const char *title;         /* may be NULL, as the others but name, input_schema and run */
        const char *description;   /* what it does, for whoever chooses among tools */
        const char *input_schema;  /* JSON Schema 2020-12 of the arguments, an object */
        const char *output_schema; /* of the result */
        const char *annotations;   /* hints of MCP, a JSON object: {"readOnlyHint": true} */
        cbx_function *run;
        cbx_policy *policy; /* default: the toolbox's */
        unsigned calls;     /* at once; 0: no bound of its own */
        int defaults;       /* not 0: missing arguments get the default that the schema names */
} cbx_tool;

#define CBX_TOOL_INIT                                                                              \
        {                                                                                          \
                sizeof(cbx_tool), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0             \
        }

/* Add a tool, or replace the one of that name: a C function, or a manifest (JSON text). */
CBX_API int cbx_toolbox_add_function(cbx_toolbox *toolbox, const cbx_tool *tool, cbx_error *error);
CBX_API int cbx_toolbox_add(cbx_toolbox *toolbox, const char *manifest, size_t length,
                            cbx_error *error);
/* A manifest that names no policy, with this one in place of the toolbox's: it keeps what its paths
 * led to when it was made. */
CBX_API int cbx_toolbox_add_with(cbx_toolbox *toolbox, const char *manifest, size_t length,
                                 cbx_policy *policy, cbx_error *error);

/* Add every manifest of a directory (*.json) and follow its changes from then on, as
 * cbx_toolbox_step is called. A manifest with mistakes is an event, not a failure. */
CBX_API int cbx_toolbox_load(cbx_toolbox *toolbox, const char *directory, cbx_error *error);
/* All tools of a Python file, or of a module: functions that a decorator marks, else every public
 * one that has type hints or a docstring. Nothing of it is loaded outside of a box. What is left
 * out is an event; a file that cannot be loaded is a failure, and later, when it has changed, an
 * event. */
CBX_API int cbx_toolbox_load_python(cbx_toolbox *toolbox, const char *source, cbx_error *error);

/* -ENOENT when there is none of that name. */
CBX_API int cbx_toolbox_remove(cbx_toolbox *toolbox, const char *name, cbx_error *error);

/* One tool, or an array of those whose name or description holds the query (NULL: all), case not
 * counting, in the order of their names; as JSON in the shape of MCP, to be freed with free(3). */
CBX_API int cbx_toolbox_get(cbx_toolbox *toolbox, const char *name, char **ret_json,
                            cbx_error *error);
CBX_API int cbx_toolbox_list(cbx_toolbox *toolbox, const char *query, char **ret_json,
                             cbx_error *error);

/* Where a call of this tool would go, and what it has there. */
CBX_API int cbx_toolbox_decide(cbx_toolbox *toolbox, const char *name, cbx_decision *ret_decision,
                               cbx_error *error);
CBX_API int cbx_toolbox_capabilities(cbx_toolbox *toolbox, const char *name,
                                     cbx_capability_list *ret_list, cbx_error *error);
/* As cbx_backends, with those that were added; and whether one can be used, else why not. */
CBX_API int cbx_toolbox_backends(cbx_toolbox *toolbox, char **ret_json, cbx_error *error);
CBX_API int cbx_toolbox_backend_available(cbx_toolbox *toolbox, const char *backend,
                                          cbx_error *error);

/*
 * Call a tool with JSON arguments (NULL: an empty object). The call is one like any other: events
 * and report come by cbx_step and cbx_wait, cbx_report_result tells what came of it. An unknown
 * tool and bad arguments are such results, without a box. With cbx_toolbox_start the spec may name
 * an id, limits that tighten the tool's policy, explain, sanitize, raw, the modes of the output,
 * approved and answers; nothing else.
 */
CBX_API int cbx_toolbox_call(cbx_toolbox *toolbox, const char *name, const char *arguments,
                             cbx_call **ret_call, cbx_error *error);
CBX_API int cbx_toolbox_start(cbx_toolbox *toolbox, const char *name, const char *arguments,
                              const cbx_spec *spec, cbx_call **ret_call, cbx_error *error);

/* What came of the call of a tool. */
typedef struct cbx_result {
        const char *tool;
        int ok;              /* it did what it promises */
        const char *output;  /* its result, as JSON text; NULL: there is none */
        const char *text;    /* what it wrote as text, else its result for reading; may be empty */
        const char *error;   /* why it failed; NULL when ok or denied */
        int denied;          /* it was ended for something the policy refuses ... */
        const char *reason;  /* ... namely this; NULL otherwise */
        uint64_t duration;   /* nanoseconds, from the start of its box to its end */
        uint64_t started_at; /* nanoseconds since 1970, UTC */
        /* Where it went, "box", "host" or "nobody", and why; NULL where the toolbox has neither a
         * mode nor rules, and everything goes to a box. */
        const char *route, *route_reason;
} cbx_result;

/* A mistake in the arguments, or in a result that breaks the tool's own output schema. */
typedef struct cbx_mistake {
        const char *path;    /* JSON pointer: "/top"; empty: the whole */
        const char *keyword; /* of the schema */
        const char *text;
} cbx_mistake;

/* They belong to the report; NULL when it is not that of a tool, or memory ran out. */
CBX_API const cbx_result *cbx_report_result(const cbx_report *report);
CBX_API const cbx_mistake *const *cbx_report_mistakes(const cbx_report *report);

/* A part of a function's result, as it was written. It belongs to the report. */
typedef struct cbx_part {
        size_t size;
        const void *data;
        size_t length;
        /* A large one lies in a memory file, and can be read there without being mapped: `fd` and
         * where in it. -1: it is small. */
        int fd;
        uint64_t offset;
} cbx_part;

#define CBX_PART_INIT                                                                              \
        {                                                                                          \
                sizeof(cbx_part), NULL, 0, -1, 0                                                   \
        }

/* Part 0 is the JSON text, without a NUL behind it; those from 1 on are the bytes that the function
 * has put beside it (callbox-manifest(5)). -ENOENT behind the last. */
CBX_API int cbx_report_part(const cbx_report *report, size_t index, cbx_part *ret_part);

enum { CBX_TOOL_NONE, CBX_TOOL_ADDED, CBX_TOOL_REMOVED, CBX_TOOL_UPDATED, CBX_TOOL_BROKEN };

/* A change. Text is good until the next call of cbx_toolbox_step. */
typedef struct cbx_tool_event {
        size_t size;
        int kind;
        const char *tool; /* its name; of CBX_TOOL_BROKEN it may be empty */
        const char *file; /* the manifest; empty: the change was made by a call */
        const char *text; /* of CBX_TOOL_BROKEN: every mistake, a line each */
} cbx_tool_event;

#define CBX_TOOL_EVENT_INIT                                                                        \
        {                                                                                          \
                sizeof(cbx_tool_event), 0, NULL, NULL, NULL                                        \
        }

/* The pollable descriptor of changes, and the next of them: for one thread. Never waits. A broken
 * manifest leaves the last good version of its tool in place. */
CBX_API int cbx_toolbox_fd(const cbx_toolbox *toolbox);
CBX_API int cbx_toolbox_step(cbx_toolbox *toolbox, cbx_tool_event *event, cbx_error *error);

#ifdef __cplusplus
}
#endif

#endif
