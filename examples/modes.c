/* SPDX-License-Identifier: MIT */
/* Where tools run: a mode, rules for three tools, what is enforced before any call, and the
 * results. */
#include <callbox.h>
#include <stdio.h>
#include <string.h>

static const char *const manifests[] = {
        "{\"name\": \"multiply\", \"description\": \"Multiply two numbers.\", \"inputSchema\": "
        "{\"type\": \"object\", \"required\": [\"a\", \"b\"], \"properties\": {\"a\": {\"type\": "
        "\"integer\"}, \"b\": {\"type\": \"integer\"}}}, \"run\": {\"command\": [\"expr\", "
        "\"{a}\", "
        "\"*\", \"{b}\"]}}",
        "{\"name\": \"deploy_site\", \"description\": \"Publish the site.\", \"inputSchema\": "
        "{\"type\": \"object\"}, \"run\": {\"shell\": \"echo published\"}}",
        "{\"name\": \"purge_all\", \"description\": \"Remove everything.\", \"inputSchema\": "
        "{\"type\": \"object\"}, \"run\": {\"shell\": \"echo purged\"}}",
};

/* The first that fits counts; a tool that none names is boxed. */
static const cbx_rule rules[] = {
        { "deploy_*", CBX_ELEVATED, NULL },
        { "purge_*", CBX_REFUSED, NULL },
        { NULL, 0, NULL },
};

/* Before any call: where it goes, why, and what holds there. */
static int ask(cbx_toolbox *toolbox, const char *name, cbx_error *error)
{
        static const char *const places[] = { "a box", "the host", "nobody" };
        cbx_capability_list list = CBX_CAPABILITY_LIST_INIT;
        cbx_decision decision = CBX_DECISION_INIT;

        if (cbx_toolbox_decide(toolbox, name, &decision, error) < 0)
                return -1;
        printf("%s goes to %s: %s\n", name, places[decision.route], decision.reason);
        if (decision.route == CBX_TO_NOBODY)
                return 0;
        if (cbx_toolbox_capabilities(toolbox, name, &list, error) < 0)
                return -1;
        for (const cbx_guarantee *const *g = list.guarantees; *g; g++)
                if (strcmp((*g)->name, "files") == 0 || strcmp((*g)->name, "tree-kill") == 0)
                        printf("  %s: %s\n", (*g)->name, (*g)->enforced ? "enforced" : (*g)->by);
        cbx_capabilities_free(&list);
        return 0;
}

static int call(cbx_toolbox *toolbox, const char *name, const char *arguments, cbx_error *error)
{
        cbx_report report = CBX_REPORT_INIT;
        cbx_call *call = NULL;
        int failed = cbx_toolbox_call(toolbox, name, arguments, &call, error) < 0 ||
                     cbx_wait(call, &report, error) < 0;
        const cbx_result *result = failed ? NULL : cbx_report_result(&report);

        if (result)
                printf("  %s%.*s\n", result->denied ? "denied: " : "",
                       (int)strcspn(result->denied ? result->reason : result->text, "\n"),
                       result->denied ? result->reason : result->text);
        cbx_report_free(&report);
        cbx_call_free(call);
        return result ? 0 : -1;
}

int main(void)
{
        cbx_toolbox_options options = CBX_TOOLBOX_OPTIONS_INIT;
        cbx_error error = CBX_ERROR_INIT;
        cbx_warden *warden = NULL;
        cbx_toolbox *toolbox = NULL;
        int failed;

        options.mode = CBX_STRICT; /* the default: a tool runs in a box or not at all */
        options.rules = rules;
        failed = cbx_warden_open(NULL, &warden, &error) < 0 ||
                 cbx_toolbox_open(warden, &options, &toolbox, &error) < 0;
        for (size_t i = 0; !failed && i < sizeof(manifests) / sizeof(manifests[0]); i++)
                failed = cbx_toolbox_add(toolbox, manifests[i], strlen(manifests[i]), &error) < 0;
        failed = failed || ask(toolbox, "multiply", &error) < 0 ||
                 call(toolbox, "multiply", "{\"a\": 6, \"b\": 7}", &error) < 0 ||
                 ask(toolbox, "deploy_site", &error) < 0 ||
                 call(toolbox, "deploy_site", NULL, &error) < 0 ||
                 ask(toolbox, "purge_all", &error) < 0 ||
                 call(toolbox, "purge_all", NULL, &error) < 0;
        if (failed)
                fprintf(stderr, "modes: %s\n", error.text);
        cbx_toolbox_close(toolbox);
        cbx_warden_close(warden);
        return failed;
}
