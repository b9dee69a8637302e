/* SPDX-License-Identifier: MIT */
/* What is told of a Python file: lines, and for each of them the tool that is missing since, or "".
 */
#ifndef TOOL_TOLD_H
#define TOOL_TOLD_H

#include "base/base.h"

struct told {
        struct buffer text;
        char **tools;
};

#define TOLD_INIT                                                                                  \
        {                                                                                          \
                .text = BUFFER_INIT, .tools = list_new()                                           \
        }

void told_clear(struct told *told);
#define _cleanup_told_ _cleanup_(told_clear)

/* It is one line afterwards, whatever a box has put into it. */
int told_add_line(struct told *told, const char *tool, char *line);

/* `name`: of a function that is left out, or ""; `missed`: somebody has said that it is a tool. */
int told_add(struct told *told, const char *name, bool missed, const char *text, const char *hint);

#endif
