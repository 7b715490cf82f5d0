# unit_choice.pyx - which unit of work a call belongs to (crash-safety rule 49).
#
# Terms
#   owner          a thread or an asyncio task.
#   explicit unit  what transaction() makes: a link in the list that the context variable
#                  `innermost` begins. Without being passed, it counts only for the owner that
#                  entered it.
#   inherited      said of an explicit unit that is open in the context of another owner: contexts
#                  are copied for child tasks, asyncio.to_thread() and some executors.
#   implicit unit  of an owner, begun by its first call with syncpoint=True. It stands in
#                  Attachment.implicit, weakly keyed by its owner: when the owner is gone the unit
#                  is collected, which backs it out.
#   held unit      what unit() makes: of no owner and in no context; it belongs to whoever holds it.
#   passed         said of a held or explicit unit that a call names by its argument `unit`, in
#                  whatever thread or task.
#
# Invariants
#   1. `open_transactions` counts the explicit units of the process whose blocks have not been left:
#      while there is none, a put or get does not read the context variable.
#   2. An owner has one unit of work of a connection at a time, besides held ones.
#   3. No call in the block of an explicit unit is silently outside: with an inherited unit, or
#      after the end of the own one, it raises, unless it says syncpoint=False, is passed a unit, or
#      the owner has entered a unit of its own within.
#   4. A call has its unit from bind_unit(), behind the conversion of its arguments but the body, to
#      unbind_unit(): its turn (client/unit.pyx). Later changes of the context do not concern it.
#
# Locks. With the GIL; new_unit() releases it when the core blocks.
#
# Errors. 2128 for a second unit, 2219 for a second call with a unit, 2255 as in invariant 3 and for
# a unit of another connection, 2046 for a syncpoint that is no truth value and a unit that is none.

cdef object innermost = PyContextVar_New("penstock unit of work", NULL)
cdef int open_transactions = 0
cdef object asyncio_events = None  # the module, once the program has loaded it
cdef str THREAD_KEY = "penstock owner"


cdef class ThreadOwner:
    """Stands for a thread: an object in the dictionary of its state, which ends with the thread."""


cdef object current_owner():
    """The asyncio task that runs, else the object that stands for this thread."""
    global asyncio_events
    if asyncio_events is None:
        asyncio_events = sys.modules.get("asyncio.events")
    if asyncio_events is not None:
        loop = asyncio_events._get_running_loop()
        if loop is not None:
            import asyncio

            task = asyncio.current_task(loop)
            if task is not None:
                return task
    return thread_owner()


cdef object thread_owner():
    """The object that stands for this thread, whatever task runs in it."""
    cdef dict state = <dict>PyThreadState_GetDict()
    cdef PyObject *found = PyDict_GetItem(state, THREAD_KEY)
    if found is not NULL:
        return <object>found
    owner = ThreadOwner.__new__(ThreadOwner)
    PyDict_SetItem(state, THREAD_KEY, owner)
    return owner


cdef Unit explicit_unit(Attachment connection, bint outside=False):
    """The explicit unit of this thread or task, None when there is none. Raises 2255 inside the
    block of one that the call cannot belong to (invariant 3); `outside`: an inherited one is passed
    over.
    """
    cdef Unit unit
    if open_transactions == 0:
        return None
    unit = context_value(innermost)
    if unit is None:
        return None
    cdef object owner = current_owner()
    while unit is not None:
        if unit.connection is connection:
            if unit.owner is owner:
                if unit.state != UNIT_OPEN:
                    raise_ended_within(connection)
                return unit
            if unit.state in (UNIT_OPEN, UNIT_ENDING) and not outside:
                raise_inherited(connection)
        unit = unit.outer
    return None


cdef int raise_ended_within(Attachment connection) except -1:
    raise error_for(
        RC_UOW_NOT_AVAILABLE,
        f"queue manager {connection.name}: the transaction() around this call has been ended by "
        f"another thread: leave its block first",
    )


cdef int raise_inherited(Attachment connection) except -1:
    raise error_for(
        RC_UOW_NOT_AVAILABLE,
        f"queue manager {connection.name}: this call is inside the block of a transaction() that "
        f"another thread or task has entered, whose unit of work is that one's alone. Call it "
        f"there (await the coroutine itself instead of a task), enter a transaction() here, pass "
        f"the unit to the call on purpose (unit=...), or say syncpoint=False for a call outside "
        f"of any unit of work",
    )


cdef Unit bind_unit(Attachment connection, object syncpoint, object unit):
    """The unit that a call with this `syncpoint` belongs to, or the one that it was passed, with
    the call in its turn; None for none.
    """
    cdef Unit bound
    if syncpoint is not None and not isinstance(syncpoint, bool):
        wrong_type(RC_OPTIONS_ERROR, f"syncpoint must be True, False or None: {syncpoint!r}")
    if unit is not None:
        return bind_passed(connection, syncpoint, unit)
    bound = choose_unit(connection, syncpoint)
    if bound is not None:
        bound.begin_turn(True)
    return bound


cdef Unit bind_passed(Attachment connection, object syncpoint, object unit):
    """bind_unit() for a unit that was passed."""
    cdef Unit bound
    if not isinstance(unit, Unit):
        wrong_type(
            RC_OPTIONS_ERROR, f"unit must be what unit() or transaction() has made: {unit!r}"
        )
    if syncpoint is False:
        wrong_value(RC_OPTIONS_ERROR, "unit goes without syncpoint=False")
    bound = <Unit>unit
    bound.begin_turn(False)
    try:
        if bound.connection is not connection:
            raise error_for(
                RC_UOW_NOT_AVAILABLE,
                f"the unit of work was made by another connection, to queue manager "
                f"{bound.connection.name}: it takes calls of that one",
            )
        bound.back()
    except BaseException:
        bound.turns -= 1
        raise
    return bound


cdef inline void unbind_unit(Unit bound) noexcept:
    """Ends the turn of a call with the unit that bind_unit() gave."""
    if bound is not None:
        bound.turns -= 1


cdef Unit choose_unit(Attachment connection, object syncpoint):
    """The unit that a call with this `syncpoint` belongs to, None for none."""
    cdef Unit unit
    if syncpoint is False:
        return None
    unit = explicit_unit(connection)
    if unit is None and syncpoint is True:
        unit = implicit_unit(connection)
    return unit


cdef Unit implicit_unit(Attachment connection):
    """The implicit unit of this thread or task, made when there is none."""
    cdef object owner = current_owner()
    cdef Unit unit = connection.implicit.get(owner)
    if unit is None:
        unit = new_call_unit()
        connection.implicit[owner] = unit  # first: a finalizer may come here meanwhile
        try:
            unit.start(connection)
        except BaseException:
            connection.implicit.pop(owner, None)
            raise
    return unit


cdef Unit new_call_unit():
    """A unit that no block has: to be started."""
    cdef Unit unit = Unit.__new__(Unit)
    unit.forks = penstock_forks
    return unit


cdef int check_no_unit(Attachment connection) except -1:
    """Raises when this thread or task has a unit of work (invariant 2)."""
    cdef Unit unit
    if explicit_unit(connection, True) is not None:
        raise error_for(
            RC_UOW_IN_PROGRESS, "this thread or task is inside a transaction() already"
        )
    unit = connection.implicit.get(current_owner())
    if unit is not None and unit.count != 0:
        raise error_for(
            RC_UOW_IN_PROGRESS,
            "this thread or task has an implicit unit of work: commit() or backout() first",
        )
    return 0


cdef mqe_unit *new_unit(Attachment connection) except NULL:
    """An empty unit: the spare of this thread, else one of the core."""
    cdef penstock_gil gil
    cdef object owner = thread_owner()
    cdef mqe_unit *unit
    cdef int reason
    connection.begin()
    unit = connection.spare
    if unit is not NULL and connection.spare_owner is owner:
        connection.spare = NULL
        connection.busy -= 1
        return unit
    penstock_gil_arm(&gil)
    reason = mqe_unit_new(connection.manager, &unit)
    penstock_gil_take(&gil)
    connection.busy -= 1
    if reason:
        fail(reason, f"queue manager {connection.name}")
    return unit


cdef int recycle_unit(Attachment connection, mqe_unit *unit, bint whole) except -1:
    """Keeps an ended unit as the spare of this thread, or frees it; `whole`: its end succeeded."""
    if whole and connection.spare is NULL and not connection.closed:
        connection.spare = unit
        connection.spare_owner = thread_owner()
    else:
        mqe_unit_free(unit)
    return 0
