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
        cdef bytes raw = path_bytes(path)
        cdef const char *text = raw
        cdef int reason
        if self.manager is not NULL:
            raise RuntimeError("a connection cannot be made twice")
        self.name = settings.get("name", "")
        take_text(self.name, self.padded_name, NAME_LENGTH, "name")
        self.forks = penstock_forks
        self.children = WeakSet()
        self.units = WeakSet()
        self.implicit = WeakKeyDictionary()
        self.fill_template(identity)
        fill_settings(&filled, settings)
        self.zos = filled.platform == MQPL_ZOS
        memset(&info, 0, sizeof(info))
        with nogil:
            reason = mqe_attach(text, &filled, &self.manager, &info)
        if reason:
            self.manager = NULL
            fail(reason, f"queue manager {self.name}")
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

    # ---- units of work ----

    def transaction(self):
        """A unit of work for a ``with`` block: commits at its end, backs out on an exception."""
        self.check_open()
        cdef Unit unit = Unit.__new__(Unit)
        unit.connection = self
        unit.explicit = True
        unit.forks = penstock_forks
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
        self.check_open()
        cdef Unit unit = explicit_unit(self)
        cdef int reason = 0
        if unit is None:
            unit = self.implicit.get(current_owner())
        if unit is not None:
            reason = unit.complete(commit)
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
        if self.forks == penstock_forks:
            warn_leak(f"queue manager {self.name} was not closed", self)
        self.end(False, MQE_DETACH_ORDERLY, 0)

    cdef int end(self, bint commit, int how, int pauses):
        """Ends units, closes handles, detaches; returns the first reason code that is no success.
        When calls are still inside after `pauses` (0: waits on), everything stays attached.
        """
        cdef int reason = 0, first = 0
        cdef uint64_t discarded = 0
        cdef list handles
        if self.closed:
            return 0
        self.closed = True
        connections.discard(self)
        if self.forks != penstock_forks:
            self.abandon()
            return 0
        handles = list(self.children)
        for handle in handles:
            (<QueueHandle>handle).closed = True
        if not self.wait_until_idle(handles, pauses):
            return 0
        first = self.end_units(commit)
        for handle in handles:
            (<QueueHandle>handle).release(MQE_CLOSE_KEEP)
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
        return first or (0 if has_stopped(reason) else reason)

    cdef bint wait_until_idle(self, list handles, int pauses):
        """Waits for calls of other threads to leave the core; False when `pauses` were not enough.
        """
        cdef int busy, count = 0
        while True:
            busy = self.busy
            for handle in handles:
                busy += (<QueueHandle>handle).busy
            for unit in list(self.units) + list(self.implicit.values()):
                busy += (<Unit>unit).busy
            if busy == 0:
                return True
            count += 1
            if count == pauses:
                return False
            with nogil:
                penstock_pause()

    cdef int end_units(self, bint commit):
        """Commits implicit units and the caller's transaction when `commit`; backs out the rest.
        Returns the first reason code of a commit.
        """
        cdef object owner = current_owner()
        cdef Unit unit
        cdef bint wanted
        cdef int reason, first = 0
        for unit in list(self.units) + list(self.implicit.values()):
            wanted = commit and unit.count > 0 and (not unit.explicit or unit.owner is owner)
            reason = unit.finish(wanted)
            if wanted:
                first = first or reason
        self.implicit.clear()
        return first

    cdef int abandon(self) except -1:
        """In a forked child: lets go of everything without a call of the core."""
        self.manager = NULL
        self.spare = NULL
        for handle in list(self.children):
            (<QueueHandle>handle).closed = True
        for unit in list(self.units):
            (<Unit>unit).abandon()
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
