/* SPDX-License-Identifier: MIT */
/* Which names mean a protected one, and which make a directory a repository. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/plan.h"

static bool means(const char *name, const char *path)
{
        char guarded[256];

        snprintf(guarded, sizeof(guarded), "/w%s%s", *name ? "/" : "", name);
        return plan_means(guarded, name, path);
}

static void assert_all(const char *name, const char *const *paths, bool expected)
{
        for (; *paths; paths++)
                if (means(name, *paths) != expected)
                        fail_msg("%s %s %s", *paths, expected ? "is not" : "is", name);
}

static void a_name_and_what_is_above_and_below(void **state)
{
        static const char *const are[] = { "/w/.git/hooks",   "/w/.git/hooks/x",
                                           "/w/.git",         "/w",
                                           "/w/.GIT/Hooks",   "/W/.git",
                                           "/w/git~1/hooks",  "/w/.git./hooks",
                                           "/w/.git/hooks:x", NULL };
        static const char *const others[] = {
                "/w/.git/hook",  "/w/.gitx",     "/w/.git/hooksx", "/w/a/.git",       "/wx/.git",
                "/x/.git/hooks", "/w/git/hooks", "/w/.git.bak",    "/w/.git/x/hooks", NULL
        };
        static const char *const all[] = { "/w", "/w/x", "/w/x/y", NULL };

        (void)state;
        assert_all(".git/hooks", are, true);
        assert_all(".git/hooks", others, false);
        assert_all("", all, true);
        assert_false(means("", "/wx"));
}

static void other_spellings_at_any_depth(void **state)
{
        static const char *const are[] = { "/w/.git",       "/w/a/.git",
                                           "/w/a/.Git . ",  "/w/a/GIT~1",
                                           "/w/b/git~9",    "/w/.git::$INDEX_ALLOCATION",
                                           "/w/.g\u200cit", "/w/.git\ufeff",
                                           "/w/\u206e.git", NULL };
        static const char *const others[] = {
                "/w/a/.gitignore", "/w/a/git~x", "/w/git", "/w/.git/x", "/w/a/.git~",
                "/w/.g\u00e9it",   "/w",         "/",      NULL
        };

        (void)state;
        assert_all("**/.git", are, true);
        assert_all("**/.git", others, false);
}

static void repositories(void **state)
{
        static const char *const are[] = {
                "/w/HEAD",
                "/w/docs/HEAD",
                "/w/a.git/HEAD",
                "/w/.git/x/HEAD",
                "/w/.git/refs/heads/HEAD",
                "/w/.git/logs/objects",
                "/w/.git/refs/remotes/origin/refs",
                "/w/sub/.git/hidden/HEAD",
                "/w/a/HEAD.",
                "/w/a/HEAD::$DATA",
                "/w/a/HEAD ",
                NULL,
        };
        static const char *const others[] = {
                "/w/.git/HEAD",
                "/w/.git/logs/HEAD",
                "/w/.git/refs/remotes/origin/HEAD",
                "/w/.git/logs/refs/remotes/a/b/HEAD",
                "/w/sub/.git/HEAD",
                "/w/.git/modules/x/HEAD",
                "/w/.git/worktrees/x/HEAD",
                "/w/.git/HEAD.lock",
                "/w/components/Head",
                "/w/bin/head",
                "/w/.git/refs",
                "/w/.git/objects",
                "/w/objects",
                "/w/HEAD/x",
                NULL,
        };

        (void)state;
        assert_all("**/HEAD", are, true);
        assert_all("**/HEAD", others, false);
}

static void drafts_of_a_kept_file(void **state)
{
        static const char *const are[] = { "/w/.envrc~",     "/w/.envrc.tmp",   "/w/.ENVRC.Lock",
                                           "/w/.envrc.4711", "/w/..envrc.swp",  "/w/.#.envrc",
                                           "/w/#.envrc#",    "/w/.envrc.x8f3Qa" };
        static const char *const others[] = { "/w/.envrc",       "/w/.envrc.example",
                                              "/w/.envrc.local", "/w/sub/.envrc.tmp",
                                              "/w/.envrc.tmp/x", "/w/x.envrc.tmp",
                                              "/w/.envrcs",      "/other/.envrc.tmp" };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(are); i++)
                assert_true(plan_is_draft("/w/.envrc", are[i]));
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                assert_false(plan_is_draft("/w/.envrc", others[i]));
}

/* All of them together, as a plan asks: what tells most names from most others at once must let no
 * spelling and no draft by. */
static void no_spelling_of_a_protected_name_is_free(void **state)
{
        static const char *const forms[] = {
                "%s",   "%s/x", "%s.",   "%s::x",          "%s~",   "%s.lock", ".%s.swp",
                "#%s#", ".#%s", "%s.7f", "\xe2\x80\x8c%s", ".%s.q1"
        };
        struct plan plan = { 0 };
        char path[256];

        (void)state;
        for (size_t i = 0; policy_protect_default[i]; i++)
                assert_int_equal(plan_add_guard(&plan, "/w", policy_protect_default[i]), 0);
        assert_int_equal(plan_add_guard(&plan, "/v/kept", ""), 0);
        for (size_t i = 0; policy_protect_default[i]; i++) {
                const char *name = policy_protect_default[i];

                if (policy_anywhere(name))
                        continue;
                for (size_t j = 0; j < ARRAY_SIZE(forms) * 2; j++) {
                        int n = snprintf(path, sizeof(path), "/w/");

                        if (strchr(name, '/') && strchr(".#", forms[j / 2][0]))
                                continue; /* a draft lies beside what it is of */
                        snprintf(path + n, sizeof(path) - (size_t)n, forms[j / 2], name);
                        for (char *at = path; j % 2 && *at; at++)
                                *at = (char)toupper((unsigned char)*at);
                        if (plan_keeps(&plan, path) < PLAN_KEPT)
                                fail_msg("%s is free", path);
                }
                snprintf(path, sizeof(path), "/w/x%s", name);
                assert_int_equal(plan_keeps(&plan, path), PLAN_FREE);
        }
        assert_int_equal(plan_keeps(&plan, "/w/git~1/config"), PLAN_KEPT);
        assert_int_equal(plan_keeps(&plan, "/w/.g\xe2\x80\x8cit/config"), PLAN_KEPT);
        assert_int_equal(plan_keeps(&plan, "/w/.config/.git.swp"), PLAN_KEPT);
        assert_int_equal(plan_keeps(&plan, "/w/.GIT"), PLAN_ABOVE);
        assert_int_equal(plan_keeps(&plan, "/w"), PLAN_ABOVE);
        assert_int_equal(plan_keeps(&plan, "/v"), PLAN_ABOVE);
        assert_int_equal(plan_keeps(&plan, "/v/kept/x"), PLAN_KEPT);
        assert_int_equal(plan_keeps(&plan, "/v/kept~"), PLAN_KEPT);
        assert_int_equal(plan_keeps(&plan, "/x"), PLAN_FREE);
        assert_int_equal(plan_keeps(&plan, "/wx/.envrc"), PLAN_FREE);
        for (size_t i = 0; i < plan.n_guards; i++)
                free(plan.guards[i].path);
        free(plan.guards);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_name_and_what_is_above_and_below),
                cmocka_unit_test(other_spellings_at_any_depth),
                cmocka_unit_test(repositories),
                cmocka_unit_test(drafts_of_a_kept_file),
                cmocka_unit_test(no_spelling_of_a_protected_name_is_free),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
