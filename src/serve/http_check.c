/* SPDX-License-Identifier: MIT */
/*
 * 2026-07-28: headers repeat parts of the body, for whoever stands between and does not read
 * bodies. One who let a request pass for its headers must not have let another one pass: a header
 * that is missing or says something else than the body is refused.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "serve/http_parts.h"

#define WRAPPED_BEGIN "=?base64?"
#define WRAPPED_END "?="
#define PARAM "Mcp-Param-"
#define SCHEMA_DEPTH 16
#define EXACT_MAX 9007199254740991.0 /* integers that every reader of JSON understands alike */

/* ---- Values ---- */

static int digit_of(char c)
{
        static const char digits[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const char *at = c ? strchr(digits, c) : NULL;

        return at ? (int)(at - digits) : -1;
}

/* Strict: whole groups, padding at the end alone. Returns the length or -EINVAL. */
static ssize_t decode(const char *text, size_t length, char *to)
{
        size_t n = 0;

        if (length % 4 != 0)
                return -EINVAL;
        for (size_t i = 0; i < length; i += 4) {
                uint32_t group = 0;
                size_t padding = 0;

                for (size_t j = 0; j < 4; j++) {
                        int digit = digit_of(text[i + j]);

                        if (text[i + j] == '=' && i + 4 == length && j >= 2)
                                padding++;
                        else if (digit < 0 || padding > 0)
                                return -EINVAL;
                        group = group << 6 | (uint32_t)MAX(digit, 0);
                }
                for (size_t j = 0; j < 3 - padding; j++)
                        to[n++] = (char)(group >> (16 - 8 * j));
        }
        return (ssize_t)n;
}

/* The bytes that a header stands for: as they are, or as =?base64?...?=. */
static int value_of(const char *field, char **ret_data, size_t *ret_length)
{
        size_t length = strlen(field), around = strlen(WRAPPED_BEGIN) + strlen(WRAPPED_END);
        _cleanup_free_ char *data = malloc(length + 1);
        ssize_t n = (ssize_t)length;

        if (!data)
                return -ENOMEM;
        if (length >= around && strncmp(field, WRAPPED_BEGIN, strlen(WRAPPED_BEGIN)) == 0 &&
            strcmp(field + length - strlen(WRAPPED_END), WRAPPED_END) == 0)
                n = decode(field + strlen(WRAPPED_BEGIN), length - around, data);
        else
                memcpy(data, field, length);
        if (n < 0)
                return (int)n;
        data[n] = '\0';
        *ret_data = TAKE_PTR(data);
        *ret_length = (size_t)n;
        return 0;
}

static bool is_integer(const char *text, double *ret)
{
        char *end;

        if (text[strspn(text, "-0123456789.")] || !*text)
                return false;
        *ret = strtod(text, &end);
        return !*end && *ret == floor(*ret) && fabs(*ret) <= EXACT_MAX;
}

static bool is_equal(const char *data, size_t length, const json_t *value)
{
        double number;

        if (json_is_string(value))
                return length == json_string_length(value) &&
                       memcmp(data, json_string_value(value), length) == 0;
        if (strlen(data) != length)
                return false;
        if (json_is_boolean(value))
                return strcmp(data, json_is_true(value) ? "true" : "false") == 0;
        return json_is_number(value) && is_integer(data, &number) &&
               number == json_number_value(value);
}

/* `value` NULL: the body has none, and then the header may not be there either. */
static int compare(const char *name, const char *field, const json_t *value,
                   struct rpc_failure *failure)
{
        _cleanup_free_ char *data = NULL;
        size_t length = 0;
        int r;

        if (!field && !value)
                return 0;
        if (!field)
                return rpc_fail(failure, RPC_HEADER_MISMATCH, "the header %.128s is missing", name);
        r = value_of(field, &data, &length);
        if (r == -EINVAL)
                return rpc_fail(failure, RPC_HEADER_MISMATCH,
                                "the header %.128s is no valid base64", name);
        if (r < 0)
                return r;
        if (!value || !is_equal(data, length, value))
                return rpc_fail(failure, RPC_HEADER_MISMATCH,
                                "the header %.128s does not say what the body says", name);
        return 0;
}

/* ---- Arguments that a tool wants to see in headers ---- */

struct mirror {
        const struct http_head *head;
        struct rpc_failure *failure;
};

static bool may_be_mirrored(const json_t *schema)
{
        static const char *const types[] = { "string", "integer", "boolean" };
        const char *type = json_string_value(json_object_get(schema, "type"));

        for (size_t i = 0; type && i < ARRAY_SIZE(types); i++)
                if (strcmp(type, types[i]) == 0)
                        return true;
        return false;
}

static int check_param(struct mirror *mirror, const char *param, const json_t *value)
{
        const char *field = NULL;
        char name[160];

        if (snprintf(name, sizeof(name), PARAM "%s", param) >= (int)sizeof(name))
                return 0;
        for (size_t i = 0; i < mirror->head->n_fields; i++) {
                if (strcasecmp(mirror->head->fields[i].name, name) != 0)
                        continue;
                if (field)
                        return rpc_fail(mirror->failure, RPC_HEADER_MISMATCH,
                                        "the header %s is there twice", name);
                field = mirror->head->fields[i].value;
        }
        return compare(name, field, json_is_null(value) ? NULL : value, mirror->failure);
}

/* Properties that can be reached through `properties` alone. */
static int check_properties(struct mirror *mirror, const json_t *schema, const json_t *arguments,
                            unsigned depth)
{
        const char *key;
        json_t *property;

        if (depth == SCHEMA_DEPTH)
                return 0;
        json_object_foreach(json_object_get(schema, "properties"), key, property)
        {
                const char *param = json_string_value(json_object_get(property, "x-mcp-header"));
                const json_t *value = json_object_get(arguments, key);
                int r = 0;

                if (param && may_be_mirrored(property))
                        r = check_param(mirror, param, value);
                if (r == 0)
                        r = check_properties(mirror, property, value, depth + 1);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- All of it ---- */

/* What Mcp-Name stands for; NULL: nothing, for this method. */
static const char *name_key(const char *method)
{
        static const struct {
                const char *method, *key;
        } named[] = { { "tools/call", "name" },     { "prompts/get", "name" },
                      { "resources/read", "uri" },  { "tasks/get", "taskId" },
                      { "tasks/update", "taskId" }, { "tasks/cancel", "taskId" } };

        for (size_t i = 0; i < ARRAY_SIZE(named); i++)
                if (strcmp(method, named[i].method) == 0)
                        return named[i].key;
        return NULL;
}

/* A notification is held to the headers that it has, a request to all of them. */
static int check_standard(const struct http_head *head, const struct rpc_message *message,
                          struct rpc_failure *failure)
{
        const json_t *method = json_object_get(message->json, "method"), *name = NULL;
        const char *key = name_key(message->method);
        const char *field = http_head_get(head, "mcp-method");
        bool request = message->kind == RPC_REQUEST;
        int r = 0;

        if (field || request)
                r = compare("Mcp-Method", field, method, failure);
        if (r < 0 || !key)
                return r;
        field = http_head_get(head, "mcp-name");
        name = json_object_get(message->params, key);
        if (!json_is_string(name))
                name = NULL;
        return field || request ? compare("Mcp-Name", field, name, failure) : 0;
}

int http_check_mirror(const struct http_head *head, const struct rpc_message *message,
                      const json_t *tool, struct rpc_failure *failure)
{
        const char *version = http_head_get(head, "mcp-protocol-version");
        struct mirror mirror = { .head = head, .failure = failure };
        int r;

        if (!version)
                return rpc_fail(failure, RPC_HEADER_MISMATCH,
                                "the header MCP-Protocol-Version is missing");
        if (strcmp(version, message->version) != 0)
                return rpc_fail(failure, RPC_HEADER_MISMATCH,
                                "the header MCP-Protocol-Version does not say what the body says");
        r = check_standard(head, message, failure);
        if (r == 0 && tool)
                r = check_properties(&mirror, json_object_get(tool, "inputSchema"),
                                     json_object_get(message->params, "arguments"), 0);
        return r;
}
