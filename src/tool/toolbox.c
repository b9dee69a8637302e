/* SPDX-License-Identifier: MIT */
#include "tool/toolbox.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include "policy/inputs.h"
#include "tool/python.h"
#include "tool/query.h"

/* The first version of the struct ended before this field. */
#define OPTIONS_LEAST offsetof(cbx_toolbox_options, mode)

/* ---- Opening and closing ---- */

static char *copy(const char *text)
{
        return text ? strdup(text) : NULL;
}

static int open_descriptors(cbx_toolbox *toolbox)
{
        struct epoll_event event = { .events = EPOLLIN };

        toolbox->poll = epoll_create1(EPOLL_CLOEXEC);
        toolbox->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (toolbox->poll < 0 || toolbox->wake < 0 ||
            epoll_ctl(toolbox->poll, EPOLL_CTL_ADD, toolbox->wake, &event) < 0)
                return -errno;
        return 0;
}

/* This program, the one that serves functions, what serves those of Python, and the one that is the
 * warden. */
static int hold_own(cbx_toolbox *toolbox)
{
        _cleanup_free_ char *python = NULL;
        char program[4096];
        int r = 0;

        if (python_find_server(toolbox->server, &python, NULL) == 0) {
                *strrchr(python, '/') = '\0'; /* all of the package */
                r = toolbox_hold(toolbox, python, false);
        }
        if (r < 0)
                return r;

        if (inputs_own_program(program, sizeof(program)))
                r = toolbox_hold(toolbox, program, false);
        if (r == 0)
                r = toolbox_hold(toolbox, toolbox->server, false);
        return r < 0 ? r : toolbox_hold(toolbox, client_program(toolbox->warden), false);
}

static int set_python_path(cbx_toolbox *toolbox, const char *const *path, cbx_error *error)
{
        toolbox->python_path = list_new();
        if (!toolbox->python_path)
                return error_oom(error);
        for (; *path; path++) {
                char real[PATH_MAX];
                struct stat facts;

                if (!realpath(*path, real) || stat(real, &facts) < 0 || !S_ISDIR(facts.st_mode))
                        return error_set(error, -ENOENT, "python_path",
                                         "there is no directory \"%.200s\"", *path);
                if (strcmp(real, "/") == 0)
                        return error_set(error, -EINVAL, "python_path",
                                         "\"%.200s\" would show all of the host's files", *path);
                if (list_add(&toolbox->python_path, real) < 0)
                        return error_oom(error);
        }
        return 0;
}

static int set_options(cbx_toolbox *toolbox, const cbx_toolbox_options *options, cbx_error *error)
{
        int r;

        if (options->policy)
                toolbox->policy = cbx_policy_ref(options->policy);
        else if (cbx_policy_parse("{}", 2, &toolbox->policy, error) < 0)
                return error ? error->code : -ENOMEM;
        toolbox->calls = options->calls;
        toolbox->policies = copy(options->policies);
        toolbox->server = copy(function_server(options->server));
        toolbox->python = copy(options->python);
        toolbox->answers = python_answers_new();
        toolbox->followed = list_new();
        if (!toolbox->followed || (options->policies && !toolbox->policies) || !toolbox->server ||
            (options->python && !toolbox->python) || !toolbox->answers)
                return error_oom(error);
        if ((r = routing_open(&toolbox->routing, options, error)) < 0)
                return r;
        if (hold_own(toolbox) == -ENOMEM)
                return error_oom(error);
        return options->python_path ? set_python_path(toolbox, options->python_path, error) : 0;
}

int cbx_toolbox_open(cbx_warden *warden, const cbx_toolbox_options *options,
                     cbx_toolbox **ret_toolbox, cbx_error *error)
{
        cbx_toolbox_options known = CBX_TOOLBOX_OPTIONS_INIT;
        cbx_toolbox *toolbox;
        int r = 0;

        if (!warden)
                return error_set(error, -EINVAL, "warden", "is NULL");
        if (options)
                r = client_read_struct("cbx_toolbox_options", options, OPTIONS_LEAST, &known,
                                       sizeof(known), error);
        if (r < 0)
                return r;
        toolbox = calloc(1, sizeof(*toolbox));
        if (!toolbox)
                return error_oom(error);
        pthread_mutex_init(&toolbox->lock, NULL);
        TAILQ_INIT(&toolbox->events);
        TAILQ_INIT(&toolbox->folders);
        TAILQ_INIT(&toolbox->sources);
        TAILQ_INIT(&toolbox->directories);
        toolbox->warden = warden;
        toolbox->poll = toolbox->wake = toolbox->inotify = -1;
        toolbox->key = client_serial(warden);
        r = open_descriptors(toolbox);
        if (r < 0)
                error_set(error, r, "", "cannot make a descriptor for events: %s", strerror(-r));
        else
                r = set_options(toolbox, &known, error);
        if (r < 0) {
                cbx_toolbox_close(toolbox);
                return r;
        }
        *ret_toolbox = toolbox;
        return 0;
}

static void event_free(struct toolbox_event *event)
{
        if (!event)
                return;
        free(event->tool);
        free(event->file);
        free(event->text);
        free(event);
}

cbx_toolbox *cbx_toolbox_close(cbx_toolbox *toolbox)
{
        struct toolbox_event *event;
        struct toolbox_folder *folder;

        if (!toolbox)
                return NULL;
        for (size_t i = 0; i < toolbox->n_tools; i++) {
                inputs_unfollow(toolbox->tools[i]);
                tool_unref(toolbox->tools[i]);
        }
        free(toolbox->tools);
        while ((event = TAILQ_FIRST(&toolbox->events))) {
                TAILQ_REMOVE(&toolbox->events, event, link);
                event_free(event);
        }
        event_free(toolbox->told);
        while ((folder = TAILQ_FIRST(&toolbox->folders))) {
                TAILQ_REMOVE(&toolbox->folders, folder, link);
                toolbox_folder_free(folder);
        }
        toolbox_python_free(toolbox);
        list_free(toolbox->followed);
        base_close(toolbox->inotify);
        base_close(toolbox->wake);
        base_close(toolbox->poll);
        cbx_policy_unref(toolbox->policy);
        free(toolbox->policies);
        free(toolbox->server);
        routing_close(&toolbox->routing);
        free(toolbox->python);
        list_free(toolbox->python_path);
        python_answers_free(toolbox->answers);
        list_free(toolbox->hold);
        list_free(toolbox->hide);
        pthread_mutex_destroy(&toolbox->lock);
        free(toolbox);
        return NULL;
}

/* ---- The table ---- */

/* Where the name is, or would be. */
static size_t position(const cbx_toolbox *toolbox, const char *name)
{
        size_t low = 0, high = toolbox->n_tools;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (strcmp(toolbox->tools[middle]->name, name) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

struct tool *toolbox_find(const cbx_toolbox *toolbox, const char *name)
{
        size_t i = position(toolbox, name);

        return i < toolbox->n_tools && strcmp(toolbox->tools[i]->name, name) == 0
                       ? toolbox->tools[i]
                       : NULL;
}

int toolbox_put(cbx_toolbox *toolbox, struct tool *tool, cbx_error *error)
{
        size_t i = position(toolbox, tool->name);
        struct tool **tools, *old = toolbox_find(toolbox, tool->name);
        const char *file = tool->file ? tool->file : "";
        int r = toolbox_choose_box(toolbox, tool, error);

        if (r == 0)
                r = toolbox_admit(toolbox, tool, error);
        if (r == 0 && toolbox_follow_tool(toolbox, tool) < 0)
                r = error_oom(error);
        if (r < 0) {
                inputs_unfollow(tool);
                tool_unref(tool);
                return r;
        }
        /* A new version shares the bound of the old one, whose calls may still run. */
        tool->key = old ? old->key : client_serial(toolbox->warden);
        if (old) {
                toolbox->tools[i] = tool;
                inputs_unfollow(old);
                tool_unref(old);
                toolbox_tell(toolbox, CBX_TOOL_UPDATED, tool->name, file, "");
                return 0;
        }
        tools = reallocarray(toolbox->tools, toolbox->n_tools + 1, sizeof(struct tool *));
        if (!tools) {
                inputs_unfollow(tool);
                tool_unref(tool);
                return error_oom(error);
        }
        toolbox->tools = tools;
        memmove(tools + i + 1, tools + i, (toolbox->n_tools - i) * sizeof(struct tool *));
        tools[i] = tool;
        toolbox->n_tools++;
        toolbox_tell(toolbox, CBX_TOOL_ADDED, tool->name, file, "");
        return 0;
}

bool toolbox_drop(cbx_toolbox *toolbox, const char *name, const char *file)
{
        size_t i = position(toolbox, name);

        if (!toolbox_find(toolbox, name))
                return false;
        toolbox_tell(toolbox, CBX_TOOL_REMOVED, name, file, "");
        inputs_unfollow(toolbox->tools[i]);
        tool_unref(toolbox->tools[i]);
        toolbox->n_tools--;
        memmove(toolbox->tools + i, toolbox->tools + i + 1,
                (toolbox->n_tools - i) * sizeof(struct tool *));
        return true;
}

struct tool_origin toolbox_origin(const cbx_toolbox *toolbox, const struct toolbox_folder *folder)
{
        return (struct tool_origin){
                .directory = folder ? folder->path : NULL,
                .policies = folder ? folder->policies : toolbox->policies,
                .server = toolbox->server,
                .python = toolbox->python,
                .warden = toolbox->warden,
                .answers = toolbox->answers,
                .policy = toolbox->policy,
                .hold = toolbox->hold,
                .hide = toolbox->hide,
        };
}

/* ---- Adding ---- */

static int put(cbx_toolbox *toolbox, struct tool *tool, cbx_error *error)
{
        int r;

        pthread_mutex_lock(&toolbox->lock);
        r = toolbox_put(toolbox, tool, error);
        pthread_mutex_unlock(&toolbox->lock);
        return r;
}

int cbx_toolbox_add(cbx_toolbox *toolbox, const char *manifest, size_t length, cbx_error *error)
{
        return cbx_toolbox_add_with(toolbox, manifest, length, NULL, error);
}

int cbx_toolbox_add_with(cbx_toolbox *toolbox, const char *manifest, size_t length,
                         cbx_policy *policy, cbx_error *error)
{
        _cleanup_mistakes_ struct tool_mistakes mistakes = TOOL_MISTAKES_INIT;
        struct tool_origin origin = toolbox_origin(toolbox, NULL);
        struct tool *tool;
        int r;

        origin.answers = NULL; /* they are under the lock, which is not taken to read a manifest */
        if (policy)
                origin.policy = policy;
        r = manifest_read(manifest, length, &origin, &mistakes, &tool);
        return r < 0 ? tool_mistakes_error(&mistakes, error) : put(toolbox, tool, error);
}

/* JSON that is a member of the tool; a mistake is noted with the name of the field. */
static int add_json(json_t *document, const char *key, const char *field, const char *text,
                    cbx_error *error)
{
        json_t *json;
        int r;

        if (!text)
                return 0;
        r = json_parse(text, strlen(text), field, MIB, 0, error, &json);
        if (r < 0)
                return r;
        return json_object_set_new(document, key, json) < 0 ? error_oom(error) : 0;
}

static int add_text(json_t *document, const char *key, const char *text, cbx_error *error)
{
        if (!text)
                return 0;
        return json_object_set_new(document, key, json_string(text)) < 0
                       ? error_set(error, -EINVAL, key, "is not UTF-8")
                       : 0;
}

static json_t *document_of(const cbx_tool *tool, cbx_error *error)
{
        _cleanup_json_ json_t *document = json_object();
        int r = document ? 0 : error_oom(error);

        if (r == 0)
                r = add_text(document, "name", tool->name, error);
        if (r == 0)
                r = add_text(document, "title", tool->title, error);
        if (r == 0)
                r = add_text(document, "description", tool->description, error);
        if (r == 0)
                r = add_json(document, "inputSchema", "input_schema", tool->input_schema, error);
        if (r == 0)
                r = add_json(document, "outputSchema", "output_schema", tool->output_schema, error);
        if (r == 0)
                r = add_json(document, "annotations", "annotations", tool->annotations, error);
        return r < 0 ? NULL : TAKE_PTR(document);
}

int cbx_toolbox_add_function(cbx_toolbox *toolbox, const cbx_tool *given, cbx_error *error)
{
        _cleanup_mistakes_ struct tool_mistakes mistakes = TOOL_MISTAKES_INIT;
        _cleanup_json_ json_t *document = NULL;
        _cleanup_tool_ struct tool *tool = tool_new();
        struct tool_origin origin = toolbox_origin(toolbox, NULL);
        cbx_tool known = CBX_TOOL_INIT;
        int r = 0;

        if (!given)
                return error_set(error, -EINVAL, "tool", "is NULL");
        if (!tool)
                return error_oom(error);
        if (given->size == 0) /* a compound literal; the first version of the struct */
                known = *given;
        else
                r = client_read_struct("cbx_tool", given, sizeof(known), &known, sizeof(known),
                                       error);
        if (r < 0)
                return r;
        if (!known.run)
                return error_set(error, -EINVAL, "run", "is NULL");
        document = document_of(&known, error);
        if (!document)
                return error ? error->code : -EINVAL;
        r = tool_describe(tool, document, &mistakes);
        if (r < 0)
                return r == -ENOMEM ? error_oom(error) : tool_mistakes_error(&mistakes, error);
        tool->kind = TOOL_FUNCTION;
        tool->calls = known.calls;
        tool->defaults = known.defaults;
        r = function_find(known.run, &tool->function, error);
        if (r == 0)
                r = tool_set_policy(tool, known.policy ? known.policy : toolbox->policy, &origin,
                                    error);
        return r < 0 ? r : put(toolbox, TAKE_PTR(tool), error);
}

int cbx_toolbox_remove(cbx_toolbox *toolbox, const char *name, cbx_error *error)
{
        bool found;

        pthread_mutex_lock(&toolbox->lock);
        found = toolbox_drop(toolbox, name, "");
        if (found)
                toolbox_try_again(toolbox);
        pthread_mutex_unlock(&toolbox->lock);
        return found ? 0 : error_set(error, -ENOENT, "name", "unknown tool: %s", name);
}

/* ---- Looking ---- */

static int print(const json_t *json, char **ret_json, cbx_error *error)
{
        char *text = json ? json_write(json, 0) : NULL;

        if (!text)
                return error_oom(error);
        *ret_json = text;
        return 0;
}

int cbx_toolbox_get(cbx_toolbox *toolbox, const char *name, char **ret_json, cbx_error *error)
{
        struct tool *tool;
        int r;

        pthread_mutex_lock(&toolbox->lock);
        tool = toolbox_find(toolbox, name);
        r = tool ? print(tool->document, ret_json, error)
                 : error_set(error, -ENOENT, "name", "unknown tool: %s", name);
        pthread_mutex_unlock(&toolbox->lock);
        return r;
}

static bool matches(const struct tool *tool, const struct query *query)
{
        return !query || query_finds(query, tool->name) ||
               query_finds(query,
                           json_string_value(json_object_get(tool->document, "description")));
}

int cbx_toolbox_list(cbx_toolbox *toolbox, const char *query, char **ret_json, cbx_error *error)
{
        _cleanup_json_ json_t *list = json_array();
        struct query *wanted = NULL;
        int r = list ? 0 : -ENOMEM;

        if (r == 0 && query)
                r = query_new(query, &wanted);
        pthread_mutex_lock(&toolbox->lock);
        for (size_t i = 0; r == 0 && i < toolbox->n_tools; i++)
                if (matches(toolbox->tools[i], wanted))
                        r = json_array_append(list, toolbox->tools[i]->document);
        r = r < 0 ? error_oom(error) : print(list, ret_json, error);
        pthread_mutex_unlock(&toolbox->lock);
        query_free(wanted);
        return r;
}

/* ---- Changes ---- */

static struct toolbox_event *take_event(cbx_toolbox *toolbox)
{
        struct toolbox_event *event = TAILQ_FIRST(&toolbox->events);

        if (event) {
                TAILQ_REMOVE(&toolbox->events, event, link);
                toolbox->n_events--;
        }
        return event;
}

void toolbox_tell(cbx_toolbox *toolbox, int kind, const char *tool, const char *file,
                  const char *text)
{
        struct toolbox_event *event = calloc(1, sizeof(*event));

        if (!event)
                return;
        *event = (struct toolbox_event){
                .kind = kind, .tool = strdup(tool), .file = strdup(file), .text = strdup(text)
        };
        if (!event->tool || !event->file || !event->text) {
                event_free(event);
                return;
        }
        if (toolbox->n_events == TOOLBOX_EVENTS_MAX)
                event_free(take_event(toolbox));
        TAILQ_INSERT_TAIL(&toolbox->events, event, link);
        toolbox->n_events++;
        (void)eventfd_write(toolbox->wake, 1);
}

int cbx_toolbox_fd(const cbx_toolbox *toolbox)
{
        return toolbox->poll;
}

int cbx_toolbox_step(cbx_toolbox *toolbox, cbx_tool_event *event, cbx_error *error)
{
        cbx_tool_event found = CBX_TOOL_EVENT_INIT;
        struct toolbox_event *told;
        eventfd_t count;

        if (!event || event->size < sizeof(found) || event->size > CLIENT_STRUCT_MAX)
                return error_set(error, -EINVAL, "event",
                                 "cbx_tool_event is not initialised with CBX_TOOL_EVENT_INIT");
        pthread_mutex_lock(&toolbox->lock);
        toolbox_watch(toolbox);
        event_free(toolbox->told);
        told = toolbox->told = take_event(toolbox);
        if (toolbox->n_events == 0)
                (void)eventfd_read(toolbox->wake, &count);
        if (told) {
                found.kind = told->kind;
                found.tool = told->tool;
                found.file = told->file;
                found.text = told->text;
        }
        pthread_mutex_unlock(&toolbox->lock);
        found.size = event->size;
        memset(event, 0, event->size);
        memcpy(event, &found, sizeof(found));
        return 0;
}
