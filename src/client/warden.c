/* SPDX-License-Identifier: MIT */
/* The connection to a warden: starting one, attaching to one, doing it again when it was lost. */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "client/client.h"
#include "policy/inputs.h"
#include "policy/pins.h"
#include "warden/credentials.h"

#define HELLO_SECONDS 20
#define SPAWN_FD 3

/* ---- Starting and attaching ---- */

const char *client_program(const cbx_warden *warden)
{
        const char *program = warden->program ? warden->program : secure_getenv("CALLBOX_WARDEN");

        return program && *program ? program : CALLBOX_PROGRAM;
}

static int spawn_attributes(posix_spawnattr_t *attributes)
{
        sigset_t none, all;

        sigemptyset(&none);
        sigfillset(&all);
        posix_spawnattr_setsigmask(attributes, &none);
        posix_spawnattr_setsigdefault(attributes, &all);
        return -posix_spawnattr_setflags(
                attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
}

/* It gets the socket and nothing else: no environment, nothing to read or to write. */
static int spawn(const cbx_warden *warden, int socket, pid_t *ret_pid)
{
        char calls[16], queue[16], prepared[16], fd[16];
        const char *program = client_program(warden);
        char *const argv[] = { (char *)"callbox",
                               (char *)"warden",
                               (char *)"--connection",
                               fd,
                               (char *)"--calls",
                               calls,
                               (char *)"--queue",
                               queue,
                               (char *)"--prepared",
                               prepared,
                               NULL };
        char *const environment[] = { NULL };
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        int r;

        snprintf(fd, sizeof(fd), "%d", SPAWN_FD);
        snprintf(calls, sizeof(calls), "%u", warden->calls);
        snprintf(queue, sizeof(queue), "%u", warden->queue);
        if (warden->prepared == CBX_NONE)
                snprintf(prepared, sizeof(prepared), "none");
        else
                snprintf(prepared, sizeof(prepared), "%u", warden->prepared);
        r = -posix_spawn_file_actions_init(&actions);
        if (r < 0)
                return r;
        r = -posix_spawnattr_init(&attributes);
        if (r == 0) {
                r = spawn_attributes(&attributes);
                /* The socket first: its number may be one of the three. */
                if (r == 0)
                        r = -posix_spawn_file_actions_adddup2(&actions, socket, SPAWN_FD);
                for (int i = 0; r == 0 && i < 3; i++)
                        r = -posix_spawn_file_actions_addopen(&actions, i, "/dev/null", O_RDWR, 0);
                if (r == 0)
                        r = -posix_spawn(ret_pid, program, &actions, &attributes, argv,
                                         environment);
                posix_spawnattr_destroy(&attributes);
        }
        posix_spawn_file_actions_destroy(&actions);
        return r;
}

/* The program that was started hands over to a child of its own and leaves at once, so that the
 * caller never has a child he does not know of. */
static void reap(pid_t pid)
{
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
}

/* What to do about a warden that cannot be started. Where it is short of something else, a hint to
 * install what is there would mislead. */
static const char *hint_of(int r)
{
        switch (r) {
        case -EAGAIN:
                return "there are as many processes as there may be: end some, or raise the limit "
                       "(ulimit -u, pids.max of the cgroup)";
        case -ENOMEM:
                return "there is no memory left for another process";
        case -EMFILE:
        case -ENFILE:
                return "there are as many open files as there may be (ulimit -n)";
        default:
                return "install callbox, or name its program in CALLBOX_WARDEN";
        }
}

static int start_warden(const cbx_warden *warden, int *ret_socket, cbx_error *error)
{
        int pair[2], r;
        pid_t pid = -1;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return error_set(error, -errno, "", "cannot make a socket: %s", strerror(errno));
        r = spawn(warden, pair[1], &pid);
        base_close(pair[1]);
        if (r < 0) {
                base_close(pair[0]);
                error_set(error, r, "warden", "cannot start %s: %s", client_program(warden),
                          strerror(-r));
                error_hint(error, "%s", hint_of(r));
                return r;
        }
        reap(pid);
        *ret_socket = pair[0];
        return 0;
}

static int attach(const char *path, int *ret_socket, cbx_error *error)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        if (fd < 0)
                return error_set(error, -errno, "", "cannot make a socket: %s", strerror(errno));
        if (strlen(path) >= sizeof(address.sun_path))
                return error_set(error, -ENAMETOOLONG, "socket", "%s is too long for a socket",
                                 path);
        memcpy(address.sun_path, path, strlen(path) + 1);
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
                error_set(error, -errno, "socket", "cannot reach a warden at %s: %s", path,
                          strerror(errno));
                error_hint(error, "start one: callbox warden --socket %s", path);
                return error ? error->code : -errno;
        }
        if (!peer_may_serve(fd)) {
                error_set(error, -EPERM, "socket",
                          "who listens at %s is no warden of this user or of root's", path);
                error_hint(error, "a program in a box may have taken its place: keep the socket in "
                                  "a directory that no box may write to");
                return -EPERM;
        }
        *ret_socket = TAKE_FD(fd);
        return 0;
}

/* ---- Hello ---- */

static int greet(cbx_warden *warden, cbx_error *error)
{
        static const char text[] = "the warden does not answer";
        struct timeval patience = { .tv_sec = HELLO_SECONDS }, none = { 0 };
        _cleanup_message_ struct wire_message message = WIRE_MESSAGE_INIT;
        _cleanup_free_ struct wire_room *room = malloc(sizeof(*room));
        _cleanup_pack_ struct pack pack = PACK_INIT;
        struct unpack unpack;
        uint64_t version;
        int r;

        if (!room)
                return error_oom(error);
        pack_number(&pack, WIRE_VERSION);
        r = wire_send_packed(warden->socket, WIRE_HELLO, &pack, NULL, 0, 0);
        setsockopt(warden->socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        if (r == 0)
                r = wire_receive(warden->socket, room, 0, 0, &message);
        setsockopt(warden->socket, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none));
        if (r == 0 || r == -EPIPE || r == -ECONNRESET) {
                error_set(error, -ECONNRESET, "warden", "the warden ended before it answered");
                error_hint(error, "is %s callbox, of this version and may this user attach to it?",
                           warden->path ? warden->path : client_program(warden));
                return -ECONNRESET;
        }
        if (r < 0)
                return error_set(error, r, "warden", "%s: %s", text, strerror(-r));
        unpack = (struct unpack)UNPACK_INIT(message.body, message.length);
        version = unpack_number(&unpack);
        if (message.type != WIRE_HELLO || version != WIRE_VERSION)
                return error_set(error, -EPROTO, "warden",
                                 "the warden speaks version %llu of the protocol, this library %u",
                                 (unsigned long long)version, WIRE_VERSION);
        warden->pid = (int)unpack_number_below(&unpack, INT32_MAX);
        return unpack_is_whole(&unpack) ? 0 : error_set(error, -EPROTO, "warden", "%s", text);
}

static void leave_place(struct client_policy *place)
{
        place->policy = cbx_policy_unref(place->policy);
        buffer_free(&place->circumstances);
}

static void disconnect(cbx_warden *warden)
{
        if (warden->socket >= 0) /* also where a child of this process has it */
                (void)shutdown(warden->socket, SHUT_RDWR);
        warden->socket = base_close(warden->socket);
        warden->pid = -ENOTCONN;
        pthread_mutex_lock(&warden->line_lock);
        warden->connections++;
        for (size_t i = 0; i < WIRE_LINES; i++) {
                base_close(warden->lines[i].socket);
                warden->lines[i] = (struct client_line){ .socket = -1 };
        }
        pthread_mutex_unlock(&warden->line_lock);
        for (size_t i = 0; i < CLIENT_POLICIES; i++)
                leave_place(&warden->policies[i]);
}

static int reconnect(cbx_warden *warden, cbx_error *error)
{
        int r;

        disconnect(warden);
        r = warden->path ? attach(warden->path, &warden->socket, error)
                         : start_warden(warden, &warden->socket, error);
        if (r == 0)
                r = greet(warden, error);
        if (r < 0)
                disconnect(warden);
        return r;
}

/* ---- Opening and closing ---- */

cbx_warden *cbx_warden_close(cbx_warden *warden)
{
        if (!warden)
                return NULL;
        disconnect(warden);
        pthread_mutex_destroy(&warden->lock);
        pthread_mutex_destroy(&warden->line_lock);
        free(warden->program);
        free(warden->path);
        free(warden);
        return NULL;
}

int cbx_warden_open(const cbx_warden_options *options, cbx_warden **ret_warden, cbx_error *error)
{
        cbx_warden_options known = CBX_WARDEN_OPTIONS_INIT;
        cbx_warden *warden;
        int r = 0;

        if (options)
                r = client_read_struct("cbx_warden_options", options, sizeof(known), &known,
                                       sizeof(known), error);
        if (r < 0)
                return r;
        warden = calloc(1, sizeof(*warden));
        if (!warden)
                return error_oom(error);
        pthread_mutex_init(&warden->lock, NULL);
        pthread_mutex_init(&warden->line_lock, NULL);
        warden->socket = -1;
        for (size_t i = 0; i < WIRE_LINES; i++)
                warden->lines[i].socket = -1;
        warden->calls = known.calls;
        warden->queue = known.queue;
        warden->prepared = known.prepared;
        warden->program = known.program ? strdup(known.program) : NULL;
        warden->path = known.socket ? strdup(known.socket) : NULL;
        if ((known.program && !warden->program) || (known.socket && !warden->path))
                r = error_oom(error);
        else
                r = reconnect(warden, error);
        if (r < 0) {
                cbx_warden_close(warden);
                return r;
        }
        *ret_warden = warden;
        return 0;
}

int cbx_warden_pid(const cbx_warden *warden)
{
        int pid;

        pthread_mutex_lock((pthread_mutex_t *)&warden->lock);
        pid = warden->pid;
        pthread_mutex_unlock((pthread_mutex_t *)&warden->lock);
        return pid;
}

/* ---- Policies ---- */

/* What a plan depends on besides the policy: the caller's directory, the part of his environment
 * that the policy looks at, whether refusals are to be explained, what is started ahead, and what
 * its paths led to, as long as not all of that is known. The whole of it, and no hash: a program
 * may have chosen a part. */
static int note_circumstances(const struct wire_policy *policy, uint64_t pins, struct pack *pack)
{
        struct wire_policy rest = *policy;

        rest.id = 0;
        rest.text = "";
        rest.length = 0;
        wire_pack_policy(pack, &rest);
        pack_number(pack, pins);
        return pack->failed ? -ENOMEM : 0;
}

static bool is_known(const struct client_policy *place, const cbx_policy *policy,
                     const struct buffer *circumstances)
{
        return place->policy == policy && place->circumstances.length == circumstances->length &&
               memcmp(place->circumstances.data, circumstances->data, circumstances->length) == 0;
}

/* Its place in the table, or the one that has not been used for longest. */
static struct client_policy *find_place(cbx_warden *warden, const cbx_policy *policy,
                                        const struct buffer *circumstances)
{
        struct client_policy *least = &warden->policies[0];

        for (size_t i = 0; i < CLIENT_POLICIES; i++) {
                struct client_policy *place = &warden->policies[i];

                if (is_known(place, policy, circumstances))
                        return place;
                if (least->policy && (!place->policy || place->used < least->used))
                        least = place;
        }
        return least;
}

static int forget(cbx_warden *warden, struct client_policy *place)
{
        _cleanup_pack_ struct pack pack = PACK_INIT;

        if (!place->policy)
                return 0;
        pack_number(&pack, place->id);
        leave_place(place);
        return wire_send_packed(warden->socket, WIRE_FORGET, &pack, NULL, 0, 0);
}

/* The policy as the warden is to have it: no box changes what this process and the warden are made
 * of. */
static int print_held(const cbx_warden *warden, cbx_policy *policy, char **ret_text)
{
        _cleanup_policy_ cbx_policy *held = cbx_policy_ref(policy);
        int r = inputs_hold_own(&held, client_program(warden), NULL);

        return r < 0 ? r : cbx_policy_print(held, ret_text, NULL);
}

/* Tell the warden of a policy unless it knows it already. */
static int introduce(cbx_warden *warden, cbx_policy *policy, struct wire_policy *asked,
                     uint64_t *ret_id)
{
        _cleanup_pack_ struct pack pack = PACK_INIT, circumstances = PACK_INIT;
        _cleanup_free_ char *text = NULL;
        struct client_policy *place;
        int r = note_circumstances(asked, policy_pin_state(policy, asked->directory),
                                   &circumstances);

        if (r < 0)
                return r;
        place = find_place(warden, policy, &circumstances.buffer);
        place->used = ++warden->serial;
        if (is_known(place, policy, &circumstances.buffer)) {
                *ret_id = place->id;
                return 0;
        }
        r = print_held(warden, policy, &text);
        if (r == 0)
                r = forget(warden, place);
        if (r < 0)
                return r;
        r = policy_pin_list(policy, asked->directory, &asked->pins, &asked->n_pins);
        if (r < 0)
                return r;
        asked->id = warden->serial;
        asked->text = text;
        asked->length = strlen(text);
        wire_pack_policy(&pack, asked);
        policy_pin_list_free(TAKE_PTR(asked->pins), asked->n_pins);
        asked->n_pins = 0; /* it may be asked for again, of another warden */
        if (pack.buffer.length > WIRE_REQUEST_MAX)
                return -E2BIG;
        r = wire_send_packed(warden->socket, WIRE_POLICY, &pack, NULL, 0, 0);
        if (r < 0)
                return r;
        *place = (struct client_policy){ .policy = cbx_policy_ref(policy),
                                         .circumstances = circumstances.buffer,
                                         .id = asked->id,
                                         .used = asked->id };
        circumstances.buffer = (struct buffer)BUFFER_INIT; /* taken */
        *ret_id = asked->id;
        return 0;
}

/* ---- Lines ---- */

/*
 * A call that nobody but this library sees needs no socket of its own: to make one, to hand it over
 * and to close both its ends takes as long as all else that is said about a short call.
 */
static void find_line(cbx_warden *warden, cbx_call *call, struct wire_line *ret_line)
{
        struct client_line *line = NULL;

        pthread_mutex_lock(&warden->line_lock);
        for (size_t i = 0; i < WIRE_LINES; i++) {
                struct client_line *other = &warden->lines[i];

                if (!other->busy && (!line || line->socket < 0))
                        line = other;
        }
        if (line) {
                line->busy = true;
                call->line = ret_line->number = (unsigned)(line - warden->lines) + 1;
                call->connection = warden->connections;
                call->socket = TAKE_FD(line->socket);
        }
        pthread_mutex_unlock(&warden->line_lock);
        ret_line->again = call->socket >= 0;
}

static int take_line(cbx_warden *warden, cbx_call *call, bool fits, struct wire_line *ret_line,
                     int *ret_theirs)
{
        int pair[2];

        call->socket = base_close(call->socket); /* of a connection that was lost */
        call->line = 0;
        if (fits)
                find_line(warden, call, ret_line);
        if (ret_line->again)
                return 0;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        call->socket = pair[0];
        *ret_theirs = pair[1];
        return 0;
}

void client_leave_line(cbx_warden *warden, cbx_call *call)
{
        if (call->line == 0)
                return;
        pthread_mutex_lock(&warden->line_lock);
        if (call->connection == warden->connections) {
                struct client_line *line = &warden->lines[call->line - 1];

                line->busy = false;
                if (call->ended && !call->lost)
                        line->socket = TAKE_FD(call->socket);
        }
        pthread_mutex_unlock(&warden->line_lock);
}

/* ---- Requests ---- */

static int send_request(cbx_warden *warden, cbx_policy *policy, struct wire_policy *asked,
                        struct client_request *request)
{
        _cleanup_pack_ struct pack body = PACK_INIT, line_pack = PACK_INIT;
        _cleanup_fd_ int theirs = -1;
        struct wire_line line = { 0 };
        size_t length;
        uint64_t id;
        int r = introduce(warden, policy, asked, &id);

        if (r < 0)
                return r;
        if (request->spec)
                wire_pack_spec(&body, id, request->spec);
        else
                pack_number(&body, id);
        length = body.buffer.length + WIRE_LINE_SIZE;
        if (length > WIRE_REQUEST_MAX)
                return -E2BIG;
        if (request->spec && request->line_for) {
                r = take_line(warden, request->line_for, wire_fits_line(request->spec, length),
                              &line, &theirs);
                request->fds[WIRE_FD_CALL] = theirs;
        }
        if (request->spec)
                wire_pack_line(&line_pack, &line);
        if (r == 0 && (body.failed || line_pack.failed))
                r = -ENOMEM;
        if (r < 0)
                return r;
        return wire_send(warden->socket, request->type,
                         (struct iovec[]){ { line_pack.buffer.data, line_pack.buffer.length },
                                           { body.buffer.data, body.buffer.length } },
                         2, request->fds + line.again, request->n_fds - line.again, 0);
}

int client_send_request(cbx_warden *warden, cbx_policy *policy, struct client_request *request,
                        cbx_error *error)
{
        _cleanup_free_ char **environment = plan_select_environment(policy, environ);
        _cleanup_free_ char *directory = getcwd(NULL, 0);
        struct wire_policy asked = { .directory = directory,
                                     .environment = environment,
                                     .explain = request->how.explain,
                                     .unboxed = request->how.unboxed,
                                     .program = request->how.program };
        int r;

        if (!environment)
                return error_oom(error);
        if (!directory || directory[0] != '/')
                return error_set(error, -ENOENT, "cwd", "the current directory does not exist");
        if (policy_pin(policy, directory) < 0)
                return error_oom(error);
        r = inputs_refuse_own_links(policy, error);
        if (r == 0)
                r = inputs_refuse_followed(policy, error);
        if (r < 0)
                return r;
        r = -ENOTCONN;
        pthread_mutex_lock(&warden->lock);
        if (warden->socket >= 0)
                r = send_request(warden, policy, &asked, request);
        /* It is gone, and has not taken the request: the next one gets it. */
        if (r == -EPIPE || r == -ECONNRESET || r == -ENOTCONN) {
                r = reconnect(warden, error);
                if (r == 0)
                        r = send_request(warden, policy, &asked, request);
                else
                        error = NULL; /* it has been filled */
        }
        pthread_mutex_unlock(&warden->lock);
        if (r == -E2BIG)
                return error_set(error, r, "argv",
                                 "the arguments and the environment are too "
                                 "long");
        if (r < 0)
                error_set(error, r, "warden", "cannot ask the warden: %s", strerror(-r));
        return r;
}

uint64_t client_serial(cbx_warden *warden)
{
        uint64_t serial;

        pthread_mutex_lock(&warden->lock);
        serial = ++warden->serial;
        pthread_mutex_unlock(&warden->lock);
        return serial;
}
