/* SPDX-License-Identifier: MIT */
/*
 * Where a C function is. A box starts the same program again (function_server.c) and is told the
 * function as an offset in one of its files: nothing but the file has to be the same, and it is
 * made sure that it is.
 */
#include "tool/function.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void function_free(struct function *function)
{
        free(function->program);
        free(function->object);
        free(function->symbol);
        list_free(function->files);
        list_free(function->argv);
        free(function->line);
        free(function->source);
        list_free(function->trees);
        *function = (struct function){ 0 };
}

/* ---- Of this process ---- */

struct search {
        uintptr_t address;
        struct function *function;
        bool found;
        int failed;
};

/* A file by the name it was loaded under, in a directory that is spelled out: what a loader looks
 * for is often a link. NULL when memory ran out. */
static char *spell_out(const char *name)
{
        const char *slash = strrchr(name, '/');
        _cleanup_free_ char *directory = strndup(name, (size_t)(slash - name) + 1);
        _cleanup_free_ char *real = directory ? realpath(directory, NULL) : NULL;
        char *path = NULL;

        if (directory && !real)
                return strdup(name);
        if (!real || asprintf(&path, "%s/%s", strcmp(real, "/") == 0 ? "" : real, slash + 1) < 0)
                return NULL;
        return path;
}

/* Called for each file that is loaded: note it, and whether the function is in it. */
static int look_at(struct dl_phdr_info *info, size_t size, void *data)
{
        struct search *search = data;
        const char *name = info->dlpi_name;

        (void)size;
        for (size_t i = 0; i < info->dlpi_phnum; i++) {
                const ElfW(Phdr) *part = &info->dlpi_phdr[i];
                uintptr_t begin = info->dlpi_addr + part->p_vaddr;

                if (part->p_type != PT_LOAD || search->address < begin ||
                    search->address - begin >= part->p_memsz)
                        continue;
                search->found = true;
                search->function->offset = search->address - info->dlpi_addr;
                if (strchr(name, '/')) { /* else it is the program itself */
                        search->function->object = spell_out(name);
                        search->failed |= !search->function->object;
                }
        }
        if (strchr(name, '/') && access(name, R_OK) == 0)
                search->failed |= list_take(&search->function->files, spell_out(name)) < 0;
        return 0;
}

static int refuse_replaced(const char *path, cbx_error *error)
{
        error_set(error, -ESTALE, "run", "the program's file was replaced since it was started: %s",
                  path);
        error_hint(error, "start the program again");
        return -ESTALE;
}

/* Which file has the function, by its number rather than its name. */
static int find_identity(struct function *function, cbx_error *error)
{
        const char *path = function->object ? function->object : function->program;
        struct stat facts;

        if (stat(path, &facts) < 0)
                return refuse_replaced(path, error);
        function->device = facts.st_dev;
        function->inode = facts.st_ino;
        return 0;
}

int function_check(const struct function *function, cbx_error *error)
{
        struct function now = *function;

        if (function->symbol)
                return 0;
        if (find_identity(&now, error) < 0 || now.device != function->device ||
            now.inode != function->inode)
                return refuse_replaced(function->object ? function->object : function->program,
                                       error);
        return 0;
}

/* The file of this program, if it is still there under its name. */
static int find_program(struct function *function, cbx_error *error)
{
        char path[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

        if (n < 0)
                return error_set(error, -errno, "", "cannot find the program's own file: %s",
                                 strerror(errno));
        path[n] = '\0';
        /* The kernel adds " (deleted)" to the name of a file that is gone from its place. */
        if (access(path, F_OK) < 0)
                return refuse_replaced(path, error);
        function->program = strdup(path);
        return function->program && list_add(&function->files, path) == 0 ? 0 : error_oom(error);
}

int function_find(cbx_function *run, struct function *ret, cbx_error *error)
{
        struct function function = { .files = NULL };
        struct search search = { .address = (uintptr_t)run, .function = &function };
        int r;

        if (!function_served) {
                error_set(error, -EINVAL, "run",
                          "this program cannot be started again to serve "
                          "its functions");
                error_hint(error, "call cbx_serve_functions(argc, argv) first in main");
                return -EINVAL;
        }
        function.files = list_new();
        r = function.files ? find_program(&function, error) : error_oom(error);
        if (r == 0) {
                dl_iterate_phdr(look_at, &search);
                if (search.failed)
                        r = error_oom(error);
                else if (!search.found)
                        r = error_set(error, -EINVAL, "run", "is in no file that is loaded");
                else if (function.object && strchr(function.object, '\n'))
                        r = error_set(error, -EINVAL, "run",
                                      "is in a file whose name has a line "
                                      "break");
                else
                        r = find_identity(&function, error);
        }
        if (r < 0) {
                function_free(&function);
                return r;
        }
        *ret = function;
        return 0;
}

/* ---- Of a shared object ---- */

const char *function_server(const char *given)
{
        const char *server = given ? given : secure_getenv("CALLBOX_FUNCTIONS");

        return server && *server ? server : CALLBOX_FUNCTIONS_PROGRAM;
}

/* Is it one at all? Nothing of it is loaded here: that is for the box to do. */
static bool is_shared_object(const char *path)
{
        ElfW(Ehdr) header;
        struct stat facts;
        _cleanup_fd_ int fd = -1;

        /* Opening a device may already do something. */
        if (stat(path, &facts) < 0 || !S_ISREG(facts.st_mode))
                return false;
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        return fd >= 0 && pread(fd, &header, sizeof(header), 0) == sizeof(header) &&
               memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_type == ET_DYN;
}

int function_of_object(const char *object, const char *symbol, const char *server,
                       struct function *ret, cbx_error *error)
{
        /* As a place in a box is written: callbox finds its server as bin/../libexec/... */
        char program[PATH_MAX];
        bool found = realpath(server, program) && access(program, X_OK) == 0;
        struct function function = { .files = list_new(),
                                     .program = strdup(found ? program : server),
                                     .object = strdup(object),
                                     .symbol = strdup(symbol) };
        int r = 0;

        if (!function.files || !function.program || !function.object || !function.symbol ||
            list_add(&function.files, object) < 0 ||
            list_add(&function.files, function.program) < 0)
                r = error_oom(error);
        else if (!is_shared_object(object))
                r = error_set(error, -EINVAL, "", "\"%.200s\" is no shared object", object);
        else if (!found) {
                r = error_set(error, -ENOENT, "",
                              "there is no program %.200s, which serves the "
                              "functions of shared objects",
                              server);
                error_hint(error, "install callbox, or name the program in CALLBOX_FUNCTIONS");
        }
        if (r < 0) {
                function_free(&function);
                return r;
        }
        *ret = function;
        return 0;
}

/* ---- Asking for it ---- */

int function_request(const struct function *function, const char *arguments, size_t length,
                     struct buffer *ret)
{
        int r;

        if (function->argv)
                r = buffer_printf(ret, "%s\n", function->line);
        else if (function->symbol)
                r = buffer_printf(ret, FUNCTION_BY_NAME " %s\n", function->symbol);
        else
                r = buffer_printf(ret,
                                  FUNCTION_BY_OFFSET " %" PRIx64 " %" PRIx64 " %" PRIx64 " %s\n",
                                  function->offset, function->device, function->inode,
                                  function->object ? function->object : "");
        return r < 0 ? r : buffer_add(ret, arguments, length);
}

/* Where its shared libraries are found: LD_LIBRARY_PATH=..., or NULL where the usual places do. */
int function_environment(const struct function *function, char **ret_variable)
{
        _cleanup_buffer_ struct buffer text = BUFFER_INIT;
        int r = 0;

        for (char **file = function->files; r == 0 && *file; file++) {
                const char *slash = strrchr(*file, '/');

                if (function_is_of_system(*file) || strcmp(*file, function->program) == 0 ||
                    slash == *file || strchr(*file, ':'))
                        continue;
                r = buffer_printf(&text, "%s%.*s",
                                  text.length > 0 ? ":" : "LD_LIBRARY_PATH=", (int)(slash - *file),
                                  *file);
        }
        if (r == 0)
                *ret_variable = TAKE_PTR(text.data);
        return r;
}

bool function_is_of_system(const char *path)
{
        static const char *const trees[] = { "/usr/", "/lib/", "/lib64/", "/lib32/", "/bin/" };

        for (size_t i = 0; i < ARRAY_SIZE(trees); i++)
                if (strncmp(path, trees[i], strlen(trees[i])) == 0)
                        return true;
        return false;
}
