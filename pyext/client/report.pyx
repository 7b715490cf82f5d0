# report.pyx - report messages on the arrival (COA) and the delivery (COD) of a message, which the
# queue manager makes; those on its expiration are made of the same parts (client/expiry.pyx)
# ("Report options and message flags", "MQMD - Report field").
#
# Terms
#   confirmation  such a report: Feedback MQFB_COA when the message has been placed on its
#                 destination queue, MQFB_COD when it has been got destructively.
#   own unit      a unit of work of one call: that of a put or get outside syncpoint.
#
# Invariants
#   1. A confirmation is in one unit of work with the put or get that it is about: the caller's, or
#      an own unit. So both become visible and durable together, or neither.
#   2. A call in the caller's unit that raises when its message has been put or got leaves a unit
#      that can only be backed out (Unit.failed): a commit is 2003.
#   3. A confirmation asks for no report, and neither transmission queues nor dead letters confirm:
#      their messages have not arrived where they were sent.
#
# What cannot be delivered becomes a dead letter with the reason code, unless the message had
# MQRO_DISCARD_MSG or MQRO_PASS_DISCARD_AND_EXPIRY. Without a dead-letter queue that takes it, a
# report that is not persistent is discarded, and logged; with a persistent one the call fails.
#
# Locks. As client/put.pyx and client/get.pyx, whose calls these are.
#
# Errors. 2024 when the caller's unit has no room for a message and its report; of a persistent
# report that nothing takes, the reason of its put outside syncpoint, 2003 in a unit.

cdef const char *FORMAT_DEAD = b"MQDEAD  "


# ---- what a report is ----

cdef void start_report(
    put_request *report, Connection connection, const ps_descriptor *d,
    const ps_descriptor_ext *ext, int32_t expiry, int32_t feedback
) noexcept:
    """The descriptor of a report about a message: its ids as the message's report options say, its
    priority, persistence and identity context; the origin is the queue manager.
    """
    cdef ps_descriptor *made = &report.d
    memset(made, 0, sizeof(made[0]))
    memcpy(made.correl_id, d.msg_id, ID_LENGTH)
    if d.report & MQRO_PASS_CORREL_ID:
        memcpy(made.correl_id, d.correl_id, ID_LENGTH)
    if d.report & MQRO_PASS_MSG_ID:
        memcpy(made.msg_id, d.msg_id, ID_LENGTH)
    if d.report & (MQRO_DISCARD_MSG | MQRO_PASS_DISCARD_AND_EXPIRY):
        made.report = MQRO_DISCARD_MSG
    made.priority = d.priority
    made.persistence = d.persistence
    made.msg_type = MQMT_REPORT
    made.feedback = feedback
    made.encoding = MQENC_NATIVE
    made.ccsid = MQCCSI_UTF8
    made.md_version = d.md_version
    memset(made.format, BLANK, MQ_FORMAT_LENGTH)
    memcpy(made.user_identifier, d.user_identifier, MQ_USER_ID_LENGTH)
    memcpy(made.accounting_token, d.accounting_token, MQ_ACCOUNTING_TOKEN_LENGTH)
    made.put_appl_type = MQAT_QMGR
    memcpy(made.put_appl_name, connection.padded_name, MQ_PUT_APPL_NAME_LENGTH)
    memset(made.appl_origin_data, BLANK, MQ_APPL_ORIGIN_DATA_LENGTH)
    report.expiry = expiry if d.report & MQRO_PASS_DISCARD_AND_EXPIRY else MQEI_UNLIMITED
    report.flags = 0
    report.extended = False
    if has_group_fields(ext) or not is_blank(
        ext.appl_identity_data, MQ_APPL_IDENTITY_DATA_LENGTH
    ):
        memcpy(extended(report), ext, sizeof(ext[0]))
        memset(report.ext.reply_to_q, BLANK, NAME_LENGTH)
        memset(report.ext.reply_to_qmgr, BLANK, NAME_LENGTH)


cdef int32_t report_without_data(int32_t feedback) noexcept:
    """MQRO_* of the report with this feedback, without data of the message."""
    if feedback == MQFB_EXPIRATION:
        return MQRO_EXPIRATION
    return MQRO_COA if feedback == MQFB_COA else MQRO_COD


cdef Py_ssize_t take_report_data(
    put_request *report, const ps_descriptor *d, int32_t plain, Py_ssize_t size
) noexcept:
    """How many bytes of the message the report has: none, 100 or all. Then its format is the
    message's. `plain`: MQRO_* of this kind of report without data; the bits of the options with
    data and with full data follow it.
    """
    if not d.report & (plain << 1 | plain << 2):
        return 0
    report.d.encoding = d.encoding
    report.d.ccsid = d.ccsid
    memcpy(report.d.format, d.format, MQ_FORMAT_LENGTH)
    return size if d.report & plain << 2 else min(size, <Py_ssize_t>RO_DATA_BYTES)


# ---- where it goes ----

cdef void start_manager_message(
    put_request *made, Connection connection, const char *format
) noexcept:
    """The descriptor of a message of the queue manager about a queue: a trigger or an event. Not
    persistent, with the priority of its queue, and nobody's identity.
    """
    memset(&made.d, 0, sizeof(made.d))
    made.d.priority = MQPRI_PRIORITY_AS_Q_DEF
    made.d.msg_type = MQMT_DATAGRAM
    made.d.encoding = MQENC_NATIVE
    made.d.ccsid = MQCCSI_UTF8
    made.d.md_version = MQMD_VERSION_1
    memcpy(made.d.format, format, MQ_FORMAT_LENGTH)
    memset(made.d.user_identifier, BLANK, MQ_USER_ID_LENGTH)
    made.d.put_appl_type = MQAT_QMGR
    memcpy(made.d.put_appl_name, connection.padded_name, MQ_PUT_APPL_NAME_LENGTH)
    memset(made.d.appl_origin_data, BLANK, MQ_APPL_ORIGIN_DATA_LENGTH)
    made.expiry = MQEI_UNLIMITED
    made.flags = 0
    made.extended = False


cdef QueueHandle open_for_manager(Connection connection, str name, str manager):
    """A handle for a message of the queue manager: a report, or a copy for a stream queue. A model
    queue is 2057: nobody would know the queue.
    """
    cdef mqe_found found
    if not manager and connection.find(NAME_SPACE_QUEUES, name, 0, &found) == 0:
        if found.type == MQQT_MODEL:
            raise error_for(
                RC_Q_TYPE_ERROR, f"queue {name} is a model queue: no message of the queue manager "
                f"goes there"
            )
    return QueueHandle(connection, name, MQOO_OUTPUT, False, manager=manager)


cdef int put_for_manager(
    Connection connection, Unit unit, str name, str manager, ps_descriptor *d,
    const ps_descriptor_ext *ext, const char *data, Py_ssize_t size, int32_t expiry, uint32_t flags
) except -1:
    """Puts such a message; raises what keeps it from its queue."""
    cdef QueueHandle queue = open_for_manager(connection, name, manager)
    cdef int reason
    try:
        reason = send(queue, unit, d, ext, data, size, expiry, flags)
        if reason and not is_warning(reason):
            fail(reason, f"queue {name}")
    finally:
        queue.shut_with(MQE_CLOSE_KEEP)
    mqx_error_clear()
    return 0


cdef int put_report(
    Connection connection, Unit unit, put_request *report, const char *data, Py_ssize_t size,
    str name, str manager, uint32_t flags
) except -1:
    """Puts a report; raises what keeps it from its queue."""
    return put_for_manager(
        connection, unit, name, manager, &report.d, extension_of(report), data, size,
        report.expiry, flags,
    )


cdef int put_dead_report(
    Connection connection, Unit unit, put_request *report, const char *data, Py_ssize_t size,
    str name, str manager, int reason, uint32_t flags
) except -1:
    """The report as a dead letter, with the reason that kept it from its queue."""
    cdef bytes letter
    target, header = dead_letter_of_report(
        connection, reason, name, manager, report.d.encoding, report.d.ccsid,
        from_blank_padded(report.d.format, MQ_FORMAT_LENGTH),
    )
    letter = <bytes>header + PyBytes_FromStringAndSize(data, size)
    memcpy(report.d.format, FORMAT_DEAD, MQ_FORMAT_LENGTH)
    report.d.encoding = MQENC_NATIVE
    report.d.ccsid = MQCCSI_UTF8
    return put_report(
        connection, unit, report, PyBytes_AS_STRING(letter), PyBytes_GET_SIZE(letter), target, "",
        flags,
    )


cdef int deliver(
    Connection connection, Unit unit, put_request *report, const char *data, Py_ssize_t size,
    str name, str manager, uint32_t flags
) except -1:
    """Puts a report where it belongs, else on the dead-letter queue, else discards it; raises when
    it may not be discarded.
    """
    cdef ps_descriptor d = report.d
    try:
        return put_report(connection, unit, report, data, size, name, manager, flags)
    except MQError as error:
        if has_stopped(error.reason):
            raise
        failure = error
    report.d = d
    if d.report & MQRO_DISCARD_MSG:
        return 0
    try:
        return put_dead_report(
            connection, unit, report, data, size, name, manager, failure.reason, flags
        )
    except MQError as error:
        if has_stopped(error.reason):
            raise
    if d.persistence == MQPER_PERSISTENT:
        raise failure
    report_lost(connection, name, manager, failure.reason)
    return 0


cdef bint has_report_queue(const ps_descriptor *d, const ps_descriptor_ext *ext) noexcept:
    """Whether there can be a report on the message: it names a queue for it, and is no dead letter.
    """
    return ext is not NULL and not is_blank(ext.reply_to_q, NAME_LENGTH) and memcmp(
        d.format, FORMAT_DEAD, MQ_FORMAT_LENGTH
    ) != 0


cdef int send_report(
    Connection connection, Unit unit, const ps_descriptor *d, const ps_descriptor_ext *ext,
    const char *data, Py_ssize_t size, int32_t expiry, int32_t feedback, uint32_t flags
) except -1:
    """Makes the report on a message, and delivers it."""
    cdef put_request report
    cdef str name, manager = ""
    start_report(&report, connection, d, ext, expiry, feedback)
    size = take_report_data(&report, d, report_without_data(feedback), size)
    name = from_blank_padded(ext.reply_to_q, NAME_LENGTH)
    if memcmp(ext.reply_to_qmgr, connection.padded_name, NAME_LENGTH) != 0:
        manager = from_blank_padded(ext.reply_to_qmgr, NAME_LENGTH)
    return deliver(connection, unit, &report, data, size, name, manager, flags)


# ---- confirmations ----

cdef int confirm(
    Connection connection, Unit unit, const ps_descriptor *d, const ps_descriptor_ext *ext,
    const char *data, Py_ssize_t size, int32_t expiry, int32_t feedback, uint32_t flags
) except -1:
    """Makes and puts the confirmation for a message that has just been put or got in the unit.
    `data`: the whole of it; `flags`: MQE_PUT_OWN_UNIT in an own unit.
    """
    if not has_report_queue(d, ext):
        return 0
    try:
        send_report(connection, unit, d, ext, data, size, expiry, feedback, flags)
    except MQError as error:
        unit.failed = True
        if flags & MQE_PUT_OWN_UNIT or has_stopped(error.reason):
            raise
        raise error_for(
            RC_BACKED_OUT, f"the unit of work can only be backed out: its report has no place "
            f"({error.text})"
        ) from None
    except BaseException:
        unit.failed = True
        raise
    return 0


cdef Unit unit_with_report(QueueHandle queue, Unit unit):
    """The unit of a message and its confirmation: the caller's, or an own one for `unit` None."""
    cdef Unit own
    if unit is None:
        own = new_call_unit()
        own.start(queue.connection)
        return own
    if unit.state == UNIT_OPEN and mqe_unit_room(unit.unit) < 2:
        raise error_for(
            RC_SYNCPOINT_LIMIT_REACHED,
            f"queue {queue.name}: MAXUMSGS leaves the unit of work no room for a message and the "
            f"report on it",
        )
    return unit


cdef int end_own_unit(Unit own, Unit unit, int reason) except -1:
    """Ends an own unit after its call returned `reason`; nothing for the caller's. The reason code
    of both.
    """
    cdef int ended
    if own is unit:
        return reason
    ended = own.finish(reason == 0 or is_warning(reason))
    return reason if ended == 0 or (reason and not is_warning(reason)) else ended


# ---- arrival ----

cdef int put_confirmed(
    QueueHandle queue, Unit unit, ps_descriptor *d, const ps_descriptor_ext *ext,
    const char *data, Py_ssize_t size, int32_t expiry, uint32_t flags
) except -1:
    """Puts a message that asks for a confirmation of its arrival, and that; as send()."""
    cdef Unit inside = unit
    cdef int reason
    if not flags & MQE_PUT_OWN_UNIT:
        inside = unit_with_report(queue, unit)
    if unit is None:
        flags |= MQE_PUT_OWN_UNIT
    try:
        reason = send_here(queue, inside, d, ext, data, size, expiry, flags)
        if reason == 0 or is_warning(reason):
            confirm(
                queue.connection, inside, d, ext, data, size,
                mqe_cap_expiry(queue.connection.manager, &queue.to, expiry), MQFB_COA,
                flags & MQE_PUT_OWN_UNIT,
            )
    except BaseException:
        if inside is not unit:
            inside.finish(False)
        raise
    return end_own_unit(inside, unit, reason)


# ---- delivery ----

cdef void confirm_gets(QueueHandle queue) noexcept:
    """Gets through the handle confirm deliveries, but not those of a transmission queue: its
    messages go on.
    """
    if not queue.transmission:
        queue.get_flags |= MQE_GET_CONFIRM


cdef int get_with_report(
    QueueHandle queue, Unit unit, mqe_get_t *get, PyObject *room, int reason
) except -1:
    """The rest of get_body() after MQE_CONFIRM: gets the message described, and confirms it. 2033
    or 2034 when somebody else has it by now, and after MQE_EXPIRED, whose report has been made
    then: look again. `room` is the caller's no longer when it raises.
    """
    try:
        if reason == MQE_EXPIRED:
            report_met(queue, get)
            return RC_NO_MSG_AVAILABLE
        if penstock_is_at_once():  # its unit of work would flush
            raise_would_block()
        return get_described(queue, unit, get)
    except BaseException:
        Py_DECREF(room)
        raise


cdef int get_described(QueueHandle queue, Unit unit, mqe_get_t *get) except -1:
    """The same, into the memory of get.buffer, as much of the body as that has room for."""
    cdef mqe_get_t one = get[0]
    cdef Unit inside
    cdef int reason
    if get.flags & MQE_GET_IF_PERSISTENT and get.d.persistence != MQPER_PERSISTENT:
        unit = None
    one.flags &= ~<uint32_t>(MQE_GET_CONFIRM | MQE_GET_WAIT | MQE_GET_IF_PERSISTENT)
    if not one.flags & MQE_GET_UNDER_CURSOR:
        one.match |= MQE_MATCH_NUMBER
        one.match_number = get.number
    inside = unit_with_report(queue, unit)
    try:
        reason = get_and_confirm(queue, inside, get, &one, inside is not unit)
    except BaseException:
        if inside is not unit:
            inside.finish(False)
        raise
    return end_own_unit(inside, unit, reason)


cdef int get_and_confirm(
    QueueHandle queue, Unit unit, mqe_get_t *get, mqe_get_t *one, bint own
) except -1:
    """Gets all of the message in the unit, puts the confirmation, and fills *get."""
    cdef get_request request
    cdef PyObject *room = NULL
    cdef Py_ssize_t capacity = 0
    cdef bytes whole
    cdef int reason
    request.limit = <Py_ssize_t>get.length + MQMDE_LENGTH_2
    request.wait_us = 0
    reason = get_body(queue, unit, one, &request, &room, &capacity)
    if reason:
        return reason
    whole = steal(room)
    confirm(
        queue.connection, unit, &one.d, &one.ext if one.d.has_ext else NULL,
        PyBytes_AS_STRING(whole), <Py_ssize_t>one.length, one.expiry, MQFB_COD,
        MQE_PUT_OWN_UNIT if own else 0,
    )
    return hand_over(get, one)


cdef int hand_over(mqe_get_t *get, const mqe_get_t *one) noexcept:
    """Copies the message that was got to where the caller wants it: 0, or 2079."""
    cdef uint64_t room = get.capacity - min(get.capacity, <uint64_t>one.header)
    memcpy(get.buffer, one.buffer, <size_t>min(room, one.length))
    get.d = one.d
    get.ext = one.ext
    get.length = one.length
    get.number = one.number
    get.expiry = one.expiry
    get.header = one.header
    return 0 if one.length + one.header <= get.capacity else RC_TRUNCATED_MSG_ACCEPTED
