# arrays.pyx - what put_batch() and get_batch() return: arrays over batch memory that are made when
# they are asked for.
#
# Invariants
#   1. The arrays of one object always show the same memory; asked for again they are the same.
#   2. An array that was set replaces the memory: from then on the arrays alone say what the batch
#      is.
#   3. An array that is set is of the right type; whether the three fit each other is checked where
#      they are used together (export_body(), penstock.batch), as they are set one by one.
#
# The module does not load NumPy: penstock.batch registers its classes and dtypes when it is
# imported, which the first batch call brings about.

cdef object batch_array_type = None       # numpy.ndarray
cdef object batch_row_dtype = None
cdef object batch_byte_dtype = None
cdef object batch_offset_dtype = None
cdef object batch_type = None             # MessageBatch
cdef object batch_result_type = None      # BatchResult
cdef object batch_get_rest = None
cdef object batch_refuse_offsets = None
cdef object batch_check_array = None
cdef tuple NO_ARGUMENTS = ()


def register_batch_classes(
    array_type, row_dtype, byte_dtype, offset_dtype, batch, result, get_rest, refuse_offsets,
    check_array,
):
    """Registers what direct puts and gets make, and the functions that go on where they end."""
    global batch_array_type, batch_row_dtype, batch_byte_dtype, batch_offset_dtype
    global batch_type, batch_result_type, batch_get_rest, batch_refuse_offsets, batch_check_array
    batch_array_type = array_type
    batch_row_dtype, batch_byte_dtype, batch_offset_dtype = row_dtype, byte_dtype, offset_dtype
    batch_result_type, batch_get_rest, batch_refuse_offsets = result, get_rest, refuse_offsets
    batch_check_array = check_array
    batch_type = batch


cdef int require_batch_classes() except -1:
    if batch_type is None:
        load_batch_classes()  # which calls register_batch_classes()
    return 0


cdef object array_over(BatchMemory memory, const void *start, Py_ssize_t count, object dtype):
    return batch_array_type((count,), dtype, memory, <const char *>start - memory.block)


cdef void fill_extensions(mqe_item *row, Py_ssize_t count) noexcept:
    """Extensions of messages that have none."""
    cdef Py_ssize_t i
    for i in range(count):
        blank_extension(&row[i].ext)


cdef class BatchRows:
    """The rows of a batch: in batch memory, or in an array that was set."""

    @property
    def descriptors(self):
        """One row a message."""
        if self.rows is None:
            if self.memory is None:
                raise AttributeError("descriptors")
            if self.unfilled:
                fill_extensions(self.memory.rows, self.row_count)
                self.unfilled = False
            self.rows = array_over(
                self.memory, self.memory.rows, self.row_count, batch_row_dtype
            )
        return self.rows

    @descriptors.setter
    def descriptors(self, value):
        require_batch_classes()
        batch_check_array("descriptors", value)
        self.leave_memory()
        self.rows = value

    cdef int leave_memory(self) except -1:
        """Makes the arrays, and lets go of the memory (invariant 2)."""
        if self.memory is not None:
            self.descriptors
            self.memory = None
        return 0


cdef class BatchOutcome(BatchRows):
    """What a BatchResult has: the rows, messages that were put, and how many with a warning."""


cdef class BatchArrays(BatchRows):
    """The three arrays of a MessageBatch."""

    @property
    def bodies(self):
        """The bytes of all bodies."""
        if self.data is None:
            if self.memory is None:
                raise AttributeError("bodies")
            self.data = array_over(
                self.memory, self.memory.bodies, self.body_bytes, batch_byte_dtype
            )
        return self.data

    @bodies.setter
    def bodies(self, value):
        require_batch_classes()
        batch_check_array("bodies", value)
        self.leave_memory()
        self.data = value

    @property
    def offsets(self):
        """Where each body begins, and where the last one ends."""
        if self.starts is None:
            if self.memory is None:
                raise AttributeError("offsets")
            self.starts = array_over(
                self.memory, self.memory.offsets, self.row_count + 1, batch_offset_dtype
            )
        return self.starts

    @offsets.setter
    def offsets(self, value):
        require_batch_classes()
        batch_check_array("offsets", value)
        self.leave_memory()
        self.starts = value

    def __len__(self):
        return self.row_count if self.memory is not None else len(self.descriptors)

    cdef int leave_memory(self) except -1:
        if self.memory is not None:
            self.bodies
            self.offsets
            BatchRows.leave_memory(self)
        return 0


cdef object new_of(object kind):
    """An object of one of our classes, without its constructor."""
    return (<PyTypeObject *>kind).tp_new(<type>kind, <PyObject *>NO_ARGUMENTS, NULL)
