/* SPDX-License-Identifier: MIT */
/* A dict becomes a cbx_spec. Its texts and bytes stay those of the dict, which the caller holds. */
#include <string.h>

#include "native.h"

enum kind { TEXT, TEXTS, BYTES, INT, SIZE, SECONDS };

static const struct field {
        const char *name;
        enum kind kind;
        size_t offset;
} fields[] = {
        { "id", TEXT, offsetof(cbx_spec, id) },
        { "argv", TEXTS, offsetof(cbx_spec, argv) },
        { "shell", TEXT, offsetof(cbx_spec, shell) },
        { "environment", TEXTS, offsetof(cbx_spec, environment) },
        { "cwd", TEXT, offsetof(cbx_spec, cwd) },
        { "input", BYTES, offsetof(cbx_spec, input) },
        { "input_mode", INT, offsetof(cbx_spec, input_mode) },
        { "input_fd", INT, offsetof(cbx_spec, input_fd) },
        { "output_mode", INT, offsetof(cbx_spec, output_mode) },
        { "errors_mode", INT, offsetof(cbx_spec, errors_mode) },
        { "output_fd", INT, offsetof(cbx_spec, output_fd) },
        { "errors_fd", INT, offsetof(cbx_spec, errors_fd) },
        { "wall_limit", SECONDS, offsetof(cbx_spec, wall_limit) },
        { "cpu_limit", SECONDS, offsetof(cbx_spec, cpu_limit) },
        { "cpus_limit", SECONDS, offsetof(cbx_spec, cpus_limit) },
        { "memory_limit", SIZE, offsetof(cbx_spec, memory_limit) },
        { "process_limit", SIZE, offsetof(cbx_spec, process_limit) },
        { "file_size_limit", SIZE, offsetof(cbx_spec, file_size_limit) },
        { "open_files_limit", SIZE, offsetof(cbx_spec, open_files_limit) },
        { "output_limit", SIZE, offsetof(cbx_spec, output_limit) },
        { "capture_limit", SIZE, offsetof(cbx_spec, capture_limit) },
        { "result_limit", SIZE, offsetof(cbx_spec, result_limit) },
        { "explain", INT, offsetof(cbx_spec, explain) },
        { "sanitize", INT, offsetof(cbx_spec, sanitize) },
        { "result_mode", INT, offsetof(cbx_spec, result_mode) },
        { "warm", INT, offsetof(cbx_spec, warm) },
        { "raw", INT, offsetof(cbx_spec, raw) },
};

/* Bytes rather than str: arguments and paths of Linux are bytes, and Python has made them such. */
static bool read_text(PyObject *value, const char *name, const char **ret)
{
        char *text;
        Py_ssize_t length;

        if (!PyBytes_Check(value)) {
                PyErr_Format(PyExc_TypeError, "%s must be bytes", name);
                return false;
        }
        if (PyBytes_AsStringAndSize(value, &text, &length) < 0)
                return false;
        if (strlen(text) != (size_t)length) {
                PyErr_Format(PyExc_ValueError, "%s has a NUL character in it", name);
                return false;
        }
        *ret = text;
        return true;
}

static bool read_texts(PyObject *value, const char *name, const char ***ret)
{
        Py_ssize_t n;
        const char **list;

        if (!PyTuple_Check(value)) {
                PyErr_Format(PyExc_TypeError, "%s must be a tuple of bytes", name);
                return false;
        }
        n = PyTuple_Size(value);
        list = PyMem_Calloc((size_t)n + 1, sizeof(char *));
        if (!list) {
                PyErr_NoMemory();
                return false;
        }
        for (Py_ssize_t i = 0; i < n; i++)
                if (!read_text(PyTuple_GetItem(value, i), name, &list[i])) {
                        PyMem_Free(list);
                        return false;
                }
        *ret = list;
        return true;
}

static bool read_field(const struct field *field, PyObject *value, cbx_spec *spec,
                       struct spec_room *room)
{
        void *to = (char *)spec + field->offset;
        const char ***list =
                field->offset == offsetof(cbx_spec, argv) ? &room->argv : &room->environment;
        char *bytes;
        Py_ssize_t length;

        switch (field->kind) {
        case TEXT:
                return read_text(value, field->name, to);
        case TEXTS:
                if (!read_texts(value, field->name, list))
                        return false;
                *(const char *const **)to = *list;
                return true;
        case BYTES:
                if (PyBytes_AsStringAndSize(value, &bytes, &length) < 0)
                        return false;
                spec->input = bytes;
                spec->input_length = (size_t)length;
                return true;
        case INT:
                *(int *)to = (int)PyLong_AsLong(value);
                break;
        case SIZE:
                *(uint64_t *)to = PyLong_AsUnsignedLongLong(value);
                break;
        case SECONDS:
                *(double *)to = PyFloat_AsDouble(value);
                break;
        }
        return !PyErr_Occurred();
}

bool native_read_spec(PyObject *dict, cbx_spec *spec, struct spec_room *room)
{
        Py_ssize_t known = 0;

        if (!PyDict_Check(dict)) {
                PyErr_SetString(PyExc_TypeError, "a spec must be a dict");
                return false;
        }
        for (size_t i = 0; i < COUNT_OF(fields); i++) {
                PyObject *value = PyDict_GetItemString(dict, fields[i].name);

                known += value != NULL;
                if (value && !read_field(&fields[i], value, spec, room)) {
                        native_free_spec(room);
                        return false;
                }
        }
        if (known != PyDict_Size(dict)) {
                native_free_spec(room);
                PyErr_SetString(PyExc_TypeError, "the spec has a key that is unknown");
                return false;
        }
        return true;
}

void native_free_spec(struct spec_room *room)
{
        PyMem_Free(room->argv);
        PyMem_Free(room->environment);
        room->argv = room->environment = NULL;
}
