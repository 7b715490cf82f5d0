# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic, cdivision=True
# _engine.pyx - the binding: one extension module over the core (csrc/include/penstock/engine.h), no policy.
#
# Terms
#   connection  one attachment of this process to a queue manager's directory (Connection).
#   handle      an open queue (QueueHandle); put and get are its methods.
#   unit        a unit of work (Unit) of one thread or asyncio task of a connection.
#
# Invariants
#   1. A handle and a unit keep their connection alive; closing the connection ends its units and
#      closes its handles first. Nothing is detached while something of it is in use.
#   2. `busy` counts the calls of an object that are inside the core. It changes with the GIL held.
#      Whoever closes an object first sets `closed`, then waits for busy == 0, then frees it.
#   3. Between the removal of a message and the return of get() no Python code runs: message object
#      and body are allocated before, signals are looked at before (crash-safety rule 34).
#   4. Objects made before a fork do nothing in the child but refuse (rule 32).
#
# Included: status (codes to exceptions), message (what get and put return), buffer (bodies and ids
# in), structure (the MQI's structures), prepared (units and their names), connection, unit,
# queue, descriptor and transmit (MQ's descriptor and transmission header), mqi (the verbs),
# batch, batch_memory, batch_quick and arrow (many messages a call), scan (a segment of the journal
# as a table). One module, because the core's process-wide state must exist once.

cimport cython
from cpython.buffer cimport PyBUF_FORMAT, PyBUF_ND, PyBUF_READ, PyBUF_SIMPLE, PyBUF_WRITABLE
from cpython.buffer cimport PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize
from cpython.bytes cimport PyBytes_GET_SIZE
from cpython.contextvars cimport PyContextVar_New, PyContextVar_Reset, PyContextVar_Set
from cpython.contextvars cimport get_value as context_value
from cpython.dict cimport PyDict_GetItem, PyDict_SetItem
from cpython.exc cimport PyErr_CheckSignals, PyErr_Clear
from cpython.list cimport PyList_GET_SIZE
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.memoryview cimport PyMemoryView_FromMemory, PyMemoryView_GET_BUFFER
from cpython.object cimport PyObject, PyTypeObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.pystate cimport PyThreadState_GetDict
from cpython.sequence cimport PySequence_Fast_ITEMS
from cpython.tuple cimport PyTuple_GET_SIZE
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset, strlen

from mqe cimport *

import sys
from weakref import WeakKeyDictionary, WeakSet

from penstock.errors import (
    ClosedHandle, InvalidType, InvalidValue, MQError, UnknownXid, XidInUse, error_for,
)

cdef extern from "gil.h" nogil:
    struct penstock_gil:
        void *saved
    void penstock_gil_arm(penstock_gil *gil)
    void penstock_gil_begin_long(penstock_gil *gil)
    void penstock_gil_take(penstock_gil *gil)
    unsigned penstock_forks
    int penstock_watch_forks()
    int64_t penstock_now_us()
    uint64_t penstock_wall_us()
    void penstock_pause()

cdef extern from "string.h" nogil:
    size_t strnlen(const char *text, size_t most)

cdef extern from "Python.h":
    void Py_SET_SIZE(PyObject *object, Py_ssize_t size)
    PyObject *PyBytes_New "PyBytes_FromStringAndSize"(const char *data, Py_ssize_t size)
    void Py_DECREF(PyObject *object)
    int PyErr_ResourceWarning(PyObject *source, Py_ssize_t level, const char *format, ...)
    void PyErr_WriteUnraisable(object source)

cdef enum:
    LONG_COPY = 16384         # a body above this is copied without the GIL
    WAIT_SLICE_US = 1000000   # a wait looks at signals and at close() this often
    MAX_BODY = 104857600      # MQX_MAX_BODY: the largest MAXMSGL
    FIRST_HINT = 256          # expected body size of a handle that has seen none
    FORCED_PAUSES = 6000      # x 0.5 ms: how long an exiting interpreter waits for daemon threads

cdef enum:                    # the reason codes that the binding itself gives
    RC_BACKED_OUT = 2003
    RC_BUFFER_ERROR = 2004
    RC_BUFFER_LENGTH_ERROR = 2005
    RC_CONNECTION_BROKEN = 2009
    RC_ENVIRONMENT_ERROR = 2012
    RC_EXPIRY_ERROR = 2013
    RC_FEEDBACK_ERROR = 2014
    RC_HCONN_ERROR = 2018
    RC_HOBJ_ERROR = 2019
    RC_MD_ERROR = 2026
    RC_MISSING_REPLY_TO_Q = 2027
    RC_MSG_TYPE_ERROR = 2029
    RC_NO_MSG_AVAILABLE = 2033
    RC_NOT_OPEN_FOR_BROWSE = 2036
    RC_NOT_OPEN_FOR_INPUT = 2037
    RC_NOT_OPEN_FOR_OUTPUT = 2039
    RC_OBJECT_CHANGED = 2041
    RC_OBJECT_TYPE_ERROR = 2043
    RC_OPTION_NOT_VALID_FOR_TYPE = 2045
    RC_OPTIONS_ERROR = 2046
    RC_PERSISTENCE_ERROR = 2047
    RC_PRIORITY_ERROR = 2050
    RC_PUT_INHIBITED = 2051
    RC_Q_NOT_EMPTY = 2055
    RC_REPORT_OPTIONS_ERROR = 2061
    RC_STORAGE_NOT_AVAILABLE = 2071
    RC_TRUNCATED_MSG_ACCEPTED = 2079
    RC_TRUNCATED_MSG_FAILED = 2080
    RC_UNKNOWN_OBJECT_NAME = 2085
    RC_WAIT_INTERVAL_ERROR = 2090
    RC_NOT_OPEN_FOR_PASS_ALL = 2093
    RC_NOT_OPEN_FOR_PASS_IDENT = 2094
    RC_NOT_OPEN_FOR_SET_ALL = 2095
    RC_NOT_OPEN_FOR_SET_IDENT = 2096
    RC_CONTEXT_HANDLE_ERROR = 2097
    RC_CONTEXT_NOT_AVAILABLE = 2098
    RC_UNKNOWN_REPORT_OPTION = 2104
    RC_UOW_IN_PROGRESS = 2128
    RC_OBJECT_NAME_ERROR = 2152
    RC_Q_MGR_QUIESCING = 2161
    RC_Q_MGR_STOPPING = 2162
    RC_PMO_ERROR = 2173
    RC_GMO_ERROR = 2186
    RC_UNEXPECTED_ERROR = 2195
    RC_MSG_ID_ERROR = 2206
    RC_CORREL_ID_ERROR = 2207
    RC_CALL_IN_PROGRESS = 2219
    RC_MATCH_OPTIONS_ERROR = 2247
    RC_MDE_ERROR = 2248
    RC_MSG_FLAGS_ERROR = 2249
    RC_MSG_SEQ_NUMBER_ERROR = 2250
    RC_OFFSET_ERROR = 2251
    RC_ORIGINAL_LENGTH_ERROR = 2252
    RC_UOW_NOT_AVAILABLE = 2255
    RC_WRONG_GMO_VERSION = 2256
    RC_WRONG_MD_VERSION = 2257
    RC_GROUP_ID_ERROR = 2258
    RC_XQH_ERROR = 2260
    RC_MSG_TOKEN_ERROR = 2331
    RC_SEGMENTATION_NOT_ALLOWED = 2443
    RC_HMSG_ERROR = 2460

if penstock_watch_forks() != 0:
    raise MemoryError("no memory to watch for forks")

include "status.pxi"
include "buffer.pxi"
include "message.pxi"
include "structure.pxi"
include "prepared.pxi"
include "unit.pxi"
include "attributes.pxi"
include "connection.pxi"
include "queue.pxi"
include "descriptor.pxi"
include "transmit.pxi"
include "mqi.pxi"
include "mqi_put.pxi"
include "mqi_get.pxi"
include "batch_memory.pxi"
include "batch.pxi"
include "batch_quick.pxi"
include "arrow.pxi"
include "arrow_table.pxi"
include "scan.pxi"
