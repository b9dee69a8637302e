/* SPDX-License-Identifier: MIT */
#include <unistd.h>

#include "native.h"

/* ---- Who uses it ---- */

bool native_warden_enter(struct warden_object *self)
{
        if (self->closed || !self->warden) {
                PyErr_SetString(PyExc_ValueError, "the warden is closed");
                return false;
        }
        if (native_is_foreign(self->owner))
                return false;
        self->users++;
        return true;
}

static void close_unused(struct warden_object *self)
{
        cbx_warden *warden = self->warden;

        if (!self->closed || self->users > 0 || !warden)
                return;
        self->warden = NULL;
        if (self->owner != getpid())
                return;
        Py_BEGIN_ALLOW_THREADS;
        cbx_warden_close(warden);
        Py_END_ALLOW_THREADS;
}

void native_warden_leave(struct warden_object *self)
{
        self->users--;
        close_unused(self);
}

/* ---- The object ---- */

static int init(PyObject *object, PyObject *args, PyObject *keywords)
{
        static const char *const words[] = {
                "program", "socket", "calls", "queue", "prepared", NULL
        };
        struct warden_object *self = (struct warden_object *)object;
        cbx_warden_options options = CBX_WARDEN_OPTIONS_INIT;
        cbx_error error = CBX_ERROR_INIT;
        cbx_warden *warden = NULL;
        int r;

        if (!PyArg_ParseTupleAndKeywords(args, keywords, "|zzIII", (char **)words, &options.program,
                                         &options.socket, &options.calls, &options.queue,
                                         &options.prepared))
                return -1;
        if (self->warden) {
                PyErr_SetString(PyExc_ValueError, "the warden is open already");
                return -1;
        }
        Py_BEGIN_ALLOW_THREADS;
        r = cbx_warden_open(&options, &warden, &error);
        Py_END_ALLOW_THREADS;
        if (r < 0) {
                native_raise(r, &error);
                return -1;
        }
        self->warden = warden;
        self->owner = getpid();
        return 0;
}

static PyObject *close_it(PyObject *object, PyObject *none)
{
        struct warden_object *self = (struct warden_object *)object;

        (void)none;
        self->closed = true;
        close_unused(self);
        Py_RETURN_NONE;
}

static void dealloc(PyObject *object)
{
        struct warden_object *self = (struct warden_object *)object;
        PyTypeObject *type = Py_TYPE(object);

        self->closed = true;
        close_unused(self);
        PyObject_Free(object);
        Py_DECREF(type);
}

static PyObject *get_pid(PyObject *object, PyObject *none)
{
        struct warden_object *self = (struct warden_object *)object;
        cbx_error error = CBX_ERROR_INIT;
        int r;

        (void)none;
        if (!native_warden_enter(self))
                return NULL;
        r = cbx_warden_pid(self->warden);
        native_warden_leave(self);
        return r < 0 ? native_raise(r, &error) : PyLong_FromLong(r);
}

static PyObject *prepare(PyObject *object, PyObject *given)
{
        struct warden_object *self = (struct warden_object *)object;
        cbx_error error = CBX_ERROR_INIT;
        cbx_policy *policy;
        int r;

        if (!native_get_policy(given, &policy) || !native_warden_enter(self))
                return NULL;
        Py_BEGIN_ALLOW_THREADS;
        r = cbx_prepare(self->warden, policy, &error);
        Py_END_ALLOW_THREADS;
        native_warden_leave(self);
        if (r < 0)
                return native_raise(r, &error);
        Py_RETURN_NONE;
}

/* JSON that the library has written. */
static PyObject *take_text(int r, char *json, const cbx_error *error)
{
        PyObject *text;

        if (r < 0)
                return native_raise(r, error);
        text = PyUnicode_FromString(json);
        free(json);
        return text;
}

static PyObject *capabilities(PyObject *object, PyObject *given)
{
        struct warden_object *self = (struct warden_object *)object;
        cbx_capability_list list = CBX_CAPABILITY_LIST_INIT;
        cbx_error error = CBX_ERROR_INIT;
        cbx_policy *policy;
        char *json = NULL;
        int r;

        if (!native_get_policy(given, &policy) || !native_warden_enter(self))
                return NULL;
        Py_BEGIN_ALLOW_THREADS;
        r = cbx_capabilities(self->warden, policy, &list, &error);
        if (r == 0)
                r = cbx_capabilities_print(&list, &json, &error);
        cbx_capabilities_free(&list);
        Py_END_ALLOW_THREADS;
        native_warden_leave(self);
        return take_text(r, json, &error);
}

static PyObject *backends(PyObject *object, PyObject *none)
{
        struct warden_object *self = (struct warden_object *)object;
        cbx_error error = CBX_ERROR_INIT;
        char *json = NULL;
        int r;

        (void)none;
        if (!native_warden_enter(self))
                return NULL;
        Py_BEGIN_ALLOW_THREADS;
        r = cbx_backends(self->warden, &json, &error);
        Py_END_ALLOW_THREADS;
        native_warden_leave(self);
        return take_text(r, json, &error);
}

static PyObject *start(PyObject *object, PyObject *args)
{
        struct warden_object *self = (struct warden_object *)object;
        struct spec_room room = { NULL, NULL };
        cbx_error error = CBX_ERROR_INIT;
        cbx_spec spec = CBX_SPEC_INIT;
        PyObject *given, *dict;
        cbx_policy *policy;
        cbx_call *call = NULL;
        PyThreadState *state;
        int r;

        if (!PyArg_ParseTuple(args, "OO", &given, &dict) || !native_get_policy(given, &policy) ||
            !native_read_spec(dict, &spec, &room))
                return NULL;
        if (!native_warden_enter(self)) {
                native_free_spec(&room);
                return NULL;
        }
        state = native_let_others(spec.input_length);
        r = cbx_start(self->warden, policy, &spec, &call, &error);
        native_go_on(state);
        native_warden_leave(self);
        native_free_spec(&room);
        return r < 0 ? native_raise(r, &error) : native_new_call(call);
}

static PyMethodDef methods[] = {
        { "pid", get_pid, METH_NOARGS, "The process id of the warden." },
        { "prepare", prepare, METH_O, "Get boxes ready for a policy." },
        { "capabilities", capabilities, METH_O, "What a policy has here, as JSON." },
        { "backends", backends, METH_NOARGS, "What boxes can be made of here, as JSON." },
        { "start", start, METH_VARARGS, "start(policy, spec) -> Call" },
        { "close", close_it, METH_NOARGS, "End every call and the connection." },
        { NULL, NULL, 0, NULL },
};

static PyType_Slot slots[] = {
        { Py_tp_init, (void *)init },
        { Py_tp_dealloc, (void *)dealloc },
        { Py_tp_methods, methods },
        { 0, NULL },
};

PyType_Spec native_warden_spec = { "callbox._callbox.Warden", sizeof(struct warden_object), 0,
                                   Py_TPFLAGS_DEFAULT, slots };
