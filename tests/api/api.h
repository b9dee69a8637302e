/* SPDX-License-Identifier: MIT */
/*
 * The API from the outside, as a program that links with the library sees it. Each test is a
 * function in a table; `api NAME...` runs some, `api` runs all, `api --list` prints the names.
 * tests/test_api.py drives it, also under valgrind: a test that passes frees all that it got.
 */
#ifndef API_API_H
#define API_API_H

#include <callbox.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
        do {                                                                                       \
                if (!(condition))                                                                  \
                        fail(__FILE__, __LINE__, #condition);                                      \
        } while (0)

/* Both sides are shown when they differ. */
#define EQUAL(got, wanted) check_equal(__FILE__, __LINE__, #got, (long long)(got), wanted)
#define SAME_TEXT(got, wanted) check_text(__FILE__, __LINE__, #got, got, wanted)
/* The text has this in it. */
#define HAS(text, part) check_has(__FILE__, __LINE__, #text, text, part)

_Noreturn void fail(const char *file, int line, const char *what);
void check_equal(const char *file, int line, const char *what, long long got, long long wanted);
void check_text(const char *file, int line, const char *what, const char *got, const char *wanted);
void check_has(const char *file, int line, const char *what, const char *text, const char *part);

/* What every test starts from: a warden, the policy of an empty object, things to fill. */
struct api {
        cbx_warden *warden;
        cbx_policy *policy;
        cbx_error error;
        cbx_report report;
        cbx_spec spec;
};

struct api_test {
        const char *name;
        void (*run)(struct api *api);
};

/* Run api->spec; the report of the call before is freed. Fails where there is none. */
void api_run(struct api *api);
/* The same for a shell text, from a fresh spec. */
void api_shell(struct api *api, const char *text);
cbx_policy *api_policy(const char *text);
void *api_allocate(size_t size);
cbx_call *api_start(struct api *api);
/* Wait until the call has an event, and take it. */
void api_next(struct api *api, cbx_call *call, cbx_event *event);
/* An error must say what is wrong, and where. */
void api_refused(struct api *api, int returned, int code, const char *where);

extern const struct api_test calls_tests[], structs_tests[], reports_tests[], modes_tests[];

#endif
