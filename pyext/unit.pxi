# unit.pxi - units of work (crash-safety rule 49).
#
# An explicit unit is what transaction() makes: a link in the list that the context variable
# `innermost` begins, counting only for the thread or asyncio task that entered it. A context may be
# inherited by a child task or carried to another thread: there its units are found and passed over.
#
# The implicit unit of a thread or task stands in Connection.implicit, weakly keyed by its owner:
# when the owner is gone the unit is collected, which backs it out.
#
# `open_transactions` counts explicit units of the process that are open, so that a put or get
# while there is none does not even look at the context.

cdef object innermost = PyContextVar_New("penstock unit of work", NULL)
cdef int open_transactions = 0
cdef object asyncio_events = None
cdef str THREAD_KEY = "penstock owner"

cdef enum:
    UNIT_NEW = 0
    UNIT_OPEN = 1
    UNIT_ENDING = 2      # some thread is inside finish()
    UNIT_COMMITTED = 3
    UNIT_BACKED_OUT = 4


cdef class ThreadOwner:
    """Stands for a thread, lives in its state, and dies with it."""

    cdef object __weakref__


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


@cython.no_gc_clear
cdef class Unit:
    """A unit of work: what ``transaction()`` returns and ``with`` enters.

    Commits at the end of the block, backs out when an exception leaves it. Belongs to the thread or
    asyncio task that entered it.
    """

    cdef mqe_unit *unit
    cdef Connection connection
    cdef object owner           # explicit units only: an implicit one must not keep its owner alive
    cdef object token
    cdef Unit outer
    cdef int state
    cdef int busy
    cdef unsigned forks
    cdef bint explicit
    cdef object __weakref__

    def __init__(self):
        raise TypeError("made by transaction() only")

    def __dealloc__(self):
        if self.unit is not NULL and self.forks == penstock_forks:
            mqe_unit_free(self.unit)  # backs out

    @property
    def count(self):
        """Messages put and got so far."""
        return 0 if self.unit is NULL else mqe_unit_count(self.unit)

    def __enter__(self):
        global open_transactions
        if self.state != UNIT_NEW or self.unit is not NULL:
            raise error_for(RC_UOW_IN_PROGRESS, "a unit of work can be entered once only")
        self.connection.check_open()
        self.connection.refuse_second_unit()
        cdef Unit outer = context_value(innermost)
        self.owner = current_owner()
        self.unit = self.connection.new_unit()
        self.outer = outer
        self.token = PyContextVar_Set(innermost, self)
        self.state = UNIT_OPEN
        open_transactions += 1
        self.connection.units.add(self)
        return self

    def __exit__(self, kind, error, trace):
        cdef int reason = 0
        while self.state == UNIT_ENDING:  # by a close() in another thread
            with nogil:
                penstock_pause()
        if self.state == UNIT_BACKED_OUT and kind is None:
            raise error_for(RC_BACKED_OUT, "the unit of work was backed out by close()")
        if self.state != UNIT_OPEN:
            return
        if self.forks != penstock_forks:
            self.forget()
            if kind is None:
                raise error_for(RC_ENVIRONMENT_ERROR, "the unit of work is the parent process's")
            return
        if self.owner is not current_owner():
            self.finish(False)
            if kind is None:
                raise error_for(
                    RC_UOW_NOT_AVAILABLE,
                    "a unit of work ends in the thread or task that began it; it was backed out",
                )
            return
        reason = self.finish(kind is None)
        if reason and kind is None:
            fail(reason)

    def commit(self):
        """Commits what was done so far; the block goes on with a new unit of work.

        Raises BackedOut when the queue manager had backed it out.
        """
        self.check_owner()
        cdef int reason = self.complete(True)
        if reason:
            fail(reason)

    def backout(self):
        """Backs out what was done so far; the block goes on with a new unit of work."""
        self.check_owner()
        cdef int reason = self.complete(False)
        if reason:
            fail(reason)

    def prepare(self, Xid xid not None, bint allow_empty=False):
        """Makes what was done so far a prepared unit of work: durable, of no process any more, and
        neither committed nor backed out until somebody says so by its name. The block goes on with
        a new unit of work; when it ends without more puts and gets, nothing is committed.

        See QueueManager.prepare() for what it raises.
        """
        self.check_owner()
        self.hand_over(xid, allow_empty, True)

    cdef int hand_over(self, Xid xid, bint allow_empty, bint wait) except -1:
        """The unit becomes prepared, and stays open, empty."""
        cdef penstock_gil gil
        cdef uint32_t flags = 0
        cdef int reason
        if allow_empty:
            flags |= MQE_PREPARE_EMPTY
        if not wait:
            flags |= MQE_PREPARE_LAZY
        self.busy += 1
        penstock_gil_arm(&gil)
        reason = mqe_prepare(self.unit, &xid.raw, flags)
        penstock_gil_take(&gil)
        self.busy -= 1
        if reason:
            fail_prepare(reason, xid)
        return 0

    cdef int check_owner(self) except -1:
        if self.forks != penstock_forks:
            raise error_for(RC_ENVIRONMENT_ERROR, "the unit of work belongs to the parent process")
        if self.state != UNIT_OPEN:
            raise error_for(RC_UOW_NOT_AVAILABLE, "the unit of work is not open")
        if self.explicit and self.owner is not current_owner():
            raise error_for(
                RC_UOW_NOT_AVAILABLE, "the unit of work belongs to another thread or task"
            )
        return 0

    cdef int complete(self, bint commit):
        """Commits or backs out; the unit stays open. Returns the reason code."""
        cdef penstock_gil gil
        cdef int reason
        self.busy += 1
        penstock_gil_arm(&gil)
        reason = mqe_commit(self.unit) if commit else mqe_backout(self.unit)
        penstock_gil_take(&gil)
        self.busy -= 1
        return reason

    cdef int finish(self, bint commit):
        """Ends the unit for good. Returns the reason code of the commit; what cannot be committed
        is backed out.
        """
        cdef Connection connection = self.connection
        cdef mqe_unit *unit
        cdef int reason
        if self.state != UNIT_OPEN:
            return 0
        self.state = UNIT_ENDING
        reason = self.complete(commit)
        if reason and commit:
            self.complete(False)
        unit = self.unit
        self.unit = NULL
        self.leave(UNIT_COMMITTED if commit and reason == 0 else UNIT_BACKED_OUT)
        if connection is not None:
            connection.give_back(unit, reason == 0)
        else:
            mqe_unit_free(unit)
        return reason

    cdef void leave(self, int state):
        """No longer counts for anybody."""
        global open_transactions
        if self.explicit and self.connection is not None:
            open_transactions -= 1
            self.connection.units.discard(self)
        self.state = state
        if self.token is not None:
            try:
                PyContextVar_Reset(innermost, self.token)
            except (ValueError, RuntimeError):
                pass  # left in another context than entered: ended units are passed over
        self.token = None
        self.outer = None
        self.owner = None
        self.connection = None

    cdef void forget(self):
        """In a forked child: drops the parent's unit without touching it."""
        self.unit = NULL
        self.leave(UNIT_BACKED_OUT)
