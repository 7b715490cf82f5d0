# arguments.pyx - Python values into C ones; a value that does not fit is refused with the reason
# code of its field, and stands in the text.
#
# Errors. Every function raises InvalidType or InvalidValue and has then changed nothing that
# counts. The exact types that programs use come first; other types take longer.

cdef double EXPIRY_SECONDS_MAX = 99999999.9
cdef double DELAY_SECONDS_MAX = 3155760000.0
cdef double WAIT_SECONDS_MAX = 1e9        # a longer wait is one without an end


cdef int take_int(object value, int32_t *out, int reason, str what) except -1:
    """A 32-bit integer; reason 2026 with TypeError for other types, `reason` when out of range."""
    cdef int overflow = 0
    cdef long long number
    if not isinstance(value, int):
        wrong_type(RC_MD_ERROR, f"{what} must be an integer, not {type(value).__name__}: {value!r}")
    number = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow or number != <int32_t>number:
        wrong_value(reason, f"{what} {value!r} is outside the range of 32-bit integers")
    out[0] = <int32_t>number
    return 0


cdef int take_count(object value, int32_t *out, int reason, str what) except -1:
    """A number from 1 to 999999999."""
    take_int(value, out, reason, what)
    if not 1 <= out[0] <= MQ_NUMBER_MAX:
        wrong_value(reason, f"{what} {value!r} is not 1 to {MQ_NUMBER_MAX}")
    return 0


cdef int take_id(object value, uint8_t *out, int reason, str what) except -1:
    """An identifier of at most 24 bytes, NUL-padded."""
    cdef bytes raw
    cdef Py_ssize_t size
    if type(value) is not bytes:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            wrong_type(reason, f"{what} must be bytes, not {type(value).__name__}: {value!r}")
        raw = bytes(value)
    else:
        raw = <bytes>value
    size = PyBytes_GET_SIZE(raw)
    if size > ID_LENGTH:
        wrong_value(reason, f"{what} has {size} bytes, at most {ID_LENGTH} are allowed: {raw!r}")
    memcpy(out, PyBytes_AS_STRING(raw), size)
    memset(out + size, 0, ID_LENGTH - size)
    return 0


cdef int take_text(object value, char *out, Py_ssize_t capacity, str what) except -1:
    """A character field: text or bytes, blank-padded."""
    cdef bytes raw
    if isinstance(value, str):
        raw = (<str>value).encode("utf-8")
    elif isinstance(value, bytes):
        raw = bytes(value)
    else:
        wrong_type(RC_MD_ERROR, f"{what} must be a string, not {type(value).__name__}: {value!r}")
    if len(raw) > capacity:
        wrong_value(RC_MD_ERROR, f"{what} has {len(raw)} bytes, at most {capacity} fit: {value!r}")
    memset(out, BLANK, capacity)
    memcpy(out, PyBytes_AS_STRING(raw), PyBytes_GET_SIZE(raw))
    return 0


cdef inline double take_seconds(object value, int reason, str wanted) except? -1:
    """Seconds as a number, infinite for integers that no double holds; `wanted` is for the error.
    """
    if type(value) is float:
        return PyFloat_AS_DOUBLE(value)
    return other_seconds(value, reason, wanted)


cdef double other_seconds(object value, int reason, str wanted) except? -1:
    """take_seconds() of what is no plain float. What a subclass says in its comparisons does not
    count.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        wrong_type(reason, f"{wanted}, not {type(value).__name__}: {value!r}")
    try:
        return PyFloat_AsDouble(value)
    except OverflowError:
        return INFINITY if value > 0 else -INFINITY


cdef int take_expiry(object value, int32_t *out) except -1:
    """Seconds as a number into tenths of a second, rounded up."""
    cdef double seconds = take_seconds(value, RC_EXPIRY_ERROR, "expiry must be seconds")
    cdef double tenths
    if not 0 < seconds <= EXPIRY_SECONDS_MAX:
        wrong_value(
            RC_EXPIRY_ERROR,
            f"expiry {value!r} is not a time above 0 and of at most {EXPIRY_SECONDS_MAX} seconds; "
            f"without expiry a message does not expire",
        )
    tenths = seconds * 10
    out[0] = <int32_t>tenths
    if out[0] < tenths - 1e-6:  # not for what the multiplication added
        out[0] += 1
    return 0


cdef int take_put_time_us(object value, uint64_t *out) except -1:
    """Microseconds since 1970, not after the year 9999."""
    cdef int overflow = 0
    cdef long long number, last = PUT_TIME_MAX
    if not isinstance(value, int):
        wrong_type(
            RC_MD_ERROR, f"put_time_us must be an integer, not {type(value).__name__}: {value!r}"
        )
    number = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow or not 0 <= number <= last:
        wrong_value(RC_MD_ERROR, f"put_time_us {value!r} is not 0 to {last} (year 9999)")
    out[0] = <uint64_t>number
    return 0


cdef inline int take_delay(object value, uint64_t *out) except -1:
    """Seconds as a number into microseconds."""
    cdef double seconds = take_seconds(value, RC_MD_ERROR, "delay must be seconds")
    if not 0 <= seconds <= DELAY_SECONDS_MAX:
        wrong_value(
            RC_MD_ERROR, f"delay {value!r} is not 0 to {DELAY_SECONDS_MAX} seconds (100 years)"
        )
    out[0] = <uint64_t><int64_t>(seconds * SECOND_US)  # signed: one instruction
    return 0


cdef int take_due(Attachment connection, object delay, object at, uint64_t *out) except -1:
    """What `delay`, from now by the clock of queues, or `at`, a datetime with a time zone, says;
    one of them is not None. Microseconds since 1970, 0 for none.
    """
    cdef object since
    if delay is None:
        since = microseconds_since_1970(at)
        out[0] = <uint64_t>since if since > 0 else 0  # after the year 9999: 2026, from the core
        return 0
    if at is not None:
        wrong_value(RC_MD_ERROR, "delay and at exclude each other")
    take_delay(delay, out)
    if out[0] != 0:
        out[0] += mqx_clock_wall_us() + connection.ahead_us()
    return 0


cdef object microseconds_since_1970(object at):
    """Of a datetime that says its zone; negative before 1970."""
    import datetime

    if not isinstance(at, datetime.datetime):
        wrong_type(RC_MD_ERROR, f"at must be a datetime, not {type(at).__name__}: {at!r}")
    if at.utcoffset() is None:
        wrong_value(
            RC_MD_ERROR, f"at {at!r} has no time zone: use datetime.now(timezone.utc) or a ZoneInfo"
        )
    start = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return (at - start) // datetime.timedelta(microseconds=1)


cdef int take_wait(object value, int64_t *out) except -1:
    """Seconds as a number, None = for ever, into microseconds, MQWI_UNLIMITED = for ever."""
    cdef double seconds
    if value is None:
        out[0] = MQWI_UNLIMITED
        return 0
    seconds = take_seconds(value, RC_WAIT_INTERVAL_ERROR, "wait must be seconds or None")
    if not seconds >= 0:
        wrong_value(RC_WAIT_INTERVAL_ERROR, f"wait {value!r} is negative or no number")
    if seconds < WAIT_SECONDS_MAX:
        out[0] = <int64_t>(seconds * SECOND_US)
    else:
        out[0] = MQWI_UNLIMITED
    return 0


cdef str from_blank_padded(const char *text, Py_ssize_t size):
    """A character field as text, without the blanks and NULs at its end."""
    return text[:size].decode("utf-8", "replace").rstrip("\0 ")


cdef bytes object_name(str name):
    """48 bytes, blank-padded."""
    cdef bytes raw = name.encode("ascii", "replace")
    if not 0 < len(raw) <= NAME_LENGTH:
        wrong_value(
            RC_OBJECT_NAME_ERROR, f"the name {name!r} does not have 1 to {NAME_LENGTH} characters"
        )
    return raw.ljust(NAME_LENGTH)


cdef void *zeroed_rows(uint32_t count, size_t size) except NULL:
    """Memory for so many rows of that size, all NUL; to be given to PyMem_Free()."""
    cdef void *rows = PyMem_Calloc(count, size)
    if rows is NULL:
        raise MemoryError()
    return rows
