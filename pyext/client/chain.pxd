# chain.pxd - the link of an object in a chain (client/chain.pyx).

cdef struct chain_link:
    chain_link *next
    chain_link **at           # what points to this link; NULL: in no chain
    PyObject *item            # the object that the link lies in; borrowed
