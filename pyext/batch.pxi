# batch.pxi - many messages a call: rows (struct mqe_item), bodies and offsets lie in memory that
# the caller owns and hands over by the buffer protocol (NumPy arrays; nothing here is compiled
# against NumPy). python/penstock/batch makes the arrays and says what they mean.
#
# Rows and offsets must be the call's own: the core looks at them without the GIL, and believes them
# once it has checked them. Bodies may belong to anybody: who changes them meanwhile gets torn ones.

cdef enum:
    SHORT_BATCH = 16          # more rows than this are moved without the GIL


cdef struct batch_memory:     # three exported buffers, and how many of them are held
    Py_buffer rows
    Py_buffer bodies
    Py_buffer offsets
    int held


cdef int hold_memory(
    batch_memory *memory, mqe_batch *batch, object rows, object bodies, object offsets,
    bint writable,
) except -1:
    """Fills *batch in from the buffers; whoever called gives them back with drop_memory(). No
    bodies (None): no offsets either.
    """
    cdef int flags = PyBUF_WRITABLE if writable else PyBUF_SIMPLE
    memory.held = 0
    memset(batch, 0, sizeof(batch[0]))
    PyObject_GetBuffer(rows, &memory.rows, PyBUF_WRITABLE)
    memory.held = 1
    if memory.rows.len % sizeof(mqe_item):
        wrong_value(RC_BUFFER_LENGTH_ERROR, "rows are no whole rows")
    batch.items = <mqe_item *>memory.rows.buf
    batch.capacity = <uint32_t>(memory.rows.len // <Py_ssize_t>sizeof(mqe_item))
    if bodies is None:
        return 0
    PyObject_GetBuffer(bodies, &memory.bodies, flags)
    memory.held = 2
    PyObject_GetBuffer(offsets, &memory.offsets, flags)
    memory.held = 3
    if memory.offsets.len < 8 or memory.offsets.len // 8 - 1 < <Py_ssize_t>batch.capacity:
        wrong_value(RC_BUFFER_LENGTH_ERROR, "rows and offsets do not fit together")
    batch.bodies = <unsigned char *>memory.bodies.buf
    batch.body_capacity = <uint64_t>memory.bodies.len
    batch.offsets = <int64_t *>memory.offsets.buf
    return 0


cdef void drop_memory(batch_memory *memory) noexcept:
    if memory.held > 2:
        PyBuffer_Release(&memory.offsets)
    if memory.held > 1:
        PyBuffer_Release(&memory.bodies)
    if memory.held > 0:
        PyBuffer_Release(&memory.rows)
    memory.held = 0


cdef inline void begin_batch(penstock_gil *gil, const mqe_batch *batch) noexcept:
    """Releases the GIL at once where the call is sure to take a while."""
    if batch.capacity > SHORT_BATCH or batch.body_capacity > LONG_COPY:
        penstock_gil_begin_long(gil)
    else:
        penstock_gil_arm(gil)


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
        "expiry": (<char *>&row.expiry - base, sizeof(row.expiry)),
        "length": (<char *>&row.length - base, sizeof(row.length)),
        "reason": (<char *>&row.reason - base, sizeof(row.reason)),
    }


# ---- put ----

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
    cdef mqe_item first
    cdef Py_ssize_t i
    memset(&first, 0, sizeof(first))
    memcpy(&first.d, &queue.template, sizeof(first.d))
    blank_extension(&first.ext)
    first.expiry = -1
    for i in range(count):
        if not context_only:
            memcpy(&row[i], &first, sizeof(first))
            continue
        row[i].d.put_appl_type = first.d.put_appl_type
        memcpy(row[i].d.user_identifier, first.d.user_identifier, 12)
        memcpy(row[i].d.put_appl_name, first.d.put_appl_name, 28)
        memcpy(row[i].d.appl_origin_data, first.d.appl_origin_data, 4)
        memcpy(row[i].d.accounting_token, first.d.accounting_token, 32)
        memset(row[i].ext.appl_identity_data, 32, 32)


def batch_complete_reply(QueueHandle queue not None, rows):
    """A blank ReplyToQMgr beside a ReplyToQ becomes what put() makes of it."""
    cdef Py_buffer view
    cdef mqe_item *row
    cdef char given[48]
    cdef char completed[96]
    cdef Py_ssize_t i
    cdef bint known = False
    PyObject_GetBuffer(rows, &view, PyBUF_WRITABLE)
    try:
        row = <mqe_item *>view.buf
        for i in range(view.len // <Py_ssize_t>sizeof(mqe_item)):
            if not row[i].d.has_ext or not is_blank(row[i].ext.reply_to_qmgr, 48):
                continue
            if known and memcmp(row[i].ext.reply_to_q, given, 48) == 0:
                memcpy(row[i].ext.reply_to_q, completed, 96)
                continue
            memcpy(given, row[i].ext.reply_to_q, 48)
            complete_reply(queue.connection, &row[i].ext)
            memcpy(completed, row[i].ext.reply_to_q, 96)
            known = True
    finally:
        PyBuffer_Release(&view)


def batch_put(
    QueueHandle queue not None, rows, bodies, offsets, syncpoint=None, bint keep_time=False
):
    """Puts all rows; what was stored stands in them. Returns (reason, messages that took effect,
    row that failed, warnings); the reason is 0, or that of a failure, which the caller raises with
    batch_fail() before anything else is called.
    """
    cdef batch_memory memory
    cdef mqe_batch batch
    cdef mqe_unit *unit = NULL
    cdef int reason
    if queue.closed or not queue.options & MQE_OUTPUT:
        queue.refuse_put()
    if syncpoint is not None or open_transactions != 0:
        queue.connection.choose_unit(syncpoint, &unit)
    try:
        hold_memory(&memory, &batch, rows, bodies, offsets, False)
        batch.count = batch.capacity
        reason = put_rows(queue, unit, &batch, MQE_PUT_KEEP_TIME if keep_time else 0)
    finally:
        drop_memory(&memory)
    return reason, batch.count, batch.failed, batch.warnings


cdef int put_rows(
    QueueHandle queue, mqe_unit *unit, mqe_batch *batch, uint32_t flags
) except -1:
    """The reason of the failure, 0 when there was none; warnings are counted in the batch."""
    cdef penstock_gil gil
    cdef int reason
    flags |= queue.put_flags
    if queue.remote:
        reason = transmit_rows(queue, unit, batch, flags)
    else:
        queue.busy += 1
        begin_batch(&gil, batch)
        reason = mqe_put_batch(queue.connection.manager, unit, &queue.to, batch, flags)
        penstock_gil_take(&gil)
        queue.busy -= 1
    if mqe_comp_code(reason) == 1:
        mqx_error_clear()
        reason = 0
    return reason


def batch_fail(QueueHandle queue not None, int reason, uint32_t count, uint32_t index):
    """Raises the failure of a batch: `count` of its messages took effect, row `index` failed."""
    error = error_for(reason, f"queue {queue.name}, message {index} of the batch: "
                      + core_text(reason))
    error.count = count
    error.index = index
    raise error


cdef int transmit_rows(
    QueueHandle queue, mqe_unit *unit, mqe_batch *batch, uint32_t flags
) except -1:
    """Puts for another queue manager: each message with its transmission header, one by one, in the
    unit, or in one of this call.
    """
    cdef mqe_unit *own = NULL
    cdef int reason = 0, ended = 0
    if unit is NULL and batch.capacity > 0:
        own = queue.connection.new_unit()
        flags |= MQE_PUT_OWN_UNIT
    try:
        reason = transmit_each(queue, own if unit is NULL else unit, batch, flags)
    except BaseException:
        if own is not NULL:
            mqe_unit_free(own)
        raise
    if own is not NULL:
        ended = end_own(queue, own, reason == 0)
        reason = reason or ended
        if reason:
            batch.failed = batch.count
            batch.count = 0
    return reason


cdef int transmit_each(
    QueueHandle queue, mqe_unit *unit, mqe_batch *batch, uint32_t flags
) except -1:
    cdef mqe_item *row
    cdef uint32_t i
    cdef int reason
    batch.count = 0
    for i in range(batch.capacity):
        batch.failed = i
        row = &batch.items[i]
        if batch.offsets[i] < 0 or batch.offsets[i + 1] < batch.offsets[i] or (
            <uint64_t>batch.offsets[i + 1] > batch.body_capacity
        ):
            return RC_BUFFER_LENGTH_ERROR
        reason = transmit(
            queue, unit, &row.d, &row.ext if row.d.has_ext else NULL,
            <char *>batch.bodies + batch.offsets[i], batch.offsets[i + 1] - batch.offsets[i],
            row.expiry, flags,
        )
        if reason and mqe_comp_code(reason) != 1:
            return reason
        row.reason = reason
        row.length = <uint32_t>(batch.offsets[i + 1] - batch.offsets[i])
        batch.warnings += reason != 0
        batch.count += 1
    return 0


cdef int end_own(QueueHandle queue, mqe_unit *unit, bint commit) except -1:
    """Commits or backs out a unit of this call and gives it back; the commit's reason."""
    cdef penstock_gil gil
    cdef int reason
    queue.busy += 1
    penstock_gil_arm(&gil)
    reason = mqe_commit(unit) if commit else mqe_backout(unit)
    penstock_gil_take(&gil)
    queue.busy -= 1
    queue.connection.give_back(unit, reason == 0)
    return reason if commit else 0


# ---- get ----

cdef int begin_get(
    mqe_get_t *get, uint32_t flags, uint64_t max_bytes, bint persistent_only, object up_to
) except -1:
    memset(get, 0, sizeof(get[0]))
    get.flags = flags
    get.max_bytes = max_bytes
    if persistent_only:
        get.match |= MQE_MATCH_PERSISTENT
    if up_to is not None:
        get.match |= MQE_MATCH_UP_TO
        get.up_to = up_to
    return 0


def batch_get(
    QueueHandle queue not None, rows, bodies, offsets, wait=0, uint64_t max_bytes=0,
    bint persistent_only=False, up_to=None, syncpoint=None,
):
    """Gets into the memory given, as many as fit. Returns (messages, bytes the next one needs):
    (0, 0) when there was none within `wait` seconds, (0, n) when the first needs n bytes. bodies
    and offsets None: in a unit of work, without the bodies.
    """
    cdef batch_memory memory
    cdef mqe_batch batch
    try:
        hold_memory(&memory, &batch, rows, bodies, offsets, True)
        get_into(queue, &batch, wait, max_bytes, persistent_only, up_to, syncpoint)
    finally:
        drop_memory(&memory)
    return batch.count, batch.needed


cdef int get_into(
    QueueHandle queue, mqe_batch *batch, object wait, uint64_t max_bytes, bint persistent_only,
    object up_to, object syncpoint,
) except -1:
    """batch_get() into a batch; count and needed are 0 when there was no message."""
    cdef mqe_get_t get
    cdef get_request request
    cdef mqe_unit *unit = NULL
    cdef int64_t deadline = -1
    cdef int reason
    if queue.closed:
        queue.refuse()
    begin_get(&get, queue.get_flags, max_bytes, persistent_only, up_to)
    request.limit = -1
    request.wait_us = 0
    if wait is not ZERO:
        take_wait(wait, &request.wait_us)
    if syncpoint is not None or open_transactions != 0:
        queue.connection.choose_unit(syncpoint, &unit)
    while True:
        reason = get_rows(queue, unit, &get, batch)
        if reason != MQE_INTERRUPTED and (
            reason != RC_NO_MSG_AVAILABLE or request.wait_us == 0
        ):
            break
        if not queue.wait_on(&get, &request, &deadline):
            reason = RC_NO_MSG_AVAILABLE
            break
    if reason == RC_NO_MSG_AVAILABLE:
        batch.count = 0
        batch.needed = 0
    elif reason and reason != RC_TRUNCATED_MSG_FAILED:
        fail(reason, f"queue {queue.name}")
    mqx_error_clear()
    return 0


cdef int get_rows(QueueHandle queue, mqe_unit *unit, mqe_get_t *get, mqe_batch *batch) noexcept:
    cdef penstock_gil gil
    cdef int reason
    queue.busy += 1
    begin_batch(&gil, batch)
    reason = mqe_get_batch(queue.connection.manager, unit, queue.queue, get, batch)
    penstock_gil_take(&gil)
    queue.busy -= 1
    return reason


def batch_take_uncopied(
    QueueHandle queue not None, uint32_t most, uint64_t max_bytes=0, bint persistent_only=False,
    up_to=None,
):
    """Gets up to `most` messages in the unit of work and copies nothing of them: (messages, bytes
    of their bodies).
    """
    cdef mqe_batch batch
    cdef mqe_get_t get
    cdef mqe_unit *unit = NULL
    cdef int reason
    if queue.closed:
        queue.refuse()
    begin_get(&get, queue.get_flags, max_bytes, persistent_only, up_to)
    memset(&batch, 0, sizeof(batch))
    batch.capacity = most
    queue.connection.choose_unit(True, &unit)
    reason = get_rows(queue, unit, &get, &batch)
    if reason and reason != RC_NO_MSG_AVAILABLE:
        fail(reason, f"queue {queue.name}")
    mqx_error_clear()
    return batch.count, batch.bytes


# ---- browse ----

def batch_browse(
    QueueHandle queue not None, rows, bodies, offsets, bint first=False, uint64_t max_bytes=0,
    bint persistent_only=False, up_to=None, range=None,
):
    """Copies what stands behind the handle's cursor into the memory given, as much as fits. Returns
    (messages, bytes the next one needs): (0, 0) at the end, (0, n) when the first needs n bytes.
    bodies and offsets None: descriptors only. range: two places (placement, number).
    """
    cdef mqe_position ends[2]
    cdef batch_memory memory
    cdef mqe_batch batch
    cdef mqe_get_t get
    cdef penstock_gil gil
    cdef int reason
    if queue.closed:
        queue.refuse()
    begin_get(
        &get, queue.get_flags | (MQE_GET_BROWSE_FIRST if first else MQE_GET_BROWSE_NEXT),
        max_bytes, persistent_only, up_to,
    )
    if range is not None:
        memset(ends, 0, sizeof(ends))
        (ends[0].placement, ends[0].number), (ends[1].placement, ends[1].number) = range
    try:
        hold_memory(&memory, &batch, rows, bodies, offsets, True)
        queue.busy += 1
        begin_batch(&gil, &batch)
        if range is None:
            reason = mqe_browse_batch(queue.connection.manager, queue.queue, &get, &batch)
        else:
            reason = mqe_browse_range(queue.connection.manager, queue.queue, &get, ends, &batch)
        penstock_gil_take(&gil)
        queue.busy -= 1
    finally:
        drop_memory(&memory)
    if reason and reason != RC_TRUNCATED_MSG_FAILED:
        fail(reason, f"queue {queue.name}")
    mqx_error_clear()
    return batch.count, batch.needed


def queue_split_points(QueueHandle queue not None, uint32_t parts):
    """Places (placement, number) that cut the queue into about so many equal ranges."""
    cdef uint32_t slot, generation, count = 0, i
    cdef mqe_position *places
    cdef penstock_gil gil
    cdef int reason
    slot, generation = queue.slot
    queue.connection.check_open()
    places = <mqe_position *>room_for(parts, sizeof(places[0]))
    try:
        queue.busy += 1
        penstock_gil_arm(&gil)
        reason = mqe_queue_split_points(
            queue.connection.manager, slot, generation, parts, places, &count
        )
        penstock_gil_take(&gil)
        queue.busy -= 1
        if reason:
            fail(reason, f"queue {queue.name}")
        return [(places[i].placement, places[i].number) for i in range(count)]
    finally:
        PyMem_Free(places)


def newest_number(QueueHandle queue not None):
    """The highest arrival number that a message of the queue may have by now."""
    cdef uint64_t number = 0
    cdef uint32_t slot, generation
    cdef int reason
    cdef penstock_gil gil
    slot, generation = queue.slot
    queue.connection.check_open()
    queue.busy += 1
    penstock_gil_arm(&gil)
    reason = mqe_queue_newest(queue.connection.manager, slot, generation, &number)
    penstock_gil_take(&gil)
    queue.busy -= 1
    if reason:
        fail(reason, f"queue {queue.name}")
    return number


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
