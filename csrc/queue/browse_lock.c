/*
 * browse_lock.c - see browse_lock.h.
 */
#include "queue/browse_lock.h"

#include "base/assert.h"
#include "queue/wait_list.h"
#include "region/damage.h"
#include "region/extents.h"

static MQX_COLD void damaged_lock(const struct mqx_region *region, uint32_t handle_slot)
{
    (void)mqx_region_damage(region, "the browse lock of a handle", handle_slot);
}

/* Is the message the one that the handle, in that slot, has locked? One that the failure of its
 * structure has taken away may have no memory any more: NULL. */
static bool is_locked_by(const struct mqx_message *message, const struct mqx_handle *handle,
                         uint32_t handle_slot)
{
    MQX_ASSERT(handle != NULL);
    MQX_ASSERT(handle_slot != 0);
    return message != NULL && message->state == MQX_MSG_LOCKED && message->unit == handle_slot &&
           message->number == handle->browse_number;
}

uint32_t mqx_browse_lock_find(const struct mqx_stripe_guard *guard, uint32_t object,
                              uint32_t handle_slot)
{
    const struct mqx_handle *handle = mqx_handle(guard->region, handle_slot);
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    if (handle == NULL || handle->browse_lock == 0) {
        return 0;
    }
    const struct mqx_message *message = mqx_message_peek(guard->region, handle->browse_lock);
    return is_locked_by(message, handle, handle_slot) && message->object == object
               ? handle->browse_lock
               : 0;
}

void mqx_browse_lock_set(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot,
                         uint32_t handle_slot)
{
    const struct mqx_message *message = mqx_message(guard->region, slot);
    struct mqx_handle *handle = mqx_handle(guard->region, handle_slot);
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    MQX_ASSERT(guard->stripe->lock.undo_count == 0);
    if (MQX_UNLIKELY(message == NULL || handle == NULL || handle->browse_lock != 0)) {
        damaged_lock(guard->region, handle_slot);
        return;
    }
    mqx_queue_claim(guard, queue, slot, MQX_MSG_LOCKED, handle_slot);
    mqx_guard_store64(guard, &handle->browse_number, message->number);
    mqx_guard_store32(guard, &handle->browse_lock, slot);
    mqx_stripe_guard_commit(guard);
}

void mqx_browse_lock_end(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot,
                         uint32_t handle_slot)
{
    const struct mqx_message *message = mqx_message(guard->region, slot);
    struct mqx_handle *handle = mqx_handle(guard->region, handle_slot);
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    MQX_ASSERT(guard->stripe->lock.undo_count == 0);
    if (MQX_LIKELY(message != NULL && message->state != MQX_MSG_LOCKED)) {
        return;
    }
    if (MQX_UNLIKELY(handle == NULL || handle->browse_lock != slot ||
                     !is_locked_by(message, handle, handle_slot))) {
        damaged_lock(guard->region, handle_slot);
        return;
    }
    mqx_queue_make_available(guard, queue, slot, 0);
    mqx_guard_store32(guard, &handle->browse_lock, 0);
    mqx_stripe_guard_commit(guard);
}

bool mqx_handle_unlock(struct mqx_region *region, uint32_t handle_slot)
{
    struct mqx_handle *handle = mqx_handle(region, handle_slot);
    struct mqx_wakeups wakes = {.count = 0};
    struct mqx_stripe_guard guard;
    MQX_ASSERT(handle_slot != 0);
    if (handle == NULL || mqx_load_relaxed(&handle->browse_lock) == 0) {
        return false;
    }
    const uint32_t object = handle->object;
    if (mqx_object(region, object) == NULL ||
        mqx_stripe_guard_take(region, object, &guard) != MQX_OK) {
        return false;
    }
    const uint32_t slot = handle->browse_lock;
    const bool locked = is_locked_by(mqx_message_peek(region, slot), handle, handle_slot);
    if (locked) {
        mqx_queue_make_available(&guard, mqx_object(region, object), slot, 0);
    }
    mqx_guard_store32(&guard, &handle->browse_lock, 0);
    mqx_stripe_guard_commit(&guard);
    if (locked) {
        mqx_wait_list_pick(&guard, object, slot, &wakes);
    }
    mqx_stripe_guard_drop(&guard);
    mqx_wait_list_wake(region, &wakes);
    return locked;
}
