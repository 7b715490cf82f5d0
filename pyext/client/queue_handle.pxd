# queue_handle.pxd - the fields of QueueHandle, and the arguments of one put and one get.

cdef struct put_request:      # a message to be put, as its arguments or its MQMD say
    ps_descriptor d
    ps_descriptor_ext ext
    bint extended             # ext counts
    int32_t expiry            # tenths of a second, MQEI_UNLIMITED
    uint32_t flags            # MQE_PUT_*


cdef struct get_request:
    int64_t wait_us           # MQWI_UNLIMITED: without an end
    Py_ssize_t limit          # bytes the caller takes at most, -1 = all


cdef class QueueHandle:
    # the core's side; NULL when closed
    cdef mqe_queue *queue
    cdef chain_link link          # in Attachment.handles, while the core has it open
    cdef readonly Connection connection
    cdef readonly bint closed
    cdef unsigned forks
    cdef int busy                 # calls inside the core; changed with the GIL held

    # what was opened, and what for
    cdef readonly str name
    cdef readonly uint32_t options  # MQOO_*
    cdef uint32_t opened_type       # MQQT_* of the definition that was opened
    cdef readonly object route      # what the name resolved to; None: a local queue by its own name

    # where messages go
    cdef mqe_destination to
    cdef bint remote              # messages get a transmission header
    cdef bint transmission        # a transmission queue, opened as a queue
    cdef bint chooses             # a cluster queue: an instance is chosen for each put
    cdef bint chooses_defaults    # ... and supplies the defaults
    cdef QueueHandle here         # of these the queue here, once it has been chosen
    cdef bint chose_here          # ... for the last put
    cdef char header[XQH_MSG_DESC]  # of a remote queue: start of the transmission header
    cdef char resolved[TWO_NAMES_LENGTH]  # ResolvedQName, ResolvedQMgrName
    cdef char local[TWO_NAMES_LENGTH]  # the same of the queue here, when `remote`

    # what puts and gets start from
    cdef ps_descriptor template
    cdef uint32_t put_flags       # MQE_PUT_*
    cdef uint32_t get_flags       # MQE_GET_*
    cdef Py_ssize_t hint          # expected size of a body

    cdef object __weakref__

    cdef int start(self, Connection connection, str name, uint32_t options) except -1
    cdef int open_by_resolution(self, str manager, str dynamic_name) except -1
    cdef bint open_found(self, const mqe_found *found) except -1
    cdef int open_core(self, const queue_use *use) except -1
    cdef int open_new(self, bytes definition) except -1
    cdef int enter(self, int reason) except -1
    cdef void set_destination(self, const mqe_found *found) noexcept
    cdef int path_state(self) noexcept
    cdef int shut_with(self, int how)
    cdef int release(self, int how)
    cdef int close_core(self, mqe_queue *queue, int how)
    cdef int raise_closed(self) except -1
    cdef int raise_not_open_for_output(self) except -1
