/* SPDX-License-Identifier: MIT */
/*
 * From documents to nodes.
 *
 * A subschema is found where a keyword says that one is, or where a reference leads: `definitions`,
 * say, is no keyword of 2020-12, but what a reference finds in it is compiled then.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "schema/schema_parts.h"

/* ---- Memory ---- */

#define CHUNK_SIZE 16384

struct chunk {
        struct chunk *next;
        size_t used, size;
        max_align_t data[];
};

void *schema_alloc(struct schema *schema, size_t size)
{
        struct chunk *chunk = schema->chunks;
        void *memory;

        if (size > SIZE_MAX / 2)
                return NULL;
        size = (MAX(size, (size_t)1) + sizeof(max_align_t) - 1) / sizeof(max_align_t) *
               sizeof(max_align_t);
        if (!chunk || chunk->size - chunk->used < size) {
                size_t room = MAX(size, (size_t)CHUNK_SIZE);

                chunk = calloc(1, sizeof(*chunk) + room);
                if (!chunk)
                        return NULL;
                *chunk = (struct chunk){ .next = schema->chunks, .size = room };
                schema->chunks = chunk;
        }
        memory = (char *)chunk->data + chunk->used;
        chunk->used += size;
        return memory;
}

char *schema_copy(struct schema *schema, const char *text, size_t length)
{
        char *copy = schema_alloc(schema, length + 1);

        if (copy && length > 0)
                memcpy(copy, text, length);
        return copy;
}

int schema_hold(struct schema *schema, json_t *value)
{
        return value && json_array_append_new(schema->held, value) == 0 ? 0 : -ENOMEM;
}

struct schema *schema_free(struct schema *schema)
{
        if (!schema)
                return NULL;
        regex_free_all(schema->regexes);
        json_decref(schema->held);
        while (schema->chunks) {
                struct chunk *next = schema->chunks->next;

                free(schema->chunks);
                schema->chunks = next;
        }
        free(schema->nodes);
        free(schema);
        return NULL;
}

/* ---- Refusals ---- */

void compile_set_refusal(struct compiler *compiler, const struct resource *resource,
                         const struct place *at, const char *format, ...)
{
        _cleanup_buffer_ struct buffer where = BUFFER_INIT;
        char text[sizeof(compiler->error->text)];
        va_list args;
        int r = 0;

        va_start(args, format);
        (void)vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        if (resource && resource->document)
                r = buffer_printf(&where, "%s#", resource->document);
        if (r == 0)
                r = place_print(at, &where);
        (void)error_set(compiler->error, -EINVAL, r == 0 && where.data ? where.data : "", "%s",
                        text);
}

const struct place *compile_place(struct compiler *compiler, const struct place *parent,
                                  const char *key, size_t index)
{
        struct place *place = schema_alloc(compiler->schema, sizeof(*place));

        if (!place)
                return NULL;
        *place = (struct place){ .parent = parent, .index = index };
        if (key) {
                place->key = schema_copy(compiler->schema, key, strlen(key));
                if (!place->key)
                        return NULL;
        }
        return place;
}

/* ---- The table of nodes by their JSON ---- */

static size_t json_slot(const struct compiler *compiler, const json_t *json)
{
        return hash_bytes(HASH_INIT, &json, sizeof(json)) & (compiler->by_json_room - 1);
}

static void put_node(struct compiler *compiler, struct node *node)
{
        size_t slot = json_slot(compiler, node->json);

        while (compiler->by_json[slot])
                slot = (slot + 1) & (compiler->by_json_room - 1);
        compiler->by_json[slot] = node;
}

struct node *compile_find_node(const struct compiler *compiler, const json_t *json)
{
        size_t slot = compiler->by_json_room ? json_slot(compiler, json) : 0;

        if (compiler->by_json_room == 0)
                return NULL;
        for (; compiler->by_json[slot]; slot = (slot + 1) & (compiler->by_json_room - 1))
                if (compiler->by_json[slot]->json == json)
                        return compiler->by_json[slot];
        return NULL;
}

/* At most half of the table is taken. */
static int grow_table(struct compiler *compiler)
{
        struct node **old = compiler->by_json, **table;
        size_t old_room = compiler->by_json_room, room = MAX(old_room * 2, (size_t)64);

        if (compiler->schema->n_nodes * 2 < old_room)
                return 0;
        table = calloc(room, sizeof(struct node *));
        if (!table)
                return -ENOMEM;
        compiler->by_json = table;
        compiler->by_json_room = room;
        for (size_t i = 0; i < old_room; i++)
                if (old[i])
                        put_node(compiler, old[i]);
        free(old);
        return 0;
}

/* ---- Nodes ---- */

static int add_node(struct compiler *compiler, const json_t *json, const struct resource *resource,
                    const struct place *at, struct node **ret)
{
        struct schema *schema = compiler->schema;
        struct node *node;

        if (schema->n_nodes == SCHEMA_SUBSCHEMAS_MAX)
                return compile_refuse(compiler, resource, at, "there are more than %d subschemas",
                                      SCHEMA_SUBSCHEMAS_MAX);
        if (schema->n_nodes == schema->nodes_room) {
                size_t room = MAX(schema->nodes_room * 2, (size_t)16);
                struct node **nodes = reallocarray(schema->nodes, room, sizeof(struct node *));

                if (!nodes)
                        return -ENOMEM;
                schema->nodes = nodes;
                schema->nodes_room = room;
        }
        node = schema_alloc(schema, sizeof(*node));
        if (!node)
                return -ENOMEM;
        *node = (struct node){ .json = json,
                               .resource = resource,
                               .at = at,
                               .number = schema->n_nodes,
                               .never = json_is_false(json) };
        schema->nodes[schema->n_nodes++] = node;
        *ret = node;
        /* There is but one `true` and one `false` in all of jansson. */
        if (!json_is_object(json))
                return 0;
        if (grow_table(compiler) < 0)
                return -ENOMEM;
        put_node(compiler, node);
        return 0;
}

/* $schema, where a resource begins. */
static int read_dialect(struct compiler *compiler, const json_t *json, struct resource *resource,
                        const struct place *at)
{
        const json_t *dialect = json_object_get(json, "$schema");
        const struct place *here;

        if (!dialect)
                return 0;
        here = compile_place(compiler, at, "$schema", 0);
        if (!here)
                return -ENOMEM;
        if (!json_is_string(dialect))
                return compile_refuse(compiler, resource, here, "$schema must be a string");
        return compile_dialect(compiler, resource, here, json_string_value(dialect),
                               &resource->vocabularies);
}

/* $id: from here on, names are relative to another base. */
static int read_id(struct compiler *compiler, struct node *node)
{
        const json_t *id = json_object_get(node->json, "$id");
        const struct resource *outer = node->resource;
        _cleanup_free_ char *uri = NULL;
        struct resource *resource;
        const struct place *here;
        char *fragment;

        here = compile_place(compiler, node->at, "$id", 0);
        resource = schema_alloc(compiler->schema, sizeof(*resource));
        if (!here || !resource)
                return -ENOMEM;
        if (!json_is_string(id))
                return compile_refuse(compiler, outer, here, "$id must be a string");
        uri = uri_join(outer->uri, json_string_value(id));
        if (!uri)
                return -ENOMEM;
        fragment = strchr(uri, '#');
        if (fragment && fragment[1] != '\0')
                return compile_refuse(compiler, outer, here, "$id may not have a fragment");
        if (fragment)
                *fragment = '\0';
        *resource = (struct resource){ .document = outer->document,
                                       .vocabularies = outer->vocabularies };
        resource->uri = schema_copy(compiler->schema, uri, strlen(uri));
        if (!resource->uri)
                return -ENOMEM;
        if (json_object_get(compiler->names, uri) && strcmp(outer->uri, uri) != 0)
                return compile_refuse(compiler, outer, here, "another schema has this $id too");
        node->resource = resource;
        return ref_name_resource(compiler, resource->uri, node);
}

static int read_anchor(struct compiler *compiler, struct node *node, const char *keyword,
                       bool dynamic)
{
        const json_t *name = json_object_get(node->json, keyword);
        const struct place *here;

        if (!name)
                return 0;
        here = compile_place(compiler, node->at, keyword, 0);
        if (!here)
                return -ENOMEM;
        if (!json_is_string(name))
                return compile_refuse(compiler, node->resource, here, "%s must be a string",
                                      keyword);
        return ref_name_anchor(compiler, (struct resource *)node->resource, json_string_value(name),
                               here, node, dynamic);
}

static int read_keywords(struct compiler *compiler, struct node *node)
{
        const unsigned vocabularies = node->resource->vocabularies;
        size_t n = 0;
        int r;

        for (size_t i = 0; i < schema_n_keywords; i++)
                n += json_object_get(node->json, schema_keywords[i].name) != NULL;
        node->rules = schema_alloc(compiler->schema, n * sizeof(*node->rules));
        if (!node->rules)
                return -ENOMEM;
        for (size_t i = 0; i < schema_n_keywords; i++) {
                const struct keyword *keyword = &schema_keywords[i];
                const json_t *value = json_object_get(node->json, keyword->name);
                struct rule *rule = &node->rules[node->n_rules];
                const struct place *here;

                if (!value || !(vocabularies & keyword->vocabulary))
                        continue;
                here = compile_place(compiler, node->at, keyword->name, 0);
                if (!here)
                        return -ENOMEM;
                *rule = (struct rule){ .keyword = keyword, .value = value };
                r = keyword->compile(compiler, node, rule, here);
                if (r < 0)
                        return r;
                node->n_rules++;
                node->unevaluated |= keyword->last;
        }
        return 0;
}

int compile_node(struct compiler *compiler, const json_t *json, const struct resource *resource,
                 const struct place *at, const struct node **ret)
{
        struct node *node;
        int r;

        if (!json_is_object(json) && !json_is_boolean(json))
                return compile_refuse(compiler, resource, at,
                                      "a schema must be an object, true or false");
        node = json_is_object(json) ? compile_find_node(compiler, json) : NULL;
        if (node) {
                *ret = node;
                return 0;
        }
        r = add_node(compiler, json, resource, at, &node);
        if (r < 0)
                return r;
        *ret = node;
        if (!json_is_object(json))
                return 0;
        if (json_object_get(json, "$id")) {
                r = read_id(compiler, node);
                if (r < 0)
                        return r;
                r = read_dialect(compiler, json, (struct resource *)node->resource, at);
                if (r < 0)
                        return r;
        }
        r = read_anchor(compiler, node, "$anchor", false);
        if (r < 0)
                return r;
        r = read_anchor(compiler, node, "$dynamicAnchor", true);
        if (r < 0)
                return r;
        return read_keywords(compiler, node);
}

/* ---- Documents ---- */

int compile_find_document(struct compiler *compiler, const char *uri, const json_t **ret)
{
        const char *text = meta_text(uri);
        json_t *json;

        *ret = NULL;
        for (size_t i = 0; compiler->known && i < compiler->known->n; i++)
                if (strcmp(compiler->known->items[i].uri, uri) == 0) {
                        *ret = compiler->known->items[i].json;
                        return 0;
                }
        if (!text)
                return 0;
        json = json_loads(text, 0, NULL);
        if (schema_hold(compiler->schema, json) < 0)
                return -ENOMEM;
        *ret = json;
        return 0;
}

static const struct {
        const char *name;
        enum vocabulary vocabulary;
} vocabularies[] = {
        { "core", VOCABULARY_CORE },
        { "applicator", VOCABULARY_APPLICATOR },
        { "unevaluated", VOCABULARY_UNEVALUATED },
        { "validation", VOCABULARY_VALIDATION },
        { "meta-data", VOCABULARY_META_DATA },
        { "format-annotation", VOCABULARY_FORMAT },
        { "content", VOCABULARY_CONTENT },
};

static unsigned find_vocabulary(const char *uri)
{
        const size_t length = strlen(META_VOCABULARIES);

        for (size_t i = 0; i < ARRAY_SIZE(vocabularies); i++)
                if (strncmp(uri, META_VOCABULARIES, length) == 0 &&
                    strcmp(uri + length, vocabularies[i].name) == 0)
                        return vocabularies[i].vocabulary;
        return 0;
}

int compile_dialect(struct compiler *compiler, const struct resource *resource,
                    const struct place *at, const char *uri, unsigned *ret)
{
        const json_t *document, *list, *required;
        unsigned found = VOCABULARY_CORE;
        const char *name;
        int r;

        if (strcmp(uri, META_DIALECT) == 0 || strcmp(uri, META_DIALECT "#") == 0) {
                *ret = VOCABULARY_ALL;
                return 0;
        }
        r = compile_find_document(compiler, uri, &document);
        if (r < 0)
                return r;
        if (!document) {
                r = compile_refuse(compiler, resource, at, "the dialect \"%.128s\" is not known",
                                   uri);
                error_hint(compiler->error, "write \"%s\", or leave $schema out", META_DIALECT);
                return r;
        }
        list = json_object_get(document, "$vocabulary");
        if (!list) {
                *ret = VOCABULARY_ALL;
                return 0;
        }
        json_object_foreach((json_t *)list, name, required)
        {
                unsigned one = find_vocabulary(name);

                if (one == 0 && json_is_true(required))
                        return compile_refuse(
                                compiler, resource, at,
                                "the dialect \"%.128s\" needs the vocabulary \"%.128s\", "
                                "which is not known",
                                uri, name);
                found |= one;
        }
        *ret = found;
        return 0;
}

int compile_document(struct compiler *compiler, const char *uri, const json_t *json,
                     const struct node **ret)
{
        struct resource *resource = schema_alloc(compiler->schema, sizeof(*resource));
        json_t *copy;
        int r;

        if (!resource)
                return -ENOMEM;
        *resource = (struct resource){ .uri = "", .vocabularies = VOCABULARY_ALL };
        if (uri) {
                resource->document = schema_copy(compiler->schema, uri, strlen(uri));
                resource->uri = resource->document;
                if (!resource->uri)
                        return -ENOMEM;
        }
        if (value_is_deeper(json, SCHEMA_DEPTH_MAX))
                return compile_refuse(compiler, resource, NULL, "nested more than %d deep",
                                      SCHEMA_DEPTH_MAX);
        copy = json_deep_copy(json);
        r = schema_hold(compiler->schema, copy);
        if (r < 0)
                return r;
        r = read_dialect(compiler, copy, resource, NULL);
        if (r < 0)
                return r;
        /* The name by which it was asked for is good before and after it says its own. */
        json_object_set_new(compiler->names, resource->uri,
                            json_integer((json_int_t)compiler->schema->n_nodes));
        return compile_node(compiler, copy, resource, NULL, ret);
}

static void compiler_clear(struct compiler *compiler)
{
        json_decref(compiler->names);
        free(compiler->pending);
        free(compiler->by_json);
}

static int compile(struct compiler *compiler, const json_t *document)
{
        const struct node *root;
        int r;

        compiler->names = json_object();
        compiler->schema->held = json_array();
        if (!compiler->names || !compiler->schema->held)
                return -ENOMEM;
        r = compile_document(compiler, NULL, document, &root);
        if (r < 0)
                return r;
        compiler->schema->root = compiler->schema->nodes[root->number];
        r = ref_resolve_all(compiler);
        if (r < 0)
                return r;
        return ref_refuse_loops(compiler);
}

int schema_compile_with(const json_t *document, const struct schema_documents *known,
                        struct schema **ret, cbx_error *error)
{
        _cleanup_schema_ struct schema *schema = calloc(1, sizeof(*schema));
        _cleanup_(compiler_clear) struct compiler compiler = { .schema = schema,
                                                               .known = known,
                                                               .error = error };
        int r;

        if (!schema)
                return error_oom(error);
        r = compile(&compiler, document);
        if (r == -ENOMEM)
                return error_oom(error);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(schema);
        return 0;
}

int schema_compile(const json_t *document, struct schema **ret, cbx_error *error)
{
        return schema_compile_with(document, NULL, ret, error);
}
