# rows.pyx - many messages a call: rows (struct mqe_item), bodies and offsets lie in memory that the
# caller owns and hands over by the buffer protocol (NumPy arrays; nothing here is compiled against
# NumPy). penstock.batch makes the arrays and says what they mean.
#
# Invariants
#   1. Rows and offsets are the call's own: the core reads them without the GIL, and relies on them
#      once it has checked them. Bodies may be shared: a program that changes them during the call
#      stores torn ones.
#   2. Buffers that were acquired are released on every way out.
#
# Errors. 2005 for buffers that do not fit together.


cdef int acquire_buffers(
    batch_buffers *buffers, mqe_batch *batch, object rows, object bodies, object offsets,
    bint writable,
) except -1:
    """Fills *batch from the buffers; the caller releases them, also after an error. No bodies
    (None): no offsets either.
    """
    cdef int flags = PyBUF_WRITABLE if writable else PyBUF_SIMPLE
    buffers.held = 0
    memset(batch, 0, sizeof(batch[0]))
    PyObject_GetBuffer(rows, &buffers.rows, PyBUF_WRITABLE)
    buffers.held = 1
    if buffers.rows.len % sizeof(mqe_item):
        wrong_value(RC_BUFFER_LENGTH_ERROR, "the buffer of rows does not hold whole rows")
    batch.items = <mqe_item *>buffers.rows.buf
    batch.capacity = <uint32_t>(buffers.rows.len // <Py_ssize_t>sizeof(mqe_item))
    if bodies is None:
        return 0
    PyObject_GetBuffer(bodies, &buffers.bodies, flags)
    buffers.held = 2
    PyObject_GetBuffer(offsets, &buffers.offsets, flags)
    buffers.held = 3
    if buffers.offsets.len < <Py_ssize_t>sizeof(int64_t) or (
        buffers.offsets.len // <Py_ssize_t>sizeof(int64_t) - 1 < <Py_ssize_t>batch.capacity
    ):
        wrong_value(RC_BUFFER_LENGTH_ERROR, "rows and offsets do not fit together")
    batch.bodies = <unsigned char *>buffers.bodies.buf
    batch.body_capacity = <uint64_t>buffers.bodies.len
    batch.offsets = <int64_t *>buffers.offsets.buf
    return 0


cdef void release_buffers(batch_buffers *buffers) noexcept:
    if buffers.held > 2:
        PyBuffer_Release(&buffers.offsets)
    if buffers.held > 1:
        PyBuffer_Release(&buffers.bodies)
    if buffers.held > 0:
        PyBuffer_Release(&buffers.rows)
    buffers.held = 0


cdef inline void begin_batch_call(penstock_gil *gil, const mqe_batch *batch) noexcept:
    """Releases the GIL at once where the call is sure to take a while. Ended by
    penstock_gil_take_call().
    """
    penstock_gil_arm_call(
        gil, batch.capacity > SHORT_BATCH or batch.body_capacity > LONG_COPY
    )


def batch_layout():
    """Size of a row, and offset and size of each field of it that Python looks at."""
    cdef mqe_item row
    cdef char *base = <char *>&row
    return sizeof(row), {
        "msg_id": (<char *>&row.d.msg_id - base, sizeof(row.d.msg_id)),
        "correl_id": (<char *>&row.d.correl_id - base, sizeof(row.d.correl_id)),
        "put_time": (<char *>&row.d.put_time_us - base, sizeof(row.d.put_time_us)),
        "expiry_us": (<char *>&row.d.expiry_us - base, sizeof(row.d.expiry_us)),
        "priority": (<char *>&row.d.priority - base, sizeof(row.d.priority)),
        "report": (<char *>&row.d.report - base, sizeof(row.d.report)),
        "msg_type": (<char *>&row.d.msg_type - base, sizeof(row.d.msg_type)),
        "feedback": (<char *>&row.d.feedback - base, sizeof(row.d.feedback)),
        "encoding": (<char *>&row.d.encoding - base, sizeof(row.d.encoding)),
        "ccsid": (<char *>&row.d.ccsid - base, sizeof(row.d.ccsid)),
        "format": (<char *>&row.d.format - base, sizeof(row.d.format)),
        "put_appl_type": (<char *>&row.d.put_appl_type - base, sizeof(row.d.put_appl_type)),
        "user_identifier": (<char *>&row.d.user_identifier - base, sizeof(row.d.user_identifier)),
        "put_appl_name": (<char *>&row.d.put_appl_name - base, sizeof(row.d.put_appl_name)),
        "appl_origin_data": (
            <char *>&row.d.appl_origin_data - base, sizeof(row.d.appl_origin_data)
        ),
        "accounting_token": (
            <char *>&row.d.accounting_token - base, sizeof(row.d.accounting_token)
        ),
        "persistence": (<char *>&row.d.persistence - base, sizeof(row.d.persistence)),
        "placement": (<char *>&row.d.placement - base, sizeof(row.d.placement)),
        "has_ext": (<char *>&row.d.has_ext - base, sizeof(row.d.has_ext)),
        "md_version": (<char *>&row.d.md_version - base, sizeof(row.d.md_version)),
        "backout_count": (<char *>&row.d.backout_count - base, sizeof(row.d.backout_count)),
        "reply_to_q": (<char *>&row.ext.reply_to_q - base, sizeof(row.ext.reply_to_q)),
        "reply_to_qmgr": (<char *>&row.ext.reply_to_qmgr - base, sizeof(row.ext.reply_to_qmgr)),
        "appl_identity_data": (
            <char *>&row.ext.appl_identity_data - base, sizeof(row.ext.appl_identity_data)
        ),
        "group_id": (<char *>&row.ext.group_id - base, sizeof(row.ext.group_id)),
        "msg_seq_number": (<char *>&row.ext.msg_seq_number - base, sizeof(row.ext.msg_seq_number)),
        "offset": (<char *>&row.ext.offset - base, sizeof(row.ext.offset)),
        "msg_flags": (<char *>&row.ext.msg_flags - base, sizeof(row.ext.msg_flags)),
        "original_length": (
            <char *>&row.ext.original_length - base, sizeof(row.ext.original_length)
        ),
        "number": (<char *>&row.number - base, sizeof(row.number)),
        "lsn": (<char *>&row.lsn - base, sizeof(row.lsn)),
        "due_us": (<char *>&row.d.due_us - base, sizeof(row.d.due_us)),
        "expiry": (<char *>&row.expiry - base, sizeof(row.expiry)),
        "length": (<char *>&row.length - base, sizeof(row.length)),
        "reason": (<char *>&row.reason - base, sizeof(row.reason)),
    }


def batch_message(rows, Py_ssize_t index, bytes body not None):
    """The Message of a row."""
    cdef Message message = Message.__new__(Message)
    cdef Py_buffer view
    cdef const mqe_item *row
    PyObject_GetBuffer(rows, &view, PyBUF_SIMPLE)
    try:
        if not 0 <= index < view.len // <Py_ssize_t>sizeof(mqe_item):
            raise IndexError(index)
        row = <const mqe_item *>view.buf + index
        memcpy(&message._d, &row.d, sizeof(row.d))
        message._ext = extension_bytes(&row.ext) if row.d.has_ext else None
        message._expiry = row.expiry
        message.number = row.number
        message.length = row.length
        message.reason = row.reason
        message._data = body
    finally:
        PyBuffer_Release(&view)
    return message
