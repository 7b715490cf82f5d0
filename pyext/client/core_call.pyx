# core_call.pyx - the begin of a call of the core: state is read behind the last call into Python.
#
# Arguments are converted by code of the caller: `__index__`, `__buffer__`, comparisons of
# subclasses, finalizers that the collector runs, other threads. It may close the connection or the
# handle, and end the unit of work. So whatever was checked before says nothing any more, and each
# call of the core begins here, behind the last conversion (crash-safety rule 56).
#
# Invariants
#   1. Between begin_call() and the call of the core no Python code runs, and none between the
#      call and the end of `busy` in end_call(): who waits for `busy` == 0 sees all that the call
#      has done.
#   2. A call counts in its handle or connection, and in its unit of work: none of them is freed
#      before it ends.
#
# Locks. `busy` changes with the GIL held.
#
# Errors. 2018 and 2019 for what is closed, 2255 for a unit of work that has ended, 2012 in a forked
# child.


cdef inline bint can_begin(QueueHandle queue, Unit unit) noexcept:
    """Begins a call of the core with an open queue, in the unit of work (None: in none); False when
    either has been closed or has ended.
    """
    if queue.closed:
        return False
    if unit is not None:
        if unit.state != UNIT_OPEN:
            return False
        unit.busy += 1
    queue.busy += 1
    return True


cdef inline int begin_call(QueueHandle queue, Unit unit) except -1:
    """The same; raises."""
    if not can_begin(queue, unit):
        raise_unusable(queue, unit)
    return 0


cdef int raise_unusable(QueueHandle queue, Unit unit) except -1:
    """Raises for what can_begin() has refused."""
    if queue.closed:
        queue.raise_closed()
    unit.raise_ended()
    return 0


cdef inline void end_call(QueueHandle queue, Unit unit) noexcept:
    """Ends it. Here the event messages are made that it has caused: Python code may have run then.
    """
    queue.busy -= 1
    if unit is not None:
        unit.busy -= 1
    if queue.connection.events_fired[0] != 0:
        make_events(queue.connection)


cdef int look_at_signals() except -1:
    """Signal handlers run between two calls of the core, of which the second repeats the first. A
    call for an event loop is left to another thread.
    """
    if penstock_is_at_once():
        raise_would_block()
    try:
        PyErr_CheckSignals()
    except BaseException:
        mqe_interrupt_allow(0)  # what the first has waited does not count for another call
        raise
    return 0


cdef inline bint is_to_repeat(int reason) except -1:
    """Whether the call of the core that returned `reason` has ended, with nothing done, so that
    signal handlers run; what they raise ends it for good.
    """
    if reason != MQE_INTERRUPTED:
        return False
    look_at_signals()
    return True


cdef inline mqe_unit *core_unit(Unit unit) noexcept:
    """The core's side of a unit of work, NULL for none."""
    return NULL if unit is None else unit.unit
