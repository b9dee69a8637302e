/* SPDX-License-Identifier: MIT */
/* Whatever is accepted as a policy prints as a policy that is accepted and means the same. */
#include <string.h>

#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
        if (!holds)
                abort();
}

/* Every refusal has a text, and the text can be put in a report. */
static void check_error(const cbx_error *error, int code)
{
        _cleanup_json_ json_t *where = json_string(error->where), *text = json_string(error->text);

        must(code < 0 && error->code == code && error->text[0] != '\0');
        must(where && text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_policy_ cbx_policy *first = NULL, *second = NULL;
        _cleanup_free_ char *text = NULL;
        cbx_error error = CBX_ERROR_INIT;
        int r;

        r = cbx_policy_parse((const char *)data, size, &first, &error);
        if (r < 0) {
                must(!first);
                check_error(&error, r);
                return 0;
        }
        must(cbx_policy_print(first, &text, &error) == 0);
        must(cbx_policy_parse(text, strlen(text), &second, &error) == 0);
        must(cbx_policy_hash(first) == cbx_policy_hash(second));
        must(first->limits.wall == second->limits.wall && first->limits.cpu == second->limits.cpu);
        must(first->n_paths == second->n_paths && first->n_variables == second->n_variables);
        return 0;
}
