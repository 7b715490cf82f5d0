# objects.pxd - the methods that ObjectCatalog adds to Attachment; it has no fields.

cdef class ObjectCatalog(Attachment):
    cdef int find(
        self, uint32_t name_space, str name, uint64_t instance, mqe_found *out
    ) except -1
    cdef int read_attributes(
        self, uint32_t slot, uint32_t generation, char *room, uint32_t capacity, uint32_t *length
    ) except -1
    cdef int read_use(self, uint32_t slot, uint32_t generation, queue_use *out) except -1
