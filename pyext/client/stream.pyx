# stream.pyx - the copy that a put on a queue with STREAMQ makes on its stream queue ("Streaming
# queues", "Stream queues and transactions").
#
# Terms
#   copy       the message with the same data, ids, context, priority and persistence, without
#              expiry (CAPEXPRY of the stream queue counts) and without the report options that the
#              queue manager acts on.
#   MUSTDUP    quality of service: both messages are put, or none; BESTEF: the copy when it can be.
#
# Invariants
#   1. A copy is in one unit of work with its message: the caller's, or an own unit
#      (client/trigger.pyx).
#   2. A copy is never copied (MQE_PUT_COPY): streams have no chains and no circles, whatever the
#      definitions say by now.
#   3. A put in the caller's unit that must duplicate asks before whether the copy has a place, so
#      that what refuses it refuses the put and leaves the unit as it was. When that changes between
#      the two, the unit can only be backed out: 2003.
#   4. A copy of best effort that has no place is logged. One that has counts towards MAXUMSGS.
#
# Locks. As client/put.pyx.
#
# Errors. MUSTDUP: as the put of the copy.


cdef int check_copy(
    QueueHandle queue, Unit unit, const ps_descriptor *d, Py_ssize_t size
) except -1:
    """Raises what would refuse the copy of a put in the caller's unit that must duplicate."""
    cdef ps_descriptor copy = d[0]
    cdef int warning = 0
    cdef int reason
    cdef QueueHandle target
    found = stream_of(queue.connection, queue.to.queue, queue.to.queue_generation)
    if found is None or not found[1]:
        return 0
    if unit.state == UNIT_OPEN and mqe_unit_room(unit.unit) < 2 + (d.report & MQRO_COA != 0):
        raise error_for(
            RC_SYNCPOINT_LIMIT_REACHED,
            f"queue {queue.name}: MAXUMSGS leaves the unit of work no room for a message and the "
            f"copy of it",
        )
    reason = mqe_resolve_defaults(queue.connection.manager, &queue.to, &copy, &warning)
    if reason:
        return 0  # the put itself will say so
    target = open_for_manager(queue.connection, found[0], "")
    try:
        reason = 0
        if not target.chooses:
            reason = mqe_put_check(queue.connection.manager, &target.to, &copy, <uint64_t>size)
        if reason and not is_warning(reason):
            fail(reason, f"stream queue {found[0]} of {queue.name}")
    finally:
        target.shut_with(MQE_CLOSE_KEEP)
    mqx_error_clear()
    return 0


cdef int put_copy_on(
    Connection connection, Unit unit, str name, const ps_descriptor *d,
    const ps_descriptor_ext *ext, const char *data, Py_ssize_t size, uint32_t flags
) except -1:
    """Puts the copy on the stream queue; raises what keeps it from there."""
    cdef ps_descriptor copy = d[0]
    copy.report &= ~<int32_t>RO_REMOVED_FROM_COPIES
    return put_for_manager(
        connection, unit, name, "", &copy, ext, data, size, MQEI_UNLIMITED,
        (flags & MQE_PUT_OWN_UNIT) | MQE_PUT_KEEP_TIME | MQE_PUT_COPY,
    )


cdef int put_copy(
    Connection connection, Unit unit, const mqe_destination *to, const ps_descriptor *d,
    const ps_descriptor_ext *ext, const char *data, Py_ssize_t size, uint32_t flags
) except -1:
    """Puts the copy of a message that has just been put in the unit; raises when it must be there
    and is not.
    """
    cdef bint failed = unit.failed
    found = stream_of(connection, to.queue, to.queue_generation)
    if found is None:
        return 0
    name, must = found
    if not must and not flags & MQE_PUT_OWN_UNIT and (
        mqe_unit_room(unit.unit) < 1 + (d.report & MQRO_COA != 0)
    ):
        copy_lost(connection, name, RC_SYNCPOINT_LIMIT_REACHED)  # the report goes before it
        return 0
    try:
        return put_copy_on(connection, unit, name, d, ext, data, size, flags)
    except MQError as error:
        if has_stopped(error.reason) or unit.failed != failed or (
            must and flags & MQE_PUT_OWN_UNIT
        ):
            raise
        if must:
            raise error_for(
                RC_BACKED_OUT, f"the unit of work can only be backed out: a copy has no place on "
                f"stream queue {name} ({error.text})"
            ) from None
        copy_lost(connection, name, error.reason)
    return 0
