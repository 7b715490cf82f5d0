# trigger.pyx - puts on queues that ask for more than to be stored (MQE_ATTENDED): the copy for a
# stream queue (client/stream.pyx), and the trigger message of a put ("Conditions for a trigger
# event", "Properties of trigger messages").
#
# Terms
#   trigger message  format MQTRIG, not persistent, without expiry, put on the initiation queue with
#                    its default priority. What decides that one is made is client/triggers.py.
#   own unit         as client/report.pyx.
#
# Invariants
#   1. A trigger message is in one unit of work with the put that caused it: the caller's, or an own
#      unit. It becomes available when that ends, whichever way (MQE_PUT_STAYS): also when it is
#      backed out, and when its process is killed.
#   2. A put never fails for its trigger message: what the initiation queue refuses becomes a dead
#      letter, else it is discarded, and logged.
#   3. The evaluation that a put has claimed is settled when the trigger message has been put; if
#      the process is killed before that, whoever waits on the initiation queue evaluates.
#
# Locks. As client/put.pyx, whose calls these are.
#
# Errors. As mqe_put().

cdef const char *FORMAT_TRIGGER = b"MQTRIG  "


cdef int put_trigger(
    Connection connection, Unit unit, str name, bytes data, uint32_t flags
) except -1:
    """Puts a trigger message on its initiation queue; unit None: outside syncpoint."""
    cdef put_request made
    start_manager_message(&made, connection, FORMAT_TRIGGER)
    return deliver(
        connection, unit, &made, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), name, "",
        flags | MQE_PUT_STAYS,
    )


cdef int attend(
    Connection connection, Unit unit, const mqe_destination *to, const mqe_arrival *arrival,
    int32_t priority, uint32_t flags, bint reports
) except -1:
    """Makes the trigger message of a put in the unit, if there is a trigger event. `reports`: the
    report on the arrival comes after it, and has the last room below MAXUMSGS.
    """
    cdef object made
    if not arrival.triggers:
        return 0
    try:
        made = trigger_of_put(
            connection, to.queue, to.queue_generation, arrival.before, priority
        )
        if made is not None:
            if reports and not flags & MQE_PUT_OWN_UNIT and mqe_unit_room(unit.unit) < 2:
                report_lost(connection, made[0], "", RC_SYNCPOINT_LIMIT_REACHED)
            else:
                put_trigger(connection, unit, made[0], made[1], flags & MQE_PUT_OWN_UNIT)
            trigger_made(connection, to.queue, to.queue_generation)
    except BaseException:
        unit.failed = True
        raise
    mqe_trigger_settle(connection.manager, to.queue, to.queue_generation)
    return 0


cdef int attend_copy(
    QueueHandle queue, Unit unit, const mqe_arrival *arrival, const ps_descriptor *d,
    const ps_descriptor_ext *ext, const char *data, Py_ssize_t size, uint32_t flags
) except -1:
    """Puts the copy of a message that has just been put in the unit, if the queue has a stream
    queue, and the message is none.
    """
    if not arrival.streams or flags & MQE_PUT_COPY:
        return 0
    try:
        return put_copy(queue.connection, unit, &queue.to, d, ext, data, size, flags)
    except BaseException:
        unit.failed = True
        raise


cdef Unit attended_unit(QueueHandle queue, Unit unit):
    """The unit of a put and of what its queue asks for: the caller's, or an own one for None. A
    call for an event loop is left to another thread before anything is put: an evaluation may wait.
    """
    cdef Unit own
    if penstock_is_at_once():
        raise_would_block()
    if unit is not None:
        return unit
    own = new_call_unit()
    own.start(queue.connection)
    return own


cdef int put_attended(
    QueueHandle queue, Unit unit, ps_descriptor *d, const ps_descriptor_ext *ext,
    const char *data, Py_ssize_t size, int32_t expiry, uint32_t flags
) except -1:
    """The rest of send_here() after MQE_ATTENDED."""
    cdef Unit inside = attended_unit(queue, unit)
    cdef mqe_arrival arrival
    cdef int reason
    if inside is not unit:
        flags |= MQE_PUT_OWN_UNIT
    try:
        if not flags & (MQE_PUT_OWN_UNIT | MQE_PUT_COPY):
            check_copy(queue, inside, d, size)
        reason = put_in_core(queue, inside, d, ext, data, size, expiry, flags, &arrival)
        if reason == 0 or is_warning(reason):
            attend_copy(queue, inside, &arrival, d, ext, data, size, flags)
            attend(
                queue.connection, inside, &queue.to, &arrival, d.priority, flags,
                d.report & MQRO_COA != 0,
            )
    except BaseException:
        if inside is not unit:
            inside.finish(False)
        raise
    return end_own_unit(inside, unit, reason)


cdef int put_in_core(
    QueueHandle queue, Unit unit, ps_descriptor *d, const ps_descriptor_ext *ext,
    const char *data, Py_ssize_t size, int32_t expiry, uint32_t flags, mqe_arrival *arrival
) except -1:
    """The call of the core."""
    cdef penstock_gil gil
    cdef mqe_unit *core
    cdef int reason
    while True:
        begin_call(queue, unit)
        core = core_unit(unit)
        penstock_gil_arm_call(&gil, size > LONG_COPY)
        reason = mqe_put_attended(
            queue.connection.manager, core, &queue.to, d, ext, data, <uint64_t>size, expiry, flags,
            arrival,
        )
        penstock_gil_take_call(&gil)
        end_call(queue, unit)
        if not is_to_repeat(reason):
            return reason


cdef int transmit_attended(
    QueueHandle queue, Unit unit, mqe_destination *to, const char *header, ps_descriptor *d,
    const ps_descriptor_ext *ext, const char *data, Py_ssize_t size, int32_t expiry, uint32_t flags
) except -1:
    """The rest of transmit() after MQE_ATTENDED of its transmission queue."""
    cdef Unit inside = attended_unit(queue, unit)
    cdef mqe_arrival arrival
    cdef int reason
    if inside is not unit:
        flags |= MQE_PUT_OWN_UNIT
    try:
        reason = transmit_to(
            queue, inside, to, header, d, ext, data, size, expiry, flags, &arrival
        )
        if reason == 0 or is_warning(reason):
            attend(queue.connection, inside, to, &arrival, d.priority, flags, False)
    except BaseException:
        if inside is not unit:
            inside.finish(False)
        raise
    return end_own_unit(inside, unit, reason)
