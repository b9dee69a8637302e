/* SPDX-License-Identifier: MIT */
/* How a client and the server come to know each other, in both eras. */
#include <stdio.h>
#include <string.h>

#include "serve/serve_parts.h"

#define DISCOVER_TTL_MS 3600000 /* nothing in it changes while the server runs */

static json_t *server_info(void)
{
        return json_pack("{s:s, s:s, s:s}", "name", "callbox", "title",
                         "callbox: every tool call in a box of its own", "version", cbx_version());
}

static json_t *capabilities(bool modern)
{
        if (!modern)
                return json_pack("{s:{s:b}, s:{}}", "tools", "listChanged", 1, "logging");
        return json_pack("{s:{s:b}, s:{}, s:{s:{}}}", "tools", "listChanged", 1, "logging",
                         "extensions", TASKS_EXTENSION);
}

/* ---- Log levels ---- */

enum serve_level level_of(const char *word)
{
        static const struct {
                const char *word;
                enum serve_level level;
        } words[] = {
                { "debug", LEVEL_DEBUG }, { "info", LEVEL_INFO },
                { "notice", LEVEL_INFO }, { "warning", LEVEL_WARNING },
                { "error", LEVEL_ERROR }, { "critical", LEVEL_ERROR },
                { "alert", LEVEL_ERROR }, { "emergency", LEVEL_ERROR },
        };

        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (strcmp(words[i].word, word) == 0)
                        return words[i].level;
        return LEVEL_NONE;
}

int serve_set_level(struct serve_request *request, json_t **ret_result, struct rpc_failure *failure)
{
        const char *word = json_string_value(json_object_get(request->message.params, "level"));
        enum serve_level level = word ? level_of(word) : LEVEL_NONE;

        if (level == LEVEL_NONE)
                return rpc_fail(failure, RPC_INVALID_PARAMS, "level must be one of MCP's levels");
        request->peer->level = level;
        *ret_result = json_object();
        return *ret_result ? 0 : -ENOMEM;
}

/* ---- Both eras ---- */

static int add_instructions(const struct serve *serve, json_t *result)
{
        if (!result)
                return -ENOMEM;
        if (!serve->instructions)
                return 0;
        return json_object_set_new(result, "instructions", json_string(serve->instructions)) < 0
                       ? -ENOMEM
                       : 0;
}

int serve_initialize(struct serve_request *request, json_t **ret_result,
                     struct rpc_failure *failure)
{
        struct serve_peer *peer = request->peer;
        json_t *params = request->message.params, *given = json_object_get(params, "capabilities");
        const char *asked = json_string_value(json_object_get(params, "protocolVersion"));
        const char *name =
                json_string_value(json_object_get(json_object_get(params, "clientInfo"), "name"));
        json_t *result;

        if (!asked)
                return rpc_fail(failure, RPC_INVALID_PARAMS, "protocolVersion is missing");
        if (!serve_version_is_known(asked) || serve_version_is_modern(asked))
                asked = SERVE_LEGACY_VERSION;
        result = json_pack("{s:s, s:o, s:o}", "protocolVersion", asked, "capabilities",
                           capabilities(false), "serverInfo", server_info());
        if (add_instructions(peer->serve, result) < 0) {
                json_decref(result);
                return -ENOMEM;
        }
        snprintf(peer->version, sizeof(peer->version), "%s", asked);
        json_decref(peer->capabilities);
        peer->capabilities = json_is_object(given) ? json_incref(given) : json_object();
        free(peer->client);
        peer->client = name ? strdup(name) : NULL;
        *ret_result = result;
        return 0;
}

int serve_discover(struct serve_request *request, json_t **ret_result, struct rpc_failure *failure)
{
        json_t *versions = json_array(), *result;

        (void)failure;
        for (const char *const *version = serve_versions; versions && *version; version++)
                if (json_array_append_new(versions, json_string(*version)) < 0)
                        return -ENOMEM;
        result = json_pack("{s:o, s:o, s:i, s:s}", "supportedVersions", versions, "capabilities",
                           capabilities(true), "ttlMs", DISCOVER_TTL_MS, "cacheScope", "public");
        if (add_instructions(request->peer->serve, result) < 0) {
                json_decref(result);
                return -ENOMEM;
        }
        *ret_result = result;
        return 0;
}

int serve_ping(struct serve_request *request, json_t **ret_result, struct rpc_failure *failure)
{
        (void)request, (void)failure;
        *ret_result = json_object();
        return *ret_result ? 0 : -ENOMEM;
}
