# rows.pxd - the buffers that a caller hands over for one call.

cdef struct batch_buffers:    # three exported buffers, and how many of them are held
    Py_buffer rows
    Py_buffer bodies
    Py_buffer offsets
    int held
