/* SPDX-License-Identifier: MIT */
/*
 * C functions as tools. What the toolbox tells the process that runs the function:
 *
 *   argv     PROGRAM --callbox-functions [OBJECT]
 *   stdin    one line that names the function, then its arguments, to the end
 *   fd 3     the result channel: frames (message.h)
 *
 * The process is started before there is a call (a warm box) and waits for its stdin.
 *
 * A manifest may name another program that does the same for functions of another language: its
 * argv is then the manifest's, and so is the line.
 */
#ifndef TOOL_FUNCTION_H
#define TOOL_FUNCTION_H

#include "base/base.h"

#define FUNCTION_MARK "--callbox-functions"
#define FUNCTION_BY_NAME "name" /* SYMBOL: of the object that was named in argv */
/* OFFSET DEVICE INODE [PATH], numbers in hex: in the program, or in a file it loads, provided that
 * it is still that file */
#define FUNCTION_BY_OFFSET "offset"

/* Where a function is, for a process that loads the same files. */
struct function {
        char *program;                  /* that serves it */
        char *object;                   /* shared object that has it; NULL: the program itself */
        char *symbol;                   /* its name; NULL: by offset */
        uint64_t offset, device, inode; /* and of which file */
        char **files;                   /* host files that the program needs to start */
        char **argv;                    /* of a server that a manifest names; NULL: one of ours */
        char *line;                     /* what that one is told of the function */
        bool forks;                     /* it forks itself for each call */
        char *source;                   /* of a Python function: its file, empty where it is in an
                                           installed module; else NULL (python.h) */
        char **trees;                   /* what its interpreter needs to see */
};

/* main has called cbx_serve_functions, so that this program can be started again. */
extern bool function_served;

/* Of this process: in the program itself, or in a shared object that it has loaded. */
int function_find(cbx_function *run, struct function *ret, cbx_error *error);
/* The program that serves functions of shared objects: the given one, else $CALLBOX_FUNCTIONS, else
 * the one that was installed. */
const char *function_server(const char *given);
/* Of a shared object that a manifest names. */
int function_of_object(const char *object, const char *symbol, const char *server,
                       struct function *ret, cbx_error *error);
void function_free(struct function *function);

/* Is the file still there that an offset was found in? Another would be called anywhere. */
int function_check(const struct function *function, cbx_error *error);
/* The request that makes the server call it, appended. */
int function_request(const struct function *function, const char *arguments, size_t length,
                     struct buffer *ret);
/* The variable that lets the loader find its libraries; NULL where the usual places do. */
int function_environment(const struct function *function, char **ret_variable);
/* Is the file in a tree that every box with a system shows? */
bool function_is_of_system(const char *path);

#endif
