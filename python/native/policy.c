/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "native.h"

static int init(PyObject *object, PyObject *args, PyObject *keywords)
{
        struct policy_object *self = (struct policy_object *)object;
        cbx_error error = CBX_ERROR_INIT;
        cbx_policy *policy = NULL;
        const char *text;
        Py_ssize_t length;
        int r;

        (void)keywords;
        if (!PyArg_ParseTuple(args, "s#", &text, &length))
                return -1;
        r = cbx_policy_parse(text, (size_t)length, &policy, &error);
        if (r < 0) {
                native_raise(r, &error);
                return -1;
        }
        cbx_policy_unref(self->policy);
        self->policy = policy;
        return 0;
}

static void dealloc(PyObject *object)
{
        struct policy_object *self = (struct policy_object *)object;
        PyTypeObject *type = Py_TYPE(object);

        cbx_policy_unref(self->policy);
        PyObject_Free(object);
        Py_DECREF(type);
}

static PyObject *print(PyObject *object, PyObject *none)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_policy *policy;
        PyObject *text;
        char *printed;
        int r;

        (void)none;
        if (!native_get_policy(object, &policy))
                return NULL;
        r = cbx_policy_print(policy, &printed, &error);
        if (r < 0)
                return native_raise(r, &error);
        text = PyUnicode_FromString(printed);
        free(printed);
        return text;
}

/* Another policy, in which one value is another. What its paths led to is taken over. */
static PyObject *changed(PyObject *object, PyObject *args)
{
        cbx_error error = CBX_ERROR_INIT;
        struct policy_object *made;
        const char *path, *json;
        cbx_policy *policy;
        int r;

        if (!PyArg_ParseTuple(args, "ss", &path, &json) || !native_get_policy(object, &policy))
                return NULL;
        policy = cbx_policy_ref(policy);
        r = cbx_policy_set(&policy, path, json, &error);
        if (r < 0) {
                cbx_policy_unref(policy);
                return native_raise(r, &error);
        }
        made = PyObject_New(struct policy_object, native_policy_type);
        if (!made) {
                cbx_policy_unref(policy);
                return NULL;
        }
        made->policy = policy;
        return (PyObject *)made;
}

static PyObject *hash(PyObject *object, PyObject *none)
{
        cbx_policy *policy;

        (void)none;
        if (!native_get_policy(object, &policy))
                return NULL;
        return PyLong_FromUnsignedLongLong(cbx_policy_hash(policy));
}

bool native_get_policy(PyObject *object, cbx_policy **ret)
{
        if (object == Py_None) {
                *ret = NULL;
                return true;
        }
        if (!PyObject_TypeCheck(object, native_policy_type)) {
                PyErr_SetString(PyExc_TypeError, "a policy must be a Policy or None");
                return false;
        }
        *ret = ((struct policy_object *)object)->policy;
        if (!*ret)
                PyErr_SetString(PyExc_ValueError, "the policy was never read");
        return *ret;
}

static PyMethodDef methods[] = {
        { "print", print, METH_NOARGS, "The effective policy as JSON." },
        { "changed", changed, METH_VARARGS, "Another policy, with a value of its JSON changed." },
        { "hash", hash, METH_NOARGS, "Equal for policies that mean the same." },
        { NULL, NULL, 0, NULL },
};

static PyType_Slot slots[] = {
        { Py_tp_init, (void *)init },
        { Py_tp_dealloc, (void *)dealloc },
        { Py_tp_methods, methods },
        { 0, NULL },
};

PyType_Spec native_policy_spec = { "callbox._callbox.Policy", sizeof(struct policy_object), 0,
                                   Py_TPFLAGS_DEFAULT, slots };
