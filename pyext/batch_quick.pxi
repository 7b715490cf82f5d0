# batch_quick.pxi - put_batch() and get_batch() as programs call them most, in one trip into the
# binding and without NumPy: no fields, bodies from a list or tuple of bytes, from a buffer with
# int64 offsets, or from a MessageBatch. Everything else is left to python/penstock/batch, which
# also says what is wrong with a source.

cdef enum:
    QUICK_ROWS = 4096         # as many rows as a get makes room for without asking for the depth
    QUICK_PUT_ROWS = 1048576
    LEAST_ROOM = 65536        # as in batch.py
    TYPICAL_BODY = 320

cdef tuple NO_ARGUMENTS = ()


# ---- put ----

cdef class QuickPut:
    """Rows of the result, and bodies and offsets that stay as they are until the call is over."""

    cdef BatchMemory rows
    cdef BatchMemory own      # offsets, and bodies where they were gathered
    cdef mqe_batch batch
    cdef Py_buffer view       # of the bodies
    cdef bint held
    cdef bint again           # messages that were got before

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)

    cdef int begin(self, Py_ssize_t count, Py_ssize_t room) except -1:
        self.rows = new_memory(0, count, 0)
        self.own = new_memory(count + 1, 0, room)
        self.batch.items = self.rows.rows
        self.batch.capacity = self.batch.count = <uint32_t>count
        self.batch.offsets = self.own.offsets
        self.batch.bodies = self.own.bodies
        self.batch.body_capacity = <uint64_t>room
        return 0

    cdef int gather(self, PyObject **item, Py_ssize_t count) except -1:
        """Bytes objects into memory of ours; False when something else is among them. Nothing in
        here is tracked by the collector, so no Python code can run and change what is gathered.
        """
        cdef Py_ssize_t total = 0, i
        cdef unsigned char *to
        if not 0 < count <= QUICK_PUT_ROWS:
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

    cdef int take_pair(self, object buffer, object offsets) except -1:
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
            if given.ndim != 1 or not is_int64(given.format) or not 0 < count <= QUICK_PUT_ROWS:
                return False
            self.begin(count, 0)
            memcpy(self.own.offsets, given.buf, given.len)
        finally:
            PyBuffer_Release(&given)
        self.batch.bodies = <unsigned char *>self.view.buf
        self.batch.body_capacity = <uint64_t>self.view.len
        return True

    cdef int take_batch(self, BatchArrays source) except -1:
        """A MessageBatch whose arrays nobody has replaced; False for others."""
        cdef BatchMemory memory = source.memory
        cdef Py_ssize_t count = source.row_count
        if memory is None or not 0 < count <= QUICK_PUT_ROWS:
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


cdef bint take_source(QuickPut put, object source) except -1:
    """False: it takes the general way."""
    need_batch_classes()
    if type(source) is list:
        return put.gather(PySequence_Fast_ITEMS(source), PyList_GET_SIZE(source))
    if type(source) is tuple:
        if PyTuple_GET_SIZE(source) == 2 and put.take_pair(source[0], source[1]):
            return True
        return put.gather(PySequence_Fast_ITEMS(source), PyTuple_GET_SIZE(source))
    if type(source) is batch_type:
        return put.take_batch(source)
    return False


cdef uint32_t unknown_reports(mqe_batch *batch) noexcept:
    """Warns of report options that are not known, in rows that had them before; how many."""
    cdef uint32_t count = 0, i
    for i in range(batch.capacity):
        if batch.items[i].d.report & ~<int32_t>RO_KNOWN and batch.items[i].reason == 0:
            batch.items[i].reason = RC_UNKNOWN_REPORT_OPTION
            count += 1
    return count


def batch_put_quick(QueueHandle queue not None, source, syncpoint, tuple fields not None):
    """Puts the bodies of `source` when no field is given: a BatchResult. None: nothing was done,
    batch.py has to look at it.
    """
    cdef QuickPut put
    cdef BatchOutcome result
    cdef mqe_unit *unit = NULL
    cdef int reason
    for field in fields:
        if field is not None:
            return None
    put = QuickPut.__new__(QuickPut)
    if not take_source(put, source):
        return None
    if queue.closed or not queue.options & MQE_OUTPUT:
        queue.refuse_put()
    if put.again:
        start_rows(queue, put.batch.items, put.batch.capacity, True)
    else:
        start_unfilled(queue, put.batch.items, put.batch.capacity)
    if syncpoint is not None or open_transactions != 0:
        queue.connection.choose_unit(syncpoint, &unit)
    result = new_of(batch_result_type)
    reason = put_rows(queue, unit, &put.batch, 0)
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
    which nobody looks at before the array of the rows is made (BatchRows.unfilled).
    """
    cdef Py_ssize_t i
    for i in range(count):
        memcpy(&row[i].d, &queue.template, sizeof(row[i].d))
        row[i].d.has_ext = 0
        row[i].number = 0
        row[i].lsn = 0
        row[i].expiry = -1
        row[i].length = 0
        row[i].reason = 0


cdef int refuse_rows(QueueHandle queue, QuickPut put, int reason) except -1:
    cdef Py_ssize_t size = (put.batch.capacity + 1) * sizeof(int64_t)
    if reason == RC_BUFFER_LENGTH_ERROR:
        batch_refuse_offsets(
            PyBytes_FromStringAndSize(<char *>put.batch.offsets, size), put.batch.body_capacity
        )
    batch_fail(queue, reason, put.batch.count, put.batch.failed)
    return 0


# ---- get ----

def batch_get_quick(
    QueueHandle queue not None, most, wait, max_bytes, syncpoint, bint persistent_only, up_to,
    bint with_bodies,
):
    """Gets up to `most` messages: a MessageBatch. None: nothing was done, batch.py does it."""
    cdef BatchArrays made
    cdef Py_ssize_t capacity, room, needed = 0
    cdef object rest
    if (type(most) is not int or max_bytes is not None or up_to is not None or not with_bodies
            or not 0 < most <= QUICK_ROWS):
        return None
    need_batch_classes()
    capacity = most
    room = max(<Py_ssize_t>LEAST_ROOM, capacity * TYPICAL_BODY)
    made = new_of(batch_type)
    while True:
        made.memory = new_memory(capacity + 1, capacity, room)
        made.memory.offsets[0] = 0
        needed = get_some(queue, made, capacity, room, wait, persistent_only, syncpoint)
        if made.row_count != 0 or needed <= room:
            break
        room = needed
    if made.row_count == 0 or made.row_count == capacity or needed == 0:
        return made
    return batch_get_rest(
        queue, made, capacity - made.row_count, needed, syncpoint, persistent_only
    )


cdef Py_ssize_t get_some(
    QueueHandle queue, BatchArrays made, Py_ssize_t capacity, Py_ssize_t room, object wait,
    bint persistent_only, object syncpoint,
) except -1:
    """Into the memory of `made`, as many as fit; the bytes that the next one needs."""
    cdef mqe_batch batch
    memset(&batch, 0, sizeof(batch))
    batch.items = made.memory.rows
    batch.capacity = <uint32_t>capacity
    batch.bodies = made.memory.bodies
    batch.body_capacity = <uint64_t>room
    batch.offsets = made.memory.offsets
    get_into(queue, &batch, wait, 0, persistent_only, None, syncpoint)
    made.row_count = batch.count
    made.body_bytes = batch.offsets[batch.count]
    return <Py_ssize_t>batch.needed


cdef object new_of(object kind):
    """An object of one of our classes, without its constructor."""
    return (<PyTypeObject *>kind).tp_new(<type>kind, <PyObject *>NO_ARGUMENTS, NULL)
