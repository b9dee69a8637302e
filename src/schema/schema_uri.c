/* SPDX-License-Identifier: MIT */
/* Joining a relative name with its base, as RFC 3986 has it in section 5.2. */
#include <ctype.h>
#include <string.h>

#include "schema/schema_parts.h"

struct span {
        const char *text; /* NULL: this part is not there, which is not the same as empty */
        size_t length;
};

struct uri {
        struct span scheme, authority, path, query, fragment;
};

static struct span take(const char **s, const char *stop)
{
        struct span span = { *s, strcspn(*s, stop) };

        *s += span.length;
        return span;
}

static size_t scheme_length(const char *s)
{
        size_t n = 0;

        if (!isalpha((unsigned char)s[0]))
                return 0;
        while (isalnum((unsigned char)s[n]) || (s[n] && strchr("+-.", s[n])))
                n++;
        return s[n] == ':' ? n : 0;
}

static struct uri split(const char *s)
{
        struct uri uri = { 0 };
        size_t n = scheme_length(s);

        if (n > 0) {
                uri.scheme = (struct span){ s, n };
                s += n + 1;
        }
        if (s[0] == '/' && s[1] == '/') {
                s += 2;
                uri.authority = take(&s, "/?#");
        }
        uri.path = take(&s, "?#");
        if (*s == '?') {
                s++;
                uri.query = take(&s, "#");
        }
        if (*s == '#')
                uri.fragment = (struct span){ s + 1, strlen(s + 1) };
        return uri;
}

/* Drop "." and what ".." takes back, in place. */
static size_t remove_dots(char *path, size_t length)
{
        size_t in = 0, out = 0;

        while (in < length) {
                size_t end = in + (path[in] == '/');
                size_t begin = end;
                bool last;

                while (end < length && path[end] != '/')
                        end++;
                last = end == length;
                if (end - begin == 1 && path[begin] == '.') {
                        if (last && begin > in)
                                path[out++] = '/';
                } else if (end - begin == 2 && memcmp(path + begin, "..", 2) == 0) {
                        while (out > 0 && path[--out] != '/')
                                ;
                        if (last && begin > in)
                                path[out++] = '/';
                } else {
                        memmove(path + out, path + in, end - in);
                        out += end - in;
                }
                in = end;
        }
        return out;
}

/* The base up to its last slash, and the reference behind it. */
static int merge(const struct uri *base, struct span reference, struct buffer *path)
{
        size_t keep = base->path.length;
        int r = 0;

        while (keep > 0 && base->path.text[keep - 1] != '/')
                keep--;
        if (base->authority.text && base->path.length == 0)
                r = buffer_add(path, "/", 1);
        if (r == 0)
                r = buffer_add(path, base->path.text, keep);
        if (r == 0)
                r = buffer_add(path, reference.text, reference.length);
        return r;
}

static int add(struct buffer *to, const char *before, struct span span, const char *after)
{
        int r;

        if (!span.text)
                return 0;
        r = buffer_add(to, before, strlen(before));
        if (r == 0)
                r = buffer_add(to, span.text, span.length);
        if (r == 0)
                r = buffer_add(to, after, strlen(after));
        return r;
}

char *uri_join(const char *base_text, const char *reference)
{
        _cleanup_buffer_ struct buffer path = BUFFER_INIT, to = BUFFER_INIT;
        struct uri base = split(base_text), uri = split(reference);
        bool dots = true;
        int r;

        if (uri.scheme.text || uri.authority.text || reference[0] == '/')
                r = buffer_add(&path, uri.path.text, uri.path.length);
        else if (uri.path.length > 0)
                r = merge(&base, uri.path, &path);
        else {
                dots = false;
                r = buffer_add(&path, base.path.text, base.path.length);
                if (!uri.query.text)
                        uri.query = base.query;
        }
        if (r < 0)
                return NULL;
        /* A name without a hierarchy ("urn:a:b") has no dots to drop, and a relative one without
         * a base keeps them: nothing is known that they could take back. */
        if (dots && path.length > 0 && path.data[0] == '/')
                path.length = remove_dots(path.data, path.length);
        if (!uri.scheme.text) {
                if (!uri.authority.text)
                        uri.authority = base.authority;
                uri.scheme = base.scheme;
        }
        r = add(&to, "", uri.scheme, ":");
        if (r == 0)
                r = add(&to, "//", uri.authority, "");
        if (r == 0)
                r = buffer_add(&to, path.data ? path.data : "", path.length);
        if (r == 0)
                r = add(&to, "?", uri.query, "");
        if (r == 0)
                r = add(&to, "#", uri.fragment, "");
        return r == 0 ? TAKE_PTR(to.data) : NULL;
}

static int hex(char c)
{
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                      : -1;
}

bool uri_decode(char *text)
{
        char *to = text;

        for (const char *s = text; *s; s++) {
                if (*s != '%') {
                        *to++ = *s;
                        continue;
                }
                if (hex(s[1]) < 0 || hex(s[2]) < 0 || (s[1] == '0' && s[2] == '0'))
                        return false;
                *to++ = (char)(hex(s[1]) * 16 + hex(s[2]));
                s += 2;
        }
        *to = '\0';
        return true;
}
