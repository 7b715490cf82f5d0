# arrow_export.pyx - messages as an Arrow struct array: a whole batch at once, or filled some rows
# at a time.
#
# Invariants
#   1. Columns are gathered into memory of their own, or into memory that was given (ArrowTable),
#      which is kept by a reference; the body's buffers are those of the batch, kept likewise.
#   2. ArrowTable: length <= the length the array began with, for which its memory has room. Every
#      column that was started refers to the memory, and so does a consumer that moves it away.
#
# Errors. 2005 for sizes that do not fit.


def arrow_schema(columns):
    """The schema of a batch as a capsule: `columns` are (name, format, kind, offset, size)."""
    cdef ArrowSchema *schema = <ArrowSchema *>zeroed(1, sizeof(ArrowSchema))
    cdef object capsule = PyCapsule_New(schema, "arrow_schema", free_schema_capsule)
    cdef ArrowSchema *child
    start_schema(schema, "", b"+s", len(columns) + 1)
    for name, format, kind, _, _ in (*columns, ("body", "Z", COLUMN_FIXED, 0, 0)):
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
    cdef gathering *all = NULL
    cdef Py_buffer view
    cdef Py_ssize_t i, count = len(columns)
    PyObject_GetBuffer(rows, &view, PyBUF_SIMPLE)
    try:
        start_array(array, view.len // <Py_ssize_t>sizeof(mqe_item), 1, count + 1)
        all = <gathering *>zeroed(<size_t>count, sizeof(gathering))
        start_columns(all, array, columns, NULL)
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
    """The buffers of the batch themselves; memoryviews keep them where they are."""
    cdef array_memory *memory
    cdef object views = (memoryview(bodies), memoryview(offsets))
    start_array(child, length, 3, 0)
    memory = <array_memory *>child.private_data
    memory.buffers[1] = PyMemoryView_GET_BUFFER(views[1]).buf
    memory.buffers[2] = PyMemoryView_GET_BUFFER(views[0]).buf
    keep(child, views)
    return 0


def arrow_room(columns, Py_ssize_t length):
    """Bytes that so many rows of the columns need at most."""
    cdef Py_ssize_t room = 0
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
        cdef Py_buffer view
        cdef given_memory given
        cdef object capsule
        self.capsule = None
        if capacity < 0:
            wrong_value(RC_BUFFER_LENGTH_ERROR, f"a table of {capacity} rows")
        self.array = <ArrowArray *>zeroed(1, sizeof(ArrowArray))
        capsule = PyCapsule_New(self.array, "arrow_array", free_array_capsule)
        self.count = len(columns)
        self.length = 0
        PyMem_RawFree(self.all)
        self.all = NULL
        start_array(self.array, capacity, 1, self.count + 1)
        self.all = <gathering *>zeroed(<size_t>self.count, sizeof(gathering))
        PyObject_GetBuffer(memory, &view, PyBUF_WRITABLE)
        try:
            if view.len < arrow_room(columns, capacity):
                wrong_value(RC_BUFFER_LENGTH_ERROR, f"{view.len} bytes are too few for the columns")
            given.next = <char *>view.buf
            given.keeper = <PyObject *>memory
            start_columns(self.all, self.array, columns, &given)
        finally:
            PyBuffer_Release(&view)
        self.capsule = capsule

    def __dealloc__(self):
        PyMem_RawFree(self.all)

    def append(self, rows, Py_ssize_t count):
        """The first `count` of those rows."""
        cdef Py_buffer view
        if self.capsule is None or not 0 <= count <= self.array.length - self.length:
            wrong_value(RC_BUFFER_LENGTH_ERROR, f"the table has no room for {count} rows more")
        PyObject_GetBuffer(rows, &view, PyBUF_SIMPLE)
        try:
            if count > view.len // <Py_ssize_t>sizeof(mqe_item):
                wrong_value(RC_BUFFER_LENGTH_ERROR, f"there are fewer rows than {count}")
            gather(self.all, self.count, <const mqe_item *>view.buf, self.length, count)
        finally:
            PyBuffer_Release(&view)
        self.length += count

    def finish(self, bodies, offsets):
        """The rows so far, with their bodies, as a capsule with a struct array."""
        cdef object capsule = self.capsule
        cdef Py_ssize_t i
        if capsule is None:
            wrong_value(RC_BUFFER_LENGTH_ERROR, "the table is finished")
        self.array.length = self.length
        for i in range(self.count):
            self.all[i].child.length = self.length
        export_body(next_child(self.array), self.length, bodies, offsets)
        self.capsule = None
        return capsule
