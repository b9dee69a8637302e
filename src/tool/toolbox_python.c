/* SPDX-License-Identifier: MIT */
/*
 * Python files and modules of which all tools are in a toolbox, and the directories of Python
 * files, those of manifests among them: when a file has been written, what it says of its functions
 * is asked anew. One with mistakes leaves its tools as they were described last.
 */
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

#include "policy/inputs.h"
#include "tool/python.h"
#include "tool/told.h"
#include "tool/toolbox.h"

/* A file or module; its name in events and in its tools. */
struct toolbox_source {
        struct python_source python;
        char *name;
        char **tools; /* names of those it has given */
        char *told;   /* what was told of its mistakes last; NULL: nothing */
        TAILQ_ENTRY(toolbox_source) link;
};

struct toolbox_directory {
        char *path;
        int watch;
        TAILQ_ENTRY(toolbox_directory) link;
};

static void source_free(struct toolbox_source *source)
{
        if (!source)
                return;
        python_source_free(&source->python);
        free(source->name);
        list_free(source->tools);
        free(source->told);
        free(source);
}

void toolbox_python_free(cbx_toolbox *toolbox)
{
        struct toolbox_source *source;
        struct toolbox_directory *directory;

        while ((source = TAILQ_FIRST(&toolbox->sources))) {
                TAILQ_REMOVE(&toolbox->sources, source, link);
                source_free(source);
        }
        while ((directory = TAILQ_FIRST(&toolbox->directories))) {
                TAILQ_REMOVE(&toolbox->directories, directory, link);
                free(directory->path);
                free(directory);
        }
}

/* ---- Following ---- */

int toolbox_follow_file(cbx_toolbox *toolbox, const char *file)
{
        const char *slash = strrchr(file, '/');
        _cleanup_free_ char *path = slash ? strndup(file, (size_t)(slash - file)) : NULL;
        struct toolbox_directory *directory;
        int r = path ? toolbox_open_inotify(toolbox) : -ENOMEM;

        TAILQ_FOREACH(directory, &toolbox->directories, link)
        {
                if (r == 0 && directory->watch >= 0 && strcmp(directory->path, path) == 0)
                        return 0;
        }
        if (r < 0)
                return r;
        directory = calloc(1, sizeof(*directory));
        if (!directory)
                return -ENOMEM;
        directory->watch = inotify_add_watch(toolbox->inotify, *path ? path : "/", TOOLBOX_EVENTS);
        directory->path = TAKE_PTR(path);
        TAILQ_INSERT_TAIL(&toolbox->directories, directory, link);
        return directory->watch < 0 ? -errno : 0;
}

/* ---- All tools of a file ---- */

/* As somebody would write it: what it says of itself goes beside. */
static char *manifest_of(const struct toolbox_source *source, const json_t *described)
{
        const struct python_source *python = &source->python;
        const char *key = json_string_value(json_object_get(described, "function"));
        _cleanup_json_ json_t *manifest =
                json_pack("{s:O, s:{s:s}}", "name", json_object_get(described, "name"), "run",
                          "interpreter", python->program);
        json_t *run = json_object_get(manifest, "run"), *path = json_array();
        json_t *calls = json_object_get(described, "calls");
        int r = manifest && key && path ? 0 : -1;

        for (char **directory = python->path; r == 0 && directory && *directory; directory++)
                r = json_array_append_new(path, json_string(*directory));
        r = json_object_set_new(run, "path", path) < 0 ? -1 : r;
        if (r == 0 && python->file)
                r = json_object_set_new(run, "file", json_string(python->file));
        if (r == 0)
                r = json_object_set_new(run, "python",
                                        python->file ? json_string(key)
                                                     : json_sprintf("%s:%s", python->module, key));
        if (r == 0 && json_is_integer(calls))
                r = json_object_set(manifest, "calls", calls);
        return r == 0 ? json_write(manifest, 0) : NULL;
}

static bool gave(const struct toolbox_source *source, const char *name)
{
        for (char **tool = source->tools; tool && *tool; tool++)
                if (strcmp(*tool, name) == 0)
                        return true;
        return false;
}

/* Whoever has a name already keeps it. */
static int check_name(const cbx_toolbox *toolbox, const struct toolbox_source *source,
                      const struct tool *tool, cbx_error *error)
{
        const struct tool *other = toolbox_find(toolbox, tool->name);

        if (!other ||
            (other->file && strcmp(other->file, source->name) == 0 && gave(source, tool->name)))
                return 0;
        return error_set(error, -EEXIST, "name", "\"%s\" is already the name of a tool: %s",
                         tool->name, other->file ? other->file : "it was added by a call");
}

static int add_tool(cbx_toolbox *toolbox, const struct toolbox_source *source,
                    const json_t *described, char ***names, cbx_error *error)
{
        _cleanup_mistakes_ struct tool_mistakes mistakes = TOOL_MISTAKES_INIT;
        struct tool_origin origin = toolbox_origin(toolbox, NULL);
        _cleanup_free_ char *text = manifest_of(source, described);
        _cleanup_tool_ struct tool *tool = NULL;
        int r;

        if (!text)
                return error_set(error, -EBADMSG, "", "is not described as a tool is");
        origin.described = described;
        r = manifest_read(text, strlen(text), &origin, &mistakes, &tool);
        if (r < 0)
                return tool_mistakes_error(&mistakes, error);
        r = check_name(toolbox, source, tool, error);
        if (r < 0)
                return r;
        tool->file = strdup(source->name);
        if (!tool->file || list_add(names, tool->name) < 0)
                return error_oom(error);
        return toolbox_put(toolbox, TAKE_PTR(tool), error);
}

static int tell_left(const json_t *left, struct told *told)
{
        size_t i;
        json_t *item;
        int r = 0;

        json_array_foreach(left, i, item)
        {
                const char *name = json_string_value(json_object_get(item, "name"));
                const char *why = json_string_value(json_object_get(item, "why"));

                bool marked = json_is_true(json_object_get(item, "marked"));

                if (r == 0 && name && why)
                        r = told_add(told, name, marked, why, "");
        }
        return r;
}

static int tell_policy(const json_t *described, struct told *told)
{
        const char *name = json_string_value(json_object_get(described, "name"));
        char line[400];

        if (!name || !json_is_true(json_object_get(described, "policy")))
                return 0;
        snprintf(line, sizeof(line),
                 "%.100s: its decorator names a policy, which is not taken from the file: the tool "
                 "has that of the command (to fix it: write a manifest with a policy)",
                 name);
        return told_add_line(told, "", line);
}

/* Only what is new. */
static void tell(cbx_toolbox *toolbox, struct toolbox_source *source, struct told *told)
{
        char *text = told->text.data, **tool = told->tools, *line;

        if (told->text.length == 0 || (source->told && strcmp(source->told, text) == 0))
                return;
        free(source->told);
        source->told = strdup(text);
        while ((line = strsep(&text, "\n")))
                toolbox_tell(toolbox, CBX_TOOL_BROKEN, *tool++, source->name, line);
}

/* Names that it gave, and does not any more. */
static void drop_lost(cbx_toolbox *toolbox, struct toolbox_source *source, char **names)
{
        char **before = source->tools;

        source->tools = names;
        for (char **name = before; name && *name; name++) {
                const struct tool *tool = toolbox_find(toolbox, *name);

                if (!gave(source, *name) && tool && tool->file &&
                    strcmp(tool->file, source->name) == 0)
                        toolbox_drop(toolbox, *name, source->name);
        }
        list_free(before);
}

static int describe(cbx_toolbox *toolbox, const struct toolbox_source *source, cbx_error *error,
                    json_t **ret_answer)
{
        struct tool_origin origin = toolbox_origin(toolbox, NULL);
        _cleanup_tool_ struct tool *tool = tool_new();
        int r;

        if (!tool)
                return error_oom(error);
        r = python_serve(&source->python, NULL, toolbox->server, &tool->function, error);
        if (r < 0)
                return r;
        tool->kind = TOOL_FUNCTION;
        return python_describe(tool, toolbox->policy, &origin, error, ret_answer);
}

/* All its tools, as they are now. */
static int load(cbx_toolbox *toolbox, struct toolbox_source *source, cbx_error *error)
{
        _cleanup_told_ struct told told = TOLD_INIT;
        _cleanup_json_ json_t *answer = NULL;
        _cleanup_list_ char **names = list_new();
        cbx_error one = CBX_ERROR_INIT;
        json_t *described;
        bool some, taken = false;
        size_t i;
        int r;

        if (!names)
                return error_oom(error);
        r = describe(toolbox, source, error, &answer);
        if (r < 0)
                return r;
        json_array_foreach(json_object_get(answer, "tools"), i, described)
        {
                const char *name = json_string_value(json_object_get(described, "name"));

                if (r == 0 && add_tool(toolbox, source, described, &names, &one) < 0) {
                        taken = taken || one.code == -EEXIST;
                        r = told_add(&told, name ? name : "a function", true, one.text, one.hint);
                }
                if (r == 0)
                        r = tell_policy(described, &told);
        }
        if (r == 0)
                r = tell_left(json_object_get(answer, "left"), &told);
        if (r < 0)
                return error_oom(error);
        tell(toolbox, source, &told);
        some = names[0];
        drop_lost(toolbox, source, TAKE_PTR(names));
        if (some)
                return 0;
        error_set(error, -EINVAL, "", "%.200s has no function that could be a tool%s%.300s",
                  source->name, told.text.length > 0 ? ": " : "",
                  told.text.length > 0 ? told.text.data : "");
        error_hint(error, taken ? "give the function another name: @tool(name=\"...\")"
                                : "mark a function with @tool, or give a public one type hints or "
                                  "a docstring");
        return -EINVAL;
}

void toolbox_python_changed(cbx_toolbox *toolbox, int watch, const char *name)
{
        struct toolbox_directory *directory;
        struct toolbox_source *source;

        TAILQ_FOREACH(directory, &toolbox->directories, link)
        {
                char path[4096];
                bool of_manifests = false;

                if (directory->watch != watch)
                        continue;
                snprintf(path, sizeof(path), "%s/%s", directory->path, name);
                TAILQ_FOREACH(source, &toolbox->sources, link)
                {
                        _cleanup_told_ struct told told = TOLD_INIT;
                        cbx_error error = CBX_ERROR_INIT;

                        if (!source->python.file || strcmp(source->python.file, path) != 0)
                                continue;
                        if (load(toolbox, source, &error) < 0 &&
                            told_add(&told, "", false, error.text, error.hint) == 0)
                                tell(toolbox, source, &told);
                }
                for (char **file = toolbox->followed; !of_manifests && file && *file; file++)
                        of_manifests = strcmp(*file, path) == 0;
                if (of_manifests)
                        toolbox_reload_python(toolbox, path);
        }
}

void toolbox_python_lost(cbx_toolbox *toolbox, int watch)
{
        struct toolbox_directory *directory;

        TAILQ_FOREACH(directory, &toolbox->directories, link)
        {
                if (directory->watch == watch)
                        directory->watch =
                                inotify_add_watch(toolbox->inotify,
                                                  *directory->path ? directory->path : "/",
                                                  TOOLBOX_EVENTS);
        }
}

/* ---- Loading ---- */

static int fill_source(const cbx_toolbox *toolbox, const char *word, struct toolbox_source *source,
                       cbx_error *error)
{
        const char *slash;
        int r = python_source_of(word, &source->python, error);

        if (r < 0)
                return r;
        r = python_find_interpreter(toolbox->python, NULL, &source->python.program, error);
        if (r < 0) {
                if (error)
                        snprintf(error->where, sizeof(error->where), "python");
                return r;
        }
        source->python.path = list_new();
        slash = source->python.file ? strrchr(source->python.file, '/') : NULL;
        source->name = strdup(slash ? slash + 1 : source->python.module);
        r = source->python.path && source->name ? 0 : -ENOMEM;
        for (char **directory = toolbox->python_path; r == 0 && directory && *directory;
             directory++)
                r = list_add(&source->python.path, *directory);
        return r < 0 ? error_oom(error) : 0;
}

int cbx_toolbox_load_python(cbx_toolbox *toolbox, const char *source, cbx_error *error)
{
        struct toolbox_source *made;
        int r;

        if (!source || !*source)
                return error_set(error, -EINVAL, "source", "is %s", source ? "empty" : "NULL");
        made = calloc(1, sizeof(*made));
        if (!made)
                return error_oom(error);
        r = fill_source(toolbox, source, made, error);
        if (r == 0) {
                pthread_mutex_lock(&toolbox->lock);
                if (made->python.file && toolbox_follow_file(toolbox, made->python.file) == -ENOMEM)
                        r = error_oom(error);
                if (r == 0)
                        r = load(toolbox, made, error);
                if (r == 0)
                        TAILQ_INSERT_TAIL(&toolbox->sources, made, link);
                pthread_mutex_unlock(&toolbox->lock);
        }
        if (r < 0)
                source_free(made);
        if (r < 0 && error && !error->where[0])
                snprintf(error->where, sizeof(error->where), "source");
        return r;
}
