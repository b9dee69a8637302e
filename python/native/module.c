/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <unistd.h>

#include "native.h"

PyTypeObject *native_policy_type, *native_warden_type, *native_call_type, *native_report_type,
        *native_toolbox_type;

/* callbox._error.CallboxError(text, where, hint, code) */
static PyObject *error_class;

PyObject *native_raise(int code, const cbx_error *error)
{
        const char *text = error->text[0] ? error->text : strerror(-code);
        PyObject *value;

        if (code == -ENOMEM)
                return PyErr_NoMemory();
        value = PyObject_CallFunction(error_class, "sssi", text, error->where, error->hint, -code);
        if (value)
                PyErr_SetObject(error_class, value);
        Py_XDECREF(value);
        return NULL;
}

bool native_is_foreign(pid_t owner)
{
        if (owner == getpid())
                return false;
        PyErr_SetString(PyExc_RuntimeError,
                        "this belongs to the process before the fork; open it anew in the child");
        return true;
}

/* Not fewer than what an event loop leaves to another thread (LARGE of _arguments.py): who lets go
 * of the interpreter's lock while another thread computes gets it back some milliseconds later. */
#define MANY_BYTES ((size_t)128 * 1024)

PyThreadState *native_let_others(size_t bytes)
{
        return bytes > MANY_BYTES ? PyEval_SaveThread() : NULL;
}

void native_go_on(PyThreadState *state)
{
        if (state)
                PyEval_RestoreThread(state);
}

static PyObject *version(PyObject *module, PyObject *none)
{
        (void)module;
        (void)none;
        return PyUnicode_FromString(cbx_version());
}

static PyMethodDef functions[] = {
        { "version", version, METH_NOARGS, "The version of libcallbox." },
        { "measure", native_measure, METH_VARARGS, "measure(JSON) -> (values, depth, digits)" },
        { NULL, NULL, 0, NULL },
};

static struct PyModuleDef definition = {
        PyModuleDef_HEAD_INIT, "_callbox", "libcallbox.", -1, functions, NULL, NULL, NULL, NULL,
};

static bool add_type(PyObject *module, const char *name, PyType_Spec *spec, PyTypeObject **type)
{
        *type = (PyTypeObject *)PyType_FromSpec(spec);
        if (!*type)
                return false;
        Py_INCREF(*type); /* one for the module, one for us */
        return PyModule_AddObject(module, name, (PyObject *)*type) == 0;
}

PyMODINIT_FUNC PyInit__callbox(void);

PyMODINIT_FUNC PyInit__callbox(void)
{
        static const struct constant {
                const char *name;
                long value;
        } constants[] = {
                { "CAPTURE", CBX_CAPTURE },
                { "EVENTS", CBX_EVENTS },
                { "TO_FD", CBX_TO_FD },
                { "DISCARD", CBX_DISCARD },
                { "NO_RESULT", CBX_NO_RESULT },
                { "RESULT", CBX_RESULT },
                { "RESULT_EVENTS", CBX_RESULT_EVENTS },
                { "EVENT_OUTPUT", CBX_EVENT_OUTPUT },
                { "EVENT_ERRORS", CBX_EVENT_ERRORS },
                { "EVENT_ENDED", CBX_EVENT_ENDED },
                { "EVENT_RESULT", CBX_EVENT_RESULT },
                { "EVENT_PROGRESS", CBX_EVENT_PROGRESS },
                { "EVENT_LOG", CBX_EVENT_LOG },
        };
        PyObject *errors = PyImport_ImportModule("callbox._error"), *module;
        bool good;

        if (!errors)
                return NULL;
        error_class = PyObject_GetAttrString(errors, "CallboxError");
        Py_DECREF(errors);
        module = error_class ? PyModule_Create(&definition) : NULL;
        if (!module)
                return NULL;
        good = add_type(module, "Policy", &native_policy_spec, &native_policy_type) &&
               add_type(module, "Warden", &native_warden_spec, &native_warden_type) &&
               add_type(module, "Call", &native_call_spec, &native_call_type) &&
               add_type(module, "Report", &native_report_spec, &native_report_type) &&
               add_type(module, "Toolbox", &native_toolbox_spec, &native_toolbox_type);
        for (size_t i = 0; good && i < COUNT_OF(constants); i++)
                good = PyModule_AddIntConstant(module, constants[i].name, constants[i].value) == 0;
        if (!good) {
                Py_DECREF(module);
                return NULL;
        }
        return module;
}
