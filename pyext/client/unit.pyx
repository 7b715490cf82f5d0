# unit.pyx - units of work: entering, ending and preparing one (crash-safety rule 49).
#
# Terms: client/unit_choice.pyx.
#
# Invariants
#   1. `unit` is not NULL exactly while the state is UNIT_OPEN or UNIT_ENDING.
#   2. Only finish() leaves UNIT_OPEN; a unit that another thread is ending is UNIT_ENDING, and
#      __exit__ waits for the end.
#   3. commit() and backout() end the work done so far and leave the unit open, empty.
#
# Locks. With the GIL; commits release it when the core blocks (gil.h).
#
# Errors. 2255 for another thread's or a closed unit, 2128 for a second one, 2003 for a unit that
# was backed out by the queue manager or by close(), 2012 in a forked child.


@cython.no_gc_clear
cdef class Unit:
    """A unit of work: what ``transaction()`` returns and ``with`` enters.

    Commits at the end of the block, backs out when an exception leaves it. Belongs to the thread or
    asyncio task that entered it.
    """

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
        check_no_unit(self.connection)
        cdef Unit outer = context_value(innermost)
        self.owner = current_owner()
        self.unit = new_unit(self.connection)
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
            self.abandon()
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
        """Makes what was done so far a prepared unit of work: durable, detached from this process,
        and resolved later by its name, by any process. The block goes on with a new unit of work;
        when it ends without more puts and gets, nothing is committed.

        See QueueManager.prepare() for what it raises.
        """
        self.check_owner()
        self.prepare_as(xid, allow_empty, True)

    cdef int prepare_as(self, Xid xid, bint allow_empty, bint wait) except -1:
        """Prepares the unit, which stays open, empty; not `wait`: does not wait for the flush."""
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
        """Raises unless the unit is open and its owner runs."""
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
        cdef Attachment connection = self.connection
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
        self.detach(UNIT_COMMITTED if commit and reason == 0 else UNIT_BACKED_OUT)
        if connection is not None:
            recycle_unit(connection, unit, reason == 0)
        else:
            mqe_unit_free(unit)
        return reason

    cdef void detach(self, int state):
        """Ends the links to owner, context and connection; the state becomes `state`."""
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

    cdef void abandon(self):
        """In a forked child: lets go of the parent's unit without a call of the core."""
        self.unit = NULL
        self.detach(UNIT_BACKED_OUT)
