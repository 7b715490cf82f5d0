# attachment.pxd - the fields of Attachment.

cdef class Attachment:
    # the core's side; NULL when closed, and in a forked child
    cdef mqe_manager *manager
    cdef readonly bint closed
    cdef unsigned forks             # penstock_forks at the attach: another value means a child
    cdef int busy                   # calls inside the core; changed with the GIL held
    cdef const uint32_t *events_fired  # the core's: not 0 when event messages are owed
    cdef bint making_events         # some thread makes them

    # what ends with it
    cdef chain_link *handles        # open QueueHandles
    cdef chain_link *units          # units of work that the core has
    cdef object channels            # WeakSet of Channel, None: none was made
    cdef object implicit            # WeakKeyDictionary: owner -> Unit

    # an ended unit of work, kept for the next one of the thread that ended it
    cdef mqe_unit *spare
    cdef object spare_owner

    # what it is attached to, and how
    cdef readonly str name
    cdef char padded_name[NAME_LENGTH]
    cdef readonly bint zos          # platform z/OS
    cdef readonly dict attach_info
    cdef readonly uint64_t np_discarded  # non-persistent messages that closing discarded

    # the descriptor that every put starts from
    cdef ps_descriptor template

    cdef object __weakref__

    cdef int fill_template(self, tuple identity) except -1
    cdef int check_open(self) except -1
    cdef int begin(self) except -1
    cdef uint64_t ahead_us(self) except? 1
    cdef int complete(self, bint commit) except -1
    cdef int end(self, bint commit, int how, int pauses)
    cdef int calls_inside(self) noexcept
    cdef bint wait_until_idle(self, int pauses)
    cdef int leave_core(self, int how)
    cdef int end_units(self, bint commit)
    cdef int close_handles(self) except -1
    cdef int abandon(self) except -1
