# variable_fields.pxd - the kinds of field that MQ passes by pointer; they follow fields.pxd.

cdef class VariableField(Field):
    cdef Py_ssize_t index       # in Structure.variable

    cdef object value(self, Structure structure)
    cdef int keep(self, Structure structure, object value) except -1
    cdef int append(self, Structure structure, bytearray packed) except -1
    cdef int fetch(self, Structure structure, const unsigned char *data, Py_ssize_t size) except -1


cdef class StringField(VariableField):
    cdef object read(self, Structure structure)
    cdef int write(self, Structure structure, object value) except -1
    cdef int copy_from(self, Structure structure, const unsigned char *from_raw) except -1
    cdef int append(self, Structure structure, bytearray packed) except -1
    cdef int fetch(self, Structure structure, const unsigned char *data, Py_ssize_t size) except -1


cdef class ListField(VariableField):
    cdef readonly type item     # class of the records
    cdef readonly int reason

    # fields of the structure: where the records begin, how many, which fields each has
    cdef LongField offset_field
    cdef LongField count_field
    cdef LongField flags_field
    cdef bint counts            # setting the list sets the count

    cdef object read(self, Structure structure)
    cdef int write(self, Structure structure, object value) except -1
    cdef int copy_from(self, Structure structure, const unsigned char *from_raw) except -1
    cdef int check(self, Structure structure, list records) except -1
    cdef tuple record_fields(self, Structure structure)
    cdef int append(self, Structure structure, bytearray packed) except -1
    cdef int fetch(self, Structure structure, const unsigned char *data, Py_ssize_t size) except -1
