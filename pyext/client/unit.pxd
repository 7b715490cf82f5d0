# unit.pxd - the fields of Unit and ThreadOwner.

cdef class ThreadOwner:
    cdef object __weakref__


cdef class Unit:
    # the core's side; NULL before it is entered or used, and after its end
    cdef mqe_unit *unit
    cdef Attachment connection
    cdef chain_link link        # in Attachment.units, while it is open
    cdef unsigned forks
    cdef int state              # UNIT_*
    cdef int busy               # calls inside the core; changed with the GIL held
    cdef uint64_t retry_us      # of the backout that is under way: how long what it got waits
    cdef bint failed            # a message in it lacks its report, or its caller: never committed

    # the turn of a call of the program (client/unit.pyx)
    cdef int turns              # calls that are in their turn: more than 1 only within each other
    cdef unsigned long taker    # the thread of the newest

    # explicit units only; an implicit one must not keep its owner alive
    cdef bint explicit
    cdef bint entered           # counts in open_transactions: its block has not been left
    cdef object owner           # the thread or task that entered it
    cdef object token           # of the context variable `innermost`
    cdef Unit outer             # the unit that was innermost before

    cdef int line               # calls of penstock.asyncio that wait with it, or for it

    # held units only
    cdef bint held
    cdef bint told              # its program has ended it, or has learned of its end

    cdef object __weakref__

    cdef int start(self, Attachment connection) except -1
    cdef int back(self) except -1
    cdef int begin_turn(self, bint by_owner) except -1
    cdef int enter_block(self) except -1
    cdef int end_block(self, bint mine, bint normal) except -1
    cdef int end_by_program(self, bint commit, object delay=*) except -1
    cdef int end_held(self, bint commit) except? -1
    cdef int check_owner(self) except -1
    cdef int raise_in_progress(self) except -1
    cdef int raise_ended(self) except -1
    cdef int complete(self, bint commit) except? -1
    cdef int end_work(self, bint commit) noexcept
    cdef int end_or_raise(self, bint commit) except? -1
    cdef int prepare_as(self, Xid xid, bint allow_empty, bint wait) except -1
    cdef int finish(self, bint commit) except? -1
    cdef int close_unit(self, bint commit, int reason) except -1
    cdef void leave(self)
    cdef void abandon(self)
