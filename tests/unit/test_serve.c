/* SPDX-License-Identifier: MIT */
/* The parts of the MCP server that need no box: lines, messages, seals, kept output. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "serve/lines.h"
#include "serve/serve_parts.h"

/* ---- Digests, against published vectors ---- */

static void check_hex(const unsigned char digest[SHA256_SIZE], const char *wanted)
{
        char text[2 * SHA256_SIZE + 1];

        for (size_t i = 0; i < SHA256_SIZE; i++)
                snprintf(text + 2 * i, 3, "%02x", digest[i]);
        assert_string_equal(text, wanted);
}

static void sha256_is_that_of_fips_180(void **state)
{
        unsigned char digest[SHA256_SIZE];
        static char million[1000000];

        (void)state;
        sha256("", 0, digest);
        check_hex(digest, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        sha256("abc", 3, digest);
        check_hex(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, digest);
        check_hex(digest, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
        memset(million, 'a', sizeof(million));
        sha256(million, sizeof(million), digest);
        check_hex(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void hmac_is_that_of_rfc_4231(void **state)
{
        const unsigned char key[SHA256_SIZE] = "Jefe";
        unsigned char digest[SHA256_SIZE];

        (void)state;
        hmac_sha256(key, "what do ya want for nothing?", 28, digest);
        check_hex(digest, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        assert_true(bytes_equal("abc", "abc", 3));
        assert_false(bytes_equal("abc", "abd", 3));
}

/* ---- Lines ---- */

static void check_line(struct lines *lines, bool ended, const char *wanted)
{
        const char *line = NULL;
        size_t length = 0;

        assert_int_equal(lines_next(lines, ended, &line, &length), 1);
        assert_int_equal(length, strlen(wanted));
        assert_memory_equal(line, wanted, length);
}

static void lines_come_in_pieces_and_are_bounded(void **state)
{
        struct lines lines = { .limit = 5 };
        const char *line;
        size_t length;

        (void)state;
        assert_int_equal(lines_add(&lines, "ab", 2), 0);
        assert_int_equal(lines_next(&lines, false, &line, &length), 0);
        assert_int_equal(lines_add(&lines, "c\n\n \r\n12345\n123456\nx", 20), 0);
        check_line(&lines, false, "abc");
        check_line(&lines, false, "12345");
        assert_int_equal(lines_next(&lines, false, &line, &length), -EMSGSIZE);
        assert_int_equal(lines_next(&lines, false, &line, &length), 0);
        check_line(&lines, true, "x");
        assert_int_equal(lines_next(&lines, true, &line, &length), 0);
        /* One that never ends is refused once, and its rest is dropped. */
        for (int i = 0; i < 1000; i++) {
                assert_int_equal(lines_add(&lines, "1234567890", 10), 0);
                assert_int_equal(lines_next(&lines, false, &line, &length), i ? 0 : -EMSGSIZE);
        }
        assert_true(lines.data.room < 1000);
        assert_int_equal(lines_add(&lines, "0\nend\n", 6), 0);
        check_line(&lines, false, "end");
        lines_free(&lines);
}

/* ---- Messages ---- */

static void messages_are_told_apart(void **state)
{
        static const struct {
                const char *text;
                int code; /* 0: it is in order */
                enum rpc_kind kind;
        } cases[] = {
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}", 0, RPC_REQUEST },
                { "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{}}", 0, RPC_NOTIFICATION },
                { "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}}", 0, RPC_RESPONSE },
                { "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{}}", 0, RPC_RESPONSE },
                { "", RPC_PARSE_ERROR, RPC_REQUEST },
                { "{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"m\"}", RPC_INVALID_REQUEST,
                  RPC_REQUEST },
                { "{\"jsonrpc\":\"2.0\",\"result\":{}}", RPC_INVALID_REQUEST, RPC_REQUEST },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":3}",
                  RPC_INVALID_PARAMS, RPC_REQUEST },
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct rpc_failure failure = { 0 };
                struct rpc_message message;
                int r = rpc_read(cases[i].text, strlen(cases[i].text), &message, &failure);

                assert_int_equal(r, cases[i].code ? -EINVAL : 0);
                assert_int_equal(failure.code, cases[i].code);
                if (r == 0)
                        assert_int_equal(message.kind, cases[i].kind);
                else
                        assert_int_equal(failure.status, 400);
                rpc_message_clear(&message);
        }
}

static void a_version_is_what_meta_says(void **state)
{
        static const char text[] =
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"_meta\":{\"io."
                "modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}";
        struct rpc_failure failure = { 0 };
        struct rpc_message message;

        (void)state;
        assert_int_equal(rpc_read(text, strlen(text), &message, &failure), 0);
        assert_string_equal(message.version, SERVE_MODERN_VERSION);
        assert_true(serve_version_is_modern(message.version));
        assert_true(serve_version_is_known("2024-11-05"));
        assert_false(serve_version_is_known("2024-11-06"));
        rpc_message_clear(&message);
}

static void an_answer_without_id_has_none(void **state)
{
        struct rpc_failure failure = { 0 };
        char *text;

        (void)state;
        rpc_fail(&failure, RPC_PARSE_ERROR, "a %s\n", "mistake");
        failure.data = json_pack("{s:i}", "x", 1);
        text = rpc_write_failure(NULL, &failure);
        assert_string_equal(text, "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":"
                                  "\"a mistake?\",\"data\":{\"x\":1}}}");
        free(text);
        rpc_failure_clear(&failure);
}

/* ---- Output that is kept ---- */

static void output_is_kept_when_it_is_long(void **state)
{
        struct keep_stream stream;
        struct keep *keep = NULL;
        char path[PATH_MAX], *data = NULL;
        size_t length;

        (void)state;
        assert_int_equal(keep_open(false, false, &keep, NULL), 0);
        keep_begin(keep, &stream, "id", "stdout", 10);
        keep_add(&stream, "12345", 5);
        keep_add(&stream, "67890", 5);
        snprintf(path, sizeof(path), "%s/%s", keep_directory(keep), stream.name);
        assert_int_equal(access(path, F_OK), -1);
        keep_add(&stream, "x", 1);
        keep_add(&stream, "yz", 2);
        keep_end(&stream);
        assert_int_equal(file_read(-1, path, 100, &data, &length), 0);
        assert_string_equal(data, "1234567890xyz");
        free(data);
        for (int i = 0; i < 40; i++) {
                char id[16];

                snprintf(id, sizeof(id), "id%d", i);
                keep_begin(keep, &stream, id, "stdout", 0);
                keep_add(&stream, "x", 1);
                keep_end(&stream);
        }
        assert_int_equal(access(path, F_OK), -1); /* the oldest have gone */
        snprintf(path, sizeof(path), "%s/%s", keep_directory(keep), stream.name);
        assert_int_equal(access(path, F_OK), 0);
        snprintf(path, sizeof(path), "%s", keep_directory(keep));
        keep_close(keep);
        assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(sha256_is_that_of_fips_180),
                cmocka_unit_test(hmac_is_that_of_rfc_4231),
                cmocka_unit_test(lines_come_in_pieces_and_are_bounded),
                cmocka_unit_test(messages_are_told_apart),
                cmocka_unit_test(a_version_is_what_meta_says),
                cmocka_unit_test(an_answer_without_id_has_none),
                cmocka_unit_test(output_is_kept_when_it_is_long),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
