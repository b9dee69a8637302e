/* SPDX-License-Identifier: MIT */
/*
 * Sockets. Binding one to a path makes a name, which must not be a protected one.
 *
 * Connections: a box may connect to sockets that it could have made itself: in its own network, or
 * at a path that it may write. A socket on a tree that is shown read-only belongs to the host, and
 * a read-only mount does not keep anyone from talking to it.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>

#include "box/fences.h"
#include "box/guard.h"
#include "box/init.h"
#include "box/own.h"
#include "box/tree.h"
#include "policy/landlock_abi.h"

/* An address in words, and whether it is the loopback's. */
static bool describe(const struct sockaddr_storage *address, char *room)
{
        static const char hex[] = "0123456789abcdef";
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
        const unsigned char *bytes = (const unsigned char *)&v4->sin_addr;
        bool own;

        if (address->ss_family == AF_INET) {
                own = bytes[0] == 127;
                for (int i = 0; i < 4; i++) {
                        room = text_number(room, bytes[i]);
                        *room++ = i < 3 ? '.' : ':';
                }
                text_number(room, ntohs(v4->sin_port));
                return own;
        }
        bytes = v6->sin6_addr.s6_addr;
        own = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
        *room++ = '[';
        for (int i = 0; i < 16; i++) {
                *room++ = hex[bytes[i] >> 4];
                *room++ = hex[bytes[i] & 15];
                if (i % 2 && i < 15)
                        *room++ = ':';
        }
        *room++ = ']';
        *room++ = ':';
        text_number(room, ntohs(v6->sin6_port));
        return own;
}

/* What both calls begin with: the address, copied once, and the socket. */
struct request {
        union {
                struct sockaddr_storage any;
                struct sockaddr_un local;
        } address;
        socklen_t length;
        int fd;
        bool stands_in; /* for the caller's: it takes its place at the end */
};

static void request_close(struct request *request)
{
        request->fd = base_close(request->fd);
}

static bool is_local(const struct request *request)
{
        return request->address.any.ss_family == AF_UNIX && request->length > sizeof(sa_family_t);
}

static bool has_path(const struct request *request)
{
        return is_local(request) && request->address.local.sun_path[0];
}

/* ---- Where the host lets nobody take a descriptor ---- */

/* Are they of one kind? That much is told of a socket that is only looked at. */
static bool same_kind(int fd, int other)
{
        char link[40], kinds[2][32];
        const int both[] = { fd, other };
        ssize_t n[2];

        for (int i = 0; i < 2; i++) {
                guard_own_link(both[i], link);
                n[i] = getxattr(link, "system.sockprotoname", kinds[i], sizeof(kinds[i]));
        }
        return n[0] > 0 && n[0] == n[1] && memcmp(kinds[0], kinds[1], (size_t)n[0]) == 0;
}

/* A local socket of the caller's kind, without a name or a peer, as the caller's is at this point.
 */
static int make_like(struct child *child, const struct seccomp_notif *call, int number)
{
        static const int kinds[] = { SOCK_STREAM, SOCK_SEQPACKET };
        _cleanup_fd_ int theirs = number < 0 ? -EBADF : guard_base(child, call, number);
        bool waits = !(guard_fdinfo(child, call, number, "flags:", 8) & O_NONBLOCK);

        for (size_t i = 0; theirs >= 0 && i < ARRAY_SIZE(kinds); i++) {
                _cleanup_fd_ int fd =
                        socket(AF_UNIX, kinds[i] | SOCK_CLOEXEC | (waits ? 0 : SOCK_NONBLOCK), 0);

                if (fd < 0)
                        return -errno;
                if (same_kind(theirs, fd))
                        return TAKE_FD(fd);
        }
        return theirs < 0 ? theirs : -ENOTSOCK;
}

/* Let the caller have it where it had its own. */
static int put_in_place(struct child *child, const struct seccomp_notif *call, int fd)
{
        int number = (int)call->data.args[0];
        struct seccomp_notif_addfd add = {
                .id = call->id,
                .flags = SECCOMP_ADDFD_FLAG_SETFD,
                .srcfd = (uint32_t)fd,
                .newfd = (uint32_t)number,
                .newfd_flags = (uint32_t)guard_fdinfo(child, call, number, "flags:", 8) & O_CLOEXEC,
        };

        return ioctl(child->notifier, SECCOMP_IOCTL_NOTIF_ADDFD, &add) < 0 ? -errno : 0;
}

/* ---- What is asked for ---- */

static int request_take(struct child *child, const struct seccomp_notif *call,
                        struct request *request)
{
        int r;

        request->length = (socklen_t)call->data.args[2];
        if (request->length > sizeof(request->address) || request->length < sizeof(sa_family_t))
                return -EINVAL;
        r = guard_read(call, call->data.args[1], &request->address, request->length);
        if (r < 0)
                return r;
        request->fd = guard_take_descriptor(child, call, (int)call->data.args[0]);
        if (request->fd == -EPERM && child->plan->caged && is_local(request)) {
                request->fd = make_like(child, call, (int)call->data.args[0]);
                request->stands_in = request->fd >= 0;
        }
        if (request->fd < 0)
                return request->fd;
        return guard_is_alive(child, call) ? 0 : -ESRCH;
}

#define GIVEN_MAX (sizeof(((struct sockaddr_un *)0)->sun_path) + 1)

/* The path as it was said, and where it starts from. */
static int request_path(struct child *child, const struct seccomp_notif *call,
                        const struct request *request, char given[GIVEN_MAX], int *ret_base)
{
        memcpy(given, request->address.local.sun_path, GIVEN_MAX - 1);
        given[GIVEN_MAX - 1] = '\0';
        *ret_base = given[0] == '/' ? -1 : guard_base(child, call, AT_FDCWD);
        return given[0] == '/' || *ret_base >= 0 ? 0 : *ret_base;
}

static int request_resolve(struct child *child, const struct seccomp_notif *call,
                           const struct request *request, struct guard_path *ret)
{
        char given[GIVEN_MAX];
        _cleanup_fd_ int base = -1;
        int r = request_path(child, call, request, given, &base);

        return r < 0 ? r : guard_resolve_from(child, call, TAKE_FD(base), given, ret);
}

/* ---- Connecting ---- */

/* Is it the host's, or hidden? Asked of the socket itself: a name that is the box's own may be a
 * link. */
static bool is_foreign(struct child *child, int target, char *place, size_t room)
{
        struct statvfs fs;
        struct statx st;

        if (guard_text_of(target, place, room) < 0 || fstatvfs(target, &fs) < 0 ||
            guard_look(target, "", &st) < 0 || guard_keeping_of(child, place, &st) == PLAN_HIDDEN)
                return true;
        return (fs.f_flag & ST_RDONLY) || (child->plan->caged && !guard_may_change(child, place));
}

/* There is no such path in the box, or none that it may reach; on the host there may be. */
static void note_missing(struct child *child, const struct seccomp_notif *call,
                         const struct request *request)
{
        char given[GIVEN_MAX];
        _cleanup_fd_ int base = -1;

        if (child->plan->explain && request_path(child, call, request, given, &base) == 0)
                guard_note_socket(child, base, given);
}

/* ---- Messages ---- */

static bool is_of_messages(int fd)
{
        socklen_t length = sizeof(int);
        int type = 0;

        return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_SEQPACKET;
}

/* Has a process of this box called listen() there? The kernel tells whoever has connected. */
static bool listens_inside(struct child *child, int fd)
{
        struct ucred peer = { 0 };
        socklen_t length = sizeof(peer);

        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.pid > 0 &&
               tree_contains(child->proc, peer.pid, getppid());
}

/*
 * Wardens speak SOCK_SEQPACKET, and without a user namespace of its own a box looks to them much
 * like any other process. So one without namespaces may connect such a socket to its own processes
 * alone. What is connected is a socket of ours: the program has it when it was looked at, and not
 * before.
 */
static bool must_listen_inside(const struct child *child, int fd)
{
        return child->plan->caged && box_fence(FENCE_NET) && is_of_messages(fd);
}

/* Connect to a path: resolve it once, look at where it is, connect to that very socket. */
static int connect_path(struct child *child, const struct seccomp_notif *call,
                        struct request *request)
{
        _cleanup_(guard_path_close) struct guard_path path = { .parent = -1 };
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        char place[PATH_MAX] = "";
        _cleanup_fd_ int target = -1;
        int r = request_resolve(child, call, request, &path);
        bool inside;

        if (r == 0) {
                target = openat(path.parent, path.name, O_PATH | O_CLOEXEC);
                r = target < 0 ? -errno : 0;
        }
        if (r == -ENOENT || r == -EACCES)
                note_missing(child, call, request);
        if (r < 0)
                return r;
        if (is_foreign(child, target, place, sizeof(place))) {
                notify_trace(child->page, BOX_TRACE_CONNECT, place, EACCES);
                return -EACCES;
        }
        inside = must_listen_inside(child, request->fd);
        if (inside && !request->stands_in) {
                base_close(request->fd);
                request->fd = make_like(child, call, (int)call->data.args[0]);
                request->stands_in = request->fd >= 0;
        }
        if (request->fd < 0)
                return request->fd;
        note_network_used(child); /* whoever is there may be handed descriptors */
        text_copy(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/");
        text_number(to.sun_path + strlen(to.sun_path), (uint64_t)target);
        r = own_connect(request->fd, (struct sockaddr *)&to, sizeof(to)) < 0 ? -errno : 0;
        if (r == 0 && inside && !listens_inside(child, request->fd)) {
                notify_trace(child->page, BOX_TRACE_CONNECT, place, EACCES);
                return -EACCES;
        }
        return r == 0 && request->stands_in ? put_in_place(child, call, request->fd) : r;
}

static int connect_for(struct child *child, const struct seccomp_notif *call)
{
        _cleanup_(request_close) struct request request = { .fd = -1 };
        const struct sockaddr_storage *address = &request.address.any;
        char text[80];
        int r = request_take(child, call, &request);

        if (r < 0)
                return r;
        if (has_path(&request))
                return connect_path(child, call, &request);
        /* Names without a path live in the network's namespace: the host's, here. */
        if (is_local(&request) &&
            (child->plan->caged || child->plan->policy->network == POLICY_NETWORK_HOST)) {
                notify_trace(child->page, BOX_TRACE_CONNECT, "an abstract socket", EPERM);
                return -EPERM;
        }
        if (own_connect(request.fd, (const struct sockaddr *)address, request.length) == 0)
                return 0;
        r = -errno;
        if (child->plan->explain && (r == -ENETUNREACH || r == -ENETDOWN) &&
            (address->ss_family == AF_INET || address->ss_family == AF_INET6))
                notify_trace(child->page,
                             describe(address, text) ? BOX_TRACE_LOOPBACK : BOX_TRACE_CONNECT, text,
                             -r);
        return r;
}

/* What is sent without a connection is not sent on the program's behalf: where no address can be
 * reached that is known from the policy alone. */
void guard_note_send(struct child *child, const struct seccomp_notif *call)
{
        enum policy_network network = child->plan->policy->network;
        struct sockaddr_storage address = { 0 };
        socklen_t length = (socklen_t)call->data.args[5];
        char text[80];
        bool own;

        if (network == POLICY_NETWORK_HOST || atomic_load(&child->page->started) == 0 ||
            length > sizeof(address) || length < sizeof(struct sockaddr_in) ||
            guard_read(call, call->data.args[4], &address, length) < 0 ||
            (address.ss_family != AF_INET &&
             (address.ss_family != AF_INET6 || length < sizeof(struct sockaddr_in6))))
                return;
        own = describe(&address, text);
        if (network == POLICY_NETWORK_NONE || !own)
                notify_trace(child->page, own ? BOX_TRACE_LOOPBACK : BOX_TRACE_CONNECT, text,
                             ENETUNREACH);
}

/* A connection may take its time: a process of its own waits for it. */
void guard_connect(struct child *child, const struct seccomp_notif *call)
{
        if (!guard_delegate(child, call))
                return;
        guard_answer(child, call, connect_for(child, call));
        guard_leave();
}

/* ---- Binding ---- */

/* From now on this process makes sockets nowhere but below a directory. */
static int bind_below(const struct child *child, int directory)
{
        struct ll_path_beneath_attr rule = { .allowed_access = LL_FS_MAKE_SOCK,
                                             .parent_fd = directory };
        int abi = child->plan->landlock_abi;
        _cleanup_fd_ int ruleset = abi > 0 ? landlock_create(abi, LL_FS_MAKE_SOCK, 0) : -1;

        if (ruleset < 0 ||
            syscall(SYS_landlock_add_rule, ruleset, LL_RULE_PATH_BENEATH, &rule, 0) ||
            prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
            syscall(SYS_landlock_restrict_self, ruleset, 0))
                return -EPERM;
        return 0;
}

/* Make the name in the directory that was looked at: by its whole path where more than a name was
 * said, as others ask the socket for it, and Landlock holds us to the directory; else by standing
 * in it. */
static int bind_path(struct child *child, const struct seccomp_notif *call,
                     const struct request *request)
{
        _cleanup_(guard_path_close) struct guard_path path = { .parent = -1 };
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        char given[GIVEN_MAX];
        _cleanup_fd_ int base = -1;
        int r = request_resolve(child, call, request, &path);
        bool whole;

        if (r == 0)
                r = guard_check_new(child, &path);
        if (r == -ENOENT && child->plan->explain &&
            request_path(child, call, request, given, &base) == 0)
                notify_trace(child->page, BOX_TRACE_WRITE, given, ENOENT);
        if (r == -EROFS && child->plan->explain)
                notify_trace(child->page, BOX_TRACE_WRITE, path.text, EROFS);
        if (r < 0)
                return r;
        if (strlen(path.name) >= sizeof(to.sun_path))
                return -ENAMETOOLONG;
        note_network_used(child); /* as whoever comes here may be */
        whole = memchr(request->address.local.sun_path, '/', sizeof(to.sun_path)) &&
                strlen(path.text) < sizeof(to.sun_path) && bind_below(child, path.parent) == 0;
        text_copy(to.sun_path, sizeof(to.sun_path), whole ? path.text : path.name);
        if (!whole && fchdir(path.parent) < 0)
                return -errno;
        guard_take_umask(child, call);
        r = own_bind(request->fd, (struct sockaddr *)&to, sizeof(to)) < 0 ? -errno : 0;
        if (r == -EROFS && child->plan->explain)
                notify_trace(child->page, BOX_TRACE_WRITE, path.text, EROFS);
        return r == 0 && request->stands_in ? put_in_place(child, call, request->fd) : r;
}

static int bind_for(struct child *child, const struct seccomp_notif *call)
{
        _cleanup_(request_close) struct request request = { .fd = -1 };
        char text[80];
        int r = request_take(child, call, &request);

        if (r < 0)
                return r;
        if (has_path(&request))
                return bind_path(child, call, &request);
        if (child->plan->caged && request.address.any.ss_family == AF_UNIX) {
                if (child->plan->explain)
                        notify_trace(child->page, BOX_TRACE_BIND, "an abstract socket", EPERM);
                return -EPERM; /* a name of the host's network */
        }
        if (own_bind(request.fd, (struct sockaddr *)&request.address.any, request.length) == 0)
                return 0;
        r = -errno;
        if (child->plan->explain && (r == -EADDRNOTAVAIL || r == -EACCES) &&
            (request.address.any.ss_family == AF_INET || request.address.any.ss_family == AF_INET6))
                notify_trace(child->page,
                             describe(&request.address.any, text) ? BOX_TRACE_BIND_LOOPBACK
                                                                  : BOX_TRACE_BIND,
                             text, -r);
        return r;
}

/* In a process of its own, which has its own current directory and restrictions. */
void guard_bind(struct child *child, const struct seccomp_notif *call)
{
        if (!guard_delegate(child, call))
                return;
        guard_answer(child, call, bind_for(child, call));
        guard_leave();
}
