# segment_scan.pxd - the fields of SegmentScan, and of the memory that one call of it fills.

@cython.final
@cython.internal
cdef class _ScanColumns:
    cdef Py_buffer views[SCAN_FIELDS_MAX + 2]
    cdef int held             # how many of the views
    cdef void *columns[SCAN_FIELDS_MAX]
    cdef mqe_journal_scan_rows rows

    cdef Py_buffer *hold(self, object memory, Py_ssize_t least, str what) except NULL
    cdef int acquire(self, dict columns, uint32_t capacity, object bodies, object offsets) except -1


@cython.final
cdef class SegmentScan:
    cdef mqe_journal_scan scan
    cdef bint busy            # a call is inside the core
    cdef bint made            # the constructor has been entered
    cdef bint usable          # ... and has succeeded

    # the bytes of the segment
    cdef Py_buffer view
    cdef bint open            # view is held

    # bytes of other segments, in which pieces of bodies lie
    cdef Py_buffer piece_views[SCAN_SEGMENTS_MAX]
    cdef mqe_journal_scan_piece pieces[SCAN_SEGMENTS_MAX]
    cdef uint32_t piece_count

    cdef int check_usable(self) except -1
