/* SPDX-License-Identifier: MIT */
/* `callbox warden`: serve calls, to whoever attaches to a socket or to the one who started it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "box/descriptor.h"
#include "box/fences.h"
#include "cli/options.h"
#include "warden/credentials.h"
#include "warden/server.h"

#define NUMBER_MAX 100000

static const char help[] =
        "Usage: callbox warden --socket PATH [OPTIONS]\n"
        "\n"
        "Makes boxes for the programs of this user that attach to PATH, and keeps some\n"
        "ready, so that a call costs little more than starting the program. Runs until\n"
        "it is told to end (SIGTERM, SIGINT); then every call ends with it. Programs that\n"
        "use libcallbox need none of this: they start a warden of their own.\n"
        "\n"
        "  --socket PATH      where to listen; only this user and root may attach\n"
        "  --calls N          calls of one client at once (1024); the others wait\n"
        "  --queue N          calls of one client that may wait (4096)\n"
        "  --prepared N       boxes kept ready for each policy, at most (16); or none\n"
        "  --allow-no-box     let those who attach run tools without a box, with the\n"
        "                     rights of this warden (mode off, elevated tools)\n"
        "  -h, --help         print this\n"
        "\n"
        "Manual: callbox-warden(1), libcallbox(3)\n";

struct settings {
        struct server_options server;
        const char *path;
};

static int read_number(const char *option, const char *text, unsigned long least, unsigned *ret)
{
        unsigned long number;

        errno = 0;
        number = text ? strtoul(text, NULL, 10) : 0;
        if (!text || !options_is_number(text, false) || errno || number < least ||
            number > NUMBER_MAX)
                return cli_fail("%s: needs a number from %lu to %d", option, least, NUMBER_MAX);
        *ret = (unsigned)number;
        return 0;
}

/* 0 on the command line means the default, so that the library need not know it. */
static int parse(int argc, char **argv, struct settings *settings)
{
        struct server_options *server = &settings->server;
        unsigned number = 0;
        int r = 0;

        for (int i = 1; r == 0 && i < argc; i += 2) {
                const char *value = argv[i + 1];

                if (strcmp(argv[i], "--allow-no-box") == 0) {
                        server->unboxed = true;
                        i--; /* it has no value */
                } else if (strcmp(argv[i], "--socket") == 0) {
                        settings->path = value;
                        r = value && *value ? 0 : cli_fail("--socket: needs a path");
                } else if (strcmp(argv[i], "--calls") == 0) {
                        r = read_number(argv[i], value, 0, &number);
                        server->calls = number ? number : server->calls;
                } else if (strcmp(argv[i], "--queue") == 0) {
                        r = read_number(argv[i], value, 0, &number);
                        server->queue = number ? number : server->queue;
                } else if (strcmp(argv[i], "--prepared") == 0 && value &&
                           strcmp(value, "none") == 0) {
                        server->prepared = 0;
                } else if (strcmp(argv[i], "--prepared") == 0) {
                        r = read_number(argv[i], value, 0, &number);
                        server->prepared = number ? number : server->prepared;
                } else if (strcmp(argv[i], "--connection") == 0) {
                        /* How the library starts one: a socket that is there already. */
                        r = read_number(argv[i], value, 3, &number);
                        server->connection = (int)number;
#ifdef BOX_UNFENCED
                } else if (strcmp(argv[i], "--without") == 0 && value) {
                        r = box_fence_leave_out(value) < 0 ? cli_fail("no such fence: %s", value)
                                                           : 0;
#endif
                } else {
                        r = cli_fail("there is no option \"%s\" (see callbox warden --help)",
                                     argv[i]);
                }
        }
        if (r == 0 && !settings->path == (server->connection < 0))
                r = cli_fail("--socket: name the socket to listen at (see callbox warden --help)");
        return r;
}

/* Is somebody listening there? */
static bool is_alive(const struct sockaddr_un *address)
{
        _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        return fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0;
}

static int listen_at(const char *path, int *ret_fd)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct stat st;
        mode_t before;
        int r;

        if (fd < 0)
                return cli_fail("cannot make a socket: %s", strerror(errno));
        if (strlen(path) >= sizeof(address.sun_path))
                return cli_fail("--socket: %s is too long for a socket", path);
        memcpy(address.sun_path, path, strlen(path) + 1);
        if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode)) {
                if (is_alive(&address))
                        return cli_fail("--socket: another warden listens at %s", path);
                (void)unlink(path); /* left behind by one that was killed */
        }
        before = umask(0177);
        r = bind(fd, (struct sockaddr *)&address, sizeof(address));
        umask(before);
        /* Before anyone can connect: what he says first tells who he is. */
        if (r < 0 || peer_ask_for_senders(fd, true) < 0 || listen(fd, 128) < 0)
                return cli_fail("--socket: cannot listen at %s: %s", path, strerror(errno));
        *ret_fd = TAKE_FD(fd);
        return 0;
}

/* Leave the caller as a child that he does not have to know of (client/warden.c). */
static void leave_caller(int connection)
{
        if (fork() != 0)
                _exit(0);
        if (descriptor_keep(3, &connection, 1) < 0)
                _exit(EXIT_CALLBOX); /* the caller sees that the connection ends */
}

int cli_warden(int argc, char **argv)
{
        struct settings settings = { .server = { .calls = SERVER_CALLS,
                                                 .queue = SERVER_QUEUE,
                                                 .prepared = SERVER_PREPARED,
                                                 .listener = -1,
                                                 .connection = -1 } };
        _cleanup_fd_ int here = -1;
        cbx_error error = CBX_ERROR_INIT;
        int r;

        for (int i = 1; i < argc; i++)
                if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
                        return fputs(help, stdout) < 0 ? EXIT_CALLBOX : 0;
        r = parse(argc, argv, &settings);
        if (r != 0)
                return r;
        if (settings.path)
                r = listen_at(settings.path, &settings.server.listener);
        else
                leave_caller(settings.server.connection);
        if (r != 0)
                return r;
        here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC); /* the path may be relative */
        settings.server.path = settings.path;
        settings.server.directory = here;
        r = chdir("/") < 0 ? -errno : server_run(&settings.server, &error);
        if (r < 0 && error.code < 0)
                cli_print_error(&error);
        return r < 0 ? EXIT_CALLBOX : 0;
}
