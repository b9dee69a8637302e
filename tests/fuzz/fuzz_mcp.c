/* SPDX-License-Identifier: MIT */
/*
 * A client of MCP that says anything: lines in pieces, messages of both eras. Whatever comes, each
 * thing that is said to it is one valid message on one line, no request is answered twice, the
 * lines are the same however they are cut, and nothing is left over. The warden is one that cannot
 * be started: calls end with an error, questions and tasks work.
 */
#include <event2/event.h>
#include <string.h>

#include "serve/lines.h"
#include "serve/serve_parts.h"

#define LINE_MAX_LENGTH 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
        if (!holds)
                abort();
}

/* ---- Lines, however they are cut ---- */

static void take_lines(struct lines *lines, bool ended, struct buffer *to)
{
        const char *line;
        size_t length;
        int r;

        while ((r = lines_next(lines, ended, &line, &length)) != 0) {
                must(r == 1 || r == -EMSGSIZE);
                if (r == 1) {
                        must(length <= LINE_MAX_LENGTH && !memchr(line, '\n', length));
                        must(buffer_printf(to, "%zu:", length) == 0 &&
                             buffer_add(to, line, length) == 0);
                } else {
                        must(buffer_add(to, "!", 1) == 0);
                }
        }
}

static void try_lines(const char *data, size_t size, unsigned cut)
{
        _cleanup_buffer_ struct buffer whole = BUFFER_INIT, pieces = BUFFER_INIT;
        struct lines one = { .limit = LINE_MAX_LENGTH }, many = one;

        must(lines_add(&one, data, size) == 0);
        take_lines(&one, true, &whole);
        for (size_t at = 0; at < size;) {
                size_t n;

                cut = cut * 1103515245U + 12345U;
                n = MIN(size - at, (size_t)1 + (cut >> 16) % 300);
                must(lines_add(&many, data + at, n) == 0);
                take_lines(&many, false, &pieces);
                at += n;
        }
        take_lines(&many, true, &pieces);
        must(whole.length == pieces.length &&
             (whole.length == 0 || memcmp(whole.data, pieces.data, whole.length) == 0));
        lines_free(&one);
        lines_free(&many);
}

/* ---- The server ---- */

static size_t unanswered;

static void check_message(const char *text, size_t length)
{
        _cleanup_json_ json_t *message =
                json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);

        must(message && json_is_object(message) && !memchr(text, '\n', length));
        must(strcmp(json_string_value(json_object_get(message, "jsonrpc")), "2.0") == 0);
}

static bool on_send(struct serve_reply *reply, const char *text, size_t length)
{
        (void)reply;
        check_message(text, length);
        return true;
}

static void on_finish(struct serve_reply *reply, int status, const char *text, size_t length)
{
        (void)reply;
        must(unanswered > 0);
        unanswered--;
        must(status == 0 || (status >= 200 && status < 600));
        if (text)
                check_message(text, length);
}

static void on_send_to_peer(void *context, const char *text, size_t length)
{
        (void)context;
        check_message(text, length);
}

static cbx_toolbox *make_toolbox(void)
{
        static const char *const manifests[] = {
                "{\"name\": \"plain\", \"inputSchema\": {\"type\": \"object\"}, \"run\": "
                "{\"command\": [\"true\"]}}",
                "{\"name\": \"asks\", \"inputSchema\": {\"type\": \"object\", \"properties\": "
                "{\"x\": {\"type\": \"integer\"}}}, \"ask\": {\"message\": \"Well?\", \"policy\": "
                "{\"network\": \"host\"}}, \"run\": {\"command\": [\"true\"]}}",
                "{\"name\": \"task\", \"inputSchema\": {\"type\": \"object\"}, \"task\": "
                "{\"required\": true}, \"returns\": \"content\", \"run\": {\"command\": "
                "[\"true\"], \"output\": \"json\"}}",
        };
        static struct cbx_warden warden = { .lock = PTHREAD_MUTEX_INITIALIZER,
                                            .socket = -1,
                                            .program = (char *)"/nonexistent/callbox" };
        cbx_toolbox *toolbox = NULL;

        must(cbx_toolbox_open(&warden, NULL, &toolbox, NULL) == 0);
        for (size_t i = 0; i < ARRAY_SIZE(manifests); i++)
                must(cbx_toolbox_add(toolbox, manifests[i], strlen(manifests[i]), NULL) == 0);
        return toolbox;
}

static void receive(struct serve_peer *peer, const char *line, size_t length)
{
        static struct serve_reply reply = { .send = on_send, .finish = on_finish };
        _cleanup_failure_ struct rpc_failure failure = { 0 };
        _cleanup_rpc_message_ struct rpc_message message = { 0 };
        _cleanup_free_ char *text = NULL;

        if (rpc_read(line, length, &message, &failure) < 0) {
                must(failure.code < 0 && failure.text[0]);
                text = serve_refuse(&message, &failure);
                must(text != NULL);
                check_message(text, strlen(text));
                return;
        }
        unanswered++;
        (void)serve_receive(peer, &message, &reply);
}

static void converse(struct event_base *base, cbx_toolbox *toolbox, const char *data, size_t size)
{
        static const struct serve_peer_ops ops = { .transport = "fuzz", .send = on_send_to_peer };
        struct serve_options options = { .page = 2, .requests = 16 };
        struct lines lines = { .limit = LINE_MAX_LENGTH };
        struct serve_numbers numbers;
        struct serve *serve = NULL;
        struct serve_peer *peer;
        const char *line;
        size_t length;
        int r;

        must(serve_open(base, toolbox, &options, &serve, NULL) == 0);
        peer = serve_peer_new(serve, &ops, NULL);
        must(peer && lines_add(&lines, data, size) == 0);
        while ((r = lines_next(&lines, true, &line, &length)) != 0) {
                if (r > 0)
                        receive(peer, line, length);
                event_base_loop(base, EVLOOP_NONBLOCK);
        }
        serve_stop(serve);
        serve_count(serve, &numbers);
        must(unanswered == 0 && numbers.requests == 0 && numbers.calls == 0 && numbers.tasks == 0);
        serve_close(serve);
        lines_free(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct event_base *base;
        static cbx_toolbox *toolbox;
        _cleanup_free_ char *copy = NULL;

        if (size == 0)
                return 0;
        if (!base) {
                base = event_base_new();
                toolbox = make_toolbox();
        }
        copy = malloc(MAX(size - 1, 1));
        must(base && copy);
        memcpy(copy, data + 1, size - 1);
        try_lines(copy, size - 1, data[0]);
        converse(base, toolbox, copy, size - 1);
        return 0;
}
