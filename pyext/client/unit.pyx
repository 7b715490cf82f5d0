# unit.pyx - units of work: entering, ending and preparing one (crash-safety rule 49).
#
# Terms: client/unit_choice.pyx.
#
# Invariants
#   1. `unit` is not NULL exactly while the state is UNIT_OPEN or UNIT_ENDING; so long it is in the
#      connection's chain of units.
#   2. Only finish() leaves UNIT_OPEN. It waits for the calls of other threads that are inside the
#      core with the unit; who else ends it meanwhile waits for finish().
#   3. commit() and backout() end the work done so far and leave the unit open, empty.
#   4. An explicit unit keeps owner and connection until its owner leaves the block, even when
#      close() or another thread has ended it before: calls in the block must not silently be
#      outside.
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
        global open_transactions
        chain_remove(&self.link)
        if self.entered:
            open_transactions -= 1
        if self.unit is not NULL and self.forks == penstock_forks:
            mqe_unit_free(self.unit)  # backs out

    @property
    def count(self):
        """Messages put and got so far."""
        return 0 if self.unit is NULL else mqe_unit_count(self.unit)

    def __enter__(self):
        global open_transactions
        cdef Attachment connection = self.connection
        if self.state != UNIT_NEW or connection is None:
            raise error_for(RC_UOW_IN_PROGRESS, "a unit of work can be entered once only")
        connection.check_open()
        check_no_unit(connection)
        cdef Unit outer = context_value(innermost)
        while outer is not None and outer.connection is None:  # left, and still in the variable
            outer = outer.outer
        owner = current_owner()
        self.start(connection)
        self.owner = owner
        self.outer = outer
        self.entered = True
        open_transactions += 1
        try:
            self.token = PyContextVar_Set(innermost, self)
        except MemoryError:
            self.finish(False)
            self.leave()
            raise
        return self

    cdef int start(self, Attachment connection) except -1:
        """Begins the unit in the core."""
        cdef mqe_unit *unit = new_unit(connection)
        if self.state != UNIT_NEW:  # another thread was faster
            recycle_unit(connection, unit, True)
            raise error_for(RC_UOW_IN_PROGRESS, "a unit of work can be entered once only")
        self.unit = unit
        self.state = UNIT_OPEN
        chain_add(&connection.units, &self.link, self)
        return 0

    def __exit__(self, kind, error, trace):
        cdef bint mine = self.owner is current_owner()
        if self.forks != penstock_forks and self.state in (UNIT_OPEN, UNIT_ENDING):
            self.abandon()
            if kind is None:
                raise error_for(RC_ENVIRONMENT_ERROR, "the unit of work is the parent process's")
            return
        while self.state == UNIT_ENDING:  # by another thread
            with nogil:
                penstock_pause()
        try:
            self.end_block(mine, kind is None)
        finally:
            if mine:
                self.leave()

    cdef int end_block(self, bint mine, bint normal) except -1:
        """The end of the block; raises only when no exception has left it (`normal`)."""
        cdef int reason
        if self.state == UNIT_BACKED_OUT and normal:
            raise error_for(
                RC_BACKED_OUT,
                "the unit of work was backed out by close(), or by its end in another thread",
            )
        reason = self.finish(mine and normal)
        if not mine and normal and self.state == UNIT_BACKED_OUT:
            raise error_for(
                RC_UOW_NOT_AVAILABLE,
                "a unit of work ends in the thread or task that began it; it was backed out",
            )
        if reason and normal:
            fail(reason)
        return 0

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
        while True:
            if self.state != UNIT_OPEN:
                self.raise_ended()
            self.busy += 1
            penstock_gil_arm_call(&gil, False)
            reason = mqe_prepare(self.unit, &xid.raw, flags)
            penstock_gil_take_call(&gil)
            self.busy -= 1
            if not is_to_repeat(reason):
                break
        if reason:
            fail_prepare(reason, xid)
        return 0

    cdef int check_owner(self) except -1:
        """Raises unless the unit is open and its owner runs."""
        if self.forks != penstock_forks:
            raise error_for(RC_ENVIRONMENT_ERROR, "the unit of work belongs to the parent process")
        if self.state != UNIT_OPEN:
            self.raise_ended()
        if self.explicit and self.owner is not current_owner():
            raise error_for(
                RC_UOW_NOT_AVAILABLE, "the unit of work belongs to another thread or task"
            )
        return 0

    cdef int raise_ended(self) except -1:
        if self.state == UNIT_NEW:
            raise error_for(RC_UOW_NOT_AVAILABLE, "the unit of work has not been entered")
        raise error_for(RC_UOW_NOT_AVAILABLE, "the unit of work has ended")

    cdef int complete(self, bint commit) except? -1:
        """Commits or backs out; the unit stays open. Returns the reason code. What a signal
        handler raises during a wait before the decision leaves the unit as it was.
        """
        cdef int reason
        while self.state == UNIT_OPEN:
            reason = self.end_work(commit)
            if not is_to_repeat(reason):
                return reason
        return RC_UOW_NOT_AVAILABLE

    cdef int end_work(self, bint commit) noexcept:
        """The call of the core; MQE_INTERRUPTED: the commit waits, and nothing is decided."""
        cdef penstock_gil gil
        cdef int reason
        self.busy += 1
        penstock_gil_arm_call(&gil, False)
        reason = mqe_commit(self.unit) if commit else mqe_backout(self.unit)
        penstock_gil_take_call(&gil)
        self.busy -= 1
        return reason

    cdef int end_or_raise(self, bint commit) except? -1:
        """The last end of a unit: commits, and repeats that until it is decided; or backs out."""
        cdef int reason = self.end_work(commit)
        while is_to_repeat(reason):
            reason = self.end_work(commit)
        return reason

    cdef int finish(self, bint commit) except? -1:
        """Ends the unit for good, when calls of other threads have left it. Returns the reason code
        of the commit; what cannot be committed is backed out, and so is a commit that still waits
        for its decision when a signal handler raises. Nothing for a unit that is not open.
        """
        cdef int reason = RC_BACKED_OUT
        if self.state != UNIT_OPEN:
            return 0
        self.state = UNIT_ENDING
        self.busy += 1  # an end of the connection waits
        while self.busy > 1:
            with nogil:
                penstock_pause()
        try:
            reason = self.end_or_raise(commit)
        finally:
            self.close_unit(commit, reason)
        return reason

    cdef int close_unit(self, bint commit, int reason) except -1:
        """The end of finish(): the commit or backout has returned `reason`."""
        cdef mqe_unit *unit
        if reason and commit:
            self.end_work(False)
        unit = self.unit
        self.unit = NULL
        self.state = UNIT_COMMITTED if commit and reason == 0 else UNIT_BACKED_OUT
        self.busy -= 1
        chain_remove(&self.link)
        if self.connection is not None:
            recycle_unit(self.connection, unit, reason == 0)
        else:
            mqe_unit_free(unit)
        return 0

    cdef void leave(self):
        """The owner has left the block, or has ended the unit within it.

        The context variable may go on naming the unit: in a copy of the context, or when there is
        no memory to set it. Then `outer` stays, so that what looks for a unit comes past this one
        to those around it.
        """
        global open_transactions
        if self.entered:
            open_transactions -= 1
            self.entered = False
        try:
            if self.token is not None:
                PyContextVar_Reset(innermost, self.token)
                self.outer = None
        except (ValueError, RuntimeError, MemoryError):
            pass
        self.token = None
        self.owner = None
        self.connection = None

    cdef void abandon(self):
        """In a forked child: lets go of the parent's unit without a call of the core."""
        self.unit = NULL
        self.state = UNIT_BACKED_OUT
        chain_remove(&self.link)
        self.leave()
