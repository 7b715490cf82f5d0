# attachment.pyx - the attachment of this process to a queue manager: how it begins, which unit of
# work of it a thread has, and in which order everything ends.
#
# Terms
#   spare    an ended unit of work, kept for the next transaction of the thread that ended it.
#   owner    a thread or an asyncio task (client/unit_choice.pyx).
#
# Invariants
#   1. The end has one order: `closed` is set, calls of other threads leave the core, units end,
#      handles close, the core detaches. The call that sets `closed` does all of it.
#   2. In a forked child (`forks` differs) everything is abandoned: no call reaches the core.
#   3. `handles` and `units` hold what the core has open, from the return of the core on: what a
#      thread is opening while another one ends the attachment is closed by the latter.
#
# Locks. `busy` changes with the GIL held; the core is called without it where it may block.
#
# Errors. 2018 for a closed connection, 2012 in a child; what the core says of an attach.

cdef object connections = WeakSet()  # the open ones of this process, for the interpreter's exit


@cython.no_gc_clear
cdef class Attachment:
    """An attachment of this process to the queue manager in a directory.

    Several of one directory share one attachment in the core. Thread-safe. ``path`` is the
    directory, ``settings`` what its qm.toml says, ``identity`` (user, program, accounting token)
    what messages put here carry.
    """

    def __cinit__(self):
        self.closed = True

    def __init__(self, path, dict settings, tuple identity):
        cdef mqe_settings filled
        cdef mqe_attach_info info
        cdef bytes raw
        cdef const char *text
        cdef int reason
        if self.implicit is not None:
            raise RuntimeError("a connection cannot be made twice")
        self.implicit = WeakKeyDictionary()
        settings = dict(settings)  # `filled` points into it
        raw = path_bytes(path)
        text = raw
        self.name = settings.get("name", "")
        take_text(self.name, self.padded_name, NAME_LENGTH, "name")
        self.forks = penstock_forks
        self.fill_template(identity)
        fill_settings(&filled, settings)
        self.zos = filled.platform == MQPL_ZOS
        memset(&info, 0, sizeof(info))
        while True:
            with nogil:
                mqe_interrupt_allow(1)
                reason = mqe_attach(text, &filled, &self.manager, &info)
                mqe_interrupt_allow(0)
            if not is_to_repeat(reason):  # it waits for a process that attaches or leaves
                break
        if reason:
            self.manager = NULL
            fail(reason, f"queue manager {self.name}")
        self.events_fired = mqe_performance_flag(self.manager)
        self.closed = False
        self.attach_info = {
            "first": bool(info.first), "clean": bool(info.clean), "messages": info.messages,
            "np_discarded": info.np_discarded, "records_replayed": info.records_replayed,
            "torn_bytes": info.torn_bytes,
        }
        connections.add(self)

    cdef int fill_template(self, tuple identity) except -1:
        """The descriptor every put starts from."""
        user, program, token = identity
        cdef ps_descriptor *d = &self.template
        memset(d, 0, sizeof(d[0]))
        d.priority = MQPRI_PRIORITY_AS_Q_DEF
        d.persistence = MQPER_PERSISTENCE_AS_Q_DEF
        d.msg_type = MQMT_DATAGRAM
        d.encoding = MQENC_NATIVE
        d.ccsid = MQCCSI_UTF8
        d.md_version = MQMD_CURRENT_VERSION
        d.put_appl_type = MQAT_UNIX
        memset(d.format, BLANK, MQ_FORMAT_LENGTH)
        memset(d.appl_origin_data, BLANK, MQ_APPL_ORIGIN_DATA_LENGTH)
        take_text(user, d.user_identifier, MQ_USER_ID_LENGTH, "user")
        take_text(program, d.put_appl_name, MQ_PUT_APPL_NAME_LENGTH, "program")
        memcpy(
            d.accounting_token, PyBytes_AS_STRING(token),
            min(MQ_ACCOUNTING_TOKEN_LENGTH, PyBytes_GET_SIZE(token)),
        )
        return 0

    def name_program(self, str program not None):
        """PutApplName of messages put through handles that are opened from now on."""
        take_text(program, self.template.put_appl_name, MQ_PUT_APPL_NAME_LENGTH, "program")

    def __dealloc__(self):
        while self.handles is not NULL:
            chain_remove(self.handles)
        while self.units is not NULL:
            chain_remove(self.units)

    cdef int check_open(self) except -1:
        """Raises 2012 in a forked child, 2018 when closed."""
        if self.forks != penstock_forks:
            raise error_for(
                RC_ENVIRONMENT_ERROR,
                f"queue manager {self.name} was connected by the parent process; connect again",
            )
        if self.closed or self.manager is NULL:
            raise ClosedHandle(
                RC_HCONN_ERROR, f"the connection to queue manager {self.name} is closed"
            )
        return 0

    cdef int begin(self) except -1:
        """Begins a call of the core, behind the last call into Python (client/core_call.pyx); it
        ends by ``busy -= 1``.
        """
        self.check_open()
        self.busy += 1
        return 0

    # ---- the clock of queues ----

    def advanced_us(self):
        """Microseconds that the clock by which messages expire and become due is ahead of the wall
        clock.
        """
        return self.ahead_us()

    cdef uint64_t ahead_us(self) except? 1:
        self.check_open()
        return mqe_advanced_us(self.manager)

    def advance_us(self, uint64_t us):
        """Advances that clock, for all processes; for tests. Raises InvalidValue: 2046: more than a
        hundred years in all.
        """
        cdef penstock_gil gil
        cdef int reason
        self.begin()
        penstock_gil_arm(&gil)
        reason = mqe_advance(self.manager, us)
        penstock_gil_take(&gil)
        self.busy -= 1
        if reason:
            fail(reason, f"queue manager {self.name}")

    # ---- units of work ----

    def transaction(self):
        """A unit of work for a ``with`` block: commits at its end, backs out on an exception."""
        self.check_open()
        cdef Unit unit = Unit.__new__(Unit)
        unit.connection = self
        unit.explicit = True
        unit.forks = penstock_forks
        return unit

    def unit(self):
        """A unit of work that any thread or task may use, one at a time: calls that it is passed to
        (``unit=``) belong to it. It ends by commit() or backout(), or at the end of a ``with``
        block of its own: that commits, and backs out on an exception.

        An empty one costs nothing but its object. One that is dropped before its end is backed out,
        with a ResourceWarning; one that is open when the connection is closed is backed out.
        """
        cdef Unit unit = Unit.__new__(Unit)
        self.check_open()
        unit.connection = self
        unit.explicit = True
        unit.held = True
        unit.forks = penstock_forks
        unit.state = UNIT_OPEN
        chain_add(&self.units, &unit.link, unit)
        return unit

    def commit(self):
        """Commits the unit of work of this thread or task; nothing to do when there is none.

        Raises BackedOut when the queue manager had backed it out.
        """
        self.complete(True)

    def backout(self):
        """Backs out the unit of work of this thread or task; nothing to do when there is none."""
        self.complete(False)

    cdef int complete(self, bint commit) except -1:
        """Commits or backs out; the unit stays, empty."""
        cdef Unit unit
        cdef int reason = 0
        self.check_open()
        unit = explicit_unit(self)
        if unit is None:
            unit = self.implicit.get(current_owner())
        if unit is not None:
            unit.begin_turn(True)
            try:
                reason = unit.complete(commit)
            finally:
                unbind_unit(unit)
        if reason:
            fail(reason, f"queue manager {self.name}")
        return 0

    # ---- end ----

    def detach(self, bint commit=True, bint discard=False):
        """Ends the attachment: implicit units of work and the caller's transaction are committed
        (or backed out), other transactions backed out, handles closed. ``discard``: non-persistent
        messages of NPMCLASS(HIGH) queues are not kept. Raises the first failure after all of it.
        """
        cdef int reason = self.end(
            commit, MQE_DETACH_DISCARD if discard else MQE_DETACH_ORDERLY, 0
        )
        if reason:
            fail(reason, f"queue manager {self.name}")

    def __del__(self):
        if self.manager is NULL or self.closed:
            return
        try:
            if self.forks == penstock_forks:
                warn_leak(f"queue manager {self.name} was not closed", self)
        finally:  # also without memory for the warning
            self.end(False, MQE_DETACH_ORDERLY, 0)

    cdef int end(self, bint commit, int how, int pauses):
        """Ends units, closes handles, detaches; returns the first reason code that is no success.
        When calls are still inside after `pauses` (0: waits on), everything stays attached.
        """
        cdef int reason = 0, first = 0
        cdef chain_link *link
        if self.closed:
            return 0
        self.closed = True
        link = self.handles
        while link is not NULL:
            (<QueueHandle>link.item).closed = True
            link = link.next
        connections.discard(self)
        if self.forks != penstock_forks:
            self.abandon()
            return 0
        if not self.wait_until_idle(pauses):
            return 0
        try:
            first = self.end_units(commit)
        finally:
            reason = self.leave_core(how)
        return first or (0 if has_stopped(reason) else reason)

    cdef int leave_core(self, int how):
        """Closes handles, detaches; returns the reason code. No call of another thread is inside.
        """
        cdef uint64_t discarded = 0
        cdef int reason
        if self.channels is not None:
            for channel in list(self.channels):
                channel.close()
        self.close_handles()
        if self.spare is not NULL:
            mqe_unit_free(self.spare)
            self.spare = NULL
        while self.busy:  # another thread is closing a handle
            with nogil:
                penstock_pause()
        with nogil:
            reason = mqe_detach(self.manager, how, &discarded)
        self.manager = NULL
        self.np_discarded = discarded
        if discarded:
            report_discarded(self.name, discarded)
        return reason

    cdef int calls_inside(self) noexcept:
        """Calls of threads that are inside the core."""
        cdef int count = self.busy
        cdef chain_link *link = self.handles
        while link is not NULL:
            count += (<QueueHandle>link.item).busy
            link = link.next
        link = self.units
        while link is not NULL:
            count += (<Unit>link.item).busy
            link = link.next
        return count

    cdef bint wait_until_idle(self, int pauses):
        """Waits for calls of other threads to leave the core; False when `pauses` were not enough.
        """
        cdef int count = 0
        while self.calls_inside():
            count += 1
            if count == pauses:
                return False
            with nogil:
                penstock_pause()
        return True

    cdef int end_units(self, bint commit):
        """Commits implicit units and the caller's transaction when `commit`; backs out the rest,
        held ones among it.
        Returns the first reason code of a commit. When a signal handler raises during the wait of a
        commit, that unit and the rest are backed out.
        """
        cdef object owner = current_owner(), raised = None
        cdef Unit unit
        cdef bint wanted
        cdef int reason, first = 0
        while self.units is not NULL:
            unit = <Unit>self.units.item
            if unit.state != UNIT_OPEN:  # another thread is ending it
                with nogil:
                    penstock_pause()
                continue
            wanted = commit and unit.count > 0 and (not unit.explicit or unit.owner is owner)
            try:
                reason = unit.finish(wanted)
            except BaseException as error:
                raised = error
                reason = RC_BACKED_OUT
                commit = False
            if wanted:
                first = first or reason
            if unit.owner is owner:
                unit.leave()
        self.implicit.clear()
        if raised is not None:
            raise raised
        return first

    cdef int close_handles(self) except -1:
        """Closes the handles that are open."""
        cdef QueueHandle handle
        while self.handles is not NULL:
            handle = <QueueHandle>self.handles.item
            handle.release(MQE_CLOSE_KEEP)
        return 0

    cdef int abandon(self) except -1:
        """In a forked child: lets go of everything without a call of the core."""
        cdef Unit unit
        self.manager = NULL
        self.spare = NULL
        while self.handles is not NULL:
            (<QueueHandle>self.handles.item).closed = True
            chain_remove(self.handles)
        while self.units is not NULL:
            unit = <Unit>self.units.item
            unit.abandon()
        return 0


def end_all():
    """For the interpreter's exit: backs out what is pending, detaches every connection in order.

    On platform z/OS a normal end, one without an uncaught exception, commits.
    """
    cdef bint normal = not hasattr(sys, "last_value")
    for connection in list(connections):
        (<Attachment>connection).end(
            normal and (<Attachment>connection).zos, MQE_DETACH_ORDERLY, FORCED_PAUSES
        )
