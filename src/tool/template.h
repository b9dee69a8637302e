/* SPDX-License-Identifier: MIT */
/*
 * The argv of a command, as a manifest writes it: fixed text, and places for arguments of the call.
 *
 *   "text", "--top={top}"           fixed text with placeholders; {{ and }} are braces
 *   { "value": "{x}", "dash": true }  the same; may begin with a dash though the value brings it
 *   { "each": "files" }               every item of an array, one argument each
 *   { "json": "filter" }              the value as JSON text, one argument
 *   { "file": "count.py" }            a file beside the manifest, by its path
 *   { "when": "top", "then": [...] }  only where the argument is there, and neither false nor null
 *
 * Whatever the value, it is one argument, and not an option: one that begins with a dash of its own
 * is refused unless the manifest says "dash".
 */
#ifndef TOOL_TEMPLATE_H
#define TOOL_TEMPLATE_H

#include "tool/tool.h"

enum part_kind { PART_TEXT, PART_VALUE };

struct part {
        enum part_kind kind;
        char *text; /* fixed text, or the name of the argument */
};

enum element_kind { ELEMENT_PARTS, ELEMENT_EACH, ELEMENT_JSON, ELEMENT_WHEN };

struct element {
        enum element_kind kind;
        struct part *parts;
        size_t n_parts;
        char *name; /* of the argument: each, json, when */
        bool dash;
        struct template *then;
};

struct template
{
        struct element *elements;
        size_t n;
        char **files;
};

#endif
