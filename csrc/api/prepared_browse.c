/*
 * prepared_browse.c - mqe_browse_prepared: the messages of a prepared unit, in the order of the
 * calls.
 *
 * The unit's list does not change before the unit is decided, and from then on only under the
 * stripe lock of the message that leaves it. The list is therefore followed to the first message
 * without the locks of its messages, and that position is trusted once the message is found, under
 * its lock, to be in the unit; from there on each message is read under its lock, at most 64 a
 * hold. Meanwhile some stripe's lock is held, so that an entry which has left the unit is still in
 * memory when it is looked at (region/extents.h). What is short and
 * in the region is copied there; of a message in the journal the entry is copied, and the body
 * after the lock; a long one is pinned. At the end the unit is checked once more: when it has been
 * decided by then, the batch is empty.
 *
 * Cursor: the entry and number of the next message, with its index; unit ids are never used again.
 *
 * Locks: none may be held by the caller; stripe locks are taken inside, one at a time.
 */
#include "api/context_pool.h"
#include "api/message_rows.h"
#include "base/error.h"
#include "region/extents.h"
#include "unit/prepared.h"
#include "os/block_hook.h"

#include <string.h>

struct prepared_browse {
    mqe_manager *manager;
    struct mqx_store *store;
    const struct ps_xid *xid;
    struct mqe_batch *batch;
    uint32_t unit;            /* context */
    uint64_t unit_id;
    uint32_t slot;            /* the next message, 0: no more */
    uint32_t pool;            /* context for pins, 0: none was needed yet */
    bool full;                /* the next one does not fit */
    uint32_t pinned;          /* the newest of the batch, pending reference of `pool`; 0: none */
    struct mqx_message pinned_as; /* the entry as it was then */
    uint32_t far_count;       /* newest messages of the batch whose bodies are in the journal */
    uint32_t far_index[MQX_LOCKED_STEPS_MAX];
    struct mqx_message far[MQX_LOCKED_STEPS_MAX];
};

static int report_ended(const struct prepared_browse *b)
{
    MQX_ASSERT(b->xid != NULL);
    char text[MQX_XID_TEXT_SIZE];
    return mqx_fail(MQRC_UOW_NOT_AVAILABLE, "the unit of work prepared as %s has been ended",
                    mqx_xid_text(b->xid, text));
}

static bool is_open(const struct prepared_browse *b)
{
    MQX_ASSERT(b->unit != 0);
    const struct mqx_context *unit = mqx_context(&b->store->region, b->unit);
    return unit != NULL && mqx_prepared_is_open(&b->store->region, unit) &&
           mqx_load_relaxed(&unit->unit_id) == b->unit_id;
}

/* ---- where to begin ---- */

/* Any stripe's lock, for looking at entries that may have left the unit. */
static int take_any_stripe(const struct prepared_browse *b, struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(b->unit != 0);
    return mqx_stripe_guard_take(&b->store->region, b->unit, guard);
}

/* Number and object of an entry of the list, 0 when it has left it. */
static int look_at(const struct prepared_browse *b, uint32_t slot, uint64_t *out_number,
                   uint32_t *out_object)
{
    MQX_ASSERT(out_number != NULL && out_object != NULL);
    struct mqx_stripe_guard guard;
    const int status = take_any_stripe(b, &guard);
    if (status != MQX_OK) {
        return status;
    }
    const struct mqx_message *message = mqx_message_peek(&b->store->region, slot);
    *out_number = message == NULL ? 0 : mqx_load_relaxed(&message->number);
    *out_object = message == NULL ? 0 : mqx_load_relaxed(&message->object);
    mqx_stripe_guard_drop(&guard);
    return MQX_OK;
}

/* A cursor that outlives a restart knows the entry of another message. */
static bool is_hint(const struct prepared_browse *b, const struct mqe_prepared_cursor *cursor)
{
    MQX_ASSERT(cursor != NULL);
    const struct mqx_message *message = mqx_message_peek(&b->store->region, cursor->next_slot);
    return cursor->unit_id == b->unit_id && cursor->next_index <= cursor->index &&
           message != NULL && mqx_load_relaxed(&message->unit) == b->unit &&
           mqx_load_relaxed(&message->number) == cursor->next_number;
}

/* The message with the cursor's index, 0 beyond the last one. */
static int seek(struct prepared_browse *b, const struct mqe_prepared_cursor *cursor)
{
    struct mqx_stripe_guard guard;
    MQX_ASSERT(b->unit != 0);
    MQX_ASSERT(b->slot == 0);
    const struct mqx_region *region = &b->store->region;
    const struct mqx_context *unit = mqx_context(region, b->unit);
    uint64_t at = 0;
    int status = take_any_stripe(b, &guard);
    if (status != MQX_OK) {
        return status;
    }
    b->slot = cursor->index < mqx_load_relaxed(&unit->count) ? mqx_load_relaxed(&unit->head) : 0;
    if (b->slot != 0 && is_hint(b, cursor)) {
        at = cursor->next_index;
        b->slot = cursor->next_slot;
    }
    for (; at < cursor->index && b->slot != 0; at++) {
        if ((at + 1) % MQX_LOCKED_STEPS_MAX == 0) {
            mqx_stripe_guard_drop(&guard);
            status = take_any_stripe(b, &guard);
            if (status != MQX_OK) {
                return status;
            }
        }
        const struct mqx_message *message = mqx_message_peek(region, b->slot);
        b->slot = message == NULL ? 0 : mqx_load_relaxed(&message->unit_next);
    }
    mqx_stripe_guard_drop(&guard);
    return MQX_OK;
}

/* ---- one hold ---- */

/* Is it the unit's, now? Its stripe lock is held. */
static bool is_of_unit(const struct prepared_browse *b, const struct mqx_message *message)
{
    MQX_ASSERT(message != NULL);
    return (message->state == MQX_MSG_PUT || message->state == MQX_MSG_GOT) &&
           message->unit == b->unit && is_open(b);
}

static bool fits(struct prepared_browse *b, const struct mqx_message *message)
{
    MQX_ASSERT(b->batch->count <= b->batch->capacity);
    struct mqe_batch *batch = b->batch;
    b->full = batch->count >= batch->capacity ||
              !mqx_msg_batch_fits(batch, mqx_msg_batch_room(batch, 0), message);
    return !b->full;
}

static void pin(struct prepared_browse *b, struct mqx_stripe_guard *guard,
                const struct mqx_message *message)
{
    MQX_ASSERT(b->pool != 0);
    MQX_ASSERT(b->pinned == 0);
    mqx_pending_pin(guard, b->pool, message->object, b->slot);
    b->pinned = b->slot;
    b->pinned_as = *message;
}

static int read_item(struct prepared_browse *b, uint32_t i, const struct mqx_message *message)
{
    MQX_ASSERT(i < b->batch->capacity);
    struct mqe_batch *batch = b->batch;
    const int status = mqx_msg_batch_item_read(b->store, message, &batch->items[i],
                                               batch->bodies + batch->offsets[i]);
    batch->items[i].work =
        message->state == MQX_MSG_PUT ? (uint32_t)MQE_ITEM_PUT : (uint32_t)MQE_ITEM_GOT;
    return status;
}

/* Takes the message into the batch. *out_more: the hold continues behind it. */
static int take(struct prepared_browse *b, struct mqx_stripe_guard *guard,
                struct mqx_message *message, bool *out_more)
{
    MQX_ASSERT(b->batch->count < b->batch->capacity);
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    struct mqe_batch *batch = b->batch;
    const uint32_t i = batch->count;
    int status = MQX_OK;
    if (message->cells == 0) {
        b->far_index[b->far_count] = i;
        b->far[b->far_count++] = *message;
    } else if (message->length <= MQX_LOCKED_COPY_MAX) {
        status = read_item(b, i, message);
    } else if (b->pool == 0 || message->pins == UINT8_MAX) {
        *out_more = false; /* again, with a context, or when other pins are released */
        return MQX_OK;
    } else {
        pin(b, guard, message);
        *out_more = false;
    }
    mqx_msg_batch_count(batch, message->length);
    b->slot = message->unit_next;
    return status;
}

static int take_some(struct prepared_browse *b)
{
    MQX_ASSERT(b->slot != 0);
    MQX_ASSERT(b->far_count == 0 && b->pinned == 0);
    struct mqx_region *region = &b->store->region;
    struct mqx_stripe_guard guard;
    uint64_t number = 0;
    uint32_t object = 0;
    bool more = true;
    int status = look_at(b, b->slot, &number, &object);
    if (status == MQX_OK && mqx_object(region, object) == NULL) {
        status = report_ended(b);
    }
    if (status == MQX_OK) {
        status = mqx_stripe_guard_take(region, object, &guard);
    }
    if (status != MQX_OK) {
        return status;
    }
    for (int i = 0; i < MQX_LOCKED_STEPS_MAX && b->slot != 0 && more && status == MQX_OK; i++) {
        struct mqx_message *message = mqx_message_peek(region, b->slot);
        const uint32_t at = message == NULL ? 0 : mqx_load_relaxed(&message->object);
        const bool here = at != 0 && mqx_stripe_of(region, at) == guard.stripe;
        if (!here && i > 0) {
            break;
        }
        if (!here || !is_of_unit(b, message)) {
            status = report_ended(b);
        } else if (!fits(b, message)) {
            more = false;
        } else {
            status = take(b, &guard, message, &more);
        }
    }
    mqx_stripe_guard_drop(&guard);
    return status;
}

/* ---- after the hold ---- */

static int read_from_journal(struct prepared_browse *b)
{
    MQX_ASSERT(b->far_count <= MQX_LOCKED_STEPS_MAX);
    int status = MQX_OK;
    for (uint32_t k = 0; k < b->far_count && status == MQX_OK; k++) {
        status = read_item(b, b->far_index[k], &b->far[k]);
    }
    b->far_count = 0;
    return status;
}

static int read_pinned(struct prepared_browse *b)
{
    MQX_ASSERT(b->pinned == 0 || b->pool != 0);
    if (b->pinned == 0) {
        return MQX_OK;
    }
    MQX_ASSERT(b->batch->count > 0);
    const int status = read_item(b, b->batch->count - 1, &b->pinned_as);
    const int released = mqx_pending_release(b->store, b->pool);
    b->pinned = 0;
    return released != MQX_OK ? released : status;
}

/* The next one is to be pinned, and there is no context for that yet. */
static int take_pin_context(struct prepared_browse *b)
{
    return b->pool == 0 ? mqx_pool_take(b->manager, true, &b->pool) : MQX_OK;
}

static int fill(struct prepared_browse *b)
{
    MQX_ASSERT(b->batch->count == 0);
    int status = MQX_OK;
    while (status == MQX_OK && b->slot != 0 && !b->full) { /* each turn takes one, or prepares to */
        const uint32_t before = b->batch->count;
        status = take_some(b);
        if (b->far_count != 0 || b->pinned != 0) {
            mqx_about_to_block();
        }
        const int far = read_from_journal(b);
        const int near = read_pinned(b);
        status = status != MQX_OK ? status : far != MQX_OK ? far : near;
        if (status == MQX_OK && !b->full && b->batch->count == before) {
            status = take_pin_context(b);
        }
    }
    return is_open(b) || mqx_region_stopped(&b->store->region) != MQX_RUNNING ? status
                                                                              : report_ended(b);
}

/* ---- the call ---- */

static int move_cursor(const struct prepared_browse *b, struct mqe_prepared_cursor *cursor)
{
    MQX_ASSERT(b->pinned == 0);
    const struct mqe_batch *batch = b->batch;
    uint64_t number = 0;
    uint32_t object = 0;
    const int status = look_at(b, b->slot, &number, &object);
    if (status != MQX_OK) {
        return status;
    }
    cursor->index += batch->count;
    cursor->unit_id = b->unit_id;
    cursor->next_index = cursor->index;
    cursor->next_slot = b->slot;
    cursor->next_number = number;
    if (batch->count == 0 && b->full && batch->capacity > 0) {
        return mqx_fail(MQRC_TRUNCATED_MSG_FAILED,
                        "the next message has %llu bytes, the batch %llu",
                        (unsigned long long)batch->needed,
                        (unsigned long long)batch->body_capacity);
    }
    return MQX_OK;
}

static int browse(struct prepared_browse *b, struct mqe_prepared_cursor *cursor)
{
    MQX_ASSERT(b->slot == 0);
    int status = mqx_prepared_find(b->store, b->xid, &b->unit, &b->unit_id);
    if (status != MQX_OK) {
        return status;
    }
    status = seek(b, cursor);
    if (status != MQX_OK) {
        b->batch->count = 0;
        return status;
    }
    status = fill(b);
    if (b->pool != 0) {
        mqx_pool_give(b->manager, b->pool);
    }
    if (status != MQX_OK) {
        b->batch->count = 0;
        return status;
    }
    return move_cursor(b, cursor);
}

int mqe_browse_prepared(mqe_manager *manager, const struct ps_xid *xid,
                        struct mqe_prepared_cursor *cursor, struct mqe_batch *batch)
{
    MQX_ASSERT(xid != NULL && cursor != NULL);
    struct prepared_browse prepared_browse = {
        .manager = manager, .store = &manager->store, .xid = xid, .batch = batch};
    int status = mqx_enter(manager, false);
    mqx_msg_batch_begin(batch);
    if (status == MQX_OK && !mqx_xid_is_sound(xid)) {
        status = mqx_fail(MQRC_OPTIONS_ERROR, "this is no xid");
    }
    if (status == MQX_OK) {
        mqx_file_calls_begin(manager);
        status = browse(&prepared_browse, cursor);
        mqx_file_calls_end(manager);
    }
    return status;
}
