# queue.pxi - the handle of an open queue: put, get, close.

cdef enum:
    RO_EXPIRATION = 0x00E00000
    RO_NEEDS_REPLY_Q = 0x07E03F07   # exception, expiration, COA, COD, PAN, NAN, activity
    RO_REJECT = 0x101C0000          # MQRO_REJECT_UNSUP_MASK: 2061
    RO_KNOWN = 0x0FE03FC7 | 0x4000  # every option of section 1.2
    MSG_FLAGS_KNOWN = 31


cdef struct get_request:
    int64_t wait_us
    Py_ssize_t limit       # bytes the caller takes at most, -1 = all


cdef enum:
    QT_LOCAL = 1
    QT_MODEL = 2
    QT_REMOTE = 6
    IA_DEF_INPUT_OPEN_OPTION = 4
    IA_USAGE = 12
    IA_SHAREABILITY = 23
    OPEN_INPUT = 7
    OPEN_CORE = 127           # what the core counts handles by: INPUT_* to SET


@cython.no_gc_clear
cdef class QueueHandle:
    """An open queue. ``options``, as of MQOPEN: 2 input, 4 exclusive input, 8 browse, 16 output.

    ``manager`` is the ObjectQMgrName, ``dynamic_name`` the DynamicQName for a model queue.
    ``route`` is what the name resolved to (penstock.opening.resolution), None for a local queue by
    its own name.
    ``definition``: attributes of a dynamic queue of that name, which is made and opened in one.
    """

    cdef mqe_queue *queue
    cdef readonly Connection connection
    cdef readonly str name
    cdef readonly uint32_t options
    cdef readonly bint closed
    cdef readonly object route
    cdef int busy
    cdef unsigned forks
    cdef bint remote              # messages get a transmission header
    cdef bint transmission        # a transmission queue, opened as a queue
    cdef bint chooses             # a cluster queue: an instance is chosen for each put
    cdef bint chooses_defaults    # ... and supplies the defaults
    cdef uint32_t opened_type     # MQQT_* of the definition that was opened
    cdef uint32_t put_flags
    cdef uint32_t get_flags
    cdef mqe_destination to
    cdef ps_descriptor template
    cdef char header[104]         # of a remote queue: start of the transmission header
    cdef char resolved[96]        # ResolvedQName, ResolvedQMgrName
    cdef char local[96]           # the same of the queue here, when that is a transmission queue
    cdef Py_ssize_t hint
    cdef object __weakref__

    def __cinit__(self):
        self.closed = True

    def __init__(
        self, Connection connection not None, str name not None, uint32_t options,
        bint fail_if_quiescing=True, *, str manager="", str dynamic_name="AMQ.*",
        bytes definition=None,
    ):
        cdef mqe_found found
        if self.queue is not NULL:
            raise RuntimeError("a handle cannot be opened twice")
        self.start(connection, name, options)
        if fail_if_quiescing:
            self.put_flags = MQE_PUT_FAIL_IF_QUIESCING
            self.get_flags = MQE_GET_FAIL_IF_QUIESCING
        if definition is not None:
            self.open_new(definition)
            return
        if not manager and 0 < len(name) <= 48 and name.isascii():
            if connection.find(1, name, 0, &found) == 0 and found.type == QT_LOCAL:
                self.open_found(&found)
                return
        self.open_route(manager, dynamic_name)

    cdef int open_route(self, str manager, str dynamic_name) except -1:
        """Opens anything but a local queue by its own name."""
        from penstock.opening.open_queue import prepare

        name, route, definition = prepare(
            self.connection, self.name, manager, self.options, dynamic_name
        )
        if definition is None:
            return self.follow(route)
        self.name = name
        self.route = route
        self.opened_type = QT_MODEL
        memset(self.resolved, 32, 48)
        take_text(name, self.resolved, 48, "name")
        return self.open_new(definition)

    cdef int start(self, Connection connection, str name, uint32_t options) except -1:
        self.connection = connection
        self.name = name
        self.options = options
        self.forks = penstock_forks
        self.hint = FIRST_HINT
        self.opened_type = QT_LOCAL
        memcpy(&self.template, &connection.template, sizeof(self.template))
        memset(self.resolved, 32, 48)
        take_text(name, self.resolved, 48, "name")
        memcpy(self.resolved + 48, connection.padded_name, 48)
        return 0

    cdef int open_found(self, const mqe_found *found) except -1:
        """Opens a local queue found by its own name."""
        self.aim_at(found)
        return self.open_core(True)

    cdef void aim_at(self, const mqe_found *found) noexcept:
        """The destination is that queue, nothing in between."""
        self.to = mqe_direct(found.slot, found.generation)
        self.to.step[0].slot = found.slot
        self.to.step[0].generation = found.generation
        self.to.step[0].resolution = found.resolution
        self.to.step_count = 1

    cdef int follow(self, object route) except -1:
        """Opens what a name resolved to."""
        cdef uint32_t i = 0
        self.route = route
        self.to.queue, self.to.queue_generation = route.queue
        self.to.first, self.to.first_generation = route.first or route.queue
        for slot, generation, resolution in route.steps[:MQE_STEPS_MAX]:
            self.to.step[i].slot = slot
            self.to.step[i].generation = generation
            self.to.step[i].resolution = resolution
            i += 1
        self.to.step_count = i
        self.opened_type = route.opened
        if route.remote is not None and route.remote[0]:  # else: the definition itself
            self.remote = True
            self.chooses = bool(route.instances)
            self.chooses_defaults = self.chooses and route.first is None
            start_header(self.header, route.remote[0], route.resolved_manager)
        memset(self.resolved, 32, 96)
        take_text(route.resolved_name, self.resolved, 48, "ResolvedQName")
        take_text(route.resolved_manager, self.resolved + 48, 48, "ResolvedQMgrName")
        memset(self.local, 32, 48)
        take_text(route.queue_name, self.local, 48, "ResolvedQName")
        memcpy(self.local + 48, self.connection.padded_name, 48)
        return self.open_core(route.remote is None)

    cdef int open_core(self, bint local) except -1:
        """Opens the target; `local`: a local queue, whose SHARE and DEFSOPT count."""
        cdef penstock_gil gil
        cdef uint32_t options = self.options & OPEN_CORE
        cdef int64_t numbers[3]
        cdef int reason
        if local:
            self.connection.read_numbers(self.to.queue, self.to.queue_generation, numbers)
            self.transmission = numbers[1] == 1
            options = shared_as(options, numbers)
        elif self.remote:
            options &= MQE_OUTPUT
        self.connection.busy += 1
        penstock_gil_arm(&gil)
        reason = mqe_open(self.connection.manager, &self.to, options, &self.queue)
        penstock_gil_take(&gil)
        self.connection.busy -= 1
        if reason:
            self.queue = NULL
            fail(reason, f"queue {self.name}")
        self.closed = False
        self.connection.children.add(self)
        return 0

    cdef int open_new(self, bytes definition) except -1:
        """Makes and opens a dynamic queue with these attributes."""
        cdef ps_object_name full
        cdef mqe_found found
        cdef penstock_gil gil
        cdef const char *attrs = definition
        cdef uint32_t length = <uint32_t>len(definition), options
        cdef int64_t numbers[3]
        cdef int reason
        fill_name(&full, QT_LOCAL, self.name, 1, 0)
        take_numbers(attrs, length, numbers)
        options = shared_as(self.options, numbers)
        self.transmission = numbers[1] == 1
        self.connection.busy += 1
        penstock_gil_arm(&gil)
        reason = mqe_open_new(
            self.connection.manager, &full, attrs, length, options, &self.queue, &found
        )
        penstock_gil_take(&gil)
        self.connection.busy -= 1
        if reason:
            self.queue = NULL
            fail(reason, f"queue {self.name}")
        self.aim_at(&found)
        self.closed = False
        self.connection.children.add(self)
        return 0

    def __del__(self):
        if self.queue is NULL or self.closed:
            return
        if self.forks == penstock_forks:
            warn_leak(f"queue {self.name} was not closed", self)
        self.closed = True
        self.release(MQE_CLOSE_KEEP)

    @property
    def is_remote(self):
        """Whether messages put to it leave for another queue manager."""
        return self.remote

    @property
    def inquired(self):
        """Type (MQQT_*), slot and generation of the definition that was opened or made."""
        if self.route is None or self.route.inquired is None or self.opened_type == QT_MODEL:
            return (QT_LOCAL, *self.slot)
        return (self.opened_type, *self.route.inquired)

    cdef uint32_t stamp(self):
        """The resolution stamp of the definition that was opened."""
        return self.to.step[0].resolution

    def check_path(self):
        """Raises ObjectChanged or QueueDeleted when a definition on the way has changed."""
        if self.closed:
            self.refuse()
        if self.opened_type == QT_REMOTE and not self.remote:  # the definition itself, no target
            if self.connection.look_up(1, self.name) != (*self.slot, QT_REMOTE, self.stamp()):
                raise error_for(RC_OBJECT_CHANGED, f"the definition {self.name} has changed")
            return
        cdef int reason = self.path_state()
        if reason:
            fail(reason, f"queue {self.name}")

    cdef int path_state(self) noexcept:
        """2041 or 2052 when a definition on the way has changed, else 0."""
        cdef ps_descriptor d
        cdef int reason, warning = 0
        memcpy(&d, &self.template, sizeof(d))
        reason = mqe_resolve_defaults(self.connection.manager, &self.to, &d, &warning)
        if reason == RC_PUT_INHIBITED or reason == RC_OBJECT_TYPE_ERROR:
            mqx_error_clear()  # no change; what holds no messages was opened to be inquired
            return 0
        return reason

    @property
    def slot(self):
        """Number of the queue in its queue manager, and how often that number was given before."""
        return self.to.queue, self.to.queue_generation

    def shut(self, int how=MQE_CLOSE_KEEP):
        """Closes the handle; nothing when it is closed. Calls of other threads end with 2019.

        how: 1 deletes a dynamic queue, 2 with its messages; after 2045 and 2055 it is open still.
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
        """Gives the core's handle back; nobody is inside. Nothing in a forked child."""
        cdef penstock_gil gil
        cdef mqe_queue *queue = self.queue
        cdef int reason
        self.queue = NULL
        self.connection.children.discard(self)
        if queue is NULL or self.forks != penstock_forks:
            return 0
        self.connection.busy += 1
        penstock_gil_arm(&gil)
        reason = mqe_close(queue, <uint32_t>how)
        penstock_gil_take(&gil)
        self.connection.busy -= 1
        if reason and how != MQE_CLOSE_KEEP and not has_stopped(reason):
            self.queue = queue  # the core has refused it, and kept the handle open
            self.closed = False
            self.connection.children.add(self)
        return reason

    cdef int refuse(self) except -1:
        """Why a closed handle is not usable."""
        if self.connection is not None:
            self.connection.check_open()
        closed_handle(RC_HOBJ_ERROR, f"the handle of queue {self.name} is closed")

    cdef int refuse_put(self) except -1:
        if self.closed:
            self.refuse()
        raise error_for(RC_NOT_OPEN_FOR_OUTPUT, f"queue {self.name} was not opened for output")

    # ---- put ----

    def put(
        self, data, priority=None, persistent=None, msg_id=None, correl_id=None, expiry=None,
        syncpoint=None, *, reply_to_q=None, reply_to_qmgr=None, group_id=None, format=None,
        msg_type=None, report=None, feedback=None, encoding=None, ccsid=None, msg_seq_number=None,
        msg_flags=None, user_identifier=None, appl_identity_data=None, put_time_us=None,
    ):
        """Puts one message and returns its PutResult.

        data: any bytes-like object. priority: 0 to 9, more is put at 9 with warning 2049, None =
        the queue's DEFPRTY. persistent: None = the queue's DEFPSIST. msg_id, correl_id, group_id:
        at most 24 bytes, NUL-padded; without msg_id one is made. expiry: seconds. syncpoint: None =
        in the unit of work of transaction() if there is one; True = in it or in the implicit one of
        this thread or task; False = outside. Raises MQError (QueueFull, PutInhibited, ...).
        """
        cdef ps_descriptor d
        cdef ps_descriptor_ext ext
        cdef bint extended = False
        cdef mqe_unit *unit = NULL
        cdef int32_t tenths = -1
        cdef uint32_t flags = self.put_flags
        if self.closed or not self.options & MQE_OUTPUT:
            self.refuse_put()
        memcpy(&d, &self.template, sizeof(d))
        if priority is not None:
            take_int(priority, &d.priority, RC_PRIORITY_ERROR, "priority")
        if persistent is not None:
            take_persistence(persistent, &d)
        if msg_id is not None:
            take_id(msg_id, d.msg_id, RC_MSG_ID_ERROR, "msg_id")
        if correl_id is not None:
            take_id(correl_id, d.correl_id, RC_CORREL_ID_ERROR, "correl_id")
        if expiry is not None:
            take_expiry(expiry, &tenths)
        if (
            reply_to_q is not None or group_id is not None or reply_to_qmgr is not None
            or msg_seq_number is not None or msg_flags is not None or appl_identity_data is not None
        ):
            extended = True
            d.has_ext = 1
            self.fill_extension(
                &ext, reply_to_q, reply_to_qmgr, group_id, msg_seq_number, msg_flags,
                appl_identity_data,
            )
        if (
            format is not None or msg_type is not None or report is not None or feedback is not None
            or encoding is not None or ccsid is not None or user_identifier is not None
        ):
            fill_fields(
                &d, extended and ext.reply_to_q[0] != 32, format, msg_type, report, feedback,
                encoding, ccsid, user_identifier,
            )
        if put_time_us is not None:
            d.put_time_us = put_time_us
            flags |= MQE_PUT_KEEP_TIME
        if syncpoint is not None or open_transactions != 0:
            self.connection.choose_unit(syncpoint, &unit)
        if type(data) is bytes:
            return self.put_bytes(
                unit, &d, &ext if extended else NULL, PyBytes_AS_STRING(data),
                PyBytes_GET_SIZE(data), tenths, flags,
            )
        return self.put_view(unit, &d, &ext if extended else NULL, data, tenths, flags)

    def put_from_reserve(self):
        """From now on single puts through this handle may use the room that the journal keeps for
        ending units of work: for short notes of work that frees the journal, such as how far a
        consumer has come. Without it, who is to empty a full journal could not note that it did.
        """
        self.put_flags |= MQE_PUT_FROM_RESERVE

    def put_again(self, Message message not None, bytes data not None, str format not None):
        """Puts other data with the descriptor of a message that was got: ids, context, priority,
        persistence and what is left of its expiry are kept, the format is changed.
        """
        cdef ps_descriptor d
        cdef ps_descriptor_ext ext
        cdef mqe_unit *unit = NULL
        if self.closed or not self.options & MQE_OUTPUT:
            self.refuse_put()
        memcpy(&d, &message._d, sizeof(d))
        take_text(format, d.format, 8, "format")
        d.encoding = NATIVE_ENCODING
        d.ccsid = QM_CCSID
        if message._ext is not None:
            memcpy(&ext, message.extension(), sizeof(ext))
        if open_transactions != 0:
            self.connection.choose_unit(None, &unit)
        return self.put_bytes(
            unit, &d, &ext if message._ext is not None else NULL, PyBytes_AS_STRING(data),
            PyBytes_GET_SIZE(data), message._expiry, self.put_flags | MQE_PUT_KEEP_TIME,
        )

    cdef PutResult put_view(
        self, mqe_unit *unit, ps_descriptor *d, const ps_descriptor_ext *ext, object data,
        int32_t tenths, uint32_t flags,
    ):
        """Puts the bytes of any object that has some; they cannot change or move meanwhile."""
        cdef Py_buffer view
        if isinstance(data, str):
            wrong_type(RC_BUFFER_ERROR, f"data must be bytes, not str: {data[:40]!r}; encode it")
        try:
            PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        except (TypeError, BufferError) as error:
            raise InvalidType(RC_BUFFER_ERROR, f"data must be bytes-like: {error}") from None
        try:
            return self.put_bytes(unit, d, ext, <const char *>view.buf, view.len, tenths, flags)
        finally:
            PyBuffer_Release(&view)

    cdef PutResult put_bytes(
        self, mqe_unit *unit, ps_descriptor *d, const ps_descriptor_ext *ext, const char *data,
        Py_ssize_t size, int32_t tenths, uint32_t flags,
    ):
        cdef PutResult result = PutResult.__new__(PutResult)
        cdef int reason = self.send(unit, d, ext, data, size, tenths, flags)
        if reason and mqe_comp_code(reason) != 1:
            fail(reason, f"queue {self.name}")
        if reason == 0 and d.report & ~RO_KNOWN:
            reason = RC_UNKNOWN_REPORT_OPTION
        result.reason = reason
        memcpy(result._msg_id, d.msg_id, 24)
        return result

    cdef inline int send(
        self, mqe_unit *unit, ps_descriptor *d, const ps_descriptor_ext *ext, const char *data,
        Py_ssize_t size, int32_t tenths, uint32_t flags,
    ) except -1:
        """Puts, here or onto a transmission queue; returns the reason code."""
        cdef penstock_gil gil
        cdef mqe_manager *manager = self.connection.manager
        cdef int reason
        if self.remote:
            return transmit(self, unit, d, ext, data, size, tenths, flags)
        self.busy += 1
        if size > LONG_COPY:
            penstock_gil_begin_long(&gil)
        else:
            penstock_gil_arm(&gil)
        reason = mqe_put(manager, unit, &self.to, d, ext, data, <uint64_t>size, tenths, flags)
        penstock_gil_take(&gil)
        self.busy -= 1
        return reason

    cdef int fill_extension(
        self, ps_descriptor_ext *ext, object reply_to_q, object reply_to_qmgr, object group_id,
        object msg_seq_number, object msg_flags, object appl_identity_data,
    ) except -1:
        memset(ext, 0, sizeof(ext[0]))
        memset(ext.reply_to_q, 32, 48)
        memset(ext.reply_to_qmgr, 32, 48)
        memset(ext.appl_identity_data, 32, 32)
        ext.msg_seq_number = 1
        ext.original_length = -1
        if reply_to_q is not None:
            take_text(reply_to_q, ext.reply_to_q, 48, "reply_to_q")
        if reply_to_qmgr is not None:
            take_text(reply_to_qmgr, ext.reply_to_qmgr, 48, "reply_to_qmgr")
        if reply_to_q is not None:
            complete_reply(self.connection, ext)
        if group_id is not None:
            take_id(group_id, ext.group_id, RC_GROUP_ID_ERROR, "group_id")
        if msg_seq_number is not None:
            take_int(msg_seq_number, &ext.msg_seq_number, RC_MSG_SEQ_NUMBER_ERROR, "msg_seq_number")
            if not 1 <= ext.msg_seq_number <= 999999999:
                wrong_value(
                    RC_MSG_SEQ_NUMBER_ERROR,
                    f"msg_seq_number {msg_seq_number!r} is not 1 to 999999999",
                )
        if msg_flags is not None:
            take_int(msg_flags, &ext.msg_flags, RC_MSG_FLAGS_ERROR, "msg_flags")
            if ext.msg_flags & ~MSG_FLAGS_KNOWN:
                wrong_value(RC_MSG_FLAGS_ERROR, f"msg_flags {msg_flags!r} has unknown bits")
        if appl_identity_data is not None:
            take_text(appl_identity_data, ext.appl_identity_data, 32, "appl_identity_data")
        return 0

    # ---- get ----

    def get(
        self, wait=0, msg_id=None, correl_id=None, syncpoint=None, *, group_id=None,
        max_length=None, truncate=False, browse=None, under_cursor=False, lock=False, unlock=False,
        msg_seq_number=None, syncpoint_if_persistent=False,
    ):
        """Takes the first message that matches, and returns it.

        wait: seconds to wait for one, None = for ever; else NoMessageAvailable (2033).
        msg_id, correl_id, group_id, msg_seq_number: it must carry these. syncpoint: as in put().
        max_length: longer messages stay where they are, TruncatedMessage (2080) tells the length;
        with truncate they are cut and taken with warning 2079. browse: "first", "next" or "cursor"
        looks at a message without taking it; under_cursor takes the one browsed; lock hides the one
        browsed from others, unlock ends that. A wait that a signal handler ends by an exception has
        taken nothing.
        """
        cdef mqe_get_t get
        cdef mqe_unit *unit = NULL
        cdef get_request request
        if self.closed:
            self.refuse()
        get.flags = self.get_flags
        get.match = 0
        get.wait_us = 0
        request.limit = -1
        request.wait_us = 0
        if wait is not ZERO:
            take_wait(wait, &request.wait_us)
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
        elif truncate:
            wrong_value(RC_OPTIONS_ERROR, "truncate needs max_length")
        if browse is not None or under_cursor or lock or unlock:
            get.flags |= cursor_flags(browse, under_cursor, lock, unlock, syncpoint)
            if browse is not None or unlock:
                syncpoint = False
        if syncpoint_if_persistent:
            if syncpoint is not None:
                wrong_value(RC_OPTIONS_ERROR, "syncpoint_if_persistent goes without syncpoint")
            get.flags |= MQE_GET_IF_PERSISTENT
            syncpoint = True
        if syncpoint is not None or open_transactions != 0:
            self.connection.choose_unit(syncpoint, &unit)
        return self.receive(unit, &get, &request)

    cdef Message receive(self, mqe_unit *unit, mqe_get_t *get, get_request *request):
        """Waits for a message and takes it. Nothing has been taken when it raises."""
        cdef Message message = Message.__new__(Message)
        cdef PyObject *room = NULL
        cdef Py_ssize_t capacity = 0
        cdef int reason = self.take(unit, get, request, &room, &capacity)
        if reason == RC_TRUNCATED_MSG_FAILED:
            Py_DECREF(room)
        if reason and reason != RC_TRUNCATED_MSG_ACCEPTED:
            self.not_got(reason, get)
        message.reason = reason
        message.length = get.length
        message.number = get.number
        message._expiry = get.expiry
        memcpy(&message._d, &get.d, sizeof(get.d))
        if get.d.has_ext:
            message._ext = extension_bytes(&get.ext)
        self.learn(<Py_ssize_t>get.length)
        message._data = finished_body(room, capacity, min(capacity, <Py_ssize_t>get.length))
        return message

    cdef inline int take(
        self, mqe_unit *unit, mqe_get_t *get, get_request *request, PyObject **out,
        Py_ssize_t *out_capacity,
    ) except -1:
        """Gets into a room of its own, waiting as the request says; returns the reason code. With
        0, 2079 and 2080 the room is the caller's.
        """
        cdef penstock_gil gil
        cdef Py_ssize_t capacity = request.limit if request.limit >= 0 else self.hint
        cdef PyObject *room = body_room(capacity)
        cdef mqe_manager *manager = self.connection.manager
        cdef int64_t deadline = -1
        cdef int reason
        if get.flags & MQE_GET_UNLOCK:  # gives no message: say that there is none
            memset(&get.d, 0, sizeof(get.d))
            get.length = get.number = 0
            get.expiry = -1
        while True:
            get.buffer = PyBytes_AS_STRING(<object>room)
            get.capacity = <uint64_t>capacity
            self.busy += 1
            if capacity > LONG_COPY:
                penstock_gil_begin_long(&gil)
            else:
                penstock_gil_arm(&gil)
            reason = mqe_get(manager, unit, self.queue, get)
            penstock_gil_take(&gil)
            self.busy -= 1
            if reason == 0 or reason == RC_TRUNCATED_MSG_ACCEPTED:
                break
            if reason == RC_TRUNCATED_MSG_FAILED:
                if request.limit >= 0 or get.length > MAX_BODY:
                    break
                Py_DECREF(room)
                capacity = <Py_ssize_t>get.length
                room = body_room(capacity)
                continue
            if reason != MQE_INTERRUPTED and (
                reason != RC_NO_MSG_AVAILABLE or request.wait_us == 0
            ):
                Py_DECREF(room)
                return reason
            try:
                if self.wait_on(get, request, &deadline):
                    continue
            except BaseException:
                Py_DECREF(room)
                raise
            Py_DECREF(room)
            return RC_NO_MSG_AVAILABLE
        out[0] = room
        out_capacity[0] = capacity
        return reason

    cdef inline void learn(self, Py_ssize_t length) noexcept:
        """Expects bodies of the size seen; larger ones at once, smaller ones slowly."""
        if length >= self.hint:
            self.hint = length
        else:
            self.hint -= (self.hint - length) >> 4

    cdef bint wait_on(self, mqe_get_t *get, get_request *request, int64_t *deadline) except -1:
        """Prepares the next stretch of a wait; False when its time is up. Signal handlers run here,
        where nothing has been taken; what they raise ends the wait.
        """
        cdef int64_t left
        PyErr_CheckSignals()
        if self.closed:
            self.refuse()
        if request.wait_us < 0:
            left = WAIT_SLICE_US
        else:
            left = penstock_now_us()
            if deadline[0] < 0:
                deadline[0] = left + request.wait_us
            left = deadline[0] - left
            if left <= 0:
                return False
        get.flags |= MQE_GET_WAIT
        get.wait_us = min(left, WAIT_SLICE_US)
        return True

    cdef int not_got(self, int reason, mqe_get_t *get) except -1:
        """Raises what a get that took nothing ends with."""
        if reason == RC_NO_MSG_AVAILABLE:
            mqx_error_clear()
            what = "matching message" if get.match else "message"
            raise error_for(reason, f"queue {self.name} has no {what} available")
        if reason == RC_TRUNCATED_MSG_FAILED:
            mqx_error_clear()
            raise error_for(
                reason,
                f"queue {self.name}: the message has {get.length} bytes, "
                f"max_length is {get.capacity}; it stays on the queue",
                length=get.length,
            )
        fail(reason, f"queue {self.name}")


cdef uint32_t shared_as(uint32_t options, const int64_t *numbers) noexcept:
    """MQOO_* for the core: INPUT_AS_Q_DEF as DEFSOPT says, and NOSHARE is exclusive."""
    options &= OPEN_CORE
    if options & 1:
        options = (options & ~<uint32_t>1) | <uint32_t>numbers[0]
    if options & 2 and numbers[2] == 0:
        options = (options & ~<uint32_t>2) | MQE_INPUT_EXCLUSIVE
    return options


cdef object ZERO = 0


cdef bytes extension_bytes(const ps_descriptor_ext *ext):
    """A copy of the extension; None when there is no memory, as the message is already taken."""
    cdef PyObject *copy = PyBytes_New(<const char *>ext, sizeof(ext[0]))
    if copy is NULL:
        PyErr_Clear()
        return None
    return steal(copy)


cdef Py_ssize_t take_limit(object value) except -1:
    if isinstance(value, bool) or not isinstance(value, int):
        wrong_type(2005, f"max_length must be an integer, not {type(value).__name__}: {value!r}")
    if not 0 <= value <= MAX_BODY:
        wrong_value(2005, f"max_length {value!r} is not between 0 and {MAX_BODY}")
    return value


cdef int take_persistence(object value, ps_descriptor *d) except -1:
    if value is True:
        d.persistence = 1
    elif value is False:
        d.persistence = 0
    elif isinstance(value, int) and 0 <= value <= 2:
        d.persistence = value
    elif isinstance(value, int):
        wrong_value(RC_PERSISTENCE_ERROR, f"persistent {value!r} is not 0, 1 or 2")
    else:
        wrong_type(RC_PERSISTENCE_ERROR, f"persistent must be True, False or None: {value!r}")
    return 0


cdef int fill_fields(
    ps_descriptor *d, bint has_reply_q, object format, object msg_type, object report,
    object feedback, object encoding, object ccsid, object user_identifier,
) except -1:
    """The descriptor's fields that few puts give; None leaves one as it is."""
    if format is not None:
        take_text(format, d.format, 8, "format")
    if msg_type is not None:
        take_msg_type(msg_type, d, has_reply_q)
    if report is not None:
        take_report(report, d, has_reply_q)
    if feedback is not None:
        take_int(feedback, &d.feedback, RC_FEEDBACK_ERROR, "feedback")
    if encoding is not None:
        take_int(encoding, &d.encoding, RC_MD_ERROR, "encoding")
    if ccsid is not None:
        take_int(ccsid, &d.ccsid, RC_MD_ERROR, "ccsid")
    if user_identifier is not None:
        take_text(user_identifier, d.user_identifier, 12, "user_identifier")
    return 0


cdef int take_msg_type(object value, ps_descriptor *d, bint has_reply_q) except -1:
    take_int(value, &d.msg_type, RC_MSG_TYPE_ERROR, "msg_type")
    if not 1 <= d.msg_type <= 999999999:
        wrong_value(RC_MSG_TYPE_ERROR, f"msg_type {value!r} is not 1 to 999999999")
    if d.msg_type == 1 and not has_reply_q:
        wrong_value(RC_MISSING_REPLY_TO_Q, "a request (msg_type 1) needs reply_to_q")
    return 0


cdef int take_report(object value, ps_descriptor *d, bint has_reply_q) except -1:
    take_int(value, &d.report, RC_REPORT_OPTIONS_ERROR, "report")
    if d.report & RO_REJECT:
        wrong_value(RC_REPORT_OPTIONS_ERROR, f"report {value!r} has options that are not known")
    if d.report & RO_NEEDS_REPLY_Q and not has_reply_q:
        wrong_value(RC_MISSING_REPLY_TO_Q, f"report {value!r} needs reply_to_q")
    return 0


cdef uint32_t cursor_flags(
    object browse, bint under_cursor, bint lock, bint unlock, object syncpoint
) except? 0:
    """Flags of browsing and its lock; what contradicts itself is 2046."""
    cdef uint32_t flags = 0
    if (browse is not None or unlock) and syncpoint is True:
        wrong_value(RC_OPTIONS_ERROR, "browse and unlock go without syncpoint")
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
