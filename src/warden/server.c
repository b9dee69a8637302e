/* SPDX-License-Identifier: MIT */
#include "warden/server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "warden/credentials.h"
#include "warden/scope.h"

#define POLICIES_MAX 256   /* that one client may have in use */
#define FDS_PER_CALL 19    /* while it runs, with every stream and the caller's own descriptors */
#define RUNNING_RESERVE 8  /* for clients that have no call under way */
#define FDS_RESERVED 512   /* for calls that begin, prepared boxes, makers and clients */
#define PATIENCE_SECONDS 3 /* with what does not die */
#define LEAVE_GRACE (3 * NSEC_PER_SEC)

/* ---- Whose turn it is ---- */

/* The call that has its turn if it is the client's; a server that is full leaves one call to each
 * client. */
static struct job *next_of(struct client *client)
{
        const struct server *server = client->server;
        unsigned most = server->running_max + (client->n_running == 0 ? RUNNING_RESERVE : 0);
        struct job *job = queue_first(client);

        if (!job || client->n_running >= server->options.calls || server->n_running >= most)
                return NULL;
        return pool_may_take(job->pool, &job->taker) ? job : NULL;
}

static void begin(struct job *job)
{
        struct client *client = job->client;

        queue_begin(job);
        TAILQ_INSERT_TAIL(&client->running, job, link);
        client->n_running++;
        client->server->n_running++;
        job_begin(job);
}

/* One call of each client in turn, as long as there is room. */
static void dispatch(struct server *server)
{
        struct client *client, *next;
        struct job *job;
        bool any = true;

        while (any) {
                any = false;
                for (client = TAILQ_FIRST(&server->clients); client; client = next) {
                        next = TAILQ_NEXT(client, link);
                        job = next_of(client);
                        if (!job)
                                continue;
                        /* Next time the others come first. */
                        TAILQ_REMOVE(&server->clients, client, link);
                        TAILQ_INSERT_TAIL(&server->clients, client, link);
                        begin(job);
                        any = true;
                }
        }
}

void server_job_over(struct job *job)
{
        struct client *client = job->client;

        if (job->queued) {
                queue_leave(job);
                TAILQ_INSERT_TAIL(&client->running, job, link); /* until it is gone */
                return;
        }
        queue_end(job);
        client->n_running--;
        client->server->n_running--;
}

void server_job_gone(struct job *job)
{
        if (job->dead)
                return;
        job->dead = true;
        TAILQ_REMOVE(&job->client->running, job, link);
        TAILQ_INSERT_TAIL(&job->client->server->dead, job, link);
}

/* ---- Clients ---- */

static void forget_policy(struct client *client, struct client_policy *policy)
{
        TAILQ_REMOVE(&client->policies, policy, link);
        client->n_policies--;
        pool_unref(policy->pool);
        free(policy);
}

/* The connection has ended: so do the calls. Those who still listen are told, and told of the
 * error if that is why. */
static void close_client(struct client *client, const cbx_error *error)
{
        struct job *job, *next;

        if (client->closed)
                return;
        client->closed = true;
        loop_unwatch(&client->server->loop, &client->connection);
        loop_unwatch(&client->server->loop, &client->process);
        client->connection.fd = base_close(client->connection.fd);
        client->process.fd = base_close(client->process.fd);
        job_close_lines(client);
        while ((job = queue_any(client)))
                job_end(job, error);
        for (job = TAILQ_FIRST(&client->running); job; job = next) {
                next = TAILQ_NEXT(job, link);
                job_end(job, error);
        }
}

static void free_client(struct client *client)
{
        struct client_policy *policy;

        while ((policy = TAILQ_FIRST(&client->policies)))
                forget_policy(client, policy);
        TAILQ_REMOVE(&client->server->clients, client, link);
        free(client);
}

static int greet(struct client *client, const struct wire_message *message)
{
        _cleanup_pack_ struct pack pack = PACK_INIT;
        struct unpack unpack = UNPACK_INIT(message->body, message->length);

        (void)unpack_number(&unpack); /* its version: it looks at ours and leaves if it must */
        if (!unpack_is_whole(&unpack) || (client->accepted && message->sender != client->accepted))
                return -EPROTO;
        if (client->accepted)
                (void)peer_ask_for_senders(client->connection.fd, false);
        client->greeted = true;
        pack_number(&pack, WIRE_VERSION);
        pack_number(&pack, (uint64_t)getpid());
        return wire_send_packed(client->connection.fd, WIRE_HELLO, &pack, NULL, 0, MSG_DONTWAIT);
}

/* A call without a box has all rights of the warden. So only the program that has started it may
 * ask for one, on the socket that it made for it; others by leave of whoever has started it. */
static int check_unboxed(const struct client *client, const struct wire_policy *asked,
                         cbx_error *error)
{
        if (!asked->unboxed || client->unboxed)
                return 0;
        error_set(error, -EPERM, "mode", "this warden runs nothing without a box");
        error_hint(error, "let the program start a warden of its own, or start this one with "
                          "--allow-no-box, if all who may attach may have its rights");
        return -EPERM;
}

static int take_policy(struct client *client, const struct wire_message *message)
{
        struct unpack unpack = UNPACK_INIT(message->body, message->length);
        struct client_policy *policy, *other;
        struct wire_policy asked;
        int r = wire_unpack_policy(&unpack, &asked);

        if (r < 0)
                return r;
        TAILQ_FOREACH(other, &client->policies, link)
        {
                if (other->id == asked.id)
                        r = -EPROTO;
        }
        policy = r == 0 && client->n_policies < POLICIES_MAX ? calloc(1, sizeof(*policy)) : NULL;
        if (policy) {
                policy->id = asked.id;
                policy->error = (cbx_error)CBX_ERROR_INIT;
                if (check_unboxed(client, &asked, &policy->error) == 0)
                        (void)pool_open(&client->server->pools, &asked, &policy->error,
                                        &policy->pool);
                TAILQ_INSERT_HEAD(&client->policies, policy, link);
                client->n_policies++;
        }
        wire_policy_free(&asked);
        return policy ? 0 : -EPROTO;
}

static int take_forget(struct client *client, const struct wire_message *message)
{
        struct unpack unpack = UNPACK_INIT(message->body, message->length);
        uint64_t id = unpack_number(&unpack);
        struct client_policy *policy;

        TAILQ_FOREACH(policy, &client->policies, link)
        {
                if (policy->id == id) {
                        forget_policy(client, policy);
                        return 0;
                }
        }
        return unpack_is_whole(&unpack) ? 0 : -EPROTO;
}

static int take_message(struct client *client, struct wire_message *message)
{
        if (!client->greeted)
                return message->type == WIRE_HELLO ? greet(client, message) : -EPROTO;
        switch (message->type) {
        case WIRE_POLICY:
                return take_policy(client, message);
        case WIRE_FORGET:
                return take_forget(client, message);
        case WIRE_PREPARE:
        case WIRE_START:
                return job_open(client, message);
        default:
                return -EPROTO;
        }
}

/* One message at a time: then the others have their turn. */
static void hear(struct watch *watch, uint32_t events)
{
        struct client *client = watch->owner;
        _cleanup_message_ struct wire_message message = WIRE_MESSAGE_INIT;
        int r;

        (void)events;
        r = wire_receive(watch->fd, &client->server->room, WIRE_REQUEST_MAX, MSG_DONTWAIT,
                         &message);
        if (r == -EAGAIN || r == -EMFILE || r == -ENOMEM || r == -EFBIG)
                return; /* whoever sent what was lost sees its socket end */
        if (r > 0)
                r = take_message(client, &message);
        else
                r = -EPIPE;
        if (r < 0)
                close_client(client, NULL);
}

/* Nobody is left to be told, whoever still holds its sockets. */
static void process_gone(struct watch *watch, uint32_t events)
{
        struct client *client = watch->owner;
        struct job *job, *next;

        (void)events;
        close_client(client, NULL);
        for (job = TAILQ_FIRST(&client->running); job; job = next) {
                next = TAILQ_NEXT(job, link);
                job_hang_up(job);
        }
}

/* A child that the client forked may hold its socket open after it has died. One that lives in
 * another pid namespace has none: its socket has to do. */
static void watch_process(struct client *client, int pidfd)
{
        client->process = (struct watch){ .fd = pidfd, .ready = process_gone, .owner = client };
        if (pidfd >= 0)
                (void)loop_watch(&client->server->loop, &client->process, EPOLLIN);
}

/* Takes the socket, and the pidfd of its peer, unless it fails. */
static int open_client(struct server *server, int fd, const struct peer *peer, bool unboxed)
{
        struct client *client = calloc(1, sizeof(*client));
        int r;

        if (!client)
                return -ENOMEM;
        client->server = server;
        client->connection = (struct watch){ .fd = fd, .ready = hear, .owner = client };
        client->accepted = peer->pid;
        client->unboxed = unboxed;
        job_init_lines(client);
        TAILQ_INIT(&client->policies);
        TAILQ_INIT(&client->queue);
        TAILQ_INIT(&client->running);
        TAILQ_INSERT_TAIL(&server->clients, client, link);
        r = loop_watch(&server->loop, &client->connection, EPOLLIN);
        if (r < 0) {
                TAILQ_REMOVE(&server->clients, client, link);
                free(client);
                return r;
        }
        watch_process(client, peer->pidfd);
        return 0;
}

static void accept_client(struct watch *watch, uint32_t events)
{
        struct server *server = watch->owner;
        int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC);
        struct peer peer = PEER_INIT;

        (void)events;
        if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
                /* Turn it away rather than leave it there and be woken for it again and again. */
                base_close(server->spare);
                base_close(accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC));
                server->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
        }
        if (fd >= 0 && (!peer_may_connect(fd, &peer) ||
                        open_client(server, fd, &peer, server->options.unboxed) < 0)) {
                base_close(peer.pidfd);
                base_close(fd);
        }
}

/* By whoever has started this warden. */
static int open_given(struct server *server, int fd)
{
        struct peer peer = PEER_INIT;
        struct ucred found;
        socklen_t length = sizeof(found);
        int r;

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &found, &length) == 0 && found.pid > 0)
                peer.pidfd = (int)syscall(SYS_pidfd_open, found.pid, 0);
        r = open_client(server, fd, &peer, true);
        if (r < 0)
                base_close(peer.pidfd);
        return r;
}

/* ---- The end ---- */

static void leave(struct server *server, const cbx_error *error)
{
        struct client *client;

        server->leaving = true;
        loop_unwatch(&server->loop, &server->listener);
        /* As long as nobody else can listen there. */
        if (server->listener.fd >= 0 && server->options.path)
                (void)unlinkat(server->options.directory, server->options.path, 0);
        server->listener.fd = base_close(server->listener.fd);
        TAILQ_FOREACH(client, &server->clients, link)
        {
                close_client(client, error);
        }
}

static void signalled(struct watch *watch, uint32_t events)
{
        struct signalfd_siginfo info;

        (void)events;
        if (read(watch->fd, &info, sizeof(info)) == sizeof(info))
                leave(watch->owner, NULL);
}

/* Without a nursery no new policy can be served: better a new warden than half of one. */
static void hear_nursery(struct watch *watch, uint32_t events)
{
        struct server *server = watch->owner;
        cbx_error error = CBX_ERROR_INIT;

        if (events == EPOLLOUT) {
                pools_bear(&server->pools);
                return;
        }
        loop_unwatch(&server->loop, watch);
        error_set(&error, -EPIPE, "nursery", "a process of the warden has died");
        error_hint(&error, "%s",
                   server->options.path ? "start the warden again"
                                        : "the next call starts a new warden");
        server->error = error;
        leave(server, &error);
}

static void clear_up(struct server *server)
{
        struct client *client, *next;
        struct job *job;

        while ((job = TAILQ_FIRST(&server->dead))) {
                TAILQ_REMOVE(&server->dead, job, link);
                job_free(job);
        }
        for (client = TAILQ_FIRST(&server->clients); client; client = next) {
                next = TAILQ_NEXT(client, link);
                if (client->closed && client->n_queued == 0 && TAILQ_EMPTY(&client->running))
                        free_client(client);
        }
        pools_sweep(&server->pools);
}

/* ---- The beginning ---- */

/* Each call needs some descriptors: take what the system gives, and know what it suffices for. */
static unsigned raise_descriptors(void)
{
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return 64;
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
        if (limit.rlim_cur < 2ULL * FDS_RESERVED)
                return 16;
        return (unsigned)MIN((limit.rlim_cur - FDS_RESERVED) / FDS_PER_CALL, 100000);
}

static int watch_signals(struct server *server)
{
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGHUP);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        server->signals = (struct watch){ .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
                                          .ready = signalled,
                                          .owner = server };
        return server->signals.fd < 0 ? -errno
                                      : loop_watch(&server->loop, &server->signals, EPOLLIN);
}

static int open_server(struct server *server, const struct server_options *options)
{
        _cleanup_fd_ int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
        int r;

        server->options = *options;
        server->pools =
                (struct pools){ .loop = &server->loop,
                                .nursery = { .fd = -1, .ready = hear_nursery, .owner = server },
                                .cgroup = CGROUP_PARENT_INIT,
                                .prepared_max = options->prepared };
        TAILQ_INIT(&server->pools.list);
        TAILQ_INIT(&server->pools.births);
        STAILQ_INIT(&server->pools.dead);
        TAILQ_INIT(&server->clients);
        TAILQ_INIT(&server->dead);
        if (self < 0)
                return -errno;
        /* Inits whose maker is gone become this process's children: the kernel reaps them. */
        (void)signal(SIGCHLD, SIG_IGN);
        /* A caller's limit on the size of files is a refused call, not the end of the warden. */
        (void)signal(SIGXFSZ, SIG_IGN);
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        /* Both move this process: before it has children. */
        if (cgroup_look() >= CGROUP_FOREIGN) /* what a unit of systemd's would help */
                (void)scope_enter();
        cgroup_parent_open(&server->pools.cgroup, true);
        server->running_max = raise_descriptors(); /* for those who make boxes as well */
        r = nursery_open(self, &server->pools.cgroup, &server->pools.nursery.fd);
        if (r == 0)
                r = loop_open(&server->loop);
        if (r < 0)
                return r;
        server->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
        /* Those who connect from now on are told of by every message: accepted or not yet. */
        (void)setsockopt(options->listener, SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int));
        server->listener =
                (struct watch){ .fd = options->listener, .ready = accept_client, .owner = server };
        r = loop_watch(&server->loop, &server->pools.nursery, EPOLLIN);
        if (r == 0)
                r = watch_signals(server);
        if (r == 0 && options->listener >= 0)
                r = loop_watch(&server->loop, &server->listener, EPOLLIN);
        if (r == 0 && options->connection >= 0)
                r = open_given(server, options->connection);
        return r;
}

/* A warden that was started for one client goes with it. */
static bool is_needed(const struct server *server)
{
        return (!server->leaving && server->listener.fd >= 0) || !TAILQ_EMPTY(&server->clients);
}

/* What was made ends with this process; where it can be waited for, nothing of it is seen any more
 * when this process is gone. The kernel reaps, so there is nothing to be heard but the end. */
static void await_children(void)
{
        alarm(PATIENCE_SECONDS);
        while (wait(NULL) > 0 || errno == EINTR)
                ;
}

int server_run(const struct server_options *options, cbx_error *error)
{
        struct server *server = calloc(1, sizeof(*server));
        struct cgroup_parent cgroup;
        uint64_t last = LOOP_NEVER;
        int r;

        if (!server)
                return error_oom(error);
        server->error = (cbx_error)CBX_ERROR_INIT;
        r = open_server(server, options);
        while (r >= 0 && is_needed(server) && time_now() < last) {
                r = loop_step(&server->loop, last);
                dispatch(server);
                clear_up(server);
                if (server->leaving && last == LOOP_NEVER)
                        last = time_now() + LEAVE_GRACE;
        }
        if (r < 0) {
                error_set(error, r, "", "the warden cannot go on: %s", strerror(-r));
        } else if (server->error.code < 0) {
                r = error_set(error, server->error.code, server->error.where, "%s",
                              server->error.text);
                error_hint(error, "%s", server->error.hint);
        }
        pools_close(&server->pools);
        loop_close(&server->loop);
        cgroup = server->pools.cgroup;
        free(server);
        await_children();
        cgroup_parent_close(&cgroup);
        return r < 0 ? r : 0;
}
