# xid.pxd - the field of Xid.

@cython.final
cdef class Xid:
    cdef ps_xid raw           # parts NUL-padded: compared as one block of memory
