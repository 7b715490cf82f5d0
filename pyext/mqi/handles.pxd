# handles.pxd - the fields of Hconn and Hobj, and the plans that an Hobj keeps.

cdef struct put_plan:         # what MQPMO.Options mean
    int32_t options           # the options it was made of; -1: none yet
    uint32_t flags            # MQE_PUT_*
    int context               # one of PMO_CONTEXTS, or CONTEXT_DEFAULT
    bint in_unit
    bint in_unit_zos          # in the unit on platform z/OS


cdef struct get_plan:         # what MQGMO.Options mean
    int32_t options           # the options it was made of; -1: none yet
    uint32_t flags            # MQE_GET_*
    bint in_unit
    bint in_unit_zos          # in the unit on platform z/OS
    bint destructive
    uint32_t rights           # MQOO_* that the handle must have
    int32_t properties        # MQGMO_NO_PROPERTIES, MQGMO_PROPERTIES_COMPATIBILITY or neither


cdef struct conversion:       # what MQGMO_CONVERT asks for
    bint wanted
    int32_t ccsid
    int32_t encoding


cdef class Hconn:
    cdef readonly Connection qm
    cdef readonly int sharing       # MQCNO_HANDLE_SHARE_*
    cdef readonly bint zos          # platform z/OS
    cdef public str error           # text of the newest failure

    # the unit of work; one call at a time has it
    cdef Unit unit
    cdef bint unit_taken
    cdef unsigned long taker        # the thread that has it
    cdef public bint begun          # by MQBEGIN

    # asynchronous puts since the last MQSTAT: their number by completion code, the worst of them
    cdef int async_counts[3]
    cdef tuple async_worst          # CompCode, Reason, four names; None: all were good

    # of MQPUT1: the options seen last; where a blank-padded name led, with nothing open in the core
    cdef put_plan put1
    cdef dict put1_queues

    # open object handles by number
    cdef readonly dict handles
    cdef int next_number

    cdef object __weakref__

    cdef Unit acquire_unit(self, int *reason)
    cdef void release_unit(self, Unit unit) noexcept


cdef class Hobj:
    cdef readonly Hconn hconn
    cdef readonly int number            # -1 when closed
    cdef readonly uint32_t options      # MQOO_*, with what they imply
    cdef readonly QueueHandle queue     # None: a distribution list, or no queue
    cdef public object targets          # of a distribution list: one of each destination
    cdef public object inquired         # (slot, generation, ...) that MQINQ and MQSET work on
    cdef public QueueHandle held        # of a process or namelist: keeps it from being deleted

    # the options seen last
    cdef put_plan put
    cdef get_plan get

    # context of the message got last, for MQPMO_PASS_*_CONTEXT
    cdef bint has_saved
    cdef ps_descriptor saved
    cdef char saved_identity[MQ_APPL_IDENTITY_DATA_LENGTH]

    cdef object __weakref__
