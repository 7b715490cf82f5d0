# characters.pyx - blank-padded characters and NUL-padded bytes, as MQ's structures have them.
#
# A NUL ends the significant part of a character field, in what a caller gives; what the binding
# writes is padded with blanks.

cdef bytes BLANKS = b" " * TWO_NAMES_LENGTH
cdef const char *blanks = BLANKS
cdef const char *FORMAT_MDE = b"MQHMDE  "
cdef const char *FORMAT_RFH2 = b"MQHRF2  "
cdef const char *FORMAT_XMIT = b"MQXMIT  "
cdef const char *FORMAT_STRING = b"MQSTR   "
cdef const char *STRUC_ID_OD = b"OD  "
cdef const char *STRUC_ID_MD = b"MD  "
cdef const char *STRUC_ID_MDE = b"MDE "
cdef const char *STRUC_ID_XQH = b"XQH "
cdef const char *STRUC_ID_PMO = b"PMO "
cdef const char *STRUC_ID_GMO = b"GMO "


cdef inline bint is_blank(const char *text, Py_ssize_t size) noexcept:
    """No significant character; at most 96 characters."""
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
        memset(text + length, BLANK, <size_t>(size - length))


cdef inline void blank_extension(ps_descriptor_ext *ext) noexcept:
    """The extension of a message that has nothing in it."""
    memset(ext, 0, sizeof(ext[0]))
    memset(ext.reply_to_q, BLANK, NAME_LENGTH)
    memset(ext.reply_to_qmgr, BLANK, NAME_LENGTH)
    memset(ext.appl_identity_data, BLANK, MQ_APPL_IDENTITY_DATA_LENGTH)
    ext.msg_seq_number = 1
    ext.original_length = -1


cdef inline int32_t get_long(const unsigned char *raw, Py_ssize_t offset) noexcept:
    cdef int32_t value
    memcpy(&value, raw + offset, sizeof(value))
    return value


cdef inline void set_long(unsigned char *raw, Py_ssize_t offset, int32_t value) noexcept:
    memcpy(raw + offset, &value, sizeof(value))


cdef inline Py_ssize_t significant(const unsigned char *text, Py_ssize_t size) noexcept:
    """Length of characters without what follows a NUL and without trailing blanks."""
    cdef const void *end = memchr(text, 0, <size_t>size)
    if end != NULL:
        size = <const unsigned char *>end - text
    while size > 0 and text[size - 1] == BLANK:
        size -= 1
    return size
