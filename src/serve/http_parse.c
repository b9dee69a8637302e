/* SPDX-License-Identifier: MIT */
#include "serve/http_parse.h"

#include <string.h>
#include <strings.h>

#define TRAILERS_MAX (4 * KIB)
#define METHOD_MAX 16

static bool is_token(char c)
{
        return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
               (c && strchr("!#$%&'*+-.^_`|~", c));
}

static size_t token_length(const char *text)
{
        size_t n = 0;

        while (is_token(text[n]))
                n++;
        return n;
}

/* Control characters have no place in a head, a tab in a value excepted. */
static bool is_clean(const char *text, size_t length)
{
        for (size_t i = 0; i < length; i++)
                if (((unsigned char)text[i] < 0x20 && text[i] != '\t') || text[i] == 0x7f)
                        return false;
        return true;
}

/* ---- The request line ---- */

/* "METHOD TARGET HTTP/1.x", with the line cut into its three words. */
static int parse_request(struct http_head *head, char *line)
{
        size_t n = token_length(line);
        char *target = line + n + 1, *version;

        if (n == 0 || n > METHOD_MAX || line[n] != ' ')
                return 400;
        line[n] = '\0';
        version = strchr(target, ' ');
        if (!version || strchr(version + 1, ' ') || strchr(target, '\t'))
                return 400;
        *version++ = '\0';
        if (strncmp(version, "HTTP/", 5) != 0)
                return 400;
        if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0)
                return 505;
        if (strncasecmp(target, "http://", 7) == 0) /* as a proxy would be asked */
                target = strchr(target + 7, '/');
        if (!target || *target != '/')
                return 400;
        head->method = line;
        head->target = target;
        head->streams = head->keep_alive = version[7] == '1';
        return 0;
}

/* ---- Fields ---- */

/* Of these there is one, or there is a quarrel over which one counts. */
static const char *const single[] = {
        "host",
        "content-length",
        "transfer-encoding",
        "authorization",
        "origin",
        "content-type",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "mcp-session-id",
        "expect",
};

static int parse_field(struct http_head *head, char *line)
{
        size_t n = token_length(line), end;
        char *value;

        if (n == 0 || line[n] != ':')
                return 400;
        if (head->n_fields == HTTP_FIELDS_MAX)
                return 431;
        line[n] = '\0';
        value = line + n + 1 + strspn(line + n + 1, " \t");
        end = strlen(value);
        while (end > 0 && (value[end - 1] == ' ' || value[end - 1] == '\t'))
                value[--end] = '\0';
        for (size_t i = 0; i < ARRAY_SIZE(single); i++)
                if (strcasecmp(line, single[i]) == 0 && http_head_get(head, line))
                        return 400;
        head->fields[head->n_fields++] = (struct http_field){ line, value };
        return 0;
}

const char *http_head_get(const struct http_head *head, const char *name)
{
        for (size_t i = 0; i < head->n_fields; i++)
                if (strcasecmp(head->fields[i].name, name) == 0)
                        return head->fields[i].value;
        return NULL;
}

/* Does a list of words hold this one, in any case? */
static bool list_has(const char *list, const char *word)
{
        size_t length = strlen(word);

        while (list && *list) {
                list += strspn(list, " \t,");
                if (strncasecmp(list, word, length) == 0 && strchr(" \t,", list[length]))
                        return true;
                list += strcspn(list, ",");
        }
        return false;
}

bool http_accepts(const char *list, const char *type)
{
        const char *slash = strchr(type, '/');

        while (list && *list) {
                size_t n;

                list += strspn(list, " \t,");
                n = strcspn(list, " \t,;");
                if ((n == strlen(type) && strncasecmp(list, type, n) == 0) ||
                    (n == 3 && strncmp(list, "*/*", 3) == 0) ||
                    (n == (size_t)(slash - type) + 2 && strncasecmp(list, type, n - 1) == 0 &&
                     list[n - 1] == '*'))
                        return true;
                list += strcspn(list, ",");
        }
        return false;
}

/* How the body comes, and what becomes of the connection. */
static int parse_framing(struct http_head *head)
{
        const char *length = http_head_get(head, "content-length");
        const char *coding = http_head_get(head, "transfer-encoding");
        const char *expect = http_head_get(head, "expect");

        if (coding && (length || !head->streams))
                return 400;
        if (coding && strcasecmp(coding, "chunked") != 0)
                return 501;
        head->chunked = coding != NULL;
        if (length) {
                size_t n = strspn(length, "0123456789");

                if (n == 0 || n > 18 || length[n])
                        return 400;
                head->length = strtoull(length, NULL, 10);
        }
        if (expect && strcasecmp(expect, "100-continue") != 0)
                return 417;
        head->expects = expect && head->streams;
        for (size_t i = 0; i < head->n_fields; i++) {
                if (strcasecmp(head->fields[i].name, "connection") != 0)
                        continue;
                if (list_has(head->fields[i].value, "close"))
                        head->keep_alive = false;
        }
        return 0;
}

int http_head_parse(struct http_head *head, const char *text, size_t length)
{
        char *line, *end;
        int status;

        *head = (struct http_head){ .text = malloc(length + 1) };
        if (!head->text)
                return 503;
        memcpy(head->text, text, length);
        head->text[length] = '\0';
        for (line = head->text; (end = memchr(line, '\r', length - (size_t)(line - head->text)));
             line = end + 2) {
                if (end[1] != '\n' || !is_clean(line, (size_t)(end - line)))
                        return 400;
                *end = '\0';
                if (end == line)
                        break;
                status = head->method ? parse_field(head, line) : parse_request(head, line);
                if (status)
                        return status;
        }
        if (!end || !head->method || (size_t)(end + 2 - head->text) != length)
                return 400;
        return parse_framing(head);
}

void http_head_clear(struct http_head *head)
{
        free(head->text);
        *head = (struct http_head){ 0 };
}

/* ---- Chunks ---- */

/* A line that ends in CR LF is whole: a size, or one of the trailer. */
static int line_ended(struct http_chunks *chunks)
{
        const char *end;
        size_t n;

        chunks->line[chunks->line_length - 1] = '\0';
        chunks->line_length = 0;
        if (chunks->state == CHUNK_END) { /* nothing stands between data and its end */
                chunks->state = CHUNK_SIZE;
                return chunks->line[0] ? -EBADMSG : 0;
        }
        if (chunks->state == CHUNK_TRAILER) {
                chunks->state = chunks->line[0] ? CHUNK_TRAILER : CHUNK_DONE;
                return 0;
        }
        n = strspn(chunks->line, "0123456789abcdefABCDEF");
        end = chunks->line + n + strspn(chunks->line + n, " \t");
        if (n == 0 || n > 15 || (*end && *end != ';'))
                return -EBADMSG;
        chunks->left = strtoull(chunks->line, NULL, 16);
        chunks->state = chunks->left ? CHUNK_DATA : CHUNK_TRAILER;
        return 0;
}

static int take_letter(struct http_chunks *chunks, char letter)
{
        if (letter == '\n') {
                if (chunks->line_length == 0 || chunks->line[chunks->line_length - 1] != '\r')
                        return -EBADMSG;
                return line_ended(chunks);
        }
        if (chunks->line_length > 0 && chunks->line[chunks->line_length - 1] == '\r')
                return -EBADMSG;
        if (letter != '\r' && !is_clean(&letter, 1))
                return -EBADMSG;
        if (chunks->line_length == sizeof(chunks->line) ||
            (chunks->state == CHUNK_TRAILER && ++chunks->trailers > TRAILERS_MAX))
                return -EBADMSG;
        chunks->line[chunks->line_length++] = letter;
        return 0;
}

ssize_t http_chunks_take(struct http_chunks *chunks, const char *data, size_t length, size_t limit,
                         struct buffer *body)
{
        size_t at = 0;

        while (at < length && chunks->state != CHUNK_DONE) {
                size_t n = 1;
                int r = 0;

                if (chunks->state == CHUNK_DATA) {
                        n = (size_t)MIN((uint64_t)(length - at), chunks->left);
                        if (chunks->left > limit - MIN(limit, body->length))
                                return -EFBIG;
                        r = buffer_add(body, data + at, n);
                        chunks->left -= n;
                        if (chunks->left == 0)
                                chunks->state = CHUNK_END;
                } else {
                        r = take_letter(chunks, data[at]);
                }
                if (r < 0)
                        return r;
                at += n;
        }
        return (ssize_t)at;
}
