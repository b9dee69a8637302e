/* SPDX-License-Identifier: MIT */
/*
 * The standard input of a call. The program gets a pipe of ours, never the caller's descriptor: a
 * file handed in for reading could be opened anew for writing through /proc/self/fd.
 *
 * What the program does not read stays the caller's. A prefix command must not swallow input that
 * belongs to the next one in a script, or to the server whose stdin it inherited, so input is shown
 * to the box without being consumed (tee on a pipe, MSG_PEEK on a socket, pread on a file) and
 * consumed only as far as the box's pipe has been emptied.
 */
#ifndef WARDEN_INPUT_H
#define WARDEN_INPUT_H

#include "base/base.h"

enum input_kind { INPUT_NONE, INPUT_DATA, INPUT_FILE, INPUT_PIPE, INPUT_SOCKET, INPUT_OTHER };

struct input {
        enum input_kind kind;
        int source;       /* the caller's; not owned */
        int box;          /* write end of the box's pipe; -1 once closed */
        const char *data; /* INPUT_DATA */
        size_t length;
        uint64_t at;    /* INPUT_FILE: where to read next; INPUT_DATA: what was written */
        size_t shown;   /* in the box's pipe, not yet known to be read */
        uint64_t total; /* read by the box */
        bool waiting;   /* for the source, rather than for the box */
        int null;       /* INPUT_PIPE: where consumed bytes go */
        int rest;       /* INPUT_DATA: the box's end, to see what it left; -1 */
};

/* Make a pipe for input: the box's end, ours. */
int input_make_pipe(int ret_pipe[2]);

/* Returns the read end for the box, or a negative errno. */
int input_open(struct input *input, int source, const char *data, size_t length);

/* The same for a box that has its end of the pipe already; both are taken over. */
int input_join(struct input *input, int source, const char *data, size_t length, const int pipe[2]);

/* Move what can be moved. Afterwards watch the source if input->waiting, else the box's pipe. */
void input_step(struct input *input);

/* Is what a box was shown of it, and did not read, still there for another? */
bool input_stays(int source);

/* The call is over: give back what was not read. */
void input_close(struct input *input);

#endif
