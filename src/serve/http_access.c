/* SPDX-License-Identifier: MIT */
/*
 * Who may ask. A page in a browser can make requests to any address, and by a name of its own that
 * it lets point here (DNS rebinding) even read the answers: so Host and Origin are checked whether
 * there is a token or not. An address in Host is no name, and cannot be made to point elsewhere.
 */
#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "serve/http_parts.h"

#define NAME_MAX_LENGTH 255

/* The host of "host", "host:port", "[v6]" or "[v6]:port", without brackets. */
static int host_of(const char *text, char host[NAME_MAX_LENGTH + 1])
{
        bool bracket = *text == '[';
        const char *begin = text + bracket;
        size_t n = strcspn(begin, bracket ? "]" : ":"), digits;
        const char *rest = begin + n + (bracket && begin[n] == ']');

        if (n == 0 || n > NAME_MAX_LENGTH || (bracket && begin[n] != ']'))
                return -EINVAL;
        if (*rest == ':') {
                digits = strspn(rest + 1, "0123456789");
                rest += 1 + digits;
                if (digits == 0 || digits > 5)
                        return -EINVAL;
        }
        if (*rest)
                return -EINVAL;
        memcpy(host, begin, n);
        host[n] = '\0';
        return 0;
}

/* 127.0.0.0/8, ::1 and the name that always means them. */
static bool is_this_host(const char *host)
{
        struct in6_addr v6;
        struct in_addr v4;

        if (strcasecmp(host, "localhost") == 0)
                return true;
        if (inet_pton(AF_INET, host, &v4) == 1)
                return ntohl(v4.s_addr) >> 24 == 127;
        return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

static bool is_address(const char *host)
{
        struct in6_addr room;

        return inet_pton(AF_INET, host, &room) == 1 || inet_pton(AF_INET6, host, &room) == 1;
}

static bool is_listed(char *const *list, const char *text)
{
        for (; list && *list; list++)
                if (strcasecmp(*list, text) == 0)
                        return true;
        return false;
}

static bool is_good_host(const struct serve_http *http, const char *field)
{
        char host[NAME_MAX_LENGTH + 1];

        if (!field || host_of(field, host) < 0)
                return false;
        return is_this_host(host) || is_address(host) || is_listed(http->hosts, host);
}

static bool is_good_origin(const struct serve_http *http, const char *field)
{
        static const char *const schemes[] = { "http://", "https://" };
        char host[NAME_MAX_LENGTH + 1];

        if (is_listed(http->origins, field))
                return true;
        for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
                size_t n = strlen(schemes[i]);

                if (strncasecmp(field, schemes[i], n) == 0)
                        return host_of(field + n, host) == 0 && is_this_host(host);
        }
        return false;
}

/* How long it takes depends on what was sent alone, not on how much of it is right. */
static bool is_same_secret(const char *secret, const char *given)
{
        size_t n = strlen(secret), length = strlen(given);
        unsigned char wrong = n != length;

        for (size_t i = 0; i < length; i++)
                wrong |= (unsigned char)(given[i] ^ secret[i % MAX(n, 1)]);
        return !wrong && n > 0;
}

bool http_check_token(const char *token, const struct http_head *head)
{
        const char *field = http_head_get(head, "authorization");

        if (!token)
                return true;
        if (!field || strncasecmp(field, "bearer ", 7) != 0)
                return false;
        return is_same_secret(token, field + 7 + strspn(field + 7, " "));
}

int http_check_access(const struct serve_http *http, const struct http_head *head,
                      const char **ret_why)
{
        const char *host = http_head_get(head, "host"), *origin = http_head_get(head, "origin");

        if (host && !is_good_host(http, host)) {
                *ret_why = "this Host is not served here (see --allow-host)";
                return 403;
        }
        if (origin && !is_good_origin(http, origin)) {
                *ret_why = "pages of this Origin may not ask (see --allow-origin)";
                return 403;
        }
        return 0;
}
