/* SPDX-License-Identifier: MIT */
/* How a Python function is served: what a box starts, what it is told, and what it must see. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tool/python.h"

#define NAME_BYTES 256

void python_source_free(struct python_source *source)
{
        free(source->file);
        free(source->module);
        free(source->program);
        list_free(source->path);
        *source = (struct python_source){ 0 };
}

/* ---- Names ---- */

/* Words with dots between them; what a word may be is for Python to say. */
static bool is_dotted(const char *text, size_t length)
{
        bool fresh = true;

        for (size_t i = 0; i < length; i++) {
                unsigned char c = (unsigned char)text[i];

                if (fresh && (c == '.' || (c >= '0' && c <= '9')))
                        return false;
                if (c < 0x80 && c != '.' && c != '_' && !(c >= '0' && c <= '9') &&
                    !((c | 0x20) >= 'a' && (c | 0x20) <= 'z'))
                        return false;
                fresh = c == '.';
        }
        return !fresh && length < NAME_BYTES;
}

/* tools.py as a module: tools. */
static char *module_of(const char *file)
{
        const char *name = strrchr(file, '/');
        size_t length;

        name = name ? name + 1 : file;
        length = strcspn(name, ".");
        return strndup(name, length > 0 ? length : strlen(name));
}

static int take_file(const char *path, struct python_source *source, cbx_error *error)
{
        char real[PATH_MAX];
        struct stat facts;

        if (!realpath(path, real) || stat(real, &facts) < 0) {
                int code = -errno;

                return error_set(error, code, "", "cannot read %.200s: %s", path, strerror(-code));
        }
        if (!S_ISREG(facts.st_mode))
                return error_set(error, -EINVAL, "", "%.200s is no regular file", path);
        source->file = strdup(real);
        source->module = module_of(real);
        return source->file && source->module ? 0 : error_oom(error);
}

int python_source_of(const char *word, struct python_source *ret, cbx_error *error)
{
        _cleanup_python_source_ struct python_source source = { 0 };
        size_t length = strlen(word);
        bool file = strchr(word, '/') || (length > 3 && strcmp(word + length - 3, ".py") == 0);
        int r = 0;

        if (file) {
                r = take_file(word, &source, error);
        } else if (!is_dotted(word, length)) {
                r = error_set(error, -EINVAL, "", "\"%.100s\" is neither a file nor a module",
                              word);
                error_hint(error, "name a file, tools.py, or a module, package.tools");
        } else if (!(source.module = strdup(word))) {
                r = error_oom(error);
        }
        if (r < 0)
                return r;
        *ret = source;
        source = (struct python_source){ 0 };
        return 0;
}

/* ---- The server ---- */

static char *make_config(const struct python_source *source)
{
        _cleanup_json_ json_t *config =
                json_pack("{s:s, s:[], s:{}}", "module", source->module, "path", "hosted");
        json_t *path = json_object_get(config, "path");

        if (!config || (source->file && json_object_set_new(json_object_get(config, "hosted"),
                                                            "file", json_string(source->file)) < 0))
                return NULL;
        for (char **directory = source->path; directory && *directory; directory++)
                if (json_array_append_new(path, json_string(*directory)) < 0)
                        return NULL;
        return json_write(config, 0);
}

/* What asks for a call; it may be a name with letters that JSON has to escape. */
static char *make_line(const char *name)
{
        _cleanup_json_ json_t *line = json_pack("{s:s}", "hosted", name);

        return line ? json_write(line, 0) : NULL;
}

/* The file comes last: when it has changed on the host, boxes that wait with it loaded are not
 * used. */
static int make_argv(const struct python_source *source, const char *serve,
                     struct function *function)
{
        const char *const words[] = { source->program, "-I", "-B", serve };
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(words); i++)
                r = list_add(&function->argv, words[i]);
        if (r == 0)
                r = list_take(&function->argv, make_config(source));
        return r < 0 || !source->file ? r : list_add(&function->argv, source->file);
}

int python_serve(const struct python_source *source, const char *name, const char *server,
                 struct function *ret, cbx_error *error)
{
        struct function function = { .files = list_new(), .argv = list_new(), .forks = true };
        _cleanup_free_ char *serve = NULL;
        char package[PATH_MAX];
        int r = function.files && function.argv ? python_find_server(server, &serve, error)
                                                : error_oom(error);

        if (r == 0 && serve) {
                snprintf(package, sizeof(package), "%.*s", (int)(strrchr(serve, '/') - serve),
                         serve);
                function.line = name ? make_line(name) : NULL;
                function.symbol = name ? strdup(name) : NULL;
                function.source = strdup(source->file ? source->file : "");
                r = function.source && (!name || (function.line && function.symbol)) ? 0 : -ENOMEM;
                if (r == 0)
                        r = make_argv(source, serve, &function);
                if (r == 0)
                        r = python_find_trees(source->program, &function.trees);
                if (r == 0)
                        r = list_add(&function.files, package);
                if (r == 0 && source->file)
                        r = list_add(&function.files, source->file);
                for (char **directory = source->path; r == 0 && directory && *directory;
                     directory++)
                        r = list_add(&function.files, *directory);
                if (r < 0)
                        r = error_oom(error);
        }
        if (r < 0) {
                function_free(&function);
                return r;
        }
        *ret = function;
        return 0;
}

/* ---- A manifest ---- */

static const struct json_place run_place = { .key = "run" };

struct python_reader {
        const struct tool_origin *origin;
        struct python_source source;
        const char *name; /* of the function */
        struct tool_mistakes *mistakes;
};

static int note(struct python_reader *reader, const char *where, cbx_error *error)
{
        char path[sizeof(error->where)];

        snprintf(path, sizeof(path), "run.%s", where);
        memcpy(error->where, path, sizeof(path));
        tool_mistake_add(reader->mistakes, error);
        return reader->mistakes->failed ? -ENOMEM : -EINVAL;
}

/* A path beside the manifest; -EINVAL with the error. */
static int join(const struct python_reader *reader, const char *name, char path[PATH_MAX],
                cbx_error *error)
{
        const char *directory = reader->origin->directory;
        bool absolute = name[0] == '/';

        if (!absolute && !directory) {
                error_set(error, -EINVAL, "",
                          "\"%.200s\" is relative, and there is no directory of the manifest",
                          name);
                error_hint(error, "name it by an absolute path");
                return -EINVAL;
        }
        if (snprintf(path, PATH_MAX, "%s%s%s", absolute ? "" : directory, absolute ? "" : "/",
                     name) >= PATH_MAX)
                return error_set(error, -ENAMETOOLONG, "", "is too long");
        return 0;
}

static int read_file(struct python_reader *reader, json_t *value)
{
        struct json_place place = { .parent = &run_place, .key = "file" };
        cbx_error error = CBX_ERROR_INIT;
        char path[PATH_MAX];
        const char *name;
        int r = json_read_string(value, &place, &error, &name);

        if (r == 0)
                r = join(reader, name, path, &error);
        if (r == 0)
                r = take_file(path, &reader->source, &error);
        if (r == -ENOENT) {
                error_set(&error, r, "", "there is no file \"%.200s\"%s", name,
                          name[0] == '/' ? "" : " beside the manifest");
        }
        if (r == 0 && reader->origin->sources &&
            list_add(reader->origin->sources, reader->source.file) < 0)
                r = -ENOMEM;
        return r == -ENOMEM ? r : r < 0 ? note(reader, "file", &error) : 0;
}

static int read_directory(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        struct python_reader *reader = to;
        char path[PATH_MAX], real[PATH_MAX];
        struct stat facts;
        const char *name;
        int r = json_read_string(value, at, error, &name);

        if (r == 0)
                r = join(reader, name, path, error);
        if (r < 0)
                return r;
        if (!realpath(path, real) || stat(real, &facts) < 0 || !S_ISDIR(facts.st_mode))
                return json_refuse(at, error, "there is no directory \"%.200s\"", name);
        if (strcmp(real, "/") == 0)
                return json_refuse(at, error, "would show all of the host's files");
        return list_add(&reader->source.path, real);
}

static int read_path(struct python_reader *reader, json_t *value)
{
        struct json_place place = { .parent = &run_place, .key = "path" };
        cbx_error error = CBX_ERROR_INIT;
        int r;

        reader->source.path = list_new();
        if (!reader->source.path)
                return -ENOMEM;
        r = value ? json_read_array(value, &place, read_directory, &error, reader) : 0;
        if (r < 0 && r != -ENOMEM)
                tool_mistake_add(reader->mistakes, &error);
        return r;
}

/* "module:function"; with a file "function" is enough. */
static int read_name(struct python_reader *reader, json_t *value)
{
        struct json_place place = { .parent = &run_place, .key = "python" };
        cbx_error error = CBX_ERROR_INIT;
        const char *text, *colon;
        size_t length;

        if (json_read_string(value, &place, &error, &text) < 0)
                return note(reader, "python", &error);
        colon = strchr(text, ':');
        length = colon ? (size_t)(colon - text) : 0;
        reader->name = colon ? colon + 1 : text;
        if (!is_dotted(reader->name, strlen(reader->name)) || (colon && !is_dotted(text, length)) ||
            (!colon && !reader->source.file)) {
                error_set(&error, -EINVAL, "", "\"%.100s\" does not name a function", text);
                error_hint(&error, "write \"module:function\", or \"function\" with "
                                   "\"file\": \"tools.py\"");
                return note(reader, "python", &error);
        }
        if (!colon)
                return 0;
        if (reader->source.file && (strlen(reader->source.module) != length ||
                                    strncmp(reader->source.module, text, length) != 0)) {
                error_set(&error, -EINVAL, "", "\"%.100s\" is not in the file, which is \"%.100s\"",
                          text, reader->source.module);
                error_hint(&error, "write \"%.100s\"", reader->name);
                return note(reader, "python", &error);
        }
        if (reader->source.file)
                return 0;
        reader->source.module = strndup(text, length);
        return reader->source.module ? 0 : -ENOMEM;
}

static int read_interpreter(struct python_reader *reader, json_t *value)
{
        struct json_place place = { .parent = &run_place, .key = "interpreter" };
        const char *given = reader->origin->python;
        cbx_error error = CBX_ERROR_INIT;
        int r = value ? json_read_string(value, &place, &error, &given) : 0;

        if (r == 0)
                r = python_find_interpreter(given, value ? reader->origin->directory : NULL,
                                            &reader->source.program, &error);
        return r == -ENOMEM ? r : r < 0 ? note(reader, "interpreter", &error) : 0;
}

/* Mistakes in one place are no reason not to look at the other. */
static int worse(int a, int b)
{
        return a == -ENOMEM || b == 0 ? a : b;
}

int python_read_run(json_t *run, const struct tool_origin *origin, struct tool *tool,
                    struct tool_mistakes *mistakes)
{
        struct python_reader reader = { .origin = origin, .mistakes = mistakes };
        json_t *file = json_object_get(run, "file");
        cbx_error error = CBX_ERROR_INIT;
        int r = file ? read_file(&reader, file) : 0;

        tool->kind = TOOL_FUNCTION;
        if (r == 0)
                r = read_name(&reader, json_object_get(run, "python"));
        r = worse(r, read_path(&reader, json_object_get(run, "path")));
        r = worse(r, read_interpreter(&reader, json_object_get(run, "interpreter")));
        if (r == 0) {
                r = python_serve(&reader.source, reader.name, origin->server, &tool->function,
                                 &error);
                if (r < 0 && r != -ENOMEM)
                        r = note(&reader, "python", &error);
        }
        python_source_free(&reader.source);
        return r;
}
