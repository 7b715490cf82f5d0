# batch_memory.pxi - memory of batches that the binding makes itself, and arrays over it that are
# made when somebody asks for them.
#
# Terms
#   block   one allocation: offsets, then rows, then bodies. It goes when its last array has gone.
#   spare   a block that nobody holds, kept for the next call. At most SPARES of SPARE_MOST bytes.
#
# Invariants
#   1. Whoever has a BatchMemory has the block; it never moves or changes its size.
#   2. The arrays of one object always show the same memory; asked for again they are the same.

cdef enum:
    BLOCK_STEP = 16384        # sizes of blocks are rounded up to this
    SPARES = 4
    SPARE_MOST = 1048576
    SPARE_WASTE = 4           # a spare this many times larger than what is wanted is left alone

cdef char *spare_block[SPARES]
cdef Py_ssize_t spare_size[SPARES]

# penstock.batch hands these over when it is imported: the core's binding does not load NumPy.
cdef object batch_array_type = None       # numpy.ndarray
cdef object batch_row_dtype = None
cdef object batch_byte_dtype = None
cdef object batch_offset_dtype = None
cdef object batch_type = None             # MessageBatch
cdef object batch_result_type = None
cdef object batch_get_rest = None
cdef object batch_refuse_offsets = None


def batch_classes(
    array_type, row_dtype, byte_dtype, offset_dtype, batch, result, get_rest, refuse_offsets
):
    """What the quick ways of put_batch() and get_batch() make, and where they go on slowly."""
    global batch_array_type, batch_row_dtype, batch_byte_dtype, batch_offset_dtype
    global batch_type, batch_result_type, batch_get_rest, batch_refuse_offsets
    batch_array_type = array_type
    batch_row_dtype, batch_byte_dtype, batch_offset_dtype = row_dtype, byte_dtype, offset_dtype
    batch_result_type, batch_get_rest, batch_refuse_offsets = result, get_rest, refuse_offsets
    batch_type = batch


cdef int need_batch_classes() except -1:
    if batch_type is None:
        import penstock.batch  # noqa: F401  it calls batch_classes()
    return 0


cdef char *take_spare(Py_ssize_t *size) noexcept:
    """The smallest spare that is large enough; *size becomes its size."""
    cdef char *block
    cdef int i, found = -1
    for i in range(SPARES):
        if spare_block[i] is NULL or spare_size[i] < size[0]:
            continue
        if spare_size[i] // SPARE_WASTE <= size[0] and (
            found < 0 or spare_size[i] < spare_size[found]
        ):
            found = i
    if found < 0:
        return NULL
    block = spare_block[found]
    size[0] = spare_size[found]
    spare_block[found] = NULL
    return block


cdef void give_spare(char *block, Py_ssize_t size) noexcept:
    cdef int i
    if size <= SPARE_MOST:
        for i in range(SPARES):
            if spare_block[i] is NULL:
                spare_block[i] = block
                spare_size[i] = size
                return
    PyMem_Free(block)


cdef inline Py_ssize_t in_lines(Py_ssize_t size) noexcept:
    return (size + 63) & ~<Py_ssize_t>63


@cython.final
cdef class BatchMemory:
    """A block. It has the buffer protocol, for the arrays over it."""

    cdef char *block
    cdef Py_ssize_t size
    cdef int64_t *offsets
    cdef mqe_item *rows
    cdef unsigned char *bodies

    def __dealloc__(self):
        if self.block is not NULL:
            give_spare(self.block, self.size)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.block, self.size, 0, flags)

    def __releasebuffer__(self, Py_buffer *view):
        pass


cdef BatchMemory new_memory(Py_ssize_t offsets, Py_ssize_t rows, Py_ssize_t room):
    """Room for so many offsets, rows, and bytes of bodies; what is in it is anything."""
    cdef BatchMemory memory = BatchMemory.__new__(BatchMemory)
    cdef Py_ssize_t rows_at = in_lines(offsets * <Py_ssize_t>sizeof(int64_t))
    cdef Py_ssize_t bodies_at = rows_at + in_lines(rows * <Py_ssize_t>sizeof(mqe_item))
    memory.size = (bodies_at + room + BLOCK_STEP - 1) // BLOCK_STEP * BLOCK_STEP
    memory.block = take_spare(&memory.size)
    if memory.block is NULL:
        memory.block = <char *>PyMem_Malloc(memory.size)
        if memory.block is NULL:
            raise MemoryError(f"no memory for a batch of {memory.size} bytes")
    memory.offsets = <int64_t *>memory.block
    memory.rows = <mqe_item *>(memory.block + rows_at)
    memory.bodies = <unsigned char *>memory.block + bodies_at
    return memory


cdef object array_over(BatchMemory memory, const void *start, Py_ssize_t count, object dtype):
    return batch_array_type((count,), dtype, memory, <const char *>start - memory.block)


cdef void fill_extensions(mqe_item *row, Py_ssize_t count) noexcept:
    """As they are where there is none."""
    cdef Py_ssize_t i
    for i in range(count):
        blank_extension(&row[i].ext)


cdef class BatchRows:
    """The rows of a batch: in memory of ours, or in an array that was given."""

    cdef BatchMemory memory   # None: the arrays are somebody else's
    cdef Py_ssize_t row_count # with memory
    cdef bint unfilled        # with memory: rows have no extension, and nothing stands in its place
    cdef object rows          # None: not asked for yet

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
        self.leave_memory()
        self.rows = value

    cdef int leave_memory(self) except -1:
        """From here on the arrays alone say what the batch is."""
        if self.memory is not None:
            self.descriptors
            self.memory = None
        return 0


cdef class BatchOutcome(BatchRows):
    """What a BatchResult has: the rows, messages that were put, and how many with a warning."""

    cdef public Py_ssize_t count
    cdef public Py_ssize_t warnings


cdef class BatchArrays(BatchRows):
    """The three arrays of a MessageBatch."""

    cdef Py_ssize_t body_bytes # with memory
    cdef object data          # bodies
    cdef object starts        # offsets

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
