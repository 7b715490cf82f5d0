# get.pyx - MQGET.
#
# Terms
#   room for an MQMDE  an MQMD of version 1 cannot show the fields of version 2: a message that has
#                      such values is returned with an MQMDE in front of its data, and a buffer must
#                      have room for both ("MQMDE - Message descriptor extension"): the core counts
#                      it and leaves its room free.
#
# Invariants
#   1. The checks come in the order of the reference: connection, handle, MQGMO, right, MQMD, match
#      options, buffer length.
#   2. Nothing that follows the removal of the message by the core can fail but for lack of memory;
#      a conversion (mqi/convert.pyx) that fails gives the data as it is.
#
# Locks. As client/get.pyx, whose get_body() gets.
#
# Errors. (data, DataLength, CompCode, Reason), as in mqi/calls.pyx.


cdef int plan_get(get_plan *plan, int32_t options) except -1:
    """What MQGMO.Options mean; raises 2046 with the rule that they break."""
    cdef object text = rules().GET.verdict(<uint32_t>options)
    cdef uint32_t flags = 0
    if text:
        raise error_for(RC_OPTIONS_ERROR, text)
    plan.options = options
    plan.destructive = options & (GMO_BROWSES | MQGMO_UNLOCK) == 0
    plan.in_unit = options & (MQGMO_SYNCPOINT | MQGMO_SYNCPOINT_IF_PERSISTENT) != 0
    plan.in_unit_zos = plan.destructive and options & (
        MQGMO_NO_SYNCPOINT | MQGMO_SYNCPOINT_IF_PERSISTENT
    ) == 0
    plan.rights = OO_INPUT if plan.destructive else MQOO_BROWSE
    if options & MQGMO_MSG_UNDER_CURSOR:
        plan.rights = OO_INPUT | MQOO_BROWSE
    for option, flag in (
        (MQGMO_BROWSE_FIRST, MQE_GET_BROWSE_FIRST),
        (MQGMO_BROWSE_NEXT, MQE_GET_BROWSE_NEXT),
        (MQGMO_BROWSE_MSG_UNDER_CURSOR, MQE_GET_BROWSE_UNDER_CURSOR),
        (MQGMO_MSG_UNDER_CURSOR, MQE_GET_UNDER_CURSOR),
        (MQGMO_LOCK, MQE_GET_LOCK),
        (MQGMO_UNLOCK, MQE_GET_UNLOCK),
        (MQGMO_ACCEPT_TRUNCATED_MSG, MQE_GET_ACCEPT_TRUNCATED),
        (MQGMO_SYNCPOINT_IF_PERSISTENT, MQE_GET_IF_PERSISTENT),
        (MQGMO_FAIL_IF_QUIESCING, MQE_GET_FAIL_IF_QUIESCING),
    ):
        if options & option:
            flags |= flag
    plan.flags = flags
    return 0


cdef int32_t properties_of(QueueHandle queue, int32_t options) except -1:
    """What is done with the properties of messages: MQGMO_NO_PROPERTIES,
    MQGMO_PROPERTIES_COMPATIBILITY or 0, they stay. Without an option for them PROPCTL of the
    definition that was opened says it ("PropertyControl (MQLONG)").
    """
    if options & GMO_PROPERTIES or queue is None:
        return options & GMO_REMOVES_PROPERTIES
    try:
        [control] = queue.connection.values(
            queue.to.first, queue.to.first_generation, (MQIA_PROPERTY_CONTROL,)
        )
    except MQError as error:
        if has_stopped(error.reason):
            raise
        return 0  # it has been deleted, as the get will say
    if control == MQPROP_NONE:
        return MQGMO_NO_PROPERTIES
    if control is None or control == MQPROP_COMPATIBILITY:
        return MQGMO_PROPERTIES_COMPATIBILITY
    return 0


cdef int check_gmo(Hobj h, Structure gmo, const get_plan *plan, get_request *request) noexcept:
    """Message handle (there are none), rights and wait interval."""
    cdef int32_t wait = get_long(gmo.raw, GMO_WAIT_INTERVAL)
    cdef int64_t handle
    if get_long(gmo.raw, VERSION_AT) >= MQGMO_VERSION_4:
        memcpy(&handle, gmo.raw + GMO_MSG_HANDLE, sizeof(handle))
        if handle != 0:
            return RC_HMSG_ERROR
    if plan.rights & MQOO_BROWSE and not h.options & MQOO_BROWSE:
        return RC_NOT_OPEN_FOR_BROWSE
    if plan.rights & OO_INPUT and not h.options & OO_INPUT:
        return RC_NOT_OPEN_FOR_INPUT
    request.wait_us = 0
    if plan.options & MQGMO_WAIT:
        if wait < MQWI_UNLIMITED:
            return RC_WAIT_INTERVAL_ERROR
        if not plan.options & GMO_CURSOR:
            request.wait_us = wait if wait == MQWI_UNLIMITED else <int64_t>wait * MILLISECOND_US
    return 0


cdef int take_match(
    const unsigned char *gmo, const unsigned char *md, QueueHandle queue, mqe_get_t *get
) noexcept:
    """Match options: 2247, 2257, 2331."""
    cdef int32_t match = MQMO_MATCH_MSG_ID | MQMO_MATCH_CORREL_ID
    cdef uint32_t where[2]
    if get_long(gmo, VERSION_AT) >= MQGMO_VERSION_2:
        match = get_long(gmo, GMO_MATCH_OPTIONS)
        if match & ~MO_KNOWN:
            return RC_MATCH_OPTIONS_ERROR
    get.match = 0
    if match & MQMO_MATCH_MSG_ID:
        memcpy(get.msg_id, md + MD_MSG_ID, ID_LENGTH)
        get.match |= MQE_MATCH_MSG_ID
    if match & MQMO_MATCH_CORREL_ID:
        memcpy(get.correl_id, md + MD_CORREL_ID, ID_LENGTH)
        get.match |= MQE_MATCH_CORREL_ID
    if match & MO_GROUP:
        if get_long(md, MD_VERSION) < MQMD_VERSION_2:
            return RC_WRONG_MD_VERSION
        memcpy(get.group_id, md + MD_GROUP_ID, ID_LENGTH)
        get.seq_number = get_long(md, MD_MSG_SEQ_NUMBER)
        get.offset = get_long(md, MD_OFFSET)
        get.match |= (MQE_MATCH_GROUP_ID if match & MQMO_MATCH_GROUP_ID else 0)
        get.match |= (MQE_MATCH_SEQ_NUMBER if match & MQMO_MATCH_MSG_SEQ_NUMBER else 0)
        get.match |= (MQE_MATCH_OFFSET if match & MQMO_MATCH_OFFSET else 0)
    if match & MQMO_MATCH_MSG_TOKEN:
        if get_long(gmo, VERSION_AT) < MQGMO_VERSION_3:
            return RC_WRONG_GMO_VERSION
        memcpy(&get.match_number, gmo + GMO_MSG_TOKEN, sizeof(get.match_number))
        memcpy(where, gmo + GMO_MSG_TOKEN_QUEUE, sizeof(where))
        if get.match_number == 0:
            return RC_MSG_TOKEN_ERROR
        if where[0] != queue.to.queue or where[1] != queue.to.queue_generation:
            return RC_NO_MSG_AVAILABLE  # a token of another queue
        get.match |= MQE_MATCH_NUMBER
    return 0


cdef inline unsigned char letter_of(
    int32_t flags, int32_t flag, unsigned char letter, int32_t other, unsigned char other_letter
) noexcept:
    """The letter of the first of two flags that is set, else a blank."""
    return letter if flags & flag else other_letter if flags & other else BLANK


cdef void write_gmo(
    unsigned char *gmo, QueueHandle queue, const mqe_get_t *get, Py_ssize_t returned
) noexcept:
    """What MQGET returns in the MQGMO, as far as its version goes."""
    cdef int32_t version = get_long(gmo, VERSION_AT)
    cdef int32_t flags = get.ext.msg_flags if get.d.has_ext else 0
    cdef uint32_t where[2]
    memcpy(gmo + GMO_RESOLVED_QNAME, queue.resolved, NAME_LENGTH)
    if version < MQGMO_VERSION_2:
        return
    gmo[GMO_GROUP_STATUS] = letter_of(
        flags, MQMF_LAST_MSG_IN_GROUP, MQGS_LAST_MSG_IN_GROUP, MQMF_MSG_IN_GROUP, MQGS_MSG_IN_GROUP
    )
    gmo[GMO_SEGMENT_STATUS] = letter_of(
        flags, MQMF_LAST_SEGMENT, MQSS_LAST_SEGMENT, MQMF_SEGMENT, MQSS_SEGMENT
    )
    gmo[GMO_SEGMENTATION] = letter_of(
        flags, MQMF_SEGMENTATION_ALLOWED, MQSEG_ALLOWED, MQMF_SEGMENTATION_ALLOWED, MQSEG_ALLOWED
    )
    if version < MQGMO_VERSION_3:
        return
    where[0] = queue.to.queue
    where[1] = queue.to.queue_generation
    memcpy(gmo + GMO_MSG_TOKEN, &get.number, sizeof(get.number))
    memcpy(gmo + GMO_MSG_TOKEN_QUEUE, where, sizeof(where))
    set_long(gmo, GMO_RETURNED_LENGTH, <int32_t>returned)


cdef void save_context(Hobj h, const mqe_get_t *get) noexcept:
    """Keeps the context of a message for MQPMO_PASS_*_CONTEXT."""
    memcpy(&h.saved, &get.d, sizeof(h.saved))
    memset(h.saved_identity, BLANK, MQ_APPL_IDENTITY_DATA_LENGTH)
    if get.d.has_ext:
        memcpy(h.saved_identity, get.ext.appl_identity_data, MQ_APPL_IDENTITY_DATA_LENGTH)
    h.has_saved = True


cdef bytes returned_data(
    unsigned char *md, const mqe_get_t *get, bytes body, Py_ssize_t limit, Py_ssize_t *length
):
    """The data, with an MQMDE in front when a version-1 MQMD cannot show the message's fields: of
    both together what the buffer has room for.
    """
    cdef unsigned char mde[MQMDE_LENGTH_2]
    if not get.d.has_ext or get_long(md, MD_VERSION) != MQMD_VERSION_1:
        return body
    if not has_group_fields(&get.ext):
        return body
    write_mde(mde, &get.d, &get.ext)
    memcpy(md + MD_FORMAT, FORMAT_MDE, MQ_FORMAT_LENGTH)
    set_long(md, MD_ENCODING, MQENC_NATIVE)
    set_long(md, MD_CODED_CHAR_SET_ID, MQCCSI_UTF8)
    length[0] += MQMDE_LENGTH_2
    body = (<char *>mde)[:MQMDE_LENGTH_2] + body
    return body if limit < 0 else body[:limit]


cdef Py_ssize_t take_buffer_length(object value) noexcept:
    """BufferLength, at most what a message can need; -1 for what is none."""
    cdef int overflow = 0
    cdef long long number
    if not isinstance(value, int):
        return -1
    number = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow < 0 or number < 0 and not overflow:
        return -1
    return MAX_BODY + MQMDE_LENGTH_2 if overflow else <Py_ssize_t>min(
        number, <long long>(MAX_BODY + MQMDE_LENGTH_2)
    )


cdef tuple get_message(
    Hconn c, Hobj h, Structure m, Structure g, mqe_get_t *get, get_request *request
):
    """Gets, fills MQMD and MQGMO, gives the result."""
    cdef QueueHandle queue = h.queue
    cdef Unit unit = None
    cdef PyObject *room = NULL
    cdef Py_ssize_t capacity = 0, length, limit = request.limit
    cdef conversion asked
    cdef int reason = 0
    cdef bint removes = h.get.properties != 0
    cdef uint32_t flags
    cdef bytes body
    asked.wanted = h.get.options & MQGMO_CONVERT != 0
    asked.ccsid = get_long(m.raw, MD_CODED_CHAR_SET_ID)
    asked.encoding = get_long(m.raw, MD_ENCODING)
    if h.get.in_unit or (h.get.in_unit_zos and c.zos):
        unit = c.acquire_unit(&reason)
        if reason:
            return (b"", 0) + failed(c, reason)
    if limit >= 0 and get_long(m.raw, MD_VERSION) == MQMD_VERSION_1:
        get.flags |= MQE_GET_ROOM_FOR_MDE
    flags = get.flags
    if removes and flags & MQE_GET_ACCEPT_TRUNCATED:  # what is left is truncated
        get.flags &= ~<uint32_t>(MQE_GET_ACCEPT_TRUNCATED | MQE_GET_ROOM_FOR_MDE)
        request.limit = -1
    try:
        reason = get_body(queue, unit, get, request, &room, &capacity)
    finally:
        c.release_unit(unit)
    get.flags = flags
    if reason != 0 and reason != RC_TRUNCATED_MSG_ACCEPTED and reason != RC_TRUNCATED_MSG_FAILED:
        return (b"", 0) + failed(c, reason)
    if get.flags & MQE_GET_UNLOCK:  # there is no message
        Py_DECREF(room)
        return b"", 0, 0, 0
    if reason:
        failed(c, reason)
    if c.zos and get.d.backout_count > ZOS_BACKOUT_COUNT_MAX:
        get.d.backout_count = ZOS_BACKOUT_COUNT_MAX
    length = <Py_ssize_t>get.length
    body = trim_body(
        room, capacity, min(max(capacity - <Py_ssize_t>get.header, 0), length)
    )
    if removes and reason == 0 and memcmp(get.d.format, FORMAT_RFH2, MQ_FORMAT_LENGTH) == 0:
        body = stripped_data(get, body, h.get.properties, &length)
    write_md(
        m.raw, &get.d, &get.ext if get.d.has_ext else NULL, get.expiry, c.qm.padded_name
    )
    if (
        h.options & MQOO_SAVE_ALL_CONTEXT and h.get.destructive
        and reason != RC_TRUNCATED_MSG_FAILED
    ):
        save_context(h, get)
    body = returned_data(m.raw, get, body, limit, &length)
    adjust_hint(queue, length)
    if removes and reason == 0 and 0 <= limit < length:
        body = body[:limit]
        reason = RC_TRUNCATED_MSG_ACCEPTED
        failed(c, reason)
    if asked.wanted and reason != RC_TRUNCATED_MSG_FAILED:
        body = converted_data(c, m.raw, get, body, &asked, limit, &length, &reason)
    write_gmo(g.raw, queue, get, PyBytes_GET_SIZE(body))
    return body, length, MQCC_WARNING if reason else MQCC_OK, reason


cdef tuple refuse_get(
    Hconn c, Structure gmo, int reason, str text="", QueueHandle queue=None
):
    """The result of a get that was refused before it reached the core."""
    cdef bint fail_if_quiescing = gmo is not None and get_long(
        gmo.raw, GMO_OPTIONS
    ) & MQGMO_FAIL_IF_QUIESCING != 0
    return (b"", 0) + refuse_call(c, fail_if_quiescing, reason, text, queue)


def MQGET(hconn, hobj, md, gmo, buffer_length=None):
    """Gets or browses a message.

    Args:
        hconn: from MQCONN. hobj: from MQOPEN with MQOO_INPUT_* or MQOO_BROWSE.
        md: MQMD; the ids to match on input, every field of its version on output; with
            MQGMO_CONVERT also the character set and encoding that are asked for.
        gmo: MQGMO.
        buffer_length: bytes taken at most; None: whatever size the message has.

    Returns:
        data, DataLength (the full length of the message; of the converted data when all of it was
        converted), CompCode, Reason.
    """
    cdef Hconn c = connection_of(hconn)
    cdef Hobj h
    cdef Structure m, g
    cdef mqe_get_t get
    cdef get_request request
    cdef int32_t options
    cdef int reason
    if c is None:
        return b"", 0, MQCC_FAILED, RC_HCONN_ERROR
    h = handle_of(c, hobj)
    if h is None:
        return refuse_get(c, None, RC_HOBJ_ERROR)
    g = structure_of(gmo, GMO_TYPE, STRUC_ID_GMO, MQGMO_CURRENT_VERSION)
    if g is None:
        return refuse_get(c, None, RC_GMO_ERROR, "", h.queue)
    try:
        options = get_long(g.raw, GMO_OPTIONS)
        if options != h.get.options:
            h.get.options = -1
            if options & GMO_NEEDS_VERSION_2 and get_long(g.raw, VERSION_AT) < MQGMO_VERSION_2:
                return refuse_get(c, g, RC_WRONG_GMO_VERSION, "", h.queue)
            plan_get(&h.get, options)
            h.get.properties = properties_of(h.queue, options)
            if h.queue is not None:
                h.get.flags |= h.queue.get_flags & (MQE_GET_CONFIRM | MQE_GET_REPORT_EXPIRED)
        reason = check_gmo(h, g, &h.get, &request)
        if reason:
            return refuse_get(c, g, reason, "", h.queue)
        m = structure_of(md, MD_TYPE, STRUC_ID_MD, MQMD_CURRENT_VERSION)
        if m is None:
            return refuse_get(c, g, RC_MD_ERROR, "", h.queue)
        get.flags = h.get.flags
        get.wait_us = 0
        get.match = 0
        if not options & GMO_CURSOR:
            reason = take_match(g.raw, m.raw, h.queue, &get)
            if reason:
                return refuse_get(c, g, reason, "", h.queue)
        request.limit = -1
        if buffer_length is None:  # the buffer grows: nothing is truncated
            get.flags &= ~<uint32_t>MQE_GET_ACCEPT_TRUNCATED
        else:
            request.limit = take_buffer_length(buffer_length)
            if request.limit < 0:
                return refuse_get(c, g, RC_BUFFER_LENGTH_ERROR, "", h.queue)
        return get_message(c, h, m, g, &get, &request)
    except MQError as error:
        return refuse_get(c, g, error.reason, error.text, h.queue)
