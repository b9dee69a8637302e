/* SPDX-License-Identifier: MIT */
/*
 * callbox._zygote: an interpreter that forks itself into boxes (box/fork.h). Loaded in a box, where
 * there is nothing of callbox but what is linked in here.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "box/fork.h"
#include "warden/forker.h"

static struct forker forker;

static PyObject *refuse(int code)
{
        errno = -code;
        return PyErr_SetFromErrno(PyExc_OSError);
}

static PyObject *zygote_open(PyObject *module, PyObject *arguments)
{
        int fd, r;

        (void)module;
        if (!PyArg_ParseTuple(arguments, "i", &fd))
                return NULL;
        r = forker_open(fd, &forker);
        if (r < 0)
                return refuse(r);
        Py_RETURN_NONE;
}

static PyObject *zygote_fork(PyObject *module, PyObject *unused)
{
        int r;

        (void)module;
        (void)unused;
        PyOS_BeforeFork();
        r = forker_serve(&forker);
        if (r == BOX_FORKED)
                PyOS_AfterFork_Child();
        else
                PyOS_AfterFork_Parent();
        return r < 0 ? refuse(r) : PyBool_FromLong(r == BOX_FORKED);
}

static PyObject *zygote_hurried(PyObject *module, PyObject *unused)
{
        (void)module;
        (void)unused;
        return PyBool_FromLong(forker.hurried);
}

static PyObject *zygote_retire(PyObject *module, PyObject *unused)
{
        int r = forker_retire(&forker);

        (void)module;
        (void)unused;
        if (r < 0)
                return refuse(r);
        Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
        { "open", zygote_open, METH_VARARGS, "Say on this socket that boxes can be forked." },
        { "fork", zygote_fork, METH_NOARGS,
          "Wait for someone who wants a box, and fork it: True in the box." },
        { "hurried", zygote_hurried, METH_NOARGS, "In a box: is it waited for?" },
        { "retire", zygote_retire, METH_NOARGS, "Ask for another zygote in the place of this." },
        { 0 },
};

static struct PyModuleDef definition = {
        PyModuleDef_HEAD_INIT,
        .m_name = "callbox._zygote",
        .m_doc = "An interpreter that forks itself into boxes.",
        .m_size = -1,
        .m_methods = functions,
};

PyMODINIT_FUNC PyInit__zygote(void);
PyMODINIT_FUNC PyInit__zygote(void)
{
        return PyModule_Create(&definition);
}
