/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native.h"

#define SMALL_BYTES ((size_t)16 * 1024)

/* A report that nobody has asked for yet: to write it as JSON takes longer than the rest of it. */
struct report_object {
        PyObject_HEAD cbx_report report;
};

/* Others run while so many bytes are written. */
static PyObject *print(const cbx_report *report, size_t bytes)
{
        cbx_error error = CBX_ERROR_INIT;
        PyThreadState *state;
        PyObject *text;
        char *json = NULL;
        int r;

        state = native_let_others(bytes);
        r = cbx_report_print(report, &json, &error);
        native_go_on(state);
        if (r < 0)
                return native_raise(r, &error);
        text = PyUnicode_FromString(json);
        free(json);
        return text;
}

static PyObject *to_text(PyObject *object)
{
        return print(&((struct report_object *)object)->report, 0);
}

static void dealloc(PyObject *object)
{
        PyTypeObject *type = Py_TYPE(object);

        cbx_report_free(&((struct report_object *)object)->report);
        PyObject_Free(object);
        Py_DECREF(type);
}

/* Takes the report, unless there is no memory. */
static PyObject *keep(cbx_report *report)
{
        struct report_object *kept = PyObject_New(struct report_object, native_report_type);

        if (kept) {
                kept->report = *report;
                *report = (cbx_report)CBX_REPORT_INIT;
        }
        return (PyObject *)kept;
}

static PyObject *bytes_of(const cbx_output *output)
{
        return PyBytes_FromStringAndSize(output->data ? output->data : "",
                                         (Py_ssize_t)output->length);
}

/* The parts of a function's result: bytes, or (where, length) in the file that a large one comes
 * in. `fd` becomes a descriptor of that file, the reader's own. Python may read it when it wants,
 * into what it wants, and nothing of it is in memory before. */
static PyObject *parts_of(const cbx_report *report, int *fd)
{
        PyObject *list = PyList_New(0);
        cbx_part part = CBX_PART_INIT;

        for (size_t i = 0; list && cbx_report_part(report, i, &part) == 0; i++) {
                PyObject *item;

                if (part.fd >= 0 && *fd < 0)
                        *fd = fcntl(part.fd, F_DUPFD_CLOEXEC, 3);
                if (part.fd >= 0 && *fd < 0)
                        item = PyErr_SetFromErrno(PyExc_OSError);
                else if (part.fd >= 0)
                        item = Py_BuildValue("KK", (unsigned long long)part.offset,
                                             (unsigned long long)part.length);
                else
                        item = PyBytes_FromStringAndSize(part.data, (Py_ssize_t)part.length);
                if (!item || PyList_Append(list, item) < 0)
                        Py_CLEAR(list);
                Py_XDECREF(item);
        }
        if (!list && *fd >= 0) {
                close(*fd);
                *fd = -1;
        }
        return list;
}

/* (ok, error, denied, reason, text) of a tool's call, else None */
static PyObject *told_of(const cbx_result *result)
{
        if (!result)
                Py_RETURN_NONE;
        return Py_BuildValue("NzNzz", PyBool_FromLong(result->ok), result->error,
                             PyBool_FromLong(result->denied), result->reason, result->text);
}

/* (the report: JSON, or what str() makes JSON of; stdout, stderr, what is told of a tool, result of
 * a command as JSON, parts of that of a function, the descriptor of their file or -1). Takes the
 * report. A small one is kept as it is, and a large one is written now: what it holds is then in
 * Python, and should not be in memory twice. */
PyObject *native_read_report(cbx_report *report)
{
        const cbx_result *result = cbx_report_result(report);
        size_t bytes = report->output.length + report->errors.length +
                       (result && result->output ? strlen(result->output) : 0);
        bool small = bytes + report->result.length <= SMALL_BYTES;
        PyObject *tuple = NULL, *text = NULL, *parts;
        int fd = -1;

        parts = parts_of(report, &fd);
        if (parts)
                tuple = Py_BuildValue("ONNNzNi", Py_None, bytes_of(&report->output),
                                      bytes_of(&report->errors), told_of(result),
                                      result ? result->output : NULL, parts, fd);
        if (tuple)
                text = small ? keep(report) : print(report, bytes);
        cbx_report_free(report); /* what is left of it */
        if (text)
                (void)PyTuple_SetItem(tuple, 0, text);
        else
                Py_CLEAR(tuple);
        if (!tuple && fd >= 0)
                close(fd);
        return tuple;
}

static PyType_Slot slots[] = {
        { Py_tp_dealloc, (void *)dealloc },
        { Py_tp_str, (void *)to_text },
        { 0, NULL },
};

PyType_Spec native_report_spec = { "callbox._callbox.Report", sizeof(struct report_object), 0,
                                   Py_TPFLAGS_DEFAULT, slots };
