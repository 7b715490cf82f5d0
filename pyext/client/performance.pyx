# performance.pyx - event messages of performance events: a queue is full, its depth is high or low,
# its service interval is exceeded or kept ("Performance events").
#
# Terms
#   owed   said of an event that has occurred, and whose message has not been made.
#
# Who makes the message. The call that has caused the event, when it has ended (end_call()); for a
# call of an event loop another thread, as the definition of the queue changes with its events, and
# that is flushed. What a killed process owes is made by the next put or get on the queue, or by
# whoever looks for reports that are due: Connection.make_reports().
#
# Invariants
#   1. The message is in no unit of work: a backout does not take it back.
#   2. What happens here changes no outcome and no error text of the call that has ended. A signal
#      handler that raises meanwhile does so when that call has returned.
#   3. A message that its queue does not take is lost, and that is logged: MQ has no dead letters of
#      events.
#
# Locks. `making_events` changes with the GIL held; one thread of a connection makes messages.

cdef const char *FORMAT_EVENT = b"MQEVENT "


cdef void make_events(Connection connection) noexcept:
    """Makes the messages that are owed."""
    cdef bytes text
    if connection.making_events or penstock_is_at_once():
        return  # the flag stays
    text = mqe_error_text()
    connection.making_events = True
    try:
        take_events(connection)
    except KeyboardInterrupt:
        PyErr_SetInterrupt()
    except MQError:
        pass  # it has stopped, or has been closed meanwhile
    finally:
        connection.making_events = False
        if text:
            mqx_fail(RC_UNEXPECTED_ERROR, b"%s", <char *>text)
        else:
            mqx_error_clear()


cdef inline bint may_owe_events(QueueHandle queue) noexcept:
    """Whether event messages are owed, as far as a call that has just ended knows."""
    cdef Connection connection = queue.connection
    return not connection.closed and connection.forks == penstock_forks and (
        connection.events_fired[0] != 0
    )


cdef Py_ssize_t take_events(Connection connection) except -1:
    """The same; how many. Raises what ends the connection."""
    cdef mqe_queue_statistics_t found
    cdef uint32_t slot, generation
    cdef Py_ssize_t count = 0
    cdef bint any
    while count < EVENTS_AT_ONCE:
        connection.begin()
        with nogil:  # it may wait for the queue's lock
            any = mqe_performance_take(connection.manager, &slot, &generation, &found)
        connection.busy -= 1
        if not any:
            break
        count += 1
        try:
            event_of_queue(
                connection, slot, generation, found.event, found.seconds, found.high_depth,
                found.put_count, found.get_count,
            )
        except MQError as error:  # the queue has been deleted, for one
            if has_stopped(error.reason):
                raise
    return count


cdef int put_event(Connection connection, str name, bytes data) except -1:
    """Puts an event message; raises what keeps it from its queue."""
    cdef put_request made
    start_manager_message(&made, connection, FORMAT_EVENT)
    memcpy(extended(&made).reply_to_qmgr, connection.padded_name, NAME_LENGTH)
    made.d.persistence = MQPER_PERSISTENCE_AS_Q_DEF
    return put_for_manager(
        connection, None, name, "", &made.d, extension_of(&made), PyBytes_AS_STRING(data),
        PyBytes_GET_SIZE(data), made.expiry, made.flags,
    )
