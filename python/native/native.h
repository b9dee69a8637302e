/* SPDX-License-Identifier: MIT */
/*
 * _callbox: libcallbox for Python, and nothing more. What is convenient is written in Python on top
 * of it (callbox/).
 *
 *   module.c    the module, errors, what the types share
 *   policy.c    Policy: read, print, hash
 *   warden.c    Warden: a connection, and calls that are started by it
 *   spec.c      a dict becomes a cbx_spec
 *   call.c      Call: descriptor, events, end, kill
 *   report.c    Report: what came of a call
 *   toolbox.c   Toolbox: tools, and their calls
 *   measure.c   how much a text of JSON asks for
 *
 * The module is built for the stable ABI of Python 3.9. Whatever may take time is done without the
 * interpreter's lock: then other threads run, and could reach for the same object. So a Call is
 * marked while it is in use, and a Warden is closed by the last who uses it. What takes
 * microseconds is done with it: where another thread computes, to get it back takes milliseconds,
 * for each of a loop's many calls.
 *
 * All of it belongs to the process that made it. A forked child has copies of sockets that are not
 * its own: to end a call there would end the parent's, so the child lets everything lie.
 */
#ifndef NATIVE_H
#define NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <callbox.h>
#include <stdbool.h>
#include <sys/types.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Raise CallboxError. Returns NULL. */
PyObject *native_raise(int code, const cbx_error *error);
/* Did a fork lie between? Then raise. */
bool native_is_foreign(pid_t owner);
/* Let other threads run while so many bytes are worked on, if they are many. */
PyThreadState *native_let_others(size_t bytes);
void native_go_on(PyThreadState *state);

/* ---- Policies ---- */

struct policy_object {
        PyObject_HEAD cbx_policy *policy;
};

extern PyTypeObject *native_policy_type;
/* The policy of an object, NULL of None; false: raised. */
bool native_get_policy(PyObject *object, cbx_policy **ret);

/* ---- Wardens ---- */

struct warden_object {
        PyObject_HEAD cbx_warden *warden;
        pid_t owner;
        unsigned users; /* under way without the lock */
        bool closed;
};

extern PyTypeObject *native_warden_type;
/* Use it, and have done so; false: it is closed, raised. */
bool native_warden_enter(struct warden_object *self);
void native_warden_leave(struct warden_object *self);

/* ---- Specs ---- */

/* What a spec points to; the dict it is read from owns the rest. */
struct spec_room {
        const char **argv, **environment;
};

bool native_read_spec(PyObject *dict, cbx_spec *spec, struct spec_room *room);
void native_free_spec(struct spec_room *room);

/* ---- Calls ---- */

/* Takes the call. */
PyObject *native_new_call(cbx_call *call);

/* ---- Reports ---- */

/* As a tuple. Takes the report. */
PyObject *native_read_report(cbx_report *report);

/* ---- JSON ---- */

/* What is in it, by one look at each byte. */
PyObject *native_measure(PyObject *module, PyObject *args);

/* ---- Types ---- */

extern PyType_Spec native_policy_spec, native_warden_spec, native_call_spec, native_report_spec,
        native_toolbox_spec;
extern PyTypeObject *native_call_type, *native_report_type, *native_toolbox_type;

#endif
