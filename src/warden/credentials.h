/* SPDX-License-Identifier: MIT */
/*
 * Who is at the other end of a local socket that has a path. A box may see the path in its
 * workspace: connect to a warden there, or listen in its place.
 *
 * A box with namespaces is known by its user namespace. One without has none of its own, but its
 * connections are made by its init: whoever connected is not who speaks then, and mostly dead. Who
 * listens there is under filters, as no warden is.
 */
#ifndef WARDEN_CREDENTIALS_H
#define WARDEN_CREDENTIALS_H

#include <stdbool.h>
#include <sys/types.h>

struct peer {
        uid_t uid;
        pid_t pid; /* 0: it lives in another pid namespace */
        int pidfd; /* -1: likewise */
};

#define PEER_INIT                                                                                  \
        {                                                                                          \
                .pid = 0, .pidfd = -1                                                              \
        }

/* May it use the warden that has accepted this connection? Its own user, and root. The pidfd is the
 * caller's. */
bool peer_may_connect(int socket, struct peer *ret);

/* May whoever listens there be taken for a warden: of the same user, or root's, or by root? */
bool peer_may_serve(int socket);

/* Have those who will connect tell with each message who sends it, as the kernel knows it
 * (wire_message.sender); of a connection itself: not any more. */
int peer_ask_for_senders(int listener, bool ask);

#endif
