# connection.pyx - the status of a queue manager, and what an operator asks of it.
#
# Invariants
#   1. A status is copied by the core in one call; a list has room for a fixed number of rows, and
#      more rows than that are left out.
#
# Locks. Calls run without the GIL; the status of one queue releases it only when it blocks (gil.h).


cdef class Connection(ObjectCatalog):
    """An attachment with everything that a program asks of a queue manager."""

    def is_quiescing(self):
        """Whether the queue manager is ending."""
        self.check_open()
        cdef bint ending = mqe_usable(self.manager, 1) == RC_Q_MGR_QUIESCING
        if ending:
            mqx_error_clear()
        return ending

    def queue_status(self, uint32_t slot, uint32_t generation, str name="", bint oldest=False):
        """Counts of a queue as a dictionary; with `oldest` also oldest_us, the put time of its
        oldest message, for which the queue is searched.
        """
        cdef mqe_queue_status_t status
        cdef penstock_gil gil
        cdef uint64_t oldest_us = 0
        cdef int reason
        cdef dict counts
        memset(&status, 0, sizeof(status))
        while True:
            self.begin()
            penstock_gil_arm_call(&gil, False)
            reason = mqe_queue_status(self.manager, slot, generation, &status)
            if reason == 0 and oldest:
                reason = mqe_queue_oldest(self.manager, slot, generation, &oldest_us)
            penstock_gil_take_call(&gil)
            self.busy -= 1
            if not is_to_repeat(reason):
                break
        if reason:
            fail(reason, f"queue {name}")
        counts = status
        if oldest:
            counts["oldest_us"] = oldest_us
        return counts

    def trigger_version(self):
        """Another number since the definition of a queue with TRIGGER was made or changed; 0: there
        has been none.
        """
        self.check_open()
        return mqe_trigger_version(self.manager)

    def trigger_queues(self):
        """(slot, generation) of each queue with TRIGGER."""
        cdef uint32_t slot = 0, generation = 0
        cdef list found = []
        self.check_open()
        while mqe_trigger_next(self.manager, &slot, &generation) == 0:
            found.append((slot, generation))
        mqx_error_clear()
        return found

    def trigger_state(self, uint32_t slot, uint32_t generation):
        """Of a queue with TRIGGER: messages that count, handles for input, and when a trigger
        message was last made (microseconds since 1970 UTC, 0 never).
        """
        cdef mqe_trigger_state_t state
        self.check_open()
        cdef int reason = mqe_trigger_state(self.manager, slot, generation, &state)
        if reason:
            fail(reason)
        return state.count, state.open_input, state.last_us

    def trigger_due(self, uint32_t slot, uint32_t generation):
        """Whether the caller has to evaluate the conditions of the queue; then it is claimed."""
        self.check_open()
        return mqe_trigger_due(self.manager, slot, generation)

    def trigger_settle(self, uint32_t slot, uint32_t generation):
        """The conditions have been evaluated."""
        self.check_open()
        mqe_trigger_settle(self.manager, slot, generation)

    def trigger_note(self, uint32_t slot, uint32_t generation):
        """A trigger message is made for the queue now."""
        self.check_open()
        mqe_trigger_note(self.manager, slot, generation)

    def put_trigger(self, str name not None, bytes data not None):
        """Puts a trigger message outside syncpoint."""
        put_trigger(self, None, name, data, 0)

    def put_event(self, str name not None, bytes data not None):
        """Puts an event message outside syncpoint."""
        put_event(self, name, data)

    def reset_statistics(self, uint32_t slot, uint32_t generation):
        """The statistics of a local queue, which begin anew: seconds, most messages, puts, gets."""
        cdef mqe_queue_statistics_t found
        cdef int reason
        self.begin()
        with nogil:
            reason = mqe_queue_statistics_reset(self.manager, slot, generation, &found)
        self.busy -= 1
        if reason:
            fail(reason)
        return found.seconds, found.high_depth, found.put_count, found.get_count

    def reports_are_due(self):
        """Whether make_reports() may find any."""
        self.check_open()
        return mqe_expired_due(self.manager) or mqe_performance_due(self.manager)

    def make_reports(self):
        """Makes the reports on expired messages that the maintenance has met since the last call of
        this kind, at most 1,000, and discards the messages; and the event messages that are owed.
        How many. Each get that waits does so about once a second.
        """
        self.check_open()
        return report_hinted(self) + take_events(self)

    def manager_status(self):
        """Counts of the queue manager as a dictionary."""
        cdef mqe_manager_status status
        cdef int reason
        cdef dict counts
        memset(&status, 0, sizeof(status))
        self.begin()
        with nogil:
            reason = mqe_status(self.manager, &status)
        self.busy -= 1
        if reason:
            fail(reason)
        counts = status
        counts["huge_refusal"] = status.huge_refusal.decode("utf-8", "replace")
        return counts

    def processes(self):
        """The attached processes, each as a dictionary."""
        cdef mqe_process_status *rows
        cdef uint32_t i, count = 0, capacity = PROCESS_ROWS
        cdef int reason
        rows = <mqe_process_status *>zeroed_rows(capacity, sizeof(rows[0]))
        try:
            self.begin()
            with nogil:
                reason = mqe_processes(self.manager, rows, capacity, &count)
            self.busy -= 1
            if reason:
                fail(reason)
            return [
                {
                    "pid": rows[i].pid, "keeper": bool(rows[i].keeper),
                    "attached_us": rows[i].attached_us,
                    "program": rows[i].program.decode("utf-8", "replace"),
                }
                for i in range(min(count, capacity))
            ]
        finally:
            PyMem_Free(rows)

    def held_locks(self):
        """Locks of the region for which processes wait a second or longer, each as a dictionary."""
        cdef mqe_held_lock rows[LOCK_ROWS]
        cdef uint32_t i, count = 0
        cdef int reason
        self.check_open()
        reason = mqe_held_locks(self.manager, rows, LOCK_ROWS, &count)
        if reason:
            fail(reason)
        return [
            {
                "lock": rows[i].lock.decode("ascii", "replace"),
                "pid": rows[i].pid,
                "program": rows[i].program.decode("utf-8", "replace"),
                "seconds": rows[i].seconds,
            }
            for i in range(min(count, LOCK_ROWS))
        ]

    def unit_rows(self):
        """The units of work under way, each as a dictionary."""
        cdef mqe_unit_status *rows
        cdef uint32_t i, count = 0, capacity = UNIT_ROWS
        cdef int reason
        rows = <mqe_unit_status *>zeroed_rows(capacity, sizeof(rows[0]))
        try:
            self.begin()
            with nogil:
                reason = mqe_units(self.manager, rows, capacity, &count)
            self.busy -= 1
            if reason:
                fail(reason)
            return [rows[i] for i in range(min(count, capacity))]
        finally:
            PyMem_Free(rows)

    def handle_rows(self):
        """The open handles, each as a dictionary."""
        cdef mqe_handle_status *rows
        cdef uint32_t i, count = 0, capacity = HANDLE_ROWS
        cdef int reason
        rows = <mqe_handle_status *>zeroed_rows(capacity, sizeof(rows[0]))
        try:
            self.begin()
            with nogil:
                reason = mqe_handles(self.manager, rows, capacity, &count)
            self.busy -= 1
            if reason:
                fail(reason)
            return [rows[i] for i in range(min(count, capacity))]
        finally:
            PyMem_Free(rows)

    def request_end(self, int mode):
        """Asks every process to leave: 0 controlled, 1 wait, 2 immediate, 3 pre-emptive."""
        cdef int reason
        self.begin()
        with nogil:
            reason = mqe_end(self.manager, mode)
        self.busy -= 1
        if reason:
            fail(reason)

    def checkpoint(self):
        """Takes a checkpoint now."""
        cdef penstock_gil gil
        cdef int reason
        while True:
            self.begin()
            penstock_gil_begin_call(&gil)
            reason = mqe_checkpoint(self.manager)
            penstock_gil_take_call(&gil)
            self.busy -= 1
            if not is_to_repeat(reason):
                break
        if reason:
            fail(reason)

    def backup_begin(self):
        """Pins the journal; a dictionary: what a copy of this moment consists of."""
        cdef penstock_gil gil
        cdef mqe_backup found
        cdef int reason
        while True:
            self.begin()
            penstock_gil_begin_call(&gil)
            reason = mqe_backup_begin(self.manager, &found)
            penstock_gil_take_call(&gil)
            self.busy -= 1
            if not is_to_repeat(reason):
                break
        if reason:
            fail(reason)
        return found

    def backup_advance(self, uint64_t first_segment):
        """Segments before that one are copied. Returns the slowest flush since, microseconds."""
        cdef uint64_t slowest = 0
        cdef int reason
        while True:
            self.begin()
            with nogil:
                reason = mqe_backup_advance(self.manager, first_segment, &slowest)
            self.busy -= 1
            if not is_to_repeat(reason):
                break
        if reason:
            fail(reason)
        return slowest

    def backup_end(self):
        """Lets the journal go."""
        cdef int reason
        while True:
            self.begin()
            with nogil:
                reason = mqe_backup_end(self.manager)
            self.busy -= 1
            if not is_to_repeat(reason):
                break
        if reason:
            fail(reason)

    def maintain(self):
        """One round of maintenance: dead processes, durable mark, segments, expiry, checkpoint."""
        cdef int reason
        self.begin()
        with nogil:
            reason = mqe_maintain(self.manager)
        self.busy -= 1
        if reason:
            fail(reason)

    def check(self):
        """Verifies the structures of every queue; raises ObjectDamaged with what is wrong."""
        cdef int reason
        self.begin()
        with nogil:
            reason = mqe_check(self.manager)
        self.busy -= 1
        if reason:
            fail(reason)

    def log(self, int amq, str severity, str text):
        """Writes a line to the queue manager's error log; severity 'I', 'W' or 'E'."""
        if severity not in ("I", "W", "E"):
            wrong_value(RC_OPTIONS_ERROR, f"severity must be I, W or E: {severity!r}")
        cdef bytes raw = text.encode("utf-8")
        cdef const char *line = raw
        cdef char letter = <char>ord(severity)
        if not 1 <= amq <= AMQ_MAX:
            wrong_value(RC_OPTIONS_ERROR, f"amq must be 1 to {AMQ_MAX}: {amq}")
        self.begin()
        with nogil:
            mqe_log(self.manager, amq, letter, line)
        self.busy -= 1
