# put_checks.pyx - the checks of MQPUT and MQPUT1, in the order of the reference: connection,
# handle, right, MQPMO, context, MQMD, buffer.
#
# Invariants
#   1. Nothing has been changed when a check fails.
#
# Errors. 2046 for options, 2173, 2460 for the MQPMO, 2026 for the MQMD, 2093 to 2098 for the
# context; 2046 has its text in the exception.


cdef int plan_put(put_plan *plan, int32_t options, bint put1) except -1:
    """What MQPMO.Options mean; raises 2046 with the rule that they break."""
    cdef object rule = rules().PUT1 if put1 else rules().PUT
    text = rule.verdict(<uint32_t>options)
    if text:
        raise error_for(RC_OPTIONS_ERROR, text)
    plan.options = options
    plan.in_unit = options & MQPMO_SYNCPOINT != 0
    plan.in_unit_zos = options & MQPMO_NO_SYNCPOINT == 0
    plan.context = options & PMO_CONTEXTS
    plan.flags = 0
    if options & MQPMO_NEW_MSG_ID:
        plan.flags |= MQE_PUT_NEW_MSG_ID
    if options & MQPMO_NEW_CORREL_ID:
        plan.flags |= MQE_PUT_NEW_CORREL_ID
    if options & MQPMO_FAIL_IF_QUIESCING:
        plan.flags |= MQE_PUT_FAIL_IF_QUIESCING
    return 0


cdef int check_pmo(Structure pmo) noexcept:
    """Fields of an MQPMO that need a message handle: there are none."""
    cdef int64_t original, new
    if get_long(pmo.raw, VERSION_AT) < MQPMO_CURRENT_VERSION:
        return 0
    memcpy(&original, pmo.raw + PMO_ORIGINAL_MSG_HANDLE, sizeof(original))
    memcpy(&new, pmo.raw + PMO_NEW_MSG_HANDLE, sizeof(new))
    if original != 0 or new != 0:
        return RC_HMSG_ERROR
    return RC_PMO_ERROR if get_long(pmo.raw, PMO_ACTION) != 0 else 0


cdef tuple checked_put(Hconn hconn, object md, object pmo, int rights, bint put1, put_plan *plan):
    """What a put needs, checked in the order of MQPUT: MQPMO, options, context rights, MQMD.

    Returns:
        Reason code, the handle whose saved context is passed, and the MQMD, None after a failure.
    """
    cdef Structure p = structure_of(pmo, PMO_TYPE, STRUC_ID_PMO, MQPMO_CURRENT_VERSION)
    cdef Structure m
    cdef Hobj source = None
    cdef int reason
    if p is None:
        return RC_PMO_ERROR, None, None
    if put1 and hconn.put1.options == get_long(p.raw, PMO_OPTIONS):
        plan[0] = hconn.put1
    else:
        plan_put(plan, get_long(p.raw, PMO_OPTIONS), put1)
        if put1:
            hconn.put1 = plan[0]
    reason = check_pmo(p)
    if reason == 0:
        source = context_source(hconn, with_implied(rights), plan, p, &reason)
    if reason:
        return reason, None, None
    m = structure_of(md, MD_TYPE, STRUC_ID_MD, MQMD_CURRENT_VERSION)
    return RC_MD_ERROR if m is None else 0, source, m


cdef int early_reason(
    Hconn hconn, QueueHandle queue, const put_plan *plan, int reason
) noexcept:
    """The reason code of a put that is refused before it reached the core: what the core says of
    the connection and the path of the name comes first.
    """
    cdef bint fail_if_quiescing = plan.flags & MQE_PUT_FAIL_IF_QUIESCING != 0
    return connection_state(hconn, fail_if_quiescing) or queue.path_state() or reason


cdef tuple refuse_put(
    Hconn c, Structure pmo, int reason, str text="", QueueHandle queue=None
):
    """The result of a put that was refused before it reached the core."""
    cdef bint fail_if_quiescing = pmo is not None and get_long(
        pmo.raw, PMO_OPTIONS
    ) & MQPMO_FAIL_IF_QUIESCING != 0
    return refuse_call(c, fail_if_quiescing, reason, text, queue)


def check_put(Hconn hconn not None, md, pmo, int rights, bint put1):
    """The checks of a put that need no destination: 2173, 2046, 2093 to 2098, those of the MQMD."""
    cdef put_plan plan
    cdef Structure m
    cdef int reason
    reason, _, m = checked_put(hconn, md, pmo, rights, put1, &plan)
    return reason or check_md(m.raw, True)
