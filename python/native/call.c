/* SPDX-License-Identifier: MIT */
#include <poll.h>
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

static PyObject *take_report(PyObject *object, PyObject *none)
{
        struct call_object *self = (struct call_object *)object;
        cbx_report report = CBX_REPORT_INIT;
        cbx_error error = CBX_ERROR_INIT;
        int r;

        (void)none;
        if (!enter(self))
                return NULL;
        r = cbx_wait(self->call, &report, &error);
        self->used = false;
        if (r < 0)
                return native_raise(r, &error);
        return native_read_report(&report);
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
