/* SPDX-License-Identifier: MIT */
/* search_files: a function that runs in a box. */
#include <fcntl.h>
#include <fnmatch.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "serve/builtin_files.h"
#include "warden/output.h"

#define FILE_MAX (16 * MIB) /* larger ones are left out */
#define LINE_MAX_SHOWN 400
#define DEPTH 64

struct search {
        regex_t pattern;
        const char *names; /* NULL: all */
        size_t limit, n;
        json_t *found;
        struct buffer text;
        bool cut, failed;
};

static bool note(struct search *search, const char *path, size_t line, const char *text)
{
        char shown[LINE_MAX_SHOWN], name[PATH_MAX];

        if (search->n == search->limit) {
                search->cut = true;
                return false;
        }
        snprintf(shown, sizeof(shown), "%s", text);
        snprintf(name, sizeof(name), "%s", path);
        text_make_showable(shown);
        text_make_showable(name);
        search->n++;
        search->failed = json_array_append_new(search->found,
                                               json_pack("{s:s, s:I, s:s}", "path", name, "line",
                                                         (json_int_t)line, "text", shown)) < 0 ||
                         buffer_printf(&search->text, "%s:%zu: %s\n", name, line, shown) < 0;
        return !search->failed;
}

static bool look_into(void *context, const char *path, bool directory)
{
        struct search *search = context;
        const char *slash = strrchr(path, '/');
        _cleanup_free_ char *data = NULL;
        char *rest, *line;
        size_t length, number = 0;
        bool more = true;

        if (directory ||
            (search->names && fnmatch(search->names, slash ? slash + 1 : path, 0) != 0) ||
            file_read(AT_FDCWD, path, FILE_MAX, &data, &length) < 0 ||
            memchr(data, '\0', MIN(length, 8 * KIB)))
                return true;
        rest = data;
        while (more && (line = strsep(&rest, "\n"))) {
                number++;
                if (regexec(&search->pattern, line, 0, NULL, 0) == 0)
                        more = note(search, path, number, line);
        }
        return more;
}

static int run(struct search *search, const json_t *arguments, cbx_reply *reply)
{
        const char *path = files_text(arguments, "path", ".");
        struct files_walk walk = { .depth = DEPTH,
                                   .hidden = json_is_true(json_object_get(arguments, "hidden")),
                                   .found = look_into,
                                   .context = search };
        int r = files_walk(&walk, path);

        if (r < 0)
                return files_fail(reply, "cannot search %s: %s", path, strerror(-r));
        if (search->failed ||
            buffer_printf(&search->text, "%s",
                          search->cut      ? "[and more: raise limit, or narrow the search]\n"
                          : search->n == 0 ? "Nothing was found.\n"
                                           : "") < 0)
                return files_fail(reply, "out of memory");
        return files_answer(reply,
                            json_pack("{s:O, s:b}", "found", search->found, "more", search->cut),
                            search->text.data);
}

int builtin_search_files(const char *given, size_t length, cbx_reply *reply)
{
        _cleanup_json_ json_t *arguments = files_arguments(given, length);
        bool fold = json_is_true(json_object_get(arguments, "ignore_case"));
        struct search search = { .names = files_text(arguments, "names", NULL),
                                 .limit = (size_t)files_number(arguments, "limit", 200),
                                 .found = json_array() };
        int r = regcomp(&search.pattern, files_text(arguments, "pattern", ""),
                        REG_EXTENDED | REG_NOSUB | (fold ? REG_ICASE : 0));
        char why[200];

        if (r != 0) {
                regerror(r, &search.pattern, why, sizeof(why));
                r = files_fail(reply, "the pattern is wrong: %s", why);
        } else {
                r = run(&search, arguments, reply);
                regfree(&search.pattern);
        }
        json_decref(search.found);
        buffer_free(&search.text);
        return r;
}
