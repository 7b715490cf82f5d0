# put_direct.pyx - put_batch() as programs call it most, in one call of the binding and without
# NumPy: no fields, bodies from a list or tuple of bytes, from a buffer with int64 offsets, or from
# a MessageBatch.
#
# Invariants
#   1. What a put does not cover returns None before anything was done: penstock.batch goes on, and
#      says what is wrong with a source.
#   2. Bodies and offsets stay as they are until the call is over: offsets are copied, bodies are
#      gathered or their buffer is held.
#
# Errors. As batch/put.pyx.


cdef class QuickPut:
    """Rows of the result, and bodies and offsets that stay as they are until the call is over."""

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)

    cdef int begin(self, Py_ssize_t count, Py_ssize_t room) except -1:
        """Memory for the rows, the offsets and `room` bytes of bodies."""
        self.rows = new_memory(0, count, 0)
        self.own = new_memory(count + 1, 0, room)
        self.batch.items = self.rows.rows
        self.batch.capacity = self.batch.count = <uint32_t>count
        self.batch.offsets = self.own.offsets
        self.batch.bodies = self.own.bodies
        self.batch.body_capacity = <uint64_t>room
        return 0

    cdef int gather(self, PyObject **item, Py_ssize_t count) except -1:
        """Copies bytes objects; False when something else is among them. No Python code runs
        here: nothing that is allocated is tracked by the collector.
        """
        cdef Py_ssize_t total = 0, i
        cdef unsigned char *to
        if not 0 < count <= DIRECT_ROWS_MAX:
            return False
        for i in range(count):
            if not PyBytes_CheckExact(<object>item[i]):
                return False
            total += PyBytes_GET_SIZE(<object>item[i])
        self.begin(count, total)
        to = self.own.bodies
        total = 0
        for i in range(count):
            self.own.offsets[i] = total
            memcpy(to + total, PyBytes_AS_STRING(<object>item[i]),
                   PyBytes_GET_SIZE(<object>item[i]))
            total += PyBytes_GET_SIZE(<object>item[i])
        self.own.offsets[count] = total
        return True

    cdef int accept_pair(self, object buffer, object offsets) except -1:
        """A buffer and int64 offsets; False when they are anything else or do not fit together."""
        cdef Py_buffer given
        cdef Py_ssize_t count
        if type(offsets) is not batch_array_type and type(offsets) is not memoryview:
            return False
        try:
            PyObject_GetBuffer(buffer, &self.view, PyBUF_SIMPLE)
            self.held = True
            PyObject_GetBuffer(offsets, &given, PyBUF_ND | PyBUF_FORMAT)
        except (BufferError, TypeError, ValueError):
            return False
        try:
            count = given.len // <Py_ssize_t>sizeof(int64_t) - 1
            if given.ndim != 1 or not is_int64(given.format) or not 0 < count <= DIRECT_ROWS_MAX:
                return False
            self.begin(count, 0)
            memcpy(self.own.offsets, given.buf, given.len)
        finally:
            PyBuffer_Release(&given)
        self.batch.bodies = <unsigned char *>self.view.buf
        self.batch.body_capacity = <uint64_t>self.view.len
        return True

    cdef int accept_batch(self, BatchArrays source) except -1:
        """A MessageBatch whose arrays have not been replaced; False for others."""
        cdef BatchMemory memory = source.memory
        cdef Py_ssize_t count = source.row_count
        if memory is None or not 0 < count <= DIRECT_ROWS_MAX:
            return False
        self.begin(count, 0)
        memcpy(self.own.offsets, memory.offsets, (count + 1) * sizeof(int64_t))
        memcpy(self.rows.rows, memory.rows, count * sizeof(mqe_item))
        PyObject_GetBuffer(memory, &self.view, PyBUF_SIMPLE)
        self.held = True
        self.batch.bodies = memory.bodies
        self.batch.body_capacity = <uint64_t>source.body_bytes
        self.again = True
        return True


cdef inline bint is_int64(const char *format) noexcept:
    return (format is not NULL and (format[0] == c'l' or format[0] == c'q') and format[1] == 0
            and sizeof(long) == 8)


cdef bint accept_source(QuickPut put, object source) except -1:
    """Whether the source is one for a direct put; then its bodies are in `put`."""
    require_batch_classes()
    if type(source) is list:
        return put.gather(PySequence_Fast_ITEMS(source), PyList_GET_SIZE(source))
    if type(source) is tuple:
        if PyTuple_GET_SIZE(source) == 2 and put.accept_pair(source[0], source[1]):
            return True
        return put.gather(PySequence_Fast_ITEMS(source), PyTuple_GET_SIZE(source))
    if type(source) is batch_type:
        return put.accept_batch(source)
    return False


cdef uint32_t unknown_reports(mqe_batch *batch) noexcept:
    """Warns of report options that are not known, in rows that had them before; how many."""
    cdef uint32_t count = 0, i
    for i in range(batch.capacity):
        if batch.items[i].d.report & ~<int32_t>RO_KNOWN and batch.items[i].reason == 0:
            batch.items[i].reason = RC_UNKNOWN_REPORT_OPTION
            count += 1
    return count


def batch_put_quick(
    QueueHandle queue not None, source, syncpoint, tuple fields not None, unit=None
):
    """Puts the bodies of `source` when no field is given: a BatchResult. None: nothing was done,
    penstock.batch does it.
    """
    cdef QuickPut put
    cdef BatchOutcome result
    cdef Unit bound = None
    cdef int reason
    for field in fields:
        if field is not None:
            return None
    put = QuickPut.__new__(QuickPut)
    if not accept_source(put, source):
        return None
    if queue.closed or not queue.options & MQE_OUTPUT:
        queue.raise_not_open_for_output()
    if put.again:
        start_rows(queue, put.batch.items, put.batch.capacity, True)
    else:
        start_unfilled(queue, put.batch.items, put.batch.capacity)
    result = new_of(batch_result_type)
    if unit is not None or syncpoint is not None or open_transactions != 0:
        bound = bind_unit(queue.connection, syncpoint, unit)
    try:
        reason = put_rows(queue, bound, &put.batch, 0, put.again)
    finally:
        unbind_unit(bound)
    if reason:
        refuse_rows(queue, put, reason)
    if put.again:
        put.batch.warnings += unknown_reports(&put.batch)
    result.memory = put.rows
    result.unfilled = not put.again
    result.row_count = put.batch.capacity
    result.count = put.batch.count
    result.warnings = put.batch.warnings
    return result


cdef void start_unfilled(QueueHandle queue, mqe_item *row, Py_ssize_t count) noexcept:
    """As start_rows(), but nothing is written where the extensions are: half of a row's memory,
    which is not read before the array of the rows is made (BatchRows.unfilled).
    """
    cdef Py_ssize_t i
    for i in range(count):
        memcpy(&row[i].d, &queue.template, sizeof(row[i].d))
        row[i].d.has_ext = 0
        row[i].number = 0
        row[i].lsn = 0
        row[i].expiry = MQEI_UNLIMITED
        row[i].length = 0
        row[i].reason = 0


cdef int refuse_rows(QueueHandle queue, QuickPut put, int reason) except -1:
    """Raises the failure of a put; for offsets, with what is wrong with them."""
    cdef Py_ssize_t size = (put.batch.capacity + 1) * sizeof(int64_t)
    if reason == RC_BUFFER_LENGTH_ERROR:
        batch_refuse_offsets(
            PyBytes_FromStringAndSize(<char *>put.batch.offsets, size), put.batch.body_capacity
        )
    batch_fail(queue, reason, put.batch.count, put.batch.failed)
    return 0
