/* SPDX-License-Identifier: MIT */
/* What came of a call, as a result of MCP: text for reading, and structured content. */
#include <stdio.h>
#include <string.h>

#include "serve/builtin.h"
#include "serve/serve_parts.h"

#define OWN_META "callbox/" /* what keys of _meta begin with that only callbox may give */

static json_t *text_block(const char *text)
{
        return json_pack("{s:s, s:s}", "type", "text", "text", text);
}

json_t *content_error(const char *text)
{
        return json_pack("{s:[o], s:b}", "content", text_block(text), "isError", 1);
}

/* ---- The structured part ---- */

/* Where all of a stream is that is cut in the report. */
static void add_place(json_t *report, const char *name, const struct keep_stream *kept)
{
        json_t *stream = json_object_get(report, name);

        if (stream && kept->begun && kept->written > 0)
                (void)json_object_set_new(
                        stream, "file", json_sprintf("%s/%s", keep_shown(kept->keep), kept->name));
}

/* The list of all other names, for each name that was in the way. */
static void drop_lists(const json_t *report)
{
        json_t *denials = json_object_get(report, "denials");

        for (size_t i = 0; i < json_array_size(denials); i++) {
                json_t *denial = json_array_get(denials, i);

                if (explain_is_list(json_string_value(json_object_get(denial, "kind"))))
                        (void)json_object_del(denial, "policy");
        }
}

/* The report, but for what a model has no use for, and for what is in it twice. */
static json_t *report_of(const struct serve_call *call, const cbx_report *report)
{
        _cleanup_free_ char *text = NULL;
        json_t *json;

        if (cbx_report_print(report, &text, NULL) < 0)
                return NULL;
        json = json_loads(text, JSON_ALLOW_NUL, NULL);
        if (json) {
                json_t *tool = json_object_get(json, "tool");

                json_object_del(json, "guarantees");
                drop_lists(json);
                if (report->error && report->error->hint[0])
                        (void)json_object_set_new(json_object_get(json, "error"), "hint",
                                                  json_string(explain_fix(report->error)));
                if (call->tool->kind == TOOL_FUNCTION) /* what it said to us, not to a model */
                        json_object_del(json, "result");
                add_place(json, "stdout", &call->kept[0]);
                add_place(json, "stderr", &call->kept[1]);
                if (json_is_string(json_object_get(tool, "output")))
                        json_object_del(tool, "output");
        }
        return json;
}

/* In the older era structured content is an object, and so is what a schema may promise. */
static bool is_listed_schema(const struct serve_call *call)
{
        const json_t *schema = json_object_get(call->tool->document, "outputSchema");
        const char *type = json_string_value(json_object_get(schema, "type"));

        return schema && (call->modern || (type && strcmp(type, "object") == 0));
}

/* Its own result, where that is data rather than text. NULL: there is none. */
static json_t *structured_of(const struct serve_call *call, const cbx_result *result)
{
        bool text = call->tool->kind != TOOL_FUNCTION && call->tool->output == TOOL_TEXT;
        json_t *value;

        if (!result->ok || !result->output || builtin_shows_output(call->tool) ||
            (text && !is_listed_schema(call)))
                return NULL;
        value = json_loads(result->output, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        if (value && !call->modern && !json_is_object(value)) {
                json_decref(value);
                return NULL;
        }
        return value;
}

/* Beside the result: in _meta. */
static int add_report(const struct serve_call *call, const cbx_report *report, json_t *answer,
                      bool beside)
{
        json_t *value = report_of(call, report), *meta = json_object_get(answer, "_meta");

        if (!value)
                return -ENOMEM;
        if (!beside)
                return json_object_set_new(answer, "structuredContent", value);
        if (meta)
                return json_object_set_new(meta, OWN_META "report", value);
        return json_object_set_new(answer, "_meta", json_pack("{s:o}", OWN_META "report", value));
}

int content_add_route(json_t *answer, const cbx_result *result)
{
        json_t *meta = json_object_get(answer, "_meta"), *route;

        if (!result->route || strcmp(result->route, "host") != 0)
                return 0;
        route = json_pack("{s:s, s:s}", "to", result->route, "reason", result->route_reason);
        if (meta)
                return json_object_set_new(meta, OWN_META "route", route);
        return json_object_set_new(answer, "_meta", json_pack("{s:o}", OWN_META "route", route));
}

/* A failed call has nothing that its schema promises: then the report is beside the result. */
static int add_structured(const struct serve_call *call, const cbx_report *report,
                          const cbx_result *result, json_t *answer)
{
        json_t *value = structured_of(call, result);

        if (!value)
                return add_report(call, report, answer, !result->ok && is_listed_schema(call));
        return json_object_set_new(answer, "structuredContent", value);
}

/* ---- All of it ---- */

static json_t *read_success(struct serve_call *call, const cbx_report *report,
                            const cbx_result *result)
{
        _cleanup_buffer_ struct buffer text = BUFFER_INIT;
        int r = builtin_shows_output(call->tool)
                        ? builtin_text(report, result, &text)
                        : buffer_printf(&text, "%s", result->text ? result->text : "");
        json_t *answer;

        if (r == 0 && call->tool->output == TOOL_TEXT)
                r = explain_cut(call, report, &text);
        if (r < 0)
                return NULL;
        answer = json_pack("{s:[o], s:b}", "content", text_block(text.data), "isError", 0);
        return answer;
}

json_t *content_of(struct serve_call *call, const cbx_report *report, const cbx_result *result)
{
        _cleanup_json_ json_t *answer = NULL;
        _cleanup_free_ char *text = NULL;

        if (result->ok) {
                answer = read_success(call, report, result);
        } else {
                text = explain_failure(call, report, result);
                answer = text ? content_error(text) : NULL;
        }
        if (!answer || add_structured(call, report, result, answer) < 0 ||
            content_add_route(answer, result) < 0)
                return NULL;
        return TAKE_PTR(answer);
}

/* ---- Results of MCP that a tool gives ---- */

int content_explain(struct serve_call *call, const cbx_report *report, json_t *given)
{
        _cleanup_buffer_ struct buffer text = BUFFER_INIT;
        bool beside = json_object_get(given, "structuredContent") || is_listed_schema(call);

        if (explain_output(call, report, &text) < 0)
                return -ENOMEM;
        /* It begins with the lines that part it from what stands before. */
        if (text.length > 2 &&
            json_array_append_new(json_object_get(given, "content"), text_block(text.data + 2)) < 0)
                return -ENOMEM;
        return add_report(call, report, given, beside);
}

json_t *content_wrong(struct serve_call *call, const cbx_report *report, const char *why)
{
        _cleanup_buffer_ struct buffer text = BUFFER_INIT;
        _cleanup_json_ json_t *answer = NULL;

        if (buffer_printf(&text, "%s failed: %s", call->tool->name, why) < 0 ||
            explain_output(call, report, &text) < 0)
                return NULL;
        answer = content_error(text.data);
        if (!answer || add_report(call, report, answer, is_listed_schema(call)) < 0)
                return NULL;
        return TAKE_PTR(answer);
}

static bool has_strings(const json_t *object, const char *one, const char *two)
{
        return json_is_string(json_object_get(object, one)) &&
               (!two || json_is_string(json_object_get(object, two)));
}

static bool is_resource(const json_t *resource)
{
        return has_strings(resource, "uri", NULL) &&
               (has_strings(resource, "text", NULL) || has_strings(resource, "blob", NULL));
}

static bool is_block(const json_t *block)
{
        static const struct {
                const char *type, *one, *two;
        } types[] = { { "text", "text", NULL },
                      { "image", "data", "mimeType" },
                      { "audio", "data", "mimeType" },
                      { "resource_link", "uri", "name" } };
        const char *type = json_string_value(json_object_get(block, "type"));

        if (type && strcmp(type, "resource") == 0)
                return is_resource(json_object_get(block, "resource"));
        for (size_t i = 0; type && i < ARRAY_SIZE(types); i++)
                if (strcmp(type, types[i].type) == 0)
                        return has_strings(block, types[i].one, types[i].two);
        return false;
}

static enum content_kind wrong(struct rpc_failure *failure, const char *text)
{
        rpc_fail(failure, RPC_INTERNAL_ERROR, "the tool gave a result that is none of MCP: %s",
                 text);
        return CONTENT_WRONG;
}

static enum content_kind read_blocks(const json_t *given, struct rpc_failure *failure)
{
        static const char *const known[] = { "content", "structuredContent", "isError", "_meta" };
        const json_t *blocks = json_object_get(given, "content");
        const json_t *failed = json_object_get(given, "isError");
        const json_t *meta = json_object_get(given, "_meta");
        cbx_error error = CBX_ERROR_INIT;
        const char *key;
        json_t *value;
        char text[160];

        if (json_check_keys((json_t *)given, NULL, JSON_WORDS(known), &error) < 0) {
                snprintf(text, sizeof(text), "%.64s %.80s", error.where, error.text);
                return wrong(failure, text);
        }
        if (!json_is_array(blocks))
                return wrong(failure, "content must be an array");
        for (size_t i = 0; i < json_array_size(blocks); i++)
                if (!is_block(json_array_get(blocks, i))) {
                        snprintf(text, sizeof(text), "content[%zu] is no block", i);
                        return wrong(failure, text);
                }
        if (failed && !json_is_boolean(failed))
                return wrong(failure, "isError must be true or false");
        if (meta && !json_is_object(meta))
                return wrong(failure, "_meta must be an object");
        json_object_foreach((json_t *)meta, key, value)
        {
                if (strncmp(key, OWN_META, strlen(OWN_META)) == 0)
                        return wrong(failure, "what begins with " OWN_META
                                              " in _meta is said by callbox alone");
        }
        return CONTENT_BLOCKS;
}

static enum content_kind read_questions(const json_t *given, struct rpc_failure *failure)
{
        static const char *const methods[] = { "elicitation/create", "sampling/createMessage",
                                               "roots/list" };
        json_t *requests = json_object_get(given, "inputRequests"), *request;
        const char *key;

        if (!json_is_object(requests) || json_object_size(requests) == 0 ||
            json_object_size(requests) > 64)
                return wrong(failure, "inputRequests must be an object of 1 to 64 requests");
        json_object_foreach(requests, key, request)
        {
                const char *method = json_string_value(json_object_get(request, "method"));
                const json_t *params = json_object_get(request, "params");
                bool found = false;

                for (size_t i = 0; method && i < ARRAY_SIZE(methods); i++)
                        found = found || strcmp(method, methods[i]) == 0;
                if (!found || (params && !json_is_object(params)))
                        return wrong(failure, "an input request has a method that can be asked "
                                              "for, and params");
        }
        return CONTENT_QUESTIONS;
}

static enum content_kind read_error(const json_t *error, struct rpc_failure *failure)
{
        const json_t *code = json_object_get(error, "code");
        const char *text = json_string_value(json_object_get(error, "message"));
        json_int_t number = json_integer_value(code);

        if (!json_is_integer(code) || !text || number < INT_MIN || number > INT_MAX ||
            (number >= -32768 && number <= -32000))
                return wrong(failure, "error has a code that is not the protocol's own, and a "
                                      "message");
        rpc_fail(failure, (int)number, "%s", text);
        failure->data = json_incref(json_object_get(error, "data"));
        return CONTENT_ERROR;
}

enum content_kind content_read(const json_t *given, struct rpc_failure *failure)
{
        if (!json_is_object(given))
                return wrong(failure, "it must be an object");
        if (json_object_get(given, "inputRequests"))
                return read_questions(given, failure);
        if (json_object_get(given, "error"))
                return read_error(json_object_get(given, "error"), failure);
        return read_blocks(given, failure);
}
