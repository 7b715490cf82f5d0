# verbs.pxi - put, get, close, commit and backout as functions with positional arguments and MQ's
# own values, for faces that are built on the engine. They raise like the methods do.


def mqput(QueueHandle queue not None, data, int priority=-1, int persistence=2, bytes msg_id=b"",
          bytes correl_id=b"", int expiry=-1, bint syncpoint=False):
    """Puts one message: priority -1 and persistence 2 = the queue's defaults, expiry in tenths of a
    second, -1 = unlimited. Returns its PutResult.
    """
    cdef double seconds = expiry / 10.0
    return queue.put(
        data, priority, persistence, msg_id, correl_id, None if expiry == -1 else seconds, syncpoint
    )


def mqput1(Connection connection not None, str name not None, data, int priority=-1,
           int persistence=2, bytes msg_id=b"", bytes correl_id=b"", int expiry=-1,
           bint syncpoint=False):
    """Opens the queue of that name for output, puts one message and closes it."""
    cdef QueueHandle queue = QueueHandle(connection, name, MQE_OUTPUT)
    try:
        return mqput(queue, data, priority, persistence, msg_id, correl_id, expiry, syncpoint)
    finally:
        queue.shut()


def mqget(QueueHandle queue not None, int wait_ms=0, bytes msg_id=b"", bytes correl_id=b"",
          bint syncpoint=False, int max_length=-1):
    """Takes the first message that matches (an identifier of NULs matches any); waits wait_ms
    milliseconds, -1 = for ever; max_length -1 = any. Returns the Message.
    """
    if wait_ms < -1:
        wrong_value(RC_WAIT_INTERVAL_ERROR, f"wait interval {wait_ms} is negative and not -1")
    return queue.get(
        None if wait_ms == -1 else wait_ms / 1000.0, msg_id or None, correl_id or None, syncpoint,
        max_length=None if max_length == -1 else max_length,
    )


def mqclose(QueueHandle queue not None, int options=0):
    """Closes a handle: options 0; 1 (delete) and 2 (delete and purge) are refused with 2045 for
    predefined queues, which stay open.
    """
    if options not in (0, 1, 2):
        wrong_value(RC_OPTIONS_ERROR, f"close options {options} are not 0, 1 or 2")
    if queue.closed:
        queue.refuse()
    if options:
        raise error_for(
            RC_OPTION_NOT_VALID_FOR_TYPE,
            f"queue {queue.name} is a predefined queue: a handle can close it, not delete it",
        )
    queue.shut()


def mqcmit(Connection connection not None):
    """Commits the unit of work of this thread or task."""
    connection.complete(True)


def mqback(Connection connection not None):
    """Backs out the unit of work of this thread or task."""
    connection.complete(False)
