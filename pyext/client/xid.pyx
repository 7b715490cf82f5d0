# xid.pyx - the name of a prepared unit of work, and its text.
#
# Invariants
#   1. Parts are NUL-padded to 64 bytes, so that two names are equal when their memory is.
#   2. str() and parse() are inverse: the text has one word of printable characters.
#
# Errors. 2046 for parts of a wrong type or length and for a text that str() does not make.

cdef str XID_CHARACTERS = "._-"   # beside letters and digits


@cython.final
cdef class Xid:
    """The name of a prepared unit of work: a format id, a global transaction id of 1 to 64 bytes
    and a branch qualifier of at most 64.

    Immutable, hashable, ordered by format id, then by global id, then by qualifier. ``str()`` is
    one word of printable characters that :meth:`parse` reads.
    """

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
        """The format id: an integer of 32 bits, not -1."""
        return self.raw.format_id

    @property
    def gtrid(self):
        """The global transaction id, 1 to 64 bytes."""
        return PyBytes_FromStringAndSize(
            <char *>self.raw.gtrid, min(XID_PART_LENGTH, self.raw.gtrid_length)
        )

    @property
    def bqual(self):
        """The branch qualifier, 0 to 64 bytes."""
        return PyBytes_FromStringAndSize(
            <char *>self.raw.bqual, min(XID_PART_LENGTH, self.raw.bqual_length)
        )

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
            parse_format(text, parts[0]), parse_xid_part(text, parts[1]),
            parse_xid_part(text, parts[2]) if len(parts) == 3 else b"",
        )

    def __str__(self):
        """``PSPK:7f3a-01:12``: the format id as letters or a number; ids of letters, digits and
        ``._-`` as they are, others as ``0x`` and their hexadecimal digits.
        """
        cdef str text = format_text(self.raw.format_id) + ":" + xid_part_text(self.gtrid)
        return text + ":" + xid_part_text(self.bqual) if self.raw.bqual_length else text

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
    """What Xids are compared by, in this order."""
    return xid.format_id, xid.gtrid, xid.bqual


cdef Xid xid_of(const ps_xid *raw):
    """The Xid of a name that the core returned."""
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
    if size > XID_PART_LENGTH:
        wrong_value(
            RC_OPTIONS_ERROR,
            f"{what} has {size} bytes, at most {XID_PART_LENGTH} are allowed: {value!r}",
        )
    memset(out, 0, XID_PART_LENGTH)
    memcpy(out, PyBytes_AS_STRING(raw), size)
    return <uint16_t>size


cdef bint is_plain(str text):
    """Whether an id is shown as it is: letters, digits, ``._-``, and no ``0x`` in front."""
    if not text or text.startswith("0x"):
        return False
    return all([c.isascii() and (c.isalnum() or c in XID_CHARACTERS) for c in text])


cdef str xid_part_text(bytes part):
    cdef str text = part.decode("latin-1")
    return text if is_plain(text) else "0x" + part.hex()


cdef bytes parse_xid_part(str whole, str part):
    """The inverse of xid_part_text(); `whole` is for the error."""
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


cdef str format_text(int32_t number):
    cdef str text = number.to_bytes(4, "big", signed=True).decode("latin-1")
    return text if is_format_name(text) else str(number)


cdef object parse_format(str whole, str text):
    """The inverse of format_text(); `whole` is for the error."""
    if is_format_name(text):
        return int.from_bytes(text.encode("ascii"), "big")
    cdef str digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= 10:
        return int(text)
    wrong_value(
        RC_OPTIONS_ERROR,
        f"{text!r} in {whole!r} is no format id: a number, or four capital letters or digits",
    )
