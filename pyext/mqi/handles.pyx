# handles.pyx - connection and object handles of the MQI.
#
# Terms
#   Hconn  a connection handle: a connection, one unit of work, the handles opened with it.
#   Hobj   an object handle. A number until MQCLOSE, -1 (MQHO_UNUSABLE_HOBJ) after it.
#   plan   what a set of options means; made once and kept while an Hobj sees the same options.
#
# Invariants
#   1. A handle that is open is registered in its Hconn by its number, so that MQPMO.Context can
#      name it.
#   2. One call at a time has the unit of work of an Hconn: `unit_taken` is set before anything that
#      may let another thread run.
#
# Threads. Any thread may use a handle. Calls that belong to the unit of work of an Hconn wait for
# each other; with MQCNO_HANDLE_SHARE_NO_BLOCK they get 2219 (MQRC_CALL_IN_PROGRESS).


cdef class Hconn:
    """A connection handle, from MQCONN or MQCONNX. Opaque to programs; equal to -1
    (MQHC_UNUSABLE_HCONN) after MQDISC. ``error`` is the text of its newest failure: the value, the
    rule.
    """

    def __cinit__(self, Connection qm not None, int sharing=0):
        self.qm = qm
        self.zos = qm.zos
        self.sharing = sharing
        self.handles = {}
        self.put1.options = -1
        self.put1_queues = {}
        self.error = ""

    def __eq__(self, other):
        if isinstance(other, int):
            return self.__int__() == other
        return self is other

    def __hash__(self):
        return <Py_ssize_t><void *>self >> 4

    def __int__(self):
        return -1 if self.qm.closed else <Py_ssize_t><void *>self >> 4 & 0x7FFFFFFF

    def __repr__(self):
        return f"<Hconn {self.qm.name}{', unusable' if self.qm.closed else ''}>"

    def enter(self, Hobj hobj not None):
        """Gives an open handle its number."""
        self.next_number += 1
        hobj.number = self.next_number
        self.handles[self.next_number] = hobj
        return hobj

    def count_async(self, int reason, QueueHandle queue):
        """Counts an asynchronous put for MQSTAT. The first one that failed is kept, until then the
        first one with a warning. ``queue``: None for a destination that was not opened.
        """
        cdef int comp_code = mqe_comp_code(reason) if reason else MQCC_OK
        self.async_counts[comp_code] += 1
        if comp_code > (MQCC_OK if self.async_worst is None else <int>self.async_worst[0]):
            self.async_worst = (comp_code, reason) + async_names(queue)

    def take_async(self):
        """Numbers of asynchronous puts that ended well, with a warning, and failed, and the worst
        of them, for MQSTAT; they are counted from 0 again.
        """
        cdef object counts = (self.async_counts[0], self.async_counts[1], self.async_counts[2])
        cdef object worst = self.async_worst
        memset(self.async_counts, 0, sizeof(self.async_counts))
        self.async_worst = None
        return counts, worst

    def pending(self):
        """Messages put and got in the unit of work."""
        return 0 if self.unit is None else self.unit.count

    def refuse(self, int reason, str text="", bint fail_if_quiescing=False):
        """Keeps the text of a failure; returns completion and reason code. What the connection says
        (2009, 2161, 2162) goes before anything that is wrong with a call.
        """
        if mqe_comp_code(reason) == 2:
            return refuse_call(self, fail_if_quiescing, reason, text, None)
        return failed(self, reason, text)

    cdef Unit acquire_unit(self, int *reason):
        """The unit of work for one call, until release_unit(); None with *reason: 2219 when it is
        in use and may not block, or when the call that has it is one of this thread (which a signal
        handler has interrupted), 2018 for a connection that was closed.
        """
        reason[0] = 0
        while self.unit_taken:
            if self.sharing & MQCNO_HANDLE_SHARE_NO_BLOCK or (
                self.taker == PyThread_get_thread_ident()
            ):
                reason[0] = RC_CALL_IN_PROGRESS
                return None
            with nogil:
                penstock_pause()
            PyErr_CheckSignals()
        if self.qm.closed:          # while this call waited
            reason[0] = RC_HCONN_ERROR
            return None
        self.unit_taken = True      # before what may let another thread run (invariant 2)
        self.taker = PyThread_get_thread_ident()
        if self.unit is None or self.unit.state != UNIT_OPEN:
            try:
                self.unit = new_call_unit()
                self.unit.start(self.qm)
            except BaseException:
                self.unit_taken = False
                raise
        return self.unit

    cdef void release_unit(self, Unit unit) noexcept:
        if unit is not None:
            self.unit_taken = False

    def end_unit(self, bint commit):
        """MQCMIT and MQBACK: the reason code."""
        cdef Unit unit
        cdef int reason = 0
        self.begun = False
        if self.unit is None:
            return 0
        unit = self.acquire_unit(&reason)
        if reason == 0:
            reason = unit.complete(commit)
            self.release_unit(unit)
        return reason


cdef tuple async_names(QueueHandle queue):
    """The name that was opened, its queue manager, and both as resolved."""
    cdef bytes names
    if queue is None:
        return "", "", "", ""
    names = queue.resolved[:TWO_NAMES_LENGTH]
    return (
        queue.name, queue.connection.name, names[:NAME_LENGTH].decode().rstrip(" "),
        names[NAME_LENGTH:].decode().rstrip(" "),
    )


cdef class Hobj:
    """An object handle, from MQOPEN: ``int(hobj)`` is its number, -1 (MQHO_UNUSABLE_HOBJ) after
    MQCLOSE.
    """

    def __cinit__(self, Hconn hconn not None, uint32_t options, QueueHandle queue=None):
        self.hconn = hconn
        self.options = with_implied(options)
        self.queue = queue
        self.number = -1
        self.put.options = -1
        self.get.options = -1

    def __int__(self):
        return self.number

    def __index__(self):
        return self.number

    def __eq__(self, other):
        if isinstance(other, int):
            return self.number == other
        return self is other

    def __hash__(self):
        return <Py_ssize_t><void *>self >> 4

    def __repr__(self):
        what = "" if self.queue is None else " " + self.queue.name
        return f"<Hobj {self.number}{what}>"

    def leave(self):
        """The handle is closed."""
        self.hconn.handles.pop(self.number, None)
        self.number = -1


cdef uint32_t with_implied(uint32_t options) noexcept:
    """SET_ALL implies the other context rights, SET_IDENTITY and PASS_ALL imply PASS_IDENTITY."""
    if options & MQOO_SET_ALL_CONTEXT:
        options |= MQOO_SET_IDENTITY_CONTEXT | MQOO_PASS_ALL_CONTEXT
    if options & (MQOO_SET_IDENTITY_CONTEXT | MQOO_PASS_ALL_CONTEXT):
        options |= MQOO_PASS_IDENTITY_CONTEXT
    return options
