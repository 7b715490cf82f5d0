# fields.pyx - the kinds of field that lie in a structure as a whole, as descriptors of its class.
#
# Terms
#   raw      the bytes of a structure (mqi/structure.pyx).
#   initial  the value of the field in a new structure.
#   part     a structure inside another one (the MQMD of an MQXQH): its raw lies in the owner's.
#
# Invariants
#   1. No access goes beyond the `size` of a structure: checked() compares the field's end with it,
#      also in a part that is shorter than its class.
#   2. Characters in raw are padded with blanks and hold no NUL: what is set or copied from packed
#      bytes is normalised.
#   3. A refused value changes nothing.
#
# Characters that are not ASCII are UTF-8; bytes that are no UTF-8 survive as surrogate escapes.
#
# Errors. The reason code of the structure, as InvalidType or InvalidValue; AttributeError for a
# field that a short part does not have.


cdef class Field:
    """Where a structure has a value: the base of all kinds of field.

    Attributes:
        name: MQ's name, such as ``Priority``.
        offset: bytes from the start of the structure.
        size: bytes.
        initial: the value in a new structure.
    """

    def __cinit__(self):
        self.name = ""

    def __set_name__(self, owner, str name):
        self.name = name

    cdef int set_location(self, Py_ssize_t offset, Py_ssize_t size, object initial) except -1:
        """Called once, by the constructor."""
        if offset < 0 or size <= 0:
            raise ValueError(f"no place for a field: offset {offset}, size {size}")
        self.offset = offset
        self.size = size
        self.end = offset + size
        self.initial = initial
        return 0

    cdef Structure checked(self, object structure):
        """The structure, when this field lies within its bytes."""
        cdef Structure found = <Structure?>structure
        if self.end > found.size:
            raise AttributeError(f"the {found.shape.name} here is of {found.size} bytes and has "
                                 f"no {self.name}", name=self.name, obj=structure)
        return found

    cdef str label(self, Structure structure):
        return f"{structure.shape.name}.{self.name}"

    cdef object read(self, Structure structure):
        raise NotImplementedError

    cdef int write(self, Structure structure, object value) except -1:
        raise NotImplementedError

    cdef int copy_from(self, Structure structure, const unsigned char *from_raw) except -1:
        """Copies the field from the raw bytes of such a structure, and normalises it."""
        memcpy(structure.raw + self.offset, from_raw + self.offset, <size_t>self.size)
        return 0

    def __get__(self, structure, owner):
        return self if structure is None else self.read(self.checked(structure))

    def __set__(self, structure, value):
        self.write(self.checked(structure), value)

    def __delete__(self, structure):
        raise AttributeError(f"{self.label(structure)} cannot be deleted; set it, or use clear()")

    def __repr__(self):
        return f"<{type(self).__name__} {self.name} at {self.offset}, {self.size} bytes>"


cdef class LongField(Field):
    """An MQLONG: a signed integer of 32 bits."""

    def __cinit__(self, Py_ssize_t offset, int32_t initial=0):
        self.set_location(offset, sizeof(int32_t), initial)

    cdef object read(self, Structure structure):
        return get_long(structure.raw, self.offset)

    cdef int write(self, Structure structure, object value) except -1:
        cdef int overflow = 0
        cdef long number
        if not isinstance(value, int):
            if not hasattr(value, "__index__"):
                wrong_type(structure.shape.reason,
                           f"{self.label(structure)}={value!r}: takes an int")
            value = value.__index__()
        number = PyLong_AsLongAndOverflow(value, &overflow)
        if overflow != 0 or number != <int32_t>number:
            wrong_value(structure.shape.reason,
                        f"{self.label(structure)}={value}: not within -2147483648 to 2147483647")
        set_long(structure.raw, self.offset, <int32_t>number)
        return 0

    def __get__(self, structure, owner):  # as Field's, without a virtual call
        cdef Structure found
        if structure is None:
            return self
        found = <Structure?>structure
        if self.end > found.size:
            self.checked(found)
        return get_long(found.raw, self.offset)


cdef class Int64Field(Field):
    """A pointer or handle of 64 bits: read and written as a number, never followed."""

    def __cinit__(self, Py_ssize_t offset, int64_t initial=0):
        self.set_location(offset, sizeof(int64_t), initial)

    cdef object read(self, Structure structure):
        cdef int64_t value
        memcpy(&value, structure.raw + self.offset, sizeof(value))
        return value

    cdef int write(self, Structure structure, object value) except -1:
        cdef int overflow = 0
        cdef int64_t number
        if not isinstance(value, int):
            wrong_type(structure.shape.reason, f"{self.label(structure)}={value!r}: takes an int")
        number = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow != 0:
            wrong_value(structure.shape.reason, f"{self.label(structure)}={value}: not a signed "
                                                 f"integer of 64 bits")
        memcpy(structure.raw + self.offset, &number, sizeof(number))
        return 0


cdef bytes characters(object value, int reason, str label):
    """Text or bytes of a caller as bytes, up to the first NUL, without trailing blanks."""
    cdef bytes raw
    if isinstance(value, str):
        try:
            raw = (<str>value).encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            wrong_value(reason, f"{label}={value!r}: {error}")
    elif isinstance(value, (bytes, bytearray, memoryview)):
        raw = bytes(value)
    else:
        wrong_type(reason, f"{label}={value!r}: takes str or bytes")
    return raw[:significant(<const unsigned char *>PyBytes_AS_STRING(raw), PyBytes_GET_SIZE(raw))]


cdef class CharField(Field):
    """An MQCHARn: text, padded with blanks in memory and read without them.

    A single character is read as it is, blank or not.
    """

    def __cinit__(self, Py_ssize_t offset, Py_ssize_t size, str initial=""):
        self.set_location(offset, size, initial)

    cdef object read(self, Structure structure):
        cdef const unsigned char *text = structure.raw + self.offset
        cdef Py_ssize_t length = 1 if self.size == 1 else significant(text, self.size)
        return PyUnicode_DecodeUTF8(<const char *>text, length, "surrogateescape")

    cdef int write(self, Structure structure, object value) except -1:
        cdef Py_ssize_t length
        cdef const char *text
        cdef bytes raw
        if isinstance(value, str) and (<str>value).isascii():
            text = PyUnicode_AsUTF8AndSize(value, &length)
            length = significant(<const unsigned char *>text, length)
        else:
            raw = characters(value, structure.shape.reason, self.label(structure))
            text = PyBytes_AS_STRING(raw)
            length = PyBytes_GET_SIZE(raw)
        if length > self.size:
            wrong_value(structure.shape.reason, f"{self.label(structure)}={value!r}: {length} "
                                                 f"bytes, at most {self.size}")
        memcpy(structure.raw + self.offset, text, <size_t>length)
        memset(structure.raw + self.offset + length, BLANK, <size_t>(self.size - length))
        return 0

    cdef int copy_from(self, Structure structure, const unsigned char *from_raw) except -1:
        cdef const unsigned char *text = from_raw + self.offset
        cdef Py_ssize_t length = significant(text, self.size)
        memcpy(structure.raw + self.offset, text, <size_t>length)
        memset(structure.raw + self.offset + length, BLANK, <size_t>(self.size - length))
        return 0


cdef class ByteField(Field):
    """An MQBYTEn: bytes, padded with NULs and read in full length."""

    def __cinit__(self, Py_ssize_t offset, Py_ssize_t size, bytes initial=b""):
        self.set_location(offset, size, initial + bytes(size - len(initial)))

    cdef object read(self, Structure structure):
        return PyBytes_FromStringAndSize(<char *>structure.raw + self.offset, self.size)

    cdef int write(self, Structure structure, object value) except -1:
        cdef bytes raw
        if not isinstance(value, (bytes, bytearray, memoryview)):
            wrong_type(structure.shape.reason, f"{self.label(structure)}={value!r}: takes bytes")
        raw = bytes(value)
        if PyBytes_GET_SIZE(raw) > self.size:
            wrong_value(structure.shape.reason, f"{self.label(structure)}={raw!r}: "
                                                 f"{len(raw)} bytes, at most {self.size}")
        memset(structure.raw + self.offset, 0, <size_t>self.size)
        memcpy(structure.raw + self.offset, PyBytes_AS_STRING(raw), <size_t>PyBytes_GET_SIZE(raw))
        return 0


cdef class PartField(Field):
    """A structure inside the structure. Reading gives one that shares its memory."""

    def __cinit__(self, Py_ssize_t offset, Py_ssize_t size, type item):
        self.item = item
        self.set_location(offset, size, None)

    cdef object read(self, Structure structure):
        cdef Structure part = self.item.__new__(self.item)
        PyMem_Free(part.raw)
        part.shared = True
        part.raw = structure.raw + self.offset
        part.size = self.size
        part.owner = structure
        return part

    cdef int write(self, Structure structure, object value) except -1:
        cdef Structure given
        if type(value) is not self.item:
            wrong_type(structure.shape.reason,
                       f"{self.label(structure)}={value!r}: takes an {self.item.__name__}")
        given = <Structure>value
        memcpy(structure.raw + self.offset, given.raw, <size_t>min(self.size, given.size))
        if given.length > self.size:  # the version becomes the one that fits
            for version, length in given.shape.lengths.items():
                if length == self.size:
                    set_long(structure.raw, self.offset + VERSION_AT, version)
        return 0

    cdef int copy_from(self, Structure structure, const unsigned char *from_raw) except -1:
        cdef Structure part = self.read(structure)
        cdef Field field
        for field in part.shape.fields.values():
            if field.end <= self.size:
                field.copy_from(part, from_raw + self.offset)
        return 0
