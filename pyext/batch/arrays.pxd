# arrays.pxd - the fields of what put_batch() and get_batch() return.

cdef class BatchRows:
    cdef BatchMemory memory   # None: the arrays alone say what the batch is
    cdef Py_ssize_t row_count # with memory
    cdef bint unfilled        # with memory: the extensions of the rows have not been written
    cdef object rows          # the array; None: not asked for yet

    cdef int leave_memory(self) except -1


cdef class BatchOutcome(BatchRows):
    cdef public Py_ssize_t count
    cdef public Py_ssize_t warnings


cdef class BatchArrays(BatchRows):
    cdef Py_ssize_t body_bytes # with memory
    cdef object data          # the array of bodies
    cdef object starts        # the array of offsets

    cdef int leave_memory(self) except -1
