# prepared.pyx - prepared units of work: how a unit becomes one, how they are listed, read and
# resolved.
#
# Terms
#   prepared unit  durable, detached from its process, in doubt until it is resolved.
#   resolve        commit it or back it out, by its Xid; needs no unit of this thread or task.
#
# The functions take a Connection; QueueManager has them as methods.
#
# Locks. Lists and resolving run without the GIL. Reading releases it for large batches.
#
# Errors. XidInUse (2128) for a second unit of that name, UnknownXid (2255) for a name that no
# prepared unit has.


cdef int fail_prepare(int reason, Xid xid) except -1:
    """Raises for a unit that could not be prepared."""
    cdef str text = core_text(reason)
    if reason == RC_UOW_IN_PROGRESS:
        raise XidInUse(reason, f"there is a prepared unit of work {xid} already")
    raise error_for(reason, f"preparing {xid}: {text}")


cdef int fail_prepared(int reason) except -1:
    """Raises for prepared units that could not be resolved or read; the text has the name."""
    cdef str text = core_text(reason)
    if reason == RC_UOW_NOT_AVAILABLE:
        raise UnknownXid(reason, text)
    raise error_for(reason, text)


def prepare(
    Connection connection not None, Xid xid not None, bint allow_empty=False, bint wait=True
):
    """Prepares the unit of work of this thread or task."""
    cdef Unit unit
    connection.check_open()
    unit = bind_unit(connection, True, None)
    try:
        unit.prepare_as(xid, allow_empty, wait)
    finally:
        unbind_unit(unit)


def prepared_rows(Connection connection not None):
    """The prepared units, oldest first, each as a dictionary."""
    cdef mqe_prepared *rows
    cdef uint32_t i, count = 0, capacity = PREPARED_ROWS
    cdef penstock_gil gil
    cdef int reason
    while True:
        rows = <mqe_prepared *>zeroed_rows(capacity, sizeof(rows[0]))
        try:
            connection.begin()
            penstock_gil_begin_call(&gil)
            reason = mqe_prepared_list(connection.manager, rows, capacity, &count)
            penstock_gil_take_call(&gil)
            connection.busy -= 1
            if is_to_repeat(reason):
                continue
            if reason:
                fail(reason, f"queue manager {connection.name}")
            if count <= capacity:
                return [prepared_row(&rows[i]) for i in range(count)]
        finally:
            PyMem_Free(rows)
        capacity = count + PREPARED_ROWS


cdef dict prepared_row(const mqe_prepared *row):
    return {
        "xid": xid_of(&row.xid), "unit_id": row.unit_id, "prepared_us": row.prepared_us,
        "puts": row.puts, "gets": row.gets, "nonpersistent": row.nonpersistent, "bytes": row.bytes,
    }


def commit_prepared(Connection connection not None, tuple xids not None):
    """Commits prepared units, all or none."""
    resolve_prepared(connection, xids, True)


def backout_prepared(Connection connection not None, tuple xids not None):
    """Backs prepared units out, all or none; returns the non-persistent messages discarded."""
    return resolve_prepared(connection, xids, False)


cdef uint64_t resolve_prepared(Connection connection, tuple xids, bint commit) except? 0xFFFF:
    """Resolves the units of 1 to MQE_PREPARED_MAX names in one atomic step."""
    cdef uint32_t i, count
    cdef uint64_t discarded = 0
    cdef ps_xid *names
    cdef penstock_gil gil
    cdef int reason
    if not 0 < len(xids) <= MQE_PREPARED_MAX:
        wrong_value(
            RC_OPTIONS_ERROR, f"{len(xids)} names of prepared units: 1 to {MQE_PREPARED_MAX}"
        )
    count = <uint32_t>len(xids)
    names = <ps_xid *>zeroed_rows(count, sizeof(names[0]))
    try:
        for i in range(count):
            if not isinstance(xids[i], Xid):
                wrong_type(RC_OPTIONS_ERROR, f"not an Xid: {xids[i]!r}")
            names[i] = (<Xid>xids[i]).raw
        while True:
            connection.begin()
            penstock_gil_begin_call(&gil)
            if commit:
                reason = mqe_commit_prepared(connection.manager, names, count)
            else:
                reason = mqe_backout_prepared(connection.manager, names, count, &discarded)
            penstock_gil_take_call(&gil)
            connection.busy -= 1
            if not is_to_repeat(reason):
                break
    finally:
        PyMem_Free(names)
    if reason:
        fail_prepared(reason)
    return discarded


PREPARED_CURSOR = sizeof(mqe_prepared_cursor)


def prepared_read(
    Connection connection not None, Xid xid not None, bytearray cursor not None, rows, bodies,
    offsets,
):
    """Copies messages of a prepared unit into the memory given (see batch_get()), as many as fit,
    from the cursor on, which moves. Returns (messages, bytes the next one needs): (0, 0) at the
    end, (0, n) when the first needs n bytes.
    """
    cdef batch_buffers buffers
    cdef mqe_batch batch
    cdef mqe_prepared_cursor at
    cdef penstock_gil gil
    cdef int reason
    if len(cursor) != sizeof(at):
        wrong_value(RC_BUFFER_LENGTH_ERROR, f"a cursor has {sizeof(at)} bytes, not {len(cursor)}")
    memcpy(&at, <char *>cursor, sizeof(at))
    try:
        acquire_buffers(&buffers, &batch, rows, bodies, offsets, True)
        while True:
            connection.begin()
            begin_batch_call(&gil, &batch)
            reason = mqe_browse_prepared(connection.manager, &xid.raw, &at, &batch)
            penstock_gil_take_call(&gil)
            connection.busy -= 1
            if not is_to_repeat(reason):
                break
    finally:
        release_buffers(&buffers)
    if reason and reason != RC_TRUNCATED_MSG_FAILED:
        fail_prepared(reason)
    mqx_error_clear()
    if len(cursor) != sizeof(at):
        wrong_value(RC_BUFFER_LENGTH_ERROR, "the cursor was resized during the call")
    memcpy(<char *>cursor, &at, sizeof(at))
    return batch.count, batch.needed if reason else 0
