# unit_group.pyx - several units of work that are committed together, with one flush.
#
# Terms: client/unit.pyx.
#
# Invariants
#   1. Each unit has the outcome that Unit.end_for_task(True) would have given it, in their order.
#   2. A unit that does not take part, because it is empty, in another call or not open, ends by
#      that method, when the ones before it have ended.
#
# Locks. With the GIL; released when the core blocks (gil.h).
#
# Errors. Those of a commit, given back instead of raised.


def commit_together(list units not None):
    """What Unit.end_for_task(True) raised for each of the units, None where it is committed. For
    the package's own threads: no signal handler runs in them.
    """
    cdef list outcomes = []
    while len(outcomes) < len(units):
        if not commit_some(units, outcomes):
            outcomes.append(commit_alone(units[len(outcomes)]))
    return outcomes


cdef object commit_alone(Unit unit):
    try:
        unit.end_for_task(True)
    except BaseException as error:
        return error
    return None


cdef bint takes_part(Unit unit):
    return (
        unit.state == UNIT_OPEN
        and unit.unit is not NULL
        and unit.turns == 0
        and unit.forks == penstock_forks
        and not unit.failed
    )


cdef bint commit_some(list units, list outcomes) except -1:
    """Commits units from the first one on that has no outcome yet; False: not even that one."""
    cdef mqe_unit *raw[COMMITTED_TOGETHER]
    cdef penstock_gil gil
    cdef uint32_t done = 0, count = 0
    cdef Py_ssize_t first = len(outcomes)
    cdef Unit unit
    cdef int reason
    for unit in units[first : first + COMMITTED_TOGETHER]:
        if not takes_part(unit) or unit.connection is not (<Unit>units[first]).connection:
            break
        unit.begin_turn(False)
        unit.busy += 1
        raw[count] = unit.unit
        count += 1
    if count == 0:
        return False
    penstock_gil_arm_call(&gil, False)
    reason = mqe_commit_many(raw, count, &done)
    penstock_gil_take_call(&gil)
    error = None
    if reason != 0 and reason != MQE_INTERRUPTED:
        error = error_of(reason)
    for unit in units[first : first + count]:
        unit.busy -= 1
    for unit in units[first : first + done]:
        end_turn(unit)
        outcomes.append(None)
    if error is not None and done < count:
        end_turn(units[first + done])
        outcomes.append(error)
        done += 1
    for unit in units[first + done : first + count]:  # as they were
        unit.turns -= 1
    return True


cdef object error_of(int reason):
    try:
        fail(reason)
    except BaseException as error:
        return error


cdef int end_turn(Unit unit) except -1:
    """Its work is committed, or its commit has failed."""
    try:
        if unit.held:
            unit.end_held(False)
    finally:
        unit.turns -= 1
    return 0
