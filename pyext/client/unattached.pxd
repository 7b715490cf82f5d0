# unattached.pxd - the fields of Exclusion.

cdef class Exclusion:
    cdef mqe_exclusion *exclusion   # NULL when ended, and after a failed start
    cdef unsigned forks             # penstock_forks at the start: another value means a child
