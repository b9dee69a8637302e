/* SPDX-License-Identifier: MIT */
/* What the files of the validator share; nothing else includes this. */
#ifndef SCHEMA_SCHEMA_PARTS_H
#define SCHEMA_SCHEMA_PARTS_H

#include "schema/schema.h"

static inline void schema_json_freep(json_t **json)
{
        json_decref(*json);
}
#define _cleanup_value_ _cleanup_(schema_json_freep)

/* ---- Places: where something is in its document. NULL is the document itself. ---- */

struct place {
        const struct place *parent;
        const char *key; /* NULL: an element of an array */
        size_t index;
};

/* A JSON pointer, cut to fit and safe to show. */
int place_print(const struct place *at, struct buffer *to);

/* ---- The graph ---- */

enum vocabulary {
        VOCABULARY_CORE = 1 << 0,
        VOCABULARY_APPLICATOR = 1 << 1,
        VOCABULARY_UNEVALUATED = 1 << 2,
        VOCABULARY_VALIDATION = 1 << 3,
        VOCABULARY_META_DATA = 1 << 4,
        VOCABULARY_FORMAT = 1 << 5,
        VOCABULARY_CONTENT = 1 << 6,
        VOCABULARY_ALL = (1 << 7) - 1,
};

enum value_type {
        TYPE_NULL = 1 << 0,
        TYPE_BOOLEAN = 1 << 1,
        TYPE_INTEGER = 1 << 2,
        TYPE_NUMBER = 1 << 3,
        TYPE_STRING = 1 << 4,
        TYPE_ARRAY = 1 << 5,
        TYPE_OBJECT = 1 << 6,
        TYPE_ANY = (1 << 7) - 1,
};

struct regex;
struct node;
struct check;
struct frame;
struct compiler;

/* One keyword of one subschema. Which fields it has is the keyword's own affair. */
struct rule {
        const struct keyword *keyword;
        const json_t *value;       /* as it stands in the schema */
        const struct node **nodes; /* its subschemas */
        size_t n_nodes;
        const json_t *names;    /* name → number of its subschema in `nodes` */
        struct regex **regexes; /* as many as nodes; one for `pattern` */
        uint64_t count;         /* a bound on a length; the types of `type` */
        const char *anchor;     /* $dynamicRef: what to look for on the way here */
};

/* A keyword: what its value must be, and what it asks of an instance. */
struct keyword {
        const char *name;
        enum vocabulary vocabulary;
        unsigned types; /* of instances that it has something to say about */
        bool in_place;  /* its subschemas see the same instance as itself */
        bool last;      /* looks at what the others have left over */
        int (*compile)(struct compiler *compiler, struct node *node, struct rule *rule,
                       const struct place *at);
        /* 0: it holds; 1: it does not; or a negative errno. NULL: another one looks at it. */
        int (*check)(const struct frame *frame, const struct rule *rule);
};

extern const struct keyword schema_keywords[];
extern const size_t schema_n_keywords;

/* A schema with a name of its own, and what lies in it up to the next such schema. */
struct resource {
        const char *uri;      /* absolute where it has one, without a fragment */
        const char *document; /* the name of the document it was found in; NULL: the caller's */
        unsigned vocabularies;
        json_t *dynamic; /* name of a $dynamicAnchor → number of its node; NULL: none */
};

struct node {
        const json_t *json;
        const struct resource *resource;
        const struct place *at;
        struct rule *rules;
        size_t n_rules;
        size_t number;    /* in schema->nodes */
        bool never;       /* the schema `false` */
        bool unevaluated; /* has a rule about what the others have left over */
        /* Rules that look at each other; NULL: not there. */
        const struct rule *properties, *pattern_properties, *additional;
        const struct rule *prefix, *min_contains, *max_contains;
        const struct rule *then_, *else_;
};

struct chunk;

struct schema {
        struct node *root;
        struct node **nodes;
        size_t n_nodes, nodes_room;
        struct chunk *chunks; /* all memory but the following */
        json_t *held;         /* an array of all JSON that the graph points to */
        struct regex *regexes;
};

/* Zeroed memory that lives as long as the schema. */
void *schema_alloc(struct schema *schema, size_t size);
char *schema_copy(struct schema *schema, const char *text, size_t length);
/* Keep a value as long as the schema; takes the reference. */
int schema_hold(struct schema *schema, json_t *value);

/* ---- Compiling ---- */

struct pending {
        struct node *node;
        struct rule *rule;
        const struct place *at;
};

struct compiler {
        struct schema *schema;
        const struct schema_documents *known;
        cbx_error *error;
        json_t *names; /* "uri" and "uri#anchor" → number of the node */
        struct pending *pending;
        size_t n_pending, pending_room;
        struct node **by_json; /* hash table over node->json */
        size_t by_json_room;
};

/* Refuse the schema for what stands at a place in it. A macro, so that readers of the code and its
 * checkers see the failure. */
#define compile_refuse(compiler, resource, at, ...)                                                \
        (compile_set_refusal((compiler), (resource), (at), __VA_ARGS__), -EINVAL)
void compile_set_refusal(struct compiler *compiler, const struct resource *resource,
                         const struct place *at, const char *format, ...) PRINTF_LIKE(4, 5);

/* `key` is copied; NULL with an index. NULL: out of memory. */
const struct place *compile_place(struct compiler *compiler, const struct place *parent,
                                  const char *key, size_t index);
int compile_node(struct compiler *compiler, const json_t *json, const struct resource *resource,
                 const struct place *at, const struct node **ret);
struct node *compile_find_node(const struct compiler *compiler, const json_t *json);
/* Take a document in, under its name; NULL: the caller's own. */
int compile_document(struct compiler *compiler, const char *uri, const json_t *json,
                     const struct node **ret);
/* $schema, where a resource begins, and the vocabularies of a dialect. */
int compile_read_dialect(struct compiler *compiler, const json_t *json, struct resource *resource,
                         const struct place *at);
int compile_dialect(struct compiler *compiler, const struct resource *resource,
                    const struct place *at, const char *uri, unsigned *ret);

/* Names (schema_ref.c). */
int ref_name_resource(struct compiler *compiler, const char *uri, const struct node *node);
int ref_name_anchor(struct compiler *compiler, struct resource *resource, const char *name,
                    const struct place *at, const struct node *node, bool dynamic);
int ref_add_pending(struct compiler *compiler, struct node *node, struct rule *rule,
                    const struct place *at);
int ref_resolve_all(struct compiler *compiler);
int ref_refuse_loops(struct compiler *compiler);

/* A document by name among those the caller gave and the metaschemas; *ret is NULL where there is
 * none. A metaschema is parsed anew, and held by the schema. */
int compile_find_document(struct compiler *compiler, const char *uri, const json_t **ret);

/* URIs (schema_uri.c): RFC 3986, 5.2. The result is NULL where memory is short. */
char *uri_join(const char *base, const char *reference);
/* Undo %XX in place; false where that is not text. */
bool uri_decode(char *text);

/* The text of a metaschema, or NULL (schema_meta.c). */
const char *meta_text(const char *uri);
#define META_DIALECT "https://json-schema.org/draft/2020-12/schema"
#define META_VOCABULARIES "https://json-schema.org/draft/2020-12/vocab/"

/* ---- Regular expressions ---- */

/* Translate ECMA-262 (with its u flag) into PCRE2. -EINVAL: *ret_why says what is wrong. */
int regex_translate(const char *pattern, size_t length, struct buffer *to, const char **ret_why);
/* Compile; on -EINVAL `why` holds a sentence. Freed with the schema. */
int regex_compile(struct schema *schema, const json_t *pattern, struct regex **ret, char *why,
                  size_t why_size);
void regex_free_all(struct regex *first);
/* 0: it is found in the text; 1: it is not. */
int regex_match(struct check *check, const struct regex *regex, const char *text, size_t length);

/* ---- Checking ---- */

struct scope {
        const struct scope *outer;
        const struct resource *resource;
};

struct check {
        const struct schema *schema;
        uint64_t steps; /* that are left */
        unsigned nesting;
        const char *bound;            /* the one that was reached */
        struct schema_mistakes *list; /* NULL: only yes or no is wanted */
        const struct scope *scope;
        void *matcher; /* what PCRE2 needs to match; made when it is needed */
};

/* Which properties or items of an instance a subschema has looked at. */
struct marks {
        uint64_t *bits;
        size_t n;
};

/* One node that is being checked against one instance. */
struct frame {
        struct check *check;
        const struct node *node;
        const json_t *instance;
        const struct place *at;
        struct marks *marks; /* NULL: nobody asks */
};

int check_spend(struct check *check, uint64_t steps);
int check_node(struct check *check, const struct node *node, const json_t *instance,
               const struct place *at, struct marks *marks);
/* The same without a word about mistakes. */
int check_silently(struct check *check, const struct node *node, const json_t *instance,
                   const struct place *at, struct marks *marks);
void matcher_free(void *data);

int marks_init(struct marks *marks, const json_t *instance);
void marks_free(struct marks *marks);
void marks_join(struct marks *to, const struct marks *from);

static inline void marks_set(struct marks *marks, size_t i)
{
        if (marks)
                marks->bits[i / 64] |= UINT64_C(1) << (i % 64);
}

static inline bool marks_has(const struct marks *marks, size_t i)
{
        return marks->bits[i / 64] >> (i % 64) & 1;
}

/* Whether there is nothing more to find out after a part had this result. */
bool check_is_over(const struct check *check, int result);

typedef int keyword_check(const struct frame *frame, const struct rule *rule);
keyword_check check_type, check_enum, check_const, check_multiple_of, check_maximum, check_minimum,
        check_exclusive_maximum, check_exclusive_minimum, check_max_length, check_min_length,
        check_pattern;
keyword_check check_prefix_items, check_items, check_contains, check_max_items, check_min_items,
        check_unique_items, check_unevaluated_items;
keyword_check check_members, check_property_names, check_max_properties, check_min_properties,
        check_required, check_dependent_required, check_dependent_schemas,
        check_unevaluated_properties;
keyword_check check_ref, check_dynamic_ref, check_all_of, check_any_of, check_one_of, check_not,
        check_if;

/* ---- Values ---- */

#define BYTES_PER_STEP 64 /* that are read, hashed or compared in the time of a step */

enum value_type value_type(const json_t *value); /* an integer is TYPE_INTEGER | TYPE_NUMBER */
/* 0: equal, as JSON Schema means it; 1: not. */
int value_equal(struct check *check, const json_t *a, const json_t *b);
int value_hash(struct check *check, const json_t *value, uint64_t *ret);
size_t value_length(const json_t *string); /* in code points */
bool value_is_text(const json_t *value);   /* a string without a NUL, as names and keys are */
bool value_is_deeper(const json_t *value, unsigned levels);

#define INTEGER_END 9223372036854775808.0 /* the first double that no integer reaches */

/* -1, 0, 1: numbers, whatever they are stored as. */
int number_compare(const json_t *a, const json_t *b);
bool number_is_integer(const json_t *number);
bool number_is_multiple(const json_t *number, const json_t *of);
void number_print(const json_t *number, char text[NUMBER_ROOM]);

/* ---- Mistakes ---- */

/* A mistake at the frame's instance. Returns 1, or a negative errno; counts where a list is full;
 * nothing is done where there is none. */
int mistake(const struct frame *frame, const char *keyword, const char *format, ...)
        PRINTF_LIKE(3, 4);
int mistake_add(struct check *check, const struct place *at, const char *keyword, char *text);
/* Move all of `from` behind what is in `to`. */
int mistakes_move(struct schema_mistakes *to, struct schema_mistakes *from);

#define STEPS_PER_WORD 16 /* to tell how near it is to another */

/* A value or a name for a text, cut and made safe; lives in the caller's room. */
#define QUOTE_ROOM (SCHEMA_QUOTE_MAX + 80)
const char *quote_value(const json_t *value, char quote[QUOTE_ROOM]);
const char *quote_name(const char *name, char quote[QUOTE_ROOM]); /* without quotes around it */

#endif
