# message.pxd - the fields of PutResult and Message: C values, made into Python objects when asked
# for.

@cython.final
cdef class PutResult:
    cdef uint8_t _msg_id[ID_LENGTH]
    cdef readonly int reason


@cython.final
cdef class Message:
    # the body; cut when `reason` is 2079
    cdef bytes _data
    cdef readonly uint64_t length     # of the whole body

    # the descriptor
    cdef ps_descriptor _d
    cdef bytes _ext                   # struct ps_descriptor_ext, or None
    cdef int32_t _expiry              # tenths of a second left, MQEI_UNLIMITED

    # how it was got
    cdef readonly int reason
    cdef readonly uint64_t number     # message number

    cdef const ps_descriptor_ext *extension(self)
