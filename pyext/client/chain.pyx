# chain.pyx - the open handles and the units of work of a connection.
#
# Terms
#   chain  a linked list whose links lie in the objects. It refers to objects without keeping them
#          alive: an object leaves its chain before it is freed.
#
# Invariants
#   1. No Python code runs while a chain is read or changed, as it would in a WeakSet: an object
#      enters the chain in the same hold of the GIL in which the core opened it, and an end of the
#      connection sees it, whatever threads and finalizers do. A WeakSet also loses what the
#      collector finds unreachable before the finalizers run.
#
# Locks. With the GIL.


cdef inline void chain_add(chain_link **first, chain_link *link, object item) noexcept:
    """Puts an object at the front of a chain, unless it is in it."""
    if link.at is not NULL:
        return
    link.item = <PyObject *>item
    link.next = first[0]
    link.at = first
    if link.next is not NULL:
        link.next.at = &link.next
    first[0] = link


cdef inline void chain_remove(chain_link *link) noexcept:
    """Takes an object out of its chain; nothing when it is in none."""
    if link.at is NULL:
        return
    link.at[0] = link.next
    if link.next is not NULL:
        link.next.at = link.at
    link.at = NULL
    link.next = NULL
