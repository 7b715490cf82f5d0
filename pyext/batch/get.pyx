# get.pyx - get_batch(): into buffers of the caller, or into batch memory without NumPy.
#
# Terms
#   uncopied   messages that are removed in a unit of work without copying them: only counted.
#   confirmed  a message that asks for a confirmation of its delivery: a batch of its own, in one
#              unit of work with its report (client/report.pyx).
#   needed     bytes of the first message that did not fit; 0 when there is none.
#
# Invariants
#   1. A wait has removed nothing, as in client/get.pyx.
#
# Locks. As batch/put.pyx.
#
# Errors. No message is no error: the batch is empty. Others are raised.


cdef int begin_get(
    mqe_get_t *get, uint32_t flags, uint64_t max_bytes, bint persistent_only, object up_to
) except -1:
    """Fills a request for many messages: no match but these."""
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
    bint persistent_only=False, up_to=None, syncpoint=None, unit=None,
):
    """Gets into the memory given, as many as fit. Returns (messages, bytes the next one needs):
    (0, 0) when there was none within `wait` seconds, (0, n) when the first needs n bytes. bodies
    and offsets None: in a unit of work, without the bodies.
    """
    cdef batch_buffers buffers
    cdef mqe_batch batch
    try:
        acquire_buffers(&buffers, &batch, rows, bodies, offsets, True)
        get_into(queue, &batch, wait, max_bytes, persistent_only, up_to, syncpoint, unit)
    finally:
        release_buffers(&buffers)
    return batch.count, batch.needed


cdef int get_into(
    QueueHandle queue, mqe_batch *batch, object wait, uint64_t max_bytes, bint persistent_only,
    object up_to, object syncpoint, object unit,
) except -1:
    """batch_get() into a batch; count and needed are 0 when there was no message."""
    cdef mqe_get_t get
    cdef get_request request
    cdef Unit bound = None
    cdef int reason
    if queue.closed:
        queue.raise_closed()
    begin_get(&get, queue.get_flags, max_bytes, persistent_only, up_to)
    request.limit = -1
    request.wait_us = 0
    if wait is not ZERO:
        take_wait(wait, &request.wait_us)
    if unit is not None or syncpoint is not None or open_transactions != 0:
        bound = bind_unit(queue.connection, syncpoint, unit)
    try:
        reason = await_rows(queue, bound, &get, &request, batch)
    finally:
        unbind_unit(bound)
    if reason == RC_NO_MSG_AVAILABLE:
        batch.count = 0
        batch.needed = 0
    elif reason and reason != RC_TRUNCATED_MSG_FAILED:
        fail(reason, f"queue {queue.name}")
    mqx_error_clear()
    return 0


cdef int await_rows(
    QueueHandle queue, Unit unit, mqe_get_t *get, get_request *request, mqe_batch *batch
) except -1:
    """Calls of the core until there is a message or the wait has ended; the last reason code."""
    cdef int64_t deadline = -1
    cdef int reason
    if request.wait_us != 0:
        start_slice(get, request.wait_us)
    while True:
        reason = get_rows(queue, unit, get, batch)
        if reason == MQE_CONFIRM:
            reason = get_confirmed_row(queue, unit, get, batch)
            if reason == RC_NO_MSG_AVAILABLE:
                continue
        if reason == MQE_EXPIRED:
            report_met(queue, get)
            continue
        if reason != MQE_INTERRUPTED and (
            reason != RC_NO_MSG_AVAILABLE or request.wait_us == 0
        ):
            return reason
        if not prepare_wait(queue, get, request, &deadline):
            return RC_NO_MSG_AVAILABLE


cdef int get_rows(
    QueueHandle queue, Unit unit, mqe_get_t *get, mqe_batch *batch
) except -1:
    """One call of the core; returns its reason code."""
    cdef penstock_gil gil
    cdef mqe_unit *core
    cdef int reason
    begin_call(queue, unit)
    core = core_unit(unit)
    begin_batch_call(&gil, batch)
    reason = mqe_get_batch(queue.connection.manager, core, queue.queue, get, batch)
    penstock_gil_take_call(&gil)
    end_call(queue, unit)
    return reason


cdef int get_confirmed_row(
    QueueHandle queue, Unit unit, mqe_get_t *get, mqe_batch *batch
) except -1:
    """Gets the one message before which the batch ended, and confirms its delivery; 2033 when
    somebody else has it by now.
    """
    cdef Unit inside = unit_with_report(queue, unit)
    cdef int reason
    try:
        reason = get_row_and_confirm(queue, inside, get, batch, inside is not unit)
    except BaseException:
        if inside is not unit:
            inside.finish(False)
        raise
    return end_own_unit(inside, unit, reason)


cdef int get_row_and_confirm(
    QueueHandle queue, Unit unit, mqe_get_t *get, mqe_batch *batch, bint own
) except -1:
    """The same in the unit. A batch without bodies reads this one all the same: its report may have
    it.
    """
    cdef mqe_get_t one = get[0]
    cdef mqe_batch row = batch[0]
    cdef mqe_item *item = row.items
    cdef int64_t offsets[2]
    cdef bytes body
    cdef int reason
    one.flags &= ~<uint32_t>(MQE_GET_CONFIRM | MQE_GET_WAIT)
    one.match |= MQE_MATCH_NUMBER
    one.match_number = batch.confirm
    row.capacity = 1
    if row.bodies is NULL:
        body = PyBytes_FromStringAndSize(NULL, item.length)
        row.bodies = <unsigned char *>PyBytes_AS_STRING(body)
        row.body_capacity = item.length
        row.offsets = offsets
    reason = get_rows(queue, unit, &one, &row)
    while is_to_repeat(reason):
        reason = get_rows(queue, unit, &one, &row)
    batch.count = row.count
    batch.bytes = row.bytes
    batch.needed = row.needed
    if reason == 0:
        confirm(
            queue.connection, unit, &item.d, &item.ext if item.d.has_ext else NULL,
            <const char *>row.bodies, item.length, item.expiry, MQFB_COD,
            MQE_PUT_OWN_UNIT if own else 0,
        )
    return reason


def batch_take_uncopied(
    QueueHandle queue not None, uint32_t most, uint64_t max_bytes=0, bint persistent_only=False,
    up_to=None, unit=None,
):
    """Gets up to `most` messages in the unit of work without copying them: (messages, bytes of
    their bodies).
    """
    cdef mqe_batch batch
    cdef mqe_get_t get
    cdef Unit bound
    cdef int reason
    if queue.closed:
        queue.raise_closed()
    begin_get(&get, queue.get_flags, max_bytes, persistent_only, up_to)
    memset(&batch, 0, sizeof(batch))
    batch.capacity = most
    bound = bind_unit(queue.connection, True, unit)
    try:
        reason = get_rows(queue, bound, &get, &batch)
        while is_to_repeat(reason) or reason == MQE_EXPIRED:
            if reason == MQE_EXPIRED:
                report_met(queue, &get)
            reason = get_rows(queue, bound, &get, &batch)
    finally:
        unbind_unit(bound)
    if reason and reason != RC_NO_MSG_AVAILABLE:
        fail(reason, f"queue {queue.name}")
    mqx_error_clear()
    return batch.count, batch.bytes


def batch_get_quick(
    QueueHandle queue not None, most, wait, max_bytes, syncpoint, bint persistent_only, up_to,
    bint with_bodies, unit=None,
):
    """Gets up to `most` messages: a MessageBatch. None: nothing was done, penstock.batch does it.
    """
    cdef BatchArrays made
    cdef Py_ssize_t capacity, room, needed = 0
    cdef object rest
    if (type(most) is not int or max_bytes is not None or up_to is not None or not with_bodies
            or not 0 < most <= GET_ROWS_MAX):
        return None
    require_batch_classes()
    capacity = most
    room = max(<Py_ssize_t>LEAST_ROOM, capacity * TYPICAL_BODY)
    made = new_of(batch_type)
    while True:
        made.memory = new_memory(capacity + 1, capacity, room)
        made.memory.offsets[0] = 0
        needed = get_some(queue, made, capacity, room, wait, persistent_only, syncpoint, unit)
        if made.row_count != 0 or needed <= room:
            break
        room = needed
    if made.row_count == 0 or made.row_count == capacity or needed == 0:
        return made
    return batch_get_rest(
        queue, made, capacity - made.row_count, needed, syncpoint, persistent_only, unit
    )


cdef Py_ssize_t get_some(
    QueueHandle queue, BatchArrays made, Py_ssize_t capacity, Py_ssize_t room, object wait,
    bint persistent_only, object syncpoint, object unit,
) except -1:
    """Into the memory of `made`, as many as fit; the bytes that the next one needs."""
    cdef mqe_batch batch
    memset(&batch, 0, sizeof(batch))
    batch.items = made.memory.rows
    batch.capacity = <uint32_t>capacity
    batch.bodies = made.memory.bodies
    batch.body_capacity = <uint64_t>room
    batch.offsets = made.memory.offsets
    get_into(queue, &batch, wait, 0, persistent_only, None, syncpoint, unit)
    made.row_count = batch.count
    made.body_bytes = batch.offsets[batch.count]
    return <Py_ssize_t>batch.needed
