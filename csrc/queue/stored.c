/*
 * stored.c - see stored.h.
 *
 * An entry that was listed may be given back, and used again, before its message is moved: the
 * message number tells, which is never given twice.
 */
#include "queue/stored.h"

#include "base/error.h"
#include "queue/queue.h"
#include "region/damage.h"
#include "region/extents.h"

static bool is_stored(const struct mqx_message *message)
{
    MQX_ASSERT(message != NULL);
    return (message->flags & MQX_MSGF_PERSISTENT) != 0 && message->lsn != 0 &&
           (mqx_delayed_or_available(message) || message->state == MQX_MSG_GOT ||
            message->state == MQX_MSG_LOCKED || message->state == MQX_MSG_PUT);
}

int mqx_stored_list(struct mqx_store *store, uint32_t object, struct mqx_cursor *cursor,
                    struct mqx_stored *out, uint32_t *out_count, bool *out_done)
{
    struct mqx_region *region = &store->region;
    const struct mqx_object *queue = mqx_object(region, object);
    struct mqx_stripe_guard guard;
    MQX_ASSERT(cursor != NULL);
    *out_count = 0;
    *out_done = false;
    if (queue == NULL) {
        return mqx_region_damage(region, "the slot of a queue", object);
    }
    const int status = mqx_stripe_guard_take(region, object, &guard);
    if (status != MQX_OK) {
        return status;
    }
    for (int i = 0; i < MQX_LOCKED_STEPS_MAX; i++) {
        const uint32_t slot = mqx_priority_index_next(region, queue, cursor, false);
        const struct mqx_message *message = mqx_message(region, slot);
        if (message == NULL) {
            *out_done = true;
            break;
        }
        if (is_stored(message)) {
            out[(*out_count)++] = (struct mqx_stored){
                .slot = slot,
                .record_length = message->record_length,
                .chunk_count = message->chunk_count,
                .undecided = message->state == MQX_MSG_PUT,
                .number = message->number,
                .lsn = message->lsn,
            };
        }
    }
    MQX_ASSERT(*out_count <= MQX_LOCKED_STEPS_MAX);
    mqx_stripe_guard_drop(&guard);
    return MQX_OK;
}

/* Is it still that message, in that place? */
static bool is_same(const struct mqx_message *message, uint32_t object,
                    const struct mqx_stored *stored)
{
    MQX_ASSERT(stored->number != 0);
    return message != NULL && message->object == object && message->number == stored->number &&
           is_stored(message) && message->lsn == stored->lsn;
}

int mqx_stored_move(struct mqx_store *store, uint32_t object, const struct mqx_stored *stored,
                    const uint64_t *lsns, uint32_t count, uint32_t *out_moved)
{
    struct mqx_region *region = &store->region;
    struct mqx_stripe_guard guard;
    MQX_ASSERT(count > 0);
    MQX_ASSERT(count <= MQX_LOCKED_STEPS_MAX);
    *out_moved = 0;
    const int status = mqx_stripe_guard_take(region, object, &guard);
    if (status != MQX_OK) {
        return status;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct mqx_message *message = mqx_message_peek(region, stored[i].slot);
        if (is_same(message, object, &stored[i])) {
            MQX_ASSERT(lsns[i] > message->lsn);
            MQX_ASSERT(lsns[i] < mqx_journal_durable(region->journal));
            mqx_guard_store64(&guard, &message->lsn, lsns[i]);
            *out_moved += 1;
        }
    }
    mqx_stripe_guard_commit(&guard);
    mqx_stripe_guard_drop(&guard);
    return MQX_OK;
}

int mqx_stored_relocate(struct mqx_store *store, uint32_t object, uint32_t placement,
                        uint64_t number, uint64_t lsn)
{
    struct mqx_region *region = &store->region;
    struct mqx_stripe_guard guard;
    struct mqx_cursor cursor = {0};
    MQX_ASSERT(number != 0);
    MQX_ASSERT(lsn < mqx_journal_durable(region->journal));
    const struct mqx_object *queue = mqx_object(region, object);
    if (queue == NULL) {
        return mqx_region_damage(region, "the slot of a queue", object);
    }
    const int status = mqx_stripe_guard_take(region, object, &guard);
    if (status != MQX_OK) {
        return status;
    }
    mqx_priority_index_seek_after(region, queue, placement, number - 1, &cursor);
    const uint32_t slot = mqx_priority_index_next(region, queue, &cursor, false);
    struct mqx_message *message = mqx_message_peek(region, slot);
    if (message != NULL && message->number == number && is_stored(message) && message->lsn < lsn) {
        mqx_guard_store64(&guard, &message->lsn, lsn);
    }
    mqx_stripe_guard_commit(&guard);
    mqx_stripe_guard_drop(&guard);
    return MQX_OK;
}

/* Declared in queue.h: messages that no record has. */
uint32_t mqx_queue_next_image(struct mqx_store *store, uint32_t object, struct mqx_cursor *cursor)
{
    const struct mqx_object *queue = mqx_object(&store->region, object);
    const struct mqx_message *message;
    uint32_t slot;
    MQX_ASSERT(cursor != NULL);
    if (queue == NULL) {
        (void)mqx_region_damage(&store->region, "the slot of a queue", object);
        return 0;
    }
    if (mqx_load_relaxed(&queue->np_life) == MQX_NP_TO_RESTART) {
        return 0; /* NPMCLASS(NORMAL): they end with the queue manager */
    }
    do {
        slot = mqx_priority_index_next(&store->region, queue, cursor, false);
        message = mqx_message(&store->region, slot);
    } while (message != NULL && ((message->flags & MQX_MSGF_PERSISTENT) != 0 ||
                                 !mqx_delayed_or_available(message)));
    return slot;
}
