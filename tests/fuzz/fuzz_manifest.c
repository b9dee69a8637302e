/* SPDX-License-Identifier: MIT */
/* A manifest is a tool with everything a call needs, or a list of mistakes that can be shown. */
#include <string.h>

#include "tool/tool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
        if (!holds)
                abort();
}

static bool is_showable(const char *text)
{
        _cleanup_json_ json_t *json = text ? json_string(text) : NULL;

        return json && !strpbrk(text, "\n\r\t\033");
}

static void check_mistakes(const struct tool_mistakes *mistakes)
{
        must(mistakes->n > 0 && !mistakes->failed);
        for (size_t i = 0; i < mistakes->n; i++) {
                const struct tool_mistake *item = &mistakes->items[i];

                must(is_showable(item->where) && is_showable(item->text) && *item->text);
                must(is_showable(item->hint));
        }
}

/* Every call of it is refused with a reason, or has a command line. */
static void try_call(const struct tool *tool, const char *text)
{
        _cleanup_json_ json_t *arguments = NULL, *refusal = NULL;
        _cleanup_list_ char **argv = list_new();
        _cleanup_mistakes_ struct tool_mistakes mistakes = TOOL_MISTAKES_INIT;
        bool wide = false;
        int r = arguments_read(tool, text, strlen(text), &arguments, &wide, &refusal);

        must(argv != NULL);
        must((r == 0 && arguments && !refusal) || (r == -EINVAL && !arguments && refusal));
        if (r < 0 || !tool->template)
                return;
        r = template_expand(tool->template, arguments, &mistakes, &argv);
        must((r == 0 && mistakes.n == 0) || (r == -EINVAL && mistakes.n > 0));
        must(r < 0 || tool->kind != TOOL_COMMAND || (argv[0] && argv[0][0]));
}

static void check_tool(const struct tool *tool)
{
        must(tool->name && tool->name[0] && tool->input && tool->policy && tool->n_success > 0);
        must(!tool->result == !json_object_get(tool->document, "outputSchema"));
        switch (tool->kind) {
        case TOOL_COMMAND:
                must(template_program(tool->template));
                break;
        case TOOL_SHELL:
                must(tool->shell != NULL);
                break;
        case TOOL_FUNCTION:
                if (tool->function.argv)
                        must(tool->function.argv[0] && tool->function.line);
                else
                        must(tool->function.program && tool->function.object &&
                             tool->function.symbol);
                break;
        }
        try_call(tool, "{}");
        try_call(tool, "{\"a\": \"x\", \"n\": 1.5, \"list\": [\"-v\", \"b\"], \"flag\": true}");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct tool_origin origin = { .directory = TOOLS,
                                             .policies = TOOLS "/policies",
                                             .server = "/bin/true" };
        _cleanup_mistakes_ struct tool_mistakes mistakes = TOOL_MISTAKES_INIT;
        _cleanup_tool_ struct tool *tool = NULL, *again = NULL;
        _cleanup_json_ json_t *json = NULL;
        _cleanup_free_ char *text = NULL;
        int r;

        if (!origin.policy)
                must(cbx_policy_parse("{}", 2, &origin.policy, NULL) == 0);
        r = manifest_read((const char *)data, size, &origin, &mistakes, &tool);
        if (r < 0) {
                must(r == -EINVAL && !tool);
                check_mistakes(&mistakes);
                return 0;
        }
        must(mistakes.n == 0 && tool);
        check_tool(tool);
        /* The same manifest in other words. */
        must(json_parse((const char *)data, size, "it", SIZE_MAX, 0, NULL, &json) == 0);
        text = json_write(json, 1);
        must(text && (strlen(text) > MIB ||
                      manifest_read(text, strlen(text), &origin, &mistakes, &again) == 0));
        return 0;
}
