/* SPDX-License-Identifier: MIT */
/*
 * The registry. One lock holds it together; nothing is done under it that waits, but for reading
 * manifests of a folder, and for the box that says what is in a Python file. Tools are counted
 * references: a call keeps its tool though it is replaced meanwhile.
 *
 *   toolbox.c         open, close, add, remove, get, list; the queue of changes
 *   toolbox_call.c    a call of a tool, from arguments to result
 *   toolbox_elsewhere.c  a call that the application itself runs
 *   toolbox_route.c   where tools run, by what, and what that keeps
 *   toolbox_watch.c   directories of manifests, and what happens to them
 *   toolbox_python.c  Python files, and what happens to them
 *   toolbox_inputs.c  what no tool in it may write
 */
#ifndef TOOL_TOOLBOX_H
#define TOOL_TOOLBOX_H

#include <pthread.h>
#include <sys/inotify.h>
#include <sys/queue.h>

#include "tool/tool.h"

#define TOOLBOX_EVENTS_MAX 4096 /* that wait to be taken; then the oldest goes */
/* Of directories that are watched. */
#define TOOLBOX_EVENTS                                                                             \
        (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_MOVE_SELF |     \
         IN_ONLYDIR | IN_EXCL_UNLINK)

struct toolbox_event {
        int kind; /* CBX_TOOL_ADDED ... */
        char *tool, *file, *text;
        TAILQ_ENTRY(toolbox_event) link;
};

/* A manifest file that is there, in order or not. */
struct toolbox_file {
        char *name;
        char *tool;  /* the tool it has given; NULL: none so far */
        bool broken; /* as it is now */
        char *told;  /* what was told of its mistakes last; NULL: nothing */
        TAILQ_ENTRY(toolbox_file) link;
};

/* A directory of manifests. */
struct toolbox_folder {
        char *path, *policies;
        int watch, policies_watch; /* of inotify; -1: none */
        TAILQ_HEAD(, toolbox_file) files;
        TAILQ_ENTRY(toolbox_folder) link;
};

struct cbx_toolbox {
        pthread_mutex_t lock;
        cbx_warden *warden;
        cbx_policy *policy;
        char *policies, *server;
        struct routing routing;         /* where its tools run; fixed when it is opened */
        char *python;                   /* interpreter of Python functions; NULL: the usual one */
        char **python_path;             /* directories in which those of a source find modules */
        struct python_answers *answers; /* what Python files have said of themselves */
        char **hold, **hide;            /* what no tool may write, or see: held in all policies */
        unsigned calls;
        uint64_t key;        /* of the bound on all calls, in the warden */
        struct tool **tools; /* in the order of their names */
        size_t n_tools;
        TAILQ_HEAD(, toolbox_event) events;
        size_t n_events;
        struct toolbox_event *told; /* the last that was taken */
        TAILQ_HEAD(, toolbox_folder) folders;
        TAILQ_HEAD(, toolbox_source) sources;        /* Python files and modules */
        TAILQ_HEAD(, toolbox_directory) directories; /* of Python files */
        char **followed;                             /* Python files that manifests name */
        int poll, wake,
                inotify; /* an epoll set of the two others; inotify -1: nothing is watched */
};

/* ---- Under the lock ---- */

struct tool *toolbox_find(const cbx_toolbox *toolbox, const char *name);

/* As cbx_toolbox_start, for one who has parsed the arguments already (toolbox_call.c). */
int toolbox_start(cbx_toolbox *toolbox, const char *name, json_t *arguments, const cbx_spec *given,
                  cbx_call **ret_call, cbx_error *error);
/* Where calls of a tool go; whether they say so in their report, and who is told beside
 * (toolbox_route.c)
 */
struct route toolbox_route(const cbx_toolbox *toolbox, const struct tool *tool);
bool toolbox_tells_route(const cbx_toolbox *toolbox, const struct tool *tool);
int toolbox_set_route(json_t *outcome, const struct route *route);
void toolbox_log_route(const cbx_toolbox *toolbox, const struct tool *tool,
                       const struct route *route);
/* Have a call run by a backend of the application's; its limits are filled in
 * (toolbox_elsewhere.c). */
int toolbox_start_elsewhere(const cbx_backend *backend, const struct tool *tool, cbx_order *order,
                            const cbx_spec *spec, cbx_call **ret_call, cbx_error *error);
/* Let the policies of a new tool ask for the box that a rule names. */
int toolbox_choose_box(const cbx_toolbox *toolbox, struct tool *tool, cbx_error *error);
/* Put a tool in, taking the reference; `event` false: nobody is to be told. */
int toolbox_put(cbx_toolbox *toolbox, struct tool *tool, cbx_error *error);
/* Take it out; false: there is none. */
bool toolbox_drop(cbx_toolbox *toolbox, const char *name, const char *file);
/* Tell of a change. Memory that runs out loses the event, not the change. */
void toolbox_tell(cbx_toolbox *toolbox, int kind, const char *tool, const char *file,
                  const char *text);
/* Where manifests of a folder look for what they name; NULL: one that was handed in. */
struct tool_origin toolbox_origin(const cbx_toolbox *toolbox, const struct toolbox_folder *folder);

/* Have a path held in the policies of tools that are added from now on; `hidden`: and not seen. */
int toolbox_hold(cbx_toolbox *toolbox, const char *path, bool hidden);
/* May the tool be in it, as far as what it and others may write goes? (toolbox_inputs.c) */
int toolbox_admit(const cbx_toolbox *toolbox, const struct tool *tool, cbx_error *error);
/* Let no policy of this process write what the tool is made of, until inputs_unfollow(tool). */
int toolbox_follow_tool(const cbx_toolbox *toolbox, struct tool *tool);
/* May a folder be followed? No tool may write there. */
int toolbox_admit_folder(const cbx_toolbox *toolbox, const char *path, cbx_error *error);

/* Read what inotify has to say (toolbox_watch.c). */
void toolbox_watch(cbx_toolbox *toolbox);
int toolbox_open_inotify(cbx_toolbox *toolbox);
/* Read the manifests again that name this Python file, or have mistakes. */
void toolbox_reload_python(cbx_toolbox *toolbox, const char *path);
/* Look at the directory of a Python file from now on; and something in it was written
 * (toolbox_python.c). */
int toolbox_follow_file(cbx_toolbox *toolbox, const char *file);
void toolbox_python_changed(cbx_toolbox *toolbox, int watch, const char *name);
/* A directory is not watched any more: it is gone, or another has its name. */
void toolbox_python_lost(cbx_toolbox *toolbox, int watch);
void toolbox_python_free(cbx_toolbox *toolbox);
/* A name is free: files that want it get their turn. */
void toolbox_try_again(cbx_toolbox *toolbox);
void toolbox_folder_free(struct toolbox_folder *folder);

#endif
