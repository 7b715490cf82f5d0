# connection.pxi - an attachment to a queue manager: objects, units of work, status, and the order
# in which everything ends.

cdef object connections = WeakSet()  # the open ones of this process, for the interpreter's exit


cdef dict INTEGER_SETTINGS = {  # the largest value of each
    name: 0xFFFFFFFF if name in (
        "platform", "stripe_count", "name_bucket_count", "growth_step", "max_uncommitted",
        "max_message", "linear", "keeper", "control", "keep_mapping", "no_helper",
    ) else 0xFFFFFFFFFFFFFFFF
    for name in (
        "platform", "segment_size", "first_segment_size", "journal_limit", "ring_size",
        "region_size", "body_budget", "stripe_count", "name_bucket_count", "growth_step",
        "max_uncommitted", "max_message", "linear", "keeper", "control", "keep_mapping",
        "no_helper",
    )
}


cdef bytes path_bytes(object path):
    """A path for the core."""
    import os

    raw = os.fsencode(path)
    if b"\0" in raw:
        raise InvalidValue(RC_ENVIRONMENT_ERROR, f"the path {path!r} contains a NUL character")
    return raw


cdef uint64_t setting(dict settings, str key) except? 0:
    """An integer setting, 0 (the default) when it is not given."""
    cdef object value = settings.get(key, 0)
    if isinstance(value, bool):
        value = int(value)
    if not isinstance(value, int):
        raise InvalidType(RC_OPTIONS_ERROR, f"setting {key} must be an integer: {value!r}")
    if not 0 <= value <= INTEGER_SETTINGS[key]:
        raise InvalidValue(RC_OPTIONS_ERROR, f"setting {key} is out of range: {value!r}")
    return <uint64_t>value


cdef int fill_settings(mqe_settings *out, dict settings) except -1:
    """Copies settings; `region_dir` (bytes) stays owned by the caller's dictionary."""
    cdef bytes name, qm_id
    for key in settings:
        if key not in INTEGER_SETTINGS and key not in ("name", "qm_id", "region_dir"):
            raise InvalidValue(RC_OPTIONS_ERROR, f"there is no setting {key!r}")
    memset(out, 0, sizeof(out[0]))
    name = settings.get("name", "").encode("ascii", "replace")
    if len(name) > 48:
        raise InvalidValue(RC_OBJECT_NAME_ERROR, f"the name {name!r} is longer than 48 characters")
    memcpy(out.name, PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name))
    qm_id = settings.get("qm_id", bytes(16))
    if len(qm_id) != 16:
        raise InvalidValue(RC_OPTIONS_ERROR, f"qm_id must have 16 bytes: {qm_id!r}")
    memcpy(out.qm_id, PyBytes_AS_STRING(qm_id), 16)
    out.platform = <uint32_t>setting(settings, "platform")
    out.segment_size = setting(settings, "segment_size")
    out.first_segment_size = setting(settings, "first_segment_size")
    out.journal_limit = setting(settings, "journal_limit")
    out.ring_size = setting(settings, "ring_size")
    out.region_size = setting(settings, "region_size")
    out.body_budget = setting(settings, "body_budget")
    out.stripe_count = <uint32_t>setting(settings, "stripe_count")
    out.name_bucket_count = <uint32_t>setting(settings, "name_bucket_count")
    out.growth_step = <uint32_t>setting(settings, "growth_step")
    out.max_uncommitted = <uint32_t>setting(settings, "max_uncommitted")
    out.max_message = <uint32_t>setting(settings, "max_message")
    out.linear = <uint32_t>setting(settings, "linear")
    out.keeper = <uint32_t>setting(settings, "keeper")
    out.control = <uint32_t>setting(settings, "control")
    out.keep_mapping = <uint32_t>setting(settings, "keep_mapping")
    out.no_helper = <uint32_t>setting(settings, "no_helper")
    cdef object region_dir = settings.get("region_dir")
    if region_dir is not None:
        if not isinstance(region_dir, bytes):
            raise InvalidType(RC_OPTIONS_ERROR, f"region_dir must be bytes: {region_dir!r}")
        out.region_dir = PyBytes_AS_STRING(region_dir)
    return 0


def create_files(path, dict settings):
    """Makes journal, checkpoint and lock file of a new queue manager in an existing directory."""
    cdef bytes raw = path_bytes(path)
    cdef const char *text = raw
    cdef mqe_settings filled
    cdef int reason
    fill_settings(&filled, settings)
    with nogil:
        reason = mqe_create(text, &filled)
    if reason:
        fail(reason, str(path))


@cython.no_gc_clear
cdef class Connection:
    """An attachment of this process to the queue manager in a directory.

    Several of one directory share one attachment in the core. Thread-safe. ``path`` is the
    directory, ``settings`` what its qm.toml says, ``identity`` (user, program, accounting token)
    what messages put here carry.
    """

    cdef mqe_manager *manager
    cdef mqe_unit *spare            # an ended unit of work, for the thread that ended it
    cdef object spare_owner
    cdef object children            # open handles
    cdef object units               # open explicit units
    cdef object implicit            # owner -> Unit
    cdef int busy
    cdef unsigned forks
    cdef readonly bint closed
    cdef readonly bint zos
    cdef readonly str name
    cdef readonly dict attach_info
    cdef readonly uint64_t np_discarded  # non-persistent messages that closing discarded
    cdef ps_descriptor template
    cdef char padded_name[48]       # of the queue manager
    cdef object __weakref__

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
        memset(self.padded_name, 32, 48)
        take_text(self.name, self.padded_name, 48, "name")
        self.forks = penstock_forks
        self.children = WeakSet()
        self.units = WeakSet()
        self.implicit = WeakKeyDictionary()
        self.fill_template(identity)
        fill_settings(&filled, settings)
        self.zos = filled.platform == 1
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
        d.priority = -1
        d.persistence = 2
        d.msg_type = 8
        d.encoding = 546
        d.ccsid = 1208
        d.md_version = 2
        d.put_appl_type = 6
        memset(d.format, 32, 8)
        memset(d.appl_origin_data, 32, 4)
        take_text(user, d.user_identifier, 12, "user")
        take_text(program, d.put_appl_name, 28, "program")
        memcpy(d.accounting_token, PyBytes_AS_STRING(token), min(32, PyBytes_GET_SIZE(token)))
        return 0

    # ---- end ----

    def __del__(self):
        if self.manager is NULL or self.closed:
            return
        if self.forks == penstock_forks:
            warn_leak(f"queue manager {self.name} was not closed", self)
        self.end(False, MQE_DETACH_ORDERLY, 0)

    cdef int end(self, bint commit, int how, int pauses):
        """Ends units, closes handles, detaches; returns the first reason code that is no success.
        Gives up, leaving everything attached, when calls are inside after `pauses` (0: waits on).
        """
        cdef int reason = 0, first = 0
        cdef uint64_t discarded = 0
        cdef list handles
        if self.closed:
            return 0
        self.closed = True
        connections.discard(self)
        if self.forks != penstock_forks:
            self.forget()
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
            from penstock._logging import discarded_at_end

            discarded_at_end(self.name, discarded)
        return first or (0 if has_stopped(reason) else reason)

    cdef bint wait_until_idle(self, list handles, int pauses):
        """Waits for calls of other threads to leave the core."""
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
        """Commits implicit units and the caller's transaction when `commit`; backs out the rest."""
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

    cdef int forget(self) except -1:
        """In a forked child: drops everything without touching it."""
        self.manager = NULL
        self.spare = NULL
        for handle in list(self.children):
            (<QueueHandle>handle).closed = True
        for unit in list(self.units):
            (<Unit>unit).forget()
        return 0

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

    cdef int check_open(self) except -1:
        if self.forks != penstock_forks:
            raise error_for(
                RC_ENVIRONMENT_ERROR,
                f"queue manager {self.name} was connected by the parent process; connect anew",
            )
        if self.closed or self.manager is NULL:
            closed_handle(RC_HCONN_ERROR, f"the connection to queue manager {self.name} is closed")
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
        self.check_open()
        cdef Unit unit = self.present_unit()
        cdef int reason = 0
        if unit is None:
            unit = self.implicit.get(current_owner())
        if unit is not None:
            reason = unit.complete(commit)
        if reason:
            fail(reason, f"queue manager {self.name}")
        return 0

    cdef Unit present_unit(self):
        """The explicit unit of this thread or task, None when there is none."""
        cdef Unit unit
        if open_transactions == 0:
            return None
        unit = context_value(innermost)
        if unit is None:
            return None
        cdef object owner = current_owner()
        while unit is not None:
            if unit.connection is self and unit.state == UNIT_OPEN and unit.owner is owner:
                return unit
            unit = unit.outer
        return None

    cdef int choose_unit(self, object syncpoint, mqe_unit **out) except -1:
        """The unit that a call with this `syncpoint` belongs to, NULL for none."""
        cdef Unit unit
        out[0] = NULL
        if syncpoint is not None and not isinstance(syncpoint, bool):
            wrong_type(RC_OPTIONS_ERROR, f"syncpoint must be True, False or None: {syncpoint!r}")
        if syncpoint is False:
            return 0
        unit = self.present_unit()
        if unit is None and syncpoint is True:
            unit = self.implicit_unit()
        if unit is not None:
            out[0] = unit.unit
        return 0

    cdef Unit implicit_unit(self):
        """The implicit unit of this thread or task, made when there is none."""
        cdef object owner = current_owner()
        cdef Unit unit = self.implicit.get(owner)
        if unit is None:
            unit = Unit.__new__(Unit)
            unit.forks = penstock_forks
            unit.unit = self.new_unit()
            unit.state = UNIT_OPEN
            self.implicit[owner] = unit
        return unit

    cdef int refuse_second_unit(self) except -1:
        """A thread or task has one unit of work at a time."""
        cdef Unit unit
        if self.present_unit() is not None:
            raise error_for(
                RC_UOW_IN_PROGRESS, "this thread or task is inside a transaction() already"
            )
        unit = self.implicit.get(current_owner())
        if unit is not None and mqe_unit_count(unit.unit) != 0:
            raise error_for(
                RC_UOW_IN_PROGRESS,
                "this thread or task has a unit of work of its own: commit() or backout() first",
            )
        return 0

    cdef mqe_unit *new_unit(self) except NULL:
        cdef penstock_gil gil
        cdef mqe_unit *unit = self.spare
        cdef int reason
        if unit is not NULL and self.spare_owner is thread_owner():
            self.spare = NULL
            return unit
        self.busy += 1
        penstock_gil_arm(&gil)
        reason = mqe_unit_new(self.manager, &unit)
        penstock_gil_take(&gil)
        self.busy -= 1
        if reason:
            fail(reason, f"queue manager {self.name}")
        return unit

    cdef int give_back(self, mqe_unit *unit, bint whole) except -1:
        """Keeps an ended unit for the next transaction of the same thread."""
        if whole and self.spare is NULL and not self.closed:
            self.spare = unit
            self.spare_owner = thread_owner()
        else:
            mqe_unit_free(unit)
        return 0

    # ---- objects: names of 48 characters at most, attributes as the list of FORMAT.md; name space
    # 1 has the queues of every type, 100 + MQOT_* the others ----

    def define_object(
        self, int kind, str name, bytes attrs, uint32_t name_space=1, uint64_t instance=0
    ):
        """Defines an object of type `kind`; returns its slot and generation."""
        cdef ps_object_name full
        cdef uint32_t slot = 0, generation = 0, length = <uint32_t>len(attrs)
        cdef const char *list_of = attrs
        cdef int reason
        self.check_open()
        fill_name(&full, kind, name, name_space, instance)
        self.busy += 1
        with nogil:
            reason = mqe_define(self.manager, &full, list_of, length, &slot, &generation)
        self.busy -= 1
        if reason:
            fail(reason, name)
        return slot, generation

    def define_objects(self, list rows):
        """Defines objects, each (name space, kind, name, instance, attributes), with one flush.

        Returns their number. Raises for the first that cannot be defined; those before it are.
        """
        cdef uint32_t count = <uint32_t>len(rows), done = 0, i
        cdef ps_object_name *names
        cdef mqe_definition *definitions
        cdef bytes attrs
        cdef int reason
        self.check_open()
        if count == 0:
            return 0
        names = <ps_object_name *>room_for(count, sizeof(names[0]) + sizeof(definitions[0]))
        definitions = <mqe_definition *>&names[count]
        try:
            for i in range(count):
                name_space, kind, name, instance, attrs = rows[i]
                fill_name(&names[i], kind, name, name_space, instance)
                definitions[i].name = &names[i]
                definitions[i].attrs = PyBytes_AS_STRING(attrs)
                definitions[i].length = <uint32_t>PyBytes_GET_SIZE(attrs)
            self.busy += 1
            with nogil:
                reason = mqe_define_many(self.manager, definitions, count, &done)
            self.busy -= 1
        finally:
            PyMem_Free(names)
        if reason:
            fail(reason, rows[done][2])
        return done

    def alter_object(
        self, uint32_t slot, uint32_t generation, int kind, str name, bytes attrs,
        uint64_t stamp=0, bint resolution=False, uint32_t name_space=1, uint64_t instance=0,
    ):
        """Replaces the attributes of an object, unless they are no longer those of `stamp` (0:
        whatever they are): then False. ``resolution``: handles whose name was resolved through the
        object end with 2041.
        """
        cdef ps_object_name full
        cdef uint32_t length = <uint32_t>len(attrs)
        cdef const char *list_of = attrs
        cdef int reason
        self.check_open()
        fill_name(&full, kind, name, name_space, instance)
        self.busy += 1
        with nogil:
            reason = mqe_alter(
                self.manager, slot, generation, &full, list_of, length, stamp,
                MQE_ALTER_RESOLUTION if resolution else 0,
            )
        self.busy -= 1
        if reason == MQE_CHANGED:
            return False
        if reason:
            fail(reason, name)
        return True

    def wake_object(self, uint32_t slot):
        """Getters that wait on the queue look again: what its name is resolved through changed."""
        cdef int reason
        self.check_open()
        self.busy += 1
        with nogil:
            reason = mqe_wake(self.manager, slot)
        self.busy -= 1
        if reason:
            fail(reason)

    def fail_structure(self, uint32_t slot, uint32_t generation):
        """Simulates the failure of a CFSTRUCT: returns how many non-persistent messages are lost.

        2055 while units of work hold messages of a queue in it.
        """
        cdef uint64_t lost = 0
        cdef int reason
        self.check_open()
        self.busy += 1
        with nogil:
            reason = mqe_fail_structure(self.manager, slot, generation, &lost)
        self.busy -= 1
        if reason:
            fail(reason)
        return lost

    def new_id(self):
        """24 bytes that no other MsgId or CorrelId of this queue manager has."""
        cdef uint8_t raw[24]
        cdef int reason
        self.check_open()
        reason = mqe_new_id(self.manager, raw)
        if reason:
            fail(reason)
        return PyBytes_FromStringAndSize(<char *>raw, 24)

    def open_new(self, str name, bytes attrs, uint32_t options, bint fail_if_quiescing=True):
        """Makes the dynamic queue (selector 7: DEFTYPE) that the attributes describe, and opens it.

        A temporary one ends with the QueueHandle that is returned. Raises 2100, 2201 (z/OS).
        """
        return QueueHandle(self, name, options, fail_if_quiescing, definition=attrs)

    def delete_object(self, uint32_t slot, uint32_t generation, bint purge, str name=""):
        """Deletes an object; `purge`: with its messages."""
        cdef int reason
        self.check_open()
        self.busy += 1
        with nogil:
            reason = mqe_delete(self.manager, slot, generation, purge)
        self.busy -= 1
        if reason:
            fail(reason, name)

    def clear_object(self, uint32_t slot, uint32_t generation, str name=""):
        """Removes every message of a queue."""
        cdef int reason
        self.check_open()
        self.busy += 1
        with nogil:
            reason = mqe_clear(self.manager, slot, generation)
        self.busy -= 1
        if reason:
            fail(reason, name)

    cdef int find(
        self, uint32_t name_space, str name, uint64_t instance, mqe_found *out
    ) except -1:
        """Finds an object: 0, or 2085 when there is none."""
        cdef bytes padded = object_name(name)
        cdef const char *text = padded
        cdef penstock_gil gil
        cdef int reason
        self.check_open()
        self.busy += 1
        penstock_gil_arm(&gil)
        reason = mqe_find(self.manager, name_space, text, instance, out)
        penstock_gil_take(&gil)
        self.busy -= 1
        if reason and reason != RC_UNKNOWN_OBJECT_NAME:
            fail(reason, name)
        return reason

    def look_up(self, uint32_t name_space, str name, uint64_t instance=0):
        """(slot, generation, type, resolution stamp) of an object, None when there is none."""
        cdef mqe_found found
        if self.find(name_space, name, instance, &found):
            return None
        return found.slot, found.generation, found.type, found.resolution

    cdef int read_attributes(
        self, uint32_t slot, uint32_t generation, char *room, uint32_t capacity, uint32_t *length
    ) except -1:
        """The attribute list of an object, as much as there is room for; its length."""
        cdef ps_object_name full
        cdef penstock_gil gil
        cdef uint64_t stamp = 0
        cdef int reason
        self.busy += 1
        penstock_gil_arm(&gil)
        reason = mqe_read_object(
            self.manager, slot, generation, &full, room, capacity, length, &stamp
        )
        penstock_gil_take(&gil)
        self.busy -= 1
        if reason:
            fail(reason)
        return 0

    cdef int read_numbers(self, uint32_t slot, uint32_t generation, int64_t *out) except -1:
        """DEFSOPT, USAGE and SHARE of a local queue."""
        cdef char room[2048]
        cdef uint32_t length = 0
        self.read_attributes(slot, generation, room, sizeof(room), &length)
        take_numbers(room, min(length, sizeof(room)), out)
        return 0

    def own_attribute(self, int32_t selector, int64_t default):
        """A number of the queue manager's own definition."""
        cdef mqe_found found
        cdef char room[2048]
        cdef uint32_t length = 0
        self.check_open()
        if mqe_find(self.manager, 105, self.padded_name, 0, &found) != 0:
            mqx_error_clear()
            return default
        self.read_attributes(found.slot, found.generation, room, sizeof(room), &length)
        find_number(room, min(length, sizeof(room)), selector, &default)
        return default

    def values(self, uint32_t slot, uint32_t generation, tuple selectors):
        """Stored attribute values, None for each selector that the definition does not have."""
        cdef bytes attrs
        cdef char room[2048]
        cdef char *list_of = room
        cdef uint32_t length = 0
        self.check_open()
        self.read_attributes(slot, generation, room, sizeof(room), &length)
        if length > sizeof(room):
            attrs = self.read_object(slot, generation)[2]
            list_of = attrs
            length = <uint32_t>len(attrs)
        return tuple([attribute_value(list_of, length, selector) for selector in selectors])

    def is_quiescing(self):
        """Whether the queue manager is ending."""
        self.check_open()
        cdef bint ending = mqe_usable(self.manager, 1) == RC_Q_MGR_QUIESCING
        if ending:
            mqx_error_clear()
        return ending

    def find_object(self, str name):
        """Slot and generation of the queue of that name."""
        cdef mqe_found found
        cdef int reason = self.find(1, name, 0, &found)
        if reason:
            fail(reason, f"queue {name}")
        return found.slot, found.generation

    def next_object(self, uint32_t slot):
        """Slot and generation of the first object behind `slot`, None at the end."""
        cdef uint32_t generation = 0
        cdef int reason
        self.check_open()
        self.busy += 1
        with nogil:
            reason = mqe_next_object(self.manager, &slot, &generation)
        self.busy -= 1
        if reason == RC_UNKNOWN_OBJECT_NAME:
            return None
        if reason:
            fail(reason)
        return slot, generation

    def read_object(self, uint32_t slot, uint32_t generation):
        """(type, name, attribute list) of an object."""
        return self.read_stamped(slot, generation)[:3]

    def read_stamped(self, uint32_t slot, uint32_t generation):
        """(type, name, attribute list, stamp of the list, name space, instance) of an object."""
        cdef ps_object_name full
        cdef uint32_t length = 0, capacity = 2048
        cdef uint64_t stamp = 0
        cdef int reason
        cdef bytes attrs
        cdef char *room
        self.check_open()
        while True:
            attrs = PyBytes_FromStringAndSize(NULL, capacity)
            room = attrs
            self.busy += 1
            with nogil:
                reason = mqe_read_object(
                    self.manager, slot, generation, &full, room, capacity, &length, &stamp
                )
            self.busy -= 1
            if reason:
                fail(reason)
            if length <= capacity:
                return (
                    full.type, from_blank_padded(full.name, 48), attrs[:length], stamp,
                    full.name_space, full.instance,
                )
            capacity = length

    # ---- status ----

    def queue_status(self, uint32_t slot, uint32_t generation, str name="", bint oldest=False):
        """Counts of a queue as a dictionary; with `oldest` also oldest_us, for which the queue is
        looked into.
        """
        cdef mqe_queue_status_t status
        cdef penstock_gil gil
        cdef uint64_t oldest_us = 0
        cdef int reason
        cdef dict counts
        self.check_open()
        memset(&status, 0, sizeof(status))
        self.busy += 1
        penstock_gil_arm(&gil)
        reason = mqe_queue_status(self.manager, slot, generation, &status)
        if reason == 0 and oldest:
            reason = mqe_queue_oldest(self.manager, slot, generation, &oldest_us)
        penstock_gil_take(&gil)
        self.busy -= 1
        if reason:
            fail(reason, f"queue {name}")
        counts = status
        if oldest:
            counts["oldest_us"] = oldest_us
        return counts

    def manager_status(self):
        """Counts of the queue manager as a dictionary."""
        cdef mqe_manager_status status
        cdef int reason
        self.check_open()
        memset(&status, 0, sizeof(status))
        self.busy += 1
        with nogil:
            reason = mqe_status(self.manager, &status)
        self.busy -= 1
        if reason:
            fail(reason)
        return status

    def processes(self):
        """The attached processes, each as a dictionary."""
        cdef mqe_process_status *rows
        cdef uint32_t i, count = 0, capacity = 1024
        cdef int reason
        self.check_open()
        rows = <mqe_process_status *>room_for(capacity, sizeof(rows[0]))
        try:
            self.busy += 1
            with nogil:
                reason = mqe_processes(self.manager, rows, capacity, &count)
            self.busy -= 1
            if reason:
                fail(reason)
            return [
                {
                    "pid": rows[i].pid, "keeper": bool(rows[i].keeper),
                    "attached_us": rows[i].attached_us,
                    "program": rows[i].program.decode("utf-8", "replace"),
                }
                for i in range(min(count, capacity))
            ]
        finally:
            PyMem_Free(rows)

    def unit_rows(self):
        """The units of work under way, each as a dictionary."""
        cdef mqe_unit_status *rows
        cdef uint32_t i, count = 0, capacity = 4096
        cdef int reason
        self.check_open()
        rows = <mqe_unit_status *>room_for(capacity, sizeof(rows[0]))
        try:
            self.busy += 1
            with nogil:
                reason = mqe_units(self.manager, rows, capacity, &count)
            self.busy -= 1
            if reason:
                fail(reason)
            return [rows[i] for i in range(min(count, capacity))]
        finally:
            PyMem_Free(rows)

    def handle_rows(self):
        """The open handles, each as a dictionary."""
        cdef mqe_handle_status *rows
        cdef uint32_t i, count = 0, capacity = 65536
        cdef int reason
        self.check_open()
        rows = <mqe_handle_status *>room_for(capacity, sizeof(rows[0]))
        try:
            self.busy += 1
            with nogil:
                reason = mqe_handles(self.manager, rows, capacity, &count)
            self.busy -= 1
            if reason:
                fail(reason)
            return [rows[i] for i in range(min(count, capacity))]
        finally:
            PyMem_Free(rows)

    # ---- maintenance ----

    def request_end(self, int mode):
        """Asks every process to leave: 0 controlled, 1 wait, 2 immediate, 3 pre-emptive."""
        cdef int reason
        self.check_open()
        self.busy += 1
        with nogil:
            reason = mqe_end(self.manager, mode)
        self.busy -= 1
        if reason:
            fail(reason)

    def checkpoint(self):
        """Takes a checkpoint now."""
        cdef int reason
        self.check_open()
        self.busy += 1
        with nogil:
            reason = mqe_checkpoint(self.manager)
        self.busy -= 1
        if reason:
            fail(reason)

    def maintain(self):
        """One round of what the helper thread does: sweep, marks, spares, expiry, checkpoints."""
        cdef int reason
        self.check_open()
        self.busy += 1
        with nogil:
            reason = mqe_maintain(self.manager)
        self.busy -= 1
        if reason:
            fail(reason)

    def check(self):
        """Verifies the structures of every queue; raises ObjectDamaged with what is wrong."""
        cdef int reason
        self.check_open()
        self.busy += 1
        with nogil:
            reason = mqe_check(self.manager)
        self.busy -= 1
        if reason:
            fail(reason)

    def log(self, int amq, str severity, str text):
        """Writes a line to the queue manager's error log; severity 'I', 'W' or 'E'."""
        if severity not in ("I", "W", "E"):
            wrong_value(RC_OPTIONS_ERROR, f"severity must be I, W or E: {severity!r}")
        cdef bytes raw = text.encode("utf-8")
        cdef const char *line = raw
        cdef char letter = <char>ord(severity)
        self.check_open()
        self.busy += 1
        with nogil:
            mqe_log(self.manager, amq, letter, line)
        self.busy -= 1


cdef bint has_stopped(int reason):
    """Whether the queue manager had stopped: what was to be released is gone with it."""
    return reason == RC_CONNECTION_BROKEN or reason == RC_Q_MGR_STOPPING


cdef int fill_name(
    ps_object_name *out, int kind, str name, uint32_t name_space, uint64_t instance
) except -1:
    cdef bytes padded = object_name(name)
    memset(out, 0, sizeof(out[0]))
    out.name_space = name_space
    out.type = <uint32_t>kind
    out.instance = instance
    memcpy(out.name, PyBytes_AS_STRING(padded), 48)
    return 0


cdef void *room_for(uint32_t count, size_t size) except NULL:
    cdef void *room = PyMem_Malloc(count * size)
    if room is NULL:
        raise MemoryError()
    memset(room, 0, count * size)
    return room


cdef int warn_leak(str text, object source) except -1:
    """A ResourceWarning; one that is turned into an error is shown and stops no clean-up."""
    cdef bytes raw = text.encode("utf-8")
    if PyErr_ResourceWarning(<PyObject *>source, 1, b"%s", PyBytes_AS_STRING(raw)) < 0:
        PyErr_WriteUnraisable(source)
    return 0


def end_all():
    """For the interpreter's exit: backs out what is pending, detaches every connection in order.

    On platform z/OS a normal end, one without an uncaught exception, commits.
    """
    cdef bint normal = not hasattr(sys, "last_value")
    for connection in list(connections):
        (<Connection>connection).end(
            normal and (<Connection>connection).zos, MQE_DETACH_ORDERLY, FORCED_PAUSES
        )
