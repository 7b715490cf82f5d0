# fields.pxd - the kinds of field of a structure that lie in it as a whole.

cdef class Field:
    cdef readonly str name
    cdef readonly object initial

    # where it lies in the raw bytes
    cdef readonly Py_ssize_t offset
    cdef readonly Py_ssize_t size
    cdef Py_ssize_t end         # offset + size

    cdef int set_location(self, Py_ssize_t offset, Py_ssize_t size, object initial) except -1
    cdef Structure checked(self, object structure)
    cdef str label(self, Structure structure)
    cdef object read(self, Structure structure)
    cdef int write(self, Structure structure, object value) except -1
    cdef int copy_from(self, Structure structure, const unsigned char *from_raw) except -1


cdef class LongField(Field):
    cdef object read(self, Structure structure)
    cdef int write(self, Structure structure, object value) except -1


cdef class Int64Field(Field):
    cdef object read(self, Structure structure)
    cdef int write(self, Structure structure, object value) except -1


cdef class CharField(Field):
    cdef object read(self, Structure structure)
    cdef int write(self, Structure structure, object value) except -1
    cdef int copy_from(self, Structure structure, const unsigned char *from_raw) except -1


cdef class ByteField(Field):
    cdef object read(self, Structure structure)
    cdef int write(self, Structure structure, object value) except -1


cdef class PartField(Field):
    cdef readonly type item     # class of the inner structure

    cdef object read(self, Structure structure)
    cdef int write(self, Structure structure, object value) except -1
    cdef int copy_from(self, Structure structure, const unsigned char *from_raw) except -1
