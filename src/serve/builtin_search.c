/* SPDX-License-Identifier: MIT */
/* search_files: a function that runs in a box. */
#include <fcntl.h>
#include <fnmatch.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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
        size_t long_lines, large, closed; /* lines that are cut; files that are left out */
        bool cut, failed;
};

/* A line as it is shown: one that is long says how much is missing. */
static void show_line(struct search *search, const char *text, char *shown, size_t size)
{
        size_t length = strlen(text), n = LINE_MAX_SHOWN;

        if (length <= LINE_MAX_SHOWN) {
                snprintf(shown, size, "%s", text);
                text_make_showable(shown);
                return;
        }
        while (n > 1 && ((unsigned char)text[n] & 0xc0) == 0x80 && LINE_MAX_SHOWN - n < 3)
                n--;
        snprintf(shown, size, "%.*s", (int)n, text);
        text_make_showable(shown);
        snprintf(shown + strlen(shown), size - strlen(shown), " [+%zu bytes]", length - n);
        search->long_lines++;
}

static bool note(struct search *search, const char *path, size_t line, const char *text)
{
        char shown[LINE_MAX_SHOWN + 64], name[PATH_MAX];

        if (search->n == search->limit) {
                search->cut = true;
                return false;
        }
        show_line(search, text, shown, sizeof(shown));
        snprintf(name, sizeof(name), "%s", path);
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
        struct stat facts;
        char *rest, *line, place[PATH_MAX];
        size_t length, number = 0;
        bool more = true;
        int r;

        if (directory ||
            (search->names && fnmatch(search->names, slash ? slash + 1 : path, 0) != 0) ||
            files_place(path, false, place) < 0 || stat(place, &facts) < 0 ||
            S_ISDIR(facts.st_mode))
                return true; /* a link may lead elsewhere, or nowhere */
        r = file_read(AT_FDCWD, place, FILE_MAX, &data, &length);
        search->large += r == -EFBIG;
        search->closed += r < 0 && r != -EFBIG;
        if (r < 0 || memchr(data, '\0', MIN(length, 8 * KIB)))
                return true;
        rest = data;
        while (more && (line = strsep(&rest, "\n"))) {
                number++;
                if (regexec(&search->pattern, line, 0, NULL, 0) == 0)
                        more = note(search, path, number, line);
        }
        return more;
}

/* What is missing, and how to get it. */
static int add_notes(struct search *search)
{
        int r = buffer_printf(&search->text, "%s", search->n == 0 ? "Nothing was found.\n" : "");

        if (r == 0 && search->cut)
                r = buffer_printf(&search->text, "[and more: raise limit, which may be 5000, or "
                                                 "narrow the search]\n");
        if (r == 0 && search->long_lines > 0)
                r = buffer_printf(&search->text, "[lines that end with [+N bytes] are cut: "
                                                 "read_file with first, and lines 1, has all of "
                                                 "one]\n");
        if (r == 0 && search->large > 0)
                r = buffer_printf(&search->text,
                                  "[%zu files were left out, which are larger than 16 MiB: search "
                                  "them by run_command, with grep]\n",
                                  search->large);
        if (r == 0 && search->closed > 0)
                r = buffer_printf(&search->text, "[%zu files could not be read]\n", search->closed);
        return r;
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
                return files_refuse(reply, "search", path, r);
        if (search->failed || add_notes(search) < 0)
                return files_fail(reply, "out of memory");
        return files_answer(reply,
                            json_pack("{s:O, s:b, s:I, s:I}", "found", search->found, "more",
                                      search->cut, "cutLines", (json_int_t)search->long_lines,
                                      "filesLeftOut",
                                      (json_int_t)search->large + (json_int_t)search->closed),
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
