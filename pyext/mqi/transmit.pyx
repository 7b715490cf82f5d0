# transmit.pyx - puts whose destination is another queue manager: the message goes onto a
# transmission queue with an MQXQH in front of its data ("MQXQH overview").
#
# Terms
#   embedded descriptor  the application's MQMD, always of version 1; what only version 2 has
#                        follows as an MQMDE. -1 and 2 have been replaced, unless the instance of a
#                        cluster queue supplies the defaults: then the destination's put resolves
#                        them.
#   separate descriptor  what MQGET on the transmission queue returns: format MQXMIT, a MsgId of its
#                        own, a datagram that does not expire and asks for no reports; priority,
#                        persistence and context of the message. With a cluster instance the core
#                        resolves -1 and 2 from the instance's definition.
#
#   instance here        of a cluster queue, the queue of this queue manager (CLWLUSEQ(ANY)): a put
#                        for which it is chosen goes through a handle of its own, without a header.
#
# Locks. The put of the core runs without the GIL: it copies header and data.
#
# Errors. 2260 for data of format MQXMIT without a header, 2071 without memory; what the core says.


cdef int start_header(char *header, str queue, str manager) except -1:
    """The fields of an MQXQH before its descriptor, 104 bytes."""
    memcpy(header, STRUC_ID_XQH, STRUC_ID_LENGTH)
    set_long(<unsigned char *>header, VERSION_AT, MQXQH_VERSION_1)
    take_text(queue, header + XQH_REMOTE_QNAME, NAME_LENGTH, "RemoteQName")
    take_text(manager, header + XQH_REMOTE_QMGR_NAME, NAME_LENGTH, "RemoteQMgrName")
    return 0


cdef bint choose_destination(QueueHandle queue, mqe_destination *to, char *header) except -1:
    """The destination and the header of the next put: those of the instance chosen for it. True:
    it is the one here, whose handle is `queue.here`.
    """
    memcpy(to, &queue.to, sizeof(to[0]))
    memcpy(header, queue.header, XQH_MSG_DESC)
    if not queue.chooses:
        return False
    instance = queue.route.choose(queue.connection)
    queue.chose_here = instance.here
    if instance.here:
        open_here(queue, instance)
        memcpy(queue.resolved + NAME_LENGTH, queue.connection.padded_name, NAME_LENGTH)
        return True
    if queue.route.first is None:
        to.first = instance.slot
        to.first_generation = instance.generation
    take_text(
        instance.queue_manager, header + XQH_REMOTE_QMGR_NAME, NAME_LENGTH, "RemoteQMgrName"
    )
    memcpy(queue.resolved + NAME_LENGTH, header + XQH_REMOTE_QMGR_NAME, NAME_LENGTH)
    return False


cdef int open_here(QueueHandle queue, object instance) except -1:
    """Makes `queue.here` a handle on that instance. Another thread may do so meanwhile, or close
    the queue: then the handle that was made is not needed.
    """
    cdef QueueHandle here = queue.here, made
    if here is not None and not here.closed and here.slot == (instance.slot, instance.generation):
        return 0
    if here is not None:
        here.shut_with(MQE_CLOSE_KEEP)
    made = QueueHandle(
        queue.connection, queue.route.resolved_name, MQE_OUTPUT,
        manager=queue.connection.name,
    )
    if queue.here is not here or queue.closed:
        made.shut_with(MQE_CLOSE_KEEP)
        if queue.closed:
            queue.raise_closed()
        return 0
    if queue.route.first is not None:  # an alias supplies the defaults
        made.to.first = queue.to.first
        made.to.first_generation = queue.to.first_generation
    queue.here = made
    return 0


cdef Py_ssize_t write_header(
    unsigned char *room, const char *header, const ps_descriptor *d, const ps_descriptor_ext *ext,
    int32_t expiry, const char *manager
) noexcept:
    """Writes an MQXQH, and an MQMDE where one is needed, into MQXQH_LENGTH_1 + MQMDE_LENGTH_2
    bytes; returns the length.
    """
    cdef unsigned char *md = room + XQH_MSG_DESC
    memcpy(room, header, XQH_MSG_DESC)
    memcpy(md, STRUC_ID_MD, STRUC_ID_LENGTH)
    set_long(md, MD_VERSION, MQMD_VERSION_1)
    write_md(md, d, ext, expiry, manager)
    if ext is NULL or not has_group_fields(ext):
        return MQXQH_LENGTH_1
    write_mde(room + MQXQH_LENGTH_1, d, ext)
    memcpy(md + MD_FORMAT, FORMAT_MDE, MQ_FORMAT_LENGTH)
    set_long(md, MD_ENCODING, MQENC_NATIVE)
    set_long(md, MD_CODED_CHAR_SET_ID, MQCCSI_UTF8)
    return MQXQH_LENGTH_1 + MQMDE_LENGTH_2


cdef void fill_separate(const ps_descriptor *d, ps_descriptor *outer) noexcept:
    """The separate descriptor of a message."""
    memcpy(outer, d, sizeof(outer[0]))
    memset(outer.msg_id, 0, ID_LENGTH)
    memset(outer.correl_id, 0, ID_LENGTH)
    memcpy(outer.format, FORMAT_XMIT, MQ_FORMAT_LENGTH)
    outer.encoding = MQENC_NATIVE
    outer.ccsid = MQCCSI_UTF8
    outer.msg_type = MQMT_DATAGRAM
    outer.feedback = 0
    outer.report = 0
    outer.md_version = MQMD_VERSION_1


cdef int complete_ids(QueueHandle queue, ps_descriptor *d, uint32_t flags) noexcept:
    """Makes ids and put time as the core does for a local put: the embedded descriptor needs them.
    """
    cdef mqe_manager *manager = queue.connection.manager
    cdef int reason = 0
    if flags & MQE_PUT_NEW_MSG_ID or is_nul(d.msg_id, ID_LENGTH):
        reason = mqe_new_id(manager, d.msg_id)
    if reason == 0 and flags & MQE_PUT_NEW_CORREL_ID:
        reason = mqe_new_id(manager, d.correl_id)
    if not flags & MQE_PUT_KEEP_TIME:
        d.put_time_us = penstock_wall_us()
    return reason


cdef int transmit(
    QueueHandle queue, Unit unit, ps_descriptor *d, const ps_descriptor_ext *ext,
    const char *data, Py_ssize_t size, int32_t expiry, uint32_t flags
) except -1:
    """Puts a message with its header onto the transmission queue, or on the instance here. Returns
    the reason code; d then holds what the embedded descriptor has.
    """
    cdef mqe_destination to
    cdef char header[XQH_MSG_DESC]
    cdef int reason
    if choose_destination(queue, &to, header):
        return put_here(queue, unit, d, ext, data, size, expiry, flags)
    reason = transmit_to(queue, unit, &to, header, d, ext, data, size, expiry, flags, NULL)
    if reason == MQE_ATTENDED:
        reason = transmit_attended(
            queue, unit, &to, header, d, ext, data, size, expiry, flags
        )
    if reason == RC_PUT_INHIBITED and queue.chooses:
        queue.route.require_enabled(queue.connection)
    return reason


cdef int put_here(
    QueueHandle queue, Unit unit, ps_descriptor *d, const ps_descriptor_ext *ext,
    const char *data, Py_ssize_t size, int32_t expiry, uint32_t flags
) except -1:
    """Puts on the instance here. When its definition changes at that moment, the next put opens it
    anew.
    """
    cdef QueueHandle here = queue.here
    cdef int reason = send(here, unit, d, ext, data, size, expiry, flags)
    if reason == RC_PUT_INHIBITED:
        queue.route.require_enabled(queue.connection)
    elif reason == RC_OBJECT_CHANGED or reason == RC_Q_DELETED:
        here.shut_with(MQE_CLOSE_KEEP)
    return reason


cdef int transmit_to(
    QueueHandle queue, Unit unit, mqe_destination *to, const char *header, ps_descriptor *d,
    const ps_descriptor_ext *ext, const char *data, Py_ssize_t size, int32_t expiry, uint32_t flags,
    mqe_arrival *arrival,
) except -1:
    """The same to a destination that was chosen; `arrival` NULL, or to be filled."""
    cdef ps_descriptor embedded
    cdef int reason
    while True:
        memcpy(&embedded, d, sizeof(embedded))
        begin_call(queue, unit)
        reason = transmit_core(
            queue, core_unit(unit), to, header, &embedded, ext, data, size, expiry, flags, arrival
        )
        end_call(queue, unit)
        if not is_to_repeat(reason):
            break
    if reason != MQE_ATTENDED:
        memcpy(d, &embedded, sizeof(embedded))
    return reason


cdef int transmit_core(
    QueueHandle queue, mqe_unit *unit, mqe_destination *to, const char *header, ps_descriptor *d,
    const ps_descriptor_ext *ext, const char *data, Py_ssize_t size, int32_t expiry,
    uint32_t flags, mqe_arrival *arrival,
) noexcept:
    """The calls of the core, with the destination and the start of the header that were chosen."""
    cdef mqe_manager *manager = queue.connection.manager
    cdef ps_descriptor outer
    cdef unsigned char *room
    cdef penstock_gil gil
    cdef Py_ssize_t length
    cdef int warning = 0
    cdef int reason = complete_ids(queue, d, flags)
    if reason == 0 and not queue.chooses_defaults:
        reason = mqe_resolve_defaults(manager, to, d, &warning)
    if reason:
        return reason
    room = <unsigned char *>PyMem_Malloc(<size_t>(MQXQH_LENGTH_1 + MQMDE_LENGTH_2 + size))
    if room is NULL:
        return RC_STORAGE_NOT_AVAILABLE
    expiry = mqe_cap_expiry(manager, to, expiry)
    length = write_header(room, header, d, ext, expiry, queue.connection.padded_name)
    memcpy(room + length, data, <size_t>size)
    fill_separate(d, &outer)
    flags = MQE_PUT_KEEP_TIME | MQE_PUT_NOT_CAPPED | (
        flags & (MQE_PUT_FAIL_IF_QUIESCING | MQE_PUT_OWN_UNIT | MQE_PUT_STAYS)
    )
    penstock_gil_begin_call(&gil)
    if arrival is NULL:
        reason = mqe_put(
            manager, unit, to, &outer, NULL, room, <uint64_t>(length + size), MQEI_UNLIMITED, flags
        )
    else:
        reason = mqe_put_attended(
            manager, unit, to, &outer, NULL, room, <uint64_t>(length + size), MQEI_UNLIMITED,
            flags, arrival,
        )
    penstock_gil_take_call(&gil)
    PyMem_Free(room)
    return reason or warning


cdef int check_xqh(const char *data, Py_ssize_t size) noexcept:
    """0, or 2260 when data of format MQXMIT does not begin with a transmission header."""
    cdef const unsigned char *raw = <const unsigned char *>data
    if size < MQXQH_LENGTH_1 or memcmp(data, STRUC_ID_XQH, STRUC_ID_LENGTH) != 0:
        return RC_XQH_ERROR
    if memcmp(data + XQH_MSG_DESC, STRUC_ID_MD, STRUC_ID_LENGTH) != 0:
        return RC_XQH_ERROR
    if get_long(raw, VERSION_AT) != MQXQH_VERSION_1:
        return RC_XQH_ERROR
    return RC_XQH_ERROR if get_long(raw, XQH_MSG_DESC + MD_VERSION) != MQMD_VERSION_1 else 0
