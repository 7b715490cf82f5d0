# structure.pyx - the structures of the MQI: raw memory in MQ's layout, fields as descriptors.
#
# Terms
#   layout  what a class of structures has in common: its fields, its initial bytes, the length of
#           each version. Made once, when the class is made (penstock.mqi.structures).
#   raw     the bytes of one structure, always as many as the largest version has; `Version` says
#           how many of them count. Integers and pointers in the machine's byte order.
#   part    a structure that shares the raw of its owner.
#
# Invariants
#   1. Fields lie within the structure and do not overlap, but for a list, which lies on its offset.
#   2. StrucId and Version take any value, as in C: a verb refuses a wrong one with `reason`.
#   3. Bytes between fields are NUL.
#
# Errors. InvalidValue with the reason code of the structure for bytes that are none.


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

    cdef int describe(self, type owner, str struc_id, dict lengths, int reason) except -1:
        """Takes the fields that the class has, in the order of their offsets."""
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
        """Writes the initial value of each field into `blank`, and keeps the bytes."""
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
    at any time and counts only once ``Version`` includes it.
    """

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
            (<Field?>self.shape.fields[name]).__set__(self, value)

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
        """Copies every field of the version, and fetches what offset fields point to."""
        cdef Field field
        cdef Py_ssize_t length = self.checked_length(data, size)
        for field in self.shape.fields.values():
            if field.end <= length:
                field.copy_from(self, data)
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
            if memcmp(data, PyBytes_AS_STRING(shape.initial), STRUC_ID_LENGTH) != 0:
                wrong_value(
                    shape.reason,
                    f"no {shape.name}: it begins with {data[:STRUC_ID_LENGTH]!r}, not with "
                    f"{shape.initial[:STRUC_ID_LENGTH]!r}",
                )
            if version not in shape.lengths:
                wrong_value(shape.reason, f"no {shape.name}: version {version} is none of "
                                           f"{', '.join(map(str, shape.lengths))}")
            length = shape.lengths[version]
        if size < length:
            wrong_value(shape.reason, f"no {shape.name}: {size} bytes, version {version} has "
                                       f"{length}")
        return length

    def copy(self):
        """An independent structure with the same values; records of lists are copied too."""
        cdef Structure result = self.blank()
        memcpy(result.raw, self.raw, <size_t>self.size)
        if self.variable is not None:
            result.variable = [
                [record.copy() for record in value] if isinstance(value, list) else value
                for value in self.variable
            ]
        return result

    cdef Structure blank(self):
        """A new structure of the same class, with initial values."""
        cdef type kind = type(self)
        cdef Structure made = kind.__new__(kind)
        if made.shape is not self.shape or made.size < self.size:
            raise TypeError(f"{kind.__name__}.__new__() gives another structure")
        return made

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

    def __getitem__(self, name):
        """A field by its name: ``md["Priority"]``. Raises KeyError for a name that is no field."""
        return (<Field?>self.shape.fields[name]).__get__(self, type(self))

    def __setitem__(self, name, value):
        (<Field?>self.shape.fields[name]).__set__(self, value)

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
        cdef Structure blank = self.blank()
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
