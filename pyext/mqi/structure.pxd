# structure.pxd - a structure of the MQI, and what all structures of a class have in common.

cdef class Layout:
    cdef readonly str name
    cdef readonly str struc_id
    cdef readonly int reason

    # fields and lengths
    cdef readonly dict lengths      # version -> bytes
    cdef readonly dict fields       # name -> Field
    cdef readonly tuple variables   # VariableFields, in the order of their index
    cdef readonly bytes initial     # the bytes of a new structure
    cdef Py_ssize_t size            # of the largest version
    cdef dict cuts  # length of a version -> where a field begins that it would cut: not yet there

    cdef int describe(self, type owner, str struc_id, dict lengths, int reason) except -1
    cdef int check(self) except -1
    cdef int make_initial(self, Structure blank) except -1


cdef class Structure:
    cdef Layout shape

    # memory
    cdef unsigned char *raw
    cdef Py_ssize_t size
    cdef list variable              # values of the VariableFields; None: none was set
    cdef Structure owner            # of a part
    cdef bint shared  # raw is the owner's; said here since the collector may clear `owner` first

    cdef Structure blank(self)
    cdef int load(self, const unsigned char *data, Py_ssize_t size) except -1
    cdef Py_ssize_t checked_length(self, const unsigned char *data, Py_ssize_t size) except -1
    cdef bint same_values(self, Structure other)
