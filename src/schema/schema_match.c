/* SPDX-License-Identifier: MIT */
/*
 * Matching, metered. PCRE2's own limit counts how often it goes back, anew for each place in the
 * text at which a match may begin, and not how far it goes; a pattern can be slow without ever
 * reaching it. So each pattern is compiled with callouts: before each of its items PCRE2 tells
 * where it is, and a step is taken from the check, and more for a long way since the last. A match
 * that takes all of them is ended from there.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <string.h>

#include "schema/schema_parts.h"

#define MOVED_PER_STEP 16 /* bytes that a match moves in the time of a step */

struct regex {
        struct regex *next;
        pcre2_code *code;
        bool looks_back; /* compares with what a group has matched, however long that is */
};

/* What a match needs beside the pattern; one for each check, as patterns are shared. */
struct matcher {
        pcre2_match_context *context;
        pcre2_match_data *data;
        struct check *check;
        const struct regex *regex;
        size_t at;
};

/* ---- Compiling ---- */

void regex_free_all(struct regex *first)
{
        for (; first; first = first->next)
                pcre2_code_free(first->code);
}

static pcre2_code *compile(const struct buffer *text, int *ret_error)
{
        const uint32_t options = PCRE2_UTF | PCRE2_AUTO_CALLOUT | PCRE2_ALLOW_EMPTY_CLASS |
                                 PCRE2_DOLLAR_ENDONLY | PCRE2_MATCH_UNSET_BACKREF |
                                 PCRE2_NEVER_BACKSLASH_C;
        PCRE2_SIZE at;

        return pcre2_compile((PCRE2_SPTR)text->data, text->length, options, ret_error, &at, NULL);
}

int regex_compile(struct schema *schema, const json_t *pattern, struct regex **ret, char *why,
                  size_t why_size)
{
        _cleanup_buffer_ struct buffer text = BUFFER_INIT;
        struct regex *regex = schema_alloc(schema, sizeof(*regex));
        size_t length = json_string_length(pattern);
        uint32_t references = 0;
        const char *reason;
        int error, r;

        if (!regex)
                return -ENOMEM;
        if (length > SCHEMA_PATTERN_MAX) {
                (void)snprintf(why, why_size, "it is longer than %d bytes", SCHEMA_PATTERN_MAX);
                return -EINVAL;
        }
        r = regex_translate(json_string_value(pattern), length, &text, &reason);
        if (r == -EINVAL)
                (void)snprintf(why, why_size, "%s", reason);
        if (r < 0)
                return r;
        regex->code = compile(&text, &error);
        if (!regex->code && error == PCRE2_ERROR_HEAP_FAILED)
                return -ENOMEM;
        if (!regex->code) {
                (void)pcre2_get_error_message(error, (PCRE2_UCHAR *)why, why_size);
                return -EINVAL;
        }
        (void)pcre2_pattern_info(regex->code, PCRE2_INFO_BACKREFMAX, &references);
        regex->looks_back = references > 0;
        regex->next = schema->regexes;
        schema->regexes = regex;
        *ret = regex;
        return 0;
}

/* ---- Matching ---- */

static int meter(pcre2_callout_block *block, void *data)
{
        struct matcher *matcher = data;
        size_t at = block->current_position,
               moved = at > matcher->at ? at - matcher->at : matcher->at - at;

        matcher->at = at;
        if (matcher->regex->looks_back)
                moved += block->subject_length;
        return check_spend(matcher->check, 1 + moved / MOVED_PER_STEP) < 0 ? PCRE2_ERROR_CALLOUT
                                                                           : 0;
}

void matcher_free(void *data)
{
        struct matcher *matcher = data;

        if (!matcher)
                return;
        pcre2_match_data_free(matcher->data);
        pcre2_match_context_free(matcher->context);
        free(matcher);
}

static struct matcher *get_matcher(struct check *check)
{
        struct matcher *matcher = check->matcher;

        if (matcher)
                return matcher;
        matcher = calloc(1, sizeof(*matcher));
        if (!matcher)
                return NULL;
        check->matcher = matcher;
        matcher->check = check;
        matcher->context = pcre2_match_context_create(NULL);
        matcher->data = pcre2_match_data_create(1, NULL);
        if (!matcher->context || !matcher->data) {
                matcher_free(matcher);
                check->matcher = NULL;
                return NULL;
        }
        (void)pcre2_set_callout(matcher->context, meter, matcher);
        (void)pcre2_set_heap_limit(matcher->context, SCHEMA_PATTERN_HEAP_KIB);
        (void)pcre2_set_match_limit(matcher->context, SCHEMA_STEPS_MAX);
        return matcher;
}

int regex_match(struct check *check, const struct regex *regex, const char *text, size_t length)
{
        struct matcher *matcher = get_matcher(check);
        int r;

        if (!matcher)
                return -ENOMEM;
        r = check_spend(check, 1 + length / MOVED_PER_STEP);
        if (r < 0)
                return r;
        matcher->regex = regex;
        matcher->at = 0;
        r = pcre2_match(regex->code, (PCRE2_SPTR)text, length, 0, 0, matcher->data,
                        matcher->context);
        if (r >= 0)
                return 0;
        switch (r) {
        case PCRE2_ERROR_NOMATCH:
                return 1;
        case PCRE2_ERROR_NOMEMORY:
                return -ENOMEM;
        case PCRE2_ERROR_CALLOUT:
                return -E2BIG;
        case PCRE2_ERROR_MATCHLIMIT:
        case PCRE2_ERROR_DEPTHLIMIT:
        case PCRE2_ERROR_HEAPLIMIT:
                check->bound = "a pattern takes too much to match";
                return -E2BIG;
        default:
                return -EINVAL; /* a string that is not UTF-8 */
        }
}
