# async_call.pyx - calls of penstock.asyncio: what is done at once, on the thread of the event loop,
# and what is left to the package's coroutines.
#
# Terms
#   at once   a call of the core that neither waits nor flushes: it ends with MQE_INTERRUPTED where
#             it would (mqe_interrupt_at_once). WouldBlock says so here.
#   channel   the descriptor that tells an event loop which of its gets were picked
#             (queue/wake_channel.h).
#   waiting   one get that may be on the wait list of its queue. Passed to get() as `wait`, it makes
#             that list the get instead of sleeping; the result is then LISTED.
#   runner    the object of penstock.asyncio that carries out calls which are not done at once.
#   bound     said of a call's arguments and unit of work: taken when the call is made, whenever and
#             in whatever task it is awaited.
#
# Invariants
#   1. Nothing is put or got before the first step of the awaitable: one that is dropped has done
#      nothing.
#   2. The first step of a call with a unit of work for which another call waits goes behind that
#      one (Unit.line).
#   3. A channel ends its waits before it is freed, and is freed before its connection detaches.
#
# Locks. With the GIL; at-once calls may release it while they copy (gil.h).
#
# Errors. As of the calls that are made; 2012 in a forked child.

cdef object WouldBlock = type("WouldBlock", (BaseException,), {})  # never seen by a program
cdef object LISTED = object()   # the get waits
cdef object NOTHING = object()  # of a get that is to wait: there is no message at present
cdef int owed_cancellations = 0  # tasks whose cancellation came when a call had its effect already
cdef object raise_owed = None    # of penstock.asyncio: raises it, when it is owed to this task


cdef int raise_would_block() except -1:
    mqe_interrupt_allow(0)
    raise WouldBlock


def async_marks():
    """Results of attempts that are none: listed, nothing; and what attempt_at_once() raises."""
    return LISTED, NOTHING, WouldBlock


cdef int take_wait_or_list(object wait, mqe_get_t *get, get_request *request) except -1:
    """get()'s `wait`: seconds, or a Waiting, which has the get listed instead."""
    if type(wait) is not Waiting:
        return take_wait(wait, &request.wait_us)
    (<Waiting>wait).arm()
    get.wait = &(<Waiting>wait).raw
    get.flags |= MQE_GET_LISTED
    return 0


def set_owed_cancellations(int count, object check):
    """How many tasks are owed a cancellation, and what raises it in the first step of a call."""
    global owed_cancellations, raise_owed
    owed_cancellations = count
    raise_owed = check


# ---- channels and waits ----


@cython.no_gc_clear
cdef class Channel:
    """Where wake-ups of waits arrive: ``fileno()`` is readable then. One for each event loop."""

    def __cinit__(self, Connection connection not None):
        cdef int reason
        connection.begin()
        reason = mqe_channel_new(connection.manager, &self.channel)
        connection.busy -= 1
        self.connection = connection
        self.forks = penstock_forks
        if reason:
            self.channel = NULL
            fail(reason, f"queue manager {connection.name}")
        if connection.channels is None:
            connection.channels = WeakSet()
        connection.channels.add(self)

    def fileno(self):
        """The descriptor, for a selector; it is not to be read."""
        if self.channel is NULL or self.forks != penstock_forks:
            self.connection.check_open()
            raise ClosedHandle(RC_HCONN_ERROR, "the channel is closed")
        return mqe_channel_fd(self.channel)

    def picked(self, bint every=False):
        """The waits that were picked since they were last called; with `every` also those whose
        waker died meanwhile.
        """
        cdef mqe_wait *found[PICKED_ROWS]
        cdef uint32_t i, count
        cdef list result = []
        while self.channel is not NULL and self.forks == penstock_forks:
            count = mqe_channel_picked(self.channel, every, found, PICKED_ROWS)
            for i in range(count):
                result.append(<object>found[i].owner)
            if count < PICKED_ROWS:
                break
            every = True
        return result

    def close(self):
        """Ends its waits, and closes the descriptor; nothing when it is closed."""
        cdef mqe_channel *channel = self.channel
        self.channel = NULL
        if channel is not NULL and self.forks == penstock_forks:
            mqe_channel_free(channel)

    def __dealloc__(self):
        if self.channel is not NULL and self.forks == penstock_forks:
            mqe_channel_free(self.channel)


@cython.no_gc_clear
cdef class Waiting:
    """One get that may be listed; for get() as `wait`. Ended with its object."""

    def __cinit__(self, Channel channel not None):
        memset(&self.raw, 0, sizeof(self.raw))
        self.channel = channel
        self.raw.owner = <void *>self

    cdef int arm(self) except -1:
        if self.channel.channel is NULL or self.channel.forks != penstock_forks:
            self.channel.fileno()
        self.raw.channel = self.channel.channel
        return 0

    @property
    def told(self):
        """Channel.picked() has given it since its last call."""
        return self.raw.told != 0

    @property
    def due_in(self):
        """Seconds until a delayed message of the queue is due, when the get is to be made again;
        None: there is none.
        """
        cdef int64_t us = -1
        if self.raw.context != 0 and self.channel.forks == penstock_forks:
            us = mqe_wait_due_in(&self.raw)
        return None if us < 0 else us / 1e6

    def end(self):
        """Takes the get off its list; a wake-up that it had is handed on."""
        if self.raw.context != 0 and self.channel.forks == penstock_forks:
            mqe_wait_end(&self.raw)

    def __dealloc__(self):
        if self.raw.context != 0 and self.channel.forks == penstock_forks:
            mqe_wait_end(&self.raw)


# ---- calls ----


cdef class AsyncQueueHandle:
    """The part of penstock.asyncio.Queue that makes calls."""

    def __cinit__(self, QueueHandle handle not None, object runner):
        self.handle = handle
        self.runner = runner

    def put(self, data=..., *args, **kwargs):
        """QueueHandle.put() as an awaitable."""
        cdef AsyncCall call = new_call(self.runner, self.handle, "put", kwargs)
        call.is_put = True
        if data is not ...:
            if type(data) is not bytes and not isinstance(data, str):
                data = bytes_of(data)
            call.long = len(data) > AT_ONCE_COPY
        call.args = (data, *args)
        bind_call(call, self.handle.connection, 5)
        call.plain = not args and is_only(kwargs, "persistent")
        if kwargs:
            call.persistent = kwargs.get("persistent")
        return call

    def get(self, wait=0, *args, **kwargs):
        """QueueHandle.get() as an awaitable."""
        cdef AsyncCall call = new_call(self.runner, self.handle, "get", kwargs)
        call.is_get = True
        call.args = args
        if wait is not ZERO:
            take_wait(wait, &call.wait_us)
            call.default = kwargs.get("default", NO_DEFAULT)
            if call.wait_us != 0:
                call.kwargs["default"] = NOTHING
        if kwargs:
            limit = kwargs.get("max_length")
            call.long = type(limit) is int and limit > AT_ONCE_COPY
        bind_call(call, self.handle.connection, 2)
        call.plain = not args and is_only(kwargs, "default")
        return call


cdef inline bint is_only(dict kwargs, str name) except -1:
    """Whether no other argument is given."""
    return not kwargs or (len(kwargs) == 1 and name in kwargs)


cdef PutResult put_plain(QueueHandle queue, Unit unit, object data, object persistent):
    """QueueHandle.put() with no other argument."""
    cdef put_request put
    if queue.closed or not queue.options & MQE_OUTPUT:
        queue.raise_not_open_for_output()
    start_put(&put, queue)
    if persistent is not None:
        take_persistence(persistent, &put.d)
    if unit is None:
        return put_body(queue, None, &put, data, ..., None)
    unit = bind_passed(queue.connection, None, unit)
    try:
        return put_body(queue, unit, &put, data, ..., None)
    finally:
        unbind_unit(unit)


cdef object get_plain(QueueHandle queue, object wait, object default):
    """QueueHandle.get() with no other argument, outside units of work."""
    cdef mqe_get_t get
    cdef get_request request
    if queue.closed:
        queue.raise_closed()
    get.flags = queue.get_flags
    get.match = 0
    get.wait_us = 0
    request.limit = -1
    request.wait_us = 0
    if wait is not ZERO:
        take_wait_or_list(wait, &get, &request)
    return receive(queue, None, &get, &request, default)


cdef bytes bytes_of(object data):
    """A copy of what may change before the call is made."""
    cdef Py_buffer view
    try:
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    except (TypeError, BufferError) as error:
        raise InvalidType(RC_BUFFER_ERROR, f"data must be bytes-like: {error}") from None
    try:
        return PyBytes_FromStringAndSize(<const char *>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


cdef AsyncCall new_call(object runner, object target, str name, dict kwargs):
    cdef AsyncCall call = AsyncCall.__new__(AsyncCall)
    call.runner = runner
    call.target = target
    call.function = name
    call.kwargs = kwargs
    return call


cdef int bind_call(AsyncCall call, Connection connection, Py_ssize_t syncpoint_at) except -1:
    """Chooses the unit of work; `syncpoint_at`: where an argument of that name may stand."""
    cdef object syncpoint = None, unit = None
    if call.kwargs:
        syncpoint = call.kwargs.pop("syncpoint", None)
        unit = call.kwargs.pop("unit", None)
    if len(call.args) > syncpoint_at:
        syncpoint = call.args[syncpoint_at]
        call.args = call.args[:syncpoint_at] + (None,) + call.args[syncpoint_at + 1:]
    if call.is_get and call.kwargs and (
        call.kwargs.get("browse") is not None or call.kwargs.get("unlock")
    ):
        if syncpoint or unit is not None:
            wrong_value(RC_OPTIONS_ERROR, "browse and unlock go without syncpoint=True and unit")
        call.outside = True
        return 0
    if unit is not None:
        unit = getattr(unit, "_unit", unit)
        if not isinstance(unit, Unit):
            wrong_type(
                RC_OPTIONS_ERROR, f"unit must be what unit() or transaction() has made: {unit!r}"
            )
        if syncpoint is False:
            wrong_value(RC_OPTIONS_ERROR, "unit goes without syncpoint=False")
        call.unit = <Unit>unit
    elif syncpoint is not None or open_transactions != 0:
        if syncpoint is not None and not isinstance(syncpoint, bool):
            wrong_type(RC_OPTIONS_ERROR, f"syncpoint must be True, False or None: {syncpoint!r}")
        call.unit = choose_unit(connection, syncpoint)
    call.outside = call.unit is None
    return 0


def batch_call(object runner, object function, QueueHandle handle not None, tuple args, dict how):
    """A call for many messages as an awaitable; `how` has its unit of work."""
    cdef AsyncCall call = new_call(runner, function, "__call__", how)
    call.args = args
    call.long = True
    bind_call(call, handle.connection, PY_SSIZE_T_MAX)
    call.is_batch = True
    return call


def unit_call(object runner, Unit unit not None, bint commit, object delay=None):
    """The end of a unit's work as an awaitable; `delay`: of a backout."""
    cdef AsyncCall call = new_call(runner, unit, "end_for_task", {})
    call.args = (commit, delay)
    call.is_commit = commit
    call.unit = unit
    return call


cdef class AsyncCall:
    """What put() and get() of penstock.asyncio return: to be awaited once. A coroutine for asyncio:
    ``create_task()``, ``wait_for()`` and ``gather()`` take it.
    """

    def __init__(self):
        raise TypeError("made by calls of penstock.asyncio only")

    cdef object make(self, object wait, object unit):
        """Makes the call; `wait`: 0, or a Waiting. `unit`: instead of its own."""
        cdef dict kwargs = self.kwargs
        if self.plain and self.is_put and (unit is not None or self.outside):
            return put_plain(self.target, unit, self.args[0], self.persistent)
        if self.plain and self.is_get and self.outside:
            return get_plain(self.target, wait, kwargs.get("default", NO_DEFAULT))
        if unit is not None or (
            self.unit is not None and (self.is_get or self.is_put or self.is_batch)
        ):
            kwargs = dict(kwargs, unit=self.unit if unit is None else unit)
        elif self.outside and open_transactions != 0:
            kwargs = dict(kwargs, syncpoint=False)
        if self.is_batch and self.outside:
            kwargs = dict(kwargs, syncpoint=False)
        if self.is_get:
            return QueueHandle.get(self.target, wait, *self.args, **kwargs)
        if self.is_put:
            return QueueHandle.put(self.target, *self.args, **kwargs)
        return getattr(self.target, self.function)(*self.args, **kwargs)

    def attempt(self, wait=ZERO, unit=None):
        """Makes the call, which may block: for the thread that flushes."""
        return self.make(wait, unit)

    def attempt_at_once(self, wait=ZERO):
        """Makes the call on the thread of the loop; raises WouldBlock."""
        global_at_once(1)
        try:
            return self.make(wait, None)
        finally:
            global_at_once(0)
            self.tell_events()

    cdef object at_once(self):
        global_at_once(1)
        try:
            return self.make(ZERO, None)
        finally:
            global_at_once(0)
            self.tell_events()

    @property
    def has_default(self):
        """Whether a get that waits in vain returns `default`."""
        return self.default is not NO_DEFAULT

    def enter_line(self):
        """Calls with the unit go behind this one from now on."""
        self.unit.line += 1

    def leave_line(self):
        self.unit.line -= 1

    cdef inline int tell_events(self) except -1:
        """Has the event messages made that the call has caused."""
        if (self.is_put or self.is_get) and may_owe_events(self.target):
            self.runner.make_reports()
        return 0

    cdef object first_step(self):
        """The outcome, or NOTHING when the coroutine carries on."""
        cdef object result
        if owed_cancellations != 0:
            raise_owed()
        self.state = CALL_DELEGATED
        if not self.long and (
            self.persistent is not True if self.unit is None else self.unit.line == 0
        ):
            try:
                result = self.at_once()
                if result is not NOTHING:
                    self.state = CALL_DONE
                    return result
            except WouldBlock:
                pass
            except BaseException:
                self.state = CALL_DONE
                raise
        self.inner = self.runner.run(self)
        return NOTHING

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):  # replaced by call_step(), as is the slot that send() has in C
        return self.send(None)

    def send(self, value):
        """A step, as of a coroutine."""
        cdef PyObject *out = NULL
        if call_step(<PyObject *>self, <PyObject *>value, &out) == PYGEN_RETURN:
            result = <object>out
            Py_DECREF(out)
            raise StopIteration(result)
        result = <object>out
        Py_DECREF(out)
        return result

    def throw(self, kind, value=None, trace=None):
        """As of a coroutine: before the first step, nothing is done."""
        if self.state == CALL_DELEGATED and self.inner is not None:
            try:
                if value is None and trace is None:
                    return self.inner.throw(kind)
                return self.inner.throw(kind, value, trace)
            except BaseException:
                self.state = CALL_DONE
                raise
        self.state = CALL_DONE
        if value is None:
            value = kind() if isinstance(kind, type) else kind
        raise value

    def close(self):
        """As of a coroutine."""
        self.state = CALL_DONE
        if self.inner is not None:
            self.inner.close()


cdef inline void global_at_once(int yes) noexcept:
    penstock_at_once_set(yes)


cdef int call_step(PyObject *self, PyObject *value, PyObject **out) except -1:
    """A step of an AsyncCall: its outcome, or what its task is to wait for."""
    cdef AsyncCall call = <AsyncCall>self
    cdef object result
    cdef int how
    if call.state == CALL_NEW:
        result = call.first_step()
        if result is not NOTHING:
            take_reference(<PyObject *>result)
            out[0] = <PyObject *>result
            return PYGEN_RETURN
    elif call.state == CALL_DONE:
        raise RuntimeError("cannot reuse already awaited call")
    try:
        how = PyIter_Send(call.inner, <object>value, out)
    except BaseException:
        call.state = CALL_DONE
        raise
    if how == PYGEN_RETURN:
        call.state = CALL_DONE
    return how
