# arrow_import.pyx - bodies of messages from an Arrow array.
#
# Invariants
#   1. The array is moved out of the producer's capsule, as a consumer does: nobody else can release
#      it while its buffers are read.
#   2. An array that was released or moved before, and one whose buffers cannot be those of its
#      type, is refused. What the buffers hold beyond that is the producer's word; the core checks
#      every offset against the bytes up to the last one.
#
# Errors. 2004 for another type, for nulls and for an array that is not one, 2005 for offsets that
# cannot be.


def arrow_bodies(source):
    """The bodies of an Arrow array of type binary or large_binary: (bytes, offsets, bytes of an
    offset, keeper), the first two as memoryviews that are valid while the keeper lives.
    """
    cdef ArrowArray *array = <ArrowArray *>zeroed(1, sizeof(ArrowArray))
    cdef object keeper = PyCapsule_New(array, "arrow_array", free_array_capsule)
    cdef Py_ssize_t width
    cdef const char *offsets
    cdef int64_t end
    width = take_array(source, array)
    refuse_nulls(array)
    if array.length == 0:
        return memoryview(b""), memoryview(bytes(width)), width, keeper
    offsets = <const char *>array.buffers[1] + array.offset * width
    if width == 4:
        end = (<const int32_t *>offsets)[array.length]
    else:
        end = (<const int64_t *>offsets)[array.length]
    if end < 0:
        wrong_value(RC_BUFFER_LENGTH_ERROR, f"the last offset of the Arrow array is {end}")
    if end > 0 and array.buffers[2] is NULL:
        refuse_array("it has no bytes")
    bodies = memoryview(b"")
    if end > 0:
        bodies = PyMemoryView_FromMemory(<char *>array.buffers[2], end, PyBUF_READ)
    return (
        bodies,
        PyMemoryView_FromMemory(<char *>offsets, (array.length + 1) * width, PyBUF_READ),
        width, keeper,
    )


cdef Py_ssize_t take_array(object source, ArrowArray *out) except -1:
    """Moves the array out of the source's capsule; the bytes of its offsets."""
    cdef ArrowSchema *schema
    cdef ArrowArray *array
    cdef Py_ssize_t width = 0
    schema_capsule, array_capsule = source.__arrow_c_array__()
    schema = <ArrowSchema *>PyCapsule_GetPointer(schema_capsule, "arrow_schema")
    array = <ArrowArray *>PyCapsule_GetPointer(array_capsule, "arrow_array")
    if schema.release is NULL or array.release is NULL:
        refuse_array("it was released, or taken by another consumer, before")
    if schema.format[0] in (c"z", c"Z") and schema.format[1] == 0:
        width = 4 if schema.format[0] == c"z" else 8
    else:
        wrong_type(
            RC_BUFFER_ERROR,
            f"bodies must be an Arrow array of binary or large_binary, not of type "
            f"{schema.format.decode('utf-8', 'replace')!r}",
        )
    memcpy(out, array, sizeof(out[0]))
    array.release = NULL
    if out.n_buffers != 3 or out.buffers is NULL:
        refuse_array(f"it has {out.n_buffers} buffers, not 3")
    if out.length < 0 or out.offset < 0 or out.length > ROWS_MAX - out.offset:
        refuse_array(f"its length is {out.length}, its offset {out.offset}")
    if out.length > 0 and out.buffers[1] is NULL:
        refuse_array("it has no offsets")
    return width


cdef int refuse_array(str text) except -1:
    wrong_type(RC_BUFFER_ERROR, f"the Arrow array cannot be used: {text}")


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
