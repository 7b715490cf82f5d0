/*
 * await_slots.h - steps of an awaitable type of the binding without an exception for each result.
 *
 * An `await` on what is no coroutine asks for its next value until StopIteration is raised, which
 * carries the result. Cython raises that through every function on the way and makes a frame for
 * each. penstock_await_slots() puts functions into the type that pass the result on directly: by
 * the slot am_send, and where the interpreter does not use that (Python 3.12 or later, for `await`)
 * by a StopIteration that is made here.
 *
 *     penstock_await_slots(type, step);
 *
 * `step` stores a result and returns PYGEN_RETURN, stores what the task is to wait for and returns
 * PYGEN_NEXT, or returns PYGEN_ERROR with an exception set.
 *
 * Locks. With the GIL.
 */
#ifndef PENSTOCK_AWAIT_SLOTS_H
#define PENSTOCK_AWAIT_SLOTS_H

#include <Python.h>

typedef int (*penstock_step)(PyObject *call, PyObject *value, PyObject **out);

static penstock_step penstock_call_step;

static PySendResult penstock_call_send(PyObject *call, PyObject *value, PyObject **out)
{
    *out = NULL;
    return (PySendResult)penstock_call_step(call, value, out);
}

/* What StopIteration would unpack is wrapped, as the interpreter does for its own coroutines. */
static void penstock_stop_iteration(PyObject *result)
{
    if (result == Py_None) {
        PyErr_SetNone(PyExc_StopIteration);
    } else if (PyTuple_Check(result) || PyExceptionInstance_Check(result)) {
        PyObject *error = PyObject_CallOneArg(PyExc_StopIteration, result);
        if (error != NULL) {
            PyErr_SetObject(PyExc_StopIteration, error);
            Py_DECREF(error);
        }
    } else {
        PyErr_SetObject(PyExc_StopIteration, result);
    }
}

static PyObject *penstock_call_next(PyObject *call)
{
    PyObject *result = NULL;
    if (penstock_call_step(call, Py_None, &result) == PYGEN_RETURN) {
        penstock_stop_iteration(result);
        Py_DECREF(result);
        return NULL;
    }
    return result;
}

static inline void penstock_await_slots(PyObject *awaitable, penstock_step step)
{
    PyTypeObject *type = (PyTypeObject *)awaitable;
    penstock_call_step = step;
    type->tp_as_async->am_send = penstock_call_send;
    type->tp_iternext = penstock_call_next;
    PyType_Modified(type);
}

#endif
