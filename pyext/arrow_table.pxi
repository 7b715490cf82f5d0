# arrow_table.pxi - messages as an Arrow struct array that is filled some rows at a time, for who
# reads many: the rows that they pass through are few and stay in a processor's cache, and the
# memory of the columns is the caller's, who can use it again when the array has gone.
#
# Invariants
#   1. length <= the length the array began with, for which its memory has room.
#   2. Every column that was started refers to the memory; who moves one away has it, too.

@cython.final
cdef class ArrowTable:
    """The columns of an Arrow struct array, being filled."""

    cdef object capsule       # None: finished
    cdef ArrowArray *array
    cdef gathering *all
    cdef int64_t length
    cdef Py_ssize_t count

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
