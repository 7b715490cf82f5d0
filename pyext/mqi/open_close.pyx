# open_close.pyx - MQOPEN of a local queue, MQCLOSE, MQCMIT and MQBACK: verbs that are called often
# enough to be here. What else MQOPEN opens is in penstock.mqi.
#
# Errors. (CompCode, Reason), as in mqi/calls.pyx.


def open_local(Hconn hconn not None, Structure od not None, uint32_t options):
    """MQOPEN of a local queue by its name, or None: everything else, and what fails. The options
    have been checked.
    """
    cdef const unsigned char *raw = od.raw
    cdef mqe_found found
    cdef QueueHandle queue
    cdef int reason
    cdef char name[NAME_LENGTH]
    if (
        get_long(raw, OD_OBJECT_TYPE) != MQOT_Q
        or not is_blank(<const char *>raw + OD_OBJECT_QMGR_NAME, NAME_LENGTH)
        or (get_long(raw, VERSION_AT) >= MQOD_VERSION_2 and get_long(raw, OD_RECS_PRESENT) != 0)
    ):
        return None
    pad(name, <const char *>raw + OD_OBJECT_NAME, NAME_LENGTH)
    hconn.qm.check_open()
    reason = mqe_find(hconn.qm.manager, NAME_SPACE_QUEUES, name, 0, &found)
    if reason != 0 or found.type != MQQT_LOCAL:
        mqx_error_clear()
        return None
    queue = QueueHandle.__new__(QueueHandle)
    queue.start(hconn.qm, from_blank_padded(name, NAME_LENGTH), options)
    if not queue.open_found(&found):
        return None
    return opened(hconn, queue, od, options)


def opened(
    Hconn hconn not None, QueueHandle queue not None, Structure od not None, uint32_t options
):
    """The handle of an open queue; the outputs of the MQOD are filled in."""
    cdef Hobj hobj = Hobj(hconn, options, queue)
    cdef int32_t version = get_long(od.raw, VERSION_AT)
    if version >= MQOD_VERSION_2:
        set_long(od.raw, OD_KNOWN_DEST_COUNT, 0 if queue.remote else 1)
        set_long(od.raw, OD_UNKNOWN_DEST_COUNT, 1 if queue.remote else 0)
        set_long(od.raw, OD_INVALID_DEST_COUNT, 0)
    if version >= MQOD_VERSION_3 and options & (OO_INPUT | MQOO_BROWSE | MQOO_OUTPUT):
        memcpy(od.raw + OD_RESOLVED_QNAME, queue.resolved, TWO_NAMES_LENGTH)
    if version >= MQOD_VERSION_4:
        set_long(od.raw, OD_RESOLVED_TYPE, MQOT_Q)
    return hconn.enter(hobj)


def show_resolved(Structure od not None, QueueHandle queue not None, bint local):
    """ResolvedQName, ResolvedQMgrName of an MQOD; `local`: of the queue here (RESOLVE_LOCAL_Q)."""
    memcpy(od.raw + OD_RESOLVED_QNAME, queue.resolved, TWO_NAMES_LENGTH)
    if local and queue.remote:
        memcpy(od.raw + OD_RESOLVED_QNAME, queue.local, TWO_NAMES_LENGTH)


def MQCLOSE(hconn, hobj, options=0):
    """Closes an object handle; it equals -1 (MQHO_UNUSABLE_HOBJ) afterwards.

    Args:
        options: MQCO_NONE (0), MQCO_DELETE (1) or MQCO_DELETE_PURGE (2) for dynamic queues,
            MQCO_QUIESCE (32): as MQCO_NONE, because nothing is read ahead. MQCO_KEEP_SUB (4) and
            MQCO_REMOVE_SUB (8) are for subscriptions: 2045.

    Returns:
        CompCode, Reason. After 2045 and 2055 the handle is still open.
    """
    cdef Hconn c = connection_of(hconn)
    cdef Hobj h
    cdef int deletes, reason = 0
    if c is None:
        return MQCC_FAILED, RC_HCONN_ERROR
    h = handle_of(c, hobj)
    if h is None:
        return c.refuse(RC_HOBJ_ERROR)
    if isinstance(options, bool) or not isinstance(options, int) or options not in rules().CLOSE:
        return c.refuse(RC_OPTIONS_ERROR, f"close options {options!r}: one of 0, 1, 2, 4, 8, 32")
    deletes = options & (MQCO_DELETE | MQCO_DELETE_PURGE)
    if options & (MQCO_KEEP_SUB | MQCO_REMOVE_SUB) or (
        deletes and (h.queue is None or h.queue.remote)
    ):
        return c.refuse(
            RC_OPTION_NOT_VALID_FOR_TYPE, f"close options {options} do not fit the object"
        )
    try:
        if h.queue is not None:
            reason = h.queue.shut_with(deletes)
        elif h.targets is not None:
            reason = list_close(h)
        elif h.held is not None:
            reason = h.held.shut_with(MQE_CLOSE_KEEP)
    except MQError as error:
        return failed(c, error.reason, error.text)
    if reason and h.queue is not None and not h.queue.closed:
        return failed(c, reason)
    h.leave()
    if reason and not has_stopped(reason):
        return failed(c, reason)
    return DONE


def MQCMIT(hconn):
    """Commits the unit of work. Returns CompCode, Reason: 2003 with a warning when the queue
    manager had backed it out.
    """
    return end_of_unit(hconn, True)


def MQBACK(hconn):
    """Backs the unit of work out. Returns CompCode, Reason."""
    return end_of_unit(hconn, False)


cdef tuple end_of_unit(object hconn, bint commit):
    """MQCMIT and MQBACK: a backed-out unit is a warning of MQCMIT only."""
    cdef Hconn c = connection_of(hconn)
    cdef int reason
    if c is None:
        return MQCC_FAILED, RC_HCONN_ERROR
    try:
        reason = c.end_unit(commit)
        if reason == 0 and c.unit is None:
            reason = connection_state(c, False)
    except MQError as error:
        return failed(c, error.reason, error.text)
    if reason == 0:
        return DONE
    failed(c, reason)
    return MQCC_WARNING if reason == RC_BACKED_OUT and commit else mqe_comp_code(reason), reason
