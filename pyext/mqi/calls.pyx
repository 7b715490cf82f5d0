# calls.pyx - what the verbs of the MQI have in common: results, and the checks of handles and
# structures.
#
# Invariants
#   1. No verb raises for an MQ reason code: the code of an exception becomes the result.
#      KeyboardInterrupt and MemoryError pass.
#   2. Connection and handle are checked first. A call that is refused before it reached the core
#      still returns what the core would have said of the connection and the name first.
#
# Errors. (CompCode, Reason); Hconn.error has the text.

cdef tuple DONE = (0, 0)
cdef object option_rules = None  # of the package, when first needed

# penstock.mqi registers its classes: a structure of one of them needs no look at its bases
cdef object MD_TYPE = None, PMO_TYPE = None, GMO_TYPE = None


cdef object rules():
    """The rules of options: PUT, PUT1, GET, CLOSE."""
    global option_rules
    if option_rules is None:
        option_rules = load_option_rules()
    return option_rules


cdef tuple failed(Hconn hconn, int reason, str text=""):
    """Completion and reason code of a call that failed or ended with a warning; keeps its text."""
    if hconn is not None:
        hconn.error = text or core_text(reason)
    mqx_error_clear()
    return mqe_comp_code(reason), reason


def register_structures(type md not None, type pmo not None, type gmo not None):
    """Registers the classes of the structures that MQPUT and MQGET take."""
    global MD_TYPE, PMO_TYPE, GMO_TYPE
    MD_TYPE, PMO_TYPE, GMO_TYPE = md, pmo, gmo


cdef inline Structure structure_of(
    object given, object usual, const char *struc_id, int32_t newest
):
    """The structure when it has that StrucId and a version that is known, else None; `usual`: the
    class that it mostly has. A view of penstock.rpg stands for its structure.
    """
    cdef Structure found
    cdef int32_t version
    if type(given) is not usual and not isinstance(given, Structure):
        given = getattr(given, "structure", None)
        if not isinstance(given, Structure):
            return None
    found = <Structure>given
    if memcmp(found.raw, struc_id, STRUC_ID_LENGTH) != 0:
        return None
    version = get_long(found.raw, VERSION_AT)
    return found if 1 <= version <= newest else None


def has_identity(Structure structure not None, bytes struc_id not None, int newest):
    """Whether StrucId and Version are those of a structure whose newest version is that one."""
    return structure_of(structure, None, PyBytes_AS_STRING(struc_id), newest) is not None


cdef int connection_state(Hconn hconn, bint fail_if_quiescing) noexcept:
    """The reason code for which the connection cannot be used, 0 when it can."""
    cdef int reason = RC_HCONN_ERROR
    if not hconn.qm.closed:
        reason = mqe_usable(hconn.qm.manager, fail_if_quiescing)
    if reason:
        mqx_error_clear()
    return reason


cdef tuple refuse_call(
    Hconn c, bint fail_if_quiescing, int reason, str text, QueueHandle queue
):
    """The result of a call that was refused before it reached the core: what the core says of the
    connection and the path of the name comes first.
    """
    cdef int state = connection_state(c, fail_if_quiescing)
    if state == 0 and queue is not None and not queue.closed:
        state = queue.path_state()
    return failed(c, state) if state else failed(c, reason, text)


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
