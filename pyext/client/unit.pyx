# unit.pyx - units of work: entering, ending and preparing one (crash-safety rule 49).
#
# Terms: client/unit_choice.pyx, and
#   turn  a call of the program that uses the unit, from the choice of the unit to the return of the
#         call, waits included.
#
# Invariants
#   1. A unit is in its connection's chain of units exactly while the state is UNIT_OPEN or
#      UNIT_ENDING. `unit` is not NULL only then; a held unit has it from its first call on, so that
#      making and ending an empty one is no work of the core and takes nothing of the region.
#   2. Only finish() leaves UNIT_OPEN. It waits for the calls of other threads that are inside the
#      core with the unit; who else ends it meanwhile waits for finish().
#   3. commit() and backout() end the work done so far. An explicit unit stays open, empty, for the
#      rest of its block; a held one has ended, whatever they raise.
#   4. An explicit unit keeps owner and connection until its owner leaves the block, even when
#      close() or another thread has ended it before: calls in the block must not silently be
#      outside.
#   5. One call at a time is in its turn. Calls of the owner in the middle of another one of the
#      same thread (signal handlers, finalizers) are part of that turn.
#   6. The end of a held unit that its program has not asked for is told to it once, by 2003.
#
# Locks. With the GIL; commits release it when the core blocks (gil.h).
#
# Errors. 2255 for another thread's or a closed unit, 2128 for a second one, 2219 for a second call
# at a time, 2003 for a unit that was backed out by the queue manager or by close(), 2012 in a
# forked child.


@cython.no_gc_clear
cdef class Unit:
    """A unit of work: what ``transaction()`` and ``unit()`` return.

    As a context manager it commits at the end of the block, and backs out when an exception leaves
    it. A ``transaction()`` takes the calls of the thread or asyncio task that entered it, a
    ``unit()`` those that it is passed to (``q.put(data, unit=unit)``), from any thread or task.
    """

    def __init__(self):
        raise TypeError("made by unit() and transaction() only")

    def __del__(self):
        if not self.held or self.state != UNIT_OPEN or self.forks != penstock_forks:
            return
        try:
            warn_leak(
                f"a unit of work of queue manager {self.connection.name} was not ended; it is "
                f"backed out", self,
            )
        finally:  # also without memory for the warning
            self.end_held(False)

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

    @property
    def is_open(self):
        """Whether it takes calls."""
        return self.state == UNIT_OPEN

    def __enter__(self):
        if self.held:
            self.begin_turn(False)
            self.turns -= 1
        else:
            self.enter_block()
        return self

    cdef int enter_block(self) except -1:
        """Begins the block of a transaction."""
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
        return 0

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

    cdef int back(self) except -1:
        """Gives an open unit its side in the core; nothing when it has that."""
        cdef Attachment connection = self.connection
        cdef mqe_unit *unit
        if self.unit is not NULL:
            return 0
        unit = new_unit(connection)
        if self.state != UNIT_OPEN or self.unit is not NULL:
            recycle_unit(connection, unit, True)
            if self.state != UNIT_OPEN:
                self.raise_ended()
            return 0
        self.unit = unit
        return 0

    # ---- turns ----

    cdef int begin_turn(self, bint by_owner) except -1:
        """Begins the turn of a call with an open unit; ``turns -= 1`` ends it. `by_owner`: a call
        that belongs to the unit by the thread or task that makes it.
        """
        cdef unsigned long thread = PyThread_get_thread_ident()
        if self.forks != penstock_forks:
            raise error_for(RC_ENVIRONMENT_ERROR, "the unit of work belongs to the parent process")
        if self.turns != 0 and not (by_owner and self.taker == thread):
            self.raise_in_progress()
        if self.state != UNIT_OPEN:
            self.raise_ended()
        self.turns += 1
        self.taker = thread
        return 0

    cdef int raise_in_progress(self) except -1:
        raise error_for(
            RC_CALL_IN_PROGRESS,
            "another call with this unit of work is in progress, in another thread or task, or "
            "around this one: a unit of work takes one call at a time",
        )

    # ---- the end of a block ----

    def __exit__(self, kind, error, trace):
        cdef bint mine = self.held or self.owner is current_owner()
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
        cdef bint in_use = self.turns != 0 and self.taker != PyThread_get_thread_ident()
        cdef int reason
        if self.held and self.told:  # commit(), backout() or prepare() within the block
            return 0
        self.told = True
        if self.state == UNIT_BACKED_OUT and normal:
            raise error_for(
                RC_BACKED_OUT,
                "the unit of work was backed out by close(), or by its end in another thread",
            )
        reason = self.finish(mine and normal and not in_use)
        if mine and normal and in_use:
            raise error_for(
                RC_CALL_IN_PROGRESS,
                "the block of a unit of work has ended during a call with the unit in another "
                "thread or task; it was backed out",
            )
        if not mine and normal and self.state == UNIT_BACKED_OUT:
            raise error_for(
                RC_UOW_NOT_AVAILABLE,
                "a unit of work ends in the thread or task that began it; it was backed out",
            )
        if reason and normal:
            fail(reason)
        return 0

    # ---- ends within a block, or without one ----

    def commit(self):
        """Commits what was done so far. A ``transaction()`` goes on with a new unit of work until
        its block ends; what ``unit()`` made has ended, and what could not be committed is backed
        out.

        Raises BackedOut when the queue manager had backed it out.
        """
        self.end_by_program(True)

    def backout(self, delay=None):
        """Backs out what was done so far; with a delay, in seconds, no get finds the messages that
        it had got before that has passed, through restarts, too. A ``transaction()`` goes on with a
        new unit of work until its block ends; what ``unit()`` made has ended.
        """
        self.end_by_program(False, delay)

    cdef int end_by_program(self, bint commit, object delay=None) except -1:
        """commit() and backout()."""
        cdef int reason
        cdef uint64_t later = 0
        if delay is not None:
            take_delay(delay, &later)
        self.check_owner()
        self.begin_turn(not self.held)
        self.retry_us = later
        try:
            reason = self.end_held(commit) if self.held else self.complete(commit)
        finally:
            self.retry_us = 0
            self.turns -= 1
        if reason:
            fail(reason)
        return 0

    def end_for_task(self, bint commit, delay=None):
        """commit() and backout() by a thread that works for the owner (penstock.asyncio). A commit
        that would flush, and must not here, leaves the unit as it was.
        """
        cdef int reason
        cdef uint64_t later = 0
        if delay is not None:
            take_delay(delay, &later)
        self.begin_turn(False)
        self.retry_us = later
        try:
            reason = self.complete(commit)
            if self.held:
                self.end_held(False)
        finally:
            self.retry_us = 0
            self.turns -= 1
        if reason:
            fail(reason)

    def split(self):
        """What was done so far, as what ``unit()`` makes; a ``transaction()`` goes on with a new
        unit of work.
        """
        cdef Unit behind
        cdef mqe_unit *fresh
        self.check_owner()
        self.begin_turn(True)
        try:
            behind = self.connection.unit()
            fresh = new_unit(self.connection)
            if self.state != UNIT_OPEN:
                recycle_unit(self.connection, fresh, True)
                self.raise_ended()
            behind.unit, self.unit = self.unit, fresh
            behind.failed, self.failed = self.failed, False
        finally:
            self.turns -= 1
        return behind

    def commit_or_split(self):
        """commit(), where that needs no flush; else split(). For consumers whose commits go on
        behind them (penstock.client.commits).
        """
        global_at_once(1)
        try:
            self.end_by_program(True)
            return None
        except WouldBlock:
            pass
        finally:
            global_at_once(0)
        return self.split()

    cdef int end_held(self, bint commit) except? -1:
        """The end of a held unit that its program asks for. Returns the reason code."""
        self.told = True
        try:
            return self.finish(commit)
        finally:
            self.leave()

    def prepare(self, Xid xid not None, bint allow_empty=False, bint wait=True):
        """Makes what was done so far a prepared unit of work: durable, detached from this process,
        and resolved later by its name, by any process. The block of a ``transaction()`` goes on
        with a new unit of work; when it ends without more puts and gets, nothing is committed. What
        ``unit()`` made has ended, unless this raises.

        See QueueManager.prepare() for what it raises.
        """
        self.check_owner()
        self.begin_turn(not self.held)
        try:
            self.prepare_as(xid, allow_empty, wait)
            if self.held:
                self.end_held(False)
        finally:
            self.turns -= 1

    cdef int prepare_as(self, Xid xid, bint allow_empty, bint wait) except -1:
        """Prepares the unit, which stays open, empty; not `wait`: does not wait for the flush."""
        cdef penstock_gil gil
        cdef uint32_t flags = 0
        cdef int reason
        if allow_empty:
            flags |= MQE_PREPARE_EMPTY
        if not wait:
            flags |= MQE_PREPARE_LAZY
        self.back()
        while True:
            if self.state != UNIT_OPEN:
                self.raise_ended()
            if self.failed:
                fail(self.complete(True))
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
        """Raises unless the unit is open and its owner runs; a held one has none."""
        if self.held:
            return 0
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
        if self.held and self.state == UNIT_BACKED_OUT and not self.told:
            self.told = True
            raise error_for(RC_BACKED_OUT, "the unit of work was backed out by close()")
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
        if self.unit is NULL:  # nothing was put or got
            return mqe_usable(self.connection.manager, 0)
        self.busy += 1
        penstock_gil_arm_call(&gil, False)
        if commit and not self.failed:
            reason = mqe_commit(self.unit)
        elif self.retry_us != 0:
            reason = mqe_backout_later(self.unit, self.retry_us)
        else:
            reason = mqe_backout(self.unit)
        penstock_gil_take_call(&gil)
        self.busy -= 1
        if reason == 0 and self.failed:
            self.failed = False
            return RC_BACKED_OUT if commit else 0
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
        if unit is NULL:
            return 0
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
