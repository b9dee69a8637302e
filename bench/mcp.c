/* SPDX-License-Identifier: MIT */
/* The same call of the same tool: through the library, and as a request of MCP over HTTP on a
 * connection that is kept. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
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

#define PAUSE_US 6000 /* as in library.c: until boxes are refilled and cleared up after */

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
        int socket;
        char request[1024];
        char folder[64], file[80];
};

/* ---- Through the library ---- */

static double run_library(struct contestant *self)
{
        const struct kit *kit = self->with;
        cbx_error error = CBX_ERROR_INIT;
        cbx_report report = CBX_REPORT_INIT;
        cbx_call *call = NULL;
        double before = now_ms(), after;

        if (cbx_toolbox_call(kit->toolbox, "true", "{}", &call, &error) < 0 ||
            cbx_wait(call, &report, &error) < 0)
                die_callbox("a call", &error);
        cbx_call_free(call);
        after = now_ms();
        if (!cbx_report_result(&report) || !cbx_report_result(&report)->ok)
                die(report.text);
        cbx_report_free(&report);
        return after - before;
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

static double run_http(struct contestant *self)
{
        const struct kit *kit = self->with;
        char answer[65536];
        size_t length = 0;
        double before = now_ms();

        if (write(kit->socket, kit->request, strlen(kit->request)) < 0)
                die("write a request");
        do {
                ssize_t n = read(kit->socket, answer + length, sizeof(answer) - length - 1);

                if (n <= 0)
                        die("read an answer");
                length += (size_t)n;
                answer[length] = '\0';
        } while (length < 5 || strcmp(answer + length - 5, "0\r\n\r\n") != 0);
        if (strncmp(answer, "HTTP/1.1 200", 12) != 0 || strstr(answer, "\"isError\":true"))
                die(answer);
        return now_ms() - before;
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
        kit->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (kit->socket < 0 ||
            connect(kit->socket, (struct sockaddr *)&address, sizeof(address)) < 0 ||
            setsockopt(kit->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
                die("connect to callbox mcp");
        snprintf(kit->request, sizeof(kit->request),
                 "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                 "Accept: application/json, text/event-stream\r\nContent-Length: %zu\r\n"
                 "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                 "Mcp-Name: true\r\n\r\n%s",
                 strlen(body), body);
}

static void stop_server(const struct kit *kit)
{
        close(kit->socket);
        kill(kit->server, SIGTERM);
        while (waitpid(kit->server, NULL, 0) < 0 && errno == EINTR)
                ;
        unlink(kit->file);
        rmdir(kit->folder);
}

void race_mcp(void)
{
        struct kit kit = { .socket = -1 };
        struct race race = { .name = "mcp",
                             .what = "a command as a tool, request to result",
                             .rounds = options.rounds,
                             .pause_us = PAUSE_US };
        const struct contestant *library, *http;

        open_toolbox(&kit);
        start_server(&kit);
        library = race_enter(&race, "through the library", run_library, &kit);
        http = race_enter(&race, "MCP over HTTP", run_http, &kit);
        race_at_most(&race, "a call over HTTP, against the same through the library", http, 2,
                     library);
        race_run(&race);
        stop_server(&kit);
        cbx_toolbox_close(kit.toolbox);
        cbx_warden_close(kit.warden);
        cbx_policy_unref(kit.policy);
}
