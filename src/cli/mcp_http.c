/* SPDX-License-Identifier: MIT */
#include "cli/mcp_http.h"

#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/options.h"

#define TOKEN_MIN 16
#define TOKEN_MAX 4096

const char mcp_http_help[] =
        "HTTP:    --http ADDRESS:PORT  serve http://ADDRESS:PORT/mcp, not stdin, stdout\n"
        "         --token-file FILE    what clients must send as bearer token; needed\n"
        "                              where the address is not of this host alone\n"
        "         --allow-host NAME    a name in Host that is served, besides localhost\n"
        "         --allow-origin URL   an Origin that may ask, besides those of this host\n"
        "         --body SIZE (1M)     of one message\n"
        "Log:     --audit FILE         a line of JSON for each call; SIGHUP: a new file\n";

static int add_to(char ***list, const char *value, cbx_error *error)
{
        if (!*list)
                *list = list_new();
        return !*list || list_add(list, value) < 0 ? error_oom(error) : 1;
}

int mcp_http_take(struct mcp_http *http, int argc, char **argv, int *index, cbx_error *error)
{
        struct {
                const char *name, **to;
        } values[] = { { "--http", &http->address },
                       { "--token-file", &http->token_file },
                       { "--audit", &http->audit },
                       { "--body", &http->body } };
        const char *value = NULL;
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(values); i++)
                r = options_value(argc, argv, index, values[i].name, error, values[i].to);
        if (r != 0)
                return r;
        r = options_value(argc, argv, index, "--allow-host", error, &value);
        if (r != 0)
                return r < 0 ? r : add_to(&http->hosts, value, error);
        r = options_value(argc, argv, index, "--allow-origin", error, &value);
        return r <= 0 ? r : add_to(&http->origins, value, error);
}

/* ---- The token ---- */

static int check_token(const char *file, const char *token, cbx_error *error)
{
        size_t n = strlen(token);

        for (const char *c = token; *c; c++)
                if (*c <= ' ' || *c > '~')
                        return error_set(error, -EINVAL, "--token-file",
                                         "%s holds more than one word of visible ASCII", file);
        if (n < TOKEN_MIN) {
                error_set(error, -EINVAL, "--token-file", "the token in %s is shorter than %d",
                          file, TOKEN_MIN);
                error_hint(error, "make one: head -c 32 /dev/urandom | base64 >%s", file);
                return -EINVAL;
        }
        return 0;
}

static int read_token(const char *file, char **ret_token, cbx_error *error)
{
        _cleanup_fd_ int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        _cleanup_free_ char *text = NULL;
        struct stat st;
        size_t length;
        int r;

        if (fd < 0 || fstat(fd, &st) < 0)
                return error_set(error, -errno, "--token-file", "cannot read %s: %s", file,
                                 strerror(errno));
        if (S_ISREG(st.st_mode) && (st.st_mode & 077)) {
                error_set(error, -EPERM, "--token-file", "others than its owner may read %s", file);
                error_hint(error, "chmod 600 %s", file);
                return -EPERM;
        }
        r = fd_read(fd, TOKEN_MAX, &text, &length);
        if (r < 0)
                return error_set(error, r, "--token-file", "cannot read %s: %s", file,
                                 strerror(-r));
        while (length > 0 && strchr(" \t\r\n", text[length - 1]))
                text[--length] = '\0';
        if (strlen(text) != length)
                return error_set(error, -EINVAL, "--token-file", "%s is no text", file);
        r = check_token(file, text, error);
        if (r == 0)
                *ret_token = TAKE_PTR(text);
        return r;
}

/* ---- Opening ---- */

int mcp_http_open_record(struct mcp_http *http, cbx_error *error)
{
        const char *name = http->token_file ? "--token-file"
                           : http->body     ? "--body"
                           : http->hosts    ? "--allow-host"
                           : http->origins  ? "--allow-origin"
                                            : NULL;

        if (!http->address && name)
                return error_set(error, -EINVAL, name, "means nothing without --http");
        if (!http->address && !http->audit)
                return 0;
        return record_open(http->audit, &http->record, error);
}

static void on_hangup(evutil_socket_t signal, short what, void *context)
{
        struct mcp_http *http = context;
        cbx_error error = CBX_ERROR_INIT;

        (void)signal, (void)what;
        if (record_reopen(http->record, &error) < 0)
                cli_print_error(&error);
}

static int read_body(const char *text, size_t *ret, cbx_error *error)
{
        uint64_t bytes;

        if (policy_size_from_str(text, &bytes) < 0 || bytes < KIB || bytes > RPC_MESSAGE_MAX)
                return error_set(error, -EINVAL, "--body", "\"%s\" is no size from 1K to 20M",
                                 text);
        *ret = (size_t)bytes;
        return 0;
}

static int open_http(struct mcp_http *http, struct serve *serve, struct event_base *base,
                     cbx_error *error)
{
        _cleanup_free_ char *token = NULL;
        struct serve_http_options options = { .address = http->address,
                                              .hosts = (const char *const *)http->hosts,
                                              .origins = (const char *const *)http->origins,
                                              .record = http->record };
        const char *colon = strrchr(http->address, ':');
        int r = 0;

        if (http->token_file)
                r = read_token(http->token_file, &token, error);
        if (r == 0 && http->body)
                r = read_body(http->body, &options.body, error);
        if (r < 0)
                return r;
        options.token = token;
        r = serve_http_open(serve, base, &options, &http->http, error);
        if (r == 0)
                fprintf(stderr, "callbox: serving http://%.*s:%u/mcp%s\n",
                        (int)(colon - http->address), http->address, serve_http_port(http->http),
                        token ? "" : " to everybody on this host (see --token-file)");
        if (token)
                explicit_bzero(token, strlen(token));
        return r;
}

int mcp_http_open(struct mcp_http *http, struct serve *serve, struct event_base *base,
                  cbx_error *error)
{
        if (http->audit) {
                http->hangup = evsignal_new(base, SIGHUP, on_hangup, http);
                if (!http->hangup || event_add(http->hangup, NULL) < 0)
                        return error_oom(error);
        }
        return http->address ? open_http(http, serve, base, error) : 0;
}

void mcp_http_close(struct mcp_http *http)
{
        http->http = serve_http_close(http->http);
}

void mcp_http_free(struct mcp_http *http)
{
        if (http->hangup)
                event_free(http->hangup);
        http->record = record_close(http->record);
        list_free(http->hosts);
        list_free(http->origins);
}
