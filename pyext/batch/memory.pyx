# memory.pyx - memory of batches that the binding allocates itself.
#
# Terms
#   block  one allocation: offsets, then rows, then bodies. It is freed when its last array is.
#   spare  a block that nothing refers to, kept for the next call. At most SPARES of SPARE_MOST
#          bytes.
#
# Invariants
#   1. A BatchMemory owns its block, which never moves or changes its size.
#
# Locks. Spares change with the GIL held.
#
# Errors. MemoryError.

cdef char *spare_block[SPARES]
cdef Py_ssize_t spare_size[SPARES]


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
    """Keeps a block as a spare, or frees it."""
    cdef int i
    if size <= SPARE_MOST:
        for i in range(SPARES):
            if spare_block[i] is NULL:
                spare_block[i] = block
                spare_size[i] = size
                return
    PyMem_Free(block)


cdef inline Py_ssize_t in_lines(Py_ssize_t size) noexcept:
    """Bytes rounded up to whole cache lines."""
    return (size + CACHE_LINE - 1) & ~<Py_ssize_t>(CACHE_LINE - 1)


@cython.final
cdef class BatchMemory:
    """A block. It has the buffer protocol, for the arrays over it."""

    def __dealloc__(self):
        if self.block is not NULL:
            give_spare(self.block, self.size)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.block, self.size, 0, flags)

    def __releasebuffer__(self, Py_buffer *view):
        pass


cdef BatchMemory new_memory(Py_ssize_t offsets, Py_ssize_t rows, Py_ssize_t room):
    """Room for so many offsets, rows, and bytes of bodies; not cleared."""
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
