# errors.pyx - from reason codes to exceptions: the only place where one becomes the other.
#
# Terms
#   text     what the core noted about the newest failure of this thread (mqe_error_text()).
#   subject  what the call was about, such as "queue ORDERS".
#
# Invariants
#   1. The core's text is cleared when it is read: a later failure without a text must not show it.
#
# Locks. With the GIL; the text belongs to the thread.


cdef str core_text(int reason):
    """The core's text for the newest failure of this thread, else the text of the reason code."""
    cdef const char *text = mqe_error_text()
    if text[0] == 0:
        text = mqe_reason_text(reason)
    # names in it are padded with blanks
    cdef str result = " ".join(text.decode("utf-8", "replace").split())
    mqx_error_clear()
    return result


cdef inline bint is_warning(int reason) noexcept:
    """Whether the call did what was asked, and `reason` only says more about it."""
    return mqe_comp_code(reason) == MQCC_WARNING


cdef int fail(int reason, str subject="") except -1:
    """Raises the exception for `reason`; its text begins with `subject`."""
    cdef str text = core_text(reason)
    if subject and subject not in text:
        text = subject + ": " + text
    raise error_for(reason, text)


cdef int wrong_type(int reason, str text) except -1:
    raise InvalidType(reason, text)


cdef int wrong_value(int reason, str text) except -1:
    raise InvalidValue(reason, text)


cdef bint has_stopped(int reason) noexcept:
    """Whether the queue manager has stopped: what was to be released ended with it."""
    return reason == RC_CONNECTION_BROKEN or reason == RC_Q_MGR_STOPPING


cdef int warn_leak(str text, object source) except -1:
    """A ResourceWarning; one that is turned into an error is shown, and the clean-up goes on."""
    cdef bytes raw = text.encode("utf-8")
    if PyErr_ResourceWarning(<PyObject *>source, 1, b"%s", PyBytes_AS_STRING(raw)) < 0:
        PyErr_WriteUnraisable(source)
    return 0


def reason_name(int reason):
    """The name of a reason code, such as ``MQRC_Q_FULL`` for 2053, else ``MQRC_UNKNOWN``."""
    return mqe_reason_name(reason).decode("ascii")


def reason_text(int reason):
    """What a reason code means, in one clause."""
    return mqe_reason_text(reason).decode("utf-8")


def comp_code(int reason):
    """0, 1 or 2: the completion code that goes with a reason code."""
    return mqe_comp_code(reason)


def crc32c(data, uint32_t crc=0):
    """CRC-32C of the core over any bytes-like object, to compare other readers with."""
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return mqe_crc32c(crc, view.buf, <size_t>view.len)
    finally:
        PyBuffer_Release(&view)
