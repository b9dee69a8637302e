/* SPDX-License-Identifier: MIT */
/* Whatever a client says is read or refused, and what is read says the same when it is said again.
 */
#include <string.h>

#include "warden/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
        if (!holds)
                abort();
}

/* `pack` is what `data` was read as, written again: the same bytes, or it was not read well. */
static void must_equal(const struct pack *pack, const char *data, size_t size)
{
        must(!pack->failed && pack->buffer.length == size);
        must(size == 0 || memcmp(pack->buffer.data, data, size) == 0);
}

static void try_policy(const char *data, size_t size)
{
        _cleanup_pack_ struct pack pack = PACK_INIT;
        struct unpack unpack = UNPACK_INIT(data, size);
        struct wire_policy policy;

        if (wire_unpack_policy(&unpack, &policy) < 0)
                return;
        wire_pack_policy(&pack, &policy);
        must_equal(&pack, data, size);
        must(!policy.program.argv || policy.program.argv[0]);
        wire_policy_free(&policy);
}

static void try_spec(const char *data, size_t size)
{
        _cleanup_pack_ struct pack pack = PACK_INIT;
        struct unpack unpack = UNPACK_INIT(data, size);
        struct wire_spec spec;
        uint64_t policy;

        if (wire_unpack_spec(&unpack, &policy, &spec) < 0)
                return;
        must(spec.argv[0] != NULL);
        wire_pack_spec(&pack, policy, &spec);
        must_equal(&pack, data, size);
        free(spec.argv);
        free(spec.environment);
}

/* A report comes from the warden, which is trusted; but a bad one must not harm the caller. */
static void try_report(const char *data, size_t size)
{
        struct wire_message message = WIRE_MESSAGE_INIT;
        struct report report = REPORT_INIT;
        _cleanup_json_ json_t *json = NULL;
        char text[512];

        message.type = WIRE_REPORT;
        message.body = data;
        message.length = size;
        if (wire_unpack_report(&message, &report) == 0) {
                report_text(&report, text, sizeof(text));
                json = report_to_json(&report);
                must(json != NULL);
        }
        report_free(&report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        /* A copy of exactly this size: reading past its end is seen. */
        char *copy = malloc(size + 1);

        if (size == 0 || !copy) {
                free(copy);
                return 0;
        }
        memcpy(copy, data + 1, size - 1);
        switch (data[0] % 3) {
        case 0:
                try_policy(copy, size - 1);
                break;
        case 1:
                try_spec(copy, size - 1);
                break;
        default:
                try_report(copy, size - 1);
        }
        free(copy);
        return 0;
}
