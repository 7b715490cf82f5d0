# objects.pyx - the definitions of a queue manager: made, changed, deleted, found and read.
#
# Terms
#   name space  1 has the queues of every type, 100 + MQOT_* the others.
#   slot        where a definition stands; `generation` counts the definitions it has had.
#   instance    tells the definitions of a cluster queue of one name apart; 0 for others.
#   attributes  the list of FORMAT.md, encoded and decoded by penstock.objects.
#   version     of a definition: a change may be conditional on it. The resolution version changes
#               only when names that are resolved through the definition have to be resolved again.
#
# Locks. Changes run without the GIL; lookups release it only when they block (gil.h).
#
# Errors. 2085 for a name that is not there, 2152 for one that cannot be; what the core says.


cdef class ObjectCatalog(Attachment):
    """An attachment with the definitions of its queue manager."""

    def define_object(
        self, int kind, str name, bytes attrs, uint32_t name_space=NAME_SPACE_QUEUES,
        uint64_t instance=0,
    ):
        """Defines an object of type `kind`; returns its slot and generation."""
        cdef ps_object_name full
        cdef penstock_gil gil
        cdef uint32_t slot = 0, generation = 0, length = <uint32_t>len(attrs)
        cdef const char *list_of = attrs
        cdef int reason
        fill_name(&full, kind, name, name_space, instance)
        while True:
            self.begin()
            penstock_gil_begin_call(&gil)
            reason = mqe_define(self.manager, &full, list_of, length, &slot, &generation)
            penstock_gil_take_call(&gil)
            self.busy -= 1
            if not is_to_repeat(reason):
                break
        if reason:
            fail(reason, name)
        return slot, generation

    def define_objects(self, list rows):
        """Defines objects, each (name space, kind, name, instance, attributes), with one flush.

        Returns their number. Raises for the first that cannot be defined; those before it are.
        """
        cdef tuple given = tuple([tuple(row) for row in rows])  # which conversions cannot change
        cdef uint32_t count = <uint32_t>len(given), done = 0, total = 0, i
        cdef penstock_gil gil
        cdef ps_object_name *names
        cdef mqe_definition *definitions
        cdef bytes attrs
        cdef int reason
        self.check_open()
        if count == 0:
            return 0
        names = <ps_object_name *>zeroed_rows(
            count, sizeof(names[0]) + sizeof(definitions[0])
        )
        definitions = <mqe_definition *>&names[count]
        try:
            for i in range(count):
                name_space, kind, name, instance, attrs = given[i]
                fill_name(&names[i], kind, name, name_space, instance)
                definitions[i].name = &names[i]
                definitions[i].attrs = PyBytes_AS_STRING(attrs)
                definitions[i].length = <uint32_t>PyBytes_GET_SIZE(attrs)
            while True:
                self.begin()
                penstock_gil_begin_call(&gil)
                reason = mqe_define_many(
                    self.manager, definitions + total, count - total, &done
                )
                penstock_gil_take_call(&gil)
                self.busy -= 1
                total += done
                if not is_to_repeat(reason):
                    break
        finally:
            PyMem_Free(names)
        if reason:
            fail(reason, given[total][2])
        return total

    def alter_object(
        self, uint32_t slot, uint32_t generation, int kind, str name, bytes attrs,
        uint64_t version=0, bint resolution=False, uint32_t name_space=NAME_SPACE_QUEUES,
        uint64_t instance=0,
    ):
        """Replaces the attributes of an object, unless they are no longer those of `version` (0:
        whatever they are): then False. ``resolution``: handles whose name was resolved through the
        object end with 2041.
        """
        cdef ps_object_name full
        cdef penstock_gil gil
        cdef uint32_t length = <uint32_t>len(attrs)
        cdef uint32_t flags = MQE_ALTER_RESOLUTION if resolution else 0
        cdef const char *list_of = attrs
        cdef int reason
        fill_name(&full, kind, name, name_space, instance)
        while True:
            self.begin()
            penstock_gil_begin_call(&gil)
            reason = mqe_alter(
                self.manager, slot, generation, &full, list_of, length, version, flags
            )
            penstock_gil_take_call(&gil)
            self.busy -= 1
            if not is_to_repeat(reason):
                break
        if reason == MQE_CHANGED:
            return False
        if reason:
            fail(reason, name)
        return True

    def delete_object(self, uint32_t slot, uint32_t generation, bint purge, str name=""):
        """Deletes an object; `purge`: with its messages."""
        cdef penstock_gil gil
        cdef int reason
        while True:
            self.begin()
            penstock_gil_begin_call(&gil)
            reason = mqe_delete(self.manager, slot, generation, purge)
            penstock_gil_take_call(&gil)
            self.busy -= 1
            if not is_to_repeat(reason):
                break
        if reason:
            fail(reason, name)

    def clear_object(self, uint32_t slot, uint32_t generation, str name=""):
        """Removes every message of a queue."""
        cdef penstock_gil gil
        cdef int reason
        while True:
            self.begin()
            penstock_gil_begin_call(&gil)
            reason = mqe_clear(self.manager, slot, generation)
            penstock_gil_take_call(&gil)
            self.busy -= 1
            if not is_to_repeat(reason):
                break
        if reason:
            fail(reason, name)

    def report_is_due(self, uint32_t slot, uint32_t generation, uint32_t state):
        """Whether that state of the definitions around an instance of a cluster queue is to be
        reported: True to one caller of all processes, again after an hour.
        """
        self.check_open()
        return mqe_report_due(self.manager, slot, generation, state)

    def wake_object(self, uint32_t slot):
        """Wakes getters that wait on the queue: what its name is resolved through has changed."""
        cdef int reason
        self.begin()
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
        self.begin()
        with nogil:
            reason = mqe_fail_structure(self.manager, slot, generation, &lost)
        self.busy -= 1
        if reason:
            fail(reason)
        return lost

    def open_new(self, str name, bytes attrs, uint32_t options, bint fail_if_quiescing=True):
        """Makes the dynamic queue (selector 7: DEFTYPE) that the attributes describe, and opens it.

        A temporary one ends with the QueueHandle that is returned. Raises 2100, 2201 (z/OS).
        """
        return QueueHandle(self, name, options, fail_if_quiescing, definition=attrs)

    cdef int find(
        self, uint32_t name_space, str name, uint64_t instance, mqe_found *out
    ) except -1:
        """Finds an object: 0, or 2085 when there is none."""
        cdef bytes padded = object_name(name)
        cdef const char *text = padded
        cdef penstock_gil gil
        cdef int reason
        self.begin()
        penstock_gil_arm(&gil)
        reason = mqe_find(self.manager, name_space, text, instance, out)
        penstock_gil_take(&gil)
        self.busy -= 1
        if reason and reason != RC_UNKNOWN_OBJECT_NAME:
            fail(reason, name)
        return reason

    def look_up(self, uint32_t name_space, str name, uint64_t instance=0):
        """(slot, generation, type, resolution version) of an object, None when there is none."""
        cdef mqe_found found
        if self.find(name_space, name, instance, &found):
            return None
        return found.slot, found.generation, found.type, found.resolution_version

    def find_object(self, str name):
        """Slot and generation of the queue of that name."""
        cdef mqe_found found
        cdef int reason = self.find(NAME_SPACE_QUEUES, name, 0, &found)
        if reason:
            fail(reason, f"queue {name}")
        return found.slot, found.generation

    def next_object(self, uint32_t slot):
        """Slot and generation of the first object behind `slot`, None at the end."""
        cdef uint32_t generation = 0
        cdef int reason
        self.begin()
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

    def read_stamped(self, uint32_t slot, uint32_t generation, bint deleted_too=False):
        """(type, name, attribute list, definition version, name space, instance) of an object.
        `deleted_too`: also of one that is logically deleted; its definition version is 0.
        """
        cdef ps_object_name full
        cdef uint32_t length = 0, capacity = ATTRIBUTES_TYPICAL
        cdef uint64_t version = 0
        cdef int reason
        cdef bytes attrs
        cdef char *room
        while True:
            attrs = PyBytes_FromStringAndSize(NULL, capacity)
            room = attrs
            self.begin()
            with nogil:
                if deleted_too:
                    reason = mqe_read_deleted(
                        self.manager, slot, generation, &full, room, capacity, &length
                    )
                else:
                    reason = mqe_read_object(
                        self.manager, slot, generation, &full, room, capacity, &length, &version
                    )
            self.busy -= 1
            if reason:
                fail(reason)
            if length <= capacity:
                return (
                    full.type, from_blank_padded(full.name, NAME_LENGTH), attrs[:length], version,
                    full.name_space, full.instance,
                )
            capacity = length

    cdef int read_attributes(
        self, uint32_t slot, uint32_t generation, char *room, uint32_t capacity, uint32_t *length
    ) except -1:
        """The attribute list of an object, as much as there is room for; its length."""
        cdef ps_object_name full
        cdef penstock_gil gil
        cdef uint64_t version = 0
        cdef int reason
        self.begin()
        penstock_gil_arm(&gil)
        reason = mqe_read_object(
            self.manager, slot, generation, &full, room, capacity, length, &version
        )
        penstock_gil_take(&gil)
        self.busy -= 1
        if reason:
            fail(reason)
        return 0

    cdef int read_use(self, uint32_t slot, uint32_t generation, queue_use *out) except -1:
        """DEFSOPT, USAGE, SHARE and whether it is in a cluster, of a local queue."""
        cdef char room[ATTRIBUTES_TYPICAL]
        cdef uint32_t length = 0
        self.read_attributes(slot, generation, room, sizeof(room), &length)
        find_use(room, min(length, sizeof(room)), out)
        return 0

    def values(self, uint32_t slot, uint32_t generation, tuple selectors):
        """Stored attribute values, None for each selector that the definition does not have."""
        cdef bytes attrs
        cdef char room[ATTRIBUTES_TYPICAL]
        cdef char *list_of = room
        cdef uint32_t length = 0
        self.read_attributes(slot, generation, room, sizeof(room), &length)
        if length > sizeof(room):
            attrs = self.read_object(slot, generation)[2]
            list_of = attrs
            length = <uint32_t>len(attrs)
        return tuple([attribute_value(list_of, length, selector) for selector in selectors])

    def own_attribute(self, int32_t selector, int64_t default):
        """A number of the queue manager's own definition."""
        cdef mqe_found found
        cdef char room[ATTRIBUTES_TYPICAL]
        cdef uint32_t length = 0
        self.check_open()
        if mqe_find(
            self.manager, NAME_SPACE_QUEUE_MANAGER, self.padded_name, 0, &found
        ) != 0:
            mqx_error_clear()
            return default
        self.read_attributes(found.slot, found.generation, room, sizeof(room), &length)
        find_number(room, min(length, sizeof(room)), selector, &default)
        return default

    def new_id(self):
        """24 bytes that no other MsgId or CorrelId of this queue manager has."""
        cdef uint8_t raw[ID_LENGTH]
        cdef int reason
        self.check_open()
        reason = mqe_new_id(self.manager, raw)
        if reason:
            fail(reason)
        return PyBytes_FromStringAndSize(<char *>raw, ID_LENGTH)


cdef int fill_name(
    ps_object_name *out, int kind, str name, uint32_t name_space, uint64_t instance
) except -1:
    """The full name of an object for the core; 2152 when it cannot be one."""
    cdef bytes padded = object_name(name)
    memset(out, 0, sizeof(out[0]))
    out.name_space = name_space
    out.type = <uint32_t>kind
    out.instance = instance
    memcpy(out.name, PyBytes_AS_STRING(padded), NAME_LENGTH)
    return 0
