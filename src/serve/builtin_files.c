/* SPDX-License-Identifier: MIT */
/*
 * write_file, list_files: functions that run in boxes (cbx_function), so that a path can lead
 * nowhere but to what the policy shows, whatever links there are; and by builtin_place.c to nothing
 * but the workspace. What all tools for files share, and their list.
 */
#include "serve/builtin_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "serve/builtin.h"

/* ---- What they share ---- */

int files_fail(cbx_reply *reply, const char *format, ...)
{
        char text[PATH_MAX + 256];
        va_list args;

        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        text_make_showable(text);
        (void)cbx_reply_error(reply, text);
        return 1;
}

int files_answer(cbx_reply *reply, json_t *result, const char *text)
{
        _cleanup_free_ char *json = result ? json_write(result, 0) : NULL;

        json_decref(result);
        if (!json || !text)
                return files_fail(reply, "out of memory");
        if (cbx_reply_text(reply, text) < 0)
                return 1;
        return cbx_reply_result(reply, json, strlen(json)) < 0;
}

json_t *files_arguments(const char *arguments, size_t length)
{
        return json_loadb(arguments, length, JSON_ALLOW_NUL, NULL);
}

const char *files_text(const json_t *arguments, const char *name, const char *otherwise)
{
        const char *text = json_string_value(json_object_get(arguments, name));

        return text ? text : otherwise;
}

json_int_t files_number(const json_t *arguments, const char *name, json_int_t otherwise)
{
        const json_t *number = json_object_get(arguments, name);

        return json_is_number(number) ? (json_int_t)json_number_value(number) : otherwise;
}

/* ---- Walking ---- */

static int choose(const struct dirent *entry)
{
        return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static bool is_directory(const char *path)
{
        struct stat facts;

        return lstat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

/* Returns 1 when enough was seen, 0 at the end, or a negative errno. */
static int walk_directory(const struct files_walk *walk, const char *path, int depth)
{
        struct dirent **entries = NULL;
        int n = scandir(path, &entries, choose, alphasort), r = 0;

        if (n < 0)
                return -errno;
        for (int i = 0; i < n; i++) {
                char inner[PATH_MAX];
                bool fits =
                        snprintf(inner, sizeof(inner), "%s%s%s", strcmp(path, ".") == 0 ? "" : path,
                                 strcmp(path, ".") == 0          ? ""
                                 : path[strlen(path) - 1] == '/' ? ""
                                                                 : "/",
                                 entries[i]->d_name) < (int)sizeof(inner);
                bool shown = walk->hidden || entries[i]->d_name[0] != '.', directory;

                free(entries[i]);
                if (r != 0 || !fits || !shown)
                        continue;
                directory = is_directory(inner);
                r = walk->found(walk->context, inner, directory) ? 0 : 1;
                if (r == 0 && directory && depth > 1)
                        r = walk_directory(walk, inner, depth - 1) > 0; /* one that is closed: on */
        }
        free(entries);
        return r;
}

int files_walk(const struct files_walk *walk, const char *path)
{
        char place[PATH_MAX];
        struct stat facts;
        int r = files_place(path, false, place);

        if (r < 0)
                return r;
        if (stat(path, &facts) < 0)
                return -errno;
        if (!S_ISDIR(facts.st_mode))
                return walk->found(walk->context, path, false) ? 0 : 1;
        return walk_directory(walk, path, walk->depth);
}

/* ---- write_file ---- */

/* The directories that a path leads through. */
static int make_parents(const char *path)
{
        char parent[PATH_MAX];

        if (snprintf(parent, sizeof(parent), "%s", path) >= (int)sizeof(parent))
                return -ENAMETOOLONG;
        for (char *slash = strchr(parent + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                if (mkdir(parent, 0777) < 0 && errno != EEXIST)
                        return -errno;
                *slash = '/';
        }
        return 0;
}

static int write_text(const char *path, const json_t *content, bool append)
{
        _cleanup_fd_ int fd = -1;
        int r = make_parents(path);

        if (r < 0)
                return r;
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | (append ? O_APPEND : O_TRUNC),
                  0666);
        if (fd < 0)
                return -errno;
        r = fd_write_all(fd, json_string_value(content), json_string_length(content));
        return r < 0 ? -errno : 0;
}

static int write_file(const char *given, size_t length, cbx_reply *reply)
{
        _cleanup_json_ json_t *arguments = files_arguments(given, length);
        const json_t *content = json_object_get(arguments, "content");
        const char *path = files_text(arguments, "path", "");
        bool append = json_is_true(json_object_get(arguments, "append"));
        size_t size = json_string_length(content);
        char text[PATH_MAX + 64], place[PATH_MAX];
        int r = files_place(path, true, place);

        if (r == 0)
                r = write_text(place, content, append);
        if (r < 0)
                return files_refuse(reply, "write", path, r);
        snprintf(text, sizeof(text), "%zu bytes were %s %s", size,
                 append ? "added to" : "written to", path);
        return files_answer(reply, json_pack("{s:s, s:I}", "path", path, "bytes", (json_int_t)size),
                            text);
}

/* ---- list_files ---- */

struct listing {
        json_t *names;
        struct buffer text;
        size_t limit;
        bool cut, failed;
};

static bool list_one(void *context, const char *path, bool directory)
{
        struct listing *listing = context;
        char name[PATH_MAX + 1];

        if (json_array_size(listing->names) == listing->limit) {
                listing->cut = true;
                return false;
        }
        snprintf(name, sizeof(name), "%s%s", path, directory ? "/" : "");
        text_make_showable(name);
        listing->failed = json_array_append_new(listing->names, json_string(name)) < 0 ||
                          buffer_printf(&listing->text, "%s\n", name) < 0;
        return !listing->failed;
}

static int list_files(const char *given, size_t length, cbx_reply *reply)
{
        _cleanup_json_ json_t *arguments = files_arguments(given, length);
        const char *path = files_text(arguments, "path", ".");
        struct listing listing = { .names = json_array(),
                                   .limit = (size_t)files_number(arguments, "limit", 1000) };
        struct files_walk walk = { .depth = (int)files_number(arguments, "depth", 1),
                                   .hidden = json_is_true(json_object_get(arguments, "hidden")),
                                   .found = list_one,
                                   .context = &listing };
        int r = files_walk(&walk, path);

        if (r >= 0 &&
            (listing.failed ||
             buffer_printf(&listing.text, "%s",
                           listing.cut ? "[and more: raise limit, which may be 10000, or list a "
                                         "directory below]\n"
                                       : "") < 0))
                r = -ENOMEM;
        if (r < 0)
                (void)files_refuse(reply, "list", path, r);
        else
                r = files_answer(
                        reply, json_pack("{s:O, s:b}", "files", listing.names, "more", listing.cut),
                        listing.text.data);
        json_decref(listing.names);
        buffer_free(&listing.text);
        return r != 0;
}

/* ---- All of them ---- */

#define READ_ONLY "{\"readOnlyHint\": true, \"openWorldHint\": false}"
#define PATH_PROPERTY(of)                                                                          \
        "\"path\": {\"type\": \"string\", \"description\": \"" of ", relative to the workspace.\""

static const cbx_tool tools[] = {
        { .name = "read_file",
          .title = "Read a file",
          .description = "Read a text file of the workspace, or some lines of it. What is longer "
                         "than 2000 lines or 256 KiB is cut, with a note how to go on.",
          .input_schema = "{\"type\": \"object\", \"properties\": {" PATH_PROPERTY(
                  "The file") "}, \"first\": {\"type\": \"integer\", \"minimum\": 1, "
                              "\"description\": \"The first line that is wanted; 1 by "
                              "default.\"}, \"lines\": {\"type\": \"integer\", "
                              "\"minimum\": 1, \"maximum\": 100000, \"description\": "
                              "\"How many lines, at most; 2000 by default.\"}, "
                              "\"skip\": {\"type\": \"integer\", \"minimum\": 0, "
                              "\"description\": \"Bytes of the first line to leave out: for "
                              "lines that were cut.\"}}, "
                              "\"required\": [\"path\"], \"additionalProperties\": false}",
          .annotations = READ_ONLY,
          .run = builtin_read_file },
        { .name = "write_file",
          .title = "Write a file",
          .description = "Write a text file of the workspace: a new one, in place of what it held, "
                         "or at its end. Directories that are missing are made.",
          .input_schema = "{\"type\": \"object\", \"properties\": {" PATH_PROPERTY(
                  "The file") "}, \"content\": {\"type\": \"string\", \"description\": "
                              "\"All that the file shall hold.\"}, \"append\": "
                              "{\"type\": \"boolean\", \"description\": \"Add to its end "
                              "instead.\"}}, \"required\": [\"path\", \"content\"], "
                              "\"additionalProperties\": false}",
          .annotations = "{\"destructiveHint\": true, \"openWorldHint\": false}",
          .run = write_file },
        { .name = "list_files",
          .title = "List files",
          .description = "List the files of a directory of the workspace, in the order of their "
                         "names. Directories end with a slash.",
          .input_schema = "{\"type\": \"object\", \"properties\": {" PATH_PROPERTY(
                  "The directory") ", \"default\": \".\"}, \"depth\": {\"type\": "
                                   "\"integer\", \"minimum\": 1, \"maximum\": 32, "
                                   "\"description\": \"How deep; 1, the default, is the "
                                   "directory alone.\"}, \"hidden\": {\"type\": "
                                   "\"boolean\", \"description\": \"Names that begin with "
                                   "a dot as well.\"}, \"limit\": {\"type\": \"integer\", "
                                   "\"minimum\": 1, \"maximum\": 10000}}, "
                                   "\"additionalProperties\": false}",
          .annotations = READ_ONLY,
          .run = list_files },
        { .name = "search_files",
          .title = "Search files",
          .description = "Find the lines that match a regular expression (POSIX, extended) in the "
                         "text files of a directory of the workspace and below it. Answers "
                         "PATH:LINE: TEXT.",
          .input_schema =
                  "{\"type\": \"object\", \"properties\": {\"pattern\": {\"type\": \"string\", "
                  "\"minLength\": 1}, " PATH_PROPERTY(
                          "The directory or file") ", \"default\": \".\"}, \"names\": {\"type\": "
                                                   "\"string\", \"description\": \"Only in files "
                                                   "of such names, for example *.c\"}, "
                                                   "\"ignore_case\": {\"type\": \"boolean\"}, "
                                                   "\"hidden\": {\"type\": \"boolean\"}, "
                                                   "\"limit\": {\"type\": \"integer\", "
                                                   "\"minimum\": 1, \"maximum\": 5000}}, "
                                                   "\"required\": [\"pattern\"], "
                                                   "\"additionalProperties\": false}",
          .annotations = READ_ONLY,
          .run = builtin_search_files },
};

int builtin_add_files(cbx_toolbox *toolbox, cbx_error *error)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(tools); i++)
                if (!builtin_is_taken(toolbox, tools[i].name))
                        r = cbx_toolbox_add_function(toolbox, &tools[i], error);
        return r;
}
