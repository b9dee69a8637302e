/* SPDX-License-Identifier: MIT */
/*
 * /mcp: from a request of HTTP to a message for the dispatcher, and from its answer back.
 *
 * What takes a while is answered by a stream of events, which begins at once: proxies see a sign of
 * life, and notifications have a way. What is answered at once is JSON, with the status that goes
 * with it.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "serve/http_parts.h"
#include "serve/record.h"
#include "tool/toolbox.h"

/* Values of one message: to check more, and to free them, would take longer than others should
 * wait. */
#define VALUES_MAX 20000

/* ---- Admission: from the head alone ---- */

static bool is_method(const struct http_connection *connection, const char *method)
{
        return strcmp(connection->head.method, method) == 0;
}

static bool is_path(const struct http_connection *connection, const char *path)
{
        size_t n = strlen(path);

        return strncmp(connection->head.target, path, n) == 0 &&
               strchr("?#", connection->head.target[n]);
}

static int refuse(struct http_connection *connection, int status, const char *more,
                  const char *text)
{
        connection_refuse(connection, status, more, text);
        return status;
}

static int answer_health(struct http_connection *connection)
{
        if (!is_method(connection, "GET"))
                return refuse(connection, 405, "Allow: GET\r\n", "there is only GET here");
        connection_answer(connection, 200, "text/plain; charset=utf-8", "", "ok\n", 3);
        return 200;
}

static int answer_metrics(struct http_connection *connection)
{
        _cleanup_buffer_ struct buffer text = BUFFER_INIT;

        if (!is_method(connection, "GET"))
                return refuse(connection, 405, "Allow: GET\r\n", "there is only GET here");
        if (!connection->http->record || http_write_metrics(connection->http, &text) < 0)
                return refuse(connection, 503, "", "there are no metrics");
        connection_answer(connection, 200, "text/plain; version=0.0.4; charset=utf-8", "",
                          text.data, text.length);
        return 200;
}

/* Is the type before any parameters this one? */
static bool is_type(const char *field, const char *type)
{
        size_t n = strlen(type);

        return field && strncasecmp(field, type, n) == 0 && strchr(" \t;", field[n]);
}

static int admit_message(struct http_connection *connection)
{
        const struct http_head *head = &connection->head;
        const char *accept = http_head_get(head, "accept");

        connection->accepts_sse = accept && http_accepts(accept, "text/event-stream");
        if (is_method(connection, "GET"))
                return connection->accepts_sse
                               ? 0
                               : refuse(connection, 406, "", "Accept lacks text/event-stream");
        if (is_method(connection, "DELETE"))
                return 0;
        if (!is_method(connection, "POST"))
                return refuse(connection, 405, "Allow: POST, GET, DELETE\r\n",
                              "there are only POST, GET and DELETE here");
        if (!is_type(http_head_get(head, "content-type"), "application/json"))
                return refuse(connection, 415, "", "Content-Type must be application/json");
        if (accept && !connection->accepts_sse && !http_accepts(accept, "application/json"))
                return refuse(connection, 406, "",
                              "Accept has neither application/json nor text/event-stream");
        return 0;
}

int endpoint_admit(struct http_connection *connection)
{
        const char *why = NULL;
        int status;

        /* HTTP/1.1 asks for it of every request, whatever is asked for. */
        if (!http_head_get(&connection->head, "host") && connection->head.streams)
                return refuse(connection, 400, "", "there is no Host");
        if (is_path(connection, "/healthz"))
                return answer_health(connection);
        status = http_check_access(connection->http, &connection->head, &why);
        if (status)
                return refuse(connection, status, "", why);
        if (!http_check_token(connection->http->token, &connection->head))
                return refuse(connection, 401, "WWW-Authenticate: Bearer\r\n",
                              "a bearer token is needed (Authorization: Bearer ...)");
        if (is_path(connection, "/metrics"))
                return answer_metrics(connection);
        if (!is_path(connection, "/mcp"))
                return refuse(connection, 404, "", "the endpoint is /mcp");
        return admit_message(connection);
}

/* ---- The way back ---- */

/* In the newest of the older versions a client can take up a stream that it has lost. Those before
 * would take an event without data for a message. */
static void begin_stream(struct http_connection *connection)
{
        const char *version =
                connection->session ? serve_peer_version(connection->session->peer) : NULL;

        if (version && strcmp(version, SERVE_LEGACY_VERSION) == 0)
                connection->stream = ++connection->http->streams;
        connection_sse_begin(connection, "");
}

static bool reply_send(struct serve_reply *reply, const char *text, size_t length)
{
        struct http_connection *connection = (struct http_connection *)reply;

        if (!connection->sse && !connection->accepts_sse)
                return false;
        if (!connection->sse)
                begin_stream(connection);
        return connection_sse(connection, text, length, true);
}

static void reply_finish(struct serve_reply *reply, int status, const char *text, size_t length)
{
        struct http_connection *connection = (struct http_connection *)reply;
        char more[64 + SESSION_ID_LENGTH] = "";

        connection->request = NULL;
        if (connection->initializing && serve_peer_version(connection->session->peer)) {
                connection->initializing = false;
                snprintf(more, sizeof(more), "Mcp-Session-Id: %s\r\n", connection->session->id);
        }
        if (connection->sse) {
                if (text)
                        (void)connection_sse(connection, text, length, false);
                connection_sse_end(connection);
        } else {
                /* A request that was cancelled has no answer, but HTTP has one. */
                connection_answer(connection, status ? status : 202,
                                  text ? "application/json" : NULL, more, text, length);
        }
}

static void fail(struct http_connection *connection, const struct rpc_message *message,
                 const struct rpc_failure *failure)
{
        _cleanup_free_ char *text = serve_refuse(message, failure);

        connection_answer(connection, failure->status ? failure->status : 200, "application/json",
                          "", text ? text : "", text ? strlen(text) : 0);
}

/* ---- Messages ---- */

/* Strings apart, each value but the first has a comma or a bracket before it. */
static bool has_too_many_values(const struct buffer *body)
{
        size_t values = 0;

        for (size_t i = 0; i < body->length; i++) {
                char c = body->data[i];

                if (c == '"')
                        for (i++; i < body->length && body->data[i] != '"'; i++)
                                i += body->data[i] == '\\';
                else
                        values += c == ',' || c == '[' || c == '{';
        }
        return values > VALUES_MAX;
}

static json_t *find_tool(struct serve_http *http, const struct rpc_message *message)
{
        const char *name = json_string_value(json_object_get(message->params, "name"));
        cbx_toolbox *toolbox = serve_toolbox(http->serve);
        struct tool *tool;
        json_t *document = NULL;

        if (strcmp(message->method, "tools/call") != 0 || !name)
                return NULL;
        pthread_mutex_lock(&toolbox->lock);
        tool = toolbox_find(toolbox, name);
        if (tool)
                document = json_incref(tool->document);
        pthread_mutex_unlock(&toolbox->lock);
        return document;
}

/* A version that the header alone names, and that nobody here speaks. */
static int check_version(const struct http_head *head, struct rpc_failure *failure)
{
        const char *version = http_head_get(head, "mcp-protocol-version");
        json_t *known;

        if (!version || serve_version_is_known(version))
                return 0;
        rpc_fail(failure, RPC_UNSUPPORTED_VERSION, "protocol version %.64s is not spoken here",
                 version);
        known = json_array();
        for (const char *const *name = serve_versions; *name; name++)
                json_array_append_new(known, json_string(*name));
        failure->data = json_pack("{s:o, s:s}", "supported", known, "requested", version);
        return -EINVAL;
}

static const struct serve_peer_ops post_ops = { .transport = "http" };

/* Which conversation does the message belong to? */
static int choose_peer(struct http_connection *connection, const struct rpc_message *message,
                       struct rpc_failure *failure)
{
        struct serve_http *http = connection->http;
        const char *id = http_head_get(&connection->head, "mcp-session-id");
        bool begins = message->kind == RPC_REQUEST && strcmp(message->method, "initialize") == 0;

        connection->modern = message->version || (!begins && !id);
        if (connection->modern) {
                connection->peer = serve_peer_new(http->serve, &post_ops, connection);
                return connection->peer ? 0 : -ENOMEM;
        }
        connection->session = begins ? session_new(http) : session_find(http, id);
        if (!connection->session && begins)
                return -ENOMEM;
        if (!connection->session) {
                rpc_fail(failure, RPC_INVALID_REQUEST, "there is no such session: begin a new one");
                failure->status = 404;
                return -EINVAL;
        }
        connection->initializing = begins;
        connection->session->requests++;
        return 0;
}

static int check(struct http_connection *connection, struct rpc_message *message,
                 struct rpc_failure *failure)
{
        _cleanup_json_ json_t *tool = NULL;

        if (message->kind == RPC_RESPONSE || !message->version)
                return check_version(&connection->head, failure);
        tool = find_tool(connection->http, message);
        return http_check_mirror(&connection->head, message, tool, failure);
}

void endpoint_read(const struct buffer *body, struct endpoint_message *ret)
{
        ret->error = has_too_many_values(body)
                             ? -E2BIG
                             : rpc_read(body->data ? body->data : "", body->length, &ret->message,
                                        &ret->failure);
}

void endpoint_message_clear(struct endpoint_message *message)
{
        rpc_message_clear(&message->message);
        rpc_failure_clear(&message->failure);
}

void endpoint_take_read(struct http_connection *connection, struct endpoint_message *read)
{
        struct serve_request *request;
        int r = read->error;

        connection->head.length = 0;
        if (r == 0)
                r = check(connection, &read->message, &read->failure);
        if (r == 0)
                r = choose_peer(connection, &read->message, &read->failure);
        if (r == -E2BIG)
                connection_refuse(connection, 413, "", "the message has too many values");
        else if (r == -ENOMEM)
                connection_refuse(connection, 503, "", "there is no room for another client");
        else if (r < 0)
                fail(connection, &read->message, &read->failure);
        if (r < 0)
                return;
        connection->reply = (struct serve_reply){ .send = reply_send, .finish = reply_finish };
        request = serve_receive(connection->peer ? connection->peer : connection->session->peer,
                                &read->message, &connection->reply);
        if (!request)
                return;
        connection->request = request;
        if (connection->accepts_sse && !connection->sse)
                begin_stream(connection);
}

static void take_message(struct http_connection *connection)
{
        struct endpoint_message read = { 0 };

        endpoint_read(&connection->body, &read);
        connection_forget_body(connection);
        endpoint_take_read(connection, &read);
        endpoint_message_clear(&read);
}

/* ---- Sessions ---- */

static void open_stream(struct http_connection *connection, struct http_session *session)
{
        struct http_connection *old = session->stream;

        if (old) { /* the client has lost it without our knowing */
                old->session = NULL;
                connection_sse_end(old);
        }
        session->stream = connection;
        connection->session = session;
        connection->state = HTTP_STREAM;
        connection_sse_begin(connection, "");
}

static void take_session_request(struct http_connection *connection)
{
        const char *id = http_head_get(&connection->head, "mcp-session-id");
        struct http_session *session = id ? session_find(connection->http, id) : NULL;

        if (!id) {
                connection_refuse(connection, 405, "Allow: POST\r\n",
                                  "there is only POST here without a session");
        } else if (!session) {
                connection_refuse(connection, 404, "", "there is no such session");
        } else if (is_method(connection, "GET")) {
                if (!lost_resume(connection, session))
                        open_stream(connection, session);
        } else {
                session_free(session);
                connection_answer(connection, 200, NULL, "", NULL, 0);
        }
}

void endpoint_take(struct http_connection *connection)
{
        if (is_method(connection, "POST"))
                take_message(connection);
        else
                take_session_request(connection);
}

void endpoint_leave(struct http_connection *connection)
{
        struct serve_request *request = TAKE_PTR(connection->request);
        struct http_session *session;

        lost_leave(connection);
        if (request && connection->stream && !connection->http->closing &&
            lost_keep(connection, request) == 0)
                request = NULL;
        session = TAKE_PTR(connection->session);
        connection->peer = serve_peer_free(connection->peer); /* ends its call */
        if (!session)
                return;
        if (request)
                serve_request_detach(request);
        if (session->stream == connection)
                session->stream = NULL;
        else
                session->requests--;
        session->used = time_now();
        if (connection->initializing) /* it was refused */
                session_free(session);
        connection->initializing = false;
}
