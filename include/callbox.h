/* SPDX-License-Identifier: MIT */
/*
 * callbox: a box of its own for every tool call.
 *
 * Conventions of this API
 *
 *   - Functions return 0 or a negative errno and fill a caller-owned cbx_error; both may be
 *     ignored separately, and the error argument may be NULL.
 *   - Out parameters come last and stay untouched on failure. Strings are copied in.
 *   - Plain structs start with their size and have an INIT macro, so that they can grow.
 *   - The library keeps no global state, starts no threads, installs no signal handlers and
 *     never prints.
 */
#ifndef CALLBOX_H
#define CALLBOX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CBX_API __attribute__((visibility("default")))

/* The version of the library that is linked in, as "major.minor.patch". */
CBX_API const char *cbx_version(void);

/* ---- Errors --------------------------------------------------------------------------- */

/*
 * What went wrong, where, and what to do about it. `code` is the negative errno that the
 * function returned. `where` is the JSON path or option at fault, or the step of the set-up
 * that failed; empty where there is none. `hint` is the fix; empty where none is known.
 */
typedef struct cbx_error {
        size_t size;
        int code;
        char where[128];
        char text[384];
        char hint[384];
} cbx_error;

#define CBX_ERROR_INIT                                                                             \
        {                                                                                          \
                sizeof(cbx_error), 0, "", "", ""                                                   \
        }

/* ---- Policies ------------------------------------------------------------------------- */

/*
 * What a box may see, reach and use. A policy is frozen once parsed: it may be shared between
 * threads, and is freed when its last reference is dropped.
 */
typedef struct cbx_policy cbx_policy;

/* Read a policy from JSON text. An empty object is a safe policy. */
CBX_API int cbx_policy_parse(const char *text, size_t length, cbx_error *error,
                             cbx_policy **ret_policy);

/* Write the effective policy, defaults included, as JSON; free the result with free(3). */
CBX_API int cbx_policy_print(const cbx_policy *policy, cbx_error *error, char **ret_text);

/* A number that is equal for policies that mean the same and, in practice, only for those. */
CBX_API uint64_t cbx_policy_hash(const cbx_policy *policy);

CBX_API cbx_policy *cbx_policy_ref(cbx_policy *policy);

/* Drop a reference; NULL is allowed. Returns NULL. */
CBX_API cbx_policy *cbx_policy_unref(cbx_policy *policy);

#ifdef __cplusplus
}
#endif

#endif
