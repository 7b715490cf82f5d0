# async_call.pxd - the fields of Channel, Waiting, AsyncQueueHandle and AsyncCall.

cdef class Channel:
    cdef mqe_channel *channel     # NULL when closed, and in a forked child
    cdef readonly Connection connection
    cdef unsigned forks
    cdef object __weakref__


cdef class Waiting:
    cdef mqe_wait raw
    cdef readonly Channel channel
    cdef public object wake       # called by whoever has learned that it was picked

    cdef int arm(self) except -1


cdef class AsyncQueueHandle:
    cdef readonly QueueHandle handle
    cdef readonly object runner   # penstock.asyncio: carries out what cannot be done at once
    cdef object __weakref__


cdef class AsyncCall:
    cdef object function          # of QueueHandle, or of what `target` is
    cdef readonly object target
    cdef tuple args
    cdef dict kwargs
    cdef readonly object runner
    cdef readonly Unit unit       # bound when the call was made
    cdef bint outside             # there was none: the call is outside units
    cdef readonly bint is_get
    cdef readonly bint is_put
    cdef readonly bint is_batch
    cdef readonly bint is_commit
    cdef bint plain               # put_plain() or get_plain() makes it, when in no unit of its own
    cdef object persistent        # of a put; True outside units: it flushes, is not tried at once
    cdef readonly bint long       # never at once: it copies much
    cdef readonly int64_t wait_us  # of a get: 0, or MQWI_UNLIMITED
    cdef readonly object default  # of a get that waits
    cdef public object ender      # of a get that waits: what ends it by being `stopped`
    cdef object inner             # the coroutine that carries it out, once it was needed
    cdef int state                # CALL_*

    cdef object make(self, object wait, object unit)
    cdef object at_once(self)
    cdef int tell_events(self) except -1
    cdef object first_step(self)
