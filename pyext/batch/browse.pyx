# browse.pyx - what looks at many messages of a queue without removing them: batches behind the
# browse cursor or of a range, and the positions that split a queue into ranges.
#
# Terms
#   position        (placement, message number): where a message stands in its queue; the message
#                   need not exist any more.
#   split points    positions that cut a queue into about equal ranges.
#   message number  64 bits, rising with every put to a queue.
#
# Locks. As batch/put.pyx.


def batch_browse(
    QueueHandle queue not None, rows, bodies, offsets, bint first=False, uint64_t max_bytes=0,
    bint persistent_only=False, up_to=None, range=None, bint delayed=False,
):
    """Copies the messages behind the handle's cursor into the memory given, as many as fit. Returns
    (messages, bytes the next one needs): (0, 0) at the end, (0, n) when the first needs n bytes.
    bodies and offsets None: descriptors only. range: two positions (placement, message number).
    delayed: those that are not due, too.
    """
    cdef mqe_position ends[2]
    cdef batch_buffers buffers
    cdef mqe_batch batch
    cdef mqe_get_t get
    cdef penstock_gil gil
    cdef int reason
    if queue.closed:
        queue.raise_closed()
    begin_get(
        &get, (queue.get_flags & ~<uint32_t>MQE_GET_CONFIRM)
        | (MQE_GET_BROWSE_FIRST if first else MQE_GET_BROWSE_NEXT),
        max_bytes, persistent_only, up_to,
    )
    if delayed:
        get.match |= MQE_MATCH_DELAYED
    if range is not None:
        memset(ends, 0, sizeof(ends))
        (ends[0].placement, ends[0].number), (ends[1].placement, ends[1].number) = range
    try:
        acquire_buffers(&buffers, &batch, rows, bodies, offsets, True)
        while True:
            begin_call(queue, None)
            begin_batch_call(&gil, &batch)
            if range is None:
                reason = mqe_browse_batch(queue.connection.manager, queue.queue, &get, &batch)
            else:
                reason = mqe_browse_range(
                    queue.connection.manager, queue.queue, &get, ends, &batch
                )
            penstock_gil_take_call(&gil)
            end_call(queue, None)
            if reason == MQE_EXPIRED:
                report_met(queue, &get)
            elif not is_to_repeat(reason):
                break
    finally:
        release_buffers(&buffers)
    if reason and reason != RC_TRUNCATED_MSG_FAILED:
        fail(reason, f"queue {queue.name}")
    mqx_error_clear()
    return batch.count, batch.needed


def queue_split_points(QueueHandle queue not None, uint32_t parts):
    """Positions (placement, message number) that cut the queue into about so many equal ranges."""
    cdef uint32_t count = 0, i
    cdef mqe_position *points
    cdef penstock_gil gil
    cdef int reason
    points = <mqe_position *>zeroed_rows(parts, sizeof(points[0]))
    try:
        while True:
            begin_call(queue, None)
            penstock_gil_arm_call(&gil, False)
            reason = mqe_queue_split_points(
                queue.connection.manager, queue.to.queue, queue.to.queue_generation, parts,
                points, &count,
            )
            penstock_gil_take_call(&gil)
            end_call(queue, None)
            if not is_to_repeat(reason):
                break
        if reason:
            fail(reason, f"queue {queue.name}")
        return [(points[i].placement, points[i].number) for i in range(count)]
    finally:
        PyMem_Free(points)


def newest_number(QueueHandle queue not None):
    """The highest message number that a message of the queue may have by now."""
    cdef uint64_t number = 0
    cdef int reason
    cdef penstock_gil gil
    while True:
        begin_call(queue, None)
        penstock_gil_arm_call(&gil, False)
        reason = mqe_queue_newest(
            queue.connection.manager, queue.to.queue, queue.to.queue_generation, &number
        )
        penstock_gil_take_call(&gil)
        end_call(queue, None)
        if not is_to_repeat(reason):
            break
    if reason:
        fail(reason, f"queue {queue.name}")
    return number
