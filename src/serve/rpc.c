/* SPDX-License-Identifier: MIT */
#include "serve/rpc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define VERSION_KEY "io.modelcontextprotocol/protocolVersion"

/* ---- Failures ---- */

static int status_of(int code)
{
        switch (code) {
        case RPC_PARSE_ERROR:
        case RPC_INVALID_REQUEST:
        case RPC_HEADER_MISMATCH:
        case RPC_MISSING_CAPABILITY:
        case RPC_UNSUPPORTED_VERSION:
                return 400;
        default:
                return 200;
        }
}

int rpc_fail(struct rpc_failure *failure, int code, const char *format, ...)
{
        va_list args;

        failure->code = code;
        failure->status = status_of(code);
        va_start(args, format);
        vsnprintf(failure->text, sizeof(failure->text), format, args);
        va_end(args);
        text_make_showable(failure->text);
        return -EINVAL;
}

void rpc_failure_clear(struct rpc_failure *failure)
{
        json_decref(failure->data);
        failure->data = NULL;
}

/* ---- What comes in ---- */

void rpc_message_clear(struct rpc_message *message)
{
        json_decref(message->json);
        *message = (struct rpc_message){ 0 };
}

/* A string that is what strcmp takes it for. */
static const char *plain_string(const json_t *value)
{
        const char *text = json_string_value(value);

        return text && strlen(text) == json_string_length(value) ? text : NULL;
}

static bool is_id(const json_t *id)
{
        return json_is_number(id) || (json_is_string(id) && json_string_length(id) <= RPC_ID_MAX);
}

static int read_params(struct rpc_message *message, struct rpc_failure *failure)
{
        json_t *params = json_object_get(message->json, "params");
        json_t *meta = json_object_get(params, "_meta"), *version;
        int r = 0;

        if (params && !json_is_object(params))
                r = rpc_fail(failure, RPC_INVALID_PARAMS, "params must be an object, not %s",
                             json_type_str(params));
        else if (meta && !json_is_object(meta))
                r = rpc_fail(failure, RPC_INVALID_PARAMS, "params._meta must be an object, not %s",
                             json_type_str(meta));
        if (r < 0) {
                failure->status = 400;
                return r;
        }
        message->params = params;
        message->meta = meta;
        version = json_object_get(meta, VERSION_KEY);
        message->version = plain_string(version);
        if (version && !message->version) {
                r = rpc_fail(failure, RPC_INVALID_PARAMS, "%s in params._meta must be a string",
                             VERSION_KEY);
                failure->status = 400;
        }
        return r;
}

static int read_members(struct rpc_message *message, struct rpc_failure *failure)
{
        const json_t *version = json_object_get(message->json, "jsonrpc");
        json_t *method = json_object_get(message->json, "method");
        json_t *id = json_object_get(message->json, "id");

        if (is_id(id))
                message->id = id;
        if (!plain_string(version) || strcmp(json_string_value(version), "2.0") != 0)
                return rpc_fail(failure, RPC_INVALID_REQUEST, "jsonrpc must be \"2.0\"");
        if (id && !message->id)
                return rpc_fail(failure, RPC_INVALID_REQUEST,
                                "id must be a number or a string of at most %d bytes", RPC_ID_MAX);
        if (method && !plain_string(method))
                return rpc_fail(failure, RPC_INVALID_REQUEST, "method must be a string");
        if (!method) {
                message->kind = RPC_RESPONSE;
                if (!id || !json_object_get(message->json, "result") ==
                                   !json_object_get(message->json, "error"))
                        return rpc_fail(failure, RPC_INVALID_REQUEST,
                                        "this is neither a request nor a notification nor a "
                                        "response");
                return 0;
        }
        message->method = json_string_value(method);
        message->kind = id ? RPC_REQUEST : RPC_NOTIFICATION;
        return read_params(message, failure);
}

int rpc_read(const char *text, size_t length, struct rpc_message *ret_message,
             struct rpc_failure *failure)
{
        cbx_error error = CBX_ERROR_INIT;
        int r;

        *ret_message = (struct rpc_message){ 0 };
        r = json_parse(text, length, "the message", RPC_MESSAGE_MAX,
                       JSON_PARSE_NUL | JSON_PARSE_LINE, &error, &ret_message->json);
        if (r < 0)
                return rpc_fail(failure, RPC_PARSE_ERROR, "%s%s%s", error.where,
                                error.where[0] ? ": " : "", error.text);
        if (json_is_array(ret_message->json))
                return rpc_fail(failure, RPC_INVALID_REQUEST,
                                "batches are not spoken: send each message by itself");
        if (!json_is_object(ret_message->json))
                return rpc_fail(failure, RPC_INVALID_REQUEST, "a message is an object, not %s",
                                json_type_str(ret_message->json));
        return read_members(ret_message, failure);
}

/* ---- What goes out ---- */

/* Takes `body` as the member `key`, unless it is NULL. */
static char *write_message(const json_t *id, const char *method, const char *key, json_t *body)
{
        _cleanup_json_ json_t *message = json_pack("{s:s}", "jsonrpc", "2.0");
        int r = message ? 0 : -1;

        if (r == 0 && id)
                r = json_object_set(message, "id", (json_t *)id);
        if (r == 0 && method)
                r = json_object_set_new(message, "method", json_string(method));
        if (body && r == 0)
                r = json_object_set_new(message, key, body);
        else
                json_decref(body);
        return r == 0 ? json_write(message, 0) : NULL;
}

char *rpc_write_result(const json_t *id, json_t *result)
{
        return result ? write_message(id, NULL, "result", result) : NULL;
}

char *rpc_write_failure(const json_t *id, const struct rpc_failure *failure)
{
        json_t *error = json_pack("{s:i, s:s}", "code", failure->code, "message", failure->text);

        if (error && failure->data && json_object_set(error, "data", failure->data) < 0) {
                json_decref(error);
                error = NULL;
        }
        return error ? write_message(id, NULL, "error", error) : NULL;
}

char *rpc_write_notification(const char *method, json_t *params)
{
        return write_message(NULL, method, "params", params);
}

char *rpc_write_request(const json_t *id, const char *method, json_t *params)
{
        return write_message(id, method, "params", params);
}
