# arrow_export.pyx - messages as an Arrow struct array: a whole batch at once, or filled some rows
# at a time.
#
# Invariants
#   1. Columns are gathered into memory of their own, or into memory that was given (ArrowTable),
#      which is kept by a reference; the bytes of the bodies are those of the batch, kept likewise.
#      Their offsets are copied and checked against these bytes, since the arrays of a batch are the
#      program's, which may change them, and a reader of Arrow does not check.
#   2. ArrowTable: length <= the length the array began with, for which its memory has room. Every
#      column that was started refers to the memory, and so does a consumer that moves it away.
#
# Errors. 2004 for arrays of another kind, 2005 for sizes and offsets that do not fit.


cdef list checked_columns(object columns):
    """The columns as tuples (name, format, kind, offset, size) that fit a row, which nobody else
    can change. 2046 for others.
    """
    cdef Py_ssize_t kind, offset, size
    cdef list checked = []
    for name, format, given_kind, given_offset, given_size in columns:
        kind, offset, size = given_kind, given_offset, given_size
        if (
            not 0 <= kind <= COLUMN_BYTES_UNLESS_0 or type(name) is not str
            or type(format) is not str or offset < 0
            or not least_size(<int>kind) <= size <= <Py_ssize_t>sizeof(mqe_item)
            or offset > <Py_ssize_t>sizeof(mqe_item) - size
        ):
            wrong_value(
                RC_OPTIONS_ERROR,
                f"not a column of a row: {name!r}, {format!r}, {kind}, {offset}, {size}",
            )
        checked.append((name, format, kind, offset, size))
    return checked


cdef Py_ssize_t least_size(int kind) noexcept:
    """Bytes that a value of the kind has at least."""
    if kind == COLUMN_UNLESS_0:
        return sizeof(int64_t)
    return sizeof(int32_t) if kind in (COLUMN_UNLESS_MINUS_1, COLUMN_SECONDS) else 1


def arrow_schema(columns):
    """The schema of a batch as a capsule: `columns` are (name, format, kind, offset, size)."""
    cdef list fields = [*checked_columns(columns), ("body", "Z", COLUMN_FIXED, 0, 0)]
    cdef ArrowSchema *schema = <ArrowSchema *>zeroed(1, sizeof(ArrowSchema))
    cdef object capsule = PyCapsule_New(schema, "arrow_schema", free_schema_capsule)
    cdef ArrowSchema *child
    start_schema(schema, "", b"+s", len(fields))
    for name, format, kind, _, _ in fields:
        child = <ArrowSchema *>zeroed(1, sizeof(ArrowSchema))
        schema.children[schema.n_children] = child
        schema.n_children += 1
        start_schema(child, name, format.encode(), 0)
        child.flags = ARROW_NULLABLE if kind >= COLUMN_UNLESS_MINUS_1 else 0
    return capsule


def arrow_array(columns, rows, bodies, offsets):
    """A batch as a capsule with a struct array: the columns, gathered, and the body as it is."""
    cdef ArrowArray *array = <ArrowArray *>zeroed(1, sizeof(ArrowArray))
    cdef object capsule = PyCapsule_New(array, "arrow_array", free_array_capsule)
    cdef list fields = checked_columns(columns)
    cdef gathering *all = NULL
    cdef Py_buffer view
    cdef Py_ssize_t i, count = len(fields)
    PyObject_GetBuffer(rows, &view, PyBUF_SIMPLE)
    try:
        start_array(array, view.len // <Py_ssize_t>sizeof(mqe_item), 1, count + 1)
        all = <gathering *>zeroed(<size_t>count, sizeof(gathering))
        start_columns(all, array, fields, NULL)
        gather(all, count, <const mqe_item *>view.buf, 0, array.length)
        for i in range(count):
            if all[i].kind == COLUMN_TEXT:
                shrink_text(&all[i], array.length)
    finally:
        PyMem_RawFree(all)
        PyBuffer_Release(&view)
    export_body(next_child(array), array.length, bodies, offsets)
    return capsule


cdef int export_body(ArrowArray *child, int64_t length, object bodies, object offsets) except -1:
    """The bytes of the bodies as they are, kept where they are by a memoryview; the offsets copied.
    """
    cdef Py_buffer *view
    cdef array_memory *memory
    cdef int64_t *copy
    cdef object kept = memoryview(bodies), given = memoryview(offsets)
    if not kept.c_contiguous or not given.c_contiguous:
        wrong_type(RC_BUFFER_ERROR, "bodies and offsets must be contiguous")
    start_array(child, length, 3, 0)
    memory = <array_memory *>child.private_data
    memory.buffers[2] = PyMemoryView_GET_BUFFER(kept).buf
    keep(child, kept)
    view = PyMemoryView_GET_BUFFER(given)
    if view.itemsize != sizeof(int64_t) or view.len // <Py_ssize_t>sizeof(int64_t) != length + 1:
        wrong_value(
            RC_BUFFER_LENGTH_ERROR,
            f"{length} messages need {length + 1} offsets of 8 bytes, not "
            f"{view.len // max(view.itemsize, 1)} of {view.itemsize}",
        )
    copy = <int64_t *>own_buffer(child, 1, <size_t>view.len, False, NULL)
    memcpy(copy, view.buf, <size_t>view.len)
    return check_export(copy, length, PyMemoryView_GET_BUFFER(kept).len)


cdef int check_export(const int64_t *offsets, int64_t length, int64_t size) except -1:
    """The offsets of an exported array do not fall, and stay within the bytes."""
    cdef bint right = offsets[0] >= 0 and offsets[length] <= size
    cdef int64_t i
    for i in range(length):
        right &= offsets[i] <= offsets[i + 1]
    if not right:
        require_batch_classes()
        batch_refuse_offsets(
            PyBytes_FromStringAndSize(<const char *>offsets, (length + 1) * sizeof(int64_t)), size
        )
        wrong_value(RC_BUFFER_LENGTH_ERROR, "the offsets do not fit the bodies")
    return 0


def arrow_room(columns, Py_ssize_t length):
    """Bytes that so many rows of the columns need at most."""
    return room_of(checked_columns(columns), length)


cdef Py_ssize_t room_of(list columns, Py_ssize_t length) except -1:
    cdef Py_ssize_t room = 0
    if not 0 <= length <= ROWS_MAX:
        wrong_value(RC_BUFFER_LENGTH_ERROR, f"a table of {length} rows")
    for _, _, kind, _, size in columns:
        room += in_lines(length * value_room(kind, size))
        if has_ends(kind):
            room += in_lines((length + 1) * <Py_ssize_t>sizeof(int32_t))
        if has_nulls(kind) or kind == COLUMN_BOOL:
            room += in_lines((length + 7) // 8)
    return room


@cython.final
cdef class ArrowTable:
    """The columns of an Arrow struct array, being filled."""

    def __init__(self, columns, Py_ssize_t capacity, memory):
        """memory: writable, arrow_room() bytes; it is referred to until the array has gone."""
        cdef list fields = checked_columns(columns)
        cdef Py_ssize_t room = room_of(fields, capacity)
        cdef object keeper = memoryview(memory)  # nothing can move what it shows
        cdef ArrowArray *array = <ArrowArray *>zeroed(1, sizeof(ArrowArray))
        cdef object capsule = PyCapsule_New(array, "arrow_array", free_array_capsule)
        cdef Py_buffer *view = PyMemoryView_GET_BUFFER(keeper)
        cdef given_memory given
        if self.array is not NULL:
            raise RuntimeError("a table is made once")
        if view.readonly or not keeper.c_contiguous:
            raise BufferError("the memory of a table must be writable and contiguous")
        if view.len < room:
            wrong_value(RC_BUFFER_LENGTH_ERROR, f"{view.len} bytes are too few for the columns")
        self.count = len(fields)
        self.all = <gathering *>zeroed(<size_t>self.count, sizeof(gathering))
        self.array = array
        start_array(array, capacity, 1, self.count + 1)
        given.next = <char *>view.buf
        given.keeper = <PyObject *>keeper
        start_columns(self.all, array, fields, &given)
        self.capsule = capsule

    def __dealloc__(self):
        PyMem_RawFree(self.all)

    def append(self, rows, Py_ssize_t count):
        """The first `count` of those rows."""
        cdef Py_buffer view
        PyObject_GetBuffer(rows, &view, PyBUF_SIMPLE)
        try:
            if self.capsule is None or not 0 <= count <= self.array.length - self.length:
                wrong_value(RC_BUFFER_LENGTH_ERROR, f"the table has no room for {count} rows more")
            if count > view.len // <Py_ssize_t>sizeof(mqe_item):
                wrong_value(RC_BUFFER_LENGTH_ERROR, f"there are fewer rows than {count}")
            gather(self.all, self.count, <const mqe_item *>view.buf, self.length, count)
        finally:
            PyBuffer_Release(&view)
        self.length += count

    def finish(self, bodies, offsets):
        """The rows so far, with their bodies, as a capsule with a struct array. The table is
        finished, also by an error.
        """
        cdef object capsule = self.capsule
        cdef Py_ssize_t i
        if capsule is None:
            wrong_value(RC_BUFFER_LENGTH_ERROR, "the table is finished")
        self.capsule = None
        self.array.length = self.length
        for i in range(self.count):
            self.all[i].child.length = self.length
        export_body(next_child(self.array), self.length, bodies, offsets)
        return capsule
