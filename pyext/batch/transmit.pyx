# transmit.pyx - put_batch() of messages that are put one by one: for another queue manager, each
# with its transmission header, and with some that ask for a confirmation of their arrival.
#
# Invariants
#   1. All messages are put in one unit of work: the caller's, or one of this call, which is backed
#      out when a message fails. Then none took effect.
#
# Errors. As batch/put.pyx.


cdef bint has_confirmed_row(QueueHandle queue, const mqe_batch *batch) noexcept:
    """Whether a message asks for a confirmation that this queue manager makes."""
    cdef uint32_t i
    if queue.transmission:
        return False
    for i in range(batch.capacity):
        if batch.items[i].d.report & MQRO_COA:
            return True
    return False


cdef int put_rows_singly(
    QueueHandle queue, Unit unit, mqe_batch *batch, uint32_t flags
) except -1:
    """Puts the messages one by one, in the unit, or in one of this call."""
    cdef Unit own
    cdef int reason, ended
    if unit is not None or batch.capacity == 0:
        return put_each(queue, unit, batch, flags)
    own = new_call_unit()
    own.start(queue.connection)
    try:
        reason = put_each(queue, own, batch, flags | MQE_PUT_OWN_UNIT)
    except BaseException:
        own.finish(False)
        raise
    ended = own.finish(reason == 0)
    reason = reason or ended
    if reason:
        batch.failed = batch.count
        batch.count = 0
    return reason


cdef int put_each(
    QueueHandle queue, Unit unit, mqe_batch *batch, uint32_t flags
) except -1:
    """Returns the reason code of the message that failed, which is row `batch.failed`."""
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
        reason = send(
            queue, unit, &row.d, &row.ext if row.d.has_ext else NULL,
            <char *>batch.bodies + batch.offsets[i], batch.offsets[i + 1] - batch.offsets[i],
            row.expiry, flags,
        )
        if reason and not is_warning(reason):
            return reason
        row.reason = reason
        row.length = <uint32_t>(batch.offsets[i + 1] - batch.offsets[i])
        batch.warnings += reason != 0
        batch.count += 1
    return 0
