# put.pyx - MQPUT, and the put of MQPUT1 and of each destination of a list.
#
# Terms
#   known name  of MQPUT1: a local queue, or an alias of one, whose resolution the connection handle
#               keeps. Nothing is open in the core between two calls.
#
# Invariants
#   1. The MQMD changes only when the put succeeds.
#   2. A unit of work that a put has acquired is released on every way out.
#   3. A known name is looked up at each call, and the core compares every definition on its path:
#      an alias, a queue or a name that changed is resolved again.
#
# Locks. As client/put.pyx, whose send() puts.
#
# Errors. (CompCode, Reason), as in mqi/calls.pyx; put_one() returns the reason code.


cdef int new_group(QueueHandle queue, put_request *into) noexcept:
    """A message in a group without GroupId begins a group: a GroupId is made."""
    if into.extended and into.ext.msg_flags & MF_GROUP and is_nul(into.ext.group_id, ID_LENGTH):
        return mqe_new_id(queue.connection.manager, into.ext.group_id)
    return 0


cdef int put_data(
    Hconn hconn, QueueHandle queue, const put_plan *plan, put_request *into, const char *data,
    Py_ssize_t size
) except -1:
    """Checks the headers in the data, and puts. Returns the reason code."""
    cdef Unit unit = None
    cdef const ps_descriptor_ext *ext
    cdef int reason = 0
    if into.d.md_version == MQMD_VERSION_1 and memcmp(
        into.d.format, FORMAT_MDE, MQ_FORMAT_LENGTH
    ) == 0:
        reason = take_mde(data, size, into)
        if reason:
            return early_reason(hconn, queue, plan, reason)
        data += MQMDE_LENGTH_2
        size -= MQMDE_LENGTH_2
    if queue.transmission and memcmp(into.d.format, FORMAT_XMIT, MQ_FORMAT_LENGTH) == 0:
        reason = check_xqh(data, size)
        if reason:
            return early_reason(hconn, queue, plan, reason)
    if into.extended:
        queue.connection.check_open()
        reason = new_group(queue, into)
        complete_reply(queue.connection, &into.ext)
    if reason == 0 and (plan.in_unit or (plan.in_unit_zos and hconn.zos)):
        unit = hconn.acquire_unit(&reason)
    if reason:
        return reason
    ext = extension_of(into)
    try:
        reason = send(queue, unit, &into.d, ext, data, size, into.expiry, into.flags)
    finally:
        hconn.release_unit(unit)
    if reason == 0 and into.d.report & ~RO_KNOWN:
        reason = RC_UNKNOWN_REPORT_OPTION
    return reason


cdef object encoded_text(object text, const ps_descriptor *d):
    """The bytes of text in a message of format MQSTR and character set 1208, else the text."""
    if d.ccsid != MQCCSI_UTF8 or memcmp(d.format, FORMAT_STRING, MQ_FORMAT_LENGTH) != 0:
        return text
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate
        return text


cdef int put_object(
    Hconn hconn, QueueHandle queue, const put_plan *plan, put_request *into, object data
) except -1:
    """The same for any object with the buffer protocol, and for text; 2004 for others."""
    cdef Py_buffer view
    if type(data) is bytes:
        return put_data(
            hconn, queue, plan, into, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data)
        )
    if data is None:
        return put_data(hconn, queue, plan, into, b"", 0)
    if isinstance(data, str):
        data = encoded_text(data, &into.d)
    try:
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    except (TypeError, BufferError):
        return early_reason(hconn, queue, plan, RC_BUFFER_ERROR)
    try:
        return put_data(hconn, queue, plan, into, <const char *>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


cdef inline void write_put(unsigned char *md, const put_request *into) noexcept:
    """What MQPUT returns in the MQMD: ids and context."""
    memcpy(md + MD_MSG_ID, into.d.msg_id, ID_LENGTH)
    memcpy(md + MD_CORREL_ID, into.d.correl_id, ID_LENGTH)
    write_context(md, &into.d, extension_of(into))
    if into.extended and get_long(md, MD_VERSION) == MQMD_CURRENT_VERSION:
        memcpy(md + MD_GROUP_ID, into.ext.group_id, ID_LENGTH)


cdef int put_message(
    Hconn hconn, QueueHandle queue, const put_plan *plan, Hobj source, Structure md, object data
) except -1:
    """MQMD, buffer and put. Returns the reason code; the MQMD changes when the put succeeds."""
    cdef put_request into
    cdef int reason = check_md(md.raw, queue.remote or queue.transmission)
    if reason:
        return early_reason(hconn, queue, plan, reason)
    memcpy(&into.d, &queue.template, sizeof(into.d))
    into.flags = plan.flags
    take_md(md.raw, &into)
    if plan.context != CONTEXT_DEFAULT:
        fill_context(&into, plan.context, md.raw, source)
    reason = put_object(hconn, queue, plan, &into, data)
    if reason == 0 or is_warning(reason):
        write_put(md.raw, &into)
    return reason


cdef inline void write_pmo(unsigned char *pmo, QueueHandle queue) noexcept:
    """Counts of destinations and resolved names."""
    cdef bint remote = queue.remote and not queue.chose_here
    set_long(pmo, PMO_KNOWN_DEST_COUNT, 0 if remote else 1)
    set_long(pmo, PMO_UNKNOWN_DEST_COUNT, 1 if remote else 0)
    set_long(pmo, PMO_INVALID_DEST_COUNT, 0)
    memcpy(pmo + PMO_RESOLVED_QNAME, queue.resolved, TWO_NAMES_LENGTH)
    if get_long(pmo, PMO_OPTIONS) & MQPMO_RESOLVE_LOCAL_Q and remote:
        memcpy(pmo + PMO_RESOLVED_QNAME, queue.local, TWO_NAMES_LENGTH)


def MQPUT(hconn, hobj, md, pmo, data):
    """Puts a message.

    Args:
        hconn: from MQCONN. hobj: from MQOPEN with MQOO_OUTPUT.
        md: MQMD; MsgId, CorrelId and context are returned in it.
        pmo: MQPMO; resolved names and counts are returned in it.
        data: any bytes-like object; None = no bytes; text for Format MQSTR and character set 1208
            (or 0), in UTF-8.

    Returns:
        CompCode, Reason.
    """
    cdef Hconn c = connection_of(hconn)
    cdef Hobj h, source = None
    cdef Structure m, p
    cdef QueueHandle queue = None
    cdef int32_t options = 0
    cdef int reason = 0
    if c is None:
        return MQCC_FAILED, RC_HCONN_ERROR
    h = handle_of(c, hobj)
    if h is None:
        return refuse_put(c, None, RC_HOBJ_ERROR)
    if not h.options & MQOO_OUTPUT:
        return refuse_put(c, None, RC_NOT_OPEN_FOR_OUTPUT, "", h.queue)
    p = structure_of(pmo, PMO_TYPE, STRUC_ID_PMO, MQPMO_CURRENT_VERSION)
    if p is None:
        return refuse_put(c, None, RC_PMO_ERROR, "", h.queue)
    try:
        options = get_long(p.raw, PMO_OPTIONS)
        if options != h.put.options:
            h.put.options = -1
            plan_put(&h.put, options, False)
        reason = check_pmo(p)
        if reason == 0 and h.put.context & PMO_NEEDS_RIGHT:
            source = context_source(c, h.options, &h.put, p, &reason)
        if reason:
            return refuse_put(c, p, reason, "", h.queue)
        m = structure_of(md, MD_TYPE, STRUC_ID_MD, MQMD_CURRENT_VERSION)
        if m is None:
            return refuse_put(c, p, RC_MD_ERROR, "", h.queue)
        queue = h.queue
        if queue is None:
            return list_put(c, h, m, p, data)
        reason = put_message(c, queue, &h.put, source, m, data)
    except MQError as error:
        if queue is not None and options & MQPMO_ASYNC_RESPONSE:
            c.count_async(error.reason, queue)
        return refuse_put(c, p, error.reason, error.text, h.queue)
    if options & MQPMO_ASYNC_RESPONSE:
        c.count_async(reason, queue)
    if reason == 0:
        write_pmo(p.raw, queue)
        return DONE
    if is_warning(reason):
        write_pmo(p.raw, queue)
    return failed(c, reason)


def put_one(Hconn hconn not None, QueueHandle queue not None, md, pmo, data, int rights,
            bint put1):
    """The put of MQPUT1, and of one destination of a list: structures, options and context rights
    checked, the reason code returned. ``rights``: MQOO_* of the handle.
    """
    cdef put_plan plan
    cdef Structure m, p
    cdef Hobj source
    cdef int reason
    reason, source, m = checked_put(hconn, md, pmo, rights, put1, &plan)
    if reason == 0:
        reason = put_message(hconn, queue, &plan, source, m, data)
    if reason == 0 or is_warning(reason):
        p = structure_of(pmo, PMO_TYPE, STRUC_ID_PMO, MQPMO_CURRENT_VERSION)
        write_pmo(p.raw, queue)
    return reason


# ---- MQPUT1 to known names ----

cdef QueueHandle resolved_put1(Hconn c, const char *name, const mqe_found *found):
    """The destination of a local queue, or of an alias of one; None for other objects."""
    cdef QueueHandle queue = QueueHandle.__new__(QueueHandle)
    cdef uint32_t options = MQOO_OUTPUT | MQOO_BIND_NOT_FIXED
    cdef queue_use use
    queue.start(c.qm, from_blank_padded(name, NAME_LENGTH), options)
    if found.type == MQQT_LOCAL:
        queue.set_destination(found)
    elif found.type == MQQT_ALIAS:
        _, route, _ = prepare_open(c.qm, queue.name, "", options, "")
        if route.remote is not None or route.opened != MQQT_ALIAS:
            return None
        take_route(queue, route)
    else:
        return None
    c.qm.read_use(queue.to.queue, queue.to.queue_generation, &use)
    if use.clustered and found.type == MQQT_LOCAL:
        return None
    queue.transmission = use.usage == MQUS_TRANSMISSION
    queue.closed = False
    return queue


cdef QueueHandle put1_queue(Hconn c, const unsigned char *od):
    """The destination of a name that is known, or can be; None for what the package resolves."""
    cdef char name[NAME_LENGTH]
    cdef mqe_found found
    cdef QueueHandle queue
    cdef const mqe_step *step
    cdef bytes key
    pad(name, <const char *>od + OD_OBJECT_NAME, NAME_LENGTH)
    if mqe_find(c.qm.manager, NAME_SPACE_QUEUES, name, 0, &found) != 0:
        mqx_error_clear()
        return None
    key = name[:NAME_LENGTH]
    queue = c.put1_queues.get(key)
    if queue is not None:
        step = &queue.to.step[0]
        if step.slot == found.slot and step.generation == found.generation and (
            step.resolution_version == found.resolution_version
        ):
            memcpy(&queue.template, &c.qm.template, sizeof(queue.template))
            return queue
    queue = resolved_put1(c, name, &found)
    if queue is not None:
        if len(c.put1_queues) >= KNOWN_NAMES_MAX:
            c.put1_queues.clear()
        c.put1_queues[key] = queue
    return queue


def put1_known(hconn, od, md, pmo, data):
    """MQPUT1 to a local queue or an alias of one: CompCode, Reason; None: the package has to
    resolve the name, or to say what is wrong.
    """
    cdef Hconn c = connection_of(hconn)
    cdef Structure o = structure_of(od, None, STRUC_ID_OD, MQOD_VERSION_4)
    cdef Structure p
    cdef QueueHandle queue
    cdef int32_t version
    cdef int reason
    if c is None or o is None or o.variable is not None:
        return None
    version = get_long(o.raw, VERSION_AT)
    if (
        get_long(o.raw, OD_OBJECT_TYPE) != MQOT_Q
        or not is_blank(<const char *>o.raw + OD_OBJECT_QMGR_NAME, NAME_LENGTH)
        or (version >= MQOD_VERSION_2 and get_long(o.raw, OD_RECS_PRESENT) != 0)
    ):
        return None
    try:
        queue = put1_queue(c, o.raw)
        if queue is None:
            return None
        reason = put_one(c, queue, md, pmo, data, PMO_NEEDS_RIGHT, True)
    except MQError as error:
        return refuse_call(c, False, error.reason, error.text, None)
    if reason == RC_OBJECT_CHANGED or reason == RC_Q_DELETED or reason == RC_UNKNOWN_OBJECT_NAME:
        c.put1_queues.clear()  # a definition on the path changed: resolved again
        mqx_error_clear()
        return None
    p = structure_of(pmo, PMO_TYPE, STRUC_ID_PMO, MQPMO_CURRENT_VERSION)
    if p is not None and get_long(p.raw, PMO_OPTIONS) & MQPMO_ASYNC_RESPONSE:
        c.count_async(reason, queue)
    if version >= MQOD_VERSION_3:
        show_resolved(o, queue, False)
    return failed(c, reason) if reason else DONE
