/* SPDX-License-Identifier: MIT */
/* Files of the workspace, for tools that run as functions in boxes: see builtin_files.c. */
#ifndef SERVE_BUILTIN_FILES_H
#define SERVE_BUILTIN_FILES_H

#include <jansson.h>

#include "base/base.h"
#include "policy/json_read.h"
#include "policy/policy.h"

/* Tell an error of the function, and its return value. */
int files_fail(cbx_reply *reply, const char *format, ...) PRINTF_LIKE(2, 3);
/* Give a result, which is taken, and text for reading. */
int files_answer(cbx_reply *reply, json_t *result, const char *text);
json_t *files_arguments(const char *arguments, size_t length);
/* An argument, or what it is without. */
const char *files_text(const json_t *arguments, const char *name, const char *otherwise);
json_int_t files_number(const json_t *arguments, const char *name, json_int_t otherwise);

/* Look at a file or at all below a directory, in the order of names; `found` returns false when it
 * has seen enough. Links to directories are not followed. */
struct files_walk {
        int depth;   /* of directories, at most */
        bool hidden; /* names that begin with a dot as well */
        bool (*found)(void *context, const char *path, bool directory);
        void *context;
};
int files_walk(const struct files_walk *walk, const char *path);

/* Where a path leads, without links and dots; -EXDEV: out of the workspace. What was kept of long
 * output may be read as well (builtin_place.c). */
int files_place(const char *path, bool write, char ret[PATH_MAX]);
/* Say why something cannot be done to a path; returns what a function does. */
int files_refuse(cbx_reply *reply, const char *verb, const char *path, int error);

cbx_function builtin_read_file;    /* builtin_read.c */
cbx_function builtin_search_files; /* builtin_search.c */

#endif
