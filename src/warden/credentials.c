/* SPDX-License-Identifier: MIT */
#include "warden/credentials.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/base.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static int find(int socket, struct peer *ret)
{
        struct ucred found;
        socklen_t length = sizeof(found), size = sizeof(ret->pidfd);

        if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &found, &length) < 0)
                return -errno;
        *ret = (struct peer){ .uid = found.uid, .pid = found.pid, .pidfd = -1 };
        if (found.pid <= 0)
                return 0;
        /* Of whoever it was then; by the number, of whoever has it now, on kernels before 6.5. */
        if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &ret->pidfd, &size) < 0)
                ret->pidfd = errno == ENOPROTOOPT ? (int)syscall(SYS_pidfd_open, found.pid, 0) : -1;
        return ret->pidfd < 0 ? -ESRCH : 0;
}

static bool is_alive(const struct peer *peer)
{
        return poll(&(struct pollfd){ .fd = peer->pidfd, .events = POLLIN }, 1, 0) == 0;
}

/* Is it in the same user namespace? Returns -errno where nobody may look. */
static int is_beside(pid_t pid)
{
        char path[64], theirs[64], ours[64];
        ssize_t n, m;

        snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
        n = readlink(path, theirs, sizeof(theirs));
        if (n < 0)
                return -errno;
        m = readlink("/proc/self/ns/user", ours, sizeof(ours));
        return n == m && memcmp(theirs, ours, (size_t)n) == 0;
}

static unsigned long field(const char *status, const char *name)
{
        const char *at = strstr(status, name);

        return at ? strtoul(at + strlen(name), NULL, 10) : 0;
}

/* Has it given up privileges for good, and is it under more filters than this process? So is what
 * runs in a box without namespaces, and no warden. */
static bool is_confined(pid_t pid)
{
        _cleanup_free_ char *theirs = NULL, *ours = NULL;
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/status", pid);
        if (file_read(AT_FDCWD, path, 64 * KIB, &theirs, NULL) < 0 ||
            file_read(AT_FDCWD, "/proc/self/status", 64 * KIB, &ours, NULL) < 0)
                return true;
        return field(theirs, "\nNoNewPrivs:") &&
               field(theirs, "\nSeccomp_filters:") > field(ours, "\nSeccomp_filters:");
}

/* The look is good for as long as the process lives: so that is asked last. */
static bool is_outside(const struct peer *peer)
{
        return peer->pid > 0 && is_beside(peer->pid) > 0 && is_alive(peer);
}

bool peer_may_connect(int socket, struct peer *ret)
{
        struct peer peer = PEER_INIT;
        bool may = find(socket, &peer) == 0;

        if (may && peer.uid == geteuid())
                may = is_outside(&peer);
        else if (may) /* into whom nobody else may look */
                may = peer.uid == 0 && (peer.pid == 0 || is_alive(&peer));
        if (may)
                *ret = peer;
        else
                base_close(peer.pidfd);
        return may;
}

bool peer_may_serve(int socket)
{
        struct peer peer = PEER_INIT;
        bool may = find(socket, &peer) == 0, looks = peer.uid == geteuid() || geteuid() == 0;

        may = may && (looks || peer.uid == 0);
        if (may && peer.pid > 0) /* into root's process nobody else may look */
                may = !is_confined(peer.pid) &&
                      (looks ? is_outside(&peer) : is_beside(peer.pid) != 0 && is_alive(&peer));
        base_close(peer.pidfd);
        return may;
}

int peer_ask_for_senders(int listener, bool ask)
{
        int value = ask;

        return setsockopt(listener, SOL_SOCKET, SO_PASSCRED, &value, sizeof(value)) < 0 ? -errno
                                                                                        : 0;
}
