/* SPDX-License-Identifier: MIT */
/*
 * The same call of the same tool: through the library, and as a request of MCP over HTTP on
 * connections that are kept. One at a time; and 64 at once, where what counts is the median of what
 * single calls took.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define IN_FLIGHT 64
#define BATCH 256

static const char manifest[] = "{\"name\": \"true\", \"inputSchema\": {\"type\": \"object\"},"
                               " \"run\": {\"command\": [\"/bin/true\"]}}";

static const char body[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"true\","
        "\"arguments\":{},\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
        "\"io.modelcontextprotocol/clientCapabilities\":{}}}}";

struct kit {
        cbx_warden *warden;
        cbx_policy *policy;
        cbx_toolbox *toolbox;
        pid_t server;
        int sockets[IN_FLIGHT];
        char request[1024];
        char folder[64], file[80];
};

/* ---- Through the library ---- */

static void finish_call(cbx_call *call)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_report report = CBX_REPORT_INIT;

        if (cbx_wait(call, &report, &error) < 0)
                die_callbox("a call", &error);
        if (!cbx_report_result(&report) || !cbx_report_result(&report)->ok)
                die(report.text);
        cbx_report_free(&report);
        cbx_call_free(call);
}

static double run_library(struct contestant *self)
{
        const struct kit *kit = self->with;
        cbx_error error = CBX_ERROR_INIT;
        cbx_call *call = NULL;
        double before = now_ms(), after;

        if (cbx_toolbox_call(kit->toolbox, "true", "{}", &call, &error) < 0)
                die_callbox("a call", &error);
        finish_call(call);
        after = now_ms();
        return after - before;
}

/* So many at once; returns the median of what each took. */
static double run_library_at_once(struct contestant *self)
{
        const struct kit *kit = self->with;
        cbx_error error = CBX_ERROR_INIT;
        cbx_call *calls[IN_FLIGHT] = { NULL };
        struct pollfd polls[IN_FLIGHT];
        double began[IN_FLIGHT], took[BATCH];
        size_t started = 0, ended = 0;

        while (ended < BATCH) {
                for (size_t i = 0; i < IN_FLIGHT; i++) {
                        polls[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
                        if (!calls[i] && started < BATCH) {
                                began[i] = now_ms();
                                started++;
                                if (cbx_toolbox_call(kit->toolbox, "true", "{}", &calls[i],
                                                     &error) < 0)
                                        die_callbox("a call", &error);
                        }
                        if (calls[i])
                                polls[i].fd = cbx_call_fd(calls[i]);
                }
                if (poll(polls, IN_FLIGHT, -1) < 0 && errno != EINTR)
                        die("poll");
                for (size_t i = 0; i < IN_FLIGHT; i++) {
                        cbx_event event = CBX_EVENT_INIT;

                        if (!calls[i] || !polls[i].revents ||
                            cbx_step(calls[i], &event, NULL) < 0 || event.kind != CBX_EVENT_ENDED)
                                continue;
                        finish_call(calls[i]);
                        calls[i] = NULL;
                        took[ended++] = now_ms() - began[i];
                }
        }
        return median(took, BATCH);
}

static void open_toolbox(struct kit *kit)
{
        cbx_toolbox_options opening = CBX_TOOLBOX_OPTIONS_INIT;
        cbx_error error = CBX_ERROR_INIT;

        kit->warden = open_warden(0);
        kit->policy = parse_policy("{}");
        opening.policy = kit->policy;
        if (cbx_toolbox_open(kit->warden, &opening, &kit->toolbox, &error) < 0 ||
            cbx_toolbox_add(kit->toolbox, manifest, strlen(manifest), &error) < 0)
                die_callbox("open a toolbox", &error);
}

/* ---- Over HTTP ---- */

struct answer {
        char data[16384];
        size_t length;
};

static void ask(const struct kit *kit, int fd)
{
        if (write(fd, kit->request, strlen(kit->request)) < 0)
                die("write a request");
}

/* Read some of an answer; true: that was all of it. */
static bool hear(int fd, struct answer *answer)
{
        ssize_t n =
                read(fd, answer->data + answer->length, sizeof(answer->data) - answer->length - 1);

        if (n <= 0)
                die("read an answer");
        answer->length += (size_t)n;
        answer->data[answer->length] = '\0';
        if (answer->length < 5 || strcmp(answer->data + answer->length - 5, "0\r\n\r\n") != 0)
                return false;
        if (strncmp(answer->data, "HTTP/1.1 200", 12) != 0 ||
            strstr(answer->data, "\"isError\":true"))
                die(answer->data);
        answer->length = 0;
        return true;
}

static double run_http(struct contestant *self)
{
        const struct kit *kit = self->with;
        struct answer answer = { .length = 0 };
        double before = now_ms();

        ask(kit, kit->sockets[0]);
        while (!hear(kit->sockets[0], &answer))
                ;
        return now_ms() - before;
}

static double run_http_at_once(struct contestant *self)
{
        const struct kit *kit = self->with;
        static struct answer answers[IN_FLIGHT];
        struct pollfd polls[IN_FLIGHT];
        double began[IN_FLIGHT], took[BATCH];
        size_t started = 0, ended = 0;

        for (; started < IN_FLIGHT; started++) {
                polls[started] = (struct pollfd){ kit->sockets[started], POLLIN, 0 };
                began[started] = now_ms();
                ask(kit, kit->sockets[started]);
        }
        while (ended < BATCH) {
                if (poll(polls, IN_FLIGHT, -1) < 0 && errno != EINTR)
                        die("poll");
                for (size_t i = 0; i < IN_FLIGHT; i++) {
                        if (!polls[i].revents || !hear(polls[i].fd, &answers[i]))
                                continue;
                        took[ended++] = now_ms() - began[i];
                        if (started++ >= BATCH)
                                continue;
                        began[i] = now_ms();
                        ask(kit, polls[i].fd);
                }
        }
        return median(took, BATCH);
}

/* Its first line on stderr names the port. */
static unsigned read_port(int fd)
{
        char line[512];
        size_t length = 0;
        const char *at;

        while (length < sizeof(line) - 1 && read(fd, line + length, 1) == 1 && line[length] != '\n')
                length++;
        line[length] = '\0';
        at = strstr(line, "http://127.0.0.1:");
        if (!at)
                die(line);
        return (unsigned)strtoul(at + strlen("http://127.0.0.1:"), NULL, 10);
}

static void start_server(struct kit *kit)
{
        const char *argv[] = { options.callbox, "mcp",       "--http",       "127.0.0.1:0",
                               "--tools",       kit->folder, "--no-builtin", NULL };
        struct sockaddr_in address = { .sin_family = AF_INET };
        posix_spawn_file_actions_t actions;
        int pipe[2], on = 1;
        FILE *file;

        snprintf(kit->folder, sizeof(kit->folder), "%s/mcp", options.scratch);
        snprintf(kit->file, sizeof(kit->file), "%s/true.json", kit->folder);
        if (mkdir(kit->folder, 0755) < 0 || !(file = fopen(kit->file, "w")) ||
            fputs(manifest, file) < 0 || fclose(file) != 0 || pipe2(pipe, O_CLOEXEC) < 0)
                die(kit->file);
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, pipe[1], STDERR_FILENO);
        if (posix_spawn(&kit->server, options.callbox, &actions, NULL, (char **)argv, environ) != 0)
                die("callbox mcp");
        posix_spawn_file_actions_destroy(&actions);
        close(pipe[1]);
        address.sin_port = htons((uint16_t)read_port(pipe[0]));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        for (size_t i = 0; i < IN_FLIGHT; i++) {
                kit->sockets[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
                if (kit->sockets[i] < 0 ||
                    connect(kit->sockets[i], (struct sockaddr *)&address, sizeof(address)) < 0 ||
                    setsockopt(kit->sockets[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
                        die("connect to callbox mcp");
        }
        snprintf(kit->request, sizeof(kit->request),
                 "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                 "Accept: application/json, text/event-stream\r\nContent-Length: %zu\r\n"
                 "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                 "Mcp-Name: true\r\n\r\n%s",
                 strlen(body), body);
}

static void stop_server(const struct kit *kit)
{
        for (size_t i = 0; i < IN_FLIGHT; i++)
                close(kit->sockets[i]);
        kill(kit->server, SIGTERM);
        while (waitpid(kit->server, NULL, 0) < 0 && errno == EINTR)
                ;
        unlink(kit->file);
        rmdir(kit->folder);
}

static void race_one(struct kit *kit)
{
        struct race race = { .name = "mcp",
                             .what = "a command as a tool, request to result",
                             .rounds = options.rounds,
                             .pause_us = PAUSE_US };
        const struct contestant *library, *http;

        library = race_enter(&race, "through the library", run_library, kit);
        http = race_enter(&race, "MCP over HTTP", run_http, kit);
        race_at_most(&race, "a call over HTTP, against the same through the library", http, 2,
                     library);
        race_run(&race);
}

static void race_at_once(struct kit *kit)
{
        struct race race = { .name = "mcp-64",
                             .what = "the same, 64 at once: the median of 256",
                             .rounds = options.work_rounds,
                             .pause_us = PAUSE_US };
        const struct contestant *library, *http;

        library = race_enter(&race, "through the library", run_library_at_once, kit);
        http = race_enter(&race, "MCP over HTTP, 64 connections", run_http_at_once, kit);
        race_at_most(&race, "a call over HTTP, against the library, 64 at once", http, 2, library);
        race_run(&race);
}

void race_mcp(void)
{
        struct kit kit = { .server = -1 };

        open_toolbox(&kit);
        start_server(&kit);
        race_one(&kit);
        race_at_once(&kit);
        stop_server(&kit);
        cbx_toolbox_close(kit.toolbox);
        cbx_warden_close(kit.warden);
        cbx_policy_unref(kit.policy);
}
