/* SPDX-License-Identifier: MIT */
/*
 * The inside of the server.
 *
 *   serve.c      the server, changes of the toolbox
 *   peer.c       peers and requests, and their ways to an end
 *   dispatch.c   from a message to a method; what every request and result must have
 *   hello.c      initialize, server/discover, ping, logging/setLevel
 *   list.c       tools/list
 *   listen.c     who is told of changes
 *   call.c       tools/call: a call from its request to its end
 *   ended.c      what is told of a call that has ended, for metrics and audit
 *   progress.c   what is told of a call while it runs
 *   content.c    what came of a call, as a result of MCP
 *   explain.c    what came of a call, in words
 *   ask.c        questions: to approve a call, or what a tool wants to know
 *   answer.c     answers, from wherever they come
 *   seal.c       state that is handed out and must come back unchanged
 *   task.c       calls whose result is asked for later
 */
#ifndef SERVE_SERVE_PARTS_H
#define SERVE_SERVE_PARTS_H

#include <event2/event.h>
#include <sys/queue.h>

#include "serve/keep.h"
#include "serve/serve.h"
#include "tool/toolbox.h"

#define META "io.modelcontextprotocol/"
#define TASKS_EXTENSION META "tasks"
#define SEAL_USED_MAX 4096
#define SERVE_ID_SIZE 32

struct serve {
        struct event_base *base;
        cbx_toolbox *toolbox;
        struct serve_options options;
        char *instructions;
        struct event *changes;
        TAILQ_HEAD(, serve_peer) peers;
        TAILQ_HEAD(, serve_task) tasks;
        TAILQ_HEAD(, serve_call) leaving; /* cancelled, and not told of yet */
        size_t n_peers, n_requests, n_calls, n_tasks;
        uint64_t serial;                   /* of calls, of questions and of what is sealed */
        unsigned char secret[SHA256_SIZE]; /* of this process: what was sealed before it is void */
        struct {
                uint64_t serial, expires;
        } used[SEAL_USED_MAX]; /* approvals that were made use of */
};

enum serve_level { LEVEL_DEBUG, LEVEL_INFO, LEVEL_WARNING, LEVEL_ERROR, LEVEL_NONE };

struct serve_peer {
        struct serve *serve;
        const struct serve_peer_ops *ops;
        void *context;
        char version[16];       /* legacy: what initialize agreed on; else empty */
        json_t *capabilities;   /* of the client, legacy */
        char *client;           /* its name; NULL: not told */
        enum serve_level level; /* of log lines that it wants, legacy */
        TAILQ_HEAD(, serve_request) requests;
        size_t n_requests;
        TAILQ_ENTRY(serve_peer) link;
};

struct serve_request {
        struct serve_peer *peer;
        struct serve_reply *reply; /* NULL: there is nobody to answer to any more */
        struct rpc_message message;
        bool modern;
        json_t *capabilities;    /* of the client; borrowed */
        struct serve_call *call; /* NULL: none, or it has become a task's */
        bool subscribed;         /* it is a subscription ... */
        bool listens;            /* ... for changes of tools */
        TAILQ_ENTRY(serve_request) link;
};

/* ---- peer.c ---- */

struct serve_request *request_new(struct serve_peer *peer, struct rpc_message *message,
                                  struct serve_reply *reply);
/* Answer, and forget the request. request_finish takes the result. */
void request_finish(struct serve_request *request, json_t *result);
void request_fail(struct serve_request *request, const struct rpc_failure *failure);
/* A notification or a question on the way; takes the text. False: it does not reach the client. */
bool request_send(struct serve_request *request, char *text);

/* ---- dispatch.c ---- */

/* Add to a result what every one has in this era. */
int result_complete(bool modern, json_t *result);

/* A method: 0 with a result, 1 where the answer comes later or has been given, -EINVAL with a
 * failure, or -ENOMEM. */
typedef int serve_method(struct serve_request *request, json_t **ret_result,
                         struct rpc_failure *failure);

serve_method serve_initialize, serve_discover, serve_ping, serve_set_level; /* hello.c */
serve_method serve_list;                                                    /* list.c */
serve_method serve_listen;                                                  /* listen.c */
serve_method serve_call;                                                    /* call.c */
serve_method serve_task_get, serve_task_update, serve_task_cancel;          /* task.c */

/* The level of a word; LEVEL_NONE: it is none. The eight of MCP become our four. */
enum serve_level level_of(const char *word);

/* ---- listen.c ---- */

/* The tools have changed: whoever wants to know is told. */
void listen_tell(struct serve *serve);
/* The result that ends a subscription well. */
json_t *listen_end(const struct serve_request *request);

/* ---- progress.c ---- */

struct progress {
        json_t *token;          /* borrowed from the request; NULL: not wanted */
        double done, total;     /* as told last */
        bool told;              /* something was */
        bool counts;            /* the tool tells none: bytes of output are counted */
        struct buffer output;   /* that was not told yet */
        uint64_t bytes;         /* of output so far */
        uint64_t dropped;       /* bytes of output that will not be told */
        unsigned credit;        /* messages that may be sent now */
        uint64_t credited;      /* when it grew last */
        struct event *later;    /* for output that waits */
        enum serve_level level; /* of log lines that are wanted */
};

/* ---- call.c ---- */

/* What is asked of the client, and what was answered (ask.c). */
struct questions {
        json_t *requests;      /* key → {method, params}; NULL: nothing is asked */
        json_t *ids;           /* legacy: key → id of our request, until it is answered */
        json_t *answers;       /* key → answer */
        json_t *keys;          /* of a task: the key that was given out → the tool's */
        json_t *state;         /* of the tool, that goes with them; may be NULL */
        bool approval;         /* they are ours: whether the call may be made */
        struct event *timeout; /* legacy: nobody waits for ever */
};

/* One tools/call, through all its rounds. */
struct serve_call {
        struct serve *serve;
        struct serve_request *request; /* whose answer it is ... */
        struct serve_task *task;       /* ... or whose; one of them is NULL */
        struct tool *tool;
        json_t *arguments; /* as they came; an object */
        json_t *capabilities;
        bool modern;
        json_t *answers, *state; /* for the tool: what it asked for; NULL: it did not */
        bool approved;
        unsigned round; /* of a task: of questions */
        struct questions asked;
        struct progress progress;
        struct keep_stream kept[2]; /* stdout and stderr */
        char id[SERVE_ID_SIZE];
        uint64_t began;
        const char *transport;
        char *client;
        cbx_call *call; /* NULL: it waits for answers */
        struct event *ready;
        TAILQ_ENTRY(serve_call) link; /* while it leaves */
};

/* Run it in a box, with what is known by now. -EINVAL comes with a failure. */
int serve_call_start(struct serve_call *call, struct rpc_failure *failure);
/* Its ends: each forgets the call. serve_call_finish takes the result. */
void serve_call_finish(struct serve_call *call, json_t *result);
void serve_call_fail(struct serve_call *call, const struct rpc_failure *failure);
/* Kill the tree, if there is one; nothing is sent. */
void serve_call_cancel(struct serve_call *call);
void serve_call_free(struct serve_call *call);
/* The tool of that name, with a reference; NULL: there is none. */
struct tool *serve_find_tool(struct serve *serve, const json_t *named);
/* An id for one more call. */
void serve_next_id(struct serve *serve, char id[SERVE_ID_SIZE]);
/* Answer with an error that the model reads. */
void serve_call_refuse(struct serve_call *call, const char *outcome, const char *format, ...)
        PRINTF_LIKE(3, 4);

/* ---- ended.c ---- */

/* Tell metrics and audit what a round has come to; see struct serve_ended. `why` may be NULL. */
void serve_call_record(const struct serve_call *call, const cbx_report *report, const char *outcome,
                       const char *why);
/* The same of a tools/call that was refused before there was a call. */
void serve_request_record(const struct serve_request *request, const char *why);
/* What the client calls itself; may be empty. */
const char *request_client(const struct serve_request *request);
/* A call that runs is killed, and told of when its report comes; it belongs to nobody any more. */
void serve_call_leave(struct serve_call *call);
/* Those that leave are told of now, with what comes within a moment. */
void serve_leaving_end(struct serve *serve);

/* ---- progress.c ---- */

int progress_begin(struct serve_call *call);
void progress_end(struct serve_call *call);
/* An event of the call. */
void progress_tell(struct serve_call *call, const cbx_event *event);
/* Output that waits is told now. */
void progress_flush(struct serve_call *call);

/* ---- content.c ---- */

/* What came of the call, to be its answer: content blocks and structured content. */
json_t *content_of(struct serve_call *call, const cbx_report *report, const cbx_result *result);
/* Beside the result, that there was no box, and why; nothing where there was one. */
int content_add_route(json_t *answer, const cbx_result *result);
json_t *content_error(const char *text);
/* The same where the tool itself gave it, and says that it failed; it is changed. */
int content_explain(struct serve_call *call, const cbx_report *report, json_t *given);
/* The same where what the tool gave is none, by this text. */
json_t *content_wrong(struct serve_call *call, const cbx_report *report, const char *why);
/* A result of MCP that a tool has given: content, questions or an error; else why it is none. */
enum content_kind { CONTENT_BLOCKS, CONTENT_QUESTIONS, CONTENT_ERROR, CONTENT_WRONG };
enum content_kind content_read(const json_t *given, struct rpc_failure *failure);

/* ---- explain.c ---- */

/* Is a denial of this kind one of which a policy would have to list all others? */
bool explain_is_list(const char *kind);
/* What a client of MCP can do about it. */
const char *explain_fix(const cbx_error *error);
/* Why a call failed and what would help, for a model. NULL when memory ran out. */
char *explain_failure(struct serve_call *call, const cbx_report *report, const cbx_result *result);
/* The part of it that does not depend on who found that it failed: the end of the output, what was
 * refused. Empty where there is nothing. */
int explain_output(struct serve_call *call, const cbx_report *report, struct buffer *to);
/* What is missing of the output, and where all of it is; empty where nothing is. */
int explain_cut(struct serve_call *call, const cbx_report *report, struct buffer *to);

/* ---- ask.c ---- */

/* Has the client what it takes to be asked this? */
bool ask_can(const json_t *capabilities, const char *method);
/* Can it do all that the tool needs? Otherwise the call is refused, and this returns 1; -ENOMEM. */
int ask_check_needs(struct serve_call *call);
/* Ask whether the call may be made, or what a tool wants to know: the call then waits, has become
 * another (a task that waits) or has been answered. */
void ask_approval(struct serve_call *call);
void ask_for_tool(struct serve_call *call, const json_t *given);
void questions_clear(struct questions *questions);

/* ---- answer.c ---- */

/* What came with a request: requestState and inputResponses. */
int answer_read(struct serve_call *call, struct rpc_failure *failure);
/* What came to a task. */
void answer_task(struct serve_call *call, const json_t *responses);
/* A response of the client's to one of our questions. */
void answer_response(struct serve_peer *peer, const struct rpc_message *message);
/* All that was asked is answered: go on. */
void answer_go_on(struct serve_call *call);

/* ---- seal.c ---- */

/* Text that a client can carry but not change; to be freed. Good for this tool with these
 * arguments, for a while. */
int seal_write(struct serve_call *call, const json_t *state, bool approval, char **ret_text);
struct seal {
        json_t *state; /* owned; may be NULL */
        bool approval; /* it went with the question whether the call may be made */
        bool approved; /* it was approved before */
};
int seal_open(struct serve_call *call, const char *text, struct seal *ret_seal,
              struct rpc_failure *failure);

/* ---- task.c ---- */

struct serve_task;
bool task_is_wanted(const struct serve_call *call);
/* Make the call a task's and answer its request with the handle. On failure nothing changes. */
int task_begin(struct serve_call *call);
/* The questions of its call are asked, answered in part, or answered. */
void task_changed(struct serve_task *task);
/* Takes the result. */
void task_finish(struct serve_task *task, json_t *result);
void task_fail(struct serve_task *task, const struct rpc_failure *failure);
void task_note(struct serve_task *task, const char *text);
void task_free(struct serve_task *task);

#endif
