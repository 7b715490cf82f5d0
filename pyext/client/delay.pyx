# delay.pyx - delayed messages: the due time of a put, their browse, and their cancellation.
#
# Invariants
#   1. A delay is checked before anything is put: a queue whose messages leave at once has none.
#   2. A message that was cancelled is got by nobody: the core decides, in one lock hold.
#
# Locks. `busy` of the handle counts the call (client/core_call.pyx).
#
# Errors. 2045 for a delay on a remote queue; 2037 for a cancellation without an open for input;
# 2046 for a browse of delayed messages that would take or lock one.


cdef int refuse_delay_when_remote(QueueHandle queue) except -1:
    """QueueHandle.check_delays()."""
    if queue.remote:
        raise error_for(
            RC_OPTION_NOT_VALID_FOR_TYPE,
            f"{queue.name} is a remote queue: a delay is for queues of this queue manager",
        )
    return 0


cdef int take_due_for(QueueHandle queue, object delay, object at, uint64_t *out) except -1:
    """The due time of a message that is put to the queue."""
    refuse_delay_when_remote(queue)
    return take_due(queue.connection, delay, at, out)


cdef uint32_t match_of_delayed(object browse, object lock) except 0:
    """The match of a browse that shows delayed messages."""
    if browse not in ("first", "next") or lock:
        wrong_value(RC_OPTIONS_ERROR, "delayed is for browse='first' and 'next' without lock")
    return MQE_MATCH_DELAYED


cdef bint cancel_by_id(QueueHandle queue, object msg_id) except -1:
    """QueueHandle.cancel_delayed()."""
    cdef penstock_gil gil
    cdef uint8_t wanted[ID_LENGTH]
    cdef int reason
    take_id(msg_id, wanted, RC_MSG_ID_ERROR, "msg_id")
    if queue.closed:
        queue.raise_closed()
    if not queue.options & OO_INPUT:
        raise error_for(RC_NOT_OPEN_FOR_INPUT, f"queue {queue.name} was not opened for input")
    while True:
        begin_call(queue, None)
        penstock_gil_arm_call(&gil, False)
        reason = mqe_cancel_delayed(
            queue.connection.manager, queue.to.queue, queue.to.queue_generation, wanted
        )
        penstock_gil_take_call(&gil)
        end_call(queue, None)
        if not is_to_repeat(reason):
            break
    if reason == RC_NO_MSG_AVAILABLE:
        mqx_error_clear()
        return False
    if reason:
        fail(reason, f"queue {queue.name}")
    return True
