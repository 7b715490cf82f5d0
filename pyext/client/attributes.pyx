# attributes.pyx - values out of the attribute list of a definition (struct ps_attr of FORMAT.md):
# what opening a queue needs, read without making a dictionary of all of them.
#
# Invariants
#   1. No access goes beyond `length`: a list that ends within an attribute ends before it.


cdef const char *find_attribute(
    const char *attrs, uint32_t length, int32_t selector, uint16_t *kind, uint16_t *size
) noexcept:
    """The value of an attribute in a list, NULL when it is not there."""
    cdef uint32_t at = 0
    cdef int32_t found
    while at + ATTRIBUTE_HEADER <= length:
        memcpy(&found, attrs + at, sizeof(found))
        memcpy(kind, attrs + at + ATTRIBUTE_KIND_AT, sizeof(kind[0]))
        memcpy(size, attrs + at + ATTRIBUTE_SIZE_AT, sizeof(size[0]))
        if at + ATTRIBUTE_HEADER + size[0] > length:
            break
        if found == selector:
            return attrs + at + ATTRIBUTE_HEADER
        at += ATTRIBUTE_HEADER + (
            (size[0] + ATTRIBUTE_ALIGNMENT - 1) & ~<uint32_t>(ATTRIBUTE_ALIGNMENT - 1)
        )
    return NULL


cdef void find_number(
    const char *attrs, uint32_t length, int32_t selector, int64_t *out
) noexcept:
    """A number of a list; `out` stays as it is when the list does not have it."""
    cdef uint16_t kind = 0, size = 0
    cdef const char *value = find_attribute(attrs, length, selector, &kind, &size)
    if value is not NULL and kind == ATTRIBUTE_KIND_NUMBER and size == sizeof(out[0]):
        memcpy(out, value, sizeof(out[0]))


cdef bint has_text(const char *attrs, uint32_t length, int32_t selector) noexcept:
    """Whether a list has a text that is not blank."""
    cdef uint16_t kind = 0, size = 0
    cdef const char *value = find_attribute(attrs, length, selector, &kind, &size)
    return value is not NULL and size > 0 and value[0] != BLANK


cdef void find_use(const char *attrs, uint32_t length, queue_use *out) noexcept:
    """DEFSOPT, USAGE, SHARE, CLUSTER and CLUSNL of a local queue, or what they are when none is
    stored.
    """
    out.default_share = MQOO_INPUT_SHARED
    out.usage = MQUS_NORMAL
    out.shareability = MQQA_SHAREABLE
    find_number(attrs, length, MQIA_DEF_INPUT_OPEN_OPTION, &out.default_share)
    find_number(attrs, length, MQIA_USAGE, &out.usage)
    find_number(attrs, length, MQIA_SHAREABILITY, &out.shareability)
    out.clustered = has_text(attrs, length, MQCA_CLUSTER_NAME) or has_text(
        attrs, length, MQCA_CLUSTER_NAMELIST
    )


cdef uint32_t shared_as(uint32_t options, const queue_use *use) noexcept:
    """MQOO_* for the core: INPUT_AS_Q_DEF as DEFSOPT says, and NOSHARE is exclusive."""
    options &= OO_CORE
    if options & MQOO_INPUT_AS_Q_DEF:
        options = (options & ~<uint32_t>MQOO_INPUT_AS_Q_DEF) | <uint32_t>use.default_share
    if options & MQOO_INPUT_SHARED and use.shareability == MQQA_NOT_SHAREABLE:
        options = (options & ~<uint32_t>MQOO_INPUT_SHARED) | MQE_INPUT_EXCLUSIVE
    return options


cdef object attribute_value(const char *attrs, uint32_t length, int32_t selector):
    """A value of a list: an int, a str, or None."""
    cdef uint16_t kind = 0, size = 0
    cdef int64_t number
    cdef const char *value = find_attribute(attrs, length, selector, &kind, &size)
    if value is NULL:
        return None
    if kind == ATTRIBUTE_KIND_NUMBER and size == sizeof(number):
        memcpy(&number, value, sizeof(number))
        return number
    return value[:size].decode("utf-8", "replace")
