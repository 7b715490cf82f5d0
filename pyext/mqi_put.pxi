# mqi_put.pxi - MQPUT, and the put of MQPUT1 and of each destination of a list.

cdef int plan_put(put_plan *plan, int32_t options, bint put1) except -1:
    """What MQPMO.Options mean; 0 or 2046 with its text in the core's error."""
    cdef object rule = rules().PUT1 if put1 else rules().PUT
    text = rule.verdict(<uint32_t>options)
    if text:
        raise error_for(RC_OPTIONS_ERROR, text)
    plan.options = options
    plan.in_unit = options & 2 != 0
    plan.in_unit_zos = options & 4 == 0
    plan.context = options & (16384 | 256 | 512 | 1024 | 2048)
    plan.flags = 0
    if options & 64:
        plan.flags |= MQE_PUT_NEW_MSG_ID
    if options & 128:
        plan.flags |= MQE_PUT_NEW_CORREL_ID
    if options & 8192:
        plan.flags |= MQE_PUT_FAIL_IF_QUIESCING
    return 0


cdef Hobj context_source(
    Hconn hconn, uint32_t rights, const put_plan *plan, Structure pmo, int *reason
):
    """The handle whose saved context is passed, None when none is; 2093 to 2098 in `reason`."""
    cdef Hobj found
    cdef int context = plan.context
    reason[0] = 0
    if context == CONTEXT_SET_ALL and not rights & OO_SET_ALL:
        reason[0] = RC_NOT_OPEN_FOR_SET_ALL
    elif context == CONTEXT_SET_IDENTITY and not rights & OO_SET_IDENTITY:
        reason[0] = RC_NOT_OPEN_FOR_SET_IDENT
    elif context == CONTEXT_PASS_ALL and not rights & OO_PASS_ALL:
        reason[0] = RC_NOT_OPEN_FOR_PASS_ALL
    elif context == CONTEXT_PASS_IDENTITY and not rights & OO_PASS_IDENTITY:
        reason[0] = RC_NOT_OPEN_FOR_PASS_IDENT
    if reason[0] != 0 or context not in (CONTEXT_PASS_ALL, CONTEXT_PASS_IDENTITY):
        return None
    found = hconn.handles.get(get_long(pmo.raw, PMO_CONTEXT))
    if found is None or not found.options & OO_SAVE_ALL_CONTEXT:
        reason[0] = RC_CONTEXT_HANDLE_ERROR
    elif not found.has_saved:
        reason[0] = RC_CONTEXT_NOT_AVAILABLE
    return found


cdef void identity_from(md_input *into, const char *user, const uint8_t *token, const char *data):
    pad(into.d.user_identifier, user, 12)
    memcpy(into.d.accounting_token, token, 32)
    if is_blank(data, 32):
        if into.extended:
            memset(into.ext.appl_identity_data, 32, 32)
        return
    if not into.extended:
        blank_extension(&into.ext)
        into.extended = True
    pad(into.ext.appl_identity_data, data, 32)


cdef void fill_context(md_input *into, int context, const unsigned char *md, Hobj source):
    """Identity and origin context; the descriptor begins with the default one."""
    cdef ps_descriptor *d = &into.d
    cdef const char *text = <const char *>md
    if context == CONTEXT_NONE:
        memset(d.user_identifier, 32, 12)
        memset(d.accounting_token, 0, 32)
        memset(d.put_appl_name, 32, 28)
        d.put_appl_type = 0
        d.put_time_us = 0
        into.flags |= MQE_PUT_KEEP_TIME
        return
    if source is not None:
        identity_from(
            into, source.saved.user_identifier, source.saved.accounting_token, source.saved_identity
        )
    else:
        identity_from(
            into, text + MD_USER_IDENTIFIER, md + MD_ACCOUNTING_TOKEN, text + MD_APPL_IDENTITY_DATA
        )
    if context == CONTEXT_PASS_ALL:
        d.put_appl_type = source.saved.put_appl_type
        memcpy(d.put_appl_name, source.saved.put_appl_name, 28)
        memcpy(d.appl_origin_data, source.saved.appl_origin_data, 4)
        d.put_time_us = source.saved.put_time_us
        into.flags |= MQE_PUT_KEEP_TIME
    elif context == CONTEXT_SET_ALL:
        d.put_appl_type = get_long(md, MD_PUT_APPL_TYPE)
        pad(d.put_appl_name, text + MD_PUT_APPL_NAME, 28)
        pad(d.appl_origin_data, text + MD_APPL_ORIGIN_DATA, 4)
        d.put_time_us = take_put_time(text + MD_PUT_DATE)
        into.flags |= MQE_PUT_KEEP_TIME


cdef int complete_reply(Connection qm, ps_descriptor_ext *ext) except -1:
    """A blank ReplyToQMgr: of the reply-queue alias that ReplyToQ names, else the local one."""
    cdef mqe_found found
    if is_blank(ext.reply_to_q, 48) or not is_blank(ext.reply_to_qmgr, 48):
        return 0
    if mqe_find(qm.manager, 1, ext.reply_to_q, 0, &found) == 0 and found.type == QT_REMOTE:
        from penstock.opening.resolution import reply_alias

        queue, manager = reply_alias(qm, from_blank_padded(ext.reply_to_q, 48))
        memset(ext.reply_to_q, 32, 96)
        take_text(queue, ext.reply_to_q, 48, "RNAME")
        take_text(manager, ext.reply_to_qmgr, 48, "RQMNAME")
        return 0
    mqx_error_clear()
    memcpy(ext.reply_to_qmgr, qm.padded_name, 48)
    return 0


cdef int new_group(QueueHandle queue, md_input *into) noexcept:
    """A message in a group without GroupId begins a group: a GroupId is made."""
    if into.extended and into.ext.msg_flags & MF_GROUP and is_nul(into.ext.group_id, 24):
        return mqe_new_id(queue.connection.manager, into.ext.group_id)
    return 0


cdef int refuse_early(
    Hconn hconn, QueueHandle queue, const put_plan *plan, int reason
) noexcept:
    """The reason code of a put that is refused before the core was asked: what that would have
    said about connection and path goes first.
    """
    cdef bint fail_if_quiescing = plan.flags & MQE_PUT_FAIL_IF_QUIESCING != 0
    return connection_state(hconn, fail_if_quiescing) or queue.path_state() or reason


cdef int store(
    Hconn hconn, QueueHandle queue, const put_plan *plan, md_input *into, const char *data,
    Py_ssize_t size
) except -1:
    """Checks what lies in the data, and puts. Returns the reason code."""
    cdef mqe_unit *unit = NULL
    cdef const ps_descriptor_ext *ext
    cdef int reason = 0
    if into.d.md_version == 1 and memcmp(into.d.format, FORMAT_MDE, 8) == 0:
        reason = take_mde(data, size, into)
        if reason:
            return refuse_early(hconn, queue, plan, reason)
        data += MDE_SIZE
        size -= MDE_SIZE
    if queue.transmission and memcmp(into.d.format, FORMAT_XMIT, 8) == 0:
        reason = check_xqh(data, size)
        if reason:
            return refuse_early(hconn, queue, plan, reason)
    if into.extended:
        reason = new_group(queue, into)
        complete_reply(queue.connection, &into.ext)
    if reason == 0 and (plan.in_unit or (plan.in_unit_zos and hconn.zos)):
        reason = hconn.take_unit(&unit)
    if reason:
        return reason
    ext = &into.ext if into.extended else NULL
    try:
        reason = queue.send(unit, &into.d, ext, data, size, into.expiry, into.flags)
    finally:
        hconn.give_unit(unit)
    if reason == 0 and into.d.report & ~RO_KNOWN:
        reason = RC_UNKNOWN_REPORT_OPTION
    return reason


cdef int store_object(
    Hconn hconn, QueueHandle queue, const put_plan *plan, md_input *into, object data
) except -1:
    """The same for data in any object that has bytes: 2004 when it has none."""
    cdef Py_buffer view
    if type(data) is bytes:
        return store(
            hconn, queue, plan, into, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data)
        )
    if data is None:
        return store(hconn, queue, plan, into, b"", 0)
    try:
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    except (TypeError, BufferError):
        return refuse_early(hconn, queue, plan, RC_BUFFER_ERROR)
    try:
        return store(hconn, queue, plan, into, <const char *>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


cdef inline void show_put(unsigned char *md, const md_input *into) noexcept:
    """What MQPUT returns in the MQMD: ids and context."""
    memcpy(md + MD_MSG_ID, into.d.msg_id, 24)
    memcpy(md + MD_CORREL_ID, into.d.correl_id, 24)
    show_context(md, &into.d, &into.ext if into.extended else NULL)
    if into.extended and get_long(md, MD_VERSION) == 2:
        memcpy(md + MD_GROUP_ID, into.ext.group_id, 24)


cdef int put_message(
    Hconn hconn, QueueHandle queue, const put_plan *plan, Hobj source, Structure md, object data
) except -1:
    """MQMD, buffer and put. Returns the reason code; the MQMD changes when the put succeeds."""
    cdef md_input into
    cdef int reason = check_md(md.raw, queue.remote or queue.transmission)
    if reason:
        return refuse_early(hconn, queue, plan, reason)
    memcpy(&into.d, &queue.template, sizeof(into.d))
    into.flags = plan.flags
    take_md(md.raw, &into)
    if plan.context != CONTEXT_DEFAULT:
        fill_context(&into, plan.context, md.raw, source)
    reason = store_object(hconn, queue, plan, &into, data)
    if reason == 0 or mqe_comp_code(reason) == 1:
        show_put(md.raw, &into)
    return reason


cdef inline void show_pmo(unsigned char *pmo, QueueHandle queue) noexcept:
    """Counts of destinations and resolved names."""
    set_long(pmo, PMO_KNOWN, 0 if queue.remote else 1)
    set_long(pmo, PMO_UNKNOWN, 1 if queue.remote else 0)
    set_long(pmo, PMO_INVALID, 0)
    memcpy(pmo + PMO_RESOLVED, queue.resolved, 96)
    if get_long(pmo, PMO_OPTIONS) & PMO_RESOLVE_LOCAL_Q and queue.remote:
        memcpy(pmo + PMO_RESOLVED, queue.local, 96)


cdef int check_pmo(Structure pmo) noexcept:
    """Fields of an MQPMO that need a message handle: there are none."""
    cdef int64_t original, new
    if get_long(pmo.raw, VERSION_AT) < 3:
        return 0
    memcpy(&original, pmo.raw + PMO_ORIGINAL_HANDLE, 8)
    memcpy(&new, pmo.raw + PMO_NEW_HANDLE, 8)
    if original != 0 or new != 0:
        return RC_HMSG_ERROR
    return RC_PMO_ERROR if get_long(pmo.raw, PMO_ACTION) != 0 else 0


cdef tuple refuse_put_call(
    Hconn c, Structure pmo, int reason, str text="", QueueHandle queue=None
):
    """The failure of a put that was refused before it reached the core."""
    cdef bint fail_if_quiescing = pmo is not None and get_long(pmo.raw, PMO_OPTIONS) & 8192 != 0
    return refuse_call(c, fail_if_quiescing, reason, text, queue)


def MQPUT(hconn, hobj, md, pmo, data):
    """Puts a message.

    Args:
        hconn: from MQCONN. hobj: from MQOPEN with MQOO_OUTPUT.
        md: MQMD; MsgId, CorrelId and context are returned in it.
        pmo: MQPMO; resolved names and counts are returned in it.
        data: any bytes-like object; None = no bytes.

    Returns:
        CompCode, Reason.
    """
    cdef Hconn c = connection_of(hconn)
    cdef Hobj h, source = None
    cdef Structure m, p
    cdef QueueHandle queue
    cdef int32_t options
    cdef int reason = 0
    if c is None:
        return 2, RC_HCONN_ERROR
    h = handle_of(c, hobj)
    if h is None:
        return refuse_put_call(c, None, RC_HOBJ_ERROR)
    if not h.options & OO_OUTPUT:
        return refuse_put_call(c, None, RC_NOT_OPEN_FOR_OUTPUT, "", h.queue)
    p = structure_of(pmo, PMO_TYPE, b"PMO ", 3)
    if p is None:
        return refuse_put_call(c, None, RC_PMO_ERROR, "", h.queue)
    try:
        options = get_long(p.raw, PMO_OPTIONS)
        if options != h.put.options:
            h.put.options = -1
            plan_put(&h.put, options, False)
        reason = check_pmo(p)
        if reason == 0 and h.put.context & 0xF00:
            source = context_source(c, h.options, &h.put, p, &reason)
        if reason:
            return refuse_put_call(c, p, reason, "", h.queue)
        m = structure_of(md, MD_TYPE, b"MD  ", 2)
        if m is None:
            return refuse_put_call(c, p, RC_MD_ERROR, "", h.queue)
        queue = h.queue
        if queue is None:
            return list_calls().put_list(c, h, m, p, data)
        reason = put_message(c, queue, &h.put, source, m, data)
    except MQError as error:
        return refuse_put_call(c, p, error.reason, error.text, h.queue)
    if reason == 0:
        show_pmo(p.raw, queue)
        return DONE
    if mqe_comp_code(reason) == 1:
        show_pmo(p.raw, queue)
    return failed(c, reason)


cdef tuple checked_put(Hconn hconn, object md, object pmo, int rights, bint put1, put_plan *plan):
    """What a put needs, checked in the order of MQPUT: MQPMO, options, context rights, MQMD.

    Returns:
        Reason code, the handle whose saved context is passed, and the MQMD, None after a failure.
    """
    cdef Structure p = structure_of(pmo, PMO_TYPE, b"PMO ", 3)
    cdef Structure m
    cdef Hobj source = None
    cdef int reason
    if p is None:
        return RC_PMO_ERROR, None, None
    plan_put(plan, get_long(p.raw, PMO_OPTIONS), put1)
    reason = check_pmo(p)
    if reason == 0:
        source = context_source(hconn, implied(rights), plan, p, &reason)
    if reason:
        return reason, None, None
    m = structure_of(md, MD_TYPE, b"MD  ", 2)
    return RC_MD_ERROR if m is None else 0, source, m


def put_one(Hconn hconn not None, QueueHandle queue not None, md, pmo, data, int rights,
            bint put1):
    """The put of MQPUT1, and of one destination of a list: structures, options and context rights
    checked, the reason code returned. ``rights``: MQOO_* of the handle.
    """
    cdef put_plan plan
    cdef Structure m
    cdef Hobj source
    cdef int reason
    reason, source, m = checked_put(hconn, md, pmo, rights, put1, &plan)
    if reason == 0:
        reason = put_message(hconn, queue, &plan, source, m, data)
    if reason == 0 or mqe_comp_code(reason) == 1:
        show_pmo((<Structure>pmo).raw, queue)
    return reason


def check_put(Hconn hconn not None, md, pmo, int rights, bint put1):
    """The checks of a put that need no destination: 2173, 2046, 2093 to 2098, those of the MQMD."""
    cdef put_plan plan
    cdef Structure m
    cdef int reason
    reason, _, m = checked_put(hconn, md, pmo, rights, put1, &plan)
    return reason or check_md(m.raw, True)
