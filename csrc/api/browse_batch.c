/*
 * browse_batch.c - browsing many messages a call (mqe_browse_batch, mqe_browse_range); the newest
 * message number of a queue (mqe_queue_newest); positions that split it into ranges
 * (mqe_queue_split_points).
 *
 * A group is browsed in the lock hold of an attempt (get_attempt.h): at most 64 messages and
 * MQX_GROUP_BYTES of bodies. What is short and in the region is copied there. A message that is
 * long or in the journal is pinned, copied without the lock, and ends the group; when it has gone
 * by then it is skipped. The handle's cursor moves behind the messages that the caller is given.
 *
 * Ranges. A range scan seeks to its start position in its first lock hold, by a search through the
 * message numbers of the level; the message at that position need not exist any more. Positions
 * therefore survive restarts.
 *
 * Newest. Message numbers of a stripe rise, and the stripe draws them from blocks that rise, so
 * every message that is put after the lock hold has a number above all that were given out before.
 * A stripe that has drawn no block since the restart has messages of older blocks only.
 */
#include "api/context_pool.h"
#include "api/get_attempt.h"
#include "api/message_rows.h"
#include "base/error.h"
#include "os/block_hook.h"
#include "queue/browse_lock.h"
#include "region/queue_clock.h"

enum {
    BROWSE_FLAGS = MQE_GET_BROWSE_FIRST | MQE_GET_BROWSE_NEXT | MQE_GET_FAIL_IF_QUIESCING |
                   MQE_GET_REPORT_EXPIRED,
    BROWSE_MATCH = MQE_MATCH_PERSISTENT | MQE_MATCH_UP_TO | MQE_MATCH_DELAYED,
};

struct browse_call {
    struct mqx_get_call call;  /* first: browse_group() is passed it */
    struct mqe_batch *batch;
    uint64_t room;            /* bytes of bodies beyond the first message */
    const struct mqe_position *range; /* NULL: the whole queue */
    bool seek;                 /* to the beginning of the range */
    struct mqx_cursor done;   /* on the last message that was given or skipped */
    bool ended;               /* no more: nothing there, or it does not fit */
};

/* Browses a message that must be copied without the lock, and drops it. A message that cannot be
 * pinned now is visited again. */
static int browse_pinned(struct browse_call *b, struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    struct mqx_get_call *call = &b->call;
    struct mqx_message *message = mqx_message(guard->region, call->slot);
    if (call->pool == 0 || message->pins == UINT8_MAX) {
        mqx_stripe_guard_drop(guard);
        call->cursor = b->done;
        return mqx_get_take_context(call);
    }
    mqx_pending_pin(guard, call->pool, call->queue->object, call->slot);
    mqx_stripe_guard_drop(guard);
    mqx_about_to_block();
    const uint32_t length = message->length;
    const int copied = mqx_msg_batch_read(call->store, b->batch, b->batch->count, message);
    const bool gone = *(volatile uint8_t *)&message->state == MQX_MSG_GONE;
    const int released = mqx_pending_release(call->store, call->pool);
    if (copied == MQX_OK && !gone) {
        mqx_msg_batch_count(b->batch, length);
    }
    if (gone) {
        mqx_error_clear();
    }
    b->done = call->cursor;
    return released != MQX_OK || gone ? released : copied;
}

static bool is_beyond(const struct browse_call *b, const struct mqx_message *message)
{
    MQX_ASSERT(message != NULL);
    const struct mqe_position *end = b->range == NULL ? NULL : &b->range[1];
    return end != NULL && (message->placement < end->placement ||
                           (message->placement == end->placement && message->number > end->number));
}

/* The next message, if there is one that fits. *out_held: the lock is still held. */
static int browse_next(struct browse_call *b, struct mqx_stripe_guard *guard, bool *out_held)
{
    MQX_ASSERT(*out_held);
    MQX_ASSERT(b->batch->count < b->batch->capacity);
    struct mqx_get_call *call = &b->call;
    struct mqe_batch *batch = b->batch;
    struct mqx_object *queue = mqx_object(guard->region, call->queue->object);
    const uint64_t now = queue->expiring != 0 ? mqx_queue_coarse_us(guard->region) : 0;
    int status = mqx_match_next(call->store, guard, call->queue->object, &call->match, now,
                                &call->cursor, &call->slot);
    if (MQX_UNLIKELY(status == MQX_OK && call->match.expired != 0)) {
        status = mqx_get_stop_at_expired(call, guard);
    }
    if (status != MQX_OK) {
        *out_held = false;
        return status;
    }
    status = mqx_get_check_queue(call, queue); /* finding may have released the lock */
    const struct mqx_message *message = mqx_message(guard->region, call->slot);
    if (status != MQX_OK || message == NULL || is_beyond(b, message) ||
        !mqx_msg_batch_fits(batch, b->room, message)) {
        b->ended = true;
        return status;
    }
    if (!mqx_msg_batch_is_near(batch, message)) {
        *out_held = false;
        return browse_pinned(b, guard);
    }
    status = mqx_msg_batch_read(call->store, batch, batch->count, message);
    if (status == MQX_OK) {
        mqx_msg_batch_count(batch, message->length);
        b->done = call->cursor;
    }
    return status;
}

/* take_many() of get_attempt.h. */
static enum mqx_next_step browse_group(struct mqx_get_call *call, struct mqx_stripe_guard *guard,
                                       bool keep, int *status)
{
    MQX_ASSERT(call->browse);
    struct browse_call *b = (struct browse_call *)(void *)call;
    const struct mqe_batch *batch = b->batch;
    const uint32_t first = batch->count;
    const uint64_t from = batch->bytes;
    bool held = true;
    (void)keep;
    if (b->seek) {
        mqx_priority_index_seek_after(guard->region, mqx_object(guard->region, call->queue->object),
                                      b->range[0].placement, b->range[0].number, &call->cursor);
        b->done = call->cursor;
        b->seek = false;
    }
    while (held && *status == MQX_OK && !b->ended && batch->count < batch->capacity &&
           batch->count - first < MQX_LOCKED_STEPS_MAX &&
           (batch->bodies == NULL || batch->bytes - from < MQX_GROUP_BYTES)) {
        *status = browse_next(b, guard, &held);
    }
    if (held) {
        mqx_stripe_guard_drop(guard);
    }
    return MQX_STEP_DONE;
}

static int check_call(const mqe_queue *queue, const struct mqe_get *get,
                      const struct mqe_position *range)
{
    MQX_ASSERT(queue != NULL && get != NULL);
    const int status = mqx_get_check_rights(queue, get->flags, true);
    if (status == MQX_OK && (get->flags & ~(uint32_t)BROWSE_FLAGS) != 0) {
        return mqx_fail(MQRC_OPTIONS_ERROR, "flags %#x are not for a browse of many", get->flags);
    }
    if (status == MQX_OK && range != NULL &&
        (range[0].placement > MQX_MAX_PRIORITY || range[1].placement > MQX_MAX_PRIORITY)) {
        return mqx_fail(MQRC_OPTIONS_ERROR, "a range from placement %u to %u",
                        range[0].placement, range[1].placement);
    }
    if (status == MQX_OK && (get->match & ~(uint32_t)BROWSE_MATCH) != 0) {
        return mqx_fail(MQRC_MATCH_OPTIONS_ERROR, "match bits %#x are not for batches",
                        get->match);
    }
    return status;
}

/* With the handle's cursor, which one call uses at a time. */
static int browse_groups(struct browse_call *b)
{
    MQX_ASSERT(b->batch->count == 0);
    struct mqx_get_call *call = &b->call;
    mqe_queue *queue = call->queue;
    int status = MQX_OK;
    mqx_cursor_lock(queue);
    if ((call->get->flags & MQE_GET_BROWSE_FIRST) == 0) {
        call->cursor = queue->cursor;
    }
    b->done = call->cursor;
    (void)mqx_handle_unlock(&call->store->region, queue->handle); /* a browse ends it */
    while (status == MQX_OK && !b->ended && b->batch->count < b->batch->capacity) {
        struct mqx_stripe_guard guard;
        (void)mqx_get_attempt(call, &guard, false, &status);
    }
    queue->cursor = b->done;
    mqx_cursor_unlock(queue);
    return status;
}

static int browse(mqe_manager *manager, mqe_queue *queue, struct mqe_get *get,
                  const struct mqe_position *range, struct mqe_batch *batch)
{
    MQX_ASSERT(queue->manager == manager);
    MQX_ASSERT(batch != NULL);
    struct browse_call b = {
        .call = {.manager = manager,
                 .store = &manager->store,
                 .queue = queue,
                 .get = get,
                 .browse = true,
                 .woken = true,
                 .take_many = browse_group},
        .batch = batch,
        .room = mqx_msg_batch_room(batch, get->max_bytes),
        .range = range,
        .seek = range != NULL && (get->flags & MQE_GET_BROWSE_FIRST) != 0,
    };
    mqx_msg_batch_begin(batch);
    int status = mqx_enter(manager, (get->flags & MQE_GET_FAIL_IF_QUIESCING) != 0);
    if (status == MQX_OK) {
        status = check_call(queue, get, range);
    }
    if (status != MQX_OK || batch->capacity == 0) {
        return status;
    }
    mqx_match_init(&manager->store.region, get, &b.call.match);
    mqx_file_calls_begin(manager);
    status = browse_groups(&b);
    mqx_file_calls_end(manager);
    if (b.call.pool != 0) {
        mqx_pool_give(manager, b.call.pool);
    }
    if (batch->count != 0 || (status == MQX_OK && batch->needed == 0)) {
        return MQX_OK;
    }
    return status != MQX_OK
               ? status
               : mqx_fail(MQRC_TRUNCATED_MSG_FAILED,
                          "the next message has %llu bytes, there is room for %llu",
                          (unsigned long long)batch->needed,
                          (unsigned long long)batch->body_capacity);
}

int mqe_browse_batch(mqe_manager *manager, mqe_queue *queue, struct mqe_get *get,
                     struct mqe_batch *batch)
{
    return browse(manager, queue, get, NULL, batch);
}

int mqe_browse_range(mqe_manager *manager, mqe_queue *queue, struct mqe_get *get,
                     const struct mqe_position range[2], struct mqe_batch *batch)
{
    return browse(manager, queue, get, range, batch);
}

/* ---- positions ---- */

static int enter_queue(mqe_manager *manager, uint32_t slot, uint32_t generation,
                       struct mqx_stripe_guard *guard, struct mqx_object **out)
{
    MQX_ASSERT(manager != NULL);
    const int status = mqx_enter(manager, false);
    return status != MQX_OK ? status
                            : mqx_queue_lock(&manager->store.region, slot, generation, guard, out);
}

/* The position behind a message that has about `rank` present ones before it; false: there is
 * none. */
static bool position_behind(const struct mqx_region *region, const struct mqx_object *queue,
                            uint64_t rank, struct mqe_position *out)
{
    MQX_ASSERT(out != NULL);
    for (uint32_t p = MQX_MAX_PRIORITY + 1; p-- > 0;) {
        const struct mqx_level *level = &queue->level[p];
        if (rank < level->present) {
            const uint32_t slot = mqx_priority_index_sample(region, queue, p, (uint32_t)rank);
            const struct mqx_message *message = mqx_message(region, slot);
            *out = (struct mqe_position){.placement = p};
            out->number = message == NULL ? 0 : message->number;
            return message != NULL;
        }
        rank -= level->present;
    }
    return false;
}

static bool is_after(const struct mqe_position *a, const struct mqe_position *b)
{
    MQX_ASSERT(a != NULL && b != NULL);
    return a->placement < b->placement ||
           (a->placement == b->placement && a->number > b->number);
}

int mqe_queue_split_points(mqe_manager *manager, uint32_t slot, uint32_t generation, uint32_t parts,
                           struct mqe_position *out, uint32_t *out_count)
{
    MQX_ASSERT(out != NULL || parts <= 1);
    MQX_ASSERT(out_count != NULL);
    struct mqx_region *region = &manager->store.region;
    struct mqx_stripe_guard guard;
    int status = MQX_OK;
    *out_count = 0;
    for (uint32_t part = 1; part < parts && status == MQX_OK;) {
        struct mqx_object *queue;
        status = enter_queue(manager, slot, generation, &guard, &queue);
        if (status != MQX_OK) {
            return status;
        }
        for (uint32_t n = 0; n < MQX_LOCKED_STEPS_MAX && part < parts; n++, part++) {
            const uint64_t before = (uint64_t)queue->present * part / parts;
            struct mqe_position *next = &out[*out_count];
            if (before != 0 && position_behind(region, queue, before - 1, next) &&
                (*out_count == 0 || is_after(next, next - 1))) {
                *out_count += 1;
            }
        }
        mqx_stripe_guard_drop(&guard);
    }
    return status;
}

int mqe_queue_newest(mqe_manager *manager, uint32_t slot, uint32_t generation,
                     uint64_t *out_number)
{
    MQX_ASSERT(out_number != NULL);
    struct mqx_stripe_guard guard;
    struct mqx_object *queue;
    const int status = enter_queue(manager, slot, generation, &guard, &queue);
    if (status == MQX_OK) {
        *out_number = guard.stripe->end_number != 0
                          ? guard.stripe->next_number - 1
                          : mqx_load_relaxed(&guard.region->journal->next_number) - 1;
        mqx_stripe_guard_drop(&guard);
    }
    return status;
}
