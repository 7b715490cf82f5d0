# put_direct.pxd - the fields of QuickPut.

cdef class QuickPut:
    cdef mqe_batch batch
    cdef bint again           # messages that were got before

    # memory of this call
    cdef BatchMemory rows
    cdef BatchMemory own      # offsets, and bodies where they were gathered

    # the caller's buffer of bodies
    cdef Py_buffer view
    cdef bint held

    cdef int begin(self, Py_ssize_t count, Py_ssize_t room) except -1
    cdef int gather(self, PyObject **item, Py_ssize_t count) except -1
    cdef int accept_pair(self, object buffer, object offsets) except -1
    cdef int accept_batch(self, BatchArrays source) except -1
