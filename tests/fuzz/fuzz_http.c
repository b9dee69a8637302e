/* SPDX-License-Identifier: MIT */
/*
 * Requests of HTTP come from anybody who can connect. The input is a head and what follows it. What
 * a head is parsed to has no control characters in it; a body in chunks is the same however it is
 * cut; a request is let through only with the one Host and token; and where the headers are said to
 * agree with the body, they do.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "serve/http_parts.h"

#define BODY_MAX 4096
#define TOKEN "0123456789abcdef"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool true_here)
{
        if (!true_here)
                abort();
}

static void check_text(const char *text)
{
        for (; *text; text++)
                demand(((unsigned char)*text >= 0x20 || *text == '\t') && *text != 0x7f);
}

static void check_head(const struct http_head *head)
{
        demand(head->method && head->target && head->target[0] == '/');
        demand(head->n_fields <= HTTP_FIELDS_MAX);
        demand(!head->chunked || head->length == 0);
        check_text(head->method);
        check_text(head->target);
        for (size_t i = 0; i < head->n_fields; i++) {
                const char *value = head->fields[i].value;

                check_text(head->fields[i].name);
                check_text(value);
                demand(!strpbrk(head->fields[i].name, " \t:"));
                demand(!*value ||
                       (!strchr(" \t", *value) && !strchr(" \t", value[strlen(value) - 1])));
        }
        (void)http_accepts(http_head_get(head, "accept"), "text/event-stream");
}

/* ---- Who may ask ---- */

static void check_access(const struct http_head *head)
{
        static char host[] = "tools.example", origin[] = "https://app.example";
        static char *hosts[] = { host, NULL }, *origins[] = { origin, NULL };
        const struct serve_http http = { .hosts = hosts, .origins = origins };
        const char *given = http_head_get(head, "host"), *why = NULL, *token;

        if (http_check_access(&http, head, &why) == 0) {
                /* A name that is none of ours never passes. */
                demand(!given || strspn(given, "0123456789.:[]abcdefABCDEF") == strlen(given) ||
                       strncasecmp(given, "localhost", 9) == 0 ||
                       strncasecmp(given, host, strlen(host)) == 0);
        } else {
                demand(why != NULL);
        }
        token = http_head_get(head, "authorization");
        if (http_check_token(TOKEN, head))
                demand(token && strstr(token, TOKEN) &&
                       strlen(strstr(token, TOKEN)) == strlen(TOKEN));
}

/* ---- Chunks ---- */

static ssize_t take_chunks(const char *data, size_t size, size_t piece, struct buffer *body,
                           struct http_chunks *chunks)
{
        size_t at = 0;

        *chunks = (struct http_chunks){ 0 };
        while (at < size && chunks->state != CHUNK_DONE) {
                ssize_t n =
                        http_chunks_take(chunks, data + at, MIN(piece, size - at), BODY_MAX, body);

                if (n < 0)
                        return n;
                demand(n > 0);
                at += (size_t)n;
        }
        return (ssize_t)at;
}

static void check_chunks(const char *data, size_t size)
{
        _cleanup_buffer_ struct buffer whole = BUFFER_INIT, cut = BUFFER_INIT;
        struct http_chunks one, other;
        ssize_t n = take_chunks(data, size, size ? size : 1, &whole, &one);
        ssize_t m = take_chunks(data, size, 3, &cut, &other);

        demand(n == m && one.state == other.state && whole.length == cut.length);
        demand(whole.length <= BODY_MAX);
        demand(whole.length == 0 || memcmp(whole.data, cut.data, whole.length) == 0);
}

/* ---- Headers and body ---- */

static void check_mirror(const struct http_head *head, const char *data, size_t size)
{
        static json_t *tool;
        _cleanup_rpc_message_ struct rpc_message message = { 0 };
        _cleanup_failure_ struct rpc_failure failure = { 0 };
        const char *field;

        if (!tool)
                tool = json_loads("{\"inputSchema\":{\"properties\":{"
                                  "\"r\":{\"type\":\"string\",\"x-mcp-header\":\"R\"},"
                                  "\"n\":{\"type\":\"integer\",\"x-mcp-header\":\"N\"},"
                                  "\"b\":{\"type\":\"boolean\",\"x-mcp-header\":\"B\"},"
                                  "\"o\":{\"properties\":{\"d\":{\"type\":\"string\","
                                  "\"x-mcp-header\":\"D\"}}}}}}",
                                  0, NULL);
        if (rpc_read(data, size, &message, &failure) < 0 || message.kind != RPC_REQUEST ||
            !message.version)
                return;
        if (http_check_mirror(head, &message, tool, &failure) < 0) {
                demand(failure.code == RPC_HEADER_MISMATCH && failure.text[0]);
                return;
        }
        field = http_head_get(head, "mcp-protocol-version");
        demand(field && strcmp(field, message.version) == 0);
        field = http_head_get(head, "mcp-method");
        demand(field && (strcmp(field, message.method) == 0 || field[0] == '='));
        field = http_head_get(head, "mcp-param-r");
        demand(!json_is_string(
                       json_object_get(json_object_get(message.params, "arguments"), "r")) ||
               field);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const char *text = (const char *)data;
        const char *end = memmem(text, size, "\r\n\r\n", 4);
        size_t length = end ? (size_t)(end + 4 - text) : size;
        struct http_head head;
        int status = http_head_parse(&head, text, length);

        demand(status == 0 || (status >= 400 && status < 600));
        if (status == 0) {
                check_head(&head);
                check_access(&head);
                check_mirror(&head, text + length, size - length);
        }
        check_chunks(text + length, size - length);
        http_head_clear(&head);
        return 0;
}
