/*
 * status.c - mqe_queue_oldest: when the oldest message of a queue was put.
 *
 * Within a placement priority messages stand in the order in which they arrived, so the oldest one
 * is at the head of one of the ten: their PutTimes are compared. What counts are the messages that
 * a get could have now: not those of units of work, nor locked ones. A message whose putter left
 * the time out (MQPMO_NO_CONTEXT) tells nothing: the next one of its priority stands for it.
 *
 * Locks: the stripe lock, for at most 64 messages a call; dropped while the descriptor of a message
 * whose body lies in the journal is read, which is pinned meanwhile, in the hand of a context of
 * the pool.
 */
#include "process/attachment.h"
#include "base/error.h"
#include "journal/journal.h"
#include "queue/queue.h"
#include "unit/unit.h"
#include "os/block_hook.h"

struct look {
    mqe_manager *manager;
    struct mqx_region *region;
    uint32_t object, generation;
    uint32_t context;         /* of the pool, 0 while none was needed */
    struct mqx_cursor cursor;
    uint64_t oldest;          /* 0: nothing known */
};

/* The queue, with its lock in *hold; 2052 when it is gone, and then no lock. */
static int take_queue(const struct look *look, struct mqx_stripe_guard *guard,
                      struct mqx_object **out)
{
    int status = mqx_stripe_guard_take(look->region, look->object, guard);
    if (status != MQX_OK) {
        return status;
    }
    *out = mqx_object(look->region, look->object);
    if (mqx_load_relaxed(&(*out)->generation) != look->generation ||
        mqx_load_relaxed(&(*out)->state) == MQX_OBJ_DELETING) {
        mqx_stripe_guard_drop(guard);
        return mqx_fail(MQRC_Q_DELETED, "the queue (slot %u) has been deleted", look->object);
    }
    return MQX_OK;
}

/* Reads the descriptor of a message in the journal; drops the lock. *time 0: it went away meanwhile
 * or cannot be read, which whoever gets it will be told. */
static int read_pinned(struct look *look, struct mqx_stripe_guard *guard, uint32_t slot,
                       uint64_t *time)
{
    struct mqx_message *message = mqx_message(guard->region, slot);
    struct ps_descriptor d = {.put_time_us = 0};
    mqx_pending_pin(guard, look->context, look->object, slot);
    mqx_stripe_guard_drop(guard);
    mqx_about_to_block();
    mqx_inside(look->manager, 1);
    const int fetched =
        mqx_journal_fetch(&look->manager->store, message, &d, NULL, NULL, 0);
    const bool gone = *(volatile uint8_t *)&message->state == MQX_MSG_GONE;
    *time = fetched == MQX_OK && !gone ? d.put_time_us : 0;
    const int status = mqx_pending_release(&look->manager->store, look->context);
    mqx_inside(look->manager, -1);
    if (fetched != MQX_OK) {
        mqx_error_clear();
    }
    return status;
}

/* The cursor's message has told its time: on to the head of the next priority. False: there is
 * none. */
static bool next_priority(struct look *look, const struct mqx_object *queue, uint64_t time)
{
    const uint32_t placement = look->cursor.placement;
    if (look->oldest == 0 || time < look->oldest) {
        look->oldest = time;
    }
    if (placement == 0) {
        return false;
    }
    look->cursor = (struct mqx_cursor){
        .started = 1,
        .placement = placement - 1,
        .reset_count = queue->level[placement - 1].reset_count + 1, /* from its beginning */
    };
    return true;
}

/* The next message. The lock is held before and after, but after a failure. */
static int look_at(struct look *look, struct mqx_stripe_guard *guard, struct mqx_object **queue,
                   bool *more)
{
    const struct mqx_cursor before = look->cursor;
    const uint32_t slot = mqx_priority_index_next(look->region, *queue, &look->cursor, true);
    const struct mqx_message *message = mqx_message(look->region, slot);
    uint64_t time = 0;
    int status = MQX_OK;
    *more = message != NULL;
    if (message != NULL && message->cells != 0) {
        const struct ps_descriptor *d = mqx_body_descriptor(look->region, message);
        time = d == NULL ? 0 : d->put_time_us;
    } else if (message != NULL && look->context == 0) {
        mqx_stripe_guard_drop(guard);
        look->cursor = before;
        status = mqx_pool_take(look->manager, true, &look->context);
        return status == MQX_OK ? take_queue(look, guard, queue) : status;
    } else if (message != NULL && message->pins < UINT8_MAX) {
        status = read_pinned(look, guard, slot, &time);
        status = status == MQX_OK ? take_queue(look, guard, queue) : status;
    }
    if (status == MQX_OK && time != 0) {
        *more = next_priority(look, *queue, time);
    }
    return status;
}

int mqe_queue_oldest(mqe_manager *manager, uint32_t slot, uint32_t generation, uint64_t *out_us)
{
    struct look look = {.manager = manager, .object = slot, .generation = generation};
    struct mqx_object *queue;
    struct mqx_stripe_guard guard;
    int status = mqx_enter(manager, false);
    if (status != MQX_OK) {
        return status;
    }
    *out_us = 0;
    look.region = &manager->store.region;
    queue = mqx_object(look.region, slot);
    if (queue != NULL && mqx_load_acquire(&queue->generation) == generation &&
        mqx_load_relaxed(&queue->present) == 0) {
        return MQX_OK;
    }
    if (queue == NULL) {
        return mqx_fail(MQRC_Q_DELETED, "there is no queue in slot %u", slot);
    }
    status = take_queue(&look, &guard, &queue);
    bool more = status == MQX_OK;
    for (uint32_t steps = 0; more && steps < MQX_LOCKED_STEPS_MAX; steps++) {
        status = look_at(&look, &guard, &queue, &more);
        if (status != MQX_OK) {
            break;
        }
    }
    if (status == MQX_OK) {
        mqx_stripe_guard_drop(&guard);
        *out_us = look.oldest;
    }
    if (look.context != 0) {
        mqx_pool_give(manager, look.context);
    }
    return status;
}
