# segment_scan.pyx - segments of the journal as columns: the core's journal scan over buffers of
# Python.
#
# Terms
#   piece  the bytes of another segment in which a part of a body may lie.
#
# Invariants
#   1. Buffers of segments are held until the SegmentScan is freed, those of columns for one call.
#   2. One call at a time: a second thread gets RuntimeError.
#
# The policy (which files, what to do about damage, names of queues) is penstock.journal's.
#
# Locks. A scan runs without the GIL.
#
# Errors. 2101 for a header that is none; ValueError for memory that is too small.

_KINDS = {
    MQE_SCAN_UINT: "uint",
    MQE_SCAN_INT: "int",
    MQE_SCAN_BOOL: "bool",
    MQE_SCAN_TIME: "time",
    MQE_SCAN_ID: "id",
    MQE_SCAN_TEXT: "text",
}


def scan_fields():
    """(name, kind, bytes a row, whether only PUT rows have it) of each column that a scan fills."""
    return [
        (
            (<bytes>mqe_journal_scan_fields[i].name).decode("ascii"),
            _KINDS[mqe_journal_scan_fields[i].kind],
            mqe_journal_scan_fields[i].size,
            mqe_journal_scan_fields[i].message == 1,
        )
        for i in range(mqe_journal_scan_field_count)
    ]


@cython.final
@cython.internal
cdef class _ScanColumns:
    """The caller's memory while a call fills it."""

    def __dealloc__(self):
        while self.held > 0:
            self.held -= 1
            PyBuffer_Release(&self.views[self.held])

    cdef Py_buffer *hold(self, object memory, Py_ssize_t least, str what) except NULL:
        """Holds one writable buffer of at least so many bytes."""
        cdef Py_buffer *view = &self.views[self.held]
        PyObject_GetBuffer(memory, view, PyBUF_SIMPLE | PyBUF_WRITABLE)
        self.held += 1
        if view.len < least:
            raise ValueError(f"{what}: {view.len} bytes, at least {least} are needed")
        return view

    cdef int acquire(
        self, dict columns, uint32_t capacity, object bodies, object offsets
    ) except -1:
        """Holds the memory of one call, which must have room for so many rows."""
        cdef uint32_t i
        cdef Py_buffer *view
        if (
            mqe_journal_scan_field_count > SCAN_FIELDS_MAX
            or capacity < 1
            or capacity > SCAN_ROWS_MAX
        ):
            raise ValueError(f"{capacity} rows at once")
        for i in range(mqe_journal_scan_field_count):
            name = (<bytes>mqe_journal_scan_fields[i].name).decode("ascii")
            memory = columns.get(name)
            if memory is not None:
                self.columns[i] = self.hold(
                    memory, <Py_ssize_t>capacity * mqe_journal_scan_fields[i].size, name
                ).buf
        self.rows.columns = self.columns
        self.rows.capacity = capacity
        if offsets is not None:
            self.rows.offsets = <int64_t *>self.hold(
                offsets, (<Py_ssize_t>capacity + 1) * sizeof(int64_t), "offsets"
            ).buf
            view = self.hold(bodies, 0, "bodies")
            self.rows.bodies = <unsigned char *>view.buf
            self.rows.body_capacity = view.len
        return 0


@cython.final
cdef class SegmentScan:
    """One scan over the bytes of a segment, which are held until the object is gone. Not for two
    threads at once.

    number 0 and qm_id None take what the header says. Raises MQError (2101) for a bad header.
    """

    def __init__(self, data, qm_id=None, uint64_t number=0):
        cdef int status
        cdef const uint8_t *identity = NULL
        if self.made:
            raise RuntimeError("a scan is made once")
        self.made = True
        if qm_id is not None:
            if type(qm_id) is not bytes or len(qm_id) != QM_ID_LENGTH:
                raise ValueError(f"a queue manager's id has {QM_ID_LENGTH} bytes: {qm_id!r}")
            identity = <const uint8_t *>PyBytes_AS_STRING(qm_id)
        PyObject_GetBuffer(data, &self.view, PyBUF_SIMPLE)
        self.open = True
        status = mqe_journal_scan_open(
            &self.scan, self.view.buf, <uint64_t>self.view.len, identity, number
        )
        if status != 0:
            fail(status)
        self.usable = True

    cdef int check_usable(self) except -1:
        """Raises for a scan that has no segment, and while another thread is inside it."""
        if not self.usable:
            raise RuntimeError("the scan has no segment")
        if self.busy:
            raise RuntimeError("another thread is in this scan")
        return 0

    def __dealloc__(self):
        if self.open:
            PyBuffer_Release(&self.view)
        while self.piece_count > 0:
            self.piece_count -= 1
            PyBuffer_Release(&self.piece_views[self.piece_count])

    @property
    def header(self):
        """(number, generation, restart_epoch, base_lsn, size, prev_end_lsn, created_us, qm_id)."""
        cdef mqe_journal_scan_header *h = &self.scan.header
        return (
            h.segment_no, h.generation, h.restart_epoch, h.base_lsn, h.size, h.prev_end_lsn,
            h.created_us, PyBytes_FromStringAndSize(<char *>h.qm_id, QM_ID_LENGTH),
        )

    def choose(
        self, uint64_t limit, uint64_t start_lsn, uint64_t end_lsn, uint64_t start_us,
        uint64_t end_us, uint64_t types, bint verify, bint allow_lost,
    ):
        """What of the segment is wanted; `limit` is an offset, `types` a bit a record type."""
        self.check_usable()
        if limit > self.scan.header.size:
            raise ValueError(f"limit {limit} is beyond {self.scan.header.size} bytes")
        self.scan.limit = limit
        self.scan.start_lsn = start_lsn
        self.scan.end_lsn = end_lsn
        self.scan.start_us = start_us
        self.scan.end_us = end_us
        self.scan.types = types
        self.scan.verify = verify
        self.scan.allow_lost = allow_lost

    def add_piece(self, data, uint64_t length, uint64_t base_lsn):
        """Another segment's bytes, `length` of them, in which pieces of bodies may lie."""
        cdef Py_buffer view
        cdef uint32_t i
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        i = self.piece_count
        if self.busy or not self.usable or i == SCAN_SEGMENTS_MAX:
            PyBuffer_Release(&view)
            self.check_usable()
            raise ValueError(f"a body lies in more than {SCAN_SEGMENTS_MAX} segments")
        self.piece_views[i] = view
        self.pieces[i].bytes = <const unsigned char *>self.piece_views[i].buf
        self.pieces[i].length = min(length, <uint64_t>self.piece_views[i].len)
        self.pieces[i].base_lsn = base_lsn
        self.piece_count += 1
        self.scan.pieces = self.pieces
        self.scan.piece_count = self.piece_count

    def allow_lost(self):
        """Bodies whose pieces are missing are left out from now on, instead of asked for."""
        self.check_usable()
        self.scan.allow_lost = 1

    def next(self, dict columns, uint32_t capacity, bodies=None, offsets=None):
        """Fills `columns` (name -> writable memory); (enum mqe_journal_scan_result, rows)."""
        cdef int result
        cdef _ScanColumns memory = _ScanColumns()
        memory.acquire(columns, capacity, bodies, offsets)
        self.check_usable()
        self.busy = True
        with nogil:
            result = mqe_journal_scan_next(&self.scan, &memory.rows)
        self.busy = False
        return result, memory.rows.count

    def skip(self):
        """Skips damage up to the next good flush batch; returns the bytes left out."""
        self.check_usable()
        return mqe_journal_scan_skip(&self.scan)

    def look(self):
        """(newest durable mark, end LSN of the chain, time of the first and of the last batch)."""
        cdef mqe_journal_scan_span span
        self.check_usable()
        self.busy = True
        with nogil:
            mqe_journal_scan_read_span(&self.scan, &span)
        self.busy = False
        return span.mark, span.end_lsn, span.first_us, span.last_us

    @property
    def first_us(self):
        """Time of the first batch, 0 without one."""
        self.check_usable()
        return mqe_journal_scan_first_us(&self.scan)

    @property
    def problem(self):
        """(offset, text) of the damage that the last call found."""
        return self.scan.problem_offset, self.scan.problem.decode("utf-8", "replace")

    @property
    def needs(self):
        """(LSN of the piece, bytes of the body) that the last call asked for."""
        return self.scan.need_lsn, self.scan.need_bytes

    @property
    def done(self):
        """(flush batches, records) read."""
        return self.scan.batches, self.scan.records
