/* SPDX-License-Identifier: MIT */
#include "tool/told.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void told_clear(struct told *told)
{
        buffer_free(&told->text);
        list_free(told->tools);
}

int told_add_line(struct told *told, const char *tool, char *line)
{
        int r = told->tools ? 0 : -ENOMEM;

        for (char *end = line; (end = strchr(end, '\n'));)
                *end = ' ';
        text_make_showable(line);
        if (r == 0)
                r = buffer_printf(&told->text, "%s%s", told->text.length > 0 ? "\n" : "", line);
        return r < 0 ? r : list_add(&told->tools, tool);
}

int told_add(struct told *told, const char *name, bool missed, const char *text, const char *hint)
{
        char tool[128], line[1000];

        snprintf(tool, sizeof(tool), "%.100s", missed ? name : "");
        text_make_showable(tool);
        snprintf(line, sizeof(line), "%.100s%s%.400s%s%.300s%s", name,
                 *name ? " is left out: " : "", text, *hint ? " (to fix it: " : "", hint,
                 *hint ? ")" : "");
        return told_add_line(told, tool, line);
}
