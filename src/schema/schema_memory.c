/* SPDX-License-Identifier: MIT */
/* The memory of a schema: everything in it lives as long as it does. */
#include <stddef.h>
#include <string.h>

#include "schema/schema_parts.h"

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
