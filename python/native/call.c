/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native.h"

struct call_object {
        PyObject_HEAD cbx_call *call;
        pid_t owner;
        bool used; /* by a thread, which may have let go of the interpreter's lock */
};

static bool enter(struct call_object *self)
{
        if (!self->call || self->used) {
                PyErr_SetString(PyExc_RuntimeError,
                                self->call ? "another thread uses the call" : "the call is closed");
                return false;
        }
        if (native_is_foreign(self->owner))
                return false;
        self->used = true;
        return true;
}

PyObject *native_new_call(cbx_call *call)
{
        struct call_object *self = PyObject_New(struct call_object, native_call_type);

        if (!self) {
                cbx_call_free(call);
                return NULL;
        }
        self->call = call;
        self->owner = getpid();
        self->used = false;
        return (PyObject *)self;
}

static void dealloc(PyObject *object)
{
        struct call_object *self = (struct call_object *)object;
        PyTypeObject *type = Py_TYPE(object);

        if (self->owner == getpid())
                cbx_call_free(self->call);
        PyObject_Free(object);
        Py_DECREF(type);
}

/* ---- Events ---- */

static PyObject *get_fileno(PyObject *object, PyObject *none)
{
        struct call_object *self = (struct call_object *)object;

        (void)none;
        if (!enter(self))
                return NULL;
        self->used = false;
        return PyLong_FromLong(cbx_call_fd(self->call));
}

/* 0 with an event, or -1 with an exception. */
static int take_event(struct call_object *self, cbx_event *event)
{
        cbx_error error = CBX_ERROR_INIT;
        int r;

        r = cbx_step(self->call, event, &error);
        if (r < 0)
                native_raise(r, &error);
        return r < 0 ? -1 : 0;
}

static PyObject *event_to_tuple(const cbx_event *event)
{
        if (event->kind == CBX_EVENT_NONE)
                Py_RETURN_NONE;
        return Py_BuildValue("iy#ddz", event->kind, event->data ? event->data : "",
                             (Py_ssize_t)event->length, event->done, event->total,
                             event->kind == CBX_EVENT_LOG ? event->level : NULL);
}

static PyObject *step(PyObject *object, PyObject *none)
{
        struct call_object *self = (struct call_object *)object;
        cbx_event event = CBX_EVENT_INIT;
        PyObject *result = NULL;

        (void)none;
        if (!enter(self))
                return NULL;
        if (take_event(self, &event) == 0)
                result = event_to_tuple(&event);
        self->used = false;
        return result;
}

/* Wait until there is something to take. A signal handler of Python's runs meanwhile, and may
 * raise: the call goes on, and whoever catches decides what becomes of it. */
static PyObject *wait_event(PyObject *object, PyObject *none)
{
        struct call_object *self = (struct call_object *)object;
        cbx_event event = CBX_EVENT_INIT;
        PyObject *result = NULL;
        int r = 0;

        (void)none;
        if (!enter(self))
                return NULL;
        while ((r = take_event(self, &event)) == 0 && event.kind == CBX_EVENT_NONE) {
                struct pollfd poll_fd = { .fd = cbx_call_fd(self->call), .events = POLLIN };

                Py_BEGIN_ALLOW_THREADS;
                r = poll(&poll_fd, 1, -1);
                Py_END_ALLOW_THREADS;
                if (r < 0 && PyErr_CheckSignals() < 0)
                        break;
                r = 0;
        }
        if (r == 0)
                result = event_to_tuple(&event);
        self->used = false;
        return result;
}

/* ---- The end ---- */

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

/* (report as JSON, stdout, stderr, what is told of a tool, result of a command as JSON, parts of
 * that of a function, the descriptor of their file or -1) */
static PyObject *report_to_tuple(const cbx_report *report)
{
        const cbx_result *result = cbx_report_result(report);
        cbx_error error = CBX_ERROR_INIT;
        PyObject *tuple, *parts;
        PyThreadState *state;
        char *json = NULL;
        int r, fd = -1;

        state = native_let_others(report->output.length + report->errors.length +
                                  (result && result->output ? strlen(result->output) : 0));
        r = cbx_report_print(report, &json, &error);
        native_go_on(state);
        if (r < 0)
                return native_raise(r, &error);
        parts = parts_of(report, &fd);
        tuple = parts ? Py_BuildValue("sNNNzNi", json, bytes_of(&report->output),
                                      bytes_of(&report->errors), told_of(result),
                                      result ? result->output : NULL, parts, fd)
                      : NULL;
        if (!tuple && fd >= 0)
                close(fd);
        free(json);
        return tuple;
}

static PyObject *take_report(PyObject *object, PyObject *none)
{
        struct call_object *self = (struct call_object *)object;
        cbx_report report = CBX_REPORT_INIT;
        cbx_error error = CBX_ERROR_INIT;
        PyObject *result;
        int r;

        (void)none;
        if (!enter(self))
                return NULL;
        r = cbx_wait(self->call, &report, &error);
        self->used = false;
        if (r < 0)
                return native_raise(r, &error);
        result = report_to_tuple(&report);
        cbx_report_free(&report);
        return result;
}

/* From any thread, also while another one waits. The lock is kept, so that nobody closes it. */
static PyObject *kill_it(PyObject *object, PyObject *none)
{
        struct call_object *self = (struct call_object *)object;

        (void)none;
        if (self->call && self->owner == getpid())
                (void)cbx_kill(self->call);
        Py_RETURN_NONE;
}

/* End the call if it still runs, and let its descriptor go now rather than with the object. */
static PyObject *close_it(PyObject *object, PyObject *none)
{
        struct call_object *self = (struct call_object *)object;
        cbx_call *call = self->call;

        (void)none;
        if (!call)
                Py_RETURN_NONE;
        if (!enter(self))
                return NULL;
        self->call = NULL;
        self->used = false;
        cbx_call_free(call);
        Py_RETURN_NONE;
}

static PyObject *send_signal(PyObject *object, PyObject *number)
{
        struct call_object *self = (struct call_object *)object;
        cbx_error error = CBX_ERROR_INIT;
        long signal = PyLong_AsLong(number);
        int r;

        if (signal == -1 && PyErr_Occurred())
                return NULL;
        if (!self->call) {
                PyErr_SetString(PyExc_RuntimeError, "the call is closed");
                return NULL;
        }
        if (native_is_foreign(self->owner))
                return NULL;
        r = cbx_signal(self->call, (int)signal);
        if (r < 0)
                return native_raise(r, &error);
        Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
        { "fileno", get_fileno, METH_NOARGS, "Readable when step() has something to tell." },
        { "step", step, METH_NOARGS, "The next event, or None. Never waits." },
        { "wait", wait_event, METH_NOARGS, "The next event, when there is one." },
        { "report", take_report, METH_NOARGS, "What came of the call, once, after its end." },
        { "kill", kill_it, METH_NOARGS, "End the call." },
        { "close", close_it, METH_NOARGS, "End the call if it still runs, and forget it." },
        { "signal", send_signal, METH_O, "Send a signal to the program." },
        { NULL, NULL, 0, NULL },
};

static PyType_Slot slots[] = {
        { Py_tp_dealloc, (void *)dealloc },
        { Py_tp_methods, methods },
        { 0, NULL },
};

PyType_Spec native_call_spec = { "callbox._callbox.Call", sizeof(struct call_object), 0,
                                 Py_TPFLAGS_DEFAULT, slots };
