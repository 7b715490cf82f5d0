# expiry.pyx - expired messages that asked for a report (MQRO_EXPIRATION): the report is made, and
# the message discarded ("Expiry", "Report options and message flags").
#
# Terms
#   reported message  such a message: the core keeps it, and no get finds it, until this has been
#                     done.
#   own unit          as client/report.pyx.
#
# Who does it. The get or browse that meets the message on its way to another one (MQE_EXPIRED), at
# once. Where none comes by: each get that waits, on any queue, about once a second, and
# Connection.make_reports(), for the queues in which the maintenance of some process has met one.
#
# Invariants
#   1. Report and removal are one own unit, never the caller's: when a process is killed, both have
#      happened, or neither and somebody else does it.
#   2. A report on expiration has no expiry: nothing remains that MQRO_PASS_DISCARD_AND_EXPIRY could
#      pass.
#   3. A report that cannot be delivered becomes a dead letter, unless the message had
#      MQRO_DISCARD_MSG or MQRO_PASS_DISCARD_AND_EXPIRY; without a dead-letter queue that takes it,
#      it is discarded, and logged. The message has expired in any case. While the queue manager has
#      no room for any message (2192, 2102, 2071), the expired one stays.
#
# Locks. As client/get.pyx.
#
# Errors. As a put outside syncpoint: those that end the connection or its process, and of the
# flush.


cdef bint report_expired(QueueHandle queue, uint64_t number) except -1:
    """Reports and discards the expired message with that number of the handle's queue, the first
    one with 0; False when there is none.
    """
    cdef Unit own = new_call_unit()
    cdef bint found
    cdef int reason
    own.start(queue.connection)
    try:
        found = report_first_expired(queue, own, number)
    except BaseException:
        own.finish(False)
        raise
    reason = own.finish(found)
    if reason:
        fail(reason, f"queue {queue.name}, report on an expired message")
    return found


cdef bint report_first_expired(QueueHandle queue, Unit own, uint64_t number) except -1:
    """The same in the unit."""
    cdef mqe_get_t get
    cdef get_request request
    cdef PyObject *room = NULL
    cdef Py_ssize_t capacity = 0
    cdef bytes whole
    cdef int reason
    get.flags = 0
    get.wait_us = 0
    get.match = MQE_MATCH_EXPIRED | (MQE_MATCH_NUMBER if number else 0)
    get.match_number = number
    request.limit = -1
    request.wait_us = 0
    reason = get_body(queue, own, &get, &request, &room, &capacity)
    if reason == RC_NO_MSG_AVAILABLE:
        mqx_error_clear()
        return False
    if reason:  # else the caller would meet the message for ever
        fail(reason, f"queue {queue.name}, report on an expired message")
    whole = steal(room)
    if get.d.report & MQRO_EXPIRATION and get.d.has_ext and has_report_queue(&get.d, &get.ext):
        send_expired(queue.connection, own, &get, PyBytes_AS_STRING(whole))
    return True


cdef int send_expired(
    Connection connection, Unit own, const mqe_get_t *get, const char *data
) except -1:
    """Delivers the report, or logs that it is lost; raises when there is no room for any message.
    """
    try:
        send_report(
            connection, own, &get.d, &get.ext, data, <Py_ssize_t>get.length, MQEI_UNLIMITED,
            MQFB_EXPIRATION, MQE_PUT_OWN_UNIT,
        )
    except MQError as error:
        if has_stopped(error.reason) or error.reason in (
            RC_STORAGE_MEDIUM_FULL, RC_STORAGE_NOT_AVAILABLE, RC_RESOURCE_PROBLEM
        ):
            raise
        report_lost(
            connection, from_blank_padded(get.ext.reply_to_q, NAME_LENGTH),
            from_blank_padded(get.ext.reply_to_qmgr, NAME_LENGTH), error.reason,
        )
    return 0


cdef int report_met(QueueHandle queue, mqe_get_t *get) except -1:
    """After MQE_EXPIRED, before the call is made again. A message whose report has no room now is
    passed over, and stays: a full journal must not keep gets from what is behind it. A call for an
    event loop is left to another thread, as a report may be flushed.
    """
    if penstock_is_at_once():
        raise_would_block()
    try:
        report_expired(queue, get.number)
    except MQError as error:
        if has_stopped(error.reason):
            raise
        get.flags &= ~<uint32_t>MQE_GET_REPORT_EXPIRED
    return 0


cdef Py_ssize_t report_hinted(Connection connection) except -1:
    """Reports and discards expired messages of queues in which the maintenance has met some; how
    many.
    """
    cdef QueueHandle queue
    cdef uint32_t slot, generation
    cdef Py_ssize_t count = 0
    while count < EXPIRED_AT_ONCE and mqe_expired_take(connection.manager, &slot, &generation):
        queue = QueueHandle.__new__(QueueHandle)
        queue.start(connection, f"in slot {slot}", MQOO_BROWSE)
        queue.to = mqe_direct(slot, generation)
        try:
            queue.open_core(NULL)
        except MQError as error:
            if has_stopped(error.reason):
                raise
            continue  # it has been deleted
        try:
            while count < EXPIRED_AT_ONCE and report_expired(queue, 0):
                count += 1
        except MQError as error:
            if has_stopped(error.reason):
                raise
            return count  # whoever waits goes on; the maintenance meets the message again
        finally:
            queue.shut_with(MQE_CLOSE_KEEP)
    return count
