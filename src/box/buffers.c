/* SPDX-License-Identifier: MIT */
/*
 * What the sockets of a box hold, as the kernel tells by sock_diag(7). Of a net namespace of the
 * box's own all of them count, those on their way in messages of others and those that nobody has
 * accepted yet included; in the host's, those that its processes have open.
 */
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "box/init.h"

#define FEW 2       /* sockets, whose buffers are not worth a look */
#define MESSAGES 11 /* that may wait at a datagram socket, each from another one */
#define SHARE 16    /* of the time goes into asking at most: one part of so many */
#define LISTENS 10  /* the state, as sock_diag(7) has it */
#define ESTABLISHED 1
#define CLOSE_WAIT 8
#define TIME_WAIT 6       /* no socket any more */
#define SYN_RECEIVED 3    /* nor one yet */
#define BYTES_MOST 256000 /* in a socket that nothing is known of */
#define SOCKET_COST (4 * KIB)
#define SOCKETS_FREE 16
#define PORTS_MAX 64
#define GROUP_COST 512 /* of a multicast group that somebody has joined */
#define SOURCE_COST 64

/* What one socket can have sent, should it have asked for the largest buffer there is. */
static uint64_t most_sent(void)
{
        static uint64_t most;
        int pair[2], size = INT32_MAX;
        socklen_t length = sizeof(size);

        if (most > 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                return MAX(most, BYTES_MOST);
        if (setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) == 0 &&
            getsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, &length) == 0)
                most = (uint64_t)size;
        base_close(pair[0]);
        base_close(pair[1]);
        return most;
}

struct sum {
        uint64_t bytes;
        uint64_t told;    /* sockets that the kernel tells of */
        unsigned closed;  /* sockets that nobody sends to any more */
        unsigned waiting; /* to be accepted, by TCP, and how many of those it tells of */
        unsigned waiting_told;
        unsigned n_ports; /* at which somebody listens */
        uint16_t ports[PORTS_MAX];
};

/* What the options of one socket may take. They do not show where it has no address. */
static uint64_t most_options(struct child *child)
{
        static uint64_t most;
        char text[32] = "";

        if (most > 0)
                return most;
        if (watch_read(child->proc, "sys/net/core/optmem_max", text, sizeof(text)) > 0)
                for (const char *at = text; *at >= '0' && *at <= '9'; at++)
                        most = most * 10 + (uint64_t)(*at - '0');
        return most = MAX(most, 128 * KIB);
}

/* Does nobody have it, because it is to be accepted by one of ours? Who listens is told of first.
 */
static bool is_waiting(const struct sum *sum, const struct inet_diag_msg *socket)
{
        if (socket->idiag_inode != 0 ||
            (socket->idiag_state != ESTABLISHED && socket->idiag_state != CLOSE_WAIT))
                return false;
        for (unsigned i = 0; i < sum->n_ports; i++)
                if (sum->ports[i] == socket->id.idiag_sport)
                        return true;
        return false;
}

/* A connection whose other end is gone before it was accepted is in no list but the queue of who
 * listens, with all that was received. */
static void add_inet(struct sum *sum, const struct inet_diag_msg *socket, const uint32_t *memory)
{
        sum->bytes += (uint64_t)memory[SK_MEMINFO_RMEM_ALLOC] + memory[SK_MEMINFO_FWD_ALLOC] +
                      memory[SK_MEMINFO_WMEM_QUEUED] + memory[SK_MEMINFO_WMEM_ALLOC] +
                      memory[SK_MEMINFO_OPTMEM] + memory[SK_MEMINFO_BACKLOG];
        if (socket->idiag_state == LISTENS) {
                sum->waiting += socket->idiag_rqueue;
                if (sum->n_ports < PORTS_MAX)
                        sum->ports[sum->n_ports++] = socket->id.idiag_sport;
        }
        sum->waiting_told += is_waiting(sum, socket);
        sum->told += socket->idiag_state != TIME_WAIT && socket->idiag_state != SYN_RECEIVED;
}

/* What a socket holds is in the books of who has sent it. Where that one was closed afterwards, it
 * is as much as it could have sent; and so for each who is to be accepted, as those are not told
 * of. A few such sockets every program may have. */
static void add_local(struct sum *sum, const struct unix_diag_msg *socket, const uint32_t *memory,
                      unsigned char shut, uint32_t waiting)
{
        sum->bytes += memory[SK_MEMINFO_WMEM_ALLOC] + memory[SK_MEMINFO_OPTMEM];
        sum->told++;
        if (socket->udiag_state == LISTENS)
                sum->closed += waiting;
        else if (socket->udiag_type == SOCK_DGRAM)
                sum->closed += MESSAGES;
        else
                sum->closed += shut & (SHUT_RD + 1) ? 1 : 0;
}

static void add_socket(struct sum *sum, const struct nlmsghdr *head, int family)
{
        size_t fixed =
                family == AF_UNIX ? sizeof(struct unix_diag_msg) : sizeof(struct inet_diag_msg);
        int wanted = family == AF_UNIX ? UNIX_DIAG_MEMINFO : INET_DIAG_SKMEMINFO;
        const struct rtattr *at =
                (const struct rtattr *)((const char *)NLMSG_DATA(head) + NLMSG_ALIGN(fixed));
        long left = (long)head->nlmsg_len - (long)NLMSG_SPACE(fixed);
        uint32_t memory[SK_MEMINFO_VARS] = { 0 };
        struct unix_diag_rqlen queue = { 0 };
        unsigned char closed = 0;

        for (; RTA_OK(at, left); at = RTA_NEXT(at, left))
                if (at->rta_type == wanted)
                        memcpy(memory, RTA_DATA(at), MIN(sizeof(memory), RTA_PAYLOAD(at)));
                else if (family == AF_UNIX && at->rta_type == UNIX_DIAG_SHUTDOWN)
                        closed = *(const unsigned char *)RTA_DATA(at);
                else if (family == AF_UNIX && at->rta_type == UNIX_DIAG_RQLEN)
                        memcpy(&queue, RTA_DATA(at), MIN(sizeof(queue), RTA_PAYLOAD(at)));
        if (family == AF_UNIX)
                add_local(sum, NLMSG_DATA(head), memory, closed, queue.udiag_rqueue);
        else
                add_inet(sum, NLMSG_DATA(head), memory);
}

/* Where the network is the host's: is it one of the tree's? */
static bool is_own(const struct nlmsghdr *head, int family, const struct inodes *own,
                   const struct sum *sum)
{
        uint64_t inode = family == AF_UNIX
                                 ? ((struct unix_diag_msg *)NLMSG_DATA(head))->udiag_ino
                                 : ((struct inet_diag_msg *)NLMSG_DATA(head))->idiag_inode;

        for (unsigned i = 0; own && i < MIN(own->n, INODES_MAX); i++)
                if (own->all[i] == inode)
                        return true;
        return !own || (family != AF_UNIX && is_waiting(sum, NLMSG_DATA(head)));
}

/* Ask for all sockets of a kind and add up. False where the kernel does not tell. */
static bool add_kind(int diag, int family, unsigned char protocol, const struct inodes *own,
                     struct sum *sum)
{
        static _Alignas(struct nlmsghdr) char room[32768];
        struct {
                struct nlmsghdr head;
                union {
                        struct unix_diag_req local;
                        struct inet_diag_req_v2 inet;
                };
        } request = { .head = { .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                                .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP } };
        ssize_t n;

        if (family == AF_UNIX)
                request.local = (struct unix_diag_req){ .sdiag_family = AF_UNIX,
                                                        .udiag_states = ~0U,
                                                        .udiag_show = UDIAG_SHOW_MEMINFO |
                                                                      UDIAG_SHOW_RQLEN };
        else
                request.inet =
                        (struct inet_diag_req_v2){ .sdiag_family = (unsigned char)family,
                                                   .sdiag_protocol = protocol,
                                                   .idiag_ext = 1 << (INET_DIAG_SKMEMINFO - 1),
                                                   .idiag_states = ~0U };
        request.head.nlmsg_len =
                NLMSG_LENGTH(family == AF_UNIX ? sizeof(request.local) : sizeof(request.inet));
        if (send(diag, &request, request.head.nlmsg_len, 0) < 0)
                return false;
        while ((n = recv(diag, room, sizeof(room), 0)) > 0) {
                unsigned left = (unsigned)n;

                for (struct nlmsghdr *at = (struct nlmsghdr *)room; NLMSG_OK(at, left);
                     at = NLMSG_NEXT(at, left)) {
                        if (at->nlmsg_type == NLMSG_DONE)
                                return true;
                        if (at->nlmsg_type != SOCK_DIAG_BY_FAMILY)
                                return false;
                        if (is_own(at, family, own, sum))
                                add_socket(sum, at, family);
                }
        }
        return false;
}

/* "sockets: used 7", those of the whole namespace. */
static uint64_t count_sockets(struct child *child)
{
        static int fd = -1; /* init's own: it is asked for at every look */
        static const char before[] = "sockets: used ";
        char text[64] = "";
        uint64_t n = 0;

        if (fd < 0)
                fd = openat(child->proc, "self/net/sockstat", O_RDONLY | O_CLOEXEC);
        if (fd < 0 || pread(fd, text, sizeof(text) - 1, 0) <= 0 ||
            strncmp(text, before, strlen(before)) != 0)
                return 0;
        for (const char *at = text + strlen(before); *at >= '0' && *at <= '9'; at++)
                n = n * 10 + (uint64_t)(*at - '0');
        return n;
}

/* Of netlink, as a table: "sk Eth Pid Groups Rmem Wmem ...". */
static void add_netlink(struct child *child, struct sum *sum)
{
        sum->bytes +=
                watch_sum(child, "self/net/netlink", 5) + watch_sum(child, "self/net/netlink", 6);
        sum->told += watch_sum(child, "self/net/netlink", 0);
}

/* Multicast groups that were joined, and the sources that are wanted or not. */
static uint64_t held_by_groups(struct child *child)
{
        return (watch_sum(child, "self/net/igmp", 0) + watch_sum(child, "self/net/igmp6", 0)) *
                       GROUP_COST +
               (watch_sum(child, "self/net/mcfilter", 0) +
                watch_sum(child, "self/net/mcfilter6", 0)) *
                       SOURCE_COST;
}

static uint64_t ask(struct child *child, uint64_t n, const struct inodes *own)
{
        static const struct {
                int family;
                unsigned char protocol;
        } kinds[] = { { AF_UNIX, 0 },
                      { AF_INET, IPPROTO_TCP },
                      { AF_INET6, IPPROTO_TCP },
                      { AF_INET, IPPROTO_UDP },
                      { AF_INET6, IPPROTO_UDP } };
        bool local = child->plan->policy->network == POLICY_NETWORK_NONE;
        struct sum sum = { .bytes = own && n > INODES_MAX ? (n - INODES_MAX) * BYTES_MOST : 0 };
        _cleanup_fd_ int diag = -1;

        diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
        if (diag < 0)
                return n * BYTES_MOST;
        for (size_t i = 0; i < (local ? 1 : ARRAY_SIZE(kinds)); i++)
                if (!add_kind(diag, kinds[i].family, kinds[i].protocol, own, &sum))
                        return n * BYTES_MOST;
        sum.closed += sum.waiting - MIN(sum.waiting, sum.waiting_told);
        if (sum.closed > FEW)
                sum.bytes += (sum.closed - FEW) * most_sent();
        if (!own) {
                add_netlink(child, &sum);
                sum.bytes += held_by_groups(child);
        }
        if (n > sum.told + SOCKETS_FREE)
                sum.bytes += (n - sum.told - SOCKETS_FREE) * most_options(child);
        return sum.bytes + n * SOCKET_COST;
}

static bool has_hosts_network(const struct child *child)
{
        return child->plan->caged || child->plan->policy->network == POLICY_NETWORK_HOST ||
               !box_fence(FENCE_NET);
}

uint64_t buffers_count(struct child *child)
{
        return has_hosts_network(child) ? 0 : count_sockets(child);
}

/* The host may have very many: then what was seen last has to do for a while. */
uint64_t buffers_held(struct child *child, const struct inodes *open)
{
        static uint64_t next, held;
        bool hosts = has_hosts_network(child);
        uint64_t now = time_now(), used, n = hosts ? open->n : count_sockets(child);

        if (n <= (hosts ? 0 : FEW))
                return 0;
        if (hosts && now < next) {
                child->stale = true;
                return held;
        }
        used = watch_clock();
        held = ask(child, n, hosts ? open : NULL);
        next = watch_pause(now, watch_clock() - used, SHARE);
        return held;
}
