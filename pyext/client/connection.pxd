# connection.pxd - Connection adds methods to ObjectCatalog, all of them Python's, and no fields.

cdef class Connection(ObjectCatalog):
    pass
