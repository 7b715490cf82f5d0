# variable_fields.pyx - the kinds of field that MQ passes by pointer: strings and arrays of records.
#
# Terms
#   variable  the Python value of such a field; pack() writes it behind the structure, where the
#             offset field points to.
#
# Invariants
#   1. What is read from packed bytes lies behind the structure and within the bytes.
#   2. The records of a list are of one class; a caller may change his list, so it is checked again
#      when it is packed.
#
# Errors. As in mqi/fields.pyx; a list has a reason code of its own.


cdef class VariableField(Field):
    """What MQ passes by pointer; `index` is its position in Structure.variable."""

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


cdef int write_offset(bytearray packed, Py_ssize_t at) except -1:
    """Aligns the end of what is packed and writes its offset to `at`."""
    cdef unsigned char *raw
    packed.extend(bytes(-len(packed) & 3))
    raw = packed
    set_long(raw, at, <int32_t>len(packed))
    return 0


cdef class StringField(VariableField):
    """An MQCHARV: a string of any length, in UTF-8."""

    def __cinit__(self, Py_ssize_t offset):
        self.set_location(offset, CHARV_SIZE, "")

    cdef object read(self, Structure structure):
        cdef object value = self.value(structure)
        return "" if value is None else (<bytes?>value).decode("utf-8", "surrogateescape")

    cdef int write(self, Structure structure, object value) except -1:
        cdef bytes raw = characters(value, structure.shape.reason, self.label(structure))
        self.keep(structure, raw or None)
        set_long(structure.raw, self.offset + CHARV_LENGTH_AT, <int32_t>len(raw))
        set_long(structure.raw, self.offset + CHARV_CCSID_AT, MQCCSI_UTF8 if raw else MQCCSI_APPL)
        return 0

    cdef int copy_from(self, Structure structure, const unsigned char *from_raw) except -1:
        return 0  # fetch() does it

    cdef int append(self, Structure structure, bytearray packed) except -1:
        write_offset(packed, self.offset + CHARV_OFFSET_AT)
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

    def __cinit__(self, LongField offset_field not None, LongField count_field not None, type item,
                 int reason, bint counts=False, LongField flags_field=None):
        self.set_location(offset_field.offset, sizeof(int32_t), [])
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

    cdef int copy_from(self, Structure structure, const unsigned char *from_raw) except -1:
        return 0  # fetch() does it

    cdef int check(self, Structure structure, list records) except -1:
        """The caller's list holds records of the right kind only."""
        for record in records:
            if type(record) is not self.item:
                wrong_type(self.reason, f"{self.label(structure)}: {record!r} in the list: takes "
                                        f"{self.item.__name__}")
        return 0

    cdef tuple record_fields(self, Structure structure):
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
        cdef tuple parts = self.record_fields(structure)
        if not records:
            return 0
        self.check(structure, records)
        write_offset(packed, self.offset_field.offset)
        for record in records:
            for field in parts:
                packed.extend((<const char *>record.raw)[field.offset:field.end])
        return 0

    cdef int fetch(self, Structure structure, const unsigned char *data, Py_ssize_t size) except -1:
        cdef Field field
        cdef Structure record
        cdef list records = []
        cdef tuple parts = self.record_fields(structure)
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
                field.copy_from(record, data + here - field.offset)
                here += field.size
            records.append(record)
        set_long(structure.raw, self.offset, 0)  # the list replaces it
        return self.keep(structure, records)
