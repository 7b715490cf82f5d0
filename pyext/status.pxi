# status.pxi - from reason codes to exceptions: the only place where one becomes the other.


cdef str core_text(int reason):
    """The core's text for the newest failure of this thread; the reason's own when it gave none."""
    cdef const char *text = mqe_error_text()
    if text[0] == 0:
        text = mqe_reason_text(reason)
    # the core's names are padded with blanks
    cdef str result = " ".join(text.decode("utf-8", "replace").split())
    mqx_error_clear()  # a later failure without a text must not show this one
    return result


cdef int fail(int reason, str subject="") except -1:
    """Raises the exception for `reason`; `subject` names what the call was about."""
    cdef str text = core_text(reason)
    if subject and subject not in text:
        text = subject + ": " + text
    raise error_for(reason, text)


cdef int wrong_type(int reason, str text) except -1:
    raise InvalidType(reason, text)


cdef int wrong_value(int reason, str text) except -1:
    raise InvalidValue(reason, text)


cdef int closed_handle(int reason, str text) except -1:
    raise ClosedHandle(reason, text)


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
