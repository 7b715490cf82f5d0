# arrow_import.pyx - bodies of messages from an Arrow array.
#
# Invariants
#   1. The producer's capsules are kept as long as its buffers are read.
#
# Errors. 2004 for another type and for nulls, 2005 for offsets that cannot be.


def arrow_bodies(source):
    """The bodies of an Arrow array of type binary or large_binary: (bytes, offsets, bytes of an
    offset, keeper), the first two as memoryviews that are valid while the keeper lives.
    """
    cdef ArrowSchema *schema
    cdef ArrowArray *array
    cdef Py_ssize_t width
    cdef const char *offsets
    cdef int64_t end
    keeper = source.__arrow_c_array__()
    schema = <ArrowSchema *>PyCapsule_GetPointer(keeper[0], "arrow_schema")
    array = <ArrowArray *>PyCapsule_GetPointer(keeper[1], "arrow_array")
    if schema.format[0] not in (c"z", c"Z") or schema.format[1] != 0:
        wrong_type(
            RC_BUFFER_ERROR,
            f"bodies must be an Arrow array of binary or large_binary, not of type "
            f"{schema.format.decode()!r}",
        )
    refuse_nulls(array)
    width = 4 if schema.format[0] == c"z" else 8
    if array.length == 0:
        return memoryview(b""), memoryview(bytes(width)), width, keeper
    offsets = <const char *>array.buffers[1] + array.offset * width
    if width == 4:
        end = (<const int32_t *>offsets)[array.length]
    else:
        end = (<const int64_t *>offsets)[array.length]
    if end < 0:
        wrong_value(RC_BUFFER_LENGTH_ERROR, f"the last offset of the Arrow array is {end}")
    bodies = memoryview(b"")
    if end > 0:
        bodies = PyMemoryView_FromMemory(<char *>array.buffers[2], end, PyBUF_READ)
    return (
        bodies,
        PyMemoryView_FromMemory(<char *>offsets, (array.length + 1) * width, PyBUF_READ),
        width, keeper,
    )


cdef int refuse_nulls(const ArrowArray *array) except -1:
    """A message has a body, be it empty."""
    cdef const uint8_t *valid
    cdef int64_t i, at
    if array.null_count == 0 or array.length == 0 or array.buffers[0] is NULL:
        return 0
    valid = <const uint8_t *>array.buffers[0]
    for i in range(array.length):
        at = array.offset + i
        if not valid[at >> 3] >> (at & 7) & 1:
            wrong_value(RC_BUFFER_ERROR, f"body {i} of the Arrow array is null; it may be empty")
    return 0
