/* SPDX-License-Identifier: MIT */
/* Policies: what is read, what is refused and with which words, and that printing loses nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "policy/policy.h"

static cbx_policy *parse(const char *text)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_policy *policy = NULL;

        if (cbx_policy_parse(text, strlen(text), &policy, &error) < 0)
                fail_msg("%s: refused: %s: %s", text, error.where, error.text);
        return policy;
}

static void assert_same_hash(const char *a, const char *b)
{
        _cleanup_policy_ cbx_policy *x = parse(a), *y = parse(b);

        assert_true(cbx_policy_hash(x) == cbx_policy_hash(y));
}

/* ---- What is read ---- */

static void an_empty_object_is_the_safe_default(void **state)
{
        _cleanup_policy_ cbx_policy *p = parse("{}");

        (void)state;
        assert_true(p->system);
        assert_int_equal(p->n_paths, 0);
        assert_int_equal(p->n_variables, 0);
        assert_int_equal(p->network, POLICY_NETWORK_NONE);
        assert_true(p->limits.wall == 30);
        assert_true(p->limits.cpu == 0);
        assert_int_equal(p->limits.memory, 512 * MIB);
        assert_int_equal(p->limits.processes, 128);
        assert_int_equal(p->limits.file_size, GIB);
        assert_int_equal(p->limits.open_files, 768);
        assert_int_equal(p->limits.tmp_size, 64 * MIB);
        assert_int_equal(p->limits.output, 0);
        assert_int_equal(p->limits.capture, 100 * KIB);
        assert_int_equal(p->limits.result, 16 * MIB);
        assert_null(p->syscalls_allow[0]);
        assert_null(p->syscalls_deny[0]);
        assert_int_equal(p->refusal, POLICY_REFUSE_ERRNO);
        assert_int_equal(p->require, (1U << GUARANTEE_LANDLOCK) - 1);
        assert_false(p->best_effort);
}

static void the_default_protects_what_the_host_would_execute(void **state)
{
        static const char *const names[] = { ".git/hooks", ".git/config", ".git/commondir",
                                             ".vscode",    ".envrc",      ".mcp.json",
                                             ".bashrc",    ".husky" };
        _cleanup_policy_ cbx_policy *p = parse("{}"), *none = parse("{\"files\":{\"protect\":[]}}");

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                size_t at = 0;

                while (p->protect[at] && strcmp(p->protect[at], names[i]) != 0)
                        at++;
                assert_non_null(p->protect[at]);
        }
        assert_null(none->protect[0]);
}

static void every_key_is_read(void **state)
{
        _cleanup_policy_ cbx_policy *p = parse(
                "{\"version\":1,\"system\":false,\"files\":{\"read\":[\"/srv/data\"],"
                "\"write\":[{\"host\":\"/a\",\"box\":\"/b\"}],\"workspace\":\"/w\","
                "\"hide\":[\"/srv/data/private\"],\"tmpfs\":[{\"path\":\"/x\",\"size\":\"1M\"},"
                "\"/y\"],\"protect\":[\"b\",\"a\",\"b\"]},\"network\":\"loopback\","
                "\"environment\":{\"pass\":[\"P\"],\"set\":{\"A\":\"1\",\"EMPTY\":\"\"}},"
                "\"limits\":{\"wall\":0.25,\"cpu\":2,\"memory\":null,\"processes\":null,"
                "\"file_size\":null,\"open_files\":64,\"tmp_size\":4096,\"output\":\"1.5K\","
                "\"capture\":0},\"syscalls\":{\"allow\":[\"ptrace\"],\"deny\":[\"kill\"],"
                "\"on_denied\":\"kill\"},\"require\":[\"cgroup\"],\"best_effort\":true}");

        (void)state;
        assert_false(p->system);
        assert_int_equal(p->n_paths, 6);
        assert_string_equal(p->paths[0].box, "/b"); /* sorted by place */
        assert_string_equal(p->paths[0].host, "/a");
        assert_string_equal(p->paths[0].where, "files.write[0]");
        assert_string_equal(p->paths[1].host, "/srv/data");
        assert_null(p->paths[1].box);
        assert_int_equal(p->paths[2].access, POLICY_HIDE);
        assert_true(p->paths[3].workspace);
        assert_string_equal(p->paths[3].where, "files.workspace");
        assert_int_equal(p->paths[4].size, MIB);
        assert_int_equal(p->paths[5].size, 4096); /* limits.tmp_size */
        assert_string_equal(p->protect[0], "a");
        assert_string_equal(p->protect[1], "b");
        assert_null(p->protect[2]);
        assert_int_equal(p->network, POLICY_NETWORK_LOOPBACK);
        assert_int_equal(p->n_variables, 3);
        assert_string_equal(p->variables[0].value, "1");
        assert_string_equal(p->variables[1].value, "");
        assert_null(p->variables[2].value);
        assert_true(p->limits.wall == 0.25);
        assert_true(p->limits.cpu == 2);
        assert_int_equal(p->limits.memory, 0);
        assert_int_equal(p->limits.output, 1536);
        assert_int_equal(p->limits.capture, 0);
        assert_string_equal(p->syscalls_allow[0], "ptrace");
        assert_string_equal(p->syscalls_deny[0], "kill");
        assert_int_equal(p->refusal, POLICY_REFUSE_KILL);
        assert_int_equal(p->require, 1U << GUARANTEE_CGROUP);
        assert_true(p->best_effort);
}

static void require_adds_to_the_default_without_best_effort(void **state)
{
        _cleanup_policy_ cbx_policy *none = parse("{\"require\":[]}");
        _cleanup_policy_ cbx_policy *more = parse("{\"require\":[\"landlock\"]}");
        _cleanup_policy_ cbx_policy *effort = parse("{\"best_effort\":true}");
        unsigned standard = (1U << GUARANTEE_LANDLOCK) - 1;

        (void)state;
        assert_int_equal(none->require, standard);
        assert_int_equal(more->require, standard | 1U << GUARANTEE_LANDLOCK);
        assert_int_equal(effort->require, 0);
}

static void host_paths_are_tidied_only_where_that_is_safe(void **state)
{
        static const struct {
                const char *given, *tidy;
        } cases[] = {
                { "/a//b/./c/", "/a/b/c" },
                { "./x", "x" },
                { ".", "." },
                { "./", "." },
                { "..", ".." },
                { "../x", "../x" },
                { "/link/../x", "/link/../x" },
                { "link/../x", "link/../x" },
                { "/../x", "/x" },
                { "//x", "/x" },
                { "/...", "/..." },
                { "/.x", "/.x" },
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char text[128];

                snprintf(text, sizeof(text), "{\"files\":{\"read\":[\"%s\"]}}", cases[i].given);
                _cleanup_policy_ cbx_policy *p = parse(text);
                assert_string_equal(p->paths[0].host, cases[i].tidy);
        }
}

static void the_same_rule_twice_is_one_rule(void **state)
{
        _cleanup_policy_ cbx_policy *p = parse("{\"files\":{\"read\":[\"/a\",\"/a/\","
                                               "{\"host\":\"/a\",\"box\":\"/a\"}]},"
                                               "\"environment\":{\"pass\":[\"A\",\"A\"]}}");

        (void)state;
        assert_int_equal(p->n_paths, 1);
        assert_int_equal(p->n_variables, 1);
}

/* ---- What is refused ---- */

struct refusal {
        const char *text, *where, *says;
};

#define FILES(x) "{\"files\":{" x "}}"
#define LIMIT(x) "{\"limits\":{" x "}}"

static const struct refusal refusals[] = {
        /* Not JSON, or not only. */
        { "", "", "the policy is empty" },
        { "{", "", "is not JSON" },
        { "{} x", "", "end of file" },
        { "[]", "", "is a JSON object" },
        { "null", "", "is a JSON object" },
        { "{\"network\":\"no\xff\"}", "network", "not UTF-8" },
        { "{\"network\":\"no\\u0000ne\"}", "network", "NUL" },
        { "{\"a\\u0000b\":1}", "[\"a\\u0000b\"]", "NUL" },
        { LIMIT("\"memory\":1,\"memory\":2"), "limits.memory", "given twice" },
        { "{\"files\":{\"read\":[\"/a\",{\"host\":\"/b\",\"host\":\"/c\"}]}}", "files.read[1].host",
          "given twice" },
        { LIMIT("\"wall\":NaN"), "limits.wall", "not JSON" },
        { LIMIT("\"wall\":1e999"), "limits.wall", "out of range" },
        { LIMIT("\"memory\":99999999999999999999"), "limits.memory", "out of range" },
        /* Unknown words. */
        { LIMIT("\"timout\":3"), "limits.timout",
          "unknown key \"timout\"; did you mean \"wall\"?" },
        { LIMIT("\"memroy\":3"), "limits.memroy", "did you mean \"memory\"?" },
        { "{\"memory\":1}", "memory", "did you mean \"limits.memory\"?" },
        { "{\"timeout\":1}", "timeout", "did you mean \"limits.wall\"?" },
        { "{\"net\":\"none\"}", "net", "did you mean \"network\"?" },
        { "{\"a b\":1}", "[\"a b\"]", "unknown key \"a b\"" },
        { "{\"\":1}", "[\"\"]", "unknown key" },
        { FILES("\"read\":[{\"hots\":\"/a\"}]"), "files.read[0].hots", "did you mean \"host\"?" },
        { "{\"network\":\"hots\"}", "network", "did you mean \"host\"?" },
        { "{\"network\":\"internet\"}", "network", "\"internet\" is not known" },
        { "{\"require\":[\"files\",\"memry\"]}", "require[1]", "did you mean \"memory\"?" },
        { "{\"syscalls\":{\"on_denied\":\"EPERM\"}}", "syscalls.on_denied", "is not known" },
        /* Types. */
        { "{\"version\":2}", "version", "must be 1" },
        { "{\"version\":\"1\"}", "version", "must be a whole number, not a string" },
        { "{\"system\":1}", "system", "must be true or false, not a number" },
        { "{\"files\":[]}", "files", "must be an object, not an array" },
        { FILES("\"read\":\"/a\""), "files.read", "must be an array, not a string" },
        { FILES("\"read\":[1]"), "files.read[0]", "must be a string, not a number" },
        { FILES("\"hide\":[{}]"), "files.hide[0]", "must be a string, not an object" },
        { "{\"network\":null}", "network", "must be a string, not null" },
        { "{\"best_effort\":null}", "best_effort", "true or false" },
        { "{\"limits\":null}", "limits", "must be an object, not null" },
        /* Paths. */
        { FILES("\"read\":[\"\"]"), "files.read[0]", "empty" },
        { FILES("\"read\":[\"/\"]"), "files.read[0]", "root of the box" },
        { FILES("\"read\":[\"/..\"]"), "files.read[0]", "root of the box" },
        { FILES("\"write\":[\"/proc\"]"), "files.write[0]", "/proc" },
        { FILES("\"write\":[\"//dev//shm\"]"), "files.write[0]", "/dev" },
        { FILES("\"hide\":[\"/sys/fs\"]"), "files.hide[0]", "/sys" },
        { FILES("\"read\":[{\"host\":\"/proc/1\",\"box\":\"/p\"}]"), "files.read[0].host",
          "every process" },
        { FILES("\"read\":[{\"box\":\"/b\"}]"), "files.read[0]", "needs a \"host\"" },
        { FILES("\"read\":[{\"host\":\"/a\",\"box\":\"b\"}]"), "files.read[0].box",
          "not absolute" },
        { FILES("\"read\":[{\"host\":\"/a\",\"box\":\"/x/../b\"}]"), "files.read[0].box",
          "\"..\" in it" },
        { FILES("\"read\":[{\"host\":\"/a\",\"box\":\"/./b\"}]"), "files.read[0].box", "\".\"" },
        { FILES("\"read\":[{\"host\":\"/a\",\"box\":\"///\"}]"), "files.read[0].box", "root" },
        { FILES("\"workspace\":{\"host\":\".\",\"box\":\"/dev\"}"), "files.workspace.box", "/dev" },
        { FILES("\"tmpfs\":[\"scratch\"]"), "files.tmpfs[0]", "not absolute" },
        { FILES("\"tmpfs\":[{\"size\":\"1M\"}]"), "files.tmpfs[0]", "needs a \"path\"" },
        { FILES("\"tmpfs\":[{\"path\":\"/a\",\"size\":0}]"), "files.tmpfs[0].size", "at least 1" },
        { FILES("\"tmpfs\":[{\"path\":\"/a\",\"size\":null}]"), "files.tmpfs[0].size", "not null" },
        { FILES("\"read\":[\"/a\"],\"write\":[\"/b\",\"/a/\"]"), "files.write[1]",
          "files.read[0] and files.write[1] both speak for \"/a\"" },
        { FILES("\"write\":[\".\"],\"workspace\":\".\""), "files.", "both speak for \".\"" },
        { FILES("\"read\":[{\"host\":\"/a\",\"box\":\"/x\"},{\"host\":\"/b\",\"box\":\"/x\"}]"),
          "files.read[", "both speak" },
        { FILES("\"protect\":[\"/etc\"]"), "files.protect[0]", "absolute" },
        { FILES("\"protect\":[\"a/../../b\"]"), "files.protect[0]", "\"..\"" },
        { FILES("\"protect\":[\"./\"]"), "files.protect[0]", "workspace itself" },
        { FILES("\"protect\":[\"\"]"), "files.protect[0]", "empty" },
        /* Variables. */
        { "{\"environment\":{\"pass\":[\"A=B\"]}}", "environment.pass[0]", "not a name" },
        { "{\"environment\":{\"set\":{\"1A\":\"\"}}}", "environment.set.1A", "not a name" },
        { "{\"environment\":{\"set\":{\"\":\"\"}}}", "environment.set[\"\"]", "not a name" },
        { "{\"environment\":{\"set\":{\"A\":1}}}", "environment.set.A", "must be a string" },
        { "{\"environment\":{\"pass\":[\"A\"],\"set\":{\"A\":\"\"}}}", "environment.set.A",
          "both set and passed on" },
        /* Limits. */
        { LIMIT("\"wall\":0"), "limits.wall", "more than 0" },
        { LIMIT("\"wall\":-1.5"), "limits.wall", "more than 0" },
        { LIMIT("\"wall\":1e10"), "limits.wall", "at most 1000000000 seconds" },
        { LIMIT("\"wall\":null"), "limits.wall", "cannot be without" },
        { LIMIT("\"wall\":\"30\""), "limits.wall", "a number of seconds" },
        { LIMIT("\"memory\":-1"), "limits.memory", "at least 1M" },
        { LIMIT("\"memory\":0"), "limits.memory", "at least 1M" },
        { LIMIT("\"memory\":\"-1M\""), "limits.memory", "not a size" },
        { LIMIT("\"memory\":\"99999999T\""), "limits.memory", "at most 1024T" },
        { LIMIT("\"memory\":\"99999999999999999999999\""), "limits.memory", "at most 1024T" },
        { LIMIT("\"memory\":1.5"), "limits.memory", "a size such as" },
        { LIMIT("\"processes\":0"), "limits.processes", "at least 1" },
        { LIMIT("\"processes\":\"4\""), "limits.processes", "a whole number" },
        { LIMIT("\"open_files\":9999999"), "limits.open_files", "at most 1048576" },
        { LIMIT("\"cpus\":0"), "limits.cpus", "at least 0.01 and at most 8192 processors" },
        { LIMIT("\"cpus\":9000"), "limits.cpus", "at least 0.01 and at most 8192 processors" },
        { LIMIT("\"cpus\":\"2\""), "limits.cpus", "a number of processors" },
        { LIMIT("\"tmp_size\":null"), "limits.tmp_size", "cannot be without" },
        { LIMIT("\"capture\":\"2G\""), "limits.capture", "at most 1G" },
        { LIMIT("\"result\":\"5G\""), "limits.result", "at most 4G" },
        { LIMIT("\"result\":null"), "limits.result", "without a limit" },
        /* System calls. */
        { "{\"syscalls\":{\"allow\":[\"Ptrace\"]}}", "syscalls.allow[0]", "not the name" },
        { "{\"syscalls\":{\"deny\":[\"\"]}}", "syscalls.deny[0]", "not the name" },
        { "{\"syscalls\":{\"allow\":[\"b\",\"a\"],\"deny\":[\"c\",\"a\"]}}", "syscalls.deny",
          "\"a\" is in syscalls.allow as well" },
};

static void refusals_say_where_and_why(void **state)
{
        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
                const struct refusal *c = &refusals[i];
                cbx_error error = CBX_ERROR_INIT;
                cbx_policy *policy = (cbx_policy *)0x1;
                int r = cbx_policy_parse(c->text, strlen(c->text), &policy, &error);

                if (r != -EINVAL || error.code != r || !strstr(error.text, c->says) ||
                    strncmp(error.where, c->where, strlen(c->where)) != 0 ||
                    (c->where[0] == '\0' && error.where[0] != '\0'))
                        fail_msg("%s: %d, at \"%s\": %s", c->text, r, error.where, error.text);
                assert_ptr_equal(policy, (cbx_policy *)0x1); /* untouched */
                assert_int_equal(cbx_policy_parse(c->text, strlen(c->text), &policy, NULL), r);
        }
}

/* A document that repeats one piece many times. */
static int parse_repeated(const char *before, const char *piece, size_t times, const char *after,
                          cbx_error *error)
{
        _cleanup_buffer_ struct buffer text = BUFFER_INIT;
        _cleanup_policy_ cbx_policy *policy = NULL;

        assert_int_equal(buffer_add(&text, before, strlen(before)), 0);
        for (size_t i = 0; i < times; i++) {
                const char *mark = strchr(piece, '#'); /* is replaced by the count */

                if (mark)
                        assert_int_equal(buffer_printf(&text, "%.*s%zu%s", (int)(mark - piece),
                                                       piece, i, mark + 1),
                                         0);
                else
                        assert_int_equal(buffer_add(&text, piece, strlen(piece)), 0);
        }
        assert_int_equal(buffer_add(&text, after, strlen(after)), 0);
        return cbx_policy_parse(text.data, text.length, &policy, error);
}

/* 1 000 bytes. */
#define TEN_BYTES "0123456789"
#define HUNDRED_BYTES                                                                              \
        TEN_BYTES TEN_BYTES TEN_BYTES TEN_BYTES TEN_BYTES TEN_BYTES TEN_BYTES TEN_BYTES TEN_BYTES  \
                TEN_BYTES
#define LONG_TMPFS                                                                                 \
        "\"/#" HUNDRED_BYTES HUNDRED_BYTES HUNDRED_BYTES HUNDRED_BYTES HUNDRED_BYTES HUNDRED_BYTES \
                HUNDRED_BYTES HUNDRED_BYTES HUNDRED_BYTES HUNDRED_BYTES "\","

static void sizes_of_documents_are_bounded(void **state)
{
        cbx_error error = CBX_ERROR_INIT;

        (void)state;
        assert_int_equal(parse_repeated("{}", " ", MIB - 2, "", &error), 0);
        assert_int_equal(parse_repeated("{}", " ", MIB - 1, "", &error), -EFBIG);
        assert_non_null(strstr(error.text, "longer than 1048576 bytes"));
        /* Long texts are accepted only if they can be printed and read again. */
        assert_int_equal(parse_repeated("{\"files\":{\"tmpfs\":[", LONG_TMPFS, 1020, "\"/z\"]}}",
                                        &error),
                         -EFBIG);
        assert_non_null(strstr(error.text, "printed"));
        assert_int_equal(parse_repeated("", "[", 1000000, "", &error), -EINVAL);
        assert_non_null(strstr(error.text, "nested more than 64 deep"));
        assert_int_equal(parse_repeated("", "[", 64, "", &error), -EINVAL);
        assert_null(strstr(error.text, "nested"));
        /* Brackets in strings do not nest. */
        assert_int_equal(parse_repeated("{\"files\":{\"read\":[\"/\\\"", "[", 200, "\"]}}", &error),
                         0);
}

static void lists_are_bounded(void **state)
{
        static const struct {
                const char *before, *piece, *after;
                size_t most;
        } cases[] = {
                { "{\"files\":{\"read\":[", "\"/a#\",", "\"/last\"]}}", 1024 },
                { "{\"files\":{\"protect\":[", "\"a#\",", "\"last\"]}}", 1024 },
                { "{\"environment\":{\"pass\":[", "\"A#\",", "\"LAST\"]}}", 1024 },
                { "{\"environment\":{\"set\":{", "\"A#\":\"\",", "\"LAST\":\"\"}}}", 1024 },
                { "{\"syscalls\":{\"allow\":[", "\"a#\",", "\"last\"]}}", 512 },
        };
        cbx_error error = CBX_ERROR_INIT;

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                assert_int_equal(parse_repeated(cases[i].before, cases[i].piece, cases[i].most - 1,
                                                cases[i].after, &error),
                                 0);
                assert_int_equal(parse_repeated(cases[i].before, cases[i].piece, cases[i].most,
                                                cases[i].after, &error),
                                 -EINVAL);
                assert_non_null(strstr(error.text, "at most"));
        }
        assert_int_equal(parse_repeated("{\"files\":{\"read\":[\"", "/a", 2048, "\"]}}", &error),
                         -EINVAL);
        assert_int_equal(parse_repeated("{\"environment\":{\"set\":{\"A\":\"", "a", 128 * KIB,
                                        "\"}}}", &error),
                         -EINVAL);
}

static void errors_are_safe_to_show(void **state)
{
        cbx_error error = CBX_ERROR_INIT;
        json_t *json;

        (void)state;
        (void)error_set(&error, -EINVAL, "a\x1b[31mb", "x\ny\xff\xc2\x9b\xe2\x82\xac");
        assert_string_equal(error.where, "a?[31mb");
        assert_string_equal(error.text, "x?y???\xe2\x82\xac");

        /* However it is cut, what is left is UTF-8 and says that it was cut. */
        for (size_t shift = 0; shift < 4; shift++) {
                char text[1024];

                for (size_t i = 0; i + 4 < sizeof(text); i += 4)
                        memcpy(text + i, "\xf0\x9f\x93\xa6", 4);
                memset(text, 'a', 4);
                text[sizeof(text) - 4] = '\0';
                (void)error_set(&error, -EINVAL, NULL, "%s", text + shift);
                json = json_string(error.text);
                assert_non_null(json);
                assert_string_equal(error.text + strlen(error.text) - 3, "...");
                assert_null(strchr(error.text, '?'));
                json_decref(json);
        }
        error_hint(NULL, "nothing");
        assert_int_equal(error_oom(NULL), -ENOMEM);
}

/* ---- Printing and identity ---- */

static void printing_and_reading_again_changes_nothing(void **state)
{
        static const char *const texts[] = {
                "{}",
                "{\"limits\":{\"wall\":0.1,\"cpu\":0.30000000000000004}}",
                "{\"limits\":{\"wall\":1e-320}}",
                "{\"limits\":{\"wall\":123456789.00000001,\"memory\":1048577,\"capture\":0}}",
                "{\"limits\":{\"memory\":\"1.5G\",\"file_size\":\"1024T\",\"output\":1025}}",
                "{\"best_effort\":true,\"require\":[\"pids\"]}",
                FILES("\"read\":[\"../x\",{\"host\":\"a/../b\",\"box\":\"/b\"},\"/\xc3\xa9\"],"
                      "\"workspace\":{\"host\":\".\",\"box\":\"/w\"},\"tmpfs\":[\"/t\"],"
                      "\"hide\":[\"/a \\\"quoted\\\"\\n\"]"),
                "{\"environment\":{\"pass\":[\"B\",\"A\"],\"set\":{\"Z\":\"\\u001b\",\"C\":\"\"}}}",
                "{\"syscalls\":{\"allow\":[\"b\",\"a\",\"b\"],\"on_denied\":\"kill\"}}",
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                _cleanup_policy_ cbx_policy *first = parse(texts[i]), *second = NULL;
                _cleanup_free_ char *a = NULL, *b = NULL;

                assert_int_equal(cbx_policy_print(first, &a, NULL), 0);
                second = parse(a);
                assert_int_equal(cbx_policy_print(second, &b, NULL), 0);
                assert_string_equal(a, b);
                assert_true(first->limits.wall == second->limits.wall);
                assert_true(first->limits.cpu == second->limits.cpu);
                assert_true(cbx_policy_hash(first) == cbx_policy_hash(second));
        }
}

static void printed_policies_are_pleasant_to_read(void **state)
{
        static const char *const lines[] = {
                "\n  \"version\": 1,",   "\"wall\": 0.1,",        "\"cpu\": null,",
                "\"memory\": \"512M\",", "\"file_size\": \"1G\"", "\"capture\": \"100K\",",
                "\"output\": 1025,",     "\"network\": \"none\"", "\"result\": \"16M\"\n",
        };
        _cleanup_policy_ cbx_policy *p = parse("{\"limits\":{\"wall\":0.1,\"output\":1025}}");
        _cleanup_free_ char *text = NULL;

        (void)state;
        assert_int_equal(cbx_policy_print(p, &text, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
                if (!strstr(text, lines[i]))
                        fail_msg("no %s in %s", lines[i], text);
}

static void policies_that_mean_the_same_hash_the_same(void **state)
{
        _cleanup_policy_ cbx_policy *a = parse("{}"), *b = parse("{\"system\":false}");

        (void)state;
        assert_true(cbx_policy_hash(a) != cbx_policy_hash(b));
        assert_same_hash("{}", "{\"version\":1,\"limits\":{\"memory\":\"0.5G\",\"wall\":30.0}}");
        assert_same_hash(FILES("\"read\":[\"/b\",\"/a/\"]"),
                         FILES("\"read\":[\"/a\",{\"host\":\"/b\",\"box\":\"/b\"},\"/a\"]"));
        assert_same_hash("{\"environment\":{\"set\":{\"A\":\"1\",\"B\":\"2\"}}}",
                         "{\"environment\":{\"set\":{\"B\":\"2\",\"A\":\"1\"}}}");
}

static void a_policy_lives_until_its_last_reference(void **state)
{
        cbx_policy *policy = parse("{}");

        (void)state;
        assert_ptr_equal(cbx_policy_ref(policy), policy);
        assert_null(cbx_policy_unref(policy));
        assert_true(policy->system);
        assert_null(cbx_policy_unref(policy));
        assert_null(cbx_policy_unref(NULL));
}

/* ---- Parts ---- */

static void sizes_are_read(void **state)
{
        static const struct {
                const char *text;
                int result;
                uint64_t bytes;
        } cases[] = {
                { "0", 0, 0 },
                { "4096", 0, 4096 },
                { "4096B", 0, 4096 },
                { "1k", 0, 1024 },
                { "256M", 0, 256 * MIB },
                { "256MB", 0, 256 * MIB },
                { "256MiB", 0, 256 * MIB },
                { "1.5G", 0, 3 * GIB / 2 },
                { "0.1K", 0, 102 },
                { "1T", 0, 1024 * GIB },
                { "16777215T", 0, 16777215ULL * 1024 * GIB },
                { "16777216T", -ERANGE, 0 },
                { "18446744073709551616", -ERANGE, 0 },
                { "", -EINVAL, 0 },
                { "M", -EINVAL, 0 },
                { "-1", -EINVAL, 0 },
                { "+1", -EINVAL, 0 },
                { " 1", -EINVAL, 0 },
                { "1 M", -EINVAL, 0 },
                { "1.5", -EINVAL, 0 },
                { "1.M", -EINVAL, 0 },
                { ".5M", -EINVAL, 0 },
                { "1.0000001M", -EINVAL, 0 },
                { "1Mi", -EINVAL, 0 },
                { "1iB", -EINVAL, 0 },
                { "1MM", -EINVAL, 0 },
                { "0x10", -EINVAL, 0 },
                { "1E", -EINVAL, 0 },
                { "1e3", -EINVAL, 0 },
                { "inf", -EINVAL, 0 },
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t bytes = 77;
                int r = policy_size_from_str(cases[i].text, &bytes);

                if (r != cases[i].result || bytes != (r < 0 ? 77 : cases[i].bytes))
                        fail_msg("\"%s\": %d, %llu", cases[i].text, r, (unsigned long long)bytes);
        }
}

static void a_call_can_only_tighten_limits(void **state)
{
        static const struct {
                const char *text, *where;
        } cases[] = {
                { "{\"wall\":10,\"memory\":\"256M\",\"cpu\":1,\"output\":\"1M\"}", NULL },
                { "{\"wall\":30,\"memory\":\"512M\",\"cpu\":null,\"capture\":0}", NULL },
                { "{\"wall\":30.5}", "spec.wall" },
                { "{\"cpu\":1,\"memory\":\"513M\"}", "spec.memory" },
                { "{\"memory\":null}", "spec.memory" },
                { "{\"processes\":null}", "spec.processes" },
                { "{\"capture\":\"101K\"}", "spec.capture" },
                { "{\"result\":\"17M\"}", "spec.result" },
                { "{\"wal\":1}", "spec.wal" },
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_policy_ cbx_policy *p = parse("{}");
                _cleanup_json_ json_t *json = NULL;
                struct policy_limits limits = p->limits;
                cbx_error error = CBX_ERROR_INIT;
                int r;

                assert_int_equal(policy_json_parse(cases[i].text, strlen(cases[i].text), "the call",
                                                   &error, &json),
                                 0);
                r = policy_limits_from_json(json, "spec", true, &error, &limits);
                if (!cases[i].where) {
                        assert_int_equal(r, 0);
                        continue;
                }
                assert_int_equal(r, -EINVAL);
                assert_string_equal(error.where, cases[i].where);
                assert_memory_equal(&limits, &p->limits, sizeof(limits)); /* untouched */
        }
}

static void risky_variables_are_known(void **state)
{
        static const char *const bad[] = { "LD_PRELOAD", "BASH_ENV",        "PYTHONPATH",
                                           "ENV",        "NODE_OPTIONS",    "PERL5OPT",
                                           "PYTHON",     "GIT_SSH_COMMAND", "GLIBC_TUNABLES" };
        static const char *const good[] = { "PATH", "LANG", "ENVIRONMENT", "HOME", "LD", "TZ", "" };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_true(policy_variable_is_risky(bad[i]));
        for (size_t i = 0; i < ARRAY_SIZE(good); i++)
                assert_false(policy_variable_is_risky(good[i]));
}

static void words_and_values_match(void **state)
{
        (void)state;
        for (int i = 0; i < GUARANTEE_MAX_; i++)
                assert_non_null(guarantee_str((enum guarantee)i));
        assert_string_equal(guarantee_str(GUARANTEE_TREE_KILL), "tree-kill");
        assert_null(guarantee_str(GUARANTEE_MAX_));
        assert_string_equal(policy_network_str(POLICY_NETWORK_HOST), "host");
        assert_string_equal(cbx_version(), CALLBOX_VERSION);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_empty_object_is_the_safe_default),
                cmocka_unit_test(the_default_protects_what_the_host_would_execute),
                cmocka_unit_test(every_key_is_read),
                cmocka_unit_test(require_adds_to_the_default_without_best_effort),
                cmocka_unit_test(host_paths_are_tidied_only_where_that_is_safe),
                cmocka_unit_test(the_same_rule_twice_is_one_rule),
                cmocka_unit_test(refusals_say_where_and_why),
                cmocka_unit_test(sizes_of_documents_are_bounded),
                cmocka_unit_test(lists_are_bounded),
                cmocka_unit_test(errors_are_safe_to_show),
                cmocka_unit_test(printing_and_reading_again_changes_nothing),
                cmocka_unit_test(printed_policies_are_pleasant_to_read),
                cmocka_unit_test(policies_that_mean_the_same_hash_the_same),
                cmocka_unit_test(a_policy_lives_until_its_last_reference),
                cmocka_unit_test(sizes_are_read),
                cmocka_unit_test(a_call_can_only_tighten_limits),
                cmocka_unit_test(risky_variables_are_known),
                cmocka_unit_test(words_and_values_match),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
