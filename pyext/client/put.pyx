# put.pyx - one put: its arguments into a put_request, and the call of the core.
#
# Invariants
#   1. The extension of a request is written when its first field is: extended() makes it blank.
#   2. A put of at most LONG_COPY bytes keeps the GIL until the core blocks (crash-safety rule 34).
#   3. The data cannot change or move during a put: it is immutable, or its buffer is held.
#
# Locks. `busy` of the handle and of the unit count the call (client/core_call.pyx).
#
# Errors. The reason code of the argument that does not fit; then what the core says.

cdef bytes FORMAT_TEXT = b"MQSTR   "  # MQFMT_STRING, padded
cdef object encode_json = None         # imported when first needed


cdef inline void start_put(put_request *put, QueueHandle queue) noexcept:
    """A message with this program's context, the defaults of the queue, and no id."""
    memcpy(&put.d, &queue.template, sizeof(put.d))
    put.extended = False
    put.expiry = MQEI_UNLIMITED
    put.flags = queue.put_flags


cdef ps_descriptor_ext *extended(put_request *put) noexcept:
    """The extension of a message, which counts from here on."""
    if not put.extended:
        blank_extension(&put.ext)
        put.extended = True
        put.d.has_ext = 1
    return &put.ext


cdef inline const ps_descriptor_ext *extension_of(const put_request *put) noexcept:
    """The extension, NULL when the message has none."""
    return &put.ext if put.extended else NULL


# ---- the call ----

cdef PutResult put_bytes(
    QueueHandle queue, Unit unit, put_request *put, const char *data, Py_ssize_t size
):
    """Puts and makes the result; warnings do not raise."""
    cdef PutResult result = PutResult.__new__(PutResult)
    cdef int reason = send(
        queue, unit, &put.d, extension_of(put), data, size, put.expiry, put.flags
    )
    if reason and not is_warning(reason):
        fail(reason, f"queue {queue.name}")
    if reason == 0 and put.d.report & ~RO_KNOWN:
        reason = RC_UNKNOWN_REPORT_OPTION
    result.reason = reason
    memcpy(result._msg_id, put.d.msg_id, ID_LENGTH)
    return result


cdef inline PutResult put_body(
    QueueHandle queue, Unit unit, put_request *put, object data, object json, object format
):
    """Puts bytes, a text, the bytes of any object with the buffer protocol, or a value as JSON.
    Ellipsis: the caller has not given it; of the format, that is None.
    """
    if type(data) is not bytes or json is not ...:
        if data is ... or json is not ...:
            data = json_body(data, json)
        if not isinstance(data, str):
            return put_view(queue, unit, put, data)
        data = text_body(<str>data, put, format)
    return put_bytes(queue, unit, put, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))


cdef PutResult put_view(QueueHandle queue, Unit unit, put_request *put, object data):
    """Puts the bytes of any object with the buffer protocol."""
    cdef Py_buffer view
    try:
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    except (TypeError, BufferError) as error:
        raise InvalidType(RC_BUFFER_ERROR, f"data must be bytes-like: {error}") from None
    try:
        return put_bytes(queue, unit, put, <const char *>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


cdef inline int send(
    QueueHandle queue, Unit unit, ps_descriptor *d, const ps_descriptor_ext *ext,
    const char *data, Py_ssize_t size, int32_t expiry, uint32_t flags,
) except -1:
    """Puts, here or onto a transmission queue; returns the reason code."""
    if queue.remote:
        return transmit(queue, unit, d, ext, data, size, expiry, flags)
    if d.report & MQRO_COA and not queue.transmission:
        if penstock_is_at_once():  # its unit of work would flush
            raise_would_block()
        return put_confirmed(queue, unit, d, ext, data, size, expiry, flags)
    return send_here(queue, unit, d, ext, data, size, expiry, flags)


cdef inline int send_here(
    QueueHandle queue, Unit unit, ps_descriptor *d, const ps_descriptor_ext *ext,
    const char *data, Py_ssize_t size, int32_t expiry, uint32_t flags,
) except -1:
    """Puts on a queue of this queue manager."""
    cdef penstock_gil gil
    cdef mqe_unit *core
    cdef int reason
    while True:
        begin_call(queue, unit)
        core = core_unit(unit)
        penstock_gil_arm_call(&gil, size > LONG_COPY)
        reason = mqe_put(
            queue.connection.manager, core, &queue.to, d, ext, data, <uint64_t>size, expiry, flags
        )
        penstock_gil_take_call(&gil)
        end_call(queue, unit)
        if reason == MQE_ATTENDED:
            if penstock_is_at_once():
                raise_would_block()
            return put_attended(queue, unit, d, ext, data, size, expiry, flags)
        if not is_to_repeat(reason):  # else nothing was put
            return reason


# ---- text ----

cdef bytes text_body(str text, put_request *put, object format):
    """A text as UTF-8. Format says that it is text, unless the caller chose another one."""
    if put.d.ccsid != MQCCSI_UTF8:
        wrong_value(
            RC_SOURCE_CCSID_ERROR,
            f"ccsid {put.d.ccsid}: a text is put in CCSID {MQCCSI_UTF8} (UTF-8); encode it for "
            f"another one",
        )
    if format is None:
        memcpy(put.d.format, PyBytes_AS_STRING(FORMAT_TEXT), MQ_FORMAT_LENGTH)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidValue(RC_BUFFER_ERROR, f"data cannot be encoded: {error}") from None


cdef str json_body(object data, object value):
    """The text of a value as JSON; `data` must be absent."""
    global encode_json
    if value is ...:
        wrong_type(RC_BUFFER_ERROR, "put() needs at least 1 of data and json")
    if data is not ...:
        wrong_type(RC_BUFFER_ERROR, "put() takes data or json, not both")
    if encode_json is None:
        import json

        encode_json = json.JSONEncoder(
            ensure_ascii=False, allow_nan=False, separators=(",", ":")
        ).encode
    try:
        return encode_json(value)
    except TypeError as error:
        raise InvalidType(RC_BUFFER_ERROR, f"json: {error}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidValue(RC_BUFFER_ERROR, f"json: {error}") from None


# ---- arguments ----

cdef int take_persistence(object value, ps_descriptor *d) except -1:
    cdef int32_t number
    if value is True:
        d.persistence = MQPER_PERSISTENT
    elif value is False:
        d.persistence = MQPER_NOT_PERSISTENT
    elif isinstance(value, int):
        take_int(value, &number, RC_PERSISTENCE_ERROR, "persistent")
        if not 0 <= number <= MQPER_PERSISTENCE_AS_Q_DEF:
            wrong_value(RC_PERSISTENCE_ERROR, f"persistent {value!r} is not 0, 1 or 2")
        d.persistence = <uint8_t>number
    else:
        wrong_type(RC_PERSISTENCE_ERROR, f"persistent must be True, False or None: {value!r}")
    return 0


cdef int take_reply_to(
    object reply_to_q, object reply_to_qmgr, put_request *put, Connection connection
) except -1:
    """ReplyToQ and ReplyToQMgr; either may be None. A blank ReplyToQMgr is completed."""
    cdef ps_descriptor_ext *ext = extended(put)
    if reply_to_q is not None:
        take_text(reply_to_q, ext.reply_to_q, NAME_LENGTH, "reply_to_q")
    if reply_to_qmgr is not None:
        take_text(reply_to_qmgr, ext.reply_to_qmgr, NAME_LENGTH, "reply_to_qmgr")
    if reply_to_q is not None:
        complete_reply(connection, ext)
    return 0


cdef int complete_reply(Connection connection, ps_descriptor_ext *ext) except -1:
    """A blank ReplyToQMgr: of the reply-queue alias that ReplyToQ names, else the local one."""
    cdef mqe_found found
    cdef int reason
    if is_blank(ext.reply_to_q, NAME_LENGTH) or not is_blank(ext.reply_to_qmgr, NAME_LENGTH):
        return 0
    connection.check_open()
    reason = mqe_find(connection.manager, NAME_SPACE_QUEUES, ext.reply_to_q, 0, &found)
    if reason == 0 and found.type == MQQT_REMOTE:
        queue, manager = reply_alias(connection, from_blank_padded(ext.reply_to_q, NAME_LENGTH))
        take_text(queue, ext.reply_to_q, NAME_LENGTH, "RNAME")
        take_text(manager, ext.reply_to_qmgr, NAME_LENGTH, "RQMNAME")
        return 0
    mqx_error_clear()
    memcpy(ext.reply_to_qmgr, connection.padded_name, NAME_LENGTH)
    return 0


cdef int take_msg_seq_number(object value, ps_descriptor_ext *ext) except -1:
    return take_count(value, &ext.msg_seq_number, RC_MSG_SEQ_NUMBER_ERROR, "msg_seq_number")


cdef int take_msg_flags(object value, ps_descriptor_ext *ext) except -1:
    take_int(value, &ext.msg_flags, RC_MSG_FLAGS_ERROR, "msg_flags")
    if ext.msg_flags & ~MF_KNOWN:
        wrong_value(RC_MSG_FLAGS_ERROR, f"msg_flags {value!r} has unknown bits")
    return 0


cdef int take_appl_identity_data(object value, ps_descriptor_ext *ext) except -1:
    return take_text(
        value, ext.appl_identity_data, MQ_APPL_IDENTITY_DATA_LENGTH, "appl_identity_data"
    )


cdef inline bint has_reply_q(const put_request *put) noexcept:
    return put.extended and put.ext.reply_to_q[0] != BLANK


cdef int take_msg_type(object value, put_request *put) except -1:
    take_count(value, &put.d.msg_type, RC_MSG_TYPE_ERROR, "msg_type")
    if put.d.msg_type == MQMT_REQUEST and not has_reply_q(put):
        wrong_value(RC_MISSING_REPLY_TO_Q, "a request (msg_type 1) needs reply_to_q")
    return 0


cdef int take_report(object value, put_request *put) except -1:
    take_int(value, &put.d.report, RC_REPORT_OPTIONS_ERROR, "report")
    if put.d.report & MQRO_REJECT_UNSUP_MASK:
        wrong_value(RC_REPORT_OPTIONS_ERROR, f"report {value!r} has options that are not known")
    if lacks_any_plain(put.d.report):
        wrong_value(
            RC_REPORT_OPTIONS_ERROR, f"report {value!r} asks for data without the report itself"
        )
    if put.d.report & RO_NEEDS_REPLY_Q and not has_reply_q(put):
        wrong_value(RC_MISSING_REPLY_TO_Q, f"report {value!r} needs reply_to_q")
    return 0


cdef PutResult put_with_descriptor_of(
    QueueHandle queue, Message message, bytes data, str format, object unit
):
    """QueueHandle.put_again()."""
    cdef put_request put
    cdef Unit bound = None
    if queue.closed or not queue.options & MQE_OUTPUT:
        queue.raise_not_open_for_output()
    memcpy(&put.d, &message._d, sizeof(put.d))
    put.extended = message._ext is not None
    if put.extended:
        memcpy(&put.ext, message.extension(), sizeof(put.ext))
    put.expiry = message._expiry
    put.flags = queue.put_flags | MQE_PUT_KEEP_TIME
    put.d.put_time_us = known_time(put.d.put_time_us)
    if format is not None:
        take_text(format, put.d.format, MQ_FORMAT_LENGTH, "format")
        put.d.encoding = MQENC_NATIVE
        put.d.ccsid = MQCCSI_UTF8
    if unit is not None or open_transactions != 0:
        bound = bind_unit(queue.connection, None, unit)
    try:
        return put_bytes(queue, bound, &put, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    finally:
        unbind_unit(bound)
