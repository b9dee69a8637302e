/* SPDX-License-Identifier: MIT */
/*
 * What clients and wardens say to each other: messages on SOCK_SEQPACKET sockets, a header, a body
 * of packed values (pack.h), and descriptors. A body too large for the socket travels in a memory
 * file, as one more descriptor.
 *
 *   connection   one per client: HELLO and its answer, POLICY, FORGET, PREPARE, START
 *   call socket  one per call, made by the client and sent along with START:
 *                  to the warden     KILL, SIGNAL; its end means KILL
 *                  to the client     OUTPUT as it comes, then one REPORT, then its end
 *                a client may keep a few of them, its lines, for its next calls
 *
 * Whoever dies closes his sockets, so that the other side always learns how things stand: a call
 * socket that ends without a report is a call whose warden is gone.
 */
#ifndef WARDEN_WIRE_H
#define WARDEN_WIRE_H

#include <sys/uio.h>

#include "warden/pack.h"
#include "warden/report.h"

#define WIRE_VERSION 6U
#define WIRE_INLINE (32 * KIB)       /* a larger body goes into a memory file */
#define WIRE_REQUEST_MAX (4 * MIB)   /* what a client may say at once */
#define WIRE_REPORT_MAX (1ULL << 40) /* bounded by what was asked to be captured */
#define WIRE_FDS_MAX 6
#define WIRE_PARTS_MAX 12
#define WIRE_LINES 8 /* call sockets that a client may keep */

enum wire_type {
        WIRE_HELLO = 1, /* version; answered by WIRE_HELLO with version and pid */
        WIRE_POLICY,    /* id, and what a plan is made from */
        WIRE_FORGET,    /* id of a policy that is not used any more */
        WIRE_PREPARE,   /* id of a policy; with a socket, on which a report answers */
        WIRE_START, /* line, id of a policy, spec; with the call's socket, unless it is a line that
                       is there, and the spec's descriptors */
        WIRE_KILL,
        WIRE_SIGNAL, /* number */
        WIRE_OUTPUT, /* bytes of stdout */
        WIRE_ERRORS, /* bytes of stderr */
        WIRE_RESULT, /* bytes of the result */
        WIRE_REPORT,
        /* between a warden and its makers (maker.h), and zygotes (zygote.h) */
        WIRE_PLAN,
        WIRE_MAKE,
        WIRE_BOX,
        WIRE_READY,
};

struct wire_header {
        uint32_t type;
        uint32_t filed; /* the body is in a memory file, the last descriptor */
        uint64_t length;
};

/* Room for the largest message that is not in a file. */
struct wire_room {
        _Alignas(uint64_t) char data[sizeof(struct wire_header) + WIRE_INLINE];
};

struct wire_message {
        enum wire_type type;
        const char *body; /* in the room, or in `own` */
        size_t length;
        char *own;
        int fds[WIRE_FDS_MAX]; /* -1 where there is none */
        bool lost;             /* descriptors did not fit into this process */
        pid_t sender;          /* where the socket tells (peer.h); else 0 */
};

#define WIRE_MESSAGE_INIT                                                                          \
        {                                                                                          \
                .fds = { -1, -1, -1, -1, -1, -1 }                                                  \
        }
_Static_assert(WIRE_FDS_MAX == 6, "WIRE_MESSAGE_INIT covers every descriptor");

/* Returns 0 or a negative errno: -EAGAIN when the socket is full and `flags` has MSG_DONTWAIT. */
int wire_send(int socket, enum wire_type type, const struct iovec *parts, size_t n_parts,
              const int *fds, size_t n_fds, int flags);
int wire_send_packed(int socket, enum wire_type type, const struct pack *pack, const int *fds,
                     size_t n_fds, int flags);

/* Returns 1 for a message, 0 at the end of the connection, or a negative errno: -EAGAIN, or -EPROTO
 * for what is none. `limit` bounds a body that comes in a file. */
int wire_receive(int socket, struct wire_room *room, size_t limit, int flags,
                 struct wire_message *ret_message);
/* Frees the body and closes the descriptors that were not taken. */
void wire_message_free(struct wire_message *message);
#define _cleanup_message_ _cleanup_(wire_message_free)

/* An error; one whose code is 0 is none. */
void wire_pack_error(struct pack *pack, const cbx_error *error);
void wire_unpack_error(struct unpack *unpack, cbx_error *error);

/* ---- What a plan is made from, and what a client has to know of it ---- */

/* A program that is started in the boxes of a policy before there are calls for them (program.h).
 */
struct wire_program {
        char **argv; /* NULL: there is none */
        char **environment;
        const char *directory; /* NULL: the policy's */
        bool result;           /* it has a result channel */
        bool forks;            /* calls are forked from it (zygote.h) */
        bool later;            /* it forks; first calls do not wait for that */
};

struct wire_policy {
        uint64_t id;
        const char *text; /* the policy as JSON */
        size_t length;
        const char *directory; /* where relative paths start */
        char **environment;    /* the caller's, as far as the policy asks for it */
        bool explain;
        enum plan_unboxed unboxed; /* there is to be no box: not every client may ask for that */
        struct wire_program program;
        struct policy_pin *pins; /* what its paths led to when the client first used it */
        size_t n_pins;
};

void wire_pack_policy(struct pack *pack, const struct wire_policy *policy);
/* `ret` points into the message; its lists are to be freed. */
int wire_unpack_policy(struct unpack *unpack, struct wire_policy *ret);
void wire_policy_free(struct wire_policy *policy);
/* Let the policy mean what its client found. */
int wire_take_pins(const struct wire_policy *asked, cbx_policy *policy);

/* ---- A spec as it is asked for ---- */

enum { WIRE_FD_CALL, WIRE_FD_INPUT, WIRE_FD_OUTPUT, WIRE_FD_ERRORS }; /* order of descriptors */

/* So many calls of this client with the same key run at once, at most; the others wait. */
#define WIRE_BOUNDS 2
struct wire_bound {
        uint64_t key;
        uint32_t most; /* 0: this is no bound */
};

struct wire_spec {
        const char *id;
        char **argv;
        char **environment;
        const char *directory;
        const char *input;
        size_t input_length;
        bool input_from_fd;
        uint64_t output_mode[2]; /* CBX_CAPTURE ... */
        uint64_t result_mode;    /* CBX_NO_RESULT ... */
        bool sanitize;
        struct policy_limits limits; /* 0: the policy's */
        struct wire_bound bounds[WIRE_BOUNDS];
};

/* Which socket is the call's. */
struct wire_line {
        unsigned number; /* under which it is kept, from 1; 0: it ends with the call */
        bool again;      /* it is that of an earlier call; none comes along */
};

#define WIRE_LINE_SIZE (2 * sizeof(uint64_t)) /* packed */
void wire_pack_line(struct pack *pack, const struct wire_line *line);
/* Returns -EPROTO for what is none. */
int wire_unpack_line(struct unpack *unpack, struct wire_line *ret);

/* May a line serve the call? Only if nothing of its output comes as a message: what a process wrote
 * that was killed and hangs in the kernel might still come, and be taken for the next call's. And
 * only if nothing comes along that a warden short of descriptors or memory could lose: whoever
 * brings a socket sees its end. `length` is the request's. */
static inline bool wire_fits_line(const struct wire_spec *spec, size_t length)
{
        bool kept = true;

        for (int i = 0; i < 2; i++)
                kept &= spec->output_mode[i] == CBX_CAPTURE || spec->output_mode[i] == CBX_DISCARD;
        return kept && spec->result_mode != CBX_RESULT_EVENTS && !spec->input_from_fd &&
               length <= WIRE_INLINE / 2;
}

void wire_pack_spec(struct pack *pack, uint64_t policy, const struct wire_spec *spec);
/* `ret` points into the message; argv and environment are to be freed. */
int wire_unpack_spec(struct unpack *unpack, uint64_t *ret_policy, struct wire_spec *ret);

/* ---- A report ---- */

/* Send the whole of it, head and tail of the outputs included: in the body, or in their files,
 * which come along in the order of the streams. */
int wire_send_report(int socket, const struct report *report, int flags);
/* `report` comes with its policy, which the other side does not send back. */
int wire_unpack_report(struct wire_message *message, struct report *report);

#endif
