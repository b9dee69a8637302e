/* SPDX-License-Identifier: MIT */
/*
 * Tasks (the extension io.modelcontextprotocol/tasks): a call whose request was answered with a
 * handle, by which its result is asked for later. They belong to the server, not to a peer: whoever
 * has the handle, which cannot be guessed, may ask. They live as long as the server, and no longer
 * than their time.
 */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "serve/serve_parts.h"

#define TASKS_MAX 1024
#define TTL_SECONDS 3600
#define POLL_MS 500

enum status { WORKING, INPUT_REQUIRED, COMPLETED, CANCELLED, FAILED };
static const char *const statuses[] = { "working", "input_required", "completed", "cancelled",
                                        "failed" };

struct serve_task {
        struct serve *serve;
        char id[33];
        enum status status;
        char *message; /* how far it is; NULL: not told */
        struct timespec created, updated;
        struct serve_call *call; /* NULL: it is over */
        json_t *outcome;         /* result or error */
        struct event *expiry;
        TAILQ_ENTRY(serve_task) link;
};

static bool knows_tasks(const json_t *capabilities)
{
        return json_is_object(
                json_object_get(json_object_get(capabilities, "extensions"), TASKS_EXTENSION));
}

bool task_is_wanted(const struct serve_call *call)
{
        return call->modern && call->tool->task != TOOL_TASK_NEVER &&
               knows_tasks(call->capabilities) && call->serve->n_tasks < TASKS_MAX;
}

/* ---- Life ---- */

void task_free(struct serve_task *task)
{
        if (task->call) {
                task->call->task = NULL;
                serve_call_cancel(task->call);
        }
        TAILQ_REMOVE(&task->serve->tasks, task, link);
        task->serve->n_tasks--;
        if (task->expiry)
                event_free(task->expiry);
        free(task->message);
        json_decref(task->outcome);
        free(task);
}

static void on_expiry(evutil_socket_t fd, short what, void *context)
{
        (void)fd, (void)what;
        task_free(context);
}

static struct serve_task *task_new(struct serve *serve)
{
        struct serve_task *task = calloc(1, sizeof(*task));
        struct timeval life = { .tv_sec = TTL_SECONDS };
        unsigned char id[16];

        if (!task)
                return NULL;
        task->serve = serve;
        TAILQ_INSERT_TAIL(&serve->tasks, task, link);
        serve->n_tasks++;
        clock_gettime(CLOCK_REALTIME, &task->created);
        task->updated = task->created;
        task->expiry = evtimer_new(serve->base, on_expiry, task);
        if (!task->expiry || evtimer_add(task->expiry, &life) < 0 ||
            getrandom(id, sizeof(id), 0) != sizeof(id)) {
                task_free(task);
                return NULL;
        }
        for (size_t i = 0; i < sizeof(id); i++)
                snprintf(task->id + 2 * i, 3, "%02x", id[i]);
        return task;
}

static void set_status(struct serve_task *task, enum status status)
{
        task->status = status;
        clock_gettime(CLOCK_REALTIME, &task->updated);
}

void task_note(struct serve_task *task, const char *text)
{
        char *copy = text && *text ? strdup(text) : NULL;

        if (!copy)
                return;
        free(task->message);
        task->message = copy;
        clock_gettime(CLOCK_REALTIME, &task->updated);
}

void task_changed(struct serve_task *task)
{
        bool asks = task->call && task->call->asked.requests;

        set_status(task, asks ? INPUT_REQUIRED : WORKING);
}

static void end(struct serve_task *task, enum status status, json_t *outcome)
{
        task->call = NULL;
        json_decref(task->outcome);
        task->outcome = outcome;
        set_status(task, status);
}

void task_finish(struct serve_task *task, json_t *result)
{
        struct rpc_failure failure = { 0 };

        if (result && result_complete(true, result) == 0) {
                end(task, COMPLETED, result);
                return;
        }
        json_decref(result);
        rpc_fail(&failure, RPC_INTERNAL_ERROR, "out of memory");
        task_fail(task, &failure);
}

void task_fail(struct serve_task *task, const struct rpc_failure *failure)
{
        end(task, FAILED,
            json_pack("{s:i, s:s, s:O*}", "code", failure->code, "message", failure->text, "data",
                      failure->data));
}

/* ---- What a client sees ---- */

static void write_time(const struct timespec *when, char text[40])
{
        struct tm parts;
        size_t n;

        gmtime_r(&when->tv_sec, &parts);
        n = strftime(text, 40, "%Y-%m-%dT%H:%M:%S", &parts);
        snprintf(text + n, 40 - n, ".%03ldZ", when->tv_nsec / 1000000);
}

static json_t *describe(const struct serve_task *task)
{
        char created[40], updated[40];

        write_time(&task->created, created);
        write_time(&task->updated, updated);
        return json_pack("{s:s, s:s, s:s*, s:s, s:s, s:i, s:i}", "taskId", task->id, "status",
                         statuses[task->status], "statusMessage", task->message, "createdAt",
                         created, "lastUpdatedAt", updated, "ttlMs", TTL_SECONDS * 1000,
                         "pollIntervalMs", POLL_MS);
}

int task_begin(struct serve_call *call)
{
        struct serve_request *request = call->request;
        struct serve_task *task = task_new(call->serve);
        json_t *result = task ? describe(task) : NULL;

        if (!result || json_object_set_new(result, "resultType", json_string("task")) < 0) {
                json_decref(result);
                if (task)
                        task_free(task);
                return -ENOMEM;
        }
        progress_end(call);
        call->request = NULL;
        request->call = NULL;
        call->task = task;
        task->call = call;
        request_finish(request, result);
        return 0;
}

/* ---- Methods ---- */

static struct serve_task *find(struct serve_request *request, struct rpc_failure *failure)
{
        const char *id = json_string_value(json_object_get(request->message.params, "taskId"));
        struct serve_task *task;

        if (!knows_tasks(request->capabilities)) {
                rpc_fail(failure, RPC_MISSING_CAPABILITY,
                         "the client did not say that it knows tasks");
                failure->data = json_pack("{s:{s:{s:{}}}}", "requiredCapabilities", "extensions",
                                          TASKS_EXTENSION);
                return NULL;
        }
        TAILQ_FOREACH(task, &request->peer->serve->tasks, link)
        {
                if (id && strlen(id) == strlen(task->id) &&
                    bytes_equal(id, task->id, strlen(task->id)))
                        return task;
        }
        rpc_fail(failure, RPC_INVALID_PARAMS,
                 "taskId names no task: there never was one, or its time is over");
        return NULL;
}

int serve_task_get(struct serve_request *request, json_t **ret_result, struct rpc_failure *failure)
{
        struct serve_task *task = find(request, failure);
        json_t *result, *part = NULL;
        const char *key = NULL;

        if (!task)
                return -EINVAL;
        if (task->status == COMPLETED || task->status == FAILED) {
                key = task->status == COMPLETED ? "result" : "error";
                part = task->outcome;
        } else if (task->status == INPUT_REQUIRED) {
                key = "inputRequests";
                part = task->call->asked.requests;
        }
        result = describe(task);
        if (!result || (key && json_object_set(result, key, part) < 0)) {
                json_decref(result);
                return -ENOMEM;
        }
        *ret_result = result;
        return 0;
}

static int acknowledge(json_t **ret_result)
{
        *ret_result = json_object();
        return *ret_result ? 0 : -ENOMEM;
}

int serve_task_update(struct serve_request *request, json_t **ret_result,
                      struct rpc_failure *failure)
{
        const json_t *responses = json_object_get(request->message.params, "inputResponses");
        struct serve_task *task = find(request, failure);

        if (!task)
                return -EINVAL;
        if (!json_is_object(responses))
                return rpc_fail(failure, RPC_INVALID_PARAMS, "inputResponses must be an object");
        if (task->call) {
                answer_task(task->call, responses);
                if (task->call)
                        task_changed(task);
        }
        return acknowledge(ret_result);
}

int serve_task_cancel(struct serve_request *request, json_t **ret_result,
                      struct rpc_failure *failure)
{
        struct serve_task *task = find(request, failure);

        if (!task)
                return -EINVAL;
        if (task->call) {
                task->call->task = NULL;
                serve_call_cancel(TAKE_PTR(task->call));
                set_status(task, CANCELLED);
        }
        return acknowledge(ret_result);
}
