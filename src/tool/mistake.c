/* SPDX-License-Identifier: MIT */
/* All the mistakes of a manifest, rather than the first. */
#include <stdio.h>
#include <string.h>

#include "tool/tool.h"

#define AGAIN_MAX 32 /* mistakes that are looked for in one part */

static void item_clear(struct tool_mistake *item)
{
        free(item->where);
        free(item->text);
        free(item->hint);
}

void tool_mistakes_free(struct tool_mistakes *mistakes)
{
        for (size_t i = 0; i < mistakes->n; i++)
                item_clear(&mistakes->items[i]);
        free(mistakes->items);
        *mistakes = (struct tool_mistakes)TOOL_MISTAKES_INIT;
}

void tool_mistake_add(struct tool_mistakes *mistakes, cbx_error *error)
{
        struct tool_mistake item = { NULL, NULL, NULL };

        if (mistakes->n == TOOL_MISTAKES_MAX) {
                mistakes->cut = true;
                *error = (cbx_error)CBX_ERROR_INIT;
                return;
        }
        if (!mistakes->items)
                mistakes->items = calloc(TOOL_MISTAKES_MAX, sizeof(*mistakes->items));
        if (mistakes->items)
                item = (struct tool_mistake){ .where = strdup(error->where),
                                              .text = strdup(error->text),
                                              .hint = strdup(error->hint) };
        *error = (cbx_error)CBX_ERROR_INIT;
        if (item.where && item.text && item.hint) {
                mistakes->items[mistakes->n++] = item;
                return;
        }
        item_clear(&item);
        mistakes->failed = true;
}

int tool_mistakes_error(const struct tool_mistakes *mistakes, cbx_error *error)
{
        const struct tool_mistake *first = mistakes->items;

        if (mistakes->failed || mistakes->n == 0)
                return error_oom(error);
        if (mistakes->n > 1)
                error_set(error, -EINVAL, first->where, "%s (and %s%zu more mistakes)", first->text,
                          mistakes->cut ? "at least " : "", mistakes->n - 1);
        else
                error_set(error, -EINVAL, first->where, "%s", first->text);
        if (first->hint[0])
                error_hint(error, "%s", first->hint);
        return -EINVAL;
}

int tool_mistakes_keys(json_t *object, const struct json_place *at, struct json_words keys,
                       struct tool_mistakes *mistakes)
{
        size_t before = mistakes->n;
        const char *key;
        json_t *value;

        json_object_foreach(object, key, value)
        {
                _cleanup_json_ json_t *one = json_pack("{s:O}", key, value);
                cbx_error error = CBX_ERROR_INIT;

                if (!one)
                        mistakes->failed = true;
                else if (json_check_keys(one, at, keys, &error) < 0)
                        tool_mistake_add(mistakes, &error);
        }
        return mistakes->n > before ? -EINVAL : 0;
}

/* ---- Finding the others ---- */

/* One step of a path: "key", "[3]" or "[\"key\"]". Returns the value there; the last step takes
 * it out and returns NULL. */
static json_t *step_into(json_t *json, const char **path, bool *removed)
{
        const char *s = *path;
        char key[JSON_PATH_MAX];
        size_t length;

        if (*s == '[' && s[1] != '"') {
                size_t index = strtoul(s + 1, (char **)&s, 10);

                *path = s + (*s == ']');
                if (!**path) {
                        *removed = json_array_remove(json, index) == 0;
                        return NULL;
                }
                return json_array_get(json, index);
        }
        if (*s == '[') {
                s += 2;
                length = (size_t)(strstr(s, "\"]") ? strstr(s, "\"]") - s : 0);
                *path = s + length + (length > 0 ? 2 : strlen(s));
        } else {
                s += *s == '.';
                length = strcspn(s, ".[");
                *path = s + length;
        }
        snprintf(key, sizeof(key), "%.*s", (int)length, s);
        if (!**path) {
                *removed = json_object_del(json, key) == 0;
                return NULL;
        }
        return json_object_get(json, key);
}

static bool remove_at(json_t *json, const char *path)
{
        bool removed = false;

        while (json && *path)
                json = step_into(json, &path, &removed);
        return removed;
}

int tool_mistakes_find(json_t *part, const char *prefix, tool_part_reader *read, void *to,
                       struct tool_mistakes *mistakes)
{
        _cleanup_json_ json_t *copy = NULL;
        cbx_error error = CBX_ERROR_INIT;
        int r = read(part, &error, to);

        for (int i = 0; r < 0 && r != -ENOMEM && i < AGAIN_MAX; i++) {
                char path[JSON_PATH_MAX];

                memcpy(path, error.where, sizeof(path));
                snprintf(error.where, sizeof(error.where), "%s%s%.100s", prefix,
                         path[0] && path[0] != '[' ? "." : "", path);
                text_make_showable(error.where); /* it may be cut within a character */
                tool_mistake_add(mistakes, &error);
                /* Without what is wrong, does the rest hold? */
                if (!copy)
                        copy = json_deep_copy(part);
                if (!copy || !remove_at(copy, path) || read(copy, &error, NULL) == 0)
                        break;
        }
        return r;
}
