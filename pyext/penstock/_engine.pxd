# _engine.pxd - the classes and structs of the module: one .pxd each, with their fields. Cython
# reads this file before _engine.pyx, so that every part knows every class, and no part depends on
# which parts are included before it. Here the order is that of inheritance alone.

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from constants cimport *
from engine cimport *

cdef class AsyncCall
cdef class AsyncQueueHandle
cdef class Attachment
cdef class Channel
cdef class Connection
cdef class Hconn
cdef class Hobj
cdef class Layout
cdef class QueueHandle
cdef class Structure
cdef class Unit
cdef class Waiting
cdef class Xid

include "client/attributes.pxd"
include "client/chain.pxd"
include "client/attachment.pxd"
include "client/objects.pxd"
include "client/connection.pxd"
include "client/unattached.pxd"
include "client/unit.pxd"
include "client/xid.pxd"
include "client/message.pxd"
include "client/queue_handle.pxd"
include "client/async_call.pxd"
include "mqi/fields.pxd"
include "mqi/variable_fields.pxd"
include "mqi/structure.pxd"
include "mqi/handles.pxd"
include "batch/rows.pxd"
include "batch/memory.pxd"
include "batch/arrays.pxd"
include "batch/put_direct.pxd"
include "batch/arrow.pxd"
include "journal/segment_scan.pxd"
