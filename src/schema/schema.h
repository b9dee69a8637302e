/* SPDX-License-Identifier: MIT */
/*
 * JSON Schema 2020-12: is this value what that schema asks for, and if not, why?
 *
 * A schema is compiled once and checked often. Compiling copies the document, finds every subschema
 * in it, gives each keyword of each subschema a rule, and turns every reference into a pointer:
 * what is then left is a graph of nodes that nobody changes, so threads may share it. Nothing is
 * ever fetched: a reference leads into the document itself, into one that the caller gave, or into
 * the metaschemas, which are built in.
 *
 * A check runs twice at most. The first pass only wants a yes or no, and stops at the first no.
 * Only then a second pass collects what is wrong, in sentences for whoever wrote the value.
 *
 * Schemas and values may both be hostile. A check has a number of steps, and everything that takes
 * time takes from it: a node, an element, a comparison, a move of a regular expression. It has a
 * depth, which bounds the stack. Where a bound is reached the answer is -E2BIG, never "valid".
 *
 *   schema_document.c   documents and dialects; the way from JSON to a schema
 *   schema_compile.c    subschemas, and how they are found; schema_memory.c: where they live
 *   schema_keywords.c   what the value of each keyword must be; the table of keywords
 *   schema_ref.c        names of schemas, references, loops of references
 *   schema_uri.c        how a relative name is joined with its base
 *   schema_meta.c       the metaschemas
 *   schema_regex.c      ECMA-262 patterns in PCRE2's words; schema_match.c matches them, metered
 *   schema_check.c      the walk over nodes; _object.c, _array.c, _plain.c and _choice.c: keywords
 *   schema_value.c      equality, hashes, lengths; schema_number.c: numbers, exactly
 *   schema_mistakes.c   paths, quotes and lists of what is wrong
 *   schema_defaults.c   filling in what is missing
 */
#ifndef SCHEMA_SCHEMA_H
#define SCHEMA_SCHEMA_H

#include <jansson.h>

#include "base/base.h"

/* ---- Bounds ---- */

#define SCHEMA_DEPTH_MAX 128          /* levels of JSON in a schema */
#define SCHEMA_INSTANCE_DEPTH_MAX 128 /* levels of JSON in a value that is checked */
#define SCHEMA_SUBSCHEMAS_MAX 20000   /* in all documents that a schema takes together */
#define SCHEMA_NESTING_MAX 640        /* subschemas that are being checked inside each other */
#define SCHEMA_URI_MAX 2048           /* bytes of the full name of a schema */
#define SCHEMA_PATTERN_MAX 8192       /* bytes of a regular expression */
#define SCHEMA_PATTERN_HEAP_KIB 16384 /* what a match may hold to be able to go back */
#define SCHEMA_MISTAKES_MAX 32        /* that are listed */
#define SCHEMA_QUOTE_MAX 64           /* bytes of a value or a name that are quoted in a text */
#define SCHEMA_PATH_MAX 512           /* bytes of a path */

/* Steps of one pass over a value: a second or so. The fuzzer has no time for as many. */
#ifndef SCHEMA_STEPS_MAX
#define SCHEMA_STEPS_MAX 20000000
#endif

/* ---- Schemas ---- */

struct schema; /* compiled, frozen, shareable between threads */

/* Documents that references may lead to, beside the schema itself; read while compiling only. */
struct schema_document {
        const char *uri; /* absolute, without a fragment */
        const json_t *json;
};

struct schema_documents {
        const struct schema_document *items;
        size_t n;
};

/* -EINVAL where the document is no schema: error->where is a JSON pointer into it. */
int schema_compile(const json_t *document, struct schema **ret, cbx_error *error);
int schema_compile_with(const json_t *document, const struct schema_documents *known,
                        struct schema **ret, cbx_error *error);
struct schema *schema_free(struct schema *schema); /* returns NULL; NULL is allowed */

static inline void schema_freep(struct schema **schema)
{
        *schema = schema_free(*schema);
}
#define _cleanup_schema_ _cleanup_(schema_freep)

/* ---- Checks ---- */

struct schema_mistake {
        char *path;    /* of the value at fault, as a JSON pointer; "" is the whole */
        char *keyword; /* that found it */
        char *text;    /* a sentence without its subject, which is the path: "must be ..." */
};

struct schema_mistakes {
        struct schema_mistake *items;
        size_t n;
        bool cut;       /* more were found than are listed */
        bool exhausted; /* a bound was reached: refused */
};

#define SCHEMA_MISTAKES_INIT                                                                       \
        {                                                                                          \
                NULL, 0, false, false                                                              \
        }

/*
 * 0: valid; 1: not, and the mistakes say why; -E2BIG: a bound was reached, which is a refusal too,
 * and the one mistake says which; another negative errno: could not tell. What the mistakes held
 * before is not freed. They may be NULL where nobody wants to know.
 */
int schema_check(const struct schema *schema, const json_t *instance,
                 struct schema_mistakes *mistakes);
void schema_mistakes_free(struct schema_mistakes *mistakes);
#define _cleanup_schema_mistakes_ _cleanup_(schema_mistakes_free)

/*
 * Fill in the properties that are missing and have a `default` in `properties`, recursively through
 * `properties`, `$ref` and `allOf`. Never inside anyOf, oneOf, not and if, where a default of one
 * branch would decide for it. Only adds. Returns how many were added, or a negative errno.
 */
int schema_apply_defaults(const struct schema *schema, json_t *instance);

#endif
