# get.pyx - one get: its arguments, the memory for the body, the wait, and the call of the core.
#
# Terms
#   hint  what QueueHandle expects as the size of a body; a longer one is fetched by a second call.
#
# Invariants
#   1. Between the removal of a message by the core and the end of receive() nothing can fail and no
#      Python code runs: message object and body are allocated before (crash-safety rule 34).
#   2. A wait is cut into slices of a second; between two of them signal handlers run, and a closed
#      handle or an ended unit of work is noticed. Then no message has been removed.
#   3. A get into at most LONG_COPY bytes keeps the GIL until the core blocks.
#
# Locks. `busy` of the handle counts each call of the core, not the wait between two.
#
# Errors. 2033 for no message, 2080 for one longer than max_length, 2046 and 2005 for arguments;
# then what the core says.


cdef object receive(
    QueueHandle queue, Unit unit, mqe_get_t *get, get_request *request, object default
):
    """Waits for a message, removes and returns it; `default` instead of 2033 unless that is
    NO_DEFAULT. No message has been removed when it raises.
    """
    cdef Message message = Message.__new__(Message)
    cdef PyObject *room = NULL
    cdef Py_ssize_t capacity = 0
    cdef int reason = get_body(queue, unit, get, request, &room, &capacity)
    if reason == RC_TRUNCATED_MSG_FAILED:
        Py_DECREF(room)
    if reason == RC_NO_MSG_AVAILABLE and default is not NO_DEFAULT:
        mqx_error_clear()
        return default
    if reason == MQE_LISTED:
        return LISTED
    if reason and reason != RC_TRUNCATED_MSG_ACCEPTED:
        raise_no_message(queue, reason, get, request.wait_us != 0)
    message.reason = reason
    message.length = get.length
    message.number = get.number
    message._expiry = get.expiry
    memcpy(&message._d, &get.d, sizeof(get.d))
    if get.d.has_ext:
        message._ext = extension_bytes(&get.ext)
    adjust_hint(queue, <Py_ssize_t>get.length)
    message._data = trim_body(room, capacity, min(capacity, <Py_ssize_t>get.length))
    return message


cdef inline int get_body(
    QueueHandle queue, Unit unit, mqe_get_t *get, get_request *request, PyObject **out,
    Py_ssize_t *out_capacity,
) except -1:
    """Gets into a new bytes object, waiting as the request says; returns the reason code. With 0,
    2079 and 2080 the object is the caller's (*out).
    """
    cdef penstock_gil gil
    cdef mqe_unit *core
    cdef Py_ssize_t capacity = request.limit if request.limit >= 0 else queue.hint
    cdef PyObject *room = NULL
    cdef int64_t deadline = -1
    cdef int reason
    if penstock_is_at_once():
        capacity = min(capacity, AT_ONCE_COPY)
    room = new_body(capacity)
    if get.flags & MQE_GET_UNLOCK:  # returns no message: the outputs are those of none
        memset(&get.d, 0, sizeof(get.d))
        get.length = get.number = 0
        get.expiry = MQEI_UNLIMITED
    if request.wait_us != 0:
        start_slice(get, request.wait_us)
    while True:
        get.buffer = PyBytes_AS_STRING(<object>room)
        get.capacity = <uint64_t>capacity
        if not can_begin(queue, unit):
            Py_DECREF(room)
            raise_unusable(queue, unit)
        core = core_unit(unit)
        penstock_gil_arm_call(&gil, capacity > LONG_COPY)
        reason = mqe_get(queue.connection.manager, core, queue.queue, get)
        penstock_gil_take_call(&gil)
        end_call(queue, unit)
        if reason == 0 or reason == RC_TRUNCATED_MSG_ACCEPTED:
            break
        if reason == RC_TRUNCATED_MSG_FAILED:
            if request.limit >= 0 or get.length > MAX_BODY:
                break
            Py_DECREF(room)
            capacity = <Py_ssize_t>get.length
            if capacity > AT_ONCE_COPY and penstock_is_at_once():
                raise_would_block()
            room = new_body(capacity)
            continue
        if reason == MQE_CONFIRM or reason == MQE_EXPIRED:
            reason = get_with_report(queue, unit, get, room, reason)
            if reason == 0 or reason == RC_TRUNCATED_MSG_ACCEPTED:
                break
            if reason == RC_NO_MSG_AVAILABLE or reason == RC_NO_MSG_UNDER_CURSOR:
                continue
        if reason != MQE_INTERRUPTED and (
            reason != RC_NO_MSG_AVAILABLE or request.wait_us == 0
        ):
            Py_DECREF(room)
            return reason
        try:
            if prepare_wait(queue, get, request, &deadline):
                continue
        except BaseException:
            Py_DECREF(room)
            raise
        Py_DECREF(room)
        return RC_NO_MSG_AVAILABLE
    out[0] = room
    out_capacity[0] = capacity
    return reason


cdef inline void adjust_hint(QueueHandle queue, Py_ssize_t length) noexcept:
    """Expects bodies of the size seen; larger ones at once, smaller ones slowly."""
    if length >= queue.hint:
        queue.hint = length
    else:
        queue.hint -= (queue.hint - length) >> HINT_SHIFT


cdef inline void start_slice(mqe_get_t *get, int64_t left) noexcept:
    """The next call waits: for what is left of the wait, but no longer than a slice."""
    get.flags |= MQE_GET_WAIT
    get.wait_us = WAIT_SLICE_US if left == MQWI_UNLIMITED else min(left, WAIT_SLICE_US)


cdef bint prepare_wait(
    QueueHandle queue, mqe_get_t *get, get_request *request, int64_t *deadline
) except -1:
    """Prepares another slice of a wait; False when its time is up. Signal handlers run here, where
    no message has been removed; what they raise ends the wait.
    """
    cdef int64_t left = MQWI_UNLIMITED
    if request.wait_us == 0:  # it waited for a lock
        look_at_signals()
        if queue.closed:
            queue.raise_closed()
        return True
    if request.wait_us != MQWI_UNLIMITED and deadline[0] < 0:  # after the first slice
        left = request.wait_us - min(request.wait_us, WAIT_SLICE_US) + max(get.wait_us, 0)
        deadline[0] = penstock_now_us() + left
    PyErr_CheckSignals()
    if mqe_trigger_version(queue.connection.manager) and not queue.closed:
        input_waits(queue.connection, from_blank_padded(queue.resolved, NAME_LENGTH))
    if not queue.closed:
        report_hinted(queue.connection)
        take_events(queue.connection)
    if request.wait_us != MQWI_UNLIMITED:
        left = deadline[0] - penstock_now_us()
        if left <= 0:
            return False
    start_slice(get, left)
    return True


cdef int raise_no_message(
    QueueHandle queue, int reason, mqe_get_t *get, bint waited
) except -1:
    """Raises the exception of a get that has removed nothing."""
    if reason == RC_NO_MSG_AVAILABLE:
        mqx_error_clear()
        what = "matching message" if get.match else "message"
        text = f"queue {queue.name} has no {what} available"
        if waited:
            raise WaitTimedOut(reason, text + ", and the wait is over")
        raise error_for(reason, text)
    if reason == RC_TRUNCATED_MSG_FAILED:
        mqx_error_clear()
        raise error_for(
            reason,
            f"queue {queue.name}: the message has {get.length} bytes, "
            f"max_length is {get.capacity}; it stays on the queue",
            length=get.length,
        )
    fail(reason, f"queue {queue.name}")


cdef Py_ssize_t take_limit(object value) except -1:
    """max_length: bytes."""
    cdef int overflow = 0
    cdef long long number
    if isinstance(value, bool) or not isinstance(value, int):
        wrong_type(
            RC_BUFFER_LENGTH_ERROR,
            f"max_length must be an integer, not {type(value).__name__}: {value!r}",
        )
    number = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow or not 0 <= number <= MAX_BODY:
        wrong_value(RC_BUFFER_LENGTH_ERROR, f"max_length {value!r} is not 0 to {MAX_BODY}")
    return <Py_ssize_t>number


cdef uint32_t cursor_flags(
    object browse, bint under_cursor, bint lock, bint unlock, bint in_unit
) except? 0:
    """MQE_GET_* of browsing and its lock; 2046 for arguments that exclude each other."""
    cdef uint32_t flags = 0
    if (browse is not None or unlock) and in_unit:
        wrong_value(RC_OPTIONS_ERROR, "browse and unlock go without syncpoint=True and unit")
    if (browse is not None) + under_cursor + unlock > 1:
        wrong_value(RC_OPTIONS_ERROR, "browse, under_cursor and unlock exclude each other")
    if lock and browse is None:
        wrong_value(RC_OPTIONS_ERROR, "lock needs browse")
    if browse == "first":
        flags = MQE_GET_BROWSE_FIRST
    elif browse == "next":
        flags = MQE_GET_BROWSE_NEXT
    elif browse == "cursor":
        flags = MQE_GET_BROWSE_UNDER_CURSOR
    elif browse is not None:
        wrong_value(RC_OPTIONS_ERROR, f"browse must be 'first', 'next' or 'cursor': {browse!r}")
    if lock:
        flags |= MQE_GET_LOCK
    if under_cursor:
        flags |= MQE_GET_UNDER_CURSOR
    if unlock:
        flags |= MQE_GET_UNLOCK
    return flags
