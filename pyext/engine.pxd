# engine.pxd - the core's public interface (csrc/include/penstock) and the structs of
# csrc/format/format.h that it uses. No other file of the binding declares names of the core.
#
# Everything is nogil: the core never calls Python, but for mqe_block_hook_arm()'s hook (gil.h).

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "format/format.h" nogil:
    struct ps_descriptor:
        uint8_t msg_id[24]
        uint8_t correl_id[24]
        uint64_t put_time_us
        uint64_t expiry_us
        int32_t priority
        int32_t report
        int32_t msg_type
        int32_t feedback
        int32_t encoding
        int32_t ccsid
        char format[8]
        int32_t put_appl_type
        char user_identifier[12]
        char put_appl_name[28]
        char appl_origin_data[4]
        uint8_t accounting_token[32]
        uint8_t persistence
        uint8_t placement
        uint8_t has_ext
        uint8_t md_version
        uint32_t backout_count
        uint64_t due_us

    struct ps_descriptor_ext:
        char reply_to_q[48]
        char reply_to_qmgr[48]
        char appl_identity_data[32]
        uint8_t group_id[24]
        int32_t msg_seq_number
        int32_t offset
        int32_t msg_flags
        int32_t original_length

    struct ps_xid:
        int32_t format_id
        uint16_t gtrid_length, bqual_length
        uint8_t gtrid[64]
        uint8_t bqual[64]

    struct ps_object_name:
        uint32_t name_space
        uint32_t type
        char name[48]
        uint64_t instance


cdef extern from "base/error.h" nogil:
    void mqx_error_clear()
    int mqx_fail(int reason, const char *format, ...)


cdef extern from "penstock/engine.h" nogil:
    enum:
        MQE_INTERRUPTED
        MQE_CONFIRM
        MQE_ATTENDED
        MQE_LISTED
        MQE_EXPIRED

    struct mqe_manager:
        pass
    struct mqe_unit:
        pass
    struct mqe_queue:
        pass

    # queue managers
    struct mqe_settings:
        char name[49]
        uint8_t qm_id[16]
        uint32_t platform
        uint64_t segment_size
        uint64_t first_segment_size
        uint64_t journal_limit
        uint64_t ring_size
        uint64_t region_size
        uint64_t body_budget
        uint32_t stripe_count
        uint32_t name_bucket_count
        uint32_t growth_step
        uint32_t max_uncommitted
        uint32_t max_message
        uint32_t max_unit_age
        const char *region_dir
        uint32_t linear
        uint32_t keeper
        uint32_t control
        uint32_t keep_mapping
        uint32_t no_maintenance
        uint64_t group

    struct mqe_attach_info:
        uint32_t first
        uint32_t clean
        uint64_t messages
        uint64_t np_discarded
        uint64_t records_replayed
        uint64_t torn_bytes

    enum:
        MQE_DETACH_ORDERLY
        MQE_DETACH_DISCARD
        MQE_END_CONTROLLED
        MQE_END_WAIT
        MQE_END_IMMEDIATE
        MQE_END_PREEMPTIVE

    int mqe_create(const char *path, const mqe_settings *settings)
    int mqe_attach(const char *path, const mqe_settings *settings, mqe_manager **out,
                   mqe_attach_info *info)
    int mqe_detach(mqe_manager *manager, int how, uint64_t *np_discarded)
    int mqe_end(mqe_manager *manager, int mode)

    enum:
        MQE_PROCESSES_MAX
    struct mqe_exclusion:
        pass
    int mqe_attached(const char *path, int32_t *pids, uint32_t capacity, uint32_t *out_count)
    int mqe_exclude(const char *path, const mqe_settings *settings, mqe_exclusion **out)
    void mqe_exclude_end(mqe_exclusion *exclusion)

    int mqe_usable(mqe_manager *manager, int fail_if_quiescing)

    struct mqe_manager_status:
        uint32_t attached, quiescing, stopped, contexts, units, handles, objects, deleted
        uint32_t region_in_memory
        uint64_t region_bytes, region_used, message_entries, body_bytes
        uint64_t durable_lsn, tail_lsn, checkpoint_lsn, journal_bytes, journal_limit
        uint64_t segments, spare_segments, flushes, flushed_bytes, flushed_records, woken_by_bound
        uint64_t np_discarded, repairs, checkpoint_damaged
        uint64_t live_bytes, live_limit, moved_messages, moved_bytes, held_bytes, held_us
        int32_t held_pid, backup_pid
        uint64_t backup_bytes, region_huge
        char huge_refusal[96]

    struct mqe_process_status:
        int32_t pid
        uint32_t keeper
        uint64_t attached_us
        char program[80]

    struct mqe_held_lock:
        int32_t pid
        uint32_t seconds
        char lock[16]
        char program[80]

    struct mqe_unit_status:
        int32_t pid, thread
        uint32_t state, count
        uint64_t unit_id, started_us

    struct mqe_handle_status:
        int32_t pid
        uint32_t object, generation, options, deleted
        uint32_t step[4]
        uint64_t opened_us

    int mqe_status(mqe_manager *manager, mqe_manager_status *out)
    int mqe_processes(mqe_manager *manager, mqe_process_status *out, uint32_t capacity,
                      uint32_t *out_count)
    int mqe_held_locks(mqe_manager *manager, mqe_held_lock *out, uint32_t capacity,
                       uint32_t *out_count)
    void mqe_interrupt_allow(int allowed)
    void mqe_interrupt_at_once()
    int mqe_units(mqe_manager *manager, mqe_unit_status *out, uint32_t capacity,
                  uint32_t *out_count)
    int mqe_handles(mqe_manager *manager, mqe_handle_status *out, uint32_t capacity,
                    uint32_t *out_count)
    int mqe_checkpoint(mqe_manager *manager)
    int mqe_maintain(mqe_manager *manager)

    struct mqe_backup:
        uint64_t first_segment, last_segment, last_generation, end_lsn, checkpoint_lsn, timeline
    int mqe_backup_begin(mqe_manager *manager, mqe_backup *out)
    int mqe_backup_advance(mqe_manager *manager, uint64_t first_segment, uint64_t *out_slowest_us)
    int mqe_backup_end(mqe_manager *manager)
    int mqe_check(mqe_manager *manager)

    # objects
    enum:
        MQE_CHANGED
        MQE_ALTER_RESOLUTION

    struct mqe_definition:
        const ps_object_name *name
        const void *attrs
        uint32_t length

    struct mqe_found:
        uint32_t slot, generation, type, resolution_version

    int mqe_define_many(mqe_manager *manager, const mqe_definition *definitions, uint32_t count,
                        uint32_t *done)
    int mqe_define(mqe_manager *manager, const ps_object_name *name, const void *attrs,
                   uint32_t attrs_length, uint32_t *slot, uint32_t *generation)
    int mqe_alter(mqe_manager *manager, uint32_t slot, uint32_t generation,
                  const ps_object_name *name, const void *attrs, uint32_t attrs_length,
                  uint64_t stamp, uint32_t flags)
    int mqe_delete(mqe_manager *manager, uint32_t slot, uint32_t generation, int purge)
    int mqe_find(mqe_manager *manager, uint32_t name_space, const char *name, uint64_t instance,
                 mqe_found *out)
    int mqe_next_object(mqe_manager *manager, uint32_t *slot, uint32_t *generation)
    int mqe_read_object(mqe_manager *manager, uint32_t slot, uint32_t generation,
                        ps_object_name *name, void *attrs, uint32_t capacity, uint32_t *length,
                        uint64_t *stamp)
    int mqe_read_deleted(mqe_manager *manager, uint32_t slot, uint32_t generation,
                         ps_object_name *name, void *attrs, uint32_t capacity, uint32_t *length)
    bint mqe_report_due(mqe_manager *manager, uint32_t slot, uint32_t generation, uint32_t state)
    int mqe_wake(mqe_manager *manager, uint32_t slot)
    int mqe_fail_structure(mqe_manager *manager, uint32_t slot, uint32_t generation,
                           uint64_t *lost)
    int mqe_clear(mqe_manager *manager, uint32_t slot, uint32_t generation)
    int mqe_cancel_delayed(mqe_manager *manager, uint32_t slot, uint32_t generation,
                           const uint8_t *msg_id)

    struct mqe_queue_status_t "mqe_queue_status":
        uint32_t depth, uncommitted, got, delayed, open_input, open_output, open_other, waiters
        uint64_t put_count, get_count, last_put_us, last_get_us

    int mqe_queue_status(mqe_manager *manager, uint32_t slot, uint32_t generation,
                         mqe_queue_status_t *out)
    int mqe_queue_oldest(mqe_manager *manager, uint32_t slot, uint32_t generation, uint64_t *out_us)
    int mqe_queue_newest(mqe_manager *manager, uint32_t slot, uint32_t generation,
                         uint64_t *out_number)

    # handles
    enum:
        MQE_INPUT_EXCLUSIVE
        MQE_BROWSE
        MQE_OUTPUT

    struct mqe_step:
        uint32_t slot, generation, resolution_version

    enum:
        MQE_STEPS_MAX

    struct mqe_destination:
        uint32_t queue, queue_generation
        uint32_t first, first_generation
        uint32_t step_count
        mqe_step step[MQE_STEPS_MAX]

    mqe_destination mqe_direct(uint32_t queue, uint32_t generation)
    int mqe_open(mqe_manager *manager, const mqe_destination *path, uint32_t options,
                 mqe_queue **out)
    int mqe_open_new(mqe_manager *manager, const ps_object_name *name, const void *attrs,
                     uint32_t attrs_length, uint32_t options, mqe_queue **out, mqe_found *found)
    enum:
        MQE_CLOSE_KEEP
        MQE_CLOSE_DELETE
        MQE_CLOSE_PURGE
    int mqe_close(mqe_queue *queue, uint32_t how)

    # the clock of queues
    uint64_t mqe_advanced_us(const mqe_manager *manager)
    int mqe_advance(mqe_manager *manager, uint64_t us)

    # units of work
    int mqe_unit_new(mqe_manager *manager, mqe_unit **out)
    void mqe_unit_free(mqe_unit *unit)
    int mqe_commit(mqe_unit *unit)
    int mqe_commit_many(mqe_unit **units, uint32_t count, uint32_t *out_count)
    int mqe_backout(mqe_unit *unit)
    int mqe_backout_later(mqe_unit *unit, uint64_t delay_us)
    uint32_t mqe_unit_count(const mqe_unit *unit)
    uint32_t mqe_unit_room(const mqe_unit *unit)

    # prepared units of work
    enum:
        MQE_PREPARED_MAX
        MQE_PREPARE_EMPTY
        MQE_PREPARE_LAZY

    struct mqe_prepared:
        ps_xid xid
        uint64_t unit_id, prepared_us
        uint32_t puts, gets, nonpersistent
        uint64_t bytes

    int mqe_prepare(mqe_unit *unit, const ps_xid *xid, uint32_t flags)
    int mqe_prepared_list(mqe_manager *manager, mqe_prepared *out, uint32_t capacity,
                          uint32_t *out_count)
    int mqe_commit_prepared(mqe_manager *manager, const ps_xid *xids, uint32_t count)
    int mqe_backout_prepared(mqe_manager *manager, const ps_xid *xids, uint32_t count,
                             uint64_t *np_discarded)

    # messages
    enum:
        MQE_PUT_NEW_MSG_ID
        MQE_PUT_NEW_CORREL_ID
        MQE_PUT_KEEP_TIME
        MQE_PUT_FAIL_IF_QUIESCING
        MQE_PUT_OWN_UNIT
        MQE_PUT_FROM_RESERVE
        MQE_PUT_STAYS
        MQE_PUT_NOT_CAPPED
        MQE_PUT_COPY
        MQE_GET_WAIT
        MQE_GET_BROWSE_FIRST
        MQE_GET_BROWSE_NEXT
        MQE_GET_BROWSE_UNDER_CURSOR
        MQE_GET_UNDER_CURSOR
        MQE_GET_LOCK
        MQE_GET_UNLOCK
        MQE_GET_ACCEPT_TRUNCATED
        MQE_GET_IF_PERSISTENT
        MQE_GET_FAIL_IF_QUIESCING
        MQE_GET_ROOM_FOR_MDE
        MQE_GET_CONFIRM
        MQE_GET_REPORT_EXPIRED
        MQE_GET_LISTED
        MQE_MATCH_MSG_ID
        MQE_MATCH_CORREL_ID
        MQE_MATCH_GROUP_ID
        MQE_MATCH_SEQ_NUMBER
        MQE_MATCH_OFFSET
        MQE_MATCH_NUMBER
        MQE_MATCH_EXPIRED
        MQE_MATCH_PERSISTENT
        MQE_MATCH_UP_TO
        MQE_MATCH_DELAYED

    int mqe_put(mqe_manager *manager, mqe_unit *unit, const mqe_destination *to,
                ps_descriptor *d, const ps_descriptor_ext *ext, const void *body, uint64_t length,
                int32_t expiry, uint32_t flags)
    struct mqe_arrival:
        uint32_t before
        bint triggers, streams
    int mqe_put_attended(mqe_manager *manager, mqe_unit *unit, const mqe_destination *to,
                         ps_descriptor *d, const ps_descriptor_ext *ext, const void *body,
                         uint64_t length, int32_t expiry, uint32_t flags, mqe_arrival *out)

    # reports on expiration
    bint mqe_expired_due(const mqe_manager *manager)
    bint mqe_expired_take(mqe_manager *manager, uint32_t *slot, uint32_t *generation)

    # triggers
    uint32_t mqe_trigger_version(const mqe_manager *manager)
    int mqe_trigger_next(mqe_manager *manager, uint32_t *slot, uint32_t *generation)
    bint mqe_trigger_due(mqe_manager *manager, uint32_t slot, uint32_t generation)
    void mqe_trigger_settle(mqe_manager *manager, uint32_t slot, uint32_t generation)
    struct mqe_trigger_state_t "mqe_trigger_state":
        uint32_t count, open_input
        uint64_t last_us
    int mqe_trigger_state(mqe_manager *manager, uint32_t slot, uint32_t generation,
                          mqe_trigger_state_t *out)
    void mqe_trigger_note(mqe_manager *manager, uint32_t slot, uint32_t generation)

    # performance events
    struct mqe_queue_statistics_t "mqe_queue_statistics":
        uint32_t event, seconds, high_depth
        uint64_t put_count, get_count
    const uint32_t *mqe_performance_flag(const mqe_manager *manager)
    bint mqe_performance_due(const mqe_manager *manager)
    bint mqe_performance_take(mqe_manager *manager, uint32_t *slot, uint32_t *generation,
                              mqe_queue_statistics_t *out)
    int mqe_queue_statistics_reset(mqe_manager *manager, uint32_t slot, uint32_t generation,
                                   mqe_queue_statistics_t *out)

    int mqe_resolve_defaults(mqe_manager *manager, const mqe_destination *to, ps_descriptor *d,
                             int *warning)
    int mqe_put_check(
        mqe_manager *manager, const mqe_destination *to, const ps_descriptor *d, uint64_t length
    )
    int32_t mqe_cap_expiry(
        const mqe_manager *manager, const mqe_destination *to, int32_t expiry
    )
    int mqe_new_id(mqe_manager *manager, uint8_t *out)

    ctypedef struct mqe_channel
    struct mqe_wait:
        mqe_channel *channel
        void *owner
        uint32_t context, told

    struct mqe_get_t "mqe_get":
        uint32_t flags
        uint32_t match
        uint8_t msg_id[24]
        uint8_t correl_id[24]
        uint8_t group_id[24]
        int32_t seq_number, offset
        int64_t wait_us
        void *buffer
        uint64_t capacity
        uint64_t match_number
        uint64_t up_to
        uint64_t max_bytes
        mqe_wait *wait
        ps_descriptor d
        ps_descriptor_ext ext
        uint64_t length
        int32_t expiry
        uint64_t number
        uint32_t header

    int mqe_get(mqe_manager *manager, mqe_unit *unit, mqe_queue *queue, mqe_get_t *get)

    # waits without a thread
    int mqe_channel_new(mqe_manager *manager, mqe_channel **out)
    int mqe_channel_fd(const mqe_channel *channel)
    uint32_t mqe_channel_picked(mqe_channel *channel, int all, mqe_wait **out, uint32_t capacity)
    int64_t mqe_wait_due_in(const mqe_wait *wait)
    void mqe_wait_end(mqe_wait *wait)
    void mqe_channel_free(mqe_channel *channel)

    # many messages a call
    struct mqe_item:
        ps_descriptor d
        ps_descriptor_ext ext
        uint64_t number
        uint64_t lsn
        int32_t expiry
        uint32_t length
        int32_t reason

    struct mqe_batch:
        mqe_item *items
        uint32_t capacity
        uint32_t count
        unsigned char *bodies
        uint64_t body_capacity
        int64_t *offsets
        uint64_t bytes
        uint64_t needed
        uint32_t failed
        uint32_t warnings
        uint64_t confirm

    int mqe_put_batch(mqe_manager *manager, mqe_unit *unit, const mqe_destination *to,
                      mqe_batch *batch, uint32_t flags)
    int mqe_get_batch(mqe_manager *manager, mqe_unit *unit, mqe_queue *queue, mqe_get_t *how,
                      mqe_batch *batch)
    int mqe_browse_batch(mqe_manager *manager, mqe_queue *queue, mqe_get_t *how, mqe_batch *batch)

    struct mqe_position:
        uint32_t placement
        uint32_t zero
        uint64_t number

    int mqe_browse_range(mqe_manager *manager, mqe_queue *queue, mqe_get_t *how,
                         const mqe_position *range, mqe_batch *batch)
    int mqe_queue_split_points(mqe_manager *manager, uint32_t slot, uint32_t generation,
                               uint32_t parts, mqe_position *out, uint32_t *out_count)

    struct mqe_prepared_cursor:
        uint64_t index

    int mqe_browse_prepared(mqe_manager *manager, const ps_xid *xid, mqe_prepared_cursor *cursor,
                            mqe_batch *batch)

    # errors, environment
    const char *mqe_error_text()
    const char *mqe_reason_name(int reason)
    const char *mqe_reason_text(int reason)
    int mqe_comp_code(int reason)
    void mqe_log(mqe_manager *manager, int amq, char severity, const char *text)
    uint32_t mqe_crc32c(uint32_t crc, const void *data, size_t size)


cdef extern from "penstock/journal_scan.h" nogil:
    enum:
        MQE_SCAN_MORE
        MQE_SCAN_UINT
        MQE_SCAN_INT
        MQE_SCAN_BOOL
        MQE_SCAN_TIME
        MQE_SCAN_ID
        MQE_SCAN_TEXT

    struct mqe_journal_scan_field:
        const char *name
        uint32_t kind
        uint32_t size
        uint32_t message
    const mqe_journal_scan_field mqe_journal_scan_fields[]
    const uint32_t mqe_journal_scan_field_count

    struct mqe_journal_scan_piece:
        const unsigned char *bytes
        uint64_t length
        uint64_t base_lsn

    struct mqe_journal_scan_header:
        uint8_t qm_id[16]
        uint64_t segment_no
        uint64_t generation
        uint64_t restart_epoch
        uint64_t base_lsn
        uint64_t size
        uint64_t prev_end_lsn
        uint64_t created_us

    struct mqe_journal_scan:
        mqe_journal_scan_header header
        uint64_t limit
        uint64_t start_lsn
        uint64_t end_lsn
        uint64_t start_us
        uint64_t end_us
        uint64_t types
        uint32_t verify
        uint32_t allow_lost
        const mqe_journal_scan_piece *pieces
        uint32_t piece_count
        uint64_t at
        uint64_t batches
        uint64_t records
        uint64_t problem_offset
        uint64_t need_lsn
        uint64_t need_bytes
        char problem[160]

    struct mqe_journal_scan_rows:
        void **columns
        uint32_t capacity
        uint32_t count
        unsigned char *bodies
        uint64_t body_capacity
        int64_t *offsets

    struct mqe_journal_scan_span:
        uint64_t mark
        uint64_t end_lsn
        uint64_t first_us
        uint64_t last_us

    int mqe_journal_scan_open(
        mqe_journal_scan *scan, const void *data, uint64_t length, const uint8_t *qm_id,
        uint64_t number
    )
    int mqe_journal_scan_next(mqe_journal_scan *scan, mqe_journal_scan_rows *rows)
    uint64_t mqe_journal_scan_skip(mqe_journal_scan *scan)
    void mqe_journal_scan_read_span(const mqe_journal_scan *scan, mqe_journal_scan_span *out)
    uint64_t mqe_journal_scan_first_us(const mqe_journal_scan *scan)


cdef extern from "base/clock.h" nogil:
    uint64_t mqx_clock_wall_us()
