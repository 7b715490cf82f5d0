# prepared.pxi - prepared units of work: their names, how a unit becomes one, how they are listed,
# read and ended.
#
# A prepared unit belongs to no process any more: what ends it names it by its Xid, and needs no
# unit of this thread or task. The functions take a Connection; QueueManager has them as methods.


@cython.final
cdef class Xid:
    """The name of a prepared unit of work: a format id, a global transaction id of 1 to 64 bytes
    and a branch qualifier of at most 64.

    Immutable, hashable, ordered by format id, then by global id, then by qualifier. ``str()`` is
    one word of printable characters that :meth:`parse` reads.
    """

    cdef ps_xid raw

    def __init__(self, format_id, gtrid, bqual=b""):
        if isinstance(format_id, bool):
            wrong_type(RC_OPTIONS_ERROR, f"format_id must be an integer: {format_id!r}")
        take_int(format_id, &self.raw.format_id, RC_OPTIONS_ERROR, "format_id")
        if self.raw.format_id == -1:
            wrong_value(RC_OPTIONS_ERROR, "format_id -1 stands for no Xid at all")
        self.raw.gtrid_length = take_xid_part(gtrid, self.raw.gtrid, "gtrid")
        self.raw.bqual_length = take_xid_part(bqual, self.raw.bqual, "bqual")
        if self.raw.gtrid_length == 0:
            wrong_value(RC_OPTIONS_ERROR, "gtrid has no bytes: 1 to 64 are needed")

    @property
    def format_id(self):
        """Who made the name: an integer of 32 bits, not -1."""
        return self.raw.format_id

    @property
    def gtrid(self):
        """The global transaction id, 1 to 64 bytes."""
        return PyBytes_FromStringAndSize(<char *>self.raw.gtrid, min(64, self.raw.gtrid_length))

    @property
    def bqual(self):
        """The branch qualifier, 0 to 64 bytes."""
        return PyBytes_FromStringAndSize(<char *>self.raw.bqual, min(64, self.raw.bqual_length))

    @staticmethod
    def parse(text):
        """The Xid whose ``str()`` is `text`. Raises InvalidValue (2046) for anything else."""
        cdef list parts
        if not isinstance(text, str):
            wrong_type(RC_OPTIONS_ERROR, f"the text of an Xid must be a string: {text!r}")
        parts = text.split(":")
        if len(parts) not in (2, 3):
            wrong_value(RC_OPTIONS_ERROR, f"{text!r} is not FORMAT:GTRID or FORMAT:GTRID:BQUAL")
        return Xid(
            read_format(text, parts[0]), read_xid_part(text, parts[1]),
            read_xid_part(text, parts[2]) if len(parts) == 3 else b"",
        )

    def __str__(self):
        """``PSPK:7f3a-01:12``: the format id as letters or a number; ids of letters, digits and
        ``._-`` as they are, others as ``0x`` and their hexadecimal digits.
        """
        cdef str text = show_format(self.raw.format_id) + ":" + show_xid_part(self.gtrid)
        return text + ":" + show_xid_part(self.bqual) if self.raw.bqual_length else text

    def __repr__(self):
        return f"Xid({self.format_id}, {self.gtrid!r}, {self.bqual!r})"

    def __reduce__(self):
        return Xid, xid_key(self)

    def __hash__(self):
        return hash(xid_key(self))

    def __eq__(self, other):
        if not isinstance(other, Xid):
            return NotImplemented
        return memcmp(&self.raw, &(<Xid>other).raw, sizeof(self.raw)) == 0

    def __lt__(self, other):
        if not isinstance(other, Xid):
            return NotImplemented
        return xid_key(self) < xid_key(<Xid>other)

    def __le__(self, other):
        if not isinstance(other, Xid):
            return NotImplemented
        return xid_key(self) <= xid_key(<Xid>other)

    def __gt__(self, other):
        if not isinstance(other, Xid):
            return NotImplemented
        return xid_key(self) > xid_key(<Xid>other)

    def __ge__(self, other):
        if not isinstance(other, Xid):
            return NotImplemented
        return xid_key(self) >= xid_key(<Xid>other)


cdef tuple xid_key(Xid xid):
    """What an Xid is, in the order that counts."""
    return xid.format_id, xid.gtrid, xid.bqual


cdef Xid xid_of(const ps_xid *raw):
    """The Xid that the core told."""
    cdef Xid xid = Xid.__new__(Xid)
    memcpy(&xid.raw, raw, sizeof(xid.raw))
    return xid


cdef uint16_t take_xid_part(object value, uint8_t *out, str what) except? 0:
    """A part of an Xid, NUL-padded to 64 bytes; its length."""
    if not isinstance(value, (bytes, bytearray, memoryview)):
        wrong_type(
            RC_OPTIONS_ERROR, f"{what} must be bytes, not {type(value).__name__}: {value!r}"
        )
    cdef bytes raw = bytes(value)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(raw)
    if size > 64:
        wrong_value(RC_OPTIONS_ERROR, f"{what} has {size} bytes, at most 64 are allowed: {value!r}")
    memset(out, 0, 64)
    memcpy(out, PyBytes_AS_STRING(raw), size)
    return <uint16_t>size


cdef bint is_plain(str text):
    """Whether an id is shown as it is: letters, digits, ``._-``, and no ``0x`` in front."""
    if not text or text.startswith("0x"):
        return False
    return all([c.isascii() and (c.isalnum() or c in "._-") for c in text])


cdef str show_xid_part(bytes part):
    cdef str text = part.decode("latin-1")
    return text if is_plain(text) else "0x" + part.hex()


cdef bytes read_xid_part(str whole, str part):
    if part.startswith("0x"):
        if len(part) % 2 == 0 and all([c in "0123456789abcdef" for c in part[2:]]):
            return bytes.fromhex(part[2:])
    elif is_plain(part):
        return part.encode("ascii")
    wrong_value(
        RC_OPTIONS_ERROR, f"{part!r} in {whole!r} is neither letters, digits and ._- nor 0x and hex"
    )


cdef bint is_format_name(str text):
    """Four capital letters or digits, a letter first: the bytes of a format id, highest first."""
    return (
        len(text) == 4 and text.isascii() and text.isalnum() and text == text.upper()
        and not text[0].isdigit()
    )


cdef str show_format(int32_t number):
    cdef str text = number.to_bytes(4, "big", signed=True).decode("latin-1")
    return text if is_format_name(text) else str(number)


cdef object read_format(str whole, str text):
    if is_format_name(text):
        return int.from_bytes(text.encode("ascii"), "big")
    cdef str digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= 10:
        return int(text)
    wrong_value(
        RC_OPTIONS_ERROR,
        f"{text!r} in {whole!r} is no format id: a number, or four capital letters or digits",
    )


# ---- units ----


cdef int fail_prepare(int reason, Xid xid) except -1:
    """Raises for a unit that could not be prepared."""
    cdef str text = core_text(reason)
    if reason == RC_UOW_IN_PROGRESS:
        raise XidInUse(reason, f"there is a prepared unit of work {xid} already")
    raise error_for(reason, f"preparing {xid}: {text}")


cdef int fail_prepared(int reason) except -1:
    """Raises for prepared units that could not be ended or read; the core's text has the name."""
    cdef str text = core_text(reason)
    if reason == RC_UOW_NOT_AVAILABLE:
        raise UnknownXid(reason, text)
    raise error_for(reason, text)


def prepare(
    Connection connection not None, Xid xid not None, bint allow_empty=False, bint wait=True
):
    """Prepares the unit of work of this thread or task."""
    cdef Unit unit
    connection.check_open()
    unit = connection.present_unit()
    if unit is None:
        unit = connection.implicit_unit()
    unit.hand_over(xid, allow_empty, wait)


def prepared_rows(Connection connection not None):
    """The prepared units, oldest first, each as a dictionary."""
    cdef mqe_prepared *rows
    cdef uint32_t i, count = 0, capacity = 64
    cdef int reason
    while True:
        connection.check_open()
        rows = <mqe_prepared *>room_for(capacity, sizeof(rows[0]))
        try:
            connection.busy += 1
            with nogil:
                reason = mqe_prepared_list(connection.manager, rows, capacity, &count)
            connection.busy -= 1
            if reason:
                fail(reason, f"queue manager {connection.name}")
            if count <= capacity:
                return [prepared_row(&rows[i]) for i in range(count)]
        finally:
            PyMem_Free(rows)
        capacity = count + 64


cdef dict prepared_row(const mqe_prepared *row):
    return {
        "xid": xid_of(&row.xid), "unit_id": row.unit_id, "prepared_us": row.prepared_us,
        "puts": row.puts, "gets": row.gets, "nonpersistent": row.nonpersistent, "bytes": row.bytes,
    }


def commit_prepared(Connection connection not None, tuple xids not None):
    """Commits prepared units, all or none."""
    end_prepared(connection, xids, True)


def backout_prepared(Connection connection not None, tuple xids not None):
    """Backs prepared units out, all or none; how many non-persistent messages were discarded."""
    return end_prepared(connection, xids, False)


cdef uint64_t end_prepared(Connection connection, tuple xids, bint commit) except? 0xFFFF:
    cdef uint32_t i, count
    cdef uint64_t discarded = 0
    cdef ps_xid *names
    cdef int reason
    connection.check_open()
    if not 0 < len(xids) <= MQE_PREPARED_MAX:
        wrong_value(
            RC_OPTIONS_ERROR, f"{len(xids)} names of prepared units: 1 to {MQE_PREPARED_MAX}"
        )
    count = <uint32_t>len(xids)
    names = <ps_xid *>room_for(count, sizeof(names[0]))
    try:
        for i in range(count):
            if not isinstance(xids[i], Xid):
                wrong_type(RC_OPTIONS_ERROR, f"not an Xid: {xids[i]!r}")
            names[i] = (<Xid>xids[i]).raw
        connection.busy += 1
        with nogil:
            if commit:
                reason = mqe_commit_prepared(connection.manager, names, count)
            else:
                reason = mqe_backout_prepared(connection.manager, names, count, &discarded)
        connection.busy -= 1
    finally:
        PyMem_Free(names)
    if reason:
        fail_prepared(reason)
    return discarded


PREPARED_CURSOR = sizeof(mqe_prepared_cursor)


def prepared_read(
    Connection connection not None, Xid xid not None, bytearray cursor not None, rows, bodies,
    offsets,
):
    """Copies messages of a prepared unit into the memory given (see batch_get()), as many as fit,
    from the cursor on, which moves. Returns (messages, bytes the next one needs): (0, 0) at the
    end, (0, n) when the first needs n bytes.
    """
    cdef batch_memory memory
    cdef mqe_batch batch
    cdef mqe_prepared_cursor at
    cdef penstock_gil gil
    cdef int reason
    if len(cursor) != sizeof(at):
        wrong_value(RC_BUFFER_LENGTH_ERROR, f"a cursor has {sizeof(at)} bytes, not {len(cursor)}")
    memcpy(&at, <char *>cursor, sizeof(at))
    connection.check_open()
    try:
        hold_memory(&memory, &batch, rows, bodies, offsets, True)
        connection.busy += 1
        begin_batch(&gil, &batch)
        reason = mqe_browse_prepared(connection.manager, &xid.raw, &at, &batch)
        penstock_gil_take(&gil)
        connection.busy -= 1
    finally:
        drop_memory(&memory)
    if reason and reason != RC_TRUNCATED_MSG_FAILED:
        fail_prepared(reason)
    mqx_error_clear()
    memcpy(<char *>cursor, &at, sizeof(at))
    return batch.count, batch.needed if reason else 0
