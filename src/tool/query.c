/* SPDX-License-Identifier: MIT */
/*
 * Looking for tools by a text, upper and lower case being the same in every script. The C library
 * folds letters by the locale of the caller, and its strcasestr() knows single bytes alone; PCRE2
 * has the tables of Unicode.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "tool/query.h"

#include <pcre2.h>
#include <string.h>

struct query {
        pcre2_code *code; /* NULL: not UTF-8, or endless; no tool has that */
        pcre2_match_data *data;
};

struct query *query_free(struct query *query)
{
        if (!query)
                return NULL;
        pcre2_match_data_free(query->data);
        pcre2_code_free(query->code);
        free(query);
        return NULL;
}

int query_new(const char *text, struct query **ret)
{
        struct query *query = calloc(1, sizeof(*query));
        PCRE2_SIZE at;
        int error = 0;

        if (!query)
                return -ENOMEM;
        query->code = pcre2_compile((PCRE2_SPTR)text, strlen(text),
                                    PCRE2_UTF | PCRE2_LITERAL | PCRE2_CASELESS, &error, &at, NULL);
        query->data = pcre2_match_data_create(1, NULL);
        if (!query->data || (!query->code && error == PCRE2_ERROR_HEAP_FAILED)) {
                query_free(query);
                return -ENOMEM;
        }
        *ret = query;
        return 0;
}

bool query_finds(const struct query *query, const char *text)
{
        return query->code && text &&
               pcre2_match(query->code, (PCRE2_SPTR)text, strlen(text), 0, 0, query->data, NULL) >=
                       0;
}
