/* SPDX-License-Identifier: MIT */
/*
 * Python functions as tools. A manifest, or whoever loads a whole file, names a file or a module;
 * an interpreter that has loaded it waits in a box and is forked for each call
 * (python/callbox/_serve.py, _hosted.py).
 *
 *   file ─▶ describing box ─▶ what it says of its functions ─▶ checked ─▶ tool ─▶ call ─▶ box
 *           no network,       untrusted: bounded, parsed,
 *           nothing writable  compiled as any schema
 *
 * Nothing of the file is loaded in this process, nor outside of a box: whatever is to be known of
 * it, a box is asked for. The file, directories on its search path and the server itself are own
 * inputs of the tool (tool_inputs.c); the trees of the interpreter are like programs along PATH.
 *
 *   python_find.c      which interpreter, what of the host it needs, where the server is
 *   python_run.c       "run" of a manifest: how the function is served
 *   python_describe.c  asking a box, and keeping the answer
 *   python_match.c     what a manifest leaves out, and whether what it says can be so
 *   toolbox_python.c   all tools of a file, and changes of files
 */
#ifndef TOOL_PYTHON_H
#define TOOL_PYTHON_H

#include "tool/tool.h"

/* ---- Places (python_find.c) ---- */

/* The interpreter, by a name that lets it find its virtual environment. `given` is a path, from
 * `directory` on where it is relative, or a name that is looked for along PATH; NULL: that of the
 * active virtual environment, else python3 along PATH. Scripts that start one are passed by. */
int python_find_interpreter(const char *given, const char *directory, char **ret_program,
                            cbx_error *error);
/* The directories and files that it needs beside the system. */
int python_find_trees(const char *program, char ***ret_trees);
/* The program text that runs in the box, _serve.py: it comes with the program that serves functions
 * of shared objects, `server`. */
int python_find_server(const char *server, char **ret_path, cbx_error *error);

/* ---- How it is served (python_run.c) ---- */

/* Where functions are, and what loads them. */
struct python_source {
        char *file;    /* its real path; NULL: an installed module */
        char *module;  /* the name that it is loaded by */
        char *program; /* the interpreter */
        char **path;   /* directories to look for modules in, before what is installed */
};

void python_source_free(struct python_source *source);
#define _cleanup_python_source_ _cleanup_(python_source_free)

/* A file or a module by the word that somebody typed: what has a slash or ends in .py is a file. */
int python_source_of(const char *word, struct python_source *ret, cbx_error *error);
/* The server for one function; `name` NULL: for none, only to ask it. */
int python_serve(const struct python_source *source, const char *name, const char *server,
                 struct function *ret, cbx_error *error);
/* "run" of a manifest, where it has "python". Mistakes are noted. */
int python_read_run(json_t *run, const struct tool_origin *origin, struct tool *tool,
                    struct tool_mistakes *mistakes);

/* ---- Asking (python_describe.c) ---- */

#define PYTHON_ANSWER_MAX (4 * MIB)
#define PYTHON_TOOLS_MAX 1000
#define PYTHON_DESCRIBE_WALL 20.0 /* seconds */

/* What was answered, as long as the file is the same. */
struct python_answers;
struct python_answers *python_answers_new(void);
struct python_answers *python_answers_free(struct python_answers *answers);

/* What the file says of the tool's function, or where that has no name of all: {"tools": [...],
 * "left": [...]}. It is asked in a box of this policy without network in which nothing of the host
 * can be written. */
int python_describe(const struct tool *tool, const cbx_policy *policy,
                    const struct tool_origin *origin, cbx_error *error, json_t **ret_answer);

/* ---- A manifest and a function (python_match.c) ---- */

/* A copy of the manifest with what it leaves out. What it says and the function's signature does
 * not allow is a mistake. */
int python_complete(const json_t *manifest, const json_t *described, struct tool_mistakes *mistakes,
                    json_t **ret_manifest);

#endif
