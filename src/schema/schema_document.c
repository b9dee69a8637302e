/* SPDX-License-Identifier: MIT */
/* Documents: where they come from, which dialect they are in, and how one becomes a schema. */
#include <string.h>

#include "schema/schema_parts.h"

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
        r = compile_read_dialect(compiler, copy, resource, NULL);
        if (r < 0)
                return r;
        /* The name by which it was asked for is good before and after it says its own. */
        if (json_object_set_new(compiler->names, resource->uri,
                                json_integer((json_int_t)compiler->schema->n_nodes)) < 0)
                return -ENOMEM;
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
