/* SPDX-License-Identifier: MIT */
/* Descriptors across sockets, and closing them. Everything here is async-signal-safe. */
#ifndef BOX_DESCRIPTOR_H
#define BOX_DESCRIPTOR_H

/* Send a byte, with descriptors. */
int descriptor_send(int socket, char byte, const int *fds, unsigned n);

/* Receive a byte and up to `n` descriptors, -1 for those that did not come. Returns 0 at the end of
 * the connection, 1 for a message. */
int descriptor_receive(int socket, int *ret_fds, int n, char *ret_byte);

/* Close every descriptor from `from` on but these. Sorts them. */
int descriptor_keep(unsigned from, int *fds, unsigned n);

#endif
