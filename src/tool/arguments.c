/* SPDX-License-Identifier: MIT */
/* The arguments of a call, before there is a box. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/tool.h"

static json_t *mistake_to_json(const char *path, const char *keyword, const char *text)
{
        return json_pack("{s:s, s:s, s:s}", "path", path, "keyword", keyword, "text", text);
}

json_t *tool_refusal(const char *before, const struct schema_mistakes *mistakes)
{
        _cleanup_buffer_ struct buffer text = BUFFER_INIT;
        _cleanup_json_ json_t *list = json_array();
        int r = list ? buffer_printf(&text, "%s", before) : -ENOMEM;

        for (size_t i = 0; r == 0 && i < mistakes->n; i++) {
                const struct schema_mistake *mistake = &mistakes->items[i];
                json_t *item = mistake_to_json(mistake->path, mistake->keyword, mistake->text);

                r = json_array_append_new(list, item) < 0 ? -ENOMEM : 0;
                if (r == 0)
                        r = buffer_printf(&text, "%s%s%s%s", i > 0 ? "; " : ": ", mistake->path,
                                          mistake->path[0] ? " " : "", mistake->text);
        }
        if (r == 0 && mistakes->cut)
                r = buffer_printf(&text, "; and more");
        return r < 0 ? NULL : json_pack("{s:s, s:O}", "error", text.data, "mistakes", list);
}

/* A refusal that has no place in a schema: the text is no JSON, or not for a command line. Where a
 * key is given twice there is no pointer to it, so the text names it. */
json_t *tool_refusal_of(const char *before, const cbx_error *error)
{
        char text[sizeof(error->where) + sizeof(error->text) + 2];
        bool pointer = error->where[0] == '/';
        struct schema_mistake item = { .path = (char *)(pointer ? error->where : ""),
                                       .keyword = (char *)"",
                                       .text = text };
        struct schema_mistakes mistakes = { .items = &item, .n = 1 };

        snprintf(text, sizeof(text), "%s%s%s", pointer ? "" : error->where,
                 pointer || !error->where[0] ? "" : ": ", error->text);

        return tool_refusal(before, &mistakes);
}

json_t *tool_refusal_of_all(const char *before, const struct tool_mistakes *mistakes)
{
        struct schema_mistake items[SCHEMA_MISTAKES_MAX];
        struct schema_mistakes found = { .items = items,
                                         .n = MIN(mistakes->n, ARRAY_SIZE(items)),
                                         .cut = mistakes->cut || mistakes->n > ARRAY_SIZE(items) };

        if (mistakes->failed)
                return NULL;
        for (size_t i = 0; i < found.n; i++)
                items[i] = (struct schema_mistake){ .path = mistakes->items[i].where,
                                                    .keyword = (char *)"",
                                                    .text = mistakes->items[i].text };
        return tool_refusal(before, &found);
}

/* Takes the arguments; `r` and the error say whether they could be read. */
static int fill_and_check(const struct tool *tool, json_t *given, int r, cbx_error *problem,
                          json_t **ret_arguments, json_t **ret_refusal)
{
        _cleanup_schema_mistakes_ struct schema_mistakes mistakes = SCHEMA_MISTAKES_INIT;
        _cleanup_json_ json_t *arguments = given;
        cbx_error error = *problem;

        if (r == 0 && !json_is_object(arguments))
                r = error_set(&error, -EINVAL, "", "must be an object, not %s",
                              json_type_str(arguments));
        if (r == 0 && tool->defaults) {
                r = schema_apply_defaults(tool->input, arguments);
                if (r == -E2BIG)
                        error_set(&error, r, "", "the defaults of the schema never end");
        }
        if (r == -ENOMEM)
                return r;
        if (r >= 0) {
                r = schema_check(tool->input, arguments, &mistakes);
                if (r == 0) {
                        *ret_arguments = TAKE_PTR(arguments);
                        return 0;
                }
                if (r < 0 && r != -E2BIG)
                        return r;
                *ret_refusal = tool_refusal(TOOL_BAD_ARGUMENTS, &mistakes);
        } else {
                *ret_refusal = tool_refusal_of(TOOL_BAD_ARGUMENTS, &error);
        }
        return *ret_refusal ? -EINVAL : -ENOMEM;
}

/* ---- Integers of more than 64 bits ---- */

#define HUGE_DIGITS 308 /* with more of them there is no real that is near */

static bool is_wide(const char *number, size_t length)
{
        size_t sign = number[0] == '-';
        char digits[24];

        if (length <= sign || strspn(number + sign, "0123456789") != length - sign)
                return false;
        if (length >= sizeof(digits))
                return true;
        memcpy(digits, number, length);
        digits[length] = '\0';
        errno = 0;
        (void)strtoll(digits, NULL, 10);
        return errno == ERANGE;
}

/* The text with such integers written as reals, which jansson can hold; returns how many. */
static int write_wide_as_real(const char *text, struct buffer *ret)
{
        const char *done = text, *s = text;
        int n = 0, r = 0;

        while (r == 0 && *s) {
                size_t length = strspn(s, "+-.0123456789eE");

                if (*s == '"') {
                        for (s++; *s && *s != '"'; s++)
                                s += *s == '\\' && s[1];
                        s += *s != '\0';
                } else if (length > 0 && is_wide(s, length)) {
                        bool huge = length > HUGE_DIGITS;

                        r = buffer_add(ret, done, (size_t)(s - done));
                        if (r == 0)
                                r = huge ? buffer_printf(ret, "%s1e308", *s == '-' ? "-" : "")
                                         : buffer_printf(ret, "%.*s.0", (int)length, s);
                        s += length;
                        done = s;
                        n++;
                } else {
                        s += MAX(length, 1);
                }
        }
        if (r == 0)
                r = buffer_add(ret, done, (size_t)(s - done));
        return r < 0 ? r : n;
}

/* They are checked as the nearest reals, and all else as it is. */
static int parse_wide(const char *text, json_t **ret_arguments)
{
        _cleanup_buffer_ struct buffer wide = BUFFER_INIT;
        cbx_error error = CBX_ERROR_INIT;
        int r = write_wide_as_real(text, &wide);

        if (r <= 0)
                return r < 0 ? r : -EINVAL;
        return json_parse(wide.data, wide.length, "the text", SIZE_MAX, JSON_PARSE_NUL, &error,
                          ret_arguments);
}

int arguments_read(const struct tool *tool, const char *text, size_t length, json_t **ret_arguments,
                   bool *ret_wide, json_t **ret_refusal)
{
        cbx_error error = CBX_ERROR_INIT;
        json_t *arguments = NULL;
        int r = json_parse(text, length, "the text", TOOL_ARGUMENTS_MAX, JSON_PARSE_NUL, &error,
                           &arguments);

        /* Only a function server takes the text as it is. */
        if (r == -EINVAL && tool->function.argv && !tool->defaults) {
                r = parse_wide(text, &arguments);
                *ret_wide = r == 0;
        }
        return fill_and_check(tool, arguments, r, &error, ret_arguments, ret_refusal);
}

int arguments_check(const struct tool *tool, json_t *given, json_t **ret_arguments,
                    json_t **ret_refusal)
{
        json_t *arguments = tool->defaults ? json_deep_copy(given) : json_incref(given);
        cbx_error error = CBX_ERROR_INIT;

        return fill_and_check(tool, arguments, arguments ? 0 : -ENOMEM, &error, ret_arguments,
                              ret_refusal);
}
