/* SPDX-License-Identifier: MIT */
/*
 * References. Names are "uri" for a schema with an $id or a document, and "uri#anchor" for an
 * anchor in it. References are resolved when everything is compiled that can be found without
 * them; what they lead to may bring new ones.
 */
#include <string.h>

#include "schema/schema_parts.h"

/* ---- Names ---- */

int ref_name_resource(struct compiler *compiler, const char *uri, const struct node *node)
{
        json_t *number = json_integer((json_int_t)node->number);

        return json_object_set_new(compiler->names, uri, number) < 0 ? -ENOMEM : 0;
}

static const struct node *find_name(const struct compiler *compiler, const char *name)
{
        const json_t *number = json_object_get(compiler->names, name);

        return number ? compiler->schema->nodes[json_integer_value(number)] : NULL;
}

/* A letter or _, then letters, digits and - _ . */
static bool is_anchor(const char *name)
{
        static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
        size_t first = strspn(name, letters);
        static const char more[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789-.";

        return first > 0 && name[strspn(name, more)] == '\0';
}

int ref_name_anchor(struct compiler *compiler, struct resource *resource, const char *name,
                    const struct place *at, const struct node *node, bool dynamic)
{
        _cleanup_buffer_ struct buffer full = BUFFER_INIT;
        const struct node *other;

        if (!is_anchor(name))
                return compile_refuse(compiler, resource, at, "\"%.64s\" is no name for an anchor",
                                      name);
        if (buffer_printf(&full, "%s#%s", resource->uri, name) < 0)
                return -ENOMEM;
        other = find_name(compiler, full.data);
        if (other && other != node)
                return compile_refuse(compiler, resource, at, "another anchor is \"%.64s\" too",
                                      name);
        if (dynamic) {
                json_t *number = json_integer((json_int_t)node->number);

                if (!resource->dynamic) {
                        resource->dynamic = json_object();
                        if (schema_hold(compiler->schema, resource->dynamic) < 0) {
                                resource->dynamic = NULL;
                                json_decref(number);
                                return -ENOMEM;
                        }
                }
                if (json_object_set_new(resource->dynamic, name, number) < 0)
                        return -ENOMEM;
        }
        return ref_name_resource(compiler, full.data, node);
}

/* ---- Resolving ---- */

int ref_add_pending(struct compiler *compiler, struct node *node, struct rule *rule,
                    const struct place *at)
{
        if (compiler->n_pending == compiler->pending_room) {
                size_t room = MAX(compiler->pending_room * 2, (size_t)16);
                struct pending *pending = reallocarray(compiler->pending, room, sizeof(*pending));

                if (!pending)
                        return -ENOMEM;
                compiler->pending = pending;
                compiler->pending_room = room;
        }
        compiler->pending[compiler->n_pending++] = (struct pending){ node, rule, at };
        return 0;
}

/* The root of a document or of a schema with an $id; NULL where there is none of that name. */
static int find_root(struct compiler *compiler, const char *uri, const struct node **ret)
{
        const json_t *document;
        int r;

        *ret = find_name(compiler, uri);
        if (*ret)
                return 0;
        r = compile_find_document(compiler, uri, &document);
        if (r < 0 || !document)
                return r;
        return compile_document(compiler, uri, document, ret);
}

/* Undo ~0 and ~1 in place; false where there is another ~. */
static bool decode_token(char *token)
{
        char *to = token;

        for (const char *s = token; *s; s++) {
                if (*s == '~' && s[1] != '0' && s[1] != '1')
                        return false;
                *to++ = *s != '~' ? *s : *++s == '1' ? '/' : '~';
        }
        *to = '\0';
        return true;
}

static bool parse_index(const char *token, size_t *ret)
{
        size_t length = strlen(token), index = 0;

        if (length == 0 || length > 9 || strspn(token, "0123456789") != length ||
            (length > 1 && token[0] == '0'))
                return false;
        for (; *token; token++)
                index = index * 10 + (size_t)(*token - '0');
        *ret = index;
        return true;
}

/* One step down. NULL with 0: nothing is there. */
static int step_down(struct compiler *compiler, char *token, const json_t **json,
                     const struct place **at)
{
        size_t index = 0;
        bool array = json_is_array(*json);

        if (!decode_token(token) || (array && !parse_index(token, &index)))
                *json = NULL;
        else
                *json = array ? json_array_get(*json, index) : json_object_get(*json, token);
        if (!*json)
                return 0;
        *at = compile_place(compiler, *at, array ? NULL : token, index);
        return *at ? 0 : -ENOMEM;
}

/* Follow a JSON pointer from a node. What it finds is compiled if no keyword led there before. */
static int follow_pointer(struct compiler *compiler, const struct node *root, char *pointer,
                          const struct node **ret)
{
        const struct resource *resource = root->resource;
        const struct place *at = root->at;
        const json_t *json = root->json;
        char *token = pointer + 1;

        *ret = NULL;
        for (;;) {
                char *next = strchr(token, '/');
                const struct node *passed;
                int r;

                if (next)
                        *next = '\0';
                r = step_down(compiler, token, &json, &at);
                if (r < 0 || !json)
                        return r;
                passed = json_is_object(json) ? compile_find_node(compiler, json) : NULL;
                if (passed)
                        resource = passed->resource;
                if (!next)
                        break;
                token = next + 1;
        }
        return compile_node(compiler, json, resource, at, ret);
}

static int find_anchor(struct compiler *compiler, const struct pending *pending,
                       const struct node *root, const char *name, const struct node **ret)
{
        _cleanup_buffer_ struct buffer full = BUFFER_INIT;
        const bool dynamic = strcmp(pending->rule->keyword->name, "$dynamicRef") == 0;

        if (buffer_printf(&full, "%s#%s", root->resource->uri, name) < 0)
                return -ENOMEM;
        *ret = find_name(compiler, full.data);
        /* Only where it leads to a dynamic anchor is it dynamic itself. */
        if (*ret && dynamic && root->resource->dynamic &&
            json_object_get(root->resource->dynamic, name)) {
                pending->rule->anchor = schema_copy(compiler->schema, name, strlen(name));
                if (!pending->rule->anchor)
                        return -ENOMEM;
        }
        return 0;
}

static int refuse_reference(struct compiler *compiler, const struct pending *pending,
                            const char *uri, bool document)
{
        const char *reference = json_string_value(pending->rule->value);
        int r;

        if (!document)
                return compile_refuse(compiler, pending->node->resource, pending->at,
                                      "\"%.128s\" leads to nothing", reference);
        r = compile_refuse(compiler, pending->node->resource, pending->at,
                           "\"%.128s\" leads to the document \"%.128s\", which is not known",
                           reference, uri);
        error_hint(compiler->error,
                   "nothing is fetched: put it in $defs and write \"#/$defs/NAME\"");
        return r;
}

static int resolve(struct compiler *compiler, const struct pending *pending)
{
        const struct node *root = NULL, *target = NULL;
        _cleanup_free_ char *uri = NULL;
        char *fragment;
        int r;

        uri = uri_join(pending->node->resource->uri, json_string_value(pending->rule->value));
        if (!uri)
                return -ENOMEM;
        fragment = strchr(uri, '#');
        if (fragment)
                *fragment++ = '\0';
        r = find_root(compiler, uri, &root);
        if (r < 0)
                return r;
        if (!root)
                return refuse_reference(compiler, pending, uri, true);
        if (!fragment || fragment[0] == '\0')
                target = root;
        else if (uri_decode(fragment)) {
                r = fragment[0] == '/' ? follow_pointer(compiler, root, fragment, &target)
                                       : find_anchor(compiler, pending, root, fragment, &target);
                if (r < 0)
                        return r;
        }
        if (!target)
                return refuse_reference(compiler, pending, uri, false);
        pending->rule->nodes[0] = target;
        return 0;
}

int ref_resolve_all(struct compiler *compiler)
{
        for (size_t i = 0; i < compiler->n_pending; i++) {
                /* A copy: the list may move when it grows. */
                struct pending pending = compiler->pending[i];
                int r = resolve(compiler, &pending);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- Loops ---- */

/*
 * A way from a node back to itself along which the instance stays the same would never end. Depth
 * first, with a stack of our own: such a way may be as long as there are nodes.
 */
struct visit {
        const struct node *node;
        size_t rule, next;
};

enum { UNSEEN, OPEN, DONE };

/* The next node that sees the same instance, or NULL. */
static const struct node *next_in_place(struct visit *visit)
{
        while (visit->rule < visit->node->n_rules) {
                const struct rule *rule = &visit->node->rules[visit->rule];

                if (rule->keyword->in_place && visit->next < rule->n_nodes)
                        return rule->nodes[visit->next++];
                visit->rule++;
                visit->next = 0;
        }
        return NULL;
}

static int search_from(struct compiler *compiler, const struct node *start, char *state,
                       struct visit *stack)
{
        size_t depth = 0;

        stack[depth++] = (struct visit){ .node = start };
        state[start->number] = OPEN;
        while (depth > 0) {
                const struct node *node = stack[depth - 1].node, *next;

                next = next_in_place(&stack[depth - 1]);
                if (!next) {
                        state[node->number] = DONE;
                        depth--;
                        continue;
                }
                if (state[next->number] == OPEN) {
                        const struct rule *rule = &node->rules[stack[depth - 1].rule];

                        return compile_refuse(compiler, node->resource, node->at,
                                              "%s leads back to where it comes from without going "
                                              "deeper into the value, so it would never end",
                                              rule->keyword->name);
                }
                if (state[next->number] == DONE)
                        continue;
                state[next->number] = OPEN;
                stack[depth++] = (struct visit){ .node = next };
        }
        return 0;
}

int ref_refuse_loops(struct compiler *compiler)
{
        const struct schema *schema = compiler->schema;
        _cleanup_free_ struct visit *stack = calloc(schema->n_nodes, sizeof(*stack));
        _cleanup_free_ char *state = calloc(schema->n_nodes, 1);
        int r;

        if (!stack || !state)
                return -ENOMEM;
        for (size_t i = 0; i < schema->n_nodes; i++) {
                if (state[i] != UNSEEN)
                        continue;
                r = search_from(compiler, schema->nodes[i], state, stack);
                if (r < 0)
                        return r;
        }
        return 0;
}
