# put_context.pyx - identity and origin context of a message that is put: whether the caller may
# choose it, and where it comes from.
#
# Terms
#   default  this program's; the descriptor of a request begins with it.
#   passed   of the message that another handle got last (MQPMO_PASS_*), which that handle saved.
#   set      by the application in its MQMD (MQPMO_SET_*).
#
# Errors. 2093 to 2096 for a handle that was not opened for it, 2097 and 2098 for one without a
# saved context.


cdef Hobj context_source(
    Hconn hconn, uint32_t rights, const put_plan *plan, Structure pmo, int *reason
):
    """The handle whose saved context is passed, None when none is; *reason: 0, or 2093 to 2098."""
    cdef Hobj found
    cdef int context = plan.context
    reason[0] = 0
    if context == MQPMO_SET_ALL_CONTEXT and not rights & MQOO_SET_ALL_CONTEXT:
        reason[0] = RC_NOT_OPEN_FOR_SET_ALL
    elif context == MQPMO_SET_IDENTITY_CONTEXT and not rights & MQOO_SET_IDENTITY_CONTEXT:
        reason[0] = RC_NOT_OPEN_FOR_SET_IDENT
    elif context == MQPMO_PASS_ALL_CONTEXT and not rights & MQOO_PASS_ALL_CONTEXT:
        reason[0] = RC_NOT_OPEN_FOR_PASS_ALL
    elif context == MQPMO_PASS_IDENTITY_CONTEXT and not rights & MQOO_PASS_IDENTITY_CONTEXT:
        reason[0] = RC_NOT_OPEN_FOR_PASS_IDENT
    if reason[0] != 0 or context not in (MQPMO_PASS_ALL_CONTEXT, MQPMO_PASS_IDENTITY_CONTEXT):
        return None
    found = hconn.handles.get(get_long(pmo.raw, PMO_CONTEXT))
    if found is None or not found.options & MQOO_SAVE_ALL_CONTEXT:
        reason[0] = RC_CONTEXT_HANDLE_ERROR
    elif not found.has_saved:
        reason[0] = RC_CONTEXT_NOT_AVAILABLE
    return found


cdef void set_identity(
    put_request *into, const char *user, const uint8_t *token, const char *data
) noexcept:
    """An extension is made only for identity data that is not blank."""
    pad(into.d.user_identifier, user, MQ_USER_ID_LENGTH)
    memcpy(into.d.accounting_token, token, MQ_ACCOUNTING_TOKEN_LENGTH)
    if into.extended or not is_blank(data, MQ_APPL_IDENTITY_DATA_LENGTH):
        pad(extended(into).appl_identity_data, data, MQ_APPL_IDENTITY_DATA_LENGTH)


cdef void fill_context(
    put_request *into, int context, const unsigned char *md, Hobj source
) noexcept:
    """Identity and origin context; the descriptor begins with the default one."""
    cdef ps_descriptor *d = &into.d
    cdef const char *text = <const char *>md
    if context == MQPMO_NO_CONTEXT:
        memset(d.user_identifier, BLANK, MQ_USER_ID_LENGTH)
        memset(d.accounting_token, 0, MQ_ACCOUNTING_TOKEN_LENGTH)
        memset(d.put_appl_name, BLANK, MQ_PUT_APPL_NAME_LENGTH)
        d.put_appl_type = MQAT_NO_CONTEXT
        d.put_time_us = 0
        into.flags |= MQE_PUT_KEEP_TIME
        return
    if source is not None:
        set_identity(
            into, source.saved.user_identifier, source.saved.accounting_token, source.saved_identity
        )
    else:
        set_identity(
            into, text + MD_USER_IDENTIFIER, md + MD_ACCOUNTING_TOKEN, text + MD_APPL_IDENTITY_DATA
        )
    if context == MQPMO_PASS_ALL_CONTEXT:
        d.put_appl_type = source.saved.put_appl_type
        memcpy(d.put_appl_name, source.saved.put_appl_name, MQ_PUT_APPL_NAME_LENGTH)
        memcpy(d.appl_origin_data, source.saved.appl_origin_data, MQ_APPL_ORIGIN_DATA_LENGTH)
        d.put_time_us = known_time(source.saved.put_time_us)
        into.flags |= MQE_PUT_KEEP_TIME
    elif context == MQPMO_SET_ALL_CONTEXT:
        d.put_appl_type = get_long(md, MD_PUT_APPL_TYPE)
        pad(d.put_appl_name, text + MD_PUT_APPL_NAME, MQ_PUT_APPL_NAME_LENGTH)
        pad(d.appl_origin_data, text + MD_APPL_ORIGIN_DATA, MQ_APPL_ORIGIN_DATA_LENGTH)
        d.put_time_us = take_put_time(text + MD_PUT_DATE)
        into.flags |= MQE_PUT_KEEP_TIME
