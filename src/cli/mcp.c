/* SPDX-License-Identifier: MIT */
/* callbox mcp: boxed tools for every client that speaks MCP. */
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/mcp_http.h"
#include "cli/options.h"
#include "cli/python.h"
#include "cli/routes.h"
#include "cli/tool.h"
#include "policy/plan.h"
#include "serve/builtin.h"
#include "serve/keep.h"
#include "serve/serve.h"

static const char help[] =
        "Usage: callbox mcp [OPTIONS]\n"
        "\n"
        "Serves boxed tools over the Model Context Protocol on stdin and stdout.\n"
        "\n"
        "There are run_command and run_python, and what these add:\n"
        "  --files            read_file, write_file, list_files and search_files\n"
        "  --tools DIR        all tools of a folder of manifests (*.json), watched\n"
        "  --policies DIR     folder of the policies they name (DIR/policies)\n"
        "%s"
        "  --no-builtin       the tools of --tools and --python-tools alone\n"
        "  --warden SOCKET    in boxes that a running callbox warden has ready\n"
        "\n"
        "What they may do; tools of a folder may have policies of their own:\n";

struct mcp {
        const char *tools, *policies, *warden_socket;
        bool files, no_builtin;
        struct python_options python;
        struct options options;
        struct routes routes;
        struct keep *keep;
        char *instructions;
        struct event_base *base;
        cbx_warden *warden;
        cbx_toolbox *toolbox;
        struct serve *serve;
        struct serve_stdio *stdio;
        struct mcp_http http;
        struct event *signals[2];
        int in, out;
};

static const struct {
        const char *name;
        size_t offset;
} values[] = {
        { "--tools", offsetof(struct mcp, tools) },
        { "--policies", offsetof(struct mcp, policies) },
        { "--warden", offsetof(struct mcp, warden_socket) },
};

static const struct {
        const char *name;
        size_t offset;
} switches[] = {
        { "--files", offsetof(struct mcp, files) },
        { "--no-builtin", offsetof(struct mcp, no_builtin) },
};

/* One of our own options. Returns 1, 0 when it is none, or a negative errno. */
static int take_own(struct mcp *mcp, int argc, char **argv, int *index, cbx_error *error)
{
        for (size_t i = 0; i < ARRAY_SIZE(switches); i++)
                if (strcmp(argv[*index], switches[i].name) == 0) {
                        *(bool *)((char *)mcp + switches[i].offset) = true;
                        *index += 1;
                        return 1;
                }
        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
                const char **value = (const char **)((char *)mcp + values[i].offset);
                int r = options_value(argc, argv, index, values[i].name, error, value);

                if (r != 0)
                        return r;
        }
        return 0;
}

static int parse(struct mcp *mcp, int argc, char **argv, cbx_error *error)
{
        for (int index = 1; index < argc;) {
                int r = take_own(mcp, argc, argv, &index, error);

                if (r == 0)
                        r = python_options_take(&mcp->python, argc, argv, &index, error);
                if (r == 0)
                        r = mcp_http_take(&mcp->http, argc, argv, &index, error);
                if (r == 0)
                        r = routes_take(&mcp->routes, argc, argv, &index, error);
                if (r == 0)
                        r = options_take(&mcp->options, argc, argv, &index, error);
                if (r < 0)
                        return r;
                if (r == 0)
                        return error_set(error, -EINVAL, "",
                                         "there is no option \"%s\" (see callbox mcp --help)",
                                         argv[index]);
        }
        return 0;
}

/* The protocol's descriptors are ours alone: what anything else in this process, the warden or a
 * program of it prints goes to stderr, and nothing else reads what the client writes. */
static int take_stdio(struct mcp *mcp, cbx_error *error)
{
        _cleanup_fd_ int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

        mcp->in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
        mcp->out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        if (null < 0 || mcp->in < 0 || mcp->out < 0 || dup2(null, STDIN_FILENO) < 0 ||
            dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
                return error_set(error, -errno, "", "cannot keep stdin and stdout: %s",
                                 strerror(errno));
        return 0;
}

/* Boxes see what is kept of long output. */
static int show_kept(struct mcp *mcp, cbx_policy **policy, cbx_error *error)
{
        _cleanup_json_ json_t *json = policy_to_json(*policy);
        json_t *read = json_object_get(json_object_get(json, "files"), "read");
        cbx_policy *shown = NULL;
        int r = read ? keep_open(plan_is_caged(*policy), routes_warning(&mcp->routes) != NULL,
                                 &mcp->keep, error)
                     : error_oom(error);

        if (r == 0 &&
            json_array_append_new(read, json_pack("{s:s, s:s}", "host", keep_directory(mcp->keep),
                                                  "box", keep_shown(mcp->keep))) < 0)
                r = error_oom(error);
        if (r == 0)
                r = policy_from_json(json, error, &shown);
        if (r == 0) {
                cbx_policy_unref(*policy);
                *policy = shown;
        }
        return r;
}

static int open_toolbox(struct mcp *mcp, cbx_error *error)
{
        cbx_warden_options warden = CBX_WARDEN_OPTIONS_INIT;
        cbx_toolbox_options options = CBX_TOOLBOX_OPTIONS_INIT;
        _cleanup_policy_ cbx_policy *policy = NULL;
        int r;

        options_guard(&mcp->options, "the audit log", mcp->http.audit, "--audit", false);
        options_guard(&mcp->options, "the token", mcp->http.token_file, "--token-file", true);
        options_guard(&mcp->options, "the socket of the warden", mcp->warden_socket, "--warden",
                      false);
        python_options_guard(&mcp->python, &mcp->options);
        r = options_policy(&mcp->options, error, &policy);
        if (r == 0)
                r = show_kept(mcp, &policy, error);
        if (r < 0)
                return r;
        warden.program = "/proc/self/exe";
        warden.socket = mcp->warden_socket;
        options.policy = policy;
        options.policies = mcp->policies;
        options.server = tool_command_server();
        routes_apply(&mcp->routes, &options);
        if (routes_warning(&mcp->routes))
                fprintf(stderr, "callbox: warning: %s\n", routes_warning(&mcp->routes));
        python_options_set(&mcp->python, &options);
        r = cli_open_warden(&warden, &mcp->warden, error);
        if (r == 0)
                r = cbx_toolbox_open(mcp->warden, &options, &mcp->toolbox, error);
        if (r == 0)
                r = cli_guard_tools(&mcp->options, mcp->toolbox, error);
        if (r == 0 && mcp->tools)
                r = cbx_toolbox_load(mcp->toolbox, mcp->tools, error);
        if (r == 0)
                r = python_options_load(&mcp->python, mcp->toolbox, error);
        /* What cannot be kept here is told now. */
        if (r == 0 && !mcp->no_builtin && mcp->routes.mode == CBX_STRICT)
                r = cbx_prepare(mcp->warden, policy, error);
        if (r == 0 && !mcp->no_builtin)
                r = builtin_add(mcp->toolbox, policy, mcp->files, error);
        if (r == 0)
                routes_tell_unused(&mcp->routes, mcp->toolbox);
        return r;
}

static void tell_broken(void *context, const char *file, const char *text)
{
        python_print_broken(((struct mcp *)context)->tools, file, text, true);
}

static void tell_ended(void *context, const struct serve_ended *ended)
{
        record_ended(((struct mcp *)context)->http.record, ended);
}

static void on_signal(evutil_socket_t signal, short what, void *context)
{
        struct mcp *mcp = context;

        (void)signal, (void)what;
        serve_stop(mcp->serve);
        event_base_loopbreak(mcp->base);
}

#define SANDBOX                                                                                    \
        "runs in a sandbox of its own: nothing but files of the workspace is kept from one call "  \
        "to the next, neither processes nor variables. A call that failed says what the policy "   \
        "refused and which option of callbox mcp would allow it; only the user can change that, "  \
        "so tell him rather than look for a way around it."
#define NO_SANDBOX                                                                                 \
        "without a sandbox, with all rights of the user who started this server: what it changes " \
        "on this computer stays changed. Neither processes nor variables are kept from one call "  \
        "to the next. "

/* What a model is told: what is so here. */
static const char *instruct(const struct routes *routes)
{
        if (routes->mode != CBX_STRICT)
                return "A tool here runs " NO_SANDBOX
                       "Only a tool whose manifest asks for a sandbox has one.";
        if (routes_warning(routes))
                return "A tool here that the user has not elevated " SANDBOX
                       " A tool that he has elevated runs " NO_SANDBOX
                       "The answer of such a call says so in its _meta (callbox/route).";
        return "Every call of a tool here " SANDBOX;
}

static int open_server(struct mcp *mcp, cbx_error *error)
{
        static const int numbers[] = { SIGTERM, SIGINT };
        struct serve_options options = { .keep = mcp->keep,
                                         .hooks = { .context = mcp, .broken = tell_broken } };
        int r;

        if (asprintf(&mcp->instructions,
                     "%s Output that is too long for an answer is in a file below %s, which the "
                     "answer names.",
                     instruct(&mcp->routes), keep_shown(mcp->keep)) < 0) {
                mcp->instructions = NULL;
                return error_oom(error);
        }
        options.instructions = mcp->instructions;
        mcp->base = event_base_new();
        if (!mcp->base || event_base_priority_init(mcp->base, 3) < 0)
                return error_set(error, -ENOMEM, "", "cannot make an event loop");
        r = mcp_http_open_record(&mcp->http, error);
        if (r < 0)
                return r;
        if (mcp->http.record)
                options.hooks.ended = tell_ended;
        r = serve_open(mcp->base, mcp->toolbox, &options, &mcp->serve, error);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(numbers); i++) {
                mcp->signals[i] = evsignal_new(mcp->base, numbers[i], on_signal, mcp);
                if (!mcp->signals[i] || event_add(mcp->signals[i], NULL) < 0)
                        r = error_oom(error);
        }
        if (r == 0)
                r = mcp_http_open(&mcp->http, mcp->serve, mcp->base, error);
        if (r == 0 && !mcp->http.http)
                r = serve_stdio_open(mcp->serve, mcp->base, mcp->in, mcp->out, &mcp->stdio, error);
        return r;
}

static void close_all(struct mcp *mcp)
{
        mcp->stdio = serve_stdio_close(mcp->stdio);
        mcp_http_close(&mcp->http);
        mcp->serve = serve_close(mcp->serve);
        for (size_t i = 0; i < ARRAY_SIZE(mcp->signals); i++)
                if (mcp->signals[i])
                        event_free(mcp->signals[i]);
        cbx_toolbox_close(mcp->toolbox);
        cbx_warden_close(mcp->warden);
        keep_close(mcp->keep);
        free(mcp->instructions);
        mcp_http_free(&mcp->http);
        if (mcp->base)
                event_base_free(mcp->base);
        options_free(&mcp->options);
        routes_free(&mcp->routes);
        base_close(mcp->in);
        base_close(mcp->out);
}

int cli_mcp(int argc, char **argv)
{
        struct mcp mcp = { .in = -1, .out = -1 };
        cbx_error error = CBX_ERROR_INIT;
        int r;

        for (int i = 1; i < argc; i++)
                if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
                        return printf(help, python_help) < 0 || fputs(options_help, stdout) < 0 ||
                                               fputs(mcp_http_help, stdout) < 0 ||
                                               fputs(routes_help, stdout) < 0
                                       ? EXIT_CALLBOX
                                       : 0;
        r = parse(&mcp, argc, argv, &error);
        if (r == 0)
                r = take_stdio(&mcp, &error);
        if (r == 0)
                r = open_toolbox(&mcp, &error);
        if (r == 0)
                r = open_server(&mcp, &error);
        if (r == 0)
                event_base_dispatch(mcp.base);
        if (r < 0) {
                if (strcmp(error.where, "directory") == 0)
                        snprintf(error.where, sizeof(error.where), "--tools");
                options_blame(&mcp.options, &error);
                cli_print_error(&error);
        }
        close_all(&mcp);
        return r < 0 ? EXIT_CALLBOX : 0;
}
