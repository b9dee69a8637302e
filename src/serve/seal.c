/* SPDX-License-Identifier: MIT */
/*
 * State that a client carries from one request to the next. It can be read by the client, but not
 * changed: an HMAC with a secret of this process goes with it. It is good for the same tool, as it
 * was then, with the same arguments, for a while; and where it stands for an approval, once.
 */
#include <stdio.h>
#include <string.h>

#include "serve/serve_parts.h"

#define GOOD_FOR (600 * NSEC_PER_SEC)
#define SEAL_MAX (256 * KIB)

/* ---- Digests ---- */

static void hex_digest(const void *data, size_t length, char ret[2 * SHA256_SIZE + 1])
{
        unsigned char digest[SHA256_SIZE];

        sha256(data, length, digest);
        for (size_t i = 0; i < SHA256_SIZE; i++)
                snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

/* Of a value, in whatever order a client writes its members. */
static int digest_json(const json_t *value, char ret[2 * SHA256_SIZE + 1])
{
        _cleanup_free_ char *text =
                json_dumps(value, JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY);

        if (!text)
                return -ENOMEM;
        hex_digest(text, strlen(text), ret);
        return 0;
}

static int digest_policy(const cbx_policy *policy, unsigned char ret[SHA256_SIZE])
{
        _cleanup_free_ char *text = NULL;
        int r = cbx_policy_print(policy, &text, NULL);

        if (r == 0)
                sha256(text, strlen(text), ret);
        return r;
}

/* Of the tool: one whose manifest or policies were changed since then is not what was approved. */
static int digest_tool(const struct tool *tool, char ret[2 * SHA256_SIZE + 1])
{
        struct {
                unsigned char manifest[SHA256_SIZE], policy[SHA256_SIZE], widened[SHA256_SIZE];
        } facts = { 0 };
        int r = digest_policy(tool->policy, facts.policy);

        if (r == 0 && tool->ask.policy)
                r = digest_policy(tool->ask.policy, facts.widened);
        if (r < 0)
                return r;
        memcpy(facts.manifest, tool->digest, sizeof(facts.manifest));
        hex_digest(&facts, sizeof(facts), ret);
        return 0;
}

/* ---- Text ---- */

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static int encode(const void *data, size_t length, struct buffer *to)
{
        const unsigned char *bytes = data;
        int r = 0;

        for (size_t i = 0; r == 0 && i < length; i += 3) {
                size_t n = MIN(length - i, (size_t)3);
                uint32_t word = (uint32_t)bytes[i] << 16;
                char text[4];

                word |= n > 1 ? (uint32_t)bytes[i + 1] << 8 : 0;
                word |= n > 2 ? bytes[i + 2] : 0;
                for (size_t k = 0; k < 4; k++)
                        text[k] = letters[word >> (18 - 6 * k) & 63];
                r = buffer_add(to, text, n + 1);
        }
        return r;
}

static int decode(const char *text, size_t length, struct buffer *to)
{
        uint32_t word = 0;
        int bits = 0;

        for (size_t i = 0; i < length; i++) {
                const char *at = text[i] ? strchr(letters, text[i]) : NULL;
                unsigned char byte;

                if (!at)
                        return -EINVAL;
                word = word << 6 | (uint32_t)(at - letters);
                bits += 6;
                if (bits < 8)
                        continue;
                bits -= 8;
                byte = (unsigned char)(word >> bits);
                if (buffer_add(to, &byte, 1) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* ---- Writing ---- */

int seal_write(struct serve_call *call, const json_t *state, bool approval, char **ret_text)
{
        char arguments[2 * SHA256_SIZE + 1], tool[2 * SHA256_SIZE + 1];
        unsigned char mac[SHA256_SIZE];
        _cleanup_buffer_ struct buffer text = BUFFER_INIT;
        _cleanup_json_ json_t *payload = NULL;
        _cleanup_free_ char *plain = NULL;
        int r = digest_json(call->arguments, arguments);

        if (r == 0)
                r = digest_tool(call->tool, tool);
        if (r < 0)
                return r;
        payload = json_pack("{s:s, s:s, s:I, s:I, s:b, s:b, s:O*}", "arguments", arguments, "tool",
                            tool, "until", (json_int_t)(time_now() + GOOD_FOR), "serial",
                            (json_int_t)++call->serve->serial, "approval", approval, "approved",
                            call->approved, "state", state);
        plain = payload ? json_write(payload, 0) : NULL;
        if (!plain)
                return -ENOMEM;
        hmac_sha256(call->serve->secret, plain, strlen(plain), mac);
        r = encode(plain, strlen(plain), &text);
        if (r == 0)
                r = buffer_add(&text, ".", 1);
        if (r == 0)
                r = encode(mac, sizeof(mac), &text);
        if (r == 0)
                *ret_text = TAKE_PTR(text.data);
        return r;
}

/* ---- Reading ---- */

static int refuse(struct rpc_failure *failure, const char *why)
{
        return rpc_fail(failure, RPC_INVALID_PARAMS, "requestState %s; call the tool anew", why);
}

static int unseal(const struct serve *serve, const char *text, json_t **ret_payload,
                  struct rpc_failure *failure)
{
        const char *dot = strchr(text, '.');
        unsigned char mac[SHA256_SIZE];
        _cleanup_buffer_ struct buffer plain = BUFFER_INIT, given = BUFFER_INIT;
        int r;

        if (!dot || strlen(text) > SEAL_MAX)
                return refuse(failure, "is none of this server's");
        r = decode(text, (size_t)(dot - text), &plain);
        if (r == 0)
                r = decode(dot + 1, strlen(dot + 1), &given);
        if (r == -ENOMEM)
                return r;
        hmac_sha256(serve->secret, plain.data, plain.length, mac);
        if (r < 0 || given.length != sizeof(mac) || !bytes_equal(given.data, mac, sizeof(mac)))
                return refuse(failure, "was changed, or is none of this server's");
        *ret_payload = json_loadb(plain.data, plain.length, JSON_ALLOW_NUL, NULL);
        return *ret_payload ? 0 : -ENOMEM;
}

/* What stands for an approval is good once. When there is no room to remember, it is not good. */
static int use_up(struct serve *serve, uint64_t serial, uint64_t until, struct rpc_failure *failure)
{
        uint64_t now = time_now();
        size_t room = SEAL_USED_MAX;

        for (size_t i = 0; i < SEAL_USED_MAX; i++) {
                if (serve->used[i].expires < now)
                        room = i;
                else if (serve->used[i].serial == serial)
                        return refuse(failure, "was made use of already");
        }
        if (room == SEAL_USED_MAX)
                return refuse(failure, "cannot be made use of: there were too many approvals");
        serve->used[room].serial = serial;
        serve->used[room].expires = until;
        return 0;
}

static bool is_same(const json_t *payload, const char *key, const char *digest)
{
        const char *sealed = json_string_value(json_object_get(payload, key));

        return sealed && strcmp(sealed, digest) == 0;
}

int seal_open(struct serve_call *call, const char *text, struct seal *ret_seal,
              struct rpc_failure *failure)
{
        char arguments[2 * SHA256_SIZE + 1], tool[2 * SHA256_SIZE + 1];
        _cleanup_json_ json_t *payload = NULL;
        struct seal seal;
        uint64_t until;
        int r = unseal(call->serve, text, &payload, failure);

        if (r < 0)
                return r;
        if (digest_json(call->arguments, arguments) < 0 || digest_tool(call->tool, tool) < 0)
                return -ENOMEM;
        until = (uint64_t)json_integer_value(json_object_get(payload, "until"));
        if (until < time_now())
                return refuse(failure, "has expired");
        if (!is_same(payload, "arguments", arguments))
                return refuse(failure, "belongs to other arguments");
        if (!is_same(payload, "tool", tool))
                return refuse(failure, "belongs to another tool, or the tool has changed since");
        seal.approval = json_is_true(json_object_get(payload, "approval"));
        seal.approved = json_is_true(json_object_get(payload, "approved"));
        if (seal.approval || seal.approved) {
                json_int_t serial = json_integer_value(json_object_get(payload, "serial"));

                r = use_up(call->serve, (uint64_t)serial, until, failure);
                if (r < 0)
                        return r;
        }
        seal.state = json_incref(json_object_get(payload, "state"));
        *ret_seal = seal;
        return 0;
}
