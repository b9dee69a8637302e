/* SPDX-License-Identifier: MIT */
/*
 * HTTP/1.1 as far as a server of one endpoint needs it, strictly: what two readers could understand
 * in two ways is refused (bare line feeds, folded lines, blanks before a colon, a length twice or
 * beside chunks). Knows nothing of sockets.
 */
#ifndef SERVE_HTTP_PARSE_H
#define SERVE_HTTP_PARSE_H

#include "base/base.h"

#define HTTP_HEAD_MAX (16 * KIB) /* bytes of request line and header together */
#define HTTP_FIELDS_MAX 64

struct http_field {
        const char *name, *value; /* value without the blanks around it */
};

struct http_head {
        char *text; /* what the others point into; owned */
        const char *method, *target;
        struct http_field fields[HTTP_FIELDS_MAX];
        size_t n_fields;
        uint64_t length; /* of the body; 0 where it comes in chunks */
        bool chunked, keep_alive, expects /* "100 Continue" before it sends the body */;
        bool streams; /* HTTP/1.1: understands chunks */
};

/* Parse a head, up to and with the empty line. Returns 0, or the status of the refusal. */
int http_head_parse(struct http_head *head, const char *text, size_t length);
void http_head_clear(struct http_head *head);

/* The value of a field, whatever the case of its name; NULL: there is none. */
const char *http_head_get(const struct http_head *head, const char *name);

/* Does a list of media types ("a/b, c/d;q=0.5") hold this one, or a wildcard for it? */
bool http_accepts(const char *list, const char *type);

/* ---- Bodies in chunks ---- */

struct http_chunks {
        enum { CHUNK_SIZE, CHUNK_DATA, CHUNK_END, CHUNK_TRAILER, CHUNK_DONE } state;
        char line[256]; /* a size with its extensions, or a line of the trailer */
        size_t line_length, trailers;
        uint64_t left;
};

/* Take a piece, add its data to `body`. Returns how much of it was used (all of it, or up to the
 * end of the body: then the state is CHUNK_DONE), -EBADMSG, -EFBIG when the body exceeds the limit,
 * or -ENOMEM. */
ssize_t http_chunks_take(struct http_chunks *chunks, const char *data, size_t length, size_t limit,
                         struct buffer *body);

#endif
