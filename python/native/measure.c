/* SPDX-License-Identifier: MIT */
/* How much a text of JSON asks for, before anybody reads it: a box has written it. */
#include <string.h>

#include "native.h"

struct measured {
        size_t values; /* a comma counts one, an object or array four */
        size_t depth;
        size_t digits; /* in the longest run of them */
};

/* From behind a quote to behind the one that ends the string, or to the end. */
static const char *skip_string(const char *at, const char *end)
{
        while (at < end && *at != '"')
                at += *at == '\\' ? 2 : 1;
        return at < end ? at + 1 : end;
}

/* One pass. Where the text is no JSON its reader stops at the first mistake, and until there both
 * see the same strings. */
static struct measured look(const char *at, const char *end)
{
        struct measured found = { 0, 0, 0 };
        size_t depth = 0, digits = 0;

        while (at < end) {
                char c = *at++;

                if (c >= '0' && c <= '9') {
                        digits++;
                        found.digits = digits > found.digits ? digits : found.digits;
                        continue;
                }
                digits = 0;
                if (c == '"') {
                        at = skip_string(at, end);
                } else if (c == ',') {
                        found.values++;
                } else if (c == '[' || c == '{') {
                        found.values += 4;
                        depth++;
                        found.depth = depth > found.depth ? depth : found.depth;
                } else if ((c == ']' || c == '}') && depth > 0) {
                        depth--;
                }
        }
        return found;
}

PyObject *native_measure(PyObject *module, PyObject *args)
{
        struct measured found;
        PyThreadState *state;
        const char *text;
        Py_ssize_t length;

        (void)module;
        if (!PyArg_ParseTuple(args, "y#", &text, &length))
                return NULL;
        state = native_let_others((size_t)length);
        found = look(text, text + length);
        native_go_on(state);
        return Py_BuildValue("nnn", (Py_ssize_t)found.values, (Py_ssize_t)found.depth,
                             (Py_ssize_t)found.digits);
}
