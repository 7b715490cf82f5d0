# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic, cdivision=True
# _engine.pyx - the binding: one extension module over the core, without policy.
#
# Terms
#   connection  one attachment of this process to a queue manager's directory (Connection).
#   handle      an open queue (QueueHandle); put and get are its methods.
#   unit        a unit of work (Unit) of a connection: of one thread or asyncio task, or held.
#
# Invariants
#   1. A handle and a unit keep their connection alive; closing the connection ends its units and
#      closes its handles first. Nothing is detached while a call that uses it is inside the core.
#   2. `busy` counts the calls of an object that are inside the core. It changes with the GIL held.
#      A close sets `closed` first, then waits for busy == 0, then frees. A call looks at `closed`
#      behind its last call into Python, in the hold of the GIL in which it becomes busy
#      (client/core_call.pyx).
#   3. Between the removal of a message and the return of get() no Python code runs: message object
#      and body are allocated before, signals are handled before (crash-safety rule 34).
#   4. Objects made before a fork refuse every call in the child (rule 32).
#   5. The binding imports nothing of the package: what it calls upward, the package registers once
#      (client/registration.pyx).
#
# Errors. The core returns reason codes; client/errors.pyx alone makes exceptions of them. The verbs
# of mqi/ return the codes instead.
#
# Layout. One module, because the core's process-wide state must exist once. _engine.pxd has the
# classes with their fields, engine.pxd the declarations of the core, constants.pxd every number.
# The parts below may be included in any order (tests/ext/test_layout.py): they have
# definitions only, and no statement of one uses another when the module is imported.

cimport cython
from cpython.buffer cimport PyBUF_FORMAT, PyBUF_ND, PyBUF_READ, PyBUF_SIMPLE, PyBUF_WRITABLE
from cpython.buffer cimport PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize
from cpython.bytes cimport PyBytes_GET_SIZE
from cpython.contextvars cimport PyContextVar_New, PyContextVar_Reset, PyContextVar_Set
from cpython.contextvars cimport get_value as context_value
from cpython.dict cimport PyDict_GetItem, PyDict_SetItem
from cpython.exc cimport PyErr_CheckSignals, PyErr_Clear, PyErr_SetInterrupt
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_AsDouble
from cpython.list cimport PyList_GET_SIZE
from cpython.long cimport PyLong_AsLongAndOverflow, PyLong_AsLongLongAndOverflow
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from cpython.memoryview cimport PyMemoryView_FromMemory, PyMemoryView_GET_BUFFER
from cpython.object cimport PyObject, PyTypeObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.pystate cimport PyThreadState_GetDict
from cpython.sequence cimport PySequence_Fast_ITEMS
from cpython.tuple cimport PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeUTF8
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy, memset

from constants cimport *
from engine cimport *

import sys
from weakref import WeakKeyDictionary, WeakSet

cdef extern from "gil.h" nogil:
    struct penstock_gil:
        void *saved
    void penstock_gil_arm(penstock_gil *gil)
    void penstock_gil_take(penstock_gil *gil)
    void penstock_gil_arm_call(penstock_gil *gil, int long_copy)
    void penstock_gil_begin_call(penstock_gil *gil)
    void penstock_gil_take_call(penstock_gil *gil)
    unsigned penstock_forks
    int penstock_watch_forks()
    void penstock_allow_spins()
    void penstock_at_once_set(int yes)
    int penstock_is_at_once()
    int64_t penstock_now_us()
    uint64_t penstock_wall_us()
    void penstock_pause()

cdef extern from "await_slots.h":
    void penstock_await_slots(
        object type, int (*step)(PyObject *, PyObject *, PyObject **) except -1
    )

cdef extern from "string.h" nogil:
    size_t strnlen(const char *text, size_t most)

cdef extern from "Python.h":
    void Py_SET_SIZE(PyObject *object, Py_ssize_t size)
    PyObject *PyBytes_New "PyBytes_FromStringAndSize"(const char *data, Py_ssize_t size)
    const Py_ssize_t PY_SSIZE_T_MAX
    void Py_DECREF(PyObject *object)
    void take_reference "Py_INCREF" (PyObject *object)
    const int PYGEN_RETURN
    int PyIter_Send(object iterator, object value, PyObject **out) except -1
    int PyErr_ResourceWarning(PyObject *source, Py_ssize_t level, const char *format, ...)
    void PyErr_WriteUnraisable(object source)
    unsigned long PyThread_get_thread_ident()
    int Py_AddPendingCall(int (*function)(void *) except -1, void *argument)

if penstock_watch_forks() != 0:
    raise MemoryError("no memory for the handler of forks")
penstock_allow_spins()
penstock_await_slots(AsyncCall, call_step)

include "client/arguments.pyx"
include "client/async_call.pyx"
include "client/attachment.pyx"
include "client/attributes.pyx"
include "client/chain.pyx"
include "client/connection.pyx"
include "client/core_call.pyx"
include "client/delay.pyx"
include "client/errors.pyx"
include "client/expiry.pyx"
include "client/get.pyx"
include "client/message.pyx"
include "client/objects.pyx"
include "client/performance.pyx"
include "client/prepared.pyx"
include "client/put.pyx"
include "client/queue_handle.pyx"
include "client/registration.pyx"
include "client/report.pyx"
include "client/route.pyx"
include "client/settings.pyx"
include "client/stream.pyx"
include "client/trigger.pyx"
include "client/unattached.pyx"
include "client/unit.pyx"
include "client/unit_choice.pyx"
include "client/unit_group.pyx"
include "client/xid.pyx"
include "mqi/calls.pyx"
include "mqi/characters.pyx"
include "mqi/convert.pyx"
include "mqi/fields.pyx"
include "mqi/get.pyx"
include "mqi/handles.pyx"
include "mqi/md_input.pyx"
include "mqi/md_output.pyx"
include "mqi/open_close.pyx"
include "mqi/put.pyx"
include "mqi/put_checks.pyx"
include "mqi/put_context.pyx"
include "mqi/put_time.pyx"
include "mqi/structure.pyx"
include "mqi/transmit.pyx"
include "mqi/variable_fields.pyx"
include "batch/arrays.pyx"
include "batch/arrow_columns.pyx"
include "batch/arrow_export.pyx"
include "batch/arrow_import.pyx"
include "batch/arrow_memory.pyx"
include "batch/browse.pyx"
include "batch/get.pyx"
include "batch/memory.pyx"
include "batch/put.pyx"
include "batch/put_direct.pyx"
include "batch/rows.pyx"
include "batch/transmit.pyx"
include "journal/segment_scan.pyx"
