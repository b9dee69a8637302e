/* SPDX-License-Identifier: MIT */
/* callbox: a box of its own for every tool call. */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "cli/cli.h"
#include "policy/json_read.h"

static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
} verbs[] = {
        { "run", cli_run },       { "doctor", cli_doctor }, { "mcp", cli_mcp },
        { "policy", cli_policy }, { "tool", cli_tool },     { "warden", cli_warden },
        { "wrap", cli_wrap },
};

static const char help[] =
        "Usage: callbox VERB ...\n"
        "\n"
        "Runs any program in a box of its own: isolated, bounded, watched, then gone.\n"
        "\n"
        "  callbox run [OPTIONS] [--] PROGRAM [ARG...]  run a program in a box\n"
        "  callbox doctor                               show what this host can enforce\n"
        "  callbox mcp [OPTIONS]                        serve boxed tools over MCP\n"
        "  callbox policy check|show|schema             look at policies\n"
        "  callbox policy capabilities|backends         what this host keeps, and by what\n"
        "  callbox tool list|call|check|schema          call tools, each in its own box\n"
        "  callbox warden --socket PATH                 serve programs that attach\n"
        "  callbox wrap [OPTIONS] -- SERVER [ARG...]    run an MCP server in a box\n"
        "\n"
        "  callbox VERB --help, callbox help VERB       explain a verb\n"
        "  callbox --version                            print the version\n"
        "\n"
        "Examples:\n"
        "  callbox run -- python3 script.py\n"
        "  callbox run --workspace . --timeout 10 --memory 256M --json -- make check\n"
        "  callbox run -t -- bash\n"
        "  callbox tool call --tools ./tools word_count '{\"path\": \"a.txt\"}'\n"
        "\n"
        "Manual: callbox-run(1), callbox-doctor(1), callbox-mcp(1), callbox-tool(1),\n"
        "callbox-warden(1), callbox-wrap(1), callbox-policy(5), callbox-manifest(5),\n"
        "callbox-security(7), libcallbox(3), libcallbox-tools(3)\n";

void cli_print_error(const cbx_error *error)
{
        fprintf(stderr, "callbox: %s%s%s\n", error->where, error->where[0] ? ": " : "",
                error->text);
        if (error->hint[0])
                fprintf(stderr, "callbox: to fix it: %s\n", error->hint);
}

int cli_fail(const char *format, ...)
{
        va_list args;

        fputs("callbox: ", stderr);
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fputc('\n', stderr);
        return EXIT_CALLBOX;
}

int cli_open_warden(const cbx_warden_options *options, cbx_warden **ret, cbx_error *error)
{
        int r = cbx_warden_open(options, ret, error);

        if (r < 0 && strcmp(error->where, "socket") == 0)
                (void)snprintf(error->where, sizeof(error->where), "--warden");
        return r;
}

int cli_print_json(json_t *json, int fd)
{
        _cleanup_free_ char *text = json ? json_write(json, isatty(fd) ? 2 : 0) : NULL;

        if (!text)
                return cli_fail("out of memory");
        if (fd_write_all(fd, text, strlen(text)) < 0 || fd_write_all(fd, "\n", 1) < 0)
                return cli_fail("cannot write the output: %s", strerror(errno));
        return 0;
}

/* What was printed is only out when it was flushed. */
static int finish(int code)
{
        bool lost = ferror(stdout);

        if (fflush(stdout) == 0 && !lost)
                return code;
        return code == EXIT_CALLBOX ? code
                                    : cli_fail("cannot write the output: %s", strerror(errno));
}

/* Left to itself jansson opens /dev/urandom for this. */
static void seed_hashes(void)
{
        size_t seed = 0;

        if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == sizeof(seed))
                json_object_seed(seed); /* 0: it seeds itself after all */
}

static int run_verb(const char *name, int argc, char **argv)
{
        for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
                if (strcmp(name, verbs[i].name) == 0)
                        return finish(verbs[i].run(argc, argv));
        return cli_fail("there is no verb \"%s\"; the verbs are run, doctor, mcp, policy, tool, "
                        "warden and wrap (see callbox --help)",
                        name);
}

/* The kernel compares what all programs of the user have on its way between sockets with the limit
 * of who sends: boxes of his must not keep this one from handing over its own. */
static void raise_descriptors(void)
{
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return;
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
        char *explain[] = { argc > 2 ? argv[2] : NULL, (char *)"--help", NULL };

        cbx_serve_functions(argc, argv); /* tools of callbox mcp that run in boxes */
        if (fd_reserve_stdio() < 0)
                return cli_fail("cannot open /dev/null: %s", strerror(errno));
        seed_hashes();
        raise_descriptors();
        signal(SIGPIPE, SIG_IGN);
        signal(SIGXFSZ, SIG_IGN); /* a file that is too large is an error */
        if (argc < 2) {
                fputs(help, stderr);
                return EXIT_CALLBOX;
        }
        if (argc > 2 && strcmp(argv[1], "help") == 0 && argv[2][0] != '-')
                return run_verb(argv[2], 2, explain);
        if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
            strcmp(argv[1], "help") == 0)
                return finish(fputs(help, stdout) < 0);
        if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
                return finish(printf("callbox %s\n", cbx_version()) < 0);
        return run_verb(argv[1], argc - 1, argv + 1);
}
