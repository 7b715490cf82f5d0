/*
 * unit.c - units of work. See unit.h for states and order.
 */
#include "unit/unit.h"

#include "catalog/catalog.h"
#include "base/error.h"
#include "os/host_info.h"
#include "unit/xid_table.h"

#include <string.h>

void mqx_unit_begin(struct mqx_store *store, uint32_t slot)
{
    struct mqx_context *unit = mqx_context(&store->region, slot);
    mqx_check(unit != NULL);
    mqx_check(unit->state == MQX_CTX_IDLE || unit->state == MQX_CTX_ACTIVE);
    if (unit->state == MQX_CTX_ACTIVE) {
        return;
    }
    mqx_check(unit->head == 0 && unit->first_lsn == 0);
    unit->started_us = store->io->ops->now_us(store->io);
    unit->thread = mqx_thread_id();
    mqx_store_release(&unit->must_back_out, 0);
    mqx_store_release(&unit->state, MQX_CTX_ACTIVE);
}

/* Back to IDLE: everything is done, nothing of the unit is left anywhere. */
static void reset_unit(struct mqx_context *unit)
{
    mqx_check(unit->head == 0);
    mqx_check(unit->count == 0);
    unit->unit_id = 0;
    unit->decided_lsn = 0;
    unit->record_count = 0;
    unit->running_crc = 0;
    mqx_store_release(&unit->must_back_out, 0);
    mqx_store_release(&unit->first_lsn, 0);
    mqx_store_release(&unit->state, MQX_CTX_IDLE);
}

/* A unit whose owner died just before it was prepared may have an xid already. */
static int close_unit(struct mqx_store *store, uint32_t slot)
{
    struct mqx_context *unit = mqx_context(&store->region, slot);
    const int status =
        MQX_UNLIKELY(unit->xid_listed != 0) ? mqx_xid_table_remove(&store->region, slot) : MQX_OK;
    if (MQX_LIKELY(status == MQX_OK)) {
        reset_unit(unit);
    }
    return status;
}

uint64_t mqx_unit_id(struct mqx_store *store, uint32_t slot)
{
    struct mqx_context *unit = mqx_context(&store->region, slot);
    mqx_check(unit != NULL);
    if (unit->unit_id == 0) {
        unit->unit_id = mqx_journal_unit_id(store);
    }
    return unit->unit_id;
}

int mqx_unit_append(struct mqx_store *store, uint32_t slot, const unsigned char *record,
                    uint32_t length, uint32_t flags, uint32_t message)
{
    struct mqx_append append = {
        .record = record,
        .length = length,
        .flags = flags,
        .context = slot,
        .message = message,
    };
    return mqx_journal_append(store, &append);
}

uint32_t mqx_unit_encode_get(struct mqx_store *store, uint32_t context, uint32_t slot, bool decides,
                             unsigned char *to)
{
    const struct mqx_message *message = mqx_message(&store->region, slot);
    mqx_check(message != NULL && message->unit == context);
    const struct mqx_record_head head = {
        .type = PS_REC_GET,
        .flags = decides ? PS_FLAG_COMMITS : 0,
        .unit_id = mqx_unit_id(store, context),
        .object = message->object,
        .object_gen = mqx_object(&store->region, message->object)->generation,
        .number = message->number,
    };
    return mqx_encode_plain(to, &head);
}

int mqx_unit_log_get(struct mqx_store *store, uint32_t context, uint32_t slot, bool decides)
{
    unsigned char *record = mqx_scratch(256);
    if (record == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a GET record");
    }
    const uint32_t length = mqx_unit_encode_get(store, context, slot, decides, record);
    return mqx_unit_append(store, context, record, length, decides ? MQX_APPEND_DECIDES : 0u, 0);
}

/* ---- forward and back: what happens to the first message of the list, in one lock hold ---- */

/* One message; true when the list moved on (a long chain is freed in several calls). */
static bool step_one(struct mqx_stripe_guard *guard, uint32_t context, bool forward,
                     struct mqx_wakes *wakes)
{
    const struct mqx_context *unit = mqx_context(guard->region, context);
    const uint32_t slot = unit->head;
    const struct mqx_message *message = mqx_message(guard->region, slot);
    struct mqx_object *queue = mqx_object(guard->region, message->object);
    const uint32_t object = message->object;
    const bool back = message->state == MQX_MSG_GOT && (message->flags & MQX_MSGF_TAKEN) == 0;
    const bool shown = forward ? message->state == MQX_MSG_PUT : back;
    bool pinned = false, moved = true;
    mqx_check(queue != NULL);
    if (MQX_UNLIKELY(mqx_load_relaxed(&queue->state) == MQX_OBJ_DELETING)) {
        mqx_store_relaxed(&mqx_context(guard->region, context)->deleted, object);
    }
    if (shown) {
        mqx_unit_pop(guard, context);
        mqx_queue_show(guard, queue, slot, forward || unit->autocommit ? 0 : 1);
    } else {
        const bool got = message->state == MQX_MSG_GOT;
        moved = mqx_queue_remove(guard, queue, slot, context, &pinned) || pinned;
        queue->get_count += got && forward;
        if (MQX_UNLIKELY(got && !forward && moved)) {
            struct mqx_context *loser = mqx_context(guard->region, context);
            mqx_guard_store32(guard, &loser->discarded, loser->discarded + 1);
        }
    }
    mqx_stripe_guard_commit(guard);
    if (shown && queue->waiters != 0) {
        mqx_wait_list_pick(guard, object, slot, wakes);
    }
    return moved;
}

/* Handles messages from the head on that belong to the same stripe, at most 64. */
static int step_many(struct mqx_store *store, uint32_t context, bool forward)
{
    struct mqx_region *region = &store->region;
    const struct mqx_context *unit = mqx_context(region, context);
    const struct mqx_message *message = mqx_message(region, unit->head);
    struct mqx_wakes wakes = {.count = 0};
    struct mqx_stripe_guard guard;
    if (message == NULL || mqx_object(region, message->object) == NULL) {
        mqx_region_stop(region, MQX_STOP_BROKEN);
        return mqx_fail(MQRC_CONNECTION_BROKEN, "unit of context %u names message %u, which is not "
                        "there", context, unit->head);
    }
    int status = mqx_stripe_guard_take(region, message->object, &guard);
    if (status != MQX_OK) {
        return status;
    }
    for (int i = 0; i < MQX_LOCKED_STEPS_MAX && unit->head != 0; i++) {
        message = mqx_message(region, unit->head);
        if (message == NULL || mqx_stripe_of(region, message->object) != guard.stripe) {
            break;
        }
        if (wakes.count >= MQX_LOCKED_STEPS_MAX) {
            break;
        }
        (void)step_one(&guard, context, forward, &wakes);
    }
    mqx_stripe_guard_drop(&guard);
    mqx_wait_list_wake(region, &wakes);
    return MQX_OK;
}

static int step_all(struct mqx_store *store, uint32_t context, bool forward)
{
    const struct mqx_context *unit = mqx_context(&store->region, context);
    int status = MQX_OK;
    while (status == MQX_OK && unit->head != 0) {
        status = step_many(store, context, forward);
    }
    return status;
}

/* The unit is over: a deleted queue of which it held a message may be gone now. Several: the
 * maintenance sees to the others. */
static int end_deleted(struct mqx_store *store, struct mqx_context *unit)
{
    const uint32_t object = mqx_load_relaxed(&unit->deleted);
    if (MQX_LIKELY(object == 0)) {
        return MQX_OK;
    }
    mqx_store_relaxed(&unit->deleted, 0u);
    return mqx_catalog_finish(store, object);
}

int mqx_unit_finish(struct mqx_store *store, uint32_t context)
{
    struct mqx_context *unit = mqx_context(&store->region, context);
    mqx_check(unit != NULL && unit->state == MQX_CTX_DECIDED);
    int status = MQX_OK;
    if (unit->decided_lsn != 0) {
        status = mqx_flush_to(store, unit->decided_lsn);
    }
    if (status == MQX_OK) {
        status = step_all(store, context, true);
    }
    if (status == MQX_OK) {
        status = close_unit(store, context);
    }
    if (status == MQX_OK) {
        status = end_deleted(store, unit);
    }
    return status;
}

/* ---- commit ---- */

static int append_commit(struct mqx_store *store, uint32_t context)
{
    const struct mqx_context *unit = mqx_context(&store->region, context);
    unsigned char *record = mqx_scratch(256);
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
    return mqx_unit_append(store, context, record, length, MQX_APPEND_DECIDES, 0);
}

int mqx_unit_commit(struct mqx_store *store, uint32_t context)
{
    struct mqx_context *unit = mqx_context(&store->region, context);
    mqx_check(unit != NULL);
    if (unit->state == MQX_CTX_IDLE) {
        return MQX_OK;
    }
    mqx_check(unit->state == MQX_CTX_ACTIVE);
    if (mqx_load_acquire(&unit->must_back_out) != 0) {
        int status = mqx_unit_backout(store, context);
        return status != MQX_OK
                   ? status
                   : mqx_fail(MQRC_BACKED_OUT,
                              "the unit held the journal for too long and was backed out");
    }
    if (unit->first_lsn != 0) {
        int status = append_commit(store, context);
        if (status != MQX_OK) {
            return status;
        }
    } else {
        mqx_store_release(&unit->state, MQX_CTX_DECIDED);
    }
    return mqx_unit_finish(store, context);
}

/* ---- backout ---- */

enum { COUNTS_A_RECORD = 2048 };

/* The new BackoutCounts of the persistent messages that the unit had got, from `slot` on. */
static uint32_t collect_counts(const struct mqx_store *store, uint32_t *slot, bool single,
                               struct ps_count *out)
{
    const struct mqx_message *message = mqx_message(&store->region, *slot);
    uint32_t n = 0;
    while (message != NULL && n < COUNTS_A_RECORD) {
        if (!single && message->state == MQX_MSG_GOT &&
            (message->flags & MQX_MSGF_PERSISTENT) != 0) {
            out[n++] = (struct ps_count){.identity = message->number,
                                         .object = message->object,
                                         .count = message->backout_count + 1};
        }
        *slot = message->unit_next;
        message = mqx_message(&store->region, *slot);
    }
    return n;
}

/* BACKOUT records ride with the next flush; losing them costs counts, never messages (rule 46). */
static int append_backout(struct mqx_store *store, uint32_t context)
{
    const struct mqx_context *unit = mqx_context(&store->region, context);
    const uint32_t most = COUNTS_A_RECORD * (uint32_t)sizeof(struct ps_count);
    unsigned char *record = mqx_scratch(2 * (size_t)most + 256);
    const struct mqx_record_head head = {.type = PS_REC_BACKOUT, .unit_id = unit->unit_id};
    uint32_t slot = unit->head;
    if (record == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a BACKOUT record");
    }
    struct ps_count *counts = (struct ps_count *)(void *)(record + most + 256);
    do {
        const uint32_t n = collect_counts(store, &slot, unit->autocommit != 0, counts);
        const uint32_t length = mqx_encode_counts(record, &head, counts, n);
        int status = mqx_unit_append(store, context, record, length, 0, 0);
        if (status != MQX_OK) {
            return status;
        }
    } while (slot != 0);
    return MQX_OK;
}

int mqx_unit_backout(struct mqx_store *store, uint32_t context)
{
    struct mqx_context *unit = mqx_context(&store->region, context);
    mqx_check(unit != NULL);
    if (unit->state == MQX_CTX_IDLE) {
        return MQX_OK;
    }
    mqx_check(unit->state == MQX_CTX_ACTIVE || unit->state == MQX_CTX_BACKING_OUT);
    if (unit->state == MQX_CTX_ACTIVE && unit->first_lsn != 0) {
        int status = append_backout(store, context);
        if (status != MQX_OK) {
            return status;
        }
    }
    mqx_store_release(&unit->state, MQX_CTX_BACKING_OUT);
    int status = step_all(store, context, false);
    if (status == MQX_OK) {
        status = close_unit(store, context);
    }
    if (status == MQX_OK) {
        status = end_deleted(store, unit);
    }
    return status;
}

int mqx_unit_roll(struct mqx_store *store, uint32_t context, bool forward)
{
    const struct mqx_context *unit = mqx_context(&store->region, context);
    mqx_check(unit != NULL && unit->state == MQX_CTX_PREPARED);
    if (!forward && unit->head != 0) { /* it is decided: counts that get lost cost no message */
        mqx_ignore(append_backout(store, context));
    }
    return step_all(store, context, forward);
}

/* ---- taking one call back ---- */

/* Stores that take `slot` out of the list wherever it is (the newest, as a rule). */
static void unlink_from_unit(struct mqx_stripe_guard *guard, uint32_t context, uint32_t slot)
{
    struct mqx_context *unit = mqx_context(guard->region, context);
    uint32_t before = 0, at = unit->head;
    for (uint32_t i = 0; at != slot && i < unit->count; i++) {
        const struct mqx_message *message = mqx_message(guard->region, at);
        mqx_check(message != NULL);
        before = at;
        at = message->unit_next;
    }
    mqx_check(at == slot);
    struct mqx_message *previous = mqx_message(guard->region, before);
    mqx_guard_store32(guard, previous != NULL ? &previous->unit_next : &unit->head,
                      mqx_message(guard->region, slot)->unit_next);
    if (unit->tail == slot) {
        mqx_guard_store32(guard, &unit->tail, before);
    }
    mqx_guard_store32(guard, &unit->count, unit->count - 1);
}

/* The message is the context's to remove from here on, in as many steps as it takes. */
static void take_in_hand(struct mqx_stripe_guard *guard, uint32_t context, uint32_t object,
                         uint32_t slot)
{
    struct mqx_context *unit = mqx_context(guard->region, context);
    mqx_check(unit->pending_kind == MQX_PENDING_NONE);
    mqx_guard_store32(guard, &unit->pending_ref, slot);
    mqx_guard_store32(guard, &unit->pending_object, object);
    mqx_guard_store32(guard, &unit->pending_kind, MQX_PENDING_PINNED);
}

int mqx_unit_undo(struct mqx_store *store, uint32_t context, uint32_t slot)
{
    struct mqx_region *region = &store->region;
    const struct mqx_message *message = mqx_message(region, slot);
    struct mqx_wakes wakes = {.count = 0};
    struct mqx_stripe_guard guard;
    mqx_check(message != NULL);
    const uint32_t object = message->object;
    int status = mqx_stripe_guard_take(region, object, &guard);
    if (status != MQX_OK) {
        return status;
    }
    unlink_from_unit(&guard, context, slot);
    if (message->state == MQX_MSG_GOT) {
        mqx_queue_show(&guard, mqx_object(region, object), slot, 0);
        mqx_stripe_guard_commit(&guard);
        mqx_wait_list_pick(&guard, object, slot, &wakes);
    } else {
        take_in_hand(&guard, context, object, slot);
        mqx_stripe_guard_commit(&guard);
    }
    mqx_stripe_guard_drop(&guard);
    mqx_wait_list_wake(region, &wakes);
    return mqx_pending_release(store, context);
}

/* ---- units that hold the journal for too long ---- */

void mqx_unit_mark_long(struct mqx_store *store, uint32_t *out_count)
{
    const struct mqx_region *region = &store->region;
    const uint64_t tail = mqx_load_relaxed(&region->journal->tail);
    const uint64_t most = region->journal->limit / 10 * 8;
    const uint64_t used = mqx_load_acquire(&region->header->area[MQX_AREA_CONTEXTS].used);
    *out_count = 0;
    for (uint32_t slot = 1; slot < used; slot++) {
        struct mqx_context *unit = mqx_context(region, slot);
        const uint64_t first = unit == NULL ? 0 : mqx_load_acquire(&unit->first_lsn);
        if (first != 0 && tail - first > most && unit->autocommit == 0 &&
            mqx_load_acquire(&unit->state) == MQX_CTX_ACTIVE &&
            mqx_exchange(&unit->must_back_out, 1u) == 0) {
            *out_count += 1;
        }
    }
}

/* ---- what a context has in hand ---- */

void mqx_pending_pin(struct mqx_stripe_guard *guard, uint32_t context, uint32_t object,
                     uint32_t slot)
{
    struct mqx_context *hand = mqx_context(guard->region, context);
    struct mqx_message *message = mqx_message(guard->region, slot);
    mqx_check(hand != NULL && hand->pending_kind == MQX_PENDING_NONE);
    mqx_check(message != NULL && message->pins < UINT8_MAX);
    mqx_guard_store8(guard, &message->pins, (uint8_t)(message->pins + 1));
    mqx_guard_store32(guard, &hand->pending_ref, slot);
    mqx_guard_store32(guard, &hand->pending_object, object);
    mqx_guard_store32(guard, &hand->pending_kind, MQX_PENDING_PINNED);
    mqx_stripe_guard_commit(guard);
}

/* A reserved entry that never reached its queue: blocks back, entry back. */
static void free_reserved(struct mqx_stripe_guard *guard, struct mqx_context *context,
                          uint32_t slot)
{
    struct mqx_message *message = mqx_message(guard->region, slot);
    bool done = message == NULL || message->state != MQX_MSG_RESERVED;
    while (!done) {
        done = mqx_body_free_step(guard, message);
        if (done) {
            mqx_entry_give(guard, slot);
            mqx_guard_store32(guard, &context->pending_kind, MQX_PENDING_NONE);
        }
        mqx_stripe_guard_commit(guard);
    }
}

/* A pin ends; the last pin of a message that is gone removes it. */
static void free_pin(struct mqx_stripe_guard *guard, struct mqx_context *context, uint32_t slot)
{
    struct mqx_message *message = mqx_message(guard->region, slot);
    struct mqx_object *queue = mqx_object(guard->region, context->pending_object);
    bool pinned = false, done = false;
    mqx_check(message != NULL && queue != NULL);
    if (message->pins > 0) {
        mqx_guard_store8(guard, &message->pins, (uint8_t)(message->pins - 1));
        if (message->state != MQX_MSG_GONE || message->pins != 0) {
            mqx_guard_store32(guard, &context->pending_kind, MQX_PENDING_NONE);
            mqx_stripe_guard_commit(guard);
            return;
        }
        mqx_stripe_guard_commit(guard);
    }
    while (!done) {
        done = mqx_queue_remove(guard, queue, slot, 0, &pinned);
        if (done) {
            mqx_guard_store32(guard, &context->pending_kind, MQX_PENDING_NONE);
        }
        mqx_stripe_guard_commit(guard);
    }
}

int mqx_pending_release(struct mqx_store *store, uint32_t slot)
{
    struct mqx_context *context = mqx_context(&store->region, slot);
    struct mqx_stripe_guard guard;
    mqx_check(context != NULL);
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
        free_pin(&guard, context, context->pending_ref);
    }
    mqx_store_release(&context->pending_kind, MQX_PENDING_NONE);
    mqx_stripe_guard_drop(&guard);
    return MQX_OK;
}
