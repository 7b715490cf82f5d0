# arrow_memory.pyx - memory of the Arrow C data interface: two structs, their buffers and their
# release callbacks. Batches go to and come from Arrow libraries without a copy of the bodies and
# without linking to any of them.
#
# Invariants
#   1. Each child owns what its buffers lie in by itself, because a consumer may move a child away
#      and use it longer than the parent.
#   2. A struct can be released from the moment its `release` is set, whatever fails afterwards.
#   3. A capsule frees its struct, and releases it unless a consumer has moved it.
#
# Locks. A release callback may run in any thread, without the GIL; it takes the GIL to drop a
# reference, and not at all when the interpreter has ended.
#
# Errors. MemoryError.


cdef void drop_owner(PyObject *owner) noexcept with gil:
    Py_DECREF(owner)


cdef void release_array(ArrowArray *array) noexcept nogil:
    """Frees children and buffers, and drops the reference to the owner of the others."""
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
    """Frees children, format and name."""
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
    """Makes an array that can be released; its buffers are still NULL."""
    cdef array_memory *memory = <array_memory *>zeroed(1, sizeof(array_memory))
    array.private_data = memory
    array.release = release_array
    array.length = length
    array.n_buffers = buffers
    array.buffers = memory.buffers
    array.children = <ArrowArray **>zeroed(<size_t>children, sizeof(ArrowArray *))
    return 0


cdef ArrowArray *next_child(ArrowArray *array) except NULL:
    cdef ArrowArray *child = <ArrowArray *>zeroed(1, sizeof(ArrowArray))
    array.children[array.n_children] = child
    array.n_children += 1
    return child


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


cdef void keep(ArrowArray *array, object owner) noexcept:
    """Keeps a reference until the array is released."""
    Py_INCREF(owner)
    (<array_memory *>array.private_data).owner = <PyObject *>owner
