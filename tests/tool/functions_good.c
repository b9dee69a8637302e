/* SPDX-License-Identifier: MIT */
/* Functions that keep to the rules. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "functions.h"

static int reply_json(cbx_reply *reply, json_t *json)
{
        char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);
        int r = text ? cbx_reply_result(reply, text, strlen(text)) : -1;

        free(text);
        json_decref(json);
        return r;
}

/* The arguments are the result. */
static int echo(const char *arguments, size_t length, cbx_reply *reply)
{
        return arguments[length] == '\0' ? cbx_reply_result(reply, arguments, length) : 1;
}

static int nothing(const char *arguments, size_t length, cbx_reply *reply)
{
        (void)arguments;
        (void)length;
        (void)reply;
        return 0;
}

/* A global that a call changes: the next call must not see it. */
static int counter;

static int remember(const char *arguments, size_t length, cbx_reply *reply)
{
        (void)arguments;
        (void)length;
        return reply_json(reply, json_integer(++counter));
}

/* Everything that a function can say, and prints besides. */
static int chatty(const char *arguments, size_t length, cbx_reply *reply)
{
        (void)arguments;
        (void)length;
        printf("printed, and not flushed");
        fprintf(stderr, "complained\n");
        if (cbx_reply_log(reply, "loud", "no such level") != -EINVAL)
                return 9;
        for (int i = 1; i <= 3; i++)
                if (cbx_reply_progress(reply, i, 3, i == 2 ? NULL : "working") < 0)
                        return 8;
        cbx_reply_log(reply, "warning", "a \xc3\xa9 line");
        cbx_reply_log(reply, "debug", "bytes \xff that are no text");
        cbx_reply_text(reply, "in two ");
        cbx_reply_text(reply, "pieces");
        cbx_reply_result(reply, "\"first\"", 7);
        return cbx_reply_result(reply, "\"last\"", 6);
}

static json_t *list_directory(const char *path)
{
        json_t *names = json_array();
        DIR *directory = opendir(path);
        struct dirent *entry;

        while (directory && (entry = readdir(directory)))
                if (entry->d_name[0] != '.')
                        json_array_append_new(names, json_string(entry->d_name));
        if (directory)
                closedir(directory);
        return names;
}

/* What a box lets a function see: its environment, its descriptors, and files that it is told. */
static int look(const char *arguments, size_t length, cbx_reply *reply)
{
        json_t *given = json_loadb(arguments, length, 0, NULL), *path, *result = json_object();
        json_t *files = json_object(), *variables = json_array(), *links = json_object();
        json_t *fds = list_directory("/proc/self/fd"), *fd;
        size_t i;

        for (char **variable = environ; *variable; variable++)
                json_array_append_new(variables, json_string(*variable));
        json_array_foreach(json_object_get(given, "paths"), i, path)
        {
                char text[65536];
                int file = open(json_string_value(path), O_RDONLY | O_CLOEXEC);
                ssize_t n = file < 0 ? -1 : read(file, text, sizeof(text));

                json_object_set_new(files, json_string_value(path),
                                    n < 0 ? json_integer(errno)
                                          : json_stringn_nocheck(text, (size_t)n));
                if (file >= 0)
                        close(file);
        }
        json_array_foreach(fds, i, fd)
        {
                char name[300], target[4096] = "";

                snprintf(name, sizeof(name), "/proc/self/fd/%s", json_string_value(fd));
                if (readlink(name, target, sizeof(target) - 1) > 0)
                        json_object_set_new(links, json_string_value(fd), json_string(target));
        }
        json_object_set_new(result, "files", files);
        json_object_set_new(result, "environment", variables);
        json_object_set_new(result, "descriptors", links);
        json_object_set_new(result, "root", list_directory("/"));
        json_object_set_new(result, "pid", json_integer(getpid()));
        json_decref(fds);
        json_decref(given);
        return reply_json(reply, result);
}

/* A string of so many bytes, quotes included. */
static int large(const char *arguments, size_t length, cbx_reply *reply)
{
        json_t *given = json_loadb(arguments, length, 0, NULL);
        size_t n = (size_t)json_integer_value(json_object_get(given, "bytes"));
        char *text = malloc(n);
        int r;

        json_decref(given);
        if (!text || n < 2)
                return 1;
        memset(text, 'x', n);
        text[0] = text[n - 1] = '"';
        r = cbx_reply_result(reply, text, n);
        free(text);
        return r;
}

#define ANYTHING "{\"type\": \"object\"}"

const cbx_tool good_tools[] = {
        { .name = "echo",
          .title = "Echo",
          .description = "Give the arguments BACK.",
          .input_schema = "{\"type\": \"object\", \"properties\": {\"n\": {\"type\": \"integer\"},"
                          " \"s\": {\"type\": \"string\", \"maxLength\": 5000000}}}",
          .annotations = "{\"readOnlyHint\": true}",
          .run = echo },
        { .name = "defaults",
          .description = "The same with defaults, at most two at once.",
          .input_schema = "{\"type\": \"object\", \"properties\":"
                          " {\"n\": {\"type\": \"integer\", \"default\": 7}}}",
          .run = echo,
          .calls = 2,
          .defaults = 1 },
        { .name = "promise",
          .description = "The same, but it promises an even number.",
          .input_schema = ANYTHING,
          .output_schema = "{\"type\": \"object\", \"required\": [\"n\", \"m\"], \"properties\":"
                           " {\"n\": {\"type\": \"integer\", \"multipleOf\": 2}}}",
          .run = echo },
        { .name = "silent_promise",
          .input_schema = ANYTHING,
          .output_schema = "{\"type\": \"object\"}",
          .run = nothing },
        { .name = "nothing", .input_schema = ANYTHING, .run = nothing },
        { .name = "remember", .input_schema = ANYTHING, .run = remember },
        { .name = "chatty", .input_schema = ANYTHING, .run = chatty },
        { .name = "look", .input_schema = ANYTHING, .run = look },
        { .name = "large",
          .input_schema = "{\"type\": \"object\", \"required\": [\"bytes\"], \"properties\":"
                          " {\"bytes\": {\"type\": \"integer\", \"minimum\": 2}}}",
          .run = large },
        { 0 },
};
