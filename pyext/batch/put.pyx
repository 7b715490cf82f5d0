# put.pyx - put_batch() over buffers of the caller: rows are begun here, filled by penstock.batch,
# and put in one call of the core.
#
# Locks. The core runs without the GIL for more than SHORT_BATCH rows or LONG_COPY bytes.
#
# Errors. batch_put() returns the reason code with what took effect; batch_fail() raises it.


def batch_start(QueueHandle queue not None, rows, bint context_only=False):
    """Fills rows as put() begins a message: this program's context, the queue's defaults, no id.

    context_only: rows that were got are to be put: identity and origin context become this
    program's, everything else stays.
    """
    cdef Py_buffer view
    PyObject_GetBuffer(rows, &view, PyBUF_WRITABLE)
    start_rows(
        queue, <mqe_item *>view.buf, view.len // <Py_ssize_t>sizeof(mqe_item), context_only
    )
    PyBuffer_Release(&view)


cdef void start_rows(
    QueueHandle queue, mqe_item *row, Py_ssize_t count, bint context_only
) noexcept:
    """batch_start() for rows in memory."""
    cdef mqe_item first
    cdef Py_ssize_t i
    memset(&first, 0, sizeof(first))
    memcpy(&first.d, &queue.template, sizeof(first.d))
    blank_extension(&first.ext)
    first.expiry = MQEI_UNLIMITED
    for i in range(count):
        if not context_only:
            memcpy(&row[i], &first, sizeof(first))
            continue
        row[i].d.put_appl_type = first.d.put_appl_type
        memcpy(row[i].d.user_identifier, first.d.user_identifier, MQ_USER_ID_LENGTH)
        memcpy(row[i].d.put_appl_name, first.d.put_appl_name, MQ_PUT_APPL_NAME_LENGTH)
        memcpy(row[i].d.appl_origin_data, first.d.appl_origin_data, MQ_APPL_ORIGIN_DATA_LENGTH)
        memcpy(row[i].d.accounting_token, first.d.accounting_token, MQ_ACCOUNTING_TOKEN_LENGTH)
        memset(row[i].ext.appl_identity_data, BLANK, MQ_APPL_IDENTITY_DATA_LENGTH)


def batch_complete_reply(QueueHandle queue not None, rows):
    """A blank ReplyToQMgr beside a ReplyToQ becomes what put() makes of it."""
    cdef Py_buffer view
    cdef mqe_item *row
    cdef char given[NAME_LENGTH]
    cdef char completed[TWO_NAMES_LENGTH]
    cdef Py_ssize_t i
    cdef bint known = False
    PyObject_GetBuffer(rows, &view, PyBUF_WRITABLE)
    try:
        row = <mqe_item *>view.buf
        for i in range(view.len // <Py_ssize_t>sizeof(mqe_item)):
            if not row[i].d.has_ext or not is_blank(row[i].ext.reply_to_qmgr, NAME_LENGTH):
                continue
            if known and memcmp(row[i].ext.reply_to_q, given, NAME_LENGTH) == 0:
                memcpy(row[i].ext.reply_to_q, completed, TWO_NAMES_LENGTH)
                continue
            memcpy(given, row[i].ext.reply_to_q, NAME_LENGTH)
            complete_reply(queue.connection, &row[i].ext)
            memcpy(completed, row[i].ext.reply_to_q, TWO_NAMES_LENGTH)
            known = True
    finally:
        PyBuffer_Release(&view)


def batch_put(
    QueueHandle queue not None, rows, bodies, offsets, syncpoint=None, bint keep_time=False,
    unit=None,
):
    """Puts all rows; what was stored stands in them. Returns (reason, messages that took effect,
    row that failed, warnings); the reason is 0, or that of a failure, which the caller raises with
    batch_fail() before anything else is called.
    """
    cdef batch_buffers buffers
    cdef mqe_batch batch
    cdef Unit bound = None
    cdef int reason
    if queue.closed or not queue.options & MQE_OUTPUT:
        queue.raise_not_open_for_output()
    if unit is not None or syncpoint is not None or open_transactions != 0:
        bound = bind_unit(queue.connection, syncpoint, unit)
    try:
        acquire_buffers(&buffers, &batch, rows, bodies, offsets, False)
        batch.count = batch.capacity
        reason = put_rows(queue, bound, &batch, MQE_PUT_KEEP_TIME if keep_time else 0, True)
    finally:
        release_buffers(&buffers)
        unbind_unit(bound)
    return reason, batch.count, batch.failed, batch.warnings


cdef int put_rows(
    QueueHandle queue, Unit unit, mqe_batch *batch, uint32_t flags, bint may_confirm
) except -1:
    """The reason of the failure, 0 when there was none; warnings are counted in the batch.
    `may_confirm`: a row may have report options.
    """
    cdef int reason
    flags |= queue.put_flags
    if queue.remote or (may_confirm and has_confirmed_row(queue, batch)):
        reason = put_rows_singly(queue, unit, batch, flags)
    else:
        reason = put_local_rows(queue, unit, batch, flags)
        if reason == MQE_ATTENDED:
            reason = put_rows_singly(queue, unit, batch, flags)
    if is_warning(reason):
        mqx_error_clear()
        reason = 0
    return reason


cdef int put_local_rows(
    QueueHandle queue, Unit unit, mqe_batch *batch, uint32_t flags
) except -1:
    """Puts all rows in as many calls of the core as signals make of it: each goes on behind what
    took effect before. What a handler raises leaves that in the unit, or on the queue.
    """
    cdef penstock_gil gil
    cdef mqe_unit *core
    cdef mqe_batch rest = batch[0]
    cdef uint32_t done = 0, warnings = 0
    cdef int reason
    while True:
        begin_call(queue, unit)
        core = core_unit(unit)
        begin_batch_call(&gil, &rest)
        reason = mqe_put_batch(queue.connection.manager, core, &queue.to, &rest, flags)
        penstock_gil_take_call(&gil)
        end_call(queue, unit)
        if not is_to_repeat(reason):
            break
        done += rest.count
        warnings += count_warnings(rest.items, rest.count)
        rest.items += rest.count
        rest.offsets += rest.count
        rest.capacity -= rest.count
        rest.count = rest.capacity
    batch.count = done + rest.count
    batch.failed = done + rest.failed
    batch.warnings = warnings + rest.warnings
    batch.needed = rest.needed
    return reason


cdef uint32_t count_warnings(const mqe_item *row, uint32_t count) noexcept:
    """Rows that were put with a warning."""
    cdef uint32_t found = 0, i
    for i in range(count):
        found += row[i].reason != 0
    return found


def batch_fail(QueueHandle queue not None, int reason, uint32_t count, uint32_t index):
    """Raises the failure of a batch: `count` of its messages took effect, row `index` failed."""
    error = error_for(reason, f"queue {queue.name}, message {index} of the batch: "
                      + core_text(reason))
    error.count = count
    error.index = index
    raise error
