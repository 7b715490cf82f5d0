# arrow_columns.pyx - fields of rows, gathered into columns of an Arrow array.
#
# Terms
#   column  a child array that is being filled: values, and bits or offsets beside them.
#
# Invariants
#   1. A column has room for `array.length` rows; gathering begins where it ended.
#   2. Rows are gathered some at a time, so that all columns of a row are read from the same cache
#      lines.
#
# Errors. OverflowError for text of 2 GiB in one column.


cdef inline bint has_ends(int kind) noexcept:
    return kind in (COLUMN_TEXT, COLUMN_BYTES, COLUMN_BYTES_UNLESS_0)


cdef inline bint has_nulls(int kind) noexcept:
    return kind in (
        COLUMN_UNLESS_MINUS_1, COLUMN_UNLESS_0, COLUMN_SECONDS, COLUMN_BYTES_UNLESS_0
    )


cdef Py_ssize_t value_room(int kind, Py_ssize_t size) noexcept:
    """Bytes of a value at most, beside its bits and its offset."""
    if kind == COLUMN_TEXT:
        return text_room(size)
    if kind == COLUMN_SECONDS:
        return sizeof(double)
    return 0 if kind == COLUMN_BOOL else size


cdef int start_columns(
    gathering *all, ArrowArray *array, object columns, given_memory *given
) except -1:
    """A child and its memory for each of the columns, in their order."""
    cdef Py_ssize_t i = 0
    for _, _, kind, offset, size in columns:
        start_column(&all[i], array, kind, offset, size, given)
        i += 1
    return 0


cdef int start_column(
    gathering *column, ArrowArray *array, int kind, Py_ssize_t offset, Py_ssize_t size,
    given_memory *given,
) except -1:
    """The next child of the array, with memory for the rows that it will have."""
    cdef size_t length = <size_t>array.length, flags = (length + 7) // 8
    cdef Py_ssize_t room = value_room(kind, size)
    cdef ArrowArray *child = next_child(array)
    start_array(child, array.length, 3 if has_ends(kind) else 2, 0)
    column.child = child
    column.offset = offset
    column.size = size
    column.kind = kind
    if has_ends(kind):
        if array.length * room > ARROW_OFFSET_MAX:
            raise OverflowError(
                "a text column of an Arrow array has 2 GiB at most: slice the batch"
            )
        column.ends = <int32_t *>own_buffer(child, 1, (length + 1) * sizeof(int32_t), False, given)
        column.ends[0] = 0
    if kind == COLUMN_BOOL:
        column.bits = own_buffer(child, 1, flags, True, given)
    else:
        column.values = own_buffer(
            child, 2 if has_ends(kind) else 1, length * <size_t>room, False, given
        )
        if has_nulls(kind):
            column.bits = own_buffer(child, 0, flags, True, given)
    if given is not NULL:
        keep(child, <object>given.keeper)
    return 0


cdef int gather(
    gathering *all, Py_ssize_t count, const mqe_item *row, int64_t at, int64_t length
) except -1:
    """So many rows become those of the columns from `at` on, a few at a time: all columns of a row
    lie in the same cache lines.
    """
    cdef Py_ssize_t i
    cdef int64_t begin, some
    for begin in range(0, length, GATHER_ROWS):
        some = min(length - begin, <int64_t>GATHER_ROWS)
        for i in range(count):
            gather_rows(&all[i], <const char *>(row + begin) + all[i].offset, at + begin, some)
    return 0


cdef int gather_rows(
    gathering *column, const char *field, int64_t at, int64_t count
) except -1:
    """So many values from `at` on; `field` is that of their first row."""
    if column.kind == COLUMN_TEXT:
        return gather_text(column, field, at, count)
    if column.kind == COLUMN_BOOL:
        gather_bits(column, field, at, count)
        return 0
    if column.kind == COLUMN_SECONDS:
        gather_seconds(<double *>column.values + at, field, count)
    else:
        gather_fixed(column.values + at * column.size, column.size, field, count)
    if column.ends is not NULL:
        count_bytes(column, at, count)
    if column.bits is not NULL:
        gather_validity(column, field, at, count)
    return 0


cdef void gather_fixed(
    char *to, Py_ssize_t size, const char *field, int64_t count
) noexcept nogil:
    """Values of `size` bytes from rows that follow each other."""
    cdef int64_t i
    if size == 4:  # a known size is a move, not a call
        for i in range(count):
            memcpy(to + i * 4, field + i * <Py_ssize_t>sizeof(mqe_item), 4)
    elif size == 8:
        for i in range(count):
            memcpy(to + i * 8, field + i * <Py_ssize_t>sizeof(mqe_item), 8)
    elif size == 24:
        for i in range(count):
            memcpy(to + i * 24, field + i * <Py_ssize_t>sizeof(mqe_item), 24)
    else:
        for i in range(count):
            memcpy(to + i * size, field + i * <Py_ssize_t>sizeof(mqe_item), <size_t>size)


cdef void gather_seconds(double *to, const char *field, int64_t count) noexcept nogil:
    cdef int64_t i
    for i in range(count):
        to[i] = (<const int32_t *>(field + i * <Py_ssize_t>sizeof(mqe_item)))[0] / 10.0


cdef void count_bytes(gathering *column, int64_t at, int64_t count) noexcept nogil:
    """Offsets of values that are all of the same size."""
    cdef int64_t i
    for i in range(at + 1, at + count + 1):
        column.ends[i] = <int32_t>(i * column.size)


cdef void gather_bits(
    gathering *column, const char *field, int64_t at, int64_t count
) noexcept nogil:
    cdef int64_t i
    for i in range(count):
        if field[i * <Py_ssize_t>sizeof(mqe_item)] == 1:
            set_bit(column.bits, at + i)


cdef inline void set_bit(char *bits, int64_t i) noexcept nogil:
    bits[i >> 3] |= <char>(1 << (i & 7))


cdef void gather_validity(
    gathering *column, const char *field, int64_t at, int64_t count
) noexcept nogil:
    """Sets the bit of each value that is not null, and counts the others."""
    cdef const char *value
    cdef int64_t i
    cdef bint null
    for i in range(count):
        value = field + i * <Py_ssize_t>sizeof(mqe_item)
        if column.kind == COLUMN_UNLESS_0:
            null = (<const int64_t *>value)[0] == 0
        elif column.kind == COLUMN_BYTES_UNLESS_0:
            null = value[0] == 0 and memcmp(value, value + 1, <size_t>column.size - 1) == 0
        else:
            null = (<const int32_t *>value)[0] == -1
        if null:
            column.child.null_count += 1
        else:
            set_bit(column.bits, at + i)


cdef Py_ssize_t text_length(const char *text, Py_ssize_t size) noexcept:
    """Without blanks and NULs behind it; -1 when a byte is not ASCII."""
    cdef Py_ssize_t i
    while size > 0 and (text[size - 1] == BLANK or text[size - 1] == 0):
        size -= 1
    for i in range(size):
        if text[i] & 0x80:
            return -1
    return size


cdef Py_ssize_t text_room(Py_ssize_t size) noexcept:
    """A byte becomes U+FFFD at worst."""
    return 3 * size


cdef int gather_text(
    gathering *column, const char *field, int64_t at, int64_t count
) except -1:
    """UTF-8; other bytes become replacement characters, as in Message's attributes. A text that is
    that of the row before, as most are, is copied from there.
    """
    cdef char *to = column.values + column.ends[at]
    cdef size_t length = 0
    cdef Py_ssize_t plain
    cdef int64_t i
    for i in range(count):
        if i > 0 and memcmp(field, field - sizeof(mqe_item), <size_t>column.size) == 0:
            memcpy(to, to - length, length)
        else:
            plain = text_length(field, column.size)
            if plain < 0:
                length = copy_replaced(to, field, column.size)
            else:
                length = <size_t>plain
                memcpy(to, field, length)
        to += length
        field += sizeof(mqe_item)
        column.ends[at + i + 1] = <int32_t>(to - column.values)
    return 0


cdef size_t copy_replaced(char *to, const char *text, Py_ssize_t size) except? 0:
    cdef bytes replaced = from_blank_padded(text, size).encode()
    cdef size_t length = <size_t>len(replaced)
    memcpy(to, PyBytes_AS_STRING(replaced), length)
    return length


cdef void shrink_text(gathering *column, int64_t length) noexcept:
    """Gives back what the characters did not need."""
    cdef array_memory *memory = <array_memory *>column.child.private_data
    cdef void *smaller = PyMem_RawRealloc(memory.own[2], <size_t>max(column.ends[length], 1))
    if smaller is not NULL:
        memory.own[2] = smaller
        memory.buffers[2] = smaller
