/* SPDX-License-Identifier: MIT */
/* X: what one box leaves in a net namespace, and what the next one finds there. */
#include <arpa/inet.h>
#include <linux/in6.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "payload.h"

#define NAME "callbox-left"
#define ATTEMPTS 100

static socklen_t abstract(struct sockaddr_un *address, const char *name)
{
        *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
        snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "%s", name);
        return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

static int listen_abstract(const char *name)
{
        struct sockaddr_un address;
        socklen_t length = abstract(&address, name);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, 5) < 0)
                return -1;
        return fd;
}

static int send_descriptors(int socket, const int *fds, size_t n)
{
        _Alignas(struct cmsghdr) char room[CMSG_SPACE(4 * sizeof(int))] = { 0 };
        struct iovec byte = { (char[]){ 'x' }, 1 };
        struct msghdr message = { .msg_iov = &byte,
                                  .msg_iovlen = 1,
                                  .msg_control = room,
                                  .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);

        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(header), fds, n * sizeof(int));
        return sendmsg(socket, &message, 0) == 1 ? 0 : -1;
}

/* A name that is held by a listener which is in flight to a socket that is in flight to itself. */
static int leave_local(void)
{
        int pair[2], listener = listen_abstract(NAME);

        if (listener < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 ||
            send_descriptors(pair[0], (int[]){ pair[1], listener }, 2) < 0)
                return untried("cannot leave a socket in flight: %s", errno_name(errno));
        return held("a name is in flight");
}

/* Counters, a flow label that outlives its socket, a key for TCP's fast open. */
static int leave_network(void)
{
        struct sockaddr_in far = { .sin_family = AF_INET, .sin_port = htons(9) };
        struct sockaddr_in6 far6 = { .sin6_family = AF_INET6, .sin6_port = htons(9) };
        struct in6_flowlabel_req label = { .flr_label = htonl(0x12345),
                                           .flr_action = IPV6_FL_A_GET,
                                           .flr_share = IPV6_FL_S_ANY,
                                           .flr_flags = IPV6_FL_F_CREATE,
                                           .flr_expires = 60,
                                           .flr_linger = 60 };
        int v4 = socket(AF_INET, SOCK_DGRAM, 0), v6 = socket(AF_INET6, SOCK_DGRAM, 0);
        int tcp = socket(AF_INET, SOCK_STREAM, 0), queue = 5;

        if (v4 < 0 || tcp < 0)
                return untried("no sockets: %s", errno_name(errno));
        inet_pton(AF_INET, "192.0.2.1", &far.sin_addr);
        inet_pton(AF_INET6, "2001:db8::1", &far6.sin6_addr);
        inet_pton(AF_INET6, "2001:db8::1", &label.flr_dst);
        for (int i = 0; i < ATTEMPTS; i++) {
                (void)connect(v4, (struct sockaddr *)&far, sizeof(far));
                if (v6 >= 0)
                        (void)connect(v6, (struct sockaddr *)&far6, sizeof(far6));
        }
        if (v6 >= 0 && setsockopt(v6, IPPROTO_IPV6, IPV6_FLOWLABEL_MGR, &label, sizeof(label)) < 0)
                return untried("no flow label: %s", errno_name(errno));
        if (setsockopt(tcp, IPPROTO_TCP, TCP_FASTOPEN, &queue, sizeof(queue)) < 0)
                return untried("no fast open: %s", errno_name(errno));
        return held("what there is to leave");
}

static int x29_leave(int argc, char **argv)
{
        return argc > 0 && strcmp(argv[0], "local") == 0 ? leave_local() : leave_network();
}

/* A column of /proc/net/snmp that counts something, and is not zero. */
static bool counts(const char *name, long value)
{
        static const char *const constant[] = { "Forwarding", "DefaultTTL", "RtoAlgorithm",
                                                "RtoMin",     "RtoMax",     "MaxConn" };

        for (size_t i = 0; i < COUNT(constant); i++)
                if (strcmp(name, constant[i]) == 0)
                        return false;
        return value != 0;
}

/* Lines come in twos: names, values. */
static void look_at_counters(struct tally *tally, const char *path)
{
        static char room[65536];
        const char *text = slurp(path);
        char *names, *values, *end, *in, *name, *value, *in2;

        if (!text) {
                put_held(tally, "%s %s", path, errno_name(errno));
                return;
        }
        snprintf(room, sizeof(room), "%s", text);
        for (names = strtok_r(room, "\n", &end); names; names = strtok_r(NULL, "\n", &end)) {
                values = strtok_r(NULL, "\n", &end);
                if (!values)
                        break;
                name = strtok_r(names, " ", &in);
                value = strtok_r(values, " ", &in2);
                while ((name = strtok_r(NULL, " ", &in)) && (value = strtok_r(NULL, " ", &in2)))
                        if (counts(name, strtol(value, NULL, 10)))
                                put_broken(tally, "%s of %s is %s", name, path, value);
        }
        put_held(tally, "%s", path);
}

static void look_at_lines(struct tally *tally, const char *path, unsigned expected)
{
        const char *text = slurp(path);
        unsigned lines = 0;

        for (; text && *text; text++)
                lines += *text == '\n';
        if (lines > expected)
                put_broken(tally, "%s has %u lines", path, lines);
        else
                put_held(tally, "%s", path);
}

/* Names without a path begin so. */
static void look_at_names(struct tally *tally)
{
        const char *text = slurp("/proc/net/unix"), *name = text ? strchr(text, '@') : NULL;

        if (name)
                put_broken(tally, "/proc/net/unix shows %.*s", (int)strcspn(name, "\n"), name);
        else
                put_held(tally, "/proc/net/unix");
}

static void look_at_key(struct tally *tally)
{
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        unsigned char key[32] = { 0 };
        socklen_t length = sizeof(key);
        unsigned sum = 0;

        if (fd < 0 || getsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_KEY, key, &length) < 0)
                length = 0;
        for (socklen_t i = 0; i < length; i++)
                sum += key[i];
        if (sum)
                put_broken(tally, "there is a key for fast open");
        else
                put_held(tally, "fast open");
        if (fd >= 0)
                close(fd);
}

/* With an argument, look with a socket as well; without, as a program that has no use for one. The
 * last words are the namespace. */
static int x29_look(int argc, char **argv)
{
        struct tally tally = { 0 };
        struct sockaddr_un address;
        socklen_t length = abstract(&address, NAME);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        char network[64] = "";

        (void)argv;
        look_at_counters(&tally, "/proc/net/snmp");
        look_at_counters(&tally, "/proc/net/netstat");
        look_at_lines(&tally, "/proc/net/ip6_flowlabel", 1);
        look_at_names(&tally);
        if (connect(fd, (struct sockaddr *)&address, length) == 0)
                put_broken(&tally, "somebody listens at @" NAME);
        close(fd);
        fd = listen_abstract(NAME);
        if (fd < 0)
                put_broken(&tally, "@" NAME " is taken: %s", errno_name(errno));
        else
                close(fd);
        if (argc > 0)
                look_at_key(&tally);
        if (readlink("/proc/self/ns/net", network, sizeof(network) - 1) > 0)
                put_held(&tally, "%s", network);
        return verdict(&tally);
}

/* Hand a view of one's own network to whoever listens at a path, or connects to it. */
static int x30_hand(int argc, char **argv)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), peer = fd;
        int view = open("/proc/self/net/unix", O_RDONLY | O_CLOEXEC);
        bool serve = argc > 1 && strcmp(argv[1], "serve") == 0;

        if (argc < 1 || fd < 0 || view < 0)
                return untried("no view: %s", errno_name(errno));
        snprintf(address.sun_path, sizeof(address.sun_path), "%s", argv[0]);
        if (serve) {
                if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
                    listen(fd, 1) < 0 || write(STDOUT_FILENO, "READY\n", 6) != 6)
                        return untried("cannot listen: %s", errno_name(errno));
                peer = accept(fd, NULL, NULL);
        } else if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
                return untried("cannot connect: %s", errno_name(errno));
        }
        if (peer < 0 || send_descriptors(peer, &view, 1) < 0)
                return untried("cannot send: %s", errno_name(errno));
        return held("a view is handed out");
}

/* Have a name of one's own for as long as stdin is open. */
static int x30_name(int argc, char **argv)
{
        char byte;

        if (argc < 1 || listen_abstract(argv[0]) < 0 || write(STDOUT_FILENO, "READY\n", 6) != 6)
                return untried("no name: %s", errno_name(errno));
        while (read(STDIN_FILENO, &byte, 1) > 0)
                ;
        return held("nobody has asked");
}

const struct attack attacks_traces[] = {
        { "X29-leave", x29_leave }, { "X29-look", x29_look }, { "X30-hand", x30_hand },
        { "X30-name", x30_name },   { NULL, NULL },
};
