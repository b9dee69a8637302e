/* SPDX-License-Identifier: MIT */
/*
 * Results of MCP that a tool gives: whatever it writes, it is understood as one of the shapes, with
 * all that the rest of the server takes for granted, or refused with a text.
 */
#include <string.h>

#include "serve/serve_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
        if (!holds)
                abort();
}

static void check_questions(const json_t *given)
{
        json_t *request;
        const char *key;

        json_object_foreach(json_object_get(given, "inputRequests"), key, request)
        {
                must(json_is_string(json_object_get(request, "method")));
                (void)ask_can(given, json_string_value(json_object_get(request, "method")));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_failure_ struct rpc_failure failure = { 0 };
        _cleanup_json_ json_t *given = NULL;
        _cleanup_free_ char *text = NULL;

        if (json_parse((const char *)data, size, "it", 64 * KIB, JSON_PARSE_NUL, NULL, &given) < 0)
                return 0;
        switch (content_read(given, &failure)) {
        case CONTENT_BLOCKS:
                must(json_is_array(json_object_get(given, "content")));
                must(result_complete(true, given) == 0);
                must(json_is_string(json_object_get(given, "resultType")));
                break;
        case CONTENT_QUESTIONS:
                check_questions(given);
                break;
        case CONTENT_ERROR:
                must(failure.code < -32768 || failure.code > -32000);
                text = rpc_write_failure(NULL, &failure);
                must(text != NULL);
                break;
        case CONTENT_WRONG:
                must(failure.text[0]);
                break;
        }
        return 0;
}
