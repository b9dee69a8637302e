/* SPDX-License-Identifier: MIT */
/* tools/list: in the order of names, in pages. */
#include <string.h>

#include "serve/serve_parts.h"

#define LIST_TTL_MS 5000 /* tools may come and go; whoever wants to know at once subscribes */

/* The cursor is the name of the last tool that was listed: one that is gone since then does no
 * harm. Clients take it for an opaque text. */
static int read_cursor(struct serve_request *request, const char **ret_after,
                       struct rpc_failure *failure)
{
        json_t *cursor = json_object_get(request->message.params, "cursor");
        const char *text = json_string_value(cursor);

        if (cursor && (!text || strncmp(text, "after:", 6) != 0))
                return rpc_fail(failure, RPC_INVALID_PARAMS, "cursor is none of this server's");
        *ret_after = text ? text + 6 : NULL;
        return 0;
}

/* The older era knows schemas of objects only, and its clients refuse a whole list for another. */
static json_t *describe(const struct serve_request *request, const struct tool *tool)
{
        json_t *schema = json_object_get(tool->document, "outputSchema");
        const char *type = json_string_value(json_object_get(schema, "type"));
        json_t *copy;

        if (!schema || request->modern || (type && strcmp(type, "object") == 0))
                return json_incref(tool->document);
        copy = json_copy(tool->document);
        if (copy)
                json_object_del(copy, "outputSchema");
        return copy;
}

int serve_list(struct serve_request *request, json_t **ret_result, struct rpc_failure *failure)
{
        struct serve *serve = request->peer->serve;
        _cleanup_json_ json_t *result = json_pack("{s:[]}", "tools"), *cursor = NULL;
        json_t *tools = json_object_get(result, "tools");
        const char *after = NULL;
        int r = read_cursor(request, &after, failure);

        if (r < 0)
                return r;
        r = tools ? 0 : -ENOMEM;
        pthread_mutex_lock(&serve->toolbox->lock);
        for (size_t i = 0; r == 0 && i < serve->toolbox->n_tools; i++) {
                const struct tool *tool = serve->toolbox->tools[i];

                if (after && strcmp(tool->name, after) <= 0)
                        continue;
                if (json_array_size(tools) == serve->options.page) {
                        const json_t *last = json_array_get(tools, serve->options.page - 1);

                        cursor = json_sprintf("after:%s",
                                              json_string_value(json_object_get(last, "name")));
                        r = json_object_set(result, "nextCursor", cursor);
                        break;
                }
                r = json_array_append_new(tools, describe(request, tool));
        }
        pthread_mutex_unlock(&serve->toolbox->lock);
        if (r == 0 && request->modern)
                r = json_object_update_new(result, json_pack("{s:i, s:s}", "ttlMs", LIST_TTL_MS,
                                                             "cacheScope", "public"));
        if (r < 0)
                return -ENOMEM;
        *ret_result = TAKE_PTR(result);
        return 0;
}
