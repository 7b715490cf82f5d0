# queue_handle.pyx - the handle of an open queue: how it is opened, revalidated and closed; put()
# and get() with their arguments.
#
# Terms
#   route        what a name resolved to (opening/resolution.py): the target, the definitions the
#                name went through, and for a remote queue where its transmission header points to.
#   destination  the same for the core (mqe_destination): a put or get through the handle fails with
#                2041 when a definition in it has changed since.
#   hint         expected size of a body: a get allocates so much at first.
#
# Invariants
#   1. `queue` is not NULL exactly while the core has the handle open.
#   2. A close sets `closed` first and waits for `busy` == 0; the core may refuse to delete a
#      dynamic queue, and the handle is open again, unless its connection has been closed meanwhile.
#   3. An explicit argument is checked before anything is put or got.
#   4. A handle is in its connection's chain from the return of the core's open to that of its
#      close.
#
# Locks. `busy` changes with the GIL held; calls release the GIL when they block (gil.h).
#
# Errors. 2019 for a closed handle, 2039 for one not opened for output, 2041 and 2052 for a changed
# or deleted definition; put() and get() list theirs.

cdef object ZERO = 0          # the default of `wait`, compared by identity
cdef object NO_DEFAULT = object()  # of get(): there is no `default`


@cython.no_gc_clear
cdef class QueueHandle:
    """An open queue. ``options``, as of MQOPEN: 2 input, 4 exclusive input, 8 browse, 16 output.

    ``manager`` is the ObjectQMgrName, ``dynamic_name`` the DynamicQName for a model queue.
    ``route`` is what the name resolved to (penstock.opening.resolution), None for a local queue by
    its own name.
    ``definition``: attributes of a dynamic queue of that name, which is made and opened in one.
    """

    def __cinit__(self):
        self.closed = True

    def __init__(
        self, Connection connection not None, str name not None, uint32_t options,
        bint fail_if_quiescing=True, *, str manager="", str dynamic_name="AMQ.*",
        bytes definition=None,
    ):
        cdef mqe_found found
        cdef int reason
        if self.connection is not None:
            raise RuntimeError("a handle cannot be opened twice")
        self.start(connection, name, options)
        if fail_if_quiescing:
            self.put_flags = MQE_PUT_FAIL_IF_QUIESCING
            self.get_flags |= MQE_GET_FAIL_IF_QUIESCING
        if definition is not None:
            self.open_new(definition)
            return
        if not manager and 0 < len(name) <= NAME_LENGTH and name.isascii():
            reason = connection.find(NAME_SPACE_QUEUES, name, 0, &found)
            if reason == 0 and found.type == MQQT_LOCAL and self.open_found(&found):
                return
        self.open_by_resolution(manager, dynamic_name)

    cdef int open_by_resolution(self, str manager, str dynamic_name) except -1:
        """Opens anything but a local queue by its own name."""
        cdef queue_use use
        name, route, definition = prepare_open(
            self.connection, self.name, manager, self.options, dynamic_name
        )
        if definition is None:
            take_route(self, route)
            if route.remote is not None:
                return self.open_core(NULL)
            self.connection.read_use(self.to.queue, self.to.queue_generation, &use)
            return self.open_core(&use)
        self.name = name
        self.route = route
        self.opened_type = MQQT_MODEL
        take_text(name, self.resolved, NAME_LENGTH, "name")
        return self.open_new(definition)

    @staticmethod
    def hold(Connection connection not None, str name not None, tuple found not None):
        """A handle on an object that is no queue, while an application has it open: the core
        refuses to delete it. `found`: as look_up() gave it. Raises 2085 when it is gone.
        """
        cdef QueueHandle handle = QueueHandle.__new__(QueueHandle)
        cdef mqe_found at
        at.slot, at.generation, at.type, at.resolution_version = found
        handle.start(connection, name, MQOO_INQUIRE)
        handle.to = mqe_direct(at.slot, at.generation)
        handle.open_core(NULL)
        return handle

    cdef int start(self, Connection connection, str name, uint32_t options) except -1:
        """Sets what does not depend on how the name is resolved."""
        self.connection = connection
        self.name = name
        self.options = options
        self.forks = penstock_forks
        self.get_flags = MQE_GET_REPORT_EXPIRED
        self.hint = FIRST_HINT
        self.opened_type = MQQT_LOCAL
        memcpy(&self.template, &connection.template, sizeof(self.template))
        take_text(name, self.resolved, NAME_LENGTH, "name")
        memcpy(self.resolved + NAME_LENGTH, connection.padded_name, NAME_LENGTH)
        return 0

    cdef bint open_found(self, const mqe_found *found) except -1:
        """Opens a local queue found by its own name. False: it is in a cluster, and where its
        messages go is for the resolution to say.
        """
        cdef queue_use use
        self.connection.read_use(found.slot, found.generation, &use)
        if use.clustered and self.options & MQE_OUTPUT:
            return False
        self.set_destination(found)
        self.open_core(&use)
        return True

    cdef void set_destination(self, const mqe_found *found) noexcept:
        """The destination is that queue, nothing in between."""
        self.to = mqe_direct(found.slot, found.generation)
        self.to.step[0].slot = found.slot
        self.to.step[0].generation = found.generation
        self.to.step[0].resolution_version = found.resolution_version
        self.to.step_count = 1

    cdef int open_core(self, const queue_use *use) except -1:
        """Opens the target; `use`: of a local queue, whose SHARE and DEFSOPT count, else NULL."""
        cdef penstock_gil gil
        cdef uint32_t options = self.options & OO_CORE
        cdef int reason
        if use is not NULL:
            self.transmission = use.usage == MQUS_TRANSMISSION
            options = shared_as(options, use)
            confirm_gets(self)
        elif self.remote:
            options &= MQE_OUTPUT
        while True:
            self.connection.begin()
            penstock_gil_arm_call(&gil, False)
            reason = mqe_open(self.connection.manager, &self.to, options, &self.queue)
            penstock_gil_take_call(&gil)
            self.connection.busy -= 1
            if not is_to_repeat(reason):
                return self.enter(reason)

    cdef int enter(self, int reason) except -1:
        """The core has opened the handle, or has refused to. A connection that has been closed
        meanwhile closes it.
        """
        if reason:
            self.queue = NULL
            fail(reason, f"queue {self.name}")
        self.closed = self.connection.closed
        chain_add(&self.connection.handles, &self.link, self)
        if self.closed:
            self.raise_closed()
        if self.options & OO_INPUT and mqe_trigger_version(self.connection.manager):
            input_opened(self.connection, from_blank_padded(self.resolved, NAME_LENGTH))
        return 0

    cdef int open_new(self, bytes definition) except -1:
        """Makes and opens a dynamic queue with these attributes."""
        cdef ps_object_name full
        cdef mqe_found found
        cdef penstock_gil gil
        cdef const char *attrs = definition
        cdef uint32_t length = <uint32_t>len(definition), options
        cdef queue_use use
        cdef int reason
        fill_name(&full, MQQT_LOCAL, self.name, NAME_SPACE_QUEUES, 0)
        find_use(attrs, length, &use)
        options = shared_as(self.options, &use)
        self.transmission = use.usage == MQUS_TRANSMISSION
        confirm_gets(self)
        while True:
            self.connection.begin()
            penstock_gil_arm_call(&gil, False)
            reason = mqe_open_new(
                self.connection.manager, &full, attrs, length, options, &self.queue, &found
            )
            penstock_gil_take_call(&gil)
            self.connection.busy -= 1
            if not is_to_repeat(reason):
                break
        if reason == 0:
            self.set_destination(&found)
        return self.enter(reason)

    def __del__(self):
        try:
            if self.queue is not NULL and not self.closed and self.forks == penstock_forks:
                warn_leak(f"queue {self.name} was not closed", self)
        finally:  # also without memory for the warning
            self.closed = True
            self.release(MQE_CLOSE_KEEP)

    def __dealloc__(self):
        chain_remove(&self.link)

    @property
    def is_remote(self):
        """Whether messages put to it leave for another queue manager."""
        return self.remote

    @property
    def inquired(self):
        """Type (MQQT_*), slot and generation of the definition that was opened or made."""
        if self.route is None or self.route.inquired is None or self.opened_type == MQQT_MODEL:
            return (MQQT_LOCAL, *self.slot)
        return (self.opened_type, *self.route.inquired)

    def check_open(self):
        """Raises 2019, or 2018 when the connection is closed as well."""
        if self.closed:
            self.raise_closed()

    def counts(self, bint oldest=False):
        """Connection.queue_status() of the queue."""
        self.check_open()
        return self.connection.queue_status(
            self.to.queue, self.to.queue_generation, self.name, oldest
        )

    def check_path(self):
        """Revalidates the resolved name: raises ObjectChanged or QueueDeleted when a definition on
        its path has changed.
        """
        if self.closed:
            self.raise_closed()
        self.connection.check_open()
        if self.opened_type == MQQT_REMOTE and not self.remote:  # the definition itself, no target
            found = self.connection.look_up(NAME_SPACE_QUEUES, self.name)
            if found != (*self.slot, MQQT_REMOTE, self.to.step[0].resolution_version):
                raise error_for(RC_OBJECT_CHANGED, f"the definition {self.name} has changed")
            return
        cdef int reason = self.path_state()
        if reason:
            fail(reason, f"queue {self.name}")

    cdef int path_state(self) noexcept:
        """2041 or 2052 when a definition on the path has changed, else 0."""
        cdef ps_descriptor d
        cdef int reason, warning = 0
        if self.closed:
            return RC_HOBJ_ERROR
        memcpy(&d, &self.template, sizeof(d))
        reason = mqe_resolve_defaults(self.connection.manager, &self.to, &d, &warning)
        if reason == RC_PUT_INHIBITED or reason == RC_OBJECT_TYPE_ERROR:
            mqx_error_clear()  # no change: a queue that holds no messages was opened for inquiry
            return 0
        return reason

    @property
    def slot(self):
        """Slot of the queue in its queue manager, and the generation of the slot."""
        return self.to.queue, self.to.queue_generation

    def shut(self, int how=MQE_CLOSE_KEEP):
        """Closes the handle; nothing when it is closed. Calls of other threads end with 2019.

        how: 1 deletes a dynamic queue, 2 with its messages; after 2045 and 2055 it is still open.
        """
        cdef int reason = self.shut_with(how)
        if reason and not has_stopped(reason):
            fail(reason, f"queue {self.name}")

    cdef int shut_with(self, int how):
        """The same; returns the reason code."""
        if self.closed:
            return 0
        self.closed = True
        while self.busy and self.forks == penstock_forks:
            with nogil:
                penstock_pause()
        return self.release(how)

    cdef int release(self, int how):
        """Closes the core's handle, when no call is inside; does nothing in a forked child."""
        cdef mqe_queue *queue = self.queue
        cdef int reason = 0
        self.queue = NULL
        if queue is not NULL and self.forks == penstock_forks:
            reason = self.close_core(queue, how)
            if reason and how != MQE_CLOSE_KEEP and not has_stopped(reason):
                if not self.connection.closed:
                    self.queue = queue  # the core has refused it, and kept the handle open
                    self.closed = False
                    return reason
                self.close_core(queue, MQE_CLOSE_KEEP)
        if self.here is not None:
            self.here.shut_with(MQE_CLOSE_KEEP)
        chain_remove(&self.link)
        return reason

    cdef int close_core(self, mqe_queue *queue, int how):
        """The call of the core."""
        cdef penstock_gil gil
        cdef int reason
        self.connection.busy += 1
        penstock_gil_arm(&gil)
        reason = mqe_close(queue, <uint32_t>how)
        penstock_gil_take(&gil)
        self.connection.busy -= 1
        if reason == 0 and self.options & OO_INPUT and not self.connection.closed and (
            mqe_trigger_version(self.connection.manager)
        ):
            input_closed(self.connection, self.to.queue, self.to.queue_generation)
        return reason

    cdef int raise_closed(self) except -1:
        """Raises 2018 when the connection is closed as well, else 2019."""
        if self.connection is not None:
            self.connection.check_open()
        raise ClosedHandle(RC_HOBJ_ERROR, f"the handle of queue {self.name} is closed")

    cdef int raise_not_open_for_output(self) except -1:
        if self.closed:
            self.raise_closed()
        raise error_for(RC_NOT_OPEN_FOR_OUTPUT, f"queue {self.name} was not opened for output")

    def put(
        self, data=..., priority=None, persistent=None, msg_id=None, correl_id=None,
        expiry=None, syncpoint=None, *, json=..., delay=None, at=None, unit=None, reply_to_q=None,
        reply_to_qmgr=None, group_id=None, format=None, msg_type=None, report=None, feedback=None,
        encoding=None, ccsid=None, msg_seq_number=None, msg_flags=None, user_identifier=None,
        appl_identity_data=None, put_time_us=None,
    ):
        """Puts one message and returns its PutResult.

        data: any bytes-like object, or a str, which is put as UTF-8 with format MQSTR; json:
        instead of it a value, put as JSON, such a text. priority: 0 to 9, more is put at 9 with
        warning 2049, None = the queue's DEFPRTY. persistent: None = the queue's DEFPSIST. msg_id,
        correl_id, group_id: at most 24 bytes, NUL-padded; without msg_id one is made. expiry:
        seconds. put_time_us: microseconds since 1970 UTC, up to the year 9999 (2026). delay:
        seconds before which no get finds the message, counted from this call; at: the same as a
        datetime with a time zone; 2013 when it would expire before. syncpoint: None = in the unit
        of work of transaction() if there is one; True = in it or in the implicit one of this thread
        or task; False = outside. unit: what qm.unit() or qm.transaction() made, of whatever thread
        or task: in that one. Raises MQError (QueueFull, ...).
        """
        cdef put_request put
        cdef Unit bound = None
        if self.closed or not self.options & MQE_OUTPUT:
            self.raise_not_open_for_output()
        start_put(&put, self)
        if priority is not None:
            take_int(priority, &put.d.priority, RC_PRIORITY_ERROR, "priority")
        if persistent is not None:
            take_persistence(persistent, &put.d)
        if msg_id is not None:
            take_id(msg_id, put.d.msg_id, RC_MSG_ID_ERROR, "msg_id")
        if correl_id is not None:
            take_id(correl_id, put.d.correl_id, RC_CORREL_ID_ERROR, "correl_id")
        if expiry is not None:
            take_expiry(expiry, &put.expiry)
        if reply_to_q is not None or reply_to_qmgr is not None:
            take_reply_to(reply_to_q, reply_to_qmgr, &put, self.connection)
        if group_id is not None:
            take_id(group_id, extended(&put).group_id, RC_GROUP_ID_ERROR, "group_id")
        if msg_seq_number is not None:
            take_msg_seq_number(msg_seq_number, extended(&put))
        if msg_flags is not None:
            take_msg_flags(msg_flags, extended(&put))
        if appl_identity_data is not None:
            take_appl_identity_data(appl_identity_data, extended(&put))
        if format is not None:
            take_text(format, put.d.format, MQ_FORMAT_LENGTH, "format")
        if msg_type is not None:
            take_msg_type(msg_type, &put)
        if report is not None:
            take_report(report, &put)
        if feedback is not None:
            take_int(feedback, &put.d.feedback, RC_FEEDBACK_ERROR, "feedback")
        if encoding is not None:
            take_int(encoding, &put.d.encoding, RC_MD_ERROR, "encoding")
        if ccsid is not None:
            take_int(ccsid, &put.d.ccsid, RC_MD_ERROR, "ccsid")
        if user_identifier is not None:
            take_text(user_identifier, put.d.user_identifier, MQ_USER_ID_LENGTH, "user_identifier")
        if put_time_us is not None:
            take_put_time_us(put_time_us, &put.d.put_time_us)
            put.flags |= MQE_PUT_KEEP_TIME
        if delay is not None or at is not None:
            take_due_for(self, delay, at, &put.d.due_us)
        if unit is not None or syncpoint is not None or open_transactions != 0:
            bound = bind_unit(self.connection, syncpoint, unit)
        try:
            return put_body(self, bound, &put, data, json, format)
        finally:
            unbind_unit(bound)

    def check_delays(self):
        """Raises 2045 when a message that is put cannot be delayed: it leaves at once."""
        refuse_delay_when_remote(self)

    def cancel_delayed(self, msg_id):
        """Whether a delayed message with that MsgId was on the queue; it is gone then."""
        return cancel_by_id(self, msg_id)

    def put_from_reserve(self):
        """Single puts through this handle may from now on use the room that the journal keeps for
        ending units of work: for short notes of work that frees the journal, such as how far a
        consumer has come. Without it, a consumer could not note its progress in a full journal.
        """
        self.put_flags |= MQE_PUT_FROM_RESERVE

    def put_again(
        self, Message message not None, bytes data not None, str format, unit=None
    ):
        """Puts other data with the descriptor of a message that was got: ids, context, priority,
        persistence and what is left of its expiry are kept, the format is changed, unless it is
        None: then the data is that of the message.
        """
        return put_with_descriptor_of(self, message, data, format, unit)

    def get(
        self, wait=0, msg_id=None, correl_id=None, syncpoint=None, *, group_id=None,
        max_length=None, truncate=False, browse=None, under_cursor=False, lock=False, unlock=False,
        msg_seq_number=None, syncpoint_if_persistent=False, delayed=False, default=NO_DEFAULT,
        unit=None,
    ):
        """Takes the first message that matches, and returns it.

        wait: seconds to wait for one, None = for ever; then `default`, which costs no exception;
        without a default NoMessageAvailable (2033), which is WaitTimedOut after a wait.
        msg_id, correl_id, group_id, msg_seq_number: it must carry these. syncpoint, unit: as in
        put(). max_length: longer messages stay where they are, TruncatedMessage (2080) tells the
        length; with truncate they are cut and taken with warning 2079. browse: "first", "next" or
        "cursor" looks at a message without taking it; under_cursor takes the one browsed; lock
        hides the one browsed from others, unlock ends that; delayed browses also what is not due
        yet. A wait that a signal handler ends by an exception has taken nothing.
        """
        cdef mqe_get_t get
        cdef Unit bound = None
        cdef get_request request
        if self.closed:
            self.raise_closed()
        get.flags = self.get_flags
        get.match = 0
        get.wait_us = 0
        request.limit = -1
        request.wait_us = 0
        if wait is not ZERO:
            take_wait_or_list(wait, &get, &request)
        if msg_id is not None:
            take_id(msg_id, get.msg_id, RC_MSG_ID_ERROR, "msg_id")
            get.match |= MQE_MATCH_MSG_ID
        if correl_id is not None:
            take_id(correl_id, get.correl_id, RC_CORREL_ID_ERROR, "correl_id")
            get.match |= MQE_MATCH_CORREL_ID
        if group_id is not None:
            take_id(group_id, get.group_id, RC_GROUP_ID_ERROR, "group_id")
            get.match |= MQE_MATCH_GROUP_ID
        if msg_seq_number is not None:
            take_int(msg_seq_number, &get.seq_number, RC_MSG_SEQ_NUMBER_ERROR, "msg_seq_number")
            get.match |= MQE_MATCH_SEQ_NUMBER
        if max_length is not None:
            request.limit = take_limit(max_length)
            if truncate:
                get.flags |= MQE_GET_ACCEPT_TRUNCATED
        elif truncate is not False and truncate:  # identity first, which costs less
            wrong_value(RC_OPTIONS_ERROR, "truncate needs max_length")
        if (
            browse is not None or under_cursor is not False or lock is not False
            or unlock is not False
        ):
            get.flags |= cursor_flags(
                browse, under_cursor, lock, unlock, syncpoint is True or unit is not None
            )
            if browse is not None or unlock:
                syncpoint = False
        if delayed is not False and delayed:
            get.match |= match_of_delayed(browse, lock)
        if syncpoint_if_persistent is not False and syncpoint_if_persistent:
            if syncpoint is not None:
                wrong_value(RC_OPTIONS_ERROR, "syncpoint_if_persistent goes without syncpoint")
            get.flags |= MQE_GET_IF_PERSISTENT
            syncpoint = True
        if unit is not None or syncpoint is not None or open_transactions != 0:
            bound = bind_unit(self.connection, syncpoint, unit)
        try:
            return receive(self, bound, &get, &request, default)
        finally:
            unbind_unit(bound)
