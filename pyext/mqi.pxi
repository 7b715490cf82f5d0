# mqi.pxi - connection and object handles of the MQI, and what is quick with them but for puts and
# gets: MQOPEN of a local queue, MQCLOSE, MQCMIT, MQBACK. Other verbs are in mqi_put, mqi_get and
# penstock.mqi. All work on the raw bytes of the structures.
#
# Terms
#   Hconn     a connection handle: a connection of its own, one unit of work, the handles opened
#             with it.
#   Hobj      an object handle. A number until MQCLOSE, -1 (MQHO_UNUSABLE_HOBJ) after it.
#   plan      what a set of options means; made once and kept while an Hobj sees the same options.
#   context   where the descriptor's identity and origin context come from (CONTEXT_*).
#
# Invariants
#   1. No verb raises for an MQ reason code. What an exception of the engine carries becomes the
#      code; KeyboardInterrupt and MemoryError pass.
#   2. The checks of a put come in the order of the reference: connection, handle, right, MQPMO,
#      context, MQMD, buffer; nothing has been changed when one of them fails. Connection and
#      handle go first in the other verbs, too.
#   3. A handle that is open is known to its Hconn by its number, so that MQPMO.Context can name it.
#
# Threads. A handle may be used by any thread. Calls that belong to the unit of work of an Hconn
# wait for each other; with MQCNO_HANDLE_SHARE_NO_BLOCK they get 2219 (MQRC_CALL_IN_PROGRESS).

cdef enum:                    # offsets in an MQPMO
    PMO_OPTIONS = 8
    PMO_CONTEXT = 16
    PMO_KNOWN = 20
    PMO_UNKNOWN = 24
    PMO_INVALID = 28
    PMO_RESOLVED = 32
    PMO_ORIGINAL_HANDLE = 160
    PMO_NEW_HANDLE = 168
    PMO_ACTION = 176

cdef enum:                    # offsets in an MQGMO
    GMO_OPTIONS = 8
    GMO_WAIT_INTERVAL = 12
    GMO_RESOLVED_Q = 24
    GMO_MATCH_OPTIONS = 72
    GMO_GROUP_STATUS = 76
    GMO_SEGMENT_STATUS = 77
    GMO_SEGMENTATION = 78
    GMO_MSG_TOKEN = 80
    GMO_RETURNED_LENGTH = 96

cdef enum:                    # offsets in an MQOD
    OD_OBJECT_TYPE = 8
    OD_OBJECT_NAME = 12
    OD_OBJECT_QMGR_NAME = 60
    OD_RECS_PRESENT = 168
    OD_KNOWN = 172
    OD_RESOLVED = 248
    OD_OBJECT_STRING_LENGTH = 360
    OD_RESOLVED_TYPE = 416

cdef enum:
    OO_INPUT = 7
    OO_BROWSE = 8
    OO_OUTPUT = 16
    OO_SAVE_ALL_CONTEXT = 128
    OO_PASS_IDENTITY = 256
    OO_PASS_ALL = 512
    OO_SET_IDENTITY = 1024
    OO_SET_ALL = 2048
    OO_FAIL_IF_QUIESCING = 8192
    GMO_WAIT = 1
    GMO_BROWSES = 16 | 32 | 2048
    GMO_CURSOR = 256 | 2048
    PMO_RESOLVE_LOCAL_Q = 262144
    GMO_VERSION_2 = 0x7F8000  # LOGICAL_ORDER to ALL_SEGMENTS_AVAILABLE
    MO_KNOWN = 63
    MO_TOKEN = 32
    SHARE_NO_BLOCK = 128

cdef enum:
    CONTEXT_DEFAULT = 0
    CONTEXT_NONE = 16384
    CONTEXT_PASS_IDENTITY = 256
    CONTEXT_PASS_ALL = 512
    CONTEXT_SET_IDENTITY = 1024
    CONTEXT_SET_ALL = 2048

cdef struct put_plan:
    int32_t options
    uint32_t flags
    int context
    bint in_unit
    bint in_unit_zos          # in the unit on platform z/OS

cdef struct get_plan:
    int32_t options
    uint32_t flags
    bint in_unit
    bint in_unit_zos
    bint destructive
    uint32_t rights           # MQOO_* that the handle must have

cdef tuple DONE = (0, 0)
cdef object option_rules = None  # penstock.opening.option_rules, when first needed


cdef object rules():
    global option_rules
    if option_rules is None:
        from penstock.opening import option_rules as options

        option_rules = options
    return option_rules


cdef object list_calls():
    """penstock.mqi.lists: what distribution lists do."""
    from penstock.mqi import lists

    return lists


cdef class Hconn:
    """A connection handle, from MQCONN or MQCONNX. Opaque to programs; equal to -1
    (MQHC_UNUSABLE_HCONN) after MQDISC. ``error`` is the text of its newest failure: the value, the
    rule.
    """

    cdef readonly Connection qm
    cdef readonly dict handles
    cdef readonly int sharing
    cdef readonly bint zos          # platform z/OS
    cdef public str error
    cdef public bint begun          # by MQBEGIN
    cdef int next_number
    cdef int calls
    cdef bint unit_taken
    cdef Unit unit
    cdef object __weakref__

    def __init__(self, Connection qm not None, int sharing=0):
        self.qm = qm
        self.zos = qm.zos
        self.sharing = sharing
        self.handles = {}
        self.error = ""

    def __eq__(self, other):
        if isinstance(other, int):
            return self.__int__() == other
        return self is other

    def __hash__(self):
        return <Py_ssize_t><void *>self >> 4

    def __int__(self):
        return -1 if self.qm.closed else <Py_ssize_t><void *>self >> 4 & 0x7FFFFFFF

    def __repr__(self):
        return f"<Hconn {self.qm.name}{', unusable' if self.qm.closed else ''}>"

    def enter(self, Hobj hobj not None):
        """Gives an open handle its number."""
        self.next_number += 1
        hobj.number = self.next_number
        self.handles[self.next_number] = hobj
        return hobj

    def pending(self):
        """Messages put and got in the unit of work."""
        return 0 if self.unit is None else self.unit.count

    def refuse(self, int reason, str text="", bint fail_if_quiescing=False):
        """Keeps the text of a failure; returns completion and reason code. What the connection says
        (2009, 2161, 2162) goes before anything that is wrong with a call.
        """
        if mqe_comp_code(reason) == 2:
            return refuse_call(self, fail_if_quiescing, reason, text, None)
        return failed(self, reason, text)

    cdef int take_unit(self, mqe_unit **out) except -1:
        """The unit of work for one call, of which give_unit() is the end; 2219 with NO_BLOCK."""
        while self.unit_taken:
            if self.sharing & SHARE_NO_BLOCK:
                return RC_CALL_IN_PROGRESS
            with nogil:
                penstock_pause()
            PyErr_CheckSignals()
        if self.qm.closed:          # while this call waited
            return RC_HCONN_ERROR
        self.unit_taken = True      # first: what follows may let another thread run
        if self.unit is None or self.unit.unit is NULL:
            try:
                self.unit = self.make_unit()
            except BaseException:
                self.unit_taken = False
                raise
        out[0] = self.unit.unit
        return 0

    cdef Unit make_unit(self):
        cdef Unit unit = Unit.__new__(Unit)
        unit.forks = penstock_forks
        unit.unit = self.qm.new_unit()
        unit.state = UNIT_OPEN
        self.qm.units.add(unit)
        return unit

    cdef void give_unit(self, mqe_unit *unit) noexcept:
        if unit is not NULL:
            self.unit_taken = False

    def end_unit(self, bint commit):
        """MQCMIT and MQBACK: the reason code."""
        cdef mqe_unit *unit = NULL
        cdef int reason
        self.begun = False
        if self.unit is None:
            return 0
        reason = self.take_unit(&unit)
        if reason == 0:
            reason = self.unit.complete(commit)
            self.give_unit(unit)
        return reason


cdef class Hobj:
    """An object handle, from MQOPEN: ``int(hobj)`` is its number, -1 (MQHO_UNUSABLE_HOBJ) after
    MQCLOSE.
    """

    cdef readonly Hconn hconn
    cdef readonly int number
    cdef readonly uint32_t options      # MQOO_*, with what they imply
    cdef readonly QueueHandle queue     # None: a distribution list, or no queue
    cdef public object targets          # of a distribution list: one of each destination
    cdef public object inquired         # (slot, generation, ...) that MQINQ and MQSET work on
    cdef put_plan put
    cdef get_plan get
    cdef bint has_saved
    cdef ps_descriptor saved
    cdef char saved_identity[32]
    cdef object __weakref__

    def __init__(self, Hconn hconn not None, uint32_t options, QueueHandle queue=None):
        self.hconn = hconn
        self.options = implied(options)
        self.queue = queue
        self.number = -1
        self.put.options = -1
        self.get.options = -1

    def __int__(self):
        return self.number

    def __index__(self):
        return self.number

    def __eq__(self, other):
        if isinstance(other, int):
            return self.number == other
        return self is other

    def __hash__(self):
        return <Py_ssize_t><void *>self >> 4

    def __repr__(self):
        what = "" if self.queue is None else " " + self.queue.name
        return f"<Hobj {self.number}{what}>"

    def leave(self):
        """The handle is closed."""
        self.hconn.handles.pop(self.number, None)
        self.number = -1


cdef uint32_t implied(uint32_t options) noexcept:
    """SET_ALL implies the other context rights, SET_IDENTITY and PASS_ALL imply PASS_IDENTITY."""
    if options & OO_SET_ALL:
        options |= OO_SET_IDENTITY | OO_PASS_ALL
    if options & (OO_SET_IDENTITY | OO_PASS_ALL):
        options |= OO_PASS_IDENTITY
    return options


# ---- results ----

cdef tuple failed(Hconn hconn, int reason, str text=""):
    """Completion and reason code of a call that did not do what was asked."""
    if hconn is not None:
        hconn.error = text or core_text(reason)
    mqx_error_clear()
    return mqe_comp_code(reason), reason


cdef inline Hconn connection_of(object hconn):
    """The connection handle when it is one and usable, else None: 2018."""
    cdef Hconn found
    if type(hconn) is not Hconn:
        return None
    found = <Hconn>hconn
    return None if found.qm.closed else found


cdef inline Hobj handle_of(Hconn hconn, object hobj):
    """The object handle when it is open and of that connection, else None: 2019."""
    cdef Hobj found
    if type(hobj) is not Hobj:
        if isinstance(hobj, bool) or not isinstance(hobj, int):
            return None
        return hconn.handles.get(hobj)
    found = <Hobj>hobj
    return found if found.hconn is hconn and found.number != -1 else None


cdef object MD_TYPE = None, PMO_TYPE = None, GMO_TYPE = None  # told apart without a look at bases


def know_structures(type md not None, type pmo not None, type gmo not None):
    """The classes of the structures that MQPUT and MQGET take."""
    global MD_TYPE, PMO_TYPE, GMO_TYPE
    MD_TYPE, PMO_TYPE, GMO_TYPE = md, pmo, gmo


cdef inline Structure structure_of(
    object given, object usual, const char *struc_id, int32_t newest
):
    """The structure when it has that StrucId and a version that is known, else None; `usual`: the
    class that it mostly has.
    """
    cdef Structure found
    cdef int32_t version
    if type(given) is not usual and not isinstance(given, Structure):
        return None
    found = <Structure>given
    if memcmp(found.raw, struc_id, 4) != 0:
        return None
    version = get_long(found.raw, VERSION_AT)
    return found if 1 <= version <= newest else None


def has_identity(Structure structure not None, bytes struc_id not None, int newest):
    """Whether StrucId and Version are those of a structure whose newest version is that one."""
    return structure_of(structure, None, PyBytes_AS_STRING(struc_id), newest) is not None


cdef int connection_state(Hconn hconn, bint fail_if_quiescing) noexcept:
    """Why the connection cannot be used, 0 when it can: what the core would say first."""
    cdef int reason = RC_HCONN_ERROR
    if not hconn.qm.closed:
        reason = mqe_usable(hconn.qm.manager, fail_if_quiescing)
    if reason:
        mqx_error_clear()
    return reason


cdef tuple refuse_call(
    Hconn c, bint fail_if_quiescing, int reason, str text, QueueHandle queue
):
    """The failure of a call that was refused before it reached the core, which would have been
    asked about the connection and the path of the name first.
    """
    cdef int state = connection_state(c, fail_if_quiescing)
    if state == 0 and queue is not None and not queue.closed:
        state = queue.path_state()
    return failed(c, state) if state else failed(c, reason, text)


# ---- MQOPEN, MQCLOSE ----

def open_local(Hconn hconn not None, Structure od not None, uint32_t options):
    """MQOPEN of a local queue by its name, or None: everything else, and what fails. The options
    have been checked.
    """
    cdef const unsigned char *raw = od.raw
    cdef mqe_found found
    cdef QueueHandle queue
    cdef char name[48]
    if (
        get_long(raw, OD_OBJECT_TYPE) != 1
        or not is_blank(<const char *>raw + OD_OBJECT_QMGR_NAME, 48)
        or (get_long(raw, VERSION_AT) >= 2 and get_long(raw, OD_RECS_PRESENT) != 0)
    ):
        return None
    pad(name, <const char *>raw + OD_OBJECT_NAME, 48)
    if mqe_find(hconn.qm.manager, 1, name, 0, &found) != 0 or found.type != QT_LOCAL:
        mqx_error_clear()
        return None
    queue = QueueHandle.__new__(QueueHandle)
    queue.start(hconn.qm, from_blank_padded(name, 48), options)
    queue.open_found(&found)
    return opened(hconn, queue, od, options)


def opened(
    Hconn hconn not None, QueueHandle queue not None, Structure od not None, uint32_t options
):
    """The handle of an open queue; the outputs of the MQOD are filled in."""
    cdef Hobj hobj = Hobj.__new__(Hobj)
    cdef int32_t version = get_long(od.raw, VERSION_AT)
    hobj.hconn = hconn
    hobj.options = implied(options)
    hobj.queue = queue
    hobj.put.options = -1
    hobj.get.options = -1
    if version >= 2:
        set_long(od.raw, OD_KNOWN, 0 if queue.remote else 1)
        set_long(od.raw, OD_KNOWN + 4, 1 if queue.remote else 0)
        set_long(od.raw, OD_KNOWN + 8, 0)
    if version >= 3 and options & (OO_INPUT | OO_BROWSE | OO_OUTPUT):
        memcpy(od.raw + OD_RESOLVED, queue.resolved, 96)
    if version >= 4:
        set_long(od.raw, OD_RESOLVED_TYPE, 1)
    return hconn.enter(hobj)


def show_resolved(Structure od not None, QueueHandle queue not None, bint local):
    """ResolvedQName, ResolvedQMgrName of an MQOD; `local`: of the queue here (RESOLVE_LOCAL_Q)."""
    memcpy(od.raw + OD_RESOLVED, queue.resolved, 96)
    if local and queue.remote:
        memcpy(od.raw + OD_RESOLVED, queue.local, 96)


def MQCLOSE(hconn, hobj, options=0):
    """Closes an object handle; it equals -1 (MQHO_UNUSABLE_HOBJ) afterwards.

    Args:
        options: MQCO_NONE (0), MQCO_DELETE (1) or MQCO_DELETE_PURGE (2) for dynamic queues,
            MQCO_QUIESCE (32): as MQCO_NONE, because nothing is read ahead. MQCO_KEEP_SUB (4) and
            MQCO_REMOVE_SUB (8) are for subscriptions: 2045.

    Returns:
        CompCode, Reason. After 2045 and 2055 the handle is still open.
    """
    cdef Hconn c = connection_of(hconn)
    cdef Hobj h
    cdef int reason = 0
    if c is None:
        return 2, RC_HCONN_ERROR
    h = handle_of(c, hobj)
    if h is None:
        return c.refuse(RC_HOBJ_ERROR)
    if isinstance(options, bool) or not isinstance(options, int) or options not in rules().CLOSE:
        return c.refuse(RC_OPTIONS_ERROR, f"close options {options!r}: one of 0, 1, 2, 4, 8, 32")
    if options & 12 or (options & 3 and (h.queue is None or h.queue.remote)):
        return c.refuse(
            RC_OPTION_NOT_VALID_FOR_TYPE, f"close options {options} do not fit the object"
        )
    try:
        if h.queue is not None:
            reason = h.queue.shut_with(options & 3)
        elif h.targets is not None:
            reason = list_calls().close_list(h)
    except MQError as error:
        return failed(c, error.reason, error.text)
    if reason and h.queue is not None and not h.queue.closed:
        return failed(c, reason)
    h.leave()
    if reason and not has_stopped(reason):
        return failed(c, reason)
    return DONE


# ---- MQCMIT, MQBACK ----

def MQCMIT(hconn):
    """Commits the unit of work. Returns CompCode, Reason: 2003 with a warning when the queue
    manager had backed it out.
    """
    return end_of_unit(hconn, True)


def MQBACK(hconn):
    """Backs the unit of work out. Returns CompCode, Reason."""
    return end_of_unit(hconn, False)


cdef tuple end_of_unit(object hconn, bint commit):
    cdef Hconn c = connection_of(hconn)
    cdef int reason
    if c is None:
        return 2, RC_HCONN_ERROR
    try:
        reason = c.end_unit(commit)
        if reason == 0 and c.unit is None:
            reason = connection_state(c, False)
    except MQError as error:
        return failed(c, error.reason, error.text)
    if reason == 0:
        return DONE
    failed(c, reason)
    return 1 if reason == RC_BACKED_OUT and commit else mqe_comp_code(reason), reason
