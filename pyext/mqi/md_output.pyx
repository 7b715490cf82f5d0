# md_output.pyx - the engine's descriptor and its extension, written into an MQMD or an MQMDE.
#
# Choices where the two differ
#   1. A blank ReplyToQMgr reads as the name of the queue manager that the message was put to.
#   2. BackoutCount is capped at 255 on platform z/OS (by the caller).
#   3. What an MQMD of version 1 cannot show goes into an MQMDE in front of the data.
#
# Nothing here makes a Python object.


cdef void write_context(
    unsigned char *md, const ps_descriptor *d, const ps_descriptor_ext *ext
) noexcept:
    """Identity and origin context; ext may be NULL."""
    cdef char *text = <char *>md
    memcpy(text + MD_USER_IDENTIFIER, d.user_identifier, MQ_USER_ID_LENGTH)
    memcpy(text + MD_ACCOUNTING_TOKEN, d.accounting_token, MQ_ACCOUNTING_TOKEN_LENGTH)
    if ext is NULL:
        memset(text + MD_APPL_IDENTITY_DATA, BLANK, MQ_APPL_IDENTITY_DATA_LENGTH)
    else:
        memcpy(text + MD_APPL_IDENTITY_DATA, ext.appl_identity_data, MQ_APPL_IDENTITY_DATA_LENGTH)
    set_long(md, MD_PUT_APPL_TYPE, d.put_appl_type)
    memcpy(text + MD_PUT_APPL_NAME, d.put_appl_name, MQ_PUT_APPL_NAME_LENGTH)
    write_put_time(text + MD_PUT_DATE, d.put_time_us)
    memcpy(text + MD_APPL_ORIGIN_DATA, d.appl_origin_data, MQ_APPL_ORIGIN_DATA_LENGTH)


cdef void write_group(unsigned char *group, const ps_descriptor_ext *ext) noexcept:
    """GroupId to OriginalLength; ext may be NULL."""
    if ext is NULL:
        memset(group, 0, GROUP_FIELDS)
        set_long(group, MD_MSG_SEQ_NUMBER - MD_GROUP_ID, 1)
        set_long(group, MD_ORIGINAL_LENGTH - MD_GROUP_ID, MQOL_UNDEFINED)
        return
    memcpy(group, ext.group_id, ID_LENGTH)
    set_long(group, MD_MSG_SEQ_NUMBER - MD_GROUP_ID, ext.msg_seq_number)
    set_long(group, MD_OFFSET - MD_GROUP_ID, ext.offset)
    set_long(group, MD_MSG_FLAGS - MD_GROUP_ID, ext.msg_flags)
    set_long(group, MD_ORIGINAL_LENGTH - MD_GROUP_ID, ext.original_length)


cdef void write_md(
    unsigned char *md, const ps_descriptor *d, const ps_descriptor_ext *ext, int32_t expiry,
    const char *manager
) noexcept:
    """Every field of an MQMD but StrucId and Version, of which it has those that its Version says;
    ext may be NULL; manager: the local queue manager's name, 48 characters.
    """
    cdef char *text = <char *>md
    set_long(md, MD_REPORT, d.report)
    set_long(md, MD_MSG_TYPE, d.msg_type)
    set_long(md, MD_EXPIRY, expiry)
    set_long(md, MD_FEEDBACK, d.feedback)
    set_long(md, MD_ENCODING, d.encoding)
    set_long(md, MD_CODED_CHAR_SET_ID, d.ccsid)
    memcpy(text + MD_FORMAT, d.format, MQ_FORMAT_LENGTH)
    set_long(md, MD_PRIORITY, d.priority)
    set_long(md, MD_PERSISTENCE, d.persistence)
    memcpy(text + MD_MSG_ID, d.msg_id, ID_LENGTH)
    memcpy(text + MD_CORREL_ID, d.correl_id, ID_LENGTH)
    set_long(md, MD_BACKOUT_COUNT, <int32_t>d.backout_count)
    if ext is NULL:
        memset(text + MD_REPLY_TO_Q, BLANK, NAME_LENGTH)
    else:
        memcpy(text + MD_REPLY_TO_Q, ext.reply_to_q, NAME_LENGTH)
    if ext is NULL or is_blank(ext.reply_to_qmgr, NAME_LENGTH):
        memcpy(text + MD_REPLY_TO_QMGR, manager, NAME_LENGTH)
    else:
        memcpy(text + MD_REPLY_TO_QMGR, ext.reply_to_qmgr, NAME_LENGTH)
    write_context(md, d, ext)
    if get_long(md, MD_VERSION) == MQMD_CURRENT_VERSION:
        write_group(md + MD_GROUP_ID, ext)


cdef bint has_group_fields(const ps_descriptor_ext *ext) noexcept:
    """The message has fields that an MQMD of version 1 cannot show."""
    return (
        ext.msg_seq_number != 1 or ext.offset != 0 or ext.msg_flags != 0
        or ext.original_length != MQOL_UNDEFINED or not is_nul(ext.group_id, ID_LENGTH)
    )


cdef void write_mde(
    unsigned char *mde, const ps_descriptor *d, const ps_descriptor_ext *ext
) noexcept:
    """An MQMDE, 72 bytes: the fields of version 2, and what the data behind it is."""
    memcpy(mde, STRUC_ID_MDE, STRUC_ID_LENGTH)
    set_long(mde, MDE_VERSION, MQMDE_VERSION_2)
    set_long(mde, MDE_STRUC_LENGTH, MQMDE_LENGTH_2)
    set_long(mde, MDE_ENCODING, d.encoding)
    set_long(mde, MDE_CODED_CHAR_SET_ID, d.ccsid)
    memcpy(mde + MDE_FORMAT, d.format, MQ_FORMAT_LENGTH)
    set_long(mde, MDE_FLAGS, 0)
    write_group(mde + MDE_GROUP_ID, ext)
