/* SPDX-License-Identifier: MIT */
#include "cli/spec.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "policy/json_read.h"

#define ARGUMENTS_MAX 65536

static void strings_free(char **strings)
{
        for (char **s = strings; s && *s; s++)
                free(*s);
        free(strings);
}

void spec_free(struct spec *spec)
{
        free(spec->id);
        strings_free(spec->argv);
        strings_free(spec->environment);
        free(spec->directory);
        free(spec->stdin_file);
        free(spec->stdin_text);
        json_decref(spec->limits);
        *spec = (struct spec){ 0 };
}

static int read_text(json_t *value, const struct json_place *at, cbx_error *error, char **to)
{
        const char *text;
        int r = json_read_string(value, at, error, &text);

        if (r < 0)
                return r;
        *to = strdup(text);
        return *to ? 0 : error_oom(error);
}

static int read_id(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        struct spec *spec = to;
        int r = read_text(value, at, error, &spec->id);

        if (r == 0 && !*spec->id)
                return json_refuse(at, error, "must not be empty");
        return r;
}

static int read_argument(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        return read_text(value, at, error, &((char **)to)[at->index]);
}

static int read_argv(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        struct spec *spec = to;

        if (!json_is_array(value))
                return json_refuse_type(at, error, "an array", value);
        if (json_array_size(value) == 0)
                return json_refuse(at, error, "must name a program");
        if (json_array_size(value) > ARGUMENTS_MAX)
                return json_refuse(at, error, "has more than %d arguments", ARGUMENTS_MAX);
        spec->argv = calloc(json_array_size(value) + 1, sizeof(char *));
        if (!spec->argv)
                return error_oom(error);
        return json_read_array(value, at, read_argument, error, spec->argv);
}

static int read_directory(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        struct spec *spec = to;
        int r = read_text(value, at, error, &spec->directory);

        if (r == 0 && spec->directory[0] != '/')
                return json_refuse(at, error, "must be an absolute path");
        return r;
}

static int read_stdin_file(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        return read_text(value, at, error, &((struct spec *)to)->stdin_file);
}

static int read_stdin_text(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        return read_text(value, at, error, &((struct spec *)to)->stdin_text);
}

static int read_stdin(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        static const struct json_field fields[] = { { "file", read_stdin_file },
                                                    { "text", read_stdin_text } };
        struct spec *spec = to;
        int r;

        if (json_is_null(value)) {
                spec->stdin_none = true;
                return 0;
        }
        r = json_read_fields(value, at, fields, ARRAY_SIZE(fields), error, spec);
        if (r == 0 && !spec->stdin_file == !spec->stdin_text)
                return json_refuse(at, error, "must have either \"file\" or \"text\"");
        return r;
}

static int read_environment(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        struct spec *spec = to;
        const char *name, *text;
        json_t *item;
        size_t n = 0;

        if (!json_is_object(value))
                return json_refuse_type(at, error, "an object", value);
        spec->environment = calloc(json_object_size(value) + 1, sizeof(char *));
        if (!spec->environment)
                return error_oom(error);
        json_object_foreach(value, name, item)
        {
                struct json_place place = { .parent = at, .key = name };
                int r = json_read_string(item, &place, error, &text);

                if (r < 0)
                        return r;
                if (!policy_variable_is_name(name))
                        return json_refuse(&place, error, "is no name of a variable");
                if (asprintf(&spec->environment[n++], "%s=%s", name, text) < 0)
                        return error_oom(error);
        }
        return 0;
}

static int read_limits(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        if (!json_is_object(value))
                return json_refuse_type(at, error, "an object", value);
        ((struct spec *)to)->limits = json_incref(value);
        return 0;
}

static int read_tty(json_t *value, const struct json_place *at, cbx_error *error, void *to)
{
        return json_read_bool(value, at, error, &((struct spec *)to)->tty);
}

static const struct json_field fields[] = {
        { "id", read_id },
        { "argv", read_argv },
        { "cwd", read_directory },
        { "stdin", read_stdin },
        { "environment", read_environment },
        { "limits", read_limits },
        { "tty", read_tty },
};

int spec_parse(const char *text, size_t length, cbx_error *error, struct spec *ret_spec)
{
        _cleanup_(spec_free) struct spec spec = { 0 };
        _cleanup_json_ json_t *json = NULL;
        int r;

        r = policy_json_parse(text, length, "the spec", error, &json);
        if (r == 0)
                r = json_read_fields(json, NULL, fields, ARRAY_SIZE(fields), error, &spec);
        if (r < 0)
                return r;
        *ret_spec = spec;
        spec = (struct spec){ 0 };
        return 0;
}

int spec_read(const char *path, cbx_error *error, struct spec *ret_spec)
{
        _cleanup_free_ char *text = NULL;
        size_t length;
        int r;

        r = file_read(AT_FDCWD, path, MIB + 1, &text, &length);
        if (r == -EFBIG)
                return error_set(error, r, "--spec", "%s is larger than 1 MiB", path);
        if (r < 0)
                return error_set(error, r, "--spec", "cannot read %s: %s", path, strerror(-r));
        return spec_parse(text, length, error, ret_spec);
}
