# descriptor.pxi - MQ's message descriptor in its own layout (MQMD, 364 bytes), to and from the
# engine's (ps_descriptor and its extension). Nothing here makes a Python object on a good way.
#
# Choices where the two differ
#   1. The engine keeps the moment of the put as a number. PutDate and PutTime that an application
#      sets (SET_ALL context) and that are no date and time are kept as unknown: they read as
#      blanks.
#   2. A blank ReplyToQMgr reads as the name of the queue manager that the message was put to.
#   3. BackoutCount is capped at 255 on platform z/OS.

cdef enum:                    # offsets in an MQMD
    MD_VERSION = 4
    MD_REPORT = 8
    MD_MSG_TYPE = 12
    MD_EXPIRY = 16
    MD_FEEDBACK = 20
    MD_ENCODING = 24
    MD_CCSID = 28
    MD_FORMAT = 32
    MD_PRIORITY = 40
    MD_PERSISTENCE = 44
    MD_MSG_ID = 48
    MD_CORREL_ID = 72
    MD_BACKOUT_COUNT = 96
    MD_REPLY_TO_Q = 100
    MD_REPLY_TO_QMGR = 148
    MD_USER_IDENTIFIER = 196
    MD_ACCOUNTING_TOKEN = 208
    MD_APPL_IDENTITY_DATA = 240
    MD_PUT_APPL_TYPE = 272
    MD_PUT_APPL_NAME = 276
    MD_PUT_DATE = 304
    MD_PUT_TIME = 312
    MD_APPL_ORIGIN_DATA = 320
    MD_GROUP_ID = 324         # version 2
    MD_MSG_SEQ_NUMBER = 348
    MD_OFFSET = 352
    MD_MSG_FLAGS = 356
    MD_ORIGINAL_LENGTH = 360
    MD_SIZE_1 = 324
    MD_SIZE_2 = 364

cdef enum:                    # offsets in an MQMDE; GroupId to OriginalLength are as in an MQMD
    MDE_VERSION = 4
    MDE_LENGTH = 8
    MDE_ENCODING = 12
    MDE_CCSID = 16
    MDE_FORMAT = 20
    MDE_GROUP_ID = 32
    MDE_SIZE = 72
    GROUP_FIELDS = 40         # bytes from GroupId to the end of OriginalLength

cdef enum:
    MOST = 999999999
    QM_CCSID = 1208
    NATIVE_ENCODING = 546
    RO_XMIT_ONLY = 0x00038000 # unknown bits of MQRO_ACCEPT_UNSUP_IF_XMIT_MASK
    MF_GROUP = 24             # MSG_IN_GROUP, LAST_MSG_IN_GROUP
    MF_SEGMENT = 6            # SEGMENT, LAST_SEGMENT
    DAY_US = 86400000000

cdef bytes BLANKS = b" " * 64
cdef const char *blanks = BLANKS
cdef const char *FORMAT_MDE = b"MQHMDE  "
cdef const char *FORMAT_XMIT = b"MQXMIT  "


cdef struct md_input:         # what a put takes out of an MQMD
    ps_descriptor d
    ps_descriptor_ext ext
    bint extended
    int32_t expiry
    uint32_t flags            # MQE_PUT_*


cdef inline bint is_blank(const char *text, Py_ssize_t size) noexcept:
    """Blanks only, up to a NUL."""
    return text[0] == 0 or memcmp(text, blanks, <size_t>size) == 0


cdef inline bint is_nul(const unsigned char *raw, Py_ssize_t size) noexcept:
    cdef Py_ssize_t i
    for i in range(size):
        if raw[i]:
            return False
    return True


cdef inline void pad(char *text, const char *given, Py_ssize_t size) noexcept:
    """Copies characters; blanks from the first NUL on."""
    cdef Py_ssize_t length = <Py_ssize_t>strnlen(given, <size_t>size)
    memcpy(text, given, <size_t>length)
    if length != size:
        memset(text + length, 32, <size_t>(size - length))


cdef inline void blank_extension(ps_descriptor_ext *ext) noexcept:
    """The extension of a message that has nothing in it."""
    memset(ext, 0, sizeof(ext[0]))
    memset(ext.reply_to_q, 32, 48)
    memset(ext.reply_to_qmgr, 32, 48)
    memset(ext.appl_identity_data, 32, 32)
    ext.msg_seq_number = 1
    ext.original_length = -1


# ---- dates ----

cdef int64_t shown_day = -1   # days since 1970 whose date stands in shown_date
cdef char shown_date[8]


cdef inline void two_digits(char *text, int64_t number) noexcept:
    text[0] = <char>(48 + number // 10 % 10)
    text[1] = <char>(48 + number % 10)


cdef void show_date(char *text, int64_t day) noexcept:
    """YYYYMMDD of a day, by the 400-year cycle of the calendar that begins with March."""
    global shown_day
    cdef int64_t era, of_era, year, of_year, month
    if day != shown_day:
        era = (day + 719468) // 146097
        of_era = day + 719468 - era * 146097
        year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
        of_year = of_era - (365 * year + year // 4 - year // 100)
        month = (5 * of_year + 2) // 153
        year += era * 400 + (1 if month > 9 else 0)
        two_digits(shown_date, year // 100)
        two_digits(shown_date + 2, year % 100)
        two_digits(shown_date + 4, month + 3 if month < 10 else month - 9)
        two_digits(shown_date + 6, of_year - (153 * month + 2) // 5 + 1)
        shown_day = day
    memcpy(text, shown_date, 8)


cdef void show_put_time(char *text, uint64_t moment) noexcept:
    """PutDate and PutTime, 16 characters; blanks when the moment is not known."""
    cdef int64_t day = <int64_t>(moment // DAY_US)
    cdef int64_t hundredths = <int64_t>(moment % DAY_US) // 10000
    if moment == 0:
        memset(text, 32, 16)
        return
    show_date(text, day)
    two_digits(text + 8, hundredths // 360000)
    two_digits(text + 10, hundredths // 6000 % 60)
    two_digits(text + 12, hundredths // 100 % 60)
    two_digits(text + 14, hundredths % 100)


cdef int64_t take_digits(const char *text, int count) noexcept:
    """A number of so many digits, -1 when it is none."""
    cdef int64_t number = 0
    cdef int i
    for i in range(count):
        if not 48 <= text[i] <= 57:
            return -1
        number = number * 10 + text[i] - 48
    return number


cdef uint64_t take_put_time(const char *text) noexcept:
    """The moment of PutDate and PutTime (16 characters), 0 when they are no moment after 1970."""
    cdef int64_t year = take_digits(text, 4), month = take_digits(text + 4, 2)
    cdef int64_t day = take_digits(text + 6, 2), hour = take_digits(text + 8, 2)
    cdef int64_t minute = take_digits(text + 10, 2), second = take_digits(text + 12, 2)
    cdef int64_t hundredth = take_digits(text + 14, 2), days
    if (
        year < 1970 or not 1 <= month <= 12 or not 1 <= day <= 31 or not 0 <= hour <= 23
        or not 0 <= minute <= 59 or not 0 <= second <= 59 or hundredth < 0
    ):
        return 0
    if month <= 2:
        year -= 1
    days = year // 400 * 146097 + (year % 400) * 365 + (year % 400) // 4 - (year % 400) // 100
    days += (153 * ((month + 9) % 12) + 2) // 5 + day - 1 - 719468
    return <uint64_t>(
        days * DAY_US + ((hour * 60 + minute) * 60 + second) * 1000000 + hundredth * 10000
    )


# ---- from an MQMD ----

cdef int check_report(int32_t report, bint to_xmitq) noexcept:
    """0, or 2061: bits of the reject mask, bits allowed on a transmission queue only, or a
    with-data option without the option itself.
    """
    if report & RO_REJECT or (report & RO_XMIT_ONLY and not to_xmitq):
        return RC_REPORT_OPTIONS_ERROR
    if (
        (report & 0x06000000 and not report & 0x01000000)
        or (report & 0x04000000 and not report & 0x02000000)
        or (report & 0x00C00000 and not report & 0x00200000)
        or (report & 0x00800000 and not report & 0x00400000)
        or (report & 0x00000600 and not report & 0x00000100)
        or (report & 0x00000400 and not report & 0x00000200)
        or (report & 0x00003000 and not report & 0x00000800)
        or (report & 0x00002000 and not report & 0x00001000)
    ):
        return RC_REPORT_OPTIONS_ERROR
    return 0


cdef int check_md(const unsigned char *md, bint to_xmitq) noexcept:
    """The reason code of the first field of an MQMD that does not fit a put, 0 when all do."""
    cdef int32_t value = get_long(md, MD_MSG_TYPE), persistence = get_long(md, MD_PERSISTENCE)
    cdef int32_t report = get_long(md, MD_REPORT), expiry = get_long(md, MD_EXPIRY)
    cdef int32_t feedback = get_long(md, MD_FEEDBACK)
    cdef int reason
    if not 1 <= value <= MOST:
        return RC_MSG_TYPE_ERROR
    if expiry != -1 and not 1 <= expiry <= MOST:
        return RC_EXPIRY_ERROR
    if not 0 <= feedback <= MOST:
        return RC_FEEDBACK_ERROR
    if not 0 <= persistence <= 2:
        return RC_PERSISTENCE_ERROR
    if get_long(md, MD_PRIORITY) < -1:
        return RC_PRIORITY_ERROR
    if report:
        reason = check_report(report, to_xmitq)
        if reason:
            return reason
    if (value == 1 or report & RO_NEEDS_REPLY_Q) and is_blank(<const char *>md + MD_REPLY_TO_Q, 48):
        return RC_MISSING_REPLY_TO_Q
    return check_group(md + MD_GROUP_ID) if get_long(md, MD_VERSION) == 2 else 0


cdef int check_group(const unsigned char *group) noexcept:
    """The fields from GroupId to OriginalLength, which an MQMD and an MQMDE have alike."""
    cdef int32_t flags = get_long(group, MD_MSG_FLAGS - MD_GROUP_ID)
    cdef int32_t original = get_long(group, MD_ORIGINAL_LENGTH - MD_GROUP_ID)
    if flags & ~MSG_FLAGS_KNOWN:
        return RC_MSG_FLAGS_ERROR
    if not 1 <= get_long(group, MD_MSG_SEQ_NUMBER - MD_GROUP_ID) <= MOST:
        return RC_MSG_SEQ_NUMBER_ERROR
    if not 0 <= get_long(group, MD_OFFSET - MD_GROUP_ID) <= MOST:
        return RC_OFFSET_ERROR
    if original != -1 and original < 1:
        return RC_ORIGINAL_LENGTH_ERROR
    return RC_SEGMENTATION_NOT_ALLOWED if flags & MF_SEGMENT else 0


cdef bint group_is_initial(const unsigned char *group) noexcept:
    """GroupId to OriginalLength have their initial values."""
    return (
        get_long(group, MD_MSG_SEQ_NUMBER - MD_GROUP_ID) == 1
        and get_long(group, MD_OFFSET - MD_GROUP_ID) == 0
        and get_long(group, MD_MSG_FLAGS - MD_GROUP_ID) == 0
        and get_long(group, MD_ORIGINAL_LENGTH - MD_GROUP_ID) == -1
        and is_nul(group, 24)
    )


cdef void take_group(md_input *into, const unsigned char *group) noexcept:
    """GroupId to OriginalLength into the extension."""
    into.extended = True
    memcpy(into.ext.group_id, group, 24)
    into.ext.msg_seq_number = get_long(group, MD_MSG_SEQ_NUMBER - MD_GROUP_ID)
    into.ext.offset = get_long(group, MD_OFFSET - MD_GROUP_ID)
    into.ext.msg_flags = get_long(group, MD_MSG_FLAGS - MD_GROUP_ID)
    into.ext.original_length = get_long(group, MD_ORIGINAL_LENGTH - MD_GROUP_ID)


cdef void take_md(const unsigned char *md, md_input *into) noexcept:
    """The fields of an MQMD that has been checked, but for its context."""
    cdef ps_descriptor *d = &into.d
    cdef const char *text = <const char *>md
    into.expiry = get_long(md, MD_EXPIRY)
    d.report = get_long(md, MD_REPORT)
    d.msg_type = get_long(md, MD_MSG_TYPE)
    d.feedback = get_long(md, MD_FEEDBACK)
    d.encoding = get_long(md, MD_ENCODING)
    d.ccsid = get_long(md, MD_CCSID)
    if d.ccsid == 0:  # MQCCSI_Q_MGR
        d.ccsid = QM_CCSID
    pad(d.format, text + MD_FORMAT, 8)
    d.priority = get_long(md, MD_PRIORITY)
    d.persistence = <uint8_t>get_long(md, MD_PERSISTENCE)
    memcpy(d.msg_id, md + MD_MSG_ID, 24)
    memcpy(d.correl_id, md + MD_CORREL_ID, 24)
    d.md_version = <uint8_t>get_long(md, MD_VERSION)
    into.extended = False
    if not is_blank(text + MD_REPLY_TO_Q, 48) or not is_blank(text + MD_REPLY_TO_QMGR, 48):
        blank_extension(&into.ext)
        into.extended = True
        pad(into.ext.reply_to_q, text + MD_REPLY_TO_Q, 48)
        pad(into.ext.reply_to_qmgr, text + MD_REPLY_TO_QMGR, 48)
    if d.md_version == 2 and not group_is_initial(md + MD_GROUP_ID):
        if not into.extended:
            blank_extension(&into.ext)
        take_group(into, md + MD_GROUP_ID)


cdef int take_mde(const char *data, Py_ssize_t size, md_input *into) noexcept:
    """The MQMDE at the start of the data of a version-1 MQMD with format MQHMDE: 0 or 2248, or the
    reason code of its field.
    """
    cdef const unsigned char *mde = <const unsigned char *>data
    cdef int reason
    if (
        size < MDE_SIZE or memcmp(data, b"MDE ", 4) != 0 or get_long(mde, MDE_VERSION) != 2
        or get_long(mde, MDE_LENGTH) != MDE_SIZE
    ):
        return RC_MDE_ERROR
    reason = check_group(mde + MDE_GROUP_ID)
    if reason:
        return reason
    if not into.extended:
        blank_extension(&into.ext)
    take_group(into, mde + MDE_GROUP_ID)
    into.d.encoding = get_long(mde, MDE_ENCODING)
    into.d.ccsid = get_long(mde, MDE_CCSID) or QM_CCSID
    pad(into.d.format, data + MDE_FORMAT, 8)
    into.d.md_version = 2
    return 0


# ---- to an MQMD ----

cdef void show_context(
    unsigned char *md, const ps_descriptor *d, const ps_descriptor_ext *ext
) noexcept:
    """Identity and origin context; ext may be NULL."""
    cdef char *text = <char *>md
    memcpy(text + MD_USER_IDENTIFIER, d.user_identifier, 12)
    memcpy(text + MD_ACCOUNTING_TOKEN, d.accounting_token, 32)
    if ext is NULL:
        memset(text + MD_APPL_IDENTITY_DATA, 32, 32)
    else:
        memcpy(text + MD_APPL_IDENTITY_DATA, ext.appl_identity_data, 32)
    set_long(md, MD_PUT_APPL_TYPE, d.put_appl_type)
    memcpy(text + MD_PUT_APPL_NAME, d.put_appl_name, 28)
    show_put_time(text + MD_PUT_DATE, d.put_time_us)
    memcpy(text + MD_APPL_ORIGIN_DATA, d.appl_origin_data, 4)


cdef void show_group(unsigned char *group, const ps_descriptor_ext *ext) noexcept:
    """GroupId to OriginalLength; ext may be NULL."""
    if ext is NULL:
        memset(group, 0, GROUP_FIELDS)
        set_long(group, MD_MSG_SEQ_NUMBER - MD_GROUP_ID, 1)
        set_long(group, MD_ORIGINAL_LENGTH - MD_GROUP_ID, -1)
        return
    memcpy(group, ext.group_id, 24)
    set_long(group, MD_MSG_SEQ_NUMBER - MD_GROUP_ID, ext.msg_seq_number)
    set_long(group, MD_OFFSET - MD_GROUP_ID, ext.offset)
    set_long(group, MD_MSG_FLAGS - MD_GROUP_ID, ext.msg_flags)
    set_long(group, MD_ORIGINAL_LENGTH - MD_GROUP_ID, ext.original_length)


cdef void show_md(
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
    set_long(md, MD_CCSID, d.ccsid)
    memcpy(text + MD_FORMAT, d.format, 8)
    set_long(md, MD_PRIORITY, d.priority)
    set_long(md, MD_PERSISTENCE, d.persistence)
    memcpy(text + MD_MSG_ID, d.msg_id, 24)
    memcpy(text + MD_CORREL_ID, d.correl_id, 24)
    set_long(md, MD_BACKOUT_COUNT, <int32_t>d.backout_count)
    if ext is NULL:
        memset(text + MD_REPLY_TO_Q, 32, 48)
    else:
        memcpy(text + MD_REPLY_TO_Q, ext.reply_to_q, 48)
    if ext is NULL or is_blank(ext.reply_to_qmgr, 48):
        memcpy(text + MD_REPLY_TO_QMGR, manager, 48)
    else:
        memcpy(text + MD_REPLY_TO_QMGR, ext.reply_to_qmgr, 48)
    show_context(md, d, ext)
    if get_long(md, MD_VERSION) == 2:
        show_group(md + MD_GROUP_ID, ext)


cdef bint has_group_fields(const ps_descriptor_ext *ext) noexcept:
    """The message has fields that an MQMD of version 1 cannot show."""
    return (
        ext.msg_seq_number != 1 or ext.offset != 0 or ext.msg_flags != 0
        or ext.original_length != -1 or not is_nul(ext.group_id, 24)
    )


cdef void show_mde(
    unsigned char *mde, const ps_descriptor *d, const ps_descriptor_ext *ext
) noexcept:
    """An MQMDE, 72 bytes: the fields of version 2, and what the data behind it is."""
    memcpy(mde, b"MDE ", 4)
    set_long(mde, MDE_VERSION, 2)
    set_long(mde, MDE_LENGTH, MDE_SIZE)
    set_long(mde, MDE_ENCODING, d.encoding)
    set_long(mde, MDE_CCSID, d.ccsid)
    memcpy(mde + MDE_FORMAT, d.format, 8)
    set_long(mde, MDE_FORMAT + 8, 0)
    show_group(mde + MDE_GROUP_ID, ext)
