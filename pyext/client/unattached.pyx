# unattached.pyx - what is asked of, and done to, a queue manager without attaching to it.
#
# Locks. An Exclusion holds the attach lock of the queue manager's directory until end().


def attached_processes(path):
    """Pids of the processes attached to the queue manager in a directory, a tuple of int.

    This process is included. A process of another PID namespace counts as 0. Starts nothing and
    creates no file.
    """
    cdef bytes raw = path_bytes(path)
    cdef const char *text = raw
    cdef int32_t pids[MQE_PROCESSES_MAX]
    cdef uint32_t count = 0
    cdef int reason
    with nogil:
        reason = mqe_attached(text, pids, MQE_PROCESSES_MAX, &count)
    if reason:
        fail(reason, str(path))
    return tuple([pids[i] for i in range(min(count, <uint32_t>MQE_PROCESSES_MAX))])


cdef class Exclusion:
    """Keeps all processes from attaching to a queue manager to which nobody is attached.

    The shared region that killed processes left is removed. To be ended by ``end()``; the
    directory may be gone by then. In a forked child it does nothing.
    """

    def __init__(self, path, dict settings not None):
        cdef bytes raw = path_bytes(path)
        cdef const char *text = raw
        cdef mqe_settings filled
        cdef int reason
        if self.exclusion is not NULL:
            raise RuntimeError("an exclusion cannot be made twice")
        self.forks = penstock_forks
        fill_settings(&filled, settings)
        with nogil:
            reason = mqe_exclude(text, &filled, &self.exclusion)
        if reason:
            self.exclusion = NULL
            fail(reason, f"queue manager {settings.get('name', '')}")

    def end(self):
        """Lets processes attach again, if the directory still exists."""
        cdef mqe_exclusion *ended = self.exclusion
        self.exclusion = NULL
        if ended is not NULL and self.forks == penstock_forks:
            mqe_exclude_end(ended)

    def __dealloc__(self):
        if self.exclusion is not NULL and self.forks == penstock_forks:
            mqe_exclude_end(self.exclusion)
