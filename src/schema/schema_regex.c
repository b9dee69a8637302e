/* SPDX-License-Identifier: MIT */
/*
 * ECMA-262 regular expressions, as with its u flag, in the words of PCRE2.
 *
 * The two agree on most; this goes through the pattern once and respells what they do not agree
 * on. What is only PCRE2's (recursion, verbs, possessive quantifiers, \Q, \A) is refused, as it
 * would be by a validator in another language: a schema should not mean more here than there.
 * Beyond ECMA-262 a backslash before any punctuation is allowed, as patterns in the wild have it.
 */
#include <ctype.h>
#include <string.h>

#include "schema/schema_parts.h"

struct scan {
        const char *s, *end;
        struct buffer *to;
        const char *why;
};

/* What ECMA-262 takes for white space, and everything else: for inside of brackets. */
#define SPACES                                                                                     \
        "\\x{9}-\\x{d}\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"       \
        "\\x{205f}\\x{3000}\\x{feff}"
#define NO_SPACES                                                                                  \
        "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-" \
        "\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}"    \
        "\\x{ff00}-\\x{10ffff}"

static int wrong(struct scan *scan, const char *why)
{
        scan->why = why;
        return -EINVAL;
}

static int put(struct scan *scan, const char *text)
{
        return buffer_add(scan->to, text, strlen(text));
}

static int put_code(struct scan *scan, unsigned code)
{
        return buffer_printf(scan->to, "\\x{%x}", code);
}

/* ---- Numbers ---- */

static int hex_digit(char c)
{
        return c >= '0' && c <= '9'                 ? c - '0'
               : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                    : -1;
}

static bool read_hex(struct scan *scan, size_t digits, unsigned *ret)
{
        unsigned code = 0;

        if ((size_t)(scan->end - scan->s) < digits)
                return false;
        for (size_t i = 0; i < digits; i++) {
                int digit = hex_digit(scan->s[i]);

                if (digit < 0)
                        return false;
                code = code * 16 + (unsigned)digit;
        }
        scan->s += digits;
        *ret = code;
        return true;
}

static bool read_braced(struct scan *scan, unsigned *ret)
{
        unsigned code = 0;
        size_t n = 0;

        for (scan->s++; scan->s < scan->end && hex_digit(*scan->s) >= 0; scan->s++, n++) {
                code = code * 16 + (unsigned)hex_digit(*scan->s);
                if (code > 0x10ffff)
                        return false;
        }
        if (n == 0 || scan->s == scan->end || *scan->s++ != '}')
                return false;
        *ret = code;
        return true;
}

/* Behind \u: four digits, two times four for a pair, or any number in braces. */
static int read_unicode(struct scan *scan, unsigned *ret)
{
        unsigned high, low;

        if (scan->s < scan->end && *scan->s == '{') {
                if (!read_braced(scan, &high))
                        return wrong(scan, "\\u{...} needs the number of a character");
        } else if (!read_hex(scan, 4, &high)) {
                return wrong(scan, "\\u needs four hexadecimal digits");
        } else if (high >= 0xd800 && high <= 0xdbff && scan->end - scan->s >= 6 &&
                   scan->s[0] == '\\' && scan->s[1] == 'u') {
                scan->s += 2;
                if (!read_hex(scan, 4, &low) || low < 0xdc00 || low > 0xdfff)
                        return wrong(scan, "half of a surrogate pair stands alone");
                high = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        }
        if (high >= 0xd800 && high <= 0xdfff)
                return wrong(scan, "half of a surrogate pair stands alone");
        *ret = high;
        return 0;
}

/* ---- Properties ---- */

/* General categories that have a long name; PCRE2 knows them by the short one. */
static const struct {
        const char *name, *code;
} categories[] = {
        { "Letter", "L" },
        { "Cased_Letter", "L&" },
        { "LC", "L&" },
        { "Uppercase_Letter", "Lu" },
        { "Lowercase_Letter", "Ll" },
        { "Titlecase_Letter", "Lt" },
        { "Modifier_Letter", "Lm" },
        { "Other_Letter", "Lo" },
        { "Mark", "M" },
        { "Combining_Mark", "M" },
        { "Nonspacing_Mark", "Mn" },
        { "Spacing_Mark", "Mc" },
        { "Enclosing_Mark", "Me" },
        { "Number", "N" },
        { "Decimal_Number", "Nd" },
        { "digit", "Nd" },
        { "Letter_Number", "Nl" },
        { "Other_Number", "No" },
        { "Punctuation", "P" },
        { "punct", "P" },
        { "Connector_Punctuation", "Pc" },
        { "Dash_Punctuation", "Pd" },
        { "Open_Punctuation", "Ps" },
        { "Close_Punctuation", "Pe" },
        { "Initial_Punctuation", "Pi" },
        { "Final_Punctuation", "Pf" },
        { "Other_Punctuation", "Po" },
        { "Symbol", "S" },
        { "Math_Symbol", "Sm" },
        { "Currency_Symbol", "Sc" },
        { "Modifier_Symbol", "Sk" },
        { "Other_Symbol", "So" },
        { "Separator", "Z" },
        { "Space_Separator", "Zs" },
        { "Line_Separator", "Zl" },
        { "Paragraph_Separator", "Zp" },
        { "Other", "C" },
        { "Control", "Cc" },
        { "cntrl", "Cc" },
        { "Format", "Cf" },
        { "Surrogate", "Cs" },
        { "Private_Use", "Co" },
        { "Unassigned", "Cn" },
};

static bool skip_word(const char **s, size_t *length, const char *word)
{
        size_t n = strlen(word);

        if (*length < n || memcmp(*s, word, n) != 0)
                return false;
        *s += n;
        *length -= n;
        return true;
}

/* Behind \p or \P. What PCRE2 does not know it refuses itself. */
static int put_property(struct scan *scan, char letter)
{
        const char *name = scan->s + 1,
                   *close = scan->s < scan->end
                                    ? memchr(scan->s, '}', (size_t)(scan->end - scan->s))
                                    : NULL;
        size_t length;

        if (!close || *scan->s != '{')
                return wrong(scan, "\\p needs the name of a property in braces");
        length = (size_t)(close - name);
        scan->s = close + 1;
        for (size_t i = 0; i < length; i++)
                if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != '=')
                        return wrong(scan, "\\p needs the name of a property in braces");
        (void)(skip_word(&name, &length, "General_Category=") || skip_word(&name, &length, "gc="));
        for (size_t i = 0; i < ARRAY_SIZE(categories); i++)
                if (strlen(categories[i].name) == length &&
                    memcmp(categories[i].name, name, length) == 0)
                        return buffer_printf(scan->to, "\\%c{%s}", letter, categories[i].code);
        return buffer_printf(scan->to, "\\%c{%.*s}", letter, (int)length, name);
}

/* ---- Escapes ---- */

/* One that stands for a single character; false where it is of another kind. */
static int read_character(struct scan *scan, char c, bool *ret_is, unsigned *ret)
{
        static const char names[] = "tnvfr", codes[] = "\t\n\v\f\r";
        const char *named = c ? strchr(names, c) : NULL;

        *ret_is = true;
        if (named) {
                *ret = (unsigned char)codes[named - names];
                return 0;
        }
        switch (c) {
        case 'c':
                if (scan->s == scan->end || !isalpha((unsigned char)*scan->s))
                        return wrong(scan, "\\c needs a letter");
                *ret = (unsigned)*scan->s++ % 32;
                return 0;
        case 'x':
                return read_hex(scan, 2, ret) ? 0 : wrong(scan, "\\x needs two hexadecimal digits");
        case 'u':
                return read_unicode(scan, ret);
        case '0':
                if (scan->s < scan->end && isdigit((unsigned char)*scan->s))
                        return wrong(scan, "\\0 may not be followed by a digit");
                *ret = 0;
                return 0;
        default:
                break;
        }
        if ((unsigned char)c < 0x80 && !isalnum((unsigned char)c) && c != '\0') {
                *ret = (unsigned char)c;
                return 0;
        }
        *ret_is = false;
        return 0;
}

static int put_group_number(struct scan *scan)
{
        const char *begin = scan->s - 1;

        while (scan->s < scan->end && isdigit((unsigned char)*scan->s))
                scan->s++;
        if (scan->s - begin > 4)
                return wrong(scan, "there is no such group");
        return buffer_printf(scan->to, "\\g{%.*s}", (int)(scan->s - begin), begin);
}

static int put_group_name(struct scan *scan)
{
        const char *close =
                scan->s < scan->end ? memchr(scan->s, '>', (size_t)(scan->end - scan->s)) : NULL;
        const char *begin = scan->s;

        if (!close || *begin != '<')
                return wrong(scan, "\\k needs the name of a group: \\k<name>");
        scan->s = close + 1;
        if (buffer_add(scan->to, "\\k", 2) < 0)
                return -ENOMEM;
        return buffer_add(scan->to, begin, (size_t)(scan->s - begin));
}

/* Behind a backslash, outside of brackets. */
static int put_escape(struct scan *scan)
{
        unsigned code = 0;
        bool character;
        char c;
        int r;

        if (scan->s == scan->end)
                return wrong(scan, "it ends with a backslash");
        c = *scan->s++;
        r = read_character(scan, c, &character, &code);
        if (r < 0)
                return r;
        if (character)
                return put_code(scan, code);
        if (c >= '1' && c <= '9')
                return put_group_number(scan);
        switch (c) {
        case 'd':
        case 'D':
        case 'w':
        case 'W':
        case 'b':
        case 'B':
                return buffer_printf(scan->to, "\\%c", c);
        case 's':
                return put(scan, "[" SPACES "]");
        case 'S':
                return put(scan, "[" NO_SPACES "]");
        case 'p':
        case 'P':
                return put_property(scan, c);
        case 'k':
                return put_group_name(scan);
        default:
                return wrong(scan, "there is no such escape");
        }
}

/* ---- Brackets ---- */

/* One member of brackets. `set`: it stands for many characters, so it cannot begin or end a
 * range. */
static int put_member(struct scan *scan, bool *ret_set)
{
        unsigned code = 0;
        bool character;
        char c = *scan->s++;
        int r;

        *ret_set = false;
        if (c != '\\') {
                if (strchr("[^-&~", c) && c != '\0')
                        return put_code(scan, (unsigned char)c);
                return c == '\0' ? put_code(scan, 0) : buffer_add(scan->to, &c, 1);
        }
        if (scan->s == scan->end)
                return wrong(scan, "it ends with a backslash");
        c = *scan->s++;
        if (c == 'b')
                return put_code(scan, 8);
        r = read_character(scan, c, &character, &code);
        if (r < 0)
                return r;
        if (character)
                return put_code(scan, code);
        *ret_set = true;
        switch (c) {
        case 'd':
        case 'D':
        case 'w':
        case 'W':
                return buffer_printf(scan->to, "\\%c", c);
        case 's':
                return put(scan, SPACES);
        case 'S':
                return put(scan, NO_SPACES);
        case 'p':
        case 'P':
                return put_property(scan, c);
        default:
                return wrong(scan, "there is no such escape");
        }
}

/* The other bytes of a character whose first was put. */
static int put_rest(struct scan *scan)
{
        while (scan->s < scan->end && ((unsigned char)*scan->s & 0xc0) == 0x80)
                if (buffer_add(scan->to, scan->s++, 1) < 0)
                        return -ENOMEM;
        return 0;
}

/* Behind "[". */
static int put_class(struct scan *scan)
{
        bool set, range = false, range_possible = false;
        int r = put(scan, "[");

        if (r == 0 && scan->s < scan->end && *scan->s == '^') {
                scan->s++;
                r = put(scan, "^");
        }
        while (r == 0 && scan->s < scan->end && *scan->s != ']') {
                bool last = scan->end - scan->s > 1 && scan->s[1] == ']';

                if (*scan->s == '-' && range_possible && !last) {
                        scan->s++;
                        range = true;
                        range_possible = false;
                        r = put(scan, "-");
                        continue;
                }
                r = put_member(scan, &set);
                if (r == 0)
                        r = put_rest(scan);
                if (r == 0 && set && range)
                        return wrong(scan, "a range in brackets needs two characters");
                range_possible = !set && !range;
                range = false;
        }
        if (r < 0)
                return r;
        if (scan->s == scan->end)
                return wrong(scan, "a bracket is not closed");
        scan->s++;
        return put(scan, "]");
}

/* ---- Groups and quantifiers ---- */

/* Behind "(". */
static int put_group(struct scan *scan)
{
        static const char *const known[] = { "?:", "?=", "?!", "?<=", "?<!" };
        size_t left = (size_t)(scan->end - scan->s);

        if (left > 0 && *scan->s == '*')
                return wrong(scan, "there is nothing to repeat");
        if (left == 0 || *scan->s != '?')
                return put(scan, "(");
        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                if (left >= strlen(known[i]) && memcmp(scan->s, known[i], strlen(known[i])) == 0) {
                        scan->s += strlen(known[i]);
                        return buffer_printf(scan->to, "(%s", known[i]);
                }
        if (left > 2 && scan->s[1] == '<' &&
            (isalpha((unsigned char)scan->s[2]) || scan->s[2] == '_')) {
                scan->s += 2;
                return put(scan, "(?<");
        }
        return wrong(scan, "there is no group of this kind");
}

/* The length of {n}, {n,} or {n,m}; 0 where it is none of them. */
static size_t braces_length(const struct scan *scan)
{
        const char *s = scan->s + 1;

        while (s < scan->end && isdigit((unsigned char)*s))
                s++;
        if (s == scan->s + 1)
                return 0;
        if (s < scan->end && *s == ',')
                for (s++; s < scan->end && isdigit((unsigned char)*s); s++)
                        ;
        return s < scan->end && *s == '}' ? (size_t)(s + 1 - scan->s) : 0;
}

static bool is_quantifier(const struct scan *scan)
{
        return scan->s < scan->end &&
               (strchr("*+?", *scan->s) ? *scan->s != '\0'
                                        : *scan->s == '{' && braces_length(scan) > 0);
}

static int put_quantifier(struct scan *scan)
{
        size_t length = *scan->s == '{' ? braces_length(scan) : 1;
        int r = buffer_add(scan->to, scan->s, length);

        scan->s += length;
        if (r == 0 && scan->s < scan->end && *scan->s == '?') {
                scan->s++;
                r = put(scan, "?");
        }
        if (r == 0 && is_quantifier(scan))
                return wrong(scan, "there is nothing to repeat");
        return r;
}

static int put_one(struct scan *scan)
{
        char c;

        if (is_quantifier(scan))
                return put_quantifier(scan);
        c = *scan->s++;
        switch (c) {
        case '\\':
                return put_escape(scan);
        case '[':
                return put_class(scan);
        case '(':
                return put_group(scan);
        case '.':
                return put(scan, "[^\\x{a}\\x{d}\\x{2028}\\x{2029}]");
        case '{':
                return put(scan, "\\{");
        case '\0':
                return put_code(scan, 0);
        default:
                return buffer_add(scan->to, &c, 1);
        }
}

int regex_translate(const char *pattern, size_t length, struct buffer *to, const char **ret_why)
{
        struct scan scan = { .s = pattern, .end = pattern + length, .to = to };
        int r = buffer_add(to, "", 0);

        while (r == 0 && scan.s < scan.end)
                r = put_one(&scan);
        *ret_why = scan.why;
        return r;
}
