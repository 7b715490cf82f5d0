# arrow.pxi - the Arrow C data interface (two structs and their release callbacks), so that batches
# go to and come from Arrow libraries without a copy of the bodies and without linking to any of
# them.
#
# Export. A batch is one struct array. Each child owns what its buffers lie in by itself, because a
# consumer may move a child away and let it outlive the parent. Columns are gathered into memory of
# their own, or into memory that was given (ArrowTable), which is kept by a reference; the body's
# buffers are those of the batch, kept in the same way. A release callback may run in any thread,
# without the GIL.
#
# Import. The producer's capsules are kept as long as its buffers are looked at.

cdef extern from *:
    """
    #ifndef ARROW_C_DATA_INTERFACE
    #define ARROW_C_DATA_INTERFACE
    struct ArrowSchema {
        const char *format;
        const char *name;
        const char *metadata;
        int64_t flags;
        int64_t n_children;
        struct ArrowSchema **children;
        struct ArrowSchema *dictionary;
        void (*release)(struct ArrowSchema *);
        void *private_data;
    };
    struct ArrowArray {
        int64_t length;
        int64_t null_count;
        int64_t offset;
        int64_t n_buffers;
        int64_t n_children;
        const void **buffers;
        struct ArrowArray **children;
        struct ArrowArray *dictionary;
        void (*release)(struct ArrowArray *);
        void *private_data;
    };
    #endif
    """
    struct ArrowSchema:
        const char *format
        const char *name
        const char *metadata
        int64_t flags
        int64_t n_children
        ArrowSchema **children
        ArrowSchema *dictionary
        void (*release)(ArrowSchema *) noexcept nogil
        void *private_data

    struct ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void **buffers
        ArrowArray **children
        ArrowArray *dictionary
        void (*release)(ArrowArray *) noexcept nogil
        void *private_data

cdef extern from "Python.h":
    void *PyMem_RawMalloc(size_t size) nogil
    void *PyMem_RawCalloc(size_t count, size_t size) nogil
    void *PyMem_RawRealloc(void *memory, size_t size) nogil
    void PyMem_RawFree(void *memory) nogil
    int Py_IsInitialized() nogil
    void Py_INCREF(object item)

cdef enum:
    ARROW_NULLABLE = 2
    COLUMN_FIXED = 0          # `size` bytes as they are
    COLUMN_BOOL = 1           # a byte: 1 is true
    COLUMN_TEXT = 2           # blank-padded characters
    COLUMN_UNLESS_MINUS_1 = 3 # a 32-bit integer, -1 is null
    COLUMN_UNLESS_0 = 4       # a 64-bit integer, 0 is null
    COLUMN_SECONDS = 5        # a 32-bit integer of tenths, -1 is null; seconds in double precision
    COLUMN_BYTES = 6          # `size` bytes, with offsets as those of any length have
    COLUMN_BYTES_UNLESS_0 = 7 # the same, null where all are 0
    GATHER_ROWS = 64          # rows that stay in a processor's nearest cache


cdef struct array_memory:     # private data of an exported array
    const void *buffers[3]
    void *own[3]              # those of them that are freed with it
    PyObject *owner           # what keeps the others; NULL: none


# ---- release ----

cdef void drop_owner(PyObject *owner) noexcept with gil:
    Py_DECREF(owner)


cdef void release_array(ArrowArray *array) noexcept nogil:
    cdef array_memory *memory = <array_memory *>array.private_data
    cdef int64_t i
    for i in range(array.n_children):
        if array.children[i].release is not NULL:
            array.children[i].release(array.children[i])
        PyMem_RawFree(array.children[i])
    PyMem_RawFree(array.children)
    for i in range(3):
        PyMem_RawFree(memory.own[i])
    if memory.owner is not NULL and Py_IsInitialized():
        drop_owner(memory.owner)
    PyMem_RawFree(memory)
    array.release = NULL


cdef void release_schema(ArrowSchema *schema) noexcept nogil:
    cdef int64_t i
    for i in range(schema.n_children):
        if schema.children[i].release is not NULL:
            schema.children[i].release(schema.children[i])
        PyMem_RawFree(schema.children[i])
    PyMem_RawFree(schema.children)
    PyMem_RawFree(<void *>schema.format)
    PyMem_RawFree(<void *>schema.name)
    schema.release = NULL


cdef void free_schema_capsule(object capsule) noexcept:
    cdef ArrowSchema *schema = <ArrowSchema *>PyCapsule_GetPointer(capsule, "arrow_schema")
    if schema.release is not NULL:
        schema.release(schema)
    PyMem_RawFree(schema)


cdef void free_array_capsule(object capsule) noexcept:
    cdef ArrowArray *array = <ArrowArray *>PyCapsule_GetPointer(capsule, "arrow_array")
    if array.release is not NULL:
        array.release(array)
    PyMem_RawFree(array)


# ---- export ----

cdef void *zeroed(size_t count, size_t size) except NULL:
    cdef void *memory = PyMem_RawCalloc(max(count, 1), size)
    if memory is NULL:
        raise MemoryError
    return memory


cdef char *copied_text(bytes text) except NULL:
    cdef char *copy = <char *>zeroed(<size_t>len(text) + 1, 1)
    memcpy(copy, PyBytes_AS_STRING(text), <size_t>len(text))
    return copy


cdef int start_schema(ArrowSchema *schema, str name, bytes format, Py_ssize_t children) except -1:
    """Whatever fails afterwards, the schema can be released."""
    schema.release = release_schema
    schema.name = copied_text(name.encode())
    schema.format = copied_text(format)
    schema.children = <ArrowSchema **>zeroed(<size_t>children, sizeof(ArrowSchema *))
    return 0


cdef int start_array(
    ArrowArray *array, Py_ssize_t length, int buffers, Py_ssize_t children
) except -1:
    cdef array_memory *memory = <array_memory *>zeroed(1, sizeof(array_memory))
    array.private_data = memory
    array.release = release_array
    array.length = length
    array.n_buffers = buffers
    array.buffers = memory.buffers
    array.children = <ArrowArray **>zeroed(<size_t>children, sizeof(ArrowArray *))
    return 0


def arrow_schema(columns):
    """The schema of a batch as a capsule: `columns` are (name, format, kind, offset, size)."""
    cdef ArrowSchema *schema = <ArrowSchema *>zeroed(1, sizeof(ArrowSchema))
    cdef object capsule = PyCapsule_New(schema, "arrow_schema", free_schema_capsule)
    cdef ArrowSchema *child
    start_schema(schema, "", b"+s", len(columns) + 1)
    for name, format, kind, _, _ in (*columns, ("body", "Z", COLUMN_FIXED, 0, 0)):
        child = <ArrowSchema *>zeroed(1, sizeof(ArrowSchema))
        schema.children[schema.n_children] = child
        schema.n_children += 1
        start_schema(child, name, format.encode(), 0)
        child.flags = ARROW_NULLABLE if kind >= COLUMN_UNLESS_MINUS_1 else 0
    return capsule


cdef struct given_memory:     # what columns are carved from, one after the other
    char *next
    PyObject *keeper          # borrowed


cdef struct gathering:        # a column that is being filled
    ArrowArray *child
    Py_ssize_t offset         # of its field in a row
    Py_ssize_t size
    int kind
    char *values              # fixed: the values; text: the characters
    char *bits                # bool: the values; UNLESS, SECONDS: which are not null
    int32_t *ends             # text, BYTES: the offsets


def arrow_array(columns, rows, bodies, offsets):
    """A batch as a capsule with a struct array: the columns, gathered, and the body as it is."""
    cdef ArrowArray *array = <ArrowArray *>zeroed(1, sizeof(ArrowArray))
    cdef object capsule = PyCapsule_New(array, "arrow_array", free_array_capsule)
    cdef gathering *all = NULL
    cdef Py_buffer view
    cdef Py_ssize_t i, count = len(columns)
    PyObject_GetBuffer(rows, &view, PyBUF_SIMPLE)
    try:
        start_array(array, view.len // <Py_ssize_t>sizeof(mqe_item), 1, count + 1)
        all = <gathering *>zeroed(<size_t>count, sizeof(gathering))
        start_columns(all, array, columns, NULL)
        gather(all, count, <const mqe_item *>view.buf, 0, array.length)
        for i in range(count):
            if all[i].kind == COLUMN_TEXT:
                shrink_text(&all[i], array.length)
    finally:
        PyMem_RawFree(all)
        PyBuffer_Release(&view)
    export_body(next_child(array), array.length, bodies, offsets)
    return capsule


cdef int start_columns(
    gathering *all, ArrowArray *array, object columns, given_memory *given
) except -1:
    cdef Py_ssize_t i = 0
    for _, _, kind, offset, size in columns:
        start_column(&all[i], array, kind, offset, size, given)
        i += 1
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


cdef ArrowArray *next_child(ArrowArray *array) except NULL:
    cdef ArrowArray *child = <ArrowArray *>zeroed(1, sizeof(ArrowArray))
    array.children[array.n_children] = child
    array.n_children += 1
    return child


cdef int export_body(ArrowArray *child, int64_t length, object bodies, object offsets) except -1:
    """The buffers of the batch themselves; memoryviews keep them where they are."""
    cdef array_memory *memory
    cdef object views = (memoryview(bodies), memoryview(offsets))
    start_array(child, length, 3, 0)
    memory = <array_memory *>child.private_data
    memory.buffers[1] = PyMemoryView_GET_BUFFER(views[1]).buf
    memory.buffers[2] = PyMemoryView_GET_BUFFER(views[0]).buf
    keep(child, views)
    return 0


cdef char *own_buffer(
    ArrowArray *array, int which, size_t bytes, bint cleared, given_memory *given
) except NULL:
    """A buffer of the array: from what was given, else allocated."""
    cdef array_memory *memory = <array_memory *>array.private_data
    if given is not NULL:
        memory.buffers[which] = given.next
        given.next += in_lines(<Py_ssize_t>bytes)
        if cleared:
            memset(<void *>memory.buffers[which], 0, bytes)
        return <char *>memory.buffers[which]
    if cleared:
        memory.own[which] = zeroed(bytes, 1)
    else:
        memory.own[which] = PyMem_RawMalloc(max(bytes, 1))
        if memory.own[which] is NULL:
            raise MemoryError
    memory.buffers[which] = memory.own[which]
    return <char *>memory.own[which]


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


def arrow_room(columns, Py_ssize_t length):
    """Bytes that so many rows of the columns need at most."""
    cdef Py_ssize_t room = 0
    for _, _, kind, _, size in columns:
        room += in_lines(length * value_room(kind, size))
        if has_ends(kind):
            room += in_lines((length + 1) * <Py_ssize_t>sizeof(int32_t))
        if has_nulls(kind) or kind == COLUMN_BOOL:
            room += in_lines((length + 7) // 8)
    return room


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
        if array.length * room > 0x7FFFFFFF:
            raise OverflowError(
                "a text column of an Arrow array has 2 GiB at most: slice the batch"
            )
        column.ends = <int32_t *>own_buffer(child, 1, (length + 1) * 4, False, given)
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


cdef void keep(ArrowArray *array, object owner) noexcept:
    """Until it is released."""
    Py_INCREF(owner)
    (<array_memory *>array.private_data).owner = <PyObject *>owner


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
    while size > 0 and (text[size - 1] == 32 or text[size - 1] == 0):
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
    """UTF-8; what is none has replacement characters, as Message's attributes do. A text that is
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
                length = copy_strange(to, field, column.size)
            else:
                length = <size_t>plain
                memcpy(to, field, length)
        to += length
        field += sizeof(mqe_item)
        column.ends[at + i + 1] = <int32_t>(to - column.values)
    return 0


cdef size_t copy_strange(char *to, const char *text, Py_ssize_t size) except? 0:
    cdef bytes strange = from_blank_padded(text, size).encode()
    cdef size_t length = <size_t>len(strange)
    memcpy(to, PyBytes_AS_STRING(strange), length)
    return length


cdef void shrink_text(gathering *column, int64_t length) noexcept:
    """Gives back what the characters did not need."""
    cdef array_memory *memory = <array_memory *>column.child.private_data
    cdef void *smaller = PyMem_RawRealloc(memory.own[2], <size_t>max(column.ends[length], 1))
    if smaller is not NULL:
        memory.own[2] = smaller
        memory.buffers[2] = smaller


# ---- import ----

def arrow_bodies(source):
    """The bodies of an Arrow array of type binary or large_binary: (bytes, offsets, bytes of an
    offset, keeper), the first two as memoryviews that are valid while the keeper lives.
    """
    cdef ArrowSchema *schema
    cdef ArrowArray *array
    cdef Py_ssize_t width
    cdef const char *offsets
    cdef int64_t end
    keeper = source.__arrow_c_array__()
    schema = <ArrowSchema *>PyCapsule_GetPointer(keeper[0], "arrow_schema")
    array = <ArrowArray *>PyCapsule_GetPointer(keeper[1], "arrow_array")
    if schema.format[0] not in (c"z", c"Z") or schema.format[1] != 0:
        wrong_type(
            RC_BUFFER_ERROR,
            f"bodies must be an Arrow array of binary or large_binary, not of type "
            f"{schema.format.decode()!r}",
        )
    refuse_nulls(array)
    width = 4 if schema.format[0] == c"z" else 8
    if array.length == 0:
        return memoryview(b""), memoryview(bytes(width)), width, keeper
    offsets = <const char *>array.buffers[1] + array.offset * width
    if width == 4:
        end = (<const int32_t *>offsets)[array.length]
    else:
        end = (<const int64_t *>offsets)[array.length]
    if end < 0:
        wrong_value(RC_BUFFER_LENGTH_ERROR, f"the last offset of the Arrow array is {end}")
    bodies = memoryview(b"")
    if end > 0:
        bodies = PyMemoryView_FromMemory(<char *>array.buffers[2], end, PyBUF_READ)
    return (
        bodies,
        PyMemoryView_FromMemory(<char *>offsets, (array.length + 1) * width, PyBUF_READ),
        width, keeper,
    )


cdef int refuse_nulls(const ArrowArray *array) except -1:
    """A message has a body, be it empty."""
    cdef const uint8_t *valid
    cdef int64_t i, at
    if array.null_count == 0 or array.length == 0 or array.buffers[0] is NULL:
        return 0
    valid = <const uint8_t *>array.buffers[0]
    for i in range(array.length):
        at = array.offset + i
        if not valid[at >> 3] >> (at & 7) & 1:
            wrong_value(RC_BUFFER_ERROR, f"body {i} of the Arrow array is null; it may be empty")
    return 0
