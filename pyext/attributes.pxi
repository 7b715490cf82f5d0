# attributes.pxi - values out of the attribute list of a definition (struct ps_attr of FORMAT.md):
# what opening a queue needs, read without making a dictionary of all of them.

cdef const char *find_attribute(
    const char *attrs, uint32_t length, int32_t selector, uint16_t *kind, uint16_t *size
) noexcept:
    """The value of an attribute in a list (struct ps_attr), NULL when it is not there."""
    cdef uint32_t at = 0
    cdef int32_t found
    while at + 8 <= length:
        memcpy(&found, attrs + at, 4)
        memcpy(kind, attrs + at + 4, 2)
        memcpy(size, attrs + at + 6, 2)
        if at + 8 + size[0] > length:
            break
        if found == selector:
            return attrs + at + 8
        at += 8 + ((size[0] + 7) & ~<uint32_t>7)
    return NULL


cdef void find_number(
    const char *attrs, uint32_t length, int32_t selector, int64_t *out
) noexcept:
    """A number of a list; `out` stays as it is when the list does not have it."""
    cdef uint16_t kind = 0, size = 0
    cdef const char *value = find_attribute(attrs, length, selector, &kind, &size)
    if value is not NULL and kind == 1 and size == 8:
        memcpy(out, value, 8)


cdef void take_numbers(const char *attrs, uint32_t length, int64_t *out) noexcept:
    """DEFSOPT, USAGE and SHARE of a local queue."""
    out[0], out[1], out[2] = 2, 0, 1
    find_number(attrs, length, IA_DEF_INPUT_OPEN_OPTION, &out[0])
    find_number(attrs, length, IA_USAGE, &out[1])
    find_number(attrs, length, IA_SHAREABILITY, &out[2])


cdef object attribute_value(const char *attrs, uint32_t length, int32_t selector):
    """A value of a list: an int, a str, or None."""
    cdef uint16_t kind = 0, size = 0
    cdef int64_t number
    cdef const char *value = find_attribute(attrs, length, selector, &kind, &size)
    if value is NULL:
        return None
    if kind == 1 and size == 8:
        memcpy(&number, value, 8)
        return number
    return value[:size].decode("utf-8", "replace")
