/*
 * unit.c - units of work. See unit.h for terms, states, invariants and locks.
 */
#include "unit/unit.h"

#include "base/assert.h"
#include "base/error.h"
#include "catalog/catalog_delete.h"
#include "os/host_info.h"
#include "os/interrupt.h"
#include "penstock/engine.h"
#include "region/damage.h"
#include "region/queue_clock.h"
#include "unit/xid_table.h"


enum {
    RECORD_MAX = 256,       /* bytes of a GET or COMMIT record, at the most */
    COUNTS_A_RECORD = 1024, /* BackoutCounts in a BACKOUT record */
    LONG_UNIT_TENTHS = 8,   /* of the allowed journal: rule 12 */
};

static int damaged_context(const struct mqx_store *store, uint32_t slot)
{
    return mqx_region_damage(&store->region, "the context of a unit of work", slot);
}

/* Does the context hold nothing of a unit? Its owner asks, or a process that repairs it. */
static bool is_empty(const struct mqx_context *unit)
{
    MQX_ASSERT(unit != NULL);
    return unit->head == 0 && unit->count == 0;
}

void mqx_unit_begin(struct mqx_store *store, uint32_t slot)
{
    struct mqx_context *unit = mqx_context(&store->region, slot);
    MQX_ASSERT(slot != 0);
    if (MQX_UNLIKELY(unit == NULL)) {
        (void)damaged_context(store, slot);
        return;
    }
    if (unit->state == MQX_CTX_ACTIVE) {
        return;
    }
    if (MQX_UNLIKELY(unit->state != MQX_CTX_IDLE || unit->head != 0 || unit->first_lsn != 0)) {
        (void)damaged_context(store, slot);
        return;
    }
    mqx_store_relaxed(&unit->started_us, store->io->ops->now_us(store->io));
    unit->thread = mqx_thread_id();
    mqx_store_release(&unit->state, MQX_CTX_ACTIVE);
}

/* Back to IDLE: nothing of the unit is left in the region (invariant 4). */
static void reset_unit(struct mqx_context *unit)
{
    MQX_ASSERT(is_empty(unit));
    MQX_ASSERT(unit->state == MQX_CTX_DECIDED || unit->state == MQX_CTX_BACKING_OUT);
    mqx_store_relaxed(&unit->unit_id, 0);
    unit->decided_lsn = 0;
    unit->record_count = 0;
    unit->running_crc = 0;
    unit->unit_sum = 0;
    if (MQX_UNLIKELY(unit->retry_key_us != 0)) {
        unit->retry_key_us = 0;
        unit->retry_due_us = 0;
    }
    mqx_store_release(&unit->first_lsn, 0);
    mqx_store_release(&unit->state, MQX_CTX_IDLE);
}

/* Ends a unit whose messages have been rolled. One whose process died just before it was prepared
 * may have its xid listed. */
static int end_unit(struct mqx_store *store, uint32_t slot)
{
    struct mqx_context *unit = mqx_context(&store->region, slot);
    MQX_ASSERT(unit != NULL);
    if (MQX_UNLIKELY(!is_empty(unit))) {
        return damaged_context(store, slot);
    }
    const int status =
        MQX_UNLIKELY(unit->xid_listed != 0) ? mqx_xid_table_remove(&store->region, slot) : MQX_OK;
    if (MQX_LIKELY(status == MQX_OK)) {
        MQX_ASSERT(unit->xid_listed == 0);
        reset_unit(unit);
    }
    return status;
}

/* ---- records ---- */

uint64_t mqx_unit_id(struct mqx_store *store, uint32_t slot)
{
    struct mqx_context *unit = mqx_context(&store->region, slot);
    MQX_ASSERT(slot != 0);
    if (MQX_UNLIKELY(unit == NULL)) {
        (void)damaged_context(store, slot);
        return 0;
    }
    if (unit->unit_id == 0) {
        /* read without a lock by mqx_browse_prepared */
        mqx_store_relaxed(&unit->unit_id, mqx_journal_unit_id(store));
    }
    MQX_ASSERT(unit->unit_id != 0);
    return unit->unit_id;
}

int mqx_unit_append(struct mqx_store *store, uint32_t slot, const unsigned char *record,
                    uint32_t length, uint32_t flags, uint32_t message)
{
    MQX_ASSERT(slot != 0 || (flags & MQX_APPEND_DECIDES) == 0);
    MQX_ASSERT(!mqx_record_is_short(record));
    return mqx_unit_append_short(store, slot, NULL, record, length, flags, message);
}

int mqx_unit_append_short(struct mqx_store *store, uint32_t slot, struct mqx_common *common,
                          const unsigned char *record, uint32_t length, uint32_t flags,
                          uint32_t message)
{
    struct mqx_append append = {
        .record = record,
        .common = common,
        .length = length,
        .flags = flags,
        .context = slot,
        .message = message,
    };
    MQX_ASSERT((uintptr_t)record % 8 == 0);
    MQX_ASSERT(length != 0);
    MQX_ASSERT(length % 8 == 0);
    return mqx_journal_append(store, &append);
}

uint32_t mqx_unit_encode_get(struct mqx_store *store, uint32_t context, uint32_t slot, uint32_t how,
                             struct mqx_common **common, unsigned char *to)
{
    const bool decides = (how & MQX_GET_DECIDES) != 0, many = (how & MQX_GET_ONE_OF_MANY) != 0;
    const struct mqx_message *message = mqx_message(&store->region, slot);
    const struct mqx_object *queue =
        message == NULL ? NULL : mqx_object(&store->region, message->object);
    MQX_ASSERT((uintptr_t)to % 8 == 0);
    if (MQX_UNLIKELY(queue == NULL || message->unit != context)) {
        (void)mqx_region_damage(&store->region, "a message that a unit has got", slot);
        return 0;
    }
    const struct mqx_record_head head = {
        .type = PS_REC_GET,
        .flags = decides ? PS_FLAG_COMMITS : 0,
        .unit_id = mqx_unit_id(store, context),
        .object = message->object,
        .object_gen = queue->generation,
        .number = message->number,
    };
    if (!decides && *common == NULL) {
        *common = mqx_common_for(mqx_journal_store_id(store), &head, NULL, many);
    }
    if (!decides && *common != NULL && mqx_common_fits(*common, &head, NULL)) {
        return mqx_encode_short_get(to, *common, &head);
    }
    const uint32_t length = mqx_encode_plain(to, &head);
    MQX_ASSERT(length <= RECORD_MAX);
    return length;
}

int mqx_unit_log_get(struct mqx_store *store, uint32_t context, uint32_t slot, bool decides)
{
    unsigned char *record = mqx_scratch(RECORD_MAX);
    MQX_ASSERT(context != 0);
    MQX_ASSERT(slot != 0);
    if (record == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a GET record");
    }
    struct mqx_common *common = NULL;
    const uint32_t length = mqx_unit_encode_get(store, context, slot,
                                                decides ? MQX_GET_DECIDES : 0u, &common, record);
    if (MQX_UNLIKELY(length == 0)) {
        return mqx_region_stop_reason(&store->region);
    }
    return mqx_unit_append_short(store, context, common, record, length,
                                 decides ? MQX_APPEND_DECIDES : 0u, 0);
}

/* ---- rolling: what happens to the first message of the list, in one lock hold ---- */

/* One message, or a part of its chain: then it stays the first of the list and comes again. */
static int roll_message(struct mqx_stripe_guard *guard, uint32_t context, bool forward,
                        struct mqx_wakeups *wakes)
{
    struct mqx_context *unit = mqx_context(guard->region, context);
    const uint32_t slot = unit->head;
    struct mqx_message *message = mqx_message(guard->region, slot);
    const uint32_t object = message == NULL ? 0 : message->object;
    struct mqx_object *queue = mqx_object(guard->region, object);
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    MQX_ASSERT(guard->stripe->lock.undo_count == 0);
    if (MQX_UNLIKELY(queue == NULL ||
                     (message->state != MQX_MSG_PUT && message->state != MQX_MSG_GOT &&
                      message->state != MQX_MSG_GONE))) {
        return mqx_region_damage(guard->region, "a message of a unit of work", slot);
    }
    const bool got = message->state == MQX_MSG_GOT;
    const bool back = message->state == MQX_MSG_GOT && (message->flags & MQX_MSGF_TAKEN) == 0;
    const bool stays = message->state == MQX_MSG_PUT && message->lsn == 0 &&
                       message->record_length == MQX_RECORD_STAYS;
    const bool shown = forward ? message->state == MQX_MSG_PUT : back || stays;
    if (MQX_UNLIKELY(mqx_load_relaxed(&queue->state) == MQX_OBJ_DELETING)) {
        mqx_store_relaxed(&unit->deleted, object);
    }
    if (shown) {
        mqx_unit_pop(guard, context);
        if (MQX_UNLIKELY(got && unit->retry_key_us != 0)) {
            mqx_delayed_set(guard, message, unit->retry_key_us, unit->retry_due_us);
        }
        mqx_queue_make_available(guard, queue, slot, forward || stays || unit->autocommit ? 0 : 1);
    } else {
        bool pinned = false;
        const bool moved = mqx_queue_remove(guard, queue, slot, context, &pinned) || pinned;
        queue->get_count += got && forward;
        if (MQX_UNLIKELY(got && !forward && moved)) {
            mqx_guard_store32(guard, &unit->discarded, unit->discarded + 1);
        }
        MQX_ASSERT(!moved || unit->head != slot || mqx_region_stopped(guard->region) != 0);
    }
    mqx_stripe_guard_commit(guard);
    if (shown && queue->waiters != 0) {
        mqx_wait_list_pick(guard, object, slot, wakes);
    }
    return MQX_OK;
}

/* One lock hold: messages from the head on that belong to the same stripe, at most 64. */
static int roll_stripe(struct mqx_store *store, uint32_t context, bool forward)
{
    struct mqx_region *region = &store->region;
    const struct mqx_context *unit = mqx_context(region, context);
    const struct mqx_message *message = mqx_message(region, unit->head);
    struct mqx_wakeups wakes = {.count = 0};
    struct mqx_stripe_guard guard;
    MQX_ASSERT(unit->head != 0);
    MQX_ASSERT(unit->state != MQX_CTX_ACTIVE);
    if (message == NULL || mqx_object(region, message->object) == NULL) {
        return mqx_region_damage(region, "a message of a unit of work", unit->head);
    }
    int status = mqx_stripe_guard_take(region, message->object, &guard);
    if (status != MQX_OK) {
        return status;
    }
    for (int i = 0; i < MQX_LOCKED_STEPS_MAX && unit->head != 0 && status == MQX_OK; i++) {
        message = mqx_message(region, unit->head);
        if (message == NULL || mqx_stripe_of(region, message->object) != guard.stripe ||
            wakes.count >= MQX_LOCKED_STEPS_MAX) {
            break;
        }
        status = roll_message(&guard, context, forward, &wakes);
    }
    MQX_ASSERT(wakes.count <= MQX_ARRAY_COUNT(wakes.context));
    mqx_stripe_guard_drop(&guard);
    mqx_wait_list_wake(region, &wakes);
    return status;
}

static int roll_all(struct mqx_store *store, uint32_t context, bool forward)
{
    const struct mqx_context *unit = mqx_context(&store->region, context);
    int status = MQX_OK;
    MQX_ASSERT(unit != NULL);
    MQX_ASSERT(unit->state != MQX_CTX_IDLE);
    while (status == MQX_OK && unit->head != 0) {
        status = roll_stripe(store, context, forward);
    }
    MQX_ASSERT(status != MQX_OK || unit->head == 0);
    return status;
}

/* Goes on with the deletion of a deleted queue of which the unit held a message. Of several, the
 * maintenance thread finishes the others. */
static int finish_deleted_queue(struct mqx_store *store, struct mqx_context *unit)
{
    const uint32_t object = mqx_load_relaxed(&unit->deleted);
    MQX_ASSERT(unit->state == MQX_CTX_IDLE);
    MQX_ASSERT(unit->first_lsn == 0);
    if (MQX_LIKELY(object == 0)) {
        return MQX_OK;
    }
    mqx_store_relaxed(&unit->deleted, 0u);
    return mqx_catalog_finish(store, object);
}

int mqx_unit_finish(struct mqx_store *store, uint32_t context)
{
    struct mqx_context *unit = mqx_context(&store->region, context);
    MQX_ASSERT(context != 0);
    if (MQX_UNLIKELY(unit == NULL || unit->state != MQX_CTX_DECIDED)) {
        return damaged_context(store, context);
    }
    int status = MQX_OK;
    mqx_flush_is_decided();
    if (unit->decided_lsn != 0) {
        status = mqx_flush_to(store, unit->decided_lsn);
    }
    if (status == MQX_OK) {
        status = roll_all(store, context, true);
    }
    if (status == MQX_OK) {
        status = end_unit(store, context);
    }
    if (status == MQX_OK) {
        MQX_ASSERT(unit->decided_lsn == 0);
        status = finish_deleted_queue(store, unit);
    }
    return status;
}

/* ---- commit ---- */

static int append_commit(struct mqx_store *store, uint32_t context)
{
    const struct mqx_context *unit = mqx_context(&store->region, context);
    unsigned char *record = mqx_scratch(RECORD_MAX);
    MQX_ASSERT(unit->first_lsn != 0);
    MQX_ASSERT(unit->unit_id != 0);
    if (record == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a COMMIT record");
    }
    const struct mqx_record_head head = {.type = PS_REC_COMMIT, .unit_id = unit->unit_id};
    const struct ps_commit commit = {
        .first_lsn = unit->first_lsn,
        .record_count = unit->record_count,
        .running_crc = unit->running_crc,
    };
    const uint32_t length = mqx_encode_commit(record, &head, &commit);
    MQX_ASSERT(length <= RECORD_MAX);
    return mqx_unit_append(store, context, record, length, MQX_APPEND_DECIDES, 0);
}

int mqx_unit_decide(struct mqx_store *store, uint32_t context)
{
    struct mqx_context *unit = mqx_context(&store->region, context);
    MQX_ASSERT(context != 0);
    if (MQX_UNLIKELY(unit == NULL)) {
        return damaged_context(store, context);
    }
    if (unit->state == MQX_CTX_IDLE) {
        return MQX_OK;
    }
    if (MQX_UNLIKELY(unit->state != MQX_CTX_ACTIVE)) {
        return damaged_context(store, context);
    }
    if (MQX_UNLIKELY(mqx_unit_must_back_out(unit))) {
        int status = mqx_unit_backout(store, context);
        return status != MQX_OK
                   ? status
                   : mqx_fail(MQRC_BACKED_OUT,
                              "the unit held the journal for too long and was backed out");
    }
    if (unit->first_lsn == 0) {
        MQX_ASSERT(unit->decided_lsn == 0);
        mqx_store_release(&unit->state, MQX_CTX_DECIDED);
        return MQX_OK;
    }
    if (mqx_interrupt_was_taken() || mqx_interrupt_take_at_once()) {
        return MQE_INTERRUPTED; /* it would flush; and after one wait that ended no other begins */
    }
    return append_commit(store, context);
}

int mqx_unit_commit(struct mqx_store *store, uint32_t context)
{
    const struct mqx_context *unit = mqx_context(&store->region, context);
    MQX_ASSERT(context != 0);
    const int status = mqx_unit_decide(store, context);
    if (status != MQX_OK || unit->state == MQX_CTX_IDLE) {
        return status;
    }
    MQX_ASSERT(unit->state == MQX_CTX_DECIDED);
    return mqx_unit_finish(store, context);
}

/* ---- backout ---- */

struct counting { /* of the new BackoutCounts of a unit, a record at a time */
    uint32_t slot;   /* next message of the list */
    uint32_t left;   /* messages that the list can still have */
};

/* The counts of the persistent messages that the unit had got, for one record. The list is the
 * unit's own: no lock is needed. */
static int collect_counts(const struct mqx_region *region, struct counting *counting,
                          bool autocommit, struct ps_count *out, uint32_t *out_count)
{
    uint32_t n = 0;
    MQX_ASSERT(out != NULL);
    for (; counting->slot != 0 && n < COUNTS_A_RECORD; counting->left--) {
        const struct mqx_message *message = mqx_message(region, counting->slot);
        if (message == NULL || counting->left == 0) {
            return mqx_region_damage(region, "the list of a unit of work, message", counting->slot);
        }
        if (!autocommit && message->state == MQX_MSG_GOT &&
            (message->flags & MQX_MSGF_PERSISTENT) != 0) {
            out[n++] = (struct ps_count){.identity = message->number,
                                         .object = message->object,
                                         .count = message->backout_count + 1};
        }
        counting->slot = message->unit_next;
    }
    *out_count = n;
    MQX_ASSERT(n <= COUNTS_A_RECORD);
    return MQX_OK;
}

/* A call that has ended a wait does not begin another one (os/interrupt.h). */
static int append_counts(struct mqx_store *store, uint32_t context, const unsigned char *record,
                         uint32_t length)
{
    struct mqx_append append = {.record = record, .length = length, .context = context};
    MQX_ASSERT(length != 0);
    MQX_ASSERT(length % 8 == 0);
    return mqx_interrupt_was_taken() ? mqx_journal_try_append(store, &append)
                                     : mqx_journal_append(store, &append);
}

/* The due time of each of the counted messages, for one record; NULL: none. */
static const uint64_t *fill_dues(uint64_t *to, uint32_t count, uint64_t due_us)
{
    MQX_ASSERT(count <= COUNTS_A_RECORD);
    MQX_ASSERT(due_us <= PS_DUE_MAX);
    for (uint32_t i = 0; i < count && due_us != 0; i++) {
        to[i] = due_us;
    }
    return due_us != 0 ? to : NULL;
}

/* BACKOUT records are written with the next flush; losing them costs counts, never messages (rule
 * 46). */
static int append_backout(struct mqx_store *store, uint32_t context)
{
    const struct mqx_context *unit = mqx_context(&store->region, context);
    const uint32_t dues = COUNTS_A_RECORD * (uint32_t)sizeof(uint64_t);
    const uint32_t most = COUNTS_A_RECORD * (uint32_t)sizeof(struct ps_count) + dues;
    unsigned char *record = mqx_scratch(2 * (size_t)most + RECORD_MAX);
    MQX_ASSERT(unit != NULL);
    const struct mqx_record_head head = {.type = PS_REC_BACKOUT, .unit_id = unit->unit_id};
    struct counting counting = {unit->head, unit->count};
    if (record == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a BACKOUT record");
    }
    if (MQX_UNLIKELY(unit->retry_due_us > PS_DUE_MAX)) { /* a restart would refuse the record */
        return damaged_context(store, context);
    }
    uint64_t *due = (uint64_t *)(void *)(record + most + RECORD_MAX);
    struct ps_count *counts = (struct ps_count *)(void *)(record + most + RECORD_MAX + dues);
    do {
        uint32_t n = 0;
        int status = collect_counts(&store->region, &counting, unit->autocommit != 0, counts, &n);
        if (status == MQX_OK) {
            const uint32_t length = mqx_encode_counts(
                record, &head, counts, fill_dues(due, n, unit->retry_due_us), n);
            MQX_ASSERT(length <= most + RECORD_MAX);
            status = append_counts(store, context, record, length);
        }
        if (status != MQX_OK) {
            return status;
        }
    } while (counting.slot != 0);
    return MQX_OK;
}

int mqx_unit_backout(struct mqx_store *store, uint32_t context)
{
    struct mqx_context *unit = mqx_context(&store->region, context);
    MQX_ASSERT(context != 0);
    if (MQX_UNLIKELY(unit == NULL)) {
        return damaged_context(store, context);
    }
    if (unit->state == MQX_CTX_IDLE) {
        return MQX_OK;
    }
    if (MQX_UNLIKELY(unit->state != MQX_CTX_ACTIVE && unit->state != MQX_CTX_BACKING_OUT)) {
        return damaged_context(store, context);
    }
    if (unit->state == MQX_CTX_ACTIVE && unit->first_lsn != 0) {
        int status = append_backout(store, context);
        if (status != MQX_OK && !mqx_interrupt_was_taken()) {
            return status;
        }
    }
    mqx_flush_is_decided();
    mqx_store_release(&unit->state, MQX_CTX_BACKING_OUT);
    int status = roll_all(store, context, false);
    if (status == MQX_OK) {
        status = end_unit(store, context);
    }
    if (status == MQX_OK) {
        status = finish_deleted_queue(store, unit);
    }
    return status;
}

int mqx_unit_backout_later(struct mqx_store *store, uint32_t context, uint64_t delay_us)
{
    struct mqx_context *unit = mqx_context(&store->region, context);
    const uint64_t now = mqx_queue_now_us(&store->region);
    MQX_ASSERT(context != 0);
    if (MQX_UNLIKELY(unit == NULL)) {
        return damaged_context(store, context);
    }
    if (delay_us > PS_DUE_MAX - now) {
        return mqx_fail(MQRC_MD_ERROR, "a delay of %llu us ends after the year 9999",
                        (unsigned long long)delay_us);
    }
    MQX_ASSERT(unit->autocommit == 0);
    MQX_ASSERT(unit->retry_key_us == 0 || unit->state != MQX_CTX_IDLE);
    if (delay_us != 0 && unit->state == MQX_CTX_ACTIVE) {
        unit->retry_due_us = now + delay_us;
        unit->retry_key_us = mqx_due_now(&store->region) + delay_us;
    }
    return mqx_unit_backout(store, context);
}

int mqx_unit_roll(struct mqx_store *store, uint32_t context, bool forward)
{
    const struct mqx_context *unit = mqx_context(&store->region, context);
    MQX_ASSERT(context != 0);
    if (MQX_UNLIKELY(unit == NULL || unit->state != MQX_CTX_PREPARED)) {
        return damaged_context(store, context);
    }
    if (!forward && unit->head != 0) { /* it is decided: counts that get lost cost no message */
        mqx_ignore(append_backout(store, context));
    }
    return roll_all(store, context, forward);
}

/* ---- undoing one call ---- */

/* Stores that take `slot` out of the list wherever it is (the newest, as a rule). Left open. */
static int unlink_from_unit(struct mqx_stripe_guard *guard, uint32_t context, uint32_t slot)
{
    struct mqx_context *unit = mqx_context(guard->region, context);
    const struct mqx_message *message = mqx_message(guard->region, slot);
    uint32_t before = 0, at = unit == NULL ? 0 : unit->head;
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    MQX_ASSERT(slot != 0);
    for (uint32_t i = 0; at != 0 && at != slot && i < unit->count; i++) {
        const struct mqx_message *other = mqx_message(guard->region, at);
        before = at;
        at = other == NULL ? 0 : other->unit_next;
    }
    if (MQX_UNLIKELY(at != slot || message == NULL || unit->count == 0)) {
        return mqx_region_damage(guard->region, "the list of a unit of work, message", slot);
    }
    struct mqx_message *previous = mqx_message(guard->region, before);
    mqx_guard_store32(guard, previous != NULL ? &previous->unit_next : &unit->head,
                      message->unit_next);
    if (unit->tail == slot) {
        mqx_guard_store32(guard, &unit->tail, before);
    }
    mqx_guard_store32(guard, &unit->count, unit->count - 1);
    return MQX_OK;
}

/* Makes a message that is in no list the context's pending reference, as a pin: releasing it
 * removes the message, in as many steps as it takes. Left open. */
static int set_pending_removal(struct mqx_stripe_guard *guard, uint32_t context, uint32_t object,
                               uint32_t slot)
{
    struct mqx_context *unit = mqx_context(guard->region, context);
    MQX_ASSERT(unit != NULL);
    MQX_ASSERT(slot != 0);
    if (MQX_UNLIKELY(unit->pending_kind != MQX_PENDING_NONE)) {
        return mqx_region_damage(guard->region, "the pending reference of a context", context);
    }
    mqx_guard_store32(guard, &unit->pending_ref, slot);
    mqx_guard_store32(guard, &unit->pending_object, object);
    mqx_guard_store32(guard, &unit->pending_kind, MQX_PENDING_PINNED);
    return MQX_OK;
}

/* Under the stripe's lock. On failure the micro-transaction has been rolled back. */
static int undo_locked(struct mqx_stripe_guard *guard, uint32_t context, uint32_t object,
                       uint32_t slot, struct mqx_wakeups *wakes)
{
    const struct mqx_message *message = mqx_message(guard->region, slot);
    MQX_ASSERT(message != NULL);
    MQX_ASSERT(mqx_stripe_of(guard->region, object) == guard->stripe);
    MQX_ASSERT(guard->stripe->lock.undo_count == 0);
    const bool got = message->state == MQX_MSG_GOT;
    int status = unlink_from_unit(guard, context, slot);
    if (status == MQX_OK && got) {
        mqx_queue_make_available(guard, mqx_object(guard->region, object), slot, 0);
    } else if (status == MQX_OK) {
        status = set_pending_removal(guard, context, object, slot);
    }
    if (status != MQX_OK) {
        mqx_stripe_guard_rollback(guard);
        return status;
    }
    mqx_stripe_guard_commit(guard);
    if (got) {
        mqx_wait_list_pick(guard, object, slot, wakes);
    }
    return MQX_OK;
}

int mqx_unit_undo(struct mqx_store *store, uint32_t context, uint32_t slot)
{
    struct mqx_region *region = &store->region;
    const struct mqx_message *message = mqx_message(region, slot);
    struct mqx_wakeups wakes = {.count = 0};
    struct mqx_stripe_guard guard;
    MQX_ASSERT(context != 0);
    if (MQX_UNLIKELY(message == NULL || mqx_object(region, message->object) == NULL)) {
        return mqx_region_damage(region, "a message of a unit of work", slot);
    }
    const uint32_t object = message->object;
    int status = mqx_stripe_guard_take(region, object, &guard);
    if (status != MQX_OK) {
        return status;
    }
    status = undo_locked(&guard, context, object, slot, &wakes);
    mqx_stripe_guard_drop(&guard);
    mqx_wait_list_wake(region, &wakes);
    return status != MQX_OK ? status : mqx_pending_release(store, context);
}

/* ---- units that keep the journal from being recycled for too long ---- */

/* `tail` may be older than `first`: a unit that began after it was read is not long (rule 55). */
bool mqx_unit_is_long(const struct mqx_journal *journal, uint64_t tail, uint64_t first)
{
    MQX_ASSERT(journal != NULL);
    const uint64_t most = journal->limit / 10 * LONG_UNIT_TENTHS;
    MQX_ASSERT(most <= journal->limit);
    return first != 0 && first < tail && tail - first > most;
}

void mqx_unit_mark_long(struct mqx_store *store, uint32_t *out_count)
{
    const struct mqx_region *region = &store->region;
    const uint64_t tail = mqx_load_relaxed(&region->journal->tail);
    const uint64_t used = mqx_area_used(region, MQX_AREA_CONTEXTS);
    MQX_ASSERT(out_count != NULL);
    *out_count = 0;
    for (uint32_t slot = 1; slot < used; slot++) {
        struct mqx_context *unit = mqx_context(region, slot);
        const uint64_t first = unit == NULL ? 0 : mqx_load_acquire(&unit->first_lsn);
        if (mqx_unit_is_long(region->journal, tail, first) &&
            mqx_load_relaxed(&unit->autocommit) == 0 &&
            mqx_load_acquire(&unit->state) == MQX_CTX_ACTIVE &&
            mqx_exchange(&unit->must_back_out, first) != first) {
            *out_count += 1;
        }
    }
    MQX_ASSERT(*out_count <= used);
}

/* ---- pending references ---- */

void mqx_pending_pin(struct mqx_stripe_guard *guard, uint32_t context, uint32_t object,
                     uint32_t slot)
{
    struct mqx_context *owner = mqx_context(guard->region, context);
    struct mqx_message *message = mqx_message(guard->region, slot);
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    MQX_ASSERT(mqx_stripe_of(guard->region, object) == guard->stripe);
    MQX_ASSERT(guard->stripe->lock.undo_count == 0);
    if (MQX_UNLIKELY(owner == NULL || owner->pending_kind != MQX_PENDING_NONE || message == NULL ||
                     message->pins == UINT8_MAX)) {
        (void)mqx_region_damage(guard->region, "a message to be pinned", slot);
        return;
    }
    mqx_guard_store8(guard, &message->pins, (uint8_t)(message->pins + 1));
    mqx_guard_store32(guard, &owner->pending_ref, slot);
    mqx_guard_store32(guard, &owner->pending_object, object);
    mqx_guard_store32(guard, &owner->pending_kind, MQX_PENDING_PINNED);
    mqx_stripe_guard_commit(guard);
}

/* A reserved entry that was never linked into its queue: blocks back, entry back. */
static void free_reserved(struct mqx_stripe_guard *guard, struct mqx_context *context,
                          uint32_t slot)
{
    struct mqx_message *message = mqx_message(guard->region, slot);
    bool done = message == NULL || message->state != MQX_MSG_RESERVED;
    MQX_ASSERT(guard->stripe->lock.undo_count == 0);
    MQX_ASSERT(context->pending_kind == MQX_PENDING_RESERVED);
    while (!done) {
        done = mqx_body_free_step(guard, message);
        if (done) {
            mqx_entry_give(guard, slot);
            mqx_guard_store32(guard, &context->pending_kind, MQX_PENDING_NONE);
        }
        mqx_stripe_guard_commit(guard);
    }
}

/* Ends a pin; the last pin of a message that is gone removes it. */
static int free_pin(struct mqx_stripe_guard *guard, struct mqx_context *context, uint32_t slot)
{
    struct mqx_message *message = mqx_message(guard->region, slot);
    struct mqx_object *queue = mqx_object(guard->region, context->pending_object);
    bool pinned = false, done = false;
    MQX_ASSERT(guard->stripe->lock.undo_count == 0);
    MQX_ASSERT(context->pending_kind == MQX_PENDING_PINNED);
    if (MQX_UNLIKELY(message == NULL || queue == NULL)) {
        return mqx_region_damage(guard->region, "a pinned message", slot);
    }
    if (message->pins > 0) {
        mqx_guard_store8(guard, &message->pins, (uint8_t)(message->pins - 1));
        if (message->state != MQX_MSG_GONE || message->pins != 0) {
            mqx_guard_store32(guard, &context->pending_kind, MQX_PENDING_NONE);
            mqx_stripe_guard_commit(guard);
            return MQX_OK;
        }
        mqx_stripe_guard_commit(guard);
    }
    while (!done && !pinned) {
        done = mqx_queue_remove(guard, queue, slot, 0, &pinned);
        if (done) {
            mqx_guard_store32(guard, &context->pending_kind, MQX_PENDING_NONE);
        }
        mqx_stripe_guard_commit(guard);
    }
    return MQX_OK;
}

int mqx_pending_release(struct mqx_store *store, uint32_t slot)
{
    struct mqx_context *context = mqx_context(&store->region, slot);
    struct mqx_stripe_guard guard;
    MQX_ASSERT(slot != 0);
    if (MQX_UNLIKELY(context == NULL)) {
        return damaged_context(store, slot);
    }
    if (context->pending_kind != MQX_PENDING_RESERVED &&
        context->pending_kind != MQX_PENDING_PINNED) {
        return MQX_OK;
    }
    int status = mqx_stripe_guard_take(&store->region, context->pending_object, &guard);
    if (status != MQX_OK) {
        return status;
    }
    if (context->pending_kind == MQX_PENDING_RESERVED) {
        free_reserved(&guard, context, context->pending_ref);
    } else if (context->pending_kind == MQX_PENDING_PINNED) {
        status = free_pin(&guard, context, context->pending_ref);
    }
    mqx_store_release(&context->pending_kind, MQX_PENDING_NONE);
    mqx_stripe_guard_drop(&guard);
    return status;
}
