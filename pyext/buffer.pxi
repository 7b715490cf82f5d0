# buffer.pxi - Python values into C ones, each refused with the reason code that fits and the value.
# The exact types that programs use come first; everything else takes the slow way.


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


cdef int take_id(object value, uint8_t *out, int reason, str what) except -1:
    """An identifier of at most 24 bytes, NUL-padded."""
    cdef Py_ssize_t size
    if type(value) is not bytes:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            wrong_type(reason, f"{what} must be bytes, not {type(value).__name__}: {value!r}")
        value = bytes(value)
    size = PyBytes_GET_SIZE(value)
    if size > 24:
        wrong_value(reason, f"{what} has {size} bytes, at most 24 are allowed: {value!r}")
    memcpy(out, PyBytes_AS_STRING(value), size)
    memset(out + size, 0, 24 - size)
    return 0


cdef int take_text(object value, char *out, Py_ssize_t capacity, str what) except -1:
    """A character field: text or bytes, blank-padded."""
    cdef bytes raw
    if isinstance(value, str):
        raw = (<str>value).encode("utf-8")
    elif isinstance(value, bytes):
        raw = value
    else:
        wrong_type(RC_MD_ERROR, f"{what} must be a string, not {type(value).__name__}: {value!r}")
    if len(raw) > capacity:
        wrong_value(RC_MD_ERROR, f"{what} has {len(raw)} bytes, at most {capacity} fit: {value!r}")
    memset(out, 32, capacity)
    memcpy(out, PyBytes_AS_STRING(raw), PyBytes_GET_SIZE(raw))
    return 0


cdef int take_expiry(object value, int32_t *out) except -1:
    """Seconds as a number into tenths of a second, rounded up."""
    cdef double tenths
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        wrong_type(
            RC_EXPIRY_ERROR, f"expiry must be seconds, not {type(value).__name__}: {value!r}"
        )
    if not (0 < value <= 99999999.9):
        wrong_value(RC_EXPIRY_ERROR, f"expiry {value!r} is not between 0 and 99999999.9 seconds")
    tenths = <double>value * 10
    out[0] = <int32_t>tenths
    if out[0] < tenths - 1e-6:
        out[0] += 1
    return 0


cdef int take_wait(object value, int64_t *out) except -1:
    """Seconds as a number, None = for ever, into microseconds, -1 = for ever."""
    if value is None:
        out[0] = -1
        return 0
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        wrong_type(
            RC_WAIT_INTERVAL_ERROR,
            f"wait must be seconds or None, not {type(value).__name__}: {value!r}",
        )
    if not value >= 0:
        wrong_value(RC_WAIT_INTERVAL_ERROR, f"wait {value!r} is negative or no number")
    out[0] = <int64_t>(<double>value * 1e6) if value < 1e9 else -1
    return 0


cdef str from_blank_padded(const char *text, Py_ssize_t size):
    """A character field as text without the blanks and NULs behind it."""
    return text[:size].decode("utf-8", "replace").rstrip("\0 ")


cdef bytes object_name(str name):
    """48 bytes, blank-padded."""
    cdef bytes raw = name.encode("ascii", "replace")
    if not 0 < len(raw) <= 48:
        wrong_value(RC_OBJECT_NAME_ERROR, f"the name {name!r} does not have 1 to 48 characters")
    return raw.ljust(48)
