/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native.h"

struct toolbox_object {
        PyObject_HEAD cbx_toolbox *toolbox;
        struct warden_object *warden; /* which the toolbox needs as long as it is used */
};

/* Both must be there. */
static bool enter(struct toolbox_object *self)
{
        if (!self->toolbox) {
                PyErr_SetString(PyExc_ValueError, "the toolbox was never opened");
                return false;
        }
        return native_warden_enter(self->warden);
}

static int init(PyObject *object, PyObject *args, PyObject *keywords)
{
        static const char *const words[] = { "warden", "policy", "policies", "calls",
                                             "server", "python", NULL };
        struct toolbox_object *self = (struct toolbox_object *)object;
        cbx_toolbox_options options = CBX_TOOLBOX_OPTIONS_INIT;
        cbx_error error = CBX_ERROR_INIT;
        PyObject *warden, *policy = Py_None;
        int r;

        if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!|OzIzz", (char **)words,
                                         native_warden_type, &warden, &policy, &options.policies,
                                         &options.calls, &options.server, &options.python) ||
            !native_get_policy(policy, &options.policy))
                return -1;
        if (self->toolbox) {
                PyErr_SetString(PyExc_ValueError, "the toolbox is open already");
                return -1;
        }
        if (!native_warden_enter((struct warden_object *)warden))
                return -1;
        r = cbx_toolbox_open(((struct warden_object *)warden)->warden, &options, &self->toolbox,
                             &error);
        native_warden_leave((struct warden_object *)warden);
        if (r < 0) {
                native_raise(r, &error);
                return -1;
        }
        Py_INCREF(warden);
        self->warden = (struct warden_object *)warden;
        return 0;
}

static void dealloc(PyObject *object)
{
        struct toolbox_object *self = (struct toolbox_object *)object;
        PyTypeObject *type = Py_TYPE(object);

        if (self->warden && self->warden->owner == getpid())
                cbx_toolbox_close(self->toolbox);
        Py_XDECREF((PyObject *)self->warden);
        PyObject_Free(object);
        Py_DECREF(type);
}

/* ---- Tools ---- */

/* Both add by a text: a manifest, which may have a policy beside it, or the directory of some. */
static PyObject *add_text(PyObject *object, PyObject *args, bool directory)
{
        struct toolbox_object *self = (struct toolbox_object *)object;
        cbx_error error = CBX_ERROR_INIT;
        PyObject *given = Py_None;
        cbx_policy *policy;
        const char *text;
        Py_ssize_t length;
        int r;

        if (!PyArg_ParseTuple(args, "s#|O", &text, &length, &given) ||
            !native_get_policy(given, &policy) || !enter(self))
                return NULL;
        Py_BEGIN_ALLOW_THREADS;
        r = directory ? cbx_toolbox_load(self->toolbox, text, &error)
                      : cbx_toolbox_add_with(self->toolbox, text, (size_t)length, policy, &error);
        Py_END_ALLOW_THREADS;
        native_warden_leave(self->warden);
        if (r < 0)
                return native_raise(r, &error);
        Py_RETURN_NONE;
}

static PyObject *add(PyObject *object, PyObject *args)
{
        return add_text(object, args, false);
}

static PyObject *load(PyObject *object, PyObject *args)
{
        return add_text(object, args, true);
}

static PyObject *remove_tool(PyObject *object, PyObject *args)
{
        struct toolbox_object *self = (struct toolbox_object *)object;
        cbx_error error = CBX_ERROR_INIT;
        const char *name;
        int r;

        if (!PyArg_ParseTuple(args, "s", &name) || !enter(self))
                return NULL;
        r = cbx_toolbox_remove(self->toolbox, name, &error);
        native_warden_leave(self->warden);
        if (r == -ENOENT)
                Py_RETURN_FALSE;
        if (r < 0)
                return native_raise(r, &error);
        Py_RETURN_TRUE;
}

static PyObject *list(PyObject *object, PyObject *args)
{
        struct toolbox_object *self = (struct toolbox_object *)object;
        cbx_error error = CBX_ERROR_INIT;
        const char *query = NULL;
        PyObject *text;
        char *json;
        int r;

        if (!PyArg_ParseTuple(args, "|z", &query) || !enter(self))
                return NULL;
        r = cbx_toolbox_list(self->toolbox, query, &json, &error);
        native_warden_leave(self->warden);
        if (r < 0)
                return native_raise(r, &error);
        text = PyUnicode_FromString(json);
        free(json);
        return text;
}

/* ---- Calls ---- */

static PyObject *start(PyObject *object, PyObject *args)
{
        struct toolbox_object *self = (struct toolbox_object *)object;
        struct spec_room room = { NULL, NULL };
        cbx_error error = CBX_ERROR_INIT;
        cbx_spec spec = CBX_SPEC_INIT;
        const char *name, *arguments;
        cbx_call *call = NULL;
        PyThreadState *state;
        PyObject *dict;
        int r;

        if (!PyArg_ParseTuple(args, "ssO", &name, &arguments, &dict) ||
            !native_read_spec(dict, &spec, &room))
                return NULL;
        if (!enter(self)) {
                native_free_spec(&room);
                return NULL;
        }
        state = native_let_others(strlen(arguments));
        r = cbx_toolbox_start(self->toolbox, name, arguments, &spec, &call, &error);
        native_go_on(state);
        native_warden_leave(self->warden);
        native_free_spec(&room);
        return r < 0 ? native_raise(r, &error) : native_new_call(call);
}

/* ---- Changes ---- */

static PyObject *get_fileno(PyObject *object, PyObject *none)
{
        struct toolbox_object *self = (struct toolbox_object *)object;
        int fd;

        (void)none;
        if (!enter(self))
                return NULL;
        fd = cbx_toolbox_fd(self->toolbox);
        native_warden_leave(self->warden);
        return PyLong_FromLong(fd);
}

/* The text of an event is good until the next one, so the lock is kept: another thread could ask.
 */
static PyObject *step(PyObject *object, PyObject *none)
{
        static const char *const kinds[] = { "", "added", "removed", "updated", "broken" };
        struct toolbox_object *self = (struct toolbox_object *)object;
        cbx_tool_event event = CBX_TOOL_EVENT_INIT;
        cbx_error error = CBX_ERROR_INIT;
        PyObject *result;
        int r;

        (void)none;
        if (!enter(self))
                return NULL;
        r = cbx_toolbox_step(self->toolbox, &event, &error);
        if (r < 0) {
                result = native_raise(r, &error);
        } else if (event.kind == CBX_TOOL_NONE || event.kind >= (int)COUNT_OF(kinds)) {
                Py_INCREF(Py_None);
                result = Py_None;
        } else {
                result = Py_BuildValue("szzz", kinds[event.kind], event.tool, event.file,
                                       event.text);
        }
        native_warden_leave(self->warden);
        return result;
}

static PyMethodDef methods[] = {
        { "add", add, METH_VARARGS, "Add a manifest." },
        { "load", load, METH_VARARGS, "Add the manifests of a directory, and follow it." },
        { "remove", remove_tool, METH_VARARGS, "Take a tool out; whether there was one." },
        { "list", list, METH_VARARGS, "list(query) -> JSON" },
        { "start", start, METH_VARARGS, "start(name, arguments, spec) -> Call" },
        { "fileno", get_fileno, METH_NOARGS, "Readable when step() has something to tell." },
        { "step", step, METH_NOARGS, "(kind, tool, file, text) of the next change, or None." },
        { NULL, NULL, 0, NULL },
};

static PyType_Slot slots[] = {
        { Py_tp_init, (void *)init },
        { Py_tp_dealloc, (void *)dealloc },
        { Py_tp_methods, methods },
        { 0, NULL },
};

PyType_Spec native_toolbox_spec = { "callbox._callbox.Toolbox", sizeof(struct toolbox_object), 0,
                                    Py_TPFLAGS_DEFAULT, slots };
