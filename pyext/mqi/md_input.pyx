# md_input.pyx - MQ's message descriptor (MQMD, 364 bytes), checked and taken into a put_request.
#
# Terms
#   group  the fields from GroupId to OriginalLength, which an MQMD of version 2 and an MQMDE have
#          alike.
#
# Invariants
#   1. Nothing here makes a Python object.
#   2. The checks come in the order of the reference: the first field that does not fit gives the
#      reason code, and nothing has been changed.
#
# Errors. Functions return a reason code, 0 when everything fits.


cdef inline bint lacks_plain(
    int32_t report, int32_t plain, int32_t with_data, int32_t with_full_data
) noexcept:
    """A with-data option is given without the one below it. Each has the bits of the one below."""
    cdef int32_t data = with_data & ~plain, full = with_full_data & ~with_data
    return (report & (data | full) and not report & plain) or (report & full and not report & data)


cdef int check_report(int32_t report, bint to_xmitq) noexcept:
    """0, or 2061: bits of the reject mask, bits allowed on a transmission queue only, or a
    with-data option without the option itself.
    """
    if report & MQRO_REJECT_UNSUP_MASK or (report & RO_XMIT_ONLY and not to_xmitq):
        return RC_REPORT_OPTIONS_ERROR
    return RC_REPORT_OPTIONS_ERROR if lacks_any_plain(report) else 0


cdef bint lacks_any_plain(int32_t report) noexcept:
    """A with-data option of any kind of report is given without the one below it."""
    return (
        lacks_plain(
            report, MQRO_EXCEPTION, MQRO_EXCEPTION_WITH_DATA, MQRO_EXCEPTION_WITH_FULL_DATA
        )
        or lacks_plain(
            report, MQRO_EXPIRATION, MQRO_EXPIRATION_WITH_DATA, MQRO_EXPIRATION_WITH_FULL_DATA
        )
        or lacks_plain(report, MQRO_COA, MQRO_COA_WITH_DATA, MQRO_COA_WITH_FULL_DATA)
        or lacks_plain(report, MQRO_COD, MQRO_COD_WITH_DATA, MQRO_COD_WITH_FULL_DATA)
    )


cdef int check_md(const unsigned char *md, bint to_xmitq) noexcept:
    """The reason code of the first field of an MQMD that does not fit a put, 0 when all do."""
    cdef int32_t value = get_long(md, MD_MSG_TYPE), persistence = get_long(md, MD_PERSISTENCE)
    cdef int32_t report = get_long(md, MD_REPORT), expiry = get_long(md, MD_EXPIRY)
    cdef int32_t feedback = get_long(md, MD_FEEDBACK)
    cdef int reason
    if not 1 <= value <= MQ_NUMBER_MAX:
        return RC_MSG_TYPE_ERROR
    if expiry != MQEI_UNLIMITED and not 1 <= expiry <= MQ_NUMBER_MAX:
        return RC_EXPIRY_ERROR
    if not 0 <= feedback <= MQ_NUMBER_MAX:
        return RC_FEEDBACK_ERROR
    if not 0 <= persistence <= MQPER_PERSISTENCE_AS_Q_DEF:
        return RC_PERSISTENCE_ERROR
    if get_long(md, MD_PRIORITY) < MQPRI_PRIORITY_AS_Q_DEF:
        return RC_PRIORITY_ERROR
    if report:
        reason = check_report(report, to_xmitq)
        if reason:
            return reason
    if (value == MQMT_REQUEST or report & RO_NEEDS_REPLY_Q) and is_blank(
        <const char *>md + MD_REPLY_TO_Q, NAME_LENGTH
    ):
        return RC_MISSING_REPLY_TO_Q
    return check_group(md + MD_GROUP_ID) if get_long(md, MD_VERSION) == MQMD_CURRENT_VERSION else 0


cdef int check_group(const unsigned char *group) noexcept:
    """The fields from GroupId to OriginalLength, which an MQMD and an MQMDE have alike."""
    cdef int32_t flags = get_long(group, MD_MSG_FLAGS - MD_GROUP_ID)
    cdef int32_t original = get_long(group, MD_ORIGINAL_LENGTH - MD_GROUP_ID)
    if flags & ~MF_KNOWN:
        return RC_MSG_FLAGS_ERROR
    if not 1 <= get_long(group, MD_MSG_SEQ_NUMBER - MD_GROUP_ID) <= MQ_NUMBER_MAX:
        return RC_MSG_SEQ_NUMBER_ERROR
    if not 0 <= get_long(group, MD_OFFSET - MD_GROUP_ID) <= MQ_NUMBER_MAX:
        return RC_OFFSET_ERROR
    if original != MQOL_UNDEFINED and original < 1:
        return RC_ORIGINAL_LENGTH_ERROR
    if not flags & MF_SEGMENT:
        return 0
    if flags & MQMF_SEGMENTATION_ALLOWED:
        return RC_SEGMENTS_NOT_SUPPORTED
    return RC_SEGMENTATION_NOT_ALLOWED


cdef bint group_is_initial(const unsigned char *group) noexcept:
    """GroupId to OriginalLength have their initial values."""
    return (
        get_long(group, MD_MSG_SEQ_NUMBER - MD_GROUP_ID) == 1
        and get_long(group, MD_OFFSET - MD_GROUP_ID) == 0
        and get_long(group, MD_MSG_FLAGS - MD_GROUP_ID) == 0
        and get_long(group, MD_ORIGINAL_LENGTH - MD_GROUP_ID) == MQOL_UNDEFINED
        and is_nul(group, ID_LENGTH)
    )


cdef void take_group(put_request *into, const unsigned char *group) noexcept:
    """GroupId to OriginalLength into the extension."""
    cdef ps_descriptor_ext *ext = extended(into)
    memcpy(ext.group_id, group, ID_LENGTH)
    ext.msg_seq_number = get_long(group, MD_MSG_SEQ_NUMBER - MD_GROUP_ID)
    ext.offset = get_long(group, MD_OFFSET - MD_GROUP_ID)
    ext.msg_flags = get_long(group, MD_MSG_FLAGS - MD_GROUP_ID)
    ext.original_length = get_long(group, MD_ORIGINAL_LENGTH - MD_GROUP_ID)


cdef void take_md(const unsigned char *md, put_request *into) noexcept:
    """The fields of an MQMD that has been checked, but for its context."""
    cdef ps_descriptor *d = &into.d
    cdef const char *text = <const char *>md
    into.expiry = get_long(md, MD_EXPIRY)
    d.report = get_long(md, MD_REPORT)
    d.msg_type = get_long(md, MD_MSG_TYPE)
    d.feedback = get_long(md, MD_FEEDBACK)
    d.encoding = get_long(md, MD_ENCODING)
    d.ccsid = get_long(md, MD_CODED_CHAR_SET_ID)
    if d.ccsid == MQCCSI_Q_MGR or d.ccsid == MQCCSI_INHERIT:
        d.ccsid = MQCCSI_UTF8
    pad(d.format, text + MD_FORMAT, MQ_FORMAT_LENGTH)
    d.priority = get_long(md, MD_PRIORITY)
    d.persistence = <uint8_t>get_long(md, MD_PERSISTENCE)
    memcpy(d.msg_id, md + MD_MSG_ID, ID_LENGTH)
    memcpy(d.correl_id, md + MD_CORREL_ID, ID_LENGTH)
    d.md_version = <uint8_t>get_long(md, MD_VERSION)
    into.extended = False
    if not is_blank(text + MD_REPLY_TO_Q, NAME_LENGTH) or not is_blank(
        text + MD_REPLY_TO_QMGR, NAME_LENGTH
    ):
        extended(into)
        pad(into.ext.reply_to_q, text + MD_REPLY_TO_Q, NAME_LENGTH)
        pad(into.ext.reply_to_qmgr, text + MD_REPLY_TO_QMGR, NAME_LENGTH)
    if d.md_version == MQMD_CURRENT_VERSION and not group_is_initial(md + MD_GROUP_ID):
        take_group(into, md + MD_GROUP_ID)


cdef int take_mde(const char *data, Py_ssize_t size, put_request *into) noexcept:
    """The MQMDE at the start of the data of a version-1 MQMD with format MQHMDE: 0 or 2248, or the
    reason code of its field.
    """
    cdef const unsigned char *mde = <const unsigned char *>data
    cdef int32_t ccsid
    cdef int reason
    if (
        size < MQMDE_LENGTH_2 or memcmp(data, STRUC_ID_MDE, STRUC_ID_LENGTH) != 0
        or get_long(mde, MDE_VERSION) != MQMDE_VERSION_2
        or get_long(mde, MDE_STRUC_LENGTH) != MQMDE_LENGTH_2
    ):
        return RC_MDE_ERROR
    reason = check_group(mde + MDE_GROUP_ID)
    if reason:
        return reason
    take_group(into, mde + MDE_GROUP_ID)
    into.d.encoding = get_long(mde, MDE_ENCODING)
    ccsid = get_long(mde, MDE_CODED_CHAR_SET_ID)
    if ccsid != MQCCSI_INHERIT:  # else the set of the MQMDE itself, which the MQMD names
        into.d.ccsid = ccsid or MQCCSI_UTF8
    pad(into.d.format, data + MDE_FORMAT, MQ_FORMAT_LENGTH)
    into.d.md_version = MQMD_CURRENT_VERSION
    return 0
