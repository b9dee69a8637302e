/* SPDX-License-Identifier: MIT */
/*
 * JSON-RPC as MCP has it: one message in, checked; one message out. Knows nothing of peers, tools
 * and transports.
 *
 * What comes in is hostile until it was read: json_parse bounds depth and number of values, refuses
 * duplicate keys, bad UTF-8 and numbers beyond 64 bits; batches are refused, as are ids that are
 * neither a string of at most RPC_ID_MAX bytes nor a number.
 */
#ifndef SERVE_RPC_H
#define SERVE_RPC_H

#include "policy/json_read.h"
#include "policy/policy.h"

#define RPC_MESSAGE_MAX (20 * MIB) /* bytes of one message that comes in */
#define RPC_ID_MAX 1024            /* bytes of an id that is a string */

/* Errors of JSON-RPC and of MCP. */
enum {
        RPC_PARSE_ERROR = -32700,
        RPC_INVALID_REQUEST = -32600,
        RPC_METHOD_NOT_FOUND = -32601,
        RPC_INVALID_PARAMS = -32602,
        RPC_INTERNAL_ERROR = -32603,
        RPC_HEADER_MISMATCH = -32020,     /* a header of HTTP is not what the body says */
        RPC_MISSING_CAPABILITY = -32021,  /* data.requiredCapabilities */
        RPC_UNSUPPORTED_VERSION = -32022, /* data.supported, data.requested */
};

/* Why a request is not answered by a result. */
struct rpc_failure {
        int code;
        int status; /* that HTTP has for it; 0: 200 */
        char text[512];
        json_t *data; /* NULL: none; owned */
};

/* Fill it and return -EINVAL; text is made showable. The status is 400 for what is wrong with the
 * message as such (parse error, invalid request, header, capability, version), else 200. */
int rpc_fail(struct rpc_failure *failure, int code, const char *format, ...) PRINTF_LIKE(3, 4);
void rpc_failure_clear(struct rpc_failure *failure);
#define _cleanup_failure_ _cleanup_(rpc_failure_clear)

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE };

/* A message that came in. What it points to is in `json`, which it owns. */
struct rpc_message {
        json_t *json;
        enum rpc_kind kind;
        json_t *id;          /* a string or number; NULL of a notification */
        const char *method;  /* NULL of a response */
        json_t *params;      /* an object, or NULL */
        json_t *meta;        /* params._meta: an object, or NULL */
        const char *version; /* of the protocol, named by _meta: 2026-07-28 and later; else NULL */
};

/* Read one message. On failure `ret_message` may still have an id to answer to. */
int rpc_read(const char *text, size_t length, struct rpc_message *ret_message,
             struct rpc_failure *failure);
void rpc_message_clear(struct rpc_message *message);
#define _cleanup_rpc_message_ _cleanup_(rpc_message_clear)

/* ---- What goes out: one line of JSON each, to be freed; NULL when memory ran out. ---- */

/* Takes `result`. */
char *rpc_write_result(const json_t *id, json_t *result);
/* `id` NULL: it is not known which request was meant. */
char *rpc_write_failure(const json_t *id, const struct rpc_failure *failure);
/* Takes `params`, which may be NULL. */
char *rpc_write_notification(const char *method, json_t *params);
char *rpc_write_request(const json_t *id, const char *method, json_t *params);

#endif
