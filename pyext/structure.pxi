# structure.pxi - the structures of the MQI: raw memory in MQ's layout, fields as descriptors.
#
# Terms
#   layout     what a class of structures looks like: its fields, its initial bytes, the length of
#              each version. Made once, when the class is made (python/penstock/mqi/structures.py).
#   raw        the bytes of one structure, always as many as the largest version has; `Version` says
#              how many of them count. Integers and pointers in the machine's byte order.
#   variable   what MQ passes by pointer: arrays of records and strings. Python objects here; pack()
#              writes them behind the structure, where its offset fields point to.
#   part       a structure inside another one (the MQMD of an MQXQH): its raw lies in the owner's.
#
# Invariants
#   1. Characters in raw are padded with blanks and hold no NUL: what is set or unpacked is
#      normalised (a NUL ends the significant part). Bytes between fields are NUL.
#   2. No access goes beyond `size`: a field checks its end against it, also in a part that is
#      shorter than its class.
#   3. StrucId and Version take any value, as in C: a verb refuses a wrong one with `reason`.
#   4. A refused value changes nothing.
#
# Characters that are not ASCII are UTF-8; bytes that are no UTF-8 survive as surrogate escapes.

from cpython.mem cimport PyMem_Calloc
from cpython.long cimport PyLong_AsLongAndOverflow
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeUTF8
from libc.string cimport memchr, memcmp

cdef class Layout
cdef class Structure

cdef enum:
    VERSION_AT = 4            # of a structure that has a StrucId
    CHARV_SIZE = 24           # MQCHARV: VSPtr, VSOffset, VSBufSize, VSLength, VSCCSID
    CHARV_OFFSET_AT = 8
    CHARV_LENGTH_AT = 16
    CHARV_CCSID_AT = 20
    CCSID_UTF8 = 1208
    CCSID_APPL = -3


cdef inline int32_t get_long(const unsigned char *raw, Py_ssize_t offset) noexcept:
    cdef int32_t value
    memcpy(&value, raw + offset, sizeof(value))
    return value


cdef inline void set_long(unsigned char *raw, Py_ssize_t offset, int32_t value) noexcept:
    memcpy(raw + offset, &value, sizeof(value))


cdef inline Py_ssize_t significant(const unsigned char *text, Py_ssize_t size) noexcept:
    """Length of characters without what follows a NUL and without trailing blanks."""
    cdef const void *end = memchr(text, 0, <size_t>size)
    if end != NULL:
        size = <const unsigned char *>end - text
    while size > 0 and text[size - 1] == 32:
        size -= 1
    return size


cdef class Field:
    """Where a structure has a value: the base of all kinds of field.

    Attributes:
        name: MQ's name, such as ``Priority``.
        offset: bytes from the start of the structure.
        size: bytes.
        initial: the value in a new structure.
    """

    cdef readonly str name
    cdef readonly Py_ssize_t offset
    cdef readonly Py_ssize_t size
    cdef readonly object initial
    cdef Py_ssize_t end

    def __cinit__(self):
        self.name = ""

    def __set_name__(self, owner, str name):
        self.name = name

    cdef int place(self, Py_ssize_t offset, Py_ssize_t size, object initial) except -1:
        if offset < 0 or size <= 0:
            raise ValueError(f"no place for a field: offset {offset}, size {size}")
        self.offset = offset
        self.size = size
        self.end = offset + size
        self.initial = initial
        return 0

    cdef Structure of(self, object structure):
        """The structure, in which this field can be accessed."""
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

    cdef int take(self, Structure structure, const unsigned char *from_raw) except -1:
        """Takes the field over from the raw bytes of such a structure."""
        memcpy(structure.raw + self.offset, from_raw + self.offset, <size_t>self.size)
        return 0

    def __get__(self, structure, owner):
        return self if structure is None else self.read(self.of(structure))

    def __set__(self, structure, value):
        self.write(self.of(structure), value)

    def __delete__(self, structure):
        raise AttributeError(f"{self.label(structure)} cannot be deleted; set it, or use clear()")

    def __repr__(self):
        return f"<{type(self).__name__} {self.name} at {self.offset}, {self.size} bytes>"


cdef class LongField(Field):
    """An MQLONG: a signed integer of 32 bits."""

    def __init__(self, Py_ssize_t offset, int32_t initial=0):
        self.place(offset, 4, initial)

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

    def __get__(self, structure, owner):  # here again to be quick
        cdef Structure found
        if structure is None:
            return self
        found = <Structure?>structure
        if self.end > found.size:
            self.of(found)
        return get_long(found.raw, self.offset)


cdef class Int64Field(Field):
    """A pointer or handle of 64 bits: read and written as a number, never followed."""

    def __init__(self, Py_ssize_t offset, int64_t initial=0):
        self.place(offset, 8, initial)

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

    def __init__(self, Py_ssize_t offset, Py_ssize_t size, str initial=""):
        self.place(offset, size, initial)

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
        memset(structure.raw + self.offset + length, 32, <size_t>(self.size - length))
        return 0

    cdef int take(self, Structure structure, const unsigned char *from_raw) except -1:
        cdef const unsigned char *text = from_raw + self.offset
        cdef Py_ssize_t length = significant(text, self.size)
        memcpy(structure.raw + self.offset, text, <size_t>length)
        memset(structure.raw + self.offset + length, 32, <size_t>(self.size - length))
        return 0


cdef class ByteField(Field):
    """An MQBYTEn: bytes, padded with NULs and read in full length."""

    def __init__(self, Py_ssize_t offset, Py_ssize_t size, bytes initial=b""):
        self.place(offset, size, initial + bytes(size - len(initial)))

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

    cdef readonly type item

    def __init__(self, Py_ssize_t offset, Py_ssize_t size, type item):
        self.item = item
        self.place(offset, size, None)

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
        if given.length > self.size:  # what is stored is of the version that has the room
            for version, length in given.shape.lengths.items():
                if length == self.size:
                    set_long(structure.raw, self.offset + VERSION_AT, version)
        return 0

    cdef int take(self, Structure structure, const unsigned char *from_raw) except -1:
        cdef Structure part = self.read(structure)
        cdef Field field
        for field in part.shape.fields.values():
            if field.end <= self.size:
                field.take(part, from_raw + self.offset)
        return 0


cdef class VariableField(Field):
    """What MQ passes by pointer; `index` is its place in Structure.variable."""

    cdef Py_ssize_t index

    cdef object value(self, Structure structure):
        """What was set, or None."""
        return None if structure.variable is None else structure.variable[self.index]

    cdef int keep(self, Structure structure, object value) except -1:
        if structure.variable is None:
            structure.variable = [None] * len(structure.shape.variables)
        structure.variable[self.index] = value
        return 0

    cdef int append(self, Structure structure, bytearray packed) except -1:
        """Writes the value behind the packed structure and its offset into it."""
        raise NotImplementedError

    cdef int fetch(self, Structure structure, const unsigned char *data, Py_ssize_t size) except -1:
        """Reads the value from packed bytes, in which the structure itself comes first."""
        raise NotImplementedError


cdef int note_offset(bytearray packed, Py_ssize_t at) except -1:
    """Aligns the end of what is packed and writes its offset to `at`."""
    cdef unsigned char *raw
    packed.extend(bytes(-len(packed) & 3))
    raw = packed
    set_long(raw, at, <int32_t>len(packed))
    return 0


cdef class StringField(VariableField):
    """An MQCHARV: a string of any length, in UTF-8."""

    def __init__(self, Py_ssize_t offset):
        self.place(offset, CHARV_SIZE, "")

    cdef object read(self, Structure structure):
        cdef object value = self.value(structure)
        return "" if value is None else (<bytes?>value).decode("utf-8", "surrogateescape")

    cdef int write(self, Structure structure, object value) except -1:
        cdef bytes raw = characters(value, structure.shape.reason, self.label(structure))
        self.keep(structure, raw or None)
        set_long(structure.raw, self.offset + CHARV_LENGTH_AT, <int32_t>len(raw))
        set_long(structure.raw, self.offset + CHARV_CCSID_AT, CCSID_UTF8 if raw else CCSID_APPL)
        return 0

    cdef int take(self, Structure structure, const unsigned char *from_raw) except -1:
        return 0  # fetch() does it

    cdef int append(self, Structure structure, bytearray packed) except -1:
        note_offset(packed, self.offset + CHARV_OFFSET_AT)
        packed.extend(<bytes?>self.value(structure))
        return 0

    cdef int fetch(self, Structure structure, const unsigned char *data, Py_ssize_t size) except -1:
        cdef int32_t at = get_long(data, self.offset + CHARV_OFFSET_AT)
        cdef int32_t length = get_long(data, self.offset + CHARV_LENGTH_AT)
        if at == 0:
            return 0
        if at < structure.length or length < 0 or at > size or length > size - at:
            wrong_value(structure.shape.reason,
                        f"{self.label(structure)}: {length} bytes at offset {at} are not within "
                        f"{size} bytes behind it")
        return self.write(structure, PyBytes_FromStringAndSize(<char *>data + at, length))


cdef class ListField(VariableField):
    """An array of records, one for each destination of a distribution list."""

    cdef readonly type item
    cdef readonly int reason
    cdef LongField offset_field
    cdef LongField count_field
    cdef LongField flags_field
    cdef bint counts

    def __init__(self, LongField offset_field not None, LongField count_field not None, type item,
                 int reason, bint counts=False, LongField flags_field=None):
        self.place(offset_field.offset, 4, [])
        self.item = item
        self.reason = reason
        self.offset_field = offset_field
        self.count_field = count_field
        self.flags_field = flags_field
        self.counts = counts

    cdef object read(self, Structure structure):
        cdef object value = self.value(structure)
        if value is None:
            value = []
            self.keep(structure, value)
        return value

    cdef int write(self, Structure structure, object value) except -1:
        cdef list records
        if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
            wrong_type(self.reason, f"{self.label(structure)}={value!r}: takes a list of "
                                    f"{self.item.__name__}")
        records = list(value)
        self.check(structure, records)
        self.keep(structure, records)
        if self.counts:
            set_long(structure.raw, self.count_field.offset, <int32_t>len(records))
        return 0

    cdef int take(self, Structure structure, const unsigned char *from_raw) except -1:
        return 0  # fetch() does it

    cdef int check(self, Structure structure, list records) except -1:
        """The caller's list holds records of the right kind only; he may have changed it since."""
        for record in records:
            if type(record) is not self.item:
                wrong_type(self.reason, f"{self.label(structure)}: {record!r} in the list: takes "
                                        f"{self.item.__name__}")
        return 0

    cdef tuple parts(self, Structure structure):
        """The fields that each record has."""
        cdef Field field
        cdef int flags = -1
        if self.flags_field is not None:
            flags = get_long(structure.raw, self.flags_field.offset)
        return tuple(field for number, field in enumerate(layout_of(self.item).fields.values())
                     if flags & (1 << number))

    cdef int append(self, Structure structure, bytearray packed) except -1:
        cdef Field field
        cdef Structure record
        cdef list records = self.value(structure)
        cdef tuple parts = self.parts(structure)
        if not records:
            return 0
        self.check(structure, records)
        note_offset(packed, self.offset_field.offset)
        for record in records:
            for field in parts:
                packed.extend((<const char *>record.raw)[field.offset:field.end])
        return 0

    cdef int fetch(self, Structure structure, const unsigned char *data, Py_ssize_t size) except -1:
        cdef Field field
        cdef Structure record
        cdef list records = []
        cdef tuple parts = self.parts(structure)
        cdef int32_t at = get_long(data, self.offset_field.offset)
        cdef int32_t count = get_long(data, self.count_field.offset)
        cdef Py_ssize_t length = sum([field.size for field in parts])
        cdef Py_ssize_t here = at
        if at == 0 or count <= 0 or length == 0:
            return 0
        if at < structure.length or at > size or length * count > size - at:
            wrong_value(self.reason, f"{self.label(structure)}: {count} records of {length} bytes "
                                     f"at offset {at} are not within {size} bytes behind it")
        for _ in range(count):
            record = self.item()
            for field in parts:
                field.take(record, data + here - field.offset)
                here += field.size
            records.append(record)
        set_long(structure.raw, self.offset, 0)  # the list stands for it now
        return self.keep(structure, records)


cdef class Layout:
    """What the structures of a class have in common.

    Attributes:
        name: MQ's name of the structure, such as ``MQMD``.
        struc_id: its eye-catcher, without padding; empty when it has none.
        lengths: version -> bytes. A structure without versions has the version 0.
        reason: the reason code of a wrong one.
        fields: name -> field, in the order of their offsets.
        initial: the bytes of a new one, of the largest version.
    """

    cdef readonly str name
    cdef readonly str struc_id
    cdef readonly dict lengths
    cdef readonly int reason
    cdef readonly dict fields
    cdef readonly bytes initial
    cdef readonly tuple variables
    cdef Py_ssize_t size
    cdef dict cuts  # length of a version -> where a field begins that it would cut: not yet there

    cdef int describe(self, type owner, str struc_id, dict lengths, int reason) except -1:
        cdef Field field
        cdef list found = [value for value in owner.__dict__.values() if isinstance(value, Field)]
        found.sort(key=lambda value: (value.offset, value.size, isinstance(value, VariableField)))
        self.name = owner.__name__
        self.struc_id = struc_id
        self.lengths = dict(lengths)
        self.reason = reason
        self.fields = {field.name: field for field in found}
        self.size = max(lengths.values())
        self.variables = tuple([field for field in found if isinstance(field, VariableField)])
        for number, field in enumerate(self.variables):
            (<VariableField>field).index = number
        self.cuts = {
            length: field.offset
            for length in self.lengths.values()
            for field in found
            if field.offset < length < field.end
        }
        return self.check()

    cdef int check(self) except -1:
        """Fields lie within the structure and do not overlap; only a list lies on its offset."""
        cdef Field field
        cdef Py_ssize_t here = 0
        for field in self.fields.values():
            if isinstance(field, ListField):
                continue
            if field.offset < here or field.end > self.size:
                raise TypeError(f"{self.name}.{field.name} at {field.offset} overlaps or does not "
                                f"fit into {self.size} bytes")
            here = field.end
        return 0

    cdef int make_initial(self, Structure blank) except -1:
        cdef Field field
        for field in self.fields.values():
            if isinstance(field, PartField):
                memcpy(blank.raw + field.offset,
                       PyBytes_AS_STRING(layout_of((<PartField>field).item).initial),
                       <size_t>field.size)
            elif not isinstance(field, ListField):
                field.write(blank, field.initial)
        blank.variable = None
        self.initial = PyBytes_FromStringAndSize(<char *>blank.raw, blank.size)
        return 0

    def length_of(self, int version):
        """Bytes of a structure of that version; of a version not known: of the nearest below."""
        cdef Py_ssize_t result = min(self.lengths.values())
        for known, length in self.lengths.items():
            if known <= version and length > result:
                result = length
        return result


cdef Layout layout_of(type owner):
    cdef Layout found = <Layout?>owner.layout
    if found.lengths is None:
        raise TypeError(f"{owner.__name__} has no layout")
    return found


cdef class Structure:
    """The base of MQ's structures: fields by MQ's names, memory in MQ's layout.

    A new structure has MQ's initial values but for the fields given by keyword. Comparison is by
    value. ``Version`` decides how much of it counts, as in C: a field of a later version can be set
    at any time and is seen by nobody until ``Version`` says that it is there.
    """

    cdef unsigned char *raw
    cdef Py_ssize_t size
    cdef Layout shape
    cdef list variable
    cdef Structure owner
    cdef bint shared  # raw is the owner's; said here since the collector may clear `owner` first

    layout = Layout()  # none: only classes made by layout() have instances

    def __cinit__(self):
        self.shape = layout_of(type(self))
        self.size = self.shape.size
        self.raw = <unsigned char *>PyMem_Calloc(1, <size_t>self.size)
        if self.raw == NULL:
            raise MemoryError
        if self.shape.initial is not None:
            memcpy(self.raw, PyBytes_AS_STRING(self.shape.initial), <size_t>self.size)

    def __init__(self, **fields):
        for name, value in fields.items():
            if name not in self.shape.fields:
                raise TypeError(f"{self.shape.name} has no field {name!r}; it has "
                                f"{', '.join(self.shape.fields)}")
            (<Field>self.shape.fields[name]).__set__(self, value)

    def __dealloc__(self):
        if not self.shared:
            PyMem_Free(self.raw)

    @property
    def length(self):
        """Bytes of the version that ``Version`` says; of an unknown one: of the nearest below."""
        if not self.shape.struc_id:
            return self.size
        return min(self.shape.length_of(get_long(self.raw, VERSION_AT)), self.size)

    def pack(self):
        """The structure as bytes: its version's length, then what its offset fields point to."""
        cdef VariableField field
        cdef Py_ssize_t length = self.length
        cdef bytearray packed
        cdef Py_ssize_t filled = length
        if self.shape.cuts:
            filled = self.shape.cuts.get(length, length)
        if self.variable is None and filled == length:
            return PyBytes_FromStringAndSize(<char *>self.raw, length)
        packed = bytearray((<const char *>self.raw)[:filled])
        packed.extend(bytes(length - filled))
        if self.variable is None:
            return bytes(packed)
        for field in self.shape.variables:
            if field.end <= length and field.value(self) is not None:
                field.append(self, packed)
        return bytes(packed)

    @classmethod
    def unpack(cls, data):
        """A structure from bytes that begin with one; what follows it may be there or not.

        Raises:
            InvalidValue: too short, or StrucId or Version is wrong; with the structure's reason.
        """
        cdef Py_buffer view
        cdef Structure result = cls.__new__(cls)
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            result.load(<const unsigned char *>view.buf, view.len)
        finally:
            PyBuffer_Release(&view)
        return result

    cdef int load(self, const unsigned char *data, Py_ssize_t size) except -1:
        cdef Field field
        cdef Py_ssize_t length = self.checked_length(data, size)
        for field in self.shape.fields.values():
            if field.end <= length:
                field.take(self, data)
        for field in self.shape.variables:
            if field.end <= length:
                (<VariableField>field).fetch(self, data, size)
        return 0

    cdef Py_ssize_t checked_length(self, const unsigned char *data, Py_ssize_t size) except -1:
        """How many of the bytes are the structure."""
        cdef Layout shape = self.shape
        cdef Py_ssize_t length = min(shape.lengths.values())
        cdef int32_t version = 0
        if size >= length and shape.struc_id:
            version = get_long(data, VERSION_AT)
            if memcmp(data, PyBytes_AS_STRING(shape.initial), 4) != 0:
                wrong_value(shape.reason, f"no {shape.name}: it begins with {data[:4]!r}, not "
                                           f"with {shape.initial[:4]!r}")
            if version not in shape.lengths:
                wrong_value(shape.reason, f"no {shape.name}: version {version} is none of "
                                           f"{', '.join(map(str, shape.lengths))}")
            length = shape.lengths[version]
        if size < length:
            wrong_value(shape.reason, f"no {shape.name}: {size} bytes, version {version} has "
                                       f"{length}")
        return length

    cdef int wrong(self):
        """0 when StrucId and Version are ones of the class, else the structure's reason code."""
        if not self.shape.struc_id:
            return 0
        if memcmp(self.raw, PyBytes_AS_STRING(self.shape.initial), 4) != 0:
            return self.shape.reason
        return 0 if get_long(self.raw, VERSION_AT) in self.shape.lengths else self.shape.reason

    def copy(self):
        """A structure of its own with the same values; records of lists are copied too."""
        cdef Structure result = self.__class__.__new__(self.__class__)
        memcpy(result.raw, self.raw, <size_t>self.size)
        if self.variable is not None:
            result.variable = [
                [record.copy() for record in value] if isinstance(value, list) else value
                for value in self.variable
            ]
        return result

    def clear(self):
        """Sets all fields to their initial values, as a program does before it reuses one."""
        memcpy(self.raw, PyBytes_AS_STRING(self.shape.initial), <size_t>self.size)
        self.variable = None

    cdef bint same_values(self, Structure other):
        cdef Structure mine = self
        if self.size != other.size:  # a part: compare what both would be alone
            mine = self.copy()
            other = other.copy()
        if memcmp(mine.raw, other.raw, <size_t>mine.size) != 0:
            return False
        if mine.variable is None or other.variable is None:
            return not any(mine.variable or other.variable or ())
        return all([(a or None) == (b or None) for a, b in zip(mine.variable, other.variable)])

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        return self.same_values(<Structure>other)

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        return self.copy()

    def __reduce__(self):
        return type(self), (), ((<const char *>self.raw)[:self.size], self.variable)

    def __setstate__(self, state):
        cdef bytes raw
        cdef list variable
        raw, variable = state
        if len(raw) > self.size or len(variable or self.shape.variables) != len(
                self.shape.variables):
            raise ValueError(f"no state of {self.shape.name}: {len(raw)} bytes, {variable!r}")
        self.variable = variable or None
        memcpy(self.raw, PyBytes_AS_STRING(raw), <size_t>len(raw))

    def __repr__(self):
        cdef Field field
        cdef Structure blank = self.__class__.__new__(self.__class__)
        cdef list shown = []
        for field in self.shape.fields.values():
            if field.end > self.size:
                continue
            value = field.read(self)
            if value != field.read(blank):
                if isinstance(field, ByteField):
                    value = value.rstrip(b"\0")
                shown.append(f"{field.name}={value!r}")
        return f"{self.shape.name}({', '.join(shown)})"


def layout(str struc_id, dict lengths, int reason):
    """Decorates a class of structures: makes its layout out of its fields."""
    def describe(type owner):
        cdef Layout made = Layout.__new__(Layout)
        made.describe(owner, struc_id, lengths, reason)
        owner.layout = made
        made.make_initial(owner.__new__(owner))
        return owner

    return describe
