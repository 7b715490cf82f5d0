/*
 * queue.c - the steps that puts and gets are made of. See queue.h for terms, states and invariants.
 */
#include "queue/queue.h"

#include "base/assert.h"
#include "base/checksum.h"
#include "base/error.h"
#include "queue/expiry_time.h"
#include "region/damage.h"

#include <string.h>

enum {
    ID_NUMBER_BITS = 12,       /* a generated id counts messages below the microseconds */
};
#define CORREL_ID_BIT (UINT64_C(1) << 63) /* keeps a generated CorrelId apart from every MsgId */

/* ---- tags, ids ---- */

static uint64_t tag_of(const struct mqx_region *region, const uint8_t id[MQX_ID_SIZE])
{
    uint64_t words[MQX_ID_SIZE / sizeof(uint64_t)];
    MQX_ASSERT(id != NULL);
    memcpy(words, id, sizeof words);
    return (words[0] | words[1] | words[2]) == 0
               ? 0
               : mqx_hash64(id, MQX_ID_SIZE, region->tag_key);
}

void mqx_queue_make_id(const struct mqx_region *region, uint64_t number, uint8_t id[MQX_ID_SIZE])
{
    const struct mqx_header *header = region->header;
    const uint64_t unique = __builtin_bswap64((header->epoch_us << ID_NUMBER_BITS) + number);
    MQX_ASSERT(id != NULL);
    MQX_STATIC_ASSERT(sizeof header->id_prefix + sizeof unique == MQX_ID_SIZE, "a whole id");
    memcpy(id, header->id_prefix, sizeof header->id_prefix);
    memcpy(id + sizeof header->id_prefix, &unique, sizeof unique);
}

/* ---- put ---- */

int mqx_queue_failing(const struct mqx_region *region, const struct mqx_object *queue)
{
    const struct mqx_object *structure = mqx_object(region, mqx_load_relaxed(&queue->structure));
    MQX_ASSERT(queue != NULL);
    if (structure == NULL || mqx_load_acquire(&structure->failing) == 0) {
        return MQX_OK;
    }
    return mqx_fail(MQRC_CF_STRUC_FAILED, "CFSTRUCT(%.48s) of queue %.48s has failed",
                    structure->name, queue->name);
}

/* May a queue in a structure take the message, at the present level of the structure? */
static MQX_COLD int admit_to_structure(const struct mqx_region *region,
                                       const struct mqx_object *queue, const struct mqx_put *put)
{
    const struct mqx_object *structure = mqx_object(region, mqx_load_relaxed(&queue->structure));
    MQX_ASSERT(put->d != NULL);
    if (!put->logged) {
        return mqx_fail(MQRC_OBJECT_CHANGED, "%.48s was altered into a structure during the put",
                        queue->name);
    }
    if (structure == NULL) {
        return mqx_fail(MQRC_CF_STRUC_FAILED, "the structure of queue %.48s is not defined",
                        queue->name);
    }
    if (put->d->persistence != MQPER_NOT_PERSISTENT &&
        mqx_load_relaxed(&structure->may_persist) == 0) {
        return mqx_fail(MQRC_PERSISTENT_NOT_ALLOWED, "%.48s cannot hold persistent messages: its "
                        "CFSTRUCT(%.48s) has CFLEVEL(%u), needed are 3 and RECOVER(YES)",
                        queue->name, structure->name, structure->max_depth);
    }
    if (put->length > mqx_load_relaxed(&structure->max_length)) {
        return mqx_fail(MQRC_MSG_TOO_BIG_FOR_Q,
                        "a message of %llu bytes, %u at most in CFSTRUCT(%.48s)",
                        (unsigned long long)put->length, structure->max_length, structure->name);
    }
    return mqx_queue_failing(region, queue);
}

int mqx_queue_admit(const struct mqx_region *region, const struct mqx_object *queue,
                    const struct mqx_put *put)
{
    const uint32_t state = mqx_load_relaxed(&queue->state);
    MQX_ASSERT(put->d != NULL);
    MQX_ASSERT(put->object != 0);
    if (MQX_UNLIKELY(mqx_load_relaxed(&queue->generation) != put->generation ||
                     (state != MQX_OBJ_ACTIVE && state != MQX_OBJ_LOGGED))) {
        return mqx_fail(MQRC_Q_DELETED, "the queue (slot %u) has been deleted", put->object);
    }
    if (MQX_UNLIKELY(mqx_load_relaxed(&queue->put_inhibited) != 0)) {
        return mqx_fail(MQRC_PUT_INHIBITED, "%.48s has PUT(DISABLED)", queue->name);
    }
    if (MQX_UNLIKELY(put->length > mqx_load_relaxed(&queue->max_length))) {
        return mqx_fail(MQRC_MSG_TOO_BIG_FOR_Q, "a message of %llu bytes, MAXMSGL of %.48s is %u",
                        (unsigned long long)put->length, queue->name, queue->max_length);
    }
    if (MQX_UNLIKELY(put->length > mqx_load_relaxed(&region->header->max_message))) {
        return mqx_fail(MQRC_MSG_TOO_BIG_FOR_Q_MGR,
                        "a message of %llu bytes, MAXMSGL of the queue manager is %u",
                        (unsigned long long)put->length, region->header->max_message);
    }
    if (MQX_UNLIKELY(put->d->persistence != MQPER_NOT_PERSISTENT &&
                     mqx_load_relaxed(&queue->may_persist) == 0)) {
        return mqx_fail(MQRC_PERSISTENT_NOT_ALLOWED, "%.48s cannot hold persistent messages",
                        queue->name);
    }
    if (MQX_UNLIKELY(mqx_load_relaxed(&queue->np_life) == MQX_NP_IN_STRUCTURE)) {
        const int status = admit_to_structure(region, queue, put);
        if (status != MQX_OK) {
            return status;
        }
    }
    const uint32_t present = mqx_load_relaxed(&queue->present); /* put.c asks without the lock */
    if (MQX_UNLIKELY(present >= mqx_load_relaxed(&queue->max_depth))) {
        return mqx_fail(MQRC_Q_FULL, "%.48s holds %u messages, MAXDEPTH is %u", queue->name,
                        present, queue->max_depth);
    }
    return MQX_OK;
}

/* Object, number and unit are read without the lock, too, and then verified (prepared_browse.c). */
static void fill_entry(const struct mqx_region *region, struct mqx_message *message,
                       const struct mqx_put *put)
{
    const struct ps_descriptor *d = put->d;
    MQX_ASSERT(d->placement < MQX_PRIORITY_COUNT);
    MQX_ASSERT(d->has_ext == 0 || put->ext != NULL);
    MQX_ASSERT(put->length <= MQX_MAX_BODY);
    message->placement = d->placement;
    message->flags = (uint8_t)((put->logged ? MQX_MSGF_PERSISTENT : 0) |
                               (put->logged && d->persistence == MQPER_NOT_PERSISTENT
                                    ? MQX_MSGF_VOLATILE
                                    : 0) |
                               (put->logged && !put->journal_only ? MQX_MSGF_BODY : 0) |
                               (d->has_ext != 0 ? MQX_MSGF_HAS_EXT : 0));
    message->pins = 0;
    mqx_store_relaxed(&message->object, put->object);
    mqx_store_relaxed(&message->number, put->number);
    message->lsn = 0;
    message->length = (uint32_t)put->length;
    message->priority = d->priority;
    message->expiry = mqx_expiry_of(region, d->expiry_us);
    mqx_store_relaxed(&message->unit, put->context);
    message->backout_count = 0;
    message->chunk_count = 0;
    message->record_length = 0;
    message->tag[MQX_BY_MSG_ID] = tag_of(region, d->msg_id);
    message->tag[MQX_BY_CORREL_ID] = tag_of(region, d->correl_id);
    message->tag[MQX_BY_GROUP_ID] = d->has_ext != 0 ? tag_of(region, put->ext->group_id) : 0;
    if (MQX_UNLIKELY(d->due_us != 0)) {
        mqx_delayed_fill(region, message, d->due_us);
    }
}

/* The entry and at most one block: the memory of a long body has been reserved before. */
static int take_memory(struct mqx_stripe_guard *guard, struct mqx_put *put,
                       struct mqx_message **out)
{
    uint32_t cells = 0;
    int status = MQX_OK;
    if (put->reserved != 0) {
        put->slot = put->reserved;
    } else {
        status = mqx_entry_take(guard, &put->slot);
    }
    if (MQX_UNLIKELY(status != MQX_OK)) {
        return status;
    }
    *out = mqx_message(guard->region, put->slot);
    if (MQX_UNLIKELY(*out == NULL)) {
        return mqx_region_damage(guard->region, "a message entry to be filled", put->slot);
    }
    if (put->reserved != 0) {
        return MQX_OK;
    }
    if (!put->journal_only) {
        const uint64_t payload = mqx_body_payload(put->d->has_ext != 0, put->length);
        status = mqx_body_take(guard, payload, &cells);
    }
    if (status == MQX_OK) {
        MQX_ASSERT(put->journal_only == (cells == 0));
        (*out)->cells = cells;
    }
    return status;
}

/* A reserved chain was filled before the message had its generated id. */
static int rewrite_descriptor(const struct mqx_region *region, const struct mqx_message *message,
                              const struct ps_descriptor *d)
{
    struct mqx_block *block = mqx_cells(region, message->cells);
    MQX_ASSERT(d != NULL);
    if (block == NULL) {
        return mqx_region_damage(region, "the cells of a reserved message", message->cells);
    }
    memcpy(block + 1, d, sizeof *d);
    return MQX_OK;
}

/* About the bytes of its records in the journal: fixed from the put to the end of the message. */
static uint64_t record_bytes(const struct mqx_message *message)
{
    enum { PUT_BYTES = 256, EXT_BYTES = 200, PIECE_BYTES = 96 };
    const uint32_t flags = message->flags;
    MQX_ASSERT((flags & MQX_MSGF_PERSISTENT) != 0);
    return PUT_BYTES + ((flags & MQX_MSGF_HAS_EXT) != 0 ? (uint64_t)EXT_BYTES : 0) +
           mqx_round_up(message->length, 8) + message->length / PS_CHUNK_BYTES * PIECE_BYTES;
}

/* Counts a persistent message of the stripe in or out (-1), with its body if the region has it. */
static void count_persistent(struct mqx_stripe_guard *guard, const struct mqx_message *message,
                             uint64_t one)
{
    struct mqx_stripe *stripe = guard->stripe;
    MQX_ASSERT(one == 1 || one == UINT64_MAX);
    MQX_ASSERT((message->flags & MQX_MSGF_PERSISTENT) != 0);
    mqx_guard_store64(guard, &stripe->persistent_present, stripe->persistent_present + one);
    mqx_guard_store64(guard, &stripe->live_bytes, stripe->live_bytes + one * record_bytes(message));
    if ((message->flags & MQX_MSGF_BODY) != 0) {
        const uint64_t payload =
            mqx_body_payload((message->flags & MQX_MSGF_HAS_EXT) != 0, message->length);
        mqx_guard_store64(guard, &stripe->body_bytes, stripe->body_bytes + one * payload);
    }
}

int mqx_queue_link(struct mqx_stripe_guard *guard, struct mqx_object *queue, struct mqx_put *put)
{
    struct mqx_message *message;
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    MQX_ASSERT(mqx_stripe_of(guard->region, put->object) == guard->stripe);
    int status = take_memory(guard, put, &message);
    if (MQX_UNLIKELY(status != MQX_OK)) {
        return status;
    }
    put->number = mqx_number_take(guard);
    if (put->make_msg_id) {
        mqx_queue_make_id(guard->region, put->number, put->d->msg_id);
    }
    if (put->make_correl_id) {
        mqx_queue_make_id(guard->region, put->number | CORREL_ID_BIT, put->d->correl_id);
    }
    fill_entry(guard->region, message, put);
    /* the caller has just found it not due; one that is by now is released as others are */
    const bool delayed = put->context == 0 && MQX_UNLIKELY((message->flags & MQX_MSGF_DUE) != 0);
    const bool available = put->context == 0 && !delayed;
    if (put->reserved != 0) {
        status = rewrite_descriptor(guard->region, message, put->d);
    } else if (message->cells != 0) {
        status =
            mqx_body_write(guard->region, message->cells, put->d, put->ext, put->body, put->length);
    }
    if (status == MQX_OK) {
        status = mqx_id_index_reserve(guard, queue);
    }
    if (status == MQX_OK) {
        status =
            mqx_priority_index_insert_entry(guard, queue, put->slot, message, available);
    }
    if (MQX_UNLIKELY(status != MQX_OK)) {
        return status;
    }
    mqx_guard_store8(guard, &message->state, available ? MQX_MSG_AVAILABLE : MQX_MSG_PUT);
    if (available) {
        mqx_id_index_link(guard, queue, put->slot);
    } else if (MQX_UNLIKELY(delayed)) {
        mqx_delayed_enter(guard, queue, put->slot, message);
    } else {
        mqx_guard_store32(guard, &queue->uncommitted, queue->uncommitted + 1);
        mqx_unit_push(guard, put->context, put->slot);
    }
    if ((message->flags & MQX_MSGF_PERSISTENT) != 0) {
        count_persistent(guard, message, 1);
    }
    if (message->expiry != 0) {
        mqx_guard_store32(guard, &queue->expiring, queue->expiring + 1);
    }
    if (queue->present - queue->got > queue->high_depth) {
        queue->high_depth = queue->present - queue->got;
    }
    queue->put_count += 1;
    queue->last_put_us = put->d->put_time_us;
    return MQX_OK;
}

/* ---- lists of a unit ---- */

void mqx_unit_push(struct mqx_stripe_guard *guard, uint32_t context, uint32_t slot)
{
    struct mqx_context *unit = mqx_context(guard->region, context);
    struct mqx_message *message = mqx_message(guard->region, slot);
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    MQX_ASSERT(slot != 0);
    if (MQX_UNLIKELY(unit == NULL || message == NULL)) {
        (void)mqx_region_damage(guard->region, "a message of a unit of work", slot);
        return;
    }
    struct mqx_message *last = mqx_message(guard->region, unit->tail);
    mqx_guard_store32(guard, &message->unit_next, 0);
    mqx_guard_store32(guard, last != NULL ? &last->unit_next : &unit->head, slot);
    mqx_guard_store32(guard, &unit->tail, slot);
    mqx_guard_store32(guard, &unit->count, unit->count + 1);
}

/* A damaged list: nothing of it can be trusted. Loops over the list end. */
static MQX_COLD void empty_list(struct mqx_stripe_guard *guard, struct mqx_context *unit,
                                uint32_t context)
{
    (void)mqx_region_damage(guard->region, "the list of a unit of work, context", context);
    if (unit != NULL) {
        mqx_guard_store32(guard, &unit->head, 0);
        mqx_guard_store32(guard, &unit->tail, 0);
        mqx_guard_store32(guard, &unit->count, 0);
    }
}

void mqx_unit_pop(struct mqx_stripe_guard *guard, uint32_t context)
{
    struct mqx_context *unit = mqx_context(guard->region, context);
    const struct mqx_message *first = unit == NULL ? NULL : mqx_message(guard->region, unit->head);
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    MQX_ASSERT(context != 0);
    if (MQX_UNLIKELY(first == NULL || unit->count == 0)) {
        empty_list(guard, unit, context);
        return;
    }
    if (unit->head == unit->tail) {
        mqx_guard_store32(guard, &unit->tail, 0);
    }
    mqx_guard_store32(guard, &unit->head, first->unit_next);
    mqx_guard_store32(guard, &unit->count, unit->count - 1);
}

/* ---- changes of state; the position stays ---- */

static MQX_COLD void damaged_message(const struct mqx_region *region, uint32_t slot)
{
    (void)mqx_region_damage(region, "the state of a message", slot);
}

/* A message leaves the state PUT or GOT, and the count of it. */
static void count_out(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint8_t state)
{
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    MQX_ASSERT(queue != NULL);
    if (state == MQX_MSG_PUT) {
        mqx_guard_store32(guard, &queue->uncommitted, queue->uncommitted - 1);
    } else if (state == MQX_MSG_GOT) {
        mqx_guard_store32(guard, &queue->got, queue->got - 1);
    }
}

void mqx_queue_make_available(struct mqx_stripe_guard *guard, struct mqx_object *queue,
                              uint32_t slot, uint32_t count)
{
    struct mqx_message *message = mqx_message(guard->region, slot);
    MQX_ASSERT(queue != NULL);
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    if (MQX_UNLIKELY(message == NULL ||
                     (message->state != MQX_MSG_PUT && message->state != MQX_MSG_GOT &&
                      message->state != MQX_MSG_LOCKED))) {
        damaged_message(guard->region, slot);
        return;
    }
    count_out(guard, queue, message->state);
    mqx_guard_store32(guard, &message->unit, 0);
    if (count != 0) {
        mqx_guard_store32(guard, &message->backout_count, message->backout_count + count);
    }
    if (MQX_UNLIKELY((message->flags & MQX_MSGF_DUE) != 0) &&
        mqx_delayed_settle_guarded(guard, message)) {
        mqx_delayed_enter(guard, queue, slot, message);
        return;
    }
    mqx_guard_store8(guard, &message->state, MQX_MSG_AVAILABLE);
    mqx_priority_index_set_available(guard, queue, slot, true);
    mqx_id_index_link(guard, queue, slot);
}

void mqx_queue_claim(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot,
                     enum mqx_message_state state, uint32_t owner)
{
    struct mqx_message *message = mqx_message(guard->region, slot);
    MQX_ASSERT(state == MQX_MSG_GOT || state == MQX_MSG_LOCKED || state == MQX_MSG_PUT);
    MQX_ASSERT(owner != 0);
    if (MQX_UNLIKELY(message == NULL || (message->state != MQX_MSG_AVAILABLE &&
                                         message->state != MQX_MSG_DELAYED))) {
        damaged_message(guard->region, slot);
        return;
    }
    if (MQX_UNLIKELY(message->state == MQX_MSG_DELAYED)) {
        (void)mqx_due_index_remove(guard, queue, slot); /* given back, it waits on */
    } else {
        mqx_id_index_unlink(guard, queue, slot);
        mqx_priority_index_set_available(guard, queue, slot, false);
    }
    mqx_guard_store8(guard, &message->state, (uint8_t)state);
    mqx_guard_store32(guard, &message->unit, owner);
    if (state == MQX_MSG_GOT) {
        mqx_guard_store32(guard, &queue->got, queue->got + 1);
        mqx_unit_push(guard, owner, slot);
    } else if (state == MQX_MSG_PUT) {
        mqx_guard_store32(guard, &queue->uncommitted, queue->uncommitted + 1);
        mqx_unit_push(guard, owner, slot);
    }
}

/* The message leaves for good, but its memory is still needed or too long to free at once. */
static void set_removed(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot,
                        struct mqx_message *message)
{
    MQX_ASSERT(message == mqx_message(guard->region, slot));
    MQX_ASSERT(message->state != MQX_MSG_GONE);
    if (message->state == MQX_MSG_AVAILABLE) {
        mqx_id_index_unlink(guard, queue, slot);
        mqx_priority_index_set_available(guard, queue, slot, false);
    } else if (message->state == MQX_MSG_DELAYED) {
        (void)mqx_due_index_remove(guard, queue, slot);
    }
    count_out(guard, queue, message->state);
    mqx_guard_store8(guard, &message->state, MQX_MSG_GONE);
}

static void pop_if(struct mqx_stripe_guard *guard, uint32_t context)
{
    if (context != 0) {
        mqx_unit_pop(guard, context);
    }
}

bool mqx_queue_remove(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot,
                      uint32_t pop_context, bool *out_pinned)
{
    struct mqx_message *message = mqx_message(guard->region, slot);
    MQX_ASSERT(queue != NULL);
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    if (MQX_UNLIKELY(message == NULL || message->state == MQX_MSG_FREE ||
                     message->state == MQX_MSG_RESERVED)) {
        damaged_message(guard->region, slot);
        *out_pinned = false;
        pop_if(guard, pop_context);
        return true;
    }
    *out_pinned = message->pins != 0;
    if (*out_pinned || !mqx_body_is_single(mqx_body_payload(true, message->length))) {
        if (message->state != MQX_MSG_GONE) {
            set_removed(guard, queue, slot, message);
        }
        if (*out_pinned) {
            pop_if(guard, pop_context);
            return false;
        }
        if (!mqx_body_free_step(guard, message)) {
            return false;
        }
    } else {
        if (message->state == MQX_MSG_AVAILABLE) {
            mqx_id_index_unlink(guard, queue, slot);
        } else if (MQX_UNLIKELY(message->state == MQX_MSG_DELAYED)) {
            (void)mqx_due_index_remove(guard, queue, slot);
        }
        count_out(guard, queue, message->state);
        (void)mqx_body_free_step(guard, message);
    }
    mqx_priority_index_remove_entry(guard, queue, slot, message);
    if ((message->flags & MQX_MSGF_PERSISTENT) != 0) {
        count_persistent(guard, message, UINT64_MAX);
    }
    if (message->expiry != 0) {
        mqx_guard_store32(guard, &queue->expiring, queue->expiring - 1);
    }
    pop_if(guard, pop_context); /* before the link becomes the free list's */
    mqx_entry_give_back(guard, slot, message);
    return true;
}

/* ---- deleted queues ---- */

bool mqx_queue_discard(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot)
{
    bool pinned = false, done = false;
    MQX_ASSERT(guard->stripe->lock.undo_count == 0);
    for (int i = 0; i < MQX_LOCKED_STEPS_MAX && !done && !pinned; i++) {
        done = mqx_queue_remove(guard, queue, slot, 0, &pinned);
        mqx_stripe_guard_commit(guard);
    }
    MQX_ASSERT(!(done && pinned));
    return done;
}


/* Stripe lock held: the queue in that life of the slot is logically deleted. */
static bool is_deleted(const struct mqx_object *queue, uint32_t generation)
{
    MQX_ASSERT(queue != NULL);
    return mqx_load_relaxed(&queue->generation) == generation &&
           mqx_load_relaxed(&queue->state) == MQX_OBJ_DELETING;
}

int mqx_queue_purge_step(struct mqx_store *store, struct mqx_purge *purge)
{
    struct mqx_object *queue = mqx_object(&store->region, purge->object);
    struct mqx_stripe_guard guard;
    MQX_ASSERT(!purge->at_end);
    if (queue == NULL) {
        return mqx_region_damage(&store->region, "the slot of a deleted queue", purge->object);
    }
    int status = mqx_stripe_guard_take(&store->region, purge->object, &guard);
    if (status != MQX_OK) {
        return status;
    }
    purge->at_end = !is_deleted(queue, purge->generation);
    for (int i = 0; i < MQX_LOCKED_STEPS_MAX && !purge->at_end; i++) {
        const uint32_t slot = mqx_priority_index_next(&store->region, queue, &purge->cursor, false);
        const struct mqx_message *message = mqx_message(&store->region, slot);
        if (message == NULL) {
            purge->at_end = true;
        } else if (mqx_delayed_or_available(message) ||
                   (message->state == MQX_MSG_GONE && message->pins == 0)) {
            purge->freed += 1; /* at least a part of it */
            (void)mqx_queue_discard(&guard, queue, slot);
        }
    }
    mqx_stripe_guard_drop(&guard);
    return MQX_OK;
}

int mqx_queue_drop_step(struct mqx_store *store, uint32_t object, uint32_t generation,
                        bool *out_more, bool *out_gone)
{
    struct mqx_object *queue = mqx_object(&store->region, object);
    struct mqx_stripe_guard guard;
    MQX_ASSERT(generation != 0);
    *out_more = false;
    *out_gone = false;
    if (queue == NULL) {
        return mqx_region_damage(&store->region, "the slot of a deleted queue", object);
    }
    int status = mqx_stripe_guard_take(&store->region, object, &guard);
    if (status != MQX_OK) {
        return status;
    }
    if (is_deleted(queue, generation) && queue->present == 0 && queue->waiters == 0) {
        for (int k = 0; k < MQX_INDEX_COUNT && !*out_more; k++) {
            if (queue->index[k] != 0) {
                bool done = true;
                mqx_id_index_drop(&guard, queue, k, &done);
                *out_more = true;
            }
        }
        if (!*out_more) {
            mqx_priority_index_drop(&guard, queue);
            mqx_stripe_guard_commit(&guard);
            *out_gone = true;
        }
    }
    MQX_ASSERT(!(*out_more && *out_gone));
    mqx_stripe_guard_drop(&guard);
    return MQX_OK;
}

/* ---- restart ---- */

/* Gives a message the memory for its body, in as many micro-transactions as it takes. */
static int load_chain(struct mqx_stripe_guard *guard, struct mqx_message *message, uint64_t payload)
{
    uint64_t have = 0;
    bool done = false;
    MQX_ASSERT(payload != 0);
    MQX_ASSERT(message->cells == 0);
    while (!done) {
        const uint64_t before = have;
        int status = mqx_body_extend(guard, message, payload, &have, &done);
        if (status == MQX_NEED_CELLS) {
            have = before;
            status = mqx_stripe_guard_supply(guard);
        } else {
            mqx_stripe_guard_commit(guard);
        }
        if (status != MQX_OK) {
            return status;
        }
    }
    return MQX_OK;
}

static int load_entry(struct mqx_stripe_guard *guard, uint32_t *out_slot, struct mqx_message **out)
{
    MQX_ASSERT(guard->stripe->lock.undo_count == 0);
    int status = mqx_entry_take(guard, out_slot);
    if (status == MQX_NEED_CELLS) {
        status = mqx_stripe_guard_supply(guard);
        if (status == MQX_OK) {
            status = mqx_entry_take(guard, out_slot);
        }
    }
    if (status != MQX_OK) {
        return status;
    }
    *out = mqx_message(guard->region, *out_slot);
    if (*out == NULL) {
        return mqx_region_damage(guard->region, "a free message entry", *out_slot);
    }
    (*out)->cells = 0;
    mqx_stripe_guard_commit(guard);
    return MQX_OK;
}

static int load_insert(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot,
                       struct mqx_message *message, bool available)
{
    MQX_ASSERT(guard->stripe->lock.undo_count == 0);
    int status = mqx_priority_index_insert_entry(guard, queue, slot, message, available);
    while (status == MQX_NEED_CELLS) {
        status = mqx_stripe_guard_supply(guard);
        if (status == MQX_OK) {
            status = mqx_priority_index_insert_entry(guard, queue, slot, message, available);
        }
    }
    return status;
}

static bool is_logged(const struct mqx_loaded *loaded)
{
    return loaded->m.lsn != 0 && !loaded->taken;
}

static void fill_loaded(const struct mqx_region *region, struct mqx_message *message,
                        const struct mqx_loaded *loaded)
{
    const struct psc_message *m = &loaded->m;
    MQX_ASSERT(m->placement < MQX_PRIORITY_COUNT);
    MQX_ASSERT(message->state == MQX_MSG_RESERVED);
    message->placement = m->placement;
    const bool logged = is_logged(loaded);
    message->flags = (uint8_t)((logged ? MQX_MSGF_PERSISTENT : 0) |
                               (logged && m->is_volatile != 0 ? MQX_MSGF_VOLATILE : 0) |
                               (loaded->taken ? MQX_MSGF_TAKEN : 0) |
                               (m->has_ext != 0 ? MQX_MSGF_HAS_EXT : 0));
    message->pins = 0;
    message->object = m->object;
    message->number = m->number;
    message->lsn = m->lsn;
    message->length = m->length;
    message->priority = m->priority;
    message->expiry = mqx_expiry_of(region, m->expiry_us);
    message->unit = 0;
    message->tag[MQX_BY_MSG_ID] = m->tag_msg_id;
    message->tag[MQX_BY_CORREL_ID] = m->tag_correl_id;
    message->tag[MQX_BY_GROUP_ID] = m->tag_group_id;
    message->backout_count = m->backout_count;
    message->chunk_count = m->chunk_count;
    message->record_length = m->record_length;
}

/* Stripe lock held. The last store makes the message part of its queue. */
static int load_locked(struct mqx_stripe_guard *guard, struct mqx_object *queue,
                       const struct mqx_loaded *loaded, uint32_t *out_slot)
{
    const struct mqx_region *region = guard->region;
    struct mqx_message *message = NULL;
    MQX_ASSERT(loaded->body == NULL || loaded->descriptor != NULL);
    int status = load_entry(guard, out_slot, &message);
    if (status != MQX_OK) {
        return status;
    }
    fill_loaded(region, message, loaded);
    if (loaded->body != NULL) {
        const uint64_t payload = mqx_body_payload(loaded->ext != NULL, loaded->m.length);
        status = load_chain(guard, message, payload);
        if (status == MQX_OK) {
            status = mqx_body_write(region, message->cells, loaded->descriptor, loaded->ext,
                                    loaded->body, loaded->m.length);
        }
    }
    const bool delayed = loaded->m.due_us != 0 &&
                         mqx_delayed_fill(region, message, loaded->m.due_us) &&
                         mqx_delayed_settle(region, message);
    if (status == MQX_OK) {
        status = load_insert(guard, queue, *out_slot, message, !delayed);
    }
    if (status == MQX_OK && delayed) {
        mqx_delayed_enter(guard, queue, *out_slot, message);
    }
    if (status == MQX_OK) {
        message->state = delayed ? MQX_MSG_DELAYED : MQX_MSG_AVAILABLE;
        if (is_logged(loaded)) {
            guard->stripe->persistent_present += 1;
            guard->stripe->live_bytes += record_bytes(message);
        }
        queue->expiring += message->expiry != 0;
        mqx_stripe_guard_commit(guard);
    }
    return status;
}

/* A restart that fails discards the region, but not with a lock of this thread in it: libc would
 * follow the list of its mutexes into memory that is gone. */
void mqx_queue_load_end(struct mqx_queue_loading *loading)
{
    MQX_ASSERT(loading->store != NULL);
    if (loading->object != 0) {
        MQX_ASSERT(loading->guard.stripe->lock.undo_count == 0);
        mqx_stripe_guard_drop(&loading->guard);
        loading->object = 0;
    }
}

/* The stripe lock of the queue, unless it is held. */
static int load_enter(struct mqx_queue_loading *loading, uint32_t object)
{
    MQX_ASSERT(object != 0);
    if (MQX_LIKELY(loading->object == object)) {
        MQX_ASSERT(mqx_stripe_guard_held(&loading->guard));
        return MQX_OK;
    }
    mqx_queue_load_end(loading);
    const int status =
        mqx_stripe_guard_take(&loading->store->region, object, &loading->guard);
    loading->object = status == MQX_OK ? object : 0;
    return status;
}

int mqx_queue_load(struct mqx_queue_loading *loading, const struct mqx_loaded *loaded,
                   uint32_t *out_slot)
{
    struct mqx_object *queue = mqx_object(&loading->store->region, loaded->m.object);
    if (queue == NULL || queue->state != MQX_OBJ_ACTIVE || loaded->m.placement > MQX_MAX_PRIORITY) {
        return mqx_fail(MQRC_OBJECT_DAMAGED, "message %llu names object %u, which is not defined",
                        (unsigned long long)loaded->m.number, loaded->m.object);
    }
    int status = load_enter(loading, loaded->m.object);
    if (status != MQX_OK) {
        return status;
    }
    status = load_locked(&loading->guard, queue, loaded, out_slot);
    if (MQX_UNLIKELY(status != MQX_OK)) {
        if (mqx_stripe_guard_held(&loading->guard)) {
            mqx_stripe_guard_rollback(&loading->guard);
        } else {
            loading->object = 0; /* supplying drops it when it fails */
        }
    }
    return status;
}

/* ---- checkpoints ---- */

/* Does the message belong in a checkpoint: is it persistent, and its put committed? */
static bool is_in_checkpoint(const struct mqx_message *message)
{
    MQX_ASSERT(message != NULL);
    return (message->flags & MQX_MSGF_PERSISTENT) != 0 &&
           (mqx_delayed_or_available(message) || message->state == MQX_MSG_GOT ||
            message->state == MQX_MSG_LOCKED);
}

static void describe(const struct mqx_region *region, const struct mqx_message *message,
                     uint32_t generation, struct psc_message *out)
{
    MQX_ASSERT(out != NULL);
    *out = (struct psc_message){
        .number = message->number,
        .lsn = message->lsn,
        .first_lsn = message->lsn,
        .expiry_us = mqx_expiry_us_of(region, message),
        .tag_msg_id = message->tag[MQX_BY_MSG_ID],
        .tag_correl_id = message->tag[MQX_BY_CORREL_ID],
        .tag_group_id = message->tag[MQX_BY_GROUP_ID],
        .object = message->object,
        .object_gen = generation,
        .length = message->length,
        .backout_count = message->backout_count,
        .priority = message->priority,
        .placement = message->placement,
        .has_ext = (message->flags & MQX_MSGF_HAS_EXT) != 0,
        .is_volatile = (message->flags & MQX_MSGF_VOLATILE) != 0,
        .record_length = message->record_length,
        .chunk_count = message->chunk_count,
        .due_us = mqx_delayed_due_us(message),
    };
}

int mqx_queue_copy_entries(struct mqx_store *store, uint32_t object, struct mqx_cursor *cursor,
                           struct psc_message *out, uint32_t max, uint32_t *out_count,
                           bool *out_done)
{
    struct mqx_region *region = &store->region;
    const struct mqx_object *queue = mqx_object(region, object);
    struct mqx_stripe_guard guard;
    MQX_ASSERT(max != 0);
    *out_count = 0;
    *out_done = false;
    if (queue == NULL) {
        return mqx_region_damage(region, "the slot of a queue", object);
    }
    int status = mqx_stripe_guard_take(region, object, &guard);
    if (status != MQX_OK) {
        return status;
    }
    for (int i = 0; i < MQX_LOCKED_STEPS_MAX && *out_count < max; i++) {
        const uint32_t slot = mqx_priority_index_next(region, queue, cursor, false);
        const struct mqx_message *message = mqx_message(region, slot);
        if (message == NULL) {
            *out_done = true;
            break;
        }
        if (is_in_checkpoint(message)) {
            describe(region, message, queue->generation, &out[(*out_count)++]);
        }
    }
    mqx_stripe_guard_drop(&guard);
    return MQX_OK;
}
