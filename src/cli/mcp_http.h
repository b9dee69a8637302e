/* SPDX-License-Identifier: MIT */
/* The part of `callbox mcp` that serves HTTP and keeps records. */
#ifndef CLI_MCP_HTTP_H
#define CLI_MCP_HTTP_H

#include "serve/http.h"
#include "serve/record.h"

struct mcp_http {
        const char *address, *token_file, *audit, *body; /* options */
        char **hosts, **origins;
        struct record *record;
        struct serve_http *http;
        struct event *hangup; /* SIGHUP: a new log */
};

/* Try argv[*index] as one of these options, as options_take does. */
int mcp_http_take(struct mcp_http *http, int argc, char **argv, int *index, cbx_error *error);

/* What records are kept of calls: before the server is opened, since it tells of them. */
int mcp_http_open_record(struct mcp_http *http, cbx_error *error);

/* Serve HTTP where --http was given; watch for SIGHUP where there is a log. */
int mcp_http_open(struct mcp_http *http, struct serve *serve, struct event_base *base,
                  cbx_error *error);

/* Before the server is closed, and after it. */
void mcp_http_close(struct mcp_http *http);
void mcp_http_free(struct mcp_http *http);

extern const char mcp_http_help[];

#endif
