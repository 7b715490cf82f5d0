# convert.pyx - MQGMO_CONVERT: the data of a message that was got, converted by penstock.mqi.
#
# Invariants
#   1. The message may have been removed: nothing that happens in the conversion loses it. What the
#      conversion raises gives the data as it is with 2119; an exception of a signal handler is
#      raised again when the call has returned (the purpose of crash-safety rule 34).
#   2. Truncation before the conversion (2079) keeps its reason code, whatever the conversion says.
#
# A message of JMS, of which COMPATIBILITY keeps every property, is known by the first bytes of its
# first folder: a look through the whole header costs ten times a get.
#
# Errors. 2110 to 2120 and 2190 with a warning; the codes are the conversion's.


cdef tuple COMPATIBLE_STARTS = (b"<mcd>", b"<jms>", b"<usr>", b"<mqext>")


def register_conversion(convert):
    """Registers the conversion of penstock.mqi: (data, format, CCSID, encoding, CCSID asked for,
    encoding asked for, limit, truncated, accept) -> (data or None, reason code, text).
    """
    global convert_data
    convert_data = convert


def register_properties(remove):
    """Registers the removal of properties of penstock.mqi: (data, encoding, CCSID, compatible) ->
    (data, encoding, CCSID, format), or None for a message that stays as it is.
    """
    global remove_properties
    remove_properties = remove


cdef bytes stripped_data(mqe_get_t *get, bytes body, int32_t how, Py_ssize_t *length):
    """The data without the message's properties; its descriptor and DataLength follow. The message
    stays as it is when the removal raises an exception, as with a conversion. how:
    MQGMO_NO_PROPERTIES or MQGMO_PROPERTIES_COMPATIBILITY.
    """
    cdef object found = None
    cdef bytes name
    cdef bint compatible = how == MQGMO_PROPERTIES_COMPATIBILITY
    if compatible and body.startswith(COMPATIBLE_STARTS, RFH2_FIRST_FOLDER):
        return body  # as a look at the whole would find
    try:
        found = remove_properties(body, get.d.encoding, get.d.ccsid, compatible)
    except MemoryError:
        pass
    except BaseException as error:
        raise_later(error)
    if found is None:
        return body
    body, get.d.encoding, get.d.ccsid, name = found
    memcpy(get.d.format, PyBytes_AS_STRING(name), MQ_FORMAT_LENGTH)
    length[0] = PyBytes_GET_SIZE(body)
    return body


cdef int raise_kept(void *kept) except -1:
    """Raises the exception that was kept; runs between two instructions of the main thread."""
    cdef object error = <object>kept
    Py_DECREF(<PyObject *>kept)
    raise error


cdef void raise_later(object error) noexcept:
    """Raises an exception once the call has returned; reports it when that is not possible."""
    Py_INCREF(error)
    if Py_AddPendingCall(raise_kept, <void *>error) != 0:
        Py_DECREF(<PyObject *>error)
        raise error


cdef tuple run_conversion(
    const unsigned char *md, bytes body, int32_t ccsid, int32_t encoding, Py_ssize_t limit,
    bint truncated, bint accept
):
    """The answer of the conversion; (None, 2119, text) when it raised an exception."""
    cdef bytes name = (<const char *>md)[MD_FORMAT:MD_FORMAT + MQ_FORMAT_LENGTH]
    try:
        return convert_data(
            body, name, get_long(md, MD_CODED_CHAR_SET_ID), get_long(md, MD_ENCODING), ccsid,
            encoding, limit, truncated, accept,
        )
    except MemoryError:
        return None, RC_NOT_CONVERTED, "there is no memory for the conversion"
    except BaseException as error:
        raise_later(error)
        return None, RC_NOT_CONVERTED, f"{type(error).__name__} interrupted the conversion"


cdef bytes converted_data(
    Hconn c, unsigned char *md, const mqe_get_t *get, bytes body, const conversion *asked,
    Py_ssize_t limit, Py_ssize_t *length, int *reason
):
    """The data as the caller asked for it, or as it is with a warning. CodedCharSetId and Encoding
    of the MQMD, DataLength and the reason code follow.
    """
    cdef int32_t ccsid = asked.ccsid
    cdef bint truncated = reason[0] != 0
    cdef object data, text
    cdef int code
    if ccsid == MQCCSI_Q_MGR:
        ccsid = MQCCSI_UTF8
    if PyBytes_GET_SIZE(body) == 0 or (
        get.d.ccsid == ccsid and get.d.encoding == asked.encoding
    ):
        return body
    data, code, text = run_conversion(
        md, body, ccsid, asked.encoding, limit, truncated,
        get.flags & MQE_GET_ACCEPT_TRUNCATED != 0,
    )
    if code != 0 and not truncated:
        failed(c, code, text)
        reason[0] = code
    if data is None:
        return body
    set_long(md, MD_CODED_CHAR_SET_ID, ccsid)
    set_long(md, MD_ENCODING, asked.encoding)
    if reason[0] == 0:
        length[0] = PyBytes_GET_SIZE(data)
    return data
