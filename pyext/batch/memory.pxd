# memory.pxd - the fields of BatchMemory.

@cython.final
cdef class BatchMemory:
    cdef char *block
    cdef Py_ssize_t size

    # parts of the block
    cdef int64_t *offsets
    cdef mqe_item *rows
    cdef unsigned char *bodies
