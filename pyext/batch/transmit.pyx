# transmit.pyx - put_batch() for another queue manager: each message with its transmission header,
# one by one.
#
# Invariants
#   1. All messages are put in one unit of work: the caller's, or one of this call, which is backed
#      out when a message fails. Then none took effect.
#
# Errors. As batch/put.pyx.


cdef int transmit_rows(
    QueueHandle queue, mqe_unit *unit, mqe_batch *batch, uint32_t flags
) except -1:
    """Puts for another queue manager: each message with its transmission header, one by one, in the
    unit, or in one of this call.
    """
    cdef mqe_unit *own = NULL
    cdef int reason = 0, ended = 0
    if unit is NULL and batch.capacity > 0:
        own = new_unit(queue.connection)
        flags |= MQE_PUT_OWN_UNIT
    try:
        reason = transmit_each(queue, own if unit is NULL else unit, batch, flags)
    except BaseException:
        if own is not NULL:
            mqe_unit_free(own)
        raise
    if own is not NULL:
        ended = end_call_unit(queue, own, reason == 0)
        reason = reason or ended
        if reason:
            batch.failed = batch.count
            batch.count = 0
    return reason


cdef int transmit_each(
    QueueHandle queue, mqe_unit *unit, mqe_batch *batch, uint32_t flags
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
        reason = transmit(
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


cdef int end_call_unit(QueueHandle queue, mqe_unit *unit, bint commit) except -1:
    """Commits or backs out a unit of this call and gives it back; the commit's reason."""
    cdef penstock_gil gil
    cdef int reason
    queue.busy += 1
    penstock_gil_arm(&gil)
    reason = mqe_commit(unit) if commit else mqe_backout(unit)
    penstock_gil_take(&gil)
    queue.busy -= 1
    recycle_unit(queue.connection, unit, reason == 0)
    return reason if commit else 0
