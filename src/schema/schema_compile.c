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
        const uintptr_t address = (uintptr_t)json;

        return hash_bytes(HASH_INIT, &address, sizeof(address)) & (compiler->by_json_room - 1);
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
int compile_read_dialect(struct compiler *compiler, const json_t *json, struct resource *resource,
                         const struct place *at)
{
        const json_t *dialect = json_object_get(json, "$schema");
        const struct place *here;

        if (!dialect)
                return 0;
        here = compile_place(compiler, at, "$schema", 0);
        if (!here)
                return -ENOMEM;
        if (!value_is_text(dialect))
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
        if (!value_is_text(id))
                return compile_refuse(compiler, outer, here, "$id must be a string");
        uri = uri_join(outer->uri, json_string_value(id));
        if (!uri)
                return -ENOMEM;
        if (strlen(uri) > SCHEMA_URI_MAX)
                return compile_refuse(compiler, outer, here, "$id is longer than %d bytes",
                                      SCHEMA_URI_MAX);
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
        if (!value_is_text(name))
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
                r = compile_read_dialect(compiler, json, (struct resource *)node->resource, at);
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
